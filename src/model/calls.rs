//! Tool calls put together from their pieces.
//!
//! A piece belongs to the call of its id; without an id, to the call of its index; without both,
//! to the newest call, unless it carries a name and so begins one. An index is a key, not a
//! position. A new id is a new call.

use crate::exchange::ToolCall;
use crate::model::loose::{Extent, Gathered, Object, Text, Value};

/// The index under which an old-style `function_call` stands.
const FUNCTION: u64 = u64::MAX;

/// The most calls of a reply.
pub(crate) const CALLS_MAX: usize = 4096;

/// The calls so far.
#[derive(Debug, Default)]
pub(crate) struct Calls(Vec<Call>);

#[derive(Debug, Default)]
struct Call {
    id: Option<String>,
    index: Option<u64>,
    name: String,
    /// What the provider calls it, if that is not a function.
    kind: Option<String>,
    arguments: String,
    /// How far the arguments have come.
    extent: Extent,
    /// Whether the arguments held what is no text.
    damaged: bool,
    /// Members that are none of ours.
    extra: Gathered,
    /// Where the call stands that a piece without a name would have continued, had its id not been
    /// another one.
    behind: Option<usize>,
}

/// What a piece of a call says.
#[derive(Debug, Default)]
struct Piece {
    id: Option<String>,
    index: Option<u64>,
    name: Option<String>,
    kind: Option<String>,
    arguments: Option<Text>,
    extra: Vec<(String, String)>,
}

/// Whether pieces of calls may continue calls that have begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Each item is a piece.
    Pieces,
    /// Each item is a call by itself.
    Whole,
}

impl Calls {
    /// The number of calls; more than there may be are not told apart.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Takes the items of `tool_calls` and appends the names of the calls that begin. Returns
    /// the bytes that are kept of them.
    pub(crate) fn take(
        &mut self,
        items: &[Value<'_>],
        arrival: Arrival,
        damaged: bool,
        begun: &mut Vec<String>,
    ) -> usize {
        let mut kept = 0;
        for item in items.iter().filter_map(|item| item.object()) {
            if self.0.len() > CALLS_MAX {
                break;
            }
            kept += self.piece(Piece::of(&item), arrival, damaged, begun);
        }
        kept
    }

    /// Takes an old-style `function_call`, of which a reply has at most one.
    pub(crate) fn take_function(
        &mut self,
        function: &Object<'_>,
        damaged: bool,
        begun: &mut Vec<String>,
    ) -> usize {
        let mut piece = Piece::default();
        piece.function(function);
        // The one call there is stands under an index of its own.
        piece.index = Some(FUNCTION);
        self.piece(piece, Arrival::Pieces, damaged, begun)
    }

    /// The calls, in the order in which they began.
    pub(crate) fn finish(mut self) -> Vec<ToolCall> {
        // Arguments that came under another id, and under no name, may be those of the call before:
        // without them it is not what the model meant.
        let astray = self.0.iter().filter(|call| call.is_astray());
        let robbed: Vec<usize> = astray.filter_map(|call| call.behind).collect();
        for place in robbed {
            if let Some(call) = self.0.get_mut(place) {
                call.damaged |= call.arguments.trim().is_empty();
            }
        }
        // Beside calls of today, one in the old style only repeats.
        let is_old = |call: &Call| call.index == Some(FUNCTION);
        let calls = self.0.iter();
        if calls.clone().any(is_old) && !calls.clone().all(is_old) {
            self.0.retain(|call| !is_old(call));
        }
        self.0.into_iter().map(Call::finish).collect()
    }

    fn piece(
        &mut self,
        mut piece: Piece,
        arrival: Arrival,
        damaged: bool,
        begun: &mut Vec<String>,
    ) -> usize {
        let found = match arrival {
            Arrival::Pieces => self.find(&piece),
            Arrival::Whole => None,
        };
        let place = found.unwrap_or_else(|| {
            let behind = match (arrival, piece.index) {
                (Arrival::Whole, _) => None,
                (Arrival::Pieces, None) => self.0.len().checked_sub(1),
                (Arrival::Pieces, index) => self.0.iter().rposition(|call| call.index == index),
            };
            self.0.push(Call {
                behind,
                ..Call::default()
            });
            self.0.len() - 1
        });
        let Some(call) = self.0.get_mut(place) else {
            return 0;
        };
        if let Some(text) = &mut piece.arguments {
            text.damaged |= damaged && text.text.contains('\u{fffd}');
        }
        let unnamed = call.name.is_empty();
        let kept = call.take(piece);
        if unnamed && !call.name.is_empty() {
            begun.push(call.name.clone());
        }
        kept
    }

    /// The call that a piece continues; `None` if it begins one.
    fn find(&self, piece: &Piece) -> Option<usize> {
        let last = || self.0.len().checked_sub(1);
        let place = |is: &dyn Fn(&Call) -> bool| self.0.iter().rposition(is);
        if piece.id.is_some() {
            // An id may follow the first piece of a call that began without one.
            let late = || match piece.index {
                Some(_) => place(&|call| call.index == piece.index),
                None => last().filter(|_| piece.name.is_none()),
            };
            let nameless = |at: &usize| self.0.get(*at).is_some_and(|call| call.id.is_none());
            return place(&|call| call.id == piece.id).or_else(|| late().filter(nameless));
        }
        if piece.index.is_some() {
            return place(&|call| call.index == piece.index)
                .filter(|at| self.0.get(*at).is_some_and(|call| !call.ends_before(piece)));
        }
        last().filter(|at| {
            let call = self.0.get(*at);
            piece.name.is_none() || call.is_some_and(|call| call.goes_on(piece))
        })
    }
}

impl Call {
    fn take(&mut self, piece: Piece) -> usize {
        let Piece {
            id,
            index,
            name,
            kind,
            arguments,
            extra,
        } = piece;
        let mut kept = 64;
        self.id = self.id.take().or(id);
        self.index = index.or(self.index);
        self.kind = self.kind.take().or(kind);
        // Two names under one id are two calls in one, and neither is known.
        self.damaged |= !self.name.is_empty() && name.as_ref().is_some_and(|it| *it != self.name);
        // A name comes at once, though perhaps with every piece.
        if let Some(name) = name.filter(|_| self.name.is_empty()) {
            kept += name.len();
            self.name = name;
        }
        if let Some(Text { text, damaged }) = arguments {
            kept += text.len();
            self.extent.take(&text);
            self.arguments.push_str(&text);
            self.damaged |= damaged;
        }
        for (key, raw) in extra {
            kept += key.len() + raw.len();
            self.extra.put(&key, &raw);
        }
        kept
    }

