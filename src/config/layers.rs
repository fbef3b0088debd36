//! The sources one by one: what each of them gives, and which of them set a key.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

use crate::config::given::{Given, Stated};
use crate::config::read::{self, ConfigError};
use crate::config::section::Sections;
use crate::config::server;
use crate::config::settings::Settings;
use crate::config::{EXAMPLE, Sources, own_file};

/// What set a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody: it has its default.
    BuiltIn,
    /// A file, at this line if it is known.
    File(PathBuf, Option<u64>),
    /// The variable of this name.
    Variable(String),
    /// A `--set`.
    Set,
    /// Another flag.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File(path, None) => write!(f, "{}", path.display()),
            Self::File(path, Some(line)) => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Set => f.write_str("--set"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

impl Origin {
    /// Whether what the two give is meant together, so that neither lies over the other.
    fn is_beside(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Variable(_), Self::Variable(_))
                | (Self::Set | Self::Flag, Self::Set | Self::Flag)
        )
    }
}

/// A source and what reading it gave.
#[derive(Debug)]
pub struct Source {
    /// Which it is.
    pub origin: Origin,
    /// What it gives, or why it cannot be used. `None`: it is not there, and need not be.
    pub given: Result<Option<Sections>, ConfigError>,
}

impl Source {
    /// Reads each source by itself, those below first.
    pub fn all(sources: &Sources) -> Vec<Self> {
        let mut all = Vec::new();
        if let Some(path) = own_file(&sources.environment) {
            let given = read::file_if_there(&path);
            all.push((Origin::File(path, None), given));
        }
        for path in &sources.files {
            let given = read::file(path).map(Some);
            all.push((Origin::File(path.clone(), None), given));
        }
        for (name, given) in read::variables(&sources.environment) {
            all.push((Origin::Variable(name), given.map(Some)));
        }
        for assignment in &sources.set {
            all.push((Origin::Set, read::assignment(assignment).map(Some)));
        }
        all.push((Origin::Flag, Ok(Some(sources.flags.clone()))));
        let source = |(origin, given)| Self { origin, given };
        all.into_iter().map(source).collect()
    }
}

/// What each source gives, those below first.
#[derive(Clone, Debug)]
pub struct Layers(Vec<(Origin, Sections)>);

/// A key, its value, and what set it.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    /// Its sections from the top, and its name.
    pub path: Vec<String>,
    /// Its value as it would be written. Of a server's address, only what may be shown.
    pub value: Value,
    /// Its value if nobody sets it; nothing for a key below a name of the user's.
    pub default: Option<Value>,
    /// What set it.
    pub origin: Origin,
}

impl Layers {
    /// Reads every source.
    pub fn read(sources: &Sources) -> Result<Self, ConfigError> {
        let mut layers = Vec::new();
        for Source { origin, given } in Source::all(sources) {
            layers.extend(given?.map(|given| (origin, given)));
        }
        Ok(Self(layers))
    }

    /// The settings that they make together.
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        Settings::resolve(self.laid(Sections::default())).map_err(|error| self.placed(error))
    }

    /// Says where the setting stands that cannot be meant, unless a person has just typed it.
    fn placed(&self, error: ConfigError) -> ConfigError {
        let ConfigError::Meaning(source) = error else {
            return error;
        };
        let is_at_fault = |key: &InForce| {
            let at_fault = source.key().map(|at_fault| at_fault.split('.'));
            at_fault
                .is_some_and(|at_fault| at_fault.zip(&key.path).all(|(one, other)| one == other))
        };
        let keys = self.in_force().unwrap_or_default().into_iter();
        let mut origins = keys.filter(is_at_fault).map(|key| key.origin);
        let place = origins.find(|origin| matches!(origin, Origin::File(..) | Origin::Variable(_)));
        match place {
            Some(place) => ConfigError::MeaningAt { place, source },
            None => source.into(),
        }
    }

    /// Every key there is and every one that is set, in the order of the example.
    pub fn in_force(&self) -> Result<Vec<InForce>, ConfigError> {
        let built_in = read::text_of(EXAMPLE, "config.yaml.example")?;
        let mut origins = BTreeMap::<Vec<String>, &Origin>::new();
        for level in self.levels() {
            if names_server(level) {
                origins.remove(&["model", "api_key_env"].map(str::to_owned)[..]);
            }
            for (origin, given) in level {
                origins.extend(given.all_given().into_iter().map(|key| (key.path, origin)));
            }
        }
        let defaults: BTreeMap<_, _> = built_in
            .all_given()
            .into_iter()
            .map(|key| (key.path, key.value))
            .collect();
        let in_force = |Stated { path, value, line }| InForce {
            default: defaults.get(&path).cloned(),
            origin: match origins.get(&path).copied() {
                None => Origin::BuiltIn,
                Some(Origin::File(file, _)) => Origin::File(file.clone(), line),
                Some(origin) => origin.clone(),
            },
            value: shown(&path, value),
            path,
        };
        let all = self.laid(built_in).all_given();
        Ok(all.into_iter().map(in_force).collect())
    }

    /// The sources that are meant together.
    fn levels(&self) -> impl Iterator<Item = &[(Origin, Sections)]> {
        self.0.chunk_by(|(one, _), (next, _)| one.is_beside(next))
    }

    /// All of them laid over each other and over what is below. A key belongs to the server it was
    /// set for: a level that names a server without a key's variable takes the one from below away.
    fn laid(&self, below: Sections) -> Sections {
        let nothing = Given::default();
        let built_in = below.model.api_key_env.clone();
        let mut laid = self.levels().fold(below, |mut below, level| {
            if names_server(level) {
                below.model.api_key_env = nothing.clone();
            }
            level
                .iter()
                .fold(below, |below, (_, given)| given.clone().over(below))
        });
        laid.model.api_key_env = laid.model.api_key_env.or(built_in);
        laid
    }
}

fn names_server(level: &[(Origin, Sections)]) -> bool {
    level
        .iter()
        .any(|(_, given)| given.model.base_url.is_given())
}

/// The value as it may be shown: an address may hold a key, and what should name its variable may
/// be one.
fn shown(path: &[String], value: Value) -> Value {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match (path.as_slice(), value) {
        (["model", "base_url"], Value::String(url)) => server::public_part(&url).into(),
        (["model", "api_key_env"], Value::String(name)) => server::shown(&name).into(),
        (_, value) => value,
    }
}
