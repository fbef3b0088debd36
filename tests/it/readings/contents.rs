//! Single contents: in full, as a stub, or not at all.

use super::*;

#[test]
fn entries_read_as_they_are() {
    check(&Draft::default(), "");
    check(&two_rounds(), TWO_ROUNDS);
}

#[test]
fn only_what_belongs_to_a_round_reads() {
    let mut draft = Draft::default();
    draft.user_with(
        Speaker::Task,
        "Do it.",
        &[("a.txt", "first"), ("b.txt", "zwölf")],
    );
    // Asked for a summary; nobody asked; asked for later; asked twice; answered twice.
    let aside = draft.request(Purpose::Repair {
        response: EntryId(1),
        error: "no".to_owned(),
    });
    draft.response(aside, "aside", &[], &[]);
    draft.response(EntryId(1), "unasked", &[], &[]);
    draft.response(EntryId(6), "early", &[], &[]);
    let first = draft.request(Purpose::Round);
    draft.request(Purpose::Round);
    draft.result(call(8, 1), Status::Ok, "too early");
    let reply = draft.response(first, "", &[], &[("Read", "{}"), ("Read", "{}")]);
    assert_eq!(reply, EntryId(9));
    draft.response(first, "again", &[], &[]);
    draft.user(Speaker::Runtime, "");
    draft.user(Speaker::FollowUp, "And?");
    draft.result(call(9, 1), Status::Ok, "first");
    draft.result(call(9, 1), Status::Ok, "second");
    draft.result(call(9, 3), Status::Ok, "third of two");
    check(
        &draft,
        "
> Do it.

[attachment a.txt, text/plain]
first

[attachment b.txt, text/plain]
zwölf
< 
! 9.1 Read {}
! 9.2 Read {}
= 9.1 first
= 9.2 interrupted, effect unknown
> And?
",
    );
    draft.overlay(Layer::Hide(Hide {
        attachments: vec![(EntryId(1), 2), (EntryId(1), 3), (EntryId(9), 1)],
        ..Hide::default()
    }));
    // What was open when it was laid is not stubbed, whatever comes later.
    draft.overlay(Layer::Stub(stub(Form::Previous, &[call(9, 2)])));
    draft.result(call(9, 2), Status::Ok, "late");
    check(
        &draft,
        "
> Do it.

[attachment a.txt, text/plain]
first

[attachment b.txt, 5 characters, hidden]
< 
! 9.1 Read {}
! 9.2 Read {}
= 9.1 first
= 9.2 late
> And?
",
    );
}

