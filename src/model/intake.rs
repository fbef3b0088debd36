//! An answer's bytes on their way to a reply: decoded, assembled, judged.
//!
//! It is the whole of what an answer means; `reading` adds the connection and its timers.

use crate::model::assemble::{Assembler, Bounds, End, Progress};
use crate::model::responses;
use crate::model::stream::{Decoder, Event, TooLong};
use crate::model::{Delta, Fault, Reply};
use crate::setup::{Api, Model};
use crate::transcript::FaultClass;

/// The end marker.
const MARKER: &str = "[DONE]";

/// An answer that is being taken in.
#[derive(Debug)]
pub(crate) struct Intake {
    decoder: Decoder,
    assembling: Assembling,
    bounds: Bounds,
}

/// What puts the events of an answer together.
#[derive(Debug)]
enum Assembling {
    Chat(Assembler),
    Responses(responses::Assembler),
}

impl Assembling {
    fn of(api: Api, bounds: Bounds) -> Self {
        match api {
            Api::Chat => Self::Chat(Assembler::within(bounds)),
            Api::Responses => Self::Responses(responses::Assembler::within(bounds)),
        }
    }

    fn take(&mut self, event: &Event, deltas: &mut Vec<Delta>) -> Progress {
        match self {
            Self::Chat(assembler) => assembler.take(event, deltas),
            Self::Responses(assembler) => assembler.take(event, deltas),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Chat(assembler) => assembler.is_over(),
            Self::Responses(assembler) => assembler.is_over(),
        }
    }

    fn is_finished(&self) -> bool {
        match self {
            Self::Chat(assembler) => assembler.is_finished(),
            Self::Responses(assembler) => assembler.is_finished(),
        }
    }

    fn end(self, end: End, bounds: Bounds, excerpt: &str) -> Result<Reply, Fault> {
        let (usage, judged) = match self {
            Self::Chat(assembler) => (assembler.usage(), assembler.end(end, bounds, excerpt)),
            Self::Responses(assembler) => (assembler.usage(), assembler.end(end, bounds, excerpt)),
        };
        // What was counted before a failure is paid for as well.
        let usage = usage.map(Box::new);
        judged.map_err(|fault| Fault { usage, ..fault })
    }
}

impl Intake {
    /// Nothing of an answer yet, which will be one of this protocol.
    pub(crate) fn new(api: Api, bounds: Bounds) -> Self {
        Self {
            decoder: Decoder::new(),
            assembling: Assembling::of(api, bounds),
            bounds,
        }
    }

    /// Takes the next bytes of the body and appends what is worth telling.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        deltas: &mut Vec<Delta>,
    ) -> Result<Progress, Fault> {
        let mut events = Vec::new();
        let pushed = self.decoder.push(bytes, &mut events);
        // What came before an event that is too long counts.
        let progress = self.assemble(&events, deltas);
        if let (Err(TooLong), false) = (pushed, self.is_over()) {
            let message = "an event of the reply is larger than it may be";
            return Err(Fault::new(FaultClass::Permanent, message));
        }
        // A plain document shows nothing before its end, but it grows.
        let grows = self.decoder.is_document() && !bytes.trim_ascii().is_empty();
        Ok(if grows { Progress::Made } else { progress })
    }

    /// Whether nothing that may still come matters.
    pub(crate) fn is_over(&self) -> bool {
        self.assembling.is_over()
    }

    /// Whether the server gave a finish reason.
    pub(crate) fn is_finished(&self) -> bool {
        self.assembling.is_finished()
    }

    /// Ends the body, appends what is worth telling, and judges what came. Nothing can be taken
    /// afterwards.
    pub(crate) fn end(&mut self, end: End, deltas: &mut Vec<Delta>) -> Result<Reply, Fault> {
        let mut events = Vec::new();
        self.decoder.end(&mut events);
        self.assemble(&events, deltas);
        if self.decoder.skipped() > 0 {
            tracing::debug!(lines = self.decoder.skipped(), "unusable lines in a reply");
        }
        // What stands behind an end marker may have been read or not.
        let excerpt = self.decoder.excerpt();
        let (excerpt, _) = match excerpt.find(MARKER) {
            Some(at) => excerpt.split_at(at + MARKER.len()),
            None => (excerpt.as_str(), ""),
        };
        let nothing = Assembling::Chat(Assembler::default());
        let assembling = std::mem::replace(&mut self.assembling, nothing);
        assembling.end(end, self.bounds, excerpt)
    }

    fn assemble(&mut self, events: &[Event], deltas: &mut Vec<Delta>) -> Progress {
        let mut progress = Progress::None;
        for event in events {
            if !self.is_over() && self.assembling.take(event, deltas) == Progress::Made {
                progress = Progress::Made;
            }
        }
        progress
    }
}

/// What an answer of this model becomes whose body arrives in these pieces and ends like this: what
/// [`Client`](crate::model::Client) does, without a connection. For tests and fuzzing.
#[doc(hidden)]
pub fn read_reply<'a>(
    model: &Model,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    end: End,
) -> Result<Reply, Fault> {
    let mut deltas = Vec::new();
    let mut intake = Intake::new(
        model.api,
        Bounds {
            maximum: model.parameters.max_output_tokens,
            window: model.window,
        },
    );
    for piece in pieces {
        intake.take(piece, &mut deltas)?;
        if intake.is_over() {
            return intake.end(End::Closed, &mut deltas);
        }
    }
    intake.end(end, &mut deltas)
}
