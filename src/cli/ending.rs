//! How a run ended: told to people, to programs and to the shell, with the way to go on.

use std::fmt::Write as _;
use std::path::Path;

use undertext::agent::{AgentError, Finished};
use undertext::config;
use undertext::record::Recorder;
use undertext::transcript::{Event, FaultClass, Reason, Totals};
use undertext::view::View;

use crate::cli::exit::{Exit, Failure};
use crate::cli::output::Told;
use crate::cli::report::Report;
use crate::cli::start::Start;
use crate::cli::term::Look;
use crate::cli::{RunArgs, entry};

/// What is said when a run is ended at once.
pub(super) const AT_ONCE: &str = "ended at once; the run can be taken up again";

/// How the work ended.
pub(super) enum Ended {
    /// The agent returned.
    Returned(Result<Finished, AgentError>),
    /// A person did not want to wait.
    AtOnce,
    /// Nobody reads standard output any more, so the run was ended.
    Unread,
}

/// Tells how the run ended and how to go on, and says so to the shell.
pub(super) fn tell(
    (ended, signal): (Ended, Option<Exit>),
    recorder: &Recorder,
    again: &str,
    start: &Start,
    report: &mut Report<'_>,
) -> Result<Exit, Failure> {
    let used = used(recorder.view());
    let last = |report: &mut Report<'_>, reason: Reason, exit: Exit| {
        report.object(&Told::Totals {
            run: recorder.run(),
            reason,
            exit: exit as u8,
            totals: used,
        })
    };
    match ended {
        Ended::AtOnce => {
            let exit = signal.unwrap_or(Exit::Interrupted);
            report.say(Look::Bad, AT_ONCE);
            report.say(Look::Plain, again);
            last(report, Reason::Interrupted, exit)?;
            Ok(exit)
        }
        Ended::Unread => {
            report.say(
                Look::Bad,
                "nobody reads the output any more, so the run was ended",
            );
            report.say(Look::Plain, again);
            Ok(signal.unwrap_or(Exit::Interrupted))
        }
        Ended::Returned(Ok(finished)) if finished.reason == Reason::Finished => {
            report.answer(&finished.text)?;
            report.say(Look::Faint, &format!("finished: {}", entry::totals(&used)));
            last(report, finished.reason, Exit::Done)?;
            Ok(Exit::Done)
        }
        Ended::Returned(Ok(finished)) => {
            let reason = finished.reason;
            let exit = match signal {
                Some(exit) if reason == Reason::Interrupted => exit,
                Some(_) | None => Exit::of(reason),
            };
            if reason != Reason::Interrupted {
                let text = finished.text.trim_end_matches("; resume to go on");
                report.say(Look::Bad, text);
            }
            if let Some(advice) = advice(recorder.view(), reason, start) {
                report.say(Look::Plain, &advice);
            }
            let totals = entry::totals(&used);
            report.say(Look::Faint, &format!("ended ({}): {totals}", reason.word()));
            report.say(Look::Plain, again);
            last(report, reason, exit)?;
            Ok(exit)
        }
        Ended::Returned(Err(error)) => {
            let exit = match &error {
                AgentError::NoTask
                | AgentError::EmptyTask
                | AgentError::NoHands
                | AgentError::Tools(_) => Exit::Usage,
                AgentError::Record(_) => {
                    report.say(Look::Plain, again);
                    last(report, Reason::Storage, Exit::Transcript)?;
                    Exit::Transcript
                }
            };
            Err(Failure::new(exit, error))
        }
    }
}

/// What was used since the run was begun or taken up.
fn used(view: &View) -> Totals {
    match view.transcript().last().map(|entry| &entry.event) {
        Some(Event::End(end)) => end.totals,
        Some(_) | None => view.ledger().since_end,
    }
}

