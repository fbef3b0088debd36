//! What a model is told, in a line, of a failure that the sandbox has a part in.
//!
//! Programs say the same whether a network is off or broken; whoever reads that must not look for
//! the fault elsewhere, and must know what the user can do.

use std::ffi::OsStr;
use std::path::Path;

use crate::exchange::Status;
use crate::hands::modes;
use crate::hands::unreached::{self, says};
use crate::sandbox::Bounds;
use crate::tools::Outcome;
use crate::tools::scope::OUTSIDE;
use crate::words::grouped;

/// How programs say that a service of the machine is not there.
const SERVICES: [&str; 4] = [
    "cannot connect to the docker daemon",
    "cannot connect to podman",
    "failed to connect to bus",
    "could not open a connection to your authentication agent",
];

/// How programs say that they cannot become another user.
const OTHERS: [&str; 6] = [
    "su: system error",
    "su: command not found",
    "su: cannot set",
    "sudo: command not found",
    "sudo: effective uid is not 0",
    "\"no new privileges\" flag",
];

/// How they say that no host can be asked whether it is there.
const PINGS: [&str; 4] = [
    "ping: command not found",
    "ping: socket: operation not permitted",
    "ping: lacking privilege",
    "ping: permission denied",
];

/// How programs say that they may not write.
const WRITE: [&str; 2] = ["read-only file system", "erofs"];

/// How programs say that a file may not grow further.
const LARGE: [&str; 5] = [
    ": file too large",
    "] file too large",
    "efbig",
    "file size limit exceeded",
    "[ended by signal 25]",
];

/// How programs say that they may not open more.
const OPEN: [&str; 2] = ["too many open files", "emfile"];

/// How shells say that the filter of system calls ended a program.
const KILLED: [&str; 2] = ["bad system call", "[ended by signal 31]"];

/// How they say so of many things.
const DENIED: [&str; 2] = ["permission denied", "eacces"];

/// How they say that something keeps its place.
const HELD: &str = "device or resource busy";

/// How programs say that a file is not there or not theirs.
const READ: [&str; 2] = ["no such file or directory", "permission denied"];

/// How programs say that there is nothing.
const MISSING: [&str; 2] = ["no such file or directory", "enoent"];

/// What the sandbox allows, as far as refusals are told apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Hints {
    home: Option<String>,
    /// Directories of programs that cannot be seen.
    unseen: Vec<String>,
    bounds: Bounds,
}

impl Hints {
    /// The hints of these bounds, in which programs are found in these directories.
    pub(super) fn of(bounds: &Bounds, path: Option<&OsStr>) -> Self {
        let programs = path.map(std::env::split_paths).into_iter().flatten();
        let unseen = programs.filter(|program| !bounds.shows(program) && program.is_absolute());
        let mut unseen: Vec<String> = unseen.map(|path| path.display().to_string()).collect();
        unseen.sort();
        unseen.dedup();
        Self {
            unseen,
            bounds: bounds.clone(),
            home: bounds.home.as_ref().map(|home| home.display().to_string()),
        }
    }

    /// Adds the lines that help, if the call failed in a way that the sandbox explains.
    pub(super) fn add(&self, tool: &str, outcome: &mut Outcome) {
        if outcome.status == Status::Denied && outcome.content.contains(OUTSIDE) {
            outcome.add_line(match tool {
                // What may be read is wider than where file tools act.
                "Read" | "Grep" | "Glob" => {
                    "[what may be read elsewhere, commands read: cat, grep or find in Bash; the user \
                     allows more with sandbox.read in config.yaml (sandbox)]"
                }
                _ => {
                    "[the user lets file tools act elsewhere with sandbox.write in config.yaml (sandbox)]"
                }
            });
        }
        let lines = match outcome.status {
            Status::Error if outcome.facts.exit.is_some() => self.lines(&outcome.content),
            // File tools are held to the same limits.
            Status::Error => self.limits(&outcome.content.to_lowercase()),
            // Many try again until they are ended.
            Status::Timeout => unreached::line(&outcome.content, &self.bounds)
                .into_iter()
                .collect(),
            // The last command of a pipe ends well whatever befell the first.
            Status::Ok if outcome.facts.exit.is_some() => self.sure(&outcome.content),
            Status::Ok | Status::Denied | Status::Interrupted | Status::Cancelled => return,
        };
        for line in lines {
            outcome.add_line(&line);
        }
    }

