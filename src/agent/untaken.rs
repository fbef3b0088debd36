//! What a provider turns out not to take is left out from there on.

use crate::agent::{Agent, AgentError};
use crate::id::EntryId;
use crate::record::Recorder;
use crate::setup::{Model, Setup};
use crate::transcript::{Event, Note};
use crate::view::View;
use crate::wire::parameter;

/// The longest beginning of a refused call that is kept, in characters.
const CALL_CHARS: usize = 2000;

impl Agent {
    /// Records settings without the parameter that a refusal names, if the request carried it.
    pub(super) fn untaken(
        &self,
        recorder: &mut Recorder,
        request: EntryId,
        (named, body): (&str, &[u8]),
    ) -> Result<(), AgentError> {
        let Some(parameter) = parameter::named(body, named) else {
            return Ok(());
        };
        let Some(setup) = without(recorder.view(), request, &parameter) else {
            return Ok(());
        };
        self.record(recorder, Event::Setup(Box::new(setup)))?;
        let text = format!("the provider does not take `{parameter}`; it is left out from here on");
        tracing::warn!("{text}");
        self.record(recorder, Event::Note(Note::Warning { text }))?;
        Ok(())
    }
}

/// The settings in force without a parameter of the model that a request asked; `None` if it is left
/// out already.
fn without(view: &View, request: EntryId, parameter: &str) -> Option<Setup> {
    let Event::Request(refused) = &view.transcript().get(request)?.event else {
        return None;
    };
    let mut setup = view.setup()?.clone();
    let model = setup.wire.models.role_mut(refused.purpose.role())?;
    parameter::leave_out(&mut model.profile.parameters, parameter).then_some(setup)
}

/// Leaves out of a model's requests what refusals taught of it.
pub(super) fn leave_out_learned(view: &View, model: &mut Model) {
    for parameter in &view.ledger().untaken {
        parameter::leave_out(&mut model.profile.parameters, parameter);
    }
}

/// The beginning of what a model wrote as a call that was refused.
pub(super) fn beginning(call: &str) -> String {
    call.chars().take(CALL_CHARS).collect()
}
