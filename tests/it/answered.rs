//! Runs whose answer must fit a schema: told, judged, corrected, and given up.

use serde_json::Value;
use undertext::agent::{Agent, AgentError, Finished, Task};
use undertext::answer;
use undertext::exchange::{Ending, Message, Usage};
use undertext::model::{Ask, Fault, Reply, Script, Scripted};
use undertext::record::{MemoryStorage, Recorder};
use undertext::setup::{OutputFormat, OutputProfile, Policy, Setup};
use undertext::step::{self, Step};
use undertext::transcript::{Event, FaultClass, Reason};
use undertext::view::View;

use crate::looped::{show, story};
use crate::oracle;
use crate::scene;

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"]
}"#;

fn policy() -> Policy {
    Policy {
        output: Some(answer::schema("sum", SCHEMA).unwrap()),
        ..Policy::default()
    }
}

/// A run in memory.
#[derive(Default)]
struct Stage {
    storage: MemoryStorage,
    asked: Vec<Ask>,
    told: usize,
}

impl Stage {
    fn play(&mut self, setup: Setup, script: Vec<Script>, task: &str) -> Finished {
        self.try_play(setup, script, Some(task)).unwrap()
    }

    fn try_play(
        &mut self,
        setup: Setup,
        script: Vec<Script>,
        task: Option<&str>,
    ) -> Result<Finished, AgentError> {
        let mut recorder: Recorder = if self.storage.bytes().is_empty() {
            scene::create(&self.storage)
        } else {
            scene::open(&self.storage)
        };
        let model = Scripted::new(script);
        let agent = Agent::new(setup, std::sync::Arc::new(model.clone()), scene::toolbox());
        let ended = scene::go(&agent, &mut recorder, task.map(Task::new));
        self.asked = model.asked();
        self.judge();
        ended
    }

    /// Every request can be rebuilt, and any server takes it.
    fn judge(&self) {
        let entries = scene::entries(&self.storage);
        for (place, entry) in entries.iter().enumerate() {
            let Event::Request(request) = &entry.event else {
                continue;
            };
            let view = View::of(entries[..place].iter().cloned());
            let body = view.body(&request.purpose).unwrap();
            assert_eq!(body.digest(), request.body, "{request:?}");
            assert_eq!(oracle::pairing(&body.bytes), Ok(()), "{request:?}");
        }
    }

    /// What was recorded since this was asked last.
    fn story(&mut self) -> String {
        let entries = scene::entries(&self.storage);
        let from = self.told.max(3);
        self.told = entries.len();
        story(&entries[from..])
    }
}

fn setup() -> Setup {
    scene::setup(100_000, policy())
}

fn says(text: &str) -> Script {
    Reply::text(text).into()
}

fn ended(ending: Ending, text: &str) -> Script {
    let reply = Reply {
        ending,
        ..Reply::text(text)
    };
    reply.into()
}

