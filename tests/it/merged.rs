//! What becomes of summaries that exceed their share, and of a model that fails again and again.

use std::fmt::Write as _;

use insta::assert_snapshot;
use undertext::compaction::{Plan, plan};
use undertext::id::{EntryId, Span};
use undertext::model::Reply;
use undertext::overlay::{Author, Carry, Layer, Origin, Summary};
use undertext::setup::{OnFailure, Policy};
use undertext::transcript::{End, Event, FaultClass, Purpose, Reason, Retract, Source, Totals};
use undertext::view::View;

use crate::desk::{self, Answers, Desk};
use crate::scene;

fn policy() -> Policy {
    let mut policy = Policy::default();
    policy.compaction.auto.target_ratio = 0.5;
    policy.compaction.micro.enabled = false;
    policy.compaction.auto.min_rounds = 0;
    policy
}

/// A run whose bands may take 1,778 tokens together, and whose summariser has this window.
fn desk(summariser: u64) -> Desk {
    Desk::new(desk::setup(12_000, Some(summariser), policy()))
}

/// The summaries that a request's text is to replace.
fn replaces(purpose: &Purpose) -> Vec<EntryId> {
    match purpose {
        Purpose::Summary(ask) => ask.replaces.clone(),
        Purpose::Combine(ask) => {
            let overlay = |source: &Source| match source {
                Source::Overlay(overlay) => Some(*overlay),
                Source::Response(_) => None,
            };
            ask.of.iter().filter_map(overlay).collect()
        }
        Purpose::Round | Purpose::Repair { .. } => Vec::new(),
    }
}

/// Summaries of this length, and merged ones of that.
fn replies(own: usize, merged: usize) -> impl Fn(&Purpose, usize) -> Result<Reply, FaultClass> {
    move |purpose, number| {
        let chars = if replaces(purpose).is_empty() {
            own
        } else {
            merged
        };
        let text = format!("Text {number} of the files. ");
        Ok(Reply::text(
            text.chars().cycle().take(chars).collect::<String>(),
        ))
    }
}

/// Rounds of 500 tokens, each with the compaction after it.
#[track_caller]
fn go_on(desk: &mut Desk, rounds: usize, answers: Answers<'_>) {
    for _ in 0..rounds {
        desk.round(1900);
        assert!(desk.compact(answers));
        keeps_its_share(&desk.view);
    }
}

fn own_tokens(view: &View) -> u64 {
    let own = view.summaries().into_iter();
    let own = own.filter(|band| band.summary.by != Author::User);
    own.map(|band| view.text_tokens(&band.summary.text)).sum()
}

/// Holds merges against the rules: one a pass, asked for at most three quarters of what it replaces,
/// nothing of a person's in it.
#[track_caller]
fn keeps_its_share(view: &View) {
    let mut last = None;
    for entry in view.transcript().entries() {
        match &entry.event {
            Event::Request(request) => {
                let replaced = replaces(&request.purpose);
                if replaced.is_empty() {
                    continue;
                }
                let texts = replaced.iter().map(|overlay| {
                    let of = Source::Overlay(*overlay);
                    view.text_tokens(view.source_text(of).unwrap())
                });
                let words = match &request.purpose {
                    Purpose::Summary(ask) => ask.words,
                    Purpose::Combine(ask) => ask.words,
                    Purpose::Round | Purpose::Repair { .. } => None,
                };
                // Three words are taken for four tokens.
                assert!(words.unwrap() * 4 / 3 <= texts.sum::<u64>() * 3 / 4);
            }
            Event::Overlay(overlay) if overlay.rule == "merge" => {
                assert_ne!(last, Some(overlay.pass), "two merges in a pass");
                last = Some(overlay.pass);
                let Layer::Summary(summary) = &overlay.layer else {
                    panic!("{overlay:?}")
                };
                assert!(summary.parts.len() >= 2);
                for part in &summary.parts {
                    let part = view.overlay(part.overlay.unwrap()).unwrap();
                    assert!(matches!(&part.layer, Layer::Summary(it) if it.by != Author::User));
                }
            }
            _ => {}
        }
    }
}

