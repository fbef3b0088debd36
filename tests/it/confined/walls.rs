//! What an earlier run left in the workspace, or the user does beside one, opens no way out.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use undertext::exchange::Status;
use undertext::hands::{Hands, Workspace};
use undertext::sandbox::{Bounds, Home, Mechanism};
use undertext::setup::{Reach, Sandbox};

use super::{Area, By, bash, git, interpreters, read, repository, ways};

/// What is called `.git`, or lies where something of a repository would, and is a link or says so.
#[tokio::test]
async fn what_stands_for_a_repository_shows_nothing_else() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        repository(&area.path("home/project/.git"));
        fs::write(area.path("home/project/.git/config"), "SECRET\n").unwrap();
        for name in ["a", "b", "c", "d/.git", "e"] {
            fs::create_dir_all(area.path("w").join(name)).unwrap();
        }
        repository(&area.path("w/m/.git"));
        fs::create_dir_all(area.path("w/m/.git/modules")).unwrap();
        fs::write(area.path("w/d/.git/HEAD"), "").unwrap();
        for (target, link) in [
            ("home/.ssh", "w/a/.git"),
            ("home/.netrc", "w/b/.git"),
            ("home/project/.git", "w/c/.git"),
            ("home/.ssh", "w/d/.git/hooks"),
            ("home/.netrc", "w/d/.git/config"),
            ("home/project/.git", "w/m/.git/modules/x"),
        ] {
            symlink(area.path(target), area.path(link)).unwrap();
        }
        let led = format!("gitdir: {}\n", area.path("home/project/.git").display());
        fs::write(area.path("w/e/.git"), &led).unwrap();
        fs::write(area.path("w/.git"), led).unwrap();
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        let outcome = bash(
            &hands,
            "cat ~/.ssh/id ~/.netrc ~/project/.git/config a/.git/id b/.git c/.git/config \
             d/.git/hooks/id d/.git/config m/.git/modules/x/config; \
             for d in ~/project/.git c/.git m/.git/modules/x; do echo x > $d/hooks/evil; done",
        )
        .await;
        hands.close().await;
        assert!(!outcome.content.contains("SECRET"), "{by:?} {outcome:?}");
        assert!(!area.path("home/project/.git/hooks/evil").exists());
    }
}

/// Devices are the machine's, and what stands for a hidden file is one of them: they are used, and keep
/// their modes and times, also where their owner runs the tools.
#[tokio::test]
async fn devices_are_used_and_keep_their_attributes() {
    let area = Area::new();
    let Some((hands, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    let changed = |path: &str| {
        let data = fs::metadata(path).unwrap();
        (data.ctime(), data.ctime_nsec())
    };
    let devices = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
    ];
    let before = devices.map(changed);
    // The mode that they have anyway, so that nothing is amiss where this fails.
    let places = [&devices[..], &["~/tools/key"]].concat().join(" ");
    let altered = bash(
        &hands,
        &format!("for f in {places}; do chmod 666 $f || touch -a $f || chown 0 $f || echo kept; done 2>&1"),
    )
    .await;
    let kept = altered.content.lines().filter(|line| *line == "kept");
    assert_eq!(kept.count(), 6, "{altered:?}");
    assert_eq!(devices.map(changed), before);
    let used = "echo x >/dev/null && cp a.txt /dev/null && head -c 2 /dev/zero | wc -c && \
                head -c 2 /dev/urandom | wc -c && ! echo x 2>/dev/null >/dev/full && test -w /dev/null && \
                wc -c <~/tools/key";
    assert_eq!(bash(&hands, used).await.content, "2\n2\n0\n");
    hands.close().await;
}

/// The kinds of repositories in a workspace, and all that is protected in them.
fn repositories(area: &Area) -> Vec<&'static str> {
    for name in [
        ".git",
        ".git/modules/libs/foo",
        "vendor/r/.git",
        "1/2/3/4/5/6/.git",
        "separate",
        "apart",
        "h/.git",
    ] {
        repository(&area.path("w").join(name));
    }
    for name in ["l", "g", "hooks"] {
        fs::create_dir_all(area.path("w").join(name)).unwrap();
    }
    symlink("../separate", area.path("w/l/.git")).unwrap();
    fs::write(area.path("w/g/.git"), "gitdir: ../apart\n").unwrap();
    fs::remove_dir(area.path("w/h/.git/hooks")).unwrap();
    symlink("../../hooks", area.path("w/h/.git/hooks")).unwrap();
    vec![
        ".git/hooks",
        ".git/config",
        ".git/config.worktree",
        ".git/commondir",
        ".git/modules/libs/foo/hooks",
        ".git/modules/libs/foo/config",
        "vendor/r/.git/hooks",
        "1/2/3/4/5/6/.git/hooks",
        "l/.git/hooks",
        "l/.git/config",
        "separate/config",
        "g/.git",
        "apart/config",
        "h/.git/hooks",
        "hooks",
    ]
}

