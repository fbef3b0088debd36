//! What must hold of a played recording: the laws, that everything can be had again, and that
//! planted facts are not lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use undertext::exchange::Message;
use undertext::id::{CallId, EntryId};
use undertext::overlay::layers::Reads;
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
    pub(super) overlays: usize,
    pub(super) summaries: usize,
    /// Requests for summaries, and those of them that came to nothing.
    pub(super) asked: usize,
    pub(super) failed: usize,
    /// Facts whose value is in the final view.
    pub(super) visible: usize,
}

/// Law 3 after some entries, each behind an overlay, and at the end: the view is what the oracle
/// says. All entries would take it the square of the run.
pub(super) fn follows_the_oracle(entries: &[Arc<Entry>], looks: usize) -> Figures {
    let mut figures = Figures::default();
    let laid = |entry: &Arc<Entry>| matches!(entry.event, Event::Overlay(_));
    figures.overlays = entries.iter().filter(|entry| laid(entry)).count();
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
            Event::Overlay(_) => since += 1,
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
