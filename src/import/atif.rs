//! The Agent Trajectory Interchange Format: steps, whose results stand beside their calls.
//!
//! Producers differ in what they take a step of the system for: its prompt, or something that its own
//! program did. Before anyone has spoken it is the system text, unless something was observed in it.

use std::fmt::Write as _;
use std::iter;

use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::exchange::{Ending, Facts, Reasoning, Status, Usage};
use crate::id::EntryId;
use crate::import::Unread;
use crate::import::fields;
use crate::import::lines::{string, take_list, take_text, text};
use crate::import::ours;
use crate::import::pen::{Compaction, Known, Mark, Pen};
use crate::import::source::Source;
use crate::overlay::Origin;
use crate::transcript::{Purpose, Speaker};

/// How deep trajectories of sub-agents are followed.
const DEPTH: u32 = 8;

/// The run of a trajectory, and those of the sub-agents that it holds.
pub(super) fn read(source: &mut Source) -> Result<Vec<Pen>, Unread> {
    let run = fields::whole(source)?;
    let mut pens = Vec::new();
    trajectory(run, &mut pens, DEPTH);
    Ok(pens)
}

fn trajectory(mut run: Value, pens: &mut Vec<Pen>, depth: u32) {
    let mut pen = Pen::default();
    let mut agent = fields::take(&mut run, "agent");
    let ids = [&run["trajectory_id"], &run["session_id"]];
    let id = ids.into_iter().find_map(Value::as_str).unwrap_or_default();
    let id = id.to_owned();
    let (name, version) = (string(&agent["name"]), string(&agent["version"]));
    let mut extra = fields::take(&mut run, "extra");
    let mut ours = fields::take(&mut extra, "undertext");
    let workspace = string(&ours["workspace"]);
    pen.run(workspace, format!("{name} {version}").trim(), &id);
    pen.model(model(&agent), None);
    fields::tools(&mut pen, &take_list(&mut agent, "tool_definitions"));
    let mut told = Told {
        is_ours: ours.is_object(),
        model: model(&agent).to_owned(),
        ..Told::default()
    };
    for (number, step) in take_list(&mut run, "steps").into_iter().enumerate() {
        told.step(&mut pen, &number.to_string(), step);
    }
    // What was said behind the last step.
    told.is_set |= ours::aside(&mut pen, &mut ours);
    if !told.is_set {
        fields::cost(&mut pen, &run["final_metrics"]["total_cost_usd"]);
    }
    for beside in ["notes", "continued_trajectory_ref"] {
        let said = fields::take(&mut run, beside);
        if !said.is_null() {
            pen.note(format!("{beside}: {}", text(said)));
        }
    }
    pens.push(pen);
    if depth > 0 {
        for inner in take_list(&mut run, "subagent_trajectories") {
            trajectory(inner, pens, depth - 1);
        }
    }
}

/// The name of a model, which has two names.
fn model(value: &Value) -> &str {
    let names = [&value["model_name"], &value["model"]];
    names
        .into_iter()
        .find_map(Value::as_str)
        .unwrap_or_default()
}

/// What was told so far.
#[derive(Default)]
struct Told {
    /// Whether this program wrote the trajectory, and so says more of each step.
    is_ours: bool,
    /// Whether it said the settings too.
    is_set: bool,
    /// The model of steps that name none.
    model: String,
    /// Whether anything has happened.
    begun: bool,
    /// Where steps stand, by the entries that they come from.
    marks: Vec<(EntryId, Mark)>,
}

