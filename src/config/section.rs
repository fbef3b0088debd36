//! The sections of `config.yaml` as one source gives them: every key may be absent.
//!
//! The structs here are the only list of keys there is: what is unknown, what the nearest known
//! key is and what must stand in `config.yaml.example` all come from them.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::config::given::{Given, Stated};
use crate::config::value::{
    Duration, HintChoice, Keeping, Lasting, Ratio, SummaryChoice, SyncMode, Temperature, Usd,
};
use crate::setup::{Api, EstimateRule, OnFailure};

/// Reads a section; one whose keys are all commented out is empty.
fn or_empty<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads the sections below names, each of which may be empty as well.
fn or_empty_each<'de, T, D>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    let named: BTreeMap<String, Option<T>> = or_empty(deserializer)?;
    let section = |(name, section): (String, Option<T>)| (name, section.unwrap_or_default());
    Ok(named.into_iter().map(section).collect())
}

/// Declares a section: its keys, the sections in it, and the maps from names to sections in it.
macro_rules! section {
    (
        $(#[$meta:meta])* $section:ident
        $(keys { $($(#[$key_meta:meta])* $key:ident: $value:ty,)* })?
        $(sections { $($(#[$inner_meta:meta])* $inner:ident: $inner_section:ty,)* })?
        $(maps { $($(#[$map_meta:meta])* $map:ident: $named_section:ty,)* })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $section {
            $($($(#[$key_meta])* pub $key: Given<$value>,)*)?
            $($($(#[$inner_meta])* #[serde(deserialize_with = "or_empty")]
            pub $inner: $inner_section,)*)?
            $($($(#[$map_meta])* #[serde(deserialize_with = "or_empty_each")]
            pub $map: BTreeMap<String, $named_section>,)*)?
        }

        impl $section {
            /// What this source gives, laid over what the sources below give.
            #[must_use]
            pub fn over(self, below: Self) -> Self {
                $($(let $map = {
                    let mut merged = below.$map;
                    for (name, section) in self.$map {
                        let under = merged.remove(&name).unwrap_or_default();
                        merged.insert(name, section.over(under));
                    }
                    merged
                };)*)?
                Self {
                    $($($key: self.$key.or(below.$key),)*)?
                    $($($inner: self.$inner.over(below.$inner),)*)?
                    $($($map,)*)?
                }
            }

            /// Adds every key from here down; `<name>` stands for a name of the user's.
            fn list_keys(path: &str, list: &mut Vec<String>) {
                $($(list.push(format!("{path}{}", stringify!($key)));)*)?
                $($(<$inner_section>::list_keys(
                    &format!("{path}{}.", stringify!($inner)), list);)*)?
                $($(<$named_section>::list_keys(
                    &format!("{path}{}.<name>.", stringify!($map)), list);)*)?
            }

            /// Adds every key that is given from here down, in the order in which keys are declared.
            fn list_given(&self, path: &[&str], list: &mut Vec<Stated>) {
                $($(list.extend(self.$key.stated(&[path, &[stringify!($key)]].concat()));)*)?
                $($(self.$inner.list_given(&[path, &[stringify!($inner)]].concat(), list);)*)?
                $($(for (name, section) in &self.$map {
                    section.list_given(&[path, &[stringify!($map), name]].concat(), list);
                })*)?
            }
        }
    };
}

section! {
    /// The whole of it.
    Sections
    sections {
        /// The model and its server.
        model: ModelSection,
        /// How the context is kept small.
        compaction: CompactionSection,
        /// When a run stops, and what it takes in.
        limits: LimitsSection,
        /// What the model is told before the task.
        instructions: InstructionsSection,
        /// What tools may do.
        sandbox: SandboxSection,
        /// Where transcripts are kept.
        transcripts: TranscriptsSection,
    }
    maps {
        /// The tools by name, in lower case.
        tools: ToolSection,
    }
}

impl Sections {
    /// Every key there is, with dots between the levels.
    pub fn all_keys() -> Vec<String> {
        let mut list = Vec::new();
        Self::list_keys("", &mut list);
        list
    }

    /// Every key that is given, in the order in which keys are declared.
    pub(crate) fn all_given(&self) -> Vec<Stated> {
        let mut list = Vec::new();
        self.list_given(&[], &mut list);
        list
    }

    /// The same with the names of tools in lower case: they are found whatever case they are
    /// written in, since the names of variables have but one.
    #[must_use]
    pub(crate) fn with_folded_names(mut self) -> Self {
        let mut folded = BTreeMap::<String, ToolSection>::new();
        for (name, section) in self.tools {
            let under = folded.remove(&name.to_lowercase()).unwrap_or_default();
            folded.insert(name.to_lowercase(), section.over(under));
        }
        self.tools = folded;
        self
    }
}

section! {
    /// `model`: the model and its server.
    ModelSection
    keys {
        /// The model's name as the server knows it.
        name: Option<String>,
        /// Where the server is.
        base_url: Option<String>,
        /// The variable that holds the key for that server.
        api_key_env: Option<String>,
        /// The protocol.
        api: Api,
        /// The profile of the provider; none: chosen by name and address.
        profile: Option<String>,
        /// The context window, in tokens.
        context_window: Option<NonZeroU64>,
        /// The most tokens of one response.
        max_output_tokens: Option<NonZeroU64>,
        /// The sampling temperature.
        temperature: Option<Temperature>,
        /// How hard the model should think, in the provider's words.
        reasoning_effort: Option<String>,
    }
    sections {
        /// What tokens cost.
        prices: PricesSection,
        /// How long to wait for the server.
        timeouts: TimeoutsSection,
        /// How failed requests are asked again.
        retries: RetriesSection,
    }
}

section! {
    /// `model.prices`, in US dollars per million tokens.
    PricesSection
    keys {
        /// Tokens read afresh.
        input: Option<Usd>,
        /// Tokens read from a cache.
        cached: Option<Usd>,
        /// Tokens written to a cache.
        cache_write: Option<Usd>,
        /// Tokens written.
        output: Option<Usd>,
    }
}

section! {
    /// `model.timeouts`.
    TimeoutsSection
    keys {
        /// For a connection.
        connect: Lasting,
        /// Without any byte.
        bytes: Lasting,
        /// Without text, reasoning or calls.
        progress: Lasting,
    }
}

section! {
    /// `model.retries`.
    RetriesSection
    keys {
        /// The most attempts at one request.
        attempts: NonZeroU32,
        /// The longest time spent waiting on one request.
        total: Duration,
        /// The longest single wait that is slept through.
        wait: Duration,
    }
}

section! {
    /// `compaction`.
    CompactionSection
    keys {
        /// Whether anything is laid without being asked for.
        enabled: bool,
        /// How tokens are estimated.
        estimate: EstimateRule,
        /// The rule for `compact` without a name.
        default_rule: String,
    }
    sections {
        /// Old results become stubs.
        micro: MicroSection,
        /// Compaction when the window fills.
        auto: AutoSection,
        /// How summaries are asked for.
        summary: SummarySection,
        /// The model's own `Compact`.
        tool: CompactToolSection,
    }
    maps {
        /// Named rules.
        rules: RuleSection,
    }
}

section! {
    /// `compaction.micro`.
    MicroSection
    keys {
        /// Whether it is done at all.
        enabled: bool,
        /// Newest results that stay.
        keep_recent: u32,
        /// Shorter results stay.
        min_chars: u64,
        /// A pass waits until it frees this much.
        min_gain_tokens: u64,
        /// After this pause the provider's cache is taken to be gone.
        cold_after: Duration,
        /// Tools whose results stay.
        exempt: Vec<String>,
    }
}

section! {
    /// `compaction.auto`.
    AutoSection
    keys {
        /// Whether it is done at all.
        enabled: bool,
        /// Compact above this many tokens.
        token_threshold: NonZeroU64,
        /// Or above this part of the window.
        trigger_ratio: Ratio,
        /// How far to compact.
        target_ratio: Ratio,
        /// The most of newest rounds beside a summary.
        tail_ratio: Ratio,
        /// The most that all summaries take.
        bands_ratio: Ratio,
        /// Rounds between summaries.
        min_rounds: u32,
        /// What happens when no summary can be had.
        on_failure: OnFailure,
    }
}

section! {
    /// `compaction.summary`.
    SummarySection
    keys {
        /// The model that writes summaries.
        model: Option<String>,
        /// The one that is asked when it cannot.
        fallback_model: Option<String>,
        /// The most tokens of one summary.
        max_tokens: NonZeroU64,
        /// Words for every summary request.
        instructions: Option<String>,
    }
}

section! {
    /// `compaction.tool`.
    CompactToolSection
    keys {
        /// Whether it is offered.
        enabled: bool,
        /// Below this part of the trigger it does not pay.
        min_ratio: Ratio,
        /// Rounds after a summary in which it is not granted.
        cooldown_rounds: u32,
    }
}

section! {
    /// `compaction.rules.<name>`.
    RuleSection
    keys {
        /// What becomes of reasoning.
        reasoning: Keeping,
        /// What becomes of calls.
        tools: Option<HintChoice>,
        /// Whether a summary replaces the rounds.
        summary: SummaryChoice,
        /// Rounds at the start that stay.
        keep_first: u32,
        /// Rounds at the end that stay.
        keep_last: u32,
    }
}

section! {
    /// `limits`.
    LimitsSection
    keys {
        /// The most rounds.
        rounds: Option<NonZeroU32>,
        /// The most tokens, in and out.
        tokens: Option<NonZeroU64>,
        /// The most money, in US dollars.
        cost: Option<Usd>,
        /// The longest time.
        wall_time: Option<Lasting>,
        /// The longest text that is taken in, in characters.
        text_chars: NonZeroU64,
        /// The longest result of one call, in characters.
        result_chars: NonZeroU64,
        /// The most calls of one response that are run.
        calls: NonZeroU32,
        /// The most reading calls at the same time.
        parallel_calls: NonZeroU32,
        /// Identical failing calls until a warning.
        failing_calls_warn: NonZeroU32,
        /// Identical failing calls until the end.
        failing_calls_stop: NonZeroU32,
    }
}

section! {
    /// `tools.<name>`.
    ToolSection
    keys {
        /// Whether it is offered.
        enabled: bool,
        /// What compaction by hints does with its calls.
        compaction: HintChoice,
    }
}

section! {
    /// `instructions`.
    InstructionsSection
    keys {
        /// The file whose text stands in place of the built-in system text.
        file: Option<PathBuf>,
        /// What stands behind everything else.
        append: Option<String>,
        /// Whether the project's `AGENTS.md` are read.
        agents_md: bool,
    }
}

section! {
    /// `sandbox`.
    SandboxSection
    keys {
        /// What tools may do.
        mode: String,
    }
}

section! {
    /// `transcripts`.
    TranscriptsSection
    keys {
        /// The directory.
        dir: Option<PathBuf>,
        /// How hard a transcript is written.
        sync: SyncMode,
    }
}
