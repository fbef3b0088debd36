//! Calls that a later call made superfluous, by data in their tool's meta.
//!
//! Calls are grouped by tool and by what they read. A later call that ended ok and reads the same,
//! or more, hides an earlier one of a tool that only reads; a later success of a tool that writes
//! the same key makes a result stale. One pass over each group from new to old finds both; the
//! readings that stand are kept in order, so that thousands of them cost little more than a few.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::compaction::strategies::{calls, is_spared, responses};
use crate::exchange::{Effect, Status, Supersession, ToolCall, ToolResult, arguments, normalised};
use crate::id::{CallId, Span};
use crate::overlay::layers::{Reads, Stubbed};
use crate::overlay::{Form, Hide, Layer, Stub};
use crate::view::{View, json_chars};

/// What later calls made superfluous.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Superseded {
    /// Calls that a later one of the same tool stands for, each with that call.
    pub hidden: BTreeMap<CallId, CallId>,
    /// Calls whose results are stale, each with the call that made it so.
    pub stale: BTreeMap<CallId, CallId>,
    /// Readings that were looked at, for tests and benchmarks: hardly more than there are.
    pub looked: u64,
}

/// Hides superseded calls and stubs stale results: first the hide, then the stub.
pub fn layers(view: &View) -> [Option<Layer>; 2] {
    Superseded::of(view, None).layers()
}

/// The same for the calls of the rounds in a span alone. What supersedes them may stand behind it.
pub fn layers_within(view: &View, span: Span) -> [Option<Layer>; 2] {
    Superseded::of(view, Some(span)).layers()
}

impl Superseded {
    /// What is superseded now, if a span is given only within it.
    pub fn of(view: &View, span: Option<Span>) -> Self {
        let mut found = Self::default();
        let newest = view.rounds().answered().and_then(|round| round.response);
        let may_go = |call: CallId| {
            let here = span.is_none_or(|span| span.contains(call.response));
            here && Some(call.response) != newest && !is_spared(view, call)
        };
        let (groups, writes) = groups(view);
        for (subject, readings) in &groups {
            let written = writes.get(subject.tool.as_str());
            let written = written.and_then(|written| written.get(subject.key.as_ref()?).copied());
            let mut standing = Standing::default();
            for reading in readings.iter().rev() {
                if let Some(newer) = standing.holder(reading) {
                    if may_go(reading.call) {
                        found.hidden.insert(reading.call, newer);
                    }
                    continue;
                }
                standing.add(reading);
                if let Some(by) = written.filter(|by| *by > reading.call)
                    && reading.shows != Shows::Nothing
                    && may_go(reading.call)
                    && stale_is_shorter(view, reading.call, by)
                {
                    found.stale.insert(reading.call, by);
                }
            }
            found.looked += standing.looked;
        }
        found
    }

    fn layers(self) -> [Option<Layer>; 2] {
        let hide = Hide {
            calls: self.hidden.keys().copied().collect(),
            why: self.hidden,
            ..Hide::default()
        };
        let stub = Stub {
            form: Form::Stale,
            results: self.stale.keys().copied().collect(),
            by: self.stale,
            ..Stub::default()
        };
        [
            (!hide.calls.is_empty()).then_some(Layer::Hide(hide)),
            (!stub.results.is_empty()).then_some(Layer::Stub(stub)),
        ]
    }
}

/// What calls are compared by: of equal ones a later may stand for an earlier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Subject {
    tool: String,
    /// The file that was read, or the argument that says what was; none if there is no such one.
    key: Option<String>,
    /// Every other argument but those of the range.
    rest: String,
}

/// A call of a tool that reads.
#[derive(Clone, Copy, Debug)]
struct Reading {
    call: CallId,
    lines: Lines,
    shows: Shows,
}

/// The lines that a call reads: the first, and the one behind the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Lines {
    from: u64,
    to: u64,
}

impl Lines {
    const ALL: Self = Self {
        from: 0,
        to: u64::MAX,
    };
}

/// What of its lines a call shows now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    /// All of them.
    All,
    /// Their head and their tail: it stands for nothing but the same, clipped as well.
    Ends,
    /// Nothing: it failed, or does not read in full. It stands for nothing.
    Nothing,
}

