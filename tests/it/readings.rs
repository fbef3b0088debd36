//! How small transcripts read, written out in full: by the oracle and by the view alike.

use serde_json::value::RawValue;

use undertext::exchange::{Message, Reasoning, Response, Status, ToolCall, ToolMeta, ToolSpec};
use undertext::id::{CallId, EntryId, Span};
use undertext::overlay::{Author, Carry, Form, Hide, Layer, Show, Stub, Summary};
use undertext::setup::{Model, Models, Parameters, Policy, Profile, Setup, Wire};
use undertext::transcript::{Event, Purpose, Speaker};
use undertext::view::View;

use crate::draft::{Draft, note, reply};
use crate::oracle;

/// Checks how entries read: the oracle, and the view.
#[track_caller]
fn check(draft: &Draft, expected: &str) {
    let read = oracle::messages(draft.entries());
    assert_eq!(text(&read).trim_end(), expected.trim());
    assert_eq!(view(draft).messages(), read);
}

/// Checks the body of the next round: the oracle's, the view's, and whether it is sound.
#[track_caller]
fn check_body(draft: &Draft, expected: &str) {
    let body = oracle::body(draft.entries()).unwrap();
    assert_eq!(String::from_utf8(body.clone()).unwrap(), expected);
    assert_eq!(
        view(draft).body(&Purpose::Round).unwrap().bytes[..],
        body[..]
    );
    assert!(oracle::may_ask(draft.entries()) && view(draft).may_ask());
    assert_eq!(oracle::pairing(&body), Ok(()));
}

fn view(draft: &Draft) -> View {
    let mut view = View::default();
    draft
        .entries()
        .iter()
        .for_each(|entry| view.take(entry.clone()));
    view
}

