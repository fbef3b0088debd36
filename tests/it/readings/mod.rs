//! How small transcripts read, written out in full: by the oracle and by the view alike.

mod contents;
mod summaries;
mod bodies;
mod sources;

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
                ..
            } => {
                lines.push(format!("< {text}"));
                lines.extend(reasoning.iter().map(|block| match block {
                    Reasoning::Text { text, .. } => format!("~ {text}"),
                    Reasoning::Raw { raw, .. } => format!("~ raw {raw}"),
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
        server: None,
        api: undertext::setup::Api::Chat,
        profile,
        window: None,
        parameters: Parameters {
            max_output_tokens: Some(100),
            temperature: Some(0.5),
            reasoning_effort: Some("low".to_owned()),
            cache_key: None,
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
