//! A provider's deviations from plain OpenAI, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    /// Tools: how many, their names and schemas.
    #[serde(default)]
    pub tools: ToolProfile,
    /// The provider's cache: how it is told what to keep.
    #[serde(default)]
    pub cache: CacheProfile,
    /// Answers that must fit a schema.
    #[serde(default)]
    pub output: OutputProfile,
    /// How tokens are reported.
    #[serde(default)]
    pub usage: UsageProfile,
    /// Words, in lower case, by which the provider says that a request is too long, beside those
    /// that are known of all.
    #[serde(default)]
    pub overflow: Vec<String>,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            name: "openai".to_owned(),
            reasoning: ReasoningProfile::default(),
            calls: CallProfile::default(),
            messages: MessageProfile::default(),
            parameters: ParameterProfile::default(),
            tools: ToolProfile::default(),
            cache: CacheProfile::default(),
            output: OutputProfile::default(),
            usage: UsageProfile::default(),
            overflow: Vec::new(),
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
    /// The form of ids.
    #[serde(default)]
    pub ids: CallIds,
    /// The longest id the provider takes, in characters.
    #[serde(default = "forty")]
    pub id_max: u32,
    /// Members that stand in for a signature in the first call of a message that has none, such as
    /// one of another model; empty: the provider misses nothing.
    #[serde(default)]
    pub unsigned: Map<String, Value>,
}

fn forty() -> u32 {
    40
}

impl Default for CallProfile {
    fn default() -> Self {
        Self {
            signed_arguments: SignedArguments::default(),
            ids: CallIds::default(),
            id_max: forty(),
            unsigned: Map::new(),
        }
    }
}

/// The form of the ids of calls on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallIds {
    /// `call_17_2`.
    #[default]
    Plain,
    /// Exactly nine letters and digits.
    Nine,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageProfile {
    /// What stands for the content of an assistant's message that has calls but no text.
    #[serde(default)]
    pub empty_content: EmptyContent,
    /// Which message may follow which.
    #[serde(default)]
    pub order: MessageOrder,
    /// Whether a user's message may follow a result; if not, its text is added to the result.
    #[serde(default = "yes")]
    pub user_after_tool: bool,
}

impl Default for MessageProfile {
    fn default() -> Self {
        Self {
            empty_content: EmptyContent::default(),
            order: MessageOrder::default(),
            user_after_tool: yes(),
        }
    }
}

impl MessageProfile {
    /// Whether messages that stand side by side may have to become one.
    pub fn merges(&self) -> bool {
        self.order == MessageOrder::Alternate || !self.user_after_tool
    }
}

/// Which message may follow which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageOrder {
    /// Any.
    #[default]
    Any,
    /// User and assistant take turns, so neighbours of one role become one message.
    Alternate,
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
    /// Parameters that are not sent, whatever the settings say.
    #[serde(default)]
    pub leave_out: Vec<String>,
    /// Further members of every request.
    #[serde(default)]
    pub add: Map<String, Value>,
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
            leave_out: Vec::new(),
            add: Map::new(),
        }
    }
}

impl ParameterProfile {
    /// Whether a parameter may be sent.
    pub fn takes(&self, name: &str) -> bool {
        !self.leave_out.iter().any(|left_out| left_out == name)
    }
}

/// What a provider takes as tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolProfile {
    /// The form in which schemas of arguments are sent.
    #[serde(default)]
    pub schema: SchemaForm,
    /// The most tools of a request.
    #[serde(default = "hundred_and_twenty_eight")]
    pub max: u32,
    /// The longest name, in characters. A name begins with a letter or an underscore and holds
    /// letters, digits, underscores and hyphens.
    #[serde(default = "sixty_four")]
    pub name_max: u32,
}

fn hundred_and_twenty_eight() -> u32 {
    128
}

fn sixty_four() -> u32 {
    64
}

impl Default for ToolProfile {
    fn default() -> Self {
        Self {
            schema: SchemaForm::default(),
            max: hundred_and_twenty_eight(),
            name_max: sixty_four(),
        }
    }
}

/// The form in which JSON Schemas are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchemaForm {
    /// As they are.
    #[default]
    Full,
    /// Without what a provider of little patience refuses: references, alternatives beside a type,
    /// `additionalProperties`, arrays without items.
    Plain,
}

/// How a provider's cache is told what to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheProfile {
    /// What is marked.
    #[serde(default)]
    pub markers: CacheMarkers,
    /// Whether requests carry a key by which they find their cache.
    #[serde(default)]
    pub key: bool,
}

/// What of a request is marked for the provider's cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheMarkers {
    /// Nothing: the provider finds out by itself.
    #[default]
    None,
    /// The instructions, and with them the tools before them.
    Instructions,
    /// The request, whose newest part the provider marks.
    Request,
}

/// How a provider takes a schema that answers must fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputProfile {
    /// The form of `response_format`.
    #[serde(default)]
    pub format: OutputFormat,
    /// Whether it may be sent together with tools.
    #[serde(default = "yes")]
    pub beside_tools: bool,
}

impl Default for OutputProfile {
    fn default() -> Self {
        Self {
            format: OutputFormat::default(),
            beside_tools: yes(),
        }
    }
}

/// How a provider is told the form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// By the schema.
    #[default]
    JsonSchema,
    /// By asking for some JSON object.
    JsonObject,
    /// By the instructions alone.
    None,
}

/// How a provider reports tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageProfile {
    /// Whether tokens read from a cache, and those written to it, are left out of those read.
    #[serde(default)]
    pub cached_apart: bool,
}
