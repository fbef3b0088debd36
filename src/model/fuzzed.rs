//! What holds of whatever a server sends: each function takes one input of a fuzz target below
//! `fuzz/` and panics where a promise is broken.
//!
//! It stands here because the parts that it looks at are nobody's outside. Only fuzz builds and
//! tests have it; the tests replay the inputs that are kept. An input is one line that says how to
//! read it, then the bytes that a server sent.

#![expect(clippy::missing_panics_doc, reason = "they are there to panic")]

use std::sync::Arc;

use crate::exchange::{Ending, Facts, Reasoning, ResponseTime, Status, ToolResult};
use crate::id::{CallId, Digest, EntryId};
use crate::model::assemble::End;
use crate::model::classify::{self, Failure};
use crate::model::loose::{Object, Value};
use crate::model::stream::Decoder;
use crate::model::wait::Wait;
use crate::model::{Fault, Reply, read_reply};
use crate::record::fuzzed::first_line;
use crate::setup::{Api, Model, Setup};
use crate::transcript::{
    At, BodyDigest, Entry, Estimate, Event, FaultClass, Purpose, Request, Speaker, User, jsonl,
};
use crate::view::View;

/// The longest message of a fault in characters, with what our own words may stand around it.
const MESSAGE_MAX: usize = 1000;

/// The decoder gives the same events however the bytes are cut. The line: the seed of the cuts.
pub fn stream(input: &[u8]) {
    let (line, body) = first_line(input);
    let whole = decoded([body]);
    let cut = decoded(pieces(body, seed(&line)));
    assert_eq!(whole, cut);
    let (events, ..) = whole;
    for (_, data, damaged) in &events {
        assert!(!data.trim_ascii().is_empty(), "a blank event");
        let is_text = std::str::from_utf8(body).is_ok();
        assert!(!(*damaged && is_text), "text is no damage");
    }
    let held: usize = events.iter().map(|(_, data, _)| data.len()).sum();
    assert!(held <= 3 * body.len(), "events larger than what came");
}

type Decoded = (Vec<(String, String, bool)>, u64, bool, String);

fn decoded<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Decoded {
    let (mut decoder, mut events) = (Decoder::new(), Vec::new());
    for piece in pieces {
        let pushed = decoder.push(piece, &mut events);
        assert!(pushed.is_ok(), "a small body is not too long");
    }
    let is_document = decoder.is_document();
    decoder.end(&mut events);
    let events = events
        .into_iter()
        .map(|event| (event.name, event.data, event.damaged));
    let excerpt = decoder.excerpt();
    (events.collect(), decoder.skipped(), is_document, excerpt)
}

/// An answer becomes the same reply or fault however its bytes are cut; nothing is a reply that
/// nobody said is whole; and a reply can be recorded, read again and sent back. The line: the seed of
/// the cuts, how the body ends, the most tokens that were asked for, and the protocol.
pub fn reply(input: &[u8]) {
    let (line, body) = first_line(input);
    let mut words = line.split_whitespace().skip(1);
    let end = match words.next() {
        Some("lost") => End::Lost("lost".to_owned()),
        Some("stalled") => End::Stalled("stalled".to_owned()),
        _ => End::Closed,
    };
    let mut model = Model::named("fuzzed");
    model.window = Some(8192);
    model.parameters.max_output_tokens = words.next().and_then(|word| word.parse().ok());
    if words.next() == Some("responses") {
        model.api = Api::Responses;
    }
    let seed = seed(&line);
    let whole = read_reply(&model, [body], end.clone());
    assert_eq!(whole, read_reply(&model, pieces(body, seed), end.clone()));
    judge(&model, &whole, body);
    // A part of it: what came is what is known.
    let part = &body[..turn(seed) % (body.len() + 1)];
    judge(&model, &read_reply(&model, [part], end), part);
}

fn judge(model: &Model, result: &Result<Reply, Fault>, body: &[u8]) {
    match result {
        Err(fault) => sound(fault),
        Ok(reply) => {
            whole(model.api, reply, body);
            bounded(reply, body);
            lasting(model, reply);
        }
    }
}

