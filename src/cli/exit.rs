//! Exit codes, and the failures that end a command.

use std::io;
use std::process::ExitCode;

use undertext::config::ConfigError;
use undertext::record::runs::FindError;
use undertext::record::{FileError, RecordError};
use undertext::transcript::Reason;

use crate::cli::advice::{self, Advice};
use crate::cli::start;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The command did what it is for; the model ended its work.
    Done = 0,
    /// The run ended without finishing.
    Unfinished = 1,
    /// The command or the configuration is wrong.
    Usage = 2,
    /// A limit was reached.
    Limit = 3,
    /// The provider failed for good.
    Provider = 4,
    /// The sandbox cannot be enforced.
    Sandbox = 5,
    /// The transcript is damaged or in use, or cannot be written.
    Transcript = 6,
    /// Interrupted at the keyboard, resumable.
    Interrupted = 130,
    /// Told to end, or the terminal went away; resumable.
    Terminated = 143,
}

impl Exit {
    /// The exit code of a run that ended for this reason.
    pub(crate) fn of(reason: Reason) -> Self {
        match reason {
            Reason::Finished => Self::Done,
            Reason::Check
            | Reason::Schema
            | Reason::Stuck
            | Reason::Empty
            | Reason::Refused
            | Reason::Compaction
            | Reason::Oversize
            | Reason::Hands => Self::Unfinished,
            Reason::Rounds | Reason::Tokens | Reason::Cost | Reason::WallTime => Self::Limit,
            Reason::Provider => Self::Provider,
            Reason::Storage => Self::Transcript,
            Reason::Interrupted => Self::Interrupted,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command could not do what it is for.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How the program ends.
    pub(crate) exit: Exit,
    /// What is said about it.
    pub(crate) error: anyhow::Error,
    /// What can be done, where the command knows it better than the kind of the error.
    advice: Option<Advice>,
}

impl Failure {
    /// A failure with this exit code.
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit,
            error: error.into(),
            advice: None,
        }
    }

    /// The same, about which this can be done.
    pub(crate) fn advised(self, advice: impl Into<Advice>) -> Self {
        Self {
            advice: Some(advice.into()),
            ..self
        }
    }

    /// The command, or what it was given, is wrong.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(Exit::Usage, anyhow::Error::msg(text.into()))
    }

    /// Whether nobody reads the output any more, about which there is nothing to say.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.error.chain().any(|cause| {
            cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        })
    }

    /// The error and its causes: what was refused, and why.
    pub(crate) fn why(&self) -> String {
        format!("{:#}", self.error)
    }

    /// The same in one line with what can be done about it.
    pub(crate) fn line(&self) -> String {
        let why = self.why();
        match self.advice.clone().or_else(|| advice::of(&self.error)) {
            Some(advice) => format!("{why}; {advice}"),
            None => why,
        }
    }
}

impl Failure {
    /// The same as it is said to people: a name that it quotes may hold the end of a line, and makes none
    /// of its own.
    pub(crate) fn said(&self) -> String {
        let line = self.line();
        if line.starts_with(start::NO_MODEL) {
            return line;
        }
        line.replace('\n', "\\n").replace('\r', "\\r")
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::new(Exit::Usage, error)
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        let exit = match &error {
            FindError::NoRunId { .. }
            | FindError::NotFound { .. }
            | FindError::Ambiguous { .. }
            | FindError::NoRun { .. } => Exit::Usage,
            FindError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Exit::Usage
            }
            FindError::List { .. }
            | FindError::Open(_)
            | FindError::Read { .. }
            | FindError::Remove { .. } => Exit::Transcript,
        };
        Self::new(exit, error)
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self::new(Exit::Transcript, error)
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Self::new(Exit::Transcript, error)
    }
}

impl From<io::Error> for Failure {
    /// For standard output and standard error, which have no name worth telling.
    fn from(error: io::Error) -> Self {
        Self::new(
            Exit::Unfinished,
            anyhow::Error::new(error).context("cannot write the output"),
        )
    }
}

#[cfg(test)]
mod tests {
    use undertext::config::MeaningError;

    use super::*;

    #[test]
    fn a_file_system_without_locks_is_told_with_what_to_do() {
        let failure = Failure::from(FileError::Lock {
            path: "/mnt/a.jsonl".into(),
            source: io::ErrorKind::Unsupported.into(),
        });
        assert_eq!(failure.exit, Exit::Transcript);
        assert_eq!(
            failure.line(),
            "cannot lock /mnt/a.jsonl: unsupported; its file system has no locks that keep others \
             from writing; name a directory on another one with --transcripts"
        );
    }

    #[test]
    fn each_reason_has_its_code() {
        for (codes, reasons) in [
            (0, &[Reason::Finished][..]),
            (1, &[Reason::Stuck, Reason::Oversize, Reason::Hands]),
            (3, &[Reason::Rounds, Reason::Cost]),
            (4, &[Reason::Provider]),
            (6, &[Reason::Storage]),
            (130, &[Reason::Interrupted]),
        ] {
            for reason in reasons {
                assert_eq!(Exit::of(*reason) as u8, codes, "{}", reason.word());
            }
        }
    }

    #[test]
    fn a_failure_is_one_line_with_its_causes() {
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(Failure::from(pipe).is_broken_pipe());
        let wrong = ConfigError::from(MeaningError::UsualAddress("ftp://h".to_owned()));
        let failure = Failure::from(wrong);
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(
            failure.line(),
            "settings cannot be used: variable OPENAI_BASE_URL is `ftp://h`, but must begin with \
             http:// or https://"
        );
    }
}