/// Messages as text: `>` the user's, `<` the model's, `~` its reasoning, `!` a call, `=` a result.
fn text(messages: &[Message<'_>]) -> String {
    let mut lines = Vec::new();
    for message in messages {
        match message {
            Message::User { text } => lines.push(format!("> {text}")),
            Message::Assistant {
                text,
                reasoning,
                calls,
            } => {
                lines.push(format!("< {text}"));
                lines.extend(reasoning.iter().map(|block| match block {
                    Reasoning::Text { text, .. } => format!("~ {text}"),
                    Reasoning::Raw { raw } => format!("~ raw {raw}"),
                }));
                lines.extend(calls.iter().map(|call| {
                    let extra = call.extra.as_deref().unwrap_or_default();
                    format!("! {} {} {} {extra}", call.id, call.name, call.arguments)
                        .trim_end()
                        .to_owned()
                }));
            }
            Message::Tool { call, text } => lines.push(format!("= {call} {text}")),
        }
    }
    lines.join("\n")
}

fn setup(profile: Profile) -> Event {
    let tool = |name: &str, labels: &[&str]| ToolSpec {
        name: name.to_owned(),
        description: format!("It is {name}."),
        schema: RawValue::from_string(r#"{"type": "object","minProperties":1.0}"#.to_owned())
            .unwrap(),
        meta: ToolMeta {
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            ..ToolMeta::default()
        },
    };
    let main = Model {
        name: "m".to_owned(),
        api: undertext::setup::Api::Chat,
        profile,
        window: None,
        parameters: Parameters {
            max_output_tokens: Some(100),
            temperature: Some(0.5),
            reasoning_effort: Some("low".to_owned()),
        },
    };
    Event::Setup(Box::new(Setup {
        wire: Wire {
            instructions: "Be good.".to_owned(),
            tools: vec![tool("Read", &["path", "limit"])],
            models: Models {
                main,
                summary: None,
                fallback: None,
            },
        },
        policy: Policy::default(),
    }))
}

/// Entry 1 the setup, 2 the task, 3 to 6 a round with two calls, 7 to 9 one with one.
fn two_rounds() -> Draft {
    let mut draft = Draft::default();
    draft.push(setup(Profile::default()));
    draft.user(Speaker::Task, "Do it.");
    draft.round(
        "I look.",
        &[
            ("Read", r#"{"path":"a.rs","limit":3}"#, "one\ntwo\nthree"),
            ("Bash", r#"{"command":"ls"}"#, "a.rs"),
        ],
    );
    draft.round("", &[("Edit", r#"{"path":"a.rs"}"#, "edited")]);
    draft
}

fn call(response: u64, place: u32) -> CallId {
    CallId::new(EntryId(response), place)
}

fn span(from: u64, to: u64) -> Span {
    Span::new(EntryId(from), EntryId(to))
}

fn stub(form: Form, results: &[CallId]) -> Stub {
    Stub {
        form,
        results: results.to_vec(),
        ..Stub::default()
    }
}

fn summary(span: Span, text: &str, carry: Carry) -> Layer {
    Layer::Summary(Summary {
        span,
        text: text.to_owned(),
        by: Author::Model,
        focus: None,
        parts: Vec::new(),
        depth: 1,
        carry,
    })
}

const TWO_ROUNDS: &str = r#"
> Do it.
< I look.
~ why
! 4.1 Read {"path":"a.rs","limit":3}
! 4.2 Bash {"command":"ls"}
= 4.1 one
two
three
= 4.2 a.rs
< 
~ why
! 8.1 Edit {"path":"a.rs"}
= 8.1 edited
"#;

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

#[test]
fn a_body_is_compact_and_in_order() {
    let mut draft = Draft::default();
    draft.user(Speaker::Task, "„Hi“\n");
    assert_eq!(oracle::body(draft.entries()), None);
    assert!(!oracle::may_ask(draft.entries()));
    let head = concat!(
        r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"#,
        r#""max_completion_tokens":100,"temperature":0.5,"reasoning_effort":"low","#,
        r#""tools":[{"type":"function","function":{"name":"Read","description":"It is Read.","#,
        r#""parameters":{"type": "object","minProperties":1.0}}}],"#,
        r#""messages":[{"role":"system","content":"Be good."},{"role":"user","content":"„Hi“\n"}"#,
    );
    draft.push(setup(Profile::default()));
    check_body(&draft, &format!("{head}]}}"));

    let request = draft.request(Purpose::Round);
    let reasoned = |field: &str, text: &str| Reasoning::Text {
        field: field.to_owned(),
        text: text.to_owned(),
    };
    let called = |arguments: &str, extra: Option<&str>| ToolCall {
        name: "Read".to_owned(),
        arguments: arguments.to_owned(),
        extra: extra.map(str::to_owned),
        ..ToolCall::default()
    };
    let response = draft.push(Event::Response(Response {
        reasoning: vec![
            reasoned("b", "1"),
            Reasoning::Raw {
                raw: "{}".to_owned(),
            },
            reasoned("a", "2"),
            reasoned("content", "no"),
            reasoned("b", "3"),
        ],
        calls: vec![
            called(
                " {\"path\":\"a\"}",
                Some(r#"{"id":1, "sig": [1, 2.0],"index":0}"#),
            ),
            called("[]", Some("[]")),
        ],
        ..reply(request)
    }));
    for (place, content) in [(2, "zwei"), (1, "")] {
        assert!(!oracle::may_ask(draft.entries()));
        draft.result(CallId::new(response, place), Status::Ok, content);
    }
    let calls = concat!(
        r#""tool_calls":[{"id":"call_4_1","type":"function","#,
        r#""function":{"name":"Read","arguments":" {\"path\":\"a\"}"},"sig":[1, 2.0]},"#,
        r#"{"id":"call_4_2","type":"function","function":{"name":"Read","arguments":"{}"}}]},"#,
        r#"{"role":"tool","tool_call_id":"call_4_1","content":""},"#,
        r#"{"role":"tool","tool_call_id":"call_4_2","content":"zwei"}]}"#,
    );
    let body = format!(r#"{head},{{"role":"assistant","b":"13","a":"2",{calls}"#);
    check_body(&draft, &body);

    let mut bare = Profile::default();
    bare.reasoning.send_back = undertext::setup::SendBack::Never;
    bare.messages.empty_content = undertext::setup::EmptyContent::Null;
    bare.parameters.stream_usage = false;
    bare.parameters.max_output_tokens = "max_tokens".to_owned();
    draft.push(setup(bare));
    let body = body
        .replace(r#""stream_options":{"include_usage":true},"#, "")
        .replace("max_completion_tokens", "max_tokens")
        .replace(
            r#""role":"assistant","b":"13","a":"2","#,
            r#""role":"assistant","content":null,"#,
        );
    check_body(&draft, &body);

    draft.overlay(Layer::Stub(Stub {
        arguments: vec![call(4, 1)],
        ..Stub::default()
    }));
    let body = body.replace(r#"" {\"path\":\"a\"}"},"sig":[1, 2.0]"#, r#""{}"}"#);
    check_body(&draft, &body);
}

#[test]
fn an_unsound_body_is_refused() {
    let asked = r#"{"role":"assistant","tool_calls":[{"id":"call_4_1","type":"function","function":{"name":"Read","arguments":"{}"}}]}"#;
    let answer = r#"{"role":"tool","tool_call_id":"call_4_1","content":"x"}"#;
    let user = r#"{"role":"user","content":"x"}"#;
    let says = r#"{"role":"assistant","content":"x"}"#;
    let judged = |messages: &[&str]| {
        oracle::pairing(
            format!(r#"{{"model":"m","messages":[{}]}}"#, messages.join(",")).as_bytes(),
        )
    };
    for sound in [&[user][..], &[user, asked, answer], &[user, says, user]] {
        assert_eq!(judged(sound), Ok(()), "{sound:?}");
    }
    let other = answer.replace("4_1", "4_2");
    let empty = r#"{"role":"assistant","content":""}"#;
    let broken = asked.replace("{}", "[]");
    let unsound = [
        &[][..],
        &[user, says],
        &[user, asked],
        &[user, answer],
        &[user, asked, user],
        &[user, asked, user, answer],
        &[user, asked, answer, answer],
        &[user, asked, &other],
        &[user, asked, answer, asked, answer],
        &[user, empty, user],
        &[user, &broken, answer],
        &[user, r#"{"role":"system","content":"x"}"#, user],
        &[user, r#"{"role":"nobody","content":"x"}"#],
    ];
    for messages in unsound {
        assert!(judged(messages).is_err(), "{messages:?}");
    }
    for body in [r#"{"messages":[],"model":"m"}"#, "{}", "\u{fffd}"] {
        assert!(oracle::pairing(body.as_bytes()).is_err(), "{body}");
    }
    assert!(oracle::pairing(b"{\"model\":\"\xff\"}").is_err());
}
