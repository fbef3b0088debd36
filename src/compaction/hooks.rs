//! Hooks: commands of a person's own that are asked before a pass, and told after it.
//!
//! The command before a pass may forbid it, or name texts that its summary must keep. It is asked once
//! a pass, before its first request or overlay, and what it said stands in a note, so that whatever
//! follows is decided by entries alone. A veto holds until the next round's request, unless that
//! would not fit. Micro-compaction asks nobody: it only puts away what a call brings back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compaction::notice::Laid;
use crate::compaction::{Draft, Plan, gather, refused_as_too_long};
use crate::id::{CallId, EntryId, RunId, Span};
use crate::overlay::{Layer, Origin};
use crate::transcript::{Entry, Event, Hook, Note, Purpose, Run};
use crate::view::View;
use crate::words;

/// The longest reason that is recorded, in characters.
const REASON_CHARS: usize = 500;

/// What the command before a pass reads: one JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Question {
    /// When it is asked.
    pub event: Before,
    /// The run.
    pub run: RunId,
    /// Who wants the pass.
    pub origin: Origin,
    /// The entries that it changes, from the first to the last.
    pub span: Span,
    /// The first and the last round of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<[u32; 2]>,
    /// The estimate of the next request without it, in tokens.
    pub tokens: u64,
    /// The tokens above which the context is compacted.
    pub trigger: u64,
    /// What the summary is asked to preserve already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// What is done: `summarize`, or the stages that need no model.
    pub strategies: Vec<String>,
}

/// The word in `event` of what is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Before {
    /// Before a pass.
    Before,
}

/// What the command after a pass reads: one JSON object.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Told<'a> {
    /// When it is told.
    pub event: After,
    /// The run.
    pub run: RunId,
    /// The figures of the pass, as programs are told them.
    #[serde(flatten)]
    pub laid: &'a Laid,
    /// The entries of its overlays, as they stand in the transcript.
    pub entries: Vec<&'a Entry>,
}

/// The word in `event` of what is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// After a pass.
    After,
}

impl<'a> Told<'a> {
    /// What is told of a pass; `None` before there is a run.
    pub fn of(view: &'a View, laid: &'a Laid) -> Option<Self> {
        let entry = |id: &EntryId| view.transcript().get(*id).map(AsRef::as_ref);
        Some(Self {
            event: After::After,
            run: run(view)?.run,
            laid,
            entries: laid.overlays.iter().filter_map(entry).collect(),
        })
    }
}

/// What the command before a pass may print: nothing, or one JSON object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Answer {
    /// There is to be no pass now.
    pub veto: bool,
    /// Why, for people, and for the model if it asked for the pass.
    pub reason: Option<String>,
    /// Texts that the summary must keep, word for word.
    pub keep: Vec<String>,
}

impl Question {
    /// What is asked before these drafts are laid or this request is made; `None` before there is
    /// a run.
    pub fn new(view: &View, origin: Origin, span: Span, strategies: Vec<String>) -> Option<Self> {
        Some(Self {
            event: Before::Before,
            run: run(view)?.run,
            origin,
            span,
            rounds: view.round_numbers(span).map(<[u32; 2]>::from),
            tokens: view.estimate().tokens,
            trigger: view.sizes()?.trigger,
            focus: None,
            strategies,
        })
    }
}

/// What is asked before the loop carries out a plan; `None` if nobody is to be asked, was asked
/// already, or the pass has begun.
pub fn question(view: &View, plan: &Plan) -> Option<Question> {
    view.policy()?.compaction.hooks.before.as_ref()?;
    if view.ledger().hook.is_some() || gather::active(view).is_some() {
        return None;
    }
    match plan {
        Plan::Ask(purpose) => {
            let (span, focus) = match purpose {
                Purpose::Summary(ask) => (ask.whole.unwrap_or(ask.span), ask.focus.clone()),
                Purpose::Combine(ask) => (ask.whole.unwrap_or(ask.span), ask.focus.clone()),
                Purpose::Round | Purpose::Repair { .. } => return None,
            };
            let strategies = vec!["summarize".to_owned()];
            let question = Question::new(view, purpose.origin(), span, strategies)?;
            Some(Question { focus, ..question })
        }
        Plan::Lay(pass) if pass.origin != Origin::Micro => {
            let rules = pass.drafts.iter().map(|draft| draft.rule.to_owned());
            Question::new(
                view,
                pass.origin,
                touched(view, &pass.drafts)?,
                rules.collect(),
            )
        }
        Plan::Lay(_) | Plan::Failed { .. } | Plan::Stop => None,
    }
}

