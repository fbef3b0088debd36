//! Stages that need no model: reasoning left out, calls stripped by their tool's hint.
//!
//! They look at what still reads before the newest round, and leave alone what is pinned or shown
//! by hand, and the live state: the newest todo list and skills.

use crate::exchange::{Hint, Treatment};
use crate::id::{CallId, EntryId};
use crate::overlay::layers::{Reads, Stubbed};
use crate::overlay::{Form, Hide, Layer, Stub};
use crate::setup::Removable;
use crate::view::{Sizes, View, json_chars};
use crate::words;

/// What the results of one round may take together, of R.
const ROUND: f64 = 0.2;

/// Responses of the conversation that still read, before the newest round, oldest first.
pub(super) fn responses(view: &View) -> Vec<EntryId> {
    let newest = view.rounds().answered().and_then(|round| round.response);
    let live = view.live().into_iter();
    live.filter(|entry| view.response(*entry).is_some() && Some(*entry) != newest)
        .collect()
}

/// The calls of a response, by id.
pub(super) fn calls(view: &View, response: EntryId) -> Vec<CallId> {
    let calls = view
        .response(response)
        .map_or(0, |response| response.calls.len());
    (0..calls)
        .map(|index| CallId::at(response, index))
        .collect()
}

/// Whether automatic stages leave a call alone.
pub(super) fn is_spared(view: &View, call: CallId) -> bool {
    let working = view.working();
    let live = working.todo == Some(call) || working.skills.values().any(|skill| *skill == call);
    let result = view.result_of(call).map(|(entry, _)| entry);
    live || view.is_shown(call)
        || view.is_protected(call.response)
        || result.is_none_or(|result| view.is_protected(result))
}

/// Leaves out the reasoning that the profile lets go; `None` if there is none.
pub fn reasoning(view: &View) -> Option<Layer> {
    let unpinned = responses(view).into_iter();
    reasoning_of(view, unpinned.filter(|entry| !view.is_protected(*entry)))
}

/// Leaves out the reasoning of these responses, as far as the profile lets it go.
pub(super) fn reasoning_of(
    view: &View,
    responses: impl IntoIterator<Item = EntryId>,
) -> Option<Layer> {
    let removable = view.wire()?.models.main.profile.reasoning.removable;
    let turn = view.rounds().turns().last().copied().unwrap_or_default();
    let goes = |entry: &EntryId| match removable {
        Removable::Any => true,
        Removable::ClosedTurns => *entry < turn,
        Removable::Never => false,
    };
    let has = |entry: &EntryId| {
        view.response(*entry)
            .is_some_and(|response| !response.reasoning.is_empty())
    };
    let hidden = responses
        .into_iter()
        .filter(|entry| goes(entry) && has(entry) && view.reads_reasoning(*entry));
    let reasoning: Vec<EntryId> = hidden.collect();
    let hide = Hide {
        reasoning,
        ..Hide::default()
    };
    (!hide.reasoning.is_empty()).then_some(Layer::Hide(hide))
}

/// Strips calls by the hints of their tools: first the stubs, then the calls left out whole.
pub fn hints(view: &View) -> [Option<Layer>; 2] {
    let calls = responses(view)
        .into_iter()
        .flat_map(|response| calls(view, response));
    let unspared = calls.filter(|call| !is_spared(view, *call));
    treated(view, unspared, |call| hint(view, call))
}

/// Strips these calls as they are to be treated: first the stubs, then the calls left out whole.
pub(super) fn treated(
    view: &View,
    calls: impl IntoIterator<Item = CallId>,
    treatment: impl Fn(CallId) -> Hint,
) -> [Option<Layer>; 2] {
    let mut stub = Stub {
        form: Form::Compacted,
        ..Stub::default()
    };
    let mut hide = Hide::default();
    for call in calls {
        let hint = treatment(call);
        if hint.omits() {
            let reads = view
                .reads(call)
                .is_some_and(|r| !matches!(r, Reads::Hidden(_)));
            hide.calls.extend(reads.then_some(call));
            continue;
        }
        if hint.response == Treatment::Strip && stub_is_shorter(view, call) {
            stub.results.push(call);
        }
        if hint.request == Treatment::Strip && arguments_can_go(view, call) {
            stub.arguments.push(call);
        }
    }
    let stubs = !stub.results.is_empty() || !stub.arguments.is_empty();
    [
        stubs.then_some(Layer::Stub(stub)),
        (!hide.calls.is_empty()).then_some(Layer::Hide(hide)),
    ]
}

/// Puts the longest results of the newest round away until the others keep within what a round of this
/// window may have; `None` if they do.
pub(super) fn unseen(view: &View, sizes: &Sizes) -> Option<Layer> {
    let response = view.rounds().answered()?.response?;
    let length = |call: CallId| {
        let (_, result) = view.result_of(call)?;
        Some((view.text_tokens(&result.content), call))
    };
    let mut lengths: Vec<_> = calls(view, response)
        .into_iter()
        .filter_map(length)
        .collect();
    lengths.sort_unstable();
    let mut left: u64 = lengths.iter().map(|(tokens, _)| tokens).sum();
    let mut results = Vec::new();
    while let Some((tokens, call)) = lengths.pop() {
        if left <= sizes.share(ROUND) {
            break;
        }
        if !is_spared(view, call) && stub_is_shorter(view, call) {
            results.push(call);
            left -= tokens;
        }
    }
    results.sort_unstable();
    let stub = Stub {
        results,
        ..Stub::default()
    };
    (!stub.results.is_empty()).then_some(Layer::Stub(stub))
}

/// The hint of a call's tool, as the settings in force have it.
pub(super) fn hint(view: &View, call: CallId) -> Hint {
    let call = view.tool_call(call);
    call.map(|call| view.hint_of(&call.name))
        .unwrap_or_default()
}

fn stub_is_shorter(view: &View, id: CallId) -> bool {
    if view.reads(id) != Some(Reads::Full) {
        return false;
    }
    let (Some(call), Some((_, result))) = (view.tool_call(id), view.result_of(id)) else {
        return false;
    };
    let overlay = view.transcript().next_id();
    let stub = Stubbed {
        overlay,
        form: Form::Compacted,
        by: None,
    };
    json_chars(&view.stub_text(id, call, result, stub)).all < json_chars(&result.content).all
}

fn arguments_can_go(view: &View, id: CallId) -> bool {
    let longer = view
        .tool_call(id)
        .is_some_and(|call| json_chars(&call.arguments).all > json_chars(words::NO_ARGUMENTS).all);
    longer && view.may_stub_arguments(id)
}
