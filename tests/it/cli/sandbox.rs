//! What a run says of its sandbox.

#[cfg(target_os = "linux")]
use std::os::unix::fs::{PermissionsExt as _, symlink};

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
    // Whatever else is wrong is told once this is mended.
    let line = [&line[..5], &["--max-cost", "1", "task"]].concat();
    let mut command = place.command(&line);
    command.env_remove("UNDERTEXT_SANDBOX__MODE");
    let other = ended(command.env("TMPDIR", "/nowhere").spawn().unwrap());
    assert_eq!((other.code, other.err), (5, ran.err));
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

/// What decides for the user is nothing that tools could replace, by whatever name it is given.
#[cfg(target_os = "linux")]
#[test]
fn whoever_is_asked_lies_where_tools_do_not_write() {
    let place = Place::new();
    let script = |name: &str, interpreter: &str| {
        let path = place.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!{interpreter}\nexit 1\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("home/w/bin/may-it", "/bin/sh");
    script("home/may-it", "/bin/sh");
    script(
        "home/of-theirs",
        &place.path("home/w/bin/may-it").display().to_string(),
    );
    symlink("../may-it", place.path("home/w/link")).unwrap();
    symlink("w/bin", place.path("home/bin")).unwrap();
    fs::write(place.path("home/w/rules"), "").unwrap();
    script("home/linked", "/bin/sh");
    fs::hard_link(place.path("home/linked"), place.path("home/w/linked")).unwrap();
    let home = place.path("home").canonicalize().unwrap();
    let home = home.display();
    let paths = format!("{home}/bin:/usr/bin:/bin");
    let mut all = String::new();
    for command in [
        format!("{home}/w/bin/may-it"),
        "~/w/link".to_owned(),
        "~/bin/may-it".to_owned(),
        "may-it".to_owned(),
        "~/of-theirs".to_owned(),
        format!("sh, {home}/w/rules"),
        format!("sh, {home}/w/later"),
        "sh, ~/w/later".to_owned(),
        format!("sh, {home}/may-it, --root, {home}/w"),
        format!("sh, {home}/may-it, --root={home}/w"),
        "~/linked".to_owned(),
        "may-not".to_owned(),
        "~/may-not".to_owned(),
    ] {
        let ask = format!("sandbox.ask_command=[{command}]");
        let line = [
            "run",
            "-m",
            "m",
            "--base-url",
            "http://127.0.0.1:9/v1",
            "--sandbox",
            "workspace",
            "--set",
            "sandbox.ask=on-request",
            "--set",
            &ask,
            "task",
        ];
        let ran = ended(place.command(&line).env("PATH", &paths).spawn().unwrap());
        all += &place.plain(&format!("{command}: {} {}", ran.code, ran.err));
    }
    insta::assert_snapshot!(all, @"
    /home/w/bin/may-it: 2 undertext: sandbox.ask_command: tools could put something else in the place of /home/w/bin/may-it, since they may write in /home/w; keep what decides for you elsewhere
    ~/w/link: 2 undertext: sandbox.ask_command: tools could put something else in the place of /home/w/link, since they may write in /home/w; keep what decides for you elsewhere
    ~/bin/may-it: 2 undertext: sandbox.ask_command: tools could put something else in the place of /home/bin/may-it, since they may write in /home/w; keep what decides for you elsewhere
    may-it: 2 undertext: sandbox.ask_command: tools could put something else in the place of /home/bin/may-it, since they may write in /home/w; PATH names that first, so give the full path of one elsewhere
    ~/of-theirs: 2 undertext: sandbox.ask_command: tools could put something else in the place of /home/w/bin/may-it, since they may write in /home/w; keep what decides for you elsewhere
    sh, /home/w/rules: 2 undertext: sandbox.ask_command: tools could put something else in the place of /home/w/rules, since they may write in /home/w; keep what decides for you elsewhere
    sh, /home/w/later: 2 undertext: sandbox.ask_command: tools could put something else in the place of /home/w/later, since they may write in /home/w; keep what decides for you elsewhere
    sh, ~/w/later: 2 undertext: sandbox.ask_command: tools could put something else in the place of /home/w/later, since they may write in /home/w; keep what decides for you elsewhere
    sh, /home/may-it, --root, /home/w: 2 undertext: sandbox.ask_command: `/home/w` names /home/w, where tools may write, and a program may load what it finds in a place that it is given; leave it out: each question says which workspace it is about
    sh, /home/may-it, --root=/home/w: 2 undertext: sandbox.ask_command: `--root=/home/w` names /home/w, where tools may write, and a program may load what it finds in a place that it is given; leave it out: each question says which workspace it is about
    ~/linked: 2 undertext: sandbox.ask_command: /home/linked is a file of several names (hard links), by another of which tools could write it; name a copy of it
    may-not: 2 undertext: sandbox.ask_command: may-not is in no directory of PATH; give its full path
    ~/may-not: 2 undertext: sandbox.ask_command: /home/may-not is no program that can be run; name one that is there
    ");
    assert!(place.transcripts().is_empty());
}

/// What keeps a run from beginning keeps `doctor` from calling it well.
#[cfg(target_os = "linux")]
#[test]
fn what_no_run_begins_with_fails_in_doctor_as_well() {
    let place = Place::new();
    let of_workspace = "sandbox.ask_command=[~/w/a.txt]";
    fs::set_permissions(
        place.path("home/w/a.txt"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let asks = "sandbox.ask=on-request";
    let mut all = String::new();
    for (more, proxy) in [
        (&["--set", asks][..], None),
        (&["--set", asks, "--set", of_workspace], None),
        (&["--set", "sandbox.write=[~/x]"], None),
        (&["--set", "sandbox.write=[../x]"], None),
        (&["--network=crates.io"], Some("socks5://127.0.0.1:9")),
    ] {
        let said = |line: &[&str]| {
            let line = [line, &["--sandbox", "workspace"], more].concat();
            let mut command = place.command(&line);
            command.envs(proxy.map(|proxy| ("HTTPS_PROXY", proxy)));
            ended(command.spawn().unwrap())
        };
        let server = ["--base-url", "http://127.0.0.1:9/v1"];
        let run = said(&[&["run", "-m", "m", "task"][..], &server].concat());
        let doctor = said(&["doctor", "-m", "offline"]);
        assert_eq!((run.code, doctor.code), (2, 2), "{run:?} {doctor:?}");
        let told = doctor
            .out
            .lines()
            .find_map(|line| line.strip_prefix("fail  sandbox   "));
        assert_eq!(
            told,
            run.err.trim().strip_prefix("undertext: "),
            "{doctor:?}"
        );
        all += &place.plain(&run.err);
    }
    insta::assert_snapshot!(all, @"
    undertext: sandbox.ask is on-request, but sandbox.ask_command names no program to ask; name one there
    undertext: sandbox.ask_command: tools could put something else in the place of /home/w/a.txt, since they may write in /home/w; keep what decides for you elsewhere
    undertext: sandbox.write: /home/x is not there; make it first, so that what is written there stays
    undertext: sandbox.write: /home/x is not there; make it first, so that what is written there stays
    undertext: HTTPS_PROXY names a proxy of the kind socks5://, and single hosts can be reached through http:// alone; change or unset it, or say --network=open
    ");
    let line = [
        "doctor",
        "-m",
        "offline",
        "--sandbox",
        "workspace",
        "--set",
        "sandbox.write=[.git]",
    ];
    let ran = place.run(&line);
    let told: Vec<&str> = ran
        .out
        .lines()
        .filter(|line| line.contains("hooks and config"))
        .collect();
    if !ran.out.contains("by namespaces") {
        println!("skipped: other mechanisms say it in other words");
        return;
    }
    insta::assert_snapshot!(told.join("\n"), @"ok    sandbox   stopped: hooks and config of repositories that are there, by read-only mounts; what runs is ended, should you replace one of them; but for .git, as you said");
}
