//! `Compact`: the model asks for earlier rounds to be summarized.
//!
//! The call only asks. Whether that pays is judged here, because a model that may compact freely does
//! it too early and again at once; what is granted stands in the result's facts, and is done when the
//! round's calls are.

use futures::future::{BoxFuture, FutureExt as _};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::compaction::summary;
use crate::exchange::{Facts, Grant, ToolSpec};
use crate::tools::{Call, Outcome, Tool, declared, schema};
use crate::view::View;
use crate::words;

/// The tool by which the model asks for a summary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compact;

/// The arguments of `Compact`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What to preserve in the summary (optional)
    #[serde(default)]
    focus: Option<String>,
}

impl Tool for Compact {
    fn spec(&self) -> ToolSpec {
        declared::spec("Compact", schema::of::<Arguments>())
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        let focus = serde_json::from_str::<Arguments>(call.arguments).ok();
        let focus = focus.and_then(|arguments| arguments.focus);
        let focus = focus
            .map(|focus| focus.trim().to_owned())
            .filter(|focus| !focus.is_empty());
        futures::future::ready(answer(call.view, focus)).boxed()
    }
}

fn answer(view: &View, focus: Option<String>) -> Outcome {
    let refused = |text: String| {
        let compact = Some(Grant {
            granted: false,
            span: None,
            focus: None,
        });
        Outcome::ok(text).with_facts(Facts {
            compact,
            ..Facts::default()
        })
    };
    let (Some(policy), Some(sizes)) = (view.policy(), view.sizes()) else {
        return refused(words::COMPACT_NOTHING.to_owned());
    };
    let tool = &policy.compaction.tool;
    let (Some(span), Some(round)) = (summary::span_before_newest(view), view.rounds().last())
    else {
        return refused(words::COMPACT_NOTHING.to_owned());
    };
    let rounds = view.round_numbers(span).unwrap_or((1, 1));
    let used = view.estimate().tokens;
    let from = sizes.part_of_trigger(tool.min_ratio);
    if used < from {
        return refused(words::compact_refused(used, sizes.trigger, from));
    }
    let since = view
        .ledger()
        .summary_round
        .map(|laid| round.number.saturating_sub(laid));
    if let Some(since) = since.filter(|since| *since < tool.cooldown_rounds) {
        return refused(words::compact_too_soon(since, tool.cooldown_rounds));
    }
    let text = words::compact_granted(rounds, view.tokens_between(span), focus.as_deref());
    let compact = Some(Grant {
        granted: true,
        span: Some(span),
        focus,
    });
    Outcome::ok(text).with_facts(Facts {
        compact,
        ..Facts::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that a model reads of it before it calls it: what it is, when it pays, and `focus`.
    #[test]
    fn a_model_reads_when_it_pays_and_what_to_preserve() {
        let ToolSpec {
            description,
            schema,
            ..
        } = Compact.spec();
        insta::assert_snapshot!(format!("{description}\n{}", schema.get()), @r#"
        Asks for the earlier part of this conversation to be replaced by a summary, which frees room. It is made when the calls of this round are done; the newest rounds stay as they are, and Recall still shows everything that was summarized.
        Use it when the conversation has grown long and much of it is no longer needed: before the next phase of the work, when taking up old work again, or to clear your mind when you are stuck. It is not needed otherwise: long conversations are summarized by themselves.
        {"type":"object","properties":{"focus":{"description":"What to preserve in the summary (optional)","type":["string","null"]}},"additionalProperties":false}
        "#);
    }
}
