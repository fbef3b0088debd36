//! Whether a reply will do as a summary.
//!
//! A summary counts only if its reply was complete, not refused, not empty, not cut, and without calls.
//! Otherwise nothing changes, and a note says why.

use crate::compaction::summary::Reply;
use crate::compaction::{Cause, Plan, asked_summary, auto};
use crate::exchange::Ending;
use crate::transcript::Event;
use crate::view::View;

/// What becomes of the summary that was asked for last, once it is answered: it is laid, or a note
/// says why it cannot be. `None` if none is waiting.
pub fn verdict(view: &View) -> Option<Plan> {
    let (asked, ask) = asked_summary(view)?;
    let ledger = view.ledger();
    let request = asked.request;
    let settled = ledger.summary_failed == Some(request)
        || ledger.overlay.is_some_and(|overlay| overlay > request);
    if settled {
        return None;
    }
    let failed = |why: String| Some(Plan::Failed { request, why });
    let Some(response) = asked.response else {
        let (class, again) = asked.fault?;
        let message = asked
            .fault_entry
            .and_then(|entry| view.transcript().get(entry));
        let message = match message.map(|entry| &entry.event) {
            Some(Event::Fault(fault)) => fault.message.clone(),
            Some(_) | None => String::new(),
        };
        // With a time to ask again the request is not over yet.
        return if again.is_none() {
            failed(format!("{}: {message}", class.word()))
        } else {
            None
        };
    };
    let reply = view.response(response)?;
    let text = reply.text.trim();
    let why = match reply.ending {
        Ending::Cut => Some("cut"),
        Ending::Filtered => Some("filtered"),
        Ending::Refused => Some("refused"),
        Ending::Complete if !reply.calls.is_empty() => Some("it calls tools"),
        Ending::Complete if text.is_empty() => Some("empty"),
        Ending::Complete => None,
    };
    if let Some(why) = why {
        return failed(why.to_owned());
    }
    let sizes = view.sizes()?;
    let (length, most) = (view.text_tokens(text), sizes.summary * 2);
    if length > most {
        return failed(format!("too long: {length} of {most} tokens"));
    }
    let cause = Cause::of(view).unwrap_or(Cause::Auto);
    let laid = auto::with_summary(view, &cause, Reply { ask, text });
    laid.or_else(|| failed("it is not shorter than what it covers".to_owned()))
}
