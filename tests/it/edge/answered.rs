//! Cases 33 to 40: how calls are answered, whatever is wrong with them.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, Task};
use undertext::hands::Hands;
use undertext::model::{Client, Endpoint, Timeouts};
use undertext::record::MemoryStorage;
use undertext::setup::Policy;
use undertext::tools::Toolbox;
use undertext::tools::workspace::Workspace;
use undertext::transcript::Event;

use super::calls::{call, calls, done, odd, text};
use super::server::{CUTS, Server};
use super::{Manner, check, check_in};
use crate::scene;

#[test]
fn case_33_arguments_that_do_not_parse_run_nothing_of_the_reply() {
    for (name, arguments, error) in [
        (
            "a comment",
            "{\"path\":\"a\" /* why */}",
            "expected `,` or `}` at line 1 column 13",
        ),
        (
            "a trailing comma",
            "{\"path\":\"a\",}",
            "trailing comma at line 1 column 13",
        ),
        (
            "single quotes",
            "{'path':'a'}",
            "key must be a string at line 1 column 2",
        ),
        (
            "a line break",
            "{\"path\":\"a\nb\"}",
            "control character (\\u0000-\\u001F) found while parsing a string at line 2 column 0",
        ),
        (
            "no number",
            "{\"path\":\"a\",\"chars\":NaN}",
            "expected value at line 1 column 21",
        ),
        (
            "cut",
            "{\"path\":\"a\"",
            "EOF while parsing an object at line 1 column 11",
        ),
        (
            "twice",
            "{\"path\":\"a\"}{\"path\":\"a\"}",
            "trailing characters at line 1 column 13",
        ),
        (
            "a name that stands twice",
            "{\"path\":\"a\",\"path\":\"b\"}",
            "`path` stands twice at line 1 column 18",
        ),
        (
            "another space",
            "\u{a0}{\"path\":\"a\"}",
            "expected value at line 1 column 1",
        ),
    ] {
        let bad = call("Show", arguments);
        let good =
            r#"{"index":1,"id":"b","function":{"name":"Change","arguments":"{\"path\":\"b\"}"}}"#;
        let told = format!(
            "Complete tool_calls: Show{arguments} Change{{\"path\":\"b\"}}
            result, error: The call of Show did not run: the arguments are not valid JSON: {error}.
            result, error: not run: another call of this reply was malformed"
        );
        odd(33, name, &[&bad, good], &told, "");
    }
}

#[test]
fn case_34_arguments_that_fit_no_schema_concern_their_own_call() {
    for (arguments, error) in [
        ("{}", "the arguments: \"path\" is a required property"),
        (
            "{\"path\":\"a\",\"deep\":1}",
            "the arguments: Additional properties are not allowed ('deep' was unexpected)",
        ),
        (
            "{\"path\":[\"a\"]}",
            "/path: [\"a\"] is not of type \"string\"",
        ),
        (
            "{\"path\":\"a\",\"chars\":-1}",
            "/chars: -1 is less than the minimum of 0",
        ),
        ("null", "the arguments must be one JSON object, not null"),
        (
            "[{\"path\":\"a\"}]",
            "the arguments must be one JSON object, not an array",
        ),
    ] {
        let bad = call("Show", arguments);
        let good =
            r#"{"index":1,"id":"b","function":{"name":"Change","arguments":"{\"path\":\"b\"}"}}"#;
        let told = format!(
            "Complete tool_calls: Show{arguments} Change{{\"path\":\"b\"}}
            result, error: The call of Show did not run: {error}.
            result, ok: b s"
        );
        odd(34, arguments, &[&bad, good], &told, "Change b");
    }
}