    /// The lines that help where the last words of what seems to have ended well leave no doubt.
    fn sure(&self, content: &str) -> Vec<String> {
        const LAST: usize = 20;
        let last: Vec<&str> = content.lines().rev().take(LAST).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        let mut lines: Vec<String> = unreached::surely(&last, &self.bounds).into_iter().collect();
        let is_unwritten = |line: &&str| says(&line.to_lowercase(), &WRITE) && self.leads_out(line);
        if last.iter().any(is_unwritten) {
            lines.push(self.unwritten());
        }
        lines.extend(modes::surely(&last));
        lines
    }

    /// Whether a path is said not to be there that could not be seen anyway.
    fn names_unseen(&self, content: &str) -> bool {
        let own = ["/tmp", "/var/tmp", "/dev", "/proc"].map(Path::new);
        let missing = content
            .lines()
            .filter(|line| says(&line.to_lowercase(), &MISSING));
        let mut words =
            missing.flat_map(|line| line.split(|c: char| c.is_whitespace() || "'\"`:".contains(c)));
        words.any(|word| {
            let path = Path::new(word);
            let parts = path.components().count();
            parts > 1
                && path.is_absolute()
                && !self.bounds.shows(path)
                && !own.iter().any(|own| path.starts_with(own))
        })
    }

    /// Whether something is said not to be written that is out of bounds.
    fn names_unwritten(&self, content: &str) -> bool {
        content.lines().any(|line| {
            let text = line.to_lowercase();
            let of_repository = text.contains(".git");
            says(&text, &WRITE)
                || text.contains(HELD) && of_repository
                || says(&text, &DENIED) && (of_repository || self.leads_out(line))
        })
    }

    /// Whether a line names a path outside what may be written.
    fn leads_out(&self, line: &str) -> bool {
        let mut words = line.split(|c: char| c.is_whitespace() || "'\"`:,".contains(c));
        words.any(|word| {
            let path = Path::new(word);
            let is_out = path.is_absolute() && path.parent().is_some() && !self.bounds.writes(path);
            is_out || word.starts_with("../") || !self.bounds.roots.is_empty() && word.contains('/')
        })
    }

    /// The limits that a failure speaks of.
    fn limits(&self, text: &str) -> Vec<String> {
        let limits = &self.bounds.limits;
        let mut lines = Vec::new();
        if says(text, &LARGE) {
            lines.push(format!(
                "[no file may grow beyond {} MiB, which is the limit (sandbox); the user allows more with \
                 sandbox.limits.file_size in config.yaml]",
                grouped(limits.file_size >> 20)
            ));
        }
        if says(text, &OPEN) {
            lines.push(format!(
                "[no process may have more than {} files open, which is the limit (sandbox); the user \
                 allows more with sandbox.limits.open_files in config.yaml]",
                grouped(limits.open_files)
            ));
        }
        lines
    }

    fn lines(&self, content: &str) -> Vec<String> {
        let text = content.to_lowercase();
        let mut lines = self.limits(&text);
        lines.extend(unreached::line(content, &self.bounds));
        if says(&text, &SERVICES) {
            lines.push(
                "[services of this machine, such as containers, buses and agents, cannot be reached \
                 (sandbox); with --sandbox off commands have the user's own rights]"
                    .to_owned(),
            );
        }
        if says(&text, &OTHERS) {
            lines.push(
                "[no command becomes another user or root here (sandbox); what needs that, the user does \
                 before the run]"
                    .to_owned(),
            );
        }
        lines.extend(modes::line(content));
        if says(&text, &PINGS) {
            lines.push(
                "[no host can be pinged here (sandbox); try a connection instead, such as curl, if the \
                 user allows it with --network=HOST]"
                    .to_owned(),
            );
        }
        if says(&text, &KILLED) {
            lines.push(
                "[a system call that is not allowed ended it (sandbox): 32-bit programs, for one, do not \
                 run within one; with --sandbox off they do]"
                    .to_owned(),
            );
        }
        if says(&text, &["command not found"]) && !self.unseen.is_empty() {
            lines.push(format!(
                "[of PATH, {} cannot be seen (sandbox); the user allows it with sandbox.read in \
                 config.yaml]",
                self.unseen.join(", ")
            ));
        }
        let at_home = self.home.as_deref().is_some_and(|home| {
            let home = format!("{}/", home.to_lowercase());
            text.lines()
                .any(|line| line.contains(&home) && says(line, &READ))
        });
        if at_home {
            lines.push(
                "[little of the home directory can be read here (sandbox); the user allows more with \
                 sandbox.read in config.yaml]"
                    .to_owned(),
            );
        } else if self.names_unseen(content) {
            lines.push(
                "[outside the workspace and the system's directories nothing is there (sandbox); the user \
                 allows more with sandbox.read and sandbox.write in config.yaml]"
                    .to_owned(),
            );
        } else if self.names_unwritten(content) {
            lines.push(self.unwritten());
        }
        lines
    }

