//! What a page is told of a run: the exact messages of every request, and nothing that is not data.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use undertext::exchange::{Message, Reasoning};
use undertext::id::{EntryId, RunId};
use undertext::overlay::Layer;
use undertext::page::{self, Data, Life};
use undertext::record::runs;
use undertext::transcript::{Entry, Event, Parent, Purpose, Run, Speaker, User};
use undertext::view::View;

use crate::generate::{Written, cases, wild};

/// What a page knows, put together from what it was told piece by piece.
#[derive(Default)]
struct Page {
    last: u64,
    texts: Vec<Value>,
    pieces: Vec<Value>,
    entries: Vec<Value>,
}

impl Page {
    fn take(&mut self, more: &str) {
        let mut more: Value = serde_json::from_str(more).unwrap();
        assert_eq!(more["after"], self.last);
        let mut part = |name: &str| std::mem::take(more[name].as_array_mut().unwrap());
        self.texts.append(&mut part("texts"));
        self.pieces.append(&mut part("pieces"));
        self.entries.append(&mut part("entries"));
        let last = self.entries.last();
        self.last = last.map_or(0, |entry| entry["id"].as_u64().unwrap());
    }

    fn text(&self, number: &Value) -> String {
        let text = &self.texts[usize::try_from(number.as_u64().unwrap()).unwrap()];
        text.as_str().unwrap().to_owned()
    }

    fn entry(&self, id: &Value) -> &Value {
        self.entries
            .iter()
            .find(|entry| entry["id"] == *id)
            .unwrap()
    }

    /// The messages of each round's request, in the order they were asked.
    fn requests(&self) -> Vec<(u64, Vec<Value>)> {
        let mut list: Vec<usize> = Vec::new();
        let mut all = Vec::new();
        for entry in &self.entries {
            if entry["purpose"] != "round" {
                continue;
            }
            list.truncate(usize::try_from(entry["keep"].as_u64().unwrap()).unwrap());
            for number in entry["then"].as_array().unwrap() {
                let number = number.as_i64().unwrap();
                let to = usize::try_from(number.abs()).unwrap();
                let from = if number < 0 {
                    list.last().unwrap() + 1
                } else {
                    to
                };
                list.extend(from..=to);
            }
            let messages = list
                .iter()
                .map(|number| self.message(&self.pieces[*number]));
            all.push((entry["id"].as_u64().unwrap(), messages.collect()));
        }
        all
    }

