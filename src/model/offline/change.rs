//! A change of one line, how it is said, and how it is made by exact texts.

use serde_json::{Value, json};

/// A change of one line: a text in it, and the one that takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The line, from 1.
    pub(super) line: usize,
    pub(super) old: String,
    pub(super) new: String,
    /// Which of the places of the old text in the line, from 1.
    pub(super) place: usize,
    /// Which of the places of the new text in the line once it is made, from 1: without it nobody
    /// could tell what to take back.
    pub(super) now: usize,
}

impl Change {
    /// The change of these bytes of a line. `None` if it could not be said so that it can be read
    /// again.
    pub(super) fn new(number: usize, line: &str, span: (usize, usize), new: &str) -> Option<Self> {
        let old = line.get(span.0..span.1)?;
        let place = line.match_indices(old).position(|(at, _)| at == span.0)?;
        let plain = |text: &str| !text.is_empty() && !text.contains(['`', '\n', '\r']);
        if !plain(old) || !plain(new) || old == new {
            return None;
        }
        let made = format!("{}{new}{}", &line[..span.0], &line[span.1..]);
        let now = made.match_indices(new).position(|(at, _)| at == span.0)?;
        Some(Self {
            line: number,
            old: old.to_owned(),
            new: new.to_owned(),
            place: place + 1,
            now: now + 1,
        })
    }

    /// The line with the change made; `None` if the old text is not there.
    pub(super) fn made(&self, line: &str) -> Option<String> {
        let (at, _) = line.match_indices(&self.old).nth(self.place - 1)?;
        let (head, tail) = (&line[..at], &line[at + self.old.len()..]);
        Some(format!("{head}{}{tail}", self.new))
    }

    /// The line from which the change made this one.
    pub(super) fn unmade(&self, line: &str) -> Option<String> {
        let (at, _) = line.match_indices(&self.new).nth(self.now - 1)?;
        let (head, tail) = (&line[..at], &line[at + self.new.len()..]);
        let before = format!("{head}{}{tail}", self.old);
        (self.made(&before).as_deref() == Some(line)).then_some(before)
    }

    /// How it is said: ``line 14, `<` for number 2 of `<=` ``.
    pub(super) fn words(&self) -> String {
        let one_of = |text: &str, place: usize| match place {
            1 => format!("`{text}`"),
            _ => format!("number {place} of `{text}`"),
        };
        let new = one_of(&self.new, self.now);
        let old = one_of(&self.old, self.place);
        format!("line {}, {new} for {old}", self.line)
    }

    fn parse(text: &str) -> Option<Self> {
        let (line, text) = text.trim_start().strip_prefix("line ")?.split_once(", ")?;
        let (now, new, text) = one_of(text)?;
        let (place, old, _) = one_of(text.strip_prefix(" for ")?)?;
        Some(Self {
            line: line.parse().ok()?,
            old: old.to_owned(),
            new: new.to_owned(),
            place,
            now,
        })
    }
}

/// Reads a quoted text and which of its kind it is; then what is left.
fn one_of(text: &str) -> Option<(usize, &str, &str)> {
    let (place, text) = match text.strip_prefix("number ") {
        Some(text) => text.split_once(" of ")?,
        None => ("1", text),
    };
    let (quoted, rest) = text.strip_prefix('`')?.split_once('`')?;
    let place = place.parse().ok().filter(|place| *place > 0)?;
    Some((place, quoted, rest))
}

/// A repair that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Try {
    pub(super) number: usize,
    pub(super) path: String,
    pub(super) change: Change,
}

impl Try {
    /// How it is said, on a line of its own.
    pub(super) fn words(&self) -> String {
        let Self {
            number,
            path,
            change,
        } = self;
        format!("Try {number} in `{path}`: {}.", change.words())
    }

    /// Reads what [`words`](Self::words) wrote, wherever it stands in a line.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (_, text) = line.split_once("Try ")?;
        let (number, text) = text.split_once(" in `")?;
        let (path, text) = text.split_once("`: ")?;
        Some(Self {
            number: number.parse().ok()?,
            path: path.to_owned(),
            change: Change::parse(text)?,
        })
    }

    /// How a repair is said that is to be tried.
    pub(super) fn words_next(path: &str, change: &Change) -> String {
        format!("- Next in `{path}`: {}", change.words())
    }

    /// Reads what [`words_next`](Self::words_next) wrote.
    pub(super) fn parse_next(line: &str) -> Option<(String, Change)> {
        let (_, text) = line.split_once("Next in `")?;
        let (path, text) = text.split_once("`: ")?;
        Some((path.to_owned(), Change::parse(text)?))
    }
}

/// The edits that turn one text into another of as many lines, each by a text that is unique when
/// its turn comes.
pub(super) fn edits(before: &str, after: &str) -> Vec<Value> {
    let mut text: Vec<&str> = before.lines().collect();
    let after: Vec<&str> = after.lines().collect();
    let mut edits = Vec::new();
    for line in 0..text.len().min(after.len()) {
        if text[line] == after[line] {
            continue;
        }
        let (mut from, mut to) = (line, line + 1);
        let whole = text.join("\n");
        while whole.matches(&text[from..to].join("\n")).count() > 1 && (from > 0 || to < text.len())
        {
            from = from.saturating_sub(1);
            to = (to + 1).min(text.len());
        }
        let old = text[from..to].join("\n");
        text[line] = after[line];
        edits.push(json!({"old": old, "new": text[from..to].join("\n")}));
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_said_and_read_again() {
        let line = "if (a <= b && b <= c) {";
        let change = Change::new(14, line, (16, 18), "<").unwrap();
        let words = "line 14, number 2 of `<` for number 2 of `<=`";
        assert_eq!(change.words(), words);
        let made = change.made(line).unwrap();
        assert_eq!(made, "if (a <= b && b < c) {");
        assert_eq!(change.unmade(&made).as_deref(), Some(line));
        let tried = Try {
            number: 8,
            path: "lib/x.awk".to_owned(),
            change: change.clone(),
        };
        let line = format!("- entry 57, the assistant: {}", tried.words());
        assert_eq!(Try::parse(&line), Some(tried));
        let line = Try::words_next("a b", &change);
        assert_eq!(Try::parse_next(&line), Some(("a b".to_owned(), change)));
        // What stands twice is taken back where it was put.
        let line = "for word in half word";
        let change = Change::new(1, line, (12, 16), "word").unwrap();
        let made = change.made(line).unwrap();
        assert_eq!(made, "for word in word word");
        assert_eq!(change.unmade(&made).as_deref(), Some(line));
        for other in [
            "Try again",
            "Try 8 in `x`: line 2",
            "Next in `x`: line 3, `a` for number 0 of `b`",
        ] {
            assert_eq!(Try::parse(other), None);
            assert_eq!(Try::parse_next(other), None);
        }
    }

    #[test]
    fn edits_are_unique_when_their_turn_comes() {
        let before = "x\na\nb\na\nc\n";
        let edits = edits(before, "x\na\nb\nA\nc\n");
        assert_eq!(edits, [json!({"old": "b\na\nc", "new": "b\nA\nc"})]);
        let edits = super::edits(before, "x\na\nB\na\nd\n");
        assert_eq!(
            edits,
            [
                json!({"old": "b", "new": "B"}),
                json!({"old": "c", "new": "d"})
            ]
        );
    }
}
