//! A request taken apart: its bytes, and where each message stands in them.

use std::ops::Range;

use crate::transcript::Purpose;
use crate::view::request::rendered;
use crate::view::{Reading, View};
use crate::wire::{Head, Wanted};

/// The bytes of a request, and its messages by their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anatomy<'a> {
    /// The whole body.
    pub bytes: Vec<u8>,
    /// Its messages, in order.
    pub messages: Vec<Placed<'a>>,
}

/// A message where it stands in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<'a> {
    /// The message, and what it comes from.
    pub reading: Reading<'a>,
    /// Its bytes, without the comma before them. Messages that a provider wants to be one have the
    /// same.
    pub at: Range<usize>,
}

impl View {
    /// A request made now for this purpose, taken apart; `None` where [`body`](Self::body) is.
    pub fn anatomy<'a>(&'a self, purpose: &'a Purpose) -> Option<Anatomy<'a>> {
        let setup = self.setup()?;
        let (model, wanted, readings) = match purpose {
            Purpose::Round => {
                let main = setup.wire.models.main.clone();
                (main, Wanted::Work, self.readings())
            }
            Purpose::Summary(_) | Purpose::Combine(_) | Purpose::Repair { .. } => {
                let (role, wanted, readings) = self.asked(purpose)?;
                (self.asked_model(role, wanted)?, wanted, readings)
            }
        };
        let head = Head {
            model: &model,
            wanted,
            ..Head::of(setup)
        };
        let messages = readings.iter().map(|reading| reading.message.clone());
        let (bytes, places) = rendered(&head, messages.collect());
        let messages = readings.into_iter().zip(places);
        Some(Anatomy {
            bytes,
            messages: messages
                .map(|(reading, at)| Placed { reading, at })
                .collect(),
        })
    }
}
