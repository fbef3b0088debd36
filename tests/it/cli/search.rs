//! `Grep` and `Glob` in a run.

use std::fs;

use serde_json::Value;

use super::{Answer, Place, says};
use crate::provider::Provider;

/// The names of the tools that a request offers, and the results that it brings.
fn offered(body: &[u8]) -> (String, String) {
    let body: Value = serde_json::from_slice(body).unwrap();
    let (tools, messages) = (&body["tools"], &body["messages"]);
    let each = |list: &Value, text: &dyn Fn(&Value) -> Option<String>| {
        let texts = list.as_array().unwrap().iter().filter_map(text);
        texts.collect::<Vec<_>>().join(" ")
    };
    let name = |tool: &Value| Some(tool["function"]["name"].as_str()?.to_owned());
    let result = |message: &Value| {
        let is_result = message["role"] == "tool";
        is_result.then(|| message["content"].as_str().unwrap().to_owned())
    };
    (each(tools, &name), each(messages, &result))
}

#[test]
fn searches_are_tools_of_a_run_unless_they_are_switched_off() {
    let place = Place::new();
    // What steers ripgrep elsewhere has no say here.
    fs::write(place.path("home/.ripgreprc"), "--invert-match\n").unwrap();
    let calls = vec![
        ("Grep", r#"{"pattern":"h.l+o"}"#),
        ("Glob", r#"{"pattern":"*.txt"}"#),
    ];
    let glob = vec![("Glob", r#"{"pattern":"*.txt"}"#)];
    let provider = Provider::new([
        Answer::Calls(calls),
        says("Found."),
        Answer::Calls(glob),
        says("Found."),
    ]);
    let ran = |flags: &[&str]| {
        let line = [&["run", "-m", "m", "--base-url", &provider.url], flags].concat();
        let mut command = place.command(&line);
        command.env("RIPGREP_CONFIG_PATH", place.path("home/.ripgreprc"));
        let code = super::ended(command.spawn().unwrap()).code;
        let (tools, _) = offered(&provider.body());
        let (_, results) = offered(&provider.body());
        (
            code,
            tools.contains("Grep"),
            tools.contains("Glob"),
            results,
        )
    };
    let found = "a.txt:1: hello\n a.txt\n".to_owned();
    assert_eq!(ran(&["task"]), (0, true, true, found));

    let config = place.path("home/off.yaml");
    fs::write(&config, "tools: { Grep: { enabled: false } }\n").unwrap();
    let off = ran(&["--config", config.to_str().unwrap(), "task"]);
    assert_eq!(off, (0, false, true, "a.txt\n".to_owned()));
}
