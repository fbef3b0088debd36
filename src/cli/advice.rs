//! What whoever is refused can do about it, by the kind of error that refused.
//!
//! The errors of the library say what was refused and why. What can be done may depend on the command that
//! was typed as well: then the command says it, by [`Failure::advised`](super::exit::Failure::advised).

use std::borrow::Cow;
use std::io;

use rustix::io::Errno;
use undertext::agent::ByHandError;
use undertext::config::{ConfigError, EndpointError};
use undertext::hands::{LookError, WorkspaceError};
use undertext::import::ImportError;
use undertext::instructions::InstructionsError;
use undertext::model::ClientError;
use undertext::page::serve::ServeError;
use undertext::record::fork::ForkError;
use undertext::record::runs::FindError;
use undertext::record::{FileError, FollowError, RecordError};
use undertext::transcript::jsonl::{Damage, EncodeError};

use crate::cli::demo::SiteError;

/// What can be done, as the last part of a line.
pub(crate) type Advice = Cow<'static, str>;

/// What helps where a run of a newer format is refused.
pub(crate) const NEWER: &str = "use the undertext that recorded it, or a newer one";

/// What helps where a request is refused that another renderer made.
pub(crate) const RENDERER: &str = "use the undertext that recorded it";

/// What is left of a run of which too little is left.
pub(crate) const PRINT: &str = "`undertext print` shows what is left";

/// What helps where a directory for what does not last cannot be made.
pub(crate) const TEMPORARY: &str = "name a directory that you may write with TMPDIR";

/// What helps where new transcripts cannot be written.
const ELSEWHERE: &str = "name another directory with --transcripts";

/// What can be done about an error: the first of its causes of which that is known says it.
pub(crate) fn of(error: &anyhow::Error) -> Option<Advice> {
    error.chain().find_map(|cause| {
        let known = cause.downcast_ref().and_then(find);
        known
            .or_else(|| cause.downcast_ref().and_then(file))
            .or_else(|| cause.downcast_ref().and_then(record))
            .or_else(|| cause.downcast_ref().and_then(fork))
            .or_else(|| cause.downcast_ref().and_then(follow))
            .or_else(|| cause.downcast_ref().and_then(serve))
            .or_else(|| cause.downcast_ref().and_then(import))
            .or_else(|| cause.downcast_ref().and_then(config))
            .or_else(|| cause.downcast_ref().and_then(instructions))
            .or_else(|| cause.downcast_ref().and_then(client))
            .or_else(|| cause.downcast_ref().and_then(workspace))
            .or_else(|| cause.downcast_ref().map(look))
            .or_else(|| cause.downcast_ref().and_then(demo))
            .or_else(|| cause.downcast_ref().and_then(by_hand))
            .or_else(|| cause.downcast_ref().and_then(system))
    })
}

/// About a run that is not found, not read or not removed.
fn find(error: &FindError) -> Option<Advice> {
    let advice = match error {
        FindError::NotFound { .. } | FindError::NoRunId { .. } => "`undertext list` shows all runs",
        FindError::Ambiguous { .. } => "give more of its id, as `undertext list` shows it",
        FindError::NoRun { .. } => "undertext deletes runs alone: remove another file with rm",
        FindError::Open(FileError::InUse { .. }) => "wait until that ends, or end it",
        FindError::Open(FileError::Open { .. })
        | FindError::List { .. }
        | FindError::Read { .. }
        | FindError::Remove { .. } => return None,
        FindError::Open(error) => return file(error),
    };
    Some(advice.into())
}

/// About a transcript that is to be written and cannot be opened.
fn file(error: &FileError) -> Option<Advice> {
    let advice = match error {
        FileError::InUse { .. } => {
            "wait until that ends, or go on with a copy: `undertext fork` makes one meanwhile"
        }
        FileError::Lock { .. } => {
            "its file system has no locks that keep others from writing; name a directory on \
             another one with --transcripts"
        }
        FileError::NotAFile { kind, .. } => match *kind {
            "symbolic link" => "name the file that it leads to",
            "directory" => "name a transcript in it",
            _ => "write what it gives into a file whose name ends in .jsonl, and name that",
        },
        FileError::Replaced { .. } => "try again",
        FileError::Open { source, .. } if is_of_place(source) => {
            "`undertext fork PATH --transcripts DIR` makes a copy that can be gone on with"
        }
        FileError::Create { source, .. } if is_of_place(source) => ELSEWHERE,
        FileError::Open { .. } | FileError::Create { .. } => return None,
    };
    Some(advice.into())
}

