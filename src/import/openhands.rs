//! `OpenHands`: the output of an evaluation, one run a line, each a list of events.
//!
//! An event is an action or an observation. Actions that came from one response carry the response
//! whole, from which everything is taken; an observation names the action that caused it. What was
//! looked up for the model (`recall`) was sent as well. The earliest runs have neither ids nor sources.

use std::collections::{HashMap, HashSet};
use std::mem;

use serde_json::Value;

use crate::exchange::Status;
use crate::import::Unread;
use crate::import::fields;
use crate::import::lines::{string, take_list, take_text, text};
use crate::import::objects::Objects;
use crate::import::pen::{Compaction, Mark, Pen};
use crate::import::source::Source;
use crate::overlay::Origin;
use crate::transcript::Speaker;

/// Actions and observations that change nothing the model reads.
const INTERNAL: [&str; 6] = [
    "recall",
    "change_agent_state",
    "agent_state_changed",
    "null",
    "condensation_request",
    "pause",
];

/// The runs of a file, one a line. Broken lines count with the first run.
pub(super) fn read(source: &mut Source) -> Result<Vec<Pen>, Unread> {
    let mut pens = Vec::new();
    // Events that stand alone are one run.
    let mut loose = Vec::new();
    let mut objects = Objects::of(source)?;
    while let Some(line) = objects.next()? {
        if line["history"].is_array() {
            pens.push(trajectory(line));
        } else if line["action"].is_string() || line["observation"].is_string() {
            loose.push(line);
        } else {
            let mut pen = Pen::default();
            pen.skipped();
            pens.push(pen);
        }
    }
    if !loose.is_empty() {
        pens.push(history(Pen::default(), loose));
    }
    if let Some(first) = pens.first_mut() {
        (0..objects.skipped()).for_each(|_| first.skipped());
    }
    Ok(pens)
}

fn trajectory(mut run: Value) -> Pen {
    let mut pen = Pen::default();
    let events = take_list(&mut run, "history");
    pen.run("", "", string(&run["instance_id"]));
    pen.model(string(&run["metadata"]["llm_config"]["model"]), None);
    // The earliest runs are pairs of an action and its observation.
    let events: Vec<Value> = events.into_iter().flat_map(flat).collect();
    let asked = |event: &Value| event["source"] == "user" && event["action"] == "message";
    let unsaid = events.iter().any(|event| event["source"].is_string());
    if !events.iter().any(asked) && (unsaid || !starts_with_message(&events)) {
        pen.typed(take_text(&mut run, "instruction"), Vec::new());
    }
    let mut pen = history(pen, events);
    fields::cost(&mut pen, &run["metrics"]["accumulated_cost"]);
    let error = string(&run["error"]);
    if !error.is_empty() {
        pen.note(format!("the run failed: {error}"));
    }
    pen
}

/// The events of a pair, or the one that stands alone.
fn flat(event: Value) -> Vec<Value> {
    if let Value::Array(pair) = event {
        pair
    } else {
        vec![event]
    }
}

/// Whether the first action of events without sources is a message: then it is the task.
fn starts_with_message(events: &[Value]) -> bool {
    let mut actions = events.iter().filter_map(|event| event["action"].as_str());
    actions.next() == Some("message")
}

fn history(mut pen: Pen, events: Vec<Value>) -> Pen {
    let mut told = Told::default();
    for event in events {
        told.event(&mut pen, event);
    }
    pen
}

/// What was told so far.
#[derive(Default)]
struct Told {
    /// The responses, by the provider's id.
    responses: HashSet<String>,
    /// The provider's ids of the calls that events stand for.
    calls: HashMap<u64, String>,
    /// Where events stand, in the order of the file.
    marks: Vec<(u64, Mark)>,
    /// Whether the newest call is not answered, where calls have no ids.
    open: bool,
    /// Whether it is for the agent to speak, where no event says who does.
    answering: bool,
}

