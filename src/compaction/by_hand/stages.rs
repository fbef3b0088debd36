//! What each stage that needs no model hides within a reach.

use crate::compaction::by_hand::range::{Named, Reach};
use crate::compaction::{micro, strategies, superseded};
use crate::exchange::{Hint, Treatment};
use crate::id::{CallId, EntryId};
use crate::overlay::{Hide, Layer, Stub};
use crate::view::View;

/// Leaves out reasoning.
pub(super) fn reasoning(view: &View, reach: &Reach) -> Option<Layer> {
    let goes = |entry: &EntryId| reach.named.is_some() || !view.is_protected(*entry);
    strategies::reasoning_of(view, responses(view, reach).into_iter().filter(goes))
}

/// Strips calls: what is asked for, as far as their tools let it go.
pub(super) fn calls(view: &View, reach: &Reach, asked: Hint) -> [Option<Layer>; 2] {
    let all = responses(view, reach).into_iter();
    let all = all.flat_map(|response| strategies::calls(view, response));
    let meant = all.filter(|call| match reach.named {
        Some(Named::Call(named)) => *call == named,
        Some(Named::Entry(_)) => true,
        None => !strategies::is_spared(view, *call),
    });
    strategies::treated(view, meant, |call| match reach.named {
        // Whoever names a call by itself means it.
        Some(_) => asked,
        None => limited(asked, strategies::hint(view, call)),
    })
}

/// What becomes of a call: what is asked for, where its tool does not keep more. A tool whose results
/// are to stay keeps its calls.
fn limited(asked: Hint, own: Hint) -> Hint {
    use Treatment::{Keep, Omit, Strip};
    let both = asked == Hint::new(Strip, Strip);
    if own.response != Keep && (asked.omits() || both && own.omits()) {
        return Hint::new(Omit, Omit);
    }
    let half = |asked, own| match (asked, own) {
        (Keep, _) | (_, Keep) => Keep,
        (Strip | Omit, Strip | Omit) => Strip,
    };
    Hint::new(
        half(asked.request, own.request),
        half(asked.response, own.response),
    )
}

/// Leaves out what a later call made superfluous: first the calls, then the stale results.
pub(super) fn superseded(view: &View, reach: &Reach) -> [Option<Layer>; 2] {
    superseded::layers(view).map(|layer| within(layer?, reach))
}

/// Puts old results away, as micro-compaction does.
pub(super) fn micro(view: &View, reach: &Reach) -> Option<Layer> {
    within(micro::layer(view)?, reach)
}

/// Leaves out attachments.
pub(super) fn attachments(view: &View, reach: &Reach) -> Option<Layer> {
    let mut hide = Hide::default();
    let spared = |entry| {
        let pinned = view.is_protected(entry) || view.working().task == Some(entry);
        pinned && reach.named.is_none()
    };
    let live = view.live().into_iter();
    for entry in live.filter(|entry| reach.span.contains(*entry) && !spared(*entry)) {
        let Some(user) = view.user(entry) else {
            continue;
        };
        let places = (1..).take(user.attachments.len());
        let read = places.filter(|place| view.reads_attachment(entry, *place));
        hide.attachments.extend(read.map(|place| (entry, place)));
    }
    (!hide.attachments.is_empty()).then_some(Layer::Hide(hide))
}

/// What still reads within the reach, oldest first.
fn responses(view: &View, reach: &Reach) -> Vec<EntryId> {
    let mut all = strategies::responses(view);
    all.retain(|response| reach.span.contains(*response));
    all
}

/// What a layer of calls holds within the reach; `None` if that is nothing.
fn within(layer: Layer, reach: &Reach) -> Option<Layer> {
    let is_meant = |call: &CallId| {
        let named = match reach.named {
            Some(Named::Call(named)) => *call == named,
            Some(Named::Entry(_)) | None => true,
        };
        named && reach.span.contains(call.response)
    };
    match layer {
        Layer::Stub(stub) => {
            let mut stub: Stub = stub;
            stub.results.retain(is_meant);
            stub.arguments.retain(is_meant);
            stub.by.retain(|call, _| is_meant(call));
            let some = !stub.results.is_empty() || !stub.arguments.is_empty();
            some.then_some(Layer::Stub(stub))
        }
        Layer::Hide(hide) => {
            let mut hide: Hide = hide;
            hide.calls.retain(is_meant);
            hide.why.retain(|call, _| is_meant(call));
            (!hide.calls.is_empty()).then_some(Layer::Hide(hide))
        }
        // No stage makes one of these.
        Layer::Summary(_) | Layer::Show(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_may_keep_more_than_is_asked_for() {
        use Treatment::{Keep, Omit, Strip};
        let both = Hint::new(Strip, Strip);
        for (asked, own, becomes) in [
            (both, (Keep, Strip), (Keep, Strip)),
            (both, (Strip, Keep), (Strip, Keep)),
            (both, (Keep, Keep), (Keep, Keep)),
            (both, (Omit, Omit), (Omit, Omit)),
            (Hint::new(Strip, Keep), (Strip, Strip), (Strip, Keep)),
            (Hint::new(Keep, Strip), (Omit, Omit), (Keep, Strip)),
            (Hint::new(Omit, Omit), (Keep, Strip), (Omit, Omit)),
            (Hint::new(Omit, Omit), (Strip, Keep), (Strip, Keep)),
            (Hint::new(Keep, Keep), (Omit, Omit), (Keep, Keep)),
        ] {
            let own = Hint::new(own.0, own.1);
            let becomes = Hint::new(becomes.0, becomes.1);
            assert_eq!(limited(asked, own), becomes, "{asked:?} of {own:?}");
        }
    }
}
