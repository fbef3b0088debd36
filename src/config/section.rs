//! The sections of `config.yaml` as one source gives them: every key may be absent.
//!
//! The structs here are the only list of keys there is: what is unknown, what the nearest known
//! key is and what must stand in `config.yaml.example` all come from them.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::config::allowance::Size;
use crate::config::choice::{CallsChoice, HintChoice, Keeping, SummaryChoice};
use crate::config::given::{Given, Stated};
use crate::config::profiles::ProfileSection;
use crate::config::sandbox::{AskMode, NetworkChoice, SandboxMode};
use crate::config::value::{Duration, Lasting, Ratio, SyncMode, Temperature, Times, Usd};
use crate::setup::{Api, EstimateRule, OnFailure};

/// Reads a section; one whose keys are all commented out is empty.
pub(super) fn or_empty<'de, T, D>(deserializer: D) -> Result<T, D::Error>
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
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[cfg_attr(test, derive(JsonSchema))]
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
            pub(in crate::config) fn list_keys(path: &str, list: &mut Vec<String>) {
                $($(list.push(format!("{path}{}", stringify!($key)));)*)?
                $($(<$inner_section>::list_keys(
                    &format!("{path}{}.", stringify!($inner)), list);)*)?
                $($(<$named_section>::list_keys(
                    &format!("{path}{}.<name>.", stringify!($map)), list);)*)?
            }

            /// Adds every key that is given from here down, in the order in which keys are declared.
            pub(in crate::config) fn list_given(&self, path: &[&str], list: &mut Vec<Stated>) {
                $($(list.extend(self.$key.stated(&[path, &[stringify!($key)]].concat()));)*)?
                $($(self.$inner.list_given(&[path, &[stringify!($inner)]].concat(), list);)*)?
                $($(for (name, section) in &self.$map {
                    section.list_given(&[path, &[stringify!($map), name]].concat(), list);
                })*)?
            }
        }
    };
}

pub(super) use section;

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
        /// The tools by name, whose case does not matter.
        tools: ToolSection,
        /// Profiles of your own, or changes to the built-in one of that name: what a provider does
        /// differently.
        profiles: ProfileSection,
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
        /// The model's name as the server knows it; there is no default.
        name: Option<String>,
        /// The address of the server; none: `OPENAI_BASE_URL`, or the public one.
        base_url: Option<String>,
        /// The name of the variable that holds the key for `base_url`; none: `OPENAI_API_KEY` without a
        /// `base_url`, no key with one.
        api_key_env: Option<String>,
        /// The protocol that the server speaks: Chat Completions, or Responses, of which nothing is
        /// stored at the provider.
        api: Api,
        /// The profile of the provider; none: chosen by the host of `base_url` and the model's name.
        profile: Option<String>,
        /// The context window, in tokens; none: as known of the model, else learned when the provider says that a request is too long.
        context_window: Option<NonZeroU64>,
        /// The most tokens of one response; none: as the provider likes.
        max_output_tokens: Option<NonZeroU64>,
        /// The sampling temperature; none: as the provider likes.
        temperature: Option<Temperature>,
        /// How hard the model should think, in the provider's words, such as `low` or `high`.
        reasoning_effort: Option<String>,
    }
    sections {
        /// What tokens cost; none: as known of the model.
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
        /// A million tokens read afresh, in US dollars.
        input: Option<Usd>,
        /// A million read from the provider's cache; none: as `input`.
        cached: Option<Usd>,
        /// A million written to the provider's cache; none: as `input`.
        cache_write: Option<Usd>,
        /// A million that the model writes; needed together with `input`.
        output: Option<Usd>,
    }
}

section! {
    /// `model.timeouts`.
    TimeoutsSection
    keys {
        /// The longest wait for a connection.
        connect: Lasting,
        /// The longest silence: no byte at all from the server.
        bytes: Lasting,
        /// The longest time without text, reasoning or calls, whatever else comes.
        progress: Lasting,
    }
}

section! {
    /// `model.retries`.
    RetriesSection
    keys {
        /// The most attempts at one request, the first included.
        attempts: NonZeroU32,
        /// The longest time from the first failure of a request to its last attempt.
        total: Duration,
        /// The longest single wait; a server that asks for more ends the run, resumable.
        wait: Duration,
    }
}

section! {
    /// `compaction`.
    CompactionSection
    keys {
        /// Whether overlays are laid by themselves; without it `Compact` is not offered either.
        enabled: bool,
        /// How tokens are counted before the provider does: learned from its counts, or exactly characters / 4.
        estimate: EstimateRule,
        /// The rule that compaction by hand uses where none is named.
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
        /// Commands around each compaction.
        hooks: HooksSection,
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
        /// Whether old tool results become stubs of one line.
        enabled: bool,
        /// The newest tool results that stay whatever they weigh.
        keep_recent: u32,
        /// Results and arguments of at most this many characters stay.
        min_chars: u64,
        /// Whether the arguments of old calls go as well, where the tool lets its requests be stripped.
        arguments: bool,
        /// A pass waits until it frees this many tokens, and …; 0: it never waits.
        min_gain_tokens: u64,
        /// … so many times what stands behind the first message that it changes, which is then read afresh.
        min_gain_ratio: Times,
        /// After this pause the provider's cache is taken to be gone, and a pass need not wait.
        cold_after: Duration,
        /// Tools whose calls stay; a list of yours takes this one's place.
        exempt: Vec<String>,
    }
}

