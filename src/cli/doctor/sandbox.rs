//! What the sandbox stops on this machine, and what it does not.

use undertext::config::Settings;
use undertext::sandbox::{Held, Mechanism, stopped};

use crate::cli::confined::Unheld;
use crate::cli::doctor::check::Findings;
use crate::cli::exit::{Exit, Failure};
use crate::cli::{Process, confined};

/// Looks at what is enforced.
pub(super) async fn look(
    settings: &Settings,
    process: &Process,
    findings: &mut Findings<'_>,
) -> Result<(), Failure> {
    let sandbox = &settings.policy.sandbox;
    let Some(reach) = sandbox.reach() else {
        return findings.warn("sandbox", "off: tools run with your own rights");
    };
    let (enforced, bounds) = match confined::tried(settings, process).await {
        Ok(tried) => tried,
        Err(Unheld { exit, why, advice }) => {
            let why = if exit == Exit::Sandbox {
                format!("cannot be enforced: {why}")
            } else {
                why
            };
            findings.fail("sandbox", exit, why)?;
            if let Some(advice) = advice {
                findings.change(advice);
            }
            return Ok(());
        }
    };
    let mut by = match enforced.mechanism {
        Mechanism::Namespaces => "namespaces".to_owned(),
        Mechanism::Landlock => "Landlock alone, as no namespaces can be had".to_owned(),
    };
    if enforced.landlock > 0 {
        by += &[" (Landlock ", &enforced.landlock.to_string(), ")"].concat();
    }
    let network = confined::network(reach);
    findings.ok("sandbox", format!("{}, by {by}; {network}", sandbox.word()))?;
    for (class, held) in stopped(&enforced, &bounds) {
        let label = class.label();
        match held {
            Held::By(what) => findings.ok("sandbox", format!("stopped: {label}, by {what}"))?,
            Held::Open(why) => findings.warn("sandbox", format!("NOT stopped: {label}; {why}"))?,
        }
    }
    Ok(())
}
