//! What a failing test says: words, places, what was expected and what was found.

use std::sync::LazyLock;

use regex::Regex;

/// What a failure looks like, by which repairs are put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    /// Something is named that is not there, or cannot be parsed.
    Unknown,
    /// Numbers are almost right.
    Near,
    /// Numbers have the wrong sign.
    Sign,
    /// Numbers have their digits in another order.
    Digits,
    /// Numbers are many times too large or too small, or broken where they should be whole.
    Scale,
    /// Something is missing.
    Missing,
    /// Something else.
    Other,
}

impl Likeness {
    const ALL: [Self; 7] = [
        Self::Unknown,
        Self::Near,
        Self::Sign,
        Self::Digits,
        Self::Scale,
        Self::Missing,
        Self::Other,
    ];

    /// How it is said.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Unknown => "an unknown name",
            Self::Near => "numbers that are almost right",
            Self::Sign => "a wrong sign",
            Self::Digits => "digits in another order",
            Self::Scale => "another order of magnitude",
            Self::Missing => "something missing",
            Self::Other => "something else",
        }
    }

    /// Reads what [`word`](Self::word) wrote.
    pub(super) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }
}

/// What a failing test says.
#[derive(Clone, Debug)]
pub(super) struct Clues {
    /// Words of the failure in lower case, the most telling first.
    pub(super) words: Vec<String>,
    /// Files and lines that it names.
    pub(super) places: Vec<(String, usize)>,
    /// Words that were expected where others were found.
    pub(super) wanted: Vec<String>,
    pub(super) likeness: Likeness,
}

/// How many words are looked for.
const WORDS: usize = 12;

/// Words that say nothing of what failed.
const COMMON: &[&str] = &[
    "the", "and", "for", "not", "are", "was", "were", "but", "with", "from", "this", "that",
    "fail", "failed", "fails", "failure", "failing", "failures", "error", "errors", "expected",
    "expect", "want", "wanted", "got", "found", "actual", "exit", "line", "lines", "test", "tests",
    "case", "cases", "passed", "pass", "value", "should", "have", "has", "been", "all", "diff",
    "null", "none", "true", "false", "instead", "differs", "differ", "input", "output", "file",
    "result",
];

static WORD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("[A-Za-z_][A-Za-z0-9_]{2,}").ok());
static PLACE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"([A-Za-z0-9_./-]+):(?:\s*line )?(\d+)").ok());
static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:(expected|wanted|want|should be)|(found|actual|actually|got|but was|received))\b")
        .ok()
});
static UNKNOWN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        "(?i)undefined|not defined|never defined|not found|unbound|unset|unknown|syntax error|\
         unexpected|no such|not a function|nameerror|unresolved",
    )
    .ok()
});
static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"-?\d+(?:\.\d+)?").ok());

impl Clues {
    /// Reads the output of a failing test.
    pub(super) fn of(output: &str) -> Self {
        let failing = failing(output);
        // What fails first is often what is wrong; what builds on it fails as well.
        let first = first(&failing);
        let (wanted, found) = sides(first);
        Self {
            words: words(output, &failing),
            places: places(&failing),
            wanted: plain(&wanted, &found),
            likeness: likeness(&failing, &wanted, &found),
        }
    }
}

fn is_bad(line: &str) -> bool {
    let line = line.to_lowercase();
    ["fail", "not ok", "error", "✗", "bad "]
        .iter()
        .any(|word| line.contains(word))
        || UNKNOWN
            .as_ref()
            .is_some_and(|unknown| unknown.is_match(&line))
}

fn is_good(line: &str) -> bool {
    let line = line.trim_start().to_lowercase();
    ["ok", "pass", "✓", "good"]
        .iter()
        .any(|word| line.starts_with(word))
}

