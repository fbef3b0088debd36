//! The settings themselves: every key with its value, and what is built from them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::allowance::allowance;
use crate::config::choice::CallsChoice;
use crate::config::compaction::{put_compaction, rule_hint};
use crate::config::given::Given;
use crate::config::read::{ConfigError, MeaningError};
use crate::config::sandbox::{AskMode, SandboxMode};
use crate::config::section::{InstructionsSection, LimitsSection, ModelSection, PricesSection};
use crate::config::section::{SandboxSection, Sections};
use crate::config::server::{Server, check_address};
use crate::config::value::{Lasting, Usd, not_blank};
use crate::config::{Environment, profiles, state_dir};
use crate::exchange::ToolMeta;
use crate::id::RunId;
use crate::model::Timeouts;
use crate::profile::{self, Candidate, Choice, Why, known};
use crate::record::{Durability, FileError, FileStorage};
use crate::sandbox::KNOWN_DIRECTORIES;
use crate::setup::{Api, Compaction, Limits, Model, Models, Parameters, Policy, Prices, Profile};
use crate::setup::{Reach, Retries, Sandbox};

/// Every setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// What goes into `setup.policy`.
    pub policy: Policy,
    /// The models, from which `setup.wire` is made.
    pub model: ModelSettings,
    /// Where the server is.
    pub server: Server,
    /// How long to wait for it.
    pub timeouts: Timeouts,
    /// What is said of single tools, by name in lower case: see [`Settings::tool`].
    pub tools: BTreeMap<String, ToolSettings>,
    /// What the model is told before the task.
    pub instructions: InstructionSettings,
    /// Where transcripts are kept.
    pub transcripts: Transcripts,
    /// Profiles of one's own, which are tried before the built-in ones.
    pub profiles: Vec<Candidate>,
    /// The program that is asked about what is out of a sandbox's bounds, and its arguments.
    pub asked: Vec<String>,
}

/// The models and their parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelSettings {
    /// The model that works on the task; there is no default.
    pub name: Option<String>,
    /// The model that writes summaries.
    pub summary: Option<String>,
    /// The one that is asked when it cannot.
    pub fallback: Option<String>,
    /// The protocol.
    pub api: Api,
    /// The name of the profile; none: chosen by name and address.
    pub profile: Option<String>,
    /// The context window, in tokens; none: as known of the model.
    pub window: Option<u64>,
    /// What is sent with each request.
    pub parameters: Parameters,
}

/// What is said of one tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// Whether it is offered; none: as the tool itself says.
    pub enabled: Option<bool>,
    /// How long a call may take, in milliseconds; none: as the tool itself says.
    pub timeout_ms: Option<u64>,
    /// What compaction does with its calls.
    pub compaction: Option<CallsChoice>,
}

impl ToolSettings {
    /// The tool's own meta with what is said here replaced.
    pub fn meta(self, mut own: ToolMeta) -> ToolMeta {
        let choice = self.compaction.unwrap_or_default();
        own.hint = choice.hint.over(own.hint);
        own.timeout_ms = self.timeout_ms.or(own.timeout_ms);
        if choice.dedup == Some(false) {
            own.supersession = None;
        }
        own
    }
}

/// What the model is told before the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionSettings {
    /// The file whose text stands in place of the built-in one. One that a file of settings names
    /// counts from there; any other that is relative, from the current directory.
    pub file: Option<PathBuf>,
    /// What stands behind everything else.
    pub append: Option<String>,
    /// Whether the project's `AGENTS.md` are read.
    pub agents_md: bool,
}

impl Default for InstructionSettings {
    fn default() -> Self {
        Self {
            file: None,
            append: None,
            agents_md: true,
        }
    }
}

/// Where transcripts are kept, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcripts {
    /// The directory; none: `undertext/transcripts` below `XDG_STATE_HOME`.
    pub dir: Option<PathBuf>,
    /// How hard they are written.
    pub sync: Durability,
    /// Whether an index is kept beside a long one.
    pub index: bool,
}

impl Default for Transcripts {
    fn default() -> Self {
        Self {
            dir: None,
            sync: Durability::default(),
            index: true,
        }
    }
}

impl Transcripts {
    /// Creates the empty transcript of a new run in a directory.
    pub fn create(&self, dir: &Path, run: RunId) -> Result<FileStorage, FileError> {
        FileStorage::create(dir, run, self.sync).map(|storage| self.indexing(storage))
    }

    /// Opens the transcript at this path to go on with it.
    pub fn open(&self, path: &Path) -> Result<FileStorage, FileError> {
        FileStorage::open(path, self.sync).map(|storage| self.indexing(storage))
    }

    /// The same storage, which keeps an index if these say so.
    pub fn indexing(&self, storage: FileStorage) -> FileStorage {
        if self.index {
            storage
        } else {
            storage.indexed_from(None)
        }
    }
}

