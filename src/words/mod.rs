//! Every sentence the runtime says to a model, in one place.
//!
//! What is not from the user says so. No path, run id or clock time is ever rendered here: the same
//! entries read the same wherever they are.

mod summaries;

use std::borrow::Cow;
use std::fmt::Write as _;

pub use summaries::{
    FROM_ASSISTANT, FROM_RUNTIME, FROM_USER, STOP_WORKING, SURVIVAL, WORKING_STATE, carried_call,
    carried_entry, clipped_for_summary, combine, failed_command, file, merged_from, on_one_line,
    open_todo, result_of, skeleton_call, skeleton_intro, skeleton_said, skill_by_name, summarize,
    summary, survival_demand, survival_keep, survival_more, survival_names, survival_unfounded,
    text_to_combine, working_directory,
};

use crate::exchange::Status;
use crate::id::CallId;

/// The result of a call that has none: it was started and nobody knows what became of it.
pub const INTERRUPTED: &str = "interrupted, effect unknown";

/// What stands in a recording of another agent where a response follows nothing that it answers.
pub const NOT_RECORDED: &str = "[What came before this was not recorded.]";

/// What stands for a summary of another agent that only its provider can read.
pub const SEALED_SUMMARY: &str =
    "[The agent's summary of what came before is encrypted; its text was not recorded.]";

/// The assistant's word after a summary, where the next message is the user's.
pub const UNDERSTOOD: &str = "Understood. I have the context from the summary. Continuing.";

/// The heading of what is shown again after the last summary.
pub const CARRIED: &str =
    "[CARRIED OVER - the runtime shows this again from what is summarized above]";

/// Arguments that read as nothing to imitate.
pub const NO_ARGUMENTS: &str = "{}";

/// The result of a call whose reply was cut.
pub const CUT_CALL: &str = "[undertext] Your reply was cut off at the limit of output tokens, so \
     this call did not run. Make it again with shorter arguments, or split the work into smaller \
     steps.";

/// The result of a call in a reply that a content filter ended or the model took back.
pub const UNSOUND_CALL: &str =
    "[undertext] Your reply was not completed, so this call did not run.";

/// The result of a call whose neighbour was malformed.
pub const NEIGHBOUR_MALFORMED: &str = "not run: another call of this reply was malformed";

/// The result of a call above the limit of calls in one reply.
pub fn too_many_calls(limit: u32) -> String {
    format!("not run: a reply may make at most {limit} calls; make the rest in your next one")
}

/// The result of a call that was cancelled before it ran.
pub const CANCELLED: &str = "cancelled: the run was stopped before this call ran";

/// The result of a call that was cancelled while it ran.
pub const CANCELLED_RUNNING: &str =
    "cancelled: the run was stopped while this call was running; effects may have happened";

/// Says that a reply was empty.
pub const EMPTY: &str = "[undertext, not the user] Your last reply was empty. Go on with the task: \
     call a tool, or say in words that the task is done or what keeps you from it.";

/// Says that a reply without calls was cut.
pub const CUT_TEXT: &str = "[undertext, not the user] Your last reply was cut off at the limit of \
     output tokens. Go on from where it ends.";

/// Says that a reply which only announces work ends the run.
pub const ANNOUNCED: &str = "[undertext, not the user] Your last reply announces work but calls no \
     tool, and nobody answers here: a reply without a call ends the run. Make the call now. If the \
     task is done, say what you did; if something keeps you from it, say what.";

/// Says that a call in the text of a reply is none.
pub const WRITTEN_CALL: &str = "[undertext, not the user] Your last reply holds a call written as \
     text, and such a call never runs. If you mean it, make it as a tool call. If the task is done, \
     say so without it.";

/// Ends a request whose last message would be the assistant's.
pub const GO_ON: &str =
    "[undertext, not the user] The run was taken up again. Go on with the task.";

/// Stands before the assistant's first message where the user must speak first.
pub const LEFT_OUT_BEFORE: &str =
    "[undertext, not the user] What was said before this is left out.";

/// What was said after a result, where nobody but the assistant may speak after one.
pub fn after_result(text: &str) -> String {
    format!("[undertext: this is no part of the result, it was said after it]\n{text}")
}

/// Hands a call back that the server refused, as far as the server tells what the model wrote.
pub fn refused_call(why: &str, text: &str) -> String {
    let wrote = if text.is_empty() {
        String::new()
    } else {
        format!(" You wrote:\n\n{text}\n\n")
    };
    let wrote = if wrote.is_empty() { " " } else { &wrote };
    format!(
        "[undertext, not the user] The server did not take the call in your last reply, so nothing \
         ran. It says: {why}{wrote}Make the call again, as a tool call with one JSON object that \
         fits the tool's schema."
    )
}

