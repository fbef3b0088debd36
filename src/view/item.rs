//! The items of the conversation, each with the layers that lie on it.
//!
//! An item is a user entry, or a response of a round together with its calls and their results. An
//! overlay is resolved, when it is taken in, to changes of single items; what it points at later
//! never comes under it.

use serde::{Deserialize, Serialize};

use crate::id::{CallId, EntryId, Span};
use crate::overlay::layers::{CallLayers, Cover, Opinion, Reads};
use crate::overlay::{Hide, Layer, Stub};
use crate::transcript::sequence::Sequence;

/// One item of the conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Item {
    /// The user entry or the response.
    pub(super) entry: EntryId,
    /// What it is.
    pub(super) kind: Kind,
}

/// What an item is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Kind {
    /// A user entry, with what hides each attachment.
    User(Vec<Cover>),
    /// A response.
    Response {
        /// What hides the whole round.
        hidden: Cover,
        /// What hides the reasoning.
        reasoning: Cover,
        /// Its calls.
        calls: Vec<CallState>,
    },
}

/// A call within an item.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CallState {
    /// The first result; without one the call is open.
    pub(super) result: Option<EntryId>,
    /// What lies on the call.
    pub(super) layers: CallLayers,
}

/// What an overlay changes on one item.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// An opinion on the call at this index.
    Call(usize, Opinion),
    /// The reasoning is hidden.
    Reasoning,
    /// The attachment at this index is hidden.
    Attachment(usize),
    /// The whole round is hidden.
    Round,
}

impl Item {
    /// Its calls; none for a user entry.
    pub(super) fn calls(&self) -> &[CallState] {
        match &self.kind {
            Kind::Response { calls, .. } => calls,
            Kind::User(_) => &[],
        }
    }

    /// The overlay that hides the whole round, if any.
    pub(super) fn hidden(&self) -> Option<EntryId> {
        match &self.kind {
            Kind::Response { hidden, .. } => hidden.newest(),
            Kind::User(_) => None,
        }
    }

    /// Whether the call at this index is left out whole while its round still reads.
    pub(super) fn hides_call(&self, index: usize) -> bool {
        let call = self.calls().get(index);
        call.is_some_and(|call| matches!(call.layers.result(), Reads::Hidden(_)))
    }

    fn lay(&mut self, overlay: EntryId, change: Change) {
        match (change, &mut self.kind) {
            (Change::Attachment(index), Kind::User(attachments)) => {
                if let Some(attachment) = attachments.get_mut(index) {
                    attachment.lay(overlay);
                }
            }
            (Change::Call(index, opinion), Kind::Response { calls, .. }) => {
                if let Some(call) = calls.get_mut(index) {
                    call.layers.lay(overlay, opinion);
                }
            }
            (Change::Reasoning, Kind::Response { reasoning, .. }) => reasoning.lay(overlay),
            (Change::Round, Kind::Response { hidden, .. }) => hidden.lay(overlay),
            (Change::Attachment(_), Kind::Response { .. })
            | (Change::Call(..) | Change::Reasoning | Change::Round, Kind::User(_)) => {}
        }
    }

    fn retract(&mut self, overlay: EntryId) {
        match &mut self.kind {
            Kind::User(attachments) => {
                for attachment in attachments {
                    attachment.retract(overlay);
                }
            }
            Kind::Response {
                hidden,
                reasoning,
                calls,
            } => {
                hidden.retract(overlay);
                reasoning.retract(overlay);
                for call in calls {
                    call.layers.retract(overlay);
                }
            }
        }
    }
}

/// All items, in the order of their entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Items(Sequence<Item>);

impl Items {
    /// These items.
    pub(super) fn of(items: Sequence<Item>) -> Self {
        Self(items)
    }

    /// All of them.
    pub(super) fn sequence(&self) -> &Sequence<Item> {
        &self.0
    }

    /// Appends an item and returns its index.
    pub(super) fn push(&mut self, entry: EntryId, kind: Kind) -> usize {
        self.0.push(Item { entry, kind });
        self.0.len() - 1
    }

    /// The item at an index.
    pub(super) fn get(&self, index: usize) -> Option<&Item> {
        self.0.get(index)
    }

    /// The newest item and its index.
    pub(super) fn newest(&self) -> Option<(usize, &Item)> {
        let index = self.0.len().checked_sub(1)?;
        Some((index, self.get(index)?))
    }