/// What to try when the provider failed, where that can be said.
fn advice(view: &View, reason: Reason, start: &Start) -> Option<String> {
    if reason != Reason::Provider {
        return None;
    }
    let (class, _) = view.ledger().asked.as_ref()?.fault?;
    match class {
        FaultClass::Auth => Some(match &start.endpoint.key {
            Some(key) => format!("check the key in {}", key.variable),
            None => "name the variable that holds the key with --api-key-env".to_owned(),
        }),
        FaultClass::Transport => Some(format!(
            "check that a server listens at {}",
            config::public_part(&start.endpoint.base_url)
        )),
        FaultClass::Rate | FaultClass::Overload | FaultClass::Server => Some(
            "go on later; model.retries says how often and how long a run waits by itself"
                .to_owned(),
        ),
        FaultClass::Permanent => {
            Some("`undertext doctor`, with the same settings, may say what to change".to_owned())
        }
        FaultClass::Stall
        | FaultClass::Torn
        | FaultClass::ContentFilter
        | FaultClass::Overflow
        | FaultClass::Local => None,
    }
}

/// How the run is taken up again.
pub(super) fn again(args: &RunArgs, start: &Start, recorder: &Recorder) -> String {
    format!("to go on: {}", resume(args, start, recorder))
}

/// The command that takes the run up again, with the flags that say where it is and who answers.
pub(super) fn resume(args: &RunArgs, start: &Start, recorder: &Recorder) -> String {
    let location = recorder.storage().location();
    let is_listed = Path::new(&location).parent() == Some(&start.transcripts);
    let name = if is_listed {
        recorder.run().short()
    } else {
        quoted(&location)
    };
    let mut command = format!("undertext run --resume {name}");
    let mut flag = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            write!(command, " {name} {}", quoted(value)).ok();
        }
    };
    for name in &args.env {
        flag("--env", Some(name));
    }
    let log = args.logs.log_file.as_deref();
    flag("--log-file", log.and_then(Path::to_str));
    let shown = args.asked.base_url.as_deref().map(without_query);
    flag("--base-url", shown.as_deref());
    flag("--api-key-env", args.asked.api_key_env.as_deref());
    let some = |names: &[String]| (!names.is_empty()).then(|| names.join(","));
    flag("--tools", some(&args.choice.tools).as_deref());
    flag("--no-tools", some(&args.choice.no_tools).as_deref());
    let transcripts = args.settings.transcripts.as_deref();
    flag("--transcripts", transcripts.and_then(Path::to_str));
    flag(
        "--instructions",
        args.instructions.as_deref().and_then(Path::to_str),
    );
    flag("--append-instructions", args.append_instructions.as_deref());
    flag("--check", args.check.as_deref());
    for file in &args.settings.config {
        flag("--config", file.to_str());
    }
    for set in &args.settings.set {
        let is_server = set.starts_with("model.base_url=");
        let shown = is_server.then(|| without_query(set));
        flag("--set", Some(shown.as_deref().unwrap_or(set)));
    }
    if args.share_workspace {
        command.push_str(" --share-workspace");
    }
    command
}

/// A server's address with marks in place of what may hold a key.
fn without_query(address: &str) -> String {
    let hidden = if address.contains(['?', '#']) {
        "?…"
    } else {
        ""
    };
    format!("{}{hidden}", config::public_part(address))
}

/// A word as a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=,@%+~".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::{quoted, without_query};

    #[test]
    fn a_query_is_not_repeated() {
        for (address, shown) in [
            ("http://h/v1", "http://h/v1"),
            ("http://h/v1?key=sk-secret", "http://h/v1?…"),
            (
                "model.base_url=http://me:pass@h/v1",
                "model.base_url=http://…@h/v1",
            ),
        ] {
            assert_eq!(without_query(address), shown);
        }
    }

    #[test]
    fn a_word_is_quoted_where_a_shell_would_split_it() {
        for (word, shown) in [
            ("http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1"),
            ("a b", "'a b'"),
            ("", "''"),
            ("it's $HOME", r"'it'\''s $HOME'"),
        ] {
            assert_eq!(quoted(word), shown);
        }
    }
}
