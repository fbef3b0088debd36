//! What a model reads of what a summary left out, and what is asked of a summary.

use std::sync::Arc;

use insta::assert_snapshot;
use serde_json::json;
use undertext::agent::{Agent, Task};
use undertext::exchange::Message;
use undertext::id::{EntryId, Span};
use undertext::model::{Ask, Fault, Reply, Script, Scripted};
use undertext::overlay::Layer;
use undertext::record::{Clock, MemoryStorage};
use undertext::setup::{Policy, Role};
use undertext::transcript::{Combine, Event, FaultClass, Purpose, Source, Speaker, Summarize};
use undertext::view::View;

use crate::draft::Draft;
use crate::scene;

/// What the model reads after a summary that left everything out.
#[test]
fn a_run_goes_on_with_what_its_summary_left_out() {
    let mut script: Vec<Script> = vec![Reply::text("What shall I do?").into()];
    script.extend((0..16).map(|n| {
        let arguments = json!({ "path": format!("s{n}"), "chars": 3000 }).to_string();
        Reply::calls([("Show", arguments)]).into()
    }));
    script.push(Reply::calls([("Compact", "{}")]).into());
    script.push(Reply::text("Done.").into());
    let said = "The user said \"add a cache\". Much was done.";
    let model = Scripted::new(script).with_summaries(move |_| Ok(Reply::text(said)));
    let mut policy = Policy::default();
    policy.compaction.micro.min_gain_tokens = 0;
    policy.compaction.tool.min_ratio = 0.0;
    let agent = scene::agent(12_000, policy, model);
    let storage = MemoryStorage::default();
    scene::go(
        &agent,
        &mut scene::create(&storage),
        Some(Task::new("Hello.")),
    )
    .unwrap();
    let task = format!(
        "Rename `old_name` in src/a.rs. You must not change its callers.{}",
        " There is more to say.".repeat(120)
    );
    scene::go(&agent, &mut scene::open(&storage), Some(Task::new(task))).unwrap();

    let view = View::of(scene::entries(&storage));
    let messages = view.messages();
    let carried = messages.iter().find_map(|message| match message {
        Message::User { text } if text.starts_with("[CARRIED OVER") => Some(text),
        _ => None,
    });
    assert_snapshot!(carried.unwrap(), @r#"
    [CARRIED OVER - the runtime shows this again from what is summarized above]

    Not in the summaries, but in what they cover (Recall with a pattern shows where):
    - not found in what the user wrote: "add a cache"
    - the user said: "You must not change its callers."
    - the user named (entry 7): old_name · src/a.rs
    "#);
}

/// What is asked of a summary stands in every request that makes one: at each rung of the ladder,
/// for a part, and where texts are combined.
#[test]
fn every_request_for_a_summary_says_what_was_wished() {
    let instructions = "Write in short lines.";
    let mut policy = Policy::default();
    policy.compaction.summary.instructions = Some(instructions.to_owned());
    let mut draft = Draft::default();
    draft.push(Event::Run(scene::run(&Clock::fixed(scene::BEGIN))));
    let mut setup = scene::setup(8_000, policy.clone());
    setup.wire.models.fallback = Some(scene::model(8_000));
    draft.push(Event::Setup(Box::new(setup.clone())));
    draft.user(Speaker::Task, "Mend the parser.");
    draft.round("Yes.", &[]);
    let view = View::of(draft.entries().iter().cloned());
    let (as_of, span) = (EntryId(5), Span::new(EntryId(4), EntryId(5)));
    let (focus, keep) = (
        Some("the parser".to_owned()),
        vec!["ticket 4711".to_owned()],
    );
    let ask = Summarize {
        focus: focus.clone(),
        keep: keep.clone(),
        ..Summarize::new(as_of, span)
    };
    let part = Summarize {
        part: Some([1, 2]),
        ..ask.clone()
    };
    let harder = Summarize {
        clip: 60,
        ..ask.clone()
    };
    let fallback = Summarize {
        model: Role::Fallback,
        ..ask.clone()
    };
    let combine = Combine {
        focus,
        keep,
        ..Combine::new(as_of, span, vec![Source::Response(as_of)])
    };
    for purpose in [ask, part, harder, fallback]
        .map(Purpose::Summary)
        .into_iter()
        .chain([Purpose::Combine(combine)])
    {
        let body = String::from_utf8(view.body(&purpose).unwrap().bytes.to_vec()).unwrap();
        for wish in [
            "Pay special attention to: the parser",
            "- ticket 4711",
            instructions,
        ] {
            assert!(body.contains(wish), "{wish} is not in {body}");
        }
    }

    // And in a run, where the model that summarises fails in every other way before it answers.
    let show = |n: usize| {
        let arguments = json!({ "path": format!("s{n}"), "chars": 2500 }).to_string();
        Reply {
            text: "thinking ".repeat(150),
            ..Reply::calls([("Change", arguments)])
        }
    };
    let mut script: Vec<Script> = (0..40).map(|n| show(n).into()).collect();
    script.push(Reply::text("Done.").into());
    let answers = std::sync::atomic::AtomicU32::new(0);
    let model = Scripted::new(script).with_summaries(move |_: &Ask| {
        match answers.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 4 {
            0 => Ok(Reply::text("")),
            1 => Err(Fault::new(FaultClass::Permanent, "no")),
            _ => Ok(Reply::text("What was done.")),
        }
    });
    let fallback = Scripted::new([]).with_summaries(|_| Ok(Reply::text("What was done.")));
    let agent = Agent::new(setup, Arc::new(model.clone()), scene::toolbox())
        .with_model(Role::Fallback, Arc::new(fallback.clone()));
    let storage = MemoryStorage::default();
    scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go."))).unwrap();
    let asked = model.asked().into_iter().chain(fallback.asked());
    let asked: Vec<String> = asked
        .filter(|ask| ask.summary)
        .map(|ask| String::from_utf8(ask.body.to_vec()).unwrap())
        .collect();
    assert!(asked.len() > 3, "{} were asked for", asked.len());
    assert!(asked.iter().all(|body| body.contains(instructions)));
    let laid = scene::entries(&storage);
    let laid = laid.iter().filter(|entry| match &entry.event {
        Event::Overlay(overlay) => matches!(overlay.layer, Layer::Summary(_)),
        _ => false,
    });
    assert!(laid.count() > 1, "more than one was laid");
}
