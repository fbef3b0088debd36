//! What the loop does next: a function of the view and the time, and of nothing else.
//!
//! [`next`] decides, the agent does. Retries, limits and reminders are decided here, so a run that
//! is taken up again decides what it would have decided.

mod limits;

use crate::announcement::{self, Announcement};
use crate::answer::{self, Unfit};
use crate::compaction::hooks::{self, Question};
use crate::compaction::{self, Plan};
use crate::exchange::{Ending, Response};
use crate::id::{CallId, EntryId};
use crate::overlay::Origin;
use crate::transcript::{At, Check, Event, FaultClass, Purpose, Reason};
use crate::view::{Asked, View};
use crate::words;

pub use limits::time_up;

/// The first wait before a request is asked again, in milliseconds; each later one is twice as
/// long.
const BACK_OFF_MS: u64 = 500;

/// The longest wait that nobody asked for, in milliseconds.
const BACK_OFF_MOST_MS: u64 = 60_000;

/// The most attempts at a request, the first included, while nothing tells whether waiting helps.
const UNCLEAR_ATTEMPTS: u32 = 4;

/// Empty or cut replies in a row that are answered with a reminder.
const REMINDERS: u32 = 2;

/// Corrections that are asked for of an answer that does not fit the schema.
const REPAIRS: u32 = 2;

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
    /// Run the check on this reply, which ends the work if it passes.
    ///
    /// It is a verb of its own because nothing else fits: the model did not call it and gets no
    /// result, it is never answered `interrupted`, and a run that was killed beside it runs it again.
    Check(EntryId),
    /// Ask the hook before a pass is begun.
    ///
    /// It is a verb of its own for the reasons that `Check` is.
    Hook(Box<Question>),
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

/// What the loop does next.
pub fn next(view: &View, now: At) -> Step {
    // What a person asked for by hand is not the loop's to wait for.
    let own = |asked: &&Asked| asked.purpose.origin() != Origin::User;
    let asked = view.ledger().asked.as_ref().filter(own);
    if let Some(step) = asked.and_then(|asked| pending(view, asked, now)) {
        // An attempt that failed may have used something as well.
        let asks = matches!(step, Step::Ask(_));
        return match limits::spent(view, now).filter(|_| asks) {
            Some(reason) => Step::Stop(reason),
            None => step,
        };
    }
    let open = view.open_calls();
    if !open.is_empty() {
        return Step::Call(open);
    }
    let mut tell = Vec::new();
    let mut repair = None;
    match judged(view) {
        Some(Judged::Stop(reason)) => return Step::Stop(reason),
        Some(Judged::Remind(text)) => tell.push(text.to_owned()),
        Some(Judged::Check(response)) => return Step::Check(response),
        Some(Judged::Repair(purpose)) => repair = Some(purpose),
        None => {}
    }
    if let Some(reason) = limits::reached(view, now) {
        return Step::Stop(reason);
    }
    if let Some(step) = compacted(view, now) {
        return step;
    }
    if oversize(view) {
        return Step::Stop(Reason::Oversize);
    }
    if let Some(purpose) = repair {
        return Step::Ask(Ask {
            purpose,
            again: None,
            tell: None,
        });
    }
    tell.extend(refused_call(view));
    tell.extend(compaction::failure(view));
    tell.extend(limits::warnings(view, now));
    if tell.is_empty() && !view.awaits_model() {
        tell.push(words::GO_ON.to_owned());
    }
    let tell = (!tell.is_empty()).then(|| tell.join("\n\n"));
    Step::Ask(Ask {
        purpose: Purpose::Round,
        again: None,
        tell,
    })
}

/// What becomes of the newest request if it has no response: it is waited for, sent again, or the run
/// ends; `None` if it is settled.
pub fn unanswered(view: &View, now: At) -> Option<Step> {
    let asked = view.ledger().asked.as_ref()?;
    pending(view, asked, now)
}

