//! One line of a file as a search shows it.

use crate::tools::clip;

/// The longest line shown, in characters.
const LONGEST: usize = 500;

/// How much of a clipped line is shown before the match, in characters.
const BEFORE: usize = 100;

/// The line without its end; a long one is clipped to what surrounds the byte `at`.
pub(super) fn excerpt(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let at = at.min(line.len());
    // Of a huge line only the part that can be shown is made into text. A character that is cut
    // in two at its ends is not shown: the part holds more than enough.
    let near = 4 * LONGEST;
    let (from, to) = (at.saturating_sub(near), line.len().min(at + near));
    let (before, after) = (clip::text(&line[from..at]), clip::text(&line[at..to]));
    let whole = from == 0 && to == line.len();
    if whole && before.chars().count() + after.chars().count() <= LONGEST {
        return before + &after;
    }
    let kept = match before.char_indices().nth_back(BEFORE - 1) {
        Some((start, _)) => &before[start..],
        None => before.as_str(),
    };
    let end = clip::first(&after, LONGEST - kept.chars().count());
    let dots = |cut: bool| if cut { "…" } else { "" };
    let cut = (
        kept.len() < before.len(),
        to < line.len() || end.len() < after.len(),
    );
    format!("{}{kept}{end}{}", dots(cut.0), dots(cut.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_shown_around_the_match() {
        let (a, z) = ("ä".repeat(1000), "z".repeat(1000));
        for (line, at, expected) in [
            ("  short\r\n".to_owned(), 3, "  short".to_owned()),
            (String::new(), 0, String::new()),
            (format!("x{a}"), 0, format!("x{}…", "ä".repeat(499))),
            (
                format!("{a}HERE{z}"),
                2000,
                format!("…{}HERE{}…", "ä".repeat(100), "z".repeat(396)),
            ),
            (
                format!("{a}HERE\n"),
                2000,
                format!("…{}HERE", "ä".repeat(100)),
            ),
            ("ä".repeat(500), 998, "ä".repeat(500)),
            (
                format!("{}HERE", "€".repeat(100_000)),
                300_000,
                format!("…{}HERE", "€".repeat(100)),
            ),
        ] {
            assert_eq!(excerpt(line.as_bytes(), at), expected);
        }
        assert_eq!(excerpt(b"a\0\xffb", 2), "a\\0\u{fffd}b");
    }
}
