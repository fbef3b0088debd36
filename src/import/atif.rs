//! The Agent Trajectory Interchange Format: steps, whose results stand beside their calls.
//!
//! Producers differ in what they take a step of the system for: its prompt, or something that its own
//! program did. Before anyone has spoken it is the system text, unless something was observed in it.

use serde_json::{Value, json};

use crate::exchange::{Status, Usage};
use crate::import::Unread;
use crate::import::fields;
use crate::import::lines::{string, take_list, take_text, text};
use crate::import::pen::Pen;
use crate::import::source::Source;
use crate::transcript::Speaker;

/// How deep trajectories of sub-agents are followed.
const DEPTH: u32 = 8;

/// The run of a trajectory, and those of the sub-agents that it holds.
pub(super) fn read(source: &mut Source) -> Result<Vec<Pen>, Unread> {
    let run = fields::json(source)?;
    let mut pens = Vec::new();
    trajectory(run, &mut pens, DEPTH);
    Ok(pens)
}

fn trajectory(mut run: Value, pens: &mut Vec<Pen>, depth: u32) {
    let mut pen = Pen::default();
    let mut agent = fields::take(&mut run, "agent");
    let ids = [&run["trajectory_id"], &run["session_id"]];
    let id = ids.into_iter().find_map(Value::as_str).unwrap_or_default();
    let (name, version) = (string(&agent["name"]), string(&agent["version"]));
    pen.run("", format!("{name} {version}").trim(), id);
    pen.model(model(&agent), None);
    fields::tools(&mut pen, &take_list(&mut agent, "tool_definitions"));

    let mut spoken = false;
    for step in take_list(&mut run, "steps") {
        self::step(&mut pen, step, &mut spoken);
    }
    fields::cost(&mut pen, &run["final_metrics"]["total_cost_usd"]);
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

fn step(pen: &mut Pen, mut step: Value, spoken: &mut bool) {
    pen.at(fields::moment(&step["timestamp"]));
    let key = step["step_id"].to_string();
    let message = text(fields::take(&mut step, "message"));
    let calls = take_list(&mut step, "tool_calls");
    let results = results(&mut step);
    let source = take_text(&mut step, "source");
    match source.as_str() {
        "agent" => {
            pen.model(model(&step), None);
            pen.over();
            pen.mused(Some(&key), take_text(&mut step, "reasoning_content"));
            pen.said(Some(&key), &message);
        }
        "user" => pen.typed(message, Vec::new()),
        _ if *spoken || !results.is_empty() => pen.user(Speaker::Runtime, message, Vec::new()),
        _ => pen.instructions(&message),
    }
    *spoken |= source != "system" || !results.is_empty();
    let mut ids = Vec::new();
    for mut call in calls {
        let name = take_text(&mut call, "function_name");
        let arguments = fields::arguments(fields::take(&mut call, "arguments"));
        let id = take_text(&mut call, "tool_call_id");
        pen.called(Some(&key), &id, &name, arguments);
        ids.push(id);
    }
    if let Some(usage) = counted(&step["metrics"]) {
        pen.usage(Some(&key), usage);
    }
    for result in results {
        answer(pen, result, &ids);
    }
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

/// A result: of the call that it names, or of the only one; else it was told to the model as it is.
fn answer(pen: &mut Pen, mut result: Value, calls: &[String]) {
    let inner = fields::take(&mut result, "subagent_trajectory_ref");
    if !inner.is_null() {
        pen.note(format!("the run of a sub-agent: {inner}"));
    }
    let status = match result["is_error"]
        .as_bool()
        .or(result["extra"]["is_error"].as_bool())
    {
        Some(true) => Status::Error,
        Some(false) | None => Status::Ok,
    };
    let content = text(fields::take(&mut result, "content"));
    match (result["source_call_id"].as_str(), calls) {
        (Some(id), _) => pen.answered(id, status, content),
        (None, [id]) => pen.answered(id, status, content),
        (None, _) => pen.user(Speaker::Runtime, content, Vec::new()),
    }
}

/// What was counted; what is read from a cache is part of what is read.
fn counted(metrics: &Value) -> Option<Usage> {
    let extra = &metrics["extra"];
    let found = Usage {
        input: metrics["prompt_tokens"].as_u64(),
        cached: metrics["cached_tokens"].as_u64(),
        cache_write: extra["cache_creation_input_tokens"].as_u64(),
        output: metrics["completion_tokens"].as_u64(),
        reasoning: extra["reasoning_tokens"].as_u64(),
    };
    (found != Usage::default()).then_some(found)
}

#[cfg(test)]
mod tests {
    use crate::import::told::told;

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
        insta::assert_snapshot!(told("a.json", recording), @r#"
        run atif a 1.2 session "s"
        setup m "You act." run={"type":"object"}
        Task "Fix it.\n[image/png]"
        setup n "You act." run={"type":"object"}
        Complete "Two." thought "Hm." c1:run{"cmd":"ls"} c2:run{} (9 7 - 3 1)
          result 6.1 ok "{\"out\":\"a\"}"
          result 6.2 error "b"
        Complete "" c3:run{}
          result 10.1 ok "c"
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
        insta::assert_snapshot!(told("a.json", recording), @r#"
        run atif
        setup unknown "Started."
        Runtime "Results"
        Runtime "x"
        Runtime "Chosen."
        Complete "Split."
        "#);
    }
}