#[test]
fn case_35_what_is_too_large_is_an_error_for_the_model() {
    for (name, chars, column) in [
        ("a float", "1e999", 25),
        ("an integer", "18446744073709551616", 40),
        ("a negative one", "-9223372036854775809", 40),
    ] {
        let arguments = format!("{{\"path\":\"a\",\"chars\":{chars}}}");
        let told = format!(
            "Complete tool_calls: Show{arguments}
            result, error: The call of Show did not run: the arguments are not valid JSON: number out of range at line 1 column {column}."
        );
        odd(35, name, &[&call("Show", &arguments)], &told, "");
    }
    // No event is that large, so it comes in pieces.
    let piece = format!(
        r#"{{"index":0,"function":{{"arguments":"{}"}}}}"#,
        "x".repeat(5 << 20)
    );
    let (begins, ends) = (
        call("Show", "{\"path\":\""),
        r#"{"index":0,"function":{"arguments":"\"}"}}"#,
    );
    let long = [&begins, &piece, &piece, &piece, &piece, ends];
    let head = format!("{{\"path\":\"{}", "x".repeat(191));
    let told = format!(
        "Cut tool_calls: Show{head}
        warning: the reply has 20,971,610 bytes, too many to be recorded: its beginning was kept, and no call of it runs
        result, error: {}",
        undertext::words::CUT_CALL
    );
    odd(35, "a text of 20 MB", &long, &told, "");
}

#[test]
fn case_36_a_tool_that_is_not_known_is_an_error_with_close_names() {
    for (name, error) in [
        (
            "show",
            "No tool is named `show`; close names are Show. Nothing ran.",
        ),
        (
            "Show ",
            "No tool is named `Show `; close names are Show. Nothing ran.",
        ),
        (
            "Shwo",
            "No tool is named `Shwo`; close names are Show. Nothing ran.",
        ),
        (
            "functions.Delete",
            "No tool is named `functions.Delete`; the tools are Show, Change, Beat. Nothing ran.",
        ),
        (" ", "The call names no tool. Nothing ran."),
    ] {
        let told = format!(
            "Complete tool_calls: {}{{\"path\":\"a\"}}\nresult, error: {error}",
            if name == " " { "" } else { name },
        );
        odd(36, name, &[&call(name, "{\"path\":\"a\"}")], &told, "");
    }
}

