//! Tool calls put together from their pieces.
//!
//! A piece belongs to the call of its id; without an id, to the call of its index; without both,
//! to the newest call, unless it carries a name and so begins one. An index is a key, not a
//! position. A new id is a new call.

use crate::exchange::ToolCall;
use crate::model::loose::{Object, Text, Value};

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
    /// Whether the arguments held what is no text.
    damaged: bool,
    /// Members that are none of ours, as exact text.
    extra: Vec<(String, String)>,
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
    /// Takes the items of `tool_calls` and appends the names of the calls that begin. Returns
    /// the bytes that are kept of them.
    pub(crate) fn take(
        &mut self,
        items: &[Value<'_>],
        arrival: Arrival,
        damaged: bool,
        begun: &mut Vec<String>,
    ) -> usize {
        let pieces = items.iter().filter_map(|item| item.object());
        pieces
            .map(|item| self.piece(Piece::of(&item), arrival, damaged, begun))
            .sum()
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
        piece.index = Some(u64::MAX);
        self.piece(piece, Arrival::Pieces, damaged, begun)
    }

    /// The calls, in the order in which they began.
    pub(crate) fn finish(self) -> Vec<ToolCall> {
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
            self.0.push(Call::default());
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
        // A name comes at once, though perhaps with every piece.
        if let Some(name) = name.filter(|_| self.name.is_empty()) {
            kept += name.len();
            self.name = name;
        }
        if let Some(Text { text, damaged }) = arguments {
            kept += text.len();
            self.arguments.push_str(&text);
            self.damaged |= damaged;
        }
        for (key, raw) in extra {
            kept += key.len() + raw.len();
            match self.extra.iter_mut().find(|(known, _)| *known == key) {
                Some((_, newest)) => *newest = raw,
                None => self.extra.push((key, raw)),
            }
        }
        kept
    }

    /// Whether a piece with the same index but another name, after arguments, is another call.
    fn ends_before(&self, piece: &Piece) -> bool {
        let renamed = piece
            .name
            .as_ref()
            .is_some_and(|name| !self.name.is_empty() && *name != self.name);
        renamed && !self.arguments.is_empty()
    }

    /// Whether a piece that repeats the name continues this call: its arguments are open.
    fn goes_on(&self, piece: &Piece) -> bool {
        let open = serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments)
            .is_err_and(|error| error.is_eof());
        open && !self.arguments.is_empty() && piece.name.as_ref() == Some(&self.name)
    }

    fn finish(self) -> ToolCall {
        let mut arguments = self.arguments;
        if self.damaged {
            // What was no text must not become a well-formed call.
            arguments.push('\u{fffd}');
        }
        let extra = self.extra.iter().map(|(key, raw)| {
            let key = serde_json::Value::from(key.as_str());
            format!("{key}:{raw}")
        });
        let extra: Vec<String> = extra.collect();
        ToolCall {
            provider_id: self.id,
            name: match self.kind {
                Some(kind) => format!("{kind}:{}", self.name),
                None => self.name,
            },
            arguments,
            extra: (!extra.is_empty()).then(|| format!("{{{}}}", extra.join(","))),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes one `tool_calls` array after the other and shows `id name arguments extra`.
    fn check(arrival: Arrival, arrays: &[&str], expected: &[&str]) {
        let (mut calls, mut begun) = (Calls::default(), Vec::new());
        for array in arrays {
            let (values, rest) = Value::sequence(array);
            assert_eq!(rest, "", "{array}");
            calls.take(&values[0].array().unwrap(), arrival, false, &mut begun);
        }
        let shown: Vec<String> = calls
            .finish()
            .into_iter()
            .map(|call| {
                let id = call.provider_id.unwrap_or_else(|| "-".to_owned());
                let extra = call.extra.map(|extra| format!(" {extra}"));
                let extra = extra.unwrap_or_default();
                format!("{id} {} {}{extra}", call.name, call.arguments)
            })
            .collect();
        assert_eq!(shown, expected, "{arrays:?}");
        assert!(begun.len() <= shown.len(), "{begun:?}");
    }

    #[test]
    fn pieces_find_their_call() {
        let pieces = Arrival::Pieces;
        // As OpenAI does it, two calls interleaved.
        check(
            pieces,
            &[
                r#"[{"index":0,"id":"a","type":"function","function":{"name":"Read","arguments":""}}]"#,
                r#"[{"index":1,"id":"b","function":{"name":"Grep","arguments":"{"}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"x\""}}]"#,
                r#"[{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":":1}"}}]"#,
            ],
            &[r#"a Read {"x":1}"#, "b Grep {}"],
        );
        // The id and the name with every piece; no index.
        check(
            pieces,
            &[
                r#"[{"id":"a","function":{"name":"Read","arguments":"{"}}]"#,
                r#"[{"id":"b","function":{"name":"Read","arguments":"{"}}]"#,
                r#"[{"id":"a","function":{"name":"Read","arguments":"}"}}]"#,
                r#"[{"id":"b","index":null,"function":{"name":"Read","arguments":"}"}}]"#,
            ],
            &["a Read {}", "b Read {}"],
        );
        // The same index for every call, but another id.
        check(
            pieces,
            &[
                r#"[{"index":0,"id":"a","function":{"name":"Read","arguments":"{}"}}]"#,
                r#"[{"index":0,"id":"b","function":{"name":"Read","arguments":"{"}}]"#,
                r#"[{"index":0,"function":{"arguments":"}"}}]"#,
            ],
            &["a Read {}", "b Read {}"],
        );
        // An index alone; an index as a key; the id late or empty.
        check(
            pieces,
            &[
                r#"[{"index":7,"function":{"name":"Read","arguments":"{"}},{"index":3,"id":"","function":{"name":"Grep"}}]"#,
                r#"[{"index":7,"id":"a","function":{"arguments":"}"}}]"#,
            ],
            &["a Read {}", "- Grep "],
        );
        // Neither id nor index: a name begins a call, unless the last is open.
        check(
            pieces,
            &[
                r#"[{"function":{"name":"Read","arguments":"{"}}]"#,
                r#"[{"function":{"name":"Read","arguments":"}"}}]"#,
                r#"[{"function":{"name":"Read","arguments":"{}"}},{"function":{"name":"Grep","arguments":""}}]"#,
                r#"[{"function":{"arguments":"{}"}}]"#,
            ],
            &["- Read {}", "- Read {}", "- Grep {}"],
        );
    }

    #[test]
    fn odd_calls_are_taken_as_they_are() {
        let whole = Arrival::Whole;
        check(
            whole,
            &[
                r#"[{"id":"a","function":{"name":"Read","arguments":{"x": 1.0}}},{"id":"a","function":{"name":"Read","arguments":null}}]"#,
            ],
            &[r#"a Read {"x": 1.0}"#, "a Read "],
        );
        check(
            whole,
            &[
                r#"[{"id":"a","type":"custom","custom":{"name":"Patch","input":"x"}},{"id":1,"type":"retrieval","function":{"name":"Bash","arguments":"{}"}},"x"]"#,
            ],
            &[
                r#"a custom:Patch  {"custom":{"name":"Patch","input":"x"}}"#,
                "- retrieval:Bash {}",
            ],
        );
        check(
            whole,
            &[
                r#"[{"id":"a","extra_content":{"google": {"thought_signature":"Zm/="}},"n":1e0,"z":null,"function":{"name":" ","arguments":"{}"}}]"#,
            ],
            &[r#"a  {} {"extra_content":{"google": {"thought_signature":"Zm/="}},"n":1e0}"#],
        );
    }

    #[test]
    fn arguments_that_are_no_text_are_malformed() {
        let (mut calls, mut begun) = (Calls::default(), Vec::new());
        let array = r#"[{"function":{"name":"Read","arguments":"{\"a\":\"\ud800\"}"}}]"#;
        let (values, _) = Value::sequence(array);
        let items = values[0].array().unwrap();
        calls.take(&items, Arrival::Whole, false, &mut begun);
        let call = &calls.finish()[0];
        assert_eq!(call.arguments, "{\"a\":\"\u{fffd}\"}\u{fffd}");
        assert!(serde_json::from_str::<serde_json::Value>(&call.arguments).is_err());
        assert_eq!(begun, ["Read"]);
    }
}
