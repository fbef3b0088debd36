//! Paths in commands of the shell: no name of a file is taken for anything but a name.

/// How a command begins that shows a file.
const CAT: &str = "cat -- ";

/// A text as one word of the shell, whatever it holds.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The command that shows a file.
pub(super) fn cat(path: &str) -> String {
    format!("{CAT}{}", quoted(path))
}

/// The file that a command shows, if it is one of [`cat`].
pub(super) fn shown(command: &str) -> Option<String> {
    let word = command.strip_prefix(CAT)?;
    let inner = word
        .strip_prefix('\'')
        .and_then(|word| word.strip_suffix('\''));
    Some(inner.map_or_else(|| word.to_owned(), |inner| inner.replace(r"'\''", "'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_whatever_it_holds() {
        for (path, word) in [
            ("lib/a.sh", "lib/a.sh"),
            ("a b;c", "'a b;c'"),
            ("$(touch x)", "'$(touch x)'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(path), word);
            assert_eq!(shown(&cat(path)).as_deref(), Some(path));
        }
        assert_eq!(shown("sh a.sh"), None);
    }
}
