//! What `run` is told on the command line.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use clap::Args;
use undertext::config::{Given, Lasting, NetworkChoice, SandboxMode, Sections, Usd, host};
use undertext::setup::Network;

use crate::cli::SettingArgs;
use crate::cli::logs::LogArgs;
use crate::cli::model_args::{self, ModelArgs};
use crate::cli::outputs::OutputArgs;
use crate::cli::task::TaskArgs;
use crate::cli::toolbox::ToolArgs;

/// `run`
#[derive(Debug, Default, Args)]
#[command(after_help = RUN_HELP)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are switches of a command line, each its own"
)]
pub(crate) struct RunArgs {
    /// What to do, in your words; `-` reads it from standard input
    #[arg(value_name = "TASK")]
    pub(crate) task: Option<String>,
    /// What is handed in.
    #[command(flatten, next_help_heading = "Task")]
    pub(crate) files: TaskArgs,
    // Given as `help`: a code span in it would show its marks.
    #[arg(long, value_name = "COMMAND", value_parser = check)]
    #[arg(
        help = "The work is done only if this command exits with 0, such as \"cargo test\"; \
                  if not, the model reads what it printed and goes on, up to 5 times"
    )]
    #[arg(help_heading = "Task")]
    pub(crate) check: Option<String>,
    /// Take up this run again; a task is what you say next
    #[arg(long, value_name = "RUN", conflicts_with = "continue_last")]
    #[arg(help_heading = "Task")]
    pub(crate) resume: Option<String>,
    /// Take up the newest run of this workspace again
    #[arg(long = "continue")]
    #[arg(help_heading = "Task")]
    pub(crate) continue_last: bool,
    #[arg(long, value_name = "RULE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "")]
    #[arg(
        help = "Compact a run that is taken up first, as this rule of your settings says \
                  [default: compaction.default_rule]"
    )]
    #[arg(help_heading = "Task")]
    pub(crate) compact: Option<String>,
    /// Take up a damaged transcript with what is left of it; what is not is noted
    #[arg(long)]
    #[arg(help_heading = "Task")]
    pub(crate) accept_damage: bool,
    /// Call the run this, where runs are listed
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["resume", "continue_last"])]
    #[arg(value_parser = title)]
    #[arg(help_heading = "Task")]
    pub(crate) name: Option<String>,
    /// The model and its server.
    #[command(flatten, next_help_heading = "Model")]
    pub(crate) asked: ModelArgs,
    /// Where the model works [default: the current directory]
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
    /// Let tools reach these hosts (ports 80 and 443, or HOST:PORT), or the whole network (`open`) [default: none]
    #[arg(long, value_name = "HOST,…", require_equals = true, value_parser = network)]
    #[arg(help_heading = "Workspace and tools")]
    pub(crate) network: Option<NetworkChoice>,
    /// Work where another run is at work as well
    #[arg(long)]
    #[arg(help_heading = "Workspace and tools")]
    pub(crate) share_workspace: bool,
    /// End after this many requests, resumable [default: 500]
    #[arg(long, value_name = "N", value_parser = rounds)]
    #[arg(help_heading = "Limits")]
    pub(crate) max_rounds: Option<NonZeroU32>,
    /// End after this many tokens, in and out, resumable [default: no limit]
    #[arg(long, value_name = "N", value_parser = tokens)]
    #[arg(help_heading = "Limits")]
    pub(crate) max_tokens: Option<NonZeroU64>,
    /// End after this much money, in US dollars, resumable; needs prices, known or in
    /// model.prices [default: no limit]
    #[arg(long, value_name = "USD", value_parser = cost)]
    #[arg(help_heading = "Limits")]
    pub(crate) max_cost: Option<Usd>,
    /// End after this long, such as 90s, 30m or 2h, resumable [default: no limit]
    #[arg(long, value_name = "DURATION")]
    #[arg(help_heading = "Limits")]
    pub(crate) max_time: Option<Lasting>,
    /// Write one JSON object a line: first the run, then its entries, last the totals
    #[arg(long)]
    #[arg(help_heading = "Output")]
    pub(crate) json: bool,
    /// What is left for whoever began the run.
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) outputs: OutputArgs,
    /// How much is said.
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) logs: LogArgs,
    /// Where settings come from.
    #[command(flatten, next_help_heading = "Settings")]
    pub(crate) settings: SettingArgs,
}

const RUN_HELP: &str = "\
Examples:
  undertext run -m gpt-5 \"make the failing test pass\"
  undertext run -m gpt-5 --check \"npm test\" --max-time 30m \"make the tests pass\"
  undertext run --continue \"now update the changelog\"
  undertext run --base-url http://127.0.0.1:11434/v1 -m qwen3 \"explain src/main.rs\"

