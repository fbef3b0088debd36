//! The brain's side of a confined process: starts it, speaks to it, and starts it anew if it dies.

use std::ffi::OsString;
use std::io::{self, BufRead as _, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{BufReader, Interest};
use tokio::net::TcpListener;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::hands::asked::{Approval, Asking};
use crate::hands::charter::{Charter, Opening};
use crate::hands::deaths::Deaths;
use crate::hands::frames::Frame;
use crate::hands::own::OwnDirectory;
use crate::hands::patience::Patience;
use crate::hands::{
    Answer, Ask, External, Hands, STAGES, Waiting, Workspace, dispatch, locked, passing, proxy,
};
use crate::id::CallId;
use crate::sandbox::{Bounds, Enforced, Mechanism, remove_placeholders};
use crate::tools::{Outcome, family};

/// How long a process may take until it is ready.
const OPENING: Duration = Duration::from_secs(20);

/// How long it may take to end what runs, once nobody asks any more.
const CLOSING: Duration = Duration::from_secs(3);

/// How long one that does not answer may take to end what it has started.
const MOMENT: Duration = Duration::from_secs(1);

/// How long a message may take to be sent.
const SENDING: Duration = Duration::from_secs(10);

/// How much of its complaints is told.
const COMPLAINTS: u64 = 64 << 10;

/// What is answered where there is no process any more.
const GONE: &str = "Nothing ran: the process in which tools run died, and no other is started.";

/// How a confined process is started: a program that, started with these arguments and one of
/// [`STAGES`](crate::hands::STAGES), does nothing but call [`attend`](crate::hands::attend).
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, before the stage.
    pub arguments: Vec<OsString>,
    /// Where it may have a directory of its own.
    pub temporary: PathBuf,
}

/// Confined hands cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ConfinedError {
    /// The process cannot be started.
    #[error("the process for tools cannot be started")]
    Start(#[source] io::Error),
    /// It has no directory of its own.
    #[error("no directory can be made below {}", .path.display())]
    Directory {
        /// Where it would be.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It ended, or said nothing that can be understood.
    #[error("the process for tools is not one of this program")]
    Stranger,
    /// It cannot be held to its bounds.
    #[error("{0}")]
    Refused(String),
    /// Namespaces cannot be had here, whatever the bounds are.
    #[error("{0}")]
    Without(String),
    /// What was named to be written lies elsewhere.
    #[error(
        "{} may not be written: a link in the workspace leads it elsewhere; name in sandbox.write \
         what it leads to",
        .path.display()
    )]
    LedAway {
        /// As it was named.
        path: PathBuf,
    },
}

impl Hands {
    /// Hands that work in a process of their own, which holds itself to these bounds.
    ///
    /// To be called within a tokio runtime. When this returns the bounds are enforced; if they
    /// cannot be, no hands are had. A process that dies is started again with the next order.
    pub async fn confined(
        workspace: Workspace,
        tools: Vec<External>,
        bounds: Bounds,
        launch: Launch,
    ) -> Result<(Self, Enforced), ConfinedError> {
        Self::start(workspace, tools, bounds, (launch, None)).await
    }

    /// The same, where somebody is asked about what the bounds forbid.
    pub async fn confined_asking(
        workspace: Workspace,
        tools: Vec<External>,
        bounds: Bounds,
        launch: Launch,
        approval: Approval,
    ) -> Result<(Self, Enforced), ConfinedError> {
        let (here, within) = (workspace.clone(), bounds.clone());
        let asking = Asking::new(approval, here, within, launch.clone());
        let asking = Some(Arc::new(asking));
        Self::start(workspace, tools, bounds.asking(), (launch, asking)).await
    }

