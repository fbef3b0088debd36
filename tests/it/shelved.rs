//! Views that let entries go: they read as those that hold everything, or the run ends and says why.

use std::io;
use std::sync::Arc;

use undertext::id::EntryId;
use undertext::transcript::jsonl;
use undertext::transcript::shelf::{Line, Shelf};
use undertext::transcript::{Entry, Transcript};
use undertext::view::{Hold, View};

/// The lines of entries, each to be read when it is asked for.
#[derive(Debug)]
pub(crate) struct Lines(Transcript);

impl Shelf for Lines {
    fn fetch(&self, id: EntryId, line: Line) -> io::Result<Entry> {
        let entry = self.0.get(id).ok_or(io::ErrorKind::NotFound)?;
        let bytes = jsonl::encode(entry).unwrap();
        assert_eq!(bytes.len(), line.bytes as usize);
        Ok(jsonl::decode(bytes.trim_ascii_end()).unwrap())
    }
}

/// A view that holds nothing but its newest entry, and can read all of these again.
pub(crate) fn forgetful(entries: &[Arc<Entry>]) -> View {
    let mut lines = Transcript::default();
    for entry in entries {
        lines.append(Arc::clone(entry));
    }
    View::on(Lines(lines), Hold::Nothing)
}

/// Takes an entry into such a view.
pub(crate) fn take(view: &mut View, entry: &Arc<Entry>) {
    let bytes = u32::try_from(jsonl::encode(entry).unwrap().len()).unwrap();
    view.take_line(Arc::clone(entry), Line { offset: 0, bytes });
}

/// Such a view of these entries.
pub(crate) fn view(entries: &[Arc<Entry>]) -> View {
    let mut view = forgetful(entries);
    entries.iter().for_each(|entry| take(&mut view, entry));
    view
}
