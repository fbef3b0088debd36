//! mini-SWE-agent: the messages as they were sent, in one object or as a bare list.
//!
//! Its first version writes a command as the one fenced block of a text, which the next message of the
//! user answers; later ones call a tool. A message of role `exit` was never sent.

use std::mem;

use serde_json::{Value, json};

use crate::exchange::Status;
use crate::import::Unread;
use crate::import::fields;
use crate::import::lines::{string, take_list, take_text, text};
use crate::import::pen::Pen;
use crate::import::source::Source;
use crate::transcript::Speaker;

/// The languages of a fenced block that is a command.
const COMMAND: [&str; 2] = ["bash", "mswea_bash_command"];

/// The run of a trajectory.
pub(super) fn read(source: &mut Source) -> Result<Vec<Pen>, Unread> {
    let mut run = fields::whole(source)?;
    let mut pen = Pen::default();
    let cost = run["info"]["model_stats"]["instance_cost"].clone();
    let messages = if let Value::Array(messages) = run {
        messages
    } else {
        let info = &run["info"];
        let config = &info["config"];
        let (version, id) = (string(&info["mini_version"]), string(&run["instance_id"]));
        pen.run(string(&config["environment"]["cwd"]), version, id);
        pen.model(string(&config["model"]["model_name"]), None);
        take_list(&mut run, "messages")
    };
    let mut told = Told::default();
    for (number, message) in messages.into_iter().enumerate() {
        told.message(&mut pen, &number.to_string(), message);
    }
    fields::cost(&mut pen, &cost);
    Ok(vec![pen])
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
        let mut extra = fields::take(&mut message, "extra");
        pen.at(fields::moment(&extra["timestamp"]));
        let content = text(fields::take(&mut message, "content"));
        match string(&message["role"]) {
            "system" => pen.instructions(&content),
            "user" if mem::take(&mut self.open) => {
                pen.answered("", status(&content, &extra), content);
            }
            "user" => self.heard(pen, content),
            "assistant" => {
                fields::reasoning(pen, key, &mut message);
                let calls = take_list(&mut message, "tool_calls");
                match command(&content).filter(|_| calls.is_empty()) {
                    Some((said, command)) => {
                        pen.said(Some(key), said);
                        let arguments = json!({ "command": command }).to_string();
                        pen.called(Some(key), "", "bash", arguments);
                        self.open = true;
                    }
                    None => pen.said(Some(key), &content),
                }
                fields::calls(pen, key, calls);
                fields::response(pen, key, &extra["response"]);
            }
            "tool" => {
                let id = take_text(&mut message, "tool_call_id");
                pen.answered(&id, status(&content, &extra), content);
            }
            "exit" => {
                let word = take_text(&mut extra, "exit_status");
                pen.note(format!("exit: {word}\n{content}").trim_end().to_owned());
            }
            "" => item(pen, key, message, &extra),
            role => pen.note(format!("{role}: {content}")),
        }
    }

    fn heard(&mut self, pen: &mut Pen, content: String) {
        // Once the task is set, only the agent's own program speaks.
        let speaker = if self.task {
            Speaker::Runtime
        } else {
            Speaker::Task
        };
        self.task = true;
        pen.user(speaker, content, Vec::new());
    }
}

/// An item of the Responses API, which has no role.
fn item(pen: &mut Pen, key: &str, mut item: Value, extra: &Value) {
    if string(&item["type"]) == "function_call_output" {
        let id = take_text(&mut item, "call_id");
        let output = text(fields::take(&mut item, "output"));
        pen.answered(&id, status(&output, extra), output);
        return;
    }
    let parts = take_list(&mut item, "output");
    if parts.is_empty() {
        pen.skipped();
    }
    for mut part in parts {
        match string(&part["type"]) {
            "reasoning" => pen.mused(Some(key), text(fields::take(&mut part, "summary"))),
            "function_call" => {
                let (id, name) = (
                    take_text(&mut part, "call_id"),
                    take_text(&mut part, "name"),
                );
                let arguments = fields::arguments(fields::take(&mut part, "arguments"));
                pen.called(Some(key), &id, &name, arguments);
            }
            _ => pen.said(Some(key), &text(fields::take(&mut part, "content"))),
        }
    }
}

/// The text before the one command of a text, and the command. If more follows it, the text stays
/// whole.
fn command(content: &str) -> Option<(&str, &str)> {
    let mut found = None;
    let mut from = 0;
    while let Some(at) = content[from..].find("```").map(|at| from + at) {
        from = at + 3;
        let Some((language, rest)) = content[from..].split_once('\n') else {
            break;
        };
        if !COMMAND.contains(&language.trim()) {
            continue;
        }
        let (command, after) = rest.split_once("\n```")?;
        if found.is_some() {
            return None;
        }
        found = Some((at, command, after));
        from = content.len() - after.len();
    }
    let (at, command, after) = found?;
    let said = if after.trim().is_empty() {
        &content[..at]
    } else {
        content
    };
    Some((said, command))
}

