//! The model of a run that is played: it gives the recorded responses, and hears what comes of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, Stream, StreamExt as _};
use tokio_util::sync::CancellationToken;

use crate::agent::Progress;
use crate::exchange::{Response, Status, ToolResult};
use crate::id::{CallId, EntryId};
use crate::model::{Ask, Delta, Fault, Model, Reply};
use crate::overlay::{Layer, Origin};
use crate::rerun::difference::{self, Difference};
use crate::rerun::names::Names;
use crate::rerun::{Part, Places, Recording, Replayed, Until};
use crate::transcript::{Entry, Event, FaultClass, Purpose, Speaker};

/// The tool whose arguments and results name entries.
const RECALL: &str = "Recall";

/// Gives each recorded response in its turn, whatever it is asked. Clones are the same player.
///
/// It hears what is recorded of the run that it plays, since only that says which entry stands in
/// which one's place. When it has no response left, it ends the turn.
#[derive(Clone, Debug)]
pub(super) struct Player(Arc<Mutex<State>>);

struct State {
    places: Places,
    until: Until,
    /// The results to hold new ones against.
    results: BTreeMap<CallId, ToolResult>,
    rounds: BTreeMap<EntryId, u32>,
    /// What is left of the turn.
    responses: VecDeque<(EntryId, Response)>,
    summaries: VecDeque<Response>,
    /// Recorded entries in whose place none stands yet.
    turn: Option<EntryId>,
    given: VecDeque<EntryId>,
    overlays: VecDeque<EntryId>,
    names: Names,
    /// The calls of the run that is played.
    calls: BTreeMap<CallId, String>,
    /// Requests for something else than a summary.
    asked: BTreeSet<EntryId>,
    tools: BTreeSet<String>,
    events: Option<BoxStream<'static, Progress>>,
    stop: CancellationToken,
    is_out: bool,
    has_stopped: bool,
    replayed: Replayed,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("left", &self.responses.len())
            .field("replayed", &self.replayed)
            .finish_non_exhaustive()
    }
}

impl Player {
    /// A player of this recording; each turn is loaded by itself.
    pub(super) fn new(recording: &Recording, places: Places, until: Until) -> Self {
        let recorded = recording.parts().iter().map(|part| part.responses.len());
        let replayed = Replayed {
            played: 0,
            recorded: recorded.sum::<usize>() as u64,
            compared: 0,
            not_compared: 0,
            differences: Vec::new(),
            courses: Vec::new(),
        };
        Self(Arc::new(Mutex::new(State {
            places,
            until,
            results: recording.results.clone(),
            rounds: recording.rounds.clone(),
            responses: VecDeque::new(),
            summaries: VecDeque::new(),
            turn: None,
            given: VecDeque::new(),
            overlays: VecDeque::new(),
            names: Names::default(),
            calls: BTreeMap::new(),
            asked: BTreeSet::new(),
            tools: BTreeSet::new(),
            events: None,
            stop: CancellationToken::new(),
            is_out: false,
            has_stopped: false,
            replayed,
        })))
    }

    /// Begins a turn, which is ended by `stop` when nothing is left of it.
    pub(super) fn load(&self, part: &Part, stop: CancellationToken) {
        let mut state = self.state();
        state.responses = part.responses.iter().cloned().collect();
        state.summaries = part.summaries.iter().cloned().collect();
        state.overlays = part.overlays.iter().copied().collect();
        state.given.clear();
        state.turn = Some(part.entry);
        state.stop = stop;
        state.is_out = false;
    }

    /// Hears these events from now on, of an agent with these tools.
    pub(super) fn listen(
        &self,
        events: impl Stream<Item = Progress> + Send + 'static,
        tools: BTreeSet<String>,
    ) {
        let mut state = self.state();
        state.events = Some(events.boxed());
        state.tools = tools;
    }

    /// Hears what happened since.
    pub(super) fn hear(&self) {
        self.state().hear();
    }

    /// The number of responses that are left of the turn.
    pub(super) fn left(&self) -> usize {
        self.state().responses.len()
    }

    /// Whether it was asked for more than was recorded of the turn.
    pub(super) fn is_out(&self) -> bool {
        self.state().is_out
    }

    /// Whether it ended the run because of a difference.
    pub(super) fn has_stopped(&self) -> bool {
        self.state().has_stopped
    }

