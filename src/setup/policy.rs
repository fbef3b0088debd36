//! What decides: limits, compaction in full, prices, sandbox.
//!
//! The defaults here are the built-in settings. Durations are in milliseconds, money in
//! micro-dollars, ratios as fractions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::exchange::Treatment::Strip;
use crate::exchange::{Hint, is_false};
use crate::setup::Sandbox;

/// Everything a step or a plan depends on besides the entries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Policy {
    /// When a run must stop, and what it takes in.
    pub limits: Limits,
    /// How failed requests are asked again.
    pub retries: Retries,
    /// When and how the context is compacted.
    pub compaction: Compaction,
    /// What tokens cost; absent: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// What tools may do.
    pub sandbox: Sandbox,
    /// The command that must exit with 0 before the work may end; absent: the model's word counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The schema that the last answer must fit; absent: any text will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputSchema>,
    /// Tools that a person pruned, which are not offered again by themselves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pruned: Vec<String>,
}

/// A JSON Schema that the last answer must fit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OutputSchema {
    /// The name under which it is sent.
    pub name: String,
    /// The schema, as it is sent.
    #[schemars(with = "serde_json::Value")]
    pub schema: Box<RawValue>,
}

impl PartialEq for OutputSchema {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.schema.get() == other.schema.get()
    }
}

/// When a run must stop, and what it takes in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// The most rounds since the last end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// The most tokens, in and out, since the last end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The most money since the last end, in micro-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd_micro: Option<u64>,
    /// The longest time since the last end or start, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_time_ms: Option<u64>,
    /// The longest text that a person hands in, in characters.
    pub text_chars: u64,
    /// The longest result of one call as the model reads it, in characters.
    pub result_chars: u64,
    /// The most calls of one response that are run.
    pub calls: u32,
    /// The most reading calls that run at the same time.
    pub parallel_calls: u32,
    /// Identical failing calls after which the model is warned.
    pub failing_calls_warn: u32,
    /// Identical failing calls after which the run ends as stuck.
    pub failing_calls_stop: u32,
    /// How often in one turn the model is sent back to work because the check fails.
    pub check_rounds: u32,
    /// How often in a row the model is reminded that a reply which announces work ends the run.
    pub nudges: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rounds: Some(500),
            tokens: None,
            cost_usd_micro: None,
            wall_time_ms: None,
            text_chars: 200_000,
            result_chars: 40_000,
            calls: 64,
            parallel_calls: 8,
            failing_calls_warn: 3,
            failing_calls_stop: 6,
            check_rounds: 5,
            nudges: 2,
        }
    }
}

/// How failed requests are asked again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Retries {
    /// The most attempts at one request, the first included.
    pub attempts: u32,
    /// The longest time from the first failure of a request to its last attempt.
    pub total_ms: u64,
    /// The longest wait a server may ask for; a longer one ends the run, resumable.
    pub wait_ms: u64,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            attempts: 6,
            total_ms: 600_000,
            wait_ms: 600_000,
        }
    }
}

/// When and how the context is compacted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Compaction {
    /// Whether overlays are laid without a person asking, and `Compact` is offered.
    pub enabled: bool,
    /// How tokens are estimated.
    pub estimate: EstimateRule,
    /// The rule for `compact` without a name.
    pub default_rule: String,
    /// Micro-compaction.
    pub micro: Micro,
    /// Automatic compaction.
    pub auto: Auto,
    /// How summaries are asked for.
    pub summary: SummaryPolicy,
    /// When the model's own `Compact` is granted.
    pub tool: ToolPolicy,
    /// Named rules.
    pub rules: BTreeMap<String, Rule>,
    /// Commands that are asked before a pass and told after it; absent: none are.
    #[serde(skip_serializing_if = "Hooks::is_default")]
    pub hooks: Hooks,
}

impl Default for Compaction {
    fn default() -> Self {
        let light = Rule {
            strip_reasoning: true,
            ..Rule::default()
        };
        let default = Rule {
            tools: Some(Hint::new(Strip, Strip)),
            ..light.clone()
        };
        let heavy = Rule {
            summary: true,
            ..Rule::default()
        };
        Self {
            enabled: true,
            estimate: EstimateRule::default(),
            default_rule: "default".to_owned(),
            micro: Micro::default(),
            auto: Auto::default(),
            summary: SummaryPolicy::default(),
            tool: ToolPolicy::default(),
            rules: [("default", default), ("light", light), ("heavy", heavy)]
                .map(|(name, rule)| (name.to_owned(), rule))
                .into(),
            hooks: Hooks::default(),
        }
    }
}

/// How tokens are estimated from characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EstimateRule {
    /// Narrow characters / 4 and wide ones whole, times a factor learned from the provider's
    /// own counts.
    #[default]
    Calibrated,
    /// Exactly characters / 4.
    Chars,
}

