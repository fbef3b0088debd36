//! What a command may know of the process it runs in, and its standard streams.

use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Signal, getrlimit, setrlimit};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use undertext::config::Environment;
use undertext::secret::{Known, Masks};

use crate::cli::amount;
use crate::cli::exit::{Exit, Failure};
use crate::cli::find::LAST;
use crate::cli::term::{Term, Terminals};

/// The files that many runs at once have open together, and each of them.
const FILES: u64 = 256;
const FILES_OF_RUN: u64 = 16;

/// What a command may know of the process it runs in.
#[derive(Debug)]
pub(crate) struct Process {
    /// The variables. What is not UTF-8 has its wrong parts replaced.
    pub(crate) environment: Environment,
    /// The working directory.
    pub(crate) directory: io::Result<PathBuf>,
    /// What was typed behind the program's name.
    pub(crate) typed: Vec<String>,
}

impl Process {
    /// The process that this is.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the environment and the working directory are read"
    )]
    pub(crate) fn this() -> Self {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        Self {
            environment: std::env::vars_os()
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            directory: std::env::current_dir(),
            typed: std::env::args_os().skip(1).map(text).collect(),
        }
    }

    /// The same, to be sent elsewhere.
    pub(crate) fn copy(&self) -> Self {
        Self {
            environment: self.environment.clone(),
            directory: match &self.directory {
                Ok(directory) => Ok(directory.clone()),
                Err(error) => Err(error.kind().into()),
            },
            typed: self.typed.clone(),
        }
    }

    /// The command that was typed, with this run named: `undertext why 7c31d0f2 …`.
    pub(crate) fn naming(&self, run: &str) -> String {
        let mut words = self.typed.iter().filter(|word| !word.starts_with('-'));
        match words.next().map_or("show", String::as_str) {
            "run" => format!("undertext run --resume {run}"),
            command => {
                let more = words.any(|word| word != LAST)
                    || self.typed.iter().any(|it| it.starts_with('-'));
                let more = if more { " …" } else { "" };
                format!("undertext {command} {run}{more}")
            }
        }
    }

    /// A path that was typed here.
    pub(crate) fn here(&self, path: &Path) -> PathBuf {
        match &self.directory {
            Ok(current) => current.join(path),
            Err(_) => path.to_owned(),
        }
    }

    /// Its standard streams.
    pub(crate) fn term(&self) -> Term {
        let (out, err) = (io::stdout(), io::stderr());
        let is_set = |name| {
            self.environment
                .get(name)
                .is_some_and(|text| !text.is_empty())
        };
        let dumb = self
            .environment
            .get("TERM")
            .is_some_and(|term| term == "dumb");
        let named = self.environment.get("COLUMNS");
        let named = named.and_then(|number| number.parse().ok());
        let named = named.filter(|columns| *columns > 0);
        let terminals = Terminals {
            out: out.is_terminal(),
            err: err.is_terminal() && !dumb,
            colour: !dumb && !is_set("NO_COLOR"),
            columns: named.or_else(|| columns(&err)),
            resized: match named {
                Some(_) => None,
                None => Some(|| columns(&io::stderr())),
            },
            width: named
                .or_else(|| columns(&out))
                .or_else(|| out.is_terminal().then_some(80)),
        };
        let term = Term::new(Box::new(out), Box::new(err), terminals);
        term.behind(Masks::new(self.known()))
    }

    /// The values of its variables that must be nowhere. What the path of its directory holds is no
    /// secret.
    pub(crate) fn known(&self) -> Known {
        let here = self.here(Path::new(""));
        let each = self.environment.iter();
        let each = each.map(|(name, value)| self.known_of(name, value));
        let all = each.reduce(|all, more| all.and(&more));
        all.unwrap_or_default().but_for(&here.to_string_lossy())
    }

    /// What is said of the variables whose values are hidden from a run in this workspace, but for the
    /// one of the key, which is told by itself.
    pub(crate) fn told_of_hidden(&self, workspace: &str, key: Option<&str>) -> Option<String> {
        const NAMED: usize = 8;
        let here = self.here(Path::new(""));
        let is_hidden = |name: &str, value: &str| {
            let known = self.known_of(name, value).but_for(workspace);
            Some(name) != key && !known.but_for(&here.to_string_lossy()).is_empty()
        };
        let all = self.environment.iter();
        let all = all.filter(|(name, value)| is_hidden(name, value));
        let mut names: Vec<&str> = all.map(|(name, _)| name.as_str()).collect();
        let more = names.len().saturating_sub(NAMED) as u64;
        names.truncate(NAMED);
        let (last, others) = names.split_last()?;
        let others = others.join(", ");
        let hidden = match (others.as_str(), more) {
            ("", _) => format!("the value of {last} is"),
            (others, 0) => format!("values of {others} and {last} are"),
            (others, more) => {
                let more = amount::of(more, "more variable");
                format!("values of {others}, {last} and {more} are")
            }
        };
        Some(format!("{hidden} hidden from the model and the transcript"))
    }

    /// What is secret in a variable.
    fn known_of(&self, name: &str, value: &str) -> Known {
        Known::of_variable(name, value, |path| {
            let home = self.environment.get("HOME");
            let at_home = path.strip_prefix("~/").zip(home);
            let path = at_home.map_or_else(
                || self.here(Path::new(path)),
                |(path, home)| Path::new(home).join(path),
            );
            path.exists()
        })
    }
}

