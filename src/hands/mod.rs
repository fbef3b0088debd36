//! Hands: where tools that touch the world run.
//!
//! The brain sends an [`Order`] and gets an [`Outcome`]; between them pass nothing but messages
//! that can be serialized, so that the other side may be this process or a confined one.
//! [`Hands`] is the brain's side; `serve` is the other. The brain decides what runs, and when;
//! hands know neither the transcript nor the model.
//!
//! [`Hands::confined`] has the other side in a process of its own, which holds itself to its
//! [`Bounds`](crate::sandbox::Bounds) before it performs anything: a program that serves as one
//! calls [`attend`]. It knows no key, and ends with whoever started it.

mod deaths;
mod serve;
mod look;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod frames;
#[cfg(target_os = "linux")]
mod charter;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod line;
#[cfg(target_os = "linux")]
mod maker;
#[cfg(target_os = "linux")]
mod confined;
#[cfg(target_os = "linux")]
mod attend;
#[cfg(target_os = "linux")]
mod fallen;
#[cfg(target_os = "linux")]
mod warden;
#[cfg(target_os = "linux")]
mod hints;
#[cfg(target_os = "linux")]
mod modes;
#[cfg(target_os = "linux")]
mod unreached;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod own;
#[cfg(target_os = "linux")]
mod passing;
#[cfg(target_os = "linux")]
mod patience;
#[cfg(target_os = "linux")]
mod vanishing;
#[cfg(target_os = "linux")]
mod watched;
#[cfg(target_os = "linux")]
mod wanted;
#[cfg(target_os = "linux")]
mod replaced;
#[cfg(target_os = "linux")]
mod left;
#[cfg(target_os = "linux")]
mod proxy;
#[cfg(target_os = "linux")]
mod upstream;
#[cfg(target_os = "linux")]
mod asked;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

#[cfg(target_os = "linux")]
pub use self::asked::{Approval, Question, Verdict, Wish};
#[cfg(target_os = "linux")]
pub use self::attend::{AttendError, attend};
#[cfg(target_os = "linux")]
pub use self::descriptors::withhold_descriptors;
#[cfg(target_os = "linux")]
pub use self::launch::{Ahead, ConfinedError, Launch};
pub use self::look::{Held, HeldFile, LARGEST_HELD, LookError};
#[cfg(target_os = "linux")]
pub use self::upstream::{Upstream, UpstreamError};
pub use crate::tools::external::External;
pub use crate::tools::family::end_all;
pub use crate::tools::workspace::{Workspace, WorkspaceError, allowed};

use crate::exchange::Status;
use crate::hands::deaths::Deaths;
use crate::id::{CallId, Digest};
use crate::tools::{Outcome, hook};

/// One call to perform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The call.
    pub call: CallId,
    /// The name of the tool.
    pub tool: String,
    /// The arguments: one JSON object that fits the tool's schema.
    pub arguments: String,
    /// The working directory that the last `Bash` left, from its facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The digest of the file as the model last saw it, for `Edit` and `Write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Digest>,
    /// The longest content, in characters.
    pub chars: u64,
    /// How long the call may take unless its arguments say so, in milliseconds; absent: as long
    /// as is usual for the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Order {
    /// The order to run a hook: this command on this input, for so many milliseconds.
    ///
    /// Its outcome is what it printed, or, if that is not ok, how it failed.
    pub fn hook(call: CallId, command: &str, input: &str, timeout_ms: u64, chars: u64) -> Self {
        Self {
            call,
            tool: hook::NAME.to_owned(),
            arguments: json!({"command": command, "input": input}).to_string(),
            cwd: None,
            known: None,
            chars,
            timeout_ms: Some(timeout_ms),
        }
    }
}

/// What the brain says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ask {
    /// Perform this.
    Order(Order),
    /// End this call, if it still runs; it is answered all the same.
    Cancel(CallId),
    /// End what calls left running in the background.
    EndJobs,
    /// Give a sign of life.
    Sign,
}

