//! Somebody is asked whether what the policy forbids may be done for once.
//!
//! Nobody is, unless a user wants it. Then two things can be asked for, because the answer can be kept to
//! exactly them: a file outside the workspace that `Read`, `Write` or `Edit` names, which is allowed for
//! that call, and a port of a host, which is allowed for the run. The call is then made in a process
//! of its own whose bounds hold that file's directory, and which runs no command. What a command may reach
//! was settled when its process began, and stays so; what is hidden or protected is never asked for.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::exchange::Status;
use crate::hands::upstream::authority;
use crate::hands::{Hands, Launch, Order, Workspace, path_argument};
use crate::id::CallId;
use crate::sandbox::{self, Bounds};
use crate::tools::capture::{Capture, Printed};
use crate::tools::process::{self, Ended, Job, Session};
use crate::tools::{Outcome, clip, scope};

/// How long whoever is asked may take.
const LIMIT: Duration = Duration::from_secs(300);

/// Of how many ports of hosts somebody is asked in one run.
const PORTS: usize = 32;

/// The exit codes by which a shell, and whatever else starts a program, says that it could not.
const NOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

/// The longest reason that is told, in characters.
const REASON_CHARS: u64 = 300;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// What is wanted.
    #[serde(flatten)]
    pub wish: Wish,
    /// The call that wants it; a host is wanted by whatever a command has started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// Its tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The workspace.
    pub workspace: PathBuf,
    /// What the policy says.
    pub policy: String,
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "wants", rename_all = "snake_case")]
pub enum Wish {
    /// To read a file.
    Read {
        /// Its path, without symlinks.
        path: PathBuf,
    },
    /// To write a file.
    Write {
        /// Its path, without symlinks.
        path: PathBuf,
    },
    /// To connect to a host.
    Connect {
        /// Its name or address.
        host: String,
        /// Its port. What else listens on that host is asked for apart.
        port: u16,
    },
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path } => write!(f, "to read {}", shown(path)),
            Self::Write { path } => write!(f, "to write {}", shown(path)),
            Self::Connect { host, port } => {
                write!(f, "to connect to {}", authority(host, *port))
            }
        }
    }
}

/// What is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Verdict {
    /// Whether it may be done.
    pub allow: bool,
    /// Why, for the model.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Whoever decides.
#[derive(Clone)]
pub struct Approval(Arc<dyn Fn(Question) -> BoxFuture<'static, Answer> + Send + Sync>);

/// What was decided; `Err` says why nobody has decided anything.
type Answer = Result<Verdict, String>;

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approval").finish_non_exhaustive()
    }
}

impl Approval {
    /// This function decides.
    pub fn by(
        decide: impl Fn(Question) -> BoxFuture<'static, Verdict> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |question| decide(question).map(Ok).boxed()))
    }

    /// This program decides: it gets the question as one JSON object on standard input, and runs with this
    /// environment and the rights of whoever began the run. It allows by exit code 0, unless what it
    /// prints is an object that says `{"allow": false}`; a `reason` in it goes to the model. Whatever
    /// else it does refuses, and where it cannot be started or gives no answer, nobody is said to have refused.
    pub fn command(
        program: PathBuf,
        arguments: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
    ) -> Self {
        let (program, arguments) = (Arc::new(program), Arc::new(arguments));
        let environment = Arc::new(environment);
        Self(Arc::new(move |question| {
            let job = Job {
                program: program.to_path_buf(),
                arguments: arguments.to_vec(),
                directory: "/".into(),
                environment: environment.to_vec(),
                limit: LIMIT,
                session: Session::Own,
            };
            ask(job, question).boxed()
        }))
    }
}

