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
}

impl Change {
    /// The change of these bytes of a line, with as many words around them as it takes to tell where
    /// it was made. `None` if it could not be said so that it can be read again.
    pub(super) fn new(number: usize, line: &str, span: (usize, usize), new: &str) -> Option<Self> {
        let (mut from, mut to) = span;
        loop {
            let old = line.get(from..to)?;
            let new = format!("{}{new}{}", line.get(from..span.0)?, line.get(span.1..to)?);
            let plain = |text: &str| !text.is_empty() && !text.contains(['`', '\n', '\r']);
            if !plain(old) || !plain(&new) || old == new {
                return None;
            }
            if let Some(place) = line.match_indices(old).position(|(at, _)| at == from) {
                let change = Self {
                    line: number,
                    old: old.to_owned(),
                    new,
                    place: place + 1,
                };
                let made = change.made(line)?;
                if change.unmade(&made).as_deref() == Some(line) {
                    return Some(change);
                }
            }
            let wider = wider(line, from, to);
            if wider == (from, to) {
                return None;
            }
            (from, to) = wider;
        }
    }

    /// The line with the change made; `None` if the old text is not there.
    pub(super) fn made(&self, line: &str) -> Option<String> {
        let (at, _) = line.match_indices(&self.old).nth(self.place - 1)?;
        let (head, tail) = (&line[..at], &line[at + self.old.len()..]);
        Some(format!("{head}{}{tail}", self.new))
    }

    /// The line from which the change made this one.
    pub(super) fn unmade(&self, line: &str) -> Option<String> {
        line.match_indices(&self.new).find_map(|(at, _)| {
            let (head, tail) = (&line[..at], &line[at + self.new.len()..]);
            let before = format!("{head}{}{tail}", self.old);
            (self.made(&before).as_deref() == Some(line)).then_some(before)
        })
    }

    /// How it is said: ``line 14, `<` for number 2 of `<=` ``.
    pub(super) fn words(&self) -> String {
        let Self {
            line,
            old,
            new,
            place,
        } = self;
        match place {
            1 => format!("line {line}, `{new}` for `{old}`"),
            _ => format!("line {line}, `{new}` for number {place} of `{old}`"),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let (line, text) = text.trim_start().strip_prefix("line ")?.split_once(", `")?;
        let (new, text) = text.split_once("` for ")?;
        let (place, text) = match text.strip_prefix("number ") {
            Some(text) => text.split_once(" of ")?,
            None => ("1", text),
        };
        let (old, _) = text.strip_prefix('`')?.split_once('`')?;
        // The biggest number has no next one.
        let number = |text: &str| {
            text.parse()
                .ok()
                .filter(|number| (1..usize::MAX).contains(number))
        };
        let place = number(place)?;
        Some(Self {
            line: number(line)?,
            old: old.to_owned(),
            new: new.to_owned(),
            place,
        })
    }
}

/// A part of a line with one more word at its end, or at its beginning if it reaches the end.
fn wider(line: &str, from: usize, to: usize) -> (usize, usize) {
    let (head, tail) = (&line[..from], &line[to..]);
    let word = tail.trim_start();
    let end = word.find(char::is_whitespace).unwrap_or(word.len());
    if end > 0 {
        return (from, line.len() - word.len() + end);
    }
    let word = head.trim_end();
    let begin = word.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    (begin, to)
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
    pub(super) fn read(line: &str) -> Option<Self> {
        let (_, text) = line.split_once("Try ")?;
        let (number, text) = text.split_once(" in `")?;
        let (path, text) = text.split_once("`: ")?;
        Some(Self {
            number: number.parse().ok().filter(|number| *number < usize::MAX)?,
            path: path.to_owned(),
            change: Change::read(text)?,
        })
    }

    /// How several tries in one file are said, where there is little room.
    pub(super) fn words_of_all(path: &str, changes: &[&Change]) -> String {
        let words: Vec<String> = changes.iter().map(|change| change.words()).collect();
        format!("Tried in `{path}`: {}", words.join("; "))
    }

    /// Reads what [`words_of_all`](Self::words_of_all) wrote. Their numbers are lost.
    pub(super) fn read_all(line: &str) -> Vec<Self> {
        let Some((_, text)) = line.split_once("Tried in `") else {
            return Vec::new();
        };
        let Some((path, text)) = text.split_once("`: ") else {
            return Vec::new();
        };
        let changes = text
            .split("; line ")
            .enumerate()
            .map(|(place, text)| match place {
                0 => Change::read(text),
                _ => Change::read(&format!("line {text}")),
            });
        let tried = changes.flatten().map(|change| Self {
            number: 0,
            path: path.to_owned(),
            change,
        });
        tried.collect()
    }

    /// The number of the last one.
    pub(super) fn last(tries: &[Self]) -> usize {
        tries
            .iter()
            .map(|tried| tried.number)
            .max()
            .unwrap_or_default()
    }

    /// How a repair is said that is to be tried.
    pub(super) fn words_next(path: &str, change: &Change) -> String {
        format!("- Next in `{path}`: {}", change.words())
    }

    /// Reads what [`words_next`](Self::words_next) wrote.
    pub(super) fn read_next(line: &str) -> Option<(String, Change)> {
        let (_, text) = line.split_once("Next in `")?;
        let (path, text) = text.split_once("`: ")?;
        Some((path.to_owned(), Change::read(text)?))
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
        assert_eq!(change.words(), "line 14, `<` for number 2 of `<=`");
        let made = change.made(line).unwrap();
        assert_eq!(made, "if (a <= b && b < c) {");
        assert_eq!(change.unmade(&made).as_deref(), Some(line));
        // Which of the two was a minus could not be told from the line alone.
        let line = "n + m - 1)";
        let unclear = Change::new(9, line, (6, 7), "+").unwrap();
        assert_eq!(unclear.words(), "line 9, `+ 1)` for `- 1)`");
        let tried = Try {
            number: 8,
            path: "lib/x.awk".to_owned(),
            change: change.clone(),
        };
        let line = format!("- entry 57, the assistant: {}", tried.words());
        assert_eq!(Try::read(&line), Some(tried));
        let tried_before = change.clone();
        let line = Try::words_next("a b", &change);
        assert_eq!(Try::read_next(&line), Some(("a b".to_owned(), change)));
        let other = Change::new(3, "a + b", (2, 3), "-").unwrap();
        let line = Try::words_of_all("x", &[&tried_before, &other]);
        let all: Vec<Change> = Try::read_all(&line)
            .into_iter()
            .map(|one| one.change)
            .collect();
        assert_eq!(all, [tried_before, other]);
        for other in [
            "Try again",
            "Try 8 in `x`: line 2",
            "Next in `x`: line 3, `a` for number 0 of `b`",
            "Next in `x`: line 0, `a` for `b`",
            "Try 1 in `x`: line 0, `a` for `b`.",
            "Try 18446744073709551615 in `x`: line 1, `a` for `b`.",
        ] {
            assert_eq!(Try::read(other), None);
            assert_eq!(Try::read_next(other), None);
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
