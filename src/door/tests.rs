//! What is read through the door is what is read without it.

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::Spanned;

/// Every shape that a type can have.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
struct Shapes {
    flag: bool,
    small: u8,
    whole: i64,
    large: u128,
    part: f32,
    letter: Option<char>,
    text: String,
    maybe: Option<String>,
    nothing: (),
    list: Vec<u32>,
    pair: (u8, String),
    map: BTreeMap<String, Value>,
    word: Option<Word>,
    wrapped: Wrapped,
    placed: Option<Spanned<String>>,
    inner: Option<Inner>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Word {
    Alone,
    With(u8),
    Two(u8, u8),
    Named { a: u8 },
}

#[derive(Debug, Default, Deserialize, PartialEq)]
struct Wrapped(u16);

#[derive(Debug, Deserialize, PartialEq)]
struct Inner {
    a: u8,
    b: String,
}

/// Reads a text with and without the door; both must say the same.
fn check<T: DeserializeOwned + Debug + PartialEq>(text: &str) -> String {
    let options = || serde_saphyr::options! { with_snippet: false };
    let said = |read: Result<T, serde_saphyr::Error>| match read {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{error} ({error:?})"),
    };
    let direct = said(serde_saphyr::from_str_with_options(text, options()));
    let through = said(super::yaml(text, options()));
    assert_eq!(through, direct, "{text}");
    through
}

#[test]
fn values_are_the_same() {
    let whole = "
        flag: yes
        small: 0x1f
        whole: -3
        large: 340282366920938463463374607431768211455
        part: 1.5
        letter: é
        text: 12
        maybe: ~
        nothing: null
        list: &list [1, 2]
        pair: [1, two]
        map: { a: 1, b: [x, 1.5, null, true], c: *list }
        word: { with: 3 }
        wrapped: 7
        placed: there
        inner:
          a: 1
          b: |
            lines";
    let said = check::<Shapes>(whole);
    assert!(said.starts_with("Shapes"), "{said}");
    for word in ["alone", "{ two: [1, 2] }", "{ named: { a: 1 } }", "!with 3"] {
        assert!(check::<Word>(word).len() > 4, "{word}");
    }
    assert!(check::<Value>(whole).starts_with("Object"));
    assert_eq!(check::<Option<Inner>>(""), "None");
}

#[test]
fn errors_are_the_same_and_stand_where_they_stood() {
    for text in [
        "flag: maybe",
        "small: 256",
        "whole: x",
        "part: [1]",
        "letter: ab",
        "text: null",
        "text: [a]",
        "nothing: 1",
        "list: 1",
        "list: [1, -1]",
        "pair: [1]",
        "pair: [1, two, three]",
        "map: [1]",
        "word: other",
        "word: { with: x }",
        "word: { with: 1, alone: }",
        "word: { named: { b: 1 } }",
        "word: with",
        "wrapped: -1",
        "placed: { a: 1 }",
        "inner: { a: 1 }",
        "inner: { a: 1, a: 2 }",
        "inner: { a: x, b: c }",
        "flag: true\nflag: false",
        "flag: true\nunknown: 1",
        "flag: true\n---\nflag: false",
        "list: [1, 2",
        "text: *unknown",
        "[1, 2]",
        "3",
    ] {
        let said = check::<Shapes>(text);
        assert!(!said.starts_with("Shapes"), "{text}: {said}");
    }
}
