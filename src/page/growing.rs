//! A transcript that grows, as pieces of data for a page.

use std::fmt::Write as _;

use crate::page::Data;
use crate::record::{Follow, FollowError};
use crate::secret::Masks;
use crate::transcript::jsonl::Item;

/// The most that is handed out at once, in bytes; more only if one piece is longer.
const AT_ONCE: usize = 16 << 20;

/// Everything that was read so far, piece by piece: the first is what stood there in the beginning.
#[derive(Debug)]
pub(super) struct Growing {
    follow: Follow,
    data: Data,
    pieces: Vec<String>,
    /// Why nothing more is to come.
    trouble: Option<String>,
}

impl Growing {
    /// Reads what is there.
    pub(super) fn new(follow: Follow, masks: Masks) -> Result<Self, FollowError> {
        let mut growing = Self {
            follow,
            data: Data::behind(masks),
            pieces: Vec::new(),
            trouble: None,
        };
        growing.read()?;
        growing.pieces.push(growing.data.more());
        Ok(growing)
    }

    /// Reads what came since.
    pub(super) fn grow(&mut self) {
        if self.trouble.is_some() {
            return;
        }
        match self.read() {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => self.trouble = Some(trouble(&error)),
        }
        self.pieces.push(self.data.more());
    }

    /// Returns how much was read.
    fn read(&mut self) -> Result<usize, FollowError> {
        let (follow, data) = (&mut self.follow, &mut self.data);
        let mut count = 0;
        follow.more(|item| {
            count += 1;
            match item {
                Item::Entry { entry, .. } => data.take(&entry),
                Item::Damage(damage) => data.damaged(damage.to_string()),
                // An unfinished line waits.
                Item::Torn(_) => {}
            }
        })?;
        Ok(count)
    }

    /// What stood there in the beginning.
    pub(super) fn first(&self) -> &str {
        self.pieces.first().map_or("{}", String::as_str)
    }

    /// The pieces from this one on, as the JSON that is sent; `None` if there is nothing to say.
    pub(super) fn more(&self, from: usize) -> Option<String> {
        let from = from.min(self.pieces.len());
        let rest = &self.pieces[from..];
        if rest.is_empty() && self.trouble.is_none() {
            return None;
        }
        Some(self.answer(from, rest))
    }

    /// What is sent where nothing came.
    pub(super) fn nothing(&self, from: usize) -> String {
        self.answer(from.min(self.pieces.len()), &[])
    }

    fn answer(&self, from: usize, pieces: &[String]) -> String {
        let mut text = String::from("{\"more\":[");
        let mut next = from;
        for piece in pieces {
            if next > from && text.len() + piece.len() > AT_ONCE {
                break;
            }
            if next > from {
                text.push(',');
            }
            text.push_str(piece);
            next += 1;
        }
        text.push_str("],\"next\":");
        text.push_str(&next.to_string());
        if let Some(trouble) = &self.trouble
            && next == self.pieces.len()
        {
            let trouble = serde_json::Value::from(trouble.as_str());
            write!(text, ",\"trouble\":{trouble}").ok();
        }
        text.push('}');
        text
    }
}

/// What is said of it on the page, which never shows a path of this machine.
fn trouble(error: &FollowError) -> String {
    match error {
        FollowError::Open(_) | FollowError::Read { .. } => "the transcript cannot be read",
        FollowError::Replaced { .. } => "the transcript is gone, or another took its place",
        FollowError::Shrunk { .. } => "the transcript has become shorter",
    }
    .to_owned()
}
