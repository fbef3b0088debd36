//! A confined process as the brain speaks to it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::BufReader;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

use crate::hands::deaths::Deaths;
use crate::hands::frames::Frame;
use crate::hands::keeper::{CLOSING, Keeper};
use crate::hands::{Answer, Waiting, dispatch, locked};
use crate::sandbox::{Enforced, remove_placeholders};

/// How long one that does not answer may take to end what it has started.
const MOMENT: Duration = Duration::from_secs(1);

/// A process that is spoken to.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) write: OwnedWriteHalf,
    end: Arc<End>,
    reading: JoinHandle<()>,
    keeper: Keeper,
    /// What holds the process to its bounds; `None` if nothing does.
    pub(super) enforced: Option<Enforced>,
    held: Places,
    /// The way to the hosts that may be reached, if there are any.
    _proxy: Option<AbortOnDropHandle<()>>,
}

/// How a process that is spoken to ends.
#[derive(Debug, Default)]
struct End {
    /// Nothing will be heard of it any more.
    is_dead: AtomicBool,
    /// It is to end.
    is_wanted: AtomicBool,
}

/// What was made to hold places, and is removed with this.
#[derive(Debug)]
struct Places(Vec<PathBuf>);

impl Drop for Places {
    fn drop(&mut self) {
        remove_placeholders(&self.0);
    }
}

impl Line {
    /// Speaks to a process that is ready.
    pub(super) fn new(
        stream: tokio::net::UnixStream,
        keeper: Keeper,
        enforced: Option<Enforced>,
        proxy: Option<AbortOnDropHandle<()>>,
        (waiting, deaths): (&Arc<Mutex<Waiting>>, &Arc<Deaths>),
    ) -> Self {
        let (read, write) = stream.into_split();
        let heard = Heard {
            waiting: Arc::clone(waiting),
            deaths: Arc::clone(deaths),
            end: Arc::default(),
        };
        Self {
            write,
            end: Arc::clone(&heard.end),
            reading: tokio::spawn(listen(read, heard)),
            keeper,
            held: Places(
                enforced
                    .as_ref()
                    .map(|it| it.placeholders.clone())
                    .unwrap_or_default(),
            ),
            enforced,
            _proxy: proxy,
        }
    }

    /// Whether nothing will be heard any more.
    pub(super) fn is_dead(&self) -> bool {
        self.end.is_dead.load(Ordering::SeqCst)
    }

    /// Lets the process end, and waits for it.
    pub(super) async fn close(self) {
        let Self {
            write,
            end,
            reading,
            keeper,
            held,
            ..
        } = self;
        end.is_wanted.store(true, Ordering::SeqCst);
        drop(write);
        tokio::time::timeout(CLOSING, reading).await.ok();
        keeper.end().await;
        drop(held);
    }

    /// Ends a process that does not answer: nobody waits for it any longer. If it was only stopped,
    /// it is given a moment to end what it has started.
    pub(super) async fn abandon(self, waiting: &Mutex<Waiting>, deaths: &Deaths) {
        let Self {
            write,
            mut reading,
            mut keeper,
            held,
            ..
        } = self;
        keeper.signal(Signal::CONT);
        drop(write);
        if tokio::time::timeout(MOMENT, &mut reading).await.is_err() {
            // Nobody is told by it any more.
            reading.abort();
            reading.await.ok();
            deaths.died();
            locked(waiting).lose();
        }
        keeper.kill().await;
        drop(held);
    }
}

/// Where what is heard goes.
#[derive(Debug)]
struct Heard {
    waiting: Arc<Mutex<Waiting>>,
    deaths: Arc<Deaths>,
    end: Arc<End>,
}

/// Hears what the process answers, until it ends: then nobody need wait any longer.
async fn listen(read: OwnedReadHalf, heard: Heard) {
    let Heard {
        waiting,
        deaths,
        end,
    } = heard;
    let mut read = BufReader::new(read);
    while let Ok(Some(frame)) = Frame::next(&mut read).await {
        let Ok(mut answer) = frame.message::<Answer>() else {
            break;
        };
        if matches!(answer, Answer::Done { .. }) {
            deaths.served();
        }
        if let Answer::Done { outcome, .. } | Answer::Last { outcome, .. } = &mut answer
            && !frame.blob.is_empty()
        {
            outcome.whole = Some(frame.blob);
        }
        let is_last = matches!(answer, Answer::Last { .. });
        if is_last {
            end.is_dead.store(true, Ordering::SeqCst);
        }
        dispatch(&waiting, answer);
        if is_last {
            return;
        }
    }
    // Known before anybody is told, who may ask again at once.
    end.is_dead.store(true, Ordering::SeqCst);
    if !end.is_wanted.load(Ordering::SeqCst) {
        deaths.died();
    }
    locked(&waiting).lose();
}
