//! What is said to be durable was synced: where the kernel refuses to sync, nothing is said to be.
//!
//! A double under the recorder shows in which order it asks for that, but not whether a file asks
//! the kernel. So the kernel is told to refuse: an operation that then succeeds has not asked.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use nix::libc;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use super::*;

/// A system call by which this crate makes the bytes of a file durable, or the names in a directory.
#[derive(Clone, Copy, Debug)]
enum Sync {
    Bytes,
    Names,
}

impl Sync {
    fn call(self) -> i64 {
        match self {
            Self::Bytes => libc::SYS_fdatasync,
            Self::Names => libc::SYS_fsync,
        }
    }
}

/// Whether this comes to an end on a thread to which the kernel refuses such syncs. If it does not,
/// that is why.
fn succeeds_without<T>(sync: Sync, run: impl FnOnce() -> io::Result<T> + Send) -> bool {
    let refuse = || {
        let refused = BTreeMap::from([(sync.call(), Vec::new())]);
        let failing = SeccompAction::Errno(libc::EIO.unsigned_abs());
        let arch = std::env::consts::ARCH.try_into().unwrap();
        let filter = SeccompFilter::new(refused, SeccompAction::Allow, failing, arch).unwrap();
        let filter: BpfProgram = filter.try_into().unwrap();
        seccompiler::apply_filter(&filter).unwrap();
    };
    let error = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            refuse();
            run().err()
        });
        run.join().unwrap()
    });
    if let Some(error) = &error {
        assert_eq!(error.raw_os_error(), Some(libc::EIO), "{error}");
    }
    error.is_none()
}

fn new(dir: &Path, durability: Durability) -> FileStorage {
    let mut storage = FileStorage::create(dir, run().run, durability).unwrap();
    storage.append(b"a line\n").unwrap();
    storage
}

/// The names in a directory, if it is there.
fn names(dir: &Path) -> Vec<String> {
    let files = fs::read_dir(dir).into_iter().flatten();
    let name = |file: io::Result<fs::DirEntry>| file.unwrap().file_name().into_string().unwrap();
    files.map(name).collect()
}

#[test]
fn lines_are_synced_and_the_directories_of_a_transcript_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = new(&dir.path().join("new/deep"), Durability::Data);
    assert!(!succeeds_without(Sync::Bytes, || storage.sync()));
    assert!(!succeeds_without(Sync::Names, || storage.sync()));
    storage.sync().unwrap();
    storage.append(b"another\n").unwrap();
    assert!(!succeeds_without(Sync::Bytes, || storage.sync()));
    assert!(succeeds_without(Sync::Names, || storage.sync()));

    // Whoever created it may have ended before that.
    let path = storage.path().to_owned();
    drop(storage);
    let mut storage = FileStorage::open(&path, Durability::Data).unwrap();
    assert!(!succeeds_without(Sync::Names, || storage.sync()));
}

/// What holds a lock may be made before there is a transcript, and with it what is above both.
#[test]
fn a_directory_beside_the_transcripts_is_synced() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str| make_directory(&dir.path().join(name));
    assert!(!succeeds_without(Sync::Names, || make("state/locks")));
    make("state/others").unwrap();
    assert!(succeeds_without(Sync::Names, || make("state/others")));
}

#[test]
fn a_new_name_is_synced() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage =
        FileStorage::create_unlisted(dir.path(), run().run, Durability::Data).unwrap();
    storage.sync().unwrap();
    assert!(!succeeds_without(Sync::Names, || storage.publish()));
}

#[test]
fn a_blob_is_synced_before_it_has_its_name_and_its_name_is_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = new(dir.path(), Durability::Data);
    let blobs = storage.path().with_extension("blobs");
    let mut keep = |text: &str| storage.write_blob(Digest::of(text.as_bytes()), text.as_bytes());

    // A new directory, before there is anything in it.
    assert!(!succeeds_without(Sync::Names, || keep("one")));
    assert_eq!(names(&blobs), [""; 0]);
    // The bytes, before they have their name.
    assert!(!succeeds_without(Sync::Bytes, || keep("one")));
    let part = format!("{}.part", Digest::of(b"one").hex());
    assert_eq!(names(&blobs), [part]);
    keep("one").unwrap();
    assert!(!succeeds_without(Sync::Names, || keep("two")));

    // With it the directories above are durable.
    assert!(succeeds_without(Sync::Names, || storage.sync()));
}

#[test]
fn a_blob_that_is_there_is_synced_unless_this_writer_did() {
    let dir = tempfile::tempdir().unwrap();
    let (text, digest) = (b"the whole output", Digest::of(b"the whole output"));
    let mut storage = new(dir.path(), Durability::None);
    storage.write_blob(digest, text).unwrap();
    let path = storage.path().to_owned();
    drop(storage);

    let mut storage = FileStorage::open(&path, Durability::Data).unwrap();
    storage.sync().unwrap();
    let mut keep = || storage.write_blob(digest, text);
    for sync in [Sync::Bytes, Sync::Names] {
        assert!(!succeeds_without(sync, &mut keep), "{sync:?}");
    }
    keep().unwrap();
    for sync in [Sync::Bytes, Sync::Names] {
        assert!(succeeds_without(sync, &mut keep), "{sync:?}");
    }
}

#[test]
fn a_blob_of_another_run_is_synced_where_it_is_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let digest = Digest::of(b"the whole output");
    let mut parent = new(&dir.path().join("parent"), Durability::None);
    parent.write_blob(digest, b"the whole output").unwrap();
    let theirs = Blobs::beside(parent.path());

    let fork = |name: &str| new(&dir.path().join(name), Durability::Data);
    let (mut one, mut two) = (fork("one"), fork("two"));
    assert!(!succeeds_without(Sync::Bytes, || one.adopt(&theirs, digest)));
    assert!(one.adopt(&theirs, digest).unwrap());

    let other = Digest::of(b"another");
    parent.write_blob(other, b"another").unwrap();
    assert!(two.adopt(&theirs, digest).unwrap());
    assert!(!succeeds_without(Sync::Names, || two.adopt(&theirs, other)));
}

#[test]
fn where_durability_is_not_wanted_nothing_is_synced() {
    let dir = tempfile::tempdir().unwrap();
    for sync in [Sync::Bytes, Sync::Names] {
        let path = dir.path().join(format!("{sync:?}"));
        assert!(succeeds_without(sync, || {
            let mut storage = new(&path, Durability::None);
            storage.write_blob(Digest::of(b"output"), b"output")?;
            storage.write_blob(Digest::of(b"output"), b"output")?;
            storage.sync()
        }));
    }
}

/// Length and times say what a file holds only once that cannot be lost.
#[test]
fn what_is_stamped_is_synced_though_durability_is_not_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let storage = new(dir.path(), Durability::None);
    let index = storage.path().with_extension("index");
    fs::write(&index, "index").unwrap();
    let place = storage.index_place().unwrap();
    let stamp = || place.write_stamp(5, |_| Ok(b" and its stamp".to_vec()));
    assert!(!succeeds_without(Sync::Bytes, stamp));
    assert_eq!(fs::read(&index).unwrap(), b"index");
    stamp().unwrap();
    assert_eq!(fs::read(&index).unwrap(), b"index and its stamp");
}
