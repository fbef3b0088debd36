//! Sentences in which a user demands or forbids something, in English.

/// The longest sentence that is taken whole, in characters.
const CHARS: usize = 200;

/// The words of a sentence, no fewer and no more.
const WORDS: std::ops::RangeInclusive<usize> = 2..=60;

/// Words that make a sentence a demand.
const DEMANDING: [&str; 14] = [
    "must",
    "mustn't",
    "never",
    "always",
    "only",
    "don't",
    "shouldn't",
    "avoid",
    "ensure",
    "forbidden",
    "required",
    "cannot",
    "can't",
    "without",
];

/// The same in two words.
const DEMANDING_PAIRS: [(&str, &str); 8] = [
    ("do", "not"),
    ("should", "not"),
    ("may", "not"),
    ("make", "sure"),
    ("at", "most"),
    ("at", "least"),
    ("no", "more"),
    ("be", "sure"),
];

/// The first demands in a text, each once, in their order. Code, quotations and questions are passed
/// over.
pub(super) fn demands(text: &str, most: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for paragraph in paragraphs(text) {
        for sentence in sentences(&paragraph) {
            let sentence = sentence.trim();
            if found.len() < most && is_demand(sentence) {
                let sentence = cut(sentence);
                if !found.contains(&sentence) {
                    found.push(sentence);
                }
            }
        }
    }
    found
}

/// Paragraphs and items of lists, each on one line.
fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs: Vec<String> = Vec::new();
    let (mut code, mut open) = (false, false);
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            code = !code;
            open = false;
            continue;
        }
        let indented = line.starts_with('\t') || line.starts_with("    ");
        let other = trimmed.starts_with(['>', '|', '#']);
        if code || trimmed.is_empty() || other || indented && !open {
            open = false;
            continue;
        }
        let item = item(trimmed);
        match (paragraphs.last_mut(), item) {
            (Some(last), None) if open => {
                last.push(' ');
                last.push_str(trimmed);
            }
            (_, item) => paragraphs.push(item.unwrap_or(trimmed).to_owned()),
        }
        open = true;
    }
    paragraphs
}

/// The text of a line that begins an item of a list.
fn item(line: &str) -> Option<&str> {
    let mut marked = ["- ", "* ", "+ ", "• "].iter();
    let marked = marked.find_map(|mark| line.strip_prefix(mark));
    let numbered = || {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = rest.strip_prefix('.').or_else(|| rest.strip_prefix(')'))?;
        (rest.len() < line.len() - 1).then_some(rest)
    };
    marked.or_else(numbered).map(str::trim)
}

/// The sentences of a paragraph.
fn sentences(paragraph: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut from = 0;
    for (at, mark) in paragraph.match_indices(['.', '!', '?']) {
        let end = at + mark.len();
        let ends = paragraph[end..].starts_with([' ', '"', ')']) || end == paragraph.len();
        // Not after `e.g.`, `i.e.` and initials.
        let short = paragraph[..at].ends_with(|c: char| c.is_alphabetic())
            && paragraph[..at]
                .chars()
                .rev()
                .nth(1)
                .is_none_or(|c| c == '.' || c == ' ');
        if ends && !(mark == "." && short) {
            sentences.extend(paragraph.get(from..end));
            from = end;
        }
    }
    sentences.extend(paragraph.get(from..));
    sentences
}

fn is_demand(sentence: &str) -> bool {
    if sentence.ends_with('?') {
        return false;
    }
    let words = sentence.split_whitespace().map(|word| {
        let word = word.to_lowercase().replace('’', "'");
        word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned()
    });
    let words: Vec<String> = words.collect();
    let one = words.iter().any(|word| DEMANDING.contains(&word.as_str()));
    let two = words.windows(2).any(|pair| {
        let pair = (pair[0].as_str(), pair[1].as_str());
        DEMANDING_PAIRS.contains(&pair)
    });
    WORDS.contains(&words.len()) && (one || two)
}

/// A sentence of at most so many characters.
fn cut(sentence: &str) -> String {
    if sentence.chars().count() <= CHARS {
        return sentence.to_owned();
    }
    let mut cut: String = sentence.chars().take(CHARS - 1).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(demands(text, 3).join(" | "), expected, "{text}");
    }

    #[test]
    fn demands_are_told_from_other_sentences() {
        let long = format!("You must {}.", "wander ".repeat(40));
        let cut: String = long.chars().take(199).collect();
        for (text, expected) in [
            ("Mend the parser. It fails on escapes.", ""),
            (
                "Mend it. Never push to main! Then stop.",
                "Never push to main!",
            ),
            (
                "Don’t touch e.g. src/a.rs or v1.2. Thanks.",
                "Don’t touch e.g. src/a.rs or v1.2.",
            ),
            ("Must I do it? Should it only be read?", ""),
            (
                "- do not add\n  dependencies\n- make sure it builds",
                "do not add dependencies | make sure it builds",
            ),
            (
                "1. Only edit tests\n2) no more than 3 files",
                "Only edit tests | no more than 3 files",
            ),
            (
                "This is how\nit must always\nbe.\n\nOr not.",
                "This is how it must always be.",
            ),
            (
                "```\nyou must not\n```\n> never said\n    must be int: error\n# Only a title",
                "",
            ),
            ("Never. Always.", ""),
            (
                "Do not one. Do not two. Do not one. Do not three. Do not four.",
                "Do not one. | Do not two. | Do not three.",
            ),
            (long.as_str(), format!("{cut}…").as_str()),
        ] {
            check(text, expected);
        }
    }
}