/// Raw entries are read a second time where they fit; after that the texts that stand are combined,
/// one deeper.
#[test]
fn the_oldest_become_one() {
    let mut desk = desk(60_000);
    go_on(&mut desk, 80, &replies(2800, 2400));
    assert!(own_tokens(&desk.view) <= desk.view.sizes().unwrap().bands);
    assert_snapshot!(desk.said, @"
    Summary reads e4–e42, clip 4000
    54: summary e4–e42 by a model, depth 1
    Summary reads e43–e81, clip 4000
    93: summary e43–e81 by a model, depth 1
    Summary reads e82–e114, clip 4000
    Summary reads e4–e81, clip 4000, in place of 54 and 93, 669 words
    128: merge e4–e81 by a model, depth 1
    129: summary e82–e114 by a model, depth 1
    Summary reads e115–e150, clip 4000
    Summary combines overlay 128, overlay 129 of e4–e114, 669 words
    164: merge e4–e114 by a model, depth 2
    165: summary e115–e150 by a model, depth 1
    Summary reads e151–e186, clip 4000
    Summary combines overlay 164, overlay 165 of e4–e150, 669 words
    200: merge e4–e150 by a model, depth 3
    201: summary e151–e186 by a model, depth 1
    Summary reads e187–e222, clip 4000
    Summary combines overlay 200, overlay 201 of e4–e186, 669 words
    236: merge e4–e186 by a model, depth 4
    237: summary e187–e222 by a model, depth 1
    Summary reads e223–e258, clip 4000
    Summary combines overlay 236, overlay 237 of e4–e222, 669 words
    272: merge e4–e222 by a model, depth 5
    273: summary e223–e258 by a model, depth 1
    ");
}

/// Where the raw entries do not fit one request, they are not read again.
#[test]
fn texts_become_one_where_their_entries_do_not_fit() {
    let mut desk = desk(6_000);
    go_on(&mut desk, 45, &replies(2800, 2400));
    assert_snapshot!(desk.said, @"
    Summary reads e4–e42, clip 1000
    54: summary e4–e42 by a model, depth 1
    Summary reads e43–e81, clip 1000
    93: summary e43–e81 by a model, depth 1
    Summary reads e82–e114, clip 1000
    Summary combines overlay 54, overlay 93 of e4–e81, 669 words
    128: merge e4–e81 by a model, depth 2
    129: summary e82–e114 by a model, depth 1
    ");
}

/// One that cannot be had is made by rules, and asked for once.
#[test]
fn a_merge_that_fails_is_made_by_rules() {
    let mut desk = desk(60_000);
    go_on(&mut desk, 45, &replies(2800, 0));
    assert!(own_tokens(&desk.view) <= desk.view.sizes().unwrap().bands);
    assert_snapshot!(desk.said, @"
    Summary reads e4–e42, clip 4000
    54: summary e4–e42 by a model, depth 1
    Summary reads e43–e81, clip 4000
    93: summary e43–e81 by a model, depth 1
    Summary reads e82–e114, clip 4000
    Summary reads e4–e81, clip 4000, in place of 54 and 93, 669 words
    failed: empty
    129: merge e4–e81 by rules, depth 2
    130: summary e82–e114 by a model, depth 1
    ");
}

/// And so is one that is not shorter than what it replaces.
#[test]
fn a_merge_that_is_not_shorter_is_made_by_rules() {
    let mut desk = desk(60_000);
    go_on(&mut desk, 45, &replies(2800, 6400));
    assert!(own_tokens(&desk.view) <= desk.view.sizes().unwrap().bands);
    let merged = desk.view.summaries()[0].summary;
    let head = |line: &str| line.chars().take(46).collect::<String>();
    let heads: Vec<String> = merged.text.lines().map(head).collect();
    assert_snapshot!(desk.said, @"
    Summary reads e4–e42, clip 4000
    54: summary e4–e42 by a model, depth 1
    Summary reads e43–e81, clip 4000
    93: summary e43–e81 by a model, depth 1
    Summary reads e82–e114, clip 4000
    Summary reads e4–e81, clip 4000, in place of 54 and 93, 669 words
    128: merge e4–e81 by rules, depth 2
    129: summary e82–e114 by a model, depth 1
    ");
    assert_snapshot!(heads.join("\n"), @"
    From overlay 54 (e4–e42): Text 0 of the files.

    From overlay 93 (e43–e81): Text 1 of the files
    ");
}

fn by_hand(desk: &mut Desk, rounds: [usize; 2], by: Author, text: String) -> (EntryId, Span) {
    let [first, last] = rounds.map(|number| desk.view.rounds().all()[number - 1].clone());
    let span = Span::new(first.begins(), last.span().unwrap().to);
    let pass = desk.view.transcript().next_id();
    let layer = Layer::Summary(Summary {
        span,
        text,
        by,
        focus: None,
        parts: Vec::new(),
        depth: 1,
        carry: Carry::default(),
    });
    (desk.lay(Origin::User, "by hand", pass, layer), span)
}

/// What a person wrote takes no room of the share, stands where it stands, and keeps what is before
/// it and behind it apart.
#[test]
fn what_a_person_wrote_is_neither_merged_nor_counted() {
    let mut desk = desk(60_000);
    (0..12).for_each(|_| desk.round(1900));
    by_hand(&mut desk, [1, 3], Author::Model, "Some files. ".repeat(100));
    by_hand(&mut desk, [4, 6], Author::User, "I say. ".repeat(300));
    go_on(&mut desk, 60, &replies(2000, 1600));
    let texts = desk.view.summaries().into_iter();
    assert!(texts.clone().any(|band| band.summary.by == Author::User));
    assert_snapshot!(desk.said, @"
    40: by hand e4–e12 by a model, depth 1
    41: by hand e13–e21 by a person, depth 1
    Summary reads e22–e56, clip 4000
    68: summary e22–e56 by a model, depth 1
    Summary reads e57–e89, clip 4000
    101: summary e57–e89 by a model, depth 1
    Summary reads e90–e119, clip 4000
    Summary reads e22–e89, clip 4000, in place of 68 and 101, 563 words
    133: merge e22–e89 by a model, depth 1
    134: summary e90–e119 by a model, depth 1
    Summary reads e120–e155, clip 4000
    167: summary e120–e155 by a model, depth 1
    Summary reads e156–e188, clip 4000
    Summary combines overlay 133, overlay 134, overlay 167 of e22–e155, 669 words
    199: merge e22–e155 by a model, depth 2
    200: summary e156–e188 by a model, depth 1
    Summary reads e189–e224, clip 4000
    236: summary e189–e224 by a model, depth 1
    ");
}

/// What a person uncovered between two summaries is not swallowed when they become one.
#[test]
fn what_was_uncovered_stays_so() {
    let mut desk = desk(6_000);
    (0..8).for_each(|_| desk.round(1900));
    let text = || "Some files. ".repeat(150);
    by_hand(&mut desk, [1, 2], Author::Model, text());
    let (middle, uncovered) = by_hand(&mut desk, [3, 4], Author::Model, text());
    by_hand(&mut desk, [5, 6], Author::Model, text());
    desk.record(Event::Retract(Retract {
        overlays: vec![middle],
        origin: Origin::User,
    }));
    while !desk.said.contains("merge") {
        go_on(&mut desk, 1, &replies(2400, 1600));
    }
    let live = desk.view.live();
    assert_eq!(live.iter().filter(|it| uncovered.contains(**it)).count(), 2);
    assert_snapshot!(desk.said, @"
    28: by hand e4–e9 by a model, depth 1
    29: by hand e10–e15 by a model, depth 1
    30: by hand e16–e21 by a model, depth 1
    Summary reads e22–e52, clip 1000
    64: summary e22–e52 by a model, depth 1
    Summary reads e53–e79, clip 4000
    Summary combines overlay 30, overlay 64 of e16–e52, 591 words
    93: merge e16–e52 by a model, depth 2
    94: summary e53–e79 by a model, depth 1
    ");
}

/// A model that always fails is asked up the ladder once, then left alone until the view has grown by
/// a tenth; what would not fit is put into a skeleton nevertheless.
#[test]
fn a_model_that_fails_is_left_alone() {
    let mut setup = desk::setup(12_000, Some(60_000), policy());
    setup.wire.models.fallback = Some(scene::model(60_000));
    let mut desk = Desk::new(setup);
    let mut said = String::new();
    for round in 1..40 {
        desk.round(1900);
        let tokens = desk.view.estimate().tokens;
        assert!(desk.compact(&|_, _| Ok(Reply::text(""))));
        if !desk.said.is_empty() {
            let after = desk.view.estimate().tokens;
            writeln!(said, "round {round}, {tokens} to {after} tokens").unwrap();
            said.push_str(&std::mem::take(&mut desk.said));
        }
    }
    assert_snapshot!(said, @"
    round 16, 9302 to 9302 tokens
    Summary reads e4–e42, clip 4000
    failed: empty
    Summary reads e4–e42, clip 1000
    failed: empty
    Fallback reads e4–e42, clip 1000
    failed: empty
    round 18, 10453 to 953 tokens
    Summary reads e4–e48, clip 4000
    failed: empty
    70: skeleton e4–e63 by rules, depth 1
    round 32, 9012 to 9012 tokens
    Summary reads e64–e103, clip 4000
    failed: empty
    Summary reads e64–e103, clip 1000
    failed: empty
    Fallback reads e64–e103, clip 1000
    failed: empty
    round 34, 10164 to 10164 tokens
    Summary reads e64–e109, clip 4000
    failed: empty
    round 35, 10740 to 958 tokens
    134: skeleton e4–e127 by rules, depth 1
    ");
}

/// Or the run is stopped, if the settings say so.
#[test]
fn a_model_that_fails_may_stop_the_run() {
    let mut policy = policy();
    policy.compaction.auto.on_failure = OnFailure::Stop;
    let mut setup = desk::setup(12_000, Some(60_000), policy);
    setup.wire.models.fallback = Some(scene::model(60_000));
    let mut desk = Desk::new(setup);
    let stopped = (1..40).find(|_| {
        desk.round(1900);
        !desk.compact(&|_, _| Err(FaultClass::Auth))
    });
    assert_eq!(stopped, Some(16));
    assert_snapshot!(desk.said, @"
    Summary reads e4–e42, clip 4000
    failed: auth: no
    Summary reads e4–e42, clip 1000
    failed: auth: no
    Fallback reads e4–e42, clip 1000
    failed: auth: no
    ");
    // Taken up again, it is tried again.
    desk.said.clear();
    let (reason, text, totals) = (Reason::Compaction, String::new(), Totals::default());
    desk.record(Event::End(End {
        reason,
        text,
        totals,
    }));
    assert!(desk.compact(&replies(2800, 0)));
    assert_snapshot!(desk.said, @"
    Summary reads e4–e42, clip 4000
    64: summary e4–e42 by a model, depth 1
    ");
}

/// Killed behind the merge of a pass, the run lays the summary that the merge made room for: its text
/// was paid for, and a merge is no summary of what came since.
#[test]
fn a_pass_that_was_killed_behind_its_merge_goes_on() {
    let mut policy = policy();
    policy.compaction.auto.min_rounds = 5;
    let mut desk = Desk::new(desk::setup(12_000, Some(60_000), policy));
    let answers = replies(2800, 2400);
    'killed: loop {
        desk.round(1900);
        loop {
            match plan(&desk.view, scene::BEGIN) {
                None => break,
                Some(Plan::Ask(purpose)) => {
                    desk.ask(&purpose);
                    desk.answer(&answers);
                }
                Some(Plan::Lay(pass)) => {
                    let first = desk.view.transcript().next_id();
                    for draft in pass.drafts {
                        desk.lay(pass.origin, draft.rule, first, draft.layer);
                        if draft.rule == "merge" {
                            break 'killed;
                        }
                    }
                }
                Some(plan @ (Plan::Failed { .. } | Plan::Stop)) => panic!("{plan:?}"),
            }
        }
    }
    desk.said.clear();
    assert!(desk.compact(&answers));
    assert_snapshot!(desk.said, @"129: summary e82–e114 by a model, depth 1");
}

/// What stands before a text of a person's is put into a skeleton of its own where the run would not fit
/// otherwise.
#[test]
fn a_skeleton_goes_round_what_a_person_wrote() {
    let mut desk = Desk::new(desk::setup(60_000, None, policy()));
    (0..40).for_each(|_| desk.round(1900));
    by_hand(&mut desk, [30, 32], Author::User, "I say. ".repeat(30));
    desk.record(Event::Setup(Box::new(desk::setup(12_000, None, policy()))));
    assert!(desk.compact(&|_, _| Ok(Reply::text(""))));
    let fits = desk.view.sizes().unwrap().fits;
    assert!(desk.view.estimate().tokens <= fits);
    assert_snapshot!(desk.said, @"
    124: by hand e91–e99 by a person, depth 1
    Summary reads e100–e114, clip 4000
    failed: empty
    Summary reads e100–e114, clip 1000
    failed: empty
    132: skeleton e100–e120 by rules, depth 1
    133: skeleton e4–e90 by rules, depth 1
    ");
}
