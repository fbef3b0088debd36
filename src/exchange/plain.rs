//! Arguments in compact JSON as this program writes it, whose normal form is their own text with its
//! members in order.
//!
//! It is a short way and no other form: `None` for whatever may have to be spelled differently, which is
//! read as a value then.

/// How deep values may stand in each other.
const DEEPEST: usize = 32;

/// The object in this text with its members in the order of their names.
pub(super) fn normal(text: &str) -> Option<String> {
    let text = text.trim();
    let mut members = Vec::with_capacity(8);
    let end = object(text.as_bytes(), 0, DEEPEST, &mut |name, end| {
        members.push((text.get(name.0..name.1)?, text.get(name.0..end)?));
        Some(())
    })?;
    if end != text.len() {
        return None;
    }
    members.sort_unstable_by_key(|(name, _)| *name);
    // Of members with one name the last counts, which is for others to find.
    let differ = members.windows(2).all(|pair| pair[0].0 != pair[1].0);
    let mut normal = String::with_capacity(text.len());
    for (place, (_, member)) in members.iter().enumerate() {
        normal.push_str(if place == 0 { "{\"" } else { ",\"" });
        normal.push_str(member);
    }
    normal.push_str(if members.is_empty() { "{}" } else { "}" });
    differ.then_some(normal)
}

/// Where the object ends that begins here. Of each member it tells from where to where its name stands,
/// without quotes, and where its value ends.
fn object(
    text: &[u8],
    at: usize,
    deepest: usize,
    member: &mut impl FnMut((usize, usize), usize) -> Option<()>,
) -> Option<usize> {
    if *text.get(at)? != b'{' {
        return None;
    }
    let mut at = at + 1;
    if *text.get(at)? == b'}' {
        return Some(at + 1);
    }
    loop {
        let behind = string(text, at)?;
        let name = (at + 1, behind - 1);
        // Names in another order once they are read.
        if text[name.0..name.1].contains(&b'\\') || *text.get(behind)? != b':' {
            return None;
        }
        at = value(text, behind + 1, deepest)?;
        member(name, at)?;
        match text.get(at)? {
            b',' => at += 1,
            b'}' => return Some(at + 1),
            _ => return None,
        }
    }
}

/// Where the value ends that begins here, all of whose objects are in order.
fn value(text: &[u8], at: usize, deepest: usize) -> Option<usize> {
    let deeper = || deepest.checked_sub(1);
    match text.get(at)? {
        b'"' => string(text, at),
        b'{' => {
            let mut before: Option<&[u8]> = None;
            object(text, at, deeper()?, &mut |name, _| {
                let name = &text[name.0..name.1];
                let is_next = before.is_none_or(|before| before < name);
                before = Some(name);
                is_next.then_some(())
            })
        }
        b'[' => list(text, at, deeper()?),
        b'-' | b'0'..=b'9' => integer(text, at),
        _ => ["true", "false", "null"].iter().find_map(|word| {
            let end = at + word.len();
            (text.get(at..end)? == word.as_bytes()).then_some(end)
        }),
    }
}

fn list(text: &[u8], at: usize, deepest: usize) -> Option<usize> {
    let mut at = at + 1;
    if *text.get(at)? == b']' {
        return Some(at + 1);
    }
    loop {
        at = value(text, at, deepest)?;
        match text.get(at)? {
            b',' => at += 1,
            b']' => return Some(at + 1),
            _ => return None,
        }
    }
}

/// Where the string ends that begins here, if it is escaped only where it must be.
fn string(text: &[u8], at: usize) -> Option<usize> {
    if *text.get(at)? != b'"' {
        return None;
    }
    let mut at = at + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => {
                let usual = b"\"\\bfnrt".contains(text.get(at + 1)?);
                at += if usual { 2 } else { return None };
            }
            0..0x20 => return None,
            _ => at += 1,
        }
    }
}

/// Where the whole number ends that begins here, if it is one that is written in one way.
fn integer(text: &[u8], at: usize) -> Option<usize> {
    let first = at + usize::from(text.get(at) == Some(&b'-'));
    let digits = text.get(first..)?.iter();
    let count = digits.take_while(|byte| byte.is_ascii_digit()).count();
    let is_zero = text.get(first) == Some(&b'0');
    let is_written_so = (1..=18).contains(&count) && (!is_zero || (count == 1 && first == at));
    let end = first + count;
    let goes_on = matches!(text.get(end), Some(b'.' | b'e' | b'E'));
    (is_written_so && !goes_on).then_some(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::exchange::{arguments, normalised};

    /// Whether the short way takes a text, which comes to the same then.
    fn check(text: &str, taken: bool) {
        let short = normal(text);
        assert_eq!(short.is_some(), taken, "{text}");
        if let Some(short) = short {
            assert_eq!(short, normalised(arguments(text)), "{text}");
        }
    }

    #[test]
    fn what_is_written_compactly_is_put_in_order_and_all_else_is_read() {
        for text in [
            "{}",
            " {}\n",
            r#"{"path":"a.rs","chars":4000}"#,
            r#"{"b":[1,-2,{"c":true,"d":null}],"a":"\"\\\n\t\b\f\r/ ä😀","":{}}"#,
            r#"{"a":[],"A":[[],{}],"ab":0,"a b":999999999999999999}"#,
        ] {
            check(text, true);
        }
        for text in [
            "",
            "[]",
            "\"{}\"",
            "{",
            "{}}",
            r#"{"a": 1}"#,
            r#"{"a":1,}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":{"c":1,"b":2}}"#,
            r#"{"a":{"b":1,"b":2}}"#,
            r#"{"a\n":1}"#,
            r#"{"a":"\u00e4"}"#,
            r#"{"a":"\/"}"#,
            "{\"a\":\"\n\"}",
            r#"{"a":1.0}"#,
            r#"{"a":1e2}"#,
            r#"{"a":-0}"#,
            r#"{"a":01}"#,
            r#"{"a":-}"#,
            r#"{"a":1000000000000000000}"#,
            r#"{"a":nul}"#,
            r#"{"a":truer}"#,
            r#"{"a""b"}"#,
            r#"{"a":[1 ]}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":"#,
            r#"{"a":"b}"#,
            r#"{"a":"b\"#,
        ] {
            check(text, false);
        }
        let deep = |levels| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        check(&deep(DEEPEST), true);
        check(&deep(DEEPEST + 1), false);
    }

    proptest! {
        #[test]
        fn whatever_is_taken_comes_to_the_same(parts in prop::collection::vec(0..PARTS.len(), 0..14)) {
            let text: String = parts.iter().map(|part| PARTS[*part]).collect();
            for text in [format!("{{{text}}}"), format!("{{\"z\":1,{text},\"b\":0}}")] {
                if let Some(short) = normal(&text) {
                    prop_assert_eq!(short, normalised(arguments(&text)));
                }
            }
        }
    }

    /// What arguments are made of.
    const PARTS: [&str; 16] = [
        "\"a\":", "\"b\":", "\"\":", "1", "-7", "\"\\n\"", "\"x\"", ",", ",", "{", "}", "[", "]",
        "null", " ", "\\u0041",
    ];
}
