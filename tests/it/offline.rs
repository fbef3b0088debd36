//! The offline model at work: the real client, loop and tools, on small projects in temporary
//! directories.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use insta::assert_snapshot;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, Task};
use undertext::hands::{Hands, Workspace, allowed};
use undertext::model::offline::{self, NAME, Offline, Request, WINDOW};
use undertext::model::{Ask, Client, Delta, Endpoint, Model, Timeouts};
use undertext::record::{Clock, MemoryStorage, Recorder};
use undertext::setup::{self, Models, Policy, Role, Setup, Wire};
use undertext::tools::Toolbox;
use undertext::transcript::{Event, FaultClass, Run};
use undertext::words;

use crate::oracle;

/// A file: its path and its text.
type File = (&'static str, &'static str);

/// A library of shapes in awk, with a note and a test.
const SHAPES: [File; 6] = [
    (
        "GUIDE.md",
        "# shapes\n\nRun `sh spec/all.sh`. A shape is big from 10 on, huge above 250.\n",
    ),
    (
        "lib/shapes.awk",
        r#"# What shapes are.

function area(width, height) {
    return width * height
}

function size_name(area_now) {
    if (area_now > 250) {
        return "huge"
    }
    if (area_now >= 10) {
        return "big"
    }
    return "small"
}
"#,
    ),
    (
        "lib/main.awk",
        r#"$1 == "box" && NF == 3 {
    surface = area($2, $3)
    print $1, surface, size_name(surface)
    next
}

{
    print "bad shape", NR + 1
}
"#,
    ),
    (
        "spec/all.sh",
        r#"cd "$(dirname "$0")/.." || exit 2
bad=0
while read -r name row; do
    want=$(grep "^$name " spec/wanted.txt | cut -d' ' -f2-)
    got=$(echo "$row" | awk -f lib/shapes.awk -f lib/main.awk 2>&1)
    if [ "$want" = "$got" ]; then
        echo "ok $name"
    else
        echo "FAIL $name: expected $want, found $got"
        bad=1
    fi
done <spec/rows
exit $bad
"#,
    ),
    (
        "spec/rows",
        "tiny box 2 3\nedge box 2 5\nwide box 9 2\nmuch box 25 10\nmore box 25 11\nbad ring 1\n",
    ),
    (
        "spec/wanted.txt",
        "tiny box 6 small\nedge box 10 big\nwide box 18 big\nmuch box 250 big\nmore box 275 huge\n\
         bad bad shape 2\n",
    ),
];

/// A program of the shell whose test nobody names.
const STEPS: [File; 2] = [
    (
        "steps.sh",
        r#"# How many steps of a size reach a height: at most 40.
steps() {
    height=$1
    size=$2
    if [ "$size" -lt 1 ] || [ "$height" -gt 400 ]; then
        echo none
        return 1
    fi
    count=$(( (height + size - 1) / size ))
    if ! [ "$count" -gt 40 ]; then
        echo "$count"
    fi
}

steps "$1" "$2"
"#,
    ),
    (
        "test/steps.sh",
        r#"check() {
    got=$(sh steps.sh "$1" "$2")
    [ "$got" = "$3" ] || { echo "FAIL steps $1 $2: expected $3, got $got"; bad=1; }
}
check 10 3 4
check 9 3 3
check 400 10 40
check 401 100 none
check 5 0 none
check 82 2 ""
check 5 1 5
exit $bad
"#,
    ),
];

/// What a run came to.
struct Ran {
    /// The last words.
    text: String,
    /// Each reply, call and overlay, a line or more each.
    told: Vec<String>,
}

impl Ran {
    fn tries(&self) -> Vec<&str> {
        let own = self
            .told
            .iter()
            .filter(|told| !told.starts_with("An extract"));
        let lines = own.flat_map(|told| told.lines());
        lines.filter(|line| line.starts_with("Try ")).collect()
    }
}

