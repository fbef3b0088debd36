//! Ways to break a line of a program: small slips, as people make them.
//!
//! Each [`Operator`] says of a line all that it could become. Lines that may run for ever when they
//! are wrong are left alone, and so are headings of functions.

use std::ops::Range;

use crate::cli::demo::tokens::{Kind, Token, tokens};

/// A kind of slip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operator {
    /// `<` for `<=`.
    Boundary,
    /// `!=` for `==`.
    Equality,
    /// A number that is one too large or too small.
    Number,
    /// `-` for `+`.
    Sign,
    /// `/` for `*`.
    Factor,
    /// `||` for `&&`.
    Logic,
    /// A condition turned round.
    Negation,
    /// `$4` for `$3`.
    Column,
    /// A name with two letters in the wrong order.
    Name,
    /// Two arguments in the wrong order.
    Arguments,
    /// A `+ 1` that is missing.
    Dropped,
    /// Two digits in the wrong order.
    Digits,
    /// A word in quotation marks in place of another one.
    Word,
}

impl Operator {
    /// All of them.
    pub(crate) const ALL: [Self; 13] = [
        Self::Boundary,
        Self::Equality,
        Self::Number,
        Self::Sign,
        Self::Factor,
        Self::Logic,
        Self::Negation,
        Self::Column,
        Self::Name,
        Self::Arguments,
        Self::Dropped,
        Self::Digits,
        Self::Word,
    ];

    /// What it does, in a few words.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Boundary => "a boundary moved",
            Self::Equality => "an equality turned round",
            Self::Number => "a number off by one",
            Self::Sign => "plus and minus mixed up",
            Self::Factor => "times and divided by mixed up",
            Self::Logic => "and and or mixed up",
            Self::Negation => "a condition turned round",
            Self::Column => "the wrong column",
            Self::Name => "a misspelt name",
            Self::Arguments => "swapped arguments",
            Self::Dropped => "a dropped one",
            Self::Digits => "swapped digits",
            Self::Word => "the wrong word",
        }
    }

    /// Everything that the line could become, in order. `words` are the words in quotation marks
    /// of its file.
    pub(crate) fn changed(self, line: &str, words: &[&str]) -> Vec<String> {
        let tokens = tokens(line);
        if is_left_alone(&tokens) {
            return Vec::new();
        }
        self.edits(&tokens, words)
            .into_iter()
            .map(|(range, text)| {
                let (before, after) = (&line[..range.start], &line[range.end..]);
                format!("{before}{text}{after}")
            })
            .filter(|changed| changed != line)
            .collect()
    }

    /// What could be put in the place of what.
    fn edits(self, tokens: &[Token<'_>], words: &[&str]) -> Vec<Edit> {
        match self {
            Self::Boundary => swapped(tokens, &[("<", "<="), (">", ">=")]),
            Self::Equality => swapped(tokens, &[("==", "!=")]),
            Self::Sign => swapped(tokens, &[("+", "-"), ("+=", "-=")]),
            Self::Factor => swapped(tokens, &[("*", "/")]),
            Self::Logic => swapped(tokens, &[("&&", "||")]),
            Self::Number => each(tokens, Kind::Number, neighbours),
            Self::Column => each(tokens, Kind::Column, |text| {
                let beside = neighbours(&text[1..]).into_iter();
                // `$0` is the whole line: nobody writes it for a column.
                let beside = beside.filter(|number| number != "0");
                beside.map(|number| format!("${number}")).collect()
            }),
            Self::Digits => each(tokens, Kind::Number, |text| {
                let mut all = transposed(text);
                all.retain(|digits| !digits.starts_with('0'));
                all
            }),
            Self::Word => each(tokens, Kind::Text, |text| {
                let is_word = words.contains(&text);
                let others = words.iter().filter(|other| is_word && **other != text);
                others.map(|other| (*other).to_owned()).collect()
            }),
            Self::Name => each(tokens, Kind::Word, misspelt),
            Self::Negation => negated(tokens),
            Self::Arguments => rearranged(tokens),
            Self::Dropped => dropped(tokens),
        }
    }
}

/// What is put in the place of a part of a line.
type Edit = (Range<usize>, String);

/// Names that mean something to awk.
const KEYWORDS: [&str; 22] = [
    "BEGIN", "END", "ENVIRON", "FILENAME", "FNR", "FS", "NF", "NR", "else", "exit", "for",
    "function", "if", "int", "length", "next", "print", "printf", "return", "split", "sprintf",
    "substr",
];