/// A reply has ended by a word or by the marker, which the body holds.
fn whole(api: Api, reply: &Reply, body: &[u8]) {
    let holds = |words: &[&str]| {
        let text = String::from_utf8_lossy(body);
        words.iter().any(|word| text.contains(word))
    };
    let blank = reply
        .finish
        .as_ref()
        .is_some_and(|word| word.trim().is_empty());
    assert!(!blank, "an empty word is none");
    let said = match (api, &reply.finish) {
        (Api::Chat, Some(_)) => holds(&["finish_reason"]),
        // A filter may speak by an error.
        (Api::Chat, None) => holds(&["[DONE]"]) || reply.ending == Ending::Filtered,
        (Api::Responses, _) => holds(&["finish_reason", "[DONE]", "response.", "status"]),
    };
    // An escape may spell a name in another way.
    assert!(
        said || body.contains(&b'\\'),
        "nobody said that it is whole"
    );
}

/// A reply is not larger than what came, but for U+FFFD in the place of single bytes.
fn bounded(reply: &Reply, body: &[u8]) {
    let reasoning = reply.reasoning.iter().map(|block| match block {
        Reasoning::Text { text, .. } => text.len(),
        Reasoning::Raw { raw, .. } => raw.len(),
    });
    let calls = reply.calls.iter().map(|call| {
        call.name.len() + call.arguments.len() + call.extra.as_ref().map_or(0, String::len)
    });
    let size = reply.text.len() + reasoning.sum::<usize>() + calls.sum::<usize>();
    assert!(size <= 8 * body.len() + 64, "{size} of {}", body.len());
}

/// A reply is recorded as one line, reads as it was, and goes back in a body that is sound.
fn lasting(model: &Model, reply: &Reply) {
    let request = EntryId(3);
    let answered = EntryId(4);
    let response = reply
        .clone()
        .answers(request, ResponseTime { first: 1, all: 2 });
    let results = (1_u32..).zip(&reply.calls).map(|(place, _)| {
        Event::Result(ToolResult {
            call: CallId::new(answered, place),
            status: Status::Error,
            content: "not run".to_owned(),
            clipped: None,
            facts: Facts::default(),
            ms: None,
        })
    });
    let events = [
        Event::Setup(Box::new(Setup::new(model.clone(), "You work."))),
        Event::User(User {
            origin: Speaker::Task,
            text: "Work.".to_owned(),
            attachments: Vec::new(),
            clipped: None,
        }),
        Event::Request(Request {
            purpose: Purpose::Round,
            round: Some(1),
            setup: EntryId(1),
            renderer: crate::wire::RENDERER,
            body: BodyDigest {
                sha256: Digest::of(b""),
                bytes: 0,
            },
            estimate: Estimate::default(),
        }),
        Event::Response(response),
    ];
    let entries = (1..).zip(events.into_iter().chain(results));
    let read = entries.map(|(id, event)| {
        let entry = Entry {
            id: EntryId(id),
            at: At(0),
            event,
        };
        let line = jsonl::encode(&entry).unwrap_or_default();
        let (json, end) = line.split_at(line.len().saturating_sub(1));
        assert!(end == b"\n" && !json.contains(&b'\n'), "one line");
        if let Event::Response(said) = &entry.event {
            let read = jsonl::decode(json).map(|read| read.event);
            let same = matches!(&read, Ok(Event::Response(read)) if read == said);
            assert!(same, "{said:?} reads as {read:?}");
        }
        Arc::new(entry)
    });
    let body = View::of(read).body(&Purpose::Round).map(|body| body.bytes);
    let body = body.as_deref().map(std::str::from_utf8);
    assert!(matches!(body, Some(Ok(text)) if is_sound(text)), "{body:?}");
}