impl Told {
    fn step(&mut self, pen: &mut Pen, key: &str, mut step: Value) {
        let at = fields::moment(&step["timestamp"]);
        let message = text(fields::take(&mut step, "message"));
        let results = results(&mut step);
        let mut extra = fields::take(&mut step, "extra");
        let mut ours = fields::take(&mut extra, "undertext");
        self.is_set |= self.is_ours && ours::aside(pen, &mut ours);
        let entry = EntryId::deserialize(&ours["entry"]).ok();
        pen.at(at);
        pen.entry(entry.filter(|_| self.is_ours));
        self.marks.extend(entry.map(|entry| (entry, pen.mark())));
        if self.is_ours
            && let Some(change) = ours::change(&message, &ours)
        {
            return pen.changed(change);
        }
        let mut calls = Vec::new();
        match string(&step["source"]) {
            "agent" => {
                if !self.is_set {
                    let named = Some(model(&step)).filter(|name| !name.is_empty());
                    pen.model(named.unwrap_or(&self.model), None);
                }
                if self.is_ours {
                    pen.responded(key, Purpose::deserialize(&ours["purpose"]).ok());
                }
                calls = agent(pen, key, &message, step, &ours);
            }
            "user" => {
                let (message, handed_in) = ours::handed_in(message, &ours);
                match string(&ours["origin"]) {
                    "runtime" => pen.user(Speaker::Runtime, message, handed_in),
                    "hook" => pen.user(Speaker::Hook, message, handed_in),
                    _ => pen.typed(message, handed_in),
                }
            }
            _ if extra["context_management"].is_object() => {
                return self.managed(pen, message, results, &extra, &ours);
            }
            _ if ours::is_change(&ours) => pen.note(message),
            _ if self.is_ours => pen.instructed(message),
            _ if self.begun || !results.is_empty() => {
                self.begun = true;
                pen.user(Speaker::Runtime, message, Vec::new());
            }
            _ => return pen.instructions(&message),
        }
        self.begun = true;
        for result in results {
            answer(pen, result, &calls);
        }
    }

    /// The context was changed: where it was replaced, what was observed stands for it, or what the
    /// step says.
    fn managed(
        &self,
        pen: &mut Pen,
        message: String,
        results: Vec<Value>,
        extra: &Value,
        ours: &Value,
    ) {
        let managed = &extra["context_management"];
        let observed = results.into_iter();
        let observed = observed.map(|mut result| text(fields::take(&mut result, "content")));
        let observed: Vec<String> = observed.filter(|text| !text.is_empty()).collect();
        let is_replaced = matches!(string(&managed["boundary"]), "" | "replace");
        if managed["type"] != "compaction" || !is_replaced {
            let said = observed.iter().map(String::as_str);
            let said: Vec<&str> = iter::once(message.as_str()).chain(said).collect();
            pen.note(format!("{}: {}", changed(managed), said.join("\n")));
            return;
        }
        let text = if observed.is_empty() {
            message
        } else {
            observed.join("\n")
        };
        let origin = Origin::deserialize(&ours["origin"]).unwrap_or(Origin::Auto);
        let span = ours["span"][1].as_u64();
        let keeps = span.and_then(|last| self.marks.iter().find(|(entry, _)| entry.0 > last));
        pen.compacted(Compaction {
            text,
            origin,
            reason: changed(managed),
            keeps: keeps.map(|(_, mark)| *mark),
            again: Vec::new(),
        });
    }
}

/// What was done with the context, in words: the fields that the format names, and what else is said
/// in a word or a number.
fn changed(managed: &Value) -> String {
    let kind = managed["type"].as_str().unwrap_or("a change");
    let mut words = format!("{kind} of the context, as recorded");
    let fields = managed.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| *name != "type") {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => continue,
        };
        let name = name.replace('_', " ");
        write!(words, "; {name} {value}").ok();
    }
    words
}

/// A response; returns the ids of its calls.
fn agent(pen: &mut Pen, key: &str, message: &str, mut step: Value, ours: &Value) -> Vec<String> {
    match Vec::<Reasoning>::deserialize(&ours["reasoning"]) {
        Ok(blocks) => {
            for block in blocks {
                pen.thought(Some(key), block);
            }
        }
        Err(_) => pen.mused(Some(key), take_text(&mut step, "reasoning_content")),
    }
    pen.said(Some(key), message);
    let mut ids = Vec::new();
    for mut call in take_list(&mut step, "tool_calls") {
        let name = take_text(&mut call, "function_name");
        // What is no object stands beside, as it was received.
        let beside = call["extra"]["undertext"]["arguments"].as_str();
        let beside = beside.map(str::to_owned);
        let arguments = fields::arguments(fields::take(&mut call, "arguments"));
        let id = take_text(&mut call, "tool_call_id");
        pen.called(Some(key), &id, &name, beside.unwrap_or(arguments));
        ids.push(id);
    }
    if let Some(usage) = counted(&step["metrics"]) {
        pen.usage(Some(key), usage);
    }
    let ending = match string(&ours["ending"]) {
        "cut" => Some(Ending::Cut),
        "filtered" => Some(Ending::Filtered),
        "refused" => Some(Ending::Refused),
        _ => None,
    };
    if let Some(ending) = ending {
        pen.ending(Some(key), ending, None);
    }
    ids
}

