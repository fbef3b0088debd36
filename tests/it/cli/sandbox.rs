//! What a run says of its sandbox.

use super::*;

/// A run whose sandbox cannot be enforced does not begin; one that has none on purpose says so.
#[cfg(target_os = "linux")]
#[test]
fn a_sandbox_that_cannot_be_enforced_is_refused() {
    let place = Place::new();
    let line = [
        "run",
        "-m",
        "m",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "task",
    ];
    let mut command = place.command(&line);
    command.env_remove("UNDERTEXT_SANDBOX__MODE");
    let ran = ended(command.env("TMPDIR", "/nowhere").spawn().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (5, ""));
    insta::assert_snapshot!(place.plain(&ran.err), @"undertext: the sandbox cannot be enforced: no directory can be made below /nowhere: No such file or directory (os error 2); name a directory that you may write with TMPDIR");
    assert!(place.transcripts().is_empty());
    let ran = place.run(&["run", "--sandbox", "strict", "task"]);
    assert_eq!(ran.code, 2);
    insta::assert_snapshot!(ran.err, @r"
    undertext: invalid value 'strict' for '--sandbox <workspace|read-only|off>': `strict` is no sandbox; there is workspace, read-only or off; see --help
    ");
}

/// Nobody means the whole machine or all of home, neither as the workspace nor beside it, and the home
/// that the system knows is one even if no variable names it.
#[cfg(target_os = "linux")]
#[test]
fn the_whole_machine_and_home_are_not_written() {
    let place = Place::new();
    let line = ["run", "-m", "m", "--base-url", "http://127.0.0.1:9/v1"];
    for (more, expected) in [
        (
            &["--set", "sandbox.write=[/]", "task"],
            "undertext: sandbox.write: / is the whole file system; name those directories in it that \
             tools are to write",
        ),
        (
            &["--set", "sandbox.write=['~']", "task"],
            "undertext: sandbox.write: /home holds your whole home directory; name those directories in \
             it that tools are to write",
        ),
    ] {
        let mut command = place.command(&[&line[..], more].concat());
        command.env_remove("UNDERTEXT_SANDBOX__MODE");
        let ran = ended(command.spawn().unwrap());
        assert_eq!(place.plain(ran.err.trim()), expected);
        assert_eq!(ran.code, 2);
    }
    let user = rustix::process::getuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let mut found = users.lines().map(fields);
    let Some(found) = found.find(|fields| fields.get(2) == Some(&user)) else {
        println!("skipped: this user has no home");
        return;
    };
    let home = found[5].as_str();
    if !std::path::Path::new(home).is_dir() {
        println!("skipped: {home} is not there");
        return;
    }
    let runs = place.path("runs");
    for variable in [None, Some("/nowhere")] {
        let more = ["--transcripts", runs.to_str().unwrap(), "-C", home, "task"];
        let mut command = place.command(&[&line[..], &more].concat());
        command.env_remove("HOME");
        command.envs(variable.map(|home| ("HOME", home)));
        let ran = ended(command.spawn().unwrap());
        let expected = format!(
            "undertext: workspace {home} holds your whole home directory; name a project's directory \
             with -C"
        );
        assert_eq!((ran.code, ran.err.trim()), (2, expected.as_str()));
    }
}

/// Who wants to be asked says by what, in a way that no workspace can turn into something else; and what
/// is the program's own is no workspace.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_meant_is_refused() {
    let place = Place::new();
    let line = ["run", "-m", "m", "--base-url", "http://127.0.0.1:9/v1"];
    let asks = [
        "--sandbox",
        "workspace",
        "--set",
        "sandbox.ask=on-request",
        "task",
    ];
    let relative = ["--set", "sandbox.ask_command=[./ask]"];
    let ours = place.path("home/.config/undertext/skills/x");
    fs::create_dir_all(&ours).unwrap();
    let within = [
        "--sandbox",
        "workspace",
        "-C",
        ours.to_str().unwrap(),
        "task",
    ];
    let port = ["--sandbox", "workspace", "--network=crates.io:0", "task"];
    for (more, code, expected) in [
        (
            &asks[..],
            2,
            "undertext: sandbox.ask is on-request, but sandbox.ask_command names no program to ask; name \
             one there",
        ),
        (
            &[&asks[..], &relative].concat(),
            2,
            "undertext: sandbox.ask_command: ./ask counts from nowhere; give its full path, or its name \
             alone if it is in PATH",
        ),
        (
            &within,
            5,
            "undertext: the sandbox cannot be enforced: the workspace lies in /home/.config/undertext, \
             which tools may not see: settings, transcripts or logs of undertext are there; name another \
             workspace with -C",
        ),
    ] {
        let ran = place.run(&[&line[..], more].concat());
        assert_eq!(place.plain(ran.err.trim()), expected);
        assert_eq!(ran.code, code);
    }
    let ran = place.run(&[&line[..], &port].concat());
    assert_eq!(ran.code, 2, "{ran:?}");
}
