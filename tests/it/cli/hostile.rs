//! A workspace that somebody else has made, to be looked at and worked in: it gives away nothing that is
//! not its own, and nothing of it runs by itself.

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
