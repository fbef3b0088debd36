//! Views that let entries go: they read as those that hold everything, or the run ends and says why.

use std::error::Error as _;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use undertext::id::EntryId;
use undertext::record::{Clock, Durability, FileStorage, Recorder, runs};
use undertext::replay;
use undertext::transcript::jsonl;
use undertext::transcript::shelf::{Line, Shelf};
use undertext::transcript::{Entry, Transcript};
use undertext::view::{Hold, View};

use crate::draft::note;
use crate::scene;

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
    View::on(lines(entries), Hold::Nothing)
}

/// A view that holds what the next request needs, and can read all of these again.
pub(crate) fn holding(entries: &[Arc<Entry>]) -> View {
    View::on(lines(entries), Hold::Read)
}

fn lines(entries: &[Arc<Entry>]) -> Lines {
    let mut lines = Transcript::default();
    for entry in entries {
        lines.append(Arc::clone(entry));
    }
    Lines(lines)
}

/// Takes an entry into such a view.
pub(crate) fn take(view: &mut View, entry: &Arc<Entry>) {
    let bytes = u32::try_from(jsonl::encode(entry).unwrap().len()).unwrap();
    view.take_line(Arc::clone(entry), Line { offset: 0, bytes });
}

/// Such a view of these entries.
pub(crate) fn view(entries: &[Arc<Entry>]) -> View {
    let mut view = forgetful(entries);
    for entry in entries {
        take(&mut view, entry);
    }
    view
}

/// A recorder of a new run in this directory, with enough notes behind the first one that it is let go.
fn noted(dir: &Path) -> (PathBuf, Recorder) {
    let clock = Clock::fixed(scene::BEGIN);
    let run = scene::run(&clock);
    let storage = FileStorage::create(dir, run.run, Durability::None).unwrap();
    let path = storage.path().to_owned();
    let mut recorder = Recorder::create(Box::new(storage), clock, run).unwrap();
    for number in 0..40 {
        recorder.record(note(&format!("note {number}"))).unwrap();
    }
    assert!(recorder.view().held() < 20);
    (path, recorder)
}

/// Where the third of these lines begins.
fn third(lines: &[&str]) -> u64 {
    lines[..2].concat().len() as u64
}

/// What is done to a file, given its lines.
type Change = fn(&File, &[&str]);

/// An entry that is not there any more as it was reads as none, and nothing is recorded from then on:
/// neither bytes that were overwritten, nor another entry in its place, nor a file that became shorter.
#[test]
fn what_cannot_be_read_again_ends_the_run() {
    let stays = |_: &File, _: &[&str]| {};
    let other = |file: &File, lines: &[&str]| file.write_all_at(b"X", third(lines) + 40).unwrap();
    let swapped = |file: &File, lines: &[&str]| {
        let both = format!("{}{}", lines[3], lines[2]);
        file.write_all_at(both.as_bytes(), third(lines)).unwrap();
    };
    let cut = |file: &File, lines: &[&str]| file.set_len(third(lines) + 40).unwrap();
    let cases: [(Change, Option<&str>); 4] = [
        (stays, None),
        (
            other,
            Some("its bytes have changed since they were read or written"),
        ),
        (
            swapped,
            Some("its bytes have changed since they were read or written"),
        ),
        (cut, Some("failed to fill whole buffer")),
    ];
    for (change, why) in cases {
        let dir = tempfile::tempdir().unwrap();
        let (path, mut recorder) = noted(dir.path());
        let before = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = before.split_inclusive('\n').collect();
        change(&OpenOptions::new().write(true).open(&path).unwrap(), &lines);
        let left = fs::metadata(&path).unwrap().len();
        let read = recorder.view().transcript().get(EntryId(3)).map(|it| it.id);
        let goes_on = recorder.record(note("goes on"));
        let Some(why) = why else {
            assert_eq!((read, goes_on.unwrap()), (Some(EntryId(3)), EntryId(42)));
            continue;
        };
        assert_eq!(read, None);
        let error = goes_on.unwrap_err();
        let expected = format!("{} is not as it was read or written", path.display());
        assert_eq!(error.to_string(), expected);
        let lost = error.source().unwrap();
        assert_eq!(lost.to_string(), "cannot read entry 3 again");
        assert_eq!(lost.source().unwrap().to_string(), why);
        assert_eq!(fs::metadata(&path).unwrap().len(), left);
    }
}

/// What a request for a summary is made of read in full until shortly before: of a transcript that is
/// folded, every request is built again without reading an entry twice, and without counting what grows
/// old.
#[test]
fn what_was_let_go_lately_is_not_read_again_while_a_transcript_is_folded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts/demo.jsonl");
    let mut rebuilt = 0;
    let folded = runs::fold_along(&path, |view, entry| {
        assert!(view.aging().candidates().is_empty());
        if let Some(request) = replay::rebuilt(view, entry) {
            assert!(request.is_equal(), "{}", request.request);
            rebuilt += 1;
        }
    });
    let folded = folded.unwrap().view;
    assert!(rebuilt > 0);
    assert_eq!(folded.work().fetched, 0);
    assert!(folded.held() < folded.transcript().entries().len());

    // Where nothing that was let go is at hand, some of it is.
    let whole = runs::read(&path).unwrap().view;
    assert_eq!(folded.aging().candidates(), whole.aging().candidates());
    let entries: Vec<Arc<Entry>> = whole.transcript().entries().passing().collect();
    let mut view = holding(&entries);
    for entry in &entries {
        assert!(replay::rebuilt(&view, entry).is_none_or(|it| it.is_equal()));
        take(&mut view, entry);
    }
    assert!(view.work().fetched > 0);
}
