//! Text in which what looks like a secret is masked.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::secret::plausible::{self, As};
use crate::secret::shapes::{SHAPES, Shape, Sure};

/// From this length on a text is looked through for all hints at once.
const LONG: usize = 4096;

/// Any hint.
static HINTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let hints = SHAPES.iter().flat_map(|shape| shape.hints);
    let hints: Vec<String> = hints.map(|hint| regex::escape(hint)).collect();
    Regex::new(&hints.join("|")).ok()
});

/// Whether a text may hold something that looks like a secret. Most texts do not.
pub(super) fn may_hold(text: &str) -> bool {
    match HINTS.as_ref().filter(|_| text.len() >= LONG) {
        Some(hints) => hints.is_match(text),
        None => SHAPES.iter().any(|shape| is_hinted(shape, text)),
    }
}

fn is_hinted(shape: &Shape, text: &str) -> bool {
    shape.hints.iter().any(|hint| text.contains(hint))
}

/// The text with `[masked: GitHub token]` and the like in place of all that looks like a secret.
///
/// What tells nothing by itself (digests, ids, encoded files) stays. A text that was masked stays as
/// it is.
pub fn masked(text: &str) -> Cow<'_, str> {
    if text.len() < 8 || !may_hold(text) {
        return Cow::Borrowed(text);
    }
    let mut masked = Cow::Borrowed(text);
    for shape in &SHAPES {
        if is_hinted(shape, &masked)
            && let Some(regex) = shape.regex()
            && let Some(new) = replaced(shape, regex, &masked)
        {
            masked = Cow::Owned(new);
        }
    }
    masked
}

/// Everything in a text that looks like a secret.
pub(super) fn secrets(text: &str) -> Vec<&str> {
    let shapes = SHAPES.iter().filter(|shape| is_hinted(shape, text));
    let mut all = Vec::new();
    for shape in shapes {
        let found = shape.regex().into_iter();
        let found = found.flat_map(|regex| regex.captures_iter(text));
        all.extend(
            found
                .filter_map(|found| secret(shape, &found))
                .map(|at| &text[at]),
        );
    }
    all
}

/// The text without the secrets of a shape, if it holds one.
fn replaced(shape: &Shape, regex: &Regex, text: &str) -> Option<String> {
    let mut new = String::new();
    let mut end = 0;
    for found in regex.captures_iter(text) {
        let Some(secret) = secret(shape, &found) else {
            continue;
        };
        new.push_str(&text[end..secret.start]);
        new.push_str("[masked: ");
        new.push_str(shape.name);
        new.push(']');
        end = secret.end;
    }
    (end > 0).then(|| new + &text[end..])
}

/// Where the secret of a match is, if it is one.
fn secret(shape: &Shape, found: &Captures<'_>) -> Option<Range<usize>> {
    let quoted = found.name("s");
    let stands = if quoted.is_some() {
        As::Quoted
    } else {
        As::Bare
    };
    let secret = quoted
        .or_else(|| found.name("t"))
        .or_else(|| found.get(0))?;
    let text = secret.as_str();
    let is_one = match shape.sure {
        Sure::Known => true,
        Sure::Placed => plausible::stands_for_itself(text),
        Sure::Named => plausible::is_secret(text, stands),
    };
    (is_one && !text.starts_with("[masked:")).then(|| secret.range())
}

/// Whether a text ends inside a private key that is written over lines.
pub(super) fn ends_in_key(text: &str) -> bool {
    let begins = text.rfind("-----BEGIN ");
    begins.is_some_and(|at| {
        let mut lines = text[at..].lines();
        let head = lines.next().unwrap_or_default();
        let is_key = head.contains("PRIVATE KEY") || head.len() == text.len() - at;
        let end = text[at..].find("-----END ").map(|end| at + end + 9);
        let ended = end.is_some_and(|end| text[end..].contains("-----"));
        is_key && !ended && lines.all(|line| line.contains("-----END ") || is_of_key(line))
    })
}

/// Whether a line may belong to a private key: base64, whatever a diff, a listing, a search or a
/// quotation set before it, or one of the headers.
pub(super) fn is_of_key(line: &str) -> bool {
    let line = line.trim_end_matches(['"', '\'', ',', ';', '\\', ' ', '\t']);
    let line = line.trim_start_matches(|c: char| c.is_ascii_digit() || " \t+->|│→:\"'".contains(c));
    let is_base64 = |text: &str| {
        let mut chars = text.chars();
        chars.all(|c| c.is_ascii_alphanumeric() || "+/=-_\\".contains(c))
    };
    let last = line.rsplit([' ', '\t', ':']).next().unwrap_or_default();
    let header = [
        "Proc-Type:",
        "DEK-Info:",
        "Version:",
        "Comment:",
        "Subject:",
    ];
    is_base64(line)
        || last.len() >= 16 && is_base64(last)
        || header.iter().any(|name| line.starts_with(name))
}
