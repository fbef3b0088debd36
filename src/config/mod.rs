//! The settings: what every source gives, laid over each other, checked once.
//!
//! Begin with [`load`]. The order is: built in, `undertext/config.yaml` of the user's, files named
//! on the command line, variables such as `UNDERTEXT_MODEL__NAME`, `--set`, flags. Nothing is read
//! from the workspace, and the environment arrives as an argument. Keys of providers are never
//! settings: only the name of the variable that holds one is.

mod section;
mod value;
mod read;
mod settings;
mod server;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use read::{ConfigError, MeaningError, Place, Wrong};
pub use section::{
    AutoSection, CompactToolSection, CompactionSection, Given, InstructionsSection, LimitsSection,
    MicroSection, ModelSection, PricesSection, RetriesSection, RuleSection, SandboxSection,
    Sections, SummarySection, TimeoutsSection, ToolSection, TranscriptsSection,
};
pub use server::{Endpoint, EndpointError, Key, Server, public_part};
pub use settings::{InstructionSettings, ModelSettings, Settings, ToolSettings, Transcripts};
pub use value::{
    Duration, Finite, HintChoice, Keeping, Ratio, SummaryChoice, SyncMode, Usd, ValueError,
};

/// The variables of the process.
pub type Environment = BTreeMap<String, String>;

/// The public address of the default server.
pub const PUBLIC_SERVER: &str = "https://api.openai.com/v1";

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
    let own = own_file(&sources.environment)
        .map(|path| read::file_if_there(&path))
        .transpose()?
        .flatten();
    let mut merged = own.unwrap_or_default();
    for path in &sources.files {
        merged = server_together(read::file(path)?, merged);
    }
    merged = server_together(read::variables(&sources.environment)?, merged);
    let mut line = Sections::default();
    for assignment in &sources.set {
        line = read::assignment(assignment)?.over(line);
    }
    line = sources.flags.clone().over(line);
    Settings::resolve(server_together(line, merged))
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

/// Lays a source over those below. A key belongs to the server it was set for: a source that
/// names a server without a key's variable takes the one from below away.
fn server_together(source: Sections, mut below: Sections) -> Sections {
    if source.model.base_url.is_given() {
        below.model.api_key_env = Given::default();
    }
    source.over(below)
}
