//! Names in what a user wrote: what looks like code, a place or a measure rather than a word.

/// The length of a name, in characters.
const CHARS: std::ops::RangeInclusive<usize> = 2..=120;

/// Words that make a number before them a measure.
const UNITS: [&str; 26] = [
    "ms",
    "s",
    "sec",
    "seconds",
    "second",
    "min",
    "minutes",
    "minute",
    "h",
    "hours",
    "hour",
    "days",
    "day",
    "weeks",
    "kb",
    "mb",
    "gb",
    "kib",
    "mib",
    "gib",
    "bytes",
    "percent",
    "px",
    "tokens",
    "characters",
    "lines",
];

/// Ends of ordinals, which are words.
const ORDINALS: [&str; 4] = ["st", "nd", "rd", "th"];

/// The first names in a text, each once, in the order of their lines.
pub(super) fn names(text: &str, most: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        // A long text may hold thousands of them.
        if found.len() >= most {
            return;
        }
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        if CHARS.contains(&name.chars().count()) && !found.contains(&name) {
            found.push(name);
        }
    };
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            continue;
        }
        let mut rest = line.to_owned();
        for (open, close) in [('`', '`'), ('"', '"'), ('“', '”')] {
            rest = quoted(&rest, open, close, &mut add);
        }
        let mut number: Option<&str> = None;
        for word in rest.split_whitespace() {
            let word = trimmed(word);
            let unit = word.to_lowercase();
            if let Some(number) = number.filter(|_| UNITS.contains(&unit.as_str())) {
                add(&format!("{number} {word}"));
            }
            number = is_number(word).then_some(word);
            if is_name(word) {
                add(word);
            }
        }
    }
    found
}

/// Hands over what stands between two marks, and returns the rest of the line.
fn quoted(line: &str, open: char, close: char, add: &mut impl FnMut(&str)) -> String {
    let mut rest = String::with_capacity(line.len());
    let mut left = line;
    while let Some((before, behind)) = left.split_once(open) {
        let Some((inner, after)) = behind.split_once(close) else {
            break;
        };
        rest.push_str(before);
        rest.push(' ');
        if inner.chars().count() <= 80 {
            add(inner);
        } else {
            // Too long to be a name, but there may be some in it.
            rest.push_str(inner);
            rest.push(' ');
        }
        left = after;
    }
    rest.push_str(left);
    rest
}

/// A word without the marks around it. A closing bracket stays if it closes one in the word.
fn trimmed(word: &str) -> &str {
    const AROUND: [char; 20] = [
        '(', '[', '{', '<', '"', '\'', '`', ',', ';', ':', '!', '?', '*', '|', '…', '«', '»', '„',
        '‘', '’',
    ];
    let mut word = word.trim_start_matches(AROUND);
    loop {
        let Some(last) = word.chars().next_back() else {
            return word;
        };
        let closes = match last {
            ')' => Some('('),
            ']' => Some('['),
            '}' => Some('{'),
            '>' => Some('<'),
            _ => None,
        };
        let loose = match closes {
            Some(open) => word.matches(open).count() < word.matches(last).count(),
            None => last == '.' || AROUND.contains(&last),
        };
        if !loose {
            return word;
        }
        word = &word[..word.len() - last.len_utf8()];
    }
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '_'))
}

/// Whether a word is a name rather than one of the language.
fn is_name(word: &str) -> bool {
    let alphabetic = word.chars().any(char::is_alphabetic);
    let digits = word.chars().filter(char::is_ascii_digit).count();
    if is_number(word) {
        return digits >= 3;
    }
    if !alphabetic {
        let sign = word.starts_with(['#', '$']) || word.ends_with('%');
        return digits > 0 && sign;
    }
    let flag = word
        .strip_prefix("--")
        .is_some_and(|flag| flag.starts_with(char::is_alphabetic));
    flag || word.contains("://")
        || word.contains("::")
        || word.ends_with("()")
        || is_path(word)
        || is_compound(word)
        || is_dotted(word)
        || digits > 0 && !is_ordinal(word)
}

