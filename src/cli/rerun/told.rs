//! What is told of a run that was played again.

use std::io;

use schemars::JsonSchema;
use serde::Serialize;
use undertext::id::RunId;
use undertext::rerun::{Course, Difference, Line, Replayed};
use undertext::secret::Masks;

use crate::cli::rerun::site::From;
use crate::cli::term::{Look, Term};
use crate::cli::{amount, brief};

/// How many differences are listed below the first.
const LISTED: usize = 20;

/// What `replay --run --json` writes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename = "rerun")]
pub(crate) struct Rerun {
    /// The new run.
    pub(crate) run: RunId,
    /// Where its transcript is.
    pub(crate) transcript: String,
    /// The recorded run.
    pub(crate) of: RunId,
    /// The same, as it is named on a command line.
    #[serde(skip)]
    pub(crate) named: String,
    /// Where the tools ran.
    pub(crate) workspace: String,
    /// What that was made from.
    pub(crate) from: From,
    /// Whether it was left there.
    pub(crate) kept: bool,
    /// What came of it.
    #[serde(flatten)]
    pub(crate) replayed: Replayed,
}

impl Rerun {
    pub(crate) fn json(&self, term: &mut Term) -> io::Result<()> {
        term.print_json(&serde_json::to_string(self).map_err(io::Error::from)?)
    }

    pub(crate) fn print(&self, term: &mut Term) -> io::Result<()> {
        let all = &self.replayed;
        if let Some((first, rest)) = all.differences.split_first() {
            self.first(first, term)?;
            for other in rest.iter().take(LISTED) {
                let line = format!("  {:<17}{}", "differs as well", name(other, term.masks()));
                term.print(&[(Look::Plain, line)])?;
            }
            if let Some(more @ 1..) = rest.len().checked_sub(LISTED) {
                let more = amount::of(more as u64, "more result");
                row(term, "", Look::Plain, &more)?;
            }
        }
        for course in &all.courses {
            row(term, "another course", Look::Bad, &told(course))?;
        }
        row(
            term,
            "played",
            Look::Plain,
            &format!(
                "{} of {} of run {}; no model was asked",
                amount::count(all.played),
                amount::of(all.recorded, "response"),
                self.named
            ),
        )?;
        if all.not_compared > 0 {
            let results = amount::of(all.not_compared, "result");
            let text = format!("{results} of calls that were stopped, then or now");
            row(term, "not compared", Look::Plain, &text)?;
        }
        if self.kept {
            row(term, "workspace", Look::Plain, &self.workspace)?;
        }
        let run = self.run.short();
        let text = format!("undertext print {run}");
        row(term, "what happened", Look::Plain, &text)?;
        let compared = amount::of(all.compared, "result");
        let differ = match all.differences.len() as u64 {
            0 => "none differs".to_owned(),
            1 => "1 differs".to_owned(),
            differ => format!("{} differ", amount::count(differ)),
        };
        let (look, course) = match (all.is_same(), all.courses.is_empty()) {
            (true, _) => (Look::Strong, ""),
            (false, true) => (Look::Bad, ""),
            (false, false) => (Look::Bad, "; the run took another course"),
        };
        let last = format!("{compared} compared, {differ}{course}");
        term.print(&[(look, last)])
    }

    /// The first difference, in full.
    fn first(&self, first: &Difference, term: &mut Term) -> io::Result<()> {
        let head = format!("first difference: {}", name(first, term.masks()));
        term.print(&[(Look::Bad, head)])?;
        if first.absent {
            let text = format!(
                "there is no tool {} here; it was answered as unknown",
                first.name
            );
            return row(term, "", Look::Plain, &text);
        }
        if let Some(status) = &first.status {
            let text = format!(
                "expected {}, got {}",
                status.expected.word(),
                status.got.word()
            );
            row(term, "status", Look::Plain, &text)?;
        }
        if let Some(Line {
            number,
            expected,
            got,
        }) = &first.line
        {
            let name = format!("line {number}");
            let ended = "(the result ended before it)";
            let shown = |line: &Option<String>| match line {
                Some(line) => format!("|{line}"),
                None => ended.to_owned(),
            };
            row(
                term,
                &name,
                Look::Plain,
                &format!("expected {}", shown(expected)),
            )?;
            row(term, "", Look::Plain, &format!("got      {}", shown(got)))?;
        }
        let text = format!("undertext print {} --at {}", self.named, first.call);
        row(term, "then", Look::Plain, &text)?;
        let text = format!("undertext print {} --at {}", self.run.short(), first.again);
        row(term, "now", Look::Plain, &text)
    }
}

/// A result by its call: `17.2 Bash, round 9`.
fn name(difference: &Difference, masks: &Masks) -> String {
    let round = difference.round;
    let round = round.map_or_else(String::new, |round| format!(", round {round}"));
    let absent = if difference.absent { ", not here" } else { "" };
    let tool = brief::first_line(masks, &difference.name, 60);
    format!("{} {tool}{round}{absent}", difference.call)
}

fn told(course: &Course) -> String {
    let how = match course.ended {
        Some(reason) => format!("ended ({})", reason.word()),
        None => "asked for more than was recorded".to_owned(),
    };
    let left = match course.unplayed {
        0 => String::new(),
        left => format!(", with {} left", amount::of(left, "response")),
    };
    format!("turn {} {how}{left}", course.turn)
}

fn row(term: &mut Term, name: &str, look: Look, text: &str) -> io::Result<()> {
    term.print(&[
        (Look::Faint, format!("  {name:<17}")),
        (look, text.to_owned()),
    ])
}