    /// A message: what the piece says, and what its entry says where the piece says nothing.
    fn message(&self, piece: &Value) -> Value {
        let of = piece["of"].as_str().unwrap();
        let own = |text: &Value| match &piece["text"] {
            Value::Null => self.text(text),
            number => self.text(number),
        };
        let id: Value = of
            .trim_start_matches('e')
            .parse::<u64>()
            .map_or(Value::Null, Value::from);
        match (piece["role"].as_str().unwrap(), of.as_bytes()[0]) {
            ("u", b'e') => {
                let user = self.entry(&id);
                let mut text = self.text(&user["text"]);
                let attachments = user["attachments"].as_array().into_iter().flatten();
                for (place, attachment) in (1_u64..).zip(attachments) {
                    let without = piece["without"].as_array().into_iter().flatten();
                    let hidden = without.into_iter().any(|hidden| *hidden == place);
                    let reads = if hidden { "hidden" } else { "reads" };
                    text = format!("{text}\n\n{}", self.text(&attachment[reads]));
                }
                match &piece["text"] {
                    Value::Null => json!({ "user": text }),
                    number => json!({ "user": self.text(number) }),
                }
            }
            ("a", b'e') => {
                let reads = match &piece["correction"] {
                    Value::Null => self.entry(&id),
                    correction => self.entry(correction),
                };
                let all: Vec<Value> = self.entry(&id)["calls"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                let listed = |name: &str, place: u64| {
                    let listed = piece[name].as_array().into_iter().flatten();
                    listed.into_iter().any(|one| *one == place)
                };
                let calls = (1..)
                    .zip(&all)
                    .filter(|(place, _)| piece["calls"].is_null() || listed("calls", *place));
                let calls = calls.map(|(place, call)| {
                    let arguments = if listed("emptied", place) {
                        "{}".to_owned()
                    } else {
                        self.text(&call["arguments"])
                    };
                    json!([
                        format!("{}.{place}", of.trim_start_matches('e')),
                        self.text(&call["name"]),
                        arguments
                    ])
                });
                let calls: Vec<Value> = calls.collect();
                let blocks = reads["reasoning"].as_array().map_or(0, Vec::len);
                let blocks = piece["reasoning"].as_u64().unwrap_or(blocks as u64);
                json!({ "assistant": own(&reads["text"]), "reasoning": blocks, "calls": calls })
            }
            ("t", _) => {
                // A result that came before its call answers nothing.
                let response: u64 = of.split('.').next().unwrap().parse().unwrap();
                let result = self.entries.iter().find(|entry| {
                    entry["type"] == "result"
                        && entry["call"] == of
                        && entry["id"].as_u64() > Some(response)
                });
                let content = result.map_or(&Value::Null, |result| &result["content"]);
                json!({ "tool": own(content), "call": of })
            }
            ("u", _) => json!({ "user": self.text(&piece["text"]) }),
            (_, _) => {
                json!({ "assistant": self.text(&piece["text"]), "reasoning": 0, "calls": [] })
            }
        }
    }
}

/// The messages that the view has, in the same form.
fn messages(view: &View) -> Vec<Value> {
    let messages = view.messages().into_iter();
    messages
        .map(|message| match message {
            Message::User { text } => json!({ "user": text }),
            Message::Assistant {
                text,
                reasoning,
                calls,
                ..
            } => {
                let calls = calls
                    .iter()
                    .map(|call| json!([call.id.to_string(), call.name, call.arguments]));
                let calls: Vec<Value> = calls.collect();
                let reasoning: &[Reasoning] = &reasoning;
                json!({ "assistant": text, "reasoning": reasoning.len(), "calls": calls })
            }
            Message::Tool { call, text } => json!({ "tool": text, "call": call.to_string() }),
        })
        .collect()
}

/// A page that is told a run in pieces shows of each request what was sent.
fn check(entries: &[Arc<Entry>], pieces: usize) {
    let (mut data, mut page, mut view) = (Data::default(), Page::default(), View::default());
    let mut sent = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        if let Event::Request(request) = &entry.event
            && request.purpose == Purpose::Round
            && entry.id >= view.transcript().next_id()
        {
            sent.push((entry.id.0, messages(&view)));
        }
        view.take(Arc::clone(entry));
        data.take(entry);
        if place % pieces == pieces - 1 {
            page.take(&data.more());
        }
    }
    page.take(&data.more());
    assert!(data.is_told());
    assert_eq!(page.requests(), sent);
}

fn golden() -> Vec<Arc<Entry>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts/demo.jsonl");
    let loaded = runs::read(&path).unwrap();
    loaded.view.transcript().entries().to_vec()
}

#[test]
fn each_request_of_the_golden_run_is_told_as_it_was_sent() {
    for pieces in [1, 7, 1000] {
        check(&golden(), pieces);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases() / 4))]

    #[test]
    fn each_request_is_told_as_it_was_sent(Written(entries) in wild(), pieces in 1_usize..40) {
        check(&entries, pieces);
    }
}

