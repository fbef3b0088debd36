//! The Agent Trajectory Interchange Format, version 1.7: one JSON object a run.
//!
//! What the format has no field for stands in `extra.undertext`: the entries that steps come from, so
//! that a reader finds its way back, and what [`import`](crate::import) needs to lay the same overlays
//! again. Of what the runtime laid over a run, summaries are system steps as the format's section on
//! context management says; other overlays are system steps that say in words what they cover. The
//! settings, and replies that became summaries, stand beside the step that comes next. Steps of a compacted trajectory are the messages that the model reads at the end.

mod raw;
mod compacted;

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value, json};

use crate::exchange::{ToolSpec, Usage};
use crate::setup::Setup;
use crate::transcript::{Event, Reason, Run};
use crate::view::View;
use raw::Told;

/// The version that is written.
pub const VERSION: &str = "ATIF-v1.7";

/// A run as a trajectory.
#[derive(Debug, Serialize)]
pub struct Trajectory<'a> {
    schema_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(rename = "trajectory_id", skip_serializing_if = "Option::is_none")]
    document: Option<String>,
    agent: Agent<'a>,
    steps: Vec<Step<'a>>,
    final_metrics: FinalMetrics,
    extra: Value,
}

#[derive(Debug, Serialize)]
struct Agent<'a> {
    name: &'a str,
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_definitions: Vec<Tool<'a>>,
}

#[derive(Debug, Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

/// One step. Those of the agent alone have calls, metrics and a model.
#[derive(Debug, Default, Serialize)]
struct Step<'a> {
    #[serde(rename = "step_id")]
    number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    source: Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_name: Option<&'a str>,
    message: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observation: Option<Observation<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Metrics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    llm_call_count: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    #[default]
    System,
    User,
    Agent,
}

#[derive(Debug, Serialize)]
struct Call<'a> {
    tool_call_id: String,
    function_name: Cow<'a, str>,
    arguments: Cow<'a, RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Value>,
}

#[derive(Debug, Serialize)]
struct Observation<'a> {
    results: Vec<Answer<'a>>,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    source_call_id: String,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Value>,
}

/// What one reply used.
#[derive(Debug, Default, Serialize)]
struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Value>,
}

/// What all steps used.
#[derive(Debug, Default, Serialize)]
struct FinalMetrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    total_prompt_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_cached_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_cost_usd: Option<Number>,
    total_steps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Value>,
}

impl<'a> Trajectory<'a> {
    /// The run as it was, with every overlay in its place.
    pub fn raw(view: &'a View) -> Self {
        let Told { steps, sums, aside } = raw::steps(view);
        Self::of(view, "raw", steps, sums.metrics()).beside(aside)
    }

    /// The run as its model reads it at the end.
    pub fn compacted(view: &'a View) -> Self {
        Self::of(
            view,
            "compacted",
            compacted::steps(view),
            FinalMetrics::default(),
        )
    }

    /// The same, which says this as well of the run as a whole.
    fn beside(mut self, aside: Map<String, Value>) -> Self {
        if let Value::Object(fields) = &mut self.extra["undertext"] {
            fields.extend(aside);
        }
        self
    }

    fn of(view: &'a View, shown: &str, mut steps: Vec<Step<'a>>, sums: FinalMetrics) -> Self {
        for (number, step) in (1..).zip(&mut steps) {
            step.number = number;
        }
        let run = run(view);
        let id = run.map(|run| run.run.to_string());
        let generator = run.map_or("undertext", |run| run.generator.as_str());
        let (name, version) = generator.rsplit_once(' ').unwrap_or((generator, "unknown"));
        let setup = view.setup();
        let tools = setup.map_or(&[][..], |setup| &setup.wire.tools);
        let ended = view.ledger().ended.map(Reason::word);
        Self {
            schema_version: VERSION,
            session_id: id.clone(),
            document: id,
            agent: Agent {
                name,
                version,
                model_name: setup.map(|setup| setup.wire.models.main.name.as_str()),
                tool_definitions: tools.iter().map(tool).collect(),
            },
            final_metrics: FinalMetrics {
                total_steps: steps.len() as u64,
                ..sums
            },
            steps,
            extra: json!({"undertext": beside([
                ("view", Some(shown)),
                ("workspace", run.map(|run| run.workspace.as_str())),
                ("name", run.and_then(|run| run.name.as_deref())),
                ("ended", ended),
            ])}),
        }
    }
}

fn run(view: &View) -> Option<&Run> {
    if let Event::Run(run) = &view.transcript().entries().first()?.event {
        Some(run)
    } else {
        None
    }
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    Tool {
        r#type: "function",
        function: Function {
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.schema,
        },
    }
}

/// What the system text says, as a step of its own.
fn instructions(setup: &Setup) -> Step<'_> {
    Step {
        message: Cow::Borrowed(&setup.wire.instructions),
        ..Step::default()
    }
}

/// A call whose arguments are the text that was received if that is an object that can be read. Else
/// they are none. What a reader would write in other characters stands beside them, as it was received.
fn call<'a>(id: String, name: Cow<'a, str>, arguments: &Cow<'a, str>) -> Call<'a> {
    let read = match arguments {
        Cow::Borrowed(text) => serde_json::from_str(text).ok().map(Cow::Borrowed),
        Cow::Owned(text) => RawValue::from_string(text.clone()).ok().map(Cow::Owned),
    };
    // A number that is out of range would keep others from reading the whole trajectory.
    let meant = serde_json::from_str::<Map<String, Value>>(arguments).ok();
    let object: Option<Cow<'_, RawValue>> = read.filter(|_| meant.is_some());
    let is_exact = meant
        .and_then(|meant| serde_json::to_string(&meant).ok())
        .is_some_and(|text| text == **arguments);
    Call {
        tool_call_id: id,
        function_name: name,
        arguments: object.unwrap_or_else(|| Cow::Owned(empty())),
        extra: (!is_exact).then(|| json!({"undertext": {"arguments": arguments}})),
    }
}

fn empty() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// What a reply used, as the provider counted it; `None` if it did not.
fn metrics(usage: Option<Usage>, cost: Option<u64>) -> Option<Metrics> {
    let usage = usage?;
    let more = beside([
        ("reasoning_tokens", usage.reasoning),
        ("cache_write_tokens", usage.cache_write),
    ]);
    Some(Metrics {
        prompt_tokens: usage.input,
        completion_tokens: usage.output,
        cached_tokens: usage.cached,
        cost_usd: cost.and_then(dollars),
        extra: (!more.is_empty()).then(|| more.into()),
    })
}

/// What there is of these fields.
fn beside<V: Into<Value>, const N: usize>(fields: [(&str, Option<V>); N]) -> Map<String, Value> {
    let fields = fields.into_iter();
    fields
        .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
        .collect()
}

/// Micro-dollars as dollars, exactly.
fn dollars(usd_micro: u64) -> Option<Number> {
    let text = format!("{}.{:06}", usd_micro / 1_000_000, usd_micro % 1_000_000);
    text.parse().ok()
}
