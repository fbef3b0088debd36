//! `Job`: reads, waits for and ends what `Bash` left running in the background.

use std::fmt::Write as _;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::exchange::{Facts, Status, ToolSpec};
use crate::id::CallId;
use crate::tools::background::{Background, Jobs};
use crate::tools::capture::{Capture, Printed};
use crate::tools::finish::{Finish, milliseconds};
use crate::tools::process::Ended;
use crate::tools::scope::quoted;
use crate::tools::{Outcome, clip, declared, schema};
use crate::words::grouped;

/// How many lines are shown unless asked for otherwise.
const LINES: u64 = 200;

/// The longest command in a list, in characters.
const COMMAND_CHARS: usize = 100;

/// The arguments of `Job`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The handle of the job (41.2). Without one all jobs are listed.
    job: Option<String>,
    /// Read what it printed (unless given), wait until it has ended, or end it.
    #[serde(default)]
    action: Action,
    /// The first line to show, from 1 (unless given, the last lines are shown).
    #[schemars(range(min = 1))]
    from_line: Option<u64>,
    /// How many lines to show (200 unless given).
    #[schemars(range(min = 1))]
    lines: Option<u64>,
    /// For how many milliseconds to wait (120000 unless given).
    #[schemars(range(min = 1, max = 600_000))]
    timeout_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    #[default]
    Read,
    Wait,
    End,
}

/// The spec of `Job`.
pub(crate) fn spec() -> ToolSpec {
    declared::spec("Job", schema::of::<Arguments>())
}

/// Answers the call. `usual` is how long is waited unless it says otherwise.
pub(crate) async fn run(
    jobs: &Jobs,
    arguments: &str,
    usual: Duration,
    cancel: &CancellationToken,
) -> Outcome {
    let arguments: Arguments = match serde_json::from_str(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return Outcome::error(format!("The arguments do not fit: {error}")),
    };
    let Some(handle) = &arguments.job else {
        return match arguments.action {
            Action::Read => Outcome::ok(list(jobs)),
            Action::Wait | Action::End => Outcome::error(format!("Say which job.\n{}", list(jobs))),
        };
    };
    let found = handle.trim().parse::<CallId>().ok();
    let found = found.and_then(|call| Some((call, jobs.get(call)?)));
    let Some((call, job)) = found else {
        let handle = clip::first(handle, 40);
        return Outcome::error(format!(
            "No job {handle} runs here: jobs end with the run, and those of an earlier part of it \
             are gone.\n{}",
            list(jobs)
        ));
    };
    let limit = arguments.timeout_ms.map_or(usual, Duration::from_millis);
    match arguments.action {
        Action::Read => {}
        Action::Wait => tokio::select! {
            biased;
            () = cancel.cancelled() => {
                return Outcome::new(Status::Cancelled, format!("[cancelled; job {call} runs on]"));
            }
            () = job.wait() => {}
            () = tokio::time::sleep(limit) => {}
        },
        Action::End => job.end().await,
    }
    let count = arguments.lines.unwrap_or(LINES).max(1);
    show(call, &job, arguments.from_line, count)
}

/// All jobs, a line each.
fn list(jobs: &Jobs) -> String {
    let jobs = jobs.all();
    if jobs.is_empty() {
        return "There are no jobs.".to_owned();
    }
    let lines = jobs.iter().map(|(call, job)| {
        let command = quoted(clip::first(job.command.trim(), COMMAND_CHARS));
        format!("{}: {command}", state(*call, job))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether the job runs, else how it ended.
fn state(call: CallId, job: &Background) -> String {
    match job.ended() {
        None => format!("job {call} runs"),
        Some(Ended::Exit(code)) => format!("job {call} ended: exit {code}"),
        Some(Ended::Signal(signal)) => format!("job {call} was ended by signal {signal}"),
        Some(Ended::TimedOut) => {
            let limit = milliseconds(job.limit);
            format!("job {call} was ended after {limit} ms, its limit")
        }
        Some(Ended::Cancelled) => format!("job {call} was ended"),
    }
}

/// The lines that were asked for, and the state below them.
fn show(call: CallId, job: &Background, from: Option<u64>, count: u64) -> Outcome {
    // Asked before what it printed is looked at: of an ended job that is all.
    let state = state(call, job);
    let exit = job
        .ended()
        .and_then(|ended| Finish::of(ended, job.limit).exit);
    let (text, lines) = lines(job.printed(), from, count);
    let facts = Facts {
        exit,
        ..Facts::default()
    };
    Outcome::ok(format!("{text}[{state}; {lines}]")).with_facts(facts)
}

/// The lines of an output from this one on, or its last ones; and which of how many they are.
fn lines(capture: Capture, from: Option<u64>, count: u64) -> (String, String) {
    let total = capture.lines();
    if total == 0 {
        return (String::new(), "it printed nothing".to_owned());
    }
    let from = from
        .unwrap_or_else(|| total.saturating_sub(count) + 1)
        .max(1);
    let to = from.saturating_add(count).min(total + 1);
    let all = grouped(total);
    if from > total {
        return (String::new(), format!("it printed {all} lines so far"));
    }
    let mut text = String::new();
    let mut push = |first: u64, part: &str| {
        for (line, number) in part.lines().zip(first..).take_while(|(_, at)| *at < to) {
            if number >= from {
                writeln!(text, "{line}").ok();
            }
        }
    };
    match capture.printed() {
        Printed::Whole(whole) => push(1, &whole),
        Printed::Ends { head, lost, tail } => {
            let begun = head.lines().count() as u64;
            let rest = total + 1 - (tail.lines().count() as u64).min(total);
            push(1, &head);
            if from < rest.max(begun + 1) && begun < to {
                let lost = grouped(lost);
                let left_out =
                    format!("[… {lost} bytes up to line {rest} left out; they were not kept …]");
                push(from, &left_out);
            }
            push(rest, &tail);
        }
    }
    let shown = format!("lines {}–{} of {all}", grouped(from), grouped(to - 1));
    (text, shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, half: usize, from: Option<u64>, count: u64, expected: &str) {
        let mut capture = Capture::with_half(half);
        capture.take(text.as_bytes());
        let (text, shown) = lines(capture, from, count);
        assert_eq!(format!("{text}[{shown}]"), expected);
    }

    #[test]
    fn lines_are_counted_from_the_first_that_was_printed() {
        check("", 9, None, 2, "[it printed nothing]");
        check("a\nb\nc\n", 9, None, 2, "b\nc\n[lines 2–3 of 3]");
        check("a\nb\nc", 9, Some(1), 2, "a\nb\n[lines 1–2 of 3]");
        check("a\nb\nc", 9, Some(3), 9, "c\n[lines 3–3 of 3]");
        check("a\nb\n", 9, Some(3), 9, "[it printed 2 lines so far]");
    }

    #[test]
    fn what_was_not_kept_leaves_a_gap() {
        let text = "1\n2\n3\n4\n5\n6\n7\n";
        let gap = "[… 6 bytes up to line 6 left out; they were not kept …]\n";
        check(text, 4, None, 2, "6\n7\n[lines 6–7 of 7]");
        check(
            text,
            4,
            None,
            7,
            &format!("1\n2\n{gap}6\n7\n[lines 1–7 of 7]"),
        );
        check(text, 4, Some(4), 1, &format!("{gap}[lines 4–4 of 7]"));
    }
}