    /// Whether a piece with the same index but another name is another call.
    fn ends_before(&self, piece: &Piece) -> bool {
        let name = piece.name.as_ref();
        name.is_some_and(|name| !self.name.is_empty() && *name != self.name)
    }

    /// Whether a piece that repeats the name continues this call: its arguments are not whole.
    fn goes_on(&self, piece: &Piece) -> bool {
        self.extent.is_open() && piece.name.as_ref() == Some(&self.name)
    }

    /// Whether it has arguments and no name.
    fn is_astray(&self) -> bool {
        self.name.is_empty() && !self.arguments.trim().is_empty()
    }

    fn finish(self) -> ToolCall {
        let mut arguments = self.arguments;
        if self.damaged {
            // What was no text must not become a well-formed call.
            arguments.push('\u{fffd}');
        }
        ToolCall {
            provider_id: self.id,
            name: match self.kind {
                Some(kind) => format!("{kind}:{}", self.name),
                None => self.name,
            },
            arguments,
            extra: self.extra.object(),
        }
    }
}

impl Piece {
    fn of(item: &Object<'_>) -> Self {
        let mut piece = Self {
            id: item.word("id"),
            index: item.get("index").and_then(Value::count),
            kind: item.word("type").filter(|kind| kind != "function"),
            ..Self::default()
        };
        let ours = ["id", "index", "type", "function"];
        for (key, value) in item.members() {
            if !ours.contains(&key.as_str()) && value.raw() != "null" {
                piece.extra.push((key.clone(), value.raw().to_owned()));
            }
        }
        if let Some(function) = item.object("function") {
            piece.function(&function);
        } else if let Some(kind) = &piece.kind {
            // A call of another type names itself under that type.
            piece.name = item.object(kind).and_then(|other| other.word("name"));
        }
        piece
    }

    fn function(&mut self, function: &Object<'_>) {
        self.name = function.word("name");
        let arguments = function.get("arguments");
        self.arguments = arguments.map(|arguments| {
            arguments.text().unwrap_or_else(|| Text {
                text: arguments.raw().to_owned(),
                damaged: false,
            })
        });
    }
}
