//! The steps of a run as it was.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem;

use serde_json::{Map, Value, json};

use crate::exchange::{Ending, Reasoning, Response, ToolResult};
use crate::export::atif::{
    Answer, FinalMetrics, Observation, Source, Step, beside, call, dollars, instructions, metrics,
};
use crate::export::{laid, reasoning};
use crate::id::{CallId, EntryId};
use crate::meter;
use crate::overlay::{Layer, Overlay};
use crate::setup::{Prices, Setup};
use crate::transcript::{Entry, Event, Purpose, Speaker, User};
use crate::view::View;
use crate::words;

/// What was used: by the steps, and by summaries, which are no steps of the agent.
#[derive(Default)]
pub(super) struct Sums {
    steps: Sum,
    summaries: Sum,
}

#[derive(Default)]
struct Sum {
    input: u64,
    cached: u64,
    output: u64,
    cost: Option<u64>,
    replies: u64,
}

impl Sum {
    fn add(&mut self, response: &Response, cost: Option<u64>) {
        let usage = response.usage.unwrap_or_default();
        self.input = self.input.saturating_add(usage.input.unwrap_or(0));
        self.cached = self.cached.saturating_add(usage.cached.unwrap_or(0));
        self.output = self.output.saturating_add(usage.output.unwrap_or(0));
        self.replies += u64::from(response.usage.is_some());
        if let Some(cost) = cost {
            self.cost = Some(self.cost.unwrap_or(0).saturating_add(cost));
        }
    }
}

impl Sums {
    /// As the format has them; what nobody counted is absent.
    pub(super) fn metrics(&self) -> FinalMetrics {
        let Self { steps, summaries } = self;
        let is_counted = steps.replies > 0;
        let counted = |tokens: u64| is_counted.then_some(tokens);
        let summed = beside([
            ("replies", Some(Value::from(summaries.replies))),
            ("prompt_tokens", Some(summaries.input.into())),
            ("cached_tokens", Some(summaries.cached.into())),
            ("completion_tokens", Some(summaries.output.into())),
            (
                "cost_usd",
                summaries.cost.and_then(dollars).map(Value::from),
            ),
        ]);
        FinalMetrics {
            total_prompt_tokens: counted(steps.input),
            total_completion_tokens: counted(steps.output),
            total_cached_tokens: counted(steps.cached),
            total_cost_usd: steps.cost.and_then(dollars),
            total_steps: 0,
            extra: (summaries.replies > 0).then(|| json!({"undertext": {"summaries": summed}})),
        }
    }
}

/// A run as steps.
pub(super) struct Told<'a> {
    pub(super) steps: Vec<Step<'a>>,
    /// What all of them used.
    pub(super) sums: Sums,
    /// What no step says that is there, beside all of them.
    pub(super) aside: Map<String, Value>,
}

/// Every step, and what all used.
pub(super) fn steps(view: &View) -> Told<'_> {
    let entries = view.transcript().entries();
    let mut walk = Walk {
        view,
        results: BTreeMap::new(),
        prices: None,
        instructions: None,
        model: None,
        last_model: view
            .setup()
            .map(|setup| setup.wire.models.main.name.as_str()),
        aside: Map::new(),
        steps: Vec::new(),
        sums: Sums::default(),
    };
    for entry in entries {
        if let Event::Result(result) = &entry.event {
            walk.results
                .entry(result.call)
                .or_insert((entry.id, result));
        }
    }
    for entry in entries {
        walk.take(entry);
    }
    Told {
        steps: walk.steps,
        sums: walk.sums,
        aside: walk.aside,
    }
}

struct Walk<'a> {
    view: &'a View,
    results: BTreeMap<CallId, (EntryId, &'a ToolResult)>,
    prices: Option<&'a Prices>,
    instructions: Option<&'a str>,
    /// The model that is asked, and the one that the trajectory names for all.
    model: Option<&'a str>,
    last_model: Option<&'a str>,
    /// Settings, and replies that are no steps, which the next step says beside its own.
    aside: Map<String, Value>,
    steps: Vec<Step<'a>>,
    sums: Sums,
}