/// The lines that speak of failing cases; all of them if none does.
pub(super) fn failing(output: &str) -> Vec<&str> {
    let mut within = false;
    let chosen: Vec<&str> = output
        .lines()
        .filter(|line| {
            let indented = line.starts_with([' ', '\t']);
            if is_bad(line) {
                within = true;
            } else if is_good(line) || (line.trim().is_empty() && !indented) {
                within = false;
            }
            within
        })
        .collect();
    if chosen.is_empty() {
        output.lines().collect()
    } else {
        chosen
    }
}

/// The lines of the first failing case.
fn first<'a, 'b>(failing: &'b [&'a str]) -> &'b [&'a str] {
    let headings = failing.iter().enumerate().filter(|(_, line)| is_bad(line));
    let second = headings.map(|(at, _)| at).find(|at| *at > 0);
    &failing[..second.unwrap_or(failing.len())]
}

/// The words of one text that the other one lacks.
fn plain(wanted: &str, found: &str) -> Vec<String> {
    let words = wanted.split_whitespace();
    let is_word = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_alphabetic());
    let missing = words.filter(is_word).filter(|word| !found.contains(*word));
    missing.take(2).map(str::to_owned).collect()
}

fn words(output: &str, failing: &[&str]) -> Vec<String> {
    let Some(pattern) = WORD.as_ref() else {
        return Vec::new();
    };
    let passing: Vec<&str> = output.lines().filter(|line| is_good(line)).collect();
    let mut counted: Vec<(String, usize)> = Vec::new();
    let mut headings = 0;
    for line in failing {
        headings += usize::from(is_bad(line));
        for found in pattern.find_iter(line) {
            let word = found.as_str().to_lowercase();
            // What a heading names is what failed, and what fails first is often what is wrong.
            let names = word.contains('_') || line[found.end()..].starts_with('(');
            let weight = match (is_bad(line), headings, names) {
                (true, 1, true) => 40,
                (true, 1, false) => 6,
                (true, _, true) => 12,
                (true, _, false) => 3,
                (false, _, _) => 1,
            };
            if COMMON.contains(&word.as_str())
                || passing
                    .iter()
                    .any(|line| line.to_lowercase().contains(&word))
            {
                continue;
            }
            match counted.iter_mut().find(|(known, _)| *known == word) {
                Some((_, count)) => *count += weight,
                None => counted.push((word, weight)),
            }
        }
    }
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counted
        .into_iter()
        .map(|(word, _)| word)
        .take(WORDS)
        .collect()
}

fn places(failing: &[&str]) -> Vec<(String, usize)> {
    let Some(pattern) = PLACE.as_ref() else {
        return Vec::new();
    };
    let found = failing.iter().flat_map(|line| pattern.captures_iter(line));
    let places = found.filter_map(|found| {
        let path = found[1].trim_start_matches("./").to_owned();
        let looks = path.contains(['.', '/']) && path.contains(|c: char| c.is_ascii_alphabetic());
        looks.then_some((path, found[2].parse().ok()?))
    });
    places.collect()
}

/// What stands behind words such as `expected`, and behind words such as `found`.
fn sides(failing: &[&str]) -> (String, String) {
    let (mut wanted, mut found) = (String::new(), String::new());
    let mut side = None;
    for line in failing {
        if is_bad(line) {
            side = None;
        }
        let mut rest = *line;
        while let Some(key) = KEY.as_ref().and_then(|key| key.captures(rest)) {
            let at = key.get(0).map_or(0..0, |key| key.range());
            put(side, &rest[..at.start], &mut wanted, &mut found);
            side = Some(key.get(1).is_some());
            rest = &rest[at.end..];
        }
        // A difference says it by its first character.
        let marked = match line.chars().next() {
            Some('-' | '<') => Some(true),
            Some('+' | '>') => Some(false),
            Some(_) | None => side,
        };
        put(marked, rest, &mut wanted, &mut found);
    }
    (wanted, found)
}