/// The readings of one group that no newer one stands for.
#[derive(Debug, Default)]
struct Standing {
    /// Of those that show all their lines, the ones that are not within another: the first line,
    /// the one behind the last, and the call. Both ascend together.
    whole: BTreeMap<u64, (u64, CallId)>,
    /// Those that were clipped.
    clipped: HashMap<Lines, CallId>,
    looked: u64,
}

impl Standing {
    /// The newer call that stands for an older one.
    fn holder(&mut self, older: &Reading) -> Option<CallId> {
        self.looked += 1;
        // Of those that begin early enough the last one ends last.
        let before = self.whole.range(..=older.lines.from).next_back();
        let holder = before.filter(|(_, (to, _))| older.lines.to <= *to);
        let clipped = || match older.shows {
            Shows::Ends | Shows::Nothing => self.clipped.get(&older.lines),
            Shows::All => None,
        };
        holder.map(|(_, (_, call))| call).or_else(clipped).copied()
    }

    /// Adds a reading that nothing stands for. Those within it need not be looked at again.
    fn add(&mut self, reading: &Reading) {
        let Reading { call, lines, shows } = *reading;
        match shows {
            Shows::Nothing => {}
            Shows::Ends => {
                self.clipped.insert(lines, call);
            }
            Shows::All => {
                while let Some((from, (to, _))) = self.whole.range(lines.from..).next() {
                    self.looked += 1;
                    let (from, to) = (*from, *to);
                    if lines.to < to {
                        break;
                    }
                    self.whole.remove(&from);
                }
                self.whole.insert(lines.from, (lines.to, call));
            }
        }
    }
}

type Groups = BTreeMap<Subject, Vec<Reading>>;

/// For each tool that reads, by key: the newest call that made what it read stale.
type Writes<'a> = HashMap<&'a str, HashMap<String, CallId>>;

/// Readings by what they read, oldest first, and what was written.
fn groups(view: &View) -> (Groups, Writes<'_>) {
    let specs = view
        .wire()
        .map(|wire| wire.tools.as_slice())
        .unwrap_or_default();
    let readers: HashMap<&str, &Supersession> = specs
        .iter()
        .filter(|spec| spec.meta.effect == Effect::Reads)
        .filter_map(|spec| Some((spec.name.as_str(), spec.meta.supersession.as_ref()?)))
        .collect();
    let (mut groups, mut writes) = (Groups::new(), Writes::new());
    let newest = view.rounds().answered().and_then(|round| round.response);
    let live = responses(view).into_iter().chain(newest);
    for id in live.flat_map(|response| calls(view, response)) {
        let (Some(call), Some((_, result))) = (view.tool_call(id), view.result_of(id)) else {
            continue;
        };
        if let Some(rule) = readers.get(call.name.as_str()) {
            let shows = match view.reads(id) {
                None | Some(Reads::Hidden(_)) => continue,
                Some(Reads::Full) if result.status != Status::Ok => Shows::Nothing,
                Some(Reads::Full) if result.clipped.is_some() => Shows::Ends,
                Some(Reads::Full) => Shows::All,
                Some(Reads::Stubbed(_)) => Shows::Nothing,
            };
            let (subject, lines) = subject(rule, call, result);
            let reading = Reading {
                call: id,
                lines,
                shows,
            };
            groups.entry(subject).or_default().push(reading);
        }
        if result.status != Status::Ok {
            continue;
        }
        for (reader, rule) in &readers {
            if rule.stale_after.contains(&call.name) {
                let keys = written(rule, call, result);
                let of_reader = writes.entry(reader).or_default();
                of_reader.extend(keys.into_iter().map(|key| (key, id)));
            }
        }
    }
    (groups, writes)
}

/// What a call read: which lines of what.
fn subject(rule: &Supersession, call: &ToolCall, result: &ToolResult) -> (Subject, Lines) {
    let mut rest = arguments(&call.arguments);
    let lines = lines(rule, &rest, result);
    let mut key = None;
    if let Value::Object(rest) = &mut rest {
        let named = rule.key.as_ref().and_then(|name| rest.shift_remove(name));
        for name in rule.range.iter().flatten() {
            rest.shift_remove(name);
        }
        key = named.map(|value| match result.facts.read.as_slice() {
            // One file has one name here, however it was spelled and wherever the call stood.
            [file] => file.path.clone(),
            [] | [_, _, ..] => plain(value),
        });
    }
    let subject = Subject {
        tool: call.name.clone(),
        key,
        rest: normalised(rest),
    };
    (subject, lines)
}

