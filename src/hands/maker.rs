//! Who makes confined processes: the first, and each in place of one that died.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::{TcpListener, UnixStream};
use tokio_util::task::AbortOnDropHandle;

use crate::hands::asked::Asking;
use crate::hands::charter::{Charter, Opening};
use crate::hands::deaths::Deaths;
use crate::hands::frames::Frame;
use crate::hands::keeper::Keeper;
use crate::hands::launch::{Begun, ConfinedError, Launch, Stage};
use crate::hands::left::Remains;
use crate::hands::line::Line;
use crate::hands::{Answer, Waiting, dispatch, passing, proxy};
use crate::id::CallId;
use crate::sandbox::{Enforced, Mechanism};
use crate::tools::Outcome;

/// How long a process may take until it is ready.
const OPENING: Duration = Duration::from_secs(20);

/// Starts processes under one charter.
#[derive(Debug)]
pub(super) struct Maker {
    pub(super) charter: Charter,
    pub(super) launch: Launch,
    pub(super) waiting: Arc<Mutex<Waiting>>,
    pub(super) deaths: Arc<Deaths>,
    pub(super) asking: Option<Arc<Asking>>,
    /// What was there when the first process began: the next ones tell what came since then.
    pub(super) before: OnceLock<Remains>,
}

impl Maker {
    /// Starts processes under this charter. Whoever may be asked is, about what it forbids.
    pub(super) fn new(charter: Charter, launch: Launch, asking: Option<Arc<Asking>>) -> Self {
        Self {
            charter,
            launch,
            waiting: Arc::default(),
            deaths: Arc::default(),
            asking,
            before: OnceLock::new(),
        }
    }

    /// A process within its bounds, and what holds it to them: namespaces if they can be had, else Landlock
    /// alone. It may have begun ahead.
    pub(super) async fn start(
        &self,
        begun: Option<Begun>,
    ) -> Result<(Line, Enforced), ConfinedError> {
        let line = self.start_somehow(begun).await?;
        let enforced = line.enforced.clone().ok_or(ConfinedError::Stranger)?;
        Ok((line, enforced))
    }

    async fn start_somehow(&self, begun: Option<Begun>) -> Result<Line, ConfinedError> {
        if !self.charter.bounds.tries_namespaces() {
            return self.start_by(Mechanism::Landlock, begun).await;
        }
        let first = match self.start_by(Mechanism::Namespaces, begun).await {
            Err(ConfinedError::Without(why)) => why,
            started => return started,
        };
        tracing::debug!(why = first, "no namespaces");
        let second = self.start_by(Mechanism::Landlock, None).await;
        second.map_err(|error| match error {
            ConfinedError::Without(why) => {
                ConfinedError::Without(format!("{why}; namespaces: {first}"))
            }
            error @ (ConfinedError::Start(_)
            | ConfinedError::Directory { .. }
            | ConfinedError::LedAway { .. }
            | ConfinedError::Refused(_)
            | ConfinedError::Hosts
            | ConfinedError::Stranger) => error,
        })
    }

    /// A process that nothing holds. Nobody waits until it is ready.
    pub(super) async fn start_free(&self, begun: Option<Begun>) -> Result<Line, ConfinedError> {
        let (stream, keeper, told) = self.begin(Stage::Free, &self.charter, begun).await?;
        if !told {
            keeper.end().await;
            return Err(ConfinedError::Stranger);
        }
        let told = (&self.waiting, &self.deaths);
        Ok(Line::new(stream, keeper, None, None, told))
    }

    /// A process in place of one that died, held by the same mechanism, or by none as that was; `None` if
    /// there is to be none, or none can be had.
    pub(super) async fn start_again(&self, mechanism: Option<Mechanism>) -> Option<Line> {
        if self.deaths.is_lost() {
            return None;
        }
        let started = match mechanism {
            Some(mechanism) => self.start_by(mechanism, None).await,
            None => self.start_free(None).await,
        };
        started
            .inspect_err(|why| self.deaths.has_no_other(why))
            .ok()
    }

    /// A process at this stage, the way to it, and whether it was sent its charter, which is on the way while
    /// it is started: it need not wait until this side has its turn again. One that refuses at once may have
    /// ended before it was sent any, and what it says can be read all the same.
    async fn begin(
        &self,
        stage: Stage,
        charter: &Charter,
        begun: Option<Begun>,
    ) -> Result<(UnixStream, Keeper, bool), ConfinedError> {
        let frame = |frame: Option<Frame>| frame.ok_or(ConfinedError::Stranger);
        let charter = frame(Frame::of(charter, Vec::new()))?;
        let mut told = vec![charter];
        let begun = match begun {
            Some(begun) => {
                told.insert(0, frame(Frame::of(&stage.word(), Vec::new()))?);
                begun
            }
            None => Begun::start(&self.launch, stage).map_err(ConfinedError::Start)?,
        };
        let Begun { stream, starting } = begun;
        let mut stream = UnixStream::from_std(stream).map_err(ConfinedError::Start)?;
        let telling = async {
            for frame in &told {
                frame.send(&mut stream).await?;
            }
            Ok::<_, io::Error>(())
        };
        let telling = tokio::time::timeout(OPENING, telling);
        let (keeper, told) = tokio::join!(starting.keep(stage), telling);
        Ok((stream, keeper?, matches!(told, Ok(Ok(())))))
    }

    async fn start_by(
        &self,
        mechanism: Mechanism,
        begun: Option<Begun>,
    ) -> Result<Line, ConfinedError> {
        if mechanism == Mechanism::Landlock && !self.charter.bounds.hosts.is_empty() {
            return Err(ConfinedError::Hosts);
        }
        let charter = self.charter.after(self.before.get());
        let (mut stream, keeper, _) = self.begin(self.stage(mechanism), &charter, begun).await?;
        let opening = async {
            let frame = Frame::next(&mut stream).await.ok()??;
            let opening = frame.message::<Opening>().ok()?;
            let is_ready = matches!(opening, Opening::Ready(..));
            let bounds = &self.charter.bounds;
            let proxy = match &bounds.hosts {
                hosts if is_ready && bounds.has_proxy(mechanism) => {
                    let passed = || passing::receive(&stream);
                    let passed = stream.async_io(Interest::READABLE, passed).await.ok()?;
                    let listener = TcpListener::from_std(passed).ok()?;
                    let upstream = self.launch.upstream.clone();
                    let ways = (hosts.clone(), upstream, self.asking.clone());
                    let serving = tokio::spawn(proxy::serve(listener, ways));
                    Some(AbortOnDropHandle::new(serving))
                }
                _ => None,
            };
            Some((opening, stream, proxy))
        };
        match tokio::time::timeout(OPENING, opening).await {
            Ok(Some((Opening::Ready(enforced, before), stream, proxy))) => {
                self.before.get_or_init(|| before);
                let told = (&self.waiting, &self.deaths);
                Ok(Line::new(stream, keeper, Some(enforced), proxy, told))
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

    fn stage(&self, mechanism: Mechanism) -> Stage {
        match (mechanism, self.charter.bounds.open) {
            (Mechanism::Landlock, _) => Stage::Alone,
            (Mechanism::Namespaces, true) => Stage::ApartOnline,
            (Mechanism::Namespaces, false) => Stage::Apart,
        }
    }

    pub(super) fn answer(&self, call: CallId, outcome: Outcome) {
        let outcome = Box::new(outcome);
        dispatch(&self.waiting, Answer::Done { call, outcome });
    }

    pub(super) fn jobs_ended(&self) {
        dispatch(&self.waiting, Answer::JobsEnded);
    }
}