/// Lets a program decide.
async fn ask(job: Job, question: Question) -> Answer {
    let mut input = serde_json::to_vec(&question)
        .map_err(|error| format!("the question cannot be put: {error}"))?;
    input.push(b'\n');
    let never = CancellationToken::new();
    match process::converse(&job, input, &never).await {
        Ok((Ended::Exit(code @ (NOT_RUN | NOT_FOUND)), _, errors)) => {
            Err(unstarted(&of_complaint(code, errors)))
        }
        Ok((Ended::Exit(code), output, _)) => Ok(judged(code, output)),
        Ok((Ended::TimedOut, ..)) => Err(format!(
            "sandbox.ask_command has not answered within {} minutes",
            LIMIT.as_secs() / 60
        )),
        Ok((Ended::Signal(_) | Ended::Cancelled, ..)) => {
            Err("sandbox.ask_command was ended before it answered".to_owned())
        }
        Err(error) => Err(unstarted(&error.to_string())),
    }
}

fn unstarted(why: &str) -> String {
    format!("sandbox.ask_command cannot be started: {why}")
}

/// What a program says first that could not be started or found.
fn of_complaint(code: i32, errors: Capture) -> String {
    let text = match errors.printed() {
        Printed::Whole(text) => text,
        Printed::Ends { .. } => String::new(),
    };
    match text.lines().find(|line| !line.trim().is_empty()) {
        Some(line) => line.trim().to_owned(),
        None => format!("exit code {code}"),
    }
}

/// What a program meant.
fn judged(code: i32, output: Capture) -> Verdict {
    let text = match output.printed() {
        Printed::Whole(text) => text,
        Printed::Ends { .. } => String::new(),
    };
    let said = serde_json::from_str::<Verdict>(&text).ok();
    let speaks = text.trim_start().starts_with('{');
    Verdict {
        // What looks like an answer and is none allows nothing.
        allow: code == 0 && said.as_ref().map_or(!speaks, |said| said.allow),
        reason: said.and_then(|said| said.reason),
    }
}

/// What is asked in one run, and what was answered.
#[derive(Debug)]
pub(super) struct Asking {
    approval: Approval,
    workspace: Workspace,
    bounds: Bounds,
    launch: Launch,
    ports: tokio::sync::Mutex<HashMap<Wish, bool>>,
    /// What was answered and is in no result yet.
    untold: Mutex<Vec<String>>,
}

impl Asking {
    pub(super) fn new(
        approval: Approval,
        workspace: Workspace,
        bounds: Bounds,
        launch: Launch,
    ) -> Self {
        Self {
            approval,
            workspace,
            bounds,
            launch,
            ports: tokio::sync::Mutex::default(),
            untold: Mutex::default(),
        }
    }

    /// Whether the run may connect to this port of a host. It is asked once of each, one after the other.
    pub(super) async fn may_connect(&self, host: &str, port: u16) -> bool {
        let host = host.to_owned();
        let wish = Wish::Connect { host, port };
        let mut ports = self.ports.lock().await;
        if let Some(known) = ports.get(&wish) {
            return *known;
        }
        if ports.len() >= PORTS {
            return false;
        }
        let policy = "the network is off but for named hosts";
        let answer = self.put(wish.clone(), None, policy).await;
        let line = told(&answer, &wish.to_string(), "for this run");
        let is_allowed = answer.is_ok_and(|verdict| verdict.allow);
        ports.insert(wish, is_allowed);
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        untold.push(line);
        is_allowed
    }

    async fn put(&self, wish: Wish, order: Option<&Order>, policy: &str) -> Answer {
        tracing::debug!(%wish, "asked");
        let question = Question {
            wish,
            call: order.map(|order| order.call),
            tool: order.map(|order| order.tool.clone()),
            arguments: order.and_then(|order| serde_json::from_str(&order.arguments).ok()),
            workspace: self.workspace.root().to_owned(),
            policy: policy.to_owned(),
        };
        let answer = (self.approval.0)(question).await;
        if let Err(why) = &answer {
            tracing::warn!("the user could not be asked: {why}");
        }
        answer
    }