    async fn start(
        workspace: Workspace,
        tools: Vec<External>,
        bounds: Bounds,
        (launch, asking): (Launch, Option<Arc<Asking>>),
    ) -> Result<(Self, Enforced), ConfinedError> {
        if let Some(path) = bounds.led_away.first() {
            return Err(ConfinedError::LedAway { path: path.clone() });
        }
        let temporary = bounds.apart(&launch.temporary);
        let failed = |source| ConfinedError::Directory {
            path: temporary.clone(),
            source,
        };
        let own = OwnDirectory::make(&temporary).map_err(failed)?;
        let root = workspace.root().to_owned();
        let mut charter = Charter::new(&workspace, tools, bounds);
        charter.bounds.own = vec![own.path().to_owned()];
        let waiting = Arc::<Mutex<Waiting>>::default();
        let deaths = Arc::<Deaths>::default();
        let maker = Maker {
            charter,
            launch,
            waiting: Arc::clone(&waiting),
            deaths: Arc::clone(&deaths),
            asking: asking.clone(),
        };
        let line = maker.start().await?;
        let enforced = line.enforced.clone();
        let (ask, asked) = mpsc::unbounded_channel();
        let serving = tokio::spawn(pump(maker, line, asked, own));
        let hands = Self {
            root,
            ask,
            waiting,
            deaths,
            serving,
            asking,
        };
        Ok((hands, enforced))
    }
}

/// Hands on what is asked, until nobody can ask any more; then waits until the process has ended.
async fn pump(
    maker: Maker,
    line: Line,
    mut asked: mpsc::UnboundedReceiver<Ask>,
    own: OwnDirectory,
) {
    let mechanism = line.enforced.mechanism;
    let mut line = Some(line);
    let mut patience = Patience::new(Instant::now());
    while let Some(ask) = next(&mut asked, &mut line, &mut patience, &maker).await {
        if line.as_ref().is_some_and(Line::is_dead)
            && let Some(dead) = line.take()
        {
            dead.close().await;
        }
        if let Ask::Order(order) = &ask
            && !locked(&maker.waiting).calls.contains_key(&order.call)
        {
            // It was answered when the process died, and may not run after that.
            continue;
        }
        if line.is_none() {
            if let Ask::Order(order) = &ask {
                line = maker.start_again(mechanism).await;
                if line.is_none() {
                    maker.answer(order.call, Outcome::error(GONE));
                }
            } else {
                // What is not there has nothing to end.
                maker.jobs_ended();
            }
        }
        let Some(open) = &mut line else { continue };
        let Some(frame) = Frame::of(&ask, Vec::new()) else {
            if let Ask::Order(order) = ask {
                let text = "The arguments are too long for a tool. Nothing ran.";
                maker.answer(order.call, Outcome::error(text));
            }
            continue;
        };
        if sent(&frame, &mut open.write).await.is_err()
            && let Some(dead) = line.take()
        {
            // Whoever waits for it learns of it there.
            dead.close().await;
            *locked(&maker.waiting) = Waiting::default();
        }
    }
    if let Some(line) = line {
        line.close().await;
    }
    drop(own);
}

