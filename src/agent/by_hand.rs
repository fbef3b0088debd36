//! Compaction by hand: what a person orders is planned, written if a model must write it, and laid.

use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, AgentError, untaken};
use crate::compaction::Plan;
use crate::compaction::by_hand::{self, Order, Refused, Report, Wanted, Written};
use crate::compaction::gather::{Gathered, Job, gather_by_hand};
use crate::compaction::hooks::{self, Question};
use crate::compaction::notice::{Failed, Laid, Notice, Shape};
use crate::overlay::Origin;
use crate::record::{RecordError, Recorder};
use crate::step::{self, Ask, Step};
use crate::transcript::{Event, FaultClass, Note};
use crate::view::View;

/// What was ordered cannot be done; nothing is laid.
#[derive(Debug, thiserror::Error)]
pub enum ByHandError {
    /// The order is refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// No model wrote the summary.
    #[error("no summary could be had, so nothing was changed: {why}")]
    NoSummary {
        /// What was wrong with the last reply, or with the request for it.
        why: String,
        /// The class of the fault, if there was no reply.
        class: Option<FaultClass>,
    },
    /// The hook before a pass forbids it.
    #[error("the hook before compaction forbids it, so nothing was changed: {why}")]
    Vetoed {
        /// Why, in its words.
        why: String,
    },
    /// It was stopped before the summary was there.
    #[error("stopped before the summary was there; nothing was changed")]
    Cancelled,
    /// The transcript cannot be written.
    #[error(transparent)]
    Record(#[from] AgentError),
}

impl From<RecordError> for ByHandError {
    fn from(error: RecordError) -> Self {
        AgentError::from(error).into()
    }
}

impl Agent {
    /// Does what a person orders. A model is asked only if a summary is wanted and the person did not
    /// write it; if it cannot be had, nothing is laid. A failed request is asked again as in a run.
    pub async fn compact_by_hand(
        &self,
        recorder: &mut Recorder,
        order: &Order,
        cancel: &CancellationToken,
    ) -> Result<Report, ByHandError> {
        let resolved = order.resolve(recorder.view(), recorder.now())?;
        let mut plan = by_hand::plan(recorder.view(), &resolved, None)?;
        if let Some(wanted) = plan.wanted() {
            let wanted = wanted.clone();
            let keep = self.consult(recorder, &wanted, cancel).await?;
            self.settle(recorder, order)?;
            let written = self.write(recorder, wanted, keep, cancel).await?;
            plan = by_hand::plan(recorder.view(), &resolved, Some(&written))?;
        }
        let (first, before) = (
            recorder.view().transcript().next_id(),
            Shape::of(recorder.view()),
        );
        let report = plan.lay(first, |event| self.record(recorder, event))?;
        recorder.sync()?;
        if let Some(laid) = Laid::of(recorder.view(), first, before) {
            self.notice(&Notice::Laid(laid.clone()));
            self.hook_after(recorder, &laid, cancel).await?;
        }
        super::keep_index(recorder).await;
        Ok(report)
    }