/// Raises the limit of open files, as far as may be, to what so many runs at once take.
pub(crate) fn want_files(runs: usize) {
    let wanted = FILES + FILES_OF_RUN * runs as u64;
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    if limit.current.is_some_and(|now| now < wanted.min(most)) {
        limit.current = Some(wanted.min(most));
        // Runs that find no room say so.
        setrlimit(Resource::Nofile, limit).ok();
    }
}

/// What a command's work runs in.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().map_err(unable)
}

/// The same for one run, whose parts wait for one another: they are handed on from thread to thread
/// for nothing. Whatever must go on while this one hangs has a thread of its own.
pub(crate) fn one_thread() -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().map_err(unable)
}

/// Has a file that may grow no more be an error where it is written: the signal that comes with it
/// would end the program before it can say so. Fails where not even a few files can be opened.
pub(crate) fn outlive_limits() -> Result<(), Failure> {
    let begin = || -> io::Result<()> {
        // What waits for signals needs such a pair, and panics where it gets none: as many are made here as it
        // all takes that is opened below.
        drop((
            UnixStream::pair()?,
            UnixStream::pair()?,
            UnixStream::pair()?,
        ));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let _within = runtime.enter();
        // Who has waited for a signal once is never ended by it.
        signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
    };
    begin().map_err(unable)
}

/// The failure to begin.
fn unable(error: io::Error) -> Failure {
    let error = anyhow::Error::new(error).context("cannot begin to work");
    Failure::new(Exit::Unfinished, error)
}

/// The width of the terminal that a stream is, if it is one and tells.
fn columns(stream: &impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_in_the_command_that_was_typed() {
        for (typed, proposed) in [
            (&["show"][..], "undertext show 7c31d0f2"),
            (&["replay", "last"], "undertext replay 7c31d0f2"),
            (&["why", "e9"], "undertext why 7c31d0f2 …"),
            (
                &["--unmasked", "print", "--json"],
                "undertext print 7c31d0f2 …",
            ),
            (
                &["run", "--continue", "go on"],
                "undertext run --resume 7c31d0f2",
            ),
            (&[], "undertext show 7c31d0f2"),
        ] {
            let process = Process {
                environment: Environment::default(),
                directory: Ok(PathBuf::new()),
                typed: typed.iter().map(|word| (*word).to_owned()).collect(),
            };
            assert_eq!(process.naming("7c31d0f2"), proposed);
        }
    }
}
