//! The body of any request: a function of the entries and of what the request is for.
//!
//! A round's body is what the view holds, with its tail. A summary's body is made of raw entries,
//! never of what they read as, so that no summary is made of a stub.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use serde_json::json;

use crate::exchange::{Message, SentCall};
use crate::id::{CallId, Digest, EntryId, Span};
use crate::meter::Chars;
use crate::overlay::Layer;
use crate::setup::{Model, Role};
use crate::transcript::{BodyDigest, Combine, Estimate, Purpose, Source, Summarize};
use crate::view::item::Kind;
use crate::view::{Reading, Source as Origin, View};
use crate::wire::arrange::arranged;
use crate::wire::{self, Body, Head, TAIL, Wanted};
use crate::words;

/// Words that mark a line of a clipped result as worth keeping.
const ERROR_WORDS: [&str; 6] = ["error", "panic", "fail", "exception", "traceback", "denied"];

impl View {
    /// The body of a request made now for this purpose; `None` before there are settings, or if
    /// the purpose points at nothing.
    pub fn body(&self, purpose: &Purpose) -> Option<Body> {
        match purpose {
            Purpose::Round => self.round_body(),
            Purpose::Summary(_) | Purpose::Combine(_) | Purpose::Repair { .. } => {
                self.asked_bytes(purpose).map(Body::new)
            }
        }
    }

    /// The bytes of the next round's request as far as its messages will not change by themselves,
    /// without its end. Where neighbours are merged into one message they are not what is sent.
    pub fn settled(&self) -> &[u8] {
        self.pieces.bytes()
    }

    /// The digest and length of a request made now for this purpose, without a copy of its bytes where
    /// they are held; `None` where [`body`](Self::body) is.
    pub fn body_digest(&self, purpose: &Purpose) -> Option<BodyDigest> {
        let merges = || {
            self.setup()
                .map(|it| it.wire.models.main.profile.messages.merges())
        };
        if *purpose != Purpose::Round {
            let bytes = self.asked_bytes(purpose)?;
            return Some(BodyDigest {
                sha256: Digest::of(&bytes),
                bytes: bytes.len() as u64,
            });
        }
        let is_settled = self.pieces.settled() == self.pieces.list().len();
        if !is_settled || merges()? {
            return self.body(purpose).map(|body| body.digest());
        }
        let (settled, digest) = (self.pieces.bytes(), self.pieces.digest());
        Some(BodyDigest {
            sha256: digest.finish(settled, TAIL),
            bytes: (settled.len() + TAIL.len()) as u64,
        })
    }

    /// The estimate of a request made now for this purpose.
    pub fn estimate_of(&self, purpose: &Purpose) -> Estimate {
        match purpose {
            Purpose::Round => self.estimate(),
            Purpose::Summary(_) | Purpose::Combine(_) | Purpose::Repair { .. } => {
                self.estimate_bytes(&self.asked_bytes(purpose).unwrap_or_default())
            }
        }
    }

    /// The estimate of a body.
    pub fn estimate_bytes(&self, body: &[u8]) -> Estimate {
        let policy = self.policy();
        let rule = policy
            .map(|policy| policy.compaction.estimate)
            .unwrap_or_default();
        Chars::of(body).estimate(rule, self.factor())
    }

    /// The bytes of a request that is not for a round.
    pub(super) fn asked_bytes(&self, purpose: &Purpose) -> Option<Vec<u8>> {
        let (role, wanted, readings) = self.asked(purpose)?;
        let setup = self.setup()?;
        let model = self.asked_model(role, wanted)?;
        let head = Head {
            model: &model,
            wanted,
            ..Head::of(setup)
        };
        let messages = readings.into_iter().map(|reading| reading.message);
        let (bytes, _) = rendered(&head, messages.collect());
        self.measured.add(bytes.len());
        Some(bytes)
    }

