//! Attempts to change files that may not be changed, in every spelling.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde_json::json;

use undertext::exchange::Status;
use undertext::sandbox::{Class, Held};

use super::{Area, By, bash, order, read};

/// Ways to name the directory outside; the first word makes what is needed for it.
const SPELLINGS: [(&str, &str); 10] = [
    ("true", "{out}"),
    ("true", "../outside"),
    ("true", "./sub/../../outside"),
    ("true", "/..{out}"),
    ("true", "//{out}//"),
    ("ln -sfn {out} link", "link"),
    ("ln -sfn .. up", "up/outside"),
    ("true", "/proc/self/root{out}"),
    ("true", "/proc/self/cwd/../outside"),
    ("exec 7<{out}", "/proc/self/fd/7"),
];

/// What is tried on a file `{f}` that is there, in the directory `{d}`; `{n}` is a name of its own.
const DEEDS: [(&str, Class); 17] = [
    ("echo x > {f}", Class::Write),
    ("echo x >> {f}", Class::Write),
    (": > {f}", Class::Write),
    ("truncate -s 1 {f}", Class::Write),
    ("echo x | tee {f}", Class::Write),
    ("cp a.txt {f}", Class::Write),
    ("dd if=a.txt of={f} conv=notrunc", Class::Write),
    ("rm -f {f}", Class::Write),
    ("mv {f} {d}/{n}.moved", Class::Write),
    ("cp a.txt {n}.in && mv {n}.in {d}/{n}.in", Class::Write),
    ("mkdir {d}/{n}.dir", Class::Write),
    ("ln -s a {d}/{n}.link", Class::Write),
    ("mkfifo {d}/{n}.fifo", Class::Write),
    ("ln {f} {n}.hard && echo x >> {n}.hard", Class::Write),
    ("ln -s {f} {n}.soft && echo x > {n}.soft", Class::Write),
    ("chmod 600 {f}", Class::Attributes),
    ("touch -d 2001-01-01 {f}", Class::Attributes),
];

/// What is outside, as far as it can be changed: names, kinds, modes, times and texts.
fn state(directory: &Path, of: &str) -> String {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    names.retain(|entry| entry.file_name().to_str().unwrap().starts_with(of));
    names.sort_by_key(fs::DirEntry::file_name);
    let mut text = String::new();
    for entry in names {
        let data = fs::symlink_metadata(entry.path()).unwrap();
        let (mode, time) = (data.mode(), data.mtime());
        let said = if data.is_file() {
            read(&entry.path())
        } else {
            String::new()
        };
        let name = entry.file_name();
        writeln!(text, "{} {mode:o} {time} {said:?}", name.display()).unwrap();
    }
    text
}

/// Runs every deed in every spelling; the names of those that changed something.
async fn through(by: By) -> Option<(Vec<(String, Class)>, Vec<(Class, Held)>)> {
    let area = Area::new();
    let (hands, enforced) = area.hands(by).await?;
    let out = area.path("outside");
    let mut tried = Vec::new();
    let mut script = String::new();
    for (at, (prepare, directory)) in SPELLINGS.iter().enumerate() {
        writeln!(script, "{prepare}").unwrap();
        for (number, (deed, class)) in DEEDS.iter().enumerate() {
            let name = format!("n{at}-{number}-");
            fs::write(out.join(format!("{name}f")), "as it was\n").unwrap();
            let deed = deed.replace("{f}", &format!("{directory}/{name}f"));
            let deed = deed.replace("{d}", directory).replace("{n}", &name);
            writeln!(script, "( {deed} ) >/dev/null 2>&1").unwrap();
            tried.push((name, format!("{deed} (after {prepare})"), *class));
        }
    }
    let before: Vec<_> = tried.iter().map(|(name, ..)| state(&out, name)).collect();
    let script = script.replace("{out}", out.to_str().unwrap());
    let outcome = bash(&hands, &format!("{script}\necho done")).await;
    assert!(outcome.content.contains("done"), "{outcome:?}");
    hands.close().await;
    let changed = tried.into_iter().zip(before);
    let changed = changed.filter(|((name, ..), before)| state(&out, name) != *before);
    let changed = changed.map(|((_, deed, class), _)| (deed, class)).collect();
    Some((changed, area.held(enforced.as_ref())))
}

/// Each attempt changes something without a sandbox, and nothing with one; what a mechanism does not
/// stop is what it says that it does not.
#[tokio::test]
async fn nothing_outside_is_changed_in_any_spelling() {
    let (all, _) = through(By::Nothing).await.unwrap();
    assert_eq!(all.len(), SPELLINGS.len() * DEEDS.len(), "{all:#?}");
    for by in [By::Namespaces, By::Landlock] {
        let Some((changed, held)) = through(by).await else {
            continue;
        };
        for (deed, class) in changed {
            let told = held
                .iter()
                .any(|(of, held)| *of == class && matches!(held, Held::Open(_)));
            assert!(told, "{by:?} let through: {deed}");
        }
    }
}

