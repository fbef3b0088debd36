//! The limits of a run: what was used of each, which is reached, and what the model is warned of.

use crate::transcript::{At, Reason};
use crate::view::View;
use crate::words;

/// When the time of the run is up, if that is limited.
pub fn time_up(view: &View) -> Option<At> {
    let limit = view.policy()?.limits.wall_time_ms?;
    Some(view.ledger().begun?.plus_ms(limit))
}

/// The limit that is reached, if any. Limits count from the newest end.
pub(super) fn reached(view: &View, now: At) -> Option<Reason> {
    let is_reached = |used: Used| used.limit.is_some_and(|limit| used.now >= limit);
    used(view, now)
        .into_iter()
        .find(|used| is_reached(*used))
        .map(|used| used.reason)
}

/// The limit of tokens or cost, if it is reached.
pub(super) fn spent(view: &View, now: At) -> Option<Reason> {
    reached(view, now).filter(|reason| matches!(reason, Reason::Tokens | Reason::Cost))
}

/// What was used of one limit.
#[derive(Clone, Copy, Debug)]
struct Used {
    reason: Reason,
    text: fn(u64, u64) -> String,
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
    let use_of = |reason, text, now, before, limit| Used {
        reason,
        text,
        now,
        before,
        limit,
    };
    let rounds = |used, limit| words::count_of(used, limit, "rounds");
    let tokens = |used, limit| words::count_of(used, limit, "tokens");
    vec![
        use_of(
            Reason::Rounds,
            rounds,
            since.rounds,
            before.rounds,
            limits.rounds.map(u64::from),
        ),
        use_of(
            Reason::Tokens,
            tokens,
            since.input.saturating_add(since.output),
            before.input.saturating_add(before.output),
            limits.tokens,
        ),
        use_of(
            Reason::Cost,
            words::money_of,
            since.cost_usd_micro.unwrap_or(0),
            before.cost_usd_micro.unwrap_or(0),
            limits.cost_usd_micro,
        ),
        use_of(
            Reason::WallTime,
            words::time_of,
            time,
            time_before,
            limits.wall_time_ms,
        ),
    ]
}

/// What the model is warned of before the next round, once.
pub(super) fn warnings(view: &View, now: At) -> Vec<String> {
    let ledger = view.ledger();
    let response = view.rounds().last().and_then(|round| round.response);
    let (Some(response), Some(policy)) = (response, view.policy()) else {
        return Vec::new();
    };
    if ledger.told.is_some_and(|told| told > response) {
        return Vec::new();
    }
    let warn = policy.limits.failing_calls_warn;
    let streak = ledger
        .failing
        .as_ref()
        .filter(|streak| streak.times == warn);
    let failing = streak.map(|streak| words::failing_call(&streak.name, streak.times));
    let near = |used: &Used| {
        let warn = used.limit.map(|limit| limit.saturating_mul(4) / 5);
        warn.is_some_and(|warn| warn > 0 && used.before < warn && warn <= used.now)
    };
    let near = used(view, now).into_iter().filter(near);
    let near = near.map(|used| words::limit_near(&(used.text)(used.now, used.limit.unwrap_or(0))));
    failing.into_iter().chain(near).collect()
}
