//! Hooks: commands that are asked before a pass and told after it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Progress, Task};
use undertext::compaction::hooks;
use undertext::hands::{Hands, Workspace};
use undertext::model::{Reply, Script, Scripted};
use undertext::overlay::Layer;
use undertext::record::{MemoryStorage, Recorder};
use undertext::setup::{Hooks, Policy};
use undertext::step::{self, Step};
use undertext::transcript::{Entry, Event, Note, Purpose};
use undertext::view::View;

use crate::looped::story;
use crate::scene;

/// A workspace for the hooks of a run whose results are all long.
struct Stage {
    place: TempDir,
    storage: MemoryStorage,
}

/// Whether a hook can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    Hands,
    NoHands,
}

fn reply(n: usize) -> Reply {
    let arguments = json!({ "path": format!("src/{n}.rs"), "chars": 2500 }).to_string();
    let text = "thinking ".repeat(150);
    Reply {
        text,
        ..Reply::calls([("Change", arguments)])
    }
}

fn policy(before: &str) -> Policy {
    let mut policy = Policy::default();
    policy.compaction.micro.enabled = false;
    policy.compaction.hooks = Hooks {
        before: Some(before.to_owned()),
        after: None,
        timeout_ms: 20_000,
    };
    policy
}

impl Stage {
    fn new() -> Self {
        Self {
            place: tempfile::tempdir().unwrap(),
            storage: MemoryStorage::default(),
        }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.place.path().join(name)).unwrap_or_default()
    }

    /// Runs this script and returns what was recorded. The first summaries are as said, the others
    /// sound. The run is cancelled when it has so many entries and the hook has left `asked`.
    fn play(
        &self,
        recorder: &mut Recorder,
        (policy, with): (Policy, With),
        script: Vec<Reply>,
        summaries: &[&'static str],
        cancel_at: Option<u64>,
    ) -> Vec<Arc<Entry>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let asked = AtomicUsize::new(0);
        let summaries = summaries.to_vec();
        let script: Vec<Script> = script.into_iter().map(Script::from).collect();
        let model = Scripted::new(script).with_summaries(move |_| {
            let number = asked.fetch_add(1, Ordering::Relaxed);
            let text = summaries.get(number).copied();
            Ok(Reply::text(text.unwrap_or("They were changed.")))
        });
        runtime.block_on(async {
            let mut agent = scene::agent(8_000, policy, model);
            if with == With::Hands {
                let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
                let workspace = Workspace::open(self.place.path(), None, environment).unwrap();
                agent = agent.with_hands(Hands::in_process(workspace));
            }
            let ledger = recorder.view().ledger();
            let done = ledger.last_end.is_none() || ledger.is_finished();
            let task = done.then(|| Task::new("Go."));
            let cancel = CancellationToken::new();
            let mut events = agent.events();
            let run = async { agent.run(recorder, task, &cancel).await.unwrap() };
            let asked = self.place.path().join("asked");
            let cancels = cancel_at.map(|at| (at, asked));
            let watch = watch(&mut events, cancels, &cancel);
            futures::join!(run, watch);
        });
        scene::entries(&self.storage)
    }
}

async fn watch(
    events: &mut (impl futures::Stream<Item = Progress> + Unpin),
    cancels: Option<(u64, PathBuf)>,
    cancel: &CancellationToken,
) {
    while let Some(progress) = events.next().await {
        let Progress::Entry(entry) = progress else {
            continue;
        };
        if let Some((_, asked)) = cancels.as_ref().filter(|(at, _)| entry.id.0 == *at) {
            while !asked.exists() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        }
        if matches!(entry.event, Event::End(_)) {
            break;
        }
    }
}

/// So many rounds with long results, and the end.
fn rounds(count: usize) -> Vec<Reply> {
    let mut script: Vec<Reply> = (0..count).map(reply).collect();
    script.push(Reply::text("Done."));
    script
}

/// What was asked, noted, laid and said, a line an entry.
fn passes(entries: &[Arc<Entry>]) -> String {
    let told = entries.iter().filter(|entry| match &entry.event {
        Event::Note(_) | Event::Overlay(_) | Event::Request(_) => true,
        Event::User(user) => user.text != "Go.",
        _ => false,
    });
    let lines = told.map(|entry| {
        let line = story(&[Arc::clone(entry)]);
        let line = line.split_once(' ').unwrap().1;
        match line.find("Summary(") {
            Some(at) => format!("{}summary, keep {}\n", &line[..at], keep(line)),
            None => line.to_owned(),
        }
    });
    lines.collect()
}

