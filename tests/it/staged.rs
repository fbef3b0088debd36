//! What a pass does and when it is made: its stages, the settings that hold it back, and the
//! estimate that it goes by.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;
use undertext::agent::{Agent, Task};
use undertext::compaction::{Plan, micro, plan, strategies};
use undertext::exchange::{
    Effect, Hint, Reasoning, Response, Status, Supersession, ToolCall, ToolMeta, ToolSpec,
    Treatment, Usage,
};
use undertext::id::{CallId, EntryId};
use undertext::meter::Chars;
use undertext::model::{Reply, Script, Scripted};
use undertext::overlay::Layer;
use undertext::record::MemoryStorage;
use undertext::setup::{EstimateRule, Policy, Removable, Setup, SignedArguments};
use undertext::transcript::{Event, Purpose, Speaker};
use undertext::view::View;

use crate::desk::{self, Desk};
use crate::draft::{Draft, reply};
use crate::scene;

fn tool(name: &str, request: Treatment, response: Treatment) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "A tool of the tests.".to_owned(),
        schema: RawValue::from_string("{}".to_owned()).unwrap(),
        meta: ToolMeta {
            effect: Effect::Reads,
            hint: Hint::new(request, response),
            ..ToolMeta::default()
        },
    }
}

/// A closed round of one call, with reasoning and a result of these lengths.
fn round(draft: &mut Draft, name: &str, arguments: &str, lengths: [usize; 2]) -> CallId {
    let [reasoning, result] = lengths.map(|chars| "x".repeat(chars));
    let request = draft.request(Purpose::Round);
    let response = draft.response(request, "", &[&reasoning], &[(name, arguments)]);
    let call = CallId::new(response, 1);
    draft.result(call, Status::Ok, &result);
    call
}

/// A run in which every stage finds something, and a model of this window.
fn with_something_for_each(window: u64) -> View {
    use Treatment::{Keep, Omit, Strip};
    let mut policy = Policy::default();
    policy.compaction.micro.keep_recent = 1;
    let mut setup = scene::setup(window, policy);
    let mut read = tool("Read", Keep, Strip);
    read.meta.supersession = Some(Supersession {
        key: Some("path".to_owned()),
        range: None,
        stale_after: vec!["Write".to_owned()],
    });
    setup.wire.tools = vec![read, tool("Write", Strip, Keep), tool("Look", Omit, Omit)];
    let mut draft = Draft::default();
    draft.push(Event::Run(scene::run(&undertext::record::Clock::fixed(
        scene::BEGIN,
    ))));
    draft.push(Event::Setup(Box::new(setup)));
    draft.user(Speaker::Task, "Mend the parser.");
    let of = |path: &str| json!({ "path": path }).to_string();
    let text = json!({ "path": "stale", "text": "x".repeat(600) }).to_string();
    for (name, arguments, result) in [
        ("Read", of("long"), 9_000),
        ("Read", of("longer"), 9_000),
        ("Read", of("repeated"), 600),
        ("Read", of("stale"), 600),
        ("Read", of("repeated"), 600),
        ("Write", text, 10),
        ("Look", "{}".to_owned(), 600),
        ("Read", of("newest"), 10),
    ] {
        round(&mut draft, name, &arguments, [600, result]);
    }
    View::of(draft.into_entries())
}

