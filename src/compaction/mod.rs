//! What to compact, and how: plans, never deeds.
//!
//! [`plan`] is looked at before every request. It sees the view and the time and nothing else, and
//! says what comes next: ask a model for a summary, lay overlays, or note that a summary could not
//! be had. Micro-compaction puts old results away, [`auto`] is the pipeline when the estimate is over
//! the trigger, [`summary`] chooses spans, [`mod@gather`] gets their texts, up a ladder of models,
//! [`bands`] keeps them within their share, [`skeleton`] needs no model, [`hooks`] are asked first and
//! told afterwards. A plan is tried on a copy of the view, so that its sizes are the real ones.

pub mod auto;
pub mod bands;
pub mod by_hand;
pub mod carry;
pub mod edits;
pub mod gather;
pub mod hooks;
pub mod micro;
pub mod notice;
pub mod skeleton;
pub mod strategies;
pub mod summary;
pub mod superseded;
pub mod survival;
mod trial;
mod verdict;

use crate::compaction::gather::{Gathered, Job, gather};
use crate::id::{EntryId, Span};
use crate::overlay::{Layer, Origin, Size};
use crate::transcript::{At, Purpose};
use crate::view::View;
use crate::words;

/// What compaction does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// A model is asked for a text first.
    Ask(Purpose),
    /// Overlays are laid, in this order, as one pass.
    Lay(Pass),
    /// A summary could not be had: a note says why, and nothing else changes.
    Failed {
        /// The request that asked for it.
        request: EntryId,
        /// Why.
        why: String,
    },
    /// No summary can be had, and the settings say that the run ends then.
    Stop,
}

/// Overlays of one plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Who asked for it.
    pub origin: Origin,
    /// The overlays, in the order they are laid.
    pub drafts: Vec<Draft>,
}

/// An overlay before it is laid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The rule or stage that made it.
    pub rule: &'static str,
    /// What it changes.
    pub layer: Layer,
    /// What it does to the next request.
    pub size: Size,
    /// Why, for people.
    pub reason: String,
}

/// What compaction does before the next round is asked for; `None` if nothing.
pub fn plan(view: &View, now: At) -> Option<Plan> {
    let policy = &view.policy()?.compaction;
    if !policy.enabled {
        return None;
    }
    let due = Cause::of(view);
    let granted = granted(view);
    // A summary that was being asked for goes on, as long as it is still wanted.
    if let Some(job) = gather::active(view) {
        let wanted = match job.origin {
            Origin::Tool => granted.is_some(),
            Origin::Auto | Origin::Recovery | Origin::Micro | Origin::User => due.is_some(),
        };
        let plan = auto::asked(view, &Cause::of_job(&job), &job);
        if let Some(plan) = plan.filter(|plan| wanted || !matches!(plan, Plan::Ask(_))) {
            return Some(plan);
        }
    }
    let may = hooks::vetoed(view).is_none();
    if let Some(job) = granted.filter(|_| may)
        && let Some(plan) = auto::asked(view, &Cause::of_job(&job), &job)
    {
        return Some(plan);
    }
    if let Some(cause) = due.filter(|_| may)
        && let Some(plan) = auto::plan(view, &cause)
    {
        return Some(plan);
    }
    micro::plan(view, now).map(Plan::Lay)
}

/// Why a pass is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The estimate is over the trigger.
    Auto,
    /// The model asked for it, in a call that was granted.
    Tool {
        /// What to preserve.
        focus: Option<String>,
    },
    /// The provider refused the request as too long.
    Recovery,
}

impl Cause {
    /// The cause of the pass that the pipeline makes now; `None` if it makes none.
    pub fn of(view: &View) -> Option<Self> {
        if refused_as_too_long(view) {
            return Some(Self::Recovery);
        }
        let auto = &view.policy()?.compaction.auto;
        let over = view.estimate().tokens > view.sizes()?.trigger;
        (auto.enabled && over).then_some(Self::Auto)
    }

    fn of_job(job: &Job) -> Self {
        match job.origin {
            Origin::Tool => Self::Tool {
                focus: job.focus.clone(),
            },
            Origin::Recovery => Self::Recovery,
            Origin::Auto | Origin::Micro | Origin::User => Self::Auto,
        }
    }

    /// The summary of a span that it asks for.
    fn job(&self, view: &View, span: Span) -> Job {
        Job {
            origin: self.origin(),
            span,
            focus: match self {
                Self::Tool { focus } => focus.clone(),
                Self::Auto | Self::Recovery => None,
            },
            keep: hooks::keep(view),
        }
    }

    /// The origin of the overlays that it leads to.
    pub fn origin(&self) -> Origin {
        match self {
            Self::Auto => Origin::Auto,
            Self::Tool { .. } => Origin::Tool,
            Self::Recovery => Origin::Recovery,
        }
    }

    /// The reason that its overlays give.
    fn reason(&self, view: &View) -> String {
        match self {
            Self::Auto => {
                let estimate = view.estimate();
                let trigger = view.sizes().map_or(0, |sizes| sizes.trigger);
                format!("{} of {trigger} tokens ({})", estimate.tokens, rule(view))
            }
            Self::Tool { focus: Some(focus) } => format!("the model asked, focus: {focus}"),
            Self::Tool { focus: None } => "the model asked".to_owned(),
            Self::Recovery => "the provider refused the request as too long".to_owned(),
        }
    }
}

/// How estimates are made now, for people: `chars/4 × 1.08`.
pub fn rule(view: &View) -> String {
    let factor = view.factor();
    match factor {
        1000 => "chars/4".to_owned(),
        _ => format!("chars/4 × {}.{:02}", factor / 1000, factor % 1000 / 10),
    }
}

/// The summary that the model was granted in the newest round and that is still due.
fn granted(view: &View) -> Option<Job> {
    let round = view.rounds().last().filter(|round| round.is_closed())?;
    let last = round.span()?.to;
    let ledger = view.ledger();
    // Done, or told that it failed.
    if ledger.tool_summary.max(ledger.told) > Some(last) {
        return None;
    }
    let mut granted = round.results.iter().flatten().filter_map(|result| {
        let grant = view.result(*result)?.facts.compact.as_ref()?;
        let focus = grant.focus.clone();
        Some(Cause::Tool { focus }.job(view, grant.granted.then_some(grant.span?)?))
    });
    granted.next()
}

/// What the model is told if the compaction that it was granted cannot be had.
pub fn failure(view: &View) -> Option<String> {
    let job = granted(view)?;
    if let Some(reason) = hooks::vetoed(view) {
        return Some(words::compaction_failed(&words::vetoed(reason)));
    }
    let failed = gather(view, &job) == Gathered::Unavailable;
    failed.then(|| words::compaction_failed("no summary could be had"))
}

/// Whether the newest round's request was refused as too long and no pass was laid since.
fn refused_as_too_long(view: &View) -> bool {
    let ledger = view.ledger();
    let fault = refusal(view);
    fault.is_some() && fault > ledger.recovered && fault > ledger.last_end
}

/// The newest fault that says that the newest round's request is too long; `None` if it was answered.
fn refusal(view: &View) -> Option<EntryId> {
    let round = view.rounds().last()?;
    let ledger = view.ledger();
    let fault = ledger.overflowed?;
    // A correction belongs to the round whose answer it corrects.
    let repair = ledger.repairing().filter(|asked| asked.response.is_none());
    let asked = match repair {
        Some(asked) => asked.request,
        None => round.begins(),
    };
    ((repair.is_some() || round.response.is_none()) && asked < fault).then_some(fault)
}
