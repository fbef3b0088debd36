//! Ways in which version control sends things elsewhere, each of them tried by itself.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use super::{Area, By, bash};

/// What is to be seen outside of an attempt that got through.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// Somebody called at the door.
    Call,
    /// This is there.
    File(&'static str),
}

/// Names, commands and what each does that is not kept from it.
const ATTEMPTS: [(&str, &str, Effect); 10] = [
    (
        "a push to a path",
        "git push -q {out}/bare.git HEAD:refs/heads/path",
        Effect::File("bare.git/refs/heads/path"),
    ),
    (
        "a push over file://",
        "git push -q file://{out}/bare.git HEAD:refs/heads/file",
        Effect::File("bare.git/refs/heads/file"),
    ),
    (
        "a push over ssh",
        "GIT_SSH_COMMAND='ssh -o BatchMode=yes -o ConnectTimeout=5' \
         git push -q ssh://git@127.0.0.1:{port}/x HEAD",
        Effect::Call,
    ),
    (
        "a push over http",
        "git push -q http://127.0.0.1:{port}/x HEAD",
        Effect::Call,
    ),
    (
        "a push over git://",
        "git push -q git://127.0.0.1:{port}/x HEAD",
        Effect::Call,
    ),
    (
        "a push over http past a proxy",
        "git -c http.proxy= push -q http://127.0.0.1:{port}/x HEAD",
        Effect::Call,
    ),
    (
        "a command as transport",
        "git -c protocol.ext.allow=always ls-remote 'ext::touch {out}/ext'",
        Effect::File("ext"),
    ),
    (
        "a helper for a transport of one's own",
        "printf '#!/bin/sh\\ntouch {out}/helper\\n' > git-remote-own; chmod +x git-remote-own; \
         PATH=$PWD:$PATH git ls-remote own::x",
        Effect::File("helper"),
    ),
    (
        "a command in place of ssh",
        "git -c core.sshCommand='touch {out}/ssh;' push -q git@host:x HEAD",
        Effect::File("ssh"),
    ),
    (
        "a bundle",
        "git bundle create -q {out}/all.bundle HEAD",
        Effect::File("all.bundle"),
    ),
];

#[expect(clippy::disallowed_methods, reason = "it is not a tool's")]
fn git(area: &Area, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(arguments)
        .current_dir(area.path("w"))
        .env("HOME", area.path("home"))
        .stdout(Stdio::null());
    assert!(git.status().unwrap().success(), "{arguments:?}");
}

/// Which attempts had an effect, by name, and what each printed.
async fn through(by: By) -> Option<Vec<(&'static str, bool, String)>> {
    let area = Area::new();
    git(&area, &["init", "-q"]);
    git(&area, &["add", "a.txt"]);
    git(&area, &["commit", "-qm", "one"]);
    git(&area, &["init", "-q", "--bare", "../outside/bare.git"]);
    let (hands, _) = area.hands(by).await?;
    let mut seen = Vec::new();
    for (name, command, effect) in ATTEMPTS {
        let door = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = door.local_addr().unwrap().port();
        let (tell, told) = mpsc::channel();
        let porter = std::thread::spawn(move || {
            // Whoever calls is let go of, and need not wait for an answer.
            while let Ok((mut caller, _)) = door.accept() {
                let said = tell.send(());
                if said.is_err() || caller.write_all(b"\n").is_err() {
                    return;
                }
            }
        });
        let command = command.replace("{port}", &port.to_string());
        let command = command.replace("{out}", area.path("outside").to_str().unwrap());
        let outcome = bash(&hands, &command).await;
        let happened = match effect {
            Effect::Call => told.try_recv().is_ok(),
            Effect::File(file) => area.path("outside").join(file).exists(),
        };
        drop(told);
        // The last caller, whom nobody is told of.
        TcpStream::connect(("127.0.0.1", port)).unwrap();
        porter.join().unwrap();
        let line = outcome
            .content
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        seen.push((name, happened, line));
    }
    hands.close().await;
    Some(seen)
}

/// Each gets through without a sandbox, as far as this machine has what it needs, and none within one.
#[tokio::test]
async fn nothing_is_sent_elsewhere_by_version_control() {
    let open = through(By::Nothing).await.unwrap();
    for (name, happened, line) in &open {
        println!("without a sandbox, {name}: {happened} ({line})");
    }
    let working = open.iter().filter(|(_, happened, _)| *happened).count();
    assert!(working + 1 >= ATTEMPTS.len(), "{open:#?}");
    for by in [By::Namespaces, By::Landlock] {
        for (name, happened, line) in through(by).await.unwrap_or_default() {
            println!("{by:?}, {name}: {happened} ({line})");
            assert!(!happened, "{by:?} let through: {name}");
        }
    }
}