/// The rounds that drafts change something in, from the first to the last.
pub fn touched(view: &View, drafts: &[Draft]) -> Option<Span> {
    let round = |response: EntryId| view.rounds().of_response(response)?.span();
    let calls = |calls: &[CallId]| -> Vec<Span> {
        let rounds = calls.iter().filter_map(|call| round(call.response));
        rounds.collect()
    };
    let spans = drafts.iter().flat_map(|draft| match &draft.layer {
        Layer::Stub(stub) => [calls(&stub.results), calls(&stub.arguments)].concat(),
        Layer::Hide(hide) => {
            let reasoning = hide.reasoning.iter().filter_map(|entry| round(*entry));
            let attachments = hide.attachments.iter();
            let attachments = attachments.map(|(entry, _)| Span::new(*entry, *entry));
            let spans = reasoning.chain(attachments).chain(hide.rounds.clone());
            spans.chain(calls(&hide.calls)).collect()
        }
        Layer::Summary(summary) => vec![summary.span],
        Layer::Show(show) => calls(&show.calls),
    });
    spans.reduce(Span::union)
}

/// What the command's output means; else what is wrong with it.
pub fn answer(view: &View, output: &str) -> Result<Answer, String> {
    if output.trim().is_empty() {
        return Ok(Answer::default());
    }
    let mut answer: Answer = serde_json::from_str(output).map_err(|error| {
        format!(
            "printed what is no answer: {error}; it prints nothing, or one JSON object such as \
             {{\"veto\": true, \"reason\": \"…\"}} or {{\"keep\": [\"…\"]}}"
        )
    })?;
    answer.keep.retain(|text| !text.trim().is_empty());
    if let Some(reason) = &mut answer.reason {
        *reason = reason.trim().chars().take(REASON_CHARS).collect();
    }
    let tokens = view.text_tokens(&answer.keep.join("\n"));
    let most = view.sizes().map_or(0, |sizes| sizes.summary / 2);
    if tokens > most {
        return Err(format!(
            "names {} tokens to keep, and a summary has room for {}",
            words::grouped(tokens),
            words::grouped(most)
        ));
    }
    Ok(answer)
}

/// What the command said of the pass that is due.
fn said(view: &View) -> Option<&Hook> {
    let entry = view.transcript().get(view.ledger().hook?)?;
    if let Event::Note(Note::Hook(hook)) = &entry.event {
        Some(hook)
    } else {
        None
    }
}

/// The texts that the summary which is due must keep.
pub fn keep(view: &View) -> Vec<String> {
    said(view).map(|hook| hook.keep.clone()).unwrap_or_default()
}

/// Why there is to be no pass before the next round; `None` if nobody forbade it, or the next
/// request would not fit without it.
pub fn vetoed(view: &View) -> Option<&str> {
    let hook = said(view).filter(|hook| hook.veto)?;
    overruled(view).is_none().then_some(hook.text.as_str())
}

/// Why a veto does not count now; `None` if it does.
pub fn overruled(view: &View) -> Option<String> {
    if refused_as_too_long(view) {
        return Some("the provider refused the request as too long".to_owned());
    }
    let (sizes, main) = (view.sizes()?, &view.wire()?.models.main);
    let tokens = view.estimate().tokens;
    // Of an unknown window nobody knows what fits, until the provider refuses.
    (main.window.is_some() && tokens > sizes.fits).then(|| {
        format!(
            "the next request takes {} tokens, and {} fit",
            words::grouped(tokens),
            words::grouped(sizes.fits)
        )
    })
}

/// The first entry of the run.
fn run(view: &View) -> Option<&Run> {
    if let Event::Run(run) = &view.transcript().get(EntryId::FIRST)?.event {
        Some(run)
    } else {
        None
    }
}
