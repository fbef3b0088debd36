//! Texts that come in pieces.

use super::*;

/// What is given out of a text of which all but the beginning comes in pieces of so many bytes.
fn in_pieces(beginning: &str, text: &str, bytes: usize) -> String {
    let masks = Masks::new(known());
    let mut pieces = Pieces::default();
    let mut given = pieces.take(&masks, beginning);
    let mut rest = text;
    while !rest.is_empty() {
        let end = (bytes.min(rest.len())..=rest.len()).find(|at| rest.is_char_boundary(*at));
        let (piece, behind) = rest.split_at(end.unwrap());
        given += &pieces.take(&masks, piece);
        rest = behind;
    }
    given + &pieces.finish(&masks)
}

/// Lines that are longer than what is held back, with secrets wherever it may be given out.
#[test]
fn a_long_line_is_masked_like_a_short_one() {
    let lines: String = (0..400).map(|_| drawn("<64>\n")).collect();
    let (begin, end) = (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
        "-----END PGP PRIVATE KEY BLOCK-----",
    );
    let key = format!("{begin}{lines}{end}");
    let last = "and k3y-of-16-letters, Bearer <40> ghp_<36> SK<x32> \"password\": \"hunt3r2x\"";
    for (name, filler) in [
        ("words", "some words ".repeat(1600)),
        ("one word", "word".repeat(4200) + "/"),
        (
            "two words",
            "word".repeat(2500) + " " + &"word".repeat(2500) + "/",
        ),
        ("values", "{\"some\":\"ünd\"},".repeat(1200)),
        ("a key", format!("{key}\n")),
        ("a key in one line", key.replace('\n', "\\n") + " "),
        ("the first half of a key", key[..20_000].to_owned()),
    ] {
        for before in (0..99).step_by(33) {
            // What is held back is passed at another place in what follows.
            let count = filler.chars().count();
            let cut = if name.contains("key") {
                0
            } else {
                count - 16_384 + before
            };
            let filler: String = filler.chars().skip(cut).collect();
            let rest = if name.contains("half") {
                &key[20_000..]
            } else {
                ""
            };
            let rest = drawn(&format!("{rest}{last} {last}\nand {last}"));
            let whole = Masks::new(known())
                .text(&format!("{filler}{rest}"))
                .into_owned();
            for bytes in [5, 300] {
                let given = in_pieces(&filler, &rest, bytes);
                assert!(
                    given == whole,
                    "{name}, {before}, {bytes}:\n{given}\n{whole}"
                );
            }
        }
    }
}

/// Nothing is held back without end.
#[test]
fn of_a_line_without_end_most_is_given_out() {
    let masks = Masks::new(known());
    for word in ["word ", "word", "\"a\":1,"] {
        let mut pieces = Pieces::default();
        let piece = word.repeat(500);
        let given: usize = (0..30).map(|_| pieces.take(&masks, &piece).len()).sum();
        assert!(30 * piece.len() - given <= 16 << 10, "{word}: {given}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// However a text is cut into pieces, what is given out is what is shown of the whole.
    #[test]
    fn pieces_are_masked_like_the_whole(cuts in prop::collection::vec(1..9_usize, 1..200)) {
        let text = drawn(concat!(
            "The token is ghp_<36>, then\npassword = \"hunter2\" and k3y-of-16-letters here.\n",
            "-----BEGIN RSA PRIVATE KEY-----\n<64>\n<32>\n-----END RSA PRIVATE KEY-----\n",
            "An ünusual end, Authorization: Bearer <30> eyJ<20>.eyJ<40>.<43>",
        ));
        let masks = Masks::new(known());
        let mut pieces = Pieces::default();
        let mut given = String::new();
        let mut rest = text.as_str();
        for cut in cuts.into_iter().cycle() {
            let end = (cut..rest.len()).find(|at| rest.is_char_boundary(*at));
            let end = end.unwrap_or(rest.len());
            let (piece, behind) = rest.split_at(end);
            given += &pieces.take(&masks, piece);
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        given += &pieces.finish(&masks);
        prop_assert_eq!(given, masks.text(&text).into_owned());
    }

    /// Nothing panics, and what was masked stays.
    #[test]
    fn any_text_is_masked_once(text in "(?s)([a-z_=:/@\" ]{0,8}(token|password|secret|://|-----BEGIN |PRIVATE KEY-----|ghp_|eyJ|Bearer |AKIA)?.{0,6}){0,12}") {
        let once = masked(&text).into_owned();
        prop_assert_eq!(masked(&once), once.as_str());
    }
}
