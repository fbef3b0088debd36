//! A demo without a terminal: the agent, its settings, and the model behind a real server.

use std::sync::Arc;

use futures::stream::BoxStream;
use undertext::agent::Agent;
use undertext::hands::Hands;
use undertext::instructions::{Instructions, Sources};
use undertext::model::{Ask, Client, ClientError, Delta, Endpoint, Model, Timeouts, offline};
use undertext::record::Clock;
use undertext::setup::{self, Api, EstimateRule, Models, Parameters, Policy, Profile, Setup, Wire};
use undertext::tools::Toolbox;

use crate::cli::demo::site::Site;

/// What the model is asked to do.
pub(crate) const TASK: &str = "\
`sh tests/run.sh` fails. Find the bug and mend it. The tests and their data are right: change neither, \
and nothing that need not be changed.";

/// How long the model takes for a reply, by a clock that stands still.
const THINKS_MS: u64 = 1_700;

/// The agent of a demo, which works at this site and asks the model at this address.
pub(crate) fn agent(site: &Site, clock: &Clock, base_url: &str) -> Result<Agent, ClientError> {
    let endpoint = Endpoint {
        base_url: base_url.to_owned(),
        api_key: None,
        headers: Vec::new(),
    };
    let model = Paced {
        model: Client::new(endpoint, Timeouts::default())?,
        clock: clock.clone(),
    };
    let hands = Hands::in_process(site.workspace().clone());
    let told = Instructions::find(&Sources {
        workspace: site.path(),
        home: None,
        own_skills: None,
        skills: true,
        text: None,
        append: None,
        agents_md: true,
    });
    let toolbox = Toolbox::builtin().with_skills(told.skills);
    Ok(Agent::new(setup(told.text), Arc::new(model), toolbox).with_hands(hands))
}

/// A model that moves a clock that stands still.
#[derive(Debug)]
struct Paced {
    model: Client,
    clock: Clock,
}

impl Model for Paced {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        self.clock.advance(THINKS_MS);
        self.model.ask(ask)
    }
}

/// The settings of the run.
fn setup(instructions: String) -> Setup {
    let wire = Wire {
        instructions,
        tools: Vec::new(),
        models: Models {
            main: model(),
            summary: None,
            fallback: None,
        },
    };
    Setup {
        wire,
        policy: policy(),
    }
}

/// The model as its server declares it.
fn model() -> setup::Model {
    setup::Model {
        name: offline::NAME.to_owned(),
        api: Api::Chat,
        profile: Profile::default(),
        window: Some(offline::WINDOW),
        parameters: Parameters::default(),
    }
}

/// The trigger of the demo, in tokens: a part of the usual one for such a window, so that a short run
/// shows what a long one does.
const TRIGGER: u64 = 14_000;

/// The usual policy but for its trigger, with tokens of four characters, as the model counts them.
fn policy() -> Policy {
    let mut policy = Policy::default();
    policy.compaction.estimate = EstimateRule::Chars;
    policy.compaction.auto.token_threshold = TRIGGER;
    policy
}
