//! The command line of Undertext: parses, dispatches, and turns a failure into one line and an
//! exit code.

#[expect(
    dead_code,
    reason = "the commands that use the rest come with the loop"
)]
mod cli;

use std::io;
use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::exit::{Exit, Failure};
use crate::cli::term::{Look, Term};
use crate::cli::{Cli, Command, Process};

fn main() -> ExitCode {
    let process = Process::this();
    let mut term = process.term();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help is an error to the parser; nothing can be said where nobody listens.
            error.print().ok();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            }
            .into();
        }
    };
    match dispatch(&cli, &process, &mut term) {
        Ok(exit) => exit.into(),
        Err(failure) if failure.is_broken_pipe() => Exit::Done.into(),
        Err(failure) => {
            term.say(&[(Look::Bad, "undertext: "), (Look::Plain, &failure.line())])
                .ok();
            failure.exit.into()
        }
    }
}

fn dispatch(cli: &Cli, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    match &cli.command {
        Command::Run(args) => {
            let start = cli::run::Start::new(args, process, &mut io::stdin())?;
            for remark in &start.remarks {
                term.say(&[(Look::Faint, remark)])?;
            }
            Ok(Exit::Done)
        }
        Command::Demo(args) => cli::demo::run(args, process, &program(), term),
        Command::List(_) | Command::Show(_) | Command::Print(_) | Command::Replay(_) => {
            Ok(Exit::Done)
        }
    }
}

/// What this program was called as, so that what it proposes can be typed where it was called.
fn program() -> String {
    let name = std::env::args().next();
    name.unwrap_or_else(|| "undertext".to_owned())
}
