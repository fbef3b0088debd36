//! The index beside a transcript's file: when it is kept, when it is believed, what stays beside it.

use std::fs;
use std::io::BufRead;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::*;
use crate::record::index::{LAYOUT, take_up};
use crate::transcript::shelf::Shelf;

/// What no request holds.
const ASIDE: &str = "said aside";

/// A run of many entries in this directory, and where it lies.
fn noted(dir: &Path) -> PathBuf {
    let (mut recorder, path) = noting(dir);
    assert!(recorder.keep_index().unwrap());
    path
}

/// The same before an index is kept of it.
fn noting(dir: &Path) -> (Recorder, PathBuf) {
    let storage = FileStorage::create(dir, run().run, Durability::Data).unwrap();
    let path = storage.path().to_owned();
    let mut recorder = create(storage.indexed_from(Some(0)));
    for number in 0..600 {
        recorder.record(user(&format!("message {number}"))).unwrap();
        if number == 300 {
            let text = ASIDE.to_owned();
            recorder
                .record(Event::Note(Note::Warning { text }))
                .unwrap();
        }
    }
    recorder.sync().unwrap();
    (recorder, path)
}

/// Changes a letter of a file that nobody reads again, as someone does who writes into it.
fn touch(path: &Path) {
    let bytes = fs::read(path).unwrap();
    let aside = ASIDE.as_bytes();
    let at = bytes.windows(aside.len()).position(|part| part == aside);
    let file = fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(b"A", at.unwrap() as u64).unwrap();
}

fn storage(path: &Path) -> FileStorage {
    let storage = FileStorage::open(path, Durability::Data).unwrap();
    storage.indexed_from(Some(0))
}

/// The same of which an index is made anew only once much is new.
fn long(path: &Path, durability: Durability) -> Recorder {
    let storage = FileStorage::open(path, durability).unwrap();
    open(storage.indexed_from(Some(1 << 14)), OnDamage::Refuse).unwrap()
}

/// A transcript's file, and how often it was read from its start on.
#[derive(Debug)]
struct Counted {
    file: FileStorage,
    read: Arc<AtomicU64>,
}

impl Storage for Counted {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn read(&self) -> io::Result<Box<dyn BufRead + Send + '_>> {
        self.read.fetch_add(1, Ordering::Relaxed);
        self.file.read()
    }

    fn read_from(&self, offset: u64) -> io::Result<Box<dyn BufRead + Send + '_>> {
        self.file.read_from(offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn shelf(&self) -> Option<Box<dyn Shelf>> {
        self.file.shelf()
    }

    fn indexed_from(&self) -> Option<u64> {
        Storage::indexed_from(&self.file)
    }

    fn index_place(&self) -> Option<IndexPlace> {
        self.file.index_place()
    }

    fn write_blob(&mut self, digest: Digest, bytes: &[u8]) -> io::Result<()> {
        self.file.write_blob(digest, bytes)
    }

    fn read_blob(&self, digest: Digest) -> io::Result<Option<Vec<u8>>> {
        self.file.read_blob(digest)
    }

    fn location(&self) -> String {
        self.file.location()
    }
}

/// Takes a run up and leaves it as it was, as one does who thinks better of it; returns how often all of
/// the transcript was read, and what its index spared.
fn visited(path: &Path, durability: Durability) -> (u64, u64) {
    let read = Arc::new(AtomicU64::new(0));
    let file = FileStorage::open(path, durability).unwrap();
    let storage = Counted {
        file: file.indexed_from(Some(1 << 14)),
        read: Arc::clone(&read),
    };
    let mut recorder = open(storage, OnDamage::Refuse).unwrap();
    let indexed = recorder.indexed();
    recorder.keep_index().unwrap();
    (read.load(Ordering::Relaxed), indexed)
}

/// Whether the index is believed without reading what it was made from.
fn fits(path: &Path) -> bool {
    let storage = storage(path);
    let indexed = take_up(&storage).unwrap();
    indexed.index.fits(&storage.index_place().unwrap())
}

/// How many bytes of the transcript the index spares whoever takes it up.
fn spared(path: &Path) -> u64 {
    open(storage(path), OnDamage::Refuse).unwrap().indexed()
}

