//! SWE-agent: the messages that were sent stand in `history`, what its steps did in `trajectory`.
//!
//! Newer runs call functions; in older ones the text holds a command, which the next message of the
//! user answers. Demonstrations were sent as well, but are nobody's work in this run. No times.

use std::mem;

use serde_json::{Value, json};

use crate::exchange::Status;
use crate::import::Unread;
use crate::import::fields;
use crate::import::lines::{string, take_list, take_text, text};
use crate::import::pen::Pen;
use crate::import::source::Source;
use crate::transcript::Speaker;

/// The run of a trajectory; those of all attempts, if there were several.
pub(super) fn read(source: &mut Source) -> Result<Vec<Pen>, Unread> {
    let mut run = fields::whole(source)?;
    let attempts = take_list(&mut run, "attempts");
    if attempts.is_empty() {
        return Ok(vec![trajectory(run)]);
    }
    Ok(attempts.into_iter().map(trajectory).collect())
}

fn trajectory(mut run: Value) -> Pen {
    let mut pen = Pen::default();
    let config = &run["replay_config"];
    let steps = run["trajectory"].as_array().map_or(&[][..], Vec::as_slice);
    let workspace = steps.iter().find_map(|step| workspace(&step["state"]));
    let version = string(&run["info"]["swe_agent_version"]);
    let id = string(&config["problem_statement"]["id"]);
    pen.run(&workspace.unwrap_or_default(), version, id);
    pen.model(string(&config["agent"]["model"]["name"]), None);
    // What the last command printed was never sent, and stands here alone.
    let last = steps
        .last()
        .map(|step| string(&step["observation"]).to_owned());

    let mut told = Told::default();
    for (number, message) in take_list(&mut run, "history").into_iter().enumerate() {
        told.message(&mut pen, &number.to_string(), message);
    }
    if let Some(last) = last.filter(|last| told.open && !last.is_empty()) {
        pen.answered("", Status::Ok, last);
    }
    fields::cost(&mut pen, &run["info"]["model_stats"]["instance_cost"]);
    pen
}

/// The working directory that a state names, which is an object or the text of one.
fn workspace(whole: &Value) -> Option<String> {
    let parsed = whole.as_str().map(serde_json::from_str::<Value>);
    let state = parsed.transpose().ok()?;
    let found = state.as_ref().unwrap_or(whole);
    found["working_dir"].as_str().map(str::to_owned)
}

/// What was told so far.
#[derive(Default)]
struct Told {
    /// Whether the task was.
    task: bool,
    /// Whether the newest text holds a command that is not answered yet.
    open: bool,
}

impl Told {
    fn message(&mut self, pen: &mut Pen, key: &str, mut message: Value) {
        let content = text(fields::take(&mut message, "content"));
        if is_shown(&message) {
            pen.user(Speaker::Runtime, content, Vec::new());
            return;
        }
        match string(&message["role"]) {
            "system" => pen.instructions(&content),
            "user" if mem::take(&mut self.open) => pen.answered("", status(&content), content),
            "user" => {
                let speaker = if self.task {
                    Speaker::Runtime
                } else {
                    Speaker::Task
                };
                self.task = true;
                pen.user(speaker, content, Vec::new());
            }
            "assistant" => {
                fields::reasoning(pen, key, &mut message);
                let calls = take_list(&mut message, "tool_calls");
                let command = take_text(&mut message, "action");
                if calls.is_empty() && !command.trim().is_empty() {
                    let thought = string(&message["thought"]);
                    let said = beside(&content, thought, &command).unwrap_or(&content);
                    pen.said(Some(key), said);
                    let arguments = json!({ "command": command }).to_string();
                    pen.called(Some(key), "", "bash", arguments);
                    self.open = true;
                } else {
                    pen.said(Some(key), &content);
                }
                fields::calls(pen, key, calls);
            }
            "tool" => {
                let id = message["tool_call_ids"][0].as_str();
                let id = id.unwrap_or_else(|| string(&message["tool_call_id"]));
                pen.answered(id, status(&content), content);
            }
            role => pen.note(format!("{role}: {content}")),
        }
    }
}

/// Whether a message is part of a demonstration.
fn is_shown(message: &Value) -> bool {
    message["is_demo"].as_bool() == Some(true) || message["message_type"] == "demonstration"
}

