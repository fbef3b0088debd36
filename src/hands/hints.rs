//! What a model is told, in a line, of a failure that the sandbox has a part in.
//!
//! Programs say the same whether a network is off or broken; whoever reads that must not look for
//! the fault elsewhere, and must know what the user can do.

use std::ffi::OsStr;
use std::path::Path;

use crate::exchange::Status;
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

/// How they say that they cannot give a file a mode. In the workspace the sandbox refuses but two of its
/// bits.
const MODES: [&str; 10] = [
    "changing permissions of",
    "change permissions of",
    "preserving permissions for",
    "setting permissions for",
    "set permissions of",
    "set permissions on",
    "cannot change mode to",
    // Busybox, Go and Node name the call.
    "chmod",
    "fchmod",
    // Git gives what it has made the mode of a shared repository.
    "unable to create temporary file",
];

/// How git says so, which does not say why.
const SHARED: [&str; 3] = [
    "writable by group",
    "unable to set permission to",
    "cannot fix permission bits on",
];

/// How it says so of a directory that it has just made, with an error that was another's.
const SHARED_DIRECTORY: &str = "unable to create directory for";

/// Where a trace of Python's says which call it was, or cannot.
const TRACED: [&str; 7] = [
    "file \"<string>\"",
    "file \"<stdin>\"",
    "chmod(",
    "in copymode",
    "in copystat",
    "in copytree",
    "shutil.error: ",
];

/// How they say that something is not for them to do.
const FORBIDDEN: &str = "operation not permitted";

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

/// What is said of modes.
const MARKED: &str = "[no file can be made setuid or setgid here (modes such as 4755 or g+s; sandbox), \
                      since others could run it with the user's rights; other modes can be set]";

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
        if last.iter().any(|line| is_mode(&line.to_lowercase())) {
            lines.push(MARKED.to_owned());
        }
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
        let is_trace = |line: &str| says(line, &["permissionerror: ", "shutil.error: "]);
        let is_traced = says(&text, &TRACED)
            && text
                .lines()
                .any(|line| is_trace(line) && line.contains(&format!("{FORBIDDEN}: '")));
        if text.lines().any(is_mode) || is_traced {
            lines.push(MARKED.to_owned());
        }
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