    /// Whom a request that is not for a round asks, what for, and what it reads.
    pub(super) fn asked<'a>(
        &'a self,
        purpose: &'a Purpose,
    ) -> Option<(Role, Wanted, Vec<Reading<'a>>)> {
        match purpose {
            Purpose::Round => None,
            Purpose::Summary(ask) => Some((ask.model, Wanted::Text, self.summary_readings(ask))),
            Purpose::Combine(ask) => Some((ask.model, Wanted::Text, self.combine_readings(ask))),
            Purpose::Repair { response, error } => {
                let mut readings = self.readings();
                // The newest answer is among the messages already.
                let newest = self.rounds.last().and_then(|round| round.response);
                let reads = newest.is_some_and(|newest| self.corrected(newest) == *response);
                if !reads && self.rounds.of_response(*response).is_none() {
                    let text = Cow::Borrowed(self.response(*response)?.text.as_str());
                    let (reasoning, calls) = (Cow::Borrowed(&[][..]), Vec::new());
                    let message = Message::Assistant {
                        text,
                        reasoning,
                        calls,
                        extra: None,
                    };
                    readings.push(Reading::raw(message, Origin::Entry(*response)));
                }
                let text = Cow::Borrowed(error.as_str());
                readings.push(Reading::raw(Message::User { text }, Origin::Asked));
                Some((Role::Main, Wanted::Answer, readings))
            }
        }
    }

    fn round_body(&self) -> Option<Body> {
        let setup = self.setup()?;
        let model = &setup.wire.models.main;
        if model.profile.messages.merges() {
            return Some(Body::new(rendered(&Head::of(setup), self.messages()).0));
        }
        let settled = self.pieces.bytes();
        if self.pieces.settled() == self.pieces.list().len() {
            let sha256 = self.pieces.digest().finish(settled, TAIL);
            let bytes = self.pieces.with_tail().into();
            return Some(Body { bytes, sha256 });
        }
        let mut bytes = settled.to_vec();
        for piece in &self.pieces.list()[self.pieces.settled()..] {
            if let Some(message) = self.message(piece) {
                push(&mut bytes, |out| wire::message(out, &message, model));
            }
        }
        bytes.extend_from_slice(TAIL);
        Some(Body::new(bytes))
    }

    /// The model that is asked for a text, with the parameters for that: the round's own
    /// instructions and tools stand before it, with no permission to call them.
    pub(super) fn asked_model(&self, role: Role, wanted: Wanted) -> Option<Model> {
        let setup = self.setup()?;
        let mut model = setup.wire.models.role(role)?.clone();
        // An answer may be as long as any other reply.
        let is_short = wanted != Wanted::Answer;
        if is_short && (role != Role::Main || model.parameters.max_output_tokens.is_some()) {
            let most = setup.policy.compaction.summary.max_tokens;
            let most = model.window.map_or(most, |window| most.min(window / 8));
            let asked = model.parameters.max_output_tokens;
            model.parameters.max_output_tokens = Some(asked.map_or(most, |asked| asked.min(most)));
        }
        Some(model)
    }

    /// The characters of the next round's request where neighbours may become one message, so that
    /// the sum of all messages is not what is sent.
    pub(super) fn merged_chars(&self) -> Option<Chars> {
        let setup = self.setup()?;
        let merges = setup.wire.models.main.profile.messages.merges();
        merges.then(|| Chars::of(&rendered(&Head::of(setup), self.messages()).0))
    }

    fn summary_readings(&self, ask: &Summarize) -> Vec<Reading<'_>> {
        let clip = usize::try_from(ask.clip).unwrap_or(usize::MAX);
        let mut readings = Vec::new();
        // The task is not in the span; without it nobody could say what matters.
        if let Some(task) = self.working.task.filter(|task| !ask.span.contains(*task)) {
            readings.extend(self.raw_user(task));
        }
        readings.extend(self.raw_readings(ask.span, clip));
        let text = words::summarize(
            self.round_numbers(ask.span),
            ask.part,
            ask.words.unwrap_or_else(|| self.summary_words()),
            ask.focus.as_deref(),
            &ask.keep,
            self.summary_instructions(),
        );
        let text = Cow::Owned(text);
        readings.push(Reading::raw(Message::User { text }, Origin::Asked));
        readings
    }

    fn combine_readings(&self, ask: &Combine) -> Vec<Reading<'_>> {
        let texts: Vec<&str> = ask
            .of
            .iter()
            .filter_map(|source| self.source_text(*source))
            .collect();
        let mut text = words::combine(
            texts.len(),
            ask.words.unwrap_or_else(|| self.summary_words()),
            ask.focus.as_deref(),
            &ask.keep,
            self.summary_instructions(),
        );
        for (place, part) in texts.iter().enumerate() {
            write!(
                text,
                "\n\n{}",
                words::text_to_combine(place + 1, texts.len(), part)
            )
            .ok();
        }
        let text = Cow::Owned(text);
        vec![Reading::raw(Message::User { text }, Origin::Asked)]
    }

    /// The text that a combining request takes from an entry.
    pub fn source_text(&self, source: Source) -> Option<&str> {
        match source {
            Source::Response(entry) => Some(&self.response(entry)?.text),
            Source::Overlay(entry) => {
                let Layer::Summary(summary) = &self.overlay(entry)?.layer else {
                    return None;
                };
                Some(&summary.text)
            }
        }
    }

    /// What the settings say about every summary.
    fn summary_instructions(&self) -> Option<&str> {
        let summary = &self.policy()?.compaction.summary;
        summary.instructions.as_deref()
    }

    /// The words that a summary may have: three quarters of its share of tokens.
    fn summary_words(&self) -> u64 {
        self.sizes()
            .map_or(1000, |sizes| (sizes.summary * 3 / 4).max(50))
    }

    /// The first and the last round that begin in a span.
    pub fn round_numbers(&self, span: Span) -> Option<(u32, u32)> {
        let rounds = self.rounds.within(span);
        Some((rounds.first()?.number, rounds.last()?.number))
    }

    fn raw_user(&self, entry: EntryId) -> Option<Reading<'_>> {
        let user = self.user(entry)?;
        let mut text = user.text.clone();
        for attachment in &user.attachments {
            text.push_str("\n\n");
            text.push_str(&words::attachment(
                &attachment.name,
                &attachment.media,
                &attachment.text,
            ));
        }
        if text.is_empty() {
            return None;
        }
        let text = Cow::Owned(text);
        Some(Reading::raw(Message::User { text }, Origin::Entry(entry)))
    }

    /// The raw messages of a span, without reasoning, long results and arguments clipped.
    pub fn raw_messages(&self, span: Span, clip: usize) -> Vec<Message<'_>> {
        let readings = self.raw_readings(span, clip).into_iter();
        readings.map(|reading| reading.message).collect()
    }

    fn raw_readings(&self, span: Span, clip: usize) -> Vec<Reading<'_>> {
        let mut readings = Vec::new();
        for index in self.items.within(span) {
            let Some(item) = self.items.get(index) else {
                continue;
            };
            let Kind::Response { calls, .. } = &item.kind else {
                readings.extend(self.raw_user(item.entry));
                continue;
            };
            let Some(response) = self.response(self.corrected(item.entry)) else {
                continue;
            };
            if response.text.is_empty() && calls.is_empty() {
                continue;
            }
            let ids = (1..).map(|place| CallId::new(item.entry, place));
            let ids: Vec<CallId> = ids.take(calls.len()).collect();
            let sent = ids.iter().zip(&response.calls).map(|(id, call)| SentCall {
                id: *id,
                name: Cow::Borrowed(&call.name),
                arguments: clipped_arguments(&call.arguments, clip),
                extra: None,
            });
            let message = Message::Assistant {
                text: Cow::Borrowed(&response.text),
                reasoning: Cow::Borrowed(&[]),
                calls: sent.collect(),
                extra: None,
            };
            readings.push(Reading::raw(message, Origin::Entry(item.entry)));
            for (id, call) in ids.iter().zip(calls) {
                let result = call.result.and_then(|result| self.result(result));
                let text = result.map_or(Cow::Borrowed(words::INTERRUPTED), |result| {
                    clipped(&result.content, clip)
                });
                let message = Message::Tool { call: *id, text };
                readings.push(Reading::raw(message, Origin::Result(*id)));
            }
        }
        readings
    }
}