/// Whatever the protected paths hold, and which files they are.
fn state(area: &Area, paths: &[&str]) -> String {
    let mut text = String::new();
    for path in paths {
        let path = area.path("w").join(path);
        let Ok(data) = fs::metadata(&path) else {
            continue;
        };
        let entries = fs::read_dir(&path).into_iter().flatten().count();
        let held = read(&path);
        writeln!(text, "{} {} {entries} {held:?}", path.display(), data.ino()).unwrap();
    }
    text
}

/// No detour gets at what names programs: not by what is above it, not by what leads to it.
#[tokio::test]
async fn what_is_protected_cannot_be_replaced_from_above() {
    const DEEDS: [&str; 14] = [
        "cp -r .git evil; echo ../evil > .git/commondir",
        "echo '[core]' > .git/config.worktree",
        "mv vendor/r vendor/o; mkdir vendor/r; cp -r vendor/o/. vendor/r",
        "mv vendor v; cp -r v vendor",
        "mv .git/modules .git/m; cp -r .git/m .git/modules",
        "echo x > .git/modules/libs/foo/config",
        "mv 1/2/3 3; cp -r 3 1/2/3",
        "echo x > 1/2/3/4/5/6/.git/hooks/pre-commit",
        "rm l/.git; mkdir -p l/.git/hooks",
        "mv separate s; cp -r s separate",
        "rm g/.git; mkdir g/.git",
        "echo x > apart/config",
        "rm h/.git/hooks; mkdir h/.git/hooks",
        "echo x > hooks/pre-commit",
    ];
    for by in [By::Nothing, By::Namespaces] {
        for deed in DEEDS {
            let area = Area::new();
            let protected = repositories(&area);
            let before = state(&area, &protected);
            let Some((hands, _)) = area.hands(by).await else {
                return;
            };
            bash(&hands, deed).await;
            hands.close().await;
            let after = state(&area, &protected);
            assert_eq!(
                after != before,
                by == By::Nothing,
                "{by:?}: {deed}\n{after}"
            );
        }
    }
}

/// Work in a repository goes on beside what holds it.
#[tokio::test]
async fn version_control_works_in_what_is_protected() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        git(&area.path("w"), &["init", "-q"]);
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        let outcome = bash(
            &hands,
            "g='git -c user.name=a -c user.email=a@b'; $g add a.txt && $g commit -qm one && \
             $g checkout -qb other && $g tag t && $g stash list && $g gc -q && $g worktree add -q \
             -b more .other; git log --format=%s && git status --short",
        )
        .await;
        assert_eq!(outcome.content, "one\n?? .other/\n", "{by:?}");
        hands.close().await;
        let left: Vec<_> = ["commondir", "config.worktree"]
            .into_iter()
            .filter(|name| area.path("w/.git").join(name).exists())
            .collect();
        assert_eq!(left, [""; 0], "{by:?}");
    }
}