    /// The index of the item of an entry.
    pub(super) fn index(&self, entry: EntryId) -> Option<usize> {
        let index = self.0.partition_point(|item| item.entry < entry);
        self.0.get(index).filter(|item| item.entry == entry)?;
        Some(index)
    }

    /// The indices of the items whose entries lie in a span.
    pub(super) fn within(&self, span: Span) -> std::ops::Range<usize> {
        let from = self.0.partition_point(|item| item.entry < span.from);
        let to = self.0.partition_point(|item| item.entry <= span.to);
        from..to.max(from)
    }

    /// The item and index of a call that exists.
    pub(super) fn call(&self, call: CallId) -> Option<(usize, usize)> {
        let item = self.index(call.response)?;
        let index = call.index()?;
        self.0[item].calls().get(index).map(|_| (item, index))
    }

    /// Answers a call; `None` if it does not exist or is answered.
    pub(super) fn answer(&mut self, call: CallId, result: EntryId) -> Option<(usize, usize)> {
        let (item, index) = self.call(call)?;
        if self.0[item].calls()[index].result.is_some() {
            return None;
        }
        if let Kind::Response { calls, .. } = &mut self.0.get_mut(item)?.kind {
            calls[index].result = Some(result);
        }
        Some((item, index))
    }

    /// Lays a change on an item.
    pub(super) fn lay(&mut self, index: usize, overlay: EntryId, change: Change) {
        if let Some(item) = self.0.get_mut(index) {
            item.lay(overlay, change);
        }
    }

    /// Takes an overlay's opinions from an item.
    pub(super) fn retract(&mut self, index: usize, overlay: EntryId) {
        if let Some(item) = self.0.get_mut(index) {
            item.retract(overlay);
        }
    }

    /// What a layer changes, item by item. What does not exist is left out.
    pub(super) fn resolve(&self, layer: &Layer) -> Vec<(usize, Change)> {
        match layer {
            Layer::Stub(stub) => self.resolve_stub(stub),
            Layer::Hide(hide) => self.resolve_hide(hide),
            // Summaries cover ranges: bands keep them.
            Layer::Summary(_) => Vec::new(),
            Layer::Show(show) => {
                let calls = show.calls.iter().filter_map(|call| self.call(*call));
                calls
                    .map(|(item, index)| (item, Change::Call(index, Opinion::Show)))
                    .collect()
            }
        }
    }

    fn resolve_stub(&self, stub: &Stub) -> Vec<(usize, Change)> {
        let results = stub.results.iter().filter_map(|call| {
            let (item, index) = self.call(*call)?;
            self.0[item].calls()[index].result?;
            let by = stub.by.get(call).copied();
            Some((
                item,
                Change::Call(
                    index,
                    Opinion::StubResult {
                        form: stub.form,
                        by,
                    },
                ),
            ))
        });
        let arguments = stub.arguments.iter().filter_map(|call| {
            let (item, index) = self.call(*call)?;
            Some((item, Change::Call(index, Opinion::StubArguments)))
        });
        results.chain(arguments).collect()
    }

    fn resolve_hide(&self, hide: &Hide) -> Vec<(usize, Change)> {
        let calls = hide.calls.iter().filter_map(|call| {
            let (item, index) = self.call(*call)?;
            Some((item, Change::Call(index, Opinion::Hide)))
        });
        let reasoning = hide.reasoning.iter().filter_map(|response| {
            let item = self.index(*response)?;
            let is_response = matches!(self.0[item].kind, Kind::Response { .. });
            is_response.then_some((item, Change::Reasoning))
        });
        let attachments = hide.attachments.iter().filter_map(|(entry, place)| {
            let item = self.index(*entry)?;
            let index = usize::try_from(*place).ok()?.checked_sub(1)?;
            let Kind::User(attachments) = &self.0[item].kind else {
                return None;
            };
            attachments
                .get(index)
                .map(|_| (item, Change::Attachment(index)))
        });
        let rounds = hide.rounds.iter().flat_map(|span| {
            let responses = self
                .within(*span)
                .filter(|item| matches!(self.0[*item].kind, Kind::Response { .. }));
            responses.map(|item| (item, Change::Round))
        });
        calls
            .chain(reasoning)
            .chain(attachments)
            .chain(rounds)
            .collect()
    }
}