    /// The line about what may be written.
    fn unwritten(&self) -> String {
        if self.bounds.roots.is_empty() {
            "[only the workspace and $TMPDIR can be written, and in the workspace neither hooks nor \
             settings of a repository, nor a new .git (sandbox); the user allows more with \
             sandbox.write in config.yaml]"
        } else {
            "[nothing but $TMPDIR can be written (sandbox: read-only); the user allows more with \
             --sandbox workspace]"
        }
        .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Facts;

    /// How the line begins that is added to what a command said.
    fn told(status: Status, content: &str) -> String {
        let hints = Hints {
            home: Some("/home/u".into()),
            ..Hints::default()
        };
        let mut outcome = Outcome::new(status, content).with_facts(Facts {
            exit: Some(i32::from(status != Status::Ok)),
            ..Facts::default()
        });
        hints.add("Bash", &mut outcome);
        let added = outcome.content.strip_prefix(content).unwrap().trim();
        added.split(' ').take(3).collect::<Vec<_>>().join(" ")
    }

    /// What programs print, as they print it.
    #[test]
    fn a_failure_that_the_sandbox_explains_says_so() {
        let failed = [
            (
                "",
                &[
                    "FileNotFoundError: [Errno 2] No such file or directory: 'x'",
                    "ModuleNotFoundError: No module named 'yaml'",
                    "cannot find ThemeFile",
                    "curl: (7) Failed to connect to localhost port 9",
                    "rm: cannot remove 'mnt': Device or resource busy",
                    "bash: line 1: ./noexec.sh: Permission denied",
                    "git@h: Permission denied (publickey).",
                    "cat: src/x: No such file or directory",
                    "cat: /tmp/x: No such file or directory",
                    "chown: changing ownership of 'x': Operation not permitted",
                    "1 test failed",
                ][..],
            ),
            (
                "[could not reach",
                &[
                    "curl: (6) Could not resolve host: example.com",
                    "dial tcp: lookup proxy.golang.org: no such host",
                    "ERROR: No matching distribution found for x",
                ],
            ),
            (
                "[the network is",
                &[
                    "warning: spurious network error: Couldn't connect to server",
                    "npm error code EAI_AGAIN",
                    "  code: 'ENOTFOUND',",
                    "curl: (56) CONNECT tunnel failed, response 403",
                    "socket.gaierror: [Errno -3] Temporary failure in name resolution",
                ],
            ),
            (
                "[there is no",
                &["fatal: CONNECT tunnel failed, response 502"],
            ),
            (
                "[only the workspace",
                &[
                    "error: could not write config file .git/config: Device or resource busy",
                    "cp: cannot create '../x': Permission denied",
                    "touch: cannot touch '/usr/x': Read-only file system",
                ],
            ),
            (
                "[little of the",
                &["cat: /home/u/.ssh/id: No such file or directory"],
            ),
            (
                "[outside the workspace",
                &["bash: line 1: /srv/site/x: No such file or directory"],
            ),
            (
                "[services of this",
                &["Cannot connect to the Docker daemon at unix:///var/run/docker.sock."],
            ),
            (
                "[a system call",
                &["bash: line 1: 7 Bad system call  ./old"],
            ),
            ("[no file may", &["head: write error: File too large"]),
            (
                "[no process may",
                &["bash: line 1: a.txt: Too many open files"],
            ),
            (
                "[no file can",
                &["chmod: changing permissions of 'x': Operation not permitted"],
            ),
            (
                "[no command becomes",
                &["su: System error", "bash: line 1: sudo: command not found"],
            ),
            ("[no host can", &["bash: line 1: ping: command not found"]),
        ];
        for (expected, said) in failed {
            for content in said {
                assert_eq!(told(Status::Error, content), expected, "{content}");
            }
        }
    }

    #[test]
    fn what_seems_to_have_ended_well_is_told_of_what_leaves_no_doubt() {
        for (expected, content) in [
            ("", "grep for: Could not resolve host"),
            ("", "cat: src/x: No such file or directory"),
            ("", "an errno: Read-only file system"),
            (
                "[could not reach",
                "curl: (6) Could not resolve host: example.com",
            ),
            (
                "[could not reach",
                "npm error request failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
            ),
            (
                "[only the workspace",
                "touch: cannot touch '/usr/x': Read-only file system",
            ),
            (
                "[no file can",
                "chmod: changing permissions of 'x': Operation not permitted\na.txt",
            ),
        ] {
            assert_eq!(told(Status::Ok, content), expected, "{content}");
        }
    }

    /// What a call comes to is part of why it failed.
    #[test]
    fn each_ending_has_the_hints_that_fit_it() {
        let mut bounds = Bounds {
            read: vec!["/usr".into()],
            ..Bounds::default()
        };
        bounds.limits.file_size = 5 << 20;
        let path = OsStr::new("/usr/bin:/opt/b:bin:/opt/a:/opt/b");
        let hints = Hints::of(&bounds, Some(path));
        let told = |status: Status, exit: Option<i32>, content: &str| {
            let mut outcome = Outcome::new(status, content).with_facts(Facts {
                exit,
                ..Facts::default()
            });
            hints.add("Bash", &mut outcome);
            let added = outcome.content.strip_prefix(content).unwrap().trim();
            added.split(';').next().unwrap().to_owned()
        };
        for (status, exit, content, expected) in [
            (
                Status::Error,
                Some(127),
                "bash: line 1: tool: command not found",
                "[of PATH, /opt/a, /opt/b cannot be seen (sandbox)",
            ),
            (Status::Error, None, "tool: command not found", ""),
            (
                Status::Error,
                None,
                "cannot write `a.txt`: File too large (os error 27)",
                "[no file may grow beyond 5 MiB, which is the limit (sandbox)",
            ),
            (
                Status::Timeout,
                None,
                "npm error code EAI_AGAIN",
                "[the network is off (sandbox)",
            ),
            (
                Status::Timeout,
                None,
                "touch: /srv/x: Read-only file system",
                "",
            ),
            (Status::Cancelled, None, "npm error code EAI_AGAIN", ""),
            (
                Status::Error,
                Some(1),
                "cd: /: No such file or directory",
                "",
            ),
            (Status::Ok, Some(0), "Could not resolve host: example", ""),
        ] {
            assert_eq!(told(status, exit, content), expected, "{content}");
        }
    }

    /// Words that are far above the end are those of a program that went on.
    #[test]
    fn of_what_ended_well_only_the_last_lines_count() {
        let told = |lines: usize| {
            let content = format!(
                "curl: (6) Could not resolve host: example.com\n{}",
                "then\n".repeat(lines)
            );
            let mut outcome = Outcome::new(Status::Ok, &content).with_facts(Facts {
                exit: Some(0),
                ..Facts::default()
            });
            Hints::default().add("Bash", &mut outcome);
            outcome.content != content
        };
        assert_eq!((told(10), told(30)), (true, false));
    }

    /// Who is kept from reading is not told how the user allows to write.
    #[test]
    fn a_file_tool_is_told_what_helps_for_its_deed() {
        let told = |tool: &str| {
            let content = format!("`/etc/hosts`: outside the workspace `/w`; {OUTSIDE}");
            let mut outcome = Outcome::new(Status::Denied, content);
            Hints::default().add(tool, &mut outcome);
            outcome.content
        };
        insta::assert_snapshot!(told("Grep"), @"
        `/etc/hosts`: outside the workspace `/w`; file tools act only below it
        [what may be read elsewhere, commands read: cat, grep or find in Bash; the user allows more with sandbox.read in config.yaml (sandbox)]
        ");
        insta::assert_snapshot!(told("Edit"), @"
        `/etc/hosts`: outside the workspace `/w`; file tools act only below it
        [the user lets file tools act elsewhere with sandbox.write in config.yaml (sandbox)]
        ");
    }
}