/// What the user replaces beside a run stays protected, and what is hidden stays hidden.
#[tokio::test]
async fn what_is_replaced_from_outside_stays_protected() {
    let area = Area::new();
    repository(&area.path("w/.git"));
    let Some((hands, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    assert_eq!(bash(&hands, "true").await.status, Status::Ok);
    let replace = |name: &str, text: &str| {
        let beside = area.path(name).with_extension("new");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, area.path(name)).unwrap();
    };
    replace("w/.git/config", "[user]\n");
    let outcome = bash(&hands, "echo evil >> .git/config").await;
    assert_eq!(
        outcome.content,
        format!(
            "Nothing ran: {} was replaced or removed from outside the sandbox, which was to keep \
             it as it is. The next call runs in a new one; background jobs have ended.",
            area.path("w/.git/config").display()
        )
    );
    let outcome = bash(&hands, "echo evil >> .git/config").await;
    assert_eq!(outcome.status, Status::Error, "{outcome:?}");
    assert_eq!(read(&area.path("w/.git/config")), "[user]\n");
    replace("home/tools/key", "SECRET\n");
    bash(&hands, "cat ~/tools/key").await;
    let outcome = bash(&hands, "cat ~/tools/key").await;
    assert!(!outcome.content.contains("SECRET"), "{outcome:?}");
    hands.close().await;
}

/// Runs that share a workspace share what holds the place of a repository, until the last one ends.
#[tokio::test]
async fn whoever_ends_first_leaves_the_other_protected() {
    for first in [false, true] {
        let area = Area::new();
        let (Some((one, _)), Some((other, _))) = (
            area.hands(By::Namespaces).await,
            area.hands(By::Namespaces).await,
        ) else {
            return;
        };
        let (ends, stays) = if first { (one, other) } else { (other, one) };
        ends.close().await;
        let plant = "mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit";
        let outcome = bash(&stays, plant).await;
        assert_eq!(outcome.status, Status::Error, "{outcome:?}");
        assert!(!outcome.content.contains("Nothing ran"), "{outcome:?}");
        stays.close().await;
        assert!(!area.path("w/.git").exists());
    }
}

/// Nothing in a workspace makes the walls weaker.
#[tokio::test]
async fn a_workspace_does_not_choose_the_mechanism() {
    if Area::new().hands(By::Namespaces).await.is_none() {
        return;
    }
    let area = Area::new();
    let strange = area.path("w").join(OsStr::from_bytes(b"\xff \\040"));
    repository(&strange.join(".git"));
    let (hands, enforced) = area.hands(By::Namespaces).await.unwrap();
    assert_eq!(enforced.unwrap().mechanism, Mechanism::Namespaces);
    let plant = "echo evil > $'\\xff \\\\040'/.git/hooks/pre-commit";
    let outcome = bash(&hands, plant).await;
    assert_eq!(outcome.status, Status::Error, "{outcome:?}");
    hands.close().await;
    assert_eq!(fs::read_dir(strange.join(".git/hooks")).unwrap().count(), 0);
}

/// What is named in the workspace is that, and not what a tool made of it.
#[tokio::test]
async fn what_is_named_to_be_written_is_not_led_elsewhere() {
    let area = Area::new();
    symlink(area.path("home/.ssh"), area.path("w/.git")).unwrap();
    let reach = Reach {
        write: vec![".git".into()],
        ..area.reach()
    };
    let bounds = area.bounds(&Sandbox::Workspace(reach));
    assert_eq!(
        area.start(bounds).await.unwrap_err().to_string(),
        format!(
            "{} may not be written: a link in the workspace leads it elsewhere; name in \
             sandbox.write what it leads to",
            area.path("w/.git").display()
        )
    );
}

/// A temporary directory in what may be written is not where the new root is.
#[tokio::test]
async fn the_own_directory_is_not_in_what_may_be_written() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        fs::create_dir_all(area.path("w/tmp")).unwrap();
        let bounds = area.bounds(&Sandbox::Workspace(area.reach()));
        let mut launch = area.launch();
        launch.temporary = area.path("w/tmp");
        let hands = Hands::confined(area.workspace(), Vec::new(), bounds.by(ways(by)), launch);
        let Some((hands, _)) = super::had(by, hands.await) else {
            continue;
        };
        let outcome = bash(
            &hands,
            "find . -path './.git' -prune -o -print | sort | tr '\\n' ' '",
        )
        .await;
        assert_eq!(outcome.content, ". ./a.txt ./sub ./tmp ", "{by:?}");
        hands.close().await;
    }
}