/// What the other side says: each order is answered once.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// The call ended so.
    Done { call: CallId, outcome: Box<Outcome> },
    /// Nothing runs in the background any more.
    JobsEnded,
    /// It lives.
    Sign,
    /// The call ended so, and the process ends: whatever else it was asked has no answer, and what is
    /// asked from now on is for another one.
    Last { call: CallId, outcome: Box<Outcome> },
}

/// Those who wait for answers.
#[derive(Debug, Default)]
struct Waiting {
    calls: HashMap<CallId, oneshot::Sender<Outcome>>,
    /// The calls that were handed to nobody yet: whatever is lost, these are not.
    unsent: HashSet<CallId>,
    jobs: Vec<oneshot::Sender<()>>,
    /// How many answers came.
    heard: u64,
}

impl Waiting {
    /// Lets go of all who wait for a process that is gone. A call that it never got goes to the next one.
    fn lose(&mut self) {
        let Self { calls, unsent, .. } = std::mem::take(self);
        let kept = calls.into_iter().filter(|(call, _)| unsent.contains(call));
        self.calls = kept.collect();
        self.unsent = unsent;
    }

    /// Who waits for this call, and does so no longer.
    fn take(&mut self, call: CallId) -> Option<oneshot::Sender<Outcome>> {
        self.unsent.remove(&call);
        self.calls.remove(&call)
    }

    /// Whether anybody waits.
    #[cfg(target_os = "linux")]
    fn is_awaited(&self) -> bool {
        !(self.calls.is_empty() && self.jobs.is_empty())
    }
}

/// Performs orders. When it is dropped, whatever still runs is ended.
#[derive(Debug)]
pub struct Hands {
    root: PathBuf,
    ask: mpsc::UnboundedSender<Ask>,
    waiting: Arc<Mutex<Waiting>>,
    deaths: Arc<Deaths>,
    serving: JoinHandle<()>,
    /// Who is asked about what the policy forbids.
    #[cfg(target_os = "linux")]
    asking: Option<Arc<asked::Asking>>,
}

impl Hands {
    /// Hands that work in this process, in this workspace.
    ///
    /// To be called within a tokio runtime, which runs them.
    pub fn in_process(workspace: Workspace) -> Self {
        Self::in_process_with(workspace, Vec::new())
    }

    /// The same, which know these tools as well.
    pub fn in_process_with(workspace: Workspace, tools: Vec<External>) -> Self {
        let root = workspace.root().to_owned();
        let (ask, asked) = mpsc::unbounded_channel();
        let (answer, mut answers) = mpsc::unbounded_channel::<Answer>();
        let waiting = Arc::<Mutex<Waiting>>::default();
        let bench = serve::Bench::new(workspace, tools);
        let serving = tokio::spawn(serve::serve(bench, asked, answer));
        let table = Arc::clone(&waiting);
        drop(tokio::spawn(async move {
            while let Some(answer) = answers.recv().await {
                dispatch(&table, answer);
            }
            // The other side is gone: whoever still waits is told by the closed channel.
            *locked(&table) = Waiting::default();
        }));
        Self {
            root,
            ask,
            waiting,
            deaths: Arc::default(),
            serving,
            #[cfg(target_os = "linux")]
            asking: None,
        }
    }

    /// The directory of the workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Performs an order. Whatever goes wrong is an outcome as well.
    ///
    /// Dropping the future ends the call and every process of it; nothing is waited for then.
    pub async fn run(&self, order: Order) -> Outcome {
        #[cfg(target_os = "linux")]
        if let Some(asking) = &self.asking {
            let outcome = self.perform(order.clone()).await;
            // It is seldom needed, and starts a process: no call need carry its state.
            return Box::pin(asking.settle(order, outcome)).await;
        }
        self.perform(order).await
    }

