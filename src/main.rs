//! The command line of Undertext: parses, dispatches, and turns a failure into one line and an
//! exit code.

mod cli;

use std::process::ExitCode;

use undertext::secret::Masks;

use crate::cli::exit::{Exit, Failure};
use crate::cli::hands::HandsArgs;
use crate::cli::term::{Look, Term};
use crate::cli::{Cli, Command, Process, visible};

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(visible::panicked));
    if let Some(args) = HandsArgs::given(std::env::args_os()) {
        return ended(cli::hands::hands(&args), || Process::this().term());
    }
    let process = Process::this();
    let mut term = process.term();
    let cli = match cli::help::parse(term.width()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help is an error to the parser; nothing can be said where nobody listens.
            let text = error.render().to_string();
            match text.strip_prefix("error: ") {
                Some(text) => term.say(&failed(&cli::help::refusal(text))).ok(),
                None => error.print().ok(),
            };
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            }
            .into();
        }
    };
    if cli.unmasked {
        term = term.behind(Masks::none());
    }
    let done = if let Command::Hands(args) = &cli.command {
        // It closes all that is open, so nothing may be yet.
        cli::hands::hands(args)
    } else {
        begin().and_then(|()| dispatch(&cli, &process, &mut term))
    };
    ended(done, || term)
}

/// The exit code of what is done; a failure is said here.
fn ended(done: Result<Exit, Failure>, term: impl FnOnce() -> Term) -> ExitCode {
    match done {
        Ok(exit) => exit.into(),
        Err(failure) if failure.is_broken_pipe() => Exit::Done.into(),
        Err(failure) => {
            term().say(&failed(&failure.said())).ok();
            failure.exit.into()
        }
    }
}

/// Prepares for what any command may do.
fn begin() -> Result<(), Failure> {
    // The process in which tools run closes what could not be kept from it here.
    #[cfg(target_os = "linux")]
    undertext::hands::withhold_descriptors().ok();
    cli::process::outlive_limits()
}

fn dispatch(cli: &Cli, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    match &cli.command {
        Command::Run(args) => cli::run::run(args, process, term),
        Command::Batch(args) => cli::batch::batch(args, process, term),
        Command::Demo(args) => cli::demo::run(args, process, &program(), term),
        Command::List(args) => cli::list::list(args, process, term),
        Command::Show(args) => cli::show::show(args, process, term),
        Command::Print(args) => cli::print::print(args, process, term),
        Command::Replay(args) if args.again.run => cli::rerun::rerun(args, process, term),
        Command::Replay(args) => cli::replay::replay(args, process, term),
        Command::Why(args) => cli::why::why(args, process, term),
        Command::Page(args) => cli::page::page(args, process, term),
        Command::Compact(args) => cli::compact::compact(args, process, term),
        Command::Retract(args) => cli::edits::retract(args, process, term),
        Command::Expand(args) => cli::edits::expand(args, process, term),
        Command::Pin(args) => cli::edits::pin(args, process, term),
        Command::Unpin(args) => cli::edits::unpin(args, process, term),
        Command::Fork(args) => cli::fork::fork(args, process, term),
        Command::Import(args) => cli::import::import(args, process, term),
        Command::Lab(args) => cli::lab::lab(args, process, term),
        Command::Hands(args) => cli::hands::hands(args),
        Command::Rm(args) => cli::rm::rm(args, process, term),
        Command::Export(args) => cli::export::export(args, process, term),
        Command::Config(args) => cli::config::config(args, process, term),
        Command::Doctor(args) => cli::doctor::doctor(args, process, term),
        Command::Completions(args) => cli::completions::completions(args, term),
        Command::Tools(args) => cli::tools::tools(args, process, term),
    }
}

/// How a failure is said.
fn failed(text: &str) -> [(Look, &str); 2] {
    [(Look::Bad, "undertext: "), (Look::Plain, text)]
}

/// What this program was called as, so that what it proposes can be typed where it was called.
fn program() -> String {
    let name = std::env::args().next();
    name.unwrap_or_else(|| "undertext".to_owned())
}
