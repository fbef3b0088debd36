//! What is sent: instructions, tools, and models with their profiles in full.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exchange::ToolSpec;

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
            api: Api::default(),
            profile: Profile::default(),
            window: None,
            parameters: Parameters::default(),
        }
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
}

/// A provider's deviations, as data. The default is plain OpenAI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// The name it goes by.
    pub name: String,
    /// Reasoning: what is read, sent back, and may be removed.
    #[serde(default)]
    pub reasoning: ReasoningProfile,
    /// Calls: ids and signatures.
    #[serde(default)]
    pub calls: CallProfile,
    /// Messages: order and empty content.
    #[serde(default)]
    pub messages: MessageProfile,
    /// Parameters: names, and which to leave out.
    #[serde(default)]
    pub parameters: ParameterProfile,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            name: "openai".to_owned(),
            reasoning: ReasoningProfile::default(),
            calls: CallProfile::default(),
            messages: MessageProfile::default(),
            parameters: ParameterProfile::default(),
        }
    }
}

/// How a provider treats reasoning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReasoningProfile {
    /// Whether reasoning goes back to the provider, under the field it came in.
    #[serde(default)]
    pub send_back: SendBack,
    /// Which reasoning compaction may leave out.
    #[serde(default)]
    pub removable: Removable,
}

/// Whether reasoning goes back to the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SendBack {
    /// It is never sent.
    Never,
    /// It is sent with every message that has it.
    #[default]
    Always,
}

/// Which reasoning compaction may leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Removable {
    /// All of it.
    #[default]
    Any,
    /// That of turns that are over.
    ClosedTurns,
    /// None.
    Never,
}

/// How a provider treats calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallProfile {
    /// What becomes of a signature when the arguments it signs are stubbed.
    #[serde(default)]
    pub signed_arguments: SignedArguments,
    /// The longest id the provider takes, in characters.
    #[serde(default = "forty")]
    pub id_max: u32,
}

fn forty() -> u32 {
    40
}

impl Default for CallProfile {
    fn default() -> Self {
        Self {
            signed_arguments: SignedArguments::default(),
            id_max: forty(),
        }
    }
}

/// What becomes of a signature when the arguments it signs would be stubbed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignedArguments {
    /// The arguments of a signed call are not stubbed.
    #[default]
    Keep,
    /// The signature is left out together with the arguments.
    DropSignature,
}

/// How a provider wants messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageProfile {
    /// What stands for the content of an assistant's message that has calls but no text.
    #[serde(default)]
    pub empty_content: EmptyContent,
}

/// What stands for the content of an assistant's message without text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EmptyContent {
    /// The field is left out.
    #[default]
    Omit,
    /// `null`.
    Null,
    /// `""`.
    Empty,
}

/// How a provider names parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParameterProfile {
    /// The field for the most tokens of output.
    #[serde(default = "max_completion_tokens")]
    pub max_output_tokens: String,
    /// Whether usage must be asked for when streaming.
    #[serde(default = "yes")]
    pub stream_usage: bool,
}

fn max_completion_tokens() -> String {
    "max_completion_tokens".to_owned()
}

fn yes() -> bool {
    true
}

impl Default for ParameterProfile {
    fn default() -> Self {
        Self {
            max_output_tokens: max_completion_tokens(),
            stream_usage: yes(),
        }
    }
}