/// About a transcript that cannot be gone on with.
fn record(error: &RecordError) -> Option<Advice> {
    let advice = match error {
        RecordError::Damaged { damage, .. } => return Some(damaged(damage).into()),
        RecordError::NoRun { .. } => PRINT,
        RecordError::Newer { .. } => NEWER,
        RecordError::NotEmpty { .. } => ELSEWHERE,
        RecordError::Lost { .. } => CHANGED,
        RecordError::Write { source, .. } if source.kind() == io::ErrorKind::Other => STRANGER,
        RecordError::Write { source, .. }
        | RecordError::Sync { source, .. }
        | RecordError::Keep { source, .. }
            if is_of_place(source) =>
        {
            "make its place writable again, then try again"
        }
        RecordError::Poisoned { .. } => "mend what failed before, then try again",
        RecordError::Unknown => "this is a fault of the program: please report it",
        RecordError::Encode {
            source: EncodeError::TooLong(_),
            ..
        } => "say it shorter, or put it into a file of the workspace",
        RecordError::Encode { .. }
        | RecordError::Read { .. }
        | RecordError::Write { .. }
        | RecordError::Sync { .. }
        | RecordError::Keep { .. } => return None,
    };
    Some(advice.into())
}

/// What helps where somebody else changed a transcript.
const STRANGER: &str =
    "something else writes there: end that; `undertext show` says what it left of the run";

/// What helps where the bytes of a transcript changed in their place, as neither its length nor its times
/// had told.
const CHANGED: &str = "its disk fails, or something else wrote into it; `undertext replay --verify` says \
                       where; the `.index` beside it may be deleted";

/// About a damaged transcript. Nothing lies before a first entry that is missing.
fn damaged(damage: &[Damage]) -> &'static str {
    match damage.first() {
        Some(Damage { line: 1, .. }) => PRINT,
        Some(_) | None => "`undertext fork --at` makes a sound run of what lies before it",
    }
}

/// About a run that cannot be forked.
fn fork(error: &ForkError) -> Option<Advice> {
    let advice = match error {
        // The parent is only read.
        ForkError::File(FileError::Open { .. }) => return None,
        ForkError::File(error) => return file(error),
        ForkError::NoRun { .. } => PRINT,
        ForkError::Newer { .. } => NEWER,
        ForkError::Write { source, .. } if is_of_place(source) => ELSEWHERE,
        ForkError::Read { .. }
        | ForkError::Damaged { .. }
        | ForkError::Short { .. }
        | ForkError::Encode(_)
        | ForkError::Write { .. } => return None,
    };
    Some(advice.into())
}

/// About a transcript that cannot be followed.
fn follow(error: &FollowError) -> Option<Advice> {
    match error {
        FollowError::Open(FileError::Open { .. }) | FollowError::Read { .. } => None,
        FollowError::Open(error) => file(error),
        FollowError::Replaced { .. } | FollowError::Shrunk { .. } => Some("try again".into()),
    }
}

/// About a page that cannot be served.
fn serve(error: &ServeError) -> Option<Advice> {
    match error {
        ServeError::Listen { .. } => {
            Some("name another address; --serve alone takes a free port".into())
        }
        ServeError::Random => Some("without --serve the page is written into a file".into()),
        ServeError::Follow(error) => follow(error),
    }
}

/// About a recording that cannot be imported.
fn import(error: &ImportError) -> Option<Advice> {
    let advice = match error {
        ImportError::Other { .. } => "leave --format out, or name that one",
        ImportError::Unknown { .. } | ImportError::Broken { .. } => {
            "if you know its agent, `undertext import --format` names it"
        }
        ImportError::Empty { .. } => "name another recording",
        // It says what to do, or its cause does.
        ImportError::Nothing { .. }
        | ImportError::Transcript { .. }
        | ImportError::Read { .. }
        | ImportError::Record(_) => return None,
    };
    Some(advice.into())
}

