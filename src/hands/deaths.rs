//! What becomes of the process in which tools run: its deaths, each told once.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often in a row it may die without having answered a call, and be started again.
const MOST: u32 = 3;

/// The deaths of one side of hands.
#[derive(Debug, Default)]
pub(super) struct Deaths(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    in_a_row: u32,
    lost: bool,
    remarks: Vec<String>,
}

impl Deaths {
    /// A call was answered.
    pub(super) fn served(&self) {
        self.known().in_a_row = 0;
    }

    /// It died while it was needed.
    pub(super) fn died(&self) {
        let mut known = self.known();
        known.in_a_row += 1;
        known.lost |= known.in_a_row > MOST;
        let text = if known.lost {
            format!(
                "the process for tools died {} times in a row",
                known.in_a_row
            )
        } else {
            "the process for tools died, and what ran in it; the next call starts another, held as the \
             first was"
                .to_owned()
        };
        known.remarks.push(text);
    }

    /// Another cannot be had.
    pub(super) fn has_no_other(&self, why: &dyn std::error::Error) {
        let mut known = self.known();
        if !known.lost {
            known.lost = true;
            let text = format!("the process for tools died, and there is no other: {why}");
            known.remarks.push(text);
        }
    }

    /// Whether no process will be started any more.
    pub(super) fn is_lost(&self) -> bool {
        self.known().lost
    }

    /// What was not told yet.
    pub(super) fn remarks(&self) -> Vec<String> {
        std::mem::take(&mut self.known().remarks)
    }

    /// Every change of it is whole, also if its thread then panicked.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