/// Hooks and settings of repositories stay as they are, whatever is tried in commands and file tools.
#[tokio::test]
async fn hooks_and_settings_of_repositories_stay() {
    const DEEDS: [&str; 21] = [
        "mv .git/modules .git/gone && mkdir -p .git/modules/one && echo x > .git/modules/one/config",
        "mv .git/modules/vendor .git/gone && mkdir -p .git/modules/vendor/two && echo x > .git/modules/vendor/two/config",
        "printf '../evil\\n' > .git/commondir",
        "rm -f .git/commondir; printf '../evil\\n' > .git/new && mv .git/new .git/commondir",
        "echo x > .git/modules/one/config",
        "echo x > .git/modules/vendor/two/hooks/post-checkout",
        "rm -rf .git/modules/vendor/two && mkdir -p .git/modules/vendor/two && echo x > .git/modules/vendor/two/config",
        "echo ../../../evil > .git/worktrees/other/commondir",
        "mv .git/worktrees .git/gone && mkdir -p .git/worktrees/other && echo x > .git/worktrees/other/commondir",
        "echo x > .git/hooks/pre-commit",
        "cp a.txt .git/hooks/post-checkout",
        "ln -s ../../a.txt .git/hooks/pre-push",
        "rm -rf .git/hooks",
        "mv .git/hooks .git/other && mkdir .git/hooks && echo x > .git/hooks/pre-commit",
        "echo x >> .git/config",
        "mv a.txt .git/config",
        "rm .git/config && echo x > .git/config",
        "git config core.fsmonitor x",
        "git config --add core.hooksPath /x",
        "mv .git gone && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit && echo x > .git/config",
        "chmod 777 .git/config; cd .git; echo x > config",
    ];
    let state = |area: &Area| {
        let git = area.path("w/.git");
        let mut names: Vec<_> = fs::read_dir(git.join("hooks"))
            .map(|entries| entries.map(|entry| entry.unwrap().file_name()).collect())
            .unwrap_or_default();
        names.sort();
        let files = [
            "config",
            "commondir",
            "modules/one/config",
            "modules/vendor/two/config",
            "modules/vendor/two/hooks/post-checkout",
            "worktrees/other/commondir",
        ];
        format!("{names:?} {:?}", files.map(|name| read(&git.join(name))))
    };
    for by in [By::Nothing, By::Namespaces] {
        for deed in DEEDS {
            let area = Area::new();
            let git = area.path("w/.git");
            fs::create_dir_all(git.join("hooks")).unwrap();
            fs::create_dir_all(git.join("objects")).unwrap();
            fs::create_dir_all(git.join("refs")).unwrap();
            fs::write(git.join("hooks/pre-rebase"), "true\n").unwrap();
            fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(git.join("config"), "[core]\n\tbare = false\n").unwrap();
            for module in ["modules/one", "modules/vendor/two"] {
                fs::create_dir_all(git.join(module).join("hooks")).unwrap();
                fs::write(git.join(module).join("HEAD"), "ref: refs/heads/main\n").unwrap();
                fs::write(git.join(module).join("config"), "[core]\n").unwrap();
            }
            fs::create_dir_all(git.join("worktrees/other")).unwrap();
            fs::write(git.join("worktrees/other/commondir"), "../..\n").unwrap();
            let before = state(&area);
            let Some((hands, _)) = area.hands(by).await else {
                return;
            };
            bash(&hands, deed).await;
            hands.close().await;
            let changed = state(&area) != before;
            assert_eq!(changed, by == By::Nothing, "{by:?}: {deed}");
        }
    }
}

/// What shells, desktops and services read in a home directory stays as it is, whatever a command believes.
#[tokio::test]
async fn what_begins_programs_at_home_stays() {
    const FILES: [&str; 14] = [
        ".bashrc",
        ".profile",
        ".zshenv",
        ".ssh/authorized_keys",
        ".ssh/config",
        ".gitconfig",
        ".config/git/config",
        ".config/autostart/x.desktop",
        ".config/systemd/user/x.service",
        ".config/environment.d/x.conf",
        ".local/bin/ls",
        ".cargo/config.toml",
        ".npmrc",
        "tools/tool",
    ];
    for by in [By::Nothing, By::Namespaces, By::Landlock] {
        let area = Area::new();
        let home = area.path("home");
        for file in FILES {
            fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
            fs::write(home.join(file), "mine\n").unwrap();
        }
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        let mut script = String::new();
        for (at, file) in FILES.iter().enumerate() {
            let way = match at % 3 {
                0 => format!("mkdir -p ~/$(dirname {file}); echo x >> ~/{file}"),
                1 => format!("echo x > new{at}; mv -f new{at} {}/{file}", home.display()),
                _ => {
                    format!("cd ~ && rm -f {file} && mkdir -p $(dirname {file}) && echo x > {file}")
                }
            };
            writeln!(script, "( {way} ) >/dev/null 2>&1").unwrap();
        }
        bash(&hands, &script).await;
        hands.close().await;
        for file in FILES {
            let changed = read(&home.join(file)) != "mine\n";
            assert_eq!(changed, by == By::Nothing, "{by:?}: {file}");
        }
    }
}