#[test]
fn case_37_a_call_that_is_text_never_runs_and_is_told_of_once() {
    for (name, written) in [
        ("json", r#"{"name": "Change", "arguments": {"path": "a"}}"#),
        (
            "xml",
            r#"<tool_call>{"name": "Change", "arguments": {"path": "a"}}</tool_call>"#,
        ),
        (
            "tags",
            "<invoke name=\"Change\"><parameter name=\"path\">a</parameter></invoke>",
        ),
        (
            "a block",
            "```json {\"name\": \"Change\", \"arguments\": {\"path\": \"a\"}} ```",
        ),
    ] {
        let written = &written
            .replace("```json ", "```json\n")
            .replace(" ```", "\n```");
        let told = format!(
            "Complete stop: {written}
            told: {}
            Complete stop: {written}
            end, finished: {written}
            requests 2",
            undertext::words::WRITTEN_CALL
        );
        check(37, name, &[text(written), text(written)], &told);
    }
    // A file that was read holds one.
    let path = r#"<tool_call>{\"name\":\"Change\",\"arguments\":{\"path\":\"a\"}}</tool_call>"#;
    let show = call("Show", &format!("{{\"path\":\"{path}\",\"chars\":60}}"));
    let told = format!(
        "Complete tool_calls: Show{{\"path\":\"{path}\",\"chars\":60}}
        result, ok: {}
        Complete stop: It holds a call of Change.
        end, finished: It holds a call of Change.
        ran Show {}
        requests 2",
        scene::text(&path.replace('\\', ""), 60),
        path.replace('\\', ""),
    );
    check(
        37,
        "a file",
        &[calls(&[&show]), text("It holds a call of Change.")],
        &told,
    );
}

#[test]
fn case_38_each_of_several_calls_is_answered_once_in_order() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("a.txt"), "here\n").unwrap();
    let item = |index: usize, name: &str, arguments: &str| {
        call(name, arguments).replace("\"index\":0,\"id\":\"a\"", &format!("\"index\":{index}"))
    };
    let items = [
        item(0, "Read", r#"{"path":"a.txt"}"#),
        item(1, "Read", r#"{"path":"missing.txt"}"#),
        item(
            2,
            "Bash",
            r#"{"command":"echo begun; sleep 60","timeout_ms":1000}"#,
        ),
        item(3, "Bash", r#"{"command":"exit 3"}"#),
        item(4, "Delete", "{}"),
        item(5, "Read", r#"{"path":"a.txt"}"#),
    ];
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    for cut in CUTS {
        let storage = MemoryStorage::default();
        let mut recorder = scene::create(&storage);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let server = Server::start(&[calls(&items), done()], cut).await;
            let endpoint = Endpoint {
                base_url: server.url.clone(),
                api_key: None,
                headers: Vec::new(),
            };
            let client = Client::new(endpoint, Timeouts::default()).unwrap();
            let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
            let workspace = Workspace::open(place.path(), None, environment).unwrap();
            let setup = scene::setup(100_000, Policy::default());
            let agent = Agent::new(setup, Arc::new(client), Toolbox::builtin())
                .with_hands(Hands::in_process(workspace));
            let cancel = CancellationToken::new();
            agent
                .run(&mut recorder, Some(Task::new("Go.")), &cancel)
                .await
                .unwrap();
        });
        let results: Vec<String> = scene::entries(&storage)
            .iter()
            .filter_map(|entry| match &entry.event {
                Event::Result(result) => {
                    let first = result.content.lines().next().unwrap_or_default();
                    Some(format!(
                        "{} {}: {first}",
                        result.call.place,
                        result.status.word()
                    ))
                }
                _ => None,
            })
            .collect();
        assert_eq!(
            results,
            [
                "1 ok:      1\there",
                "2 error: `missing.txt`: there is no such file",
                "3 timeout: begun",
                "4 error: [exit 3]",
                "5 error: No tool is named `Delete`; the tools are Bash, Job, Read, Write, Edit, Grep, Glob, Compact, Recall, TodoWrite, TodoRead. Nothing ran.",
                "6 ok:      1\there",
            ],
            "{cut:?}"
        );
    }
}

#[test]
fn case_39_a_call_of_another_type_is_an_error() {
    odd(
        39,
        "a custom tool beside a function",
        &[
            r#"{"index":0,"id":"a","type":"custom","custom":{"name":"Change","input":"{\"path\":\"a\"}"}}"#,
            r#"{"index":1,"id":"b","type":"retrieval","function":{"name":"Change","arguments":"{\"path\":\"b\"}"}}"#,
            r#"{"index":2,"id":"c","type":"","function":{"name":"Change","arguments":"{\"path\":\"c\"}"}}"#,
        ],
        "
        Complete tool_calls: custom:Change retrieval:Change{\"path\":\"b\"} Change{\"path\":\"c\"}
        result, error: No tool is named `custom:Change`; close names are Change. Nothing ran.
        result, error: No tool is named `retrieval:Change`; the tools are Show, Change, Beat. Nothing ran.
        result, ok: c s",
        "Change c",
    );
}

#[test]
fn case_40_the_same_failing_call_is_warned_of_and_then_stops_the_run() {
    let fails = "Complete tool_calls: Show{}\nresult, error: The call of Show did not run: the arguments: \"path\" is a required property.\n";
    let told = format!(
        "{}told: {}\n{}end, stuck: the same call of Show failed 6 times in a row; resume and say how else to do it\nrequests 6",
        fails.repeat(3),
        undertext::words::failing_call("Show", 3),
        fails.repeat(3),
    );
    check(
        40,
        "20 times",
        &vec![calls(&[&call("Show", "{}")]); 20],
        &told,
    );
    let mut policy = Policy::default();
    policy.limits.calls = 2;
    let manner = Manner {
        setup: scene::setup(100_000, policy),
        ..Manner::default()
    };
    let many: Vec<String> = (0..4)
        .map(|index| {
            call("Change", "{\"path\":\"a\"}")
                .replace("\"index\":0,\"id\":\"a\"", &format!("\"index\":{index}"))
        })
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    check_in(
        40,
        "more calls than one reply may make",
        &manner,
        &[calls(&many), done()],
        "
        Complete tool_calls: Change{\"path\":\"a\"} Change{\"path\":\"a\"} Change{\"path\":\"a\"} Change{\"path\":\"a\"}
        result, ok: a s
        result, ok: a s
        result, error: not run: a reply may make at most 2 calls; make the rest in your next one
        result, error: not run: a reply may make at most 2 calls; make the rest in your next one
        Complete stop: Done.
        end, finished: Done.
        ran Change a, Change a
        requests 2",
    );
}
