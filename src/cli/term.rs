//! What a terminal may see.
//!
//! Every text that a model, a tool or a file had a hand in goes through [`visible`]: characters that
//! would move the cursor, change the direction of writing or hide something are written out.
//! Line ends and tabs stay. Colour and the live line appear on a terminal only.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The text with every character that a reader would not see as one written out, such as
/// `\u{1b}`.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    encode(text, |safe, bad| {
        write!(safe, "{}", bad.escape_unicode()).ok();
    })
}

/// The same for JSON text, which means the same afterwards.
pub(crate) fn visible_json(json: &str) -> Cow<'_, str> {
    encode(json, |safe, bad| {
        for unit in bad.encode_utf16(&mut [0; 2]) {
            write!(safe, "\\u{unit:04x}").ok();
        }
    })
}

fn encode(text: &str, write_out: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let Some(first) = hidden(text).next() else {
        return Cow::Borrowed(text);
    };
    let mut safe = String::with_capacity(text.len() + 16);
    safe.push_str(&text[..first.0]);
    let mut end = first.0;
    for (at, bad) in hidden(text) {
        safe.push_str(&text[end..at]);
        write_out(&mut safe, bad);
        end = at + bad.len_utf8();
    }
    safe.push_str(&text[end..]);
    Cow::Owned(safe)
}

/// The characters to write out, with their places.
fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut before = ' ';
    text.char_indices().filter(move |(_, c)| {
        // One selector that makes a sign an emoji hides nothing; a row of them may.
        let emoji = *c == '\u{fe0f}' && !before.is_ascii() && !is_hidden(before);
        before = *c;
        is_hidden(*c) && !emoji
    })
}

/// Whether the character is a control, changes the direction of writing, or takes no place.
fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control(),
    }
}

/// How a piece of text looks on a terminal with colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Like all else.
    Plain,
    /// A heading.
    Strong,
    /// An aside.
    Faint,
    /// Something went wrong.
    Bad,
}

impl Look {
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Strong => Some("1"),
            Self::Faint => Some("2"),
            Self::Bad => Some("31"),
        }
    }
}

/// Where text goes.
struct Stream {
    to: Box<dyn Write + Send>,
    terminal: bool,
    colour: bool,
}

impl Stream {
    fn line<T: AsRef<str>>(&mut self, pieces: &[(Look, T)]) -> io::Result<()> {
        let mut line = String::new();
        for (look, text) in pieces {
            let text = visible(text.as_ref());
            match look.code().filter(|_| self.colour) {
                Some(code) => write!(line, "\x1b[{code}m{text}\x1b[0m").ok(),
                None => write!(line, "{text}").ok(),
            };
        }
        line.push('\n');
        self.to.write_all(line.as_bytes())?;
        self.to.flush()
    }
}

/// Standard output and standard error.
pub(crate) struct Term {
    out: Stream,
    err: Stream,
    columns: usize,
    width: Option<usize>,
    live_shown: bool,
}

/// What each of the two streams is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terminals {
    /// Standard output is a terminal.
    pub(crate) out: bool,
    /// Standard error is one.
    pub(crate) err: bool,
    /// A terminal may be given colour.
    pub(crate) colour: bool,
    /// The width of standard error, if it is known.
    pub(crate) columns: Option<usize>,
    /// The width of standard output, if lines must fit one.
    pub(crate) width: Option<usize>,
}

impl Term {
    /// A terminal made of these streams.
    pub(crate) fn new(
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
        terminals: Terminals,
    ) -> Self {
        let stream = |to, terminal| Stream {
            to,
            terminal,
            colour: terminal && terminals.colour,
        };
        Self {
            out: stream(out, terminals.out),
            err: stream(err, terminals.err),
            columns: terminals.columns.unwrap_or(80),
            width: terminals.width,
            live_shown: false,
        }
    }

    /// Writes a line to standard output.
    pub(crate) fn print<T: AsRef<str>>(&mut self, pieces: &[(Look, T)]) -> io::Result<()> {
        self.clear_live()?;
        self.out.line(pieces)
    }

    /// Writes a line of JSON to standard output: to a program exactly, to a terminal made visible.
    pub(crate) fn print_json(&mut self, json: &str) -> io::Result<()> {
        self.clear_live()?;
        if self.out.terminal {
            writeln!(self.out.to, "{}", visible_json(json))?;
        } else {
            writeln!(self.out.to, "{json}")?;
        }
        self.out.to.flush()
    }