    /// The same without asking anybody.
    async fn perform(&self, order: Order) -> Outcome {
        let call = order.call;
        let (waits, outcome) = oneshot::channel();
        {
            let mut waiting = locked(&self.waiting);
            if waiting.calls.contains_key(&call) {
                return Outcome::error(format!("Call {call} is running already."));
            }
            waiting.calls.insert(call, waits);
            waiting.unsent.insert(call);
        }
        let mut given_up = GivenUp {
            hands: self,
            call: Some(call),
        };
        // If nobody listens, the answer's channel is closed as well.
        self.ask.send(Ask::Order(order)).ok();
        if self.ask.is_closed() {
            locked(&self.waiting).take(call);
        }
        let outcome = outcome.await;
        given_up.call = None;
        outcome.unwrap_or_else(|_| {
            Outcome::new(
                Status::Interrupted,
                "The tool was lost while it ran; what it did until then may have taken effect.",
            )
        })
    }

    /// Ends a call, if it still runs. Its future gets the outcome: what was printed until then.
    pub fn cancel(&self, call: CallId) {
        self.ask.send(Ask::Cancel(call)).ok();
    }

    /// Ends what calls left running in the background, and waits until it is gone.
    pub async fn end_jobs(&self) {
        let (waits, ended) = oneshot::channel();
        locked(&self.waiting).jobs.push(waits);
        self.ask.send(Ask::EndJobs).ok();
        if self.ask.is_closed() {
            locked(&self.waiting).jobs.clear();
        }
        // A closed channel says that the other side is gone, and its processes with it.
        ended.await.ok();
    }

    /// What became of the process in which tools run, if there is one, since this was last asked.
    pub fn remarks(&self) -> Vec<String> {
        self.deaths.remarks()
    }

    /// Whether there is no such process any more, and will be none: every order is answered with
    /// that.
    pub fn are_lost(&self) -> bool {
        self.deaths.is_lost()
    }

    /// Ends whatever still runs, and waits until it is gone.
    pub async fn close(self) {
        let Self { ask, serving, .. } = self;
        drop(ask);
        serving.await.ok();
    }
}

/// Ends a call whose future was dropped.
struct GivenUp<'a> {
    hands: &'a Hands,
    call: Option<CallId>,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call {
            // It stays in the table until it is answered: so it cannot begin anew before.
            self.hands.cancel(call);
        }
    }
}

/// Hands an answer to whoever waits for it.
fn dispatch(waiting: &Mutex<Waiting>, answer: Answer) {
    locked(waiting).heard += 1;
    match answer {
        Answer::Sign => {}
        Answer::Last { call, outcome } => {
            // Whoever is told may ask again at once, and is not to be taken for one who waits here.
            let mut waiting = locked(waiting);
            let waits = waiting.take(call);
            waiting.lose();
            drop(waiting);
            if let Some(waits) = waits {
                waits.send(*outcome).ok();
            }
        }
        Answer::Done { call, outcome } => {
            if let Some(waits) = locked(waiting).take(call) {
                // Nobody waits any more for a call that was given up.
                waits.send(*outcome).ok();
            }
        }
        Answer::JobsEnded => {
            for waits in locked(waiting).jobs.drain(..) {
                waits.send(()).ok();
            }
        }
    }
}

/// The table of those who wait. Every change of it is whole, also if its thread then panicked.
fn locked(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The path that a call of this tool names; `None` if it names none.
///
/// With [`name`](crate::tools::scope::name) it leads to the file's newest digest in the facts.
pub fn path_argument(tool: &str, arguments: &str) -> Option<String> {
    if !matches!(tool, "Read" | "Write" | "Edit") {
        return None;
    }
    let mut value: Value = serde_json::from_str(arguments).ok()?;
    if let Value::String(inner) = &value {
        value = serde_json::from_str(inner).ok()?;
    }
    Some(value.get("path")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests;
