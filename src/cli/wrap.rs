//! Lines that are too long for a terminal, broken between words.
//!
//! What goes on in the next line stands below what it belongs to, not below the beginning. A word that
//! is longer than a line is left whole: the terminal breaks it, and it can be copied as it is.

use std::io;

use crate::cli::term::{Look, Term};
use crate::cli::visible::visible;

/// The least room behind an indent: a narrower terminal breaks lines where it will.
const LEAST: usize = 20;

/// Writes a line to standard output. If it is too long for the terminal, it goes on behind an indent.
pub(crate) fn print<T: AsRef<str>>(
    pieces: &[(Look, T)],
    indent: usize,
    term: &mut Term,
) -> io::Result<()> {
    let Some(width) = term.width() else {
        return term.print(pieces);
    };
    for line in wrapped(pieces, width, indent) {
        term.print(&line)?;
    }
    Ok(())
}

/// A text as lines of so many columns; each but the first begins with an indent.
pub(crate) fn lines(text: &str, width: usize, indent: usize) -> Vec<String> {
    let lines = wrapped(&[(Look::Plain, text)], width, indent).into_iter();
    let text = |line: Vec<(Look, String)>| line.into_iter().map(|(_, text)| text).collect();
    lines.map(text).collect()
}

/// The columns that a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(wide).sum()
}

fn wide(c: char) -> usize {
    match c {
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// These pieces as lines of so many columns; each but the first begins with an indent.
fn wrapped<T: AsRef<str>>(
    pieces: &[(Look, T)],
    width: usize,
    indent: usize,
) -> Vec<Vec<(Look, String)>> {
    let mut page = Page {
        width,
        indent: if indent + LEAST > width { 0 } else { indent },
        lines: vec![Vec::new()],
        taken: 0,
        begun: false,
    };
    for (look, text) in pieces {
        // As it is shown: what is written out takes more columns than it has characters.
        let text = visible(text.as_ref()).replace('\t', " ");
        let mut rest = &text[..];
        while !rest.is_empty() {
            let spaces = rest.len() - rest.trim_start_matches(' ').len();
            let (space, behind) = rest.split_at(spaces);
            let end = behind.find([' ', '\n']).unwrap_or(behind.len());
            let (word, behind) = behind.split_at(end);
            page.word(*look, space, word);
            rest = match behind.strip_prefix('\n') {
                Some(behind) => {
                    page.new_line();
                    behind
                }
                None => behind,
            };
        }
    }
    page.lines
}

struct Page {
    width: usize,
    indent: usize,
    lines: Vec<Vec<(Look, String)>>,
    /// The columns taken in the last line.
    taken: usize,
    /// Whether a word stands in it.
    begun: bool,
}

impl Page {
    /// Puts a word behind its spaces, or below if it does not fit.
    fn word(&mut self, look: Look, space: &str, word: &str) {
        let needed = space.len() + columns(word);
        if self.begun && !space.is_empty() && self.taken + needed > self.width {
            if word.is_empty() {
                return;
            }
            self.new_line();
            self.push(look, word);
        } else {
            self.push(look, space);
            self.push(look, word);
        }
        self.begun |= !word.is_empty();
    }

    fn new_line(&mut self) {
        self.lines.push(Vec::new());
        (self.taken, self.begun) = (0, false);
        let indent = " ".repeat(self.indent);
        self.push(Look::Plain, &indent);
    }

    fn push(&mut self, look: Look, text: &str) {
        if text.is_empty() {
            return;
        }
        self.taken += columns(text);
        let line = self.lines.last_mut();
        match line {
            Some(line) => match line.last_mut() {
                Some((last, before)) if *last == look => before.push_str(text),
                Some(_) | None => line.push((look, text.to_owned())),
            },
            None => self.lines.push(vec![(look, text.to_owned())]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[(Look, &str)], width: usize, indent: usize, expected: &str) {
        let lines = wrapped(pieces, width, indent).into_iter();
        let lines = lines.map(|line| {
            let texts: Vec<String> = line.into_iter().map(|(_, text)| text).collect();
            texts.concat()
        });
        let lines: Vec<String> = lines.collect();
        assert_eq!(lines.join("\n"), expected);
    }

    #[test]
    fn lines_are_broken_between_words() {
        use Look::{Faint, Plain};
        let pieces = [
            (Faint, "  r10–r11   "),
            (Plain, "e48 auto: 15,208 of 14,000 tokens"),
        ];
        let text = "  r10–r11   e48 auto: 15,208 of\n            14,000 tokens";
        check(&pieces, 32, 12, text);
        // It all fits, or there is no room for an indent.
        let whole = "  r10–r11   e48 auto: 15,208 of 14,000 tokens";
        check(&pieces, 45, 12, whole);
        check(
            &pieces,
            18,
            12,
            "  r10–r11   e48\nauto: 15,208 of\n14,000 tokens",
        );
        // A long word stays whole, wide characters take two columns, what hides is written out.
        for (text, expected) in [
            (
                "see /a/very/long/path/to/a/file now",
                "see\n  /a/very/long/path/to/a/file\n  now",
            ),
            (
                "漢字漢字漢字漢字 漢字漢字漢字漢字",
                "漢字漢字漢字漢字\n  漢字漢字漢字漢字",
            ),
            (
                "\u{1b}[31mred\u{1b}[0m and so on",
                "\\u{1b}[31mred\\u{1b}[0m\n  and so on",
            ),
            ("one\ntwo", "one\n  two"),
            ("", ""),
        ] {
            check(&[(Plain, text)], 22, 2, expected);
        }
    }
}
