//! The text of a summary that nobody wrote: the head of what it covers, of a given length.

use crate::exchange::Message;
use crate::transcript::{Purpose, Source};
use crate::view::View;

/// The longest part of one message that is taken, in characters.
const MESSAGE_CHARS: usize = 400;

/// A summary is at most this part of what it is made of.
const SHORTER: u64 = 4;

/// How long the summaries of a simulation are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Summaries {
    /// As long as the policy lets one be.
    #[default]
    Share,
    /// At most so many tokens.
    Tokens(u64),
    /// As they were recorded, in their order.
    Recorded,
}

/// The text that answers a request for a summary: at most so many tokens, or the policy's share.
pub(super) fn text(view: &View, purpose: &Purpose, most: Option<u64>) -> String {
    let share = view.sizes().map_or(1000, |sizes| sizes.summary);
    let mut tokens = most.unwrap_or(share).min(share);
    let mut pieces = Vec::new();
    let words = match purpose {
        Purpose::Summary(ask) => {
            let messages = view.raw_messages(ask.span, MESSAGE_CHARS);
            pieces.extend(messages.into_iter().map(|message| match message {
                Message::User { text }
                | Message::Assistant { text, .. }
                | Message::Tool { text, .. } => text.into_owned(),
            }));
            let covered = view.tokens_between(ask.span);
            tokens = tokens.min(covered / SHORTER);
            ask.words
        }
        Purpose::Combine(ask) => {
            let texts = ask.of.iter();
            let texts = texts.filter_map(|source: &Source| view.source_text(*source));
            pieces.extend(texts.map(str::to_owned));
            ask.words
        }
        Purpose::Round | Purpose::Repair { .. } => None,
    };
    // It is asked for words, of which four tokens make three.
    if let Some(words) = words {
        tokens = tokens.min(words * 4 / 3);
    }
    let most = usize::try_from(view.sizes().map_or(0, |sizes| sizes.as_chars(tokens)));
    let chars = pieces.iter().flat_map(|piece| piece.chars().chain([' ']));
    // Each of these characters is one in a body too.
    let plain = chars.map(|c| match c {
        '"' | '\\' => '\'',
        c if c.is_ascii_graphic() => c,
        _ => ' ',
    });
    let text: String = "Summary: "
        .chars()
        .chain(plain)
        .take(most.unwrap_or_default().max(40))
        .collect();
    text.trim_end().to_owned()
}
