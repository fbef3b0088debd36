//! Searching passages: which lines match, and which of them are shown if there are many.

use std::fmt::Write as _;
use std::ops::Range;

use regex::Regex;

use crate::id::EntryId;
use crate::tools::clip;
use crate::tools::recall::passage::{Passage, WIDEST};
use crate::words::grouped;

/// The matches shown of one search.
const MATCHES: usize = 50;

/// The matches kept while searching; beyond them one of each passage is.
const KEPT: usize = 2000;

/// The longest line shown whole, in characters, and the longest match.
const WHOLE: usize = 300;

/// What is shown before and behind a match in a longer line, in characters.
const BEFORE: usize = 100;
const BEHIND: usize = 200;

/// The places with the most matches that are named.
const NAMED: usize = 5;

/// What a search found in one passage.
#[derive(Debug)]
struct Hits {
    place: String,
    entry: Option<EntryId>,
    total: usize,
    /// The first of them, as they are shown.
    shown: Vec<String>,
}

/// What a search found.
#[derive(Debug, Default)]
pub(super) struct Found {
    hits: Vec<Hits>,
    kept: usize,
}

impl Found {
    /// Whether nothing matches.
    pub(super) fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    /// Looks for matches in these lines of a passage, counted from 1.
    pub(super) fn look(&mut self, passage: &Passage, pattern: &Regex, within: &Range<u64>) {
        let mut hits = Hits {
            place: passage.place.clone(),
            entry: passage.entry,
            total: 0,
            shown: Vec::new(),
        };
        let most = if self.kept < KEPT { MATCHES } else { 1 };
        let mut number = 1;
        let mut lines = passage.text.lines().enumerate().peekable();
        while let Some((index, line)) = lines.next() {
            let pieces = line.chars().count().div_ceil(WIDEST).max(1) as u64;
            if index >= passage.heading && number < within.end && number + pieces > within.start {
                for (offset, part) in parts(line, pattern) {
                    let at = number + offset;
                    if !within.contains(&at) {
                        continue;
                    }
                    hits.total += 1;
                    if hits.shown.len() < most {
                        hits.shown
                            .push(format!("{}:{at}: {}", hits.place, part.text));
                        if part.is_label
                            && let Some((_, next)) = lines.peek()
                            && let Some(shown) = hits.shown.last_mut()
                        {
                            let next = clip::first(next, BEHIND);
                            write!(shown, "\n{}-{}: {next}", hits.place, number + pieces).ok();
                        }
                    }
                }
            }
            number += pieces;
        }
        if hits.total > 0 {
            self.kept += hits.shown.len();
            self.hits.push(hits);
        }
    }

    /// The matches as text, spread over all places that have some, and the entries they stand in.
    pub(super) fn told(mut self) -> (String, Vec<EntryId>) {
        let total: usize = self.hits.iter().map(|hits| hits.total).sum();
        let places = self.hits.len();
        let mut most: Vec<(usize, String)> = self
            .hits
            .iter()
            .map(|hits| (hits.total, hits.place.clone()))
            .collect();
        if places > MATCHES {
            // The oldest and the newest places.
            self.hits.drain(MATCHES / 2..places - MATCHES / 2);
        }
        let mut shares = vec![0; self.hits.len()];
        let mut left = MATCHES;
        while left > 0 {
            let before = left;
            for (share, hits) in shares.iter_mut().zip(&self.hits) {
                if left > 0 && *share < hits.shown.len() {
                    *share += 1;
                    left -= 1;
                }
            }
            if left == before {
                break;
            }
        }
        let (mut lines, mut entries) = (Vec::new(), Vec::new());
        for (share, hits) in shares.into_iter().zip(self.hits) {
            if share > 0 {
                entries.extend(hits.entry);
            }
            lines.extend(hits.shown.into_iter().take(share));
        }
        let shown = lines.len();
        let mut text = lines.join("\n");
        if shown < total {
            most.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
            let named = most.iter().take(NAMED);
            let named: Vec<_> = named
                .map(|(count, place)| format!("{place} ({count})"))
                .collect();
            let (total, in_places) = (grouped(total as u64), grouped(places as u64));
            write!(
                text,
                "\n[{shown} of {total} matches in {in_places} places, most in {}; make the pattern \
                 narrower or give a handle as well]",
                named.join(", ")
            )
            .ok();
        }
        (text, entries)
    }
}

/// A match with what stands around it.
struct Around {
    text: String,
    /// Its line ends with it and a colon: what it announces may be on the next line.
    is_label: bool,
}

