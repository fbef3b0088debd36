//! What the loop does next: a function of the view and the time, and of nothing else.
//!
//! [`next`] decides, the agent does. Retries, limits and reminders are decided here, so a run that
//! is taken up again decides what it would have decided.

use crate::compaction::{self, Plan};
use crate::exchange::{Ending, Response};
use crate::id::{CallId, EntryId};
use crate::transcript::{At, Event, FaultClass, Purpose, Reason};
use crate::view::{Asked, View};
use crate::words;

/// The first wait before a request is asked again, in milliseconds; each later one is twice as
/// long.
const BACK_OFF_MS: u64 = 500;

/// The longest wait that nobody asked for, in milliseconds.
const BACK_OFF_MOST_MS: u64 = 60_000;

/// Empty or cut replies in a row that are answered with a reminder.
const REMINDERS: u32 = 2;

/// Passes of origin recovery for one request.
const RECOVERIES: u32 = 2;

/// What the loop does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask a model.
    Ask(Ask),
    /// Wait until then, and decide again.
    Wait(At),
    /// Answer these calls.
    Call(Vec<CallId>),
    /// Record what compaction decided.
    Compact(Plan),
    /// End the run.
    Stop(Reason),
}

/// How a model is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// What for.
    pub purpose: Purpose,
    /// The request that is sent again, byte for byte, under its own entry.
    pub again: Option<EntryId>,
    /// What the runtime tells the model first.
    pub tell: Option<String>,
}

impl Step {
    fn ask(purpose: Purpose) -> Self {
        Self::Ask(Ask {
            purpose,
            again: None,
            tell: None,
        })
    }

    fn tell(text: impl Into<String>) -> Self {
        Self::Ask(Ask {
            purpose: Purpose::Round,
            again: None,
            tell: Some(text.into()),
        })
    }
}

/// What the loop does next.
pub fn next(view: &View, now: At) -> Step {
    if let Some(step) = view
        .ledger()
        .asked
        .as_ref()
        .and_then(|asked| pending(view, asked, now))
    {
        return step;
    }
    let open = view.open_calls();
    if !open.is_empty() {
        return Step::Call(open);
    }
    judged(view)
        .or_else(|| limit(view, now).map(Step::Stop))
        .or_else(|| compacted(view, now))
        .or_else(|| oversize(view).then_some(Step::Stop(Reason::Oversize)))
        .or_else(|| warning(view, now).map(Step::tell))
        .unwrap_or_else(|| {
            if view.awaits_model() {
                Step::ask(Purpose::Round)
            } else {
                Step::tell(words::GO_ON)
            }
        })
}

/// What becomes of a request that has no response.
fn pending(view: &View, asked: &Asked, now: At) -> Option<Step> {
    if asked.response.is_some() {
        return None;
    }
    match asked.fault {
        Some((_, Some(at))) if now < at && is_a_wait(view, at.ms_since(now)) => {
            Some(Step::Wait(at))
        }
        // Without a fault, the run was killed while it waited for the reply.
        None | Some((_, Some(_))) => Some(again(view, asked)),
        // What failed for good before the run ended is tried once more, as a new request.
        Some((_, None)) if asked.ended => None,
        Some((class, None)) => match &asked.purpose {
            Purpose::Round | Purpose::Repair { .. } => failed(view, class),
            // Compaction has its own answer to a summary that cannot be had.
            Purpose::Summary(_) | Purpose::Combine(_) => None,
        },
    }
}

/// Whether anything can have asked for a wait this long: if not, the clock was set back.
fn is_a_wait(view: &View, ms: u64) -> bool {
    let longest = view.policy().map_or(0, |policy| policy.retries.wait_ms);
    ms <= longest.saturating_add(longest / 4)
}

