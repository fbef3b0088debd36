//! `batch`: many tasks, a run for each, so many at once.
//!
//! Nothing is kept beside the transcripts: they say which line they work on and how that ended, so
//! the same command goes on where it stopped, however it stopped.

mod tasks;
mod before;
mod job;
mod outcome;
mod spent;
mod work;
mod going;

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::Args;
use undertext::config::{Lasting, NetworkChoice, SandboxMode, Usd};
use undertext::hands;

#[cfg(test)]
pub(crate) use crate::cli::batch::{outcome::Outcome, tasks::TaskLine};
use crate::cli::exit::{Exit, Failure};
use crate::cli::logs::LogArgs;
use crate::cli::model_args::ModelArgs;
use crate::cli::run::LEAVING;
use crate::cli::run_args::{check, cost, network, title, tokens};
use crate::cli::term::Term;
use crate::cli::toolbox::ToolArgs;
use crate::cli::{Process, SettingArgs, planted, process};

/// The most that may.
const MOST_JOBS: usize = 10_000;

/// `batch`
#[derive(Debug, Args)]
#[command(after_help = HELP)]
#[command(mut_arg("verbose", |arg| arg.help(VERBOSE)))]
#[command(mut_arg("quiet", |arg| arg.help(QUIET)))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are switches of a command line, each its own"
)]
pub(crate) struct BatchArgs {
    /// The tasks, one JSON object a line
    #[arg(value_name = "TASKS.jsonl")]
    pub(crate) tasks: PathBuf,
    /// Let this many runs work at once
    #[arg(short, long, value_name = "N", default_value = "4", value_parser = jobs)]
    pub(crate) jobs: NonZeroUsize,
    /// Write results behind what stands in this file, not to standard output; what was done
    /// before and is missing there is added
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write the results of what was done before again
    #[arg(long)]
    pub(crate) all: bool,
    /// Also go on with runs that ended without finishing: at a limit of their own, stuck, with a
    /// failing check
    #[arg(long)]
    pub(crate) retry: bool,
    /// Call the batch this: under another name the same tasks are begun anew
    #[arg(long, value_name = "TEXT", value_parser = title)]
    pub(crate) name: Option<String>,
    // Given as `help`: a code span in it would show its marks.
    #[arg(long, value_name = "COMMAND", value_parser = check)]
    #[arg(help = "Each task is done only if this command exits with 0, such as \"cargo test\"")]
    pub(crate) check: Option<String>,
    /// End all runs after this many tokens, in and out, resumable [default: no limit]
    #[arg(long, value_name = "N", value_parser = tokens)]
    #[arg(help_heading = "Limits of all runs together")]
    pub(crate) max_tokens: Option<NonZeroU64>,
    /// End all runs after this much money, in US dollars, resumable; needs prices, known or in
    /// model.prices [default: no limit]
    #[arg(long, value_name = "USD", value_parser = cost)]
    #[arg(help_heading = "Limits of all runs together")]
    pub(crate) max_cost: Option<Usd>,
    /// End all runs after this long, such as 90s, 30m or 2h, resumable [default: no limit]
    #[arg(long, value_name = "DURATION")]
    #[arg(help_heading = "Limits of all runs together")]
    pub(crate) max_time: Option<Lasting>,
    /// What is written is JSON in any case.
    #[arg(long, hide = true)]
    pub(crate) json: bool,
    /// The model and its server.
    #[command(flatten, next_help_heading = "Model")]
    pub(crate) asked: ModelArgs,
    /// Where a task works that names no workspace [default: the current directory]
    #[arg(short = 'C', long, value_name = "DIR")]
    #[arg(help_heading = "Workspace and tools")]
    pub(crate) workspace: Option<PathBuf>,
    /// Which tools the model may call.
    #[command(flatten, next_help_heading = "Workspace and tools")]
    pub(crate) choice: ToolArgs,
    /// Use this file's text in place of the built-in system text
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = "Workspace and tools")]
    pub(crate) instructions: Option<PathBuf>,
    /// Say this behind the system text and the project's AGENTS.md
    #[arg(long, value_name = "TEXT")]
    #[arg(help_heading = "Workspace and tools")]
    pub(crate) append_instructions: Option<String>,
    /// Let tools see this variable of yours too; may be given several times
    #[arg(long, value_name = "NAME")]
    #[arg(help_heading = "Workspace and tools")]
    pub(crate) env: Vec<String>,
    /// What tools may do: write in the workspace, only read, or all that you may (`off`)
    #[arg(long, value_name = "workspace|read-only|off")]
    #[arg(help_heading = "Workspace and tools")]
    pub(crate) sandbox: Option<SandboxMode>,
    /// Let tools reach these hosts, or the whole network (`open`) [default: none]
    #[arg(long, value_name = "HOST,…", require_equals = true, value_parser = network)]
    #[arg(help_heading = "Workspace and tools")]
    pub(crate) network: Option<NetworkChoice>,
    /// Let tasks of one workspace work at the same time; else one waits for the other
    #[arg(long)]
    #[arg(help_heading = "Workspace and tools")]
    pub(crate) share_workspace: bool,
    /// How much is said.
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) logs: LogArgs,
    /// Where settings come from.
    #[command(flatten, next_help_heading = "Settings")]
    pub(crate) settings: SettingArgs,
}

