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
