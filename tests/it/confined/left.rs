//! What a run leaves behind that acts later, outside the sandbox, is told to a person when it ends.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use undertext::agent::{Agent, Task};
use undertext::model::{Reply, Scripted};
use undertext::record::MemoryStorage;
use undertext::setup::Policy;
use undertext::tools::Toolbox;
use undertext::transcript::{Event, Note};

use crate::scene;

use super::{Area, By, bash, git};

const MADE: &str = "repositories were made while this ran: ";
const LAID: &str = "links were laid in a repository while this ran: ";
const BEGUN: &str = "begun while this ran and not finished: ";
const REPLACED: &str = "replaced while this ran: ";
const LOCKED: &str = "locks were left in a repository while this ran: ";
const CHANGED: &str = "changed while this ran: ";

/// A workspace that is a repository with a commit, a link of its owner's and something begun.
fn area() -> Area {
    let area = Area::new();
    let root = area.path("w");
    fs::write(root.join("sub/b.txt"), "b\n").unwrap();
    git(&root, &["init", "-q", "-b", "main"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "one"]);
    symlink(area.path("outside"), root.join(".git/mine")).unwrap();
    fs::create_dir(root.join(".git/sequencer")).unwrap();
    // Its owner has something replaced already, and works on something else.
    git(&root, &["replace", "HEAD:sub/b.txt", "HEAD:a.txt"]);
    fs::write(root.join(".git/shallow.lock"), "").unwrap();
    area
}

/// Each deed beside what is told of it, up to the reasons.
const DEEDS: [(&str, &str, &str); 25] = [
    ("true", "", ""),
    ("cp a.txt c.txt; rm -r sub; mkdir -p other/dir", "", ""),
    // What version control does itself is finished.
    (
        "echo x > z; git add z; {g} commit -qm two; git checkout -qb x; {g} stash list; git gc -q; git tag t; \
         {g} rebase -q HEAD~1",
        "",
        "",
    ),
    ("git init -q sub", MADE, "sub/.git"),
    ("echo gitdir: ../x > sub/.git", MADE, "sub/.git"),
    ("ln -s ../x sub/.git", MADE, "sub/.git"),
    (
        "git init -q a; git init -q b; git init -q --bare c",
        MADE,
        "a/.git, b/.git, c",
    ),
    ("cp -r .git/HEAD .git/refs .git/objects sub", MADE, "sub"),
    ("touch sub/HEAD sub/commondir", MADE, "sub"),
    ("mkdir sub/.hg", MADE, "sub/.hg"),
    (
        "for i in 1 2 3 4 5 6 7; do mkdir -p $i/.git; done",
        MADE,
        "1/.git, 2/.git, 3/.git, 4/.git, 5/.git and 2 more",
    ),
    (
        "ln -s {out}/rc .git/COMMIT_EDITMSG.x; mv .git/COMMIT_EDITMSG.x .git/COMMIT_EDITMSG",
        LAID,
        ".git/COMMIT_EDITMSG to {out}/rc",
    ),
    (
        "rm .git/logs/HEAD; ln -s ../../../outside/rc .git/logs/HEAD",
        LAID,
        ".git/logs/HEAD to {out}/rc",
    ),
    (
        "rm -r .git/refs/tags; ln -s {out} .git/refs/tags",
        LAID,
        ".git/refs/tags to {out}",
    ),
    (
        "rm .git/mine; ln -s {out}/dir .git/mine",
        LAID,
        ".git/mine to {out}/dir",
    ),
    (
        "mkdir .git/rebase-merge; echo exec x > .git/rebase-merge/git-rebase-todo",
        BEGUN,
        ".git/rebase-merge",
    ),
    ("echo x > .git/sequencer/opts", BEGUN, ".git/sequencer"),
    (
        "git replace HEAD:a.txt HEAD:sub/b.txt",
        REPLACED,
        ".git/refs/replace/ce013625030ba8dba906f756967f9e9ca394464a",
    ),
    (
        "git replace HEAD:a.txt HEAD:sub/b.txt; git pack-refs --all",
        REPLACED,
        ".git/refs/replace/ce013625030ba8dba906f756967f9e9ca394464a",
    ),
    (
        "echo ce013625030ba8dba906f756967f9e9ca394464b > .git/refs/replace/$(git rev-parse HEAD:sub/b.txt)",
        REPLACED,
        ".git/refs/replace/61780798228d17af2d34fce4cfbdf35556832472",
    ),
    ("echo x > .git/info/grafts", REPLACED, ".git/info/grafts"),
    (
        "git rev-parse HEAD > .git/shallow",
        REPLACED,
        ".git/shallow",
    ),
    ("touch .git/index.lock", LOCKED, ".git/index.lock"),
    (
        "mkdir -p .git/remotes; echo URL: x > .git/remotes/origin",
        CHANGED,
        ".git/remotes",
    ),
    ("echo x > .envrc", CHANGED, ".envrc"),
];

