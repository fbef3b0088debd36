//! The kinds of values that say what compaction does: a word, or a mapping of several.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};

use crate::config::value::schema;
use crate::exchange::{Hint, Treatment};

/// Whether something stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Keeping {
    /// It stays.
    Keep,
    /// It is left out.
    Strip,
}

/// Whether a rule ends in a summary: a mapping says yes, `null` no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryChoice(pub Option<SummaryWords>);

/// What is said to whoever writes a rule's summary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SummaryWords {
    /// What it must preserve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// The person's words in the request for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// The keys of a rule's summary.
const SUMMARY_KEYS: &[&str] = &["focus", "instructions"];

impl<'de> Deserialize<'de> for SummaryChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SummaryVisitor)
    }
}

struct SummaryVisitor;

impl<'de> Visitor<'de> for SummaryVisitor {
    type Value = SummaryChoice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{} for a summary or null for none")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(SummaryChoice(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut words = SummaryWords::default();
        while let Some(key) = map.next_key::<String>()? {
            let target = match key.as_str() {
                "focus" => &mut words.focus,
                "instructions" => &mut words.instructions,
                key => return Err(de::Error::unknown_field(key, SUMMARY_KEYS)),
            };
            let said: Option<String> = map.next_value()?;
            *target = said.filter(|said| !said.trim().is_empty());
        }
        Ok(SummaryChoice(Some(words)))
    }
}

impl Serialize for SummaryChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

schema!(SummaryChoice: {
    "type": ["object", "null"],
    "properties": {
        "focus": {"type": ["string", "null"]},
        "instructions": {"type": ["string", "null"]}
    },
    "additionalProperties": false
});

/// What compaction by hints does with calls, as far as it is said: a word for both halves, or
/// one for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintChoice {
    request: Option<Treatment>,
    response: Option<Treatment>,
}

impl HintChoice {
    /// The hint with what this says replaced.
    pub fn over(self, hint: Hint) -> Hint {
        Hint::new(
            self.request.unwrap_or(hint.request),
            self.response.unwrap_or(hint.response),
        )
    }

    /// Writes the halves of which something is said.
    fn put_halves<M: SerializeMap>(self, map: &mut M) -> Result<(), M::Error> {
        for (half, treatment) in [("request", self.request), ("response", self.response)] {
            if let Some(treatment) = treatment {
                map.serialize_entry(half, &treatment)?;
            }
        }
        Ok(())
    }
}

/// What compaction does with the calls of one tool, as far as it is said: a hint, and with
/// `dedup: false` that no call makes another superfluous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallsChoice {
    /// The hint.
    pub hint: HintChoice,
    /// Whether calls that a later one made superfluous may go.
    pub dedup: Option<bool>,
}

const WORDS: &[&str] = &["keep", "strip", "strip-requests", "strip-responses", "omit"];

/// The words for one half.
const TREATMENTS: &[&str] = &["keep", "strip", "omit"];

/// The keys that may stand in a mapping.
struct ChoiceVisitor(&'static [&'static str]);

impl<'de> Visitor<'de> for ChoiceVisitor {
    type Value = CallsChoice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {} or a mapping", WORDS.join(", "))
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Self::Value, E> {
        let (request, response) = match word {
            "keep" => (Treatment::Keep, Treatment::Keep),
            "strip" => (Treatment::Strip, Treatment::Strip),
            "strip-requests" => (Treatment::Strip, Treatment::Keep),
            "strip-responses" => (Treatment::Keep, Treatment::Strip),
            "omit" => (Treatment::Omit, Treatment::Omit),
            _ => return Err(E::unknown_variant(word, WORDS)),
        };
        let hint = HintChoice {
            request: Some(request),
            response: Some(response),
        };
        Ok(CallsChoice { hint, dedup: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut choice = CallsChoice::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                key if !self.0.contains(&key) => {
                    return Err(de::Error::unknown_field(key, self.0));
                }
                "request" => choice.hint.request = Some(map.next_value()?),
                "response" => choice.hint.response = Some(map.next_value()?),
                _ => choice.dedup = Some(map.next_value()?),
            }
        }
        Ok(choice)
    }
}

impl Serialize for HintChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let word = match (self.request, self.response) {
            (Some(Treatment::Keep), Some(Treatment::Keep)) => Some("keep"),
            (Some(Treatment::Strip), Some(Treatment::Strip)) => Some("strip"),
            (Some(Treatment::Strip), Some(Treatment::Keep)) => Some("strip-requests"),
            (Some(Treatment::Keep), Some(Treatment::Strip)) => Some("strip-responses"),
            (Some(Treatment::Omit), Some(Treatment::Omit)) => Some("omit"),
            _ => None,
        };
        if let Some(word) = word {
            return serializer.serialize_str(word);
        }
        let mut map = serializer.serialize_map(None)?;
        self.put_halves(&mut map)?;
        map.end()
    }
}

impl Serialize for CallsChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(dedup) = self.dedup else {
            return self.hint.serialize(serializer);
        };
        let mut map = serializer.serialize_map(None)?;
        self.hint.put_halves(&mut map)?;
        map.serialize_entry("dedup", &dedup)?;
        map.end()
    }
}

schema!(HintChoice: {
    "anyOf": [
        {"type": "string", "enum": WORDS},
        {
            "type": "object",
            "properties": {
                "request": {"type": "string", "enum": TREATMENTS},
                "response": {"type": "string", "enum": TREATMENTS}
            },
            "additionalProperties": false
        }
    ]
});

schema!(CallsChoice: {
    "anyOf": [
        {"type": "string", "enum": WORDS},
        {
            "type": "object",
            "properties": {
                "request": {"type": "string", "enum": TREATMENTS},
                "response": {"type": "string", "enum": TREATMENTS},
                "dedup": {"type": "boolean"}
            },
            "additionalProperties": false
        }
    ]
});

impl<'de> Deserialize<'de> for HintChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = ChoiceVisitor(&["request", "response"]);
        Ok(deserializer.deserialize_any(visitor)?.hint)
    }
}

impl<'de> Deserialize<'de> for CallsChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChoiceVisitor(&["request", "response", "dedup"]))
    }
}
