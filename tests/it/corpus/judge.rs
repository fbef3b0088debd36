//! What must hold of a played recording: the view is the oracle's, everything can be had again,
//! planted facts are not lost, and summaries leave out little that must survive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;
use undertext::compaction::carry::{Carried, carried};
use undertext::exchange::Message;
use undertext::id::{CallId, EntryId};
use undertext::overlay::layers::Reads;
use undertext::overlay::{Layer, Summary};
use undertext::record::Recorder;
use undertext::transcript::{Entry, Event, Note, Purpose, Speaker};
use undertext::view::View;

use super::facts::Fact;
use super::play::recorded;
use super::recording::Recording;
use crate::oracle;
use crate::recalled::recall;

/// What was seen in a run, for people.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) rounds: usize,
    pub(super) passes: usize,
    pub(super) overlays: usize,
    /// Summaries that stand at the end.
    pub(super) summaries: usize,
    /// Requests for summaries, and those of them that came to nothing.
    pub(super) asked: usize,
    pub(super) failed: usize,
    /// What survival checks looked for, what of it was missing, and what of that had room in the
    /// list, over all summaries.
    pub(super) looked_for: usize,
    pub(super) missing: usize,
    pub(super) listed: usize,
    /// The longest list of what was missing, in thousandths of the view that it stands in.
    pub(super) list: u64,
    /// Facts whose value is in the final view.
    pub(super) visible: usize,
}

/// Law 3 after some entries, each behind an overlay, and at the end: the view is what the oracle
/// says. All entries would take it the square of the run.
pub(super) fn follows_the_oracle(entries: &[Arc<Entry>], looks: usize) -> Figures {
    let mut figures = Figures::default();
    let laid = |entry: &Arc<Entry>| matches!(entry.event, Event::Overlay(_));
    figures.overlays = entries.iter().filter(|entry| laid(entry)).count();
    let passes = entries.iter().filter_map(|entry| match &entry.event {
        Event::Overlay(overlay) => Some(overlay.pass),
        _ => None,
    });
    figures.passes = passes.collect::<BTreeSet<_>>().len();
    let every = figures.overlays.div_ceil(looks.max(1)).max(1);
    let mut view = View::default();
    let mut since = 0;
    for (place, entry) in entries.iter().enumerate() {
        match &entry.event {
            Event::Request(request) if request.purpose == Purpose::Round => {
                figures.rounds += 1;
                if since >= every {
                    since = 0;
                    let body = view.body(&request.purpose).unwrap();
                    let expected = oracle::body(&entries[..place]).unwrap();
                    assert!(*body.bytes == *expected, "law 3 at entry {}", entry.id);
                }
            }
            Event::Request(_) => figures.asked += 1,
            Event::Note(Note::SummaryFailed { .. }) => figures.failed += 1,
            Event::Overlay(overlay) => {
                since += 1;
                if let Layer::Summary(summary) = &overlay.layer {
                    figures.survived(&view, summary, entry);
                }
            }
            _ => {}
        }
        view.take(Arc::clone(entry));
    }
    assert_eq!(
        view.messages(),
        oracle::messages(entries),
        "law 3 at the end"
    );
    figures.summaries = view.summaries().len();
    figures
}

impl Figures {
    /// Takes in the survival check of a summary, made again from the view before it.
    fn survived(&mut self, view: &View, summary: &Summary, entry: &Arc<Entry>) {
        let sizes = view.sizes().unwrap();
        let Carried { carry, survival } = carried(view, &sizes, summary.span, &summary.text, &[]);
        assert_eq!(carry, summary.carry, "what entry {} carries", entry.id);
        self.looked_for += survival.looked_for;
        self.listed += survival.appended;
        self.missing += survival.appended + survival.left_out;
        let mut after = view.clone();
        after.take(Arc::clone(entry));
        let list = survival.text.chars().count() as u64;
        self.list = self.list.max(list * 1000 / after.chars().all);
    }
}

/// Law 12: what was recorded of each call is had by its handle, whatever it reads as now.
pub(super) fn gives_everything_back(recorder: &Recorder, recording: &Recording) {
    let view = recorder.view();
    let responses: Vec<EntryId> = view
        .rounds()
        .all()
        .iter()
        .filter_map(|round| round.response)
        .collect();
    assert_eq!(responses.len(), recording.rounds().count());
    for (response, round) in responses.iter().zip(recording.rounds()) {
        for (place, call) in (1..).zip(&round.calls) {
            let id = CallId::new(*response, place);
            let (_, result) = view.result_of(id).unwrap();
            let changed = view.reads(id) != Some(Reads::Full)
                || view.covered_by(*response).is_some()
                || result.clipped.is_some();
            if !changed {
                continue;
            }
            let shown = recall(
                recorder,
                &json!({ "handle": id.to_string(), "lines": 1_000_000 }),
            );
            let (text, _) = recorded(call);
            let text: Vec<&str> = text.trim_end().lines().collect();
            let shown: Vec<&str> = shown.content.lines().collect();
            assert!(
                shown.ends_with(&text) || shown.join("\n").contains(&text.join("\n")),
                "{}: {id} cannot be had in full",
                recording.name
            );
        }
    }
}

/// Each planted fact is in the final view or in what one search for its label shows; returns how
/// many are in the view.
pub(super) fn keeps_the_facts(recorder: &Recorder, facts: &[Fact], name: &str) -> usize {
    let view = recorder.view();
    let policy = view.policy().unwrap();
    let chars = view.sizes().unwrap().result_chars(policy, 1);
    let messages = view.messages();
    let read: Vec<&str> = messages.iter().map(text).collect();
    let mut visible = 0;
    for Fact { label, value } in facts {
        if read.iter().any(|text| text.contains(value.as_str())) {
            visible += 1;
            continue;
        }
        let id = CallId::new(view.transcript().next_id(), 1);
        let found = recall(recorder, &json!({ "pattern": label })).clipped(chars, id);
        let found = found.content;
        assert!(
            found.contains(value),
            "{name}: {label}: {value} is lost; found: {found}"
        );
    }
    for (entry, text) in shown_again(view) {
        for Fact { value, .. } in facts.iter().filter(|fact| text.contains(&fact.value)) {
            let reads = read.iter().any(|text| text.contains(value.as_str()));
            assert!(
                reads,
                "{name}: {value} of the user's entry {entry} is not shown again"
            );
        }
    }
    visible
}

fn text<'a>(message: &'a Message<'_>) -> &'a str {
    match message {
        Message::User { text } | Message::Assistant { text, .. } | Message::Tool { text, .. } => {
            text
        }
    }
}

/// Later messages of the user that must be in the view: those that nothing covers, and of the
/// others the newest ones, as far as they fit their share together.
fn shown_again(view: &View) -> BTreeMap<EntryId, String> {
    let mut room = view.sizes().unwrap().share(0.05);
    let mut shown = BTreeMap::new();
    for entry in view.transcript().entries().iter().rev() {
        let Event::User(user) = &entry.event else {
            continue;
        };
        if user.origin != Speaker::FollowUp {
            continue;
        }
        if view.covered_by(entry.id).is_some() {
            // With the line that says whose it is.
            let takes = view.text_tokens(&user.text) + 20;
            let Some(left) = room.checked_sub(takes) else {
                break;
            };
            room = left;
        }
        shown.insert(entry.id, user.text.clone());
    }
    shown
}
