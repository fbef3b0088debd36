//! What people do with their tools every day, and what tools may not do to the program itself.

use std::fs;
use std::os::unix::fs::symlink;

use undertext::exchange::Status;
use undertext::hands::{Hands, Workspace};
use undertext::sandbox::{Bounds, Home};
use undertext::setup::{Reach, Sandbox};

use super::{Area, By, bash, had, interpreters, read, ways};

/// Runs commands, each of which prints what is expected of it, or fails.
async fn check(hands: &Hands, commands: &[(&str, &str)]) {
    for (command, expected) in commands {
        let outcome = bash(hands, command).await;
        let failed = outcome.status == Status::Error;
        if *expected == "-" {
            assert!(failed, "{command}: {outcome:?}");
        } else {
            assert!(
                !failed && outcome.content.starts_with(expected),
                "{command}: {outcome:?}"
            );
        }
    }
}

/// Packages are unpacked, fetched and locked below home as if it were the user's, which stays as it is.
#[tokio::test]
async fn caches_can_be_used_and_stay_as_they_are() {
    let area = Area::new();
    for (name, text) in [
        ("home/.cargo/registry/a/lib.rs", "as it was\n"),
        ("home/.cargo/registry/b", "as it was\n"),
        ("home/.cargo/credentials.toml", "SECRET\n"),
        ("home/.stack/upload/credentials.json", "SECRET\n"),
        ("home/.gitconfig", "[user]\n"),
        ("home/go/pkg/mod/x", "as it was\n"),
    ] {
        fs::create_dir_all(area.path(name).parent().unwrap()).unwrap();
        fs::write(area.path(name), text).unwrap();
    }
    let reach = Reach {
        read: ["~/.cargo", "~/.stack", "~/go", "~/.gitconfig"]
            .map(str::to_owned)
            .into(),
        ..area.reach()
    };
    let bounds = area
        .bounds(&Sandbox::Workspace(reach))
        .by(ways(By::Namespaces));
    let Some((hands, _)) = had(By::Namespaces, area.start(bounds).await) else {
        return;
    };
    let cargo = "cd ~/.cargo/registry; ";
    let commands = [
        (
            "cat ~/.cargo/registry/a/lib.rs ~/go/pkg/mod/x",
            "as it was\nas it was\n",
        ),
        (&*[cargo, "echo new > a/new && cat a/new"].concat(), "new\n"),
        (
            &[cargo, "echo new >> a/lib.rs && cat a/lib.rs"].concat(),
            "as it was\nnew\n",
        ),
        (
            &[cargo, "rm b && mkdir b && echo c > b/c && ls b"].concat(),
            "c\n",
        ),
        (
            &[cargo, "mv a/lib.rs d && chmod 600 d && cat d"].concat(),
            "as it was\nnew\n",
        ),
        (
            &[cargo, "exec 9> .lock && flock 9 && echo locked"].concat(),
            "locked\n",
        ),
        (
            "mkdir -p ~/go/pkg/mod/cache && echo y > ~/go/pkg/mod/cache/y && ls ~/go/pkg/mod",
            "cache\nx\n",
        ),
        ("grep SECRET ~/.cargo/credentials.toml", "-"),
        ("rm ~/.cargo/credentials.toml", "-"),
        ("chmod 666 ~/.cargo/credentials.toml", "-"),
        ("grep -r SECRET ~/.stack", "-"),
        ("echo x >> ~/.gitconfig", "-"),
        (
            "echo x > ~/report",
            "[no output]\n[outside the workspace (sandbox), gone when the run ends: ",
        ),
    ];
    check(&hands, &commands).await;
    hands.close().await;
    assert_eq!(
        read(&area.path("home/.cargo/registry/a/lib.rs")),
        "as it was\n"
    );
    assert_eq!(read(&area.path("home/.cargo/registry/b")), "as it was\n");
    let names = |path: &str| fs::read_dir(area.path(path)).unwrap().count();
    assert_eq!(names("home/.cargo/registry"), 2);
    assert_eq!(
        (names("home/.cargo/registry/a"), names("home/go/pkg/mod")),
        (1, 1)
    );
    assert!(!area.path("home/report").exists());
    // Nothing is left of the layers.
    assert_eq!(names("tmp"), 0);
}

/// Where programs are found: those of the workspace are part of it, others are seen. Home is where it
/// really is, also if its name is a link.
#[tokio::test]
async fn programs_are_found_where_the_user_has_them() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        for directory in ["w/.venv/bin", "elsewhere/bin"] {
            fs::create_dir_all(area.path(directory)).unwrap();
            fs::write(area.path(directory).join("tool"), "a tool\n").unwrap();
        }
        symlink(area.path("home"), area.path("link")).unwrap();
        let mut programs: Vec<_> = std::env::split_paths(env!("PATH")).collect();
        programs.extend(["w/.venv/bin", "elsewhere/bin"].map(|name| area.path(name)));
        let around = Home {
            directory: Some(area.path("home")),
            programs,
            ours: Vec::new(),
        };
        let sandbox = Sandbox::Workspace(area.reach());
        let bounds = Bounds::of(&sandbox, &[area.path("w")], &around)
            .unwrap()
            .by(ways(by));
        let environment = [
            ("PATH".into(), env!("PATH").into()),
            ("HOME".into(), area.path("link").into()),
        ];
        let workspace = Workspace::open(&area.path("w"), None, environment.to_vec()).unwrap();
        let launched = Hands::confined(workspace, Vec::new(), bounds, area.launch()).await;
        let Some((hands, _)) = had(by, launched) else {
            continue;
        };
        let commands = [
            (
                "echo more >> .venv/bin/tool && cat .venv/bin/tool && rm -r .venv",
                "a tool\nmore\n",
            ),
            ("cat ../elsewhere/bin/tool", "a tool\n"),
            ("echo x > ../elsewhere/bin/tool", "-"),
            ("cat ~/tools/tool; basename ~", "a tool\nhome\n"),
        ];
        check(&hands, &commands).await;
        hands.close().await;
    }
}

