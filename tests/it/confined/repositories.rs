//! Repositories in places where one does not look for them, and what makes one of something else.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use undertext::exchange::Status;
use undertext::sandbox::{Bounds, Home};
use undertext::setup::Sandbox;

use super::{Area, By, bash, git, had, read, repository, ways};

/// A workspace with such repositories, and what in them may not say `evil`.
fn area() -> (Area, Vec<String>) {
    let area = Area::new();
    for name in [
        ".git",
        "srv/team/a.git",
        ".git/modules/lib",
        ".git/modules/vendor/two",
        ".git/worktrees/o/modules/lib",
        "sub/Repo/.GIT",
    ] {
        repository(&area.path("w").join(name));
    }
    for name in ["m/.hg", "j/.jj/repo/store"] {
        fs::create_dir_all(area.path("w").join(name)).unwrap();
    }
    fs::write(area.path("w/m/.hg/requires"), "store\n").unwrap();
    let protected = [
        "srv/team/a.git/config",
        "srv/team/a.git/hooks/post-receive",
        ".git/modules/new/config",
        ".git/modules/vendor/new/config",
        ".git/worktrees/o/modules/lib/config",
        ".git/worktrees/o/modules/lib/hooks/post-checkout",
        "sub/Repo/.GIT/config",
        "m/.hg/hgrc",
        "m/.hg/requires",
        "j/.jj/repo/config.toml",
    ];
    (area, protected.map(str::to_owned).into())
}

/// None of them is written, by whatever way.
#[tokio::test]
async fn repositories_are_protected_wherever_they_are() {
    for by in [By::Nothing, By::Namespaces] {
        let (area, protected) = area();
        let root = area.path("w");
        let Some((hands, _)) = area.hands(by).await else {
            return;
        };
        for path in &protected {
            let deed = format!("mkdir -p $(dirname {path}); echo evil >> {path}");
            bash(&hands, &deed).await;
            let changed = read(&root.join(path)).contains("evil");
            assert_eq!(changed, by == By::Nothing, "{by:?}: {path}");
        }
        for deed in [
            "mv srv s; cp -r s srv; echo evil >> srv/team/a.git/config",
            "rm -rf .git/modules; mkdir -p .git/modules/new; echo evil > .git/modules/new/config",
            "mv m/.hg m/hg; mkdir m/.hg; echo evil > m/.hg/hgrc",
        ] {
            bash(&hands, deed).await;
        }
        let outcome = bash(&hands, "echo x > .git/modules/lib/index && echo fine").await;
        hands.close().await;
        if by == By::Namespaces {
            let evil = protected
                .iter()
                .find(|path| read(&root.join(path)).contains("evil"));
            assert_eq!(evil, None);
            // What a submodule is worked in with is written as ever, and nothing stays that held places.
            assert!(outcome.content.contains("fine\n"), "{outcome:?}");
            for gone in ["m/.hg/hgrc", "j/.jj/repo/config.toml", ".git/commondir"] {
                assert!(!root.join(gone).exists(), "{gone}");
            }
        }
    }
}

/// What has another name is written by that one, which is told when a run begins.
#[tokio::test]
async fn another_name_of_what_is_protected_is_told() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        let root = area.path("w");
        repository(&root.join(".git"));
        repository(&root.join("sub/.git"));
        fs::create_dir_all(root.join("sub/.git/hooks")).unwrap();
        fs::write(root.join("sub/.git/hooks/pre-push"), "true\n").unwrap();
        let transcript = root.join("sub/run.jsonl");
        fs::write(&transcript, "").unwrap();
        let start = || {
            let around = Home {
                ours: vec![transcript.clone()],
                ..Home::default()
            };
            let sandbox = Sandbox::Workspace(area.reach());
            let bounds = Bounds::of(&sandbox, std::slice::from_ref(&root), &around).unwrap();
            area.start(bounds.by(ways(by)))
        };
        let Some((hands, enforced)) = had(by, start().await) else {
            continue;
        };
        hands.close().await;
        assert_eq!(enforced.told, [""; 0], "{by:?}");
        for (name, other) in [
            (".git/config", "x"),
            (".git/hooks/pre-push", "y"),
            ("run.jsonl", "z"),
        ] {
            fs::hard_link(root.join("sub").join(name), root.join(other)).unwrap();
        }
        let (hands, enforced) = start().await.unwrap();
        hands.close().await;
        let expected = format!(
            "{}/sub/.git/config and 2 more: protected by this name, but not by another that it has (a \
             hard link); put a copy in its place to end that",
            root.display()
        );
        assert_eq!(enforced.told, [expected], "{by:?}");
    }
}

/// A submodule that is not fetched yet is not fetched into something that a tool has laid.
#[tokio::test]
async fn a_repository_without_submodules_gets_none() {
    let area = Area::new();
    let root = area.path("w");
    git(&root, &["init", "-q"]);
    let Some((hands, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    let lay = "mkdir -p .git/modules/lib && echo evil > .git/modules/lib/config";
    let outcome = bash(&hands, lay).await;
    assert_eq!(outcome.status, Status::Error, "{outcome:?}");
    hands.close().await;
    assert!(!root.join(".git/modules").exists());
}

/// Hooks that count from a worktree do so from each, and a hook may be a link to a file of the work.
#[tokio::test]
async fn hooks_of_every_worktree_are_held_or_told_of() {
    let area = Area::new();
    let root = area.path("w");
    for name in [".git", ".git/modules/lib"] {
        repository(&root.join(name));
    }
    for name in ["lib/.githooks", "scripts", "template/hooks"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::write(root.join("lib/.git"), "gitdir: ../.git/modules/lib\n").unwrap();
    let user = format!(
        "[core]\n\thooksPath=.githooks#of the project\n[init]\n\ttemplateDir = {}/template\n",
        root.display()
    );
    fs::write(area.path("home/.gitconfig"), user).unwrap();
    let script = root.join("scripts/check");
    fs::write(&script, "true\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("../../scripts/check", root.join(".git/hooks/pre-commit")).unwrap();
    let Some((hands, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    for path in ["lib/.githooks/pre-commit", "template/hooks/post-checkout"] {
        let outcome = bash(&hands, &format!("echo evil > {path}")).await;
        assert_eq!(outcome.status, Status::Error, "{path}: {outcome:?}");
    }
    let outcome = bash(&hands, "echo evil >> scripts/check").await;
    hands.close().await;
    let told = "[changed: scripts/check;";
    assert!(outcome.content.contains(told), "{outcome:?}");
}
