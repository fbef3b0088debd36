//! Summaries: where they stand, what they carry, which of several reads.

use super::*;

#[test]
fn a_summary_stands_once_and_carries() {
    let mut draft = two_rounds();
    draft.overlay(summary(
        span(3, 6),
        "Looked around.",
        Carry {
            entries: vec![
                EntryId(2),
                EntryId(4),
                EntryId(5),
                EntryId(7),
                EntryId(10),
                EntryId(11),
            ],
            calls: vec![call(4, 2), call(4, 3), call(8, 2), call(11, 1)],
            state: "files read: a.rs".to_owned(),
            survival: "not mentioned: b.rs".to_owned(),
        },
    ));
    let read = r#"
> Do it.
> [CONVERSATION HISTORY SUMMARY - 4 entries, round 1, overlay 10]
The runtime made this summary in place of older entries; it is not from the user. Recall 10 shows what it covers.

Looked around.
[END SUMMARY - Recent conversation continues below]
> [CARRIED OVER - the runtime shows this again from what is summarized above]

[entry 2, from the user]
Do it.

[entry 4, from the assistant]
I look.

[entry 5, result of Read]
one
two
three

[call 4.2, Bash {"command":"ls"}]
a.rs

files read: a.rs

not mentioned: b.rs
< 
~ why
! 8.1 Edit {"path":"a.rs"}
= 8.1 edited
"#;
    check(&draft, read);
    // The next band is the last one in place, and has nothing to carry.
    draft.overlay(summary(
        span(7, 9),
        "Edited.",
        Carry {
            entries: vec![EntryId(1)],
            ..Carry::default()
        },
    ));
    let bands = "
> Do it.
> [CONVERSATION HISTORY SUMMARY - 4 entries, round 1, overlay 10]
The runtime made this summary in place of older entries; it is not from the user. Recall 10 shows what it covers.

Looked around.
[END SUMMARY - Recent conversation continues below]
> [CONVERSATION HISTORY SUMMARY - 3 entries, round 2, overlay 11]
The runtime made this summary in place of older entries; it is not from the user. Recall 11 shows what it covers.

Edited.
[END SUMMARY - Recent conversation continues below]
";
    check(&draft, bands);
    draft.push(note("nothing to read"));
    draft.user(Speaker::FollowUp, "Go on.");
    let understood = "< Understood. I have the context from the summary. Continuing.";
    check(&draft, &format!("{bands}{understood}\n> Go on."));
    draft.retract(&[EntryId(11)]);
    check(&draft, &format!("{read}> Go on."));
}

