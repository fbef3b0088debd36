//! The program as the kernel sees it: what follows from an entry finds it synced, with all that it
//! names.
//!
//! `strace` tells; `tests/crash/synced.sh` runs this where it can be had.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::cli::{Place, ended};
use crate::provider::{Answer, Provider};

/// What is looked at: what makes files and names and syncs them, and what follows from an entry.
const TRACED: &str = "trace=/^(open|mkdir|rename|link|write|send|fsync|fdatasync|execve)";

/// What a loss of power would take, and how often something followed from what it would not.
#[derive(Debug, Default)]
struct Unsynced {
    /// Files whose bytes it would.
    bytes: BTreeSet<String>,
    /// Directories whose names it would.
    names: BTreeSet<String>,
    requests: u32,
    effects: u32,
    named: u32,
}

impl Unsynced {
    /// Takes in a call that begins.
    fn begun(&mut self, call: &str, arguments: &str, dir: &str) {
        if arguments.contains("\"POST /v1") {
            self.nothing(&format!("at request {}", self.requests));
            self.requests += 1;
        } else if call == "execve" && arguments.contains("; seq 30000") {
            self.nothing(&format!("at effect {}", self.effects));
            self.effects += 1;
        } else if call.contains("write")
            && let Some(path) = opened(arguments).filter(|path| path.starts_with(dir))
        {
            if arguments.contains(r#"\"blob\":\"sha256:"#) {
                self.nothing(&format!("at name {}", self.named));
                self.named += 1;
            }
            self.bytes.insert(path);
        }
    }

    /// Takes in a call that ended well.
    fn ended(&mut self, call: &str, arguments: &str, dir: &str) {
        // What stands above the directory of transcripts leads to it.
        let is_ours = |path: &&str| path.starts_with(dir) || dir.starts_with(*path);
        let mut paths = quoted(arguments).filter(is_ours);
        match call {
            "fdatasync" | "fsync" => {
                if let Some(path) = opened(arguments) {
                    self.bytes.remove(&path);
                    self.names.remove(&path);
                }
            }
            "openat" | "open" if !arguments.contains("O_CREAT") => {}
            "openat" | "open" | "mkdir" | "mkdirat" => self.names.extend(paths.map(parent)),
            _ if call.starts_with("rename") || call.starts_with("link") => {
                let from = paths.next();
                let unsynced = from.filter(|from| self.bytes.contains(*from));
                assert_eq!(unsynced, None, "it has its name before it is synced");
                self.names.extend(paths.map(parent));
            }
            _ => {}
        }
    }

    fn nothing(&self, at: &str) {
        assert_eq!(self.bytes, BTreeSet::new(), "{at}");
        assert_eq!(self.names, BTreeSet::new(), "{at}");
    }
}

fn parent(path: &str) -> String {
    let parent = Path::new(path).parent().unwrap();
    parent.to_str().unwrap().to_owned()
}

/// The path of the open file that a call is given first.
fn opened(arguments: &str) -> Option<String> {
    let (path, _) = arguments.split_once('<')?.1.split_once('>')?;
    Some(path.to_owned())
}

/// The strings that a call is given.
fn quoted(arguments: &str) -> impl Iterator<Item = &str> {
    arguments.split('"').skip(1).step_by(2)
}

/// Reads what was traced, call by call as they began and ended, of this directory of transcripts.
fn read(log: &str, dir: &str) -> Unsynced {
    let line = Regex::new(r"^(\d+) +(?:<\.\.\. \w+ resumed>|(\w+)\()(.*)$").unwrap();
    let mut unsynced = Unsynced::default();
    let mut begun: BTreeMap<&str, (&str, String)> = BTreeMap::new();
    for line in log.lines().filter_map(|text| line.captures(text)) {
        let (thread, rest) = (line.get(1).unwrap().as_str(), line[3].to_owned());
        let (call, arguments) = match line.get(2) {
            Some(call) => {
                unsynced.begun(call.as_str(), &rest, dir);
                (call.as_str(), rest)
            }
            None => match begun.remove(thread) {
                Some((call, arguments)) => (call, arguments + &rest),
                None => continue,
            },
        };
        if arguments.ends_with("<unfinished ...>") {
            begun.insert(thread, (call, arguments));
        } else if !arguments.contains(" = -1 ") {
            unsynced.ended(call, &arguments, dir);
        }
    }
    unsynced
}

/// The same program, traced into a file.
#[expect(clippy::disallowed_methods, reason = "what is tested is the program")]
fn traced(program: &Command, log: &Path) -> Command {
    let mut traced = Command::new("strace");
    traced.args(["-f", "-y", "-s", "100000", "-e", TRACED, "-o"]);
    traced.arg(log).arg(program.get_program());
    let set = program
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    traced.args(program.get_args()).env_clear().envs(set);
    traced.current_dir(program.get_current_dir().unwrap());
    traced
}

#[test]
#[ignore = "needs strace: tests/crash/synced.sh"]
fn nothing_follows_from_what_is_not_synced() {
    let call = |command| Answer::Calls(vec![("Bash", command)]);
    let provider = Provider::new([
        call(r#"{"command":"true; seq 30000"}"#),
        call(r#"{"command":"echo; seq 30000"}"#),
        Answer::Text("Done.".to_owned()),
    ]);
    let place = Place::new();
    let log = place.path("log");
    let line = [
        "run",
        "-q",
        "-m",
        "m",
        "--base-url",
        &provider.url,
        "Count.",
    ];
    let ran = ended(traced(&place.command(&line), &log).spawn().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");

    let transcript = place.transcripts().remove(0);
    let dir = parent(transcript.to_str().unwrap());
    let unsynced = read(&fs::read_to_string(log).unwrap(), &dir);
    unsynced.nothing("at the end");
    assert_eq!((unsynced.requests, unsynced.named), (3, 2));
    // A shell may be begun by another.
    assert!(unsynced.effects >= 2);
}