impl<'a> Walk<'a> {
    fn take(&mut self, entry: &'a Entry) {
        let step = match &entry.event {
            Event::Setup(setup) => {
                self.prices = setup.policy.prices.as_ref();
                self.model = Some(setup.wire.models.main.name.as_str());
                self.aside.insert("setup".to_owned(), settings(setup));
                let text = setup.wire.instructions.as_str();
                let is_new = self.instructions.replace(text) != Some(text);
                if !is_new || text.is_empty() {
                    return;
                }
                Step {
                    extra: Some(ours(&json!({"entry": entry.id}))),
                    ..instructions(setup)
                }
            }
            Event::User(user) => said(entry.id, user),
            Event::Response(response) => match self.answered(entry, response) {
                Some(step) => step,
                None => return,
            },
            Event::Overlay(overlay) => covered(entry.id, overlay),
            Event::Retract(retract) => {
                let names = retract.overlays.iter().map(|overlay| format!("e{overlay}"));
                let names: Vec<String> = names.collect();
                let (text, origin) = (names.join(" "), retract.origin.word());
                let about = json!({
                    "entry": entry.id,
                    "origin": retract.origin,
                    "retract": retract.overlays,
                });
                remark(format!("{text} taken back ({origin})"), &about)
            }
            Event::Pin(pin) => remark(
                format!("e{} is kept readable", pin.entry),
                &json!({"entry": entry.id, "pin": pin.entry}),
            ),
            Event::Unpin(pin) => remark(
                format!("e{} need not be kept readable any more", pin.entry),
                &json!({"entry": entry.id, "unpin": pin.entry}),
            ),
            Event::Run(_)
            | Event::Request(_)
            | Event::Started(_)
            | Event::Result(_)
            | Event::Fault(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => return,
        };
        let mut extra = step.extra.unwrap_or_else(|| ours(&json!({})));
        if let Some(Value::Object(fields)) = extra.get_mut("undertext") {
            fields.extend(mem::take(&mut self.aside));
        }
        self.steps.push(Step {
            timestamp: Some(entry.at.to_string()),
            extra: Some(extra),
            ..step
        });
    }

    /// A reply of a round with the results of its calls. One that is a summary is no step: the
    /// overlay says its text, and the next step what it used.
    fn answered(&mut self, entry: &'a Entry, response: &'a Response) -> Option<Step<'a>> {
        let id = entry.id;
        let cost = self.prices.zip(response.usage);
        let cost = cost.map(|(prices, usage)| meter::cost(usage, prices));
        let request = self.view.transcript().get(response.request);
        let purpose = request.and_then(|request| {
            if let Event::Request(request) = &request.event {
                Some(&request.purpose)
            } else {
                None
            }
        });
        let mut about = json!({"entry": id, "request": response.request});
        match purpose {
            Some(purpose @ (Purpose::Summary(_) | Purpose::Combine(_))) => {
                self.sums.summaries.add(response, cost);
                let reply = json!({
                    "entry": id,
                    "at": entry.at,
                    "purpose": purpose,
                    "response": response,
                });
                let replies = self.aside.entry("replies").or_insert_with(|| json!([]));
                if let Value::Array(replies) = replies {
                    replies.push(reply);
                }
                return None;
            }
            Some(purpose @ Purpose::Repair { .. }) => about["purpose"] = json!(purpose),
            Some(Purpose::Round) | None => {}
        }
        self.sums.steps.add(response, cost);
        let calls = response.calls.iter().enumerate();
        let calls: Vec<_> = calls
            .map(|(index, one)| (CallId::at(id, index), one))
            .collect();
        let results = calls.iter().filter_map(|(call, _)| {
            let (entry, result) = self.results.get(call)?;
            let mut more = json!({"entry": entry, "status": result.status.word()});
            if let Some(clipped) = result.clipped {
                more["whole_bytes"] = clipped.bytes.into();
            }
            if !result.facts.is_empty() {
                more["facts"] = json!(result.facts);
            }
            Some(Answer {
                source_call_id: call.to_string(),
                content: Cow::Borrowed(&result.content),
                extra: Some(ours(&more)),
            })
        });
        let results: Vec<Answer<'a>> = results.collect();
        let ending = match response.ending {
            Ending::Complete => None,
            Ending::Cut => Some("cut"),
            Ending::Filtered => Some("filtered"),
            Ending::Refused => Some("refused"),
        };
        if let Some(ending) = ending {
            about["ending"] = ending.into();
        }
        if !is_plain(&response.reasoning) {
            about["reasoning"] = json!(response.reasoning);
        }
        Some(Step {
            source: Source::Agent,
            // A model that is no longer asked at the end is named where it was.
            model_name: response
                .model
                .as_deref()
                .or(self.model.filter(|_| self.model != self.last_model)),
            message: Cow::Borrowed(&response.text),
            reasoning_content: reasoning(&response.reasoning),
            tool_calls: calls
                .iter()
                .map(|(id, made)| {
                    let name = Cow::Borrowed(made.name.as_str());
                    call(id.to_string(), name, &Cow::Borrowed(&made.arguments))
                })
                .collect(),
            observation: (!results.is_empty()).then_some(Observation { results }),
            metrics: metrics(response.usage, cost),
            extra: Some(ours(&about)),
            llm_call_count: Some(1),
            ..Step::default()
        })
    }
}

