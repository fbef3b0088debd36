//! Quotations in a summary that are said to be the user's.

use crate::compaction::survival::stays::plain;

/// The longest quotation that is looked at, in characters.
const CHARS: usize = 300;

/// Quotations in a text that are said to be the user's: in a line that names the user before them,
/// or in a section of constraints. Single words are passed over: they may be names.
pub(super) fn claimed(text: &str) -> Vec<String> {
    let mut constraints = false;
    let mut claimed = Vec::new();
    for line in text.lines() {
        let line = plain(line);
        if let Some(heading) = heading(&line) {
            constraints = heading.starts_with("constraint");
        }
        let lower = line.to_lowercase();
        let user = ["the user", "user:", "user said", "user's words"].iter();
        let user = user.filter_map(|word| lower.find(word)).min();
        let from = match (constraints, user) {
            (false, None) => continue,
            (false, Some(at)) if line.is_char_boundary(at) => at,
            // Lower case may be of another length; then the whole line counts.
            (true, _) | (false, Some(_)) => 0,
        };
        let quotes = line[from..].split('"').skip(1).step_by(2);
        let whole = line[from..].matches('"').count() / 2;
        let quotes = quotes.take(whole).filter(|quote| {
            let long = quote.chars().nth(CHARS).is_some();
            quote.split(' ').filter(|word| !word.is_empty()).count() > 1 && !long
        });
        claimed.extend(quotes.map(|quote| quote.trim().to_owned()));
    }
    claimed
}

/// The words of a line that is a heading: `## Constraints`, `- Constraints: …`, `**Constraints**`.
fn heading(line: &str) -> Option<String> {
    let start = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let marked = line.starts_with('#') || line.starts_with("**");
    let (head, rest) = start.split_once(':').unwrap_or((start, ""));
    let head = head.trim_end_matches(|c: char| !c.is_alphanumeric());
    // `- Next: …` ends a section of constraints as `Next:` does.
    let known = [
        "task",
        "done",
        "current state",
        "decisions",
        "files and symbols",
        "errors and fixes",
    ];
    let known = known.iter().chain(&["constraints", "workflow", "next"]);
    let head = head.to_lowercase();
    let is_known = known.into_iter().any(|known| head == *known);
    let bare = line.ends_with(':') && rest.is_empty();
    (is_known || marked || bare && head.split(' ').count() <= 5).then_some(head)
}

/// Whether a quotation stands in a text that is plain and in lower case; what it leaves out with
/// dots may be anything.
pub(super) fn is_in(quote: &str, written: &str) -> bool {
    let quote = plain(quote).to_lowercase().replace("...", "…");
    let mut from = 0;
    quote.split('…').all(|piece| {
        let piece = piece.trim_matches(|c: char| {
            c.is_whitespace() || matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '[' | ']')
        });
        let found = written.get(from..).and_then(|rest| rest.find(piece));
        if let Some(at) = found {
            from += at + piece.len();
        }
        found.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_said_to_be_the_users_are_found() {
        for (text, expected) in [
            ("The test said \"it broke again\".", ""),
            (
                "The user said \"never push\" and “keep it small”.",
                "never push | keep it small",
            ),
            (
                "It printed \"not this\"; the user wants \"only this\".",
                "only this",
            ),
            ("The user named it \"door\".", ""),
            ("The user left \"this open", ""),
            (
                "## Constraints\n- \"do not push\"\n- \"no new crates\", twice\n## Next\n\"say when\"",
                "do not push | no new crates",
            ),
            (
                "**Constraints:** \"be very brief\"\n- Next: run \"cargo test\"",
                "be very brief",
            ),
            (
                "- Constraints: \"be very brief\"\n- Errors and fixes: \"it is broken\"",
                "be very brief",
            ),
            (
                "Constraints:\n\"one of them\"\n\nDone:\n\"none of them\"",
                "one of them",
            ),
        ] {
            assert_eq!(claimed(text).join(" | "), expected, "{text}");
        }
    }

    #[test]
    fn a_quotation_may_leave_out_what_dots_stand_for() {
        let written = plain("You must  never\npush to ‘main’, please.").to_lowercase();
        for (quote, found) in [
            ("Never push to 'main'.", true),
            ("you must … push to", true),
            ("You must... please", true),
            ("please … you must", false),
            ("always push", false),
        ] {
            assert_eq!(is_in(quote, &written), found, "{quote}");
        }
    }
}
