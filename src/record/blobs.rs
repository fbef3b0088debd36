//! Blobs: the whole outputs that results were clipped from, one file each, named by their digest.
//!
//! They stand beside the transcript, in `<run-id>.blobs`. A blob appears under its name only when
//! it is whole, so one that is there need not be written again.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::exchange::Clipped;
use crate::id::Digest;
use crate::record::directory::{parent, sync_directory};
use crate::record::storage::Durability;
use crate::transcript::Event;

/// The largest output that is kept.
const LARGEST: u64 = 64 << 20;

/// The most that is kept of one run.
const MOST: u64 = 1 << 30;

/// The blobs of one run.
#[derive(Clone, Debug)]
pub struct Blobs {
    directory: PathBuf,
    /// Those that this writer has made durable.
    durable: BTreeSet<Digest>,
}

impl Blobs {
    /// The blobs that stand beside this transcript.
    pub fn beside(transcript: &Path) -> Self {
        Self {
            directory: transcript.with_extension("blobs"),
            durable: BTreeSet::new(),
        }
    }

    /// The bytes with this digest. `None` if they were not kept; an error if those under the name
    /// have another digest.
    pub fn read(&self, digest: Digest) -> io::Result<Option<Vec<u8>>> {
        Ok(self.find(digest)?.map(|(_, bytes)| bytes))
    }

    /// The same with the open file.
    fn find(&self, digest: Digest) -> io::Result<Option<(File, Vec<u8>)>> {
        let mut options = OpenOptions::new();
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        options.read(true).custom_flags(flags.cast_signed());
        let file = match options.open(self.path(digest)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        if file.metadata()?.is_file() {
            (&file).take(LARGEST + 1).read_to_end(&mut bytes)?;
        }
        if Digest::of(&bytes) == digest {
            Ok(Some((file, bytes)))
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "blob does not have the digest it is named by",
            ))
        }
    }

    /// Keeps bytes under their digest; with [`Durability::Data`] they are durable afterwards, whoever
    /// wrote them.
    pub(super) fn write(
        &mut self,
        digest: Digest,
        bytes: &[u8],
        durability: Durability,
    ) -> io::Result<()> {
        // A loss of power may have left other bytes under the name, where nothing was synced.
        if let Ok(Some((file, _))) = self.find(digest) {
            return self.settle(digest, &file, durability);
        }
        self.make_directory(durability)?;
        // The transcript's lock makes this writer the only one, so the name is free to be reused.
        let path = self.path(digest);
        let part = path.with_extension("part");
        let mut file = create(&part)?;
        file.write_all(bytes)?;
        if durability == Durability::Data {
            file.sync_data()?;
        }
        fs::rename(&part, &path)?;
        if durability == Durability::Data {
            sync_directory(&self.directory)?;
            self.durable.insert(digest);
        }
        Ok(())
    }

    /// Makes a blob durable that somebody else wrote: nobody knows whether they came to that.
    fn settle(&mut self, digest: Digest, file: &File, durability: Durability) -> io::Result<()> {
        if durability == Durability::Data && !self.durable.contains(&digest) {
            file.sync_data()?;
            sync_directory(&self.directory)?;
            self.durable.insert(digest);
        }
        Ok(())
    }

    /// Has another run's blob under the same name here, as a link if that can be, else as a copy.
    /// `false` if it is not there any more, or is not what its name says.
    pub(super) fn adopt(
        &mut self,
        from: &Self,
        digest: Digest,
        durability: Durability,
    ) -> io::Result<bool> {
        let theirs = from.path(digest);
        if !fs::symlink_metadata(&theirs).is_ok_and(|found| found.is_file()) {
            return Ok(false);
        }
        let (file, bytes) = match from.find(digest) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(false),
            Err(error) => return Err(error),
        };
        self.make_directory(durability)?;
        // A blob is never written into, so two runs can have one file.
        if fs::hard_link(&theirs, self.path(digest)).is_ok() {
            self.settle(digest, &file, durability)?;
        } else {
            self.write(digest, &bytes, durability)?;
        }
        Ok(true)
    }

    /// Removes all of them, and says how many there were.
    pub(super) fn remove(&self) -> io::Result<u64> {
        let files = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            files => files?.count(),
        };
        // A link in its place is removed, and not followed.
        fs::remove_dir_all(&self.directory)?;
        Ok(files as u64)
    }

    fn path(&self, digest: Digest) -> PathBuf {
        self.directory.join(digest.hex())
    }

    fn make_directory(&self, durability: Durability) -> io::Result<()> {
        match fs::symlink_metadata(&self.directory) {
            Ok(found) if found.is_dir() => return Ok(()),
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        DirBuilder::new().mode(0o700).create(&self.directory)?;
        fs::set_permissions(&self.directory, fs::Permissions::from_mode(0o700))?;
        if durability == Durability::Data {
            sync_directory(parent(&self.directory))?;
        }
        Ok(())
    }
}

fn create(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

/// What a run has kept, as its entries name it: as much as it may, and no more.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Kept {
    digests: BTreeSet<Digest>,
    bytes: u64,
}

