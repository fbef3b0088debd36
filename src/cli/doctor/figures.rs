//! The figures of a model: its window and its prices.

use undertext::config::Settings;
use undertext::model::Listed;
use undertext::profile::Known;
use undertext::setup::Model;

use crate::cli::doctor::check::Findings;
use crate::cli::exit::{Exit, Failure};
use crate::cli::{amount, models};

/// A window below this is small for an agent, in tokens.
const SMALL: u64 = 32_000;

/// The window: told, known, or named by the server.
pub(super) fn window(
    settings: &Settings,
    model: &Model,
    known: Option<&Known>,
    there: Option<&Listed>,
    findings: &mut Findings<'_>,
) -> Result<(), Failure> {
    let named = there.and_then(|listed| listed.window);
    let tokens = |window: u64| format!("{} tokens", amount::count(window));
    let source = match (settings.model.window, known) {
        (Some(_), _) => "as your settings say".to_owned(),
        (None, Some(known)) => format!("as known on {}", known.as_of),
        (None, None) => String::new(),
    };
    let advice = |window: u64| format!("model.context_window: {window}");
    match (model.window, named) {
        (Some(used), Some(named)) if named < used => {
            let text = format!(
                "{}, {source}; the server says {}",
                tokens(used),
                tokens(named)
            );
            findings.warn("window", text)?;
            findings.change(advice(named));
        }
        (Some(used), _) if used < SMALL => {
            let text = format!("{}, {source}: that is small for an agent", tokens(used));
            findings.warn("window", text)?;
        }
        (Some(used), _) => findings.ok("window", format!("{}, {source}", tokens(used)))?,
        (None, Some(named)) => {
            let small = if named < SMALL {
                ", which is small for an agent"
            } else {
                ""
            };
            let text = format!(
                "the server says {}{small}; it is not used yet",
                tokens(named)
            );
            findings.warn("window", text)?;
            findings.better(advice(named));
        }
        (None, None) => {
            let text = "not known; it is learned when the server says that a request is too long";
            findings.warn("window", text)?;
            findings.better("name the model's window, in tokens: model.context_window: 128000");
        }
    }
    let output = model.parameters.max_output_tokens;
    if let (Some(most), Some(output)) = (known.and_then(|known| known.output), output)
        && output > most
    {
        findings.warn(
            "window",
            format!("one response has at most {}", tokens(most)),
        )?;
        findings.change(format!("model.max_output_tokens: {most}"));
    }
    Ok(())
}

/// What tokens cost.
pub(super) fn prices(
    settings: &Settings,
    known: Option<&Known>,
    findings: &mut Findings<'_>,
) -> Result<(), Failure> {
    match (&settings.policy.prices, known) {
        (Some(prices), _) => {
            let text = format!("{}, as your settings say", models::listed(prices));
            findings.ok("prices", text)
        }
        (None, Some(known)) => findings.ok("prices", models::of_known(known)),
        (None, None) if settings.policy.limits.cost_usd_micro.is_some() => {
            let text = "not known, so that limits.cost cannot hold";
            findings.fail("prices", Exit::Usage, text)?;
            findings
                .change("model.prices: { input: …, output: … }, in US dollars per million tokens");
            Ok(())
        }
        (None, None) => findings.ok("prices", "not known: cost is not counted"),
    }
}
