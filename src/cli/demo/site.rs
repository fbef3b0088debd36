//! Where a demo takes place: the project in a temporary workspace, broken, and its own test.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;
use undertext::config::Environment;
use undertext::exchange::Status;
use undertext::hands::{Hands, Order, Workspace, WorkspaceError};
use undertext::id::{CallId, EntryId};

use crate::cli::demo::broken::Broken;
use crate::cli::demo::draw::Draw;
use crate::cli::demo::project::{self, File};

/// How long the project's test may take; it takes a hundredth of that.
const TEST_MS: u64 = 5_000;

/// How often a bug is drawn again because the test does not notice it.
const DRAWS: usize = 60;

/// The directory of the golden run, whose path its transcript names. Those of all others begin so.
pub(crate) const DIRECTORY: &str = "undertext-demo";

/// There is no place for a demo.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SiteError {
    /// The project cannot be laid out.
    #[error("cannot lay out the demo's project")]
    Files(#[from] io::Error),
    /// Its directory is no workspace.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Its test fails before anything is broken.
    #[error(
        "the demo's project needs a POSIX sh, awk and grep, and its test fails with those here: {0}"
    )]
    Unwell(String),
    /// No bug was found that the test notices.
    #[error("no bug was found that the demo's test notices")]
    Unnoticed,
}

/// Which directory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// A new one each time.
    Anew,
    /// The one of the golden runs.
    Golden,
}

/// The project in its workspace.
#[derive(Debug)]
pub(crate) struct Site {
    directory: TempDir,
    workspace: Workspace,
    /// The files as the model finds them.
    files: Vec<File>,
    /// What is broken in them.
    broken: Broken,
}

/// What the project's test says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// How it ended.
    pub(crate) status: Status,
    /// Its last line.
    pub(crate) last: String,
}

impl Verdict {
    /// Whether it passes.
    pub(crate) fn passes(&self) -> bool {
        self.status == Status::Ok
    }
}

impl Site {
    /// Lays the project out and breaks it as the seed says: a bug that its test notices at once.
    ///
    /// To be called within a tokio runtime. Dropping the future leaves nothing behind.
    pub(crate) async fn new(
        seed: u64,
        place: Where,
        environment: &Environment,
    ) -> Result<Self, SiteError> {
        let mut named = tempfile::Builder::new();
        let directory = match place {
            Where::Anew => named.prefix("undertext-demo-").tempdir(),
            Where::Golden => named.prefix(DIRECTORY).rand_bytes(0).tempdir_in("/tmp"),
        }?;
        let workspace = Workspace::open(directory.path(), None, seen(environment))?;
        let healthy = project::files();
        project::lay_out(directory.path(), &healthy)?;
        let verdict = test(&workspace).await;
        if !verdict.passes() {
            return Err(SiteError::Unwell(verdict.last));
        }
        let mut draw = Draw::new(seed);
        for _ in 0..DRAWS {
            let Some(broken) = Broken::drawn(&mut draw, &healthy) else {
                continue;
            };
            let files = broken.within(&healthy);
            project::lay_out(directory.path(), &files)?;
            // A bug that hangs would be noticed by whoever waits, and by nobody else.
            if test(&workspace).await.status == Status::Error {
                return Ok(Self {
                    directory,
                    workspace,
                    files,
                    broken,
                });
            }
            project::lay_out(directory.path(), &healthy)?;
        }
        Err(SiteError::Unnoticed)
    }

    /// Where tools act.
    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// What is broken.
    pub(crate) fn broken(&self) -> &Broken {
        &self.broken
    }

    /// Runs the project's test.
    pub(crate) async fn test(&self) -> Verdict {
        test(&self.workspace).await
    }

    /// What became of the files, as a unified diff.
    pub(crate) fn diff(&self) -> String {
        project::diff(self.directory.path(), &self.files)
    }

    /// Leaves the workspace where it is.
    pub(crate) fn keep(self) -> std::path::PathBuf {
        self.directory.keep()
    }

    /// Where the project is.
    pub(crate) fn path(&self) -> &Path {
        self.workspace.root()
    }
}

/// The environment that tools see: little, and no words in another language.
fn seen(environment: &Environment) -> Vec<(OsString, OsString)> {
    let known = ["PATH", "TMPDIR"].iter();
    let seen = known.filter_map(|name| environment.get_key_value(*name));
    let seen = seen.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    seen.chain([("LC_ALL".into(), "C".into())]).collect()
}

/// Runs the project's test in a workspace, by hands of its own.
async fn test(workspace: &Workspace) -> Verdict {
    let hands = Hands::in_process(workspace.clone());
    let order = Order {
        call: CallId::new(EntryId::FIRST, 1),
        tool: "Bash".to_owned(),
        arguments: json!({ "command": project::TEST, "timeout_ms": TEST_MS }).to_string(),
        cwd: None,
        known: None,
        chars: 10_000,
        timeout_ms: None,
    };
    let outcome = hands.run(order).await;
    hands.close().await;
    let mut lines = outcome.content.lines();
    let last = lines.rfind(|line| !line.starts_with("[exit"));
    Verdict {
        status: outcome.status,
        last: last.unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cli::demo::mutate::Operator;

    fn environment() -> Environment {
        [("PATH".to_owned(), env!("PATH").to_owned())].into()
    }

    #[tokio::test]
    async fn a_broken_project_fails_until_its_line_is_put_back() {
        let site = Site::new(1, Where::Anew, &environment()).await.unwrap();
        assert_eq!(site.test().await.status, Status::Error);
        assert_eq!(site.diff(), "");
        project::lay_out(site.path(), &project::files()).unwrap();
        assert_eq!(
            site.test().await,
            Verdict {
                status: Status::Ok,
                last: "all cases pass".to_owned()
            }
        );
        let Broken { before, after, .. } = site.broken();
        assert!(site.diff().contains(&format!("-{after}\n+{before}\n")));
        let path = site.path().to_owned();
        drop(site);
        assert!(!path.exists());
    }

    /// Every kind of slip comes up, and the same seed draws the same one.
    #[test]
    fn seeds_draw_every_kind_of_slip() {
        let files = project::files();
        let drawn = |seed| Broken::drawn(&mut Draw::new(seed), &files);
        let kinds: BTreeSet<Operator> = (1..=200)
            .filter_map(drawn)
            .map(|one| one.operator)
            .collect();
        assert_eq!(kinds.into_iter().collect::<Vec<_>>(), Operator::ALL);
        assert!((1..=200).all(|seed| drawn(seed) == drawn(seed)));
    }
}
