//! What leaves the program, and what a terminal may see.
//!
//! Every text that is written goes through [`Masks`], which hide what looks like a secret, and through
//! [`visible`]: characters that would move the cursor, change the direction of writing or hide
//! something are written out. Line ends and tabs stay. Colour and the live line appear on a terminal
//! only.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde::de::IgnoredAny;
use undertext::secret::{Known, Lines, Masks};

use crate::cli::visible::{hide_in_faults, tame, visible, visible_json};

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
    /// What was written before, as far as it matters for what may be shown next.
    lines: Lines,
}

impl Stream {
    /// Writes a line, or several, masked.
    fn line<T: AsRef<str>>(&mut self, masks: &Masks, pieces: &[(Look, T)]) -> io::Result<()> {
        let whole: String = pieces.iter().map(|(_, text)| text.as_ref()).collect();
        let shown = self.lines.next(masks, &whole);
        if shown == whole {
            return self.put(pieces);
        }
        let each = pieces.iter();
        let each = each.map(|(look, text)| (*look, masks.text(text.as_ref())));
        let each: Vec<(Look, Cow<'_, str>)> = each.collect();
        if each
            .iter()
            .map(|(_, text)| text.as_ref())
            .collect::<String>()
            == shown
        {
            self.put(&each)
        } else {
            self.put(&[(Look::Plain, shown)])
        }
    }

    /// Writes what may be shown, made visible.
    fn put<T: AsRef<str>>(&mut self, pieces: &[(Look, T)]) -> io::Result<()> {
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
    resized: Option<fn() -> Option<usize>>,
    width: Option<usize>,
    live_shown: bool,
    masks: Masks,
    /// Something was masked in a document.
    masked: bool,
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
    /// Tells that width anew, where it may change.
    pub(crate) resized: Option<fn() -> Option<usize>>,
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
            lines: Lines::default(),
        };
        Self {
            out: stream(out, terminals.out),
            err: stream(err, terminals.err),
            columns: terminals.columns.unwrap_or(80),
            resized: terminals.resized,
            width: terminals.width,
            live_shown: false,
            masks: Masks::default(),
            masked: false,
        }
    }

    /// Whether something was masked in what programs read as it stands elsewhere.
    pub(crate) fn has_masked(&self) -> bool {
        self.masked
    }

    /// The same terminal behind these masks.
    #[must_use]
    pub(crate) fn behind(mut self, masks: Masks) -> Self {
        self.masks = masks;
        hide_in_faults(&self.masks);
        self
    }

    /// What is hidden in all that it shows.
    pub(crate) fn masks(&self) -> &Masks {
        &self.masks
    }

    /// Hides these values too from now on, whatever else is shown.
    pub(crate) fn hide(&mut self, known: &Known) {
        self.masks = self.masks.and_known(known);
        hide_in_faults(&self.masks);
    }

    /// Goes behind these masks from now on.
    pub(crate) fn wear(&mut self, masks: &Masks) {
        self.masks.clone_from(masks);
    }

    /// Shows from now on what this text holds, which is to stay readable: the path of a workspace.
    pub(crate) fn spare(&mut self, text: &str) {
        self.masks = self.masks.but_for(text);
        hide_in_faults(&self.masks);
    }

    /// A line of JSON as [`print_json`](Self::print_json) writes it.
    pub(crate) fn json(&self, json: &str) -> String {
        visible_json(&self.masks.json(json)).into_owned()
    }

    /// A file to write to, behind the same masks.
    pub(crate) fn paper(&self, to: Box<dyn Write + Send>) -> Self {
        let paper = Self::new(to, Box::new(io::sink()), Terminals::default());
        paper.behind(self.masks.clone())
    }

    /// Writes a line to standard output.
    pub(crate) fn print<T: AsRef<str>>(&mut self, pieces: &[(Look, T)]) -> io::Result<()> {
        self.clear_live()?;
        self.out.line(&self.masks, pieces)
    }

    /// Writes a line of JSON to standard output, masked and made visible: it means the same.
    pub(crate) fn print_json(&mut self, json: &str) -> io::Result<()> {
        self.clear_live()?;
        let json = self.masks.json(json);
        writeln!(self.out.to, "{}", visible_json(&json))?;
        self.out.to.flush()
    }