/// A body of these messages, as the model wants them to follow one another, and where each of them
/// stands in it: neighbours that became one stand in the same place.
pub(super) fn rendered(
    head: &Head<'_>,
    messages: Vec<Message<'_>>,
) -> (Vec<u8>, Vec<Range<usize>>) {
    let mut bytes = head.bytes();
    let (messages, places) = arranged(messages, &head.model.profile.messages);
    let mut ranges = Vec::with_capacity(messages.len());
    for message in messages {
        let start = bytes.len() + usize::from(bytes.last() != Some(&b'['));
        push(&mut bytes, |out| wire::message(out, &message, head.model));
        ranges.push(start..bytes.len());
    }
    bytes.extend_from_slice(TAIL);
    let of = |place: usize| ranges.get(place).cloned().unwrap_or_default();
    let ranges = places.into_iter().map(of).collect();
    (bytes, ranges)
}

/// Appends a message to a body, with a comma before it unless it is the first.
fn push(bytes: &mut Vec<u8>, message: impl FnOnce(&mut Vec<u8>)) {
    if bytes.last() != Some(&b'[') {
        bytes.push(b',');
    }
    message(bytes);
}

/// Arguments for a summariser: the exact text, or an object that holds a clipped one.
fn clipped_arguments(arguments: &str, clip: usize) -> Cow<'_, str> {
    match clipped(arguments, clip) {
        Cow::Borrowed(whole) => Cow::Borrowed(whole),
        Cow::Owned(part) => Cow::Owned(json!({ "clipped": part }).to_string()),
    }
}

