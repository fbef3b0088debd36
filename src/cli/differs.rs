//! A request that is not built as it was sent: what can be known of where the difference lies.
//!
//! The bytes that were sent are gone, only their number and digest are left. But an equal request
//! before proves every byte that both begin with, so the difference lies in what is new since.

use std::io;

use schemars::JsonSchema;
use serde::Serialize;
use undertext::explain::{self, Blamed, Kind, Moment, Sent};
use undertext::id::EntryId;
use undertext::replay::{Outcome, Rebuilt};
use undertext::transcript::Purpose;
use undertext::view::View;

use crate::cli::term::{Look, Term};
use crate::cli::{amount, named, requests, wrap};

/// The messages named, at most.
const NAMED: usize = 20;

/// Where a request may differ from what was sent.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Differs {
    /// The request.
    request: EntryId,
    /// The bytes that were sent.
    recorded: u64,
    /// The bytes that are built now.
    built: u64,
    /// The newest request before it that is built as it was sent; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    equal: Option<Sent>,
    /// So many bytes it begins with are those of that request, and proven by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    proven: Option<u64>,
    /// Whether what stands before all messages may be at fault.
    head: bool,
    /// The messages that are new or changed since that request: the difference lies in these, or in
    /// what is missing between them.
    messages: Vec<Blamed>,
}

/// What can be known; `None` if it is built as it was sent, or not at all.
pub(crate) fn differs(view: &View, rebuilt: &Rebuilt, equal: Option<EntryId>) -> Option<Differs> {
    let Outcome::Differs(body) = &rebuilt.outcome else {
        return None;
    };
    let built = body.bytes.len() as u64;
    let mut differs = Differs {
        request: rebuilt.request,
        recorded: rebuilt.recorded.bytes,
        built,
        equal: None,
        proven: None,
        head: true,
        messages: Vec::new(),
    };
    let is_round = matches!(rebuilt.purpose, Purpose::Round | Purpose::Repair { .. });
    let moment = |request| Moment::of(view.transcript(), request);
    if let Some(before) = equal.filter(|_| is_round).and_then(moment)
        && let Some(now) = moment(rebuilt.request)
        && let Some(compared) = explain::compare(&before, &now)
    {
        differs.equal = Some(before.sent);
        differs.proven = Some(compared.common.bytes);
        differs.head = compared.first.is_some_and(|first| first.message.is_none());
        let news = compared.differences.into_iter();
        let news = news.filter(|it| it.kind != Kind::Went);
        differs.messages = news.filter_map(|it| it.b).collect();
    }
    Some(differs)
}

impl Differs {
    /// Says it.
    pub(crate) fn print(&self, view: &View, term: &mut Term) -> io::Result<()> {
        let by = self.recorded.abs_diff(self.built);
        let by = match self.built.cmp(&self.recorded) {
            std::cmp::Ordering::Less => format!("{} fewer", amount::count(by)),
            std::cmp::Ordering::Greater => format!("{} more", amount::count(by)),
            std::cmp::Ordering::Equal => "as many, but others".to_owned(),
        };
        let (recorded, built) = (amount::of(self.recorded, "byte"), amount::count(self.built));
        let masks = &term.masks().clone();
        let mut say = |text: String| {
            let line = [(Look::Plain, format!("  {text}"))];
            wrap::print(&line, 6, term)
        };
        say(format!("{recorded} were sent, {built} are built: {by}"))?;
        let (Some(equal), Some(proven)) = (self.equal, self.proven) else {
            return say("no request before it proves a part of it".to_owned());
        };
        let equal = requests::name(equal);
        say(format!(
            "bytes 0 to {} are those of {equal}, which is equal",
            amount::count(proven)
        ))?;
        if self.head {
            say("instructions, tools or parameters changed since".to_owned())?;
        }
        if self.messages.is_empty() {
            return say(format!("no message is new since {equal}: one is missing"));
        }
        say(format!("the difference lies in what is new since {equal}:"))?;
        for message in self.messages.iter().take(NAMED) {
            let [from, to] = message.bytes.map(amount::count);
            let entry = message
                .entry
                .map_or_else(String::new, |entry| format!("e{entry} "));
            let what = named::source(view, masks, message.source);
            let number = message.message;
            say(format!(
                "  message {number}, {entry}{what}, bytes {from} to {to}"
            ))?;
        }
        if let Some(more) = self.messages.len().checked_sub(NAMED + 1) {
            say(format!(
                "  and {} more",
                amount::of(more as u64 + 1, "message")
            ))?;
        }
        Ok(())
    }
}
