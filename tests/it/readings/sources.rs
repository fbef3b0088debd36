//! Where messages come from, and what changed them.

use undertext::view::{As, Content, Source};

use super::*;

/// Checks what each message comes from, and what in it does not read in full.
#[track_caller]
fn check_sources(draft: &Draft, expected: &str) {
    let view = view(draft);
    let readings = view.readings();
    let messages: Vec<Message<'_>> = readings.iter().map(|it| it.message.clone()).collect();
    assert_eq!(messages, view.messages());
    let lines = readings.iter().map(|reading| {
        let source = match reading.source {
            Source::Entry(entry) => format!("e{entry}"),
            Source::Result(call) => format!("result {call}"),
            Source::Summary(overlay) => format!("summary e{overlay}"),
            Source::Carry(overlay) => format!("carry e{overlay}"),
            Source::Understood => "understood".to_owned(),
            Source::Asked => "asked".to_owned(),
        };
        let changed = reading.changed.iter();
        let changed = changed.map(|change| format!("; {:?} by e{}", change.content, change.by));
        source + &changed.collect::<String>()
    });
    assert_eq!(lines.collect::<Vec<_>>().join("\n"), expected.trim());
}

#[test]
fn a_message_names_its_entry_and_the_overlays_on_it() {
    let mut draft = two_rounds();
    draft.user_with(Speaker::FollowUp, "And?", &[("a.txt", "a"), ("b.txt", "b")]);
    check_sources(
        &draft,
        "
e2
e4
result 4.1
result 4.2
e8
result 8.1
e10",
    );
    draft.overlay(Layer::Stub(Stub {
        arguments: vec![call(4, 1)],
        ..stub(Form::Previous, &[call(4, 1), call(4, 2)])
    }));
    draft.overlay(Layer::Hide(Hide {
        calls: vec![call(4, 2)],
        reasoning: vec![EntryId(8)],
        attachments: vec![(EntryId(10), 2)],
        ..Hide::default()
    }));
    check_sources(
        &draft,
        "
e2
e4; Arguments(CallId { response: EntryId(4), place: 1 }) by e11; Call(CallId { response: EntryId(4), place: 2 }) by e12
result 4.1; Result(CallId { response: EntryId(4), place: 1 }) by e11
e8; Reasoning(EntryId(8)) by e12
result 8.1
e10; Attachment(EntryId(10), 2) by e12",
    );
    let carry = Carry {
        entries: vec![EntryId(2)],
        ..Carry::default()
    };
    draft.overlay(summary(span(2, 9), "All of it.", carry));
    check_sources(
        &draft,
        "
summary e13
carry e13
understood
e10; Attachment(EntryId(10), 2) by e12",
    );
}

#[test]
fn a_content_reads_as_its_strongest_overlay_says() {
    use Content::{Arguments, Attachment, Call, Reasoning, Result, Text};
    let mut draft = two_rounds();
    let request = draft.request(Purpose::Round);
    draft.response(request, "", &["hm"], &[("Read", "{}"), ("Bash", "{}")]);
    draft.result(call(11, 1), Status::Ok, "three");
    let all = |reads: As| [Text(EntryId(4)), Reasoning(EntryId(4))].map(|it| (it, reads));
    let both = |place, reads: As| {
        let call = call(4, place);
        [Arguments(call), Result(call), Call(call)].map(|it| (it, reads))
    };
    let check = |draft: &Draft, expected: &[(Content, As)]| {
        let view = view(draft);
        for (content, reads) in expected {
            assert_eq!(view.reads_as(*content), *reads, "{content:?}");
        }
    };
    check(&draft, &all(As::Full));
    check(&draft, &both(1, As::Full));
    check(
        &draft,
        &[
            (Text(EntryId(11)), As::Absent),
            (Text(EntryId(1)), As::Absent),
            (Text(EntryId(5)), As::Absent),
            (Reasoning(EntryId(2)), As::Absent),
            (Attachment(EntryId(2), 1), As::Absent),
            (Call(call(4, 3)), As::Absent),
            (Result(call(11, 2)), As::Open),
            (Arguments(call(11, 2)), As::Full),
            (Reasoning(EntryId(11)), As::Full),
        ],
    );
    // Entry 13: a stub. Arguments that say nothing stay what they are.
    draft.overlay(Layer::Stub(Stub {
        arguments: vec![call(4, 1), call(11, 1)],
        ..stub(Form::Previous, &[call(4, 2)])
    }));
    check(
        &draft,
        &[
            (Arguments(call(4, 1)), As::Stub(EntryId(13))),
            (Result(call(4, 1)), As::Full),
            (Arguments(call(4, 2)), As::Full),
            (Result(call(4, 2)), As::Stub(EntryId(13))),
            (Call(call(4, 2)), As::Full),
            (Arguments(call(11, 1)), As::Full),
        ],
    );
    // Entries 14 and 15: calls are hidden, and with the last of them a reply that says nothing.
    draft.overlay(Layer::Hide(Hide {
        calls: vec![call(4, 1), call(11, 1)],
        ..Hide::default()
    }));
    check(&draft, &both(1, As::Hidden(EntryId(14))));
    check(&draft, &[(Reasoning(EntryId(11)), As::Full)]);
    draft.overlay(Layer::Hide(Hide {
        calls: vec![call(11, 2)],
        ..Hide::default()
    }));
    check(
        &draft,
        &[
            (Reasoning(EntryId(11)), As::Hidden(EntryId(15))),
            (Result(call(11, 2)), As::Hidden(EntryId(15))),
        ],
    );
    // Entries 16 and 17: a round goes, then all before.
    draft.overlay(Layer::Hide(Hide {
        rounds: vec![span(3, 6)],
        ..Hide::default()
    }));
    check(&draft, &all(As::Hidden(EntryId(16))));
    check(&draft, &both(2, As::Hidden(EntryId(16))));
    draft.overlay(summary(span(2, 9), "All of it.", Carry::default()));
    check(&draft, &all(As::Summarised(EntryId(17))));
    check(&draft, &both(2, As::Summarised(EntryId(17))));
    check(&draft, &[(Text(EntryId(2)), As::Summarised(EntryId(17)))]);
    draft.retract(&[EntryId(17), EntryId(16)]);
    check(&draft, &both(1, As::Hidden(EntryId(14))));
    check(&draft, &all(As::Full));
}

#[test]
fn a_correction_reads_in_the_place_of_what_it_corrects() {
    let mut draft = two_rounds();
    let answer = draft.round("No JSON.", &[]);
    assert_eq!(answer, EntryId(11));
    let repair = draft.request(Purpose::Repair {
        response: answer,
        error: "no JSON".to_owned(),
    });
    let better = draft.response(repair, "{}", &["ah"], &[]);
    let seen = view(&draft);
    for (content, reads) in [
        (Content::Text(answer), As::Corrected(better)),
        (Content::Reasoning(answer), As::Corrected(better)),
        (Content::Text(better), As::Full),
        (Content::Reasoning(better), As::Full),
    ] {
        assert_eq!(seen.reads_as(content), reads, "{content:?}");
    }
    draft.overlay(summary(span(2, 11), "All of it.", Carry::default()));
    assert_eq!(
        view(&draft).reads_as(Content::Text(better)),
        As::Summarised(EntryId(14))
    );
}
