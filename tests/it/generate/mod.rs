//! Random transcripts, as a run would make them and as nobody would.
//!
//! A transcript is built from a few compact moves, so that a failing one shrinks to the moves that
//! matter. [`lifelike`] makes what a run could have recorded; [`wild`] makes anything that parses:
//! overlays that point at nothing, at later entries or at the wrong kind, spans that are inverted
//! or split rounds, duplicate results, replies to requests that never were.

mod pen;
mod stock;

use std::fmt;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use undertext::id::{CallId, EntryId};
use undertext::transcript::{Entry, jsonl};

use pen::Pen;

/// Entries; shown as the lines of their file.
#[derive(Clone)]
pub(crate) struct Written(pub(crate) Vec<Arc<Entry>>);

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.0 {
            let line = jsonl::encode(entry).map_err(|_| fmt::Error)?;
            write!(f, "\n{}", String::from_utf8_lossy(&line).trim_end())?;
        }
        Ok(())
    }
}

/// How many transcripts each law is tried on.
#[expect(
    clippy::disallowed_methods,
    reason = "how long to search is the caller's choice"
)]
pub(crate) fn cases() -> u32 {
    std::env::var("UNDERTEXT_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(256)
}

/// Transcripts as a run would make them.
pub(crate) fn lifelike() -> impl Strategy<Value = Written> {
    let moves = vec(tame(&Aim::true_to_life()), 0..20);
    (any::<u8>(), moves).prop_map(|(setup, moves)| {
        let mut pen = Pen::default();
        pen.begin(setup);
        for it in &moves {
            pen.play(it);
        }
        Written(pen.into_entries())
    })
}

/// Anything that parses.
pub(crate) fn wild() -> impl Strategy<Value = Written> {
    let moves = vec(
        prop_oneof![4 => tame(&Aim::anywhere()), 4 => loose()],
        0..30,
    );
    (any::<bool>(), any::<u8>(), moves).prop_map(|(begins, setup, moves)| {
        let mut pen = Pen::default();
        if begins {
            pen.begin(setup);
        }
        for it in &moves {
            pen.play(it);
        }
        Written(pen.into_entries())
    })
}

/// What a move points at: one of what is there and fits, or, if it strays, any id at all.
#[derive(Clone, Copy, Debug)]
struct Aim {
    pick: u16,
    strays: bool,
}

impl Aim {
    fn true_to_life() -> BoxedStrategy<Self> {
        any::<u16>()
            .prop_map(|pick| Self {
                pick,
                strays: false,
            })
            .boxed()
    }

    fn anywhere() -> BoxedStrategy<Self> {
        (any::<u16>(), proptest::bool::weighted(0.2))
            .prop_map(|(pick, strays)| Self { pick, strays })
            .boxed()
    }

    fn at<T: Copy>(self, candidates: &[T], astray: impl Fn(u16) -> T) -> Option<T> {
        if self.strays {
            return Some(astray(self.pick));
        }
        let place = usize::from(self.pick).checked_rem(candidates.len())?;
        candidates.get(place).copied()
    }

    fn entry(self, candidates: &[EntryId]) -> Option<EntryId> {
        self.at(candidates, |pick| match pick % 16 {
            14 => EntryId(0),
            15 => EntryId(u64::MAX),
            _ => EntryId(u64::from(pick / 16 % 60) + 1),
        })
    }

    fn call(self, candidates: &[CallId]) -> Option<CallId> {
        self.at(candidates, |pick| {
            CallId::new(
                EntryId(u64::from(pick % 60) + 1),
                u32::from(pick / 60 % 3) + 1,
            )
        })
    }
}

/// One thing that is written. Numbers choose from the lists in `stock`.
#[derive(Clone, Debug)]
enum Move {
    /// A request, its response, and all results.
    Round {
        asked_again: bool,
        said: Said,
        answers: Vec<(u8, u8, bool)>,
    },
    /// Someone speaks to the model.
    User {
        speaker: u8,
        text: u8,
        attachments: Vec<u8>,
    },
    /// A request for something else than a round, and its response.
    Aside {
        purpose: u8,
        text: u8,
        fails: bool,
    },
    /// An entry that reads as nothing.
    Silent(u8),
    /// Other settings.
    Setup(u8),
    Stub {
        form: u8,
        results: Vec<Aim>,
        arguments: Vec<Aim>,
        by: Vec<Aim>,
    },
    Hide {
        calls: Vec<Aim>,
        reasoning: Vec<Aim>,
        attachments: Vec<(Aim, u8)>,
        rounds: Vec<(Aim, Aim)>,
    },
    Summary {
        span: (Aim, Aim),
        text: u8,
        entries: Vec<Aim>,
        calls: Vec<Aim>,
        state: u8,
        survival: u8,
    },
    Show(Vec<Aim>),
    Retract(Vec<Aim>),
    /// A request alone.
    Request(u8),
    /// A response alone.
    Response(Aim, Said),
    /// A result alone.
    Result(Aim, u8, u8),
    /// Ids that are missing.
    Gap(u8),
    /// A line of a type, or of a shape, that nobody knows.
    Foreign(u8),
}

/// A model's words.
#[derive(Clone, Debug)]
struct Said {
    text: u8,
    reasoning: u8,
    calls: Vec<(u8, u8, u8)>,
    cut: bool,
}

fn said() -> impl Strategy<Value = Said> {
    let call = (
        any::<u8>(),
        any::<u8>(),
        prop_oneof![3 => Just(0), 1 => any::<u8>()],
    );
    (
        any::<u8>(),
        any::<u8>(),
        vec(call, 0..4),
        proptest::bool::weighted(0.1),
    )
        .prop_map(|(text, reasoning, calls, cut)| Said {
            text,
            reasoning,
            calls,
            cut,
        })
}

/// Moves that keep a transcript lifelike if their aims are.
fn tame(aim: &BoxedStrategy<Aim>) -> BoxedStrategy<Move> {
    let some = || vec(aim.clone(), 0..6);
    let two = || (aim.clone(), aim.clone());
    let answer = (any::<u8>(), any::<u8>(), any::<bool>());
    let round = (proptest::bool::weighted(0.1), said(), vec(answer, 4)).prop_map(
        |(asked_again, said, answers)| Move::Round {
            asked_again,
            said,
            answers,
        },
    );
    let user = (any::<u8>(), any::<u8>(), vec(any::<u8>(), 0..3)).prop_map(
        |(speaker, text, attachments)| Move::User {
            speaker,
            text,
            attachments,
        },
    );
    let aside =
        (any::<u8>(), any::<u8>(), any::<bool>()).prop_map(|(purpose, text, fails)| Move::Aside {
            purpose,
            text,
            fails,
        });
    let stub = (any::<u8>(), some(), some(), vec(aim.clone(), 0..6)).prop_map(
        |(form, results, arguments, by)| Move::Stub {
            form,
            results,
            arguments,
            by,
        },
    );
    let attachments = vec((aim.clone(), 0_u8..4), 0..3);
    let hide = (
        vec(aim.clone(), 0..3),
        some(),
        attachments,
        vec(two(), 0..2),
    )
        .prop_map(|(calls, reasoning, attachments, rounds)| Move::Hide {
            calls,
            reasoning,
            attachments,
            rounds,
        });
    let summary = (two(), any::<u8>(), some(), some(), any::<u8>(), any::<u8>()).prop_map(
        |(span, text, entries, calls, state, survival)| Move::Summary {
            span,
            text,
            entries,
            calls,
            state,
            survival,
        },
    );
    prop_oneof![
        10 => round,
        3 => user,
        1 => aside,
        2 => any::<u8>().prop_map(Move::Silent),
        1 => any::<u8>().prop_map(Move::Setup),
        4 => stub,
        3 => hide,
        2 => summary,
        2 => some().prop_map(Move::Show),
        2 => vec(aim.clone(), 1..3).prop_map(Move::Retract),
    ]
    .boxed()
}

/// Moves that no run makes.
fn loose() -> BoxedStrategy<Move> {
    let aim = Aim::anywhere;
    prop_oneof![
        3 => any::<u8>().prop_map(Move::Request),
        4 => (aim(), said()).prop_map(|(request, said)| Move::Response(request, said)),
        5 => (aim(), any::<u8>(), any::<u8>()).prop_map(|(at, how, what)| Move::Result(at, how, what)),
        1 => (1_u8..4).prop_map(Move::Gap),
        1 => any::<u8>().prop_map(Move::Foreign),
    ]
    .boxed()
}