#[test]
fn an_index_spares_reading_what_nobody_has_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = noted(dir.path());
    let index = path.with_extension("index");
    let length = fs::metadata(&path).unwrap().len();
    assert_eq!(
        fs::metadata(&index).unwrap().permissions().mode() & 0o777,
        0o600
    );

    let mut recorder = long(&path, Durability::Data);
    assert_eq!(recorder.indexed(), length);
    assert_eq!(recorder.view().rounds().turns().len(), 600);
    // Little is new, so it is left as it is.
    recorder.record(user("one more")).unwrap();
    assert!(!recorder.keep_index().unwrap());
    drop(recorder);
    assert_eq!(spared(&path), length);

    // A copy is another file, with the same bytes.
    let copy = dir.path().join("copy.jsonl");
    fs::copy(&path, &copy).unwrap();
    fs::copy(&index, copy.with_extension("index")).unwrap();
    assert_eq!(spared(&copy), length);

    // Without it, or where none is wanted, all is read.
    let plain = FileStorage::open(&copy, Durability::None).unwrap();
    let plain = open(plain.indexed_from(None), OnDamage::Refuse).unwrap();
    assert_eq!(plain.indexed(), 0);
    assert_eq!(plain.view().rounds().turns().len(), 601);
    drop(plain);
    fs::remove_file(copy.with_extension("index")).unwrap();
    assert_eq!(spared(&copy), 0);
}

#[test]
fn an_index_that_does_not_fit_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = noted(dir.path());
    let index = path.with_extension("index");
    let right = fs::read(&index).unwrap();
    let lines = fs::read(&path).unwrap();
    let before = |what: &[u8]| {
        let found = right.windows(what.len()).position(|part| part == what);
        found.unwrap()
    };
    let mut other_version = right.clone();
    other_version[20] = u8::try_from(LAYOUT).unwrap() + 1;
    let mut generator = right.clone();
    generator[before(b"undertext 0")] = b'U';
    for unfit in [
        b"".to_vec(),
        b"undertext".to_vec(),
        other_version,
        generator,
    ] {
        fs::write(&index, unfit).unwrap();
        assert_eq!(spared(&path), 0);
        let mut recorder = open(storage(&path), OnDamage::Refuse).unwrap();
        assert!(recorder.keep_index().unwrap());
        drop(recorder);
        assert_eq!(spared(&path), lines.len() as u64);
    }

    // Behind its digest only a stamp counts: without one, the bytes are hashed.
    for behind in [right.len() - 1, right.len() - 40] {
        fs::write(&index, &right[..behind]).unwrap();
        assert_eq!(spared(&path), lines.len() as u64);
    }

    // Whoever accepts damage has all of it looked for.
    let accepted = open(storage(&path), OnDamage::Accept).unwrap();
    assert_eq!(accepted.indexed(), 0);
    drop(accepted);

    // Bytes that were changed in their place are damage, index or not.
    let mut damaged = lines.clone();
    damaged[lines.len() / 2] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let refused = open(storage(&path), OnDamage::Refuse).unwrap_err();
    assert!(matches!(refused, RecordError::Damaged { .. }), "{refused}");
    // Once it is accepted, the index is of no use any more.
    let mut accepted = open(storage(&path), OnDamage::Accept).unwrap();
    assert!(!index.exists());
    assert!(!accepted.keep_index().unwrap());
    drop(accepted);
    fs::write(&index, &right).unwrap();

    // A transcript that is shorter than what it covers.
    fs::write(&path, &lines[..lines.len() - 1]).unwrap();
    assert_eq!(spared(&path), 0);

    // What lies in its place and is no file is neither used nor an error.
    fs::remove_file(&index).unwrap();
    fs::create_dir(&index).unwrap();
    fs::write(&path, &lines).unwrap();
    let mut recorder = open(storage(&path), OnDamage::Refuse).unwrap();
    assert_eq!(recorder.indexed(), 0);
    assert!(recorder.keep_index().is_err());
    recorder.record(user("goes on")).unwrap();
}

