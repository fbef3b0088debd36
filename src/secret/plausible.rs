//! Whether what stands behind a telling name is a secret, or only a word about one.

/// What stands in for a secret in examples.
const STANDS_IN: [&str; 24] = [
    "changeme",
    "change_me",
    "change-me",
    "example",
    "placeholder",
    "your",
    "dummy",
    "redacted",
    "masked",
    "sample",
    "insert",
    "replace",
    "xxxx",
    "****",
    "....",
    "todo",
    "none",
    "null",
    "undefined",
    "string",
    "not-needed",
    "no-key",
    "fake",
    "test-key",
];

/// How a text stands behind its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum As {
    /// Between quotation marks.
    Quoted,
    /// As it is, as parts of programs do too.
    Bare,
}

/// Whether a text stands for itself: it is no variable, and not what examples say.
pub(super) fn stands_for_itself(text: &str) -> bool {
    let starts = ['$', '<', '{', '[', '(', '%', '*'];
    let lower = text.to_ascii_lowercase();
    let is_example = STANDS_IN.iter().any(|word| lower.contains(word));
    let is_name = ["password", "pass", "passwd", "pw", "secret", "token"].contains(&&*lower);
    !text.starts_with(starts) && !is_example && !is_name
}

/// Whether a text that a name says is secret is one, and neither a word nor a part of a program.
pub(super) fn is_secret(text: &str, stands: As) -> bool {
    let bare = text.trim_end_matches([',', ';', ')', '.', ':', '…']);
    let code = ["${", "{{", "{}", "://", "=>", "->", "::", "("];
    let said = bare.contains(char::is_whitespace) && !is_phrase(bare);
    let shortest = match stands {
        As::Quoted => 6,
        As::Bare => 8,
    };
    bare.len() >= shortest
        && !bare.starts_with(['&', '/', '~', '@'])
        && stands_for_itself(bare)
        && !said
        && !code.iter().any(|code| bare.contains(code))
        && is_mixed(bare)
        && !is_code(bare, stands)
}

/// A few words with something in them that words alone do not have.
fn is_phrase(text: &str) -> bool {
    text.chars().any(|c| c.is_ascii_digit()) && text.split_whitespace().count() <= 8
}

/// Whether characters of several kinds are mixed, as people are told to do.
fn is_mixed(text: &str) -> bool {
    let digit = text.chars().any(|c| c.is_ascii_digit());
    let upper = text.chars().any(|c| c.is_ascii_uppercase());
    let lower = text.chars().any(|c| c.is_ascii_lowercase());
    let sign = text.chars().any(|c| "!@#%^&*?+=~$".contains(c));
    let kinds = [digit, upper, lower, sign];
    (digit || sign) && kinds.into_iter().filter(|kind| *kind).count() >= 2
}

/// Whether it reads as a name, a path or a part of a program: words joined by signs, at most with a
/// short number at the end.
fn is_code(text: &str, stands: As) -> bool {
    let words = text.split(['.', '_', '-', '/', ':']);
    let mut count = 0;
    let plain = words.into_iter().all(|word| {
        count += 1;
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = word.len() - letters.len();
        let alphabetic = letters.chars().all(|c| c.is_ascii_alphabetic());
        alphabetic && digits <= 2 && is_word(letters)
    });
    plain && (count > 1 || stands == As::Bare)
}

/// Whether letters change their case only as words do: `word`, `Word`, `WORD`, `twoWords`.
fn is_word(letters: &str) -> bool {
    let cases: Vec<bool> = letters.chars().map(|c| c.is_ascii_uppercase()).collect();
    let changes = cases.windows(2).filter(|pair| pair[0] != pair[1]).count();
    changes <= 2 || changes * 3 <= letters.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_told_from_a_word_about_one() {
        for secret in [
            "hunter2!",
            "S3cr3tPa55",
            "p4ssw0rd",
            "a8f3c9d1e2b47605",
            "Tr0ub4dor&3",
            "x9$kLm2Qz",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
            "correct horse battery 9 staple",
        ] {
            assert!(is_secret(secret, As::Bare), "{secret}");
        }
        assert!(is_secret("hunter2", As::Quoted));
        for word in [
            "string",
            "changeme",
            "your-token-here",
            "${DB_PASSWORD}",
            "$TOKEN",
            "<password>",
            "self.next_token2",
            "process.env.KEY1",
            "os.environ",
            "password1",
            "tokenizer-v2",
            "{{ secret }}",
            "/run/secrets/db1",
            "getToken1()",
            "refresh_token",
            "xxxxxxxx1",
            "usize",
            "Vec<u8>",
            "sha256",
            "Option::None1",
            "token_2",
            "Bearer",
        ] {
            assert!(!is_secret(word, As::Bare), "{word}");
        }
    }
}