const VERBOSE: &str = "\
Tell when each run begins and ends, on standard error; -vv adds the log of the program";

const QUIET: &str = "Say nothing but results and what is wrong with lines";

const HELP: &str = "\
A line of TASKS.jsonl says at least what to do:
  {\"task\": \"make the failing test pass\", \"workspace\": \"shop\"}
  {\"id\": \"map\", \"task\": \"explain src/main.rs\", \"workspace\": \"web\"}
It may also have task_file, model, check, append_instructions; schema (a path,
or the schema itself); attach, tools and no_tools (lists); set (an object of
settings); and max_rounds, max_tokens, max_cost and max_time, the limits of its
own run. No two lines have the same id. Paths count from the directory of
TASKS.jsonl. What a line leaves out is as the flags and your settings say.

Each line has a run with a transcript of its own; `undertext list` shows it
under the line's id. Its result is one JSON object: line, id, run, transcript,
reason, end (the entry that says so), exit, text and totals, or error. Results
come in the order in which runs end. A wrong line has an error as its result,
and the others go on.

The same command goes on where it stopped: lines that are done are not done
again, and runs that were interrupted, or whose provider failed, are gone on
with. A batch is known by the path of its file and --name, a line by what it
says: others may be added before it, and one that was changed is a new task, but
what the files say that it names is not compared. A file that --output names keeps the
results that it has; where results go elsewhere, --all writes all of them again.
Limits of all runs together count from the beginning of the command, and are
seen behind an answer, so that a little more may be used; runs that they end are
`interrupted`.

Examples:
  undertext batch -m gpt-5 --output results.jsonl tasks.jsonl
  undertext batch -m gpt-5 -j 16 --max-cost 20 --output out.jsonl tasks.jsonl
  undertext batch -m qwen3 --name with-qwen3 tasks.jsonl

Exit codes: 0 all finished, 1 a line is wrong or its run ended without
finishing, 2 wrong usage or settings, 3 a limit of all runs together, 130
interrupted (Ctrl-C), 143 told to end (SIGTERM, SIGHUP). Ctrl-C ends all runs
orderly, a second one at once; all of them can be gone on with.";

fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    let jobs = text.parse().ok();
    jobs.filter(|jobs: &NonZeroUsize| jobs.get() <= MOST_JOBS)
        .ok_or_else(|| format!("--jobs takes a number from 1 to {MOST_JOBS}"))
}

/// Works on all tasks of a file.
pub(crate) fn batch(args: &BatchArgs, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    if let Some(workspace) = planted::workspace(args.workspace.as_deref(), process) {
        for file in args.output.iter().chain(&args.logs.log_file) {
            planted::check(file, &file.display().to_string(), &workspace, process)?;
        }
    }
    args.logs.begin(process, term.masks())?;
    process::want_files(args.jobs.get());
    let runtime = process::runtime()?;
    let exit = runtime.block_on(going::go(args, process, term));
    runtime.shutdown_timeout(LEAVING);
    // Whatever did not end in time.
    hands::end_all();
    exit
}