#[test]
fn what_is_added_to_a_transcript_leaves_its_index_believed() {
    let dir = tempfile::tempdir().unwrap();
    let path = noted(dir.path());
    let index = path.with_extension("index");
    let covered = fs::metadata(&path).unwrap().len();
    assert!(fits(&path));
    let add = || {
        let mut recorder = long(&path, Durability::Data);
        assert_eq!(recorder.indexed(), covered);
        recorder.record(user("one more")).unwrap();
        recorder.sync().unwrap();
        recorder
    };
    let mut bytes = fs::read(&index).unwrap();
    for more in 1..=3 {
        // It is killed before the index is stamped.
        drop(add());
        assert!(!fits(&path));
        assert!(!add().keep_index().unwrap());
        assert!(fits(&path));
        let before = std::mem::replace(&mut bytes, fs::read(&index).unwrap());
        assert!(
            before != bytes && bytes.len() < before.len() + 100,
            "{more}"
        );
    }
    // Or in the middle of that.
    for cut in (1..100).step_by(9) {
        fs::write(&index, &bytes[..bytes.len() - cut]).unwrap();
        let spares = take_up(&storage(&path)).is_some();
        assert!(!spares || !fits(&path), "{cut}");
    }
    fs::write(&index, &bytes).unwrap();
    assert!(fits(&path));
    let recorder = long(&path, Durability::Data);
    assert_eq!(recorder.view().transcript().entries().len(), 608);
    drop(recorder);

    // A copy is another file, until it was opened once.
    let copy = dir.path().join("copy.jsonl");
    fs::copy(&path, &copy).unwrap();
    fs::copy(&index, copy.with_extension("index")).unwrap();
    assert!(!fits(&copy));
    let mut recorder = long(&copy, Durability::Data);
    recorder.sync().unwrap();
    assert!(!recorder.keep_index().unwrap());
    drop(recorder);
    assert!(fits(&copy));

    // Where another one writes as well, nobody says so.
    let mut recorder = add();
    touch(&path);
    assert!(!recorder.keep_index().unwrap());
    drop(recorder);
    assert!(open(storage(&path), OnDamage::Refuse).is_err());
}

/// However often a run is taken up for a little more.
#[test]
fn what_is_written_of_indexes_is_no_more_than_what_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let path = noted(dir.path());
    let length = |path: &Path| fs::metadata(path).unwrap().len();
    let index = path.with_extension("index");
    let (begun, mut written, mut anew) = (length(&path), 0, 0);
    for _ in 0..40 {
        let file = FileStorage::open(&path, Durability::None).unwrap();
        let mut recorder = open(file.indexed_from(Some(1)), OnDamage::Refuse).unwrap();
        let behind = length(&path) - recorder.indexed();
        assert!(behind < length(&index), "{behind}");
        recorder.record(user(&"more ".repeat(400))).unwrap();
        if recorder.keep_index().unwrap() {
            written += length(&index);
            anew += 1;
        }
        drop(recorder);
        assert!(fits(&path));
    }
    let recorded = length(&path) - begun;
    assert!(written <= recorded, "{written} of {recorded}");
    assert!(anew >= 2, "{anew}");
}

/// A transcript, the stamp beside it, and what becomes of the transcript then.
type Left<'a> = (&'a Path, &'a [u8], &'a dyn Fn(&Path));

/// Whatever lets an index fit by its digest alone, that is compared once.
#[test]
fn a_second_time_nothing_is_hashed() {
    let dir = tempfile::tempdir().unwrap();
    let [path, other] = ["own", "other"].map(|name| noted(&dir.path().join(name)));
    let index = |path: &Path| path.with_extension("index");
    let [own, others] = [&path, &other].map(|path| fs::read(index(path)).unwrap());
    let covered = fs::metadata(&path).unwrap().len();
    // Who finds the transcript touched leaves no stamp.
    let (mut recorder, touched) = noting(&dir.path().join("touched"));
    touch(&touched);
    recorder.keep_index().unwrap();
    let bare = fs::read(index(&touched)).unwrap();
    let stamp = own.strip_prefix(&bare[..]).unwrap();
    let others_stamp = others.strip_prefix(&bare[..]).unwrap();

    let copy = dir.path().join("copy.jsonl");
    fs::copy(&path, &copy).unwrap();
    let as_left = |_: &Path| {};
    let dated_back = |path: &Path| {
        let file = fs::File::options().append(true).open(path).unwrap();
        let changed = file.metadata().unwrap().modified().unwrap();
        file.set_modified(changed - Duration::from_secs(9)).unwrap();
    };
    let killed = |path: &Path| {
        let mut recorder = long(path, Durability::Data);
        recorder.record(user("one more")).unwrap();
    };
    for durability in [Durability::Data, Durability::None] {
        let cases: [Left<'_>; 6] = [
            (&path, b"", &as_left),
            (&path, &stamp[..stamp.len() - 1], &as_left),
            (&path, others_stamp, &as_left),
            (&path, stamp, &dated_back),
            (&path, stamp, &killed),
            (&copy, stamp, &as_left),
        ];
        for (number, (path, stamp, change)) in cases.into_iter().enumerate() {
            fs::write(index(path), [&bare, stamp].concat()).unwrap();
            change(path);
            assert_eq!(visited(path, durability), (1, covered), "{number}");
            assert_eq!(visited(path, durability), (0, covered), "{number}");
        }
    }
}

