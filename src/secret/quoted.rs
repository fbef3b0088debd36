//! How shells write a value that they quote.

/// A value as it stands between quotation marks of each kind, and without any behind backslashes:
/// what `declare -p`, `export -p`, `set`, `set -x` and `printf %q` print.
pub(super) fn forms(value: &str) -> [String; 6] {
    [
        escaped(value, |c| "$`\"\\".contains(c)),
        // As bash and zsh set a mark apart, and as dash does.
        value.replace('\'', r"'\''"),
        apart(value),
        escaped(value, |c| " !\"$&'()*,;<>?[\\]^`{|}".contains(c)),
        ansi(value, Wide::AsItIs),
        ansi(value, Wide::Octal),
    ]
}

/// The value with a backslash before some of its characters.
fn escaped(value: &str, is_special: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        if is_special(c) {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// The value with each run of `'` between marks of the other kind: `it'"'"'s`.
fn apart(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut last = None;
    for c in value.chars() {
        match (last == Some('\''), c == '\'') {
            (false, true) => text.push_str("'\""),
            (true, false) => text.push_str("\"'"),
            (true, true) | (false, false) => {}
        }
        text.push(c);
        last = Some(c);
    }
    text
}

/// How characters beyond ASCII are written: the locale decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wide {
    AsItIs,
    Octal,
}

/// The value as it stands in `$'…'`.
fn ansi(value: &str, wide: Wide) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '\'' => text.push_str("\\'"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\x1b' => text.push_str("\\E"),
            c if c.is_ascii_control() || !c.is_ascii() && wide == Wide::Octal => {
                let bytes = c.to_string().into_bytes();
                text.extend(bytes.iter().map(|byte| format!("\\{byte:03o}")));
            }
            c => text.push(c),
        }
    }
    text
}
