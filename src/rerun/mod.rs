//! A recorded run, run again: the recording answers in the model's place, and the tools run for real.
//!
//! Begin with [`Recording`], what there is to play; [`play`] plays it into a recorder of its own and
//! says which results differ. A `Player` is the model: it gives each recorded response in its turn,
//! whatever it is asked, so the calls are the recorded ones and only what tools do is new. Overlays
//! follow from the recorded settings, as in any run. Failed attempts are not played.
//!
//! Nothing here makes a workspace; [`copy`] makes one from another.

mod names;
mod recording;
mod difference;
mod player;
mod copy;

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

pub use copy::{Copied, CopyError, copy};
pub use difference::{Difference, Line, Pair};
pub use names::Places;
pub use recording::{Part, Recording};

use crate::agent::{Agent, AgentError};
use crate::model::Model;
use crate::record::Recorder;
use crate::rerun::player::Player;
use crate::setup::Setup;
use crate::transcript::Reason;

/// How far a recording is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// To its end: the recorded calls are valid whatever came before them.
    #[default]
    End,
    /// To the end of the first round in which a result differs.
    Difference,
}

/// What came of playing a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Replayed {
    /// The responses that were played, those of summaries left out.
    pub played: u64,
    /// The responses that were recorded.
    pub recorded: u64,
    /// The results that were held against recorded ones.
    pub compared: u64,
    /// Those that were not, because the recorded call was stopped, or never answered.
    pub not_compared: u64,
    /// The results that differ, in order.
    pub differences: Vec<Difference>,
    /// The turns that took another course than the recorded ones.
    pub courses: Vec<Course>,
}

impl Replayed {
    /// Whether everything went as it was recorded.
    pub fn is_same(&self) -> bool {
        self.differences.is_empty() && self.courses.is_empty()
    }
}

/// A turn that took another course than the recorded one, though it had the same responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Course {
    /// The turn, from 1.
    pub turn: u64,
    /// Why it ended; absent: it asked for more than was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Reason>,
    /// The recorded responses that it did not ask for.
    pub unplayed: u64,
}

/// Plays a recording into a recorder that has no task yet, until its end or until it is cancelled.
///
/// `agent` makes the agent of each turn from the settings that the turn had and from the model that
/// is given to it; the tools and the hands are the caller's. The prices are left out of the
/// settings: nobody is paid.
pub async fn play(
    recording: &Recording,
    recorder: &mut Recorder,
    places: Places,
    until: Until,
    mut agent: impl FnMut(Setup, Arc<dyn Model>) -> Agent,
    cancel: &CancellationToken,
) -> Result<Replayed, AgentError> {
    let player = Player::new(recording, places, until);
    let mut courses = Vec::new();
    for (turn, part) in (1..).zip(recording.parts()) {
        let token = cancel.child_token();
        player.load(part, token.clone());
        let mut setup = part.setup.clone();
        setup.policy.prices = None;
        setup.policy.limits.cost_usd_micro = None;
        let agent = agent(setup, Arc::new(player.clone()));
        let tools = agent.setup().wire.tools.iter();
        let tools: BTreeSet<String> = tools.map(|tool| tool.name.clone()).collect();
        player.listen(agent.events(), tools);
        let reason = turns(&agent, recorder, part, &player, &token).await?;
        if cancel.is_cancelled() || player.has_stopped() {
            break;
        }
        courses.extend(course(turn, part, &player, reason));
    }
    let mut replayed = player.replayed();
    replayed.courses = courses;
    Ok(replayed)
}

/// Plays one turn. Where a limit ended the recorded one, it was taken up again, and so is this.
async fn turns(
    agent: &Agent,
    recorder: &mut Recorder,
    part: &Part,
    player: &Player,
    token: &CancellationToken,
) -> Result<Reason, AgentError> {
    let mut task = Some(part.task.clone());
    loop {
        let left = player.left();
        let finished = agent.run(recorder, task.take(), token).await?;
        player.hear();
        let is_over = finished.reason == Reason::Finished || token.is_cancelled();
        if is_over || player.left() == 0 || player.left() == left {
            return Ok(finished.reason);
        }
    }
}

/// What to tell of the course of a turn; `None` if it is the recorded one.
fn course(turn: u64, part: &Part, player: &Player, reason: Reason) -> Option<Course> {
    let unplayed = player.left() as u64;
    let is_out = player.is_out();
    let is_same = if is_out {
        part.ended != Some(Reason::Finished)
    } else {
        // A recording that breaks off after its last response does not say how it would have ended.
        unplayed == 0 && part.ended.is_none_or(|ended| ended == reason)
    };
    (!is_same).then_some(Course {
        turn,
        ended: (!is_out).then_some(reason),
        unplayed,
    })
}