/// After a loss of power, a file may be as long and as old as it was, and yet hold zeros.
#[test]
fn what_is_stamped_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = noted(dir.path());
    for durability in [Durability::Data, Durability::None] {
        for text in ["one more", &"long ".repeat(1 << 12)] {
            let mut recorder = long(&path, durability);
            recorder.record(user(text)).unwrap();
            assert_eq!(recorder.syncs(), 0);
            assert_eq!(recorder.keep_index().unwrap(), text.len() > 10);
            assert_eq!(recorder.syncs(), 1);
            drop(recorder);
            assert!(fits(&path), "{durability:?}");
        }
    }
}

/// Two writes within a moment of the file system's clock have the same dates. As both dates of what was
/// written last are the same, and those of a transcript are not, the other's is told from its writer's,
/// whatever the clock.
#[test]
fn a_write_within_the_same_moment_shows() {
    let dir = tempfile::tempdir().unwrap();
    let changed = |path: &Path| {
        let found = fs::metadata(path).unwrap();
        let bytes = (found.mtime(), found.mtime_nsec());
        (bytes, (found.ctime(), found.ctime_nsec()))
    };
    let is_told = |path: &Path| {
        let (bytes, any) = changed(path);
        bytes < any
    };
    let run = run().run;
    let made = FileStorage::create_unlisted(dir.path(), run, Durability::None);
    let mut new = made.unwrap().indexed_from(Some(0));
    assert!(is_told(new.path()));
    new.append(b"a line\n").unwrap();
    assert!(is_told(new.path()));
    new.publish().unwrap();
    assert!(is_told(new.path()));
    drop(new);

    // As long as there is no index nothing need tell, and nothing is believed that did not.
    let grown = tempfile::tempdir().unwrap();
    let made = FileStorage::create_unlisted(grown.path(), run, Durability::None);
    let mut new = made.unwrap().indexed_from(Some(10));
    new.append(b"a line\n").unwrap();
    assert!(!is_told(new.path()));
    assert!(new.index_place().unwrap().stamp().is_some());
    new.append(b"another\n").unwrap();
    assert!(new.index_place().unwrap().stamp().is_none());

    // A copy was written a moment ago.
    let path = noted(&dir.path().join("noted"));
    let copy = dir.path().join("copy.jsonl");
    fs::copy(&path, &copy).unwrap();
    let (bytes, any) = changed(&copy);
    assert_eq!(bytes, any);
    let opened = storage(&copy);
    assert!(is_told(&copy));
    touch(&copy);
    assert!(opened.index_place().unwrap().stamp().is_none());

    // What was left so is not dated again.
    let left = changed(&path);
    drop(storage(&path));
    assert_eq!(changed(&path), left);
    assert!(fits(&path));
    touch(&path);
    assert!(take_up(&storage(&path)).is_none());
}

#[test]
fn of_what_cannot_be_made_durable_no_index_is_kept() {
    let storage = MemoryStorage::default().indexed_from(0);
    let mut recorder = create(storage.clone());
    storage.fail(storage.operations() + 1, Failure::Refused);
    recorder.keep_index().unwrap_err();
    assert!(storage.index().is_none());
    let next = recorder.record(user("one more")).unwrap_err();
    assert!(matches!(next, RecordError::Poisoned { .. }), "{next}");
}

/// Nothing tells of bytes in memory that they were not changed: they are hashed each time.
#[test]
fn what_is_in_memory_has_no_stamp() {
    let storage = MemoryStorage::default().indexed_from(100);
    let mut recorder = create(storage.clone());
    recorder.record(user("a message")).unwrap();
    assert!(recorder.keep_index().unwrap());
    assert!(!recorder.keep_index().unwrap());
    let indexed = take_up(&storage).unwrap();
    assert!(!indexed.index.fits(&storage.index_place().unwrap()));

    let mut bytes = storage.bytes();
    let end = bytes.len() - 2;
    bytes[end] ^= 1;
    let changed = MemoryStorage::with(bytes).indexed_from(100);
    changed.set_index(storage.index());
    assert!(take_up(&changed).is_none());
}

