//! Frames: messages between the brain and a confined process, on a socket of their own.
//!
//! A frame is two lengths, then that many bytes of JSON and that many of a blob, which holds what
//! would be clumsy as JSON. A frame that is too large, or that says so of itself, is none.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The longest part of a frame, in bytes.
pub(super) const LONGEST: usize = 16 << 20;

/// A message as it is sent.
#[derive(Debug, Default)]
pub(super) struct Frame {
    text: Vec<u8>,
    /// What stands beside it.
    pub(super) blob: Vec<u8>,
}

impl Frame {
    /// The frame of a message; `None` if it is too large.
    pub(super) fn of(message: &impl Serialize, blob: Vec<u8>) -> Option<Self> {
        let text = serde_json::to_vec(message).ok()?;
        let fits = text.len() <= LONGEST && blob.len() <= LONGEST;
        fits.then_some(Self { text, blob })
    }

    /// What it says.
    pub(super) fn message<T: DeserializeOwned>(&self) -> io::Result<T> {
        serde_json::from_slice(&self.text).map_err(io::Error::from)
    }

    /// Writes it.
    pub(super) async fn send(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        to.write_all(&self.bytes()).await
    }

    /// Writes it, waiting.
    pub(super) fn send_now(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.bytes())
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + self.text.len() + self.blob.len());
        for part in [&self.text, &self.blob] {
            // No part is longer than fits.
            bytes.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
        }
        bytes.extend_from_slice(&self.text);
        bytes.extend_from_slice(&self.blob);
        bytes
    }

    /// Reads the next; `None` at the end.
    pub(super) async fn next(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let mut head = [0; 8];
        if let Err(error) = from.read_exact(&mut head).await {
            return ended(error);
        }
        let mut frame = Self::empty(head)?;
        from.read_exact(&mut frame.text).await?;
        from.read_exact(&mut frame.blob).await?;
        Ok(Some(frame))
    }

    /// Reads the next, waiting; `None` at the end.
    pub(super) fn next_now(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut head = [0; 8];
        if let Err(error) = from.read_exact(&mut head) {
            return ended(error);
        }
        let mut frame = Self::empty(head)?;
        from.read_exact(&mut frame.text)?;
        from.read_exact(&mut frame.blob)?;
        Ok(Some(frame))
    }

    /// A frame with room for what was announced.
    fn empty([a, b, c, d, rest @ ..]: [u8; 8]) -> io::Result<Self> {
        let lengths = [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes(rest)];
        let [text, blob] = lengths.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        if text > LONGEST || blob > LONGEST {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a frame is too large",
            ));
        }
        Ok(Self {
            text: vec![0; text],
            blob: vec![0; blob],
        })
    }
}

/// Whether that is the end, between two frames or in the middle of one.
fn ended(error: io::Error) -> io::Result<Option<Frame>> {
    let ends = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];
    if ends.contains(&error.kind()) {
        Ok(None)
    } else {
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_as_they_were_sent_and_none_is_too_large() {
        let mut bytes = Vec::new();
        for blob in [vec![], vec![0, 255, 7]] {
            let frame = Frame::of(&("a", 1), blob).unwrap();
            frame.send_now(&mut bytes).unwrap();
        }
        let mut rest = bytes.as_slice();
        for blob in [&[][..], &[0, 255, 7]] {
            let frame = Frame::next_now(&mut rest).unwrap().unwrap();
            assert_eq!(
                frame.message::<(String, u8)>().unwrap(),
                ("a".to_owned(), 1)
            );
            assert_eq!(frame.blob, blob);
        }
        assert!(Frame::next_now(&mut rest).unwrap().is_none());
        assert!(Frame::next_now(&mut &bytes[..12]).is_err());
        let huge = [[255; 4], [0; 4]].concat();
        assert!(Frame::next_now(&mut huge.as_slice()).is_err());
        assert!(Frame::of(&"", vec![0; LONGEST + 1]).is_none());
        assert!(Frame::of(&"a".repeat(LONGEST), Vec::new()).is_none());
    }
}
