//! Transcripts in files: locks, strangers, modes.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use super::*;

/// A transcript file of two entries.
fn file(dir: &Path) -> FileStorage {
    let storage = FileStorage::create(dir, run().run, Durability::None).unwrap();
    let path = storage.path().to_owned();
    create(storage).record(user("text")).unwrap();
    FileStorage::open(&path, Durability::None).unwrap()
}

#[test]
fn a_transcript_has_one_writer_and_any_number_of_readers() {
    let dir = tempfile::tempdir().unwrap();
    let storage = file(dir.path());
    let path = storage.path().to_owned();
    let open = || FileStorage::open(&path, Durability::None);
    let error = open().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{} is in use by another process", path.display())
    );
    assert_eq!(
        runs::read(&path).unwrap().view.transcript().entries().len(),
        2
    );

    // The lock goes with the file, not with its name.
    let moved = dir.path().join("moved.jsonl");
    fs::rename(&path, &moved).unwrap();
    let error = FileStorage::open(&moved, Durability::None).unwrap_err();
    assert!(matches!(error, FileError::InUse { .. }), "{error}");
    fs::rename(&moved, &path).unwrap();
    drop(storage);
    open().unwrap();

    let again = FileStorage::create(dir.path(), run().run, Durability::None).unwrap_err();
    assert!(matches!(again, FileError::Create { .. }), "{again}");
}

#[test]
fn only_a_plain_file_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    drop(file(dir.path()));
    let real = dir.path().join(format!("{}.jsonl", run().run));
    let at = |name: &str| dir.path().join(name);
    symlink(&real, at("link.jsonl")).unwrap();
    fs::create_dir(at("directory.jsonl")).unwrap();
    let pipe = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe.jsonl"), pipe, mode, 0).unwrap();
    for (path, kind) in [
        (at("link.jsonl"), "symbolic link"),
        (at("directory.jsonl"), "directory"),
        (at("pipe.jsonl"), "named pipe"),
        ("/dev/null".into(), "device"),
    ] {
        let refused = format!("{} is a {kind}, not a plain file", path.display());
        let error = FileStorage::open(&path, Durability::Data).unwrap_err();
        assert_eq!(error.to_string(), refused);
        assert_eq!(runs::read(&path).unwrap_err().to_string(), refused);
    }
}

#[test]
fn nobody_else_may_read_what_is_created() {
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("new");
    let storage = file(&new);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&new), mode(storage.path())), (0o700, 0o600));
    // What is there already stays as its owner wants it.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o750)).unwrap();
    drop(file(dir.path()));
    assert_eq!(mode(dir.path()), 0o750);
}

#[test]
fn nothing_is_written_into_a_file_that_someone_else_put_there_or_changed() {
    type Change = fn(&Path);
    let replaced: (Change, &str) = (
        |path| {
            fs::rename(path, path.with_extension("old")).unwrap();
            fs::write(path, "stranger").unwrap();
        },
        "another file has taken its place",
    );
    let removed: (Change, &str) = (
        |path| fs::remove_file(path).unwrap(),
        "another file has taken its place",
    );
    let linked: (Change, &str) = (
        |path| {
            fs::rename(path, path.with_extension("old")).unwrap();
            symlink(path.with_extension("old"), path).unwrap();
        },
        "another file has taken its place",
    );
    let shorter: (Change, &str) = (
        |path| {
            let file = fs::OpenOptions::new().write(true).open(path);
            file.unwrap().set_len(9).unwrap();
        },
        "someone else changed its length from 353 to 9 bytes",
    );
    for (change, reason) in [replaced, removed, linked, shorter] {
        let dir = tempfile::tempdir().unwrap();
        let storage = file(dir.path());
        let path = storage.path().to_owned();
        let mut recorder = open(storage, OnDamage::Refuse).unwrap();
        change(&path);
        let before = fs::read(&path).ok();
        let error = recorder.record(user("text")).unwrap_err();
        assert_eq!(
            told(&error),
            format!("cannot write to {}: {reason}", path.display())
        );
        assert_eq!(fs::read(&path).ok(), before);
        let error = recorder.record(user("text")).unwrap_err();
        assert!(matches!(error, RecordError::Poisoned { .. }));
    }
}

#[test]
fn what_is_recorded_is_read_again_and_the_file_only_grows() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("state/transcripts");
    let storage = FileStorage::create(&dir, run().run, Durability::Data).unwrap();
    let path = storage.path().to_owned();
    assert_eq!(path, dir.join(format!("{}.jsonl", run().run)));

    let clock = Clock::fixed(START);
    let mut recorder = Recorder::create(Box::new(storage), clock.clone(), run()).unwrap();
    clock.advance(1_000);
    let blob = recorder.keep(b"the whole output").unwrap();
    let text = "NUL \0, line \u{2028} and \r\n line, \u{10ffff}";
    assert_eq!(recorder.record(user(text)).unwrap(), EntryId(2));
    let clipped = Clipped { bytes: 16, blob };
    recorder.record(result(Some(clipped))).unwrap();
    recorder.sync().unwrap();
    let (before, written) = (fs::read(&path).unwrap(), lines(&recorder));
    drop(recorder);

    let storage = FileStorage::open(&path, Durability::None).unwrap();
    let mut recorder = open(storage, OnDamage::Refuse).unwrap();
    assert_eq!(recorder.run(), run().run);
    assert_eq!(lines(&recorder), written);
    assert_eq!(recorder.record(user("more")).unwrap(), EntryId(4));
    let kept = recorder.storage().read_blob(blob.unwrap()).unwrap();
    assert_eq!(kept.unwrap(), b"the whole output");
    let after = fs::read(&path).unwrap();
    assert!(after.starts_with(&before) && after.ends_with(b"\"}\n"));

    let loaded = runs::read(&path).unwrap();
    assert_eq!(loaded.view.transcript().entries().len(), 4);
    assert!(loaded.damage.is_empty() && loaded.torn.is_none());
    assert_eq!((loaded.run(), loaded.newer()), (Some(&run()), None));
}

#[test]
fn a_transcript_that_is_folded_is_let_go_of_and_what_changes_meanwhile_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let storage = FileStorage::create(dir.path(), run().run, Durability::None).unwrap();
    let path = storage.path().to_owned();
    let mut recorder = create(storage);
    for number in 0..100 {
        let text = format!("number {number}");
        let warning = Note::Warning { text };
        recorder.record(Event::Note(warning)).unwrap();
    }
    drop(recorder);

    let mut looks = 0;
    let folded = runs::fold_along(&path, |view, entry| {
        assert_eq!(view.transcript().next_id(), entry.id);
        looks += 1;
    });
    let folded = folded.unwrap().view;
    assert_eq!((looks, folded.transcript().entries().len()), (101, 101));
    assert!(folded.held() < 20, "{}", folded.held());

    let whole = runs::read(&path).unwrap().view;
    assert_eq!(whole.held(), 101);
    let all = |view: &View| {
        let entries = view.transcript().entries().passing();
        entries
            .map(|entry| format!("{entry:?}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(all(&folded), all(&whole));
    assert!(folded.transcript().lost().is_none());

    let changed = fs::read_to_string(&path).unwrap();
    fs::write(&path, changed.replace("number 7", "number 8")).unwrap();
    let seventh = EntryId(9);
    assert!(folded.transcript().get(seventh).is_none());
    assert_eq!(folded.transcript().lost().unwrap().entry, seventh);
    assert!(whole.transcript().get(seventh).is_some());
}
