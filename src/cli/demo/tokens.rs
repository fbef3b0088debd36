//! A line of awk in pieces, as far as a mutation needs to know them.

use std::ops::Range;

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or a keyword.
    Word,
    /// A whole number.
    Number,
    /// A column: `$3`.
    Column,
    /// A text in quotation marks.
    Text,
    /// A pattern between slashes.
    Pattern,
    /// An operator or a bracket.
    Sign,
}

/// A piece, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// What it is.
    pub(crate) kind: Kind,
    /// How it is written.
    pub(crate) text: &'a str,
    /// Where it begins, in bytes.
    pub(crate) at: usize,
}

impl Token<'_> {
    /// Where it stands in its line.
    pub(crate) fn range(&self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }

    /// Whether it is this operator or bracket.
    pub(crate) fn is(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// Whether a value may end with it, so that what follows stands between two values.
    pub(crate) fn ends_value(&self) -> bool {
        match self.kind {
            Kind::Word | Kind::Number | Kind::Column | Kind::Text | Kind::Pattern => true,
            Kind::Sign => matches!(self.text, ")" | "]"),
        }
    }
}

/// The pieces of a line without blanks and comments.
pub(crate) fn tokens(line: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut at = 0;
    while let Some(first) = line[at..].chars().next() {
        let rest = &line[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        if first == '#' {
            break;
        }
        let after_value = tokens.last().is_some_and(Token::ends_value);
        let (kind, length) = match first {
            '"' => (Kind::Text, quoted(rest, '"')),
            '/' if !after_value => (Kind::Pattern, quoted(rest, '/')),
            '$' => (Kind::Column, 1 + run(&rest[1..], |c| c.is_ascii_digit())),
            _ if first.is_ascii_digit() => (Kind::Number, run(rest, |c| c.is_ascii_digit())),
            _ if first.is_alphabetic() || first == '_' => {
                (Kind::Word, run(rest, |c| c.is_alphanumeric() || c == '_'))
            }
            _ => (Kind::Sign, sign(rest, first)),
        };
        let text = &rest[..length];
        tokens.push(Token { kind, text, at });
        at += length;
    }
    tokens
}

/// The length of what begins a text and fits.
fn run(text: &str, fits: fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

/// The length of a text between marks; all of it, if the second one is missing.
fn quoted(text: &str, mark: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == mark => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The length of the operator that begins a text.
fn sign(text: &str, first: char) -> usize {
    const PAIRS: [&str; 11] = [
        "<=", ">=", "==", "!=", "&&", "||", "++", "--", "+=", "-=", "!~",
    ];
    if PAIRS.iter().any(|pair| text.starts_with(pair)) {
        2
    } else {
        first.len_utf8()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_to_pieces() {
        let line = r#"    if ($3 ~ /^[1-9\/]*$/ && a_b <= 10 / 2) x += f("a \" b") # no"#;
        let texts: Vec<_> = tokens(line).iter().map(|token| token.text).collect();
        let expected = [
            "if",
            "(",
            "$3",
            "~",
            r"/^[1-9\/]*$/",
            "&&",
            "a_b",
            "<=",
            "10",
            "/",
            "2",
            ")",
            "x",
            "+=",
            "f",
            "(",
            r#""a \" b""#,
            ")",
        ];
        assert_eq!(texts, expected);
        assert!(
            tokens(line)
                .iter()
                .all(|one| &line[one.range()] == one.text)
        );
    }
}
