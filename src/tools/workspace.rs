//! The workspace: the directories below which tools act, and the environment they see.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use crate::sandbox::Protected;

/// Variables that tools may see if they are set, besides those that begin with `LC_`.
const ALLOWED: [&str; 6] = ["PATH", "HOME", "LANG", "TMPDIR", "USER", "SHELL"];

/// Where tools act. Fixed at the start of a run; nothing a model says changes it.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
    more: Vec<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    /// Whether what tools start may open what this process has open.
    #[cfg(target_os = "linux")]
    is_open: bool,
    /// What file tools keep off.
    #[cfg(target_os = "linux")]
    protected: Option<Protected>,
}

/// A directory cannot be a workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// It is not there, or not to be seen.
    #[error("cannot open the workspace {}", .path.display())]
    Open {
        /// As it was given.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else.
    #[error("the workspace {} is no directory", .path.display())]
    NoDirectory {
        /// As it was given.
        path: PathBuf,
    },
    /// It is `/` or the home directory, where a slip would cost too much.
    #[error("{} is too much for a workspace: name a directory below it", .path.display())]
    TooMuch {
        /// As it was given.
        path: PathBuf,
    },
}

impl Workspace {
    /// The workspace at `path`, whose tools see exactly this environment (and `TERM=dumb`).
    ///
    /// `home` is the user's home directory, which is refused, as is `/`.
    pub fn open(
        path: &Path,
        home: Option<&Path>,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<Self, WorkspaceError> {
        Ok(Self {
            root: canonical(path, home)?,
            more: Vec::new(),
            environment,
            #[cfg(target_os = "linux")]
            is_open: false,
            #[cfg(target_os = "linux")]
            protected: None,
        })
    }

    /// A workspace as a confined process has it, whose roots were judged by whoever started that.
    #[cfg(target_os = "linux")]
    pub(crate) fn inside(
        roots: Vec<PathBuf>,
        environment: Vec<(OsString, OsString)>,
        protected: Protected,
    ) -> Self {
        Self {
            is_open: false,
            protected: Some(protected),
            ..Self::unheld(roots, environment)
        }
    }

    /// A workspace as a process has it that nothing holds, whose roots were judged by whoever started that.
    #[cfg(target_os = "linux")]
    pub(crate) fn unheld(roots: Vec<PathBuf>, environment: Vec<(OsString, OsString)>) -> Self {
        let mut roots = roots.into_iter();
        Self {
            root: roots.next().unwrap_or_default(),
            more: roots.collect(),
            environment,
            is_open: true,
            protected: None,
        }
    }

    /// Whether what tools start may open what this process has open: nothing holds it, and it knows no key.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// All its directories, its own first.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.root.as_path()).chain(self.more.iter().map(PathBuf::as_path))
    }

    /// Whether a path, as the operating system names it, is kept from being written: what in a
    /// repository names programs, and whatever says where the repository is.
    pub(crate) fn protects(&self, real: &Path) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(protected) = &self.protected {
            return protected.forbids(real);
        }
        // Without a sandbox it is a file like any other.
        let _ = real;
        false
    }

    /// Whether it is a confined process's, which does nothing but run tools.
    pub(crate) fn is_confined(&self) -> bool {
        #[cfg(target_os = "linux")]
        let is_confined = self.protected.is_some();
        #[cfg(not(target_os = "linux"))]
        let is_confined = false;
        is_confined
    }

    /// What of it is protected, where it is a confined process's.
    #[cfg(target_os = "linux")]
    pub(crate) fn protected(&self) -> Option<&Protected> {
        self.protected.as_ref()
    }

    /// The same workspace, whose file tools act below this directory as well.
    pub fn with_root(mut self, path: &Path, home: Option<&Path>) -> Result<Self, WorkspaceError> {
        self.more.push(canonical(path, home)?);
        Ok(self)
    }

    /// Its directory, as the operating system names it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The environment that tools see.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// The value of a variable that tools see.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        let variable = self
            .environment
            .iter()
            .rev()
            .find(|(known, _)| known == name);
        variable.map(|(_, value)| value.as_os_str())
    }

    /// Whether a path, as the operating system names it, lies at or below a root.
    pub(crate) fn holds(&self, real: &Path) -> bool {
        real.starts_with(&self.root) || self.more.iter().any(|root| real.starts_with(root))
    }
}

/// Of these variables those that tools may see: a fixed list, and the names in `more`.
pub fn allowed(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    more: &[OsString],
) -> Vec<(OsString, OsString)> {
    let may = |name: &OsString| {
        ALLOWED.iter().any(|allowed| name == allowed)
            || name.as_encoded_bytes().starts_with(b"LC_")
            || more.contains(name)
    };
    variables
        .into_iter()
        .filter(|(name, _)| may(name))
        .collect()
}

/// The directory as the operating system names it, if it may be a root.
fn canonical(path: &Path, home: Option<&Path>) -> Result<PathBuf, WorkspaceError> {
    let owned = || path.to_owned();
    let real = path.canonicalize().map_err(|source| WorkspaceError::Open {
        path: owned(),
        source,
    })?;
    if !real.is_dir() {
        return Err(WorkspaceError::NoDirectory { path: owned() });
    }
    let home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_owned()));
    if real.parent().is_none() || home.as_deref() == Some(&real) {
        return Err(WorkspaceError::TooMuch { path: owned() });
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_directory_that_one_may_lose() {
        let place = tempfile::tempdir().unwrap();
        let (home, work) = (place.path().join("home"), place.path().join("home/work"));
        std::fs::create_dir_all(&work).unwrap();
        std::fs::write(home.join("file"), "").unwrap();
        std::os::unix::fs::symlink(&home, place.path().join("link")).unwrap();

        let open = |path: &Path| Workspace::open(path, Some(&home), Vec::new());
        assert_eq!(open(&work).unwrap().root(), work.canonicalize().unwrap());
        assert!(matches!(
            open(Path::new("/")),
            Err(WorkspaceError::TooMuch { .. })
        ));
        assert!(matches!(open(&home), Err(WorkspaceError::TooMuch { .. })));
        assert!(matches!(
            open(&work.join("..")),
            Err(WorkspaceError::TooMuch { .. })
        ));
        assert!(matches!(
            open(&place.path().join("link")),
            Err(WorkspaceError::TooMuch { .. })
        ));
        assert!(matches!(
            open(&home.join("file")),
            Err(WorkspaceError::NoDirectory { .. })
        ));
        assert!(matches!(
            open(&home.join("none")),
            Err(WorkspaceError::Open { .. })
        ));
    }

    #[test]
    fn tools_see_listed_variables_only() {
        let variables = [
            ("PATH", "/bin"),
            ("OPENAI_API_KEY", "sk-1"),
            ("LC_ALL", "C"),
            ("LD_PRELOAD", "x.so"),
            ("CARGO_HOME", "/c"),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let seen = allowed(variables, &["CARGO_HOME".into()]);
        let names: Vec<_> = seen
            .iter()
            .map(|(name, _)| name.to_str().unwrap())
            .collect();
        assert_eq!(names, ["PATH", "LC_ALL", "CARGO_HOME"]);
    }
}
