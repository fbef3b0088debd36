//! The program itself, run as a user runs it, against a server on the loopback interface.

mod runs;
mod shown;
mod explained;
mod verified;
mod damaged;
mod narrow;
mod help;
mod advice;
mod refused;
mod ends;
mod check;
mod batch;
mod answer;
mod demo;
mod compact;
mod search;
mod instructions;
mod flags;
mod lock;
mod rm;
mod sample;
mod edits;
mod indexed;
mod fork;
mod rerun;
mod export;
mod document;
mod inputs;
mod import;
mod lab;
mod config;
mod settings_page;
mod offline;
mod output;
mod jobs;
mod notices;
mod hooks;
mod tools;
mod doctor;
mod transport;
mod served;
mod surroundings;
#[cfg(target_os = "linux")]
mod unwritable;
mod terminal;
mod secrets;
mod obeyed;
mod sandbox;
mod hostile;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use regex::Regex;
use rustix::process::{Pid, Signal, kill_process};

use crate::provider::{Answer, Provider};

/// A home directory with a workspace in it.
pub(crate) struct Place(tempfile::TempDir);

/// How the program ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(place.path("home/w")).unwrap();
        fs::write(place.path("home/w/a.txt"), "hello\n").unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    #[expect(clippy::disallowed_methods, reason = "what is tested is the program")]
    pub(crate) fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_undertext"));
        command
            .args(line)
            .current_dir(self.path("home/w"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("SECRET_KEY", "sk-very-secret")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // What the sandbox does is looked at by itself.
        if matches!(
            line.first(),
            Some(&("run" | "batch" | "replay" | "compact" | "doctor"))
        ) {
            command.env("UNDERTEXT_SANDBOX__MODE", "off");
        }
        command
    }

    pub(crate) fn run(&self, line: &[&str]) -> Ran {
        ended(self.command(line).spawn().unwrap())
    }

    /// `run` with the server's address.
    fn ask(&self, provider: &Provider, line: &[&str]) -> Ran {
        self.run(&[&["run", "-m", "m", "--base-url", &provider.url], line].concat())
    }

    /// Every transcript, oldest first.
    pub(crate) fn transcripts(&self) -> Vec<PathBuf> {
        let dir = self.path("home/.local/state/undertext/transcripts");
        let mut all: Vec<PathBuf> = fs::read_dir(dir)
            .into_iter()
            .flatten()
            .map(|file| file.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .collect();
        all.sort();
        all
    }

    /// The text without what differs from one time to the next.
    fn plain(&self, text: &str) -> String {
        let text = text.replace(self.0.path().canonicalize().unwrap().to_str().unwrap(), "");
        let text = text.replace(self.0.path().to_str().unwrap(), "");
        let mut text = text;
        for (pattern, by) in [
            (r"[0-9a-f]{8}-[0-9a-f-]{27}", "UUID"),
            (r"(run|--resume) [0-9a-f]{8}\b", "$1 RUN"),
            (r"127\.0\.0\.1:\d+", "HOST"),
            (r"\d+ ms|\d+\.\d s\b", "TIME"),
            // Every command here has this variable.
            (r"(?m)^the value of SECRET_KEY is hidden from .*\n", ""),
            // What instructions and tools take.
            (r" [0-9,]+ tokens  ", " N tokens  "),
            (r"clipped to [0-9,]+ characters", "clipped to N characters"),
            (
                r"than the [0-9,]+ of the estimate",
                "than the N of the estimate",
            ),
        ] {
            text = Regex::new(pattern)
                .unwrap()
                .replace_all(&text, by)
                .into_owned();
        }
        text
    }
}

pub(crate) fn ended(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    let ran = Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    };
    let unadvised = advice::unadvised(&ran);
    assert!(unadvised.is_empty(), "what can be done? {unadvised:#?}");
    ran
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn looks() -> Answer {
    Answer::Calls(vec![
        ("Bash", r#"{"command":"echo from bash"}"#),
        ("Read", r#"{"path":"a.txt"}"#),
    ])
}

fn says(text: &str) -> Answer {
    Answer::Text(text.to_owned())
}

/// The name by which people call the run of this transcript.
fn ran_id(path: &std::path::Path) -> String {
    let stem = path.file_stem().unwrap().to_str().unwrap();
    stem[stem.len() - 8..].to_owned()
}
