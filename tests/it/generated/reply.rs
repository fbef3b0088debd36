//! One reply: bytes as some server would send them, and the calls that may run.

use super::beside::{noise, other_choice, text, thoughts};
use super::call::{Call, Kind, Sent, Worth, quoted};
use super::close::{Close, usage};
use super::draw::Draw;
use super::layout::{self, Pieces};

/// The most calls of a reply that run.
pub(super) const MOST_CALLS: usize = 6;
/// A reply on the wire.
#[derive(Debug)]
pub(super) struct Wired {
    pub(super) bytes: Vec<u8>,
    /// Whether the connection is lost at the end, or else closed.
    pub(super) is_lost: bool,
    /// The calls that run, names and arguments, in this order.
    pub(super) runs: Vec<(&'static str, String)>,
    /// Whether the server says that it ended well.
    pub(super) is_whole: bool,
}

/// The reply of this seed.
pub(super) fn reply(seed: u64) -> Wired {
    let mut draw = Draw::new(seed);
    let draw = &mut draw;
    let flaws = draw.pick(&[0, 0, 0, 8, 4, 2]);
    let count = draw.pick(&[0, 1, 1, 1, 2, 2, 3, 4, MOST_CALLS + 2]);
    let calls: Vec<Call> = (0..count)
        .map(|_| {
            if flaws > 0 && draw.one_in(flaws) {
                Call::flawed(draw)
            } else {
                Call::sound(draw)
            }
        })
        .collect();
    let close = Close::draw(draw);
    if draw.one_in(6) {
        plain(&calls, close, draw)
    } else {
        streamed(&calls, close, draw)
    }
}

/// The calls that run of those that begin in this order.
fn runs(calls: &[Call], order: &[usize], close: Close) -> Vec<(&'static str, String)> {
    let malformed = calls.iter().any(|call| call.worth == Worth::Malformed);
    if malformed || !close.is_whole() {
        return Vec::new();
    }
    let first = order.iter().take(MOST_CALLS);
    let runs = first.filter_map(|place| match &calls[*place].worth {
        Worth::Runs(tool, arguments) => Some((*tool, arguments.clone())),
        Worth::Not | Worth::Malformed => None,
    });
    runs.collect()
}

/// A reply that is one document, as such or as the one event of a stream.
fn plain(calls: &[Call], close: Close, draw: &mut Draw) -> Wired {
    let items = layout::whole(calls, draw);
    let order: Vec<usize> = (0..calls.len()).collect();
    let word = match close {
        // A document has no marker.
        Close::Marker
        | Close::Full
        | Close::Refusal
        | Close::Error {
            after_the_word: true,
        }
        | Close::Middle => Some("tool_calls"),
        Close::Word(word) | Close::Words(word, _) => Some(word),
        Close::Nothing
        | Close::Error {
            after_the_word: false,
        } => None,
    };
    let close = match (close, word) {
        (Close::Words(..), Some(word)) => Close::Word(word),
        (close, _) => close,
    };
    let refusal = if close == Close::Refusal {
        ",\"refusal\":\"I will not.\""
    } else {
        ""
    };
    let message = format!(
        "{{\"role\":\"assistant\",\"content\":{}{},\"tool_calls\":[{}]{refusal}}}",
        quoted(&text(draw)),
        thoughts(draw),
        items.join(",")
    );
    let finish = word.map_or_else(|| "null".to_owned(), quoted);
    let mut document = format!(
        "{{\"id\":\"r\",\"object\":\"chat.completion\",\"choices\":[{{\"index\":0,\"message\":{message},\
         \"finish_reason\":{finish}}}{}],\"usage\":{}",
        if draw.one_in(8) {
            format!(",{}", other_choice("message"))
        } else {
            String::new()
        },
        usage(close)
    );
    if let Close::Error { .. } = close {
        document += ",\"error\":{\"message\":\"upstream failed\",\"code\":502}";
    }
    document.push('}');
    let mut bytes = document.into_bytes();
    if close == Close::Middle {
        bytes.truncate(1 + draw.below(bytes.len() - 1));
    } else if draw.one_in(3) {
        bytes.splice(..0, *b"data: ");
        bytes.extend(if close == Close::Nothing {
            &b"\n\n"[..]
        } else {
            b"\n\ndata: [DONE]\n\n"
        });
    }
    Wired {
        runs: runs(calls, &order, close),
        is_lost: draw.one_in(4),
        is_whole: close.is_whole(),
        bytes,
    }
}

/// A reply as a stream of events.
fn streamed(calls: &[Call], close: Close, draw: &mut Draw) -> Wired {
    let Pieces {
        items,
        order,
        is_confused,
    } = layout::pieces(calls, draw);
    let mut events = vec![delta("\"role\":\"assistant\",\"content\":\"\"")];
    for piece in text(draw).split_inclusive('\n') {
        events.push(delta(&format!("\"content\":{}", quoted(piece))));
    }
    let thoughts = thoughts(draw);
    if !thoughts.is_empty() {
        events.push(delta(&format!("\"content\":null{thoughts}")));
    }
    if close == Close::Refusal {
        events.push(delta("\"refusal\":\"I will not.\""));
    }
    let begin = events.len();
    let mut items = items.into_iter().peekable();
    while let Some(item) = items.next() {
        let mut array = item;
        while draw.one_in(4)
            && let Some(more) = items.next()
        {
            array = format!("{array},{more}");
        }
        events.push(delta(&format!("\"tool_calls\":[{array}]")));
        if draw.one_in(8) {
            events.push(noise(draw));
        }
    }
    if let [call] = calls
        && draw.one_in(8)
        && !call.is_nameless()
        && !matches!(call.kind, Kind::Custom | Kind::Other(_))
        && let Sent::Text(arguments) = &call.arguments
    {
        // The same call once more, as servers of old wrote it.
        let name = quoted(call.name.as_deref().unwrap_or_default());
        let arguments = quoted(arguments);
        events.push(delta(&format!(
            "\"function_call\":{{\"name\":{name},\"arguments\":{arguments}}}"
        )));
        if !is_confused && draw.one_in(2) {
            events.drain(begin..events.len() - 1);
        }
    }
    // An event of a call that cannot be read leaves a gap in what the model meant.
    let broken =
        (events.len() > begin && draw.one_in(24)).then(|| begin + draw.below(events.len() - begin));
    let is_gap = broken.is_some_and(|at| events[at].contains("\"function\""));
    if let Some(at) = broken.filter(|_| is_gap) {
        let event = &mut events[at];
        let mut end = event.len() / 2 + draw.below(event.len() / 2);
        while !event.is_char_boundary(end) {
            end -= 1;
        }
        event.truncate(end);
    }
    let mut runs = runs(calls, &order, close);
    if is_confused || is_gap {
        runs.clear();
    }
    let (bytes, is_lost) = frame(events, close, draw);
    Wired {
        bytes,
        is_lost,
        runs,
        is_whole: close.is_whole() && !is_gap,
    }
}

/// The events and the end as bytes, and whether the connection is lost then.
fn frame(mut events: Vec<String>, close: Close, draw: &mut Draw) -> (Vec<u8>, bool) {
    let finish = |word: &str| {
        format!("{{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{word}\"}}]}}")
    };
    let error = draw.pick(&[
        "{\"error\":{\"message\":\"busy\",\"type\":\"overloaded_error\"}}",
        "{\"error\":\"upstream failed\"}",
        "{\"choices\":[{\"index\":0,\"delta\":{},\"error\":{\"message\":\"m\"},\"finish_reason\":\"error\"}]}",
    ]);
    let counts = format!("{{\"choices\":[],\"usage\":{}}}", usage(close));
    let mut ends_at = None;
    match close {
        Close::Word(word) => events.push(finish(word)),
        Close::Words(first, second) => {
            events.push(finish(first));
            events.push(finish(second));
        }
        Close::Full | Close::Refusal => events.push(finish("tool_calls")),
        Close::Error { after_the_word } => {
            if after_the_word {
                events.push(finish("tool_calls"));
            }
            events.push(error.to_owned());
        }
        Close::Middle => {
            ends_at = Some(events.len());
            events.push(finish("tool_calls"));
        }
        Close::Marker => {}
        Close::Nothing => {
            if draw.one_in(2) {
                events.push(finish(""));
            }
        }
    }
    if close == Close::Full || draw.one_in(2) {
        events.push(counts);
    }
    let marked = close == Close::Marker
        || (close != Close::Nothing && close != Close::Middle && !draw.one_in(4));
    if marked {
        events.push("[DONE]".to_owned());
        if draw.one_in(4) {
            // What follows the end is not part of the reply.
            let late = "{\"index\":9,\"id\":\"late\",\"function\":{\"name\":\"Note\",\"arguments\":\"{\\\"text\\\":\\\"late\\\"}\"}}";
            events.push(delta(&format!("\"tool_calls\":[{late}]")));
        }
    }
    let end = draw.pick(&["\n", "\n", "\r\n", "\r"]);
    let field = draw.pick(&["data: ", "data: ", "data:", "data: data: "]);
    let mut bytes = if draw.one_in(16) {
        b"\xef\xbb\xbf".to_vec()
    } else {
        Vec::new()
    };
    for (place, event) in events.iter().enumerate() {
        if draw.one_in(10) {
            bytes.extend(
                draw.pick(&[
                    ": keep-alive",
                    "data:",
                    "event: message",
                    "id: 7",
                    "retry: 10",
                ])
                .as_bytes(),
            );
            bytes.extend(end.as_bytes());
            bytes.extend(if draw.one_in(2) { end.as_bytes() } else { b"" });
        }
        let begin = bytes.len();
        bytes.extend(format!("{field}{event}{end}{end}").bytes());
        if ends_at == Some(place) {
            // Anywhere before the last brace of the finish reason.
            let last = bytes[begin..].iter().rposition(|b| *b == b'}').unwrap();
            bytes.truncate(draw.below(begin + last + 1));
            return (bytes, draw.one_in(2));
        }
    }
    (bytes, draw.one_in(4))
}

/// An event with this in the delta of the first choice.
fn delta(members: &str) -> String {
    format!(
        "{{\"id\":\"r\",\"choices\":[{{\"index\":0,\"delta\":{{{members}}},\"finish_reason\":null}}]}}"
    )
}
