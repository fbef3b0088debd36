//! The settings: what every source gives, laid over each other, checked once.
//!
//! Begin with [`load`]; [`Layers`] keeps the sources apart and says which of them set a key. The order
//! is: built in, `undertext/config.yaml` of the user's, files named on the command line, variables such
//! as `UNDERTEXT_MODEL__NAME`, `--set`, flags. Nothing is read from the workspace, and the environment
//! arrives as an argument. Keys of providers are never settings: only the name of the variable that
//! holds one is.

mod given;
mod value;
mod choice;
mod sandbox;
mod allowance;
mod section;
mod profiles;
mod wrong;
mod read;
mod compaction;
mod settings;
mod server;
mod layers;
mod tools;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use allowance::{Size, SizeError};
pub use choice::{CallsChoice, HintChoice, Keeping, SummaryChoice};
pub use compaction::{closest, rule_hint};
pub use given::Given;
pub use layers::{InForce, Layers, Origin, Source};
pub use profiles::{
    CacheSection, CallSection, MessageSection, OutputSection, ParameterSection, ProfileSection,
    ReasoningSection, ToolLimitSection, UsageSection,
};
pub use read::{ConfigError, MeaningError, Place, mistaken};
pub use sandbox::{AskMode, HostError, NetworkChoice, SandboxMode, host};
pub use section::{
    AllowanceSection, AutoSection, CompactToolSection, CompactionSection, InstructionsSection,
    LimitsSection, MicroSection, ModelSection, PricesSection, RetriesSection, RuleSection,
    SandboxSection, Sections, SummarySection, TimeoutsSection, ToolSection, TranscriptsSection,
};
pub use server::{Endpoint, EndpointError, Key, Server, public_part};
pub use settings::{InstructionSettings, ModelSettings, Settings, ToolSettings, Transcripts};
pub use tools::{ToolFile, tools, tools_dir};
pub use value::{Duration, Lasting, Ratio, SyncMode, Temperature, Times, Usd, ValueError};
pub use wrong::Wrong;

/// The variables of the process.
pub type Environment = BTreeMap<String, String>;

/// The public address of the default server.
pub const PUBLIC_SERVER: &str = "https://api.openai.com/v1";

/// Every key with its default and a line of comment: what a `config.yaml` begins as.
pub const EXAMPLE: &str = include_str!("../../config.yaml.example");

/// The JSON Schema of `config.yaml`: every key with its meaning, its type and its default. An editor
/// that knows YAML can check and complete with it. A test makes it from the types: the program need
/// not hold the code for that.
pub const SCHEMA: &str = include_str!("../../docs/config.schema.json");

/// Where settings come from, beside the user's own file.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The variables: they say where the user's own file is, and may be settings.
    pub environment: Environment,
    /// Files named on the command line; later ones win.
    pub files: Vec<PathBuf>,
    /// `key=value`, as given to `--set`; later ones win.
    pub set: Vec<String>,
    /// What flags say.
    pub flags: Sections,
}

/// Reads every source and lays them over each other.
pub fn load(sources: &Sources) -> Result<Settings, ConfigError> {
    Layers::read(sources)?.settings()
}

/// The user's own file: `undertext/config.yaml` below `XDG_CONFIG_HOME` or `~/.config`.
pub fn own_file(environment: &Environment) -> Option<PathBuf> {
    below_home(environment, "XDG_CONFIG_HOME", ".config").map(|dir| dir.join("config.yaml"))
}

/// Where what is kept between runs stands: `undertext` below `XDG_STATE_HOME` or
/// `~/.local/state`.
pub fn state_dir(environment: &Environment) -> Option<PathBuf> {
    below_home(environment, "XDG_STATE_HOME", ".local/state")
}

/// Our directory below the one that the variable names, or below the usual one in the home
/// directory. As the convention says, a relative path counts as none.
fn below_home(environment: &Environment, variable: &str, usual: &str) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(environment.get(name)?);
        path.is_absolute().then_some(path)
    };
    let base = absolute(variable).or_else(|| Some(absolute("HOME")?.join(usual)))?;
    Some(base.join("undertext"))
}