/// The request under its own entry if the view still gives its body, else a new one.
fn again(view: &View, asked: &Asked) -> Step {
    let entry = view.transcript().get(asked.request);
    let recorded = match entry.map(|entry| &entry.event) {
        Some(Event::Request(request)) => Some(request.body),
        Some(_) | None => None,
    };
    let body = view.body(&asked.purpose).map(|body| body.digest());
    let same = recorded.is_some() && recorded == body;
    Step::Ask(Ask {
        purpose: asked.purpose.clone(),
        again: same.then_some(asked.request),
        tell: None,
    })
}

/// What becomes of a round whose request failed for good.
fn failed(view: &View, class: FaultClass) -> Option<Step> {
    match class {
        FaultClass::Overflow if view.ledger().recoveries < RECOVERIES => None,
        FaultClass::ContentFilter => Some(Step::Stop(Reason::Refused)),
        FaultClass::Overflow
        | FaultClass::Rate
        | FaultClass::Overload
        | FaultClass::Server
        | FaultClass::Transport
        | FaultClass::Stall
        | FaultClass::Torn
        | FaultClass::Auth
        | FaultClass::Permanent
        | FaultClass::Local => Some(Step::Stop(Reason::Provider)),
    }
}

/// What the newest response asks for, if the round is closed and nobody spoke since; `None` if the
/// run goes on.
fn judged(view: &View) -> Option<Step> {
    let round = view.rounds().last()?;
    let entry = round.response?;
    let ledger = view.ledger();
    let response = view.response(entry)?;
    if ledger.user.is_some_and(|user| user > entry) {
        return None;
    }
    let resumed = ledger.last_end.is_some_and(|end| end > entry);
    match response.ending {
        Ending::Complete if response.calls.is_empty() => Some(spoken(view, response)),
        Ending::Complete => {
            let streak = ledger.failing.as_ref();
            let stop = view.policy()?.limits.failing_calls_stop;
            streak
                .filter(|streak| streak.times >= stop)
                .map(|_| Step::Stop(Reason::Stuck))
        }
        Ending::Cut if ledger.cuts > REMINDERS => Some(Step::Stop(Reason::Stuck)),
        Ending::Cut if response.calls.is_empty() => Some(Step::tell(words::CUT_TEXT)),
        Ending::Cut => None,
        Ending::Filtered | Ending::Refused if resumed => Some(Step::tell(words::GO_ON)),
        Ending::Filtered | Ending::Refused => Some(Step::Stop(Reason::Refused)),
    }
}

/// What a complete reply without calls means.
fn spoken(view: &View, response: &Response) -> Step {
    if !response.text.trim().is_empty() {
        Step::Stop(Reason::Finished)
    } else if view.ledger().empties > REMINDERS {
        Step::Stop(Reason::Empty)
    } else {
        Step::tell(words::EMPTY)
    }
}

/// The limit that is reached, if any. Limits count from the newest end.
fn limit(view: &View, now: At) -> Option<Reason> {
    let reached = |used: Used| used.limit.is_some_and(|limit| used.now >= limit);
    used(view, now)
        .into_iter()
        .find(|used| reached(*used))
        .map(|used| used.reason)
}

/// What was used of one limit.
#[derive(Clone, Copy, Debug)]
struct Used {
    reason: Reason,
    what: &'static str,
    now: u64,
    before: u64,
    limit: Option<u64>,
}

fn used(view: &View, now: At) -> Vec<Used> {
    let Some(policy) = view.policy() else {
        return Vec::new();
    };
    let limits = &policy.limits;
    let ledger = view.ledger();
    let (since, before) = (ledger.since_end, ledger.before_round);
    let time = ledger.begun.map_or(0, |begun| now.ms_since(begun));
    let asked = ledger.round_asked.zip(ledger.begun);
    let time_before = asked.map_or(0, |((_, at), begun)| at.ms_since(begun));
    let use_of = |reason, what, now, before, limit| Used {
        reason,
        what,
        now,
        before,
        limit,
    };
    vec![
        use_of(
            Reason::Rounds,
            "rounds",
            since.rounds,
            before.rounds,
            limits.rounds.map(u64::from),
        ),
        use_of(
            Reason::Tokens,
            "tokens",
            since.input + since.output,
            before.input + before.output,
            limits.tokens,
        ),
        use_of(
            Reason::Cost,
            "micro-dollars",
            since.cost_usd_micro.unwrap_or(0),
            before.cost_usd_micro.unwrap_or(0),
            limits.cost_usd_micro,
        ),
        use_of(
            Reason::WallTime,
            "milliseconds",
            time,
            time_before,
            limits.wall_time_ms,
        ),
    ]
}

