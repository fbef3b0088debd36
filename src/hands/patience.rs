//! How long a confined process is waited for: one that does not answer is ended.
//!
//! What is asked has a limit of its own, which the process keeps. Whether the process itself still
//! works is asked of it every second while something is awaited: it may have been stopped, or hang.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::hands::{Ask, Order, Waiting};
use crate::id::CallId;
use crate::tools::bash;

/// How often it is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How many looks in a row it may be silent: it may be busy with ending what multiplies.
const SILENT: u32 = 60;

/// The same when somebody wants an end.
const SILENT_AT_END: u32 = 3;

/// How many looks in a row something may be overdue: an answer may lie there unread.
const OVERDUE: u32 = 2;

/// How long a call may take beyond its own limit.
const GRACE: Duration = Duration::from_secs(30);

/// How long anything may take to end.
const ENDING: Duration = Duration::from_secs(15);

/// What is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Awaited {
    Call(CallId),
    Jobs,
}

/// Until when it is awaited.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// `None`: for ever.
    at: Option<Instant>,
    /// Whether it is to end.
    ends: bool,
}

/// What was asked, and what was heard.
#[derive(Debug)]
pub(super) struct Patience {
    due: HashMap<Awaited, Due>,
    heard: u64,
    silent: u32,
    overdue: u32,
    next: Instant,
}

impl Patience {
    /// Patience that begins now.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            due: HashMap::new(),
            heard: 0,
            silent: 0,
            overdue: 0,
            next: now + LOOK,
        }
    }

    /// Remembers what is asked.
    pub(super) fn note(&mut self, ask: &Ask, now: Instant) {
        let end = Due {
            at: now.checked_add(ENDING),
            ends: true,
        };
        match ask {
            Ask::Order(order) => {
                let at = now.checked_add(limit(order).saturating_add(GRACE));
                let due = Due { at, ends: false };
                self.due.insert(Awaited::Call(order.call), due);
            }
            // Of what was asked twice the first counts.
            Ask::Cancel(call) => match self.due.get_mut(&Awaited::Call(*call)) {
                Some(due) if !due.ends => *due = end,
                Some(_) | None => {}
            },
            Ask::EndJobs => {
                self.due.entry(Awaited::Jobs).or_insert(end);
            }
            Ask::Sign => {}
        }
    }

    /// When to look next.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Looks, and says whether it has lasted too long.
    pub(super) fn is_out(&mut self, waiting: &Waiting, now: Instant) -> bool {
        self.next = now + LOOK;
        self.due.retain(|awaited, _| match awaited {
            Awaited::Call(call) => waiting.calls.contains_key(call),
            Awaited::Jobs => !waiting.jobs.is_empty(),
        });
        let (mut ends, mut late) = (false, false);
        for due in self.due.values() {
            ends |= due.ends;
            late |= due.at.is_some_and(|at| at < now);
        }
        self.silent = if self.heard == waiting.heard {
            self.silent + 1
        } else {
            0
        };
        self.heard = waiting.heard;
        self.overdue = if late { self.overdue + 1 } else { 0 };
        let silent = if ends { SILENT_AT_END } else { SILENT };
        self.silent > silent || self.overdue > OVERDUE
    }
}

/// How long a call may take by itself, if its tool keeps to that.
fn limit(order: &Order) -> Duration {
    let arguments = serde_json::from_str::<Value>(&order.arguments).ok();
    let given = arguments.and_then(|arguments| arguments.get("timeout_ms")?.as_u64());
    let longest = given.max(order.timeout_ms).map(Duration::from_millis);
    longest.unwrap_or_default().max(bash::LIMIT)
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::id::EntryId;

    /// After how many looks it is out, with an answer to each sign up to one of them.
    fn looks(asks: &[Ask], signs: u32) -> u32 {
        let begin = Instant::now();
        let mut patience = Patience::new(begin);
        let mut waiting = Waiting::default();
        for ask in asks {
            patience.note(ask, begin);
            match ask {
                Ask::Order(order) => {
                    waiting.calls.insert(order.call, oneshot::channel().0);
                }
                Ask::EndJobs => waiting.jobs.push(oneshot::channel().0),
                Ask::Cancel(_) | Ask::Sign => {}
            }
        }
        let out = (1..10_000).find(|look| {
            waiting.heard += u64::from(*look <= signs);
            patience.is_out(&waiting, begin + LOOK * *look)
        });
        out.unwrap_or(u32::MAX)
    }

    #[test]
    fn what_does_not_answer_is_given_up() {
        let call = CallId::new(EntryId(5), 1);
        let order = |arguments: &str| {
            Ask::Order(Order {
                call,
                tool: "Bash".to_owned(),
                arguments: arguments.to_owned(),
                cwd: None,
                known: None,
                chars: 1,
                timeout_ms: Some(1000),
            })
        };
        let long = r#"{"timeout_ms":200000}"#;
        for (asks, signs, expected) in [
            (vec![order("{}")], 0, 61),
            (vec![order("{}")], 40, 101),
            // It lives, and its tool is beyond its limit: 120 s or what was given, and 30 more.
            (vec![order("{}")], 9999, 153),
            (vec![order(long)], 9999, 233),
            // Somebody wants it to end.
            (vec![order("{}"), Ask::Cancel(call)], 0, 4),
            (vec![order("{}"), Ask::Cancel(call)], 9999, 18),
            (vec![Ask::EndJobs], 0, 4),
            (vec![Ask::EndJobs, Ask::Sign], 9999, 18),
        ] {
            assert_eq!(looks(&asks, signs), expected, "{asks:?} {signs}");
        }
        let endless = format!(r#"{{"timeout_ms":{}}}"#, u64::MAX);
        assert_eq!(looks(&[order(&endless)], 10_000), u32::MAX);
    }

    #[test]
    fn what_is_answered_is_not_awaited() {
        let now = Instant::now();
        let mut patience = Patience::new(now);
        patience.note(&Ask::EndJobs, now);
        let mut waiting = Waiting::default();
        for look in 1..100 {
            waiting.heard += 1;
            assert!(!patience.is_out(&waiting, now + LOOK * look));
        }
    }
}
