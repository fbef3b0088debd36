//! What is sent: instructions, tools, and models with their profiles in full.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exchange::ToolSpec;
use crate::setup::profile::Profile;

/// Everything a request depends on besides the entries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wire {
    /// The system text.
    pub instructions: String,
    /// The tools, in the order sent.
    #[serde(default)]
    pub tools: Vec<ToolSpec>,
    /// The models by role.
    pub models: Models,
}

/// The models of a run by role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Models {
    /// Works on the task.
    pub main: Model,
    /// Writes summaries; absent: the main model does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Model>,
    /// Writes summaries when the first cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Model>,
}

impl Models {
    /// The model that plays a role. Without a summary model the main one plays its part; without
    /// a fallback there is none.
    pub fn role(&self, role: Role) -> Option<&Model> {
        match role {
            Role::Main => Some(&self.main),
            Role::Summary => Some(self.summary.as_ref().unwrap_or(&self.main)),
            Role::Fallback => self.fallback.as_ref(),
        }
    }

    /// The same, to be changed.
    pub fn role_mut(&mut self, role: Role) -> Option<&mut Model> {
        match role {
            Role::Main => Some(&mut self.main),
            Role::Summary => Some(self.summary.as_mut().unwrap_or(&mut self.main)),
            Role::Fallback => self.fallback.as_mut(),
        }
    }
}

/// The part a model plays.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It works on the task.
    #[default]
    Main,
    /// It writes summaries.
    Summary,
    /// It writes summaries when the first cannot.
    Fallback,
}

/// One model and how it is spoken to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Model {
    /// Its name as the provider knows it.
    pub name: String,
    /// The server's scheme and host; absent: not known. Keys and paths are never recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The protocol.
    #[serde(default)]
    pub api: Api,
    /// The provider's deviations, in full.
    #[serde(default)]
    pub profile: Profile,
    /// The context window in tokens; absent: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Parameters of its requests.
    #[serde(default)]
    pub parameters: Parameters,
}

impl Model {
    /// The model of this name, spoken to as plain OpenAI, its window not known.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            server: None,
            api: Api::default(),
            profile: Profile::default(),
            window: None,
            parameters: Parameters::default(),
        }
    }
}

impl Model {
    /// Whether signed blocks of one are good for the other: they belong to the model and the
    /// provider that made them.
    pub fn made_by(&self, maker: &Self) -> bool {
        let of = |model: &Self| {
            let Self {
                name,
                server,
                api,
                profile,
                ..
            } = model;
            (name.clone(), server.clone(), *api, profile.name.clone())
        };
        of(self) == of(maker)
    }
}

/// The protocol a model is spoken to in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Chat Completions.
    #[default]
    Chat,
    /// Responses.
    Responses,
}

/// Parameters of a model's requests. What is absent is not sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parameters {
    /// The most tokens of output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How hard the model should think, in the provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// What the provider's cache knows this run by, so that its requests find what the ones before
    /// left there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<String>,
}
