//! Forks: the same bytes behind a first entry of their own, whole or not at all.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::*;
use crate::record::fork::{Fork, ForkError, Forked};

/// A parent of six entries, two of which name blobs.
fn parent(dir: &Path) -> PathBuf {
    let storage = FileStorage::create(dir, run().run, Durability::None).unwrap();
    let path = storage.path().to_owned();
    let mut recorder = create(storage);
    recorder.record(user("text")).unwrap();
    for output in ["one", "two"] {
        let blob = recorder.keep(output.as_bytes()).unwrap();
        recorder
            .record(result(Some(Clipped { bytes: 3, blob })))
            .unwrap();
    }
    recorder.record(user("more")).unwrap();
    recorder.record(user("last")).unwrap();
    path
}

fn fork(parent: &Path, entry: u64, dir: &Path) -> Result<Forked, ForkError> {
    let clock = Clock::fixed(START.plus_ms(1_000));
    let fork = Fork {
        parent: parent.to_owned(),
        entry: EntryId(entry),
        name: Some("again".to_owned()),
    };
    fork.make(dir, &clock, Durability::Data)
}

/// The lines behind the first.
fn rest(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}

fn names(dir: &Path) -> Vec<String> {
    let files = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_fork_is_its_parents_bytes_and_stays_locked() {
    let dir = tempfile::tempdir().unwrap();
    let parent = parent(dir.path());
    let made = fork(&parent, 3, &dir.path().join("new/deep")).unwrap();
    let path = made.storage.path().to_owned();
    assert_eq!(
        (made.parent.entry, made.blobs, made.lost),
        (EntryId(3), 1, 0)
    );
    assert_eq!(rest(&path), rest(&parent)[..2]);
    let again = FileStorage::open(&path, Durability::None).unwrap_err();
    assert!(matches!(again, FileError::InUse { .. }), "{again}");

    let mut recorder = open(made.storage, OnDamage::Refuse).unwrap();
    assert_eq!(recorder.record(user("on")).unwrap(), EntryId(4));
    let begun = super::super::run(recorder.view().transcript()).unwrap();
    assert_eq!(begun.parent, Some(made.parent));
    assert_eq!(
        (begun.name.as_deref(), begun.run),
        (Some("again"), made.run)
    );
    let blob = recorder.storage().read_blob(Digest::of(b"one")).unwrap();
    assert_eq!(blob.unwrap(), b"one");
    assert_eq!(names(&path.with_extension("blobs")).len(), 1);

    // A blob goes with its last run only.
    let shared = parent
        .with_extension("blobs")
        .join(Digest::of(b"one").hex());
    assert_eq!(fs::metadata(&shared).unwrap().nlink(), 2);
    drop(recorder);
    runs::remove(&path).unwrap();
    assert_eq!(fs::read(shared).unwrap(), b"one");
}

/// What the parent has of it between its entries stays there: it is none of them.
#[test]
fn the_remains_of_a_torn_entry_are_not_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let parent = parent(dir.path());
    let whole = fs::read(&parent).unwrap();
    fs::write(&parent, [&whole[..], br#"{"id":7,"at":"20"#].concat()).unwrap();
    let storage = FileStorage::open(&parent, Durability::None).unwrap();
    open(storage, OnDamage::Refuse)
        .unwrap()
        .record(user("on"))
        .unwrap();
    let made = fork(&parent, 8, dir.path()).unwrap();
    let read = runs::read(made.storage.path()).unwrap();
    assert!(read.damage.is_empty() && read.torn.is_none(), "{read:?}");
    assert_eq!(read.view.transcript().entries().len(), 8);

    // A last line that lacks only its end is an entry.
    fs::write(&parent, &whole[..whole.len() - 1]).unwrap();
    fs::remove_file(made.storage.path()).unwrap();
    fs::remove_dir_all(made.storage.path().with_extension("blobs")).unwrap();
    let made = fork(&parent, 6, dir.path()).unwrap();
    assert!(fs::read(made.storage.path()).unwrap().ends_with(b"}\n"));
}

#[test]
fn a_blob_that_is_not_what_its_name_says_is_lost_to_a_fork() {
    let dir = tempfile::tempdir().unwrap();
    let parent = parent(dir.path());
    let blob = |text: &str| {
        let name = Digest::of(text.as_bytes()).hex();
        parent.with_extension("blobs").join(name)
    };
    fs::write(blob("one"), "changed").unwrap();
    fs::remove_file(blob("two")).unwrap();
    std::os::unix::fs::symlink(blob("one"), blob("two")).unwrap();
    let made = fork(&parent, 4, dir.path()).unwrap();
    assert_eq!((made.blobs, made.lost), (0, 2));
    assert!(!made.storage.path().with_extension("blobs").exists());
}

#[test]
fn what_cannot_be_forked_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let parent = parent(dir.path());
    let text = fs::read_to_string(&parent).unwrap();
    let to = dir.path().join("to");
    fs::create_dir(&to).unwrap();
    let say = |entry| told(&fork(&parent, entry, &to).unwrap_err());
    let mut said = vec![say(7)];
    fs::write(&parent, text.replace("more", "less")).unwrap();
    said.push(say(6));
    fs::write(&parent, text.replace("\"format\":1", "\"format\":9")).unwrap();
    said.push(say(6));
    let first = Run { format: 9, ..run() };
    let first = Entry {
        id: EntryId::FIRST,
        at: START,
        event: Event::Run(first),
    };
    fs::write(&parent, crate::transcript::jsonl::encode(&first).unwrap()).unwrap();
    said.push(say(1));
    fs::write(&parent, "").unwrap();
    said.push(say(1));
    assert_eq!(names(&to), [""; 0]);

    // Blobs cannot be written where a file stands in the way.
    fs::write(&parent, &text).unwrap();
    let id = Clock::fixed(START.plus_ms(1_000)).new_run();
    let blobs = format!("{id}.blobs");
    fs::write(to.join(&blobs), "in the way").unwrap();
    said.push(say(6));
    assert_eq!(names(&to), [blobs]);
    let said = said.join("\n").replace(dir.path().to_str().unwrap(), "");
    let said = said.replace(&run().run.to_string(), "PARENT");
    insta::assert_snapshot!(said.replace(&id.to_string(), "FORK"), @"
    /PARENT.jsonl has no entry e7
    /PARENT.jsonl is damaged before e6: line 5: checksum does not match
    /PARENT.jsonl is damaged before e6: line 1: checksum does not match
    /PARENT.jsonl has format 9, this version knows formats up to 1
    /PARENT.jsonl does not begin with a run
    cannot write to /to/FORK.part: not a directory
    ");
}
