//! How much a summariser can read in one request.

use crate::id::{EntryId, Span};
use crate::meter::Chars;
use crate::transcript::turn::Round;
use crate::transcript::{Purpose, Summarize};
use crate::view::item::Kind;
use crate::view::{Sizes, View};
use crate::wire;

/// Room left for what a request says of itself: round numbers and parts.
const SPARE: u64 = 200;

impl View {
    /// The last entry of the ask's span that its model can read in one request with what comes
    /// before it; `None` if not even the first round fits.
    pub fn reach(&self, ask: &Summarize) -> Option<EntryId> {
        self.walk(ask, Some(1)).first().copied()
    }

    /// The number of requests that the ask's span takes.
    pub fn parts_needed(&self, ask: &Summarize) -> usize {
        self.walk(ask, None).len().max(1)
    }

    /// The ends of the parts that the ask's span is read in, at most so many. Looks at each entry
    /// once.
    fn walk(&self, ask: &Summarize, most: Option<usize>) -> Vec<EntryId> {
        let mut ends = Vec::new();
        let Some((setup, model)) = self
            .setup()
            .and_then(|setup| Some((setup, setup.wire.models.role(ask.model)?)))
        else {
            return ends;
        };
        let fits = Sizes::new(model, &setup.policy, 0, self.factor()).fits;
        let nothing = Summarize {
            span: Span::new(ask.span.from, EntryId::default()),
            ..ask.clone()
        };
        let around = self.asked_bytes(&Purpose::Summary(nothing));
        let mut empty = Chars::of(&around.unwrap_or_default());
        empty.all += SPARE;
        let clip = usize::try_from(ask.clip).unwrap_or(usize::MAX);
        let (mut read, mut end) = (empty, None);
        for (unit, last) in self.units(ask.span) {
            let mut bytes = Vec::new();
            for message in self.raw_messages(unit, clip) {
                wire::message(&mut bytes, &message, model);
                bytes.push(b',');
            }
            self.measured.add(bytes.len());
            let chars = Chars::of(&bytes);
            if self.tokens(read + chars) > fits {
                let Some(full) = end else { return ends };
                ends.push(full);
                if most.is_some_and(|most| ends.len() == most) {
                    return ends;
                }
                read = empty;
                if self.tokens(read + chars) > fits {
                    return ends;
                }
            }
            read += chars;
            end = Some(last);
        }
        ends.extend(end);
        ends
    }

    /// What cannot be parted: a message of the user, or a reply with its results; and its last entry.
    fn units(&self, span: Span) -> impl Iterator<Item = (Span, EntryId)> {
        self.items.within(span).filter_map(|index| {
            let item = self.items.get(index)?;
            let last = match &item.kind {
                Kind::User(_) => item.entry,
                Kind::Response { .. } => self
                    .rounds
                    .of_response(item.entry)
                    .and_then(Round::span)
                    .map_or(item.entry, |span| span.to),
            };
            Some((Span::new(item.entry, item.entry), last))
        })
    }
}
