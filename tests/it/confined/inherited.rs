//! What a program was started with, and tools are not to have: open files, and a terminal.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::FdFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{Area, By, bash, read};

/// Says which descriptors a shell has, without opening any.
const OPEN: &str = "for n in $(seq 0 99); do [ -e /proc/$$/fd/$n ] && printf '%s ' $n; done";

/// How a run of the program in this area ends, begun by this shell command with its arguments
/// behind it.
#[expect(clippy::disallowed_methods, reason = "the program is what is tested")]
fn run(area: &Area, shell: &str, arguments: &[&str]) -> Option<i32> {
    let status = Command::new("sh")
        .args(["-c", shell, "sh", env!("CARGO_BIN_EXE_undertext")])
        .args(["run", "-m", "offline"])
        .args(arguments)
        .current_dir(area.path("w"))
        .env_clear()
        .env("PATH", env!("PATH"))
        .env("HOME", area.path("home"))
        .env("TMPDIR", area.path("tmp"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.unwrap().code()
}

/// What the caller of the program left open is not there for tools, confined or not; the program
/// itself has it.
#[test]
fn what_a_caller_left_open_reaches_no_tool() {
    for sandbox in ["workspace", "off"] {
        let area = Area::new();
        fs::write(area.path("task"), "Say that you are ready.").unwrap();
        let check = format!("cat <&9 >got; ({OPEN}) >open; true");
        let ended = run(
            &area,
            "exec 7<../task 9<../home/.ssh/id; exec \"$@\"",
            &[
                "--sandbox",
                sandbox,
                "--check",
                &check,
                "--task-file",
                "/dev/fd/7",
            ],
        );
        assert_eq!(ended, Some(0), "{sandbox}");
        assert_eq!(read(&area.path("w/got")), "", "{sandbox}");
        assert_eq!(read(&area.path("w/open")), "0 1 2 ", "{sandbox}");
    }
}

/// A program that confines tools itself may have left anything open.
#[tokio::test]
async fn what_a_program_left_open_reaches_no_confined_process() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        let left = File::open(area.path("home/.netrc")).unwrap();
        rustix::io::fcntl_setfd(&left, FdFlags::empty()).unwrap();
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        let holders = fs::read_dir("/proc").unwrap().flatten();
        let holders = holders.filter(|process| {
            let links = fs::read_dir(process.path().join("fd"))
                .into_iter()
                .flatten();
            let mut links = links.flatten().map(|link| fs::read_link(link.path()));
            links.any(|link| link.is_ok_and(|link| link == area.path("home/.netrc")))
        });
        let numbers = holders.filter_map(|process| process.file_name().to_str()?.parse().ok());
        let holders: Vec<u32> = numbers.collect();
        assert_eq!(holders, [std::process::id()], "{by:?}");
        let number = left.as_raw_fd();
        let got = bash(&hands, &format!("cat <&{number}; {OPEN}; false")).await;
        let end = format!(": {number}: Bad file descriptor\n0 1 2 \n[exit 1]");
        assert!(got.content.ends_with(&end), "{by:?}: {got:?}");
        hands.close().await;
    }
}

/// Terminals that are open elsewhere cannot be written, where escapes would command them, nor read.
#[tokio::test]
async fn terminals_of_others_are_out_of_reach() {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    for (by, expected) in [
        (By::Nothing, "written\nread\n"),
        (By::Namespaces, ""),
        (By::Landlock, ""),
    ] {
        let area = Area::new();
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        let command = format!(
            "exec 2>/dev/null; (printf '\\033]52;c;aGk=\\a' >{name}) && echo written; \
             (: <{name}) && echo read; : </dev/null >/dev/null && head -c 1 /dev/zero >/dev/full; \
             echo hello >/dev/tty; head -c 4 /dev/urandom | wc -c"
        );
        let outcome = bash(&hands, &command).await;
        assert_eq!(outcome.content, format!("{expected}4\n"), "{by:?}");
        hands.close().await;
    }
}

/// Tools have no terminal, also where the program was started from one; so none can change its modes.
#[test]
fn tools_have_no_terminal() {
    if !Path::new("/usr/bin/script").exists() {
        println!("skipped: there is no script to have a terminal from");
        return;
    }
    for sandbox in ["workspace", "off"] {
        let area = Area::new();
        let check = "{ (: </dev/tty) && echo opened; stty -F /dev/tty -echo && echo changed; \
                     cut -d' ' -f7 /proc/$$/stat; } >got 2>/dev/null; true";
        fs::write(area.path("check"), check).unwrap();
        let inner = format!(
            "stty sane; cut -d\" \" -f7 /proc/self/stat >../terminal; stty -a >../before; {} run -m \
             offline --sandbox {sandbox} --check \"$(cat ../check)\" Ready; stty -a >../after",
            env!("CARGO_BIN_EXE_undertext")
        );
        fs::write(area.path("inner"), inner).unwrap();
        #[expect(clippy::disallowed_methods, reason = "what gives it a terminal")]
        let status = Command::new("/usr/bin/script")
            .args(["-qec", "sh ../inner", "/dev/null"])
            .current_dir(area.path("w"))
            .env_clear()
            .env("PATH", env!("PATH"))
            .env("HOME", area.path("home"))
            .env("TMPDIR", area.path("tmp"))
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(0), "{sandbox}");
        assert_ne!(read(&area.path("terminal")), "0\n", "the program has one");
        assert_eq!(read(&area.path("w/got")), "0\n", "{sandbox}");
        assert_eq!(read(&area.path("before")), read(&area.path("after")));
        assert!(!read(&area.path("before")).is_empty());
    }
}