/// What was read and written is what counts, not what lies there when the run ends.
#[test]
fn what_was_changed_while_it_was_open_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (mut recorder, path) = noting(dir.path());
    touch(&path);
    recorder.record(user("one more")).unwrap();
    assert!(recorder.keep_index().unwrap());
    drop(recorder);
    assert!(open(storage(&path), OnDamage::Refuse).is_err());

    // After the last entry, too, and while it was read.
    let (mut recorder, path) = noting(&dir.path().join("after"));
    touch(&path);
    assert!(recorder.keep_index().unwrap());
    drop(recorder);
    assert!(open(storage(&path), OnDamage::Refuse).is_err());

    let path = noted(&dir.path().join("taken up"));
    fs::remove_file(path.with_extension("index")).unwrap();
    let mut recorder = open(storage(&path), OnDamage::Refuse).unwrap();
    touch(&path);
    assert!(recorder.keep_index().unwrap());
    drop(recorder);
    assert!(open(storage(&path), OnDamage::Refuse).is_err());
}

/// What is about to be sent, or done, may come of its not having been there.
#[test]
fn once_an_entry_is_lost_nothing_is_said_to_be_durable() {
    let dir = tempfile::tempdir().unwrap();
    let path = noted(dir.path());
    let mut recorder = open(storage(&path), OnDamage::Refuse).unwrap();
    touch(&path);
    recorder.sync().unwrap();
    let aside = |entry: &EntryId| recorder.view().transcript().get(*entry).is_none();
    let lost: Vec<EntryId> = (1..=602).map(EntryId).filter(aside).collect();
    assert_eq!(lost, [EntryId(303)]);
    let refused = recorder.sync().unwrap_err();
    assert!(matches!(refused, RecordError::Lost { .. }), "{refused}");
}

#[test]
fn a_torn_end_behind_an_index_is_closed_as_ever() {
    let dir = tempfile::tempdir().unwrap();
    let path = noted(dir.path());
    let mut lines = fs::read(&path).unwrap();
    lines.extend_from_slice(br#"{"id":603,"at":"#);
    fs::write(&path, lines).unwrap();
    let recorder = open(storage(&path), OnDamage::Refuse).unwrap();
    let last = recorder.view().transcript().last().unwrap();
    assert!(matches!(&last.event, Event::Note(Note::Torn(_))));
    assert_eq!((last.id, recorder.indexed()), (EntryId(603), 0));
}

#[test]
fn what_was_left_of_writing_an_index_is_in_nobodys_way() {
    let dir = tempfile::tempdir().unwrap();
    let path = noted(dir.path());
    let part = path.with_extension("index.part");
    fs::write(&part, "torn").unwrap();
    fs::remove_file(path.with_extension("index")).unwrap();
    let mut recorder = open(storage(&path), OnDamage::Refuse).unwrap();
    assert!(recorder.keep_index().unwrap());
    assert!(!part.exists());
    drop(recorder);
    assert!(spared(&path) > 0);

    // One that was moved away has none written where it was.
    let elsewhere = dir.path().join("elsewhere.jsonl");
    let mut recorder = open(storage(&path), OnDamage::Accept).unwrap();
    fs::rename(&path, &elsewhere).unwrap();
    recorder.keep_index().unwrap_err();
    drop(recorder);
    fs::rename(&elsewhere, &path).unwrap();

    fs::write(&part, "torn").unwrap();
    runs::remove(&path).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// What a view folds is part of what an index holds. If this fails, what is folded or how it is kept has
/// changed: add one to `LAYOUT`, so that no index of before is believed, and take the new digest.
#[test]
fn the_layout_is_another_whenever_what_is_kept_is() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let golden = fs::read(dir.join("transcripts/demo.jsonl")).unwrap();
    let storage = MemoryStorage::with(golden).indexed_from(0);
    let view = open(storage, OnDamage::Refuse).unwrap();
    let mut kept = view.view().save().unwrap();
    view.view()
        .save_lists(|blocks| {
            for block in blocks {
                kept.extend_from_slice(&block?);
            }
            Ok::<(), postcard::Error>(())
        })
        .unwrap();
    let digest = Digest::of(&kept).hex();
    assert_eq!((LAYOUT, &digest[..16]), (2, "bf12c038adb35c06"));
}
