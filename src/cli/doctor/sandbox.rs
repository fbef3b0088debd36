//! What the sandbox stops on this machine, and what it does not.

use undertext::sandbox::{Held, Mechanism, stopped};
use undertext::setup::Sandbox;

use crate::cli::doctor::check::Findings;
use crate::cli::exit::{Exit, Failure};
use crate::cli::{Process, confined};

/// Looks at what is enforced. Who has no sandbox said so.
pub(super) async fn look(
    sandbox: &Sandbox,
    process: &Process,
    findings: &mut Findings<'_>,
) -> Result<(), Failure> {
    if *sandbox == Sandbox::Off {
        return Ok(());
    }
    let enforced = match confined::tried(sandbox, process).await {
        Ok(enforced) => enforced,
        Err(why) => {
            findings.fail(
                "sandbox",
                Exit::Sandbox,
                format!("cannot be enforced: {why}"),
            )?;
            findings.change("run without it: --sandbox off, or sandbox.mode: off in config.yaml");
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
    findings.ok("sandbox", format!("{}, by {by}", sandbox.word()))?;
    for (class, held) in stopped(&enforced) {
        let label = class.label();
        match held {
            Held::By(what) => findings.ok("sandbox", format!("stopped: {label}, by {what}"))?,
            Held::Open(why) => findings.warn("sandbox", format!("NOT stopped: {label}; {why}"))?,
        }
    }
    Ok(())
}
