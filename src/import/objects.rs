//! The objects of a recording, whether they stand one a line or in a list.

use std::io;
use std::vec;

use serde_json::Value;

use crate::import::Unread;
use crate::import::fields;
use crate::import::lines::{Lines, parts};
use crate::import::source::{Shape, Source};

/// The objects of a recording, one after the other: one a line, those of a list, or the only one.
pub(super) enum Objects<'a> {
    /// As they are read.
    Lines(Lines<'a>),
    /// Read already, and how many there are no objects.
    All(vec::IntoIter<Value>, u64),
}

impl<'a> Objects<'a> {
    /// The objects of this recording.
    pub(super) fn of(source: &'a mut Source) -> Result<Self, Unread> {
        match source.shape()? {
            Shape::Lines => Ok(Self::Lines(source.lines())),
            Shape::List | Shape::Object => {
                let mut all = parts(fields::whole(source)?);
                let found = all.len();
                all.retain(Value::is_object);
                let skipped = (found - all.len()) as u64;
                Ok(Self::All(all.into_iter(), skipped))
            }
        }
    }

    /// The next one; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Value>> {
        match self {
            Self::Lines(lines) => lines.next(),
            Self::All(all, _) => Ok(all.next()),
        }
    }

    /// How many were left out so far.
    pub(super) fn skipped(&self) -> u64 {
        match self {
            Self::Lines(lines) => lines.skipped(),
            Self::All(_, skipped) => *skipped,
        }
    }
}
