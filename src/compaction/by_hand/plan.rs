//! A plan by hand: an order tried on a copy of the view.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::compaction::by_hand::range::{Reach, Resolved};
use crate::compaction::by_hand::report::{self, Hidden, LeftOut, Report};
use crate::compaction::by_hand::{Place, Refused, Stage, Wanted, Work, Written, stages, writing};
use crate::exchange::Hint;
use crate::id::{CallId, EntryId, Span};
use crate::overlay::{Layer, Origin, Overlay, Size};
use crate::setup::Setup;
use crate::transcript::{At, Entry, Event};
use crate::view::{Sizes, View};
use crate::words::grouped;

/// The tool that shows what is hidden: it is never pruned, since stubs name it.
const RECALL: &str = "Recall";

/// What an order comes to.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) left_out: Vec<LeftOut>,
    /// Why nothing is laid, if nothing is.
    pub(super) nothing: Option<String>,
    pub(super) size: Size,
    pub(super) timeline: Vec<report::Stretch>,
    wanted: Option<Wanted>,
    reason: String,
}

/// One overlay of a plan, or new settings.
#[derive(Clone, Debug)]
pub struct Step {
    /// The strategy, or the rule of an overlay that is laid again.
    pub(super) rule: String,
    pub(super) deed: Deed,
    /// What it is about; none: the tools.
    pub(super) place: Option<Place>,
    /// The entries of which something no longer reads.
    pub(super) entries: BTreeSet<EntryId>,
    pub(super) hides: Hidden,
    pub(super) size: Size,
    /// The model that is asked first, and what it is told to preserve.
    pub(super) expected: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) enum Deed {
    Lay(Layer),
    Prune(Box<Setup>),
}

/// Tries an order on a copy of the view. Without a text that a model wrote, a summary that needs one is
/// planned with the size that it is expected to have.
pub fn plan(view: &View, resolved: &Resolved, written: Option<&Written>) -> Result<Plan, Refused> {
    let sizes = view.sizes().ok_or(Refused::NoSettings)?;
    let order = &resolved.order;
    let mut sheet = Sheet {
        base: view,
        view: view.clone(),
        resolved,
        written,
        sizes,
        steps: Vec::new(),
        left_out: Vec::new(),
        wanted: None,
    };
    let mut nothing = None;
    match (&resolved.reach, &order.work) {
        (Err(why), _) => nothing = Some(why.clone()),
        (Ok(reach), Work::Again(overlay)) => sheet.again(*overlay, reach)?,
        (Ok(reach), Work::Rule(..) | Work::Strategies(_)) => {
            for stage in order.stages() {
                sheet.stage(stage, reach)?;
            }
        }
    }
    if let (None, Ok(reach), true) = (&nothing, &resolved.reach, sheet.steps.is_empty()) {
        nothing = Some(sheet.nothing(reach));
    }
    Ok(sheet.into_plan(nothing))
}

impl Plan {
    /// The summary that a model must write before the plan can be laid; `None` if it can be laid now.
    pub fn wanted(&self) -> Option<&Wanted> {
        self.wanted.as_ref()
    }

    /// Whether nothing would be laid.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// What it would come to.
    pub fn report(&self) -> Report {
        report::of(self, &[])
    }

    /// Records the steps, as one pass that begins with the entry of this id. A plan that still wants a
    /// summary is not laid at all.
    pub fn lay<E>(
        self,
        mut next: EntryId,
        mut record: impl FnMut(Event) -> Result<EntryId, E>,
    ) -> Result<Report, E> {
        let mut laid = Vec::new();
        if self.wanted.is_some() {
            return Ok(self.report());
        }
        let mut pass = None;
        for step in &self.steps {
            let event = match &step.deed {
                Deed::Lay(layer) => {
                    let pass = *pass.get_or_insert(next);
                    Event::Overlay(step.overlay(layer.clone(), pass, self.reason.clone()))
                }
                Deed::Prune(setup) => Event::Setup(setup.clone()),
            };
            let id = record(event)?;
            laid.push(id);
            next = id.next();
        }
        Ok(report::of(&self, &laid))
    }
}

impl Step {
    fn overlay(&self, layer: Layer, pass: EntryId, reason: String) -> Overlay {
        Overlay {
            origin: Origin::User,
            rule: self.rule.clone(),
            pass,
            layer,
            size: self.size,
            reason,
        }
    }
}

/// A copy of the view with the steps of a plan laid on it.
struct Sheet<'a> {
    base: &'a View,
    view: View,
    resolved: &'a Resolved,
    written: Option<&'a Written>,
    sizes: Sizes,
    steps: Vec<Step>,
    left_out: Vec<LeftOut>,
    wanted: Option<Wanted>,
}