fn workspace(area: &Area, root: &Path) -> Workspace {
    Workspace::open(root, None, area.workspace().environment().to_vec()).unwrap()
}

/// The bounds of a workspace of one's own.
fn bounds(area: &Area, root: &Path, reach: Reach, ours: Vec<PathBuf>) -> Bounds {
    let around = Home {
        directory: Some(area.path("home")),
        programs: Vec::new(),
        ours,
    };
    let roots = [root.to_owned()];
    let bounds = Bounds::of(&Sandbox::Workspace(reach), &roots, &around);
    bounds.unwrap().reading(interpreters())
}

/// Natural settings mean what they say, by the same mechanism, and what is hidden stays so.
#[tokio::test]
async fn natural_settings_are_enforced_by_namespaces() {
    let shm = tempfile::tempdir_in("/dev/shm").unwrap();
    for (read, write, at) in [
        (vec!["~"], vec![], None),
        (vec!["~/.local", "/tmp"], vec![], None),
        (vec!["/"], vec![], None),
        (vec![], vec!["~"], None),
        (vec![], vec!["/tmp", "/var/tmp"], None),
        (vec![], vec!["/"], None),
        (vec![], vec![], Some(shm.path())),
    ] {
        let area = Area::new();
        let state = area.path("home/.local/state/ours");
        fs::create_dir_all(state.join("runs")).unwrap();
        fs::write(state.join("runs/a"), "SECRET\n").unwrap();
        fs::write(area.path("home/seen"), "seen\n").unwrap();
        let text = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        let reach = Reach {
            read: text(&read),
            write: text(&write),
            ..Reach::default()
        };
        let root = at.map_or_else(|| area.path("w"), Path::to_owned);
        let ours = vec![state.join("runs"), state];
        let bounds = bounds(&area, &root, reach, ours).by(ways(By::Namespaces));
        let hands = Hands::confined(workspace(&area, &root), Vec::new(), bounds, area.launch());
        let (hands, enforced) = hands.await.unwrap();
        if enforced.mechanism == Mechanism::Landlock {
            return;
        }
        let what = format!("{read:?} {write:?}");
        let command = "echo x > new && cat new && f=$(mktemp) && echo y > $f && cat $f && rm $f; \
                       cat ~/seen; cat ~/.local/state/ours/runs/a; [ -r /var/log ] && echo logs; [ -d /proc/1 ]";
        let outcome = bash(&hands, command).await;
        hands.close().await;
        assert!(outcome.content.starts_with("x\ny\n"), "{what}: {outcome:?}");
        assert!(!outcome.content.contains("SECRET"), "{what}: {outcome:?}");
        let all = read.iter().chain(&write).any(|path| *path == "/");
        // The area itself lies where each process has its own.
        let seen = [&read, &write].iter().any(|paths| paths.contains(&"~")) || write == ["/"];
        let in_tmp = area.path("w").starts_with("/tmp");
        let seen = seen || write.contains(&"/tmp") && in_tmp || read == ["/"] && !in_tmp;
        for (word, expected) in [
            ("seen\n", seen),
            ("logs\n", all && Path::new("/var/log").exists()),
        ] {
            let is_there = outcome.content.contains(word);
            assert_eq!(is_there, expected, "{what}: {outcome:?}");
        }
    }
}

/// A limit of another process is as good as a signal to it.
#[tokio::test]
async fn limits_of_others_stay() {
    for by in [By::Nothing, By::Namespaces, By::Landlock] {
        let area = Area::new();
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        let command = "prlimit --pid $PPID --core=0 && echo through; ulimit -S -n 100 && ulimit -n";
        let outcome = bash(&hands, command).await;
        let through = outcome.content.contains("through");
        assert_eq!(through, by == By::Nothing, "{by:?} {outcome:?}");
        assert!(outcome.content.ends_with("100\n"), "{outcome:?}");
        hands.close().await;
    }
}

