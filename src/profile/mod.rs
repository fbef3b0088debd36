//! The built-in profiles, as data, and how one is chosen.
//!
//! A profile says how a provider deviates. It is recorded in full in every `setup`, so that an old
//! run reads the same when a profile is mended. The profiles stand in `profiles.yaml` with the source
//! of each deviation; [`choose`] finds one by the server's address and the model's name. [`fn@known`] has
//! windows and prices of models, from `models.yaml`. Nothing here asks a server.

mod address;
pub mod known;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use address::{is_azure, is_here, origin};
pub use known::{Known, known};

use crate::door;
use crate::setup::Profile;

/// The name of the profile for servers that no profile matches.
pub const UNKNOWN: &str = "compatible";

/// A profile, and what it is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Hosts of servers; `*` stands for any text.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Names of models in the same way.
    #[serde(default)]
    pub models: Vec<String>,
    /// The profile itself.
    pub profile: Profile,
}

impl Candidate {
    /// Why it is the one for this model at this host, if it is. With neither hosts nor models it is
    /// taken by name alone.
    fn matches(&self, host: &str, model: &str) -> Option<Why> {
        let model = model.to_lowercase();
        let host_matches = self.hosts.iter().any(|pattern| matches(pattern, host));
        let named = self.models.iter().find(|pattern| matches(pattern, &model));
        match (self.hosts.as_slice(), self.models.as_slice(), named) {
            ([], [], _) => None,
            (_, [], _) => host_matches.then(|| Why::Host(host.to_owned())),
            ([], _, Some(pattern)) => Some(Why::Model(pattern.clone())),
            (_, _, Some(pattern)) => {
                host_matches.then(|| Why::Both(host.to_owned(), pattern.clone()))
            }
            (_, _, None) => None,
        }
    }
}

/// A profile that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The profile.
    pub profile: Profile,
    /// Why it is this one.
    pub why: Why,
}

/// Why a profile was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is named in the settings.
    Named,
    /// It is for this host.
    Host(String),
    /// It is for models whose names look like this.
    Model(String),
    /// It is for this host, and for models whose names look like this.
    Both(String, String),
    /// None is for this server.
    Unknown,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named => f.write_str("model.profile names it"),
            Self::Host(host) => write!(f, "the host is {host}"),
            Self::Model(pattern) => write!(f, "the model is {pattern}"),
            Self::Both(host, pattern) => write!(f, "the host is {host}, the model {pattern}"),
            Self::Unknown => f.write_str("no profile is for this server"),
        }
    }
}

/// The built-in profiles, in the order in which they are tried.
pub fn built_in() -> &'static [Candidate] {
    static BUILT_IN: LazyLock<Vec<Candidate>> = LazyLock::new(|| {
        // That it can be read is tested.
        embedded(include_str!("profiles.yaml")).unwrap_or_default()
    });
    &BUILT_IN
}

/// What a file that is part of the program holds; `None` if it is not well-formed.
///
/// It is read as plain values first. A type read from YAML itself is compiled to three times as much
/// code as one read from values: that serves to tell a person where their file is wrong.
pub(crate) fn embedded<T: DeserializeOwned>(yaml: &str) -> Option<T> {
    let value: Value = door::yaml(yaml, serde_saphyr::Options::default()).ok()?;
    serde_json::from_value(value).ok()
}

/// The profile for plain Chat Completions as OpenAI defines them.
pub fn openai() -> Profile {
    Profile::default()
}

/// The built-in profile of this name.
pub fn named(name: &str) -> Option<Profile> {
    find(built_in(), name)
}

/// The names of the built-in profiles.
pub fn names() -> Vec<String> {
    built_in().iter().map(name_of).collect()
}

/// The profile of this name among these.
pub fn find(candidates: &[Candidate], name: &str) -> Option<Profile> {
    let candidate = candidates
        .iter()
        .find(|candidate| candidate.profile.name == name)?;
    Some(candidate.profile.clone())
}

/// The profile for a model at a server: the first of one's own that matches, else the first of the
/// built-in ones, else the one for servers that nobody knows.
pub fn choose(own: &[Candidate], base_url: &str, model: &str) -> Choice {
    let host = address::host(base_url);
    let candidates = own.iter().chain(built_in());
    let mut matching = candidates.filter_map(|candidate| {
        let why = candidate.matches(host.as_deref().unwrap_or_default(), model)?;
        let profile = candidate.profile.clone();
        Some(Choice { profile, why })
    });
    matching.next().unwrap_or_else(|| Choice {
        profile: find(own, UNKNOWN)
            .or_else(|| named(UNKNOWN))
            .unwrap_or_default(),
        why: Why::Unknown,
    })
}

fn name_of(candidate: &Candidate) -> String {
    candidate.profile.name.clone()
}

/// Whether a text in lower case looks like a pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let pattern = pattern.to_lowercase();
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    true
}
