//! Messages to body bytes.
//!
//! A body is compact JSON whose fields stand in a fixed order with the messages last, so that from
//! one request to the next its bytes only grow. [`chat`] renders the head once and each message
//! once; [`digest`] goes on from the saved state of the unchanged prefix. Nothing here knows where
//! messages come from.

pub mod chat;
pub mod digest;

use std::sync::Arc;

use crate::id::Digest;
use crate::transcript::BodyDigest;

/// The version of the functions that build a body. A change of any byte that they produce for an
/// old transcript takes a new number.
pub const RENDERER: u32 = 1;

/// The bytes of a request, with their digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// What is sent, exactly.
    pub bytes: Arc<[u8]>,
    /// SHA-256 of the bytes.
    pub sha256: Digest,
}

impl Body {
    /// The body with these bytes, digested from the first to the last.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        let sha256 = Digest::of(&bytes);
        Self { bytes, sha256 }
    }

    /// What a `request` entry says of it.
    pub fn digest(&self) -> BodyDigest {
        BodyDigest {
            sha256: self.sha256,
            bytes: self.bytes.len() as u64,
        }
    }
}
