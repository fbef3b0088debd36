//! A run of two turns and nine rounds, and orders given to it.

use std::fmt::Write as _;

use undertext::compaction::by_hand::{self, Order, Refused, Report, Work, Written};
use undertext::exchange::{Effect, Hint, Supersession, ToolMeta, ToolSpec, Treatment};
use undertext::id::{CallId, EntryId};
use undertext::overlay::Layer;
use undertext::setup::Policy;
use undertext::transcript::{At, Event, Run, Speaker};
use undertext::view::View;

use crate::draft::Draft;
use crate::scene;

/// When every order is given: an hour after the runs here.
pub(super) const NOW: At = At(3_600_000);

fn spec(name: &str, hint: (Treatment, Treatment), supersession: bool) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "A tool of the tests.".to_owned(),
        schema: serde_json::value::RawValue::from_string("{}".to_owned()).unwrap(),
        meta: ToolMeta {
            effect: Effect::Reads,
            hint: Hint::new(hint.0, hint.1),
            supersession: supersession.then(|| Supersession {
                key: Some("path".to_owned()),
                range: None,
                stale_after: Vec::new(),
            }),
            ..ToolMeta::default()
        },
    }
}

/// A run of two turns and nine rounds.
pub(super) fn stage() -> Draft {
    stage_of(20_000)
}