impl Told {
    fn event(&mut self, pen: &mut Pen, mut event: Value) {
        pen.at(fields::moment(&event["timestamp"]));
        if let Some(id) = event["id"].as_u64() {
            self.marks.push((id, pen.mark()));
        }
        if event["observation"].is_string() {
            self.observation(pen, event);
            return;
        }
        let mut args = fields::take(&mut event, "args");
        let action = take_text(&mut event, "action");
        match (string(&event["source"]), action.as_str()) {
            (_, "system") => {
                pen.instructions(string(&args["content"]));
                fields::tools(pen, &take_list(&mut args, "tools"));
                pen.run("", string(&args["openhands_version"]), "");
            }
            (_, "condensation") => self.condensed(pen, &args),
            (_, internal) if INTERNAL.contains(&internal) => {}
            (source, "message") if !event["tool_call_metadata"].is_object() => {
                let is_user = source == "user" || source.is_empty() && !self.answering;
                let content = [&args["content"], &event["content"], &event["message"]];
                let content = content.into_iter().find_map(Value::as_str);
                let content = content.unwrap_or_default();
                if is_user {
                    pen.typed(content.to_owned(), Vec::new());
                } else {
                    pen.over();
                    pen.said(None, content);
                    pen.over();
                }
                self.answering = is_user;
            }
            ("user" | "environment", _) => {
                // A person's own command.
                let said = take_text(&mut event, "message");
                pen.user(Speaker::Runtime, said, Vec::new());
            }
            (_, "") => {
                pen.skipped();
            }
            (_, name) => {
                self.answering = true;
                self.called(pen, name, event, args);
            }
        }
    }

    /// An action that is a call.
    fn called(&mut self, pen: &mut Pen, name: &str, mut event: Value, mut args: Value) {
        let mut meta = fields::take(&mut event, "tool_call_metadata");
        let mut response = fields::take(&mut meta, "model_response");
        let key = string(&response["id"]).to_owned();
        let id = take_text(&mut meta, "tool_call_id");
        let number = event["id"].as_u64();
        if !key.is_empty() {
            if let Some(number) = number {
                self.calls.insert(number, id);
            }
            if !self.responses.insert(key.clone()) {
                return;
            }
            let message = response.pointer_mut("/choices/0/message");
            let mut message = message.map(Value::take).unwrap_or_default();
            fields::reasoning(pen, &key, &mut message);
            pen.said(Some(&key), &text(fields::take(&mut message, "content")));
            fields::calls(pen, &key, take_list(&mut message, "tool_calls"));
            fields::response(pen, &key, &response);
            return;
        }
        // Older actions are no calls of functions: what they need stands in their fields.
        if !args.is_object() {
            args = event;
        }
        pen.over();
        pen.said(None, &take_text(&mut args, "thought"));
        if let Value::Object(args) = &mut args {
            for beside in ["timestamp", "source", "id", "message", "action", "thought"] {
                args.shift_remove(beside);
            }
        }
        pen.called(None, "", name, args.to_string());
        self.open = true;
        if let Some(number) = number {
            self.calls.insert(number, String::new());
        }
    }

    fn observation(&mut self, pen: &mut Pen, mut event: Value) {
        let kind = take_text(&mut event, "observation");
        let extras = fields::take(&mut event, "extras");
        let meta = &extras["metadata"];
        let mut content = text(fields::take(&mut event, "content"));
        match kind.as_str() {
            "recall" => return recalled(pen, &extras),
            internal if INTERNAL.contains(&internal) => return,
            _ => {}
        }
        pen.run(string(&meta["working_dir"]), "", "");
        content.insert_str(0, string(&meta["prefix"]));
        content.push_str(string(&meta["suffix"]));
        let code = [&meta["exit_code"], &extras["exit_code"]];
        let code = code.into_iter().find_map(Value::as_i64).unwrap_or_default();
        let failed = code != 0 || kind == "error" || event["success"] == false;
        let status = if failed { Status::Error } else { Status::Ok };
        let named = event["tool_call_metadata"]["tool_call_id"].as_str();
        let caused = event["cause"].as_u64();
        let caused = caused.and_then(|cause| self.calls.remove(&cause));
        // Without ids, what is observed answers what was done last.
        let last = event["id"].is_null().then(String::new);
        match caused.or(named.map(str::to_owned)).or(last) {
            Some(id) if !id.is_empty() || mem::take(&mut self.open) => {
                pen.answered(&id, status, content);
            }
            // What answers nothing was sent as a message.
            Some(_) | None => pen.user(Speaker::Runtime, content, Vec::new()),
        }
    }

