//! Recording what compaction decided.

use crate::agent::{Agent, AgentError, plan_name};
use crate::compaction::{Pass, Plan};
use crate::overlay::{Layer, Origin, Overlay};
use crate::record::Recorder;
use crate::transcript::{Event, Note};

impl Agent {
    /// Lays the overlays of a pass, or notes that a summary could not be had.
    pub(super) fn compact(&self, recorder: &mut Recorder, plan: Plan) -> Result<(), AgentError> {
        let span = tracing::info_span!("compaction", plan = plan_name(&plan));
        let _entered = span.enter();
        match plan {
            Plan::Lay(pass) => self.lay(recorder, pass),
            Plan::Failed { request, why } => {
                tracing::warn!(request = request.0, why, "auto_compact failed");
                let note = Note::SummaryFailed { request, why };
                self.record(recorder, Event::Note(note)).map(|_| ())
            }
            // These are steps of their own: `step::next` turns them into an ask or a stop.
            Plan::Ask(_) | Plan::Stop => Ok(()),
        }
    }

    fn lay(&self, recorder: &mut Recorder, pass: Pass) -> Result<(), AgentError> {
        let first = recorder.view().transcript().next_id();
        for draft in pass.drafts {
            let (before, after) = (draft.size.before, draft.size.after);
            let covered = covered(&draft.layer);
            match pass.origin {
                Origin::Micro => {
                    tracing::info!(results = covered, before, after, "micro_compact triggered");
                }
                Origin::Auto | Origin::Tool | Origin::Recovery | Origin::User => {
                    let (origin, rule) = (pass.origin.word(), draft.rule);
                    tracing::info!(
                        origin,
                        rule,
                        covered,
                        before,
                        after,
                        "auto_compact triggered"
                    );
                }
            }
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
        Ok(())
    }
}

/// How much a layer covers, in contents or entries.
fn covered(layer: &Layer) -> u64 {
    match layer {
        Layer::Stub(stub) => (stub.results.len() + stub.arguments.len()) as u64,
        Layer::Hide(hide) => {
            (hide.calls.len() + hide.reasoning.len() + hide.attachments.len() + hide.rounds.len())
                as u64
        }
        Layer::Summary(summary) => summary.span.entries(),
        Layer::Show(show) => show.calls.len() as u64,
    }
}