/// What compaction does before the next request.
fn compacted(view: &View, now: At) -> Option<Step> {
    match compaction::plan(view, now) {
        Some(Plan::Ask(purpose)) => Some(Step::ask(purpose)),
        Some(Plan::Tell(text)) => Some(Step::tell(text)),
        Some(Plan::Stop) => Some(Step::Stop(Reason::Compaction)),
        Some(plan @ (Plan::Lay(_) | Plan::Failed { .. })) => Some(Step::Compact(plan)),
        // The provider refused the request, and there is nothing left to take out of it.
        None if compaction::Cause::of(view) == Some(compaction::Cause::Recovery) => {
            Some(Step::Stop(Reason::Provider))
        }
        None => None,
    }
}

/// Whether the next request cannot fit, whatever is compacted: what a person put there, or
/// instructions and tools alone, take too much.
fn oversize(view: &View) -> bool {
    let (Some(sizes), Some(setup)) = (view.sizes(), view.setup()) else {
        return false;
    };
    let known = setup.wire.models.main.window.is_some() && setup.policy.compaction.enabled;
    known && (view.estimate().tokens > sizes.fits || sizes.fixed > sizes.trigger / 2)
}

/// What the model is warned of before the next round, once.
fn warning(view: &View, now: At) -> Option<String> {
    let ledger = view.ledger();
    let response = view.rounds().last()?.response?;
    if ledger.told.is_some_and(|told| told > response) {
        return None;
    }
    let warn = view.policy()?.limits.failing_calls_warn;
    if let Some(streak) = ledger
        .failing
        .as_ref()
        .filter(|streak| streak.times == warn)
    {
        return Some(words::failing_call(&streak.name, streak.times));
    }
    let near = |used: &Used| {
        let warn = used.limit.map(|limit| limit.saturating_mul(4) / 5);
        warn.is_some_and(|warn| warn > 0 && used.before < warn && warn <= used.now)
    };
    let used = used(view, now).into_iter().find(near)?;
    Some(words::limit_near(
        used.what,
        used.now,
        used.limit.unwrap_or(0),
    ))
}

/// How long to wait, in milliseconds, before a request that failed is asked again; `None` if it is
/// not. `asked_wait_ms` is what the server asked for.
pub fn wait(
    view: &View,
    request: EntryId,
    class: FaultClass,
    asked_wait_ms: Option<u64>,
    now: At,
) -> Option<u64> {
    let retries = &view.policy()?.retries;
    let asked = view
        .ledger()
        .asked
        .as_ref()
        .filter(|asked| asked.request == request)?;
    let attempt = asked.attempts + 1;
    if !class.retried() || attempt >= retries.attempts {
        return None;
    }
    let back_off = BACK_OFF_MS
        .saturating_mul(1 << (attempt - 1).min(20))
        .min(BACK_OFF_MOST_MS);
    let wait = asked_wait_ms.unwrap_or(back_off);
    if wait > retries.wait_ms {
        return None;
    }
    // Upwards by at most a quarter, so that runs that failed together do not come back together;
    // drawn from the ids, so that the same entries decide the same.
    let draw = request.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(attempt) << 32);
    let jitter = (draw >> 33) % (wait / 4 + 1);
    let wait = wait + jitter;
    (now.ms_since(asked.at) + wait <= retries.total_ms).then_some(wait)
}
