//! The brain's side of a process for tools: starts it, speaks to it, and starts it anew if it dies.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::hands::asked::{Approval, Asking};
use crate::hands::charter::Charter;
use crate::hands::frames::Frame;
use crate::hands::launch::{Ahead, ConfinedError};
use crate::hands::line::Line;
use crate::hands::maker::Maker;
use crate::hands::own::OwnDirectory;
use crate::hands::patience::Patience;
use crate::hands::{Ask, External, Hands, Workspace, locked};
use crate::sandbox::{Bounds, Enforced};
use crate::tools::Outcome;

/// How long a message may take to be sent.
const SENDING: Duration = Duration::from_secs(10);

/// What is answered where there is no process any more.
const GONE: &str = "Nothing ran: the process in which tools run died, and no other is started.";

impl Hands {
    /// Hands that work in a process of their own, which holds itself to these bounds.
    ///
    /// To be called within a tokio runtime. When this returns the bounds are enforced; if they
    /// cannot be, no hands are had. A process that dies is started again with the next order.
    pub async fn confined(
        workspace: Workspace,
        tools: Vec<External>,
        bounds: Bounds,
        launch: impl Into<Ahead>,
    ) -> Result<(Self, Enforced), ConfinedError> {
        Self::start(workspace, tools, bounds, (launch.into(), None)).await
    }

    /// Hands that work in a process of their own, which nothing holds: tools may do whatever the user may.
    /// Whatever they start ends with whoever started it, however that ends.
    ///
    /// To be called within a tokio runtime.
    pub async fn free(
        workspace: Workspace,
        tools: Vec<External>,
        launch: impl Into<Ahead>,
    ) -> Result<Self, ConfinedError> {
        let Ahead { launch, begun } = launch.into();
        let root = workspace.root().to_owned();
        let charter = Charter::new(&workspace, tools, Bounds::default());
        let maker = Maker::new(charter, launch, None);
        let line = maker.start_free(begun).await?;
        Ok(Self::begun(root, maker, line, None))
    }

    /// The same, where somebody is asked about what the bounds forbid.
    pub async fn confined_asking(
        workspace: Workspace,
        tools: Vec<External>,
        bounds: Bounds,
        launch: impl Into<Ahead>,
        approval: Approval,
    ) -> Result<(Self, Enforced), ConfinedError> {
        let ahead = launch.into();
        let launch = ahead.launch.clone();
        let (here, within) = (workspace.clone(), bounds.clone());
        let asking = Asking::new(approval, here, within, launch);
        let asking = Some(Arc::new(asking));
        Self::start(workspace, tools, bounds.asking(), (ahead, asking)).await
    }

    async fn start(
        workspace: Workspace,
        tools: Vec<External>,
        bounds: Bounds,
        (Ahead { launch, begun }, asking): (Ahead, Option<Arc<Asking>>),
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
        charter.bounds.own = Some(own.path().to_owned());
        let maker = Maker::new(charter, launch, asking);
        let (line, enforced) = maker.start(begun).await?;
        Ok((Self::begun(root, maker, line, Some(own)), enforced))
    }

    /// Hands that speak to this process, which has this directory.
    fn begun(root: PathBuf, maker: Maker, line: Line, own: Option<OwnDirectory>) -> Self {
        let (ask, asked) = mpsc::unbounded_channel();
        let (waiting, deaths) = (Arc::clone(&maker.waiting), Arc::clone(&maker.deaths));
        let asking = maker.asking.clone();
        Self {
            root,
            ask,
            waiting,
            deaths,
            serving: tokio::spawn(pump(maker, line, asked, own)),
            asking,
        }
    }
}

/// Hands on what is asked, until nobody can ask any more; then waits until the process has ended.
async fn pump(
    maker: Maker,
    line: Line,
    mut asked: mpsc::UnboundedReceiver<Ask>,
    own: Option<OwnDirectory>,
) {
    let mechanism = line.enforced.as_ref().map(|enforced| enforced.mechanism);
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
        if let Ask::Order(order) = &ask {
            locked(&maker.waiting).unsent.remove(&order.call);
        }
        if sent(&frame, &mut open.write).await.is_err()
            && let Some(dead) = line.take()
        {
            // Whoever waits for it learns of it there.
            dead.close().await;
            locked(&maker.waiting).lose();
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
                    silent.abandon(&maker.waiting, &maker.deaths).await;
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