/// The lines that a call showed, if its facts say so; else those that it asked for.
fn lines(rule: &Supersession, arguments: &Value, result: &ToolResult) -> Lines {
    let Some([first, count]) = &rule.range else {
        return Lines::ALL;
    };
    match result.facts.read.first().map(|read| read.lines) {
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

/// The keys that a call wrote: the files that its facts name, else the argument.
fn written(rule: &Supersession, call: &ToolCall, result: &ToolResult) -> Vec<String> {
    let Some(name) = &rule.key else {
        return Vec::new();
    };
    let wrote = &result.facts.wrote;
    if !wrote.is_empty() {
        return wrote.iter().map(|file| file.path.clone()).collect();
    }
    let argument = arguments(&call.arguments).get(name).cloned();
    argument.map(plain).into_iter().collect()
}

/// The text of a key.
fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            normalised(value)
        }
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
    json_chars(&view.stub_text(id, call, result, stub)).all < json_chars(&result.content).all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::EntryId;

    /// Readings of these lines, oldest first, each clipped or not: the newer call that stands for
    /// each, by numbers from 1.
    fn check(lines: &[(u64, u64, Shows)], expected: &[(u64, u64)]) {
        let readings = (1..).zip(lines).map(|(n, (from, to, shows))| Reading {
            call: CallId::new(EntryId(n), 1),
            lines: Lines {
                from: *from,
                to: *to,
            },
            shows: *shows,
        });
        let readings: Vec<Reading> = readings.collect();
        let mut standing = Standing::default();
        let mut found = Vec::new();
        for reading in readings.iter().rev() {
            match standing.holder(reading) {
                Some(newer) => found.push((reading.call.response.0, newer.response.0)),
                None => standing.add(reading),
            }
        }
        found.reverse();
        assert_eq!(found, expected, "{lines:?}");
    }

    #[test]
    fn a_newer_reading_stands_for_what_lies_within_it() {
        use Shows::{All, Ends, Nothing};
        check(&[(1, 5, All), (1, 5, All), (1, 5, All)], &[(1, 3), (2, 3)]);
        check(&[(2, 4, All), (1, 3, All), (3, 9, All)], &[]);
        check(&[(2, 4, All), (1, 9, All), (3, 5, All)], &[(1, 2)]);
        check(
            &[(3, 4, All), (1, 3, All), (5, 9, All), (2, 6, All)],
            &[(1, 4)],
        );
        // What shows nothing is stood for and stands for nothing.
        check(&[(1, 5, All), (1, 5, Nothing)], &[]);
        check(&[(1, 5, Nothing), (1, 9, All)], &[(1, 2)]);
        // What was clipped shows no lines that were not clipped before, and no others.
        check(&[(1, 5, All), (1, 5, Ends)], &[]);
        check(&[(1, 5, Ends), (1, 5, Ends)], &[(1, 2)]);
        check(&[(2, 4, Ends), (1, 5, Ends)], &[]);
        check(&[(2, 4, Ends), (1, 5, All)], &[(1, 2)]);
    }

    /// Against every newer reading one by one, on ranges without any order.
    #[test]
    fn what_is_stood_for_is_what_a_newer_one_holds() {
        let (mut random, mut lines) = (1_u64, Vec::new());
        for _ in 0..600 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let from = (random >> 33) % 100;
            lines.push((from, from + (random >> 50) % 12));
        }
        let mut standing = Standing::default();
        let mut hidden = 0;
        for (place, (from, to)) in lines.iter().enumerate().rev() {
            let reading = Reading {
                call: CallId::new(EntryId(place as u64 + 1), 1),
                lines: Lines {
                    from: *from,
                    to: *to,
                },
                shows: Shows::All,
            };
            let newer = &lines[place + 1..];
            let held = newer.iter().any(|(start, end)| start <= from && to <= end);
            let holder = standing.holder(&reading);
            assert_eq!(holder.is_some(), held, "{place}");
            match holder {
                Some(call) => {
                    let (start, end) = lines[usize::try_from(call.response.0).unwrap() - 1];
                    assert!(call.response.0 > place as u64 + 1 && start <= *from && *to <= end);
                    hidden += 1;
                }
                None => standing.add(&reading),
            }
        }
        assert!((300..600).contains(&hidden), "{hidden}");
    }
}