/// A client whose bodies are judged before they are sent.
#[derive(Debug)]
struct Judged(Client);

impl Model for Judged {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        assert_eq!(oracle::pairing(&ask.body), Ok(()));
        self.0.ask(ask)
    }
}

fn client(offline: &Offline) -> Client {
    let endpoint = Endpoint {
        base_url: offline.base_url.clone(),
        api_key: None,
        headers: Vec::new(),
    };
    Client::new(endpoint, Timeouts::default()).unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// Lets the script work on a directory, in a window of this size.
fn run(directory: &Path, task: &str, window: u64) -> Ran {
    block_on(async {
        let offline = Offline::serve().await.unwrap();
        let models = Models {
            main: setup::Model {
                window: Some(window),
                ..setup::Model::named(NAME)
            },
            summary: None,
            fallback: None,
        };
        let setup = Setup {
            wire: Wire {
                instructions: "You work.".to_owned(),
                tools: Vec::new(),
                models,
            },
            policy: Policy::default(),
        };
        let environment = allowed([("PATH".into(), "/usr/bin:/bin".into())], &[]);
        let workspace = Workspace::open(directory, None, environment).unwrap();
        let agent = Agent::new(
            setup,
            Arc::new(Judged(client(&offline))),
            Toolbox::builtin(),
        )
        .with_hands(Hands::in_process(workspace));
        let clock = Clock::System;
        let begun = Run::new(clock.new_run(), "/w");
        let storage = Box::new(MemoryStorage::default());
        let mut recorder = Recorder::create(storage, clock, begun).unwrap();
        let cancel = CancellationToken::new();
        let task = Some(Task::new(task));
        let finished = agent.run(&mut recorder, task, &cancel).await.unwrap();
        let mut told = Vec::new();
        for entry in recorder.view().transcript().entries() {
            match &entry.event {
                Event::Response(response) => {
                    told.push(response.text.clone());
                    let calls = response.calls.iter();
                    told.extend(calls.map(|call| format!("  {} {}", call.name, call.arguments)));
                }
                Event::Overlay(overlay) => told.push(format!("[overlay {}]", overlay.rule)),
                _ => {}
            }
        }
        Ran {
            text: finished.text,
            told,
        }
    })
}

fn lay_out(files: &[File]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

/// Breaks a file of a project by one text in the place of another.
fn broken(files: &[File], path: &str, right: &str, wrong: &str) -> tempfile::TempDir {
    let directory = lay_out(files);
    let file = directory.path().join(path);
    let healthy = fs::read_to_string(&file).unwrap();
    assert_eq!(healthy.matches(right).count(), 1, "{right}");
    fs::write(&file, healthy.replace(right, wrong)).unwrap();
    directory
}

#[test]
fn plain_bugs_are_mended_within_few_tries() {
    let task = "`sh spec/all.sh` fails. Mend it.";
    for (path, right, wrong, most) in [
        ("lib/shapes.awk", ">= 10", "> 10", 4),
        ("lib/shapes.awk", "> 250", "> 205", 4),
        ("lib/shapes.awk", ">= 10", ">= 11", 4),
        ("lib/shapes.awk", "width * height", "width / height", 6),
        ("lib/shapes.awk", "width * height", "width * heigth", 3),
        ("lib/main.awk", "surface = area", "surfcae = area", 3),
        ("lib/main.awk", "== \"box\"", "!= \"box\"", 16),
        ("lib/main.awk", "area($2, $3)", "area($2, $4)", 20),
        ("lib/main.awk", "NR + 1", "NR", 8),
    ] {
        let directory = broken(&SHAPES, path, right, wrong);
        let ran = run(directory.path(), task, WINDOW);
        let said = ran.told.join("\n");
        assert!(
            ran.text.starts_with("`sh spec/all.sh` passes now."),
            "{wrong}: {said}"
        );
        assert!(
            ran.tries().len() <= most,
            "{wrong}: {} tries",
            ran.tries().len()
        );
    }
}

#[test]
fn a_test_that_nobody_names_is_found_and_the_shell_is_mended() {
    for (right, wrong) in [
        ("-lt 1", "-le 1"),
        ("-gt 400", "-ge 400"),
        ("size - 1", "size + 1"),
        ("! [ \"$count\"", "[ \"$count\""),
        (" || [ \"$height\"", " && [ \"$height\""),
        ("height=$1", "height=$2"),
        ("\"$1\" \"$2\"\n", "\"$2\" \"$1\"\n"),
    ] {
        let directory = broken(&STEPS, "steps.sh", right, wrong);
        let ran = run(
            directory.path(),
            "Something is wrong with the steps. Mend it.",
            WINDOW,
        );
        let said = ran.told.join("\n");
        assert!(
            ran.text.starts_with("`sh test/steps.sh` passes now."),
            "{wrong}: {said}"
        );
    }
}

#[test]
fn what_it_cannot_mend_it_leaves_as_it_was_and_says_so() {
    let directory = broken(&SHAPES, "lib/shapes.awk", "\"small\"", "\"little\"");
    let path = directory.path().join("lib/shapes.awk");
    let before = fs::read_to_string(&path).unwrap();
    // So little room that hardly anything stays to be read.
    let ran = run(directory.path(), "`sh spec/all.sh` fails. Mend it.", 12_000);
    assert_snapshot!(ran.text, @"I could not mend it: `sh spec/all.sh` still fails. I tried 47 plain repairs, one at a time, in `lib/shapes.awk`, `lib/main.awk`, and took all of them back: the files are as they were. What fails speaks of: box, tiny, small, little. I am a script and no LLM: I can only look for a failing test and try plain repairs.");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    let overlays = ran.told.iter().filter(|told| told.starts_with("[overlay"));
    assert!(overlays.count() > 3, "{}", ran.told.join("\n"));
    // Whatever was put away, nothing is tried twice, and the count goes on.
    let tries = ran.tries();
    let changes = tries.iter().map(|line| line.split_once(" in ").unwrap().1);
    assert_eq!(changes.collect::<BTreeSet<_>>().len(), tries.len());
    for (place, line) in tries.iter().enumerate() {
        assert!(
            line.starts_with(&format!("Try {} in ", place + 1)),
            "{line}"
        );
    }
}

#[test]
fn what_cannot_be_changed_is_said_to_be_so() {
    let directory = broken(&STEPS, "steps.sh", "-lt 1", "-le 1");
    let path = directory.path().join("steps.sh");
    let mut rights = fs::metadata(&path).unwrap().permissions();
    rights.set_readonly(true);
    fs::set_permissions(&path, rights).unwrap();
    let before = fs::read_to_string(&path).unwrap();
    let ran = run(directory.path(), "The test fails. Mend it.", WINDOW);
    assert_snapshot!(ran.text, @"I could not mend it: `sh test/steps.sh` still fails. I could change nothing. Every change of `steps.sh` was rejected. What fails speaks of: steps. I am a script and no LLM: I can only look for a failing test and try plain repairs.");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    assert_eq!(ran.tries().len(), 2);
}

#[test]
fn another_task_is_left_alone() {
    let directory = broken(&STEPS, "steps.sh", "-lt 1", "-le 1");
    let ran = run(directory.path(), "Write a poem about the sea.", WINDOW);
    assert_snapshot!(ran.text, @"This is nothing that I can do, and I changed nothing. I am a script and no LLM: I can only look for a failing test and try plain repairs. A task that says what fails, with the command of a test in backquotes, is one for me.");
}

/// The reply to these messages, with these tools offered, as text.
fn reply(tools: &[(&str, &str)], messages: &Value) -> String {
    let tools = tools.iter().map(|(name, argument)| {
        let parameters = json!({"type": "object", "properties": {*argument: {}}});
        json!({"type": "function", "function": {"name": name, "parameters": parameters}})
    });
    let body = json!({"tools": tools.collect::<Vec<_>>(), "messages": messages}).to_string();
    let reply = offline::reply(&Request::read(body.as_bytes()).unwrap());
    let calls = reply
        .calls
        .iter()
        .map(|call| format!("\n{} {}", call.name, call.arguments));
    reply.text + &calls.collect::<String>()
}

#[test]
fn missing_tools_are_gone_without() {
    let task = json!([{"role": "user", "content": "`sh t.sh` fails."}]);
    assert_snapshot!(reply(&[], &task), @"I have no tool to run a test with (Bash is not offered). I am a script and no LLM: I can only look for a failing test and try plain repairs.");
    assert_snapshot!(reply(&[("Bash", "command")], &task), @r#"
    I am Undertext's offline model: a script in the program and no LLM. I run the test, read what fails, and try plain repairs one at a time.
    Bash {"command":"find . -type f -not -path '*/.git/*' | LC_ALL=C sort | head -n 500"}
    "#);
    assert_snapshot!(
        reply(&[("Bash", "command"), ("Glob", "pattern"), ("TodoWrite", "todos")], &task),
        @r#"
    I am Undertext's offline model: a script in the program and no LLM. I run the test, read what fails, and try plain repairs one at a time.
    TodoWrite {"todos":[{"content":"List the files and read the notes","status":"in_progress"},{"content":"Run the test: `sh t.sh`","status":"pending"},{"content":"Read the failure and find the suspects","status":"pending"},{"content":"Repair: one plain change at a time","status":"pending"},{"content":"Say what was done","status":"pending"}]}
    Glob {"pattern":"**/*"}
    "#
    );
    let call = |id: &str, name: &str, arguments: &Value| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        let call = json!({"id": id, "type": "function", "function": function});
        json!({"role": "assistant", "content": "Test: `sh t.sh`", "tool_calls": [call]})
    };
    let failed = json!([
        {"role": "user", "content": "`sh t.sh` fails."},
        call("a", "Bash", &json!({"command": "sh t.sh"})),
        {"role": "tool", "tool_call_id": "a", "content": "FAIL\n[exit 1]"},
    ]);
    assert_snapshot!(reply(&[("Bash", "command")], &failed), @"`sh t.sh` fails, and I have no tool to change files with (Edit is not offered). I am a script and no LLM: I can only look for a failing test and try plain repairs.");
}

/// A test that ended in this, and what was said and done before and after.
fn after_test(result: &str, more: &Value) -> String {
    let call =
        json!({"id": "a", "function": {"name": "Bash", "arguments": r#"{"command":"sh t.sh"}"#}});
    let mut messages = json!([
        {"role": "user", "content": "`sh t.sh` fails."},
        {"role": "assistant", "content": "Test: `sh t.sh`", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": result},
    ]);
    let more = more.as_array().unwrap().clone();
    messages.as_array_mut().unwrap().extend(more);
    reply(
        &[("Bash", "command"), ("Edit", "edits"), ("Read", "path")],
        &messages,
    )
}

#[test]
fn it_claims_nothing_that_it_did_not_see() {
    assert_snapshot!(
        after_test("[ended after 120,000 ms, the limit of this call; what it did until then may have taken effect]", &json!([])),
        @"`sh t.sh` did not end in time, so I cannot tell what is wrong, and I changed nothing. I am a script and no LLM: I can only look for a failing test and try plain repairs. Name a test in the task that takes less time."
    );
    // The last try was to be taken back, and the edit was refused.
    let call = |id: &str, name: &str, arguments: Value| json!({"id": id, "function": {"name": name, "arguments": arguments.to_string()}});
    let edit = |id: &str, old: &str, new: &str| {
        call(
            id,
            "Edit",
            json!({"path": "a.sh", "edits": [{"old": old, "new": new}]}),
        )
    };
    let test = |id: &str| call(id, "Bash", json!({"command": "sh t.sh"}));
    let own = |text: &str, calls: &[Value]| json!({"role": "assistant", "content": text, "tool_calls": calls});
    let result =
        |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
    let more = json!([
        own(
            "Suspects: `a.sh`\nTry 1 in `a.sh`: line 1, `-` for `+`.",
            &[edit("b", "+", "-"), test("c")]
        ),
        result("b", "Edited `a.sh`."),
        result("c", "FAIL\n[exit 1]"),
        own(
            "I take the last try back.",
            &[edit("d", "-", "+"), test("e")]
        ),
        result("d", "`a.sh`: read-only"),
        result("e", "FAIL\n[exit 1]"),
    ]);
    assert_snapshot!(after_test("FAIL\n[exit 1]", &more), @"I could not mend it: `sh t.sh` still fails. I tried 1 plain repair, one at a time, in `a.sh`. One of them I could not take back: `a.sh` still has line 1, `-` for `+`. I am a script and no LLM: I can only look for a failing test and try plain repairs.");
}

#[test]
fn a_summary_is_an_extract_that_the_script_can_read_again() {
    let ask = words::summarize(Some((1, 9)), None, 300, Some("the failing test"), &[], None);
    let call = |id: &str, name: &str, arguments: Value| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"id": id, "type": "function", "function": function})
    };
    let edit = json!({"path": "a.awk", "edits": [{"old": "<", "new": "<="}]});
    let todos = json!({"todos": [{"content": "Repair", "status": "in_progress"}]});
    let messages = json!([
        {"role": "user", "content": "`sh t.sh` fails.\nMend it."},
        {"role": "assistant", "content": "Look.", "tool_calls": [
            call("a", "Glob", json!({"pattern": "**/*"})),
            call("b", "TodoWrite", todos),
            call("c", "Read", json!({"path": "a.awk"})),
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "a.awk\nt.sh"},
        {"role": "tool", "tool_call_id": "b", "content": "ok"},
        {"role": "tool", "tool_call_id": "c", "content": "     1\tif (x < 2) y = 3\n"},
        {
            "role": "assistant",
            "content": "Suspects: `a.awk`\nWords of the failure: edge\n- Next in `a.awk`: line 1, `<=` for \
                        `<`\n- Next in `a.awk`: line 1, `3` for `2`\nTry 1 in `a.awk`: line 1, `<=` for `<`.",
            "tool_calls": [call("d", "Edit", edit), call("e", "Bash", json!({"command": "sh t.sh"}))],
        },
        {"role": "tool", "tool_call_id": "d", "content": "Edited `a.awk`."},
        {"role": "tool", "tool_call_id": "e", "content": "ok tiny\nFAIL edge\n  expected 2\n[exit 1]"},
        {"role": "user", "content": ask},
    ]);
    let extract = reply(&[], &messages);
    assert_snapshot!(extract, @"
    An extract by rules; no LLM wrote it.
    Tries so far: 1, the last one:
    Try 1 in `a.awk`: line 1, `<=` for `<`.
    Tried in `a.awk`: line 1, `<=` for `<`

    Task:
    > `sh t.sh` fails.
    > Mend it.

    Focus:
    the failing test

    Test: `sh t.sh`
    It failed when it last ran:
        FAIL edge
          expected 2
        [exit 1]
    Suspects: `a.awk`
    Words of the failure: edge

    To try:
    - Next in `a.awk`: line 1, `3` for `2`

    Todo list:
    - Repair (in progress)

    Done:
    - read: `a.awk`
    - edited: `a.awk`

    Files of the project:
    a.awk, t.sh
    ");
    // What comes next needs the file, which is no longer in sight.
    let summary = format!(
        "[CONVERSATION HISTORY SUMMARY - 12 entries, rounds 1 to 9, overlay 30]\n\n{extract}\n[END SUMMARY \
         - Recent conversation continues below]"
    );
    let messages = json!([
        {"role": "user", "content": "`sh t.sh` fails.\nMend it."},
        {"role": "user", "content": summary},
    ]);
    let tools = [("Bash", "command"), ("Edit", "edits"), ("Read", "path")];
    assert_snapshot!(reply(&tools, &messages), @r#"
    I need to see `a.awk` again.
    Read {"path":"a.awk"}
    "#);
    let mut messages = messages;
    let again = json!([
        {"role": "assistant", "content": "Again.", "tool_calls": [call("a", "Read", json!({"path": "a.awk"}))]},
        {"role": "tool", "tool_call_id": "a", "content": "     1\tif (x <= 2) y = 3\n"},
    ]);
    messages
        .as_array_mut()
        .unwrap()
        .extend(again.as_array().unwrap().clone());
    assert_snapshot!(reply(&tools, &messages), @r#"
    Try 2 in `a.awk`: line 1, `3` for `2`.
    Edit {"path":"a.awk","edits":[{"old":"if (x <= 2) y = 3","new":"if (x < 3) y = 3"}]}
    Bash {"command":"sh t.sh"}
    "#);
}

#[test]
fn the_server_answers_like_others() {
    block_on(async {
        let offline = Offline::serve().await.unwrap();
        let client = client(&offline);
        let ask = |messages: &Value, more: &str| {
            let body = format!(r#"{{"stream":true,{more}"messages":{messages}}}"#);
            let ask = Ask {
                body: body.into_bytes().into(),
                model: setup::Model::named(NAME),
                role: Role::Main,
                summary: false,
            };
            client.ask(ask).collect::<Vec<Delta>>()
        };
        let task = json!([{"role": "user", "content": "`make check` fails"}]);
        let tools =
            r#""tools":[{"function":{"name":"Bash","parameters":{"properties":{"command":{}}}}}],"#;
        let deltas = ask(&task, tools).await;
        let Some(Delta::Reply(reply)) = deltas.last() else {
            panic!("{deltas:?}");
        };
        assert_eq!(reply.finish.as_deref(), Some("tool_calls"));
        assert_eq!(reply.calls.len(), 1);
        assert_eq!(reply.model.as_deref(), Some(NAME));
        assert!(reply.usage.unwrap().input > Some(20));
        // The text comes in pieces, then the call.
        assert!(deltas.len() > 3, "{deltas:?}");

        let long = json!([{"role": "user", "content": "x".repeat(4 * 40_000)}]);
        let deltas = ask(&long, "").await;
        let Some(Delta::Fault(fault)) = deltas.last() else {
            panic!("{deltas:?}");
        };
        assert_eq!(
            (fault.class, fault.window),
            (FaultClass::Overflow, Some(WINDOW))
        );
        let deltas = ask(&json!(7), "").await;
        assert!(matches!(deltas.last(), Some(Delta::Fault(fault)) if fault.status == Some(400)));

        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let models = http
            .get(format!("{}/models", offline.base_url))
            .send()
            .await
            .unwrap();
        let models: Value = serde_json::from_slice(&models.bytes().await.unwrap()).unwrap();
        assert_eq!(models["data"][0]["id"], NAME);
        let url = format!("{}/chat/completions", offline.base_url);
        let body = json!({"messages": task}).to_string();
        let whole = http.post(url).body(body).send().await.unwrap();
        let whole: Value = serde_json::from_slice(&whole.bytes().await.unwrap()).unwrap();
        assert_eq!(whole["choices"][0]["finish_reason"], "stop");
        assert_eq!(whole["object"], "chat.completion");

        let address = offline.base_url.clone();
        drop(offline);
        tokio::task::yield_now().await;
        assert!(http.get(address).send().await.is_err());
    });
}