Exit codes: 0 the model ended its work, 1 it ended without finishing, 2 wrong usage or settings,
3 a limit, 4 the provider failed for good, 5 no sandbox, 6 the transcript is damaged or in use,
130 interrupted (Ctrl-C), 143 told to end (SIGTERM, SIGHUP). `undertext run --resume RUN` goes on
where a run ended. Ctrl-C ends a run orderly, a second one at once; both can be taken up again.";

pub(super) fn title(text: &str) -> Result<String, &'static str> {
    match text.trim() {
        "" => Err("a name has at least one letter"),
        name => Ok(name.to_owned()),
    }
}

fn rounds(text: &str) -> Result<NonZeroU32, &'static str> {
    text.parse()
        .map_err(|_| "--max-rounds takes a number from 1")
}

pub(super) fn tokens(text: &str) -> Result<NonZeroU64, &'static str> {
    text.parse()
        .map_err(|_| "--max-tokens takes a number from 1")
}

pub(super) fn cost(text: &str) -> Result<Usd, &'static str> {
    let dollars = text.parse().ok().filter(|dollars: &f64| *dollars > 0.0);
    dollars
        .and_then(|dollars| Usd::from_dollars(dollars).ok())
        .ok_or("--max-cost takes a sum in US dollars above 0, such as 2.50")
}

pub(super) fn network(text: &str) -> Result<NetworkChoice, String> {
    let network = match text.trim() {
        "" => return Err("name hosts, or say `open` or `none`".to_owned()),
        "none" => Network::None,
        "open" => Network::Open,
        hosts => {
            let hosts = hosts.split(',').map(|name| host(name.trim()));
            let hosts = hosts.collect::<Result<_, _>>();
            Network::Hosts(hosts.map_err(|error| error.to_string())?)
        }
    };
    Ok(NetworkChoice(network))
}

pub(super) fn check(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        return Err("--check takes a command");
    }
    Ok(text.to_owned())
}

impl RunArgs {
    /// What the flags say of settings.
    pub(crate) fn flags(&self) -> Sections {
        let mut flags = Sections::default();
        self.asked.say(&mut flags);
        if let Some(file) = &self.instructions {
            flags.instructions.file = Given::value(Some(file.clone()));
        }
        flags.instructions.append = model_args::text(self.append_instructions.as_ref());
        if let Some(rounds) = self.max_rounds {
            flags.limits.rounds = Given::value(Some(rounds));
        }
        if let Some(tokens) = self.max_tokens {
            flags.limits.tokens = Given::value(Some(tokens));
        }
        if let Some(cost) = self.max_cost {
            flags.limits.cost = Given::value(Some(cost));
        }
        if let Some(time) = self.max_time {
            flags.limits.wall_time = Given::value(Some(time));
        }
        if let Some(mode) = self.sandbox {
            flags.sandbox.mode = Given::value(mode);
        }
        if let Some(network) = &self.network {
            flags.sandbox.network = Given::value(network.clone());
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_said_exactly() {
        let read = |text: &str| match network(text) {
            Ok(NetworkChoice(Network::None)) => "none".to_owned(),
            Ok(NetworkChoice(Network::Open)) => "open".to_owned(),
            Ok(NetworkChoice(Network::Hosts(hosts))) => format!("{hosts:?}"),
            Err(error) => error,
        };
        for (text, expected) in [
            ("none", "none"),
            ("open", "open"),
            ("crates.io", r#"["crates.io"]"#),
            (
                " crates.io., *.crates.io",
                r#"["crates.io", "*.crates.io"]"#,
            ),
            ("127.0.0.1,::1,[::2]", r#"["127.0.0.1", "::1", "::2"]"#),
            ("", "name hosts, or say `open` or `none`"),
            (
                "git.example.org.:22, [::1]:8080,10.0.0.5:1",
                r#"["git.example.org:22", "[::1]:8080", "10.0.0.5:1"]"#,
            ),
            (
                "crates.io:https",
                "`crates.io:https` names no port; a port is a number from 1 to 65535",
            ),
            (
                "crates.io:0",
                "`crates.io:0` names no port; a port is a number from 1 to 65535",
            ),
            (
                ":443",
                "`:443` is no name of a host, such as example.org or *.example.org:443",
            ),
            (
                "https://crates.io/",
                "`https://crates.io/` is an address; name its host alone",
            ),
            ("a,none", "`none` is said alone, not beside hosts"),
            (
                "a,,b",
                "`` is no name of a host, such as example.org or *.example.org:443",
            ),
            (
                "*",
                "`*` is no name of a host, such as example.org or *.example.org:443",
            ),
            (
                "what now",
                "`what now` is no name of a host, such as example.org or *.example.org:443",
            ),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
