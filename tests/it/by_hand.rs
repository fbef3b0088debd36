//! Compaction by hand: what each order hides, what is refused, and the laws whatever is ordered.

use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use undertext::address::Address;
use undertext::compaction::by_hand::{
    self, Order, Refused, Report, Strategy as Doing, Work, Written,
};
use undertext::exchange::{
    Effect, Hint, Message, Status, Supersession, ToolMeta, ToolSpec, Treatment,
};
use undertext::id::{CallId, EntryId};
use undertext::overlay::Layer;
use undertext::setup::{Policy, Rule};
use undertext::transcript::{At, Entry, Event, Pin, Purpose, Run, Speaker};
use undertext::view::View;

use crate::draft::Draft;
use crate::generate::{Written as Transcript, cases, lifelike};
use crate::{laws, oracle, scene};

/// When every order is given: an hour after the runs here.
const NOW: At = At(3_600_000);

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
fn stage() -> Draft {
    stage_of(20_000)
}

/// The same, for a model of this window.
fn stage_of(window: u64) -> Draft {
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

fn view(draft: &Draft) -> View {
    View::of(draft.entries().iter().cloned())
}

/// An order as it would be typed: strategies, then `from..to`, `+3` for rounds that stay at the end,
/// `=text` for a summary's text, `again e5`, or `rule`.
fn order(typed: &str) -> Order {
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
fn give(draft: &mut Draft, order: &Order, text: &str) -> Result<(by_hand::Plan, Report), Refused> {
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
fn said(draft: &mut Draft, typed: &str) -> String {
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
fn each(orders: &[&str]) -> String {
    orders
        .iter()
        .map(|typed| said(&mut stage(), typed))
        .collect()
}

/// What the orders come to, one after the other.
fn in_turn(orders: &[&str]) -> String {
    let mut draft = stage();
    orders.iter().map(|typed| said(&mut draft, typed)).collect()
}

#[test]
fn each_strategy_hides_what_it_is_for() {
    insta::assert_snapshot!(each(&[
        "strip-reasoning +0",
        "strip-tools +0",
        "strip-requests",
        "strip-responses",
        "omit-tools",
        "dedup-tools",
        "strip-attachments",
        "prune-tools",
        "summarize",
        "strip-reasoning strip-tools summarize",
        "auto",
        "strip-tools strip-tools",
    ]), @"
    strip-reasoning +0
      strip-reasoning: reasoning e5 e8 e12 e15 e18 e21 e24 e27
      1-8 reasoning stripped · 9-9 kept
    strip-tools +0
      strip-tools: results 5.1 8.1 12.1 21.1 24.1 27.1, arguments 8.1 8.2 24.1
      1-8 tools stripped · 9-9 kept
    strip-requests
      strip-requests: results, arguments 8.1 8.2
      1-6 arguments stripped · 7-9 kept
    strip-responses
      strip-responses: results 5.1 8.1 12.1 21.1, arguments
      1-6 results stripped · 7-9 kept
    omit-tools
      omit-tools: results, arguments 8.2
      omit-tools: calls 5.1 8.1 12.1 21.1
      1-6 calls left out · 7-9 kept
    dedup-tools
      dedup-tools: calls 5.1
      1-6 repeats left out · 7-9 kept
    strip-attachments
      strip-attachments: attachments e19:1
      1-6 attachments stripped · 7-9 kept
    prune-tools
      tools: Read Edit Write TodoWrite Recall
      1-9 kept
    summarize
      summarize: e4–e22 Model: A summary.
      1-6 summarised · 7-9 kept
    strip-reasoning strip-tools summarize
      strip-reasoning: reasoning e5 e8 e12 e15 e18 e21
      strip-tools: results 5.1 8.1 12.1 21.1, arguments 8.1 8.2
      summarize: e4–e22 Model: A summary.
      1-6 summarised · 7-9 kept
    auto
      2,573 tokens are in use, and auto aims at 7,595
    strip-tools strip-tools
      strip-tools: results 5.1 8.1 12.1 21.1, arguments 8.1 8.2
      1-6 tools stripped · 7-9 kept
    ");
}

/// `auto` does what makes the run small enough, and no more; a summary comes last.
#[test]
fn auto_goes_only_as_far_as_it_must() {
    let ordered = |window| said(&mut stage_of(window), "auto");
    insta::assert_snapshot!([6_400, 6_000, 5_000, 4_000].map(ordered).concat(), @"
    auto
      strip-reasoning: reasoning e5 e8 e12 e15 e18 e21
      dedup-tools: calls 5.1
      1-6 reasoning stripped, repeats left out · 7-9 kept
    auto
      strip-reasoning: reasoning e5 e8 e12 e15 e18 e21
      dedup-tools: calls 5.1
      1-6 reasoning stripped, repeats left out · 7-9 kept
    auto
      strip-reasoning: reasoning e5 e8 e12 e15 e18 e21
      dedup-tools: calls 5.1
      strip-tools: results 8.1 12.1 21.1, arguments 8.1 8.2
      1-6 reasoning and tools stripped, repeats left out · 7-9 kept
    auto
      strip-reasoning: reasoning e5 e8 e12 e15 e18 e21
      dedup-tools: calls 5.1
      strip-tools: results 8.1 12.1 21.1, arguments 8.1 8.2
      summarize: e4–e22 Model: A summary.
      1-6 summarised · 7-9 kept
    ");
}

/// A round that is at work stays whole: what is in it was not sent yet.
#[test]
fn a_round_that_is_at_work_stays() {
    let mut draft = stage();
    draft.user(Speaker::FollowUp, "And then?");
    let request = draft.request(Purpose::Round);
    let calls = [("Read", "{}"), ("Read", "{}")];
    let response = draft.response(request, "", &[], &calls);
    let long = "All of it. ".repeat(60);
    draft.result(CallId::new(response, 1), Status::Ok, &long);
    insta::assert_snapshot!(
        said(&mut draft.clone(), "strip-tools +0")
            + &said(&mut draft.clone(), "summarize +0")
            + &said(&mut draft, &format!("strip-responses {response}.1..{response}.1")),
        @"
        strip-tools +0
          strip-tools: results 5.1 8.1 12.1 21.1 24.1 27.1, arguments 8.1 8.2 24.1
          1-9 tools stripped · 10-10 kept
        summarize +0
          summarize: e4–e30 Model: A summary.
          1-9 summarised · 10-10 kept
        strip-responses 33.1..33.1
          33.1 belongs to the newest round, which always stays
        "
    );
}

#[test]
fn an_order_reaches_as_far_as_it_says() {
    insta::assert_snapshot!(each(&[
        "strip-responses r3..",
        "strip-responses ..r3",
        "strip-responses t2..t2",
        "strip-responses 2h..",
        "strip-responses ..2h",
        "strip-responses e16..e16",
        "strip-responses +7",
        "strip-responses +8",
        "strip-responses +9",
        "strip-responses last-compaction..",
        "strip-responses r12..",
        "strip-responses t5..",
        "strip-responses r5..r5",
        "strip-responses r9..",
        "strip-responses r6..r3",
        "summarize r2..e12",
        "summarize e18..r7",
    ]), @"
    strip-responses r3..
      strip-responses: results 12.1 21.1, arguments
      1-2 kept · 3-6 results stripped · 7-9 kept
    strip-responses ..r3
      strip-responses: results 5.1 8.1 12.1, arguments
      1-3 results stripped · 4-9 kept
    strip-responses t2..t2
      strip-responses: results 21.1 24.1 27.1, arguments
      1-5 kept · 6-8 results stripped · 9-9 kept
    strip-responses 2h..
      strip-responses: results 5.1 8.1 12.1 21.1, arguments
      1-6 results stripped · 7-9 kept
    strip-responses ..2h
      2h lies before the first round
    strip-responses e16..e16
      strip-responses: results 15.1, arguments
      1-3 kept · 4-4 results stripped · 5-9 kept
    strip-responses +7
      strip-responses: results 5.1 8.1, arguments
      1-2 results stripped · 3-9 kept
    strip-responses +8
      strip-responses: results 5.1, arguments
      1-1 results stripped · 2-9 kept
    strip-responses +9
      the run has 9 rounds, and the last 9 stay
    strip-responses last-compaction..
      nothing was compacted yet
    strip-responses r12..
      r12 is not there: the run has 9 rounds
    strip-responses t5..
      t5 is not there: the run has 2 turns
    strip-responses r5..r5
      nothing worth hiding in round 5: 20 tokens, 0 can go
    strip-responses r9..
      no round lies there that may be hidden: the newest one always stays
    strip-responses r6..r3
      refused: r6 lies behind r3; turn them round
    summarize r2..e12
      summarize: e7–e13 Model: A summary.
      1-1 kept · 2-3 summarised · 4-9 kept
    summarize e18..r7
      summarize: e17–e25 Model: A summary.
      1-4 kept · 5-7 summarised · 8-9 kept
    ");
}

#[test]
fn summaries_by_hand_stand_side_by_side_or_grow_and_leave_alone_what_a_person_wrote() {
    insta::assert_snapshot!(in_turn(&[
        "summarize ..r2",
        "summarize",
        "summarize ..r3",
        "summarize r3..r4",
        "summarize r2..r7=Half of it.",
        "summarize r1..r7=All of it.",
        "summarize r3..r7",
        "summarize",
        "again e41",
        "again e3",
        "fresh",
        "summarize r8..r8=  ",
        "strip-tools=No.",
        "summarize auto",
    ]), @"
    summarize ..r2
      summarize: e4–e10 Model: A summary.
      1-2 summarised · 3-9 kept
    summarize
      summarize: e11–e22 Model: A summary.
      1-2 summarised before · 3-6 summarised · 7-9 kept
    summarize ..r3
      nothing there came after e32, the last summary; --fresh makes it anew, --from names where to begin
    summarize r3..r4
      summarize: e11–e22 Model: A summary.
      1-2 summarised before · 3-6 summarised · 7-9 kept
    summarize r2..r7=Half of it.
      refused: your text for rounds 2 to 7 meets e31, a summary of rounds 1 to 2, and does not hold all of it; it is not widened by itself: name all of those rounds, or others
    summarize r1..r7=All of it.
      summarize: e4–e25 User: All of it.
      1-7 summarised in your words · 8-9 kept
    summarize r3..r7
      refused: a summary of rounds 3 to 7 meets e34, which a person wrote for rounds 1 to 7; take that back first (`undertext retract RUN e34`), or name other rounds
    summarize
      nothing there came after e34, the last summary; --fresh makes it anew, --from names where to begin
    again e41
      refused: e41 is no overlay of this run; `undertext show` lists them
    again e3
      refused: e3 is no overlay of this run; `undertext show` lists them
    fresh
      refused: a focus, a text or `fresh` is about a summary; add `--strategy summarize`
    summarize r8..r8=  
      refused: the summary's text is empty
    strip-tools=No.
      refused: a focus, a text or `fresh` is about a summary; add `--strategy summarize`
    summarize auto
      refused: auto ends with a summary where one is needed; name one of auto and summarize
    ");
}

#[test]
fn what_would_be_longer_is_not_laid_unless_it_stands_for_another_summary() {
    let mut draft = stage();
    let long = "x".repeat(20_000);
    let (plan, report) = give(&mut draft, &order("summarize r1..r2"), &long).unwrap();
    assert!(plan.is_empty());
    insta::assert_snapshot!(report.nothing.unwrap(), @"a summary of rounds 1 to 2 would not be shorter: 5,001 tokens for 799");
    give(&mut draft, &order("summarize r1..r2"), "Short.").unwrap();
    let (_, report) = give(&mut draft, &order("summarize r1..r2"), "Rather longer.").unwrap();
    assert_eq!(report.laid, 1);
    assert!(report.after > report.before);
    // Texts by people together take at most a tenth of the room.
    let refused = give(&mut draft, &order(&format!("summarize r5..r6={long}")), "");
    insta::assert_snapshot!(refused.unwrap_err(), @"texts by people would take 5001 tokens, and 1480 are theirs; say it shorter");
}

#[test]
fn an_overlay_that_was_taken_back_is_laid_again() {
    let mut draft = stage();
    let mut text = said(&mut draft, "strip-responses ..r3");
    let laid = draft.entries().last().unwrap().id;
    draft.retract(&[laid]);
    text += &said(&mut draft, &format!("again e{laid}"));
    text += &said(&mut draft, "again e99");
    insta::assert_snapshot!(text, @"
    strip-responses ..r3
      strip-responses: results 5.1 8.1 12.1, arguments
      1-3 results stripped · 4-9 kept
    again e31
      strip-responses: results 5.1 8.1 12.1, arguments
      1-3 results stripped · 4-9 kept
    again e99
      refused: e99 is no overlay of this run; `undertext show` lists them
    ");
    let layer = |id: EntryId| match &draft.entries()[usize::try_from(id.0).unwrap() - 1].event {
        Event::Overlay(overlay) => overlay.layer.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(layer(laid), layer(draft.entries().last().unwrap().id));
}

#[test]
fn a_rule_is_its_stages_in_order_and_keeps_its_own_rounds() {
    let rule = Rule {
        strip_reasoning: true,
        tools: Some(Hint::new(Treatment::Strip, Treatment::Strip)),
        dedup: true,
        strip_attachments: true,
        summary: true,
        focus: Some("the parser".to_owned()),
        keep_first: 1,
        keep_last: 2,
        ..Rule::default()
    };
    let mut draft = stage();
    let order = Order::new(Work::Rule("mine".to_owned(), rule));
    let (_, report) = give(&mut draft, &order, "A summary.").unwrap();
    let steps = report.steps.iter();
    let laid: Vec<_> = steps
        .map(|step| (step.strategy.as_str(), step.rounds))
        .collect();
    let expected = [
        "strip-reasoning",
        "strip-tools",
        "strip-attachments",
        "summarize",
    ];
    assert_eq!(laid, expected.map(|strategy| (strategy, Some((2, 7)))));
    // The call that another one repeats is in the round that stays.
    assert_eq!(report.left_out[0].strategy, "dedup-tools");
    let Event::Overlay(laid) = &draft.entries().last().unwrap().event else {
        panic!()
    };
    let Layer::Summary(summary) = &laid.layer else {
        panic!()
    };
    assert_eq!(summary.focus.as_deref(), Some("the parser"));
    assert_eq!(laid.reason, "by hand, rule mine");
}

/// Pins and the live todo list stay, unless they are named alone.
#[test]
fn what_is_pinned_or_live_stays_unless_it_is_named_alone() {
    let mut draft = stage();
    let pinned = CallId::new(EntryId(5), 1);
    draft.push(Event::Pin(Pin { entry: EntryId(6) }));
    insta::assert_snapshot!(
        said(&mut draft, "strip-responses")
            + &said(&mut draft, &format!("strip-responses {pinned}..{pinned}"))
            + &said(&mut draft, "omit-tools e16..e16")
            + &said(&mut draft, "strip-attachments e3..e3"),
        @"
        strip-responses
          strip-responses: results 8.1 12.1 21.1, arguments
          1-6 results stripped · 7-9 kept
        strip-responses 5.1..5.1
          strip-responses: results 5.1, arguments
          1-1 results stripped · 2-9 kept
        omit-tools e16..e16
          omit-tools: calls 15.1
          1-3 kept · 4-4 calls left out · 5-9 kept
        strip-attachments e3..e3
          strip-attachments: attachments e3:1
          1-9 kept
        "
    );
}

/// Anything that can be ordered of a run.
fn any_order() -> impl Strategy<Value = (Order, String)> {
    let address = || {
        proptest::option::weighted(
            0.6,
            prop_oneof![
                (1..80_u64).prop_map(|id| Address::Entry(EntryId(id))),
                (1..20_u32).prop_map(Address::Round),
                (0..20_u32).prop_map(Address::RoundsBack),
                (1..6_u32).prop_map(Address::Turn),
                (0..6_u32).prop_map(Address::TurnsBack),
                (1..80_u64, 1..3_u32)
                    .prop_map(|(id, n)| Address::Call(CallId::new(EntryId(id), n))),
                (0..7_200_000_u64).prop_map(Address::Ago),
                Just(Address::Last),
                Just(Address::LastCompaction),
                Just(Address::Start),
                Just(Address::End),
            ],
        )
    };
    let strategies = proptest::collection::vec(proptest::sample::select(&Doing::ALL[..]), 1..5);
    let work = prop_oneof![
        8 => strategies.prop_map(Work::Strategies),
        2 => any::<[bool; 5]>().prop_map(|[reasoning, tools, dedup, attachments, summary]| {
            let strip = Hint::new(Treatment::Strip, Treatment::Strip);
            let rule = Rule {
                strip_reasoning: reasoning,
                tools: tools.then_some(strip),
                dedup,
                strip_attachments: attachments,
                summary,
                keep_last: 2,
                ..Rule::default()
            };
            Work::Rule("any".to_owned(), rule)
        }),
        1 => (1..80_u64).prop_map(|id| Work::Again(EntryId(id))),
    ];
    let keep = || proptest::option::weighted(0.4, 0..6_u32);
    let text = proptest::option::weighted(0.2, Just("By a person.".to_owned()));
    (
        (work, address(), address(), any::<bool>()),
        (keep(), keep(), text, proptest::bool::weighted(0.2)),
        "[a-z ]{1,600}",
    )
        .prop_map(
            |((work, from, to, alone), (keep_first, keep_last, text, fresh), written)| {
                let order = Order {
                    from,
                    to: if alone && from.is_some() { from } else { to },
                    keep_first,
                    keep_last,
                    text,
                    fresh,
                    ..Order::new(work)
                };
                (order, written)
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Laws 3 to 8 and 12, whatever is ordered of whatever run, one order after the other.
    #[test]
    fn any_order_keeps_the_laws(
        Transcript(entries) in lifelike(),
        orders in proptest::collection::vec(any_order(), 1..4),
    ) {
        let mut draft = Draft::default();
        for entry in &entries {
            draft.push(entry.event.clone());
        }
        for (order, text) in &orders {
            let before = view(&draft);
            let first = draft.next();
            if give(&mut draft, order, text).is_ok() {
                shrinks(&before, &draft, first)?;
                // What is named alone may go, whatever it is.
                if order.from.is_none() || order.from != order.to {
                    keeps(&before, &view(&draft))?;
                }
            }
        }
        laws::equals_the_oracle(draft.entries())?;
        laws::begins_as_before(draft.entries())?;
        laws::can_be_recalled(&view(&draft))?;
        if let Some(body) = view(&draft).body(&Purpose::Round).filter(|_| view(&draft).may_ask()) {
            let judged = oracle::pairing(&body.bytes);
            prop_assert!(judged.is_ok(), "{judged:?}");
        }
        let overlays = view(&draft).overlays();
        if let Some(newest) = overlays.last() {
            draft.retract(&[*newest]);
        }
        laws::reads_as_notes(draft.entries())?;
    }
}

/// Law 7: each overlay makes the next request shorter, but `show` and a summary over a summary.
fn shrinks(before: &View, draft: &Draft, first: EntryId) -> Result<(), TestCaseError> {
    let mut view = before.clone();
    for entry in draft.entries().iter().filter(|entry| entry.id >= first) {
        let chars = view.chars().all;
        let may_grow = match &entry.event {
            Event::Overlay(laid) => match &laid.layer {
                Layer::Summary(summary) => {
                    let mut bands = view.summaries().into_iter();
                    bands.any(|band| band.summary.span.meets(summary.span))
                }
                Layer::Show(_) => true,
                Layer::Stub(_) | Layer::Hide(_) => false,
            },
            _ => false,
        };
        view.take(Arc::<Entry>::clone(entry));
        prop_assert!(
            may_grow || view.chars().all < chars,
            "law 7 at entry {}",
            entry.id
        );
    }
    Ok(())
}

/// Law 8: the task, results that were not seen and the newest todo list read as before.
fn keeps(before: &View, after: &View) -> Result<(), TestCaseError> {
    let newest = before.rounds().answered();
    let unseen: Vec<EntryId> = newest
        .into_iter()
        .flat_map(|r| r.results.iter().flatten().copied())
        .collect();
    let todo = before.working().todo;
    let reads = |view: &View, call: CallId, carried: bool| {
        let (_, result) = view.result_of(call).unwrap();
        view.messages().iter().any(|message| match message {
            Message::Tool {
                call: answered,
                text,
            } => *answered == call && *text == result.content,
            Message::User { text } => carried && text.contains(&format!("[call {call}, ")),
            Message::Assistant { .. } => false,
        })
    };
    let results = unseen.into_iter().filter_map(|entry| before.result(entry));
    for call in results.map(|result| result.call) {
        let gone = reads(before, call, false) && !reads(after, call, false);
        prop_assert!(!gone, "law 8: call {call}");
    }
    if let Some(call) = todo {
        let gone = reads(before, call, true) && !reads(after, call, true);
        prop_assert!(!gone, "law 8: the todo list {call}");
    }
    if let Some(task) = before.working().task {
        let covered = |view: &View| view.covered_by(task).is_some();
        prop_assert!(!covered(after) || covered(before), "law 8: the task");
    }
    Ok(())
}