#[tokio::test]
async fn what_acts_later_is_told_once() {
    for by in [By::Namespaces, By::Landlock] {
        for (deed, kind, names) in DEEDS {
            let area = area();
            let Some((hands, _)) = area.hands(by).await else {
                break;
            };
            let out = area.path("outside");
            let out = out.to_str().unwrap();
            let deed = deed.replace("{out}", out);
            let deed = deed.replace("{g}", "git -c user.name=a -c user.email=a@b");
            let outcome = bash(&hands, &deed).await;
            let expected: Vec<String> = (!kind.is_empty())
                .then(|| format!("{kind}{};", names.replace("{out}", out)))
                .into_iter()
                .collect();
            let told = hands.left().await;
            let told: Vec<String> = told
                .iter()
                .map(|line| line.split_inclusive(';').next().unwrap().to_owned())
                .collect();
            assert_eq!(told, expected, "{by:?}: {deed}: {outcome:?}");
            assert_eq!(hands.left().await, [""; 0], "{by:?}: {deed}");
            hands.close().await;
        }
    }
}

/// What one mechanism does not keep from commands is told as well.
#[tokio::test]
async fn hooks_and_settings_that_were_changed_are_told() {
    let area = area();
    git(&area.path("w/sub"), &["init", "-q"]);
    let Some((hands, _)) = area.hands(By::Landlock).await else {
        return;
    };
    bash(
        &hands,
        "echo x >> sub/.git/config; echo x > .git/hooks/pre-push",
    )
    .await;
    let told = hands.left().await;
    hands.close().await;
    assert_eq!(told.len(), 1, "{told:?}");
    let expected = format!("{CHANGED}.git/hooks, sub/.git/config;");
    assert!(told[0].starts_with(&expected), "{told:?}");
}

/// Another process in place of the first does not forget what was there before.
#[tokio::test]
async fn what_was_left_before_walls_fell_is_told() {
    let area = area();
    let Some((hands, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    bash(&hands, "git init -q sub").await;
    let config = area.path("w/.git/config");
    let beside: PathBuf = config.with_extension("new");
    fs::copy(&config, &beside).unwrap();
    fs::rename(beside, config).unwrap();
    let told = hands.left().await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with(&format!("{MADE}sub/.git;")), "{told:?}");
    assert!(
        told[1].starts_with(&format!("{CHANGED}.git/config;")),
        "{told:?}"
    );
    hands.close().await;
}

/// It stands in the transcript before the run's end, and a run that leaves nothing says nothing.
#[tokio::test]
async fn a_run_ends_with_what_it_left() {
    let area = area();
    let Some((hands, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    let call = |command: &str| {
        let arguments = json!({ "command": command }).to_string();
        Reply::calls([("Bash", arguments.as_str())])
    };
    let model = Scripted::new([
        call("git init -q sub").into(),
        Reply::text("Done.").into(),
        call("touch c").into(),
        Reply::text("Done.").into(),
    ]);
    let setup = scene::setup(100_000, Policy::default());
    let agent = Agent::new(setup, Arc::new(model), Toolbox::builtin()).with_hands(hands);
    let storage = MemoryStorage::default();
    let mut recorder = scene::create(&storage);
    for _ in 0..2 {
        let cancel = CancellationToken::new();
        let task = Some(Task::new("Go."));
        agent.run(&mut recorder, task, &cancel).await.unwrap();
    }
    agent.close().await;
    drop(recorder);
    let entries = scene::entries(&storage);
    let told = entries.iter().filter_map(|entry| match &entry.event {
        Event::Note(Note::Warning { text }) => Some(text.as_str()),
        Event::End(_) => Some("end"),
        _ => None,
    });
    let told: Vec<&str> = told.collect();
    assert_eq!(
        told,
        [
            "repositories were made while this ran: sub/.git; version control runs what their settings \
             and hooks name as soon as it looks there, also from a directory above: look at those first",
            "end",
            "end",
        ]
    );
}
