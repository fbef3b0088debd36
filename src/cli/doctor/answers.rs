//! What the model answered: a word, and a call.

use undertext::announcement::{self, Announcement};
use undertext::exchange::Ending;
use undertext::transcript::FaultClass;

use crate::cli::amount;
use crate::cli::doctor::check::Findings;
use crate::cli::doctor::probe::{self, Probed};
use crate::cli::exit::{Exit, Failure};

/// What to do where a reply is cut.
const LESS: &str =
    "let the model think less (model.reasoning_effort), or see what limits output at the server";

/// Whether the model answered.
pub(super) fn reply(probed: &Probed, findings: &mut Findings<'_>) -> Result<bool, Failure> {
    let Some(response) = probed.responses.last() else {
        failed("reply", probed, findings)?;
        return Ok(false);
    };
    let finish = match &response.finish {
        Some(finish) => format!("finish reason {finish}"),
        None => "no finish reason".to_owned(),
    };
    match response.ending {
        Ending::Complete if response.text.trim().is_empty() => {
            findings.fail("reply", Exit::Unfinished, format!("empty, {finish}"))?;
            findings.change("see that the server uses the chat template that the model needs");
            return Ok(false);
        }
        Ending::Complete => {}
        Ending::Cut => {
            let most = amount::count(probe::OUTPUT_MAX);
            let text = format!("cut, {finish}: {most} tokens were not enough for a word");
            findings.warn("reply", text)?;
            findings.change(LESS);
            return Ok(true);
        }
        Ending::Filtered | Ending::Refused => {
            findings.fail("reply", Exit::Unfinished, format!("refused, {finish}"))?;
            findings.change("take a model or a server that refuses less");
            return Ok(false);
        }
    }
    let counted = response.usage;
    if let Some((input, output)) = counted.and_then(|usage| usage.input.zip(usage.output)) {
        let text = format!("whole, {finish}, {input} tokens in and {output} out");
        findings.ok("reply", text)?;
    } else {
        let text = format!("whole, {finish}, but tokens are not reported");
        findings.warn("reply", text)?;
        findings.better(
            "tokens and cost will be estimates; see if the server can report usage when streaming",
        );
    }
    Ok(true)
}

/// Whether the model called the tool.
pub(super) fn call(probed: &Probed, findings: &mut Findings<'_>) -> Result<(), Failure> {
    let called = probed.responses.iter().map(|response| response.calls.len());
    match (probed.ran, called.sum::<usize>()) {
        (1.., _) => match &probed.fault {
            None => findings.ok(
                "call",
                "made, with whole arguments, and its result was read",
            ),
            Some(fault) => {
                let text = format!("made, but its result was refused: {}", fault.message);
                findings.fail("call", Exit::Provider, text)?;
                findings.change("another profile may do: model.profile");
                Ok(())
            }
        },
        (0, 0) if probed.fault.is_some() || probed.late => failed("call", probed, findings),
        (0, 0) => {
            findings.fail("call", Exit::Unfinished, instead(probed))?;
            let last = probed.responses.last();
            if last.is_none_or(|response| response.ending != Ending::Cut) {
                advise_tools(findings);
            }
            Ok(())
        }
        (0, _) => {
            let text = "made, but its arguments were not usable";
            findings.fail("call", Exit::Unfinished, text)?;
            advise_tools(findings);
            Ok(())
        }
    }
}

/// What the model did in place of a call.
fn instead(probed: &Probed) -> &'static str {
    let Some(response) = probed.responses.last() else {
        return "no call was made";
    };
    let announced = announcement::announced(&response.text, &[probe::TOOL]);
    match response.ending {
        Ending::Cut => "the reply was cut before a call was made",
        Ending::Filtered | Ending::Refused => "the model refused it",
        Ending::Complete if announced == Some(Announcement::Call) => {
            "the model wrote it as text, which does not run"
        }
        Ending::Complete if response.text.trim().is_empty() => "the reply is empty",
        Ending::Complete => "the model answered in words instead",
    }
}

fn advise_tools(findings: &mut Findings<'_>) {
    findings.change("take a model that is made for tools, or switch tool calls on at the server");
}

/// There was no answer.
fn failed(name: &'static str, probed: &Probed, findings: &mut Findings<'_>) -> Result<(), Failure> {
    let Some(fault) = &probed.fault else {
        let text = if probed.late {
            "no answer came in time"
        } else {
            "no answer came"
        };
        return findings.fail(name, Exit::Provider, text);
    };
    let status = fault
        .status
        .map_or_else(String::new, |status| format!(" ({status})"));
    let text = format!("{}{status}: {}", fault.class.word(), fault.message);
    findings.fail(name, Exit::Provider, text)?;
    match fault.class {
        FaultClass::Permanent if matches!(fault.status, Some(402 | 429)) => {
            findings.change("see to credit and limits of your account at the provider");
        }
        FaultClass::Permanent if matches!(fault.status, Some(300..=399)) => {
            findings.change("name the address that the server moved to with --base-url");
        }
        FaultClass::Auth => findings.change("see that the key is right, and may use this model"),
        FaultClass::Rate | FaultClass::Overload | FaultClass::Server => {
            findings.change("wait a little and try again: the server is busy or broken");
        }
        FaultClass::Transport | FaultClass::Stall | FaultClass::Torn => {
            findings.change("see that the server runs, and that nothing between cuts connections");
        }
        FaultClass::Permanent | FaultClass::ContentFilter | FaultClass::Local if name == "call" => {
            advise_tools(findings);
        }
        FaultClass::Permanent | FaultClass::ContentFilter | FaultClass::Local => {
            findings.change("see that the model's name and the address are right");
        }
        FaultClass::Overflow => findings.change("give the server a larger window"),
    }
    Ok(())
}