/// About settings that cannot be used. What is wrong with a value says what it may be.
fn config(error: &ConfigError) -> Option<Advice> {
    match error {
        ConfigError::File { source, .. } if source.kind() == io::ErrorKind::Other => {
            Some("settings stand in a file of YAML, of at most 1 MiB".into())
        }
        ConfigError::Endpoint(EndpointError::NamedKey(..)) => {
            Some("set it, or name another with --api-key-env".into())
        }
        ConfigError::File { .. }
        | ConfigError::Setting { .. }
        | ConfigError::Tool { .. }
        | ConfigError::Meaning(_)
        | ConfigError::MeaningAt { .. }
        | ConfigError::Endpoint(_) => None,
    }
}

/// About instructions that cannot be read.
fn instructions(error: &InstructionsError) -> Option<Advice> {
    (error.source.kind() == io::ErrorKind::Other).then(|| "name a file of text".into())
}

/// About a server that cannot be spoken to.
fn client(error: &ClientError) -> Option<Advice> {
    match error {
        ClientError::Key => Some("look at the variable that holds it".into()),
        ClientError::BaseUrl { .. } | ClientError::Header { .. } | ClientError::Setup(_) => None,
    }
}

/// About a directory that cannot be a workspace.
fn workspace(error: &WorkspaceError) -> Option<Advice> {
    match error {
        WorkspaceError::NoDirectory { .. } => Some("name a directory".into()),
        WorkspaceError::Open { .. } | WorkspaceError::TooMuch { .. } => None,
    }
}

/// About a workspace of which the process for tools does not tell.
fn look(_: &LookError) -> Advice {
    "`undertext doctor` says whether tools can work here".into()
}

/// About a demo for which there is no place.
fn demo(error: &SiteError) -> Option<Advice> {
    match error {
        SiteError::Files(source) if is_of_place(source) => Some(TEMPORARY.into()),
        SiteError::Unwell(_) => Some("install what is missing".into()),
        SiteError::Unnoticed => Some("give another --seed".into()),
        SiteError::Files(_) | SiteError::Workspace(_) => None,
    }
}

/// About a summary that was ordered and not written.
fn by_hand(error: &ByHandError) -> Option<Advice> {
    match error {
        ByHandError::NoSummary { .. } => Some(
            "try again later or with another model, or write it yourself: `undertext compact \
             --summary`"
                .into(),
        ),
        ByHandError::Vetoed { .. } => {
            Some("the hook is yours to change: compaction.hooks.before in your settings".into())
        }
        ByHandError::Refused(_) | ByHandError::Cancelled | ByHandError::Record(_) => None,
    }
}

/// Whether it is a place that keeps something from being written, so that another one helps.
fn is_of_place(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
    )
}

/// About what the system refuses, whatever it was to do.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "of most kinds nothing can be said that holds whatever was to be done"
)]
fn system(error: &io::Error) -> Option<Advice> {
    let advice = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "check the path",
        io::ErrorKind::PermissionDenied => "get the right to it, or name another",
        io::ErrorKind::ReadOnlyFilesystem => "name a place that can be written",
        io::ErrorKind::AlreadyExists => "name another",
        io::ErrorKind::IsADirectory => "name a file",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space there, then try again"
        }
        io::ErrorKind::FileTooLarge => "raise the limit on files (`ulimit -f`), then try again",
        io::ErrorKind::WriteZero => {
            "free some space there or raise the limit on files (`ulimit -f`), then try again"
        }
        io::ErrorKind::InvalidData => "it must be text in UTF-8",
        io::ErrorKind::WouldBlock => {
            "end other processes or raise the limit on them (`ulimit -u`), then try again"
        }
        _ => match Errno::from_io_error(error)? {
            Errno::MFILE | Errno::NFILE => {
                "raise the limit on open files (`ulimit -n`), then try again"
            }
            Errno::LOOP => "check where its links lead",
            Errno::NAMETOOLONG => "give it a shorter name",
            Errno::IO => "see whether its disk is sound, then try again",
            _ => return None,
        },
    };
    Some(advice.into())
}

#[cfg(test)]
mod tests {
    use undertext::id::RunId;

    use super::*;
    use crate::cli::exit::{Exit, Failure};
    use undertext::transcript::shelf::Lost;