fn pending(view: &View, asked: &Asked, now: At) -> Option<Step> {
    if asked.response.is_some() {
        return None;
    }
    match asked.fault {
        Some((_, Some(at))) if now < at && is_a_wait(view, at.ms_since(now)) => {
            Some(Step::Wait(at))
        }
        // Without a fault, the run was killed while it waited for the reply.
        None | Some((_, Some(_))) => again(view, asked),
        // What failed for good before the run ended is tried once more, as a new request.
        Some((_, None)) if asked.ended => None,
        Some((class, None)) => match &asked.purpose {
            Purpose::Round | Purpose::Repair { .. } => failed(view, asked, class),
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

/// The request under its own entry, if the view still gives its body. Else a new one is made, after
/// everything that is looked at before a request.
fn again(view: &View, asked: &Asked) -> Option<Step> {
    let entry = view.transcript().get(asked.request)?;
    let Event::Request(request) = &entry.event else {
        return None;
    };
    let same = view.body_digest(&asked.purpose)? == request.body;
    let (purpose, again) = (asked.purpose.clone(), Some(asked.request));
    same.then_some(Step::Ask(Ask {
        purpose,
        again,
        tell: None,
    }))
}

/// What becomes of a round whose request failed for good.
fn failed(view: &View, asked: &Asked, class: FaultClass) -> Option<Step> {
    let ledger = view.ledger();
    // The last pass is tried as well.
    let is_laid = ledger.recovered > asked.fault_entry;
    match class {
        FaultClass::Overflow if is_laid || ledger.recoveries < RECOVERIES => None,
        FaultClass::ContentFilter => Some(Step::Stop(Reason::Refused)),
        // The settings leave out now what was not taken.
        FaultClass::Permanent if view.setup_entry() > asked.fault_entry => None,
        FaultClass::Permanent if (1..=REMINDERS).contains(&ledger.refused_calls) => None,
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

/// What the model is told of its call that the server refused, once.
fn refused_call(view: &View) -> Option<String> {
    let ledger = view.ledger();
    let asked = ledger.asked.as_ref()?;
    let entry = asked.fault_entry?;
    if asked.response.is_some() || asked.ended || ledger.told > Some(entry) {
        return None;
    }
    let Event::Fault(fault) = &view.transcript().get(entry)?.event else {
        return None;
    };
    let text = fault.refused_call.as_ref()?;
    (asked.purpose == Purpose::Round).then(|| words::refused_call(&fault.message, text))
}

/// What the newest response asks for.
enum Judged {
    /// The run ends.
    Stop(Reason),
    /// The model is reminded, and goes on.
    Remind(&'static str),
    /// The reply ends the work if the check passes.
    Check(EntryId),
    /// The answer does not fit the schema, and a correction is asked for.
    Repair(Purpose),
}

/// What the newest response asks for, if the round is closed and nobody spoke since; `None` if the
/// run simply goes on.
fn judged(view: &View) -> Option<Judged> {
    let round = view.rounds().last()?;
    let entry = view.corrected(round.response?);
    let ledger = view.ledger();
    let response = view.response(entry)?;
    let limits = &view.policy()?.limits;
    // Its output stands in the transcript already, so that the model reads it when the run is taken
    // up again.
    let told = ledger
        .check
        .is_some_and(|(check, _)| ledger.user > Some(check));
    if told && ledger.checks_failed > limits.check_rounds {
        return Some(Judged::Stop(Reason::Check));
    }
    if ledger.user.is_some_and(|user| user > entry) {
        return None;
    }
    let resumed = ledger.last_end.is_some_and(|end| end > entry);
    match response.ending {
        Ending::Complete if response.calls.is_empty() => spoken(view, entry, response),
        Ending::Complete => {
            let streak = ledger.failing.as_ref();
            streak
                .filter(|streak| streak.times >= limits.failing_calls_stop)
                .map(|_| Judged::Stop(Reason::Stuck))
        }
        Ending::Cut if ledger.cuts > REMINDERS => Some(Judged::Stop(Reason::Stuck)),
        Ending::Cut if response.calls.is_empty() => Some(Judged::Remind(words::CUT_TEXT)),
        Ending::Cut => None,
        Ending::Filtered | Ending::Refused if resumed => Some(Judged::Remind(words::GO_ON)),
        Ending::Filtered | Ending::Refused => Some(Judged::Stop(Reason::Refused)),
    }
}

/// What a complete reply without calls means.
fn spoken(view: &View, entry: EntryId, response: &Response) -> Option<Judged> {
    let (ledger, policy) = (view.ledger(), view.policy()?);
    if announcement::spoken(&response.text).is_empty() {
        return Some(if ledger.empties > REMINDERS {
            Judged::Stop(Reason::Empty)
        } else {
            Judged::Remind(words::EMPTY)
        });
    }
    let nudge = ledger
        .announced
        .and_then(|(what, times)| nudge(what, times, policy.limits.nudges));
    let passed = |(_, check): (EntryId, Check)| check.response == entry && check.passed;
    let schema = policy.output.as_ref();
    let unfit = schema.and_then(|schema| answer::unfit(schema, &response.text));
    // What is JSON where JSON is wanted announces nothing.
    let announces = schema.is_none() || unfit.as_ref().is_some_and(|unfit| !unfit.is_json);
    Some(if let Some(text) = nudge.filter(|_| announces) {
        Judged::Remind(text)
    } else if let Some(unfit) = unfit {
        repair(view, entry, &unfit)
    } else if policy.check.is_none() || ledger.check.is_some_and(passed) {
        Judged::Stop(Reason::Finished)
    } else {
        Judged::Check(entry)
    })
}

/// What becomes of an answer that does not fit the schema.
fn repair(view: &View, entry: EntryId, unfit: &Unfit) -> Judged {
    let ledger = view.ledger();
    if ledger.repairs >= REPAIRS {
        return Judged::Stop(Reason::Schema);
    }
    // A correction that was one would stand in the place of what it corrects.
    let last = ledger.repairing().and_then(|asked| asked.response);
    let last = last.filter(|last| ledger.repairs > 0 && *last > entry);
    let last = last.and_then(|last| view.response(last)).map(failed_repair);
    Judged::Repair(Purpose::Repair {
        response: entry,
        error: words::repair(&unfit.what, last),
    })
}

/// What the model is told of a correction that was none.
fn failed_repair(response: &Response) -> &'static str {
    match response.ending {
        Ending::Cut => words::REPAIR_CUT,
        Ending::Filtered | Ending::Refused => words::REPAIR_UNSOUND,
        Ending::Complete if !response.calls.is_empty() => words::REPAIR_CALLED,
        Ending::Complete => words::REPAIR_EMPTY,
    }
}

/// What keeps the newest answer from fitting the schema; `None` if there is no schema or it fits.
pub fn unfit(view: &View) -> Option<Unfit> {
    let newest = view.rounds().last()?.response?;
    let response = view.response(view.corrected(newest))?;
    answer::unfit(view.policy()?.output.as_ref()?, &response.text)
}

/// What a model is told that announces work, so many times in a row now; `None` if it was told often
/// enough: what it means is not clear, and its word ends the run.
fn nudge(what: Announcement, times: u32, most: u32) -> Option<&'static str> {
    let (text, most) = match what {
        Announcement::Work => (words::ANNOUNCED, most),
        Announcement::Call => (words::WRITTEN_CALL, most.min(1)),
    };
    (times <= most).then_some(text)
}

/// What compaction does before the next request.
fn compacted(view: &View, now: At) -> Option<Step> {
    let plan = compaction::plan(view, now);
    if let Some(question) = plan.as_ref().and_then(|plan| hooks::question(view, plan)) {
        return Some(Step::Hook(Box::new(question)));
    }
    match plan {
        Some(Plan::Ask(purpose)) => Some(Step::Ask(Ask {
            purpose,
            again: None,
            tell: None,
        })),
        Some(Plan::Stop) => Some(Step::Stop(Reason::Compaction)),
        Some(plan @ (Plan::Lay(_) | Plan::Failed { .. })) => Some(Step::Compact(plan)),
        // The provider refused the request, and there is nothing left to take out of it.
        None if compaction::Cause::of(view) == Some(compaction::Cause::Recovery) => {
            let reason = if oversize(view) {
                Reason::Oversize
            } else {
                Reason::Provider
            };
            Some(Step::Stop(reason))
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

/// What the step looks at when an attempt at a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its class.
    pub class: FaultClass,
    /// How long the server asked to wait, in milliseconds.
    pub asked_wait_ms: Option<u64>,
    /// Whether it is a limit of which nothing tells if waiting helps.
    pub unclear: bool,
}

/// How long to wait, in milliseconds, before a request that failed is asked again; `None` if it is
/// not.
///
/// The time for that begins with the first failure, so that a long reply that was torn at its end is
/// asked for once more.
pub fn wait(view: &View, request: EntryId, failure: Failure, now: At) -> Option<u64> {
    let retries = &view.policy()?.retries;
    let asked = view
        .ledger()
        .asked
        .as_ref()
        .filter(|asked| asked.request == request)?;
    let attempt = asked.tries + 1;
    let attempts = if failure.unclear {
        retries.attempts.min(UNCLEAR_ATTEMPTS)
    } else {
        retries.attempts
    };
    if !failure.class.retried() || attempt >= attempts {
        return None;
    }
    let back_off = BACK_OFF_MS
        .saturating_mul(1 << (attempt - 1).min(20))
        .min(BACK_OFF_MOST_MS);
    // No wait at all makes no sense: it was waited for already.
    let asked_wait_ms = failure.asked_wait_ms.filter(|ms| *ms > 0);
    let wait = asked_wait_ms.unwrap_or(back_off);
    let passed = if asked.tries == 0 {
        0
    } else {
        now.ms_since(asked.since)
    };
    let left = retries.total_ms.saturating_sub(passed);
    if wait > retries.wait_ms || wait > left {
        return None;
    }
    // Upwards by at most a quarter, so that runs that failed together do not come back together;
    // drawn from the ids, so that the same entries decide the same.
    let draw = request.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(attempt) << 32);
    let jitter = (draw >> 33) % (wait / 4 + 1);
    Some((wait + jitter).min(left))
}