/// Whether a body is one JSON object, in which no member of ours stands twice.
fn is_sound(body: &str) -> bool {
    let once = |object: &Object<'_>| {
        let names = object.members().iter().map(|(name, _)| name);
        let names: std::collections::BTreeSet<_> = names.collect();
        names.len() == object.members().len()
    };
    Object::read(body).is_some_and(|body| {
        let mut messages = objects(&body, "messages");
        messages.extend(objects(&body, "input"));
        once(&body)
            && !messages.is_empty()
            && messages.iter().all(|message| {
                message.as_ref().is_some_and(|message| {
                    let calls = objects(message, "tool_calls");
                    once(message) && calls.iter().all(|call| call.as_ref().is_some_and(once))
                })
            })
    })
}

/// The objects in the array that is this member.
fn objects<'a>(object: &Object<'a>, name: &str) -> Vec<Option<Object<'a>>> {
    let items = object.get(name).and_then(Value::array).unwrap_or_default();
    items.into_iter().map(Value::object).collect()
}

/// A failure has one class that its status allows. The line: the status, `retry-after`,
/// `retry-after-ms`, the date, and whether the request was long, with `|` between them.
pub fn failure(input: &[u8]) {
    let (line, body) = first_line(input);
    let fields: Vec<&str> = line.split('|').collect();
    let field = |at: usize| fields.get(at).copied().unwrap_or_default();
    let given = |at: usize| Some(field(at)).filter(|text| !text.is_empty());
    let seconds = given(1).map(Wait::Seconds);
    let milliseconds = given(2).map(Wait::Milliseconds);
    let waits: Vec<Wait<'_>> = seconds.into_iter().chain(milliseconds).collect();
    let failure = Failure {
        status: field(0).trim().parse().ok(),
        waits: &waits,
        body: &String::from_utf8_lossy(body),
        is_long: field(4) == "long",
        now: crate::model::wait::moment(field(3)).unwrap_or(At(1_795_291_200_000)),
    };
    let fault = classify::fault(&failure);
    assert_eq!(fault, classify::fault(&failure));
    sound(&fault);
    assert!(failure.status.is_none() || fault.status == failure.status);
    let overflow = fault.class == FaultClass::Overflow;
    assert!(
        !(overflow && failure.status == Some(429)),
        "a throttle is no overflow"
    );
    // These say something of the connection, or of this side of it.
    assert!(!matches!(
        fault.class,
        FaultClass::Transport | FaultClass::Stall | FaultClass::Torn | FaultClass::Local
    ));
}

/// A fault can be shown and recorded, and names a wait only if there is another attempt or if a person
/// may want to know when a limit ends.
fn sound(fault: &Fault) {
    let chars = fault.message.chars().count();
    assert!(chars <= MESSAGE_MAX, "{fault:?}");
    assert!(!fault.message.chars().any(char::is_control), "{fault:?}");
    assert!(!fault.message.trim().is_empty(), "{fault:?}");
    assert!(
        fault.wait_ms.is_none() || fault.class.retried() || fault.class == FaultClass::Permanent,
        "{fault:?}"
    );
    assert!(fault.window.is_none() || fault.class == FaultClass::Overflow);
}

/// The number that a line begins with.
fn seed(line: &str) -> usize {
    let word = line.split_whitespace().next().unwrap_or_default();
    word.parse().unwrap_or_default()
}

/// The body in pieces: single bytes if the seed is zero, otherwise of up to sixteen.
fn pieces(mut body: &[u8], mut seed: usize) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while !body.is_empty() {
        let size = if seed == 0 {
            1
        } else {
            seed = turn(seed);
            (seed >> 3) % 16 + 1
        };
        let (piece, rest) = body.split_at(size.min(body.len()));
        pieces.push(piece);
        body = rest;
    }
    pieces
}

/// The number that follows, as random as it need be.
fn turn(seed: usize) -> usize {
    let mut next = seed.wrapping_mul(0x2545_f491).wrapping_add(0x9e37_79b9);
    next ^= next >> 13;
    next.wrapping_mul(5) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fuzzed::replay;

    #[test]
    fn what_fuzzing_kept_holds() {
        replay("stream", stream);
        replay("reply", reply);
        replay("failure", failure);
    }
}
