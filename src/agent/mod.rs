//! The loop: decide, do, record.
//!
//! [`step::next`] decides; each step is one verb here, and each verb ends in entries. An [`Agent`] has no
//! memory of its own: the same loop runs, resumes and replays, over a shorter or a longer transcript.
//! Durable before effect: whatever an effect or a request depends on is synced before it.

mod ask;
mod untaken;
#[cfg(debug_assertions)]
mod judged;
#[cfg(debug_assertions)]
mod proved;
mod by_hand;
mod call;
mod check;
mod compact;
mod hook;
mod listeners;
mod lost;
mod task;

use std::fmt;
use std::io;
use std::sync::Arc;

use futures::{Stream, future};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

pub use by_hand::ByHandError;
pub use task::Task;

use crate::agent::listeners::Listeners;
use crate::compaction::notice::Notice;
use crate::compaction::{Plan, micro};
use crate::hands::Hands;
use crate::id::EntryId;
use crate::model::{Delta, Model};
use crate::record::{RecordError, Recorder};
use crate::setup::{Role, Setup};
use crate::step::{self, Step};
use crate::tools::Toolbox;
use crate::transcript::{At, End, Entry, Event, FaultClass, Note, Reason};
use crate::view::View;
use crate::wire::lower;
use crate::wire::offered::Unfit;
use crate::words;

/// How many items may wait for a listener before pieces of replies are dropped.
pub const UNREAD: usize = 4096;

/// A model, its tools, and the settings they run under. Cheap to share between runs, and to clone:
/// settings, tools, models and hands are shared then.
///
/// A clone has no listeners yet, so that one for each run tells what happens in that run alone; and it
/// may be given [hands](Self::with_hands) of its own, to work in a workspace of its own. [`Batch`] runs
/// many at once.
///
/// [`Batch`]: crate::batch::Batch
#[derive(Clone, Debug)]
pub struct Agent {
    setup: Arc<Setup>,
    models: Models,
    toolbox: Arc<Toolbox>,
    hands: Option<Arc<Hands>>,
    listeners: Listeners,
}

/// Who answers in each role.
#[derive(Clone, Debug)]
struct Models {
    main: Arc<dyn Model>,
    summary: Option<Arc<dyn Model>>,
    fallback: Option<Arc<dyn Model>>,
}

impl Models {
    fn role(&self, role: Role) -> &Arc<dyn Model> {
        let own = match role {
            Role::Main => None,
            Role::Summary => self.summary.as_ref(),
            Role::Fallback => self.fallback.as_ref(),
        };
        own.unwrap_or(&self.main)
    }
}

/// What happens while a run goes on.
#[derive(Clone, Debug)]
pub enum Progress {
    /// An entry was recorded.
    Entry(Arc<Entry>),
    /// A piece of a reply came in.
    Delta {
        /// The request.
        request: EntryId,
        /// The piece.
        delta: Delta,
    },
    /// The context is compacted: planned, laid or failed.
    Compaction(Notice),
}

