//! What the user's own version control is told to run or to read in the workspace.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use undertext::exchange::Status;

use super::{Area, By, bash, order, read};

/// A workspace whose repository, and whose user, have these settings.
fn area(own: &str, home: &str) -> Area {
    let area = Area::new();
    for name in [
        ".git/hooks",
        ".git/objects",
        ".git/refs",
        ".githooks",
        "tools",
    ] {
        fs::create_dir_all(area.path("w").join(name)).unwrap();
    }
    symlink(".githooks", area.path("w/link")).unwrap();
    let place = |text: &str| text.replace("{w}", area.path("w").to_str().unwrap());
    for (name, text) in [
        ("w/.git/HEAD", "ref: refs/heads/main\n".to_owned()),
        ("w/.git/config", place(own)),
        ("home/.gitconfig", place(home)),
        ("w/.githooks/pre-push", "true\n".to_owned()),
        ("w/more", "[user]\n".to_owned()),
        ("w/tools/watch", "true\n".to_owned()),
    ] {
        fs::write(area.path(name), text).unwrap();
    }
    area
}

/// Other directories of hooks, and settings that are included, are held as the usual ones are.
#[tokio::test]
async fn hooks_and_settings_elsewhere_are_held() {
    let hooks = "[core]\n\thooksPath = .githooks\n";
    let more = "[include]\n\tpath = ../more\n";
    for (own, home, deed) in [
        (hooks, "", "echo evil > .githooks/pre-commit"),
        (
            "",
            hooks,
            "mv .githooks x; mkdir .githooks; echo evil > .githooks/pre-commit",
        ),
        (
            "",
            "[core]\nhooksPath = {w}/.githooks\n",
            "echo evil > .githooks/pre-commit",
        ),
        (
            "[core]\nhooksPath = link\n",
            "",
            "rm link; mkdir link; echo evil > link/pre-commit",
        ),
        (
            "[core]\nhooksPath = link\n",
            "",
            "echo evil > .githooks/pre-commit",
        ),
        (more, "", "echo evil >> more"),
        (more, "", "rm more; echo evil > more"),
        (
            "",
            "[includeIf \"gitdir:{w}/\"]\n\tpath = {w}/more\n",
            "echo evil > new; mv -f new more",
        ),
    ] {
        for by in [By::Nothing, By::Namespaces] {
            let area = area(own, home);
            let Some((hands, _)) = area.hands(by).await else {
                return;
            };
            bash(&hands, deed).await;
            hands.close().await;
            let names = ["w/.githooks/pre-commit", "w/link/pre-commit", "w/more"];
            let changed = names
                .iter()
                .any(|name| read(&area.path(name)).contains("evil"));
            assert_eq!(changed, by == By::Nothing, "{by:?}: {own}{home}{deed}");
        }
    }
    for by in [By::Namespaces, By::Landlock] {
        let area = area(more, hooks);
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        for path in ["more", ".githooks/pre-commit"] {
            let write = order("Write", &json!({"path": path, "content": "evil\n"}));
            assert_eq!(
                hands.run(write).await.status,
                Status::Denied,
                "{by:?} {path}"
            );
        }
        hands.close().await;
    }
}

/// Programs that version control runs are part of the work, as are hooks that are not there yet: whoever
/// changes them is told.
#[tokio::test]
async fn programs_of_settings_are_told_of() {
    for (own, deed, changed) in [
        (
            "[core]\nfsmonitor = tools/watch\n",
            "echo x >> tools/watch",
            "tools/watch",
        ),
        (
            "[alias]\nx = !./tools/watch now\n",
            "rm tools/watch",
            "tools/watch",
        ),
        ("[core]\nhooksPath = later\n", "mkdir later", "later"),
        ("[core]\nhooksPath = .\n", "echo x > pre-commit", ""),
    ] {
        let area = area(own, "");
        let Some((hands, _)) = area.hands(By::Namespaces).await else {
            return;
        };
        let outcome = bash(&hands, deed).await;
        hands.close().await;
        let told = format!("[changed: {changed};");
        assert_eq!(outcome.status, Status::Ok, "{own}: {outcome:?}");
        assert!(outcome.content.contains(&told), "{own}: {outcome:?}");
    }
}

/// A workspace that is a repository without a worktree is protected as one.
#[tokio::test]
async fn a_bare_repository_is_protected() {
    for by in [By::Nothing, By::Namespaces] {
        let area = Area::new();
        for name in ["hooks", "objects", "refs"] {
            fs::create_dir_all(area.path("w").join(name)).unwrap();
        }
        fs::write(area.path("w/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(area.path("w/config"), "[core]\n\tbare = true\n").unwrap();
        let Some((hands, _)) = area.hands(by).await else {
            return;
        };
        let outcome = bash(
            &hands,
            "echo evil >> config; echo evil > hooks/post-receive; ls",
        )
        .await;
        hands.close().await;
        let names = ["w/config", "w/hooks/post-receive"];
        let changed = names
            .iter()
            .any(|name| read(&area.path(name)).contains("evil"));
        assert_eq!(changed, by == By::Nothing, "{outcome:?}");
        // Nothing is left of what held places.
        let left = fs::read_dir(area.path("w")).unwrap().count();
        assert_eq!(left, 7, "{by:?}: {outcome:?}");
    }
}
