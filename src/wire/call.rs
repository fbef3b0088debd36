//! The ids and names of calls on the wire.

use std::borrow::Cow;

use crate::id::{CallId, Digest};
use crate::setup::{CallIds, CallProfile, ToolProfile};

/// Digits of numbers in ids of nine letters and digits.
const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// How many digits of an id stand for the entry, and how many for the place in it.
const NINE: (u32, u32) = (6, 3);
/// The name of a call that names nothing.
const UNNAMED: &str = "unnamed";

/// The id of a call on the wire: unique within a transcript, the same in every request, in the form
/// that the provider wants.
pub fn call_id(call: CallId, profile: &CallProfile) -> String {
    let plain = format!("call_{}_{}", call.response, call.place);
    match profile.ids {
        CallIds::Plain if plain.len() <= profile.id_max as usize => plain,
        CallIds::Plain | CallIds::Nine => nine(call),
    }
}

/// An id of exactly nine letters and digits. Numbers that are too large for it, which no run reaches,
/// give digits of a digest behind a letter that no number begins with.
fn nine(call: CallId) -> String {
    let (entry, place) = (call.response.0, u64::from(call.place));
    let base = DIGITS.len() as u64;
    let mut id = String::with_capacity(9);
    if entry < 10 * base.pow(NINE.0 - 1) && place < base.pow(NINE.1) {
        digits(&mut id, entry, NINE.0);
        digits(&mut id, place, NINE.1);
    } else {
        let digest = Digest::of(format!("{entry}.{place}").as_bytes());
        let number = digest
            .0
            .iter()
            .take(8)
            .fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
        id.push('x');
        digits(&mut id, number, 8);
    }
    id
}

/// Appends the lowest digits of a number, the highest of them first.
fn digits(id: &mut String, number: u64, count: u32) {
    let base = DIGITS.len() as u64;
    for place in (0..count).rev() {
        let digit = number / base.pow(place) % base;
        let digit = usize::try_from(digit)
            .ok()
            .and_then(|digit| DIGITS.get(digit));
        id.push(char::from(digit.copied().unwrap_or(b'0')));
    }
}

/// The name of a call as it is sent back. Models make up names, and providers refuse every later
/// request that holds one that they do not take: what cannot stand in a name becomes `_`.
pub fn name<'a>(name: &'a str, profile: &ToolProfile) -> Cow<'a, str> {
    let most = profile.name_max as usize;
    let stays = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.trim().is_empty() {
        Cow::Borrowed(UNNAMED)
    } else if name.len() <= most && name.chars().all(stays) {
        Cow::Borrowed(name)
    } else {
        let sent = name.trim().chars().take(most);
        Cow::Owned(sent.map(|c| if stays(c) { c } else { '_' }).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::id::EntryId;

    #[test]
    fn case_50_ids_have_the_form_that_the_provider_wants_and_are_never_the_same() {
        let plain = CallProfile::default();
        let nine = CallProfile {
            ids: CallIds::Nine,
            ..CallProfile::default()
        };
        let short = CallProfile {
            id_max: 12,
            ..CallProfile::default()
        };
        for (entry, place, expected) in [
            (17, 2, ["call_17_2", "00000h002", "call_17_2"]),
            (4_000_000, 61, ["call_4000000_61", "00gMA800Z", "00gMA800Z"]),
            (
                u64::MAX,
                u32::MAX,
                [
                    "call_18446744073709551615_4294967295",
                    "xltwV3vH9",
                    "xltwV3vH9",
                ],
            ),
        ] {
            let call = CallId::new(EntryId(entry), place);
            assert_eq!(
                [&plain, &nine, &short].map(|profile| call_id(call, profile)),
                expected
            );
        }
        let mut ids = BTreeSet::new();
        for (entry, place) in
            (0..200).flat_map(|entry| (1..200).map(move |place| (entry * 61, place * 59)))
        {
            let id = call_id(CallId::new(EntryId(entry), place), &nine);
            assert!(
                id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()),
                "{id}"
            );
            assert!(ids.insert(id));
        }
    }

    #[test]
    fn names_are_sent_as_providers_take_them() {
        for (given, sent) in [
            ("Read", "Read"),
            ("a_b-9", "a_b-9"),
            ("fs.read file", "fs_read_file"),
            ("größe", "gr__e"),
            (" Read\n", "Read"),
            ("", "unnamed"),
            (" ", "unnamed"),
        ] {
            assert_eq!(name(given, &ToolProfile::default()), sent, "{given}");
        }
        assert_eq!(
            name(&"é".repeat(100), &ToolProfile::default()),
            "_".repeat(64)
        );
    }
}
