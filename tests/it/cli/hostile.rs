//! A workspace that somebody else has made, to be looked at and worked in: it gives away nothing that is
//! not its own, and nothing of it runs by itself.

use std::fmt::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use super::*;

/// Secrets at home, and a repository that reaches for them in every way that runs or is read by itself.
fn hostile() -> Place {
    let place = Place::new();
    let put = |name: &str, text: &str| {
        let path = place.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let skill = |name: &str| format!("---\nname: {name}\ndescription: Leaks.\n---\nSECRET\n");
    put("home/.ssh/id", "SECRET\n");
    put("home/.ssh/SKILL.md", &skill("all"));
    let marker = place.path("home/w/ran");
    let run = place.path("home/w/run.sh");
    let (marker, run) = (marker.display(), run.display());
    put(
        "home/w/run.sh",
        &format!("#!/bin/sh\necho ran >> {marker}\ncat \"$1\"\n"),
    );
    put("home/w/.git/HEAD", "ref: refs/heads/main\n");
    put("home/w/.git/objects/x", "");
    put("home/w/.git/refs/x", "");
    put(
        "home/w/.git/config",
        &format!(
            "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {run}\n\tpager = {run}\n\thooksPath = hooks\n\
             [diff]\n\texternal = {run}\n[diff \"evil\"]\n\ttextconv = {run}\n\
             [filter \"evil\"]\n\tclean = {run}\n\tsmudge = {run}\n[alias]\n\tstatus = !{run}\n"
        ),
    );
    put("home/w/.gitattributes", "* diff=evil filter=evil\n");
    for hook in ["post-index-change", "pre-commit", "post-checkout"] {
        put(
            &format!("home/w/.git/hooks/{hook}"),
            &format!("#!/bin/sh\n{run}\n"),
        );
    }
    put("home/w/.envrc", &format!("{run}\n"));
    put("home/w/keys/id", "mine\n");
    put("home/w/.agents/skills/file/README", "");
    let links = [
        ("../.ssh/id", "home/w/AGENTS.md"),
        ("../../../.ssh", "home/w/.agents/skills/folder"),
        (
            "../../../../.ssh/SKILL.md",
            "home/w/.agents/skills/file/SKILL.md",
        ),
        ("../.ssh/id", "home/w/notes.txt"),
    ];
    for (to, from) in links {
        symlink(to, place.path(from)).unwrap();
    }
    place
}

/// Whether git itself would run what the repository names: so the next test proves something.
#[expect(clippy::disallowed_methods, reason = "it is not a tool's")]
fn is_run_by_git(place: &Place) -> bool {
    let mut git = Command::new("git");
    git.args(["add", "run.sh"])
        .current_dir(place.path("home/w"));
    git.env("HOME", place.path("home")).output().unwrap();
    place.path("home/w/ran").exists()
}

#[test]
fn nothing_of_a_hostile_workspace_runs_or_leads_out() {
    assert!(is_run_by_git(&hostile()));
    for sandbox in ["workspace", "off"] {
        let place = hostile();
        let deed = r#"{"command":"mv keys gone; ln -s ../.ssh keys; echo x > new"}"#;
        let provider = Provider::new([Answer::Calls(vec![("Bash", deed)]), says("Done.")]);
        let patch = place.path("patch");
        let line = [
            "run",
            "-m",
            "m",
            "--base-url",
            &provider.url,
            "--check",
            "true",
        ];
        let more = [
            "--sandbox",
            sandbox,
            "--diff",
            patch.to_str().unwrap(),
            "task",
        ];
        let ran = place.run(&[&line[..], &more].concat());
        assert_eq!((ran.code, ran.out.as_str()), (0, "Done.\n"), "{ran:?}");
        for _ in 0..2 {
            let body = String::from_utf8(provider.body()).unwrap();
            assert!(!body.contains("SECRET"), "{sandbox}: {body}");
        }
        let patch = fs::read_to_string(&patch).unwrap();
        assert!(!patch.contains("SECRET"), "{sandbox}: {patch}");
        assert!(patch.contains("b/new"), "{sandbox}: {patch}");
        let recorded = fs::read_to_string(&place.transcripts()[0]).unwrap();
        assert!(!recorded.contains("SECRET"), "{sandbox}: {recorded}");
        assert!(!Path::new(&place.path("home/w/ran")).exists(), "{sandbox}");
        let left_out = ran
            .err
            .lines()
            .filter(|line| line.contains("AGENTS.md") || line.contains("skill"));
        let left_out = left_out.collect::<Vec<_>>().join("\n");
        if sandbox == "off" {
            insta::assert_snapshot!(left_out, @"
            AGENTS.md is not read: it leads out of the project
            skill .agents/skills/file is left out: its SKILL.md is not read: it leads out of its folder
            skill .agents/skills/folder is left out: it leads out of the workspace
            ");
        }
    }
}

/// What a person hands in is read for them, unless a link in the workspace leads it elsewhere.
#[test]
fn a_link_is_not_handed_in_for_what_it_is_named() {
    let place = hostile();
    let line = ["run", "-m", "m", "--base-url", "http://127.0.0.1:9/v1"];
    for (more, expected) in [
        (
            &["task", "--attach", "notes.txt"][..],
            "undertext: attachment notes.txt is a link out of the workspace, to /home/.ssh/id; name that \
             file if you mean it",
        ),
        (
            &["task", "--attach", ".agents/skills/folder/id"],
            "undertext: attachment .agents/skills/folder/id is a link out of the workspace, to \
             /home/.ssh/id; name that file if you mean it",
        ),
        (
            &["--task-file", "notes.txt"],
            "undertext: the task file notes.txt is a link out of the workspace, to /home/.ssh/id; name \
             that file if you mean it",
        ),
        (
            &["task", "--instructions", "notes.txt"],
            "undertext: the instructions notes.txt is a link out of the workspace, to /home/.ssh/id; name \
             that file if you mean it",
        ),
        (
            &["task", "--output-schema", "notes.txt"],
            "undertext: --output-schema notes.txt is a link out of the workspace, to /home/.ssh/id; name \
             that file if you mean it",
        ),
        (
            &["task", "--config", "notes.txt"],
            "undertext: the settings file notes.txt is a link out of the workspace, to /home/.ssh/id; name \
             that file if you mean it",
        ),
    ] {
        let ran = place.run(&[&line[..], more].concat());
        assert_eq!(ran.code, 2, "{ran:?}");
        assert_eq!(place.plain(ran.err.trim()), expected);
    }
    // Named itself, it is what the person means.
    let provider = Provider::new([says("Done.")]);
    let ran = place.ask(&provider, &["task", "--attach", "../.ssh/id"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// A run that is taken up from elsewhere has the workspace in which it began, and each line of a batch its own.
#[test]
fn a_link_is_judged_by_the_workspace_of_its_run() {
    let place = hostile();
    let ran = place.run(&["run", "-q", "-m", "offline", "task"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let recorded = place.transcripts().pop().unwrap();
    let mut said = String::new();
    let mut tried = |line: &[&str]| {
        let child = place.command(line).current_dir(place.path("home")).spawn();
        let ran = ended(child.unwrap());
        write!(said, "{} {}", ran.code, place.plain(&ran.err)).unwrap();
    };
    let again = ["run", "-q", "--resume", recorded.to_str().unwrap()];
    for more in [
        &["--task-file", "w/notes.txt"][..],
        &["more", "--attach", "w/notes.txt"],
        &["more", "--instructions", "w/notes.txt"],
        &["more", "--output-schema", "w/notes.txt"],
        &["more", "--config", "w/notes.txt"],
    ] {
        tried(&[&again[..], more].concat());
    }
    for line in [
        r#"{"task":"x","workspace":"w","attach":["w/notes.txt"]}"#,
        r#"{"task_file":"w/notes.txt","workspace":"w"}"#,
        r#"{"task":"x","workspace":"w","schema":"w/notes.txt"}"#,
    ] {
        fs::write(place.path("home/tasks.jsonl"), line).unwrap();
        let child = place
            .command(&["batch", "-q", "-m", "offline", "tasks.jsonl"])
            .current_dir(place.path("home"))
            .spawn();
        let ran = ended(child.unwrap());
        writeln!(said, "{} {}", ran.code, place.plain(&ran.out).trim()).unwrap();
    }
    insta::assert_snapshot!(said, @r#"
    2 undertext: the task file w/notes.txt is a link out of the workspace, to /home/.ssh/id; name that file if you mean it
    2 undertext: attachment w/notes.txt is a link out of the workspace, to /home/.ssh/id; name that file if you mean it
    2 undertext: the instructions w/notes.txt is a link out of the workspace, to /home/.ssh/id; name that file if you mean it
    2 undertext: --output-schema w/notes.txt is a link out of the workspace, to /home/.ssh/id; name that file if you mean it
    2 undertext: the settings file w/notes.txt is a link out of the workspace, to /home/.ssh/id; name that file if you mean it
    1 {"line":1,"exit":2,"error":"attachment /home/w/notes.txt is a link out of the workspace, to /home/.ssh/id; name that file if you mean it"}
    1 {"line":1,"exit":2,"error":"the task file /home/w/notes.txt is a link out of the workspace, to /home/.ssh/id; name that file if you mean it"}
    1 {"line":1,"exit":2,"error":"`schema` /home/w/notes.txt is a link out of the workspace, to /home/.ssh/id; name that file if you mean it"}
    "#);
}

/// What is written for a person lies where they said, unless a link in the workspace leads elsewhere.
#[test]
fn nothing_is_written_through_a_link_that_leads_out() {
    let place = hostile();
    fs::write(place.path("home/.bashrc"), "mine\n").unwrap();
    fs::write(place.path("home/w/tasks.jsonl"), "{\"task\":\"x\"}\n").unwrap();
    for (to, from) in [
        ("../.bashrc", "answer.md"),
        // Nothing is there yet.
        ("../.profile", "run.log"),
        ("..", "out"),
    ] {
        symlink(to, place.path("home/w").join(from)).unwrap();
    }
    let ran = place.run(&["run", "-q", "-m", "offline", "task"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let recorded = place.transcripts().pop().unwrap();
    let recorded = recorded.to_str().unwrap();
    let mut said = String::new();
    let mut tried = |directory: &str, line: &[&str]| {
        let child = place
            .command(line)
            .current_dir(place.path(directory))
            .spawn();
        let ran = ended(child.unwrap());
        write!(said, "{} {}", ran.code, place.plain(&ran.err)).unwrap();
    };
    let run = ["run", "-q", "-m", "offline", "task"];
    for more in [
        ["--output-last-message", "answer.md"],
        ["--output-last-message", "run.log"],
        ["--diff", "out/patch"],
        ["--log-file", "answer.md"],
        ["--log-file", "run.log"],
    ] {
        tried("home/w", &[&run[..], &more].concat());
    }
    let again = ["run", "-q", "--resume", recorded, "more"];
    tried(
        "home",
        &[&again[..], &["--output-last-message", "w/answer.md"]].concat(),
    );
    tried("home", &[&again[..], &["--log-file", "w/run.log"]].concat());
    let batch = ["batch", "-m", "offline", "tasks.jsonl"];
    tried("home/w", &[&batch[..], &["--output", "run.log"]].concat());
    tried("home/w", &[&batch[..], &["--log-file", "run.log"]].concat());
    tried("home/w", &["export", recorded, "--out", "answer.md"]);
    tried("home", &["page", recorded, "--out", "w/out/page.html"]);
    assert_eq!(
        fs::read_to_string(place.path("home/.bashrc")).unwrap(),
        "mine\n"
    );
    for name in ["home/.profile", "home/patch", "home/page.html"] {
        assert!(!place.path(name).exists(), "{name}");
    }
    insta::assert_snapshot!(said, @"
    2 undertext: answer.md is a link out of the workspace, to /home/.bashrc; name that file if you mean it
    2 undertext: run.log is a link out of the workspace, to /home/.profile; name that file if you mean it
    2 undertext: out/patch is a link out of the workspace, to /home/patch; name that file if you mean it
    2 undertext: answer.md is a link out of the workspace, to /home/.bashrc; name that file if you mean it
    2 undertext: run.log is a link out of the workspace, to /home/.profile; name that file if you mean it
    2 undertext: w/answer.md is a link out of the workspace, to /home/.bashrc; name that file if you mean it
    2 undertext: w/run.log is a link out of the workspace, to /home/.profile; name that file if you mean it
    2 undertext: run.log is a link out of the workspace, to /home/.profile; name that file if you mean it
    2 undertext: run.log is a link out of the workspace, to /home/.profile; name that file if you mean it
    2 undertext: answer.md is a link out of the workspace, to /home/.bashrc; name that file if you mean it
    2 undertext: w/out/page.html is a link out of the workspace, to /home/page.html; name that file if you mean it
    ");
}

/// Links that nobody but the user can have laid lead where they lead, and so do those within the workspace.
#[test]
fn links_of_the_user_are_followed() {
    let place = Place::new();
    fs::create_dir(place.path("home/notes")).unwrap();
    symlink("w", place.path("home/work")).unwrap();
    symlink("notes", place.path("home/said")).unwrap();
    symlink("a.txt", place.path("home/w/in.txt")).unwrap();
    let line = [
        "run",
        "-q",
        "-m",
        "offline",
        "-C",
        "../work",
        "--attach",
        "in.txt",
        "--output-last-message",
        "../said/answer.md",
        "--log-file",
        "../work/run.log",
        "task",
    ];
    let ran = place.run(&line);
    assert_eq!(ran.code, 0, "{ran:?}");
    for name in ["home/notes/answer.md", "home/w/run.log"] {
        assert!(place.path(name).is_file(), "{name}");
    }
}

/// Opening a pipe waits for its other end, which nobody holds who did not lay it.
#[test]
fn no_pipe_of_the_workspace_is_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let place = Place::new();
    let pipe = |name: &str| {
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, place.path(name), FileType::Fifo, mode, 0).unwrap();
    };
    pipe("home/w/pipe");
    pipe("home/pipe");
    symlink("pipe", place.path("home/w/link")).unwrap();
    let line = ["run", "-q", "-m", "offline"];
    let mut said = String::new();
    for more in [
        &["task", "--attach", "pipe"][..],
        &["task", "--attach", "link"],
        &["--task-file", "pipe"],
        &["task", "--log-file", "pipe"],
        &["task", "--output-last-message", "pipe"],
    ] {
        let ran = place.run(&[&line[..], more].concat());
        write!(said, "{} {}", ran.code, ran.err).unwrap();
    }
    insta::assert_snapshot!(said, @"
    2 undertext: attachment pipe is no plain file, and nothing else in the workspace is read or written; name one outside it if you mean it
    2 undertext: attachment link is no plain file, and nothing else in the workspace is read or written; name one outside it if you mean it
    2 undertext: the task file pipe is no plain file, and nothing else in the workspace is read or written; name one outside it if you mean it
    2 undertext: pipe is no plain file, and nothing else in the workspace is read or written; name one outside it if you mean it
    2 undertext: pipe is no plain file, and nothing else in the workspace is read or written; name one outside it if you mean it
    ");
    // One of the user's own is read to its end, as is what a shell hands over.
    let writer = std::thread::spawn({
        let pipe = place.path("home/pipe");
        move || fs::write(pipe, "from a pipe\n").unwrap()
    });
    let (reader, mut input) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut input, b"from a shell\n").unwrap();
    drop(input);
    let handed = ["--task-file", "/dev/fd/0", "--attach", "../pipe"];
    let mut command = place.command(&[&line[..], &handed].concat());
    let ran = ended(command.stdin(reader).spawn().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    writer.join().unwrap();
    let recorded = fs::read_to_string(&place.transcripts()[0]).unwrap();
    assert!(recorded.contains("from a pipe") && recorded.contains("from a shell"));
}
