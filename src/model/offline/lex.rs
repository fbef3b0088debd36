//! The tokens of a line of code, as far as plain repairs need them.
//!
//! One small reader serves every language: it knows strings, comments and what is particular to the
//! shell and to awk. Where it is wrong, a try fails, and nothing worse happens.

/// How a line is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Shell,
    Awk,
    /// Comments begin with `#`.
    Hash,
    /// Comments begin with `//`.
    Slashes,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name.
    Word,
    Number,
    /// A string with its quotes.
    Text,
    /// `$` and a number.
    Column,
    Operator,
    /// Brackets, commas, and what else there is.
    Other,
}

/// A token: its kind and its bytes in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Token {
    pub(super) fn text(self, line: &str) -> &str {
        line.get(self.from..self.to).unwrap_or_default()
    }
}

/// Operators, longer ones first.
const OPERATORS: [&str; 25] = [
    "<=", ">=", "==", "!=", "&&", "||", "++", "--", "+=", "-=", "*=", "/=", "<<", ">>", "!~", "->",
    "<", ">", "+", "-", "*", "/", "%", "!", "~",
];

/// The shell's comparisons.
const TESTS: [&str; 8] = ["-lt", "-le", "-gt", "-ge", "-eq", "-ne", "-n", "-z"];

/// How each line of a file is read: a program within quotes in a shell script is not shell.
pub(super) fn languages(path: &str, text: &str) -> Vec<Language> {
    let usual = language(path, text);
    let mut within = false;
    text.lines()
        .map(|line| {
            let now = if within { Language::Awk } else { usual };
            if usual == Language::Shell && line.matches('\'').count() % 2 == 1 {
                within = !within && line.contains("awk");
            }
            now
        })
        .collect()
}

fn language(path: &str, text: &str) -> Language {
    let name = path.rsplit('/').next().unwrap_or(path);
    let first = text.lines().next().unwrap_or_default();
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("awk") => Language::Awk,
        Some("sh" | "bash" | "ksh" | "bats") => Language::Shell,
        Some(
            "c" | "h" | "cc" | "cpp" | "js" | "mjs" | "ts" | "go" | "rs" | "java" | "swift" | "php",
        ) => Language::Slashes,
        _ if !first.starts_with("#!") => Language::Hash,
        _ if first.contains("awk") => Language::Awk,
        _ if first.ends_with("sh") || first.contains("sh ") => Language::Shell,
        _ => Language::Hash,
    }
}

/// Whether a line holds no code.
pub(super) fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty()
        || ["#", "//", "/*", "* ", "--"]
            .iter()
            .any(|start| line.starts_with(start))
}

/// The tokens of a line, without its comment.
pub(super) fn tokens(line: &str, language: Language) -> Vec<Token> {
    let mut reader = Reader {
        line,
        language,
        at: 0,
        quoted: false,
        sums: 0,
        tokens: Vec::new(),
    };
    while reader.at < line.len() {
        if !reader.step() {
            break;
        }
    }
    reader.tokens
}

struct Reader<'a> {
    line: &'a str,
    language: Language,
    at: usize,
    /// Within the shell's double quotes, which are no wall for what is expanded.
    quoted: bool,
    /// How deep in `$(( ))`.
    sums: usize,
    tokens: Vec<Token>,
}

