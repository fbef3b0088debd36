//! Cases 51 and 52: tools whose names, number or schemas no provider takes.

use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, AgentError, Finished, Task};
use undertext::exchange::{ToolMeta, ToolSpec};
use undertext::model::{Client, Endpoint, Timeouts};
use undertext::record::MemoryStorage;
use undertext::setup::{Policy, SchemaForm, Setup};
use undertext::tools::{Call, Outcome, Tool, Toolbox};

use super::sent::{calls, messages, said};
use super::server::{Answer, CUTS, Cut, Server};
use crate::{oracle, scene};

/// A tool of any name and schema, whose runs are written down.
#[derive(Debug)]
struct Odd {
    name: String,
    schema: &'static str,
    ran: Arc<Mutex<Vec<String>>>,
}

impl Tool for Odd {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: "An odd tool.".to_owned(),
            schema: RawValue::from_string(self.schema.to_owned()).unwrap(),
            meta: ToolMeta::default(),
        }
    }

    fn call<'a>(&'a self, _: Call<'a>) -> BoxFuture<'a, Outcome> {
        self.ran.lock().unwrap().push(self.name.clone());
        async { Outcome::ok("odd") }.boxed()
    }
}

/// What came of a run.
struct Offered {
    ended: Result<Finished, AgentError>,
    bodies: Vec<Vec<u8>>,
    entries: usize,
    ran: Vec<String>,
}

/// A run with tools of these names and schemas against a server that gives these answers.
fn offer(tools: &[(String, &'static str)], answers: &[Answer], cut: Cut, setup: &Setup) -> Offered {
    let ran: Arc<Mutex<Vec<String>>> = Arc::default();
    let toolbox = tools
        .iter()
        .fold(Toolbox::new(), |toolbox, (name, schema)| {
            toolbox.with(Odd {
                name: name.clone(),
                schema,
                ran: Arc::clone(&ran),
            })
        });
    let storage = MemoryStorage::default();
    let mut recorder = scene::create(&storage);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (ended, received) = runtime.block_on(async {
        let server = Server::start(answers, cut).await;
        let endpoint = Endpoint {
            base_url: server.url.clone(),
            api_key: None,
            headers: Vec::new(),
        };
        let client = Client::new(endpoint, Timeouts::default()).unwrap();
        let agent = Agent::new(setup.clone(), Arc::new(client), toolbox);
        let never = CancellationToken::new();
        let ended = agent
            .run(&mut recorder, Some(Task::new("Go.")), &never)
            .await;
        (ended, server.received())
    });
    let ran = ran.lock().unwrap().clone();
    Offered {
        ended,
        bodies: received.into_iter().map(|received| received.body).collect(),
        entries: scene::entries(&storage).len(),
        ran,
    }
}

#[test]
fn case_51_tools_that_no_provider_takes_are_refused_before_anything_is_recorded_or_sent() {
    let many = (0..130).map(|n| format!("t{n}")).collect();
    let long = ["x".repeat(64), "y".repeat(65)];
    for (names, refusal) in [
        (
            ["a.b", "Fine", "9"].map(str::to_owned).to_vec(),
            "`scripted` takes no tool named `a.b`, `9`: a name begins with a letter or `_` and has at \
             most 64 letters, digits, `_` and `-`".to_owned(),
        ),
        (
            long.to_vec(),
            format!(
                "`scripted` takes no tool named `{}`: a name begins with a letter or `_` and has at \
                 most 64 letters, digits, `_` and `-`",
                long[1]
            ),
        ),
        (
            many,
            "130 tools are more than the 128 that `scripted` takes; leave out `t128`, `t129`"
                .to_owned(),
        ),
    ] {
        let tools: Vec<_> = names.into_iter().map(|name| (name, "{}")).collect();
        for cut in CUTS {
            let setup = scene::setup(100_000, Policy::default());
            let offered = offer(&tools, &[said("Done.")], cut, &setup);
            assert_eq!(offered.ended.unwrap_err().to_string(), refusal);
            assert_eq!((offered.bodies.len(), offered.entries), (0, 1), "only the run itself");
        }
    }
}

#[test]
fn case_52_schemas_are_lowered_and_a_bad_one_does_not_stop_the_run() {
    let mut setup = scene::setup(100_000, Policy::default());
    setup.wire.models.main.profile.tools.schema = SchemaForm::Plain;
    setup.policy.compaction.enabled = false;
    let schemas = [
        ("Bad", "[1]", r#"{"type":"object","properties":{}}"#),
        (
            "Open",
            r#"{"type":"object","additionalProperties":true}"#,
            r#"{"type":"object"}"#,
        ),
        (
            "Ref",
            r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":["string","null"]}}}"##,
            r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
        ),
        (
            "Either",
            r#"{"type":"object","properties":{"a":{"type":"string","anyOf":[{"minLength":2},{"const":""}]}}}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
        ),
        (
            "List",
            r#"{"type":"object","properties":{"a":{"type":"array"}}}"#,
            r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}"#,
        ),
    ];
    let tools = schemas.map(|(name, given, _)| (name.to_owned(), given));
    let script = [
        calls(&[("Ref", r#"{"a":null}"#), ("Open", r#"{"b":1}"#)]),
        said("Done."),
    ];
    for cut in CUTS {
        let offered = offer(&tools, &script, cut, &setup);
        assert_eq!(offered.ended.unwrap().text, "Done.");
        // Calls are checked by the whole schema, which allows null.
        assert_eq!(offered.ran, ["Ref", "Open"]);
        assert_eq!(oracle::pairing(&offered.bodies[1]), Ok(()));
        let body: Value = serde_json::from_slice(&offered.bodies[1]).unwrap();
        let sent = body["tools"].as_array().unwrap().iter();
        let sent: Vec<String> = sent
            .map(|tool| tool["function"]["parameters"].to_string())
            .collect();
        assert_eq!(sent, schemas.map(|(_, _, sent)| sent));
        let results = [r#"tool call_5_1 "odd""#, r#"tool call_5_2 "odd""#];
        assert_eq!(messages(&body)[3..], results);
    }
}