    /// Events were left out from here on, and a summary took their place.
    fn condensed(&self, pen: &mut Pen, args: &Value) {
        let listed = args["forgotten_event_ids"].as_array();
        let ids: HashSet<u64> = listed
            .into_iter()
            .flatten()
            .filter_map(Value::as_u64)
            .collect();
        let ends = ["forgotten_events_start_id", "forgotten_events_end_id"];
        let range = ends.map(|end| args[end].as_u64());
        let is_forgotten = |id: &u64| match range {
            [Some(first), Some(last)] => (first..=last).contains(id),
            _ => ids.contains(id),
        };
        let last = self.marks.iter().rposition(|(id, _)| is_forgotten(id));
        let keeps = last.and_then(|last| self.marks.get(last + 1));
        forgotten(pen, string(&args["summary"]), keeps.map(|(_, mark)| *mark));
    }
}

/// Tells that what stands before a mark was forgotten, for a summary or for nothing.
pub(super) fn forgotten(pen: &mut Pen, summary: &str, keeps: Option<Mark>) {
    if summary.is_empty() {
        pen.note("earlier events were left out from here on, without a summary");
        return;
    }
    pen.compacted(Compaction {
        text: summary.to_owned(),
        origin: Origin::Auto,
        reason: "condensation".to_owned(),
        keeps,
        again: Vec::new(),
    });
}

/// Tells what was looked up for the model.
fn recalled(pen: &mut Pen, extras: &Value) {
    let named = [
        "repo_instructions",
        "additional_agent_instructions",
        "conversation_instructions",
    ];
    let named = named.into_iter().map(|name| string(&extras[name]));
    let known = extras["microagent_knowledge"].as_array();
    let known = known
        .into_iter()
        .flatten()
        .map(|one| string(&one["content"]));
    let texts: Vec<&str> = named.chain(known).filter(|text| !text.is_empty()).collect();
    pen.user(Speaker::Runtime, texts.join("\n\n"), Vec::new());
}

#[cfg(test)]
mod tests {
    use crate::import::Format;
    use crate::import::told::{survives, told};