/// Whether reasoning is no more than the text of a step's reasoning says.
fn is_plain(blocks: &[Reasoning]) -> bool {
    match blocks {
        [] => true,
        [Reasoning::Text { field, .. }] => field == "reasoning_content",
        _ => false,
    }
}

fn ours(value: &Value) -> Value {
    json!({ "undertext": value })
}

/// The settings that requests depend on, besides the system text and the specs of the tools.
fn settings(setup: &Setup) -> Value {
    let tools = setup.wire.tools.iter();
    let tools: Map<String, Value> = tools
        .map(|tool| (tool.name.clone(), json!(tool.meta)))
        .collect();
    let mut about = json!({"models": setup.wire.models, "tools": tools});
    if let Some(prices) = &setup.policy.prices {
        about["prices"] = json!(prices);
    }
    about
}

/// Something that the runtime did, in words.
fn remark(text: String, about: &Value) -> Step<'static> {
    Step {
        message: Cow::Owned(text),
        extra: Some(ours(about)),
        ..Step::default()
    }
}

/// What a person said, or the runtime in their place.
fn said(id: EntryId, user: &User) -> Step<'_> {
    let mut message = Cow::Borrowed(user.text.as_str());
    for attachment in &user.attachments {
        let text = words::attachment(&attachment.name, &attachment.media, &attachment.text);
        let message = message.to_mut();
        if !message.is_empty() {
            message.push_str("\n\n");
        }
        message.push_str(&text);
    }
    let origin = match user.origin {
        Speaker::Task => "task",
        Speaker::FollowUp => "follow_up",
        Speaker::Hook => "hook",
        Speaker::Runtime => "runtime",
    };
    let mut about = json!({"entry": id, "origin": origin});
    if !user.attachments.is_empty() {
        let named = user.attachments.iter();
        let named = named.map(|it| json!({"name": it.name, "media": it.media}));
        about["attachments"] = named.collect();
    }
    Step {
        source: Source::User,
        message,
        extra: Some(ours(&about)),
        ..Step::default()
    }
}

/// A summary as the step that put it in the place of what it covers; another overlay in words.
fn covered(id: EntryId, overlay: &Overlay) -> Step<'_> {
    let mut about = json!(overlay);
    about["entry"] = json!(id);
    let Layer::Summary(summary) = &overlay.layer else {
        return remark(laid(id, overlay), &about);
    };
    about["span"] = json!(summary.span);
    // The message is the text.
    if let Some(layer) = about["layer"].as_object_mut() {
        layer.shift_remove("text");
    }
    let mut management = json!({"type": "compaction", "boundary": "replace"});
    if overlay.size.before > 0 {
        management["tokens_before"] = overlay.size.before.into();
        management["tokens_after"] = overlay.size.after.into();
    }
    Step {
        message: Cow::Borrowed(&summary.text),
        extra: Some(json!({"context_management": management, "undertext": about})),
        ..Step::default()
    }
}