/// What a request for a summary, as it is told, is to keep.
fn keep(line: &str) -> &str {
    let keep = &line[line.find("keep: ").unwrap() + 6..];
    &keep[..=keep.find(']').unwrap()]
}

/// Plays so many rounds with this hook, and tells what was asked, laid and noted.
fn check(before: &str, count: usize) -> String {
    let stage = Stage::new();
    let mut recorder = scene::create(&stage.storage);
    let settings = (policy(before), With::Hands);
    let entries = stage.play(&mut recorder, settings, rounds(count), &[], None);
    crate::simulated::keeps_the_laws(&entries, 8_000).unwrap();
    passes(&entries)
}

#[test]
fn a_veto_holds_until_the_next_round() {
    // It forbids the first pass.
    let before = r#"echo >> n; [ "$(wc -l < n)" -gt 1 ] || echo '{"veto": true, "reason": "the build runs"}'"#;
    insta::assert_snapshot!(check(before, 7), @"
    request, round 1
    request, round 2
    request, round 3
    request, round 4
    request, round 5
    hook said, veto true, keep []: the build runs
    request, round 6
    hook said, veto false, keep []: 
    request, summary, keep []
    overlay, auto, summary
    request, round 7
    request, round 8
    ");
}

#[test]
fn a_veto_that_leaves_no_room_is_overruled() {
    insta::assert_snapshot!(check(r#"echo '{"veto": true}'"#, 6), @"
    request, round 1
    request, round 2
    request, round 3
    request, round 4
    request, round 5
    hook said, veto true, keep []: 
    request, round 6
    hook said, veto true, keep []: 
    warning: the hook's veto is overruled: the next request takes 7,276 tokens, and 6,840 fit
    request, summary, keep []
    overlay, auto, summary
    request, round 7
    ");
}

/// What is to be kept stands in every request of the pass, and nobody is asked again when one fails.
#[test]
fn what_is_to_be_kept_is_asked_for() {
    let stage = Stage::new();
    let mut recorder = scene::create(&stage.storage);
    let hook = r#"cat >> asked; echo '{"keep": ["port 8042", " "]}'"#;
    let settings = (policy(hook), With::Hands);
    let entries = stage.play(&mut recorder, settings, rounds(5), &["", ""], None);
    insta::assert_snapshot!(passes(&entries), @r#"
    request, round 1
    request, round 2
    request, round 3
    request, round 4
    request, round 5
    hook said, veto false, keep ["port 8042"]: 
    request, summary, keep ["port 8042"]
    note, 25 failed: empty
    request, summary, keep ["port 8042"]
    note, 28 failed: empty
    overlay, auto, hints
    request, round 6
    "#);
    let asked = stage
        .read("asked")
        .replace(&recorder.run().to_string(), "RUN");
    insta::assert_snapshot!(asked, @r#"{"event":"before","run":"RUN","origin":"auto","span":[4,19],"rounds":[1,4],"tokens":6195,"trigger":6000,"strategies":["summarize"]}"#);
    let request = entries.iter().find_map(|entry| match &entry.event {
        Event::Request(request) if request.purpose != Purpose::Round => Some(request),
        _ => None,
    });
    let view = View::of(entries.iter().cloned());
    let body = view.body(&request.unwrap().purpose).unwrap();
    let body = String::from_utf8(body.bytes.to_vec()).unwrap();
    assert!(body.contains("word for word:\\n- port 8042"), "{body}");
}

/// What is to be kept is shown again after a summary that no model wrote as well.
#[test]
fn what_is_to_be_kept_survives_without_a_model() {
    let stage = Stage::new();
    let mut recorder = scene::create(&stage.storage);
    // It is said once, of the first of them.
    let said = r#"[ -e n ] || { echo > n; echo '{"keep": ["port 8042"]}'; }"#;
    let hook = format!("read -r asked; case $asked in *skeleton*) {said};; esac");
    let settings = (policy(&hook), With::Hands);
    let entries = stage.play(&mut recorder, settings, rounds(40), &[""; 60], None);
    let skeletons = entries.iter().filter_map(|entry| match &entry.event {
        Event::Overlay(overlay) => match &overlay.layer {
            Layer::Summary(summary) => Some((summary.by, summary.carry.survival.as_str())),
            _ => None,
        },
        _ => None,
    });
    insta::assert_debug_snapshot!(skeletons.collect::<Vec<_>>(), @r#"
    [
        (
            Rules,
            "",
        ),
        (
            Rules,
            "Not in the summaries, but in what they cover (Recall with a pattern shows where):\n- to be kept: port 8042",
        ),
        (
            Rules,
            "Not in the summaries, but in what they cover (Recall with a pattern shows where):\n- to be kept: port 8042",
        ),
    ]
    "#);
}

#[test]
fn a_hook_that_misbehaves_is_a_warning() {
    let long = format!("echo '{{\"keep\": [\"{}\"]}}'", "x".repeat(4_000));
    for (before, timeout_ms, note) in [
        (
            "exit 3",
            20_000,
            "the hook before compaction failed with exit 3",
        ),
        (
            "echo no such thing >&2; kill -9 $$",
            20_000,
            "the hook before compaction was ended by signal 9: no such thing",
        ),
        (
            "sleep 1000 & sleep 1000",
            50,
            "the hook before compaction did not end within 50 ms",
        ),
        (
            "echo yes",
            20_000,
            "the hook before compaction printed what is no answer: expected value at line 1 column \
             1; it prints nothing, or one JSON object such as {\"veto\": true, \"reason\": \"…\"} or \
             {\"keep\": [\"…\"]}",
        ),
        (
            r#"echo '{"vetoed": true}'"#,
            20_000,
            "the hook before compaction printed what is no answer: unknown field `vetoed`, expected \
             one of `veto`, `reason`, `keep` at line 1 column 9; it prints nothing, or one JSON \
             object such as {\"veto\": true, \"reason\": \"…\"} or {\"keep\": [\"…\"]}",
        ),
        (
            long.as_str(),
            20_000,
            "the hook before compaction names 1,001 tokens to keep, and a summary has room for ",
        ),
    ] {
        let stage = Stage::new();
        let mut policy = policy(before);
        policy.compaction.hooks.timeout_ms = timeout_ms;
        let mut recorder = scene::create(&stage.storage);
        let settings = (policy, With::Hands);
        let entries = stage.play(&mut recorder, settings, rounds(5), &[], None);
        let hooks: Vec<_> = entries
            .iter()
            .filter_map(|entry| match &entry.event {
                Event::Note(Note::Hook(hook)) => Some((hook.failed, hook.text.as_str())),
                _ => None,
            })
            .collect();
        let [(true, said)] = hooks[..] else {
            panic!("{before}: {hooks:?}")
        };
        assert!(said.starts_with(note), "{said}");
        let laid = |entry: &Arc<Entry>| matches!(entry.event, Event::Overlay(_));
        assert!(entries.iter().any(laid), "{before}");
    }
}

#[test]
fn the_model_is_told_of_a_veto_on_its_own_compact() {
    let stage = Stage::new();
    let mut policy = policy(r#"echo '{"veto": true, "reason": "not\nyet"}'"#);
    policy.compaction.tool.min_ratio = 0.0;
    let mut recorder = scene::create(&stage.storage);
    let compact = Reply::calls([("Compact", r#"{"focus":"the port"}"#)]);
    let script = vec![reply(1), reply(2), compact, Reply::text("Done.")];
    let entries = stage.play(&mut recorder, (policy, With::Hands), script, &[], None);
    insta::assert_snapshot!(passes(&entries), @"
    request, round 1
    request, round 2
    request, round 3
    hook said, veto true, keep []: not
    yet
    user, Runtime: [undertext, not the user] The compression you requested could not be done: a hook that the user set up forbids it now (not yet). Nothing was changed; go on with the task.
    request, round 4
    ");
}

#[test]
fn what_was_laid_is_told() {
    let stage = Stage::new();
    let mut policy = policy("true");
    policy.compaction.hooks.after = Some("cat > told; echo oh >&2; exit 1".to_owned());
    let mut recorder = scene::create(&stage.storage);
    let entries = stage.play(&mut recorder, (policy, With::Hands), rounds(5), &[], None);
    insta::assert_snapshot!(passes(&entries), @"
    request, round 1
    request, round 2
    request, round 3
    request, round 4
    request, round 5
    hook said, veto false, keep []: 
    request, summary, keep []
    overlay, auto, summary
    warning: the hook after compaction failed with exit 1: oh
    request, round 6
    ");
    let mut told: Value = serde_json::from_str(&stage.read("told")).unwrap();
    let laid = told["entries"].take();
    let overlays: Vec<Value> = entries
        .iter()
        .filter(|entry| matches!(entry.event, Event::Overlay(_)))
        .map(|entry| serde_json::to_value(entry.as_ref()).unwrap())
        .collect();
    assert_eq!(laid, Value::Array(overlays));
    let told = told.to_string().replace(&recorder.run().to_string(), "RUN");
    insta::assert_snapshot!(told, @r#"{"event":"after","run":"RUN","origin":"auto","pass":27,"overlays":[27],"by":"model","results":0,"before":{"summaries":0,"entries":11,"tokens":6195},"after":{"summaries":1,"entries":3,"tokens":1944},"percent":31,"entries":null}"#);
}

#[test]
fn micro_compaction_asks_nobody() {
    let stage = Stage::new();
    let mut policy = policy("cat >> asked");
    policy.compaction.hooks.after = Some("cat >> asked".to_owned());
    policy.compaction.micro.enabled = true;
    policy.compaction.micro.keep_recent = 1;
    policy.compaction.micro.min_gain_tokens = 0;
    policy.compaction.auto.enabled = false;
    let mut recorder = scene::create(&stage.storage);
    let entries = stage.play(&mut recorder, (policy, With::Hands), rounds(4), &[], None);
    let laid = |entry: &&Arc<Entry>| matches!(entry.event, Event::Overlay(_));
    assert!(entries.iter().filter(laid).count() > 1);
    assert_eq!(stage.read("asked"), "");
}

/// Killed after any entry, the run asks the hook if its note is not there, and goes on if it is.
#[test]
fn what_follows_a_hook_is_decided_by_the_entries() {
    let stage = Stage::new();
    let mut recorder = scene::create(&stage.storage);
    let settings = (policy(r#"echo '{"keep": ["port 8042"]}'"#), With::Hands);
    let entries = stage.play(&mut recorder, settings, rounds(5), &[""], None);
    let hook = |entry: &Arc<Entry>| matches!(entry.event, Event::Note(Note::Hook(_)));
    let first = entries.iter().position(hook).unwrap();
    let steps = (first..first + 8).map(|kept| {
        let view = View::of(entries[..kept].iter().cloned());
        let step = match step::next(&view, scene::BEGIN) {
            Step::Hook(_) => "hook",
            Step::Ask(ask) if ask.again.is_some() => "ask again",
            Step::Ask(ask) if ask.purpose == Purpose::Round => "ask for a round",
            Step::Ask(_) => "ask for a summary",
            Step::Compact(_) => "compact",
            Step::Wait(_) | Step::Call(_) | Step::Check(_) | Step::Stop(_) => "other",
        };
        format!("{step}, keep {:?}\n", hooks::keep(&view))
    });
    insta::assert_snapshot!(steps.collect::<String>(), @r#"
    hook, keep []
    ask for a summary, keep ["port 8042"]
    ask again, keep ["port 8042"]
    compact, keep ["port 8042"]
    ask for a summary, keep ["port 8042"]
    ask again, keep ["port 8042"]
    compact, keep ["port 8042"]
    ask for a round, keep []
    "#);
}

/// A hook leaves nothing behind when the run is stopped while it runs; it is asked again.
#[test]
fn a_hook_that_was_cancelled_is_asked_again() {
    let stage = Stage::new();
    let mut recorder = scene::create(&stage.storage);
    let slow = (policy("echo >> asked; sleep 1000"), With::Hands);
    // The results of the fifth round fill the window.
    let entries = stage.play(&mut recorder, slow, rounds(5), &[], Some(23));
    drop(recorder);
    insta::assert_snapshot!(passes(&entries), @"
    request, round 1
    request, round 2
    request, round 3
    request, round 4
    request, round 5
    ");
    let mut recorder = scene::open(&stage.storage);
    let quick = (policy("echo >> asked"), With::Hands);
    let entries = stage.play(&mut recorder, quick, vec![Reply::text("Done.")], &[], None);
    insta::assert_snapshot!(passes(&entries), @"
    request, round 1
    request, round 2
    request, round 3
    request, round 4
    request, round 5
    hook said, veto false, keep []: 
    request, summary, keep []
    overlay, auto, summary
    request, round 6
    ");
    assert_eq!(stage.read("asked"), "\n\n");
}

#[test]
fn without_hands_no_hook_runs_and_that_is_said_once() {
    let stage = Stage::new();
    let mut recorder = scene::create(&stage.storage);
    let settings = (policy("echo '{\"veto\": true}'"), With::NoHands);
    stage.play(&mut recorder, settings.clone(), rounds(1), &[], None);
    let entries = stage.play(&mut recorder, settings, rounds(5), &[], None);
    insta::assert_snapshot!(passes(&entries), @"
    warning: the hooks of compaction do not run: there are no hands to run them
    request, round 1
    request, round 2
    request, round 3
    request, round 4
    request, round 5
    request, round 6
    request, summary, keep []
    overlay, auto, summary
    request, round 7
    request, round 8
    ");
    let view = View::of(entries.iter().cloned());
    assert!(view.policy().unwrap().compaction.hooks.is_default());
}
