//! Calls that a later call made superfluous, by data in their tool's meta.
//!
//! Calls are grouped by tool and key. A later call that ended ok and reads the same, or more, hides
//! an earlier one of a tool that only reads; a later success of a tool that writes the same key makes
//! a result stale. One pass over the groups from new to old finds both.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::compaction::strategies::{calls, is_spared, responses};
use crate::exchange::{Effect, Status, Supersession};
use crate::id::CallId;
use crate::overlay::layers::{Reads, Stubbed};
use crate::overlay::{Form, Hide, Layer, Stub};
use crate::view::{View, json_chars};

/// The lines that a call reads: the first, and the one behind the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lines {
    from: u64,
    to: u64,
}

impl Lines {
    const ALL: Self = Self {
        from: 0,
        to: u64::MAX,
    };

    fn hold(self, other: Self) -> bool {
        self.from <= other.from && other.to <= self.to
    }
}

/// A call that can supersede and be superseded.
struct Reading {
    call: CallId,
    lines: Lines,
}

/// Hides superseded calls and stubs stale results: first the hide, then the stub.
pub fn layers(view: &View) -> [Option<Layer>; 2] {
    let mut hide = Hide::default();
    let mut stub = Stub {
        form: Form::Stale,
        ..Stub::default()
    };
    let (groups, writes) = groups(view);
    let newest = view.rounds().answered().and_then(|round| round.response);
    for ((tool, key), readings) in &groups {
        // From new to old: the readings that no newer one holds.
        let mut standing: Vec<&Reading> = Vec::new();
        for reading in readings.iter().rev() {
            if let Some(newer) = standing
                .iter()
                .find(|newer| newer.lines.hold(reading.lines))
            {
                if !is_spared(view, reading.call) && Some(reading.call.response) != newest {
                    hide.calls.push(reading.call);
                    hide.why.insert(reading.call, newer.call);
                }
                continue;
            }
            standing.push(reading);
            let stale = writes
                .get(&(tool.clone(), key.clone()))
                .filter(|by| **by > reading.call);
            if let Some(by) = stale
                && !is_spared(view, reading.call)
                && Some(reading.call.response) != newest
                && stale_is_shorter(view, reading.call, *by)
            {
                stub.results.push(reading.call);
                stub.by.insert(reading.call, *by);
            }
        }
    }
    hide.calls.sort_unstable();
    stub.results.sort_unstable();
    [
        (!hide.calls.is_empty()).then_some(Layer::Hide(hide)),
        (!stub.results.is_empty()).then_some(Layer::Stub(stub)),
    ]
}

type Key = (String, String);

/// Readings by tool and key, oldest first, and for each the newest call that made them stale.
fn groups(view: &View) -> (BTreeMap<Key, Vec<Reading>>, HashMap<Key, CallId>) {
    let specs = view
        .wire()
        .map(|wire| wire.tools.as_slice())
        .unwrap_or_default();
    let readers: HashMap<&str, &Supersession> = specs
        .iter()
        .filter(|spec| spec.meta.effect == Effect::Reads)
        .filter_map(|spec| Some((spec.name.as_str(), spec.meta.supersession.as_ref()?)))
        .collect();
    let mut groups: BTreeMap<Key, Vec<Reading>> = BTreeMap::new();
    let mut writes: HashMap<Key, CallId> = HashMap::new();
    let newest = view.rounds().answered().and_then(|round| round.response);
    let live = responses(view).into_iter().chain(newest);
    for call in live.flat_map(|response| calls(view, response)) {
        let Some(tool) = view.tool_call(call) else {
            continue;
        };
        let ok = view
            .result_of(call)
            .is_some_and(|(_, result)| result.status == Status::Ok);
        let reads = view.reads(call);
        if !ok || reads.is_none() || matches!(reads, Some(Reads::Hidden(_))) {
            continue;
        }
        let arguments: Value = serde_json::from_str(&tool.arguments).unwrap_or(Value::Null);
        if let Some(rule) = readers.get(tool.name.as_str()) {
            // What does not read in full cannot stand for another.
            if reads == Some(Reads::Full) {
                let key = (tool.name.clone(), key(rule, &arguments));
                let lines = lines(view, call, rule, &arguments);
                groups.entry(key).or_default().push(Reading { call, lines });
            }
        }
        for (name, rule) in &readers {
            if rule.stale_after.contains(&tool.name) && rule.key.is_some() {
                writes.insert(((*name).to_owned(), key(rule, &arguments)), call);
            }
        }
    }
    (groups, writes)
}

fn key(rule: &Supersession, arguments: &Value) -> String {
    match &rule.key {
        Some(name) => arguments
            .get(name)
            .map(Value::to_string)
            .unwrap_or_default(),
        None => arguments.to_string(),
    }
}

/// The lines that a call showed, if its facts say so; else those that it asked for.
fn lines(view: &View, call: CallId, rule: &Supersession, arguments: &Value) -> Lines {
    let Some([first, count]) = &rule.range else {
        return Lines::ALL;
    };
    let read = view
        .result_of(call)
        .and_then(|(_, result)| result.facts.read.first());
    match read.map(|read| read.lines) {
        Some(Some([from, to])) => {
            return Lines {
                from,
                to: to.saturating_add(1),
            };
        }
        Some(None) => return Lines { from: 1, to: 1 },
        None => {}
    }
    let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
    let from = number(first).unwrap_or(1).max(1);
    Lines {
        from,
        to: number(count).map_or(u64::MAX, |count| from.saturating_add(count)),
    }
}

fn stale_is_shorter(view: &View, id: CallId, by: CallId) -> bool {
    let (Some(call), Some((_, result))) = (view.tool_call(id), view.result_of(id)) else {
        return false;
    };
    let overlay = view.transcript().next_id();
    let stub = Stubbed {
        overlay,
        form: Form::Stale,
        by: Some(by),
    };
    view.reads(id) == Some(Reads::Full)
        && json_chars(&view.stub_text(id, call, result, stub)).all < json_chars(&result.content).all
}