/// Says, behind the instructions, which form the last answer must have.
pub fn answer_form(schema: &str) -> String {
    format!(
        "# The form of your last answer\n\nWhen the work is done, your last reply, the one that calls \
         no tool, must be one JSON value that fits the JSON Schema below, and nothing else: no words \
         before or after it, no code fence.\n\n{schema}"
    )
}

/// Asks for an answer that fits the schema. `last` is what became of the correction before, if that
/// was none.
pub fn repair(what: &str, last: Option<&str>) -> String {
    let last = last.unwrap_or_default();
    format!(
        "[undertext, not the user] {last}Your answer does not fit the JSON Schema that it must fit: \
         {what}. Reply with the whole answer, corrected: one JSON value and nothing else, no words \
         before or after it, no code fence. No tool can be called now."
    )
}

/// What became of a correction that was cut.
pub const REPAIR_CUT: &str =
    "Your correction was cut off at the limit of output tokens; make it shorter. ";

/// What became of a correction that called tools.
pub const REPAIR_CALLED: &str = "Your correction called a tool, and nothing ran. ";

/// What became of a correction without text.
pub const REPAIR_EMPTY: &str = "Your correction was empty. ";

/// What became of a correction that a content filter ended or the model took back.
pub const REPAIR_UNSOUND: &str = "Your correction was not completed. ";

/// Warns that the same call keeps failing.
pub fn failing_call(name: &str, times: u32) -> String {
    format!(
        "[undertext, not the user] The same call of {name} has failed {times} times in a row. Do \
         not make it again: read the error, and try another way."
    )
}

/// Warns that a limit is near: `412,000 of 500,000 tokens`.
pub fn limit_near(used_of_limit: &str) -> String {
    format!(
        "[undertext, not the user] {used_of_limit} are used. Bring the work to a good end before \
         the limit ends the run."
    )
}

/// So many of so many things: `412,000 of 500,000 tokens`.
pub fn count_of(used: u64, limit: u64, what: &str) -> String {
    format!("{} of {} {what}", grouped(used), grouped(limit))
}

/// So much of so much money, given in micro-dollars: `$4.10 of $5.00`.
pub fn money_of(used: u64, limit: u64) -> String {
    // Below a dollar, cents are too coarse.
    let (places, unit) = if limit < 1_000_000 {
        (4, 100)
    } else {
        (2, 10_000)
    };
    let dollars = |micro: u64| {
        let (whole, rest) = (micro / 1_000_000, micro % 1_000_000 / unit);
        format!("${}.{rest:0places$}", grouped(whole))
    };
    format!("{} of {}", dollars(used), dollars(limit))
}

/// So much of so much time, given in milliseconds: `48 of 60 minutes`.
pub fn time_of(used: u64, limit: u64) -> String {
    let (unit, what) = if limit < 300_000 {
        (1_000, "seconds")
    } else {
        (60_000, "minutes")
    };
    count_of(used / unit, limit.div_ceil(unit), what)
}

/// Tells the model that the check fails, with what it printed.
pub fn check_failed(command: &str, exit: Option<i32>, output: &str) -> String {
    let how = exit.map_or_else(
        || "did not come to an end".to_owned(),
        |exit| format!("failed with exit {exit}"),
    );
    format!(
        "[undertext, not the user] The work is not done yet: the check `{command}` {how}. Mend what \
         it reports, then say again that you are done: it is run each time. It printed:\n\n{output}"
    )
}

/// Tells the model that the compaction it asked for failed.
pub fn compaction_failed(why: &str) -> String {
    format!(
        "[undertext, not the user] The compression you requested could not be done: {why}. Nothing \
         was changed; go on with the task."
    )
}

/// Why a compression that was requested is not done: a hook of the user's forbids it.
pub fn vetoed(reason: &str) -> String {
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    if reason.is_empty() {
        "a hook that the user set up forbids it now".to_owned()
    } else {
        format!("a hook that the user set up forbids it now ({reason})")
    }
}

/// The answer of `Compact` when it is granted.
pub fn compact_granted(rounds: (u32, u32), tokens: u64, focus: Option<&str>) -> String {
    let mut text = format!(
        "Compression requested: rounds {} to {} (about {} tokens) will be summarized when this \
         round's calls are done.",
        rounds.0,
        rounds.1,
        grouped(tokens)
    );
    if let Some(focus) = focus {
        write!(text, " Focus: {focus}").ok();
    }
    text
}

/// The answer of `Compact` when it does not pay.
pub fn compact_refused(tokens: u64, trigger: u64, from: u64) -> String {
    format!(
        "Not now: {} of {} tokens are in use; compaction pays from {}. Go on.",
        grouped(tokens),
        grouped(trigger),
        grouped(from)
    )
}

/// The answer of `Compact` soon after a summary.
pub fn compact_too_soon(rounds: u32, cooldown: u32) -> String {
    format!(
        "Not now: the last summary is {rounds} rounds old; compaction pays again after {cooldown}. \
         Go on."
    )
}