    /// What came of it so far.
    pub(super) fn replayed(&self) -> Replayed {
        self.state().replayed.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for Player {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        let mut state = self.state();
        state.hear();
        let answer = if ask.summary {
            // Without one the ladder goes on, as if the summary had failed.
            let none = || Fault::new(FaultClass::Local, "no summary was recorded here");
            let response = state.summaries.pop_front();
            response.map_or_else(
                || Delta::Fault(Box::new(none())),
                |response| Delta::Reply(Box::new(Reply::of(response))),
            )
        } else {
            match state.next() {
                Some(response) => Delta::Reply(Box::new(Reply::of(response))),
                // The turn ends here, so nobody waits for an answer.
                None => return stream::pending().boxed(),
            }
        };
        stream::iter([answer]).boxed()
    }
}

impl State {
    /// The next response, as it is meant here; `None` if the turn is over, which is ended then.
    fn next(&mut self) -> Option<Response> {
        let differs = !self.replayed.differences.is_empty();
        if self.until == Until::Difference && differs {
            self.has_stopped = true;
            self.stop.cancel();
            return None;
        }
        let Some((entry, mut response)) = self.responses.pop_front() else {
            self.is_out = true;
            self.stop.cancel();
            return None;
        };
        self.replayed.played += 1;
        self.given.push_back(entry);
        for call in &mut response.calls {
            call.arguments = self.places.played(&call.arguments);
            if call.name == RECALL {
                call.arguments = self.names.played(&call.arguments);
            }
        }
        Some(response)
    }

    fn hear(&mut self) {
        while let Some(events) = &mut self.events
            && let Some(Some(progress)) = events.next().now_or_never()
        {
            if let Progress::Entry(entry) = progress {
                self.take(&entry);
            }
        }
    }

    /// Finds the place of an entry, and holds a result against the recorded one.
    fn take(&mut self, entry: &Entry) {
        match &entry.event {
            Event::User(user) if matches!(user.origin, Speaker::Task | Speaker::FollowUp) => {
                if let Some(turn) = self.turn.take() {
                    self.names.add(turn, entry.id);
                }
            }
            Event::Request(request) => {
                if matches!(request.purpose, Purpose::Round | Purpose::Repair { .. }) {
                    self.asked.insert(entry.id);
                }
            }
            Event::Response(response) if self.asked.contains(&response.request) => {
                if let Some(given) = self.given.pop_front() {
                    self.names.add(given, entry.id);
                }
                for (place, call) in response.calls.iter().enumerate() {
                    self.calls
                        .insert(CallId::at(entry.id, place), call.name.clone());
                }
            }
            Event::Overlay(laid) if laid.origin != Origin::User => {
                if let (Layer::Summary(_), Some(recorded)) =
                    (&laid.layer, self.overlays.front().copied())
                {
                    self.overlays.pop_front();
                    self.names.add(recorded, entry.id);
                }
            }
            Event::Result(result) => self.compare(result),
            Event::Run(_)
            | Event::Setup(_)
            | Event::User(_)
            | Event::Response(_)
            | Event::Started(_)
            | Event::Overlay(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Fault(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => {}
        }
    }

    fn compare(&mut self, result: &ToolResult) {
        let Some(call) = self.names.recorded_call(result.call) else {
            return;
        };
        // One that was stopped says nothing of what it would have come to, then or now.
        let stopped = |status| matches!(status, Status::Interrupted | Status::Cancelled);
        let recorded = self.results.get(&call);
        let recorded = recorded.filter(|recorded| !stopped(recorded.status));
        let Some(recorded) = recorded.filter(|_| !stopped(result.status)) else {
            self.replayed.not_compared += 1;
            return;
        };
        self.replayed.compared += 1;
        let name = self.calls.get(&result.call).cloned().unwrap_or_default();
        let content = self.places.recorded(&result.content);
        let content = self.names.recorded(&content);
        let between = difference::between(recorded, (result.status, &content));
        if let Some((status, line)) = between {
            self.replayed.differences.push(Difference {
                call,
                again: result.call,
                round: self.rounds.get(&call.response).copied(),
                absent: !self.tools.contains(&name),
                name,
                status,
                line,
            });
        }
    }
}
