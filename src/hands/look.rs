//! What the brain asks of a workspace: it is looked at by hands, not by the brain.
//!
//! The brain holds the key and the network; hands have neither, and see no more than tools do. So a
//! workspace in which a link, a folder of skills or a file of notes leads elsewhere gives away nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;

use crate::exchange::Status;
use crate::hands::{Hands, Order};
use crate::id::{CallId, EntryId};
use crate::instructions::{Project, Wanted};
use crate::tools::Outcome;
use crate::tools::scope::Site;
use crate::tools::survey;
pub use crate::tools::survey::{Held, HeldFile, LARGEST as LARGEST_HELD};

/// The name under which hands know that a project is asked for. No tool has it.
pub(super) const PROJECT: &str = "(project)";

/// The name under which hands know that one wants to know what was left behind. No tool has it.
pub(super) const LEFT: &str = "(left)";

/// How many files are asked for at once.
const AT_ONCE: usize = 2_000;

/// The workspace could not be looked at.
#[derive(Debug, thiserror::Error)]
#[error("the workspace cannot be looked at: {0}")]
pub struct LookError(String);

impl Hands {
    /// What the project around the workspace says.
    pub async fn project(&self, wanted: &Wanted) -> Result<Project, LookError> {
        let outcome = self.look(PROJECT, wanted).await?;
        serde_json::from_str(&outcome.content).map_err(|error| LookError(error.to_string()))
    }

    /// The files of the workspace, below its root, but those that `.gitignore` files leave out: those
    /// of the workspace and those above it from the root of the project on.
    pub async fn files(&self, project: &Path) -> Result<Vec<PathBuf>, LookError> {
        let mut paths = Vec::new();
        loop {
            let listed = survey::Listed {
                project: project.to_owned(),
                skip: paths.len(),
            };
            let outcome = self.look(survey::LIST, &listed).await?;
            let names = outcome.whole.unwrap_or_default();
            let before = paths.len();
            let names = names.split(|byte| *byte == 0);
            let names = names.filter(|name| !name.is_empty());
            paths.extend(names.map(|name| PathBuf::from(std::ffi::OsStr::from_bytes(name))));
            if outcome.content != "more" || paths.len() == before {
                return Ok(paths);
            }
        }
    }

    /// What these files of the workspace hold, told one by one in their order.
    pub async fn contents<E: From<LookError>>(
        &self,
        paths: &[PathBuf],
        mut tell: impl FnMut(&Path, Held) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut left = paths;
        while !left.is_empty() {
            let asked = &left[..left.len().min(AT_ONCE)];
            let names: Vec<OsString> = asked.iter().map(OsString::from).collect();
            let outcome = self.look(survey::CONTENTS, &names).await?;
            let told: survey::Told = serde_json::from_str(&outcome.content)
                .map_err(|error| LookError(error.to_string()))?;
            if told.is_empty() || told.len() > asked.len() {
                return Err(LookError("the answer is none".to_owned()).into());
            }
            let texts = outcome.whole.unwrap_or_default();
            let mut texts = texts.as_slice();
            left = &left[told.len()..];
            for (path, (mut held, length)) in asked.iter().zip(told) {
                if let (Held::File(file), Some(length)) = (&mut held, length) {
                    let text = texts.split_off(..length);
                    file.text = Some(text.unwrap_or_default().to_vec());
                }
                tell(path, held)?;
            }
        }
        Ok(())
    }

    /// What was left behind since this was last asked, or hands began, and acts later outside any
    /// sandbox: each kind a line for a person. Nothing without a sandbox.
    pub async fn left(&self) -> Vec<String> {
        let mut looked = self.look(LEFT, &()).await;
        if looked.is_err() && !self.are_lost() {
            // A process whose walls have fallen says only that. The next one looks.
            looked = self.look(LEFT, &()).await;
        }
        let lines = looked.ok();
        let lines = lines.and_then(|outcome| serde_json::from_str(&outcome.content).ok());
        lines.unwrap_or_else(|| vec!["what tools left behind could not be looked at".to_owned()])
    }

    async fn look(&self, name: &str, wanted: &impl Serialize) -> Result<Outcome, LookError> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let arguments = serde_json::to_string(wanted);
        let outcome = self
            .run(Order {
                // No response has this id.
                call: CallId::new(EntryId(u64::MAX), NEXT.fetch_add(1, Ordering::Relaxed)),
                tool: name.to_owned(),
                arguments: arguments.map_err(|error| LookError(error.to_string()))?,
                cwd: None,
                known: None,
                chars: u64::MAX,
                timeout_ms: None,
            })
            .await;
        if outcome.status == Status::Ok {
            Ok(outcome)
        } else {
            Err(LookError(outcome.content))
        }
    }
}

/// Whether an order of this name looks at the workspace.
pub(super) fn is_one(name: &str) -> bool {
    [PROJECT, survey::LIST, survey::CONTENTS].contains(&name)
}

/// Looks, on the side of the hands.
pub(super) fn perform(site: &Site, name: &str, arguments: &str) -> Outcome {
    match name {
        survey::LIST => survey::list(site, arguments),
        survey::CONTENTS => survey::contents(site, arguments),
        _ => project(site, arguments),
    }
}

fn project(site: &Site, arguments: &str) -> Outcome {
    let told = serde_json::from_str::<Wanted>(arguments)
        .and_then(|wanted| serde_json::to_string(&Project::read(site.workspace.root(), &wanted)));
    match told {
        Ok(text) => Outcome::ok(text),
        Err(error) => Outcome::error(error.to_string()),
    }
}
