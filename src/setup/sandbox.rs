//! What tools may reach.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::setup::Allowance;

/// What tools may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// Tools run with the user's own rights.
    #[default]
    Off,
    /// They write in the workspace, and read what they need besides.
    Workspace(Reach),
    /// They read, and write nothing that lasts.
    ReadOnly(Reach),
}

/// What tools may reach beside the workspace and the system's own directories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reach {
    /// What may be read too, as it was named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// What may be written too, as it was named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// The network.
    pub network: Network,
    /// Whether somebody is asked about a file or a host that is out of bounds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// What they may take of the machine.
    pub limits: Allowance,
}

/// What of the network may be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Nothing but what tools serve to each other.
    #[default]
    None,
    /// These hosts and no others.
    Hosts(Vec<String>),
    /// Everything.
    Open,
}

impl Sandbox {
    /// What may be reached; `None`: whatever the user may.
    pub fn reach(&self) -> Option<&Reach> {
        match self {
            Self::Off => None,
            Self::Workspace(reach) | Self::ReadOnly(reach) => Some(reach),
        }
    }

    /// What it is called in settings.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace(_) => "workspace",
            Self::ReadOnly(_) => "read-only",
        }
    }
}