#[test]
fn a_stub_has_three_forms() {
    let long = format!(r#"{{"path":"{}","limit":[1, 2]}}"#, "ä\\n".repeat(70));
    let mut draft = two_rounds();
    let request = draft.request(Purpose::Round);
    let asked = [
        ("Read", &*long),
        ("Read", "[]"),
        ("Read", r#"{"limit":[1, 2]}"#),
    ];
    let response = draft.response(request, "", &[], &asked);
    for (place, content) in (1..).zip(["", "one\n", "x\r\ny"]) {
        let status = if place == 2 {
            Status::Timeout
        } else {
            Status::Ok
        };
        draft.result(CallId::new(response, place), status, content);
    }
    let calls = [
        call(4, 1),
        call(4, 2),
        call(11, 1),
        call(11, 2),
        call(11, 3),
    ];
    let rest = "[Previous: used Bash] Recall 4.2 shows it (1 line)";
    let arguments =
        format!("< \n! 11.1 Read {long}\n! 11.2 Read []\n! 11.3 Read {{\"limit\":[1, 2]}}");
    let tail = "< \n~ why\n! 8.1 Edit {\"path\":\"a.rs\"}\n= 8.1 edited";
    let head = "> Do it.\n< I look.\n~ why\n! 4.1 Read {\"path\":\"a.rs\",\"limit\":3}\n! 4.2 Bash {\"command\":\"ls\"}";

    let mut previous = draft.clone();
    previous.overlay(Layer::Stub(stub(Form::Previous, &calls)));
    check(
        &previous,
        &format!(
            "
{head}
= 4.1 [Previous: used Read] Recall 4.1 shows it (3 lines)
= 4.2 {rest}
{tail}
{arguments}
= 11.1 [Previous: used Read] Recall 11.1 shows it (0 lines)
= 11.2 [Previous: used Read] Recall 11.2 shows it (timeout, 1 line)
= 11.3 [Previous: used Read] Recall 11.3 shows it (2 lines)
"
        ),
    );

    let mut compacted = draft.clone();
    compacted.overlay(Layer::Stub(stub(Form::Compacted, &calls)));
    let label = format!("{}ä…", "ä ".repeat(59));
    check(
        &compacted,
        &format!(
            "
{head}
= 4.1 [compacted] Read: success (a.rs, 3) Recall 4.1 shows it
= 4.2 [compacted] Bash: success Recall 4.2 shows it
{tail}
{arguments}
= 11.1 [compacted] Read: success ({label}) Recall 11.1 shows it
= 11.2 [compacted] Read: timeout Recall 11.2 shows it
= 11.3 [compacted] Read: success ([1,2]) Recall 11.3 shows it
"
        ),
    );

    let mut stale = draft.clone();
    stale.overlay(Layer::Stub(Stub {
        by: [(call(4, 1), call(8, 1))].into(),
        ..stub(Form::Stale, &[call(4, 1), call(4, 2)])
    }));
    check(
        &stale,
        &format!(
            "
{head}
= 4.1 [Previous: used Read] stale since 8.1, Recall 4.1 shows it
= 4.2 {rest}
{tail}
{arguments}
= 11.1 
= 11.2 one

= 11.3 x\r
y
"
        ),
    );
}

#[test]
fn the_newest_opinion_wins_until_a_show_silences_it() {
    let mut draft = two_rounds();
    let first = draft.overlay(Layer::Stub(Stub {
        arguments: vec![call(4, 1)],
        ..stub(Form::Previous, &[call(4, 1)])
    }));
    let second = draft.overlay(Layer::Stub(stub(Form::Compacted, &[call(4, 1)])));
    let third = draft.overlay(Layer::Hide(Hide {
        calls: vec![call(8, 1)],
        ..Hide::default()
    }));
    check(
        &draft,
        r#"
> Do it.
< I look.
~ why
! 4.1 Read {}
! 4.2 Bash {"command":"ls"}
= 4.1 [compacted] Read: success (a.rs, 3) Recall 4.1 shows it
= 4.2 a.rs
"#,
    );
    let mut shown = draft.clone();
    let show = shown.overlay(Layer::Show(Show {
        calls: vec![call(4, 1), call(8, 1)],
    }));
    check(&shown, TWO_ROUNDS);
    shown.overlay(Layer::Stub(stub(Form::Previous, &[call(8, 1)])));
    check(
        &shown,
        &TWO_ROUNDS.replace(
            "edited",
            "[Previous: used Edit] Recall 8.1 shows it (1 line)",
        ),
    );
    shown.retract(&[show, second, EntryId(2), EntryId(99)]);
    check(
        &shown,
        r#"
> Do it.
< I look.
~ why
! 4.1 Read {}
! 4.2 Bash {"command":"ls"}
= 4.1 [Previous: used Read] Recall 4.1 shows it (3 lines)
= 4.2 a.rs
"#,
    );
    draft.retract(&[first, second, third]);
    check(&draft, TWO_ROUNDS);
    // A retract takes back what stands, not what comes.
    let mut draft = two_rounds();
    draft.retract(&[EntryId(11)]);
    draft.overlay(Layer::Hide(Hide {
        rounds: vec![span(3, 9)],
        ..Hide::default()
    }));
    check(&draft, "> Do it.");
    draft.overlay(Layer::Show(Show {
        calls: vec![call(4, 1), call(8, 1)],
    }));
    check(&draft, "> Do it.");
}

#[test]
fn what_is_hidden_leaves_no_empty_message() {
    let mut draft = two_rounds();
    draft.overlay(Layer::Hide(Hide {
        calls: vec![call(4, 1), call(4, 2), call(8, 1), call(9, 1), call(20, 1)],
        reasoning: vec![EntryId(4), EntryId(7), EntryId(2)],
        // Inverted, or beside the response: nothing.
        rounds: vec![span(9, 3), span(5, 7)],
        ..Hide::default()
    }));
    check(&draft, "> Do it.\n< I look.");
}

#[test]
fn an_overlay_speaks_only_of_what_was_there() {
    let mut draft = two_rounds();
    let request = draft.request(Purpose::Round);
    draft.response(request, "", &[], &[("Read", "{}")]);
    draft.overlay(summary(
        span(3, 17),
        "Three rounds, and what comes?",
        Carry {
            entries: vec![EntryId(13), EntryId(15), EntryId(17)],
            calls: vec![call(11, 1), call(17, 1)],
            ..Carry::default()
        },
    ));
    draft.result(call(11, 1), Status::Ok, "late");
    draft.overlay(Layer::Hide(Hide {
        calls: vec![call(17, 1)],
        reasoning: vec![EntryId(17)],
        rounds: vec![span(3, 18)],
        ..Hide::default()
    }));
    draft.user(Speaker::FollowUp, "Once more.");
    draft.round("Once more.", &[("Read", "{}", "new")]);
    check(
        &draft,
        "
> Do it.
> [CONVERSATION HISTORY SUMMARY - 15 entries, rounds 1 to 3, overlay 12]
The runtime made this summary in place of older entries; it is not from the user. Recall 12 shows what it covers.

Three rounds, and what comes?
[END SUMMARY - Recent conversation continues below]
< Understood. I have the context from the summary. Continuing.
> Once more.
< Once more.
~ why
! 17.1 Read {}
= 17.1 new
",
    );
}

/// A label of 120 characters stands whole, one more is cut.
#[test]
fn a_label_is_cut_by_characters() {
    for (length, label) in [
        (120, "ü".repeat(120)),
        (121, format!("{}…", "ü".repeat(119))),
    ] {
        let mut draft = Draft::default();
        draft.push(setup(Profile::default()));
        let arguments = format!("{{\"path\":\"{}\"}}", "ü".repeat(length));
        let response = draft.round("", &[("Read", &arguments, "x")]);
        draft.overlay(Layer::Stub(stub(
            Form::Compacted,
            &[CallId::new(response, 1)],
        )));
        check(
            &draft,
            &format!(
                "< \n~ why\n! 3.1 Read {arguments}\n\
                 = 3.1 [compacted] Read: success ({label}) Recall 3.1 shows it"
            ),
        );
    }
}
