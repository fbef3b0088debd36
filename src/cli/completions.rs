//! `completions`: what a shell needs to complete command lines.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::cli::exit::{Exit, Failure};
use crate::cli::term::Term;

/// `completions`
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

const COMPLETIONS_HELP: &str = "\
Examples:
  undertext completions bash > ~/.local/share/bash-completion/completions/undertext
  undertext completions zsh > ~/.zfunc/_undertext        (a directory in $fpath)
  undertext completions fish > ~/.config/fish/completions/undertext.fish";

/// Writes the completions to standard output.
pub(crate) fn completions(args: &CompletionsArgs, term: &mut Term) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "undertext", &mut script);
    term.write(&script)?;
    Ok(Exit::Done)
}
