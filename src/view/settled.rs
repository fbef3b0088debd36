//! When messages are rendered: as soon as they will not change any more, or once somebody asks.

use crate::view::View;
use crate::view::pieces::Part;
use crate::wire;

/// What is put off until [`View::catch_up`], because nobody asks for it before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Defers {
    /// Nothing.
    #[default]
    Nothing,
    /// Counting what grows old: no request needs it.
    Aging,
    /// That, and rendering messages: entries are only passed by.
    All,
}

impl View {
    /// Puts this off for the entries that follow.
    pub(crate) fn defer(&mut self, defers: Defers) {
        self.defers = defers;
    }

    /// Renders what will not change any more.
    pub(super) fn settle(&mut self, hash: bool) {
        let mut pieces = std::mem::take(&mut self.pieces);
        if let Some(model) = self.setup().map(|setup| &setup.wire.models.main) {
            let rendered = pieces.settle(|piece, out| {
                let open = match piece.part {
                    Part::Result(index) => self.is_open(piece.item, index),
                    Part::User
                    | Part::Assistant
                    | Part::Summary(_)
                    | Part::Carry(_)
                    | Part::Understood => false,
                };
                let message = if open { None } else { self.message(piece) };
                message
                    .map(|message| wire::message(out, &message, model))
                    .is_some()
            });
            self.work.rendered += rendered as u64;
            if hash {
                self.work.hashed += pieces.hash() as u64;
            }
        }
        self.pieces = pieces;
    }

    fn is_open(&self, item: usize, call: usize) -> bool {
        let call = self.items.get(item).and_then(|item| item.calls().get(call));
        call.is_some_and(|call| call.result.is_none())
    }
}
