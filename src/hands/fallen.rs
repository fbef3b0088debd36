//! Walls that fall while something runs: the user replaces what is protected, and its mount is gone
//! with the old file.
//!
//! The system tells of every mount that goes. Whatever runs is ended at once, and the next process
//! builds the walls anew.

use std::cell::{Cell, RefCell};
use std::fs::File;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::hands::{Answer, Order, limits};
use crate::sandbox::Walls;
use crate::tools::{Outcome, scope};

/// Guards what runs within walls.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    /// `None`: there are none.
    walls: Option<&'a Walls>,
    /// The table of mounts, which tells of its changes; `None` where it cannot be had.
    table: Option<AsyncFd<File>>,
    /// How many orders are not answered yet.
    running: Cell<usize>,
    /// What fell while something ran.
    fallen: RefCell<Option<String>>,
}

impl<'a> Guard<'a> {
    /// Guards what runs within these walls. To be called within a runtime.
    pub(super) fn new(walls: Option<&'a Walls>) -> Self {
        #[expect(
            deprecated,
            reason = "what takes its place is unsafe; a file keeps its descriptor for as long as it lives"
        )]
        let told_of = |table| AsyncFd::with_interest(table, Interest::PRIORITY);
        let table = walls.and_then(|_| File::open("/proc/self/mountinfo").and_then(told_of).ok());
        Self {
            walls,
            table,
            running: Cell::new(0),
            fallen: RefCell::default(),
        }
    }

    /// Begins an order; what is answered instead where something has fallen before it.
    pub(super) fn begin(&self, order: &Order) -> Option<Answer> {
        let Some(path) = self.breach() else {
            self.running.set(self.running.get() + 1);
            return None;
        };
        let text = format!(
            "Nothing ran: {path} was replaced or removed from outside the sandbox, which was to keep it \
             as it is. The next call runs in a new one; background jobs have ended."
        );
        Some(Answer::Last {
            call: order.call,
            outcome: Box::new(Outcome::error(text)),
        })
    }

    /// Ends whatever runs when a wall falls, for as long as it is polled.
    pub(super) async fn watch(&self) {
        while let Some(table) = &self.table
            && let Ok(mut changed) = table.ready(Interest::PRIORITY).await
        {
            changed.clear_ready();
            if let Some(path) = self.breach() {
                limits::end_all();
                *self.fallen.borrow_mut() = Some(path);
            }
        }
        std::future::pending::<()>().await;
    }

    /// The answer as it is said: whatever was ended is told why, and the last of it is the last of
    /// this process.
    pub(super) fn settle(&self, answer: Answer) -> Answer {
        let Answer::Done { call, mut outcome } = answer else {
            return answer;
        };
        self.running.set(self.running.get().saturating_sub(1));
        let fallen = self.fallen.borrow();
        let Some(path) = fallen.as_deref() else {
            return Answer::Done { call, outcome };
        };
        let line = format!(
            "[{path} was replaced or removed from outside the sandbox while this ran, which was to keep \
             it as it is: everything that ran was ended, and the next call runs in a new one; tell the \
             user to look at that file before anything uses it]"
        );
        outcome.add_line(&line);
        if self.running.get() == 0 {
            Answer::Last { call, outcome }
        } else {
            Answer::Done { call, outcome }
        }
    }

    /// What is not protected any more.
    fn breach(&self) -> Option<String> {
        let path = self.walls?.breach()?;
        Some(scope::one_line(&path.display().to_string()))
    }
}