    /// The outcome of a call, in which stands what was asked for it. What was denied and then allowed has
    /// been done.
    pub(super) async fn settle(&self, order: Order, mut outcome: Outcome) -> Outcome {
        if outcome.status == Status::Denied
            && let Some((wish, directory)) = self.wish(&order)
        {
            let policy = outcome.content.lines().next().unwrap_or_default();
            let answer = self.put(wish.clone(), Some(&order), policy).await;
            let line = told(&answer, &wish.to_string(), "for this call");
            if answer.is_ok_and(|verdict| verdict.allow) {
                outcome = self.done(order, &wish, directory).await;
            }
            outcome.add_line(&line);
        }
        let untold =
            std::mem::take(&mut *self.untold.lock().unwrap_or_else(PoisonError::into_inner));
        for line in untold {
            outcome.add_line(&line);
        }
        outcome
    }

    /// Makes a call in a process of its own, which may reach this directory as well.
    async fn done(&self, order: Order, wish: &Wish, directory: PathBuf) -> Outcome {
        let writes = matches!(wish, Wish::Write { .. });
        let Some(order) = exactly(order, wish) else {
            let text = "It was allowed, but its path is no text, so it cannot be done.";
            return Outcome::new(Status::Denied, text.to_owned());
        };
        let bounds = self.bounds.clone().lending(directory, writes);
        let (workspace, launch) = (self.workspace.clone(), self.launch.clone());
        match Hands::confined(workspace, Vec::new(), bounds, launch).await {
            Ok((hands, _)) => {
                let outcome = hands.perform(order).await;
                hands.close().await;
                outcome
            }
            Err(error) => Outcome::new(
                Status::Denied,
                format!("It was allowed, but cannot be done: {error}."),
            ),
        }
    }

    /// What a call that was denied wants, and the directory that it needs for that; `None` if nobody is
    /// asked for such a thing.
    fn wish(&self, order: &Order) -> Option<(Wish, PathBuf)> {
        let path = path_argument(&order.tool, &order.arguments)?;
        let root = self.workspace.root();
        let (real, directory) = real(&root.join(scope::name(root, order.cwd.as_deref(), &path)))?;
        let of_system = ["/proc", "/sys", "/dev"]
            .iter()
            .any(|top| real.starts_with(top));
        if self.workspace.holds(&real)
            || self.bounds.hides(&real)
            || of_system
            || sandbox::is_in_repository(&real)
            || directory.parent().is_none()
        {
            return None;
        }
        let wish = if order.tool == "Read" {
            Wish::Read { path: real }
        } else {
            Wish::Write { path: real }
        };
        Some((wish, directory))
    }
}

/// The same order, of the very file that was asked about: a link by which it was named may lead elsewhere
/// by now. `None` if its path cannot be said.
fn exactly(mut order: Order, wish: &Wish) -> Option<Order> {
    let (Wish::Read { path } | Wish::Write { path }) = wish else {
        return None;
    };
    let mut arguments: Value = serde_json::from_str(&order.arguments).ok()?;
    if let Value::String(inner) = &arguments {
        arguments = serde_json::from_str(inner).ok()?;
    }
    let named = arguments.get_mut("path")?;
    *named = Value::from(path.to_str()?);
    order.arguments = arguments.to_string();
    Some(order)
}

/// A path without symlinks, as far as it is there, and the deepest directory on the way to it.
fn real(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let there = path
        .ancestors()
        .find_map(|above| Some((above, above.canonicalize().ok()?)));
    let (above, found) = there?;
    let rest = path.strip_prefix(above).ok()?;
    if rest.as_os_str().is_empty() {
        let directory = found.parent()?.to_owned();
        return Some((found, directory));
    }
    // A link that leads nowhere stands there.
    let next = rest.iter().next()?;
    let dangles = found.join(next).symlink_metadata().is_ok();
    (found.is_dir() && !dangles).then(|| (found.join(rest), found))
}