/// What tools may do.
fn sandboxed(section: SandboxSection) -> Sandbox {
    let known = || KNOWN_DIRECTORIES.map(str::to_owned).to_vec();
    let reach = Reach {
        read: section.read.get().unwrap_or_else(known),
        write: section.write.get().unwrap_or_default(),
        network: section
            .network
            .get()
            .map_or_else(Default::default, |choice| choice.0),
        asks: section.ask.get() == Some(AskMode::OnRequest),
        limits: allowance(section.limits),
    };
    match section.mode.get().unwrap_or_else(SandboxMode::usual) {
        SandboxMode::Workspace => Sandbox::Workspace(reach),
        SandboxMode::ReadOnly => Sandbox::ReadOnly(reach),
        SandboxMode::Off => Sandbox::Off,
    }
}

impl Settings {
    /// Fills what no source gave with what is built in, and checks what one key alone cannot say.
    pub(crate) fn resolve(sections: Sections) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        let Sections {
            model,
            compaction,
            limits,
            instructions,
            sandbox,
            transcripts,
            tools,
            profiles,
        } = sections;
        settings.asked = sandbox.ask_command.clone().get().unwrap_or_default();
        settings.policy.sandbox = sandboxed(sandbox);
        settings.put_model(model)?;
        put_limits(limits, &mut settings.policy.limits);
        let summary = compaction.summary.clone();
        let writer = summary.model.map(not_blank);
        writer.put(&mut settings.model.summary);
        let fallback = summary.fallback_model.map(not_blank);
        fallback.put(&mut settings.model.fallback);
        put_compaction(compaction, &mut settings.policy.compaction);
        let Compaction {
            default_rule,
            auto,
            rules,
            ..
        } = &settings.policy.compaction;
        if auto.trigger_ratio <= 0.0 {
            return Err(MeaningError::NoTrigger.into());
        }
        if !rules.contains_key(default_rule) {
            return Err(MeaningError::NoSuchRule {
                name: default_rule.clone(),
                hint: rule_hint(rules.keys(), default_rule),
            }
            .into());
        }
        for (name, tool) in tools {
            let timeout = tool.timeout.get().flatten();
            let said = ToolSettings {
                enabled: tool.enabled.get(),
                timeout_ms: timeout.map(|time| time.0.0),
                compaction: tool.compaction.get(),
            };
            settings.tools.insert(name, said);
        }
        settings.profiles = profiles::resolve(profiles)?;
        put_instructions(instructions, &mut settings.instructions);
        let dir = transcripts.dir;
        let dir = dir.map(|dir| dir.filter(|dir| !dir.as_os_str().is_empty()));
        dir.put(&mut settings.transcripts.dir);
        let sync = transcripts.sync.map(Durability::from);
        sync.put(&mut settings.transcripts.sync);
        transcripts.index.put(&mut settings.transcripts.index);
        Ok(settings)
    }

    fn put_model(&mut self, section: ModelSection) -> Result<(), ConfigError> {
        let ModelSection {
            name,
            base_url,
            api_key_env,
            api,
            profile,
            context_window,
            max_output_tokens,
            temperature,
            reasoning_effort,
            prices,
            timeouts,
            retries,
        } = section;
        let model = &mut self.model;
        name.map(not_blank).put(&mut model.name);
        api.put(&mut model.api);
        profile.map(not_blank).put(&mut model.profile);
        context_window
            .map(|window| window.map(u64::from))
            .put(&mut model.window);
        max_output_tokens
            .map(|tokens| tokens.map(u64::from))
            .put(&mut model.parameters.max_output_tokens);
        temperature
            .map(|number| number.map(|number| number.0))
            .put(&mut model.parameters.temperature);
        let effort = reasoning_effort.map(not_blank);
        effort.put(&mut model.parameters.reasoning_effort);

        if let (Some(window), Some(output)) = (model.window, model.parameters.max_output_tokens)
            && output >= window
        {
            return Err(MeaningError::OutputFillsWindow { window, output }.into());
        }

        base_url.map(not_blank).put(&mut self.server.base_url);
        api_key_env.map(not_blank).put(&mut self.server.api_key_env);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if let Some(name) = &self.server.api_key_env
            && !name.chars().all(is_name)
        {
            return Err(MeaningError::KeyVariable.into());
        }
        if let Some(address) = &self.server.base_url {
            check_address(address)?;
        }

        let times = &mut self.timeouts;
        let time = |given: Given<Lasting>| given.map(|time| Duration::from_millis(time.0.0));
        time(timeouts.connect).put(&mut times.connect);
        time(timeouts.bytes).put(&mut times.bytes);
        time(timeouts.progress).put(&mut times.progress);

        let Retries {
            attempts,
            total_ms,
            wait_ms,
        } = &mut self.policy.retries;
        retries.attempts.map(u32::from).put(attempts);
        retries.total.map(|time| time.0).put(total_ms);
        retries.wait.map(|time| time.0).put(wait_ms);

        self.policy.prices = resolve_prices(prices)?;
        Ok(())
    }

    /// What is said of the tool of this name.
    pub fn tool(&self, name: &str) -> ToolSettings {
        let said = self.tools.get(&name.to_lowercase());
        said.copied().unwrap_or_default()
    }

    /// The profile for a model at a server: the one that is named, else the one that matches. A name
    /// that no profile has counts as none.
    pub fn profile(&self, base_url: &str, model: &str) -> Choice {
        let named = self.model.profile.as_deref();
        match named.and_then(|name| self.profile_named(name)) {
            Some(profile) => Choice {
                profile,
                why: Why::Named,
            },
            None => profile::choose(&self.profiles, base_url, model),
        }
    }

    /// The profile of this name: one's own, or a built-in one.
    pub fn profile_named(&self, name: &str) -> Option<Profile> {
        profile::find(&self.profiles, name).or_else(|| profile::named(name))
    }

    /// The names of all profiles, one's own first.
    pub fn profile_names(&self) -> Vec<String> {
        let own = self.profiles.iter().map(|own| own.profile.name.clone());
        let own: Vec<String> = own.collect();
        let built_in = profile::names();
        let others = built_in.into_iter().filter(|name| !own.contains(name));
        own.iter().cloned().chain(others).collect()
    }

    /// The models of a run at the server of this address, or nothing if none is named. Without a
    /// server nothing is known of them.
    pub fn models(&self, base_url: Option<&str>) -> Option<Models> {
        let settings = &self.model;
        let main = settings.name.as_deref()?;
        let model = |name: &str| {
            let profile = base_url.map(|url| self.profile(url, name).profile);
            let profile = profile.unwrap_or_else(profile::openai);
            // What is said of one model says nothing of another.
            let window = settings.window.filter(|_| name == main);
            let known = base_url.and_then(|_| known(&profile.name, name));
            Model {
                name: name.to_owned(),
                server: base_url.and_then(profile::origin),
                api: settings.api,
                window: window.or(known.map(|known| known.window)),
                profile,
                parameters: settings.parameters.clone(),
            }
        };
        Some(Models {
            main: model(main),
            summary: settings.summary.as_deref().map(model),
            fallback: settings.fallback.as_deref().map(model),
        })
    }

    /// The directory of the transcripts.
    pub fn transcripts_dir(&self, environment: &Environment) -> Result<PathBuf, ConfigError> {
        let usual = || state_dir(environment);
        let named = self.transcripts.dir.clone();
        let dir = named.or_else(|| Some(usual()?.join("transcripts")));
        dir.ok_or_else(|| MeaningError::NoTranscripts.into())
    }
}