/// The thought, if beside it and the command there is nothing in a text but the marks around the
/// command.
fn beside<'a>(content: &str, thought: &'a str, command: &str) -> Option<&'a str> {
    let rest = content.strip_prefix(thought)?;
    let (before, after) = rest.split_once(command)?;
    let is_mark = |line: &str| {
        let line = line.trim();
        let is_tag = line.starts_with('<') && line.ends_with('>');
        line.is_empty() || line.starts_with("```") || is_tag
    };
    let mut lines = before.lines().chain(after.lines());
    lines.all(is_mark).then_some(thought)
}

/// How a command went, as far as its output says so.
fn status(content: &str) -> Status {
    if content.contains("EXECUTION TIMED OUT")
        || content.contains("was cancelled because it took more than")
    {
        Status::Timeout
    } else {
        Status::Ok
    }
}

#[cfg(test)]
mod tests {
    use crate::import::Format;
    use crate::import::told::{survives, told};

    #[test]
    fn a_text_holds_its_command_and_the_last_output_is_found() {
        let recording = r#"{
            "environment":"swe_main",
            "trajectory":[{"state":"{\"working_dir\":\"/repo\"}"},{"observation":"the patch"}],
            "info":{"model_stats":{"instance_cost":0}},
            "history":[
                {"role":"system","content":"You edit.","agent":"main"},
                {"role":"user","content":"Here is a demonstration","is_demo":true},
                {"role":"assistant","content":"Shown.","action":"ls","is_demo":true},
                {"role":"user","content":"Fix it."},
                {"role":"assistant","content":"Look.\n```\nls -a\n```","thought":"Look.\n","action":"ls -a\n"},
                {"role":"user","content":"\nEXECUTION TIMED OUT"},
                {"role":"assistant","content":"Odd, then ls and more","thought":"Odd","action":"ls"},
                {"role":"user","content":"a\nb"},
                {"role":"assistant","content":"No command.","thought":"No command.","action":""},
                {"role":"user","content":"Your output could not be parsed."},
                {"role":"assistant","content":"Bye.\n<command>\nsubmit\n</command>","thought":"Bye.","action":"submit"}
            ]}"#;
        survives("a.traj", Format::SweAgent, recording);
        insta::assert_snapshot!(told("a.traj", recording), @r#"
        run swe-agent in "/repo"
        setup unknown "You edit."
        Runtime "Here is a demonstration"
        Runtime "Shown."
        Task "Fix it."
        Complete "Look.\n" -:bash{"command":"ls -a\n"}
          result 7.1 timeout "\nEXECUTION TIMED OUT"
        Complete "Odd, then ls and more" -:bash{"command":"ls"}
          result 10.1 ok "a\nb"
        Complete "No command."
        Runtime "Your output could not be parsed."
        Complete "Bye." -:bash{"command":"submit"}
          result 16.1 ok "the patch"
        "#);
    }

    #[test]
    fn functions_are_called_and_each_attempt_is_a_run() {
        let recording = r#"{"trajectory":[],"history":[],"attempts":[
            {"replay_config":{"agent":{"model":{"name":"m"}},"problem_statement":{"id":"p"}},
             "info":{"swe_agent_version":"1.1.0","model_stats":{"instance_cost":1.5}},
             "trajectory":[{"state":{"working_dir":"/repo"},"observation":"not told twice"}],
             "history":[
                {"role":"user","content":[{"type":"text","text":"Fix it."}],"message_type":"observation"},
                {"role":"assistant","content":"Go.","thought":"Go.","action":"create a",
                 "thinking_blocks":[{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"redacted_thinking","data":"d"}],
                 "tool_calls":[{"id":"c1","type":"function","function":{"name":"create","arguments":"{\"filename\":\"a\"}"}}]},
                {"role":"tool","content":"made","tool_call_ids":["c1"]}]},
            {"history":[{"role":"user","content":"Again."},{"role":"assistant","content":"No."}]}
        ]}"#;
        survives("a.traj", Format::SweAgent, recording);
        insta::assert_snapshot!(told("a.traj", recording), @r#"
        run swe-agent 1.1.0 in "/repo" session "p"
        setup m ""
        Task "Fix it."
        Complete "Go." thought "Hm." c1:create{"filename":"a"}
          result 5.1 ok "made"
        note "the agent counted a cost of 1.5 USD"
        run swe-agent
        setup unknown ""
        Task "Again."
        Complete "No."
        "#);
    }
}
