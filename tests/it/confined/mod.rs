//! Hands in a process of their own: what they can do, what they cannot, and how they end.
//!
//! Everything happens in an area of its own: a workspace, a directory outside it that may be read, a
//! home directory with secrets. The same programs run without a sandbox, where they must succeed, and
//! within it, by each mechanism, where they must not.

mod ahead;
mod allowed;
mod asked;
mod attempts;
mod daily;
mod ends;
mod escapes;
mod fallen;
mod inherited;
mod left;
mod limits;
mod modes;
mod multiplied;
mod odd;
mod others;
mod program;
mod repositories;
mod settings;
mod transports;
mod walls;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use undertext::hands::{ConfinedError, Hands, Launch, Order, Workspace};
use undertext::id::{CallId, EntryId};
use undertext::sandbox::{Bounds, Class, Enforced, Held, Home, Mechanism, Way, stopped};
use undertext::setup::{Reach, Sandbox};
use undertext::tools::Outcome;

/// How hands are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Nothing,
    Namespaces,
    Landlock,
}

/// The ways to enforce bounds that a test leaves.
fn ways(by: By) -> Vec<Way> {
    match by {
        By::Nothing => Vec::new(),
        By::Namespaces => vec![Way::Namespaces, Way::Landlock(7)],
        By::Landlock => vec![Way::Landlock(7)],
    }
}

/// An area with a workspace.
struct Area {
    place: TempDir,
}

impl Area {
    fn new() -> Self {
        // Not below /tmp, of which confined processes have their own.
        let place = tempfile::Builder::new()
            .prefix("confined-")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .unwrap();
        let area = Self { place };
        for directory in [
            "w/sub",
            "outside/dir",
            "home/.ssh",
            "home/tools",
            "ours",
            "tmp",
        ] {
            fs::create_dir_all(area.path(directory)).unwrap();
        }
        for (name, text) in [
            ("w/a.txt", "hello\n"),
            ("outside/a.txt", "outside\n"),
            ("home/.ssh/id", "SECRET\n"),
            ("home/.netrc", "SECRET\n"),
            ("home/tools/tool", "a tool\n"),
            ("home/tools/key", "SECRET\n"),
            ("ours/run.jsonl", "SECRET\n"),
        ] {
            fs::write(area.path(name), text).unwrap();
        }
        area
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join(name)
    }

    fn workspace(&self) -> Workspace {
        let environment = [
            ("PATH".into(), env!("PATH").into()),
            ("HOME".into(), self.path("home").into()),
            ("LC_ALL".into(), "C".into()),
        ];
        Workspace::open(&self.path("w"), None, environment.to_vec()).unwrap()
    }

    fn reach(&self) -> Reach {
        let text = |name: &str| self.path(name).to_str().unwrap().to_owned();
        Reach {
            read: vec![text("outside"), "~/tools".into()],
            ..Reach::default()
        }
    }

    fn bounds(&self, sandbox: &Sandbox) -> Bounds {
        let around = Home {
            directory: Some(self.path("home")),
            programs: std::env::split_paths(env!("PATH")).collect(),
            ours: vec![self.path("ours"), self.path("home/tools/key")],
        };
        Bounds::of(sandbox, &[self.path("w")], &around)
            .unwrap()
            // Where some machines have their programs.
            .reading(interpreters())
    }

    /// What is told to be closed of what was enforced.
    fn held(&self, enforced: Option<&Enforced>) -> Vec<(Class, Held)> {
        let bounds = self.bounds(&Sandbox::Workspace(self.reach()));
        let held = enforced.map(|enforced| stopped(enforced, &bounds));
        held.unwrap_or_default()
    }

    fn launch(&self) -> Launch {
        Launch {
            program: env!("CARGO_BIN_EXE_undertext").into(),
            arguments: vec!["hands".into()],
            temporary: self.path("tmp"),
            upstream: None,
        }
    }

    async fn start(&self, bounds: Bounds) -> Result<(Hands, Enforced), ConfinedError> {
        Hands::confined(self.workspace(), Vec::new(), bounds, self.launch()).await
    }

