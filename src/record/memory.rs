//! A transcript in memory: for tests, and for runs that nobody keeps.
//!
//! It can be told to fail, and to forget what was not synced, as a machine does that loses power.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Cursor};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id::Digest;
use crate::record::Storage;
use crate::record::index_place::IndexPlace;
use crate::record::shelf::Bytes;
use crate::transcript::shelf::Shelf;

/// The bytes that a device writes at once, or not at all.
pub const SECTOR: usize = 512;

/// A transcript in memory. Clones share their bytes.
#[derive(Clone, Debug, Default)]
pub struct MemoryStorage {
    memory: Arc<Mutex<Memory>>,
}

#[derive(Debug, Default)]
struct Memory {
    bytes: Vec<u8>,
    /// How many of the bytes a loss of power leaves.
    synced: usize,
    blobs: BTreeMap<Digest, Vec<u8>>,
    appends: u64,
    syncs: u64,
    operations: u64,
    failure: Option<(u64, Failure)>,
    indexed_from: Option<u64>,
    index: Option<Vec<u8>>,
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nothing of it happens.
    Refused,
    /// An append leaves its first half, as on a full disk; a sync or a blob is refused.
    Short,
    /// Everything of it happens, and yet an error comes back.
    Unsure,
}

impl MemoryStorage {
    /// A storage that holds these bytes, all of them durable.
    pub fn with(bytes: Vec<u8>) -> Self {
        let memory = Memory {
            synced: bytes.len(),
            bytes,
            ..Memory::default()
        };
        Self {
            memory: Arc::new(Mutex::new(memory)),
        }
    }

    /// Keeps an index once there are so many bytes.
    #[must_use]
    pub fn indexed_from(self, bytes: u64) -> Self {
        self.memory().indexed_from = Some(bytes);
        self
    }

    /// The index, if one was kept.
    pub fn index(&self) -> Option<Vec<u8>> {
        self.memory().index.clone()
    }

    /// Puts this in the place of the index.
    pub fn set_index(&self, index: Option<Vec<u8>>) {
        self.memory().index = index;
    }

    /// All bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.memory().bytes.clone()
    }

    /// How often bytes were appended.
    pub fn appends(&self) -> u64 {
        self.memory().appends
    }

    /// How often it was synced.
    pub fn syncs(&self) -> u64 {
        self.memory().syncs
    }

    /// How many appends, syncs and blobs there were.
    pub fn operations(&self) -> u64 {
        self.memory().operations
    }

    /// Makes the operation with this number, counted from 1 since the beginning, fail.
    pub fn fail(&self, operation: u64, failure: Failure) {
        self.memory().failure = Some((operation, failure));
    }

    /// What a loss of power would leave if it came now: the bytes that were synced, and the blobs.
    #[must_use]
    pub fn after_power_loss(&self) -> Self {
        let memory = self.memory();
        let left = Self::with(memory.bytes[..memory.synced].to_vec());
        left.memory().blobs.clone_from(&memory.blobs);
        left
    }

    /// What it would leave if it came while bytes that were not synced were on their way: the file
    /// ends at `length`, but not before what was synced, and of each sector that did not arrive, by
    /// its number, the bytes that were not synced are zero.
    #[must_use]
    pub fn after_power_loss_by_sectors(
        &self,
        length: usize,
        mut arrived: impl FnMut(usize) -> bool,
    ) -> Self {
        let left = self.after_power_loss();
        let memory = self.memory();
        let length = length.clamp(memory.synced, memory.bytes.len());
        let mut bytes = memory.bytes[..length].to_vec();
        let first = memory.synced / SECTOR;
        for (sector, bytes) in bytes.chunks_mut(SECTOR).enumerate().skip(first) {
            if !arrived(sector) {
                let synced = memory.synced.saturating_sub(sector * SECTOR);
                bytes.iter_mut().skip(synced).for_each(|byte| *byte = 0);
            }
        }
        let mut after = left.memory();
        after.synced = bytes.len();
        after.bytes = bytes;
        drop(after);
        left
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let memory = self.memory();
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let held = memory
            .bytes
            .get(from..)
            .and_then(|it| it.get(..bytes.len()));
        bytes.copy_from_slice(held.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// Counts an operation and says how it fails, if it does.
    fn operation(&mut self) -> Option<Failure> {
        self.operations += 1;
        let failing = self.failure.filter(|(at, _)| *at == self.operations);
        failing.map(|(_, failure)| failure)
    }
}

fn outcome(failure: Option<Failure>) -> io::Result<()> {
    match failure {
        None => Ok(()),
        Some(Failure::Refused | Failure::Unsure) => Err(io::Error::other("told to fail")),
        Some(Failure::Short) => Err(io::ErrorKind::StorageFull.into()),
    }
}

impl Storage for MemoryStorage {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut memory = self.memory();
        let failure = memory.operation();
        let written = match failure {
            None | Some(Failure::Unsure) => bytes.len(),
            Some(Failure::Refused) => 0,
            Some(Failure::Short) => bytes.len() / 2,
        };
        memory.bytes.extend_from_slice(&bytes[..written]);
        memory.appends += 1;
        outcome(failure)
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut memory = self.memory();
        let failure = memory.operation();
        if matches!(failure, None | Some(Failure::Unsure)) {
            memory.synced = memory.bytes.len();
        }
        memory.syncs += 1;
        outcome(failure)
    }

    fn read(&self) -> io::Result<Box<dyn BufRead + Send + '_>> {
        Ok(Box::new(Cursor::new(self.bytes())))
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.memory().bytes.len() as u64)
    }

    fn shelf(&self) -> Option<Box<dyn Shelf>> {
        let storage = self.clone();
        let read = move |offset, bytes: &mut [u8]| storage.read_at(offset, bytes);
        Some(Box::new(Bytes::new(read)))
    }

    fn indexed_from(&self) -> Option<u64> {
        self.memory().indexed_from
    }

    fn index_place(&self) -> Option<IndexPlace> {
        Some(IndexPlace::memory(self.clone()))
    }

    fn write_blob(&mut self, digest: Digest, bytes: &[u8]) -> io::Result<()> {
        let mut memory = self.memory();
        let failure = memory.operation();
        if matches!(failure, None | Some(Failure::Unsure)) {
            memory.blobs.entry(digest).or_insert_with(|| bytes.to_vec());
        }
        outcome(failure)
    }

    fn read_blob(&self, digest: Digest) -> io::Result<Option<Vec<u8>>> {
        Ok(self.memory().blobs.get(&digest).cloned())
    }

    fn location(&self) -> String {
        "transcript in memory".to_owned()
    }
}