section! {
    /// `compaction.auto`.
    AutoSection
    keys {
        /// Whether the context is compacted by itself when the window fills.
        enabled: bool,
        /// Compact above this many tokens, or …
        token_threshold: NonZeroU64,
        /// … above this part of the context window; the smaller one counts.
        trigger_ratio: Ratio,
        /// How far to compact, as a part of what the trigger leaves after instructions and tools.
        target_ratio: Ratio,
        /// The most that newest rounds keep beside a summary, as a part of the same.
        tail_ratio: Ratio,
        /// The most that all summaries take together, as a part of the same.
        bands_ratio: Ratio,
        /// The fewest rounds between two summaries.
        min_rounds: u32,
        /// What happens when no summary can be had: the run goes on with a plain one, or ends.
        on_failure: OnFailure,
    }
}

section! {
    /// `compaction.summary`.
    SummarySection
    keys {
        /// The model that writes summaries; none: the one that works.
        model: Option<String>,
        /// The model that is asked when that one cannot.
        fallback_model: Option<String>,
        /// The most tokens of one summary.
        max_tokens: NonZeroU64,
        /// Your words in every request for a summary.
        instructions: Option<String>,
    }
}

section! {
    /// `compaction.tool`.
    CompactToolSection
    keys {
        /// Whether the model is offered `Compact`, and may ask for compaction itself.
        enabled: bool,
        /// Below this part of the trigger it is not granted, since it does not pay yet; 0: always granted.
        min_ratio: Ratio,
        /// Rounds after a summary in which it is not granted again.
        cooldown_rounds: u32,
    }
}

section! {
    /// `compaction.hooks`.
    HooksSection
    keys {
        /// The command that is asked before a pass: it may forbid it, or name texts that the summary must keep.
        before: Option<String>,
        /// The command that is told after a pass what was laid.
        after: Option<String>,
        /// How long each may take; one that takes longer is ended, and the pass goes on.
        timeout: Lasting,
    }
}

section! {
    /// `compaction.rules.<name>`.
    RuleSection
    keys {
        /// What becomes of the model's reasoning.
        reasoning: Keeping,
        /// What becomes of calls and their results; what a tool says of itself may keep more.
        tools: Option<HintChoice>,
        /// What becomes of the texts that were handed in with messages.
        attachments: Keeping,
        /// Whether calls that a later one made superfluous are left out.
        dedup: bool,
        /// `{}`: a summary takes the place of the rounds; what it must preserve, and your words in its request, may stand in it.
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
        /// The most rounds: requests to the model, those for summaries left out.
        rounds: Option<NonZeroU32>,
        /// The most tokens, in and out.
        tokens: Option<NonZeroU64>,
        /// The most money, in US dollars; it needs prices, known or given in `model.prices`.
        cost: Option<Usd>,
        /// The longest time; looked at between steps.
        wall_time: Option<Lasting>,
        /// The longest task or attachment, in characters; what is more is clipped.
        text_chars: NonZeroU64,
        /// The longest result of one call, in characters; what is more is clipped, and can be recalled.
        result_chars: NonZeroU64,
        /// The most calls of one response that are run.
        calls: NonZeroU32,
        /// The most calls that only read, at the same time.
        parallel_calls: NonZeroU32,
        /// Identical failing calls until the model is warned.
        failing_calls_warn: NonZeroU32,
        /// Identical failing calls until the run ends as stuck.
        failing_calls_stop: NonZeroU32,
        /// Failing checks that the model is told of.
        check_rounds: u32,
        /// Reminders in a row that announcing work does none.
        nudges: u32,
    }
}

section! {
    /// `tools.<name>`.
    ToolSection
    keys {
        /// Whether it is offered.
        enabled: bool,
        /// How long a call of `Bash`, of `Job` or of a tool of yours may take.
        timeout: Option<Lasting>,
        /// What compaction by hints does with its calls; `dedup: false`: none makes another superfluous.
        compaction: CallsChoice,
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
        /// What tools may do: write in the workspace, only read, or whatever you may (`off`).
        mode: SandboxMode,
        /// What they may read beside the workspace and the system's directories; relative paths count
        /// from the workspace.
        read: Vec<String>,
        /// What they may write beside the workspace. What is protected in it may be named here too.
        write: Vec<String>,
        /// What of the network they may reach: nothing, these hosts (ports 80 and 443; another as
        /// `HOST:PORT`), or all of it (`open`).
        network: NetworkChoice,
        /// Whether somebody is asked about a file or a host that is out of bounds (`on-request`).
        ask: AskMode,
        /// The program that is asked then, and its arguments; none of them may lie where tools write.
        ask_command: Vec<String>,
    }
    sections {
        /// What they may take of the machine, where they are confined.
        limits: AllowanceSection,
    }
}

section! {
    /// `sandbox.limits`.
    AllowanceSection
    keys {
        /// The memory of all their processes together; none: three quarters of the machine's.
        memory: Option<Size>,
        /// Their processes and threads together.
        processes: NonZeroU64,
        /// The files that one process may hold open.
        open_files: NonZeroU64,
        /// The largest file that may be written.
        file_size: Size,
        /// What is to stay free of the disks that they write: with less, whatever runs is ended.
        free_disk: Size,
    }
}

section! {
    /// `transcripts`.
    TranscriptsSection
    keys {
        /// The directory; none: `undertext/transcripts` below `$XDG_STATE_HOME`, usually `~/.local/state`.
        dir: Option<PathBuf>,
        /// What reaches the disk before an effect does: the entries, or what the system likes.
        sync: SyncMode,
        /// Whether an index is kept beside a long transcript, so that taking it up again does not read all of it.
        index: bool,
    }
}
