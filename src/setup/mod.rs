//! What a run records of its settings, as plain data.
//!
//! [`Wire`] is what is sent: a change of it changes requests. [`Policy`] is what decides. A new
//! `setup` entry is recorded whenever something of either changes; keys never are.

mod policy;
mod allowance;
mod sandbox;
mod profile;
mod wire;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use allowance::Allowance;
pub use policy::{
    Auto, Compaction, EstimateRule, Hooks, Limits, Micro, OnFailure, OutputSchema, Policy, Prices,
    Retries, Rule, SummaryPolicy, ToolPolicy,
};
pub use profile::{
    CacheMarkers, CacheProfile, CallIds, CallProfile, EmptyContent, MessageOrder, MessageProfile,
    OutputFormat, OutputProfile, ParameterProfile, Profile, ReasoningProfile, Removable,
    SchemaForm, SendBack, SignedArguments, ToolProfile, UsageProfile,
};
pub use sandbox::{Network, Reach, Sandbox};
pub use wire::{Api, Model, Models, Parameters, Role, Wire};

/// The body of a `setup` entry: the settings that a request and a step depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Setup {
    /// What is sent.
    pub wire: Wire,
    /// What decides.
    pub policy: Policy,
}

impl Setup {
    /// The built-in policy, with this model and this system text. Tools are added by the agent.
    pub fn new(model: Model, instructions: impl Into<String>) -> Self {
        Self {
            wire: Wire {
                instructions: instructions.into(),
                tools: Vec::new(),
                models: Models {
                    main: model,
                    summary: None,
                    fallback: None,
                },
            },
            policy: Policy::default(),
        }
    }
}