/// A linked worktree is worked in as version control means it; nothing else of the repository's
/// place is seen, and what names programs there stays.
#[tokio::test]
async fn a_linked_worktree_can_be_worked_in() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        let main = area.path("home/main");
        fs::create_dir_all(&main).unwrap();
        fs::write(main.join("a.txt"), "main\n").unwrap();
        git(&main, &["init", "-q"]);
        git(&main, &["add", "a.txt"]);
        git(&main, &["commit", "-qm", "one"]);
        fs::remove_dir_all(area.path("w")).unwrap();
        git(&main, &["worktree", "add", "-q", "../../w"]);
        let Some((hands, enforced)) = area.hands(by).await else {
            continue;
        };
        assert_eq!(enforced.unwrap().told, [""; 0]);
        let outcome = bash(
            &hands,
            "echo new > b.txt; git add b.txt && git -c user.name=a -c user.email=a@b commit -qm two; \
             git log --format=%s; cat ~/main/a.txt",
        )
        .await;
        // Landlock alone cannot let one file of a directory be made and not another.
        let told = if by == By::Namespaces { "" } else { "error: " };
        assert!(outcome.content.starts_with(told), "{outcome:?}");
        assert!(
            outcome.content.contains("two\none\ncat: "),
            "{by:?} {outcome:?}"
        );
        let evil = "common=$(git rev-parse --git-common-dir); \
                    echo evil > $common/hooks/pre-commit; echo evil >> $common/config; \
                    echo evil > $(git rev-parse --git-dir)/commondir; \
                    mv $common/worktrees $common/w && cp -r $common/w $common/worktrees; \
                    git log -1 --format=%s";
        let outcome = bash(&hands, evil).await;
        hands.close().await;
        assert!(!main.join(".git/hooks/pre-commit").exists(), "{by:?}");
        assert!(!read(&main.join(".git/config")).contains("evil"), "{by:?}");
        if by == By::Namespaces {
            assert!(outcome.content.contains("two\n"), "{outcome:?}");
            let common = read(&main.join(".git/worktrees/w/commondir"));
            assert_eq!(common, "../..\n");
            assert!(!main.join(".git/w").exists());
            git(&area.path("w"), &["status"]);
        }
    }
}

/// In a directory of a repository what was can be looked at, and nothing can be changed above it.
#[tokio::test]
async fn a_directory_of_a_repository_has_its_history() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        let (around, root) = (area.path("mono"), area.path("mono/w"));
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("a.txt"), "hello\n").unwrap();
        git(&around, &["init", "-q"]);
        git(&around, &["add", "w/a.txt"]);
        git(&around, &["commit", "-qm", "one"]);
        let bounds = bounds(&area, &root, Reach::default(), Vec::new()).by(ways(by));
        let here = workspace(&area, &root);
        let started = Hands::confined(here, Vec::new(), bounds, area.launch()).await;
        let Some((hands, _)) = super::had(by, started) else {
            continue;
        };
        let command = "echo more >> a.txt; git log --format=%s -- a.txt; git diff --stat -- . | tail -1; \
                       touch ../.git/hooks/x ../.git/x";
        let outcome = bash(&hands, command).await;
        hands.close().await;
        let expected = "one\n 1 file changed, 1 insertion(+)\ntouch: ";
        assert!(outcome.content.starts_with(expected), "{by:?} {outcome:?}");
        assert!(!around.join(".git/hooks/x").exists() && !around.join(".git/x").exists());
    }
}

/// What does not lead back is not shown, and it is said that version control does not work.
#[tokio::test]
async fn a_worktree_of_nobody_is_told() {
    let area = Area::new();
    repository(&area.path("home/project"));
    let led = format!("gitdir: {}\n", area.path("home/project").display());
    fs::write(area.path("w/.git"), led).unwrap();
    let Some((hands, enforced)) = area.hands(By::Namespaces).await else {
        return;
    };
    hands.close().await;
    assert_eq!(
        enforced.unwrap().told,
        [format!(
            "git does not work here: {} leads to {}, which does not lead back; name it in \
             sandbox.write",
            area.path("w/.git").display(),
            area.path("home/project").display()
        )]
    );
}