    /// Writes bytes to standard output: to a program exactly but for what is masked, to a terminal
    /// made visible.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.clear_live()?;
        let text = String::from_utf8_lossy(bytes);
        let shown = self.masks.document(&text);
        let same = shown == text;
        self.masked |= !same;
        if self.out.terminal {
            return self.out.put(&[(Look::Plain, shown)]);
        }
        if same {
            self.out.to.write_all(bytes)?;
        } else {
            self.out.to.write_all(shown.as_bytes())?;
        }
        self.out.to.flush()
    }

    /// Writes a page whose data are masked already: to a program exactly, to a terminal made visible.
    pub(crate) fn page(&mut self, html: &str) -> io::Result<()> {
        self.clear_live()?;
        if self.out.terminal {
            return self.out.put(&[(Look::Plain, html)]);
        }
        self.out.to.write_all(html.as_bytes())?;
        self.out.to.flush()
    }

    /// What writes a document to standard output line by line, each text or JSON: to a program
    /// exactly but for what is masked, to a terminal made visible.
    pub(crate) fn document(&mut self) -> Document<'_> {
        Document {
            term: self,
            kind: Kind::Exact,
            line: Vec::new(),
        }
    }

    /// The same for a document that people read, with nothing in it that could command a terminal.
    pub(crate) fn prose(&mut self) -> Document<'_> {
        Document {
            term: self,
            kind: Kind::Prose,
            line: Vec::new(),
        }
    }

    /// The characters that fit a line of standard output; nothing if any number does.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// The characters that fit a line of standard error; nothing if any number does.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.err.terminal.then_some(self.columns)
    }

    /// Whether a live line is shown at all.
    pub(crate) fn is_live(&self) -> bool {
        self.err.terminal
    }

    /// Writes an answer to standard output, masked: to a terminal made visible, to a program with
    /// nothing in it that could command a terminal behind it.
    pub(crate) fn answer(&mut self, text: &str) -> io::Result<()> {
        self.clear_live()?;
        let shown = self.masks.document(text);
        if self.out.terminal {
            return self.out.put(&[(Look::Plain, shown)]);
        }
        let is_json = serde_json::from_str::<IgnoredAny>(&shown).is_ok();
        let shown = if is_json {
            visible_json(&shown)
        } else {
            tame(&shown)
        };
        writeln!(self.out.to, "{shown}")?;
        self.out.to.flush()
    }

    /// Writes a line to standard error.
    pub(crate) fn say<T: AsRef<str>>(&mut self, pieces: &[(Look, T)]) -> io::Result<()> {
        self.clear_live()?;
        self.err.line(&self.masks, pieces)
    }

    /// Shows the live line, in place of the last one. Nothing happens where standard error is no
    /// terminal.
    pub(crate) fn live(&mut self, text: &str) -> io::Result<()> {
        if !self.err.terminal {
            return Ok(());
        }
        let text = self.masks.text(text);
        let text = visible(&text).replace(['\n', '\t'], " ");
        // A line that does not fit any more would leave a row behind each time.
        let columns = self.resized.and_then(|columns| columns());
        let columns = columns.unwrap_or(self.columns);
        let line = fitting(&text, columns.saturating_sub(1));
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

/// A document on its way to standard output. [`flush`](Write::flush) ends it.
pub(crate) struct Document<'a> {
    term: &'a mut Term,
    kind: Kind,
    /// A line that is not whole yet.
    line: Vec<u8>,
}

/// For whom a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// For programs, which count on its bytes.
    Exact,
    /// For people.
    Prose,
}

impl Document<'_> {
    /// Writes a line that came with its end, or the last one without.
    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let Term {
            out, masks, masked, ..
        } = &mut *self.term;
        let (text, end) = match line.strip_suffix(b"\n") {
            Some(text) => (text, "\n"),
            None => (line, ""),
        };
        let text = String::from_utf8_lossy(text);
        let shown = if is_json(&text) {
            masks.json(&text)
        } else {
            out.lines.next(masks, &text)
        };
        *masked |= shown != text;
        let shown = match self.kind {
            Kind::Exact => shown,
            Kind::Prose => Cow::Owned(tame(&shown).into_owned()),
        };
        let same = shown == text;
        if out.terminal {
            out.put(&[(Look::Plain, shown)])
        } else if same {
            out.to.write_all(line)
        } else {
            out.to.write_all(shown.as_bytes())?;
            out.to.write_all(end.as_bytes())
        }
    }
}

/// Whether a line is one object.
fn is_json(text: &str) -> bool {
    text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

impl Write for Document<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.term.clear_live()?;
        let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            self.line.extend_from_slice(bytes);
            return Ok(bytes.len());
        };
        for line in bytes[..=last].split_inclusive(|byte| *byte == b'\n') {
            let mut whole = std::mem::take(&mut self.line);
            whole.extend_from_slice(line);
            self.line(&whole)?;
        }
        self.line.extend_from_slice(&bytes[last + 1..]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.line(&line)?;
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
        check(Terminals::default(), "Runs\ndone\\u{1b}\n", "oh \\u{1b}\n");
        let mut terminals = Terminals {
            out: true,
            err: true,
            colour: false,
            columns: Some(12),
            resized: None,
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
