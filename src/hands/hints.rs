//! What a model is told, in a line, of a failure that the sandbox has a part in.
//!
//! Programs say the same whether a network is off or broken; whoever reads that must not look for
//! the fault elsewhere, and must know what the user can do.

use crate::exchange::Status;
use crate::sandbox::Bounds;
use crate::tools::Outcome;

/// How programs say that there is no network.
const NETWORK: [&str; 20] = [
    "could not resolve host",
    "couldn't resolve host",
    "failed to lookup address",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "unable to resolve host",
    "network is unreachable",
    "nodename nor servname",
    "no address associated with hostname",
    "getaddrinfo",
    "eai_again",
    "enotfound",
    "enetunreach",
    "no such host",
    "couldn't connect to server",
    "failed to connect to",
    "unable to connect to",
    "failed to establish a new connection",
    "403 not a host of this sandbox",
];

/// How programs say that they may not write.
const WRITE: [&str; 4] = [
    "read-only file system",
    "erofs",
    "permission denied",
    "eacces",
];

/// How programs say that a file is not there or not theirs.
const READ: [&str; 2] = ["no such file or directory", "permission denied"];

/// What the sandbox allows, as far as refusals are told apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Hints {
    open: bool,
    hosts: Vec<String>,
    home: Option<String>,
}

impl Hints {
    /// The hints of these bounds.
    pub(super) fn of(bounds: &Bounds) -> Self {
        Self {
            open: bounds.is_open(),
            hosts: bounds.hosts().to_vec(),
            home: bounds
                .home_directory()
                .map(|home| home.display().to_string()),
        }
    }

    /// Adds the lines that help, if the call failed in a way that the sandbox explains.
    pub(super) fn add(&self, outcome: &mut Outcome) {
        if outcome.status != Status::Error || outcome.facts.exit.is_none() {
            return;
        }
        for line in self.lines(&outcome.content) {
            if !outcome.content.ends_with('\n') {
                outcome.content.push('\n');
            }
            outcome.content.push_str(&line);
        }
    }

    fn lines(&self, content: &str) -> Vec<String> {
        let text = content.to_lowercase();
        let mut lines = Vec::new();
        if !self.open && says(&text, &NETWORK) {
            lines.push(if self.hosts.is_empty() {
                "[the network is off (sandbox); the user allows it with --network=HOST or --network]"
                    .to_owned()
            } else {
                format!(
                    "[of the network only {} can be reached, through HTTPS_PROXY (sandbox); the user \
                     allows more with --network=HOST,…]",
                    self.hosts.join(", ")
                )
            });
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
        } else if says(&text, &WRITE) {
            lines.push(
                "[only the workspace and $TMPDIR can be written, and of the workspace neither \
                 .git/hooks nor .git/config (sandbox); the user allows more with sandbox.write in \
                 config.yaml]"
                    .to_owned(),
            );
        }
        lines
    }
}

/// Whether the text holds one of these.
fn says(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Facts;

    #[test]
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
            hints.add(&mut outcome);
            let added = outcome.content.strip_prefix(content).unwrap().trim();
            added.split(' ').take(3).collect::<Vec<_>>().join(" ")
        };
        for (content, exit, expected) in [
            (
                "curl: (6) Could not resolve host: example.com",
                6,
                "[the network is",
            ),
            (
                "fatal: unable to access 'https://h/': Could not resolve host: h",
                128,
                "[the network is",
            ),
            (
                "warning: spurious network error: Couldn't connect to server",
                101,
                "[the network is",
            ),
            ("npm error code EAI_AGAIN", 1, "[the network is"),
            (
                "pip: Temporary failure in name resolution",
                1,
                "[the network is",
            ),
            (
                "dial tcp: lookup proxy.golang.org: no such host",
                1,
                "[the network is",
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
            ("1 test failed", 1, ""),
            ("grep for: Could not resolve host", 0, ""),
        ] {
            assert_eq!(told(content, exit), expected, "{content}");
        }
    }
}
