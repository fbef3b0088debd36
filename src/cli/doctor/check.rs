//! What the doctor finds, a line each, and what there is to change.

use std::io;

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::exit::{Exit, Failure};
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
    /// What: `settings`, `key`, `server`, `model`, `profile`, `window`, `prices`, `reply` or `call`.
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

    /// What to change, as a command or a line of settings.
    pub(super) fn change(&mut self, text: impl Into<String>) {
        self.change.push(text.into());
    }

    fn add(&mut self, name: &'static str, outcome: Outcome, text: String) -> Result<(), Failure> {
        if !self.json {
            let (word, look) = match outcome {
                Outcome::Ok => ("ok", Look::Faint),
                Outcome::Warn => ("warn", Look::Strong),
                Outcome::Fail => ("fail", Look::Bad),
            };
            self.term.print(&[
                (look, format!("{word:6}")),
                (Look::Plain, format!("{name:10}{text}")),
            ])?;
        }
        self.checks.push(Check {
            name,
            outcome,
            text,
        });
        Ok(())
    }

    /// Ends with what to change.
    pub(super) fn end(self) -> Result<Exit, Failure> {
        let usable = self.exit == Exit::Done;
        if self.json {
            let diagnosis = Diagnosis {
                usable,
                exit: self.exit as u8,
                checks: self.checks,
                change: self.change,
            };
            let json = serde_json::to_string(&diagnosis).map_err(io::Error::from)?;
            self.term.print_json(&json)?;
            return Ok(self.exit);
        }
        let told = match (usable, self.change.is_empty()) {
            (true, true) => "Nothing needs to change.",
            (true, false) => "It works. What may be better:",
            (false, true) => "It does not work.",
            (false, false) => "It does not work. What to change:",
        };
        self.term.print(&[(Look::Plain, "")])?;
        self.term.print(&[(Look::Strong, told)])?;
        for change in &self.change {
            self.term.print(&[(Look::Plain, format!("  {change}"))])?;
        }
        Ok(self.exit)
    }
}
