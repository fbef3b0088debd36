//! The steps of a run as its model reads it at the end.

use crate::exchange::Message;
use crate::export::atif::{Answer, Observation, Source, Step, call, instructions};
use crate::export::reasoning;
use crate::view::View;

/// The system text and every message, results beside the calls that they answer.
pub(super) fn steps(view: &View) -> Vec<Step<'_>> {
    let setup = view.setup();
    let told = setup.filter(|setup| !setup.wire.instructions.is_empty());
    let mut steps: Vec<Step<'_>> = told.map(instructions).into_iter().collect();
    for message in view.messages() {
        match message {
            Message::User { text } => steps.push(Step {
                source: Source::User,
                message: text,
                ..Step::default()
            }),
            Message::Assistant {
                text,
                reasoning: blocks,
                calls,
                extra: _,
            } => steps.push(Step {
                source: Source::Agent,
                message: text,
                reasoning_content: reasoning(&blocks),
                tool_calls: calls
                    .into_iter()
                    .map(|made| call(made.id.to_string(), made.name, &made.arguments))
                    .collect(),
                ..Step::default()
            }),
            Message::Tool { call: id, text } => {
                let answer = Answer {
                    source_call_id: id.to_string(),
                    content: text,
                    extra: None,
                };
                if let Some(step) = steps.last_mut() {
                    let none = Observation {
                        results: Vec::new(),
                    };
                    step.observation.get_or_insert(none).results.push(answer);
                }
            }
        }
    }
    steps
}
