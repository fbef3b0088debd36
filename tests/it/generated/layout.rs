//! How a server cuts calls into pieces: with which ids and indexes, in which order.

use super::call::{Call, Kind, Sent, quoted};
use super::draw::Draw;

/// The pieces of the calls of one reply, each an item of `tool_calls`, in the order sent.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pub(super) items: Vec<String>,
    /// The calls in the order in which they begin.
    pub(super) order: Vec<usize>,
    /// Whether the pieces contradict each other: nothing may run.
    pub(super) is_confused: bool,
}

/// Where ids stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ids {
    Always,
    First,
    Late,
    /// They are missing, or say nothing.
    None(&'static str),
    /// All calls have the same.
    Same,
    /// One call changes its id on the way.
    Changed(usize),
}

/// What stands as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Indexes {
    /// A number of its own for each call.
    Own(&'static [&'static str]),
    Zero,
    None(&'static str),
}

const OWN: [&[&str]; 5] = [
    &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"],
    &["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"],
    &["7", "3", "30", "0", "5", "4", "12", "1", "9", "2", "8"],
    &[
        "0.0", "1.0", "2.0", "3.0", "4.0", "5.0", "6.0", "7.0", "8.0", "9.0", "10.0",
    ],
    &[
        "\"0\"", "\"1\"", "\"2\"", "\"3\"", "\"4\"", "\"5\"", "\"6\"", "\"7\"", "\"8\"", "\"9\"",
        "\"10\"",
    ],
];
const NOTHING: [&str; 2] = ["", "null"];

/// What one reply's pieces have in common.
struct Layout {
    ids: Ids,
    indexes: Indexes,
    is_named_always: bool,
    is_mixed: bool,
}

/// The calls cut into pieces.
pub(super) fn pieces(calls: &[Call], draw: &mut Draw) -> Pieces {
    let layout = layout(calls, draw);
    let mut queues: Vec<Vec<String>> = Vec::new();
    for (place, call) in calls.iter().enumerate() {
        let mut queue = cut(call, place, &layout, draw);
        queue.reverse();
        queues.push(queue);
    }
    let mut pieces = Pieces {
        is_confused: match layout.ids {
            Ids::Changed(_) => true,
            Ids::Same => calls.len() > 1,
            Ids::Always | Ids::First | Ids::Late | Ids::None(_) => false,
        },
        ..Pieces::default()
    };
    loop {
        let open: Vec<usize> = (0..queues.len())
            .filter(|at| !queues[*at].is_empty())
            .collect();
        let Some(first) = open.first() else {
            return pieces;
        };
        let next = if layout.is_mixed {
            draw.pick(&open)
        } else {
            *first
        };
        if !pieces.order.contains(&next) {
            pieces.order.push(next);
        }
        pieces.items.extend(queues[next].pop());
    }
}

/// The calls as they stand in a reply that is not streamed.
pub(super) fn whole(calls: &[Call], draw: &mut Draw) -> Vec<String> {
    let ids = draw.pick(&[
        Ids::Always,
        Ids::None(""),
        Ids::None("\"\""),
        Ids::None("null"),
        Ids::Same,
    ]);
    let layout = Layout {
        ids,
        indexes: draw.pick(&[Indexes::None(""), Indexes::Zero, Indexes::Own(OWN[0])]),
        is_named_always: true,
        is_mixed: false,
    };
    let item = |(place, call): (usize, &Call)| {
        let arguments = match &call.arguments {
            Sent::Text(text) => Some(quoted(text)),
            Sent::Plain(json) => Some(json.clone()),
            Sent::Null => Some("null".to_owned()),
            Sent::Missing => None,
        };
        item(call, place, true, true, arguments, &layout)
    };
    calls.iter().enumerate().map(item).collect()
}

/// A layout in which these calls can be told apart, or one that is confused on purpose.
fn layout(calls: &[Call], draw: &mut Draw) -> Layout {
    let is_long = |call: &Call| {
        let is_text = matches!(&call.arguments, Sent::Text(text) if text.trim().len() > 1);
        is_text && call.kind != Kind::Custom
    };
    if draw.one_in(12) {
        let long: Vec<usize> = (0..calls.len()).filter(|at| is_long(&calls[*at])).collect();
        let all_long = calls.len() > 1 && long.len() == calls.len();
        if all_long && draw.one_in(2) {
            let indexes = draw.pick(&[Indexes::Own(OWN[0]), Indexes::Zero, Indexes::None("")]);
            return Layout {
                ids: Ids::Same,
                indexes,
                is_named_always: false,
                is_mixed: false,
            };
        }
        if !long.is_empty() {
            let indexes = draw.pick(&[Indexes::Own(OWN[0]), Indexes::Zero, Indexes::None("")]);
            let ids = Ids::Changed(draw.pick(&long));
            return Layout {
                ids,
                indexes,
                is_named_always: false,
                is_mixed: false,
            };
        }
    }
    let own = Indexes::Own(draw.pick(&OWN));
    let nothing = draw.pick(&NOTHING);
    let ids = match draw.below(8) {
        0..3 => Ids::First,
        3..5 => Ids::Always,
        5 => Ids::Late,
        _ => Ids::None(draw.pick(&["", "null", "\"\"", "\" \""])),
    };
    // A call without a name is told from its neighbour by its index alone, and two calls of one
    // tool, the first without arguments, look like one that repeats its name.
    let is_plain = !calls.iter().any(Call::is_nameless)
        && calls.windows(2).all(|two| two[0].name != two[1].name);
    let indexes = match ids {
        Ids::Always | Ids::First if is_plain || !calls.iter().any(Call::is_nameless) => {
            draw.pick(&[own, own, Indexes::Zero, Indexes::None(nothing)])
        }
        Ids::None(_) if is_plain => draw.pick(&[own, own, Indexes::Zero, Indexes::None(nothing)]),
        Ids::Always | Ids::First | Ids::None(_) | Ids::Late | Ids::Same | Ids::Changed(_) => own,
    };
    let is_own = matches!(indexes, Indexes::Own(_));
    Layout {
        ids,
        indexes,
        is_named_always: (is_own || ids == Ids::Always) && draw.one_in(3),
        is_mixed: (is_own || ids == Ids::Always) && draw.one_in(2),
    }
}