fn put(side: Option<bool>, text: &str, wanted: &mut String, found: &mut String) {
    let into = match side {
        Some(true) => wanted,
        Some(false) => found,
        None => return,
    };
    into.push_str(text);
    into.push('\n');
}

/// A number as it is written, and its value.
type Told = (String, f64);

fn likeness(failing: &[&str], wanted: &str, found: &str) -> Likeness {
    let complains = failing.iter().any(|line| {
        UNKNOWN
            .as_ref()
            .is_some_and(|unknown| unknown.is_match(line))
    });
    if complains {
        return Likeness::Unknown;
    }
    let numbers = |text: &str| -> Vec<Told> {
        let all = NUMBER
            .as_ref()
            .into_iter()
            .flat_map(|number| number.find_iter(text));
        all.filter_map(|found| Some((found.as_str().to_owned(), found.as_str().parse().ok()?)))
            .collect()
    };
    let (wanted, found) = (numbers(wanted), numbers(found));
    if found.len() < wanted.len() {
        return Likeness::Missing;
    }
    let pairs: Vec<_> = wanted
        .iter()
        .zip(&found)
        .filter(|(wanted, found)| wanted.0 != found.0)
        .collect();
    let all = |is: fn(&Told, &Told) -> bool| {
        !pairs.is_empty() && pairs.iter().all(|(wanted, found)| is(wanted, found))
    };
    let any = |is: fn(&Told, &Told) -> bool| pairs.iter().any(|(wanted, found)| is(wanted, found));
    if any(|wanted, found| wanted.1 != 0.0 && (wanted.1 + found.1).abs() < 1e-9) {
        Likeness::Sign
    } else if all(|wanted, found| (wanted.1 - found.1).abs() <= 1.0) {
        Likeness::Near
    } else if any(|wanted, found| sorted(&wanted.0) == sorted(&found.0)) {
        Likeness::Digits
    } else if all(is_scaled) {
        Likeness::Scale
    } else {
        Likeness::Other
    }
}

/// Whether one number is far from the other, or broken where it should be whole.
fn is_scaled(wanted: &Told, found: &Told) -> bool {
    let (most, least) = (
        wanted.1.abs().max(found.1.abs()),
        wanted.1.abs().min(found.1.abs()),
    );
    most >= 3.0 * least || (found.0.contains('.') && !wanted.0.contains('.'))
}

fn sorted(text: &str) -> Vec<char> {
    let mut digits: Vec<char> = text.chars().collect();
    digits.sort_unstable();
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, words: &[&str], places: &[(&str, usize)], likeness: Likeness) {
        let clues = Clues::of(output);
        assert_eq!(clues.words, words);
        let named: Vec<(&str, usize)> = clues
            .places
            .iter()
            .map(|(path, line)| (path.as_str(), *line))
            .collect();
        assert_eq!(named, places);
        assert_eq!(clues.likeness, likeness);
    }

    #[test]
    fn a_failure_is_read() {
        check(
            "ok    small\nFAIL  rebate\n  expected:\n    12 30\n  found:\n    12 31\n1 ok, 1 failed\n[exit 1]",
            &["rebate"],
            &[],
            Likeness::Near,
        );
        check(
            "FAIL area: expected 12, got 21",
            &["area"],
            &[],
            Likeness::Digits,
        );
        check(
            "FAIL depth: expected 5, got -5",
            &["depth"],
            &[],
            Likeness::Sign,
        );
        check(
            "FAIL names: expected 5 6\n got 5",
            &["names"],
            &[],
            Likeness::Missing,
        );
        check(
            "FAIL area: expected 8, got 0.5",
            &["area"],
            &[],
            Likeness::Scale,
        );
        check(
            "awk: lib/sum.awk:12: calling undefined function totl\n[exit 2]",
            &[
                "awk",
                "lib",
                "sum",
                "calling",
                "undefined",
                "function",
                "totl",
            ],
            &[("lib/sum.awk", 12)],
            Likeness::Unknown,
        );
    }
}