impl Reader<'_> {
    /// Takes the next token; `false` at a comment.
    fn step(&mut self) -> bool {
        let rest = &self.line[self.at..];
        let first = rest.chars().next().unwrap_or_default();
        let before = self.line[..self.at].chars().next_back();
        let apart = before.is_none_or(char::is_whitespace);
        let comment = if self.language == Language::Slashes {
            "//"
        } else {
            "#"
        };
        if rest.starts_with(comment) && apart && !self.quoted {
            return false;
        }
        let shell = self.language == Language::Shell;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        if first.is_whitespace() {
            self.at += first.len_utf8();
        } else if shell && first == '"' {
            self.quoted = !self.quoted;
            self.push(Kind::Other, 1);
        } else if first == '"' || (first == '\'' && self.language != Language::Awk) {
            match closing(rest, first) {
                Some(length) => self.push(Kind::Text, length),
                None => self.push(Kind::Other, 1),
            }
        } else if first == '/' && self.language == Language::Awk && self.may_begin_pattern() {
            let length = closing(rest, '/').unwrap_or(1);
            self.push(Kind::Other, length);
        } else if first == '$' {
            self.dollar(rest);
        } else if first.is_ascii_digit() && !before.is_some_and(is_word) {
            let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'));
            let number = &rest[..end.unwrap_or(rest.len())];
            let kind = if word > number.len() {
                Kind::Other
            } else {
                Kind::Number
            };
            let length = number.trim_end_matches('.').len().max(word);
            self.push(if self.plain() { kind } else { Kind::Other }, length);
        } else if first.is_ascii_alphabetic() || first == '_' {
            let kind = if self.plain() {
                Kind::Word
            } else {
                Kind::Other
            };
            self.push(kind, word);
        } else if let Some(test) = TESTS.iter().find(|test| {
            shell
                && apart
                && rest
                    .strip_prefix(**test)
                    .is_some_and(|rest| rest.starts_with(' '))
        }) {
            self.push(Kind::Operator, test.len());
        } else if let Some(operator) = OPERATORS
            .iter()
            .find(|operator| rest.starts_with(**operator))
        {
            // Elsewhere in the shell they redirect, or begin an option.
            let counts =
                !shell || self.sums > 0 || ["==", "!=", "&&", "||", "!"].contains(operator);
            let kind = if counts && self.plain() {
                Kind::Operator
            } else {
                Kind::Other
            };
            self.push(kind, operator.len());
        } else {
            if self.sums > 0 && rest.starts_with("))") {
                self.sums -= 1;
            }
            self.push(Kind::Other, first.len_utf8());
        }
        true
    }

    /// Whether names and operators here are code and no words of a message.
    fn plain(&self) -> bool {
        !self.quoted || self.sums > 0
    }

    fn dollar(&mut self, rest: &str) {
        let name = rest[1..].trim_start_matches('{');
        let skipped = rest.len() - name.len();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = name.find(|c: char| !is_word(c)).unwrap_or(name.len());
        if rest.starts_with("$((") {
            self.sums += 1;
            self.push(Kind::Other, 3);
        } else if length == 0 {
            self.push(Kind::Other, 1);
        } else if name.starts_with(|c: char| c.is_ascii_digit()) {
            if skipped == 1 {
                self.push(Kind::Column, 1 + length);
            } else {
                self.push(Kind::Other, skipped + length);
            }
        } else {
            self.push(Kind::Other, skipped);
            self.push(Kind::Word, length);
        }
    }

    /// Whether a slash here begins a pattern and divides nothing.
    fn may_begin_pattern(&self) -> bool {
        self.tokens.last().is_none_or(|last| {
            let text = last.text(self.line);
            match last.kind {
                Kind::Operator => true,
                Kind::Other => ["(", ",", "{", ";"].contains(&text),
                Kind::Word | Kind::Number | Kind::Text | Kind::Column => false,
            }
        })
    }

    fn push(&mut self, kind: Kind, length: usize) {
        let from = self.at;
        self.at += length.max(1);
        self.tokens.push(Token {
            kind,
            from,
            to: self.at,
        });
    }
}

/// The length of a quoted text with both quotes; `None` if the line does not end it.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return Some(at + 1);
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(language: Language, line: &str, expected: &str) {
        let shown: Vec<String> = tokens(line, language)
            .into_iter()
            .filter(|token| token.kind != Kind::Other)
            .map(|token| {
                let mark = match token.kind {
                    Kind::Word => 'w',
                    Kind::Number => 'n',
                    Kind::Text => 't',
                    Kind::Column => 'c',
                    Kind::Operator => 'o',
                    Kind::Other => '?',
                };
                format!("{mark}:{}", token.text(line))
            })
            .collect();
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn lines_are_read_by_their_language() {
        check(
            Language::Awk,
            r#"  if ($3 >= 10 && x !~ /a>b/) print "a < b", n / 2 # > 3"#,
            r#"w:if c:$3 o:>= n:10 o:&& w:x o:!~ w:print t:"a < b" w:n o:/ n:2"#,
        );
        check(
            Language::Shell,
            r#"[ "$a" -lt 3 ] && echo "no more than $((a + 1))" >"$out" 2>&1 # b"#,
            "w:a o:-lt n:3 o:&& w:echo w:a o:+ n:1 w:out n:2 n:1",
        );
        check(
            Language::Slashes,
            "area = side * 1.5; // > 2",
            "w:area w:side o:* n:1.5",
        );
        check(Language::Hash, "x = 'a' # b", "w:x t:'a'");
        let script = "set -e\nawk '\n  $1 > 2\n' <\"$1\"\n[ 1 -eq 2 ]\n";
        assert_eq!(
            languages("x.sh", script),
            [
                Language::Shell,
                Language::Shell,
                Language::Awk,
                Language::Awk,
                Language::Shell
            ]
        );
    }
}