    #[test]
    fn a_response_is_told_once_and_results_follow_their_cause() {
        let response = r#"{"id":"gen-1","choices":[{"finish_reason":"stop","message":{"content":"Both.","tool_calls":[
            {"id":"t1","function":{"name":"execute_bash","arguments":"{\"command\": \"ls\"}"}},
            {"id":"t2","function":{"name":"think","arguments":"{}"}}]}}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#;
        let second = r#"{"id":"gen-2","choices":[{"message":{"content":null,"tool_calls":[
            {"id":"t1","function":{"name":"finish","arguments":"{}"}}]}}]}"#;
        let events = [
            r#"{"id":0,"source":"agent","action":"system","timestamp":"2025-04-30T16:32:54.707474","args":{"content":"You act.","openhands_version":"0.35.0","tools":[{"type":"function","function":{"name":"think","description":"Thinks.","parameters":{"type":"object"}}}]}}"#.to_owned(),
            r#"{"id":1,"source":"user","action":"message","args":{"content":"Fix it."}}"#.to_owned(),
            r#"{"id":2,"source":"user","action":"recall","args":{"query":"Fix it."}}"#.to_owned(),
            r#"{"id":3,"source":"environment","observation":"recall","cause":2,"content":"Added","extras":{"repo_instructions":"Be kind.","microagent_knowledge":[{"name":"git","content":"Push."}]}}"#.to_owned(),
            format!(r#"{{"id":4,"source":"agent","action":"run","tool_call_metadata":{{"tool_call_id":"t1","model_response":{response}}},"args":{{"thought":"Both."}}}}"#),
            format!(r#"{{"id":5,"source":"agent","action":"think","tool_call_metadata":{{"tool_call_id":"t2","model_response":{response}}},"args":{{}}}}"#),
            r#"{"id":6,"source":"agent","observation":"think","cause":5,"content":"Logged."}"#.to_owned(),
            r#"{"id":7,"source":"agent","observation":"run","cause":4,"content":"x","extras":{"metadata":{"exit_code":1,"prefix":"[p]","suffix":"[s]","working_dir":"/w"}}}"#.to_owned(),
            r#"{"id":8,"source":"agent","observation":"error","content":"Parameter!"}"#.to_owned(),
            r#"{"id":9,"source":"agent","action":"condensation","args":{"forgotten_events_start_id":2,"forgotten_events_end_id":5,"summary":"It began."}}"#.to_owned(),
            format!(r#"{{"id":10,"source":"agent","action":"finish","tool_call_metadata":{{"tool_call_id":"t1","model_response":{second}}}}}"#),
        ];
        let recording = format!(
            "{{\"instance_id\":\"i\",\"metadata\":{{\"llm_config\":{{\"model\":\"m\"}}}},\"error\":\"stuck\",\"metrics\":{{\"accumulated_cost\":0.5}},\"history\":[{}]}}\n{{\"torn",
            events.join(",").replace('\n', "")
        );
        survives("output.jsonl", Format::OpenHands, &recording);
        insta::assert_snapshot!(told("output.jsonl", &recording), @r#"
        run openhands 0.35.0 in "/w" session "i" skipped "1"
        setup m "You act." think={"type":"object"}
        Task "Fix it."
        Runtime "Be kind.\n\nPush."
        Complete "Both." t1:execute_bash{"command": "ls"} t2:think{} (9 - - 2 -)
          result 6.1 error "[p]x[s]"
          result 6.2 ok "Logged."
        Runtime "Parameter!"
        Auto e3–e8 "It began."
        Complete "" t1:finish{}
          result 12.1 interrupted "interrupted, effect unknown"
        note "the agent counted a cost of 0.5 USD"
        note "the run failed: stuck"
        "#);
    }

    #[test]
    fn the_earliest_runs_have_neither_ids_nor_sources() {
        let recording = concat!(
            r#"{"instance_id":"i","instruction":"Fix it.","metadata":{},"history":[[{"action":"run","args":{"command":"ls","thought":"Look."}},{"observation":"run","content":"a","extras":{"exit_code":2}}],[{"action":"null","args":{}},{"observation":"null","content":""}]]}"#,
            "\n",
            r#"{"instance_id":"j","instruction":"Fix that.","metadata":{},"history":[{"action":"message","content":"Fix that."},{"action":"run_ipython","code":"1","thought":""},{"observation":"run_ipython","content":"1"},{"observation":"run","content":"more"},{"action":"message","content":"It is 1."},{"action":"message","content":"Go on."},{"action":"finish","thought":"Bye."}]}"#,
        );
        survives("output.jsonl", Format::OpenHands, recording);
        insta::assert_snapshot!(told("output.jsonl", recording), @r#"
        run openhands session "i"
        setup unknown ""
        Task "Fix it."
        Complete "Look." -:run{"command":"ls"}
          result 5.1 error "a"
        run openhands session "j"
        setup unknown ""
        Task "Fix that."
        Complete "" -:run_ipython{"code":"1"}
          result 5.1 ok "1"
        Runtime "more"
        Complete "It is 1."
        FollowUp "Go on."
        Complete "Bye." -:finish{}
          result 12.1 interrupted "interrupted, effect unknown"
        "#);
    }
}
