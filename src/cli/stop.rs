//! Signals that stop a run: the first ends it orderly, the second at once. A terminal that goes
//! away counts like being told to end.

use std::io::{self, Write as _};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use undertext::hands;
use undertext::secret::Masks;

use crate::cli::exit::Exit;
use crate::cli::visible::visible;

/// How long whoever is told of the second signal may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// Waits for signals from now on: each is told with the exit code it asks for.
///
/// It does so in a thread of its own: the second one ends the process even if whoever is told hangs,
/// say on a pipe that nobody reads. What is said then are `last_words`, behind these masks.
pub(crate) fn watch(last_words: &str, masks: &Masks) -> io::Result<UnboundedReceiver<Exit>> {
    let (tell, told) = mpsc::unbounded_channel();
    let (last_words, masks) = (last_words.to_owned(), masks.clone());
    let last_words = move || visible(&masks.text(&last_words)).into_owned();
    let (begun, begins) = std::sync::mpsc::sync_channel(1);
    let watching = move || match Signals::begin() {
        Ok((runtime, signals)) => {
            begun.send(Ok(())).ok();
            runtime.block_on(signals.watch(tell, last_words));
        }
        Err(error) => {
            begun.send(Err(error)).ok();
        }
    };
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread.spawn(watching).map(drop)?;
    // From here on a signal is told, and does not end the process.
    begins
        .recv()
        .unwrap_or_else(|gone| Err(io::Error::other(gone)))?;
    Ok(told)
}

/// The signals that are waited for.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` where it is ignored: whoever does so for us, as `nohup` does, means a run that outlives
    /// its terminal.
    hang_up: Option<Signal>,
}

impl Signals {
    /// Begins to wait for them, in this thread.
    fn begin() -> io::Result<(Runtime, Self)> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build()?;
        let within = runtime.enter();
        let hang_up = if is_hang_up_ignored() {
            None
        } else {
            Some(signal(SignalKind::hangup())?)
        };
        let signals = Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up,
        };
        drop(within);
        Ok((runtime, signals))
    }

    /// Tells of each until the process ends, also while nobody listens any more: what is done last may
    /// hang as well.
    async fn watch(mut self, tell: UnboundedSender<Exit>, last_words: impl FnOnce() -> String) {
        let mut times = 0;
        loop {
            let exit = tokio::select! {
                _ = self.interrupt.recv() => Exit::Interrupted,
                _ = self.terminate.recv() => Exit::Terminated,
                _ = hung_up(&mut self.hang_up) => Exit::Terminated,
            };
            tell.send(exit).ok();
            times += 1;
            if times > 1 {
                tokio::time::sleep(PATIENCE).await;
                let last_words = last_words();
                // Standard error may be such a pipe as well.
                let said = tokio::task::spawn_blocking(move || {
                    writeln!(io::stderr(), "{last_words}").ok();
                });
                tokio::time::timeout(PATIENCE, said).await.ok();
                return at_once(exit);
            }
        }
    }
}

async fn hung_up(hang_up: &mut Option<Signal>) -> Option<()> {
    match hang_up {
        Some(hang_up) => hang_up.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether this process was begun with SIGHUP ignored, where the system tells.
fn is_hang_up_ignored() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return false;
    };
    let mut lines = status.lines();
    let ignored = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is the first signal.
    mask.is_some_and(|mask| mask & 1 == 1)
}

#[expect(
    clippy::exit,
    reason = "the person asked twice, and the rest of the program does not answer"
)]
fn at_once(exit: Exit) {
    // Nothing is dropped from here on, so nothing else would end what tools have started.
    hands::end_all();
    std::process::exit(exit as i32)
}