/// The next that is asked. Meanwhile a process that is waited for and does not answer is ended.
async fn next(
    asked: &mut mpsc::UnboundedReceiver<Ask>,
    line: &mut Option<Line>,
    patience: &mut Patience,
    maker: &Maker,
) -> Option<Ask> {
    loop {
        let look = match line {
            Some(_) if locked(&maker.waiting).is_awaited() => Some(patience.next()),
            Some(_) | None => None,
        };
        let look = async {
            match look {
                Some(look) => tokio::time::sleep_until(look).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            ask = asked.recv() => {
                if let Some(ask) = &ask {
                    patience.note(ask, Instant::now());
                }
                return ask;
            }
            () = look => {
                let out = patience.is_out(&locked(&maker.waiting), Instant::now());
                let asks = Frame::of(&Ask::Sign, Vec::new());
                let lives = match (line.as_mut(), asks) {
                    (Some(open), Some(asks)) if !out => {
                        sent(&asks, &mut open.write).await.is_ok()
                    }
                    (Some(_) | None, _) => false,
                };
                if !lives && let Some(silent) = line.take() {
                    tracing::warn!("the process for tools does not answer and is ended");
                    silent.abandon(maker).await;
                    *patience = Patience::new(Instant::now());
                }
            }
        }
    }
}

/// Sends a frame, if it is taken in time.
async fn sent(frame: &Frame, to: &mut OwnedWriteHalf) -> io::Result<()> {
    tokio::time::timeout(SENDING, frame.send(to)).await?
}

/// Starts processes under one charter.
#[derive(Debug)]
struct Maker {
    charter: Charter,
    launch: Launch,
    waiting: Arc<Mutex<Waiting>>,
    deaths: Arc<Deaths>,
    asking: Option<Arc<Asking>>,
}

impl Maker {
    /// A process within its bounds: with namespaces if they can be had, else without.
    async fn start(&self) -> Result<Line, ConfinedError> {
        if !self.charter.bounds.tries_namespaces() {
            return self.start_by(Mechanism::Landlock).await;
        }
        let first = match self.start_by(Mechanism::Namespaces).await {
            Err(ConfinedError::Without(why)) => why,
            started => return started,
        };
        tracing::debug!(why = first, "no namespaces");
        let second = self.start_by(Mechanism::Landlock).await;
        second.map_err(|error| match error {
            ConfinedError::Refused(why) => {
                ConfinedError::Refused(format!("{why}; namespaces: {first}"))
            }
            error @ (ConfinedError::Start(_)
            | ConfinedError::Directory { .. }
            | ConfinedError::LedAway { .. }
            | ConfinedError::Without(_)
            | ConfinedError::Stranger) => error,
        })
    }

    /// A process in place of one that died, held by the same mechanism; `None` if there is to be
    /// none, or none can be had.
    async fn start_again(&self, mechanism: Mechanism) -> Option<Line> {
        if self.deaths.is_lost() {
            return None;
        }
        let started = self.start_by(mechanism).await;
        started
            .inspect_err(|why| self.deaths.has_no_other(why))
            .ok()
    }

    async fn start_by(&self, mechanism: Mechanism) -> Result<Line, ConfinedError> {
        let (ours, theirs) = UnixStream::pair().map_err(ConfinedError::Start)?;
        let keeper = Keeper::start(&self.launch, self.stage(mechanism), theirs).await?;
        let stream = ours
            .set_nonblocking(true)
            .and_then(|()| tokio::net::UnixStream::from_std(ours))
            .map_err(ConfinedError::Start)?;
        let mut stream = stream;
        let charter = Frame::of(&self.charter, Vec::new()).ok_or(ConfinedError::Stranger)?;
        let opening = async {
            charter.send(&mut stream).await.ok()?;
            let frame = Frame::next(&mut stream).await.ok()??;
            let opening = frame.message::<Opening>().ok()?;
            let is_ready = matches!(opening, Opening::Ready(_));
            let bounds = &self.charter.bounds;
            let proxy = match &bounds.hosts {
                hosts if is_ready && bounds.has_proxy(mechanism) => {
                    let passed = || passing::receive(&stream);
                    let passed = stream.async_io(Interest::READABLE, passed).await.ok()?;
                    let listener = TcpListener::from_std(passed).ok()?;
                    let serving =
                        tokio::spawn(proxy::serve(listener, hosts.clone(), self.asking.clone()));
                    Some(AbortOnDropHandle::new(serving))
                }
                _ => None,
            };
            Some((opening, stream, proxy))
        };
        match tokio::time::timeout(OPENING, opening).await {
            Ok(Some((Opening::Ready(enforced), stream, proxy))) => {
                let (read, write) = stream.into_split();
                let heard = Heard {
                    waiting: Arc::clone(&self.waiting),
                    deaths: Arc::clone(&self.deaths),
                    end: Arc::default(),
                };
                Ok(Line {
                    write,
                    end: Arc::clone(&heard.end),
                    reading: tokio::spawn(listen(read, heard)),
                    keeper,
                    held: Places(enforced.placeholders.clone()),
                    enforced,
                    _proxy: proxy,
                })
            }
            Ok(Some((Opening::Refused(why), ..))) => {
                keeper.end().await;
                Err(ConfinedError::Refused(why))
            }
            Ok(Some((Opening::Without(why), ..))) => {
                keeper.end().await;
                Err(ConfinedError::Without(why))
            }
            Ok(None) | Err(_) => {
                keeper.end().await;
                Err(ConfinedError::Stranger)
            }
        }
    }

    fn stage(&self, mechanism: Mechanism) -> &'static str {
        match (mechanism, self.charter.bounds.open) {
            (Mechanism::Landlock, _) => STAGES[0],
            (Mechanism::Namespaces, true) => STAGES[1],
            (Mechanism::Namespaces, false) => STAGES[2],
        }
    }

    fn answer(&self, call: CallId, outcome: Outcome) {
        let outcome = Box::new(outcome);
        dispatch(&self.waiting, Answer::Done { call, outcome });
    }

    fn jobs_ended(&self) {
        dispatch(&self.waiting, Answer::JobsEnded);
    }
}