/// What was answered, as a line of a result.
fn told(answer: &Answer, wish: &str, how_long: &str) -> String {
    let (what, reason) = match answer {
        Ok(Verdict { allow, reason }) => {
            let what = if *allow {
                format!("was asked and allowed {how_long} {wish}")
            } else {
                format!("was asked and refused {wish}")
            };
            (what, reason.as_deref().unwrap_or_default())
        }
        Err(why) => (format!("could not be asked for leave {wish}"), why.as_str()),
    };
    let reason = scope::one_line(clip::first(
        reason.trim(),
        usize::try_from(REASON_CHARS).unwrap_or(300),
    ));
    let reason = if reason.is_empty() {
        reason
    } else {
        format!(": {reason}")
    };
    format!("[sandbox: the user {what}{reason}]")
}

fn shown(path: &Path) -> String {
    scope::one_line(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_allows_by_its_exit_code_and_by_what_it_says() {
        let verdict = |code, text: &str| {
            let mut output = Capture::default();
            output.take(text.as_bytes());
            let Verdict { allow, reason } = judged(code, output);
            format!("{allow} {}", reason.unwrap_or_default())
        };
        for (code, text, expected) in [
            (0, "", "true "),
            (0, "yes\n", "true "),
            (0, r#"{"allow":true,"reason":"once"}"#, "true once"),
            (0, r#"{"allow":false,"reason":"no"}"#, "false no"),
            (0, r#"{"allow":"maybe"}"#, "false "),
            (0, "{", "false "),
            (1, "", "false "),
            (1, r#"{"allow":true}"#, "false "),
            (
                2,
                r#"{"allow":false,"reason":"ask me at nine"}"#,
                "false ask me at nine",
            ),
        ] {
            assert_eq!(verdict(code, text), expected, "{code} {text}");
        }
    }

    /// Nobody has refused what nobody was asked.
    #[tokio::test]
    async fn what_cannot_be_asked_is_not_told_as_refused() {
        let told = async |program: &str, command: &str| {
            let arguments = ["-c".into(), command.into()];
            let approval = Approval::command(program.into(), arguments.into(), Vec::new());
            let question = Question {
                wish: Wish::Write { path: "/x".into() },
                call: None,
                tool: None,
                arguments: None,
                workspace: "/w".into(),
                policy: String::new(),
            };
            told(&approval.0(question).await, "to write /x", "for this call")
        };
        let unasked =
            "[sandbox: the user could not be asked for leave to write /x: sandbox.ask_command";
        for (command, expected) in [
            ("kill -9 $$", "was ended before it answered"),
            ("echo gone >&2; exit 127", "cannot be started: gone"),
            ("exit 126", "cannot be started: exit code 126"),
        ] {
            let said = told("/bin/sh", command).await;
            assert_eq!(said, format!("{unasked} {expected}]"));
        }
        // Who starts it says why in words of its own.
        let said = told("/nowhere/decide", "").await;
        assert!(
            said.starts_with(&format!("{unasked} cannot be started: ")),
            "{said}"
        );
        assert!(said.contains("/nowhere/decide"), "{said}");
        let said = told("/bin/sh", "exit 1").await;
        assert_eq!(
            said,
            "[sandbox: the user was asked and refused to write /x]"
        );
    }

    #[test]
    fn a_path_is_asked_for_by_what_it_leads_to() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(place.join("a/b")).unwrap();
        std::fs::write(place.join("a/file"), "").unwrap();
        std::os::unix::fs::symlink(place.join("a"), place.join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", place.join("a/lost")).unwrap();
        for (path, expected) in [
            ("a/file", Some(("a/file", "a"))),
            ("link/file", Some(("a/file", "a"))),
            ("link/b/new/file", Some(("a/b/new/file", "a/b"))),
            ("a/lost", None),
            ("a/lost/file", None),
            ("a/file/x", None),
        ] {
            let expected =
                expected.map(|(path, directory)| (place.join(path), place.join(directory)));
            assert_eq!(real(&place.join(path)), expected, "{path}");
        }
    }
}
