//! `hands`: the process in which tools run. No person types it.

use std::ffi::OsString;

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

impl HandsArgs {
    /// What a run starts this program with; `None` for whatever else was typed.
    ///
    /// Every run begins so twice while somebody waits, and reading a command line the usual way takes
    /// longer than all that such a process needs to begin.
    pub(crate) fn given(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        let (_program, command, stage) = (words.next()?, words.next()?, words.next()?);
        let stage = stage.into_string().ok()?;
        let is_one = command == NAME && !stage.starts_with('-') && words.next().is_none();
        is_one.then_some(Self { stage })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_run_starts_is_taken_without_the_parser() {
        let stage = |words: &[&str]| {
            let words = words.iter().map(OsString::from);
            HandsArgs::given(words).map(|args| args.stage)
        };
        assert_eq!(
            stage(&["undertext", "hands", "apart"]).as_deref(),
            Some("apart")
        );
        for words in [
            &["undertext"][..],
            &["undertext", "hands"],
            &["undertext", "hands", "--help"],
            &["undertext", "hands", "apart", "--unmasked"],
            &["undertext", "run", "hands"],
        ] {
            assert_eq!(stage(words), None, "{words:?}");
        }
    }
}