#[test]
fn of_two_summaries_of_an_item_the_newest_reads() {
    let mut draft = two_rounds();
    draft.user(Speaker::FollowUp, "More.");
    draft.overlay(summary(
        span(2, 9),
        "All of it.",
        Carry {
            state: "old".to_owned(),
            ..Carry::default()
        },
    ));
    draft.overlay(summary(
        span(3, 6),
        "Looked.",
        Carry {
            state: "new".to_owned(),
            ..Carry::default()
        },
    ));
    // It wins nothing: it covers no item.
    draft.overlay(summary(
        span(5, 6),
        "Nothing.",
        Carry {
            state: "never".to_owned(),
            ..Carry::default()
        },
    ));
    check(&draft, "
> [CONVERSATION HISTORY SUMMARY - 8 entries, rounds 1 to 2, overlay 11]
The runtime made this summary in place of older entries; it is not from the user. Recall 11 shows what it covers.

All of it.
[END SUMMARY - Recent conversation continues below]
> [CONVERSATION HISTORY SUMMARY - 4 entries, round 1, overlay 12]
The runtime made this summary in place of older entries; it is not from the user. Recall 12 shows what it covers.

Looked.
[END SUMMARY - Recent conversation continues below]
> [CARRIED OVER - the runtime shows this again from what is summarized above]

new
< Understood. I have the context from the summary. Continuing.
> More.
");
    draft.overlay(summary(span(10, 10), "Asked for more.", Carry::default()));
    draft.retract(&[EntryId(11), EntryId(12)]);
    check(&draft, &TWO_ROUNDS.replace("= 8.1 edited", "= 8.1 edited
> [CONVERSATION HISTORY SUMMARY - 1 entry, overlay 14]
The runtime made this summary in place of older entries; it is not from the user. Recall 14 shows what it covers.

Asked for more.
[END SUMMARY - Recent conversation continues below]"));
}

/// A summarises turns 0 to 20, B strips responses of turns 0 to 30: turn 5 reads in the summary,
/// the tools of turn 25 are stripped, its reasoning is kept.
#[test]
fn overlays_stack_by_content() {
    for summary_first in [true, false] {
        let mut draft = Draft::default();
        draft.push(setup(Profile::default()));
        let mut calls = Vec::new();
        for turn in 0..31 {
            draft.user(Speaker::FollowUp, &format!("turn {turn}"));
            let response = draft.round("", &[("Read", "{}", "long\nresult")]);
            calls.push(CallId::new(response, 1));
        }
        let strip = Layer::Stub(stub(Form::Previous, &calls));
        let covers = summary(span(2, 85), "Twenty-one turns.", Carry::default());
        let layers = if summary_first {
            [covers, strip]
        } else {
            [strip, covers]
        };
        for layer in layers {
            draft.overlay(layer);
        }
        let overlay = if summary_first { 126 } else { 127 };
        let tail: Vec<_> = (21..31)
            .map(|turn| {
                let at = turn * 4 + 4;
                format!(
                    "> turn {turn}\n< \n~ why\n! {at}.1 Read {{}}\n\
                     = {at}.1 [Previous: used Read] Recall {at}.1 shows it (2 lines)"
                )
            })
            .collect();
        check(&draft, &format!("
> [CONVERSATION HISTORY SUMMARY - 84 entries, rounds 1 to 21, overlay {overlay}]
The runtime made this summary in place of older entries; it is not from the user. Recall {overlay} shows what it covers.

Twenty-one turns.
[END SUMMARY - Recent conversation continues below]
< Understood. I have the context from the summary. Continuing.
{}", tail.join("\n")));
        assert!(tail[4].starts_with("> turn 25\n< \n~ why\n! 104.1 Read {}\n= 104.1 [Previous"));
    }
}

/// Settings that were recorded among what is summarised hold on behind it.
#[test]
fn settings_within_a_summary_hold_on() {
    let mut draft = two_rounds();
    let Event::Setup(mut other) = setup(Profile::default()) else {
        unreachable!("it is a setup")
    };
    other.wire.instructions = "Be quick.".to_owned();
    draft.push(Event::Setup(other));
    draft.round("Twice.", &[("Bash", "{}", "ok")]);
    draft.round("And now.", &[("Bash", "{}", "ok")]);
    draft.overlay(summary(span(3, 13), "It was done.", Carry::default()));
    check_body(
        &draft,
        concat!(
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":100,"#,
            r#""temperature":0.5,"reasoning_effort":"low","tools":[{"type":"function","function":{"name":"Read","#,
            r#""description":"It is Read.","parameters":{"type": "object","minProperties":1.0}}}],"messages":["#,
            r#"{"role":"system","content":"Be quick."},{"role":"user","content":"Do it."},{"role":"user","content":"#,
            r#""[CONVERSATION HISTORY SUMMARY - 11 entries, rounds 1 to 3, overlay 17]\nThe runtime made this "#,
            r#"summary in place of older entries; it is not from the user. Recall 17 shows what it covers.\n\n"#,
            r#"It was done.\n[END SUMMARY - Recent conversation continues below]"},{"role":"assistant","content":"#,
            r#""And now.","reasoning_content":"why","tool_calls":[{"id":"call_15_1","type":"function","function":"#,
            r#"{"name":"Bash","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_15_1","content":"ok"}]}"#,
        ),
    );
}