    /// What no test of the program can bring about.
    #[test]
    fn a_refusal_says_what_can_be_done() {
        let of = |kind: io::ErrorKind| io::Error::from(kind);
        let disk = || io::Error::from(Errno::IO);
        let location = || "/t/a.jsonl".to_owned();
        let id = |n: u32| format!("019a0000-0000-7000-8000-0000aaaa000{n}");
        let runs: Vec<RunId> = (1..=7).map(|n| id(n).parse().unwrap()).collect();
        let find = |candidates: &[RunId]| FindError::Ambiguous {
            text: "019a".to_owned(),
            candidates: candidates.to_vec(),
        };
        let create = |kind| FileError::Create {
            path: "/t/a.jsonl".into(),
            source: of(kind),
        };
        let write = |source| RecordError::Write {
            location: location(),
            source,
        };
        let lines = [
            anyhow::Error::new(find(&runs[..2])),
            find(&runs).into(),
            create(io::ErrorKind::PermissionDenied).into(),
            create(io::ErrorKind::StorageFull).into(),
            FindError::Open(FileError::Replaced {
                path: "/t/a.jsonl".into(),
            })
            .into(),
            write(of(io::ErrorKind::StorageFull)).into(),
            write(io::Error::other("another file has taken its place")).into(),
            anyhow::Error::new(RecordError::Sync {
                location: location(),
                source: disk(),
            })
            .context("cannot record the run"),
            RecordError::Lost {
                location: location(),
                source: Lost {
                    entry: undertext::id::EntryId(17),
                    source: std::sync::Arc::new(io::Error::other("its bytes have changed")),
                },
            }
            .into(),
            RecordError::Poisoned {
                location: location(),
            }
            .into(),
            RecordError::NoRun {
                location: location(),
            }
            .into(),
            RecordError::Unknown.into(),
            RecordError::Encode {
                id: undertext::id::EntryId(7),
                source: EncodeError::TooLong(100_000_000),
            }
            .into(),
            FollowError::Shrunk {
                path: "/t/a.jsonl".into(),
            }
            .into(),
            WorkspaceError::NoDirectory { path: "/w".into() }.into(),
            ClientError::Key.into(),
            anyhow::Error::new(io::Error::from(Errno::MFILE)).context("cannot begin to work"),
            anyhow::Error::new(io::Error::from(Errno::AGAIN)).context("cannot begin to work"),
        ];
        let lines = lines.map(|error| Failure::new(Exit::Transcript, error).line());
        insta::assert_snapshot!(lines.join("\n"), @"
        `019a` may be any of aaaa0001, aaaa0002; give more of its id, as `undertext list` shows it
        `019a` may be any of aaaa0001, aaaa0002, aaaa0003, aaaa0004, aaaa0005 and 2 more; give more of its id, as `undertext list` shows it
        cannot create /t/a.jsonl: permission denied; name another directory with --transcripts
        cannot create /t/a.jsonl: no storage space; free some space there, then try again
        /t/a.jsonl was replaced while it was opened; try again
        cannot write to /t/a.jsonl: no storage space; free some space there, then try again
        cannot write to /t/a.jsonl: another file has taken its place; something else writes there: end that; `undertext show` says what it left of the run
        cannot record the run: cannot sync /t/a.jsonl: Input/output error (os error 5); see whether its disk is sound, then try again
        /t/a.jsonl is not as it was read or written: cannot read entry 17 again: its bytes have changed; its disk fails, or something else wrote into it; `undertext replay --verify` says where; the `.index` beside it may be deleted
        /t/a.jsonl takes no more entries since a write failed; mend what failed before, then try again
        /t/a.jsonl does not begin with a run; `undertext print` shows what is left
        an event that is not understood cannot be recorded; this is a fault of the program: please report it
        cannot record entry 7: entry of 100000000 bytes is longer than 4194304; say it shorter, or put it into a file of the workspace
        /t/a.jsonl has become shorter than what was read of it; try again
        the workspace /w is no directory; name a directory
        the api key holds characters that no header may hold; look at the variable that holds it
        cannot begin to work: Too many open files (os error 24); raise the limit on open files (`ulimit -n`), then try again
        cannot begin to work: Resource temporarily unavailable (os error 11); end other processes or raise the limit on them (`ulimit -u`), then try again
        ");
    }
}