/// The same, for a model of this window.
pub(super) fn stage_of(window: u64) -> Draft {
    use Treatment::{Keep, Strip};
    let mut draft = Draft::default();
    draft.push(Event::Run(Run::new(
        scene::run(&undertext::record::Clock::fixed(At(0))).run,
        "/w",
    )));
    let mut setup = scene::setup(window, Policy::default());
    setup.policy.compaction.auto.target_ratio = 0.5;
    setup.wire.tools = vec![
        spec("Read", (Keep, Strip), true),
        spec("Edit", (Strip, Strip), false),
        spec("Write", (Strip, Keep), false),
        spec("TodoWrite", (Keep, Keep), false),
        spec("Recall", (Keep, Strip), false),
        spec("Glob", (Keep, Strip), false),
    ];
    draft.push(Event::Setup(Box::new(setup)));
    let long = "All of it. ".repeat(60);
    let json =
        |path: &str, chars: usize| format!(r#"{{"path":"{path}","text":"{}"}}"#, "x".repeat(chars));
    draft.user_with(Speaker::Task, "Mend it.", &[("spec.md", &long)]);
    draft.round("I look.", &[("Read", r#"{"path":"a"}"#, &long)]);
    draft.round(
        "",
        &[
            ("Edit", &json("b", 300), &long),
            ("Write", &json("c", 300), &long),
        ],
    );
    draft.round("", &[("Read", r#"{"path":"a"}"#, &long)]);
    draft.round("", &[("TodoWrite", &json("todo", 10), &long)]);
    draft.round("Half of it is done.", &[]);
    draft.user_with(Speaker::FollowUp, "Go on.", &[("more.md", &long)]);
    draft.round("", &[("Read", r#"{"path":"d"}"#, &long)]);
    draft.round("", &[("Edit", &json("d", 300), &long)]);
    draft.round("", &[("Read", r#"{"path":"e"}"#, &long)]);
    draft.round("It is done.", &[]);
    draft
}

pub(super) fn view(draft: &Draft) -> View {
    View::of(draft.entries().iter().cloned())
}

/// An order as it would be typed: strategies, then `from..to`, `+3` for rounds that stay at the end,
/// `=text` for a summary's text, `again e5`, or `rule`.
pub(super) fn order(typed: &str) -> Order {
    let (typed, text) = match typed.split_once('=') {
        Some((typed, text)) => (typed, Some(text.to_owned())),
        None => (typed, None),
    };
    let mut order = Order::new(Work::Strategies(Vec::new()));
    order.text = text;
    let mut doing = Vec::new();
    let mut words = typed.split_whitespace();
    while let Some(word) = words.next() {
        if word == "again" {
            let id = words.next().unwrap().strip_prefix('e').unwrap();
            order.work = Work::Again(EntryId(id.parse().unwrap()));
            return order;
        }
        if let Some(last) = word.strip_prefix('+') {
            order.keep_last = Some(last.parse().unwrap());
        } else if let Some((from, to)) = word.split_once("..") {
            let address = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
            (order.from, order.to) = (address(from), address(to));
        } else if word == "fresh" {
            order.fresh = true;
        } else {
            doing.push(word.parse().unwrap());
        }
    }
    order.work = Work::Strategies(doing);
    order
}

/// Gives an order and lays what it comes to, with this text where a model must write one. What it came
/// to is the same as was planned.
pub(super) fn give(
    draft: &mut Draft,
    order: &Order,
    text: &str,
) -> Result<(by_hand::Plan, Report), Refused> {
    let view = view(draft);
    let resolved = order.resolve(&view, NOW)?;
    let mut plan = by_hand::plan(&view, &resolved, None)?;
    if plan.wanted().is_some() {
        let written = Written {
            text: text.to_owned(),
            parts: Vec::new(),
            depth: 1,
            keep: Vec::new(),
        };
        plan = by_hand::plan(&view, &resolved, Some(&written))?;
        assert_eq!(plan.wanted(), None);
    }
    let planned = plan.report();
    let laid = plan
        .clone()
        .lay(draft.next(), |event| Ok::<_, ()>(draft.push(event)));
    let laid = laid.unwrap();
    assert_eq!((planned.planned, planned.laid), (laid.laid, 0));
    assert_eq!(
        (
            planned.before,
            planned.after,
            planned.entries_hidden,
            &planned.timeline
        ),
        (laid.before, laid.after, laid.entries_hidden, &laid.timeline)
    );
    assert_eq!(self::view(draft).estimate().tokens, laid.after);
    Ok((plan, laid))
}

/// What an order comes to on the stage, in a few words.
pub(super) fn said(draft: &mut Draft, typed: &str) -> String {
    let first = draft.next();
    let laid = match give(draft, &order(typed), "A summary.") {
        Ok((_, report)) => report,
        Err(refused) => return format!("{typed}\n  refused: {refused}\n"),
    };
    let mut text = format!("{typed}\n");
    if let Some(nothing) = &laid.nothing {
        writeln!(text, "  {nothing}").unwrap();
    }
    for entry in draft.entries().iter().filter(|entry| entry.id >= first) {
        let what = match &entry.event {
            Event::Overlay(laid) => {
                assert_eq!((laid.origin.word(), laid.pass), ("user", first));
                format!("{}: {}", laid.rule, contents(&laid.layer))
            }
            Event::Setup(setup) => {
                let names = setup.wire.tools.iter().map(|tool| tool.name.as_str());
                format!("tools: {}", names.collect::<Vec<_>>().join(" "))
            }
            other => panic!("{other:?}"),
        };
        writeln!(text, "  {what}").unwrap();
    }
    let stretch = |it: &by_hand::Stretch| format!("{}-{} {}", it.rounds.0, it.rounds.1, it.reads);
    let timeline: Vec<String> = laid.timeline.iter().map(stretch).collect();
    if laid.nothing.is_none() {
        writeln!(text, "  {}", timeline.join(" · ")).unwrap();
    }
    text
}

fn contents(layer: &Layer) -> String {
    let calls = |calls: &[CallId]| {
        calls
            .iter()
            .map(|call| format!(" {call}"))
            .collect::<String>()
    };
    match layer {
        Layer::Stub(stub) => {
            format!(
                "results{}, arguments{}",
                calls(&stub.results),
                calls(&stub.arguments)
            )
        }
        Layer::Hide(hide) => {
            let reasoning: String = hide.reasoning.iter().map(|it| format!(" e{it}")).collect();
            let attachments = hide.attachments.iter();
            let attachments: String = attachments.map(|(it, n)| format!(" e{it}:{n}")).collect();
            let parts = [("calls", calls(&hide.calls)), ("reasoning", reasoning)];
            let parts = parts.into_iter().chain([("attachments", attachments)]);
            let parts = parts.filter(|(_, list)| !list.is_empty());
            parts
                .map(|(kind, list)| kind.to_owned() + &list)
                .collect::<Vec<_>>()
                .join(", ")
        }
        Layer::Summary(summary) => format!("{} {:?}: {}", summary.span, summary.by, summary.text),
        Layer::Show(show) => format!("shows{}", calls(&show.calls)),
    }
}

/// What each order comes to on a new stage.
pub(super) fn each(orders: &[&str]) -> String {
    orders
        .iter()
        .map(|typed| said(&mut stage(), typed))
        .collect()
}

/// What the orders come to, one after the other.
pub(super) fn in_turn(orders: &[&str]) -> String {
    let mut draft = stage();
    orders.iter().map(|typed| said(&mut draft, typed)).collect()
}
