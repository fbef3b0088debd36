//! What the doctor finds, a line each, and what there is to change.

use std::{io, mem};

use schemars::JsonSchema;
use serde::Serialize;
use undertext::secret::Known;

use crate::cli::exit::{Exit, Failure};
use crate::cli::story::wrapped;
use crate::cli::term::{Look, Term};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// As it should be.
    Ok,
    /// It works, but could be better.
    Warn,
    /// It does not work.
    Fail,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Check {
    /// What: `settings`, `sandbox`, `key`, `server`, `model`, `profile`, `window`, `prices`, `reply` or `call`.
    name: &'static str,
    /// How it came out.
    outcome: Outcome,
    /// What was found.
    text: String,
}

/// All that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Diagnosis {
    /// Whether runs can be had with these settings.
    usable: bool,
    /// The exit code of the program.
    exit: u8,
    /// What was looked at, in order.
    checks: Vec<Check>,
    /// What to change: commands, or lines of `config.yaml`.
    change: Vec<String>,
}

/// What is found, told as it comes.
pub(super) struct Findings<'a> {
    term: &'a mut Term,
    json: bool,
    exit: Exit,
    checks: Vec<Check>,
    change: Vec<String>,
    better: Vec<String>,
}

impl<'a> Findings<'a> {
    /// Nothing yet.
    pub(super) fn new(term: &'a mut Term, json: bool) -> Self {
        Self {
            term,
            json,
            exit: Exit::Done,
            checks: Vec::new(),
            change: Vec::new(),
            better: Vec::new(),
        }
    }

    /// Says something beside the findings, to people alone.
    pub(super) fn say(&mut self, text: &str) -> Result<(), Failure> {
        if !self.json {
            self.term.say(&[(Look::Faint, text)])?;
        }
        Ok(())
    }

    /// It is as it should be.
    pub(super) fn ok(
        &mut self,
        name: &'static str,
        text: impl Into<String>,
    ) -> Result<(), Failure> {
        self.add(name, Outcome::Ok, text.into())
    }

    /// It works, but could be better.
    pub(super) fn warn(
        &mut self,
        name: &'static str,
        text: impl Into<String>,
    ) -> Result<(), Failure> {
        self.add(name, Outcome::Warn, text.into())
    }

    /// It does not work. The first failure decides how the program ends.
    pub(super) fn fail(
        &mut self,
        name: &'static str,
        exit: Exit,
        text: impl Into<String>,
    ) -> Result<(), Failure> {
        if self.exit == Exit::Done {
            self.exit = exit;
        }
        self.add(name, Outcome::Fail, text.into())
    }

    /// Shows nothing of this any more.
    pub(super) fn hide(&mut self, known: &Known) {
        self.term.hide(known);
    }

    /// What to change, as a command or a line of settings.
    pub(super) fn change(&mut self, text: impl Into<String>) {
        self.change.push(text.into());
    }

    /// What to change that is not at fault, and is told last.
    pub(super) fn better(&mut self, text: impl Into<String>) {
        self.better.push(text.into());
    }

    fn add(&mut self, name: &'static str, outcome: Outcome, text: String) -> Result<(), Failure> {
        if !self.json {
            let (word, look) = match outcome {
                Outcome::Ok => ("ok", Look::Faint),
                Outcome::Warn => ("warn", Look::Strong),
                Outcome::Fail => ("fail", Look::Bad),
            };
            for (place, line) in self.lines(&text, 16).into_iter().enumerate() {
                let (word, name) = if place == 0 { (word, name) } else { ("", "") };
                self.term.print(&[
                    (look, format!("{word:6}")),
                    (Look::Plain, format!("{name:10}{line}")),
                ])?;
            }
        }
        self.checks.push(Check {
            name,
            outcome,
            text,
        });
        Ok(())
    }

    /// A text in lines that a terminal has room for beside a margin; elsewhere in one.
    fn lines(&self, text: &str, margin: usize) -> Vec<String> {
        match self.term.width() {
            Some(width) => wrapped(text, width.saturating_sub(margin).max(40)),
            None => vec![text.to_owned()],
        }
    }

    /// Ends with what to change.
    pub(super) fn end(mut self) -> Result<Exit, Failure> {
        let usable = self.exit == Exit::Done;
        if self.json {
            let diagnosis = Diagnosis {
                usable,
                exit: self.exit as u8,
                checks: self.checks,
                change: [self.change, self.better].concat(),
            };
            let json = serde_json::to_string(&diagnosis).map_err(io::Error::from)?;
            self.term.print_json(&json)?;
            return Ok(self.exit);
        }
        let parts = if usable {
            let all = [mem::take(&mut self.change), mem::take(&mut self.better)].concat();
            let told = if all.is_empty() {
                "Nothing needs to change."
            } else {
                "It works. What may be better:"
            };
            vec![(told, all)]
        } else {
            let told = if self.change.is_empty() {
                "It does not work."
            } else {
                "It does not work. What to change:"
            };
            let mut parts = vec![(told, mem::take(&mut self.change))];
            if !self.better.is_empty() {
                parts.push(("What may be better:", mem::take(&mut self.better)));
            }
            parts
        };
        self.term.print(&[(Look::Plain, "")])?;
        for (told, all) in parts {
            self.term.print(&[(Look::Strong, told)])?;
            for change in &all {
                for (place, line) in self.lines(change, 4).iter().enumerate() {
                    let margin = if place == 0 { "  " } else { "    " };
                    self.term
                        .print(&[(Look::Plain, format!("{margin}{line}"))])?;
                }
            }
        }
        Ok(self.exit)
    }
}