/// How a command went, by what is said beside its output and in it.
fn status(content: &str, extra: &Value) -> Status {
    let timed_out = extra["exception_type"] == "TimeoutExpired"
        || content.starts_with("The last command") && content.contains("timed out");
    let code = content.split_once("<returncode>");
    let code = code.and_then(|(_, rest)| rest.split_once('<'));
    let said = code.and_then(|(code, _)| code.trim().parse::<i64>().ok());
    if timed_out {
        Status::Timeout
    } else if extra["returncode"].as_i64().or(said).unwrap_or_default() == 0 {
        Status::Ok
    } else {
        Status::Error
    }
}

#[cfg(test)]
mod tests {
    use crate::import::Format;
    use crate::import::told::{survives, told};

    #[test]
    fn a_fenced_command_is_a_call_and_the_next_message_its_result() {
        let recording = r#"[
            {"role":"system","content":"One block.\n```bash\nx\n```"},
            {"role":"user","content":"Fix it."},
            {"role":"assistant","content":"Look.\n\n```mswea_bash_command\nls -a\ncat b\n```"},
            {"role":"user","content":"<returncode>2</returncode>\n<output>\n</output>"},
            {"role":"assistant","content":"Two.\n```bash\na\n```\n```bash\nb\n```"},
            {"role":"user","content":"Exactly ONE block, please."},
            {"role":"assistant","content":"Run it.\n```bash\nsleep 9\n```\nThen see."},
            {"role":"user","content":"The last command <command>sleep 9</command> timed out and has been killed."},
            {"role":"assistant","content":"```python\nprint()\n```"}
        ]"#;
        survives("a.traj.json", Format::MiniSweAgent, recording);
        insta::assert_snapshot!(told("a.traj.json", recording), @r#"
        run mini-swe-agent
        setup unknown "One block.\n```bash\nx\n```"
        Task "Fix it."
        Complete "Look.\n\n" -:bash{"command":"ls -a\ncat b"}
          result 5.1 error "<returncode>2</returncode>\n<output>\n</output>"
        Complete "Two.\n```bash\na\n```\n```bash\nb\n```"
        Runtime "Exactly ONE block, please."
        Complete "Run it.\n```bash\nsleep 9\n```\nThen see." -:bash{"command":"sleep 9"}
          result 11.1 timeout "The last command <command>sleep 9</command> timed out and has been killed."
        Complete "```python\nprint()\n```"
        "#);
    }

    #[test]
    fn calls_are_told_with_what_the_provider_said() {
        let recording = r#"{
            "info":{"model_stats":{"instance_cost":0.25},"mini_version":"2.2.7",
                "config":{"model":{"model_name":"m"},"environment":{"cwd":"/testbed"}}},
            "instance_id":"task-1","trajectory_format":"mini-swe-agent-1.1",
            "messages":[
                {"role":"system","content":"You fix."},
                {"role":"user","content":[{"type":"text","text":"Fix it."}]},
                {"role":"assistant","content":null,"reasoning_content":"Hm.","tool_calls":[
                    {"id":"a","type":"function","function":{"name":"bash","arguments":"{\"command\": \"ls\"}"}},
                    {"id":"b","type":"function","function":{"name":"bash","arguments":"{\"command\":"}}],
                    "extra":{"timestamp":1776225963.5,"response":{"id":"r1","choices":[{"finish_reason":"length"}],
                        "usage":{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8},
                            "completion_tokens_details":{"reasoning_tokens":2}}}}},
                {"role":"tool","tool_call_id":"b","content":"no","extra":{"returncode":1}},
                {"role":"tool","tool_call_id":"a","content":"late","extra":{"returncode":-1,"exception_type":"TimeoutExpired"}},
                {"role":"user","content":"Tool call error"},
                {"object":"response","output":[
                    {"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"Enough."}]},
                    {"type":"message","content":[{"type":"output_text","text":"Done."}]},
                    {"type":"function_call","call_id":"c","name":"bash","arguments":"{}"}]},
                {"type":"function_call_output","call_id":"c","output":"<returncode>0</returncode>","extra":{}},
                {"role":"exit","content":"the patch","extra":{"exit_status":"Submitted"}},
                {"role":"prophet","content":"?"}
            ]}"#;
        survives("a.traj.json", Format::MiniSweAgent, recording);
        insta::assert_snapshot!(told("a.traj.json", recording), @r#"
        run mini-swe-agent 2.2.7 in "/testbed" session "task-1"
        setup m "You fix."
        Task "Fix it."
        Cut "" thought "Hm." a:bash{"command": "ls"} b:bash{"command": (10 8 - 3 2)
          result 5.1 timeout "late"
          result 5.2 error "no"
        Runtime "Tool call error"
        Complete "Done." thought "Enough." c:bash{}
          result 10.1 ok "<returncode>0</returncode>"
        note "exit: Submitted\nthe patch"
        note "prophet: ?"
        note "the agent counted a cost of 0.25 USD"
        "#);
    }
}