/// Whether a line, in small letters, says that a mode cannot be given.
fn is_mode(line: &str) -> bool {
    says(line, &MODES) && line.contains(FORBIDDEN)
        || says(line, &SHARED)
        || line.contains(SHARED_DIRECTORY) && says(line, &MISSING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Facts;

    #[test]
    #[expect(clippy::too_many_lines, reason = "it is a table")]
    fn a_failure_that_the_sandbox_explains_says_so() {
        let hints = Hints {
            home: Some("/home/u".into()),
            ..Hints::default()
        };
        let told = |content: &str, exit: i32| {
            let status = if exit == 0 { Status::Ok } else { Status::Error };
            let mut outcome = Outcome::new(status, content).with_facts(Facts {
                exit: Some(exit),
                ..Facts::default()
            });
            hints.add("Bash", &mut outcome);
            let added = outcome.content.strip_prefix(content).unwrap().trim();
            added.split(' ').take(3).collect::<Vec<_>>().join(" ")
        };
        for (content, exit, expected) in [
            (
                "curl: (6) Could not resolve host: example.com",
                6,
                "[could not reach",
            ),
            (
                "warning: spurious network error: Couldn't connect to server",
                101,
                "[the network is",
            ),
            ("npm error code EAI_AGAIN", 1, "[the network is"),
            ("  code: 'ENOTFOUND',", 1, "[the network is"),
            (
                "FileNotFoundError: [Errno 2] No such file or directory: 'x'",
                1,
                "",
            ),
            ("ModuleNotFoundError: No module named 'yaml'", 1, ""),
            ("cannot find ThemeFile", 1, ""),
            (
                "dial tcp: lookup proxy.golang.org: no such host",
                1,
                "[could not reach",
            ),
            (
                "curl: (56) CONNECT tunnel failed, response 403",
                56,
                "[the network is",
            ),
            (
                "fatal: CONNECT tunnel failed, response 502",
                128,
                "[there is no",
            ),
            ("curl: (7) Failed to connect to localhost port 9", 7, ""),
            (
                "error: could not write config file .git/config: Device or resource busy",
                4,
                "[only the workspace",
            ),
            ("rm: cannot remove 'mnt': Device or resource busy", 1, ""),
            ("bash: line 1: ./noexec.sh: Permission denied", 126, ""),
            ("git@h: Permission denied (publickey).", 128, ""),
            (
                "cp: cannot create '../x': Permission denied",
                1,
                "[only the workspace",
            ),
            (
                "touch: cannot touch '/usr/x': Read-only file system",
                1,
                "[only the workspace",
            ),
            (
                "cat: /home/u/.ssh/id: No such file or directory",
                1,
                "[little of the",
            ),
            (
                "bash: line 1: /srv/site/x: No such file or directory",
                1,
                "[outside the workspace",
            ),
            ("cat: src/x: No such file or directory", 1, ""),
            ("cat: /tmp/x: No such file or directory", 1, ""),
            (
                "ERROR: No matching distribution found for x",
                1,
                "[could not reach",
            ),
            (
                "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
                1,
                "[services of this",
            ),
            (
                "bash: line 1: 7 Bad system call  ./old",
                159,
                "[a system call",
            ),
            ("head: write error: File too large", 1, "[no file may"),
            (
                "bash: line 1: a.txt: Too many open files",
                1,
                "[no process may",
            ),
            ("1 test failed", 1, ""),
            ("grep for: Could not resolve host", 0, ""),
            (
                "curl: (6) Could not resolve host: example.com",
                0,
                "[could not reach",
            ),
            (
                "npm error request failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
                0,
                "[could not reach",
            ),
            (
                "touch: cannot touch '/usr/x': Read-only file system",
                0,
                "[only the workspace",
            ),
            ("cat: src/x: No such file or directory", 0, ""),
            ("an errno: Read-only file system", 0, ""),
            (
                "chmod: changing permissions of 'x': Operation not permitted",
                1,
                "[no file can",
            ),
            (
                "tar: x: Cannot change mode to rwsr-xr-x: Operation not permitted",
                2,
                "[no file can",
            ),
            (
                "chmod: changing permissions of 'x': Operation not permitted\na.txt",
                0,
                "[no file can",
            ),
            ("chmod: x: Operation not permitted", 1, "[no file can"),
            ("open: chmod x: operation not permitted", 1, "[no file can"),
            (
                "Error: EPERM: operation not permitted, chmod 'x'",
                1,
                "[no file can",
            ),
            (
                "rsync: [generator] failed to set permissions on \"x\": Operation not permitted (1)",
                23,
                "[no file can",
            ),
            (
                "fatal: Could not make /w/.git/refs writable by group",
                128,
                "[no file can",
            ),
            (
                "fatal: cannot update the ref 'HEAD': unable to create directory for '.git/logs/HEAD': No \
                 such file or directory",
                128,
                "[no file can",
            ),
            (
                "    os.chmod(\"x\", 0o4755)\nPermissionError: [Errno 1] Operation not permitted: 'x'",
                1,
                "[no file can",
            ),
            (
                "    os.setns(4)\nPermissionError: [Errno 1] Operation not permitted",
                1,
                "",
            ),
            (
                "  File \"<stdin>\", line 1, in <module>\nPermissionError: [Errno 1] Operation not permitted",
                1,
                "",
            ),
            (
                "  File \"<stdin>\", line 1, in <module>\nPermissionError: [Errno 1] Operation not permitted: 'x'",
                1,
                "[no file can",
            ),
            (
                "    os.chmod(\"x\", 7)\nFileNotFoundError: [Errno 2] No such file or directory: 'x'",
                1,
                "",
            ),
            (
                "chown: changing ownership of 'x': Operation not permitted",
                1,
                "",
            ),
            ("su: System error", 1, "[no command becomes"),
            (
                "bash: line 1: sudo: command not found",
                127,
                "[no command becomes",
            ),
            ("bash: line 1: ping: command not found", 127, "[no host can"),
            (
                "socket.gaierror: [Errno -3] Temporary failure in name resolution",
                1,
                "[the network is",
            ),
        ] {
            assert_eq!(told(content, exit), expected, "{content}");
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
