//! `hands`: the process in which tools run. No person types it.

use clap::Args;

use crate::cli::exit::{Exit, Failure};

/// The name of the command.
pub(super) const NAME: &str = "hands";

/// `hands`
#[derive(Debug, Args)]
pub(crate) struct HandsArgs {
    /// How it begins
    #[arg(value_name = "STAGE")]
    stage: String,
}

/// Serves as the process in which tools run, until the run that started it is gone.
#[cfg(target_os = "linux")]
pub(crate) fn hands(args: &HandsArgs) -> Result<Exit, Failure> {
    undertext::hands::attend(&args.stage, &[NAME])
        .map_err(|error| Failure::new(Exit::Unfinished, error))?;
    Ok(Exit::Done)
}

/// Elsewhere there is no such process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn hands(args: &HandsArgs) -> Result<Exit, Failure> {
    let text = format!(
        "there is no sandbox for this system, and no stage {}",
        args.stage
    );
    Err(Failure::new(Exit::Sandbox, anyhow::Error::msg(text)))
}