    /// Hands that are held so; `None` if this machine cannot, which is said.
    async fn hands(&self, by: By) -> Option<(Hands, Option<Enforced>)> {
        if by == By::Nothing {
            let hands = Hands::free(self.workspace(), Vec::new(), self.launch()).await;
            return Some((hands.unwrap(), None));
        }
        let bounds = self.bounds(&Sandbox::Workspace(self.reach())).by(ways(by));
        let (hands, enforced) = had(by, self.start(bounds).await)?;
        Some((hands, Some(enforced)))
    }
}

/// What is set where nothing may be left out, since the machine has all that it takes.
const NO_SKIPS: &str = "UNDERTEXT_NO_SKIPS";

/// Confined hands, unless this system lacks what it takes, which is said. If they cannot be had for any
/// other reason, a test of what they are kept from would pass without trying it, and fails.
fn had(by: By, started: Result<(Hands, Enforced), ConfinedError>) -> Option<(Hands, Enforced)> {
    let why = match started {
        Ok((hands, enforced)) => {
            let is_other = enforced.mechanism == Mechanism::Landlock;
            if by != By::Namespaces || !is_other {
                return Some((hands, enforced));
            }
            "no namespaces can be had".to_owned()
        }
        Err(error @ (ConfinedError::Without(_) | ConfinedError::Hosts)) => error.to_string(),
        Err(error) => panic!("{by:?} cannot be had, and not for what the system lacks: {error:?}"),
    };
    lacks(&format!("{by:?}: {why}"));
    None
}

/// Says what is left out, which is a failure where nothing may be.
fn lacks(what: &str) {
    println!("skipped, {what}");
    assert_eq!(number(NO_SKIPS, 0), 0, "left out, {what}");
}

/// What is broken is not left out as if the system lacked it.
#[test]
fn only_what_a_system_lacks_is_left_out() {
    for error in [
        ConfinedError::Stranger,
        ConfinedError::Refused("a bug".to_owned()),
        ConfinedError::LedAway { path: "x".into() },
    ] {
        let tried = std::panic::AssertUnwindSafe(|| had(By::Landlock, Err(error)).is_none());
        let left_out = std::panic::catch_unwind(tried);
        assert!(left_out.is_err());
    }
    if number(NO_SKIPS, 0) == 0 {
        let lacking = ConfinedError::Without("no Landlock".to_owned());
        assert!(had(By::Landlock, Err(lacking)).is_none());
    }
}

/// Where the interpreters of this machine are, if they are below some home directory.
fn interpreters() -> PathBuf {
    let mut found = std::env::split_paths(env!("PATH")).map(|path| path.join("python3"));
    let found = found.find(|path| path.exists());
    let shims = found.and_then(|path| Some(path.parent()?.parent()?.to_owned()));
    shims.unwrap_or_else(|| "/usr".into())
}

fn order(tool: &str, arguments: &Value) -> Order {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    Order {
        call: CallId::new(EntryId(41), NEXT.fetch_add(1, Ordering::Relaxed)),
        tool: tool.to_owned(),
        arguments: arguments.to_string(),
        cwd: None,
        known: None,
        chars: 60_000,
        timeout_ms: None,
    }
}

async fn bash(hands: &Hands, command: &str) -> Outcome {
    hands
        .run(order("Bash", &json!({ "command": command })))
        .await
}

/// How much of something is tried: this much, or more in a campaign that says so.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs a campaign says how large it is"
)]
fn number(variable: &str, usual: u64) -> u64 {
    let said = std::env::var(variable).ok();
    said.and_then(|said| said.parse().ok()).unwrap_or(usual)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A repository, as far as version control looks.
fn repository(directory: &Path) {
    for name in ["hooks", "objects", "refs"] {
        fs::create_dir_all(directory.join(name)).unwrap();
    }
    fs::write(directory.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(directory.join("config"), "[core]\n").unwrap();
}

/// Runs version control as the user does.
#[expect(clippy::disallowed_methods, reason = "it is not a tool's")]
fn git(directory: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(arguments)
        .current_dir(directory)
        .env("HOME", directory)
        .stdout(Stdio::null());
    assert!(git.status().unwrap().success(), "{arguments:?}");
}
