//! Messages to body bytes.
//!
//! A body is compact JSON whose fields stand in a fixed order with the messages last, so that from
//! one request to the next its bytes only grow. [`Head`] is rendered once and each message once;
//! [`digest`] goes on from the saved state of the unchanged prefix. Nothing here knows where messages
//! come from.

mod object;
mod string;
pub mod arrange;
pub mod lower;
pub mod offered;
pub mod call;
pub mod parameter;
pub mod chat;
pub mod responses;
pub mod digest;
pub mod judge;

use std::sync::Arc;

use serde_json::Value;

use crate::exchange::{Message, ToolSpec};
use crate::id::Digest;
use crate::setup::{Api, Model, OutputSchema, Setup};
use crate::transcript::BodyDigest;

/// What closes a body after the last message.
pub const TAIL: &[u8] = b"]}";

/// Everything of a body that stands before its messages.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The model that is asked.
    pub model: &'a Model,
    /// The tools it is told of.
    pub tools: &'a [ToolSpec],
    /// The system text.
    pub instructions: &'a str,
    /// The schema that the last answer must fit.
    pub output: Option<&'a OutputSchema>,
    /// What it is asked for.
    pub wanted: Wanted,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The next step of the work.
    Work,
    /// A text: tools are told of but must not be called.
    Text,
    /// The answer, in the form that it must have: tools must not be called.
    Answer,
}

impl<'a> Head<'a> {
    /// The head of a round's requests.
    pub fn of(setup: &'a Setup) -> Self {
        Self {
            model: &setup.wire.models.main,
            tools: &setup.wire.tools,
            instructions: &setup.wire.instructions,
            output: setup.policy.output.as_ref(),
            wanted: Wanted::Work,
        }
    }

    /// Its bytes, up to where the first message stands.
    pub fn bytes(&self) -> Vec<u8> {
        match self.model.api {
            Api::Chat => chat::head(self),
            Api::Responses => responses::head(self),
        }
    }

    /// Whether a comma stands between it and the first message.
    pub fn has_message(&self) -> bool {
        match self.model.api {
            Api::Chat => !self.instructions.is_empty(),
            Api::Responses => false,
        }
    }
}

impl Head<'_> {
    /// Whether a parameter of ours may be sent: what a profile adds under its name takes its place.
    fn takes(&self, name: &str) -> bool {
        let parameters = &self.model.profile.parameters;
        parameters.takes(name) && !parameters.add.contains_key(name)
    }

    /// The parameters that the profile adds, but nothing that a request is made of.
    fn added(&self) -> impl Iterator<Item = (&String, &Value)> {
        let parameters = &self.model.profile.parameters;
        let may = |name: &str| {
            let forbids = name == "tool_choice" && self.wanted != Wanted::Work;
            parameters.takes(name) && !parameter::is_needed(name) && !forbids
        };
        parameters.add.iter().filter(move |(name, _)| may(name))
    }

    /// The tools that the body tells of.
    fn told(&self) -> &[ToolSpec] {
        // Where a form and tools do not go together, the answer is asked for without tools.
        let apart = self.output.is_some() && !self.model.profile.output.beside_tools;
        if apart && self.wanted == Wanted::Answer {
            &[]
        } else {
            self.tools
        }
    }

    /// Whether the body says that none of its tools may be called.
    fn forbids_calls(&self) -> bool {
        let takes = self.model.profile.parameters.takes("tool_choice");
        takes && self.wanted != Wanted::Work && !self.told().is_empty()
    }

    /// The schema that the reply must fit by the body's own words.
    fn form(&self) -> Option<&OutputSchema> {
        let beside = self.model.profile.output.beside_tools || self.tools.is_empty();
        self.output.filter(|_| match self.wanted {
            Wanted::Work => beside,
            Wanted::Text => false,
            Wanted::Answer => true,
        })
    }
}

/// Appends one message as this model reads it, without a comma.
pub fn message(out: &mut Vec<u8>, message: &Message<'_>, model: &Model) {
    match model.api {
        Api::Chat => chat::message(out, message, &model.profile),
        Api::Responses => responses::message(out, message, &model.profile),
    }
}

/// The version of the functions that build a body. A change of any byte that they produce for an
/// old transcript takes a new number.
pub const RENDERER: u32 = 1;

/// The bytes of a request, with their digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// What is sent, exactly.
    pub bytes: Arc<[u8]>,
    /// SHA-256 of the bytes.
    pub sha256: Digest,
}

impl Body {
    /// The body with these bytes, digested from the first to the last.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        let sha256 = Digest::of(&bytes);
        Self { bytes, sha256 }
    }

    /// What a `request` entry says of it.
    pub fn digest(&self) -> BodyDigest {
        BodyDigest {
            sha256: self.sha256,
            bytes: self.bytes.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What stands in a body before its messages: `Wanted::Work`, then `Wanted::Text`.
    fn check(api: Api, expected: [&str; 2]) {
        let mut model = Model::named("m");
        model.api = api;
        model.parameters.temperature = Some(0.5);
        let added = json!({
            "messages": [], "model": "other", "temperature": 1, "tool_choice": "auto", "tools": [],
        });
        model.profile.parameters.add = added.as_object().unwrap().clone();
        let tool = ToolSpec {
            name: "Read".to_owned(),
            description: String::new(),
            schema: lower::any_object(),
            meta: crate::exchange::ToolMeta::default(),
        };
        let heads = [Wanted::Work, Wanted::Text].map(|wanted| Head {
            model: &model,
            tools: std::slice::from_ref(&tool),
            instructions: "",
            output: None,
            wanted,
        });
        assert_eq!(
            heads.map(|head| String::from_utf8(head.bytes()).unwrap()),
            expected
        );
    }

    #[test]
    fn what_a_profile_adds_takes_the_place_of_ours_and_no_key_stands_twice() {
        check(
            Api::Chat,
            [
                r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":1,"tool_choice":"auto","tools":[{"type":"function","function":{"name":"Read","description":"","parameters":{"type":"object","properties":{}}}}],"messages":["#,
                r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":1,"tools":[{"type":"function","function":{"name":"Read","description":"","parameters":{"type":"object","properties":{}}}}],"tool_choice":"none","messages":["#,
            ],
        );
        check(
            Api::Responses,
            [
                r#"{"model":"m","stream":true,"store":false,"include":["reasoning.encrypted_content"],"temperature":1,"tool_choice":"auto","tools":[{"type":"function","name":"Read","description":"","parameters":{"type":"object","properties":{}},"strict":false}],"input":["#,
                r#"{"model":"m","stream":true,"store":false,"include":["reasoning.encrypted_content"],"temperature":1,"tools":[{"type":"function","name":"Read","description":"","parameters":{"type":"object","properties":{}},"strict":false}],"tool_choice":"none","input":["#,
            ],
        );
    }
}
