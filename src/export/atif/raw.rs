//! The steps of a run as it was.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::exchange::{Ending, Response, ToolResult};
use crate::export::atif::{
    Answer, FinalMetrics, Observation, Source, Step, beside, call, dollars, instructions, metrics,
};
use crate::export::{laid, reasoning};
use crate::id::{CallId, EntryId};
use crate::meter;
use crate::overlay::{Layer, Overlay};
use crate::setup::Prices;
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

/// Every step, and what all used.
pub(super) fn steps(view: &View) -> (Vec<Step<'_>>, Sums) {
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
    (walk.steps, walk.sums)
}

struct Walk<'a> {
    view: &'a View,
    results: BTreeMap<CallId, (EntryId, &'a ToolResult)>,
    prices: Option<&'a Prices>,
    instructions: Option<&'a str>,
    /// The model that is asked, and the one that the trajectory names for all.
    model: Option<&'a str>,
    last_model: Option<&'a str>,
    steps: Vec<Step<'a>>,
    sums: Sums,
}

impl<'a> Walk<'a> {
    fn take(&mut self, entry: &'a Entry) {
        let step = match &entry.event {
            Event::Setup(setup) => {
                self.prices = setup.policy.prices.as_ref();
                self.model = Some(setup.wire.models.main.name.as_str());
                let text = setup.wire.instructions.as_str();
                let is_new = self.instructions.replace(text) != Some(text);
                if !is_new || text.is_empty() {
                    return;
                }
                instructions(setup)
            }
            Event::User(user) => said(entry.id, user),
            Event::Response(response) => match self.answered(entry.id, response) {
                Some(step) => step,
                None => return,
            },
            Event::Overlay(overlay) => covered(entry.id, overlay),
            Event::Retract(retract) => {
                let names = retract.overlays.iter().map(|overlay| format!("e{overlay}"));
                let names: Vec<String> = names.collect();
                let (text, origin) = (names.join(" "), retract.origin.word());
                Step {
                    message: Cow::Owned(format!("{text} taken back ({origin})")),
                    extra: Some(ours(
                        &json!({"entry": entry.id, "retract": retract.overlays}),
                    )),
                    ..Step::default()
                }
            }
            Event::Run(_)
            | Event::Request(_)
            | Event::Started(_)
            | Event::Result(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Fault(_)
            | Event::Note(_)
            | Event::End(_)
            | Event::Unknown(_) => return,
        };
        self.steps.push(Step {
            timestamp: Some(entry.at.to_string()),
            ..step
        });
    }

    /// A reply of a round with the results of its calls. One that is a summary is no step: the
    /// overlay says it.
    fn answered(&mut self, id: EntryId, response: &'a Response) -> Option<Step<'a>> {
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
        match purpose {
            Some(Purpose::Summary(_) | Purpose::Combine(_)) => {
                self.sums.summaries.add(response, cost);
                return None;
            }
            Some(Purpose::Round | Purpose::Repair { .. }) | None => {}
        }
        self.sums.steps.add(response, cost);
        let calls = response.calls.iter().enumerate();
        let calls: Vec<_> = calls
            .map(|(index, one)| (CallId::at(id, index), one))
            .collect();
        let results = calls.iter().filter_map(|(call, _)| {
            let (_, result) = self.results.get(call)?;
            let bytes = result.clipped.map(|clipped| clipped.bytes);
            let mut more = json!({"status": result.status.word()});
            if let (Some(bytes), Some(fields)) = (bytes, more.as_object_mut()) {
                fields.insert("whole_bytes".to_owned(), bytes.into());
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
        let mut about = json!({"entry": id});
        if let (Some(ending), Some(fields)) = (ending, about.as_object_mut()) {
            fields.insert("ending".to_owned(), ending.into());
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

fn ours(value: &Value) -> Value {
    json!({ "undertext": value })
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
    Step {
        source: Source::User,
        message,
        extra: Some(ours(&json!({"entry": id, "origin": origin}))),
        ..Step::default()
    }
}

/// A summary as the step that put it in the place of what it covers; another overlay in words.
fn covered(id: EntryId, overlay: &Overlay) -> Step<'_> {
    let mut about = json!({
        "entry": id,
        "origin": overlay.origin,
        "rule": overlay.rule,
        "pass": overlay.pass,
    });
    let (name, covers) = match &overlay.layer {
        Layer::Summary(summary) => ("span", json!(summary.span)),
        layer @ (Layer::Stub(_) | Layer::Hide(_) | Layer::Show(_)) => ("layer", json!(layer)),
    };
    if let Some(fields) = about.as_object_mut() {
        fields.insert(name.to_owned(), covers);
    }
    let Layer::Summary(summary) = &overlay.layer else {
        return Step {
            message: Cow::Owned(laid(id, overlay)),
            extra: Some(ours(&about)),
            ..Step::default()
        };
    };
    let mut management = json!({"type": "compaction", "boundary": "replace"});
    if let Some(fields) = management.as_object_mut()
        && overlay.size.before > 0
    {
        fields.insert("tokens_before".to_owned(), overlay.size.before.into());
        fields.insert("tokens_after".to_owned(), overlay.size.after.into());
    }
    Step {
        message: Cow::Borrowed(&summary.text),
        extra: Some(json!({"context_management": management, "undertext": about})),
        ..Step::default()
    }
}
