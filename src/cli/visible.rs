//! Text in which nothing hides and nothing commands a terminal.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::{LazyLock, PoisonError, RwLock};

use undertext::secret::Masks;

/// The text with every character that a reader would not see as one written out, such as
/// `\u{1b}`.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    encode(text, |safe, bad| {
        write!(safe, "{}", bad.escape_unicode()).ok();
    })
}

/// The same for text that a program reads: what some languages are written with stays, and what no
/// text needs but for moving a cursor or turning the direction of others is written out.
pub(crate) fn tame(text: &str) -> Cow<'_, str> {
    let is_odd = |(at, c): (usize, char)| match c {
        '\n' | '\t' => false,
        '\r' => !text[at + 1..].starts_with('\n'),
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    };
    if !text.char_indices().any(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        if is_odd((at, c)) {
            write!(safe, "{}", c.escape_unicode()).ok();
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
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

/// What is hidden in what is said of a fault of the program: it may happen anywhere, where no masks are
/// at hand.
static MASKS: LazyLock<RwLock<Masks>> = LazyLock::new(RwLock::default);

/// Hides this from now on in what is said of a fault of the program.
pub(crate) fn hide_in_faults(masks: &Masks) {
    let mut now = MASKS.write().unwrap_or_else(PoisonError::into_inner);
    now.clone_from(masks);
}

/// What is said of a fault, masked.
fn fault(text: &str) -> String {
    // Whoever holds them may be at fault.
    let masks = MASKS.try_read().map(|masks| masks.clone());
    masks.unwrap_or_default().text(text).into_owned()
}

/// Says on standard error that the program is at fault, masked and made visible.
pub(crate) fn panicked(panic: &PanicHookInfo<'_>) {
    let text = format!("undertext: this is a fault of the program: {panic}");
    let text = fault(&text);
    let mut err = io::stderr();
    writeln!(err, "{}", visible(&text)).ok();
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        writeln!(err, "{}", visible(&fault(&trace.to_string()))).ok();
    }
}

/// A file or a stream that takes whole texts, masked and made visible.
#[derive(Debug)]
pub(crate) struct Veiled<W> {
    to: W,
    masks: Masks,
}

impl<W: Write> Veiled<W> {
    /// What is written there goes behind these masks.
    pub(crate) fn new(to: W, masks: &Masks) -> Self {
        Self {
            to,
            masks: masks.clone(),
        }
    }
}

impl<W: Write> Write for Veiled<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = self.masks.text(&text);
        self.to.write_all(visible(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
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

    /// A fault may tell of what a variable holds.
    #[test]
    fn what_is_said_of_a_fault_is_masked() {
        let known = undertext::secret::Known::new(["k3y-of-16-letters"]);
        hide_in_faults(&Masks::new(known));
        let text = fault("not k3y-of-16-letters, password = \"hunter2\"");
        assert_eq!(text, "not [secret], password = \"[masked: secret]\"");
    }

    #[test]
    fn json_means_the_same_afterwards() {
        let text = "\u{1b}[31m\u{202e}\u{e0041}\u{7f}é";
        let json = serde_json::to_string(text).unwrap();
        let seen = visible_json(&json);
        assert_eq!(seen, r#""\u001b[31m\u202e\udb40\udc41\u007fé""#);
        assert_eq!(serde_json::from_str::<String>(&seen).unwrap(), text);
    }
}
