//! Recording what compaction decided, and telling of it.

use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, AgentError, Progress, plan_name};
use crate::compaction::notice::{Failed, Laid, Notice, Planned, Shape};
use crate::compaction::{self, Pass, Plan};
use crate::overlay::{Origin, Overlay};
use crate::record::Recorder;
use crate::transcript::{Event, Note, Purpose};

impl Agent {
    /// Lays the overlays of a pass, or notes that a summary could not be had.
    pub(super) async fn compact(
        &self,
        recorder: &mut Recorder,
        plan: Plan,
        cancel: &CancellationToken,
    ) -> Result<(), AgentError> {
        let span = tracing::info_span!("compaction", plan = plan_name(&plan));
        match span.in_scope(|| self.carry_out(recorder, plan))? {
            // Micro-compaction only puts away what a call brings back.
            Some(laid) if laid.origin != Origin::Micro => {
                self.hook_after(recorder, &laid, cancel).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Records what was decided, and returns the pass that was laid.
    fn carry_out(&self, recorder: &mut Recorder, plan: Plan) -> Result<Option<Laid>, AgentError> {
        match plan {
            Plan::Lay(pass) => self.lay(recorder, pass),
            Plan::Failed { request, why } => {
                let note = Note::SummaryFailed {
                    request,
                    why: why.clone(),
                };
                self.record(recorder, Event::Note(note))?;
                let next = compaction::plan(recorder.view(), recorder.now());
                let failed = Failed::of(recorder.view(), request, &why, next.as_ref());
                self.notice(&Notice::Failed(failed));
                Ok(None)
            }
            // These are steps of their own: `step::next` turns them into an ask or a stop.
            Plan::Ask(_) | Plan::Stop => Ok(None),
        }
    }

    /// Lays the overlays of a pass, tells of it, and returns what was told; `None` if it is empty.
    pub(super) fn lay(
        &self,
        recorder: &mut Recorder,
        pass: Pass,
    ) -> Result<Option<Laid>, AgentError> {
        let first = recorder.view().transcript().next_id();
        let before = Shape::of(recorder.view());
        for draft in pass.drafts {
            let overlay = Overlay {
                origin: pass.origin,
                rule: draft.rule.to_owned(),
                pass: first,
                layer: draft.layer,
                size: draft.size,
                reason: draft.reason,
            };
            let chars = recorder.view().chars().all;
            self.record(recorder, Event::Overlay(overlay))?;
            debug_assert!(
                recorder.view().chars().all < chars,
                "an overlay makes requests shorter"
            );
        }
        let laid = Laid::of(recorder.view(), first, before);
        if let Some(laid) = &laid {
            self.notice(&Notice::Laid(laid.clone()));
        }
        Ok(laid)
    }

    /// Tells of a request that was recorded, if it asks for a summary.
    pub(super) fn planned(&self, recorder: &Recorder, purpose: &Purpose) {
        if let Some(planned) = Planned::of(recorder.view(), purpose) {
            self.notice(&Notice::Planned(planned));
        }
    }

    /// Tells the listeners and the log of a compaction.
    pub(super) fn notice(&self, notice: &Notice) {
        log(notice);
        self.tell(|| Progress::Compaction(notice.clone()));
    }
}

/// Writes a notice into the log.
fn log(notice: &Notice) {
    match notice {
        Notice::Planned(Planned {
            origin,
            model,
            span,
            tokens,
            ..
        }) => {
            let origin = origin.word();
            tracing::info!(origin, %model, %span, tokens, "auto_compact planned");
        }
        Notice::Laid(laid) => {
            let (origin, pass) = (laid.origin.word(), laid.pass.0);
            let (overlays, results) = (laid.overlays.len(), laid.results);
            let (before, after) = (laid.before.tokens, laid.after.tokens);
            let (entries_before, entries_after) = (laid.before.entries, laid.after.entries);
            match laid.origin {
                Origin::Micro => {
                    tracing::info!(pass, results, before, after, "micro_compact triggered");
                }
                Origin::Auto | Origin::Tool | Origin::Recovery | Origin::User => tracing::info!(
                    origin,
                    pass,
                    overlays,
                    results,
                    entries_before,
                    entries_after,
                    before,
                    after,
                    "auto_compact triggered"
                ),
            }
        }
        Notice::Failed(Failed {
            request,
            why,
            next,
            model,
        }) => {
            let (request, next) = (request.0, next.word());
            tracing::warn!(request, why, next, model, "auto_compact failed");
        }
    }
}