/// A run that says this wherever it can say something.
fn saying(text: &str) -> Vec<Arc<Entry>> {
    let mut entries = golden();
    let said = |events: Event, id: u64| {
        Arc::new(Entry {
            id: EntryId(id),
            at: golden()[0].at,
            event: events,
        })
    };
    for entry in &mut entries {
        let mut event = entry.event.clone();
        match &mut event {
            Event::Run(run) => text.clone_into(&mut run.workspace),
            Event::Setup(setup) => text.clone_into(&mut setup.wire.models.main.name),
            Event::User(user) => text.clone_into(&mut user.text),
            Event::Response(response) => {
                text.clone_into(&mut response.text);
                for call in &mut response.calls {
                    text.clone_into(&mut call.name);
                    text.clone_into(&mut call.arguments);
                }
            }
            Event::Result(result) => text.clone_into(&mut result.content),
            Event::Overlay(overlay) => {
                text.clone_into(&mut overlay.reason);
                text.clone_into(&mut overlay.rule);
                if let Layer::Summary(summary) = &mut overlay.layer {
                    text.clone_into(&mut summary.text);
                }
            }
            _ => {}
        }
        *entry = said(event, entry.id.0);
    }
    entries
}

#[test]
fn nothing_that_a_run_says_ends_the_block_it_stands_in() {
    for text in [
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "]]>\u{2028}\u{2029}\u{feff}\u{7f}\0",
        "%%script%%",
        "&lt;/script&gt;",
    ] {
        let entries = saying(text);
        check(&entries, 9);
        let mut data = Data::default();
        for entry in &entries {
            data.take(entry);
        }
        let told = data.more();
        let strange = |c: char| "<>&\u{2028}\u{2029}\u{feff}\u{7f}".contains(c) || c < ' ';
        assert_eq!(told.find(strange), None, "{text}");
        let page = page::html(&told, Life::File);
        assert_eq!(page.matches(&told).count(), 1);
        let rest = page.replace(&told, "");
        assert!(!rest.contains(text), "{text}");
        assert_eq!(rest.matches("</script>").count(), 2);
    }
}

#[test]
fn what_is_too_long_for_a_page_is_cut_in_the_middle() {
    let long = |id: u64| {
        let user = User {
            origin: Speaker::FollowUp,
            text: format!("{id}{}{id}", "x".repeat(3_000_000)),
            attachments: Vec::new(),
            clipped: None,
        };
        let event = if id == 1 {
            Event::Run(Run::new(RunId(uuid::Uuid::nil()), "/w"))
        } else {
            Event::User(user)
        };
        Arc::new(Entry {
            id: EntryId(id),
            at: golden()[0].at,
            event,
        })
    };
    let mut data = Data::default();
    (1..=80).for_each(|id| data.take(&long(id)));
    let told = data.more();
    assert!(told.len() < 49 << 20, "{}", told.len());
    assert_eq!(data.cut(), 79);
    let told: Value = serde_json::from_str(&told).unwrap();
    let last = told["texts"].as_array().unwrap().last().unwrap();
    let part = |place: usize| last[place].as_str().unwrap();
    assert!(part(0).starts_with("80x") && part(1).ends_with("x80"));
    let kept = (part(0).len() + part(1).len()) as u64;
    assert_eq!(last[2].as_u64().unwrap() + kept, 3_000_004);
}

#[test]
fn a_page_asks_nobody_but_its_own_server() {
    let policy = page::policy(Life::File);
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"));
    assert!(!policy.contains("connect-src") && !policy.contains("unsafe"));
    let live = page::policy(Life::Live);
    assert!(live.contains(" connect-src 'self';") && live.matches("sha256-").count() == 3);
}

/// What layers keep from each round's request, by the rule of the estimate alone.
fn kept(entries: &[Arc<Entry>]) -> Vec<Option<i64>> {
    let mut data = Data::default();
    for entry in entries {
        data.take(entry);
    }
    let more: Value = serde_json::from_str(&data.more()).unwrap();
    let rounds = more["entries"].as_array().unwrap().iter();
    rounds
        .filter(|it| it["purpose"] == "round")
        .map(|it| it["kept"].as_i64())
        .collect()
}