/// What cannot be protected in its place is not written at all, or nothing begins.
#[tokio::test]
async fn links_in_the_place_of_what_is_protected_are_no_way_round() {
    use std::os::unix::fs::symlink;
    for (link, to) in [("hooks", "../hooks"), ("config", "../config")] {
        let area = Area::new();
        let git = area.path("w/.git");
        fs::create_dir_all(&git).unwrap();
        fs::create_dir_all(area.path("w/hooks")).unwrap();
        fs::write(area.path("w/config"), "[core]\n").unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        symlink(to, git.join(link)).unwrap();
        let Some((hands, _)) = area.hands(By::Namespaces).await else {
            return;
        };
        let deed = format!("rm .git/{link} && mkdir .git/{link}");
        assert_eq!(bash(&hands, &deed).await.status, Status::Error, "{link}");
        hands.close().await;
        assert_eq!(fs::read_link(git.join(link)).unwrap(), Path::new(to));
    }
    let area = Area::new();
    symlink("elsewhere", area.path("w/.git")).unwrap();
    let (hands, _) = area.hands(By::Namespaces).await.unwrap();
    let deed = bash(&hands, "rm .git && git init").await;
    assert_eq!(deed.status, Status::Error, "{deed:?}");
    hands.close().await;
    let led = fs::read_link(area.path("w/.git")).unwrap();
    assert_eq!(led, Path::new("elsewhere"));
}

/// Several runs may work in one workspace: what one of them holds in its place stays there until the last
/// has ended.
#[tokio::test]
async fn what_holds_a_place_stays_while_somebody_needs_it() {
    let area = Area::new();
    let Some((first, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    let (second, _) = area.hands(By::Namespaces).await.unwrap();
    first.close().await;
    for deed in ["mkdir -p .git/hooks", "rmdir .git", "git init"] {
        let outcome = bash(&second, deed).await;
        assert_eq!(outcome.status, Status::Error, "{deed}: {outcome:?}");
    }
    second.close().await;
    assert!(!area.path("w/.git").exists());
}

/// Where there is no repository none can be made, and nothing is left of what kept its place.
#[tokio::test]
async fn no_repository_can_be_planted() {
    for deed in [
        "mkdir -p .git/hooks",
        "git init",
        "echo gitdir: x > .git",
        "ln -s /x .git",
        "rmdir .git; mkdir .git/x",
    ] {
        let area = Area::new();
        let Some((hands, _)) = area.hands(By::Namespaces).await else {
            return;
        };
        let outcome = bash(&hands, deed).await;
        assert_eq!(outcome.status, Status::Error, "{deed}: {outcome:?}");
        hands.close().await;
        assert!(!area.path("w/.git").exists(), "{deed}");
    }
}

/// File tools refuse what commands cannot do.
#[tokio::test]
async fn file_tools_keep_to_the_same_bounds() {
    let spelled = [
        "{out}/new",
        "../outside/new",
        "link/new",
        "/proc/self/cwd/../outside/new",
        ".git/hooks/new",
        "sub/.git/config",
        "sub/../.git/hooks/x/y",
    ];
    for by in [By::Nothing, By::Namespaces, By::Landlock] {
        for spelling in spelled {
            let area = Area::new();
            std::os::unix::fs::symlink(area.path("outside"), area.path("w/link")).unwrap();
            let Some((hands, _)) = area.hands(by).await else {
                continue;
            };
            let path = spelling.replace("{out}", area.path("outside").to_str().unwrap());
            let arguments = json!({"path": path, "content": "x\n"});
            let outcome = hands.run(order("Write", &arguments)).await;
            // Without a sandbox a hook is a file like any other.
            let hook = spelling.contains(".git") && by == By::Nothing;
            let expected = if hook { Status::Ok } else { Status::Denied };
            assert_eq!(
                outcome.status, expected,
                "{by:?} {spelling}: {}",
                outcome.content
            );
            hands.close().await;
            assert!(!area.path("outside/new").exists());
        }
    }
}
