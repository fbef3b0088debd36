//! What stays beside a summary, in a form in which texts are quickly found.

use serde_json::Value;

use crate::id::Span;
use crate::overlay::Carry;
use crate::view::View;

/// The texts that a model still reads once a summary is laid.
///
/// Results and arguments in the tail are left out: they may be put away next.
pub(super) struct Stays {
    /// As they are.
    raw: Vec<String>,
    /// With plain quotation marks and single spaces, a line each.
    plain: String,
    /// The same in lower case.
    lower: String,
}

impl Stays {
    pub(super) fn new(view: &View, span: Span, text: &str, carry: &Carry) -> Self {
        let mut raw = vec![text.to_owned(), carry.state.clone()];
        raw.extend(
            carry
                .entries
                .iter()
                .filter_map(|entry| view.carried(*entry)),
        );
        for call in &carry.calls {
            if let Some(call) = view.tool_call(*call) {
                strings(serde_json::from_str(&call.arguments).ok(), &mut raw);
            }
            raw.extend(
                view.result_of(*call)
                    .map(|(_, result)| result.content.clone()),
            );
        }
        let standing = view.summaries().into_iter();
        let standing = standing.filter(|other| !within(other.summary.span, span));
        raw.extend(standing.map(|other| other.summary.text.clone()));
        for entry in view
            .live()
            .into_iter()
            .filter(|entry| !span.contains(*entry))
        {
            let user = view.user(entry).map(|user| &user.text);
            let said = view.response(entry).map(|response| &response.text);
            raw.extend(user.or(said).cloned());
        }
        let plain = raw.iter().map(|text| plain(text)).collect::<Vec<_>>();
        let plain = plain.join("\n");
        let lower = plain.to_lowercase();
        Self { raw, plain, lower }
    }

    /// Whether a text stands there word for word.
    pub(super) fn says(&self, text: &str) -> bool {
        self.raw.iter().any(|stays| stays.contains(text))
    }

    /// Whether a sentence stands there, in whatever case and with whatever mark at its end.
    pub(super) fn demands(&self, sentence: &str) -> bool {
        let sentence = plain(sentence).to_lowercase();
        self.lower
            .contains(sentence.trim_end_matches(['…', '.', '!', ';', ':', ',']))
    }

    /// Whether a name stands there, not as a part of a longer one.
    pub(super) fn names(&self, name: &str) -> bool {
        names(&self.plain, &plain(name))
    }
}

/// Whether a text holds a name, not as a part of a longer one.
pub(super) fn names(text: &str, name: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (starts, ends) = (
        is_part(name.chars().next()),
        is_part(name.chars().next_back()),
    );
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + name.len()..].chars().next();
        !(starts && is_part(before) || ends && is_part(behind))
    })
}

/// Whether a span lies within another.
pub(super) fn within(inner: Span, outer: Span) -> bool {
    outer.from <= inner.from && inner.to <= outer.to
}

/// A text with plain quotation marks and single spaces.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.extend(word.chars().map(|c| match c {
            '“' | '”' | '„' | '«' | '»' => '"',
            '‘' | '’' | '‚' => '\'',
            other => other,
        }));
    }
    plain
}

/// Every string within a value, and within a string that holds one.
fn strings(value: Option<Value>, into: &mut Vec<String>) {
    match value {
        Some(Value::String(text)) => match serde_json::from_str(&text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => strings(Some(inner), into),
            Ok(_) | Err(_) => into.push(text),
        },
        Some(Value::Array(values)) => {
            for value in values {
                strings(Some(value), into);
            }
        }
        Some(Value::Object(values)) => {
            for (_, value) in values {
                strings(Some(value), into);
            }
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => {}
    }
}
