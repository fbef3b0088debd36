//! What is told of compaction while a run goes on: planned, laid, failed, with figures.
//!
//! A [`Notice`] is a function of the view and of nothing else, and nothing depends on it: an agent
//! sends it to its listeners, and the command line makes a line of it for people and an object for
//! programs. One is told a pass, not an overlay.

use schemars::JsonSchema;
use serde::Serialize;

use crate::compaction::{Draft, Plan};
use crate::id::{EntryId, Span};
use crate::overlay::{Author, Layer, Origin, Overlay};
use crate::setup::Role;
use crate::transcript::{Event, Purpose, Source};
use crate::view::View;

/// Something that people and programs are told of a compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum Notice {
    /// A model is asked for a summary.
    Planned(Planned),
    /// A pass was laid.
    Laid(Laid),
    /// A summary could not be had; nothing changed.
    Failed(Failed),
}

/// A summary that a model is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Planned {
    /// Who wants it.
    pub origin: Origin,
    /// The name of the model.
    pub model: String,
    /// The entries that it is to stand for.
    pub span: Span,
    /// The first and the last round of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<[u32; 2]>,
    /// Which part of how many this is, from 1; absent: the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<[u32; 2]>,
    /// The number of texts that are to become one; absent: it is made from the entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<usize>,
    /// The number of summaries that it is to replace; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<usize>,
    /// What those entries take in the next request now, in tokens.
    pub tokens: u64,
}

/// A pass that was laid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Laid {
    /// Who wanted it.
    pub origin: Origin,
    /// Its first overlay, by which the pass is named.
    pub pass: EntryId,
    /// Its overlays.
    pub overlays: Vec<EntryId>,
    /// Who wrote its newest summary; absent: there is none in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Author>,
    /// Results that it replaced by a line.
    pub results: u64,
    /// The next request before it.
    pub before: Shape,
    /// The next request with it.
    pub after: Shape,
    /// The tokens with it in percent of those before.
    pub percent: u64,
}

/// What the next request is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Shape {
    /// Summaries.
    pub summaries: u64,
    /// Entries that read beside them: what was said, replies, results.
    pub entries: u64,
    /// The estimate of all of it, in tokens.
    pub tokens: u64,
}

/// A summary that could not be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Failed {
    /// The request that asked for it.
    pub request: EntryId,
    /// Why.
    pub why: String,
    /// What is done next.
    pub next: Next,
    /// The model that is asked next; absent: none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What is done after a summary could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// The model is asked again, with results clipped harder.
    Harder,
    /// A model is asked, for something else or in another role.
    Ask,
    /// A summary is made without a model.
    Rules,
    /// Overlays are laid that need no summary.
    Strip,
    /// The run ends.
    Stop,
    /// The run goes on as it is.
    GoOn,
}

impl Next {
    /// The word that programs read.
    pub fn word(self) -> &'static str {
        match self {
            Self::Harder => "harder",
            Self::Ask => "ask",
            Self::Rules => "rules",
            Self::Strip => "strip",
            Self::Stop => "stop",
            Self::GoOn => "go_on",
        }
    }
}

impl Planned {
    /// What is told of a request; `None` if it asks for no summary.
    pub fn of(view: &View, purpose: &Purpose) -> Option<Self> {
        let (role, span, part, texts) = match purpose {
            Purpose::Summary(ask) => (ask.model, ask.span, ask.part, None),
            Purpose::Combine(ask) => (ask.model, ask.span, None, Some(ask.of.len())),
            Purpose::Round | Purpose::Repair { .. } => return None,
        };
        let replaces = match purpose {
            Purpose::Summary(ask) => ask.replaces.len(),
            Purpose::Combine(ask) => {
                let laid = |source: &&Source| matches!(source, Source::Overlay(_));
                ask.of.iter().filter(laid).count()
            }
            Purpose::Round | Purpose::Repair { .. } => 0,
        };
        Some(Self {
            origin: purpose.origin(),
            model: model(view, role)?,
            span,
            rounds: view.round_numbers(span).map(<[u32; 2]>::from),
            part,
            texts,
            replaces: (replaces > 0).then_some(replaces),
            tokens: view.tokens_between(span),
        })
    }
}