impl Kept {
    /// The blobs that were named.
    pub(super) fn digests(&self) -> impl Iterator<Item = Digest> {
        self.digests.iter().copied()
    }

    /// Takes in what an entry names.
    pub(super) fn take(&mut self, event: &Event) {
        let mut add = |clipped: Option<Clipped>| {
            if let Some(clipped) = clipped
                && let Some(blob) = clipped.blob
            {
                self.add(blob, clipped.bytes);
            }
        };
        if let Event::User(user) = event {
            add(user.clipped);
            for attachment in &user.attachments {
                add(attachment.clipped);
            }
        } else if let Event::Result(result) = event {
            add(result.clipped);
        }
    }

    /// The digest under which these bytes may be kept; `None` if they are too many.
    pub(super) fn fits(&self, bytes: &[u8]) -> Option<Digest> {
        let size = bytes.len() as u64;
        if size > LARGEST {
            return None;
        }
        let digest = Digest::of(bytes);
        let fits = self.digests.contains(&digest) || self.bytes.saturating_add(size) <= MOST;
        fits.then_some(digest)
    }

    /// Counts what was kept, once.
    pub(super) fn add(&mut self, digest: Digest, bytes: u64) {
        if self.digests.insert(digest) {
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Attachment, Speaker, User};

    #[test]
    fn what_is_kept_is_read_again_and_checked() {
        let dir = tempfile::tempdir().unwrap();
        let mut blobs = Blobs::beside(&dir.path().join("a.jsonl"));
        let digest = Digest::of(b"output");
        assert_eq!(blobs.read(digest).unwrap(), None);
        for durability in [Durability::Data, Durability::None] {
            blobs.write(digest, b"output", durability).unwrap();
            assert_eq!(blobs.read(digest).unwrap().unwrap(), b"output");
        }

        let directory = dir.path().join("a.blobs");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&directory), 0o700);
        let files: Vec<_> = fs::read_dir(&directory)
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        assert_eq!(files, [directory.join(digest.hex())]);
        assert_eq!(mode(&files[0]), 0o600);

        // Other bytes are not given out, and are written anew: those of a hand, or of a loss of power.
        for other in ["changed!", "\0\0\0\0\0\0", ""] {
            fs::write(&files[0], other).unwrap();
            assert!(blobs.read(digest).is_err());
            blobs.write(digest, b"output", Durability::Data).unwrap();
            assert_eq!(blobs.read(digest).unwrap().unwrap(), b"output");
        }
        // What is left of a writer that was killed is in nobody's way, and is no blob.
        fs::write(files[0].with_extension("part"), "outp").unwrap();
        fs::remove_file(&files[0]).unwrap();
        assert_eq!(blobs.read(digest).unwrap(), None);
        blobs.write(digest, b"output", Durability::Data).unwrap();
        assert_eq!(blobs.read(digest).unwrap().unwrap(), b"output");
    }

    #[test]
    fn whatever_a_message_names_is_counted() {
        let clipped = |text: &str| {
            let blob = Some(Digest::of(text.as_bytes()));
            Some(Clipped { bytes: 5, blob })
        };
        let file = |text: &str| Attachment {
            name: "a.txt".to_owned(),
            media: "text/plain".to_owned(),
            text: String::new(),
            clipped: clipped(text),
        };
        let mut kept = Kept::default();
        kept.take(&Event::User(User {
            origin: Speaker::Task,
            text: String::new(),
            attachments: vec![file("first"), file("second")],
            clipped: clipped("task"),
        }));
        assert_eq!(kept.bytes, 15);
    }

    #[test]
    fn a_run_keeps_so_much_and_no_more_and_counts_nothing_twice() {
        let mut kept = Kept::default();
        let digest = Digest::of(b"output");
        assert_eq!(kept.fits(b"output"), Some(digest));
        kept.add(digest, 6);
        kept.add(digest, 6);
        kept.add(Digest::of(b"another"), MOST - 13);
        assert_eq!(kept.fits(b"seventh"), Some(Digest::of(b"seventh")));
        assert_eq!(kept.fits(b"seventh."), None);
        assert_eq!(kept.fits(b"output"), Some(digest));
    }

    #[test]
    fn a_link_in_place_of_the_directory_or_a_blob_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let digest = Digest::of(b"output");

        std::os::unix::fs::symlink(&elsewhere, dir.path().join("a.blobs")).unwrap();
        let mut blobs = Blobs::beside(&dir.path().join("a.jsonl"));
        assert!(blobs.write(digest, b"output", Durability::Data).is_err());
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);

        fs::write(elsewhere.join("file"), "output").unwrap();
        fs::create_dir(dir.path().join("b.blobs")).unwrap();
        let name = dir.path().join("b.blobs").join(digest.hex());
        std::os::unix::fs::symlink(elsewhere.join("file"), name).unwrap();
        let blobs = Blobs::beside(&dir.path().join("b.jsonl"));
        assert!(blobs.read(digest).is_err());
    }
}