/// Micro, reasoning, superseded, stale, hints, calls left out: one after the other, and none once the
/// target is reached. A summary is asked for when they do not reach it.
#[test]
fn stages_are_laid_in_order_until_the_target_is_reached() {
    let mut said: Vec<String> = Vec::new();
    for window in (900..9_000).rev().step_by(20) {
        let view = with_something_for_each(window);
        let Some(plan) = plan(&view, scene::BEGIN) else {
            continue;
        };
        let line = match plan {
            Plan::Lay(pass) => {
                let rules: Vec<&str> = pass.drafts.iter().map(|draft| draft.rule).collect();
                rules.join(", ")
            }
            Plan::Ask(_) => "a summary is asked for".to_owned(),
            other => panic!("{other:?}"),
        };
        if said.last() != Some(&line) {
            said.push(line);
        }
    }
    insta::assert_snapshot!(said.join("\n"), @"
    micro
    micro, reasoning
    micro, reasoning, superseded
    micro, reasoning, superseded, stale
    micro, reasoning, superseded, stale, hints
    micro, reasoning, superseded, stale, hints, omit
    a summary is asked for
    ");
}

/// So many rounds lie between two summaries, unless the next request would not fit.
#[test]
fn summaries_keep_their_distance() {
    let mut said = String::new();
    for min_rounds in [0, 5, 50] {
        let mut policy = Policy::default();
        policy.compaction.micro.enabled = false;
        policy.compaction.auto.trigger_ratio = 0.4;
        policy.compaction.auto.min_rounds = min_rounds;
        let mut desk = Desk::new(desk::setup(12_000, None, policy));
        let mut rounds = Vec::new();
        for round in 1..=30 {
            desk.round(3_600);
            desk.compact(&|_, _| Ok(Reply::text("What was done.")));
            if !std::mem::take(&mut desk.said).is_empty() {
                rounds.push(round);
            }
        }
        writeln!(said, "{min_rounds}: {rounds:?}").unwrap();
    }
    insta::assert_snapshot!(said, @"
    0: [5, 9, 13, 17, 21, 25, 29]
    5: [5, 10, 15, 20, 25, 30]
    50: [5, 14, 23]
    ");
}

/// Settings with one tool, whose results hints strip.
fn stripped(window: u64, policy: Policy) -> Setup {
    let mut setup = desk::setup(window, None, policy);
    setup.wire.tools[0].meta.hint = Hint::default();
    setup
}

/// What could be put away waits until it is much, or until the provider has forgotten its cache.
#[test]
fn micro_waits_until_it_pays_or_the_cache_is_cold() {
    let mut policy = Policy::default();
    policy.compaction.micro.keep_recent = 2;
    let mut desk = Desk::new(stripped(200_000, policy));
    (0..7).for_each(|_| desk.round(4_000));
    let asked = desk.view.ledger().round_asked.unwrap().1;
    let mut said = String::new();
    for later in [0, 299_999, 300_000] {
        let now = asked.plus_ms(later);
        let look = micro::look(&desk.view, now).unwrap();
        let laid = micro::plan(&desk.view, now).map(|pass| pass.drafts[0].reason.clone());
        assert_eq!(laid.is_some(), look.fires());
        writeln!(said, "{look} {laid:?}").unwrap();
    }
    (0..9).for_each(|_| desk.round(4_000));
    let look = micro::look(&desk.view, asked).unwrap();
    assert!(look.fires());
    writeln!(said, "{look}").unwrap();
    insta::assert_snapshot!(said, @r#"
    micro: 5 candidates, 5437 of 10000 tokens, waits None
    micro: 5 candidates, 5437 of 10000 tokens, waits None
    micro: 5 candidates, 5437 of 10000 tokens, cache is cold Some("5437 of 10000 tokens, cache is cold")
    micro: 14 candidates, 15197 of 10000 tokens
    "#);
}

/// What a provider wants back stays: reasoning, and arguments that it has signed.
#[test]
fn what_the_profile_protects_stays() {
    let stage = |removable, signed| {
        let mut setup = scene::setup(32_000, Policy::default());
        setup.wire.tools = vec![tool("Edit", Treatment::Strip, Treatment::Keep)];
        let profile = &mut setup.wire.models.main.profile;
        profile.reasoning.removable = removable;
        profile.calls.signed_arguments = signed;
        let mut draft = Draft::default();
        draft.push(Event::Setup(Box::new(setup)));
        draft.user(Speaker::Task, "Do it.");
        round(&mut draft, "Edit", r#"{"path":"plain"}"#, [20, 20]);
        draft.user(Speaker::FollowUp, "More.");
        let request = draft.request(Purpose::Round);
        let signed = draft.push(Event::Response(Response {
            reasoning: vec![Reasoning::raw("{}")],
            calls: vec![ToolCall {
                name: "Edit".to_owned(),
                arguments: r#"{"path":"signed"}"#.to_owned(),
                extra: Some(r#"{"signature":"s"}"#.to_owned()),
                ..ToolCall::default()
            }],
            ..reply(request)
        }));
        draft.result(CallId::new(signed, 1), Status::Ok, "done");
        round(&mut draft, "Edit", "{}", [20, 20]);
        View::of(draft.into_entries())
    };
    for (removable, hidden) in [
        (Removable::Any, vec![4, 8]),
        (Removable::ClosedTurns, vec![4]),
        (Removable::Never, vec![]),
    ] {
        let layer = strategies::reasoning(&stage(removable, SignedArguments::Keep));
        let reasoning = layer.map_or_else(Vec::new, |layer| match layer {
            Layer::Hide(hide) => hide.reasoning,
            other => panic!("{other:?}"),
        });
        let hidden: Vec<EntryId> = hidden.into_iter().map(EntryId).collect();
        assert_eq!(reasoning, hidden, "{removable:?}");
    }
    for (signed, stubbed) in [
        (SignedArguments::Keep, vec![4]),
        (SignedArguments::DropSignature, vec![4, 8]),
    ] {
        let [stub, _] = strategies::hints(&stage(Removable::Any, signed));
        let Some(Layer::Stub(stub)) = stub else {
            panic!("{stub:?}")
        };
        let responses: Vec<u64> = stub.arguments.iter().map(|call| call.response.0).collect();
        assert_eq!(responses, stubbed, "{signed:?}");
    }
}

/// Each kind of compaction is switched off by itself.
#[test]
fn what_is_switched_off_is_not_done() {
    let mut said = String::new();
    for off in ["nothing", "auto", "micro", "compaction"] {
        let mut policy = Policy::default();
        policy.compaction.micro.min_gain_tokens = 0;
        policy.compaction.micro.keep_recent = 2;
        policy.compaction.auto.target_ratio = 0.5;
        match off {
            "auto" => policy.compaction.auto.enabled = false,
            "micro" => policy.compaction.micro.enabled = false,
            "compaction" => policy.compaction.enabled = false,
            _ => {}
        }
        let mut desk = Desk::new(stripped(4_000, policy));
        for _ in 0..14 {
            desk.round(1_800);
            desk.compact(&|_, _| Ok(Reply::text("What was done.")));
        }
        let overlays = desk.view.overlays().into_iter();
        let laid = overlays.map(|id| desk.view.overlay(id).unwrap());
        let laid = laid.map(|laid| format!("{} of {}", laid.rule, laid.origin.word()));
        let laid: BTreeSet<String> = laid.collect();
        writeln!(said, "without {off}: {laid:?}").unwrap();
    }
    insta::assert_snapshot!(said, @r#"
    without nothing: {"micro of micro"}
    without auto: {"micro of micro"}
    without micro: {"hints of auto"}
    without compaction: {}
    "#);
    for (compaction, tool) in [(true, true), (true, false), (false, true)] {
        let mut policy = Policy::default();
        policy.compaction.enabled = compaction;
        policy.compaction.tool.enabled = tool;
        let agent = scene::agent(8_000, policy, Scripted::new([Reply::text("Done.").into()]));
        let storage = MemoryStorage::default();
        scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go."))).unwrap();
        let view = View::of(scene::entries(&storage));
        let mut offered = view.wire().unwrap().tools.iter();
        let is_offered = offered.any(|tool| tool.name == "Compact");
        assert_eq!(is_offered, compaction && tool);
    }
}

/// Both figures of an estimate are recorded, of the very body that is sent: characters by four, and
/// that times what the provider's counts taught, if the settings say so.
#[test]
fn an_estimate_is_of_the_body_that_is_sent() {
    for (rule, strict) in [
        (EstimateRule::Chars, false),
        (EstimateRule::Calibrated, false),
        (EstimateRule::Chars, true),
    ] {
        let mut policy = Policy::default();
        policy.compaction.estimate = rule;
        // The runtime speaks behind a result, where a strict provider takes no message.
        policy.limits.rounds = Some(7);
        let reply = |n: usize| {
            let arguments = json!({ "path": format!("ä{n}"), "chars": 500 }).to_string();
            let usage = Some(Usage {
                input: Some(900),
                ..Usage::default()
            });
            let calls = Reply::calls([("Show", arguments)]);
            Script::from(Reply { usage, ..calls })
        };
        let script = (0..6).map(reply).chain([Reply::text("Done.").into()]);
        let mut setup = scene::setup(32_000, policy);
        setup.wire.models.main.profile.messages.user_after_tool = !strict;
        let agent = Agent::new(setup, Arc::new(Scripted::new(script)), scene::toolbox());
        let storage = MemoryStorage::default();
        scene::go(&agent, &mut scene::create(&storage), Some(Task::new("Go."))).unwrap();
        let mut view = View::default();
        let mut factors = Vec::new();
        for entry in scene::entries(&storage) {
            if let Event::Request(request) = &entry.event {
                let body = view.body(&request.purpose).unwrap();
                let estimate = Chars::of(&body.bytes).estimate(rule, view.factor());
                assert_eq!(request.estimate, estimate, "entry {}", entry.id);
                let by_four = estimate.chars.div_ceil(4);
                assert!(rule == EstimateRule::Calibrated || estimate.tokens == by_four);
                factors.push(estimate.factor);
            }
            view.take(Arc::clone(&entry));
        }
        let learned = factors.iter().any(|factor| *factor != 1000);
        assert_eq!(learned, rule == EstimateRule::Calibrated, "{factors:?}");
    }
}
