//! How a result differs from the recorded one: its status, and the first line that is another.

use schemars::JsonSchema;
use serde::Serialize;

use crate::exchange::{Status, ToolResult};
use crate::id::CallId;

/// The longest part of a line that is told, in characters.
const LINE: usize = 400;

/// How much of a line is told before the first character that differs.
const BEFORE: usize = 60;

/// What was recorded, and what came instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pair<T> {
    /// In the recording.
    pub expected: T,
    /// Now.
    pub got: T,
}

/// A result that is not as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// The recorded call.
    pub call: CallId,
    /// The call in its place.
    pub again: CallId,
    /// The tool.
    pub name: String,
    /// The round, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// There is no such tool here, so it was answered as unknown.
    #[serde(skip_serializing_if = "is_false")]
    pub absent: bool,
    /// The status, if that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Pair<Status>>,
    /// The first line that differs; absent if only the status does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<Line>,
}

/// The first line that differs. A long one is cut around the first character that does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Line {
    /// Its number, from 1.
    pub number: u64,
    /// The recorded line; absent if the recorded result ended before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The line now; absent if the result ended before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands fields over by reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// How a status and a text differ from what was recorded; `None` if they do not.
pub(super) fn between(
    expected: &ToolResult,
    (status, content): (Status, &str),
) -> Option<(Option<Pair<Status>>, Option<Line>)> {
    let status = (expected.status != status).then_some(Pair {
        expected: expected.status,
        got: status,
    });
    let line = first_line(&expected.content, content);
    (status.is_some() || line.is_some()).then_some((status, line))
}

/// The first line that is not the same in both.
fn first_line(expected: &str, got: &str) -> Option<Line> {
    if expected == got {
        return None;
    }
    let (mut ours, mut theirs) = (got.split('\n'), expected.split('\n'));
    for number in 1.. {
        match (theirs.next(), ours.next()) {
            (Some(expected), Some(got)) if expected == got => {}
            (None, None) => return None,
            (expected, got) => {
                let both = expected.zip(got);
                let same = both.map_or(0, |(one, other)| {
                    let pairs = one.chars().zip(other.chars());
                    pairs.take_while(|(one, other)| one == other).count()
                });
                let cut = |line: &str| around(line, same);
                return Some(Line {
                    number,
                    expected: expected.map(cut),
                    got: got.map(cut),
                });
            }
        }
    }
    None
}

/// The part of a line around a character.
fn around(line: &str, place: usize) -> String {
    let skipped = match line.char_indices().nth(LINE) {
        Some(_) => place.saturating_sub(BEFORE),
        None => 0,
    };
    let rest: String = line.chars().skip(skipped).take(LINE).collect();
    let begin = if skipped > 0 { "…" } else { "" };
    let end = match line.chars().nth(skipped + LINE) {
        Some(_) => "…",
        None => "",
    };
    format!("{begin}{rest}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_told() {
        let line = |expected: &str, got: &str| {
            let line = first_line(expected, got)?;
            let shown = |line: Option<String>| line.unwrap_or_else(|| "nothing".to_owned());
            Some((line.number, shown(line.expected), shown(line.got)))
        };
        for (expected, got, told) in [
            ("a\nb", "a\nb", None),
            ("a\nb\nc", "a\nB\nd", Some((2, "b", "B"))),
            ("a", "a\n", Some((2, "nothing", ""))),
            ("a\nb", "a", Some((2, "b", "nothing"))),
            ("", "a", Some((1, "", "a"))),
            ("a\r\n", "a\n", Some((1, "a\r", "a"))),
        ] {
            let told = told.map(|(number, expected, got): (u64, &str, &str)| {
                (number, expected.to_owned(), got.to_owned())
            });
            assert_eq!(line(expected, got), told, "{expected:?} {got:?}");
        }
        let long = |end: &str| "ä".repeat(1000) + end;
        let (_, expected, got) = line(&long("x"), &long("y")).unwrap();
        assert_eq!(expected, format!("…{}x", "ä".repeat(BEFORE)));
        assert_eq!(got, format!("…{}y", "ä".repeat(BEFORE)));
    }
}