/// `src/a.rs`, `./run`, `~/notes`, `a/b/c`, `C:\x`; not `and/or`.
fn is_path(word: &str) -> bool {
    let rooted = ["/", "./", "../", "~/"]
        .iter()
        .any(|root| word.starts_with(root));
    let marked = word.contains(['.', '_']) || word.matches('/').count() > 1 || word.ends_with('/');
    let inner = |c: char| {
        let sides = word.split_once(c);
        sides.is_some_and(|(before, behind)| !before.is_empty() && !behind.is_empty())
    };
    word.contains('/') && (rooted || marked) || inner('\\')
}

/// `snake_case`, `camelCase`, `A=b`.
fn is_compound(word: &str) -> bool {
    let letters: Vec<char> = word.chars().collect();
    let camel = letters
        .windows(2)
        .any(|pair| pair[0].is_lowercase() && pair[1].is_uppercase());
    let joined = letters.windows(3).any(|three| {
        three[0].is_alphanumeric() && matches!(three[1], '_' | '=') && three[2].is_alphanumeric()
    });
    camel || joined || word.starts_with('_')
}

/// `main.rs`, `os.path`, `a-b.example.org`; not `e.g.`.
fn is_dotted(word: &str) -> bool {
    let dotted = word.strip_prefix('.').unwrap_or(word);
    let mut parts = dotted.split(['.', '@']);
    let sound = |part: &str| {
        let inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        !part.is_empty() && part.chars().all(inner)
    };
    let all = parts.clone().count() > 1 || dotted.len() < word.len();
    all && parts.clone().all(sound) && parts.any(|part| part.chars().nth(1).is_some())
}

fn is_ordinal(word: &str) -> bool {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    is_number && ORDINALS.contains(&&word[digits.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(names(text, 5).join(" | "), expected, "{text}");
    }

    #[test]
    fn names_are_told_from_words() {
        for (text, expected) in [
            ("Fix the parser, and/or rewrite it.", ""),
            (
                "Look at src/parse.rs and lib/ (see ./run).",
                "src/parse.rs | lib/ | ./run",
            ),
            (
                "Call `unescape me`, then parse_all() or Reader::new.",
                "unescape me | parse_all() | Reader::new",
            ),
            (
                "fooBar, FooBar, snake_case, _private; Foo is a word.",
                "fooBar | FooBar | snake_case | _private",
            ),
            (
                "Use os.path, main.rs, .gitignore, a@b.org, e.g. none, i.e. nothing. Done.",
                "os.path | main.rs | .gitignore | a@b.org",
            ),
            ("Pass --no-cache, --jobs=4 and -v.", "--no-cache | --jobs=4"),
            (
                "See https://example.org/a?b=c!",
                "https://example.org/a?b=c",
            ),
            (
                "Wait 30 ms or 5s, the 2nd time 10 percent, 80%.",
                "30 ms | 5s | 10 percent | 80%",
            ),
            (
                "On port 8080 with 1.2.3 and v2, not 7.",
                "8080 | 1.2.3 | v2",
            ),
            (
                "quill-7f3a: 4821-kestrel, utf-8 and #12",
                "quill-7f3a | 4821-kestrel | utf-8 | #12",
            ),
            (
                "Title it \"The red door\" or “Das Tor”.",
                "The red door | Das Tor",
            ),
            ("An \"open quote, and a `tick: a_b", "a_b"),
            ("Set MODE=fast. MODE=fast!", "MODE=fast"),
            (r"C:\temp\x and «ü_ä»…", r"C:\temp\x | ü_ä"),
            ("```\nlet a_b = 1;\n```", "a_b"),
            ("( ) ... -- / \\ ' \" ` “", ""),
            (
                "a_1 a_2 a_3 `a_1` a_4 a_5 a_6",
                "a_1 | a_2 | a_3 | a_4 | a_5",
            ),
        ] {
            check(text, expected);
        }
    }
}