fn resolve_prices(section: PricesSection) -> Result<Option<Prices>, ConfigError> {
    let price = |given: Option<Option<Usd>>| given.flatten().map(|Usd(micro)| micro);
    let input = price(section.input.get());
    let output = price(section.output.get());
    let cached = price(section.cached.get());
    let cache_write = price(section.cache_write.get());
    match (input, output) {
        (Some(input), Some(output)) => Ok(Some(Prices {
            input_usd_micro: input,
            cached_usd_micro: cached.unwrap_or(input),
            cache_write_usd_micro: cache_write.unwrap_or(input),
            output_usd_micro: output,
        })),
        (None, None) if cached.or(cache_write).is_none() => Ok(None),
        _ => Err(MeaningError::HalfPrices.into()),
    }
}

fn put_limits(section: LimitsSection, limits: &mut Limits) {
    let LimitsSection {
        rounds,
        tokens,
        cost,
        wall_time,
        text_chars,
        result_chars,
        calls,
        parallel_calls,
        failing_calls_warn,
        failing_calls_stop,
        check_rounds,
        nudges,
    } = section;
    rounds.map(|n| n.map(u32::from)).put(&mut limits.rounds);
    tokens.map(|n| n.map(u64::from)).put(&mut limits.tokens);
    cost.map(|usd| usd.map(|usd| usd.0))
        .put(&mut limits.cost_usd_micro);
    wall_time
        .map(|time| time.map(|time| time.0.0))
        .put(&mut limits.wall_time_ms);
    text_chars.map(u64::from).put(&mut limits.text_chars);
    result_chars.map(u64::from).put(&mut limits.result_chars);
    calls.map(u32::from).put(&mut limits.calls);
    parallel_calls
        .map(u32::from)
        .put(&mut limits.parallel_calls);
    failing_calls_warn
        .map(u32::from)
        .put(&mut limits.failing_calls_warn);
    failing_calls_stop
        .map(u32::from)
        .put(&mut limits.failing_calls_stop);
    check_rounds.put(&mut limits.check_rounds);
    nudges.put(&mut limits.nudges);
}

fn put_instructions(section: InstructionsSection, settings: &mut InstructionSettings) {
    let InstructionsSection {
        file,
        append,
        agents_md,
    } = section;
    file.put(&mut settings.file);
    append.put(&mut settings.append);
    agents_md.put(&mut settings.agents_md);
}