/// A run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// There is nothing to do: the run is finished, or was never given a task.
    #[error("the run is finished; give it another task")]
    NoTask,
    /// The task is empty.
    #[error("the task is empty")]
    EmptyTask,
    /// A check is configured, and there is nothing to run it with.
    #[error("a check needs hands that run it")]
    NoHands,
    /// The provider would refuse every request because of the tools.
    #[error(transparent)]
    Tools(#[from] Unfit),
    /// The transcript cannot be written.
    #[error("cannot record the run")]
    Record(#[from] RecordError),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Why.
    pub reason: Reason,
    /// The model's last text, if it finished; else what ended the run.
    pub text: String,
}

impl Agent {
    /// An agent of this model, with these tools. The tools' specs become part of the settings.
    pub fn new(mut setup: Setup, model: Arc<dyn Model>, toolbox: Toolbox) -> Self {
        let compacts = setup.policy.compaction.enabled && setup.policy.compaction.tool.enabled;
        let toolbox = if compacts {
            toolbox
        } else {
            toolbox.without_compact()
        };
        setup.wire.tools = toolbox.specs();
        // A tool whose schema is none may be called with anything; the others are told of as well.
        for tool in &mut setup.wire.tools {
            if !lower::is_schema(tool.schema.get()) {
                tool.schema = lower::any_object();
            }
        }
        told_form(&mut setup);
        let models = Models {
            main: model,
            summary: None,
            fallback: None,
        };
        Self {
            setup: Arc::new(setup),
            models,
            toolbox: Arc::new(toolbox),
            hands: None,
            listeners: Listeners::default(),
        }
    }

    /// The same agent with hands for the tools that touch the world.
    #[must_use]
    pub fn with_hands(mut self, hands: impl Into<Arc<Hands>>) -> Self {
        self.hands = Some(hands.into());
        self
    }

    /// The hands for the tools that touch the world, if it has any.
    pub fn hands(&self) -> Option<&Hands> {
        self.hands.as_deref()
    }

    /// Ends what still runs, and waits until it is gone, unless others have its hands as well.
    pub async fn close(self) {
        if let Some(hands) = self.hands.and_then(Arc::into_inner) {
            hands.close().await;
        }
    }

    /// The same agent with a model of its own for a role.
    #[must_use]
    pub fn with_model(mut self, role: Role, model: Arc<dyn Model>) -> Self {
        match role {
            Role::Main => self.models.main = model,
            Role::Summary => self.models.summary = Some(model),
            Role::Fallback => self.models.fallback = Some(model),
        }
        self
    }

    /// The settings its runs record.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// What happens from now on in this agent's runs, as a stream that never makes them wait.
    ///
    /// A listener that leaves more than [`UNREAD`] items lying misses pieces of replies until it
    /// has caught up, but never an entry: that of a response holds the text whole. Entries that wait are
    /// held in memory, as long as the run is, until they are read or the stream is dropped.
    pub fn events(&self) -> impl Stream<Item = Progress> + Send + use<> {
        self.listeners.add()
    }

    /// Runs until the model is done or something ends the run: begins it with a task, or takes it
    /// up again, with or without another one. The run's end is recorded.
    ///
    /// Cancelling ends it orderly: open calls are answered, and the run can be taken up again.
    pub async fn run(
        &self,
        recorder: &mut Recorder,
        task: Option<Task>,
        cancel: &CancellationToken,
    ) -> Result<Finished, AgentError> {
        #[cfg(debug_assertions)]
        let first = recorder.view().transcript().next_id();
        self.begin(recorder, task)?;
        let run = tracing::info_span!("run", run = %recorder.run());
        let number = recorder.view().rounds().turns().len();
        let turn = tracing::info_span!(parent: &run, "turn", number);
        let reason = self.go(recorder, cancel).instrument(turn).await;
        // Jobs end with the run, however it ends.
        if let Some(hands) = &self.hands {
            hands.end_jobs().await;
        }
        let left = self.left_behind().await;
        let reason = reason?;
        let text = ending(recorder, reason);
        for text in left {
            self.record(recorder, Event::Note(Note::Warning { text }))?;
        }
        let totals = recorder.view().ledger().since_end;
        let begun = recorder.view().ledger().begun.unwrap_or_default();
        let totals = crate::transcript::Totals {
            ms: recorder.now().ms_since(begun),
            ..totals
        };
        self.record(
            recorder,
            Event::End(End {
                reason,
                text: text.clone(),
                totals,
            }),
        )?;
        recorder.sync()?;
        keep_index(recorder).await;
        #[cfg(debug_assertions)]
        proved::when_it_ends(recorder, first);
        Ok(Finished { reason, text })
    }

    /// The loop, until a step ends it, it is cancelled or its time is up. The last two end what is
    /// under way.
    async fn go(
        &self,
        recorder: &mut Recorder,
        cancel: &CancellationToken,
    ) -> Result<Reason, AgentError> {
        let clock = recorder.clock().clone();
        let moment = step::time_up(recorder.view());
        let stop = cancel.child_token();
        let alarm = async {
            if let Some(moment) = moment {
                clock.comes(moment).await;
                stop.cancel();
            }
            future::pending().await
        };
        let reason = tokio::select! {
            biased;
            never = alarm => never,
            reason = self.steps(recorder, &stop) => reason?,
        };
        let late = reason == Reason::Interrupted && !cancel.is_cancelled();
        Ok(if late { Reason::WallTime } else { reason })
    }

    /// The steps, until one ends the run or it is stopped.
    async fn steps(
        &self,
        recorder: &mut Recorder,
        stop: &CancellationToken,
    ) -> Result<Reason, AgentError> {
        loop {
            if stop.is_cancelled() {
                return self.cancelled(recorder);
            }
            match step::next(recorder.view(), recorder.now()) {
                Step::Ask(ask) => self.ask(recorder, ask, stop).await?,
                Step::Wait(until) => self.wait(recorder, until, stop).await,
                Step::Call(calls) => self.call(recorder, &calls, stop).await?,
                Step::Compact(plan) => self.compact(recorder, plan, stop).await?,
                Step::Check(response) => self.check_work(recorder, response, stop).await?,
                Step::Hook(question) => self.hook_before(recorder, &question, stop).await?,
                Step::Stop(reason) => return Ok(reason),
            }
            if self.without_hands(recorder)? {
                return Ok(Reason::Hands);
            }
        }
    }

    async fn wait(&self, recorder: &Recorder, until: At, cancel: &CancellationToken) {
        let wait = recorder.clock().wait(until);
        cancel.run_until_cancelled(wait).await;
    }

    /// Records an event and tells the listeners.
    fn record(&self, recorder: &mut Recorder, event: Event) -> Result<EntryId, AgentError> {
        let id = recorder.record(event)?;
        if let Some(entry) = recorder.view().transcript().get(id) {
            self.tell(|| Progress::Entry(Arc::clone(entry)));
        }
        Ok(id)
    }

    /// Tells the listeners.
    fn tell(&self, progress: impl Fn() -> Progress) {
        self.listeners.tell(progress);
    }
}

/// Keeps the index of a long transcript, if there is one to be kept, while other runs go on.
async fn keep_index(recorder: &mut Recorder) {
    let kept = match recorder.index_due() {
        Ok(None) => return,
        Ok(Some(due)) => tokio::task::spawn_blocking(|| due.keep()).await,
        Err(error) => Ok(Err(io::Error::other(error))),
    };
    match kept.unwrap_or_else(|ended| Err(io::Error::other(ended))) {
        Ok(kept) => recorder.index_kept(kept),
        Err(error) => tracing::debug!("no index is kept: {error}"),
    }
}

/// Says in the instructions which form the last answer must have, if that is not said there yet.
fn told_form(setup: &mut Setup) {
    let Some(output) = &setup.policy.output else {
        return;
    };
    let form = words::answer_form(output.schema.get());
    let instructions = &mut setup.wire.instructions;
    if !instructions.ends_with(&form) {
        if !instructions.is_empty() {
            instructions.push_str("\n\n");
        }
        instructions.push_str(&form);
    }
}

/// Logs what micro-compaction saw before a round.
fn look(recorder: &Recorder) {
    if let Some(look) = micro::look(recorder.view(), recorder.now()) {
        tracing::debug!(%look, "micro_compact looked");
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The end of a run in words: the model's last text, or what ended it and what to do.
fn ending(recorder: &Recorder, reason: Reason) -> String {
    let view = recorder.view();
    let round = view.rounds().last();
    let response = round
        .and_then(|round| round.response)
        .and_then(|entry| view.response(view.corrected(entry)));
    // Of several refusals of one round the first says why: the later ones follow from it.
    // So do those of the corrections of one answer.
    let repair = view.ledger().repairing();
    let repaired = repair.filter(|asked| asked.response.is_none());
    let from = match (round, repaired) {
        (Some(round), Some(_)) => round.response.map(|answer| view.corrected(answer)),
        (Some(round), None) => round.response.is_none().then(|| round.begins()),
        (None, _) => None,
    };
    let entries = from
        .into_iter()
        .flat_map(|from| view.transcript().from(from));
    let mut faults = entries.filter_map(|entry| {
        if let Event::Fault(fault) = &entry.event {
            Some(fault)
        } else {
            None
        }
    });
    let newest = faults.clone().next_back();
    let overflow = faults.find(|fault| fault.class == FaultClass::Overflow);
    let fault = overflow
        .or(newest)
        .map(|fault| fault.message.clone())
        .unwrap_or_default();
    match reason {
        Reason::Finished => response
            .map(|response| response.text.clone())
            .unwrap_or_default(),
        Reason::Check => failed_check(view),
        Reason::Schema => unfit_answer(view),
        Reason::Provider => format!("the provider failed for good: {fault}; resume to go on"),
        Reason::Oversize => {
            let Some(sizes) = view.sizes() else {
                return String::new();
            };
            let grouped = words::grouped;
            if sizes.fixed > sizes.trigger / 2 {
                return format!(
                    "instructions and tools alone take {} tokens, more than half of the {} from \
                     which the context is compacted; use a model with a larger window or fewer \
                     tools",
                    grouped(sizes.fixed),
                    grouped(sizes.trigger)
                );
            }
            format!(
                "the next request takes {} tokens and {} fit; what was handed in takes too much; \
                 resume with a model of a larger window",
                grouped(view.estimate().tokens),
                grouped(sizes.fits)
            )
        }
        Reason::Stuck => match &view.ledger().failing {
            Some(streak) => format!(
                "the same call of {} failed {} times in a row; resume and say how else to do it",
                streak.name, streak.times
            ),
            None => "the model's replies were cut again and again; resume with a larger \
                     model.max_output_tokens"
                .to_owned(),
        },
        Reason::Empty => "the model answered with nothing, again and again; resume to go on, or \
                          with another model"
            .to_owned(),
        Reason::Refused => {
            "the model or a content filter refused; resume and ask in other words".to_owned()
        }
        Reason::Compaction => "a summary could not be had, and on_failure is stop; resume to try \
                               again"
            .to_owned(),
        Reason::Rounds => "the limit of rounds is reached; resume to go on".to_owned(),
        Reason::Tokens => "the limit of tokens is reached; resume to go on".to_owned(),
        Reason::Cost => "the limit of cost is reached; resume to go on".to_owned(),
        Reason::WallTime => "the limit of time is reached; resume to go on".to_owned(),
        Reason::Interrupted => "interrupted; resume to go on".to_owned(),
        Reason::Hands => lost::what(view),
        Reason::Storage => {
            "the transcript cannot be written; make room for it, then resume".to_owned()
        }
    }
}

/// What the check that ended the run was, and what came of it.
fn failed_check(view: &View) -> String {
    let command = view.policy().and_then(|policy| policy.check.as_deref());
    let exit = view.ledger().check.and_then(|(_, check)| check.exit);
    let how = exit.map_or_else(
        || "does not come to an end".to_owned(),
        |exit| format!("fails with exit {exit}"),
    );
    let repairs = view.ledger().checks_failed.saturating_sub(1);
    let after = match repairs {
        0 => String::new(),
        1 => ", after 1 repair".to_owned(),
        repairs => format!(", after {repairs} repairs"),
    };
    let command = command.unwrap_or_default();
    format!("the check `{command}` {how}{after}; resume to go on")
}

/// What keeps the last answer from fitting the schema, and how often it was corrected.
fn unfit_answer(view: &View) -> String {
    let what = step::unfit(view).map_or_else(String::new, |unfit| format!(": {}", unfit.what));
    let after = match view.ledger().repairs {
        0 => String::new(),
        1 => " after 1 correction".to_owned(),
        repairs => format!(" after {repairs} corrections"),
    };
    format!("the answer does not fit the schema{after}{what}; resume to go on")
}

/// What a plan is called in the log.
fn plan_name(plan: &Plan) -> &'static str {
    match plan {
        Plan::Ask(_) => "ask",
        Plan::Lay(_) => "lay",
        Plan::Failed { .. } => "failed",
        Plan::Stop => "stop",
    }
}
