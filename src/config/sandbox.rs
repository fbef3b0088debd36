//! What tools may do and reach, as settings say it.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::config::value::ValueError;
use crate::setup::Network;

/// What tools may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// They write in the workspace, and read what they need besides.
    Workspace,
    /// They read, and write nothing that lasts.
    ReadOnly,
    /// They have the rights of the user.
    Off,
}

impl SandboxMode {
    /// Where nothing is said: what this system can enforce.
    pub fn usual() -> Self {
        if cfg!(target_os = "linux") {
            Self::Workspace
        } else {
            Self::Off
        }
    }
}

impl FromStr for SandboxMode {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "workspace" => Ok(Self::Workspace),
            "read-only" => Ok(Self::ReadOnly),
            "off" => Ok(Self::Off),
            _ => Err(ValueError::Sandbox(text.to_owned())),
        }
    }
}

/// Whether somebody is asked about what is out of bounds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum AskMode {
    /// Nobody: it is refused.
    #[default]
    Never,
    /// The program that the settings name.
    OnRequest,
}

/// `none`, `open`, or a list of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkChoice(pub Network);

/// What may be said.
const EXPECTED: &str = "none, open or a list of hosts";

impl<'de> Deserialize<'de> for NetworkChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Words)
    }
}

struct Words;

impl<'de> Visitor<'de> for Words {
    type Value = NetworkChoice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Self::Value, E> {
        match word {
            "none" => Ok(NetworkChoice(Network::None)),
            "open" => Ok(NetworkChoice(Network::Open)),
            _ => Err(E::invalid_value(de::Unexpected::Str(word), &EXPECTED)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut hosts = Vec::new();
        while let Some(name) = seq.next_element::<String>()? {
            hosts.push(host(&name).map_err(de::Error::custom)?);
        }
        let network = if hosts.is_empty() {
            Network::None
        } else {
            Network::Hosts(hosts)
        };
        Ok(NetworkChoice(network))
    }
}

/// That is no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// A word that means all or nothing.
    #[error("`{0}` is said alone, not beside hosts")]
    Word(String),
    /// A URL.
    #[error("`{0}` is an address; name its host alone")]
    Url(String),
    /// A host with something else than a port.
    #[error("`{0}` names no port; a port is a number from 1 to 65535")]
    Port(String),
    /// Nothing that could be a host.
    #[error("`{0}` is no name of a host, such as example.org or *.example.org:443")]
    Name(String),
}

/// The host that is meant: its name or address, or `*.` and a name for all that end so; with a port
/// if it names one.
pub fn host(text: &str) -> Result<String, HostError> {
    let said = text.to_owned();
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<IpAddr>().is_ok() {
        return Ok(bare.to_owned());
    }
    if matches!(text, "none" | "open") {
        return Err(HostError::Word(said));
    }
    if text.contains(['/', '@', '?', '#']) {
        return Err(HostError::Url(said));
    }
    let Some((name, port)) = text.rsplit_once(':') else {
        return named(text).ok_or(HostError::Name(said));
    };
    let port = port.parse::<NonZeroU16>();
    let port = port.map_err(|_| HostError::Port(said.clone()))?;
    let inner = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    if inner.is_some_and(|inner| inner.parse::<IpAddr>().is_ok()) {
        return Ok(format!("{name}:{port}"));
    }
    let name = named(name).ok_or(HostError::Name(said))?;
    Ok(format!("{name}:{port}"))
}

/// A name as it is meant; `None` if it is none.
fn named(text: &str) -> Option<String> {
    // Names are often written with the dot that ends them.
    let whole = text.strip_suffix('.').unwrap_or(text);
    let name = whole.strip_prefix("*.").unwrap_or(whole);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_name = !name.is_empty() && name.len() <= 253 && name.chars().all(is_plain);
    is_name.then(|| whole.to_owned())
}

impl Serialize for NetworkChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Network::None => "none".serialize(serializer),
            Network::Open => "open".serialize(serializer),
            Network::Hosts(hosts) => hosts.serialize(serializer),
        }
    }
}

impl JsonSchema for NetworkChoice {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "NetworkChoice".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                {"enum": ["none", "open"]},
                {"type": "array", "items": {"type": "string"}}
            ]
        })
    }
}