/// A process that is spoken to.
#[derive(Debug)]
struct Line {
    write: OwnedWriteHalf,
    end: Arc<End>,
    reading: JoinHandle<()>,
    keeper: Keeper,
    enforced: Enforced,
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
    /// Whether nothing will be heard any more.
    fn is_dead(&self) -> bool {
        self.end.is_dead.load(Ordering::SeqCst)
    }

    /// Lets the process end, and waits for it.
    async fn close(self) {
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
}

impl Line {
    /// Ends a process that does not answer: nobody waits for it any longer. If it was only stopped,
    /// it is given a moment to end what it has started.
    async fn abandon(self, maker: &Maker) {
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
            maker.deaths.died();
            *locked(&maker.waiting) = Waiting::default();
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
        if let Answer::Done { outcome, .. } = &mut answer {
            deaths.served();
            if !frame.blob.is_empty() {
                outcome.whole = Some(frame.blob);
            }
        }
        dispatch(&waiting, answer);
    }
    // Known before anybody is told, who may ask again at once.
    end.is_dead.store(true, Ordering::SeqCst);
    if !end.is_wanted.load(Ordering::SeqCst) {
        deaths.died();
    }
    *locked(&waiting) = Waiting::default();
}

/// Keeps a process: it lives no longer than the thread that started it, which waits for it.
#[derive(Debug)]
struct Keeper {
    leader: Pid,
    ended: Option<oneshot::Receiver<()>>,
}

impl Keeper {
    async fn start(
        launch: &Launch,
        stage: &'static str,
        socket: UnixStream,
    ) -> Result<Self, ConfinedError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one process that is not a tool's, in which all of those run"
        )]
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.arguments)
            .arg(stage)
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(socket))
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let (tell, told) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        // The process dies with the thread that started it, so no thread of a pool may do that.
        let kept = std::thread::Builder::new().name("hands".to_owned());
        let kept = kept.spawn(move || {
            let started = command.spawn();
            // What it was given is its own now.
            drop(command);
            match started {
                Ok(child) => {
                    let leader = Pid::from_child(&child);
                    let lives = family::adopt(leader);
                    tell.send(if lives {
                        Ok(leader)
                    } else {
                        Err(io::Error::other("the program is ending"))
                    })
                    .ok();
                    if !lives {
                        rustix::process::kill_process(leader, Signal::KILL).ok();
                    }
                    watch(child);
                    family::release(leader);
                }
                Err(error) => {
                    tell.send(Err(error)).ok();
                }
            }
            end.send(()).ok();
        });
        kept.map_err(ConfinedError::Start)?;
        let leader = told.await.map_err(|_| ConfinedError::Stranger)?;
        Ok(Self {
            leader: leader.map_err(ConfinedError::Start)?,
            ended: Some(ended),
        })
    }

    /// Ends the process, and waits until it is gone. One that ends by itself is given a moment.
    async fn end(mut self) {
        if let Some(mut ended) = self.ended.take()
            && tokio::time::timeout(CLOSING, &mut ended).await.is_err()
        {
            self.ended = Some(ended);
            self.kill().await;
        }
    }

    /// Sends a signal, if the process has not ended: its number may be another's by then.
    fn signal(&mut self, signal: Signal) {
        let Some(ended) = &mut self.ended else {
            return;
        };
        if ended.try_recv() == Err(oneshot::error::TryRecvError::Empty) {
            rustix::process::kill_process(self.leader, signal).ok();
        } else {
            self.ended = None;
        }
    }

    /// Kills the process, and waits until it is gone, unless the system cannot end it.
    async fn kill(&mut self) {
        self.signal(Signal::KILL);
        if let Some(ended) = self.ended.take() {
            tokio::time::timeout(CLOSING, ended).await.ok();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Nobody has waited for its end.
        if let Some(mut ended) = self.ended.take()
            && ended.try_recv() == Err(oneshot::error::TryRecvError::Empty)
        {
            rustix::process::kill_process(self.leader, Signal::KILL).ok();
        }
    }
}

/// Tells what a process complains of, and waits for its end.
fn watch(mut child: Child) {
    if let Some(errors) = child.stderr.take() {
        let mut told = io::BufReader::new(errors.take(COMPLAINTS));
        let mut line = Vec::new();
        while told.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line);
            tracing::warn!(text = text.trim_end(), "the process for tools");
            line.clear();
        }
        io::copy(&mut told.into_inner().into_inner(), &mut io::sink()).ok();
    }
    child.wait().ok();
}
