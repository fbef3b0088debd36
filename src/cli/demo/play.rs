//! A demo without a terminal: the agent, its settings, and the model behind a real server.

use std::sync::Arc;

use futures::stream::BoxStream;
use undertext::agent::Agent;
use undertext::config::{self, ConfigError};
use undertext::hands::Hands;
use undertext::instructions::{Instructions, Sources};
use undertext::model::{Ask, Client, ClientError, Delta, Endpoint, Model, Timeouts, offline};
use undertext::record::Clock;
use undertext::setup::{self, Api, Models, Parameters, Policy, Profile, Setup, Wire};
use undertext::tools::Toolbox;

use crate::cli::demo::site::Site;

/// What the model is asked to do.
pub(crate) const TASK: &str = "\
`sh tests/run.sh` fails. Find the bug and mend it. The tests and their data are right: change neither, \
and nothing that need not be changed.";

/// How long the model takes for a reply, by a clock that stands still.
const THINKS_MS: u64 = 1_700;

/// The agent of a demo, which works at this site with these hands and asks the model at this
/// address.
pub(crate) fn agent(
    site: &Site,
    hands: Hands,
    clock: &Clock,
    base_url: &str,
    policy: Policy,
) -> Result<Agent, ClientError> {
    let endpoint = Endpoint {
        base_url: base_url.to_owned(),
        api_key: None,
        headers: Vec::new(),
    };
    let model = Paced {
        model: Client::new(endpoint, Timeouts::default())?,
        clock: clock.clone(),
    };
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
    Ok(Agent::new(setup(told.text, policy), Arc::new(model), toolbox).with_hands(hands))
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
fn setup(instructions: String, policy: Policy) -> Setup {
    let wire = Wire {
        instructions,
        tools: Vec::new(),
        models: Models {
            main: model(),
            summary: None,
            fallback: None,
        },
    };
    Setup { wire, policy }
}

/// The model as its server declares it.
fn model() -> setup::Model {
    setup::Model {
        name: offline::NAME.to_owned(),
        server: None,
        api: Api::Chat,
        profile: Profile::default(),
        window: Some(offline::WINDOW),
        parameters: Parameters::default(),
    }
}

/// What a demo's settings are besides the usual ones: tokens of four characters, as its model counts
/// them, a trigger that is a part of the usual one for such a window, and passes that come as soon as
/// they free enough, so that a short run shows what a long one does.
const SET: [&str; 5] = [
    "compaction.estimate=chars",
    "compaction.micro.keep_recent=10",
    "compaction.micro.min_gain_ratio=0",
    "compaction.auto.token_threshold=14000",
    "compaction.auto.target_ratio=0.5",
];

/// The policy of the run: the usual one, what a demo sets, and what a person sets on top.
pub(crate) fn policy(set: &[String]) -> Result<Policy, ConfigError> {
    let own = SET.map(str::to_owned).into_iter();
    let sources = config::Sources {
        set: own.chain(set.iter().cloned()).collect(),
        ..config::Sources::default()
    };
    Ok(config::load(&sources)?.policy)
}