#[test]
fn an_answer_that_fits_ends_the_run() {
    let mut stage = Stage::default();
    let script = vec![Reply::calls([show("a")]).into(), says("{\"sum\": 42}\n")];
    let finished = stage.play(setup(), script, "Add.");
    assert_eq!(
        (finished.reason, finished.text.as_str()),
        (Reason::Finished, "{\"sum\": 42}\n")
    );
    let body: Value = serde_json::from_slice(&stage.asked[0].body).unwrap();
    insta::assert_snapshot!(body["messages"][0]["content"].as_str().unwrap(), @r#"
    You are a careful worker.

    # The form of your last answer

    When the work is done, your last reply, the one that calls no tool, must be one JSON value that fits the JSON Schema below, and nothing else: no words before or after it, no code fence.

    {"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}
    "#);
    insta::assert_snapshot!(body["response_format"].to_string(), @r#"{"type":"json_schema","json_schema":{"name":"sum","schema":{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}}}"#);
    // The paragraph stands there once, whoever makes the agent.
    let again = scene::entries(&stage.storage)[1].clone();
    let Event::Setup(recorded) = &again.event else {
        panic!("{again:?}")
    };
    let agent = Agent::new(
        (**recorded).clone(),
        std::sync::Arc::new(Scripted::new([])),
        scene::toolbox(),
    );
    assert_eq!(agent.setup(), &**recorded);
}

#[test]
fn an_answer_is_corrected_and_the_correction_stands() {
    let mut stage = Stage::default();
    let script = vec![
        says("The sum is 42."),
        says(r#"{"sum": "42"}"#),
        says(r#"{"sum": 42}"#),
    ];
    let finished = stage.play(setup(), script, "Add.");
    assert_eq!(finished.text, r#"{"sum": 42}"#);
    insta::assert_snapshot!(stage.story(), @r#"
    4 request, round 1
    5 response to 4, Complete: The sum is 42.
    6 request, Repair { response: EntryId(5), error: "[undertext, not the user] Your answer does not fit the JSON Schema that it must fit: it is not one JSON value: expected value at line 1 column 1. Reply with the whole answer, corrected: one JSON value and nothing else, no words before or after it, no code fence. No tool can be called now." }
    7 response to 6, Complete: {"sum": "42"}
    8 request, Repair { response: EntryId(7), error: "[undertext, not the user] Your answer does not fit the JSON Schema that it must fit: /sum: \"42\" is not of type \"integer\". Reply with the whole answer, corrected: one JSON value and nothing else, no words before or after it, no code fence. No tool can be called now." }
    9 response to 8, Complete: {"sum": 42}
    10 end, finished: {"sum": 42}
    "#);
    // A later round reads the correction in the answer's place.
    stage.play(setup(), vec![says(r#"{"sum": 43}"#)], "And one more?");
    insta::assert_snapshot!(stage.story(), @r#"
    11 user, FollowUp: And one more?
    12 request, round 2
    13 response to 12, Complete: {"sum": 43}
    14 end, finished: {"sum": 43}
    "#);
    let body: Value = serde_json::from_slice(&stage.asked[0].body).unwrap();
    let messages = body["messages"].as_array().unwrap();
    let told: Vec<String> = messages[1..]
        .iter()
        .map(|message| format!("{}: {}", message["role"], message["content"]))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    "user": "Add."
    "assistant": "{\"sum\": 42}"
    "user": "And one more?"
    "#);
}

/// Torn, cut, empty, refused, with calls: none is an answer, none runs, and there are two in all.
#[test]
fn a_correction_that_is_none_counts() {
    let torn = Fault {
        wait_ms: Some(0),
        ..Fault::new(FaultClass::Torn, "torn")
    };
    let mut stage = Stage::default();
    let script = vec![
        says("42"),
        torn.into(),
        ended(Ending::Cut, r#"{"sum": 4"#),
        Reply::calls([show("a")]).into(),
    ];
    let finished = stage.play(setup(), script, "Add.");
    assert_eq!(finished.reason, Reason::Schema);
    insta::assert_snapshot!(stage.story(), @r#"
    4 request, round 1
    5 response to 4, Complete: 42
    6 request, Repair { response: EntryId(5), error: "[undertext, not the user] Your answer does not fit the JSON Schema that it must fit: the value: 42 is not of type \"object\". Reply with the whole answer, corrected: one JSON value and nothing else, no words before or after it, no code fence. No tool can be called now." }
    7 fault of 6, torn: torn, attempt 1, wait Some(576)
    8 response to 6, Cut: {"sum": 4
    9 request, Repair { response: EntryId(5), error: "[undertext, not the user] Your correction was cut off at the limit of output tokens; make it shorter. Your answer does not fit the JSON Schema that it must fit: the value: 42 is not of type \"object\". Reply with the whole answer, corrected: one JSON value and nothing else, no words before or after it, no code fence. No tool can be called now." }
    10 response to 9, Complete:  Show{"path":"a","chars":9}
    11 end, schema: the answer does not fit the schema after 2 corrections: the value: 42 is not of type "object"; resume to go on
    "#);
    // Taken up again, it goes on where it was.
    let script = vec![
        says(" \n"),
        ended(Ending::Refused, "No."),
        says("Never said."),
    ];
    let finished = stage.try_play(setup(), script, None).unwrap();
    assert_eq!(finished.reason, Reason::Schema);
    insta::assert_snapshot!(stage.story(), @r#"
    12 request, Repair { response: EntryId(5), error: "[undertext, not the user] Your answer does not fit the JSON Schema that it must fit: the value: 42 is not of type \"object\". Reply with the whole answer, corrected: one JSON value and nothing else, no words before or after it, no code fence. No tool can be called now." }
    13 response to 12, Complete:  

    14 request, Repair { response: EntryId(5), error: "[undertext, not the user] Your correction was empty. Your answer does not fit the JSON Schema that it must fit: the value: 42 is not of type \"object\". Reply with the whole answer, corrected: one JSON value and nothing else, no words before or after it, no code fence. No tool can be called now." }
    15 response to 14, Refused: No.
    16 end, schema: the answer does not fit the schema after 2 corrections: the value: 42 is not of type "object"; resume to go on
    "#);
    let finished = stage
        .try_play(setup(), vec![says(r#"{"sum": 42}"#)], None)
        .unwrap();
    assert_eq!(finished.text, r#"{"sum": 42}"#);
    let nothing = stage.try_play(setup(), Vec::new(), None);
    assert!(matches!(nothing, Err(AgentError::NoTask)));
}

/// Without the schema, the model's word counts: what is there already ends the run.
#[test]
fn another_schema_judges_anew() {
    let mut stage = Stage::default();
    let script = vec![says("42"), says("42"), says("42")];
    let finished = stage.play(setup(), script, "Add.");
    assert_eq!(finished.reason, Reason::Schema);
    let number = Policy {
        output: Some(answer::schema("n", r#"{"type": "integer"}"#).unwrap()),
        ..Policy::default()
    };
    let finished = stage
        .try_play(scene::setup(100_000, number), Vec::new(), None)
        .unwrap();
    assert_eq!(finished.text, "42");
}

/// Words that announce work are no answer yet; JSON that holds such words is.
#[test]
fn what_announces_work_is_reminded_first() {
    let mut stage = Stage::default();
    let script = vec![says("Let me run the tests now."), says(r#"{"sum": 42}"#)];
    stage.play(setup(), script, "Add.");
    insta::assert_snapshot!(stage.story(), @r#"
    4 request, round 1
    5 response to 4, Complete: Let me run the tests now.
    6 user, Runtime: [undertext, not the user] Your last reply announces work but calls no tool, and nobody answers here: a reply without a call ends the run. Make the call now. If the task is done, say what you did; if something keeps you from it, say what.
    7 request, round 2
    8 response to 7, Complete: {"sum": 42}
    9 end, finished: {"sum": 42}
    "#);
    let mut stage = Stage::default();
    let script = vec![
        says(r#"["Now let me run the tests."]"#),
        says(r#"{"sum": 42}"#),
    ];
    stage.play(setup(), script, "Add.");
    assert!(!stage.story().contains("announces work"));
}

/// Corrections are paid for, and none is asked for once a limit is reached.
#[test]
fn a_correction_counts_in_the_limits() {
    let counted = |text: &str| {
        let usage = Usage {
            input: Some(100),
            output: Some(10),
            ..Usage::default()
        };
        Script::from(Reply {
            usage: Some(usage),
            ..Reply::text(text)
        })
    };
    for (limit, requests, reason) in [
        (110, 1, Reason::Tokens),
        (111, 2, Reason::Tokens),
        (220, 2, Reason::Tokens),
        (221, 3, Reason::Schema),
    ] {
        let mut setup = setup();
        setup.policy.limits.tokens = Some(limit);
        let mut stage = Stage::default();
        let script = vec![counted("a"), counted("b"), counted("c")];
        let finished = stage.play(setup, script, "Add.");
        assert_eq!(
            (stage.asked.len(), finished.reason),
            (requests, reason),
            "{limit}"
        );
    }
}

/// A request for a correction that is too long is compacted like any other.
#[test]
fn a_correction_recovers_from_overflow() {
    let long = Script::from(Fault::new(FaultClass::Overflow, "too long"));
    let rounds = || -> Vec<Script> {
        let shows = || Reply::calls([("Show", r#"{"path":"a","chars":9000}"#)]);
        (0..8).map(|_| shows().into()).collect()
    };
    let mut script = rounds();
    script.extend([says("42"), long, says(r#"{"sum": 42}"#)]);
    let mut stage = Stage::default();
    let finished = stage.play(setup(), script, "Add.");
    assert_eq!(finished.text, r#"{"sum": 42}"#);
    let all = stage.story();
    assert_eq!(all.matches("overlay, recovery").count(), 1, "{all}");
    // Where two passes do not help, what the provider said first ends the run.
    let refused = ["first", "second", "third"].map(|said| Fault::new(FaultClass::Overflow, said));
    let mut script = rounds();
    script.push(says("42"));
    script.extend(refused.map(Script::from));
    let mut stage = Stage::default();
    let finished = stage.play(setup(), script, "Add.");
    assert_eq!(
        (finished.reason, finished.text.as_str()),
        (
            Reason::Provider,
            "the provider failed for good: first; resume to go on"
        )
    );
}

/// Killed after any entry, the run goes on as it would have.
#[test]
fn what_follows_is_decided_by_the_entries() {
    let mut stage = Stage::default();
    let script = vec![says("42"), says("43"), says("44")];
    stage.play(setup(), script, "Add.");
    let entries = scene::entries(&stage.storage);
    let next =
        |kept: usize| match step::next(&View::of(entries[..kept].iter().cloned()), scene::BEGIN) {
            Step::Ask(ask) => format!("{:?} again {:?}", ask.purpose, ask.again),
            Step::Stop(reason) => reason.word().to_owned(),
            step => panic!("{step:?}"),
        };
    let steps: Vec<String> = (3..=entries.len()).map(next).collect();
    insta::assert_snapshot!(steps.join("\n"), @r#"
    Round again None
    Round again Some(EntryId(4))
    Repair { response: EntryId(5), error: "[undertext, not the user] Your answer does not fit the JSON Schema that it must fit: the value: 42 is not of type \"object\". Reply with the whole answer, corrected: one JSON value and nothing else, no words before or after it, no code fence. No tool can be called now." } again None
    Repair { response: EntryId(5), error: "[undertext, not the user] Your answer does not fit the JSON Schema that it must fit: the value: 42 is not of type \"object\". Reply with the whole answer, corrected: one JSON value and nothing else, no words before or after it, no code fence. No tool can be called now." } again Some(EntryId(6))
    Repair { response: EntryId(7), error: "[undertext, not the user] Your answer does not fit the JSON Schema that it must fit: the value: 43 is not of type \"object\". Reply with the whole answer, corrected: one JSON value and nothing else, no words before or after it, no code fence. No tool can be called now." } again None
    Repair { response: EntryId(7), error: "[undertext, not the user] Your answer does not fit the JSON Schema that it must fit: the value: 43 is not of type \"object\". Reply with the whole answer, corrected: one JSON value and nothing else, no words before or after it, no code fence. No tool can be called now." } again Some(EntryId(8))
    schema
    Repair { response: EntryId(9), error: "[undertext, not the user] Your answer does not fit the JSON Schema that it must fit: the value: 44 is not of type \"object\". Reply with the whole answer, corrected: one JSON value and nothing else, no words before or after it, no code fence. No tool can be called now." } again None
    "#);
}

/// How each profile is told the form, while the model works and when it corrects its answer.
#[test]
fn a_profile_says_how_the_form_is_sent() {
    for (format, beside_tools, expected) in [
        (
            OutputFormat::JsonSchema,
            true,
            "5 tools, choice null, format \"json_schema\"; 5 tools, choice \"none\", format \"json_schema\"",
        ),
        (
            OutputFormat::JsonSchema,
            false,
            "5 tools, choice null, format null; 0 tools, choice null, format \"json_schema\"",
        ),
        (
            OutputFormat::JsonObject,
            true,
            "5 tools, choice null, format \"json_object\"; 5 tools, choice \"none\", format \"json_object\"",
        ),
        (
            OutputFormat::JsonObject,
            false,
            "5 tools, choice null, format null; 0 tools, choice null, format \"json_object\"",
        ),
        (
            OutputFormat::None,
            true,
            "5 tools, choice null, format null; 5 tools, choice \"none\", format null",
        ),
    ] {
        let mut setup = setup();
        setup.wire.models.main.profile.output = OutputProfile {
            format,
            beside_tools,
        };
        let mut stage = Stage::default();
        let script = vec![says("42"), says(r#"{"sum": 42}"#)];
        stage.play(setup, script, "Add.");
        let told = stage.asked.iter().map(|ask| {
            let body: Value = serde_json::from_slice(&ask.body).unwrap();
            let tools = body["tools"].as_array().map_or(0, Vec::len);
            let told = body["messages"][0]["content"].as_str().unwrap();
            assert!(told.contains("# The form of your last answer"));
            let (choice, format) = (&body["tool_choice"], &body["response_format"]["type"]);
            format!("{tools} tools, choice {choice}, format {format}")
        });
        let told = told.collect::<Vec<_>>().join("; ");
        assert_eq!(told, expected, "{format:?} {beside_tools}");
    }
}

/// A summary of what was corrected is made of the correction.
#[test]
fn a_corrected_answer_reads_corrected_everywhere() {
    let mut stage = Stage::default();
    let script = vec![says("The sum is 42."), says(r#"{"sum": 42}"#)];
    stage.play(setup(), script, "Add.");
    let entries = scene::entries(&stage.storage);
    let view = View::of(entries.iter().cloned());
    let last = &entries.last().unwrap().id;
    let span = undertext::id::Span::new(undertext::id::EntryId(4), *last);
    let all = [view.messages(), view.raw_messages(span, 1000)];
    for messages in all {
        let said = messages.iter().filter_map(|message| match message {
            Message::Assistant { text, .. } => Some(text.as_ref()),
            Message::User { .. } | Message::Tool { .. } => None,
        });
        assert_eq!(said.collect::<Vec<_>>(), [r#"{"sum": 42}"#]);
    }
}