/// One call as pieces.
fn cut(call: &Call, place: usize, layout: &Layout, draw: &mut Draw) -> Vec<String> {
    let mut texts: Vec<Option<String>> = Vec::new();
    match &call.arguments {
        Sent::Text(text) => {
            // Many servers begin with the name alone.
            if draw.one_in(2) {
                texts.push(Some(quoted("")));
            }
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let mut end = 1 + draw.below(rest.len());
                while !rest.is_char_boundary(end) {
                    end += 1;
                }
                // At least two pieces with text, where the second must matter.
                if matches!(layout.ids, Ids::Changed(_) | Ids::Late) && texts.is_empty() {
                    end = rest.chars().next().map_or(end, char::len_utf8);
                }
                texts.push(Some(quoted(&rest[..end])));
                rest = &rest[end..];
            }
            if texts.is_empty() {
                texts.push(Some(quoted("")));
            }
        }
        Sent::Plain(json) => texts.push(Some(json.clone())),
        Sent::Null => texts.push(Some("null".to_owned())),
        Sent::Missing => texts.push(None),
    }
    let all = texts.into_iter().enumerate();
    all.map(|(turn, arguments)| {
        let is_named = turn == 0 || layout.is_named_always;
        let has_id = match layout.ids {
            Ids::Always | Ids::Changed(_) | Ids::None(_) => true,
            Ids::First | Ids::Same => turn == 0,
            Ids::Late => turn == 1,
        };
        let later = turn > 0 && layout.ids == Ids::Changed(place);
        let called = if later { place + 100 } else { place };
        item(call, called, is_named, has_id, arguments, layout)
    })
    .collect()
}

/// The member that holds an index.
fn index(layout: &Layout, place: usize) -> String {
    match layout.indexes {
        // A call that changed its id is a hundred places on.
        Indexes::Own(numbers) => format!("\"index\":{},", numbers[place % 100]),
        Indexes::Zero => "\"index\":0,".to_owned(),
        Indexes::None("") => String::new(),
        Indexes::None(value) => format!("\"index\":{value},"),
    }
}

/// One item of `tool_calls`.
fn item(
    call: &Call,
    place: usize,
    is_named: bool,
    has_id: bool,
    arguments: Option<String>,
    layout: &Layout,
) -> String {
    let id = match layout.ids {
        Ids::None("") => String::new(),
        Ids::None(value) => format!("\"id\":{value},"),
        Ids::Same => "\"id\":\"call_same\",".to_owned(),
        Ids::Always | Ids::First | Ids::Late | Ids::Changed(_) => {
            format!("\"id\":\"call_{place}\",")
        }
    };
    let id = if has_id { id } else { String::new() };
    let index = index(layout, place);
    let name = call
        .name
        .as_ref()
        .filter(|_| is_named)
        .map(|name| quoted(name));
    let kind = match call.kind {
        Kind::Function => "\"type\":\"function\",".to_owned(),
        Kind::Unsaid(None) => String::new(),
        Kind::Unsaid(Some(value)) => format!("\"type\":{value},"),
        Kind::Other(kind) => format!("\"type\":\"{kind}\","),
        Kind::Custom => {
            let name = name.unwrap_or_else(|| "null".to_owned());
            let input = arguments.unwrap_or_else(|| "null".to_owned());
            return format!(
                "{{{index}{id}\"type\":\"custom\",\"custom\":{{\"name\":{name},\"input\":{input}}}}}"
            );
        }
    };
    let kind = if is_named { kind } else { String::new() };
    let name = name.map(|name| format!("\"name\":{name}"));
    let arguments = arguments.map(|arguments| format!("\"arguments\":{arguments}"));
    let members: Vec<String> = name.into_iter().chain(arguments).collect();
    format!(
        "{{{index}{id}{kind}\"function\":{{{}}}}}",
        members.join(",")
    )
}