#[test]
fn what_layers_keep_back_is_measured_as_what_was_sent_is() {
    let all = golden();
    let told = kept(&all);
    // The first overlay is laid before round 7.
    let rounds: Vec<bool> = told.iter().map(|kept| kept.unwrap() > 2000).collect();
    assert_eq!(rounds, [[false; 6].as_slice(), &[true; 9]].concat());
    assert_eq!(told[..6], [Some(0); 6]);

    // Without overlays, nothing.
    let without = |is_left_out: fn(&Event) -> bool| {
        let rest = all.iter().filter(|entry| !is_left_out(&entry.event));
        kept(&rest.cloned().collect::<Vec<_>>())
    };
    let full = without(|event| matches!(event, Event::Overlay(_)));
    assert_eq!(full, [Some(0); 15]);
    // Where a result is lost, nobody knows.
    let lost = without(
        |event| matches!(event, Event::Result(result) if result.call.to_string() == "18.1"),
    );
    assert_eq!(lost, [[Some(0); 3].as_slice(), &[None; 12]].concat());
}

#[test]
fn who_recorded_an_imported_run_is_told() {
    let told = |parent: Option<Parent>| {
        let import = json!({
            "format": "claude-code", "file": "a.jsonl",
            "sha256": format!("sha256:{}", "0".repeat(64)), "skipped": 2,
        });
        let run = Run {
            generator: "claude-code 2.0.1".to_owned(),
            parent,
            imported: Some(serde_json::from_value(import).unwrap()),
            ..Run::new(RunId(uuid::Uuid::nil()), "/w")
        };
        let page = begun(run);
        let imported = &page.entries[0]["imported"];
        assert_eq!(page.text(&imported["file"]), "a.jsonl");
        assert_eq!(imported["skipped"], 2);
        page.text(&imported["by"])
    };
    assert_eq!(told(None), "claude-code 2.0.1");
    let fork = Parent {
        run: RunId(uuid::Uuid::nil()),
        entry: EntryId(9),
    };
    assert_eq!(told(Some(fork)), "claude-code");
}

/// The page of a run that has just begun.
fn begun(run: Run) -> Page {
    let mut data = Data::default();
    data.take(&Arc::new(Entry {
        id: EntryId(1),
        at: golden()[0].at,
        event: Event::Run(run),
    }));
    let mut page = Page::default();
    page.take(&data.more());
    page
}

#[test]
fn the_batch_of_a_run_is_told() {
    let task = json!({
        "file": "/w/tasks.jsonl", "id": "map", "sha256": format!("sha256:{}", "0".repeat(64)),
    });
    let run = Run {
        batch: Some(serde_json::from_value(task).unwrap()),
        ..Run::new(RunId(uuid::Uuid::nil()), "/w")
    };
    let page = begun(run);
    let batch = &page.entries[0]["batch"];
    assert_eq!(page.text(&batch["file"]), "/w/tasks.jsonl");
    assert_eq!(page.text(&batch["id"]), "map");
    assert_eq!(batch.get("name"), None);
}

/// A request that cannot be built again as it was sent says so, and no other does.
#[test]
fn a_request_that_is_not_as_it_was_sent_says_so() {
    let told = |change: fn(&mut Event)| {
        let mut data = Data::default();
        for entry in golden() {
            let mut entry = Entry::clone(&entry);
            change(&mut entry.event);
            data.take(&Arc::new(entry));
        }
        let more: Value = serde_json::from_str(&data.more()).unwrap();
        let entries = more["entries"].as_array().unwrap().clone();
        let unproved = entries.into_iter().filter(|it| it["unproved"] == true);
        unproved.map(|it| it["round"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(told(|_| {}), Vec::<Value>::new());
    let changed = told(|event| {
        if let Event::Result(result) = event
            && result.call.to_string() == "5.2"
        {
            result.content.push('!');
        }
    });
    // Until the summary that covers it was written, the request for which read it as well.
    let mut until: Vec<Value> = (2..12).map(Value::from).collect();
    until.push(Value::Null);
    assert_eq!(changed, until);
    let other = told(|event| {
        if let Event::Request(request) = event
            && request.round == Some(3)
        {
            request.renderer = 2;
        }
    });
    assert_eq!(other, [Value::from(3)]);
}