/// The answer of `Compact` when there is nothing to summarize.
pub const COMPACT_NOTHING: &str =
    "Not now: there is no finished round before this one to summarize. Go on.";

/// A result that micro-compaction put away.
pub fn previous(name: &str, call: CallId, status: Status, lines: usize) -> String {
    let unit = if lines == 1 { "line" } else { "lines" };
    match status {
        Status::Ok => format!("[Previous: used {name}] Recall {call} shows it ({lines} {unit})"),
        Status::Error
        | Status::Denied
        | Status::Timeout
        | Status::Interrupted
        | Status::Cancelled => {
            let status = status.word();
            format!("[Previous: used {name}] Recall {call} shows it ({status}, {lines} {unit})")
        }
    }
}

/// A result that compaction by hints put away.
pub fn compacted(name: &str, call: CallId, status: Status, labels: &str) -> String {
    let word = if status == Status::Ok {
        "success"
    } else {
        status.word()
    };
    if labels.is_empty() {
        format!("[compacted] {name}: {word} Recall {call} shows it")
    } else {
        format!("[compacted] {name}: {word} ({labels}) Recall {call} shows it")
    }
}

/// A result that a later call made stale.
pub fn stale(name: &str, call: CallId, by: CallId) -> String {
    format!("[Previous: used {name}] stale since {by}, Recall {call} shows it")
}

/// An attachment in a user's message.
pub fn attachment(name: &str, media: &str, text: &str) -> String {
    format!("[attachment {name}, {media}]\n{text}")
}

/// An attachment that was left out.
pub fn attachment_hidden(name: &str, chars: usize) -> String {
    format!("[attachment {name}, {chars} characters, hidden]")
}

/// The result of a call that needs hands, in a run without them.
pub const NO_HANDS: &str = "This run has no hands: tools that touch the world are off.";

/// Digits in groups of three: `118,000`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A recorded reason as people read it: the figures of `12310 of 10000 tokens` in groups.
pub fn figures(reason: &str) -> String {
    let number = |word: &str| {
        let is_plain = word.bytes().all(|byte| byte.is_ascii_digit());
        word.parse().ok().filter(|_| is_plain).map(grouped)
    };
    let mut words: Vec<Cow<'_, str>> = reason.split(' ').map(Cow::Borrowed).collect();
    for place in 0..words.len() {
        let Some([used, of, all, what]) = words.get_mut(place..place + 4) else {
            break;
        };
        if of == "of"
            && what.starts_with("tokens")
            && let (Some(some), Some(limit)) = (number(used), number(all))
        {
            (*used, *all) = (some.into(), limit.into());
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::EntryId;

    #[test]
    fn stubs_read_as_the_design_says() {
        let call = CallId::new(EntryId(41), 2);
        assert_eq!(
            previous("Bash", call, Status::Error, 1832),
            "[Previous: used Bash] Recall 41.2 shows it (error, 1832 lines)"
        );
        assert_eq!(
            compacted("Edit", call, Status::Ok, "src/main.rs"),
            "[compacted] Edit: success (src/main.rs) Recall 41.2 shows it"
        );
        assert_eq!(
            stale("Read", call, CallId::new(EntryId(60), 1)),
            "[Previous: used Read] stale since 60.1, Recall 41.2 shows it"
        );
    }

    #[test]
    fn limits_read_in_units_of_people() {
        assert_eq!(count_of(400, 500, "rounds"), "400 of 500 rounds");
        for (used, limit, text) in [
            (4_100_000, 5_000_000, "$4.10 of $5.00"),
            (81_234, 100_000, "$0.0812 of $0.1000"),
            (1_600_000_000, 2_000_000_000, "$1,600.00 of $2,000.00"),
        ] {
            assert_eq!(money_of(used, limit), text);
        }
        for (used, limit, text) in [
            (72_500, 90_000, "72 of 90 seconds"),
            (2_880_000, 3_600_000, "48 of 60 minutes"),
            (100_000_000, 120_000_000, "1,666 of 2,000 minutes"),
        ] {
            assert_eq!(time_of(used, limit), text);
        }
    }

    #[test]
    fn digits_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (12_345_678, "12,345,678"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn figures_are_shown_for_people() {
        for (reason, shown) in [
            ("12310 of 10000 tokens", "12,310 of 10,000 tokens"),
            (
                "151200 of 150000 tokens (chars/4)",
                "151,200 of 150,000 tokens (chars/4)",
            ),
            (
                "too long: 2637 of 1400 tokens, cold",
                "too long: 2,637 of 1,400 tokens, cold",
            ),
            ("the model asked", "the model asked"),
            ("5000 of what", "5000 of what"),
            ("5000 of 6000 files", "5000 of 6000 files"),
            ("+5000 of 6000 tokens", "+5000 of 6000 tokens"),
            ("", ""),
        ] {
            assert_eq!(figures(reason), shown);
        }
    }
}