impl Sheet<'_> {
    fn stage(&mut self, stage: Stage, reach: &Reach) -> Result<(), Refused> {
        match stage {
            Stage::Reasoning => {
                let layer = stages::reasoning(&self.view, reach);
                self.lay_all("strip-reasoning", reach, [layer]);
            }
            Stage::Calls(rule, asked) => {
                let layers = stages::calls(&self.view, reach, asked);
                self.lay_all(rule, reach, layers);
            }
            Stage::Dedup => {
                let layers = stages::superseded(&self.view, reach);
                self.lay_all("dedup-tools", reach, layers);
            }
            Stage::Attachments => {
                let layer = stages::attachments(&self.view, reach);
                self.lay_all("strip-attachments", reach, [layer]);
            }
            Stage::Prune => self.prune(),
            Stage::Summary => self.summarize("summarize", reach)?,
            Stage::Auto => self.auto(reach)?,
        }
        Ok(())
    }

    /// Lays the layers of one strategy, and remembers if none of them was worth it.
    fn lay_all<const N: usize>(
        &mut self,
        rule: &str,
        reach: &Reach,
        layers: [Option<Layer>; N],
    ) -> bool {
        let mut any = false;
        for layer in layers.into_iter().flatten() {
            any |= self.lay(rule, reach.span, layer, false, None);
        }
        if !any {
            let place = Place::of(self.base, reach.span);
            self.leave_out(rule, format!("nothing worth hiding in {place}"));
        }
        any
    }

    fn leave_out(&mut self, strategy: &str, why: String) {
        let strategy = strategy.to_owned();
        self.left_out.push(LeftOut { strategy, why });
    }

    /// Lays a layer if it makes the next request shorter, or if it may grow; returns whether it did.
    fn lay(
        &mut self,
        rule: &str,
        span: Span,
        layer: Layer,
        may_grow: bool,
        expected: Option<String>,
    ) -> bool {
        let (entries, hides) = report::hidden(&self.view, &layer);
        let mut step = Step {
            rule: rule.to_owned(),
            deed: Deed::Lay(layer.clone()),
            place: Some(Place::of(self.base, span)),
            entries,
            hides,
            size: Size::default(),
            expected,
        };
        let id = self.view.transcript().next_id();
        let overlay = step.overlay(layer, id, String::new());
        let Some((view, size)) = self.tried(Event::Overlay(overlay), may_grow) else {
            return false;
        };
        step.size = size;
        self.view = view;
        self.steps.push(step);
        true
    }

    /// The view with an event, and what that does to the next request; `None` if it must not be.
    fn tried(&self, event: Event, may_grow: bool) -> Option<(View, Size)> {
        let mut view = self.view.clone();
        let id = view.transcript().next_id();
        let at = At::default();
        view.take(Arc::new(Entry { id, at, event }));
        if !may_grow && view.chars().all >= self.view.chars().all {
            return None;
        }
        let size = Size {
            before: self.view.estimate().tokens,
            after: view.estimate().tokens,
        };
        Some((view, size))
    }

    /// Records settings without the tools that were never called.
    fn prune(&mut self) {
        let Some(setup) = self.view.setup() else {
            return;
        };
        let mut setup = setup.clone();
        let responses = self
            .view
            .rounds()
            .all()
            .iter()
            .filter_map(|round| round.response);
        let called: BTreeSet<&str> = responses
            .filter_map(|entry| self.view.response(entry))
            .flat_map(|response| response.calls.iter().map(|call| call.name.as_str()))
            .collect();
        let is_used = |name: &str| called.contains(name) || name == RECALL;
        let mut tools = 0;
        for tool in std::mem::take(&mut setup.wire.tools) {
            if is_used(&tool.name) {
                setup.wire.tools.push(tool);
            } else {
                setup.policy.pruned.push(tool.name);
                tools += 1;
            }
        }
        let event = Event::Setup(Box::new(setup.clone()));
        let Some((view, size)) = (tools > 0).then(|| self.tried(event, false)).flatten() else {
            let text = "every tool that is offered was called".to_owned();
            return self.leave_out("prune-tools", text);
        };
        self.view = view;
        self.steps.push(Step {
            rule: "prune-tools".to_owned(),
            deed: Deed::Prune(Box::new(setup)),
            place: None,
            entries: BTreeSet::new(),
            hides: Hidden {
                tools,
                ..Hidden::default()
            },
            size,
            expected: None,
        });
    }

    /// Lays a summary, or plans the one that a model is to write.
    fn summarize(&mut self, rule: &str, reach: &Reach) -> Result<(), Refused> {
        let order = &self.resolved.order;
        let found = writing::summary(&self.view, &self.sizes, order, reach, self.written)?;
        let draft = match found {
            Ok(draft) => draft,
            Err(why) => {
                self.leave_out(rule, why);
                return Ok(());
            }
        };
        let (span, focus) = (draft.summary.span, draft.summary.focus.clone());
        let model = draft.is_expected.then(|| self.summary_model());
        let covers = self.view.tokens_between(span);
        let text = self.view.text_tokens(&draft.summary.text);
        let layer = Layer::Summary(draft.summary);
        if self.lay(rule, span, layer, draft.over_another, model) {
            self.wanted = draft.is_expected.then_some(Wanted { span, focus });
        } else {
            let place = Place::of(self.base, span);
            let why = format!(
                "a summary of {place} would not be shorter: {} tokens for {}",
                grouped(text),
                grouped(covers)
            );
            self.leave_out(rule, why);
        }
        Ok(())
    }

    fn summary_model(&self) -> String {
        let model = self
            .view
            .wire()
            .and_then(|wire| wire.models.role(crate::setup::Role::Summary));
        model.map(|model| model.name.clone()).unwrap_or_default()
    }

    /// What an automatic pass would do here, until its target is reached.
    fn auto(&mut self, reach: &Reach) -> Result<(), Refused> {
        let target = self.sizes.target;
        let reached = |sheet: &Self| sheet.view.estimate().tokens <= target;
        if reached(self) {
            let (tokens, target) = (self.view.estimate().tokens, grouped(target));
            let tokens = grouped(tokens);
            let why = format!("{tokens} tokens are in use, and auto aims at {target}");
            self.leave_out("auto", why);
            return Ok(());
        }
        let both = |view: &View, reach: &Reach| {
            let asked = crate::exchange::Treatment::Strip;
            stages::calls(view, reach, Hint::new(asked, asked))
        };
        let stages: [(&str, Layers); 4] = [
            ("micro", |view, reach| [stages::micro(view, reach), None]),
            ("strip-reasoning", |view, reach| {
                [stages::reasoning(view, reach), None]
            }),
            ("dedup-tools", stages::superseded),
            ("strip-tools", both),
        ];
        for (rule, layers) in stages {
            for layer in layers(&self.view, reach).into_iter().flatten() {
                if !reached(self) {
                    self.lay(rule, reach.span, layer, false, None);
                }
            }
        }
        if reached(self) {
            return Ok(());
        }
        self.summarize("summarize", reach)
    }

    /// Lays the layer of an overlay that was taken back.
    fn again(&mut self, overlay: EntryId, reach: &Reach) -> Result<(), Refused> {
        let laid = self
            .base
            .overlay(overlay)
            .ok_or(Refused::NoOverlay(overlay))?;
        let is_summary = matches!(laid.layer, Layer::Summary(_));
        if is_summary {
            writing::over_written(self.base, reach.span)?;
        }
        let bands = self.base.summaries();
        let over = bands.iter().any(|band| band.summary.span.meets(reach.span));
        let may_grow = matches!(laid.layer, Layer::Show(_)) || is_summary && over;
        if !self.lay(&laid.rule, reach.span, laid.layer.clone(), may_grow, None) {
            self.leave_out(
                &laid.rule,
                format!("e{overlay} would not make requests shorter"),
            );
        }
        Ok(())
    }

    /// Says why nothing would be laid.
    fn nothing(&self, reach: &Reach) -> String {
        let mut others = self
            .left_out
            .iter()
            .filter(|it| !it.why.starts_with("nothing worth"));
        if let (Some(only), None) = (others.next(), others.next()) {
            return only.why.clone();
        }
        let place = Place::of(self.base, reach.span);
        let tokens = self.base.tokens_between(reach.span);
        let bands = self.base.summaries().into_iter();
        let bands = bands.filter(|band| band.summary.span.meets(reach.span));
        let bands: Vec<String> = bands.map(|band| format!("e{}", band.overlay)).collect();
        if tokens == 0 && !bands.is_empty() {
            let stands = match bands.len() {
                1 => "a summary stands",
                _ => "summaries stand",
            };
            return format!("{stands} for {place} already: {}", bands.join(" "));
        }
        let tokens = grouped(tokens);
        format!("nothing worth hiding in {place}: {tokens} tokens, 0 can go")
    }

    fn into_plan(self, nothing: Option<String>) -> Plan {
        let size = Size {
            before: self.base.estimate().tokens,
            after: self.view.estimate().tokens,
        };
        Plan {
            timeline: report::timeline(self.base, &self.steps),
            steps: self.steps,
            left_out: self.left_out,
            nothing,
            size,
            wanted: self.wanted,
            reason: self.resolved.order.reason(),
        }
    }
}

/// What a stage of `auto` lays within a reach.
type Layers = fn(&View, &Reach) -> [Option<Layer>; 2];

/// The calls of these responses that have a result, by their results.
pub(super) fn results(view: &View, calls: &[CallId]) -> impl Iterator<Item = EntryId> {
    calls
        .iter()
        .filter_map(|call| view.result_of(*call).map(|(entry, _)| entry))
}