impl Laid {
    /// What is told of the overlays from this one on, in a view that had another shape before them;
    /// `None` if there are none.
    pub fn of(view: &View, first: EntryId, before: Shape) -> Option<Self> {
        let entries = view.transcript().from(first).iter();
        let laid: Vec<(EntryId, &Overlay)> = entries
            .filter_map(|entry| {
                if let Event::Overlay(overlay) = &entry.event {
                    Some((entry.id, overlay))
                } else {
                    None
                }
            })
            .collect();
        let after = Shape::of(view);
        let results = laid.iter().map(|(_, overlay)| match &overlay.layer {
            Layer::Stub(stub) => stub.results.len() as u64,
            Layer::Hide(_) | Layer::Summary(_) | Layer::Show(_) => 0,
        });
        let by = laid.iter().rev().find_map(|(_, overlay)| {
            if let Layer::Summary(summary) = &overlay.layer {
                Some(summary.by)
            } else {
                None
            }
        });
        let (pass, overlay) = laid.first()?;
        Some(Self {
            origin: overlay.origin,
            pass: *pass,
            by,
            results: results.sum(),
            before,
            after,
            percent: after.tokens.saturating_mul(100) / before.tokens.max(1),
            overlays: laid.iter().map(|(id, _)| *id).collect(),
        })
    }
}

impl Shape {
    /// The shape of the next request of this view.
    pub fn of(view: &View) -> Self {
        Self {
            summaries: view.summaries().len() as u64,
            entries: view.reading(),
            tokens: view.estimate().tokens,
        }
    }
}

impl Failed {
    /// What is told of a request whose summary could not be had, and after which this plan is
    /// carried out.
    pub fn of(view: &View, request: EntryId, why: &str, plan: Option<&Plan>) -> Self {
        let asked = view.transcript().get(request).map(|entry| &entry.event);
        let asked = if let Some(Event::Request(asked)) = asked {
            Some(&asked.purpose)
        } else {
            None
        };
        let (next, model) = match plan {
            Some(Plan::Ask(purpose)) => after_that(view, asked, purpose),
            Some(Plan::Lay(pass)) => {
                let by_rules = |draft: &Draft| match &draft.layer {
                    Layer::Summary(summary) => summary.by == Author::Rules,
                    Layer::Stub(_) | Layer::Hide(_) | Layer::Show(_) => false,
                };
                let rules = pass.drafts.iter().any(by_rules);
                (if rules { Next::Rules } else { Next::Strip }, None)
            }
            Some(Plan::Stop) => (Next::Stop, None),
            Some(Plan::Failed { .. }) | None => (Next::GoOn, None),
        };
        let why = why.to_owned();
        Self {
            request,
            why,
            next,
            model,
        }
    }
}

/// What the next request is to the one that failed, and the model that it asks.
fn after_that(view: &View, failed: Option<&Purpose>, next: &Purpose) -> (Next, Option<String>) {
    let harder = match (failed, next) {
        (Some(Purpose::Summary(failed)), Purpose::Summary(next)) => {
            (failed.model, failed.span) == (next.model, next.span) && next.clip < failed.clip
        }
        (Some(_) | None, _) => false,
    };
    let role = match next {
        Purpose::Summary(ask) => ask.model,
        Purpose::Combine(ask) => ask.model,
        Purpose::Round | Purpose::Repair { .. } => Role::Main,
    };
    let next = if harder { Next::Harder } else { Next::Ask };
    (next, model(view, role))
}

fn model(view: &View, role: Role) -> Option<String> {
    let model = view.wire()?.models.role(role)?;
    Some(model.name.clone())
}