/// The words in quotation marks in a text, such as `"food"`.
pub(crate) fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = text
        .lines()
        .flat_map(tokens)
        .filter(|token| token.kind == Kind::Text)
        .map(|token| token.text)
        .filter(|text| {
            let word = text.trim_matches('"');
            word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase())
        })
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Headings of functions, loops, and what prints to a file, where `>` compares nothing.
fn is_left_alone(tokens: &[Token<'_>]) -> bool {
    let loops = ["for", "while", "do", "function"];
    tokens.iter().any(|token| match token.kind {
        Kind::Word => loops.contains(&token.text),
        Kind::Text => token.text.starts_with("\"/dev/"),
        Kind::Number | Kind::Column | Kind::Pattern | Kind::Sign => false,
    })
}

/// Each operator between two values, replaced by its partner.
fn swapped(tokens: &[Token<'_>], pairs: &[(&str, &str)]) -> Vec<Edit> {
    let between = tokens.windows(2).filter(|two| two[0].ends_value());
    let signs = between
        .map(|two| two[1])
        .filter(|one| one.kind == Kind::Sign);
    signs
        .filter_map(|sign| {
            let partner = pairs.iter().find_map(|(one, other)| match sign.text {
                text if text == *one => Some(*other),
                text if text == *other => Some(*one),
                _ => None,
            });
            Some((sign.range(), partner?.to_owned()))
        })
        .collect()
}

/// Each piece of a kind, replaced by each of what the function gives for it.
fn each(tokens: &[Token<'_>], kind: Kind, others: impl Fn(&str) -> Vec<String>) -> Vec<Edit> {
    let of_kind = tokens.iter().filter(|token| token.kind == kind);
    of_kind
        .flat_map(|token| {
            let all = others(token.text).into_iter();
            all.map(|other| (token.range(), other)).collect::<Vec<_>>()
        })
        .collect()
}

/// The numbers beside a number.
fn neighbours(number: &str) -> Vec<String> {
    let Ok(number) = number.parse::<u64>() else {
        return Vec::new();
    };
    let below = number.checked_sub(1);
    let beside = [below, number.checked_add(1)];
    beside.iter().flatten().map(u64::to_string).collect()
}

/// The text with two neighbouring characters in the other order, in every way.
fn transposed(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let ways = (1..chars.len()).filter(|at| chars[at - 1] != chars[*at]);
    ways.map(|at| {
        let mut chars = chars.clone();
        chars.swap(at - 1, at);
        chars.into_iter().collect()
    })
    .collect()
}

/// A name that is long enough to be misspelt, in every way that keeps its ends.
fn misspelt(name: &str) -> Vec<String> {
    if name.len() < 5 || KEYWORDS.contains(&name) {
        return Vec::new();
    }
    let ends = |text: &str| (text.chars().next(), text.chars().next_back());
    let mut all = transposed(name);
    all.retain(|other| ends(other) == ends(name) && !other.contains("__"));
    all
}

/// A `!` taken away, or put before a condition that is a single call or name.
fn negated(tokens: &[Token<'_>]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        let next = tokens.get(place + 1);
        if token.is("!") {
            edits.push((token.range(), String::new()));
        } else if token.text == "if"
            && let [open, name, then, ..] = tokens.get(place + 1..).unwrap_or_default()
            && open.is("(")
            && name.kind == Kind::Word
            && (then.is("(") || then.is(")"))
        {
            edits.push((name.at..name.at, "!".to_owned()));
        } else if token.is("~") && next.is_some_and(|next| next.kind == Kind::Pattern) {
            edits.push((token.range(), "!~".to_owned()));
        }
    }
    edits
}

/// Two neighbouring arguments of a call in the other order.
fn rearranged(tokens: &[Token<'_>]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for place in 1..tokens.len() {
        let name = tokens[place - 1];
        let is_call = name.kind == Kind::Word
            && !matches!(name.text, "if" | "return" | "print")
            && name.range().end == tokens[place].at;
        if !(is_call && tokens[place].is("(")) {
            continue;
        }
        let arguments = arguments(&tokens[place..]);
        for two in arguments.windows(2) {
            let text = |tokens: &[Token<'_>]| spaced(tokens);
            let (one, other) = (text(two[0]), text(two[1]));
            if let (Some(first), Some(last)) = (two[0].first(), two[1].last())
                && one != other
            {
                edits.push((first.at..last.range().end, format!("{other}, {one}")));
            }
        }
    }
    edits
}

/// The arguments between brackets, the first of which begins these pieces; none if the last one
/// is on another line.
fn arguments<'t, 'a>(tokens: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let mut arguments = Vec::new();
    let (mut depth, mut from) = (0_usize, 1);
    for (place, token) in tokens.iter().enumerate() {
        if token.is("(") || token.is("[") {
            depth += 1;
        } else if token.is(")") || token.is("]") {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            arguments.push(&tokens[from..place]);
            return arguments;
        }
        if depth == 1 && token.is(",") {
            arguments.push(&tokens[from..place]);
            from = place + 1;
        }
    }
    Vec::new()
}

/// Pieces of a line as they stand there: whoever wrote it put one blank where there are any.
fn spaced(tokens: &[Token<'_>]) -> String {
    let mut text = String::new();
    let mut end = None;
    for token in tokens {
        if end.is_some_and(|end| end < token.at) {
            text.push(' ');
        }
        text.push_str(token.text);
        end = Some(token.range().end);
    }
    text
}

/// A `+ 1` or `- 1` that is missing.
fn dropped(tokens: &[Token<'_>]) -> Vec<Edit> {
    let ones = tokens.windows(3).filter(|three| {
        let sign = three[1].is("+") || three[1].is("-");
        three[0].ends_value() && sign && three[2].text == "1"
    });
    ones.map(|three| (three[0].range().end..three[2].range().end, String::new()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(operator: Operator, line: &str, expected: &[&str]) {
        let found = operator.changed(line, &["\"book\"", "\"food\""]);
        assert_eq!(found, expected, "{operator:?}");
    }

    #[test]
    fn each_slip_is_made_wherever_it_can_be() {
        use Operator as O;
        check(
            O::Boundary,
            "a < b && c >= d",
            &["a <= b && c >= d", "a < b && c > d"],
        );
        check(
            O::Equality,
            "if (a == 1 || b != 2)",
            &["if (a != 1 || b != 2)", "if (a == 1 || b == 2)"],
        );
        check(
            O::Number,
            "return f(0) + 10",
            &["return f(1) + 10", "return f(0) + 9", "return f(0) + 11"],
        );
        check(
            O::Sign,
            "a += -b + (c - 1)",
            &[
                "a -= -b + (c - 1)",
                "a += -b - (c - 1)",
                "a += -b + (c + 1)",
            ],
        );
        check(O::Factor, "a * b / c", &["a / b / c", "a * b * c"]);
        check(
            O::Logic,
            "/^#/ || NF == 0 { next }",
            &["/^#/ && NF == 0 { next }"],
        );
        check(O::Negation, "if (!held(a)) b", &["if (held(a)) b"]);
        check(O::Negation, "if (held(a)) b", &["if (!held(a)) b"]);
        check(O::Negation, "return a ~ /b/", &["return a !~ /b/"]);
        check(
            O::Column,
            "a[$1] = $3",
            &["a[$2] = $3", "a[$1] = $2", "a[$1] = $4"],
        );
        check(O::Name, "return price", &["return pirce", "return prcie"]);
        check(O::Name, "printf sprintf(\"long\") # comment", &[]);
        check(
            O::Arguments,
            "x = f(a, g(b, c + 1))",
            &["x = f(g(b, c + 1), a)", "x = f(a, g(c + 1, b))"],
        );
        check(O::Dropped, "int(a + 1) - 1", &["int(a) - 1", "int(a + 1)"]);
        check(
            O::Digits,
            "return 100 + 245",
            &["return 100 + 425", "return 100 + 254"],
        );
        check(
            O::Word,
            "if (a == \"food\") b = \"--\"",
            &["if (a == \"book\") b = \"--\""],
        );
    }

    #[test]
    fn what_might_run_for_ever_is_left_alone() {
        for operator in Operator::ALL {
            for line in [
                "for (place = 1; place <= length(long); place++) {",
                "function price_of(first, second) {",
                "print why > \"/dev/stderr\"",
                "# a < 1 && b == 2",
            ] {
                check(operator, line, &[]);
            }
        }
    }
}
