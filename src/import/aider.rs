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
        if whose == Whose::Aider {
            self.about(text);
        }
    }

    /// What a line of aider's own says of the run.
    fn about(&mut self, line: &str) {
        if let Some(version) = line.strip_prefix("Aider v") {
            self.pen.run("", version, "");
        }
        let names = ["Models: ", "Model: ", "Main model: "];
        let model = names.iter().find_map(|name| line.strip_prefix(name));
        if let Some((model, _)) = model.and_then(|model| model.split_once(" with ")) {
            self.pen.model(model, None);
        }
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

#[cfg(test)]
mod tests {
    use crate::import::told::told;

    #[test]
    fn each_chat_is_a_run_and_what_was_sent_back_is_a_message() {
        let recording = [
            "lost beginning",
            "",
            "# aider chat started at 2024-05-21 15:06:10",
            "",
            "> Aider v0.35.1-dev  ",
            "> Models: gpt-4o with diff edit format, weak model gpt-3.5-turbo  ",
            "",
            "#### Fix it.  ",
            "####   ",
            "#### Please.  ",
            "> 1,679 prompt tokens, 93 completion tokens, $0.16 cost  ",
            "",
            "Change this:",
            "",
            "> a quotation",
            "",
            "```",
            ">>>>>>> REPLACE",
            "```",
            "",
            "> Applied edit to a.py  ",
            ">   ",
            "> 1 test failed  ",
            "> 19639 prompt tokens, 5 completion tokens, $0.3 cost  ",
            "",
            "Now it passes.",
            "",
            "> Applied edit to a.py  ",
            "",
            "#### /exit  ",
            "",
            "# aider chat started at 2024-05-22 10:00:00",
            "> Tokens: 2.9k sent, 152 received.  ",
            "",
            "# aider chat started at 2024-05-23 10:00:00",
            "#### Again.  ",
            "",
            "No.",
        ];
        insta::assert_snapshot!(told("a.md", &recording.join("\n")), @r#"
        run aider
        setup unknown ""
        Runtime "[What came before this was not recorded.]"
        Complete "lost beginning"
        run aider 0.35.1-dev session "2024-05-21 15:06:10"
        note "Aider v0.35.1-dev\nModels: gpt-4o with diff edit format, weak model gpt-3.5-turbo"
        setup gpt-4o ""
        Task "Fix it.\n\nPlease."
        note "1,679 prompt tokens, 93 completion tokens, $0.16 cost"
        Complete "Change this:\n\n> a quotation\n\n```\n>>>>>>> REPLACE\n```" (1679 - - 93 -)
        note "19639 prompt tokens, 5 completion tokens, $0.3 cost"
        Runtime "Applied edit to a.py\n\n1 test failed"
        Complete "Now it passes." (19639 - - 5 -)
        note "Applied edit to a.py"
        FollowUp "/exit"
        run aider session "2024-05-23 10:00:00"
        setup unknown ""
        Task "Again."
        Complete "No."
        "#);
    }
}