/// What was observed in a step.
fn results(step: &mut Value) -> Vec<Value> {
    let mut observed = fields::take(step, "observation");
    if let Value::Array(results) = fields::take(&mut observed, "results") {
        results
    } else if observed.is_object() {
        vec![observed]
    } else if let Value::Array(results) = observed {
        results
    } else if observed.is_null() {
        Vec::new()
    } else {
        vec![json!({ "content": observed })]
    }
}

/// A result: of the call that it names, or of the step's only one; else it was told to the model as
/// it is.
fn answer(pen: &mut Pen, mut result: Value, calls: &[String]) {
    let inner = fields::take(&mut result, "subagent_trajectory_ref");
    if !inner.is_null() {
        pen.note(format!("the run of a sub-agent: {inner}"));
    }
    let extra = fields::take(&mut result, "extra");
    let ours = &extra["undertext"];
    let failed = [&result["is_error"], &extra["is_error"]];
    let status = match string(&ours["status"]) {
        "denied" => Status::Denied,
        "timeout" => Status::Timeout,
        "interrupted" => Status::Interrupted,
        "cancelled" => Status::Cancelled,
        "error" => Status::Error,
        _ if failed.into_iter().any(|failed| *failed == true) => Status::Error,
        _ => Status::Ok,
    };
    let known = Known {
        entry: EntryId::deserialize(&ours["entry"]).ok(),
        facts: Facts::deserialize(&ours["facts"]).unwrap_or_default(),
        whole_bytes: ours["whole_bytes"].as_u64(),
    };
    let content = text(fields::take(&mut result, "content"));
    match (result["source_call_id"].as_str(), calls) {
        (Some(id), _) => pen.answered_with(id, status, content, known),
        (None, [id]) => pen.answered_with(id, status, content, known),
        (None, _) => pen.user(Speaker::Runtime, content, Vec::new()),
    }
}

/// What was counted; what is read from a cache is part of what is read.
fn counted(metrics: &Value) -> Option<Usage> {
    let extra = &metrics["extra"];
    let written = [
        &extra["cache_write_tokens"],
        &extra["cache_creation_input_tokens"],
    ];
    let found = Usage {
        input: metrics["prompt_tokens"].as_u64(),
        cached: metrics["cached_tokens"].as_u64(),
        cache_write: written.into_iter().find_map(Value::as_u64),
        output: metrics["completion_tokens"].as_u64(),
        reasoning: extra["reasoning_tokens"].as_u64(),
    };
    (found != Usage::default()).then_some(found)
}

#[cfg(test)]
mod tests {
    use crate::import::Format;
    use crate::import::told::{survives, told};

    #[test]
    fn results_find_the_calls_of_their_step() {
        let recording = r#"{
            "schema_version":"ATIF-v1.6","session_id":"s","notes":"by hand",
            "agent":{"name":"a","version":"1.2","model_name":"m","tool_definitions":[
                {"type":"function","function":{"name":"run","description":"Runs.","parameters":{"type":"object"}}}]},
            "final_metrics":{"total_cost_usd":0.75},
            "subagent_trajectories":[{"trajectory_id":"inner","agent":{"name":"b"},"steps":[
                {"step_id":1,"source":"user","message":"Look."},{"step_id":2,"source":"agent","message":"Seen."}]}],
            "steps":[
                {"step_id":1,"source":"system","message":"You act."},
                {"step_id":2,"source":"user","message":[{"type":"text","text":"Fix it."},{"type":"image","source":{"media_type":"image/png","path":"i.png"}}]},
                {"step_id":3,"timestamp":"2025-12-05T07:45:57.657Z","source":"agent","message":"Two.","reasoning_content":"Hm.","model":"n",
                 "tool_calls":[{"tool_call_id":"c1","function_name":"run","arguments":{"cmd":"ls"}},{"tool_call_id":"c2","function_name":"run","arguments":{}}],
                 "observation":{"results":[{"source_call_id":"c2","content":"b","extra":{"is_error":true}},{"source_call_id":"c1","content":{"out":"a"}}]},
                 "metrics":{"prompt_tokens":9,"completion_tokens":3,"cached_tokens":7,"extra":{"reasoning_tokens":1}}},
                {"step_id":4,"source":"agent","message":"","tool_calls":[{"tool_call_id":"c3","function_name":"run","arguments":{}}],
                 "observation":{"results":[{"content":"c","subagent_trajectory_ref":[{"trajectory_id":"inner"}]}]}},
                {"step_id":5,"source":"system","message":"Checked.","observation":{"results":[{"content":{"passed":false}}]}},
                {"step_id":6,"source":"agent","message":"Done."}]}"#;
        survives("a.json", Format::Atif, recording);
        insta::assert_snapshot!(told("a.json", recording), @r#"
        run atif a 1.2 session "s"
        setup m "You act." run={"type":"object"}
        Task "Fix it.\n[image/png]"
        setup n "You act." run={"type":"object"}
        Complete "Two." thought "Hm." c1:run{"cmd":"ls"} c2:run{} (9 7 - 3 1)
          result 6.1 ok "{\"out\":\"a\"}"
          result 6.2 error "b"
        setup m "You act." run={"type":"object"}
        Complete "" c3:run{}
          result 11.1 ok "c"
        note "the run of a sub-agent: [{\"trajectory_id\":\"inner\"}]"
        Runtime "Checked."
        Runtime "{\"passed\":false}"
        Complete "Done."
        note "the agent counted a cost of 0.75 USD"
        note "notes: by hand"
        run atif b session "inner"
        setup unknown ""
        Task "Look."
        Complete "Seen."
        "#);
    }

