//! What the visible files tell of the whole project: its names, its functions, its rules.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::offline::lex::{self, Kind, Language, Token};

/// Names that languages bring along.
const BUILT_IN: &[&str] = &[
    "print", "printf", "return", "function", "length", "substr", "split", "index", "match",
    "sprintf", "tolower", "toupper", "getline", "while", "else", "echo", "exit", "shift", "local",
    "case", "esac", "then", "done", "next", "break", "continue", "delete", "BEGIN", "END", "FNR",
    "NR", "NF", "FS", "OFS",
];

/// Programs whose arguments nobody should guess at.
const DANGEROUS: &[&str] = &[
    "rm", "rmdir", "mv", "dd", "kill", "pkill", "chmod", "chown", "curl", "wget", "ssh", "scp",
    "sudo", "git", "eval", "system", "unlink", "truncate", "mkfs", "shred", "trap",
];

/// One line of code with its tokens.
#[derive(Clone, Debug)]
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: usize,
    pub(super) text: &'a str,
    pub(super) language: Language,
    pub(super) tokens: Vec<Token>,
}

impl Line<'_> {
    pub(super) fn token(&self, index: usize) -> &str {
        self.tokens
            .get(index)
            .map_or("", |token| token.text(self.text))
    }

    pub(super) fn kind(&self, index: usize) -> Option<Kind> {
        self.tokens.get(index).map(|token| token.kind)
    }

    /// Whether nothing is tried on it: it removes, moves, sends, or runs what it is given.
    pub(super) fn is_dangerous(&self) -> bool {
        self.words().any(|word| DANGEROUS.contains(&word))
    }

    /// Whether it begins or is a loop.
    pub(super) fn loops(&self) -> bool {
        self.words()
            .any(|word| matches!(word, "for" | "while" | "until" | "do" | "loop"))
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.text
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
    }

    /// The arguments between the bracket at this token and the one that closes it.
    pub(super) fn arguments(&self, open: usize) -> Vec<(usize, usize)> {
        let mut arguments = Vec::new();
        let mut depth = 0_usize;
        let mut from = None;
        let mut to = 0;
        for token in self.tokens.iter().skip(open) {
            let text = token.text(self.text);
            let closes = matches!(text, ")" | "]" | "}");
            if closes {
                depth = depth.saturating_sub(1);
            }
            let outer = (depth == 1 && text == ",") || (closes && depth == 0);
            if outer {
                arguments.extend(from.take().map(|from| (from, to)));
                if closes {
                    return arguments;
                }
            } else if depth > 0 {
                from = from.or(Some(token.from));
                to = token.to;
            }
            if matches!(text, "(" | "[" | "{") {
                depth += 1;
            }
        }
        Vec::new()
    }
}

/// The lines of code of a file.
pub(super) fn lines<'a>(path: &str, text: &'a str) -> Vec<Line<'a>> {
    let languages = lex::languages(path, text);
    let numbered = (1..).zip(text.lines()).zip(languages);
    numbered
        .filter(|((_, line), _)| !lex::is_comment(line))
        .map(|((number, text), language)| Line {
            number,
            text,
            language,
            tokens: lex::tokens(text, language),
        })
        .collect()
}

/// What is known of the project.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// How often each name occurs in code.
    pub(super) names: BTreeMap<String, usize>,
    /// Names that something gives a value or a meaning.
    pub(super) defined: BTreeSet<String>,
    /// The functions and what they call their arguments.
    pub(super) functions: BTreeMap<String, Vec<String>>,
    /// The lines of documents and comments, in lower case.
    pub(super) lore: Vec<String>,
}

impl Known {
    /// Takes in a source file.
    pub(super) fn add_source(&mut self, path: &str, text: &str) {
        for line in text.lines().filter(|line| lex::is_comment(line)) {
            self.add_lore(line);
        }
        for line in lines(path, text) {
            if let Some((_, comment)) = line.text.split_once(" # ") {
                self.add_lore(comment);
            }
            for (index, token) in line.tokens.iter().enumerate() {
                if token.kind == Kind::Word {
                    let name = token.text(line.text);
                    *self.names.entry(name.to_owned()).or_default() += 1;
                    if defines(&line, index) {
                        self.defined.insert(name.to_owned());
                    }
                }
            }
            self.add_function(&line);
        }
    }

    /// Takes in a document.
    pub(super) fn add_lore(&mut self, text: &str) {
        self.lore.extend(
            text.lines()
                .map(str::to_lowercase)
                .filter(|line| !line.trim().is_empty()),
        );
    }

    /// Takes in what languages bring along.
    pub(super) fn add_built_in(&mut self) {
        for name in BUILT_IN {
            *self.names.entry((*name).to_owned()).or_default() += 2;
            self.defined.insert((*name).to_owned());
        }
    }

    fn add_function(&mut self, line: &Line<'_>) {
        let named = matches!(line.token(0), "function" | "func" | "def" | "fn" | "sub");
        let place = usize::from(named);
        let shell = line.language == Language::Shell
            && line.token(place + 1) == "("
            && line.token(place + 2) == ")";
        if line.kind(place) != Some(Kind::Word) || !(named || shell) {
            return;
        }
        let name = line.token(place).to_owned();
        let parameters =
            (place + 2..line.tokens.len()).take_while(|index| line.token(*index) != ")");
        let parameters: Vec<String> = parameters
            .filter(|index| line.kind(*index) == Some(Kind::Word))
            .map(|index| line.token(index).to_owned())
            .collect();
        self.defined.insert(name.clone());
        self.defined.extend(parameters.iter().cloned());
        self.functions.insert(name, parameters);
    }
}

/// Whether a name is given a value here.
fn defines(line: &Line<'_>, index: usize) -> bool {
    let after = line.token(index + 1);
    let before = index.checked_sub(1).map_or("", |before| line.token(before));
    after == "="
        || after == "["
        || matches!(after, "+=" | "-=" | "++" | "--" | "in")
        || matches!(
            before,
            "++" | "--" | "function" | "def" | "let" | "var" | "const" | "local" | "read" | "for"
        )
}

/// How many letters must be changed, added, left out or exchanged with their neighbour.
pub(super) fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len().abs_diff(other.len()) > 2 {
        return usize::MAX;
    }
    let width = other.len() + 1;
    let mut rows: Vec<Vec<usize>> = vec![(0..width).collect()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let change = rows[i][j] + usize::from(a != b);
            let mut least = change.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_exchanged_neighbours_once() {
        for (one, other, expected) in [
            ("width", "width", 0),
            ("width", "widht", 1),
            ("width", "widh", 1),
            ("width", "wiidth", 1),
            ("width", "wodah", 2),
            ("a", "width", usize::MAX),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