/// Settings and transcripts in the workspace are neither read nor written, and nothing takes their place;
/// the programs of tools that lie beside the settings are there to be run.
#[tokio::test]
async fn what_is_ours_is_not_for_tools() {
    let area = Area::new();
    for (name, text) in [
        ("w/dot/undertext/config.yaml", "SECRET\n"),
        ("w/dot/undertext/tools/tool", "a tool\n"),
        ("w/dot/undertext/tools/runs/r.jsonl", "SECRET\n"),
        ("w/runs/r.jsonl", "SECRET\n"),
    ] {
        fs::create_dir_all(area.path(name).parent().unwrap()).unwrap();
        fs::write(area.path(name), text).unwrap();
    }
    let around = Home {
        directory: Some(area.path("home")),
        programs: std::env::split_paths(env!("PATH")).collect(),
        ours: ["w/dot/undertext", "w/dot/undertext/tools/runs", "w/runs"]
            .map(|name| area.path(name))
            .into(),
    };
    let sandbox = Sandbox::Workspace(area.reach());
    let bounds = Bounds::of(&sandbox, &[area.path("w")], &around)
        .unwrap()
        .reading(interpreters())
        .reading(area.path("w/dot/undertext/tools"))
        .by(ways(By::Namespaces));
    let Some((hands, _)) = had(By::Namespaces, area.start(bounds).await) else {
        return;
    };
    let commands = [
        ("cat dot/undertext/tools/tool", "a tool\n"),
        ("ls dot/undertext", "tools\n"),
        ("grep -r SECRET .", "-"),
        ("echo x > dot/undertext/config.yaml", "-"),
        ("echo x >> dot/undertext/tools/tool", "-"),
        ("echo x > dot/undertext/tools/new", "-"),
        ("echo x > dot/undertext/tools/runs/new", "-"),
        ("mv dot/undertext other", "-"),
        ("mv dot other", "-"),
        ("rm -rf runs", "-"),
        ("echo x > runs/r.jsonl", "-"),
        ("mv runs other", "-"),
        ("touch dot/mine && echo made", "made\n"),
    ];
    check(&hands, &commands).await;
    hands.close().await;
    for (name, text) in [
        ("w/dot/undertext/config.yaml", "SECRET\n"),
        ("w/dot/undertext/tools/tool", "a tool\n"),
        ("w/runs/r.jsonl", "SECRET\n"),
    ] {
        assert_eq!(read(&area.path(name)), text);
    }
    assert_eq!(
        fs::read_dir(area.path("w/dot/undertext")).unwrap().count(),
        2
    );
}

/// Of what is hidden outside the workspace only what was named is seen.
#[tokio::test]
async fn a_part_of_what_is_hidden_can_be_named() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        fs::create_dir(area.path("ours/tools")).unwrap();
        fs::write(area.path("ours/tools/tool"), "a tool\n").unwrap();
        let sandbox = Sandbox::Workspace(area.reach());
        let bounds = area.bounds(&sandbox).reading(area.path("ours/tools"));
        let Some((hands, _)) = had(by, area.start(bounds.by(ways(by))).await) else {
            continue;
        };
        let commands = [
            ("cat ../ours/tools/tool", "a tool\n"),
            ("grep SECRET ../ours/run.jsonl", "-"),
            ("echo x > ../ours/tools/tool", "-"),
            ("echo x > ../ours/tools/new", "-"),
            ("echo x > ../ours/new", "-"),
        ];
        check(&hands, &commands).await;
        hands.close().await;
        assert_eq!(fs::read_dir(area.path("ours")).unwrap().count(), 2);
    }
}

/// Debuggers and servers of one's own work: among processes and in a network of one's own.
#[tokio::test]
async fn debuggers_and_interfaces_are_there() {
    let area = Area::new();
    let Some((hands, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    let python = |text: &str| {
        format!("command -v python3 >/dev/null || {{ echo yes; exit; }}; python3 -c '{text}'")
    };
    let trace = "import ctypes, os, signal\npid = os.fork()\nif pid == 0: signal.pause()\n\
                 print(\"yes\" if ctypes.CDLL(None).ptrace(0x4206, pid, 0, 0) == 0 else \"no\")\n\
                 os.kill(pid, 9)";
    let interfaces =
        "import socket; print(\"yes\" if socket.if_nameindex() == [(1, \"lo\")] else \"no\")";
    check(
        &hands,
        &[(&python(trace), "yes\n"), (&python(interfaces), "yes\n")],
    )
    .await;
    hands.close().await;
}