    #[test]
    fn a_step_of_the_system_is_its_text_until_something_happens() {
        let recording = r#"{"schema_version":"ATIF-v1.4","agent":{},"steps":[
            {"step_id":1,"source":"system","message":"Started."},
            {"step_id":2,"source":"system","message":"Results","observation":{"results":[{"content":"x"}]}},
            {"step_id":3,"source":"system","message":"Chosen."},
            {"step_id":4,"source":"agent","message":"Split."}]}"#;
        survives("a.json", Format::Atif, recording);
        insta::assert_snapshot!(told("a.json", recording), @r#"
        run atif
        setup unknown "Started."
        Runtime "Results"
        Runtime "x"
        Runtime "Chosen."
        Complete "Split."
        "#);
    }

    #[test]
    fn a_replaced_context_is_a_summary_and_what_we_wrote_is_understood() {
        let recording = r#"{"schema_version":"ATIF-v1.7","session_id":"s","agent":{"name":"undertext","version":"0.1.0"},
            "extra":{"undertext":{"workspace":"/w"}},"steps":[
            {"step_id":1,"source":"user","message":"Fix it.","extra":{"undertext":{"entry":3,"origin":"task"}}},
            {"step_id":2,"source":"agent","message":"Half done.","extra":{"undertext":{"entry":5,"ending":"cut"}},
             "tool_calls":[{"tool_call_id":"5.1","function_name":"run","arguments":{},"extra":{"undertext":{"arguments":"{\"cut"}}}],
             "observation":{"results":[{"source_call_id":"5.1","content":"no","extra":{"undertext":{"status":"denied"}}}]},
             "metrics":{"prompt_tokens":9,"extra":{"cache_write_tokens":4}}},
            {"step_id":3,"source":"user","message":"Near the limit.","extra":{"undertext":{"entry":8,"origin":"runtime"}}},
            {"step_id":4,"source":"system","message":"Half was done.","extra":{"context_management":{"type":"compaction","boundary":"replace"},"undertext":{"entry":9,"span":[3,7]}}},
            {"step_id":5,"source":"system","message":"e8: stub","extra":{"undertext":{"entry":10,"overlay":"e10"}}},
            {"step_id":6,"source":"system","message":"You act."},
            {"step_id":7,"source":"agent","message":"Done."},
            {"step_id":8,"source":"system","message":"Summarized","extra":{"context_management":{"type":"compaction","boundary":"replace"}},"observation":{"results":[{"content":"All was done."}]}},
            {"step_id":9,"source":"system","message":"Pruned","extra":{"context_management":{"type":"pruning","boundary":"truncate"}}}
            ]}"#;
        survives("a.json", Format::Atif, recording);
        insta::assert_snapshot!(told("a.json", recording), @r#"
        run atif undertext 0.1.0 in "/w" session "s"
        setup unknown ""
        Task "Fix it."
        Cut "Half done." 5.1:run{"cut (9 - 4 - -)
          result 5.1 denied "no"
        Runtime "Near the limit."
        Auto e3–e6 "Half was done."
        note "e8: stub"
        setup unknown "You act."
        Complete "Done."
        Auto e3–e12 "All was done."
        note "pruning of the context, as recorded; boundary truncate: Pruned"
        "#);
    }
}
