//! A place in a run, as a person typed it.

use std::str::FromStr;

use undertext::address::{Address, ParseAddressError};
use undertext::id::{EntryId, Span};
use undertext::transcript::At;
use undertext::view::View;

use crate::cli::amount;
use crate::cli::exit::Failure;

/// An address with the text it was typed as, to be named by it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    typed: String,
    /// What was meant.
    pub(crate) address: Address,
}

impl FromStr for Place {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let address = text.parse()?;
        let typed = text.to_owned();
        Ok(Self { typed, address })
    }
}

impl Place {
    /// The entries there.
    pub(crate) fn span(&self, view: &View, now: At) -> Result<Span, Failure> {
        self.address
            .span(view, now)
            .ok_or_else(|| self.nothing(view))
    }

    /// The request there.
    pub(crate) fn request(&self, view: &View, now: At) -> Result<EntryId, Failure> {
        let request = self.address.request(view, now);
        request.ok_or_else(|| {
            if self.address.span(view, now).is_none() {
                return self.nothing(view);
            }
            let typed = &self.typed;
            Failure::usage(format!(
                "{typed} points at no request: none came after it; name an earlier place"
            ))
        })
    }

    /// Says that it points at nothing here.
    fn nothing(&self, view: &View) -> Failure {
        Failure::usage(format!(
            "{} points at nothing: the run has {}, {}, {}",
            self.typed,
            amount::entries(view.transcript().entries().len() as u64),
            amount::of(view.rounds().all().len() as u64, "round"),
            amount::of(view.rounds().turns().len() as u64, "turn")
        ))
    }
}
