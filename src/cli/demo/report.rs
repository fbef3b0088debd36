//! What the demo proves in the end: what was sent, what the overlays saved, and that every request
//! can be rebuilt.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use undertext::replay::Replay;
use undertext::transcript::{Entry, Event, Note, Purpose};
use undertext::view::View;

use crate::cli::amount;
use crate::cli::demo::fact;
use crate::cli::exit::Failure;
use crate::cli::term::{Look, Term};

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Requests for rounds.
    pub(crate) rounds: u64,
    /// Other requests: for summaries.
    pub(crate) summaries: u64,
    /// The requests whose rebuilt bytes are the ones that were sent.
    pub(crate) equal: u64,
    /// Tokens of all requests, summaries included, as `show` counts them.
    pub(crate) sent: u64,
    /// Tokens that the same rounds would have sent without overlays, as `lab` counts them.
    pub(crate) bare: u64,
    /// The first round whose request would not have fit the window without overlays.
    pub(crate) too_long: Option<u32>,
    /// The number of overlays by origin.
    pub(crate) overlays: BTreeMap<&'static str, u64>,
}

impl Report {
    /// The figures of the run that these entries are.
    pub(crate) fn of(entries: &[Arc<Entry>]) -> Self {
        let rebuilt = Replay::new(entries.iter().cloned());
        let equal = rebuilt.filter(undertext::replay::Rebuilt::is_equal).count();
        let mut report = Self {
            equal: equal as u64,
            ..Self::default()
        };
        let mut bare = View::default();
        let mut chars = 0;
        for entry in entries {
            match &entry.event {
                Event::Request(request) => {
                    if request.purpose == Purpose::Round {
                        report.rounds += 1;
                        let estimate = bare.estimate();
                        chars += estimate.chars;
                        let fits = bare
                            .sizes()
                            .is_none_or(|sizes| estimate.tokens <= sizes.fits);
                        if !fits && report.too_long.is_none() {
                            report.too_long = request.round;
                        }
                    } else {
                        report.summaries += 1;
                    }
                }
                Event::Overlay(laid) => {
                    *report.overlays.entry(laid.origin.word()).or_default() += 1;
                }
                Event::Run(_)
                | Event::Setup(_)
                | Event::User(_)
                | Event::Response(_)
                | Event::Started(_)
                | Event::Result(_)
                | Event::Retract(_)
                | Event::Pin(_)
                | Event::Unpin(_)
                | Event::Fault(_)
                | Event::Note(_)
                | Event::End(_)
                | Event::Unknown(_) => {}
            }
            bare.take(without_overlay(entry));
        }
        report.sent = bare.ledger().whole.input;
        report.bare = chars.div_ceil(4);
        report
    }

    /// Says it all.
    pub(crate) fn tell(&self, term: &mut Term) -> Result<(), Failure> {
        let overlays = self
            .overlays
            .iter()
            .map(|(origin, number)| format!("{number} {origin}"));
        let overlays: Vec<String> = overlays.collect();
        fact(term, "overlays", Look::Plain, &overlays.join(", "))?;
        let sent = format!(
            "{} tokens in {} and {}",
            amount::count(self.sent),
            amount::of(self.rounds, "round"),
            amount::of(self.summaries, "summary request"),
        );
        fact(term, "sent", Look::Plain, &sent)?;
        let mut bare = format!(
            "{} tokens, had there been no overlays",
            amount::count(self.bare)
        );
        if let Some(round) = self.too_long {
            write!(
                bare,
                "; no request from r{round} on would have fit the window"
            )
            .ok();
        }
        fact(term, "instead of", Look::Plain, &bare)?;
        let (look, verdict) = if self.is_proved() {
            (Look::Plain, "all digests equal")
        } else {
            (Look::Bad, "the others differ")
        };
        let proof = format!(
            "{} of {} requests rebuilt, {verdict}",
            self.equal,
            self.requests()
        );
        fact(term, "replayed", look, &proof)
    }

    /// All requests.
    pub(crate) fn requests(&self) -> u64 {
        self.rounds + self.summaries
    }

    /// Whether every request was rebuilt as it was sent.
    pub(crate) fn is_proved(&self) -> bool {
        self.equal == self.requests()
    }
}

/// The entry, or a remark that changes nothing in place of an overlay.
fn without_overlay(entry: &Arc<Entry>) -> Arc<Entry> {
    if !matches!(entry.event, Event::Overlay(_)) {
        return Arc::clone(entry);
    }
    let event = Event::Note(Note::Warning {
        text: String::new(),
    });
    Arc::new(Entry {
        id: entry.id,
        at: entry.at,
        event,
    })
}
