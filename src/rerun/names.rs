//! What has another name the second time: the workspace's directory, and entries.

use std::collections::BTreeMap;
use std::path::Path;

use crate::id::{CallId, EntryId};

/// The directory of the recorded run, and the one in which it is played.
///
/// What a call names of the one is meant for the other, and what a result says of the other is held
/// against the one, so that a command that prints where it works does not differ for that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    pairs: Vec<(String, String)>,
}

impl Places {
    /// The places of a run that was recorded in one directory and is played in another.
    pub fn new(recorded: &Path, played: &Path) -> Self {
        let (recorded, played) = (recorded.to_string_lossy(), played.to_string_lossy());
        let recorded = recorded.trim_end_matches('/');
        // The whole file system is in every path, so it can be mapped to nothing.
        if !recorded.starts_with('/') || recorded == played {
            return Self::default();
        }
        let mut pairs = vec![(recorded.to_owned(), played.clone().into_owned())];
        // As it stands in arguments, if that is something else.
        let json = |text: &str| {
            let quoted = serde_json::to_string(text).ok()?;
            let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
            Some(inner.to_owned())
        };
        if let (Some(from), Some(to)) = (json(recorded), json(&played))
            && from != recorded
        {
            pairs.push((from, to));
        }
        Self { pairs }
    }

    /// A text of the recording as it is meant where it is played.
    pub(super) fn played(&self, text: &str) -> String {
        let pairs = self.pairs.iter();
        pairs.fold(text.to_owned(), |text, (recorded, played)| {
            moved(&text, recorded, played)
        })
    }

    /// A text from where it is played as it would have been recorded.
    pub(super) fn recorded(&self, text: &str) -> String {
        let pairs = self.pairs.iter();
        pairs.fold(text.to_owned(), |text, (recorded, played)| {
            moved(&text, played, recorded)
        })
    }
}

/// The text with a path in place of another, where that is a whole path or the beginning of one.
fn moved(text: &str, from: &str, to: &str) -> String {
    let mut rest = text;
    let mut moved = String::with_capacity(text.len());
    while let Some(at) = rest.find(from) {
        let (before, behind) = (&rest[..at], &rest[at + from.len()..]);
        moved.push_str(before);
        // In arguments a line's end is two characters.
        let is_line = moved.ends_with("\\n") || moved.ends_with("\\t");
        let begins = is_line || !moved.ends_with(is_name) && !moved.ends_with('/');
        let mut behind_it = behind.chars();
        let ends = match behind_it.next() {
            Some('.') => !behind_it.next().is_some_and(is_name),
            next => !next.is_some_and(is_name),
        };
        moved.push_str(if begins && ends { to } else { from });
        rest = behind;
    }
    moved.push_str(rest);
    moved
}

/// Whether a character goes on with the name of a file.
fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Entries of the recording, and those that stand in their place.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    played: BTreeMap<EntryId, EntryId>,
    recorded: BTreeMap<EntryId, EntryId>,
}

impl Names {
    /// Takes note that an entry stands in the place of a recorded one.
    pub(super) fn add(&mut self, recorded: EntryId, played: EntryId) {
        self.played.insert(recorded, played);
        self.recorded.insert(played, recorded);
    }

    /// The recorded call in whose place this one stands.
    pub(super) fn recorded_call(&self, played: CallId) -> Option<CallId> {
        let response = self.recorded.get(&played.response)?;
        Some(CallId::new(*response, played.place))
    }

    /// A recorded text with the handles that are meant.
    pub(super) fn played(&self, text: &str) -> String {
        renamed(text, &self.played)
    }

    /// A text with the handles as they were recorded.
    pub(super) fn recorded(&self, text: &str) -> String {
        renamed(text, &self.recorded)
    }
}

/// The text with other handles: `41.2`, `e57`, `overlay 410`. Numbers that name nothing stay.
fn renamed(text: &str, names: &BTreeMap<EntryId, EntryId>) -> String {
    if names.iter().all(|(from, to)| from == to) {
        return text.to_owned();
    }
    let mut renamed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        renamed.push_str(&rest[..at]);
        rest = &rest[at..];
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let length = digits(rest);
        let (number, behind) = rest.split_at(length);
        let place = behind.strip_prefix('.').map_or(0, digits);
        // An entry is named by its letter, a call by its place, an overlay by its word.
        let is_entry = renamed
            .strip_suffix('e')
            .is_some_and(|before| !ends_in_word(before));
        let is_overlay = renamed.ends_with("overlay ");
        let is_call = place > 0 && !ends_in_word(&renamed);
        let entry = number.parse().ok().map(EntryId);
        let other = entry.and_then(|entry| names.get(&entry));
        match other.filter(|_| is_entry || is_call || is_overlay) {
            Some(other) => renamed.push_str(&other.to_string()),
            None => renamed.push_str(number),
        }
        // The place of a call is no handle of its own.
        let whole = if place > 0 { 1 + place } else { 0 };
        renamed.push_str(&behind[..whole]);
        rest = &behind[whole..];
    }
    renamed.push_str(rest);
    renamed
}

fn ends_in_word(text: &str) -> bool {
    text.ends_with(|c: char| c.is_alphanumeric() || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_has_another_path() {
        let places = Places::new(Path::new("/tmp/w"), Path::new("/tmp/again-1/w"));
        for (recorded, played) in [
            ("/tmp/w", "/tmp/again-1/w"),
            ("cd /tmp/w/src && ls", "cd /tmp/again-1/w/src && ls"),
            (r#"{"path":"/tmp/w"}"#, r#"{"path":"/tmp/again-1/w"}"#),
            ("in /tmp/w. And", "in /tmp/again-1/w. And"),
            ("/tmp/w\n/tmp/w/a", "/tmp/again-1/w\n/tmp/again-1/w/a"),
            (r"ls\n/tmp/w/a", r"ls\n/tmp/again-1/w/a"),
        ] {
            assert_eq!(places.played(recorded), played);
            assert_eq!(places.recorded(played), recorded);
        }
        for other in [
            "/tmp/www",
            "/tmp/w.bak",
            "/tmp/w-2",
            "x/tmp/w",
            "/home/tmp/w",
        ] {
            assert_eq!(places.played(other), other);
        }
        // Nothing is the root of everything, or relative to it.
        for recorded in ["/", "", "w", "/tmp/again-1/w"] {
            let places = Places::new(Path::new(recorded), Path::new("/tmp/again-1/w"));
            assert_eq!(places, Places::default(), "{recorded}");
        }
        let places = Places::new(Path::new("/a \"b"), Path::new("/c"));
        assert_eq!(
            places.played(r#"{"path":"/a \"b/x"}"#),
            r#"{"path":"/c/x"}"#
        );
    }

    #[test]
    fn handles_are_those_of_the_other_run() {
        let mut names = Names::default();
        names.add(EntryId(41), EntryId(39));
        names.add(EntryId(410), EntryId(400));
        for (recorded, played) in [
            (r#"{"handle":"41.2"}"#, r#"{"handle":"39.2"}"#),
            ("Recall 41.2 shows it.", "Recall 39.2 shows it."),
            ("e41, 410.1 and overlay 410", "e39, 400.1 and overlay 400"),
        ] {
            assert_eq!(names.played(recorded), played);
            assert_eq!(names.recorded(played), recorded);
        }
        for same in [
            "41 files",
            "1.41.2",
            "e7",
            "the41.2",
            "41.",
            "line 41, 7.41",
        ] {
            assert_eq!(names.played(same), same);
        }
        assert_eq!(
            names.recorded_call(CallId::new(EntryId(39), 2)),
            "41.2".parse().ok()
        );
    }
}