    /// Asks the hook before a pass, where there are hands to run it, and returns the texts that must be
    /// kept.
    async fn consult(
        &self,
        recorder: &mut Recorder,
        wanted: &Wanted,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, ByHandError> {
        // Not what is recorded: the settings of this run may not be yet.
        let asks = self.setup.policy.compaction.hooks.before.is_some();
        let strategies = vec!["summarize".to_owned()];
        let question = Question::new(recorder.view(), Origin::User, wanted.span, strategies);
        let Some(question) = question.filter(|_| asks && self.hands.is_some()) else {
            return Ok(Vec::new());
        };
        let focus = wanted.focus.clone();
        let question = Question { focus, ..question };
        self.hook_before(recorder, &question, cancel).await?;
        if cancel.is_cancelled() {
            return Err(ByHandError::Cancelled);
        }
        match hooks::vetoed(recorder.view()) {
            Some(why) => Err(ByHandError::Vetoed {
                why: why.to_owned(),
            }),
            None => Ok(hooks::keep(recorder.view())),
        }
    }

    /// Records which models are asked, and what they are told, if that changed. The rest of the settings
    /// stays as it was.
    fn settle(&self, recorder: &mut Recorder, order: &Order) -> Result<(), AgentError> {
        let view = recorder.view();
        let Some(before) = view.setup() else {
            return Ok(());
        };
        let mut setup = before.clone();
        setup.wire.models = self.setup.wire.models.clone();
        setup.policy.compaction.summary = self.setup.policy.compaction.summary.clone();
        let main = &mut setup.wire.models.main;
        // What a refusal taught about the window holds for the same model.
        let same = before.wire.models.main.name == main.name;
        if let Some(learned) = view.ledger().learned_window.filter(|_| same) {
            main.window = Some(main.window.map_or(learned, |window| window.min(learned)));
        }
        if same {
            untaken::leave_out_learned(view, main);
        }
        let words = order.rule().and_then(|rule| rule.instructions.clone());
        if let Some(words) = words {
            let said = &mut setup.policy.compaction.summary.instructions;
            *said = Some(match said.take() {
                Some(said) => format!("{said}\n{words}"),
                None => words,
            });
        }
        if setup != *before {
            self.record(recorder, Event::Setup(Box::new(setup)))?;
        }
        Ok(())
    }

    /// Asks models until the text is there.
    async fn write(
        &self,
        recorder: &mut Recorder,
        wanted: Wanted,
        keep: Vec<String>,
        cancel: &CancellationToken,
    ) -> Result<Written, ByHandError> {
        let job = Job {
            origin: Origin::User,
            span: wanted.span,
            focus: wanted.focus,
            keep,
        };
        let (mut failures, mut last) = (0, "no model can read what it covers".to_owned());
        loop {
            if cancel.is_cancelled() {
                return Err(ByHandError::Cancelled);
            }
            match gather_by_hand(recorder.view(), &job, failures) {
                Gathered::Ask(purpose) => {
                    let (again, tell) = (None, None);
                    let ask = Ask {
                        purpose,
                        again,
                        tell,
                    };
                    self.ask(recorder, ask, cancel).await?;
                }
                Gathered::Waits => match step::unanswered(recorder.view(), recorder.now()) {
                    Some(Step::Wait(until)) => self.wait(recorder, until, cancel).await,
                    Some(Step::Ask(ask)) => self.ask(recorder, ask, cancel).await?,
                    // One of an earlier order, which would read otherwise now.
                    Some(
                        Step::Call(_)
                        | Step::Compact(_)
                        | Step::Hook(_)
                        | Step::Check(_)
                        | Step::Stop(_),
                    )
                    | None => self.give_up(recorder)?,
                },
                Gathered::Failed { request, why } => {
                    // No rung of the ladder has another key.
                    failures = match fault(recorder.view()) {
                        Some(FaultClass::Auth) => usize::MAX,
                        Some(_) | None => failures + 1,
                    };
                    last.clone_from(&why);
                    let note = Note::SummaryFailed {
                        request,
                        why: why.clone(),
                    };
                    self.record(recorder, Event::Note(note))?;
                    let next = match gather_by_hand(recorder.view(), &job, failures) {
                        Gathered::Ask(purpose) => Some(Plan::Ask(purpose)),
                        Gathered::Waits
                        | Gathered::Failed { .. }
                        | Gathered::Text(_)
                        | Gathered::Unavailable => None,
                    };
                    let failed = Failed::of(recorder.view(), request, &why, next.as_ref());
                    self.notice(&Notice::Failed(failed));
                }
                Gathered::Text(text) => {
                    return Ok(Written {
                        text: text.text,
                        parts: text.parts,
                        depth: 1,
                        keep: job.keep,
                    });
                }
                Gathered::Unavailable => {
                    recorder.sync()?;
                    let class = fault(recorder.view()).filter(|_| failures > 0);
                    return Err(ByHandError::NoSummary { why: last, class });
                }
            }
        }
    }

    /// Notes that the newest request is not waited for any more.
    fn give_up(&self, recorder: &mut Recorder) -> Result<(), ByHandError> {
        let asked = recorder.view().ledger().asked.as_ref();
        let Some(request) = asked.map(|asked| asked.request) else {
            let (why, class) = ("nothing was asked for".to_owned(), None);
            return Err(ByHandError::NoSummary { why, class });
        };
        let why = "interrupted".to_owned();
        let note = Note::SummaryFailed { request, why };
        self.record(recorder, Event::Note(note))?;
        Ok(())
    }
}

/// The fault that ended the newest request, if there is no reply to it.
fn fault(view: &View) -> Option<FaultClass> {
    let asked = view.ledger().asked.as_ref();
    let asked = asked.filter(|asked| asked.response.is_none())?;
    asked.fault.map(|(class, _)| class)
}