    /// Writes bytes to standard output: to a program exactly, to a terminal made visible.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.clear_live()?;
        if self.out.terminal {
            let text = String::from_utf8_lossy(bytes);
            return self.out.line(&[(Look::Plain, text)]);
        }
        self.out.to.write_all(bytes)?;
        self.out.to.flush()
    }

    /// What writes a document to standard output: to a program exactly, to a terminal line by line,
    /// made visible.
    pub(crate) fn document(&mut self) -> Document<'_> {
        Document {
            term: self,
            line: Vec::new(),
        }
    }

    /// The characters that fit a line of standard output; nothing if any number does.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// Whether a live line is shown at all.
    pub(crate) fn is_live(&self) -> bool {
        self.err.terminal
    }

    /// Writes an answer to standard output: to a program exactly, to a terminal made visible.
    pub(crate) fn answer(&mut self, text: &str) -> io::Result<()> {
        self.clear_live()?;
        if self.out.terminal {
            return self.out.line(&[(Look::Plain, text)]);
        }
        writeln!(self.out.to, "{text}")?;
        self.out.to.flush()
    }

    /// Writes a line to standard error.
    pub(crate) fn say<T: AsRef<str>>(&mut self, pieces: &[(Look, T)]) -> io::Result<()> {
        self.clear_live()?;
        self.err.line(pieces)
    }

    /// Shows the live line, in place of the last one. Nothing happens where standard error is no
    /// terminal.
    pub(crate) fn live(&mut self, text: &str) -> io::Result<()> {
        if !self.err.terminal {
            return Ok(());
        }
        let text = visible(text).replace(['\n', '\t'], " ");
        let line = fitting(&text, self.columns.saturating_sub(1));
        self.live_shown = true;
        write!(self.err.to, "\r{line}\x1b[K")?;
        self.err.to.flush()
    }

    fn clear_live(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.live_shown) {
            write!(self.err.to, "\r\x1b[K")?;
            self.err.to.flush()?;
        }
        Ok(())
    }
}

/// A document on its way to standard output.
pub(crate) struct Document<'a> {
    term: &'a mut Term,
    /// What a terminal is not shown yet.
    line: Vec<u8>,
}

impl Write for Document<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.term.clear_live()?;
        if !self.term.out.terminal {
            self.term.out.to.write_all(bytes)?;
            return Ok(bytes.len());
        }
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line[..end]);
            self.term.out.line(&[(Look::Plain, text)])?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            let text = String::from_utf8_lossy(&line);
            self.term.out.line(&[(Look::Plain, text)])?;
        }
        self.term.out.to.flush()
    }
}

/// The beginning of the text that fits the columns, if what is not ASCII takes two.
fn fitting(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    for (at, c) in text.char_indices() {
        taken += if c.is_ascii() { 1 } else { 2 };
        if taken > columns {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn what_hides_is_written_out() {
        for (text, seen) in [
            ("plain\n\ttext, ünï, 漢字 ⚠️", "plain\n\ttext, ünï, 漢字 ⚠️"),
            ("\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}"),
            ("a\rb\x7f\u{9b}2J", "a\\u{d}b\\u{7f}\\u{9b}2J"),
            ("ab\u{202e}cd\u{2066}", "ab\\u{202e}cd\\u{2066}"),
            ("pass\u{200b}word\u{ad}", "pass\\u{200b}word\\u{ad}"),
            ("x\u{fe0f}⚠\u{fe0f}\u{fe0f}", "x\\u{fe0f}⚠\u{fe0f}\\u{fe0f}"),
            ("\u{e0041}\u{feff}", "\\u{e0041}\\u{feff}"),
        ] {
            assert_eq!(visible(text), seen);
        }
    }

    #[test]
    fn json_means_the_same_afterwards() {
        let text = "\u{1b}[31m\u{202e}\u{e0041}\u{7f}é";
        let json = serde_json::to_string(text).unwrap();
        let seen = visible_json(&json);
        assert_eq!(seen, r#""\u001b[31m\u202e\udb40\udc41\u007fé""#);
        assert_eq!(serde_json::from_str::<String>(&seen).unwrap(), text);
    }

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What both streams have got after a short use.
    fn check(terminals: Terminals, out: &str, err: &str) {
        let (out_page, err_page) = (Page::default(), Page::default());
        let boxed = |page: &Page| Box::new(page.clone());
        let mut term = Term::new(boxed(&out_page), boxed(&err_page), terminals);
        term.live("round 1, a\nlong line").unwrap();
        term.live("round 2").unwrap();
        term.say(&[(Look::Bad, "oh"), (Look::Plain, " \x1b")])
            .unwrap();
        term.print(&[(Look::Strong, "Runs")]).unwrap();
        term.answer("done\x1b").unwrap();
        let text = |page: Page| String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text(out_page), out);
        assert_eq!(text(err_page), err);
    }

    #[test]
    fn colour_and_the_live_line_are_for_terminals() {
        check(Terminals::default(), "Runs\ndone\x1b\n", "oh \\u{1b}\n");
        let mut terminals = Terminals {
            out: true,
            err: true,
            colour: false,
            columns: Some(12),
            width: None,
        };
        check(
            terminals,
            "Runs\ndone\\u{1b}\n",
            "\rround 1, a \x1b[K\rround 2\x1b[K\r\x1b[Koh \\u{1b}\n",
        );
        terminals.colour = true;
        check(
            terminals,
            "\x1b[1mRuns\x1b[0m\ndone\\u{1b}\n",
            "\rround 1, a \x1b[K\rround 2\x1b[K\r\x1b[K\x1b[31moh\x1b[0m \\u{1b}\n",
        );
    }
}