/// When old tool results are replaced by stubs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Micro {
    /// Whether it is done at all.
    pub enabled: bool,
    /// The number of newest results that are never touched.
    pub keep_recent: u32,
    /// Results of at most this many characters stay.
    pub min_chars: u64,
    /// A pass waits until it frees this many tokens.
    pub min_gain_tokens: u64,
    /// … and so many times what stands behind the first message that it changes, which is read afresh
    /// once. Absent: it does not wait for that.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub min_gain_ratio: f64,
    /// After this pause the provider's cache is taken to be gone, and any gain will do.
    pub cold_after_ms: u64,
    /// Tools whose calls are never touched.
    pub exempt: Vec<String>,
    /// Whether arguments as long as that go as well, of calls as old, where the hint of the tool strips
    /// its requests. Absent: only results go.
    #[serde(default, skip_serializing_if = "is_false")]
    pub arguments: bool,
}

impl Default for Micro {
    fn default() -> Self {
        let exempt = [
            "LoadSkill",
            "Task",
            "TodoWrite",
            "TodoRead",
            "Ask",
            "Compact",
        ];
        Self {
            enabled: true,
            keep_recent: 8,
            min_chars: 800,
            min_gain_tokens: 10_000,
            min_gain_ratio: 1.5,
            cold_after_ms: 300_000,
            exempt: exempt.map(str::to_owned).into(),
            arguments: true,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(part: &f64) -> bool {
    *part == 0.0
}

/// When and how far the context is compacted by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Auto {
    /// Whether it is done at all.
    pub enabled: bool,
    /// Compact above this many tokens…
    pub token_threshold: u64,
    /// … or above this part of the window: the smaller one counts.
    pub trigger_ratio: f64,
    /// How far to compact, as a part of what the trigger leaves after instructions and specs; the
    /// next two are parts of the same.
    pub target_ratio: f64,
    /// The most that newest rounds keep beside a summary.
    pub tail_ratio: f64,
    /// The most that all summaries take together.
    pub bands_ratio: f64,
    /// Rounds between summaries.
    pub min_rounds: u32,
    /// What happens when no summary can be had.
    pub on_failure: OnFailure,
}

impl Default for Auto {
    fn default() -> Self {
        Self {
            enabled: true,
            token_threshold: 110_000,
            trigger_ratio: 0.75,
            target_ratio: 0.4,
            tail_ratio: 0.25,
            bands_ratio: 0.2,
            min_rounds: 5,
            on_failure: OnFailure::Continue,
        }
    }
}

/// What happens when no summary can be had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The run goes on, with a summary by rules if it must.
    #[default]
    Continue,
    /// The run ends.
    Stop,
}

/// How summaries are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SummaryPolicy {
    /// The most tokens of one summary.
    pub max_tokens: u64,
    /// What a person wants said in every summary request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

impl Default for SummaryPolicy {
    fn default() -> Self {
        Self {
            max_tokens: 20_000,
            instructions: None,
        }
    }
}

/// When the model's own `Compact` is granted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolPolicy {
    /// Whether the tool is offered.
    pub enabled: bool,
    /// The part of the trigger below which it does not pay.
    pub min_ratio: f64,
    /// Rounds after a summary in which it is not granted again.
    pub cooldown_rounds: u32,
}

impl Default for ToolPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            min_ratio: 0.3,
            cooldown_rounds: 5,
        }
    }
}

/// A named rule: what to lay on which rounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are switches of a rule, each its own"
)]
pub struct Rule {
    /// Leave reasoning out.
    pub strip_reasoning: bool,
    /// What becomes of calls; a tool's own hint may keep more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Hint>,
    /// Leave out calls that a later one made superfluous.
    #[serde(skip_serializing_if = "is_false")]
    pub dedup: bool,
    /// Leave out the texts that were handed in with messages.
    #[serde(skip_serializing_if = "is_false")]
    pub strip_attachments: bool,
    /// Replace the rounds by a summary.
    pub summary: bool,
    /// What that summary must preserve, unless something else is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// What a person wants said in the request for that summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Rounds at the start that stay.
    pub keep_first: u32,
    /// Rounds at the end that stay.
    pub keep_last: u32,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            strip_reasoning: false,
            tools: None,
            dedup: false,
            strip_attachments: false,
            summary: false,
            focus: None,
            instructions: None,
            keep_first: 0,
            keep_last: 3,
        }
    }
}

/// Commands of a person's own around each pass but those of micro-compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Hooks {
    /// The command that is asked before a pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The command that is told after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How long each may take, in milliseconds.
    pub timeout_ms: u64,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            before: None,
            after: None,
            timeout_ms: 10_000,
        }
    }
}

impl Hooks {
    /// Whether there is nothing to run, and nothing else is said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What tokens cost, in micro-dollars per million tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Prices {
    /// Tokens read afresh.
    pub input_usd_micro: u64,
    /// Tokens read from a cache.
    pub cached_usd_micro: u64,
    /// Tokens written to a cache.
    pub cache_write_usd_micro: u64,
    /// Tokens written.
    pub output_usd_micro: u64,
}
