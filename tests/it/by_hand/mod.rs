//! Compaction by hand: what each order hides, what is refused, and the laws whatever is ordered.

mod stage;
mod any;

use undertext::compaction::by_hand::{Order, Work};
use undertext::exchange::{Hint, Status, Treatment};
use undertext::id::{CallId, EntryId};
use undertext::overlay::Layer;
use undertext::setup::Rule;
use undertext::transcript::{Event, Pin, Purpose, Speaker};

use stage::{each, give, in_turn, order, said, stage, stage_of};

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
