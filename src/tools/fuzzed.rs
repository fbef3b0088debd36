//! What holds of the check of a call, whatever a model wrote: the body of a fuzz target below
//! `fuzz/`, which panics where a promise is broken.
//!
//! Only fuzz builds and tests have it; the tests replay the inputs that are kept. An input is one
//! line, the name of the tool, then the arguments.

#![expect(clippy::missing_panics_doc, reason = "it is there to panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::tools::{Outcome, Toolbox, typed};

/// The longest text of what is wrong with a call, in bytes.
const ERROR_MAX: usize = 16 << 10;

/// Arguments without a rule.
type Anything = BTreeMap<String, Value>;

/// Arguments with rules.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "of some only that they can be read matters")]
struct Ruled {
    path: String,
    #[serde(default)]
    deep: Option<Box<Ruled>>,
    #[serde(default)]
    words: Vec<String>,
    #[schemars(range(min = 1, max = 10))]
    few: u8,
}

impl Ruled {
    fn holds(&self) -> bool {
        let deep = self.deep.as_ref().is_none_or(|deep| deep.holds());
        (1..=10).contains(&self.few) && deep
    }
}

fn toolbox() -> &'static Toolbox {
    static TOOLBOX: OnceLock<Toolbox> = OnceLock::new();
    TOOLBOX.get_or_init(|| {
        let done = || async { Outcome::ok("done") };
        Toolbox::builtin()
            .with(typed("Any", "Takes it.", move |_: Anything| done()))
            .with(typed("Ruled", "Takes some.", move |_: Ruled| done()))
    })
}

/// A call passes only with one JSON object in which nothing stands twice, and which fits.
pub fn arguments(input: &[u8]) {
    let input = String::from_utf8_lossy(input);
    let (name, text) = input.split_once('\n').unwrap_or((&input, ""));
    let checked = toolbox().check(name, text);
    assert_eq!(checked, toolbox().check(name, text));
    match &checked {
        Ok(taken) => {
            assert!(toolbox().find(name).is_some(), "an unknown tool");
            assert!(is_strict_object(taken), "no strict object: {taken}");
            assert_eq!(toolbox().check(name, taken).as_ref(), Ok(taken));
        }
        Err(error) => {
            assert!(
                !error.trim().is_empty() && error.len() <= ERROR_MAX,
                "{error}"
            );
        }
    }
    // White space is what JSON calls so.
    let trim = |text: &str| text.trim_matches([' ', '\t', '\n', '\r']).to_owned();
    match name {
        "Any" => {
            let held = serde_json::from_str::<String>(text).ok();
            let object = trim(held.as_deref().unwrap_or(text));
            let is_taken = trim(text).is_empty() || is_strict_object(&object);
            assert_eq!(checked.is_ok(), is_taken);
        }
        "Ruled" => {
            // Whole floats are integers to a schema, and none to the tool, which says so itself.
            let read = checked
                .ok()
                .map(|taken| serde_json::from_str::<Ruled>(&taken));
            assert!(match read {
                Some(Ok(ruled)) => ruled.holds(),
                Some(Err(error)) => error.to_string().contains("floating point"),
                None => true,
            });
        }
        _ => {}
    }
}

/// Whether a text is one JSON object, no deeper than allowed, in which nothing stands twice: said
/// without the decoder that is tested.
fn is_strict_object(text: &str) -> bool {
    let depth = serde_json::from_str::<Depth>(text).map(|Depth(depth)| depth);
    let is_object = text.starts_with('{');
    is_object && depth.is_ok_and(|depth| depth <= 64)
}

/// How deep a value goes; none is read in which a name stands twice.
struct Depth(usize);

impl<'de> Deserialize<'de> for Depth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Levels).map(Depth)
    }
}

struct Levels;

impl<'de> Visitor<'de> for Levels {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_bool<E>(self, _: bool) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_i64<E>(self, _: i64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_u64<E>(self, _: u64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<usize, E> {
        let fits = -2_f64.powi(63) < value && value < 2_f64.powi(64);
        fits.then_some(0).ok_or_else(|| E::custom("too large"))
    }

    fn visit_str<E>(self, _: &str) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<usize, A::Error> {
        let mut inside = 0;
        while let Some(Depth(depth)) = items.next_element()? {
            inside = inside.max(depth);
        }
        Ok(inside + 1)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<usize, A::Error> {
        let (mut inside, mut names) = (0, BTreeSet::new());
        while let Some((name, Depth(depth))) = members.next_entry::<String, Depth>()? {
            inside = inside.max(depth);
            if !names.insert(name) {
                return Err(serde::de::Error::custom("twice"));
            }
        }
        Ok(inside + 1)
    }
}

#[cfg(test)]
mod tests {
    use crate::record::fuzzed::replay;

    #[test]
    fn what_fuzzing_kept_holds() {
        replay("arguments", super::arguments);
    }
}