/// A long text for a summariser: its head, lines that look like errors, and its tail.
fn clipped(text: &str, clip: usize) -> Cow<'_, str> {
    // Bytes are never fewer than characters, so short texts need not be counted.
    if text.len() <= clip {
        return Cow::Borrowed(text);
    }
    let chars = count(text);
    if chars <= clip {
        return Cow::Borrowed(text);
    }
    let (head_chars, tail_chars) = (clip / 2, clip / 4);
    let head_end = text
        .char_indices()
        .nth(head_chars)
        .map_or(text.len(), |(at, _)| at);
    // Counted from the end, which is nearer.
    let tail_start = match tail_chars.checked_sub(1) {
        Some(last) => text
            .char_indices()
            .nth_back(last)
            .map_or(text.len(), |(at, _)| at),
        None => text.len(),
    };
    let middle = &text[head_end..tail_start];
    let mut kept = String::new();
    // Most texts have none of the words, which one look at the whole says.
    let lines = if looks_like_error(middle) { middle } else { "" }.lines();
    for line in lines.filter(|line| looks_like_error(line)) {
        if count(&kept) + count(line) >= clip / 4 {
            break;
        }
        kept.push('\n');
        kept.push_str(line);
    }
    let left_out = chars - head_chars - tail_chars - count(&kept);
    let mark = words::clipped_for_summary(left_out);
    Cow::Owned(format!(
        "{}{kept}{mark}{}",
        &text[..head_end],
        &text[tail_start..]
    ))
}

/// The number of characters.
fn count(text: &str) -> usize {
    usize::try_from(Chars::of(text.as_bytes()).all).unwrap_or(usize::MAX)
}

/// Whether a text has one of the words in it, in whatever case.
fn looks_like_error(text: &str) -> bool {
    let text = text.to_lowercase();
    ERROR_WORDS.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_looks_like_an_error_wherever_a_word_stands_in_it_and_however_it_is_written() {
        for word in ERROR_WORDS {
            for (before, behind) in [("", ""), ("x", "s"), ("e", ":"), ("ö ", ""), ("pad", "n ")] {
                let mut upper = true;
                let mixed: String = word
                    .chars()
                    .map(|char| {
                        upper = !upper;
                        if upper {
                            char.to_ascii_uppercase()
                        } else {
                            char
                        }
                    })
                    .collect();
                for spelled in [word, &word.to_uppercase(), &mixed] {
                    let line = format!("{before}{spelled}{behind}");
                    assert!(looks_like_error(&line), "{line}");
                }
                let cut = format!("{before}{}", &word[..word.len() - 1]);
                assert!(!looks_like_error(&cut), "{cut}");
            }
        }
        // The sign of a kelvin is a letter, too.
        assert!(looks_like_error("tracebac\u{212a}"));
        assert!(!looks_like_error("no er ror, tra ceback: @eny"));
    }

    #[test]
    fn a_clipped_text_keeps_its_ends_and_lines_that_look_like_errors() {
        let check = |text: &str, clip: usize, expected: &str| {
            assert_eq!(clipped(text, clip), expected, "{text:?} {clip}");
        };
        let text = "äöü 1\n".repeat(4) + "ERROR ß\n" + &"äöü 2\n".repeat(4);
        let chars = text.chars().count();
        check(&text, chars, &text);
        let mark = words::clipped_for_summary;
        let head = "äöü 1\n".repeat(3) + "äö";
        let kept = format!("{head}\nERROR ß{}ü 2\näöü 2\n", mark(chars - 20 - 8 - 10));
        check(&text, 40, &kept);
        check(&text, 3, &format!("ä{}", mark(chars - 1)));
        check(&text, 0, &mark(chars));
    }
}
