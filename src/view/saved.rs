//! A view as an index keeps it: what was folded, and where the entries lie that it let go.
//!
//! Nothing that can be had from the entries is kept twice: messages are rendered again, and what is
//! held is read again from where it lies. What grows with the run is kept in blocks, which stay packed
//! until they are looked at.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::id::EntryId;
use crate::transcript::sequence::{NotABlock, Sequence};
use crate::transcript::shelf::{Lost, Shelf};
use crate::transcript::turn::{Round, Rounds};
use crate::transcript::{Begin, Slot, Transcript};
use crate::view::View;
use crate::view::aging::Aging;
use crate::view::bands::Bands;
use crate::view::held::Hold;
use crate::view::item::{Item, Items};
use crate::view::ledger::Ledger;
use crate::view::newest::{Known, Newest};
use crate::view::open::Working;
use crate::view::pieces::{Part, Piece, Pieces};
use crate::view::regret::Regret;
use crate::view::sought::Sought;
use crate::wire::Head;

/// The number of a view's long lists.
pub(crate) const LISTS: usize = 4;

/// What a view is made of besides its long lists.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    begins: Vec<Begin>,
    rounds: Rounds,
    setups: Vec<EntryId>,
    corrections: BTreeMap<EntryId, EntryId>,
    open: BTreeSet<usize>,
    bands: Bands,
    laid: BTreeSet<EntryId>,
    pieces: Vec<(usize, Part)>,
    pins: BTreeMap<EntryId, bool>,
    working: Working,
    ledger: Ledger,
    sought: Sought,
    aging: Aging,
    regret: Regret,
}

/// A view that was kept, as it is read again, list by list.
#[derive(Debug)]
pub(crate) struct Saved {
    state: State,
    slots: Sequence<Slot>,
    rounds: Sequence<Round>,
    items: Sequence<Item>,
    newest: Sequence<Known>,
}

/// A view cannot be made of what was kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SavedError {
    /// The bytes are not those of a view.
    #[error("not a view that was kept")]
    State(#[from] postcard::Error),
    /// A block is none.
    #[error(transparent)]
    Block(#[from] NotABlock),
    /// An entry that it holds is not where it lay.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// Blocks of a long list, one after the other.
pub(crate) type Blocks<'a> =
    Box<dyn ExactSizeIterator<Item = Result<Cow<'a, [u8]>, postcard::Error>> + 'a>;

impl View {
    /// What keeps this view besides its lists, as bytes.
    pub(crate) fn save(&self) -> Result<Vec<u8>, postcard::Error> {
        let (begins, _) = self.transcript.places();
        let pieces = self.pieces.list().iter();
        postcard::to_allocvec(&State {
            begins: begins.to_vec(),
            rounds: self.rounds.clone(),
            setups: self.setups.clone(),
            corrections: self.corrections.clone(),
            open: self.open.clone(),
            bands: self.bands.clone(),
            laid: self.laid.clone(),
            pieces: pieces.map(|piece| (piece.item, piece.part)).collect(),
            pins: self.pins.clone(),
            working: self.working.clone(),
            ledger: self.ledger.clone(),
            sought: self.sought.clone(),
            aging: self.aging.clone(),
            regret: self.regret.clone(),
        })
    }

    /// Hands the blocks of each of its [`LISTS`] lists over, in their order.
    pub(crate) fn save_lists<E>(
        &self,
        mut keep: impl FnMut(Blocks<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let newest = self.regret.newest.sorted();
        keep(Box::new(self.transcript.places().1.pack()))?;
        keep(Box::new(self.rounds.sequence().pack()))?;
        keep(Box::new(self.items.sequence().pack()))?;
        keep(Box::new(newest.pack()))
    }

    /// The view that was kept, whose entries this shelf reads again.
    pub(crate) fn restore(
        saved: Saved,
        shelf: impl Shelf + 'static,
        hold: Hold,
    ) -> Result<Self, SavedError> {
        let state = saved.state;
        let mut view = Self {
            transcript: Transcript::lying(shelf, state.begins, saved.slots),
            rounds: state.rounds.with(saved.rounds),
            setups: state.setups,
            items: Items::of(saved.items),
            corrections: state.corrections,
            open: state.open,
            bands: state.bands,
            laid: state.laid,
            pins: state.pins,
            working: state.working,
            ledger: state.ledger,
            sought: state.sought,
            aging: state.aging,
            regret: state.regret.with(Newest::of(saved.newest)),
            hold,
            ..Self::default()
        };
        view.hold_again();
        let mut pieces = Pieces::default();
        if let Some(head) = view.setup().map(Head::of) {
            pieces.set_head(head.bytes(), head.has_message(), true);
        }
        pieces.append(
            state
                .pieces
                .into_iter()
                .map(|(item, part)| Piece::new(item, part)),
        );
        view.pieces = pieces;
        view.hold_read();
        view.settle(true);
        match view.transcript.lost() {
            Some(lost) => Err(SavedError::Lost(lost.clone())),
            None => Ok(view),
        }
    }
}

impl Saved {
    /// What was kept besides the lists, which are empty yet.
    pub(crate) fn of(state: &[u8]) -> Result<Self, SavedError> {
        Ok(Self {
            state: postcard::from_bytes(state)?,
            slots: Sequence::default(),
            rounds: Sequence::default(),
            items: Sequence::default(),
            newest: Sequence::default(),
        })
    }

    /// Takes in the next block of a list; there is no list from [`LISTS`] on.
    pub(crate) fn take(&mut self, list: usize, block: Box<[u8]>) -> Result<(), SavedError> {
        match list {
            0 => self.slots.push_packed(block)?,
            1 => self.rounds.push_packed(block)?,
            2 => self.items.push_packed(block)?,
            3 => self.newest.push_packed(block)?,
            _ => return Err(NotABlock.into()),
        }
        Ok(())
    }
}