/// The matches in a line, each with the number of widest lines before it: the whole line once if it
/// is short, else what stands around each of them.
fn parts(line: &str, pattern: &Regex) -> Vec<(u64, Around)> {
    let announces = line.trim_end().ends_with([':', '=']);
    let is_label = |end: usize| announces && !line[end..].contains(char::is_alphanumeric);
    let is_short = line.len() <= WHOLE || line.chars().nth(WHOLE).is_none();
    if is_short {
        let last = pattern.find_iter(line).last();
        let whole = last.map(|last| Around {
            text: line.to_owned(),
            is_label: is_label(last.end()),
        });
        return whole.map(|whole| (0, whole)).into_iter().collect();
    }
    let (mut parts, mut shown) = (Vec::new(), 0);
    let (mut counted, mut chars) = (0, 0);
    for found in pattern.find_iter(line) {
        if found.start() < shown {
            continue;
        }
        chars += line[counted..found.start()].chars().count();
        counted = found.start();
        let mut before = line[..found.start()].char_indices().rev();
        let start = before
            .nth(BEFORE - 1)
            .map_or(0, |(start, _)| start)
            .max(shown);
        let matched = clip::first(found.as_str(), WHOLE);
        let behind = found.start() + matched.len();
        let end = behind + clip::first(&line[behind..], BEHIND).len();
        let (head, tail) = (
            if start > 0 { "…" } else { "" },
            if end < line.len() { "…" } else { "" },
        );
        let part = Around {
            text: format!("{head}{}{tail}", &line[start..end]),
            is_label: end == line.len() && is_label(found.end()),
        };
        parts.push(((chars / WIDEST) as u64, part));
        shown = end;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(place: &str, text: &str) -> Passage {
        Passage {
            place: place.to_owned(),
            ..Passage::list(EntryId(1), text.to_owned())
        }
    }

    /// What is told of a search in these passages, each a place and a text below its heading.
    fn check(passages: &[(String, String)], pattern: &str) -> String {
        let pattern = Regex::new(pattern).unwrap();
        let mut found = Found::default();
        for (place, text) in passages {
            let passage = passage(place, &format!("[heading]\n{text}"));
            found.look(&passage, &pattern, &(1..u64::MAX));
        }
        found.told().0
    }

    fn one(text: &str, pattern: &str) -> String {
        check(&[("5.1".to_owned(), text.to_owned())], pattern)
    }

    #[test]
    fn a_match_is_shown_with_what_follows_it() {
        assert_eq!(
            one("a\nport: 8080\nheading", "port|head"),
            "5.1:3: port: 8080\n5.1:4: heading"
        );
        // What a label announces may be on the next line.
        assert_eq!(
            one("the port:\n  8080\n9", "port"),
            "5.1:2: the port:\n5.1-3:   8080"
        );
        assert_eq!(one("the port:", "port"), "5.1:2: the port:");
        let fill = "ä".repeat(3_000);
        let long = format!("{fill}port: 8080 {fill} port: 9090");
        let expected = format!(
            "5.1:3: …{}port: 8080 {}…\n5.1:5: …{} port: 9090",
            "ä".repeat(100),
            "ä".repeat(194),
            "ä".repeat(99)
        );
        assert_eq!(one(&long, "port:"), expected);
        // A match may be as long as its line.
        let found = one(&long, ".*");
        assert_eq!(
            found.chars().count(),
            "5.1:2: …".chars().count() + WHOLE + BEHIND
        );
    }

    #[test]
    fn many_matches_are_spread_over_their_places() {
        let hits = |place: u32, count: usize| (place.to_string(), "hit\n".repeat(count));
        let numbers = |text: &str| {
            let lines = text.lines().filter(|line| !line.starts_with('['));
            let mut counts: Vec<(String, u32)> = Vec::new();
            for line in lines {
                let place = line.split(':').next().unwrap();
                match counts.last_mut() {
                    Some((last, count)) if last == place => *count += 1,
                    _ => counts.push((place.to_owned(), 1)),
                }
            }
            let counts: Vec<_> = counts
                .iter()
                .map(|(place, n)| format!("{place} {n}"))
                .collect();
            (counts.join(", "), text.lines().last().unwrap().to_owned())
        };
        let (shares, told) = numbers(&check(&[hits(1, 400), hits(2, 3), hits(3, 40)], "hit"));
        assert_eq!(shares, "1 24, 2 3, 3 23");
        insta::assert_snapshot!(told, @"[50 of 443 matches in 3 places, most in 1 (400), 3 (40), 2 (3); make the pattern narrower or give a handle as well]");
        let many: Vec<_> = (1..=120).map(|place| hits(place, 2)).collect();
        let (shares, told) = numbers(&check(&many, "hit"));
        assert!(
            shares.starts_with("1 1, 2 1,") && shares.ends_with("119 1, 120 1"),
            "{shares}"
        );
        assert_eq!(shares.split(", ").count(), MATCHES);
        insta::assert_snapshot!(told, @"[50 of 240 matches in 120 places, most in 1 (2), 2 (2), 3 (2), 4 (2), 5 (2); make the pattern narrower or give a handle as well]");
    }
}
