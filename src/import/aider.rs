//! Aider: a chat history in Markdown, without calls and without ids.
//!
//! Each `# aider chat started at` begins a run, since the context starts anew there. Lines after `####`
//! are the user's, those after `>` aider's own, all others the answer. What aider itself says between
//! two answers, such as a test that fails, was sent to the model; what it says elsewhere was not, and
//! is kept as a note.

use std::io::{BufRead as _, Read as _};

use crate::exchange::Usage;
use crate::import::Unread;
use crate::import::pen::Pen;
use crate::import::source::Source;
use crate::transcript::{At, Speaker};

/// The longest line that is read, in bytes; what is longer is read as several.
const LINE: u64 = 16 << 20;

/// The heading of a chat.
const HEADING: &str = "# aider chat started at ";

/// The runs of a history, a chat each.
pub(super) fn read(source: &mut Source) -> Result<Vec<Pen>, Unread> {
    let mut bytes = source.bytes();
    let mut runs = vec![Chat::default()];
    let mut line = Vec::new();
    loop {
        line.clear();
        if bytes.by_ref().take(LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r']);
        if let Some(time) = text.strip_prefix(HEADING) {
            let mut chat = Chat::default();
            chat.pen.at(moment(time));
            chat.pen.run("", "", time.trim());
            runs.push(chat);
        } else if let Some(chat) = runs.last_mut() {
            chat.line(text);
        }
    }
    Ok(runs.into_iter().map(Chat::ended).collect())
}

/// A local time without a zone, taken as UTC.
fn moment(time: &str) -> Option<At> {
    format!("{}Z", time.trim().replace(' ', "T")).parse().ok()
}

/// Whose line it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Whose {
    #[default]
    Nobody,
    User,
    Aider,
    Model,
}

/// One chat, as far as it was read.
#[derive(Default)]
struct Chat {
    pen: Pen,
    /// Whose lines are being gathered, and the lines.
    whose: Whose,
    lines: Vec<String>,
    /// What aider said since an answer, until it shows whether it was sent.
    reports: Vec<String>,
    /// Whether an answer came last.
    answered: bool,
    /// What was counted of the answer that comes next.
    usage: Option<Usage>,
}

impl Chat {
    fn line(&mut self, line: &str) {
        // Both marks are aider's if the line ends in its line break: an answer may quote, too.
        let broken = line.strip_suffix("  ");
        let (whose, text) = if let Some(said) = line.strip_prefix("#### ") {
            (Whose::User, said.strip_suffix("  ").unwrap_or(said))
        } else if line.trim_end() == "####" {
            (Whose::User, "")
        } else if let Some(said) = broken.and_then(|line| line.strip_prefix('>')) {
            (Whose::Aider, said.strip_prefix(' ').unwrap_or(said))
        } else if line.trim().is_empty() && self.whose != Whose::Model {
            return;
        } else {
            (Whose::Model, line)
        };
        if whose != self.whose {
            self.turn(whose);
        }
        if let Some(usage) = counted(text).filter(|_| whose == Whose::Aider) {
            self.usage = Some(usage);
            self.pen.note(text);
            return;
        }
        self.lines.push(text.to_owned());
    }

    /// Tells the lines gathered so far; those to come are of someone else.
    fn turn(&mut self, whose: Whose) {
        let text = self.lines.join("\n");
        self.lines.clear();
        if text.is_empty() {
            self.whose = whose;
            return;
        }
        match self.whose {
            Whose::Nobody => {}
            Whose::User => {
                self.unsent();
                self.pen.typed(text, Vec::new());
                self.answered = false;
            }
            Whose::Aider if self.answered => self.reports.push(text),
            Whose::Aider => self.pen.note(text),
            Whose::Model => {
                for report in std::mem::take(&mut self.reports) {
                    self.pen.user(Speaker::Runtime, report, Vec::new());
                }
                self.pen.over();
                self.pen.said(None, text.trim_matches('\n'));
                if let Some(usage) = self.usage.take() {
                    self.pen.usage(None, usage);
                }
                self.answered = true;
            }
        }
        self.whose = whose;
    }

    /// What aider said was not sent.
    fn unsent(&mut self) {
        for report in std::mem::take(&mut self.reports) {
            self.pen.note(report);
        }
    }

    fn ended(mut self) -> Pen {
        self.turn(Whose::Nobody);
        self.unsent();
        self.pen
    }
}

/// What an exact report of tokens counts: `33679 prompt tokens, 93 completion tokens, …`.
fn counted(line: &str) -> Option<Usage> {
    let (input, rest) = line.split_once(" prompt tokens, ")?;
    let (output, _) = rest.split_once(" completion tokens")?;
    Some(Usage {
        input: Some(input.replace(',', "").parse().ok()?),
        output: Some(output.replace(',', "").parse().ok()?),
        ..Usage::default()
    })
}
