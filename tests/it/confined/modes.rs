//! Attempts to leave files with which anybody on the machine gets the rights of whoever runs the tools.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use serde_json::json;

use undertext::exchange::Status;

use super::{Area, By, bash, order, read};

/// The bits that do it.
const BITS: u32 = 0o6000;

/// Commands that leave something of the name `{n}` so; `marked` is a file of the user's that is.
const COMMANDS: [&str; 12] = [
    "cp a.txt {n}; chmod u+s {n}",
    "cp a.txt {n}; chmod g+s {n}",
    "cp a.txt {n}; chmod 4755 {n}",
    "cp a.txt {n}; chmod 2755 {n}",
    "cp a.txt {n}; chmod 6777 {n}",
    "mkdir {n}; cp a.txt {n}; chmod -R ug+s {n}",
    "mkdir {n}; chmod 2777 {n}",
    "install -m 4755 a.txt {n}",
    "install -m 2755 a.txt {n}",
    "install -d -m 6755 {n}",
    "cp -p marked {n}",
    "mkdir {n}; tar cf - marked | tar xpf - -C {n}; mv {n}/marked {n}.marked",
];

/// The same in Python.
const IN_PYTHON: [&str; 6] = [
    "os.chmod(made, 0o4755)",
    "os.fchmod(os.open(made, 0), 0o4755)",
    "os.open(n, os.O_CREAT | os.O_WRONLY, 0o4755)",
    "os.open(n, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o2755)",
    "os.link(f\"/proc/self/fd/{os.open(\".\", os.O_TMPFILE | os.O_RDWR, 0o6755)}\", n)",
    "os.mknod(n, 0o104755)",
];

/// The same by the numbers of system calls; `how` is what `openat2` reads.
const BY_NUMBER: [&str; 9] = [
    "2, n.encode(), os.O_CREAT | os.O_WRONLY, 0o4755",
    "85, n.encode(), 0o4755",
    "90, made.encode(), 0o4755",
    "91, os.open(made, 0), 0o4755",
    "133, n.encode(), 0o104755, 0",
    "257, -100, n.encode(), os.O_CREAT | os.O_WRONLY, 0o4755",
    "268, -100, made.encode(), 0o4755",
    "452, -100, made.encode(), 0o4755, 0",
    "437, -100, n.encode(), struct.pack(\"QQQ\", os.O_CREAT | os.O_WRONLY, 0o4755, 0), 24",
];

/// All of them, as commands.
fn ways() -> Vec<String> {
    let python = |deed: &str| {
        format!(
            "python3 -c 'import ctypes, os, struct; n = \"{{n}}\"; made = n + \".made\"; \
             open(made, \"w\"); {deed}'"
        )
    };
    let mut ways: Vec<String> = COMMANDS.map(str::to_owned).to_vec();
    ways.extend(IN_PYTHON.map(python));
    if cfg!(target_arch = "x86_64") {
        ways.extend(BY_NUMBER.map(|call| python(&format!("ctypes.CDLL(None).syscall({call})"))));
    }
    ways
}

/// Whether anything of this name is marked so.
fn is_marked(directory: &Path, name: &str) -> bool {
    fs::read_dir(directory).unwrap().any(|entry| {
        let entry = entry.unwrap();
        let of_name = entry.file_name().to_str().unwrap().starts_with(name);
        of_name && entry.metadata().unwrap().mode() & BITS != 0
    })
}

/// The ways that lead there.
async fn through(by: By) -> Option<Vec<String>> {
    let area = Area::new();
    let marked = area.path("w/marked");
    fs::write(&marked, "x\n").unwrap();
    fs::set_permissions(&marked, Permissions::from_mode(0o4755)).unwrap();
    let (hands, _) = area.hands(by).await?;
    let named = ways().into_iter().enumerate();
    let named: Vec<_> = named.map(|(at, way)| (format!("n{at}-"), way)).collect();
    let mut script = String::new();
    for (name, way) in &named {
        writeln!(script, "( {} ) >/dev/null 2>&1", way.replace("{n}", name)).unwrap();
    }
    let outcome = bash(&hands, &format!("{script}\necho done")).await;
    assert!(outcome.content.contains("done"), "{outcome:?}");
    hands.close().await;
    let marked = named.into_iter();
    let marked = marked.filter(|(name, _)| is_marked(&area.path("w"), name));
    Some(marked.map(|(_, way)| way).collect())
}

#[tokio::test]
async fn nothing_is_left_that_gives_others_the_rights_of_its_owner() {
    let open = through(By::Nothing).await.unwrap();
    let closed: Vec<_> = ways()
        .into_iter()
        .filter(|way| !open.contains(way))
        .collect();
    // Old kernels lack a call, and some file systems files without a name.
    assert!(closed.len() < 3, "{closed:#?}");
    for by in [By::Namespaces, By::Landlock] {
        let Some(through) = through(by).await else {
            continue;
        };
        assert_eq!(through, [""; 0], "{by:?}");
    }
}

/// What says so to a model, and what is left of such a file of the user's when it is edited.
#[tokio::test]
async fn other_modes_are_set_as_ever() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        let marked = area.path("w/marked");
        fs::write(&marked, "old\n").unwrap();
        fs::set_permissions(&marked, Permissions::from_mode(0o4755)).unwrap();
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        let arguments = json!({"path": "marked", "edits": [{"old": "old", "new": "new"}]});
        let edited = hands.run(order("Edit", &arguments)).await;
        assert_eq!(edited.status, Status::Ok, "{edited:?}");
        assert_eq!(read(&marked), "new\n");
        let usual = "umask 022; chmod 755 marked a.txt sub && chmod +t sub && install -m 700 a.txt b && \
                     mkdir -m 777 d && (umask 0; > e) && stat -c %a marked sub b d e | xargs";
        assert_eq!(bash(&hands, usual).await.content, "755 1755 700 777 666\n");
        let refused = bash(&hands, "chmod u+s a.txt").await;
        hands.close().await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused.content, @"
            chmod: changing permissions of 'a.txt': Operation not permitted
            [exit 1]
            [no file can be made setuid or setgid here (modes such as 4755 or g+s; sandbox), since others could run it with the user's rights; other modes can be set]
            ");
        }
    }
}

/// In a directory that people share, ordinary commands give the bit on that it has itself: the workspace, or
/// one in it, as a shared repository is.
#[tokio::test]
async fn where_a_group_is_handed_on_it_stays_so() {
    let shared = ["w", "w/sub"];
    let both = [By::Namespaces, By::Landlock];
    for (by, shared) in both
        .into_iter()
        .flat_map(|by| shared.map(|place| (by, place)))
    {
        let area = Area::new();
        fs::set_permissions(area.path(shared), Permissions::from_mode(0o2775)).unwrap();
        let Some((hands, enforced)) = area.hands(by).await else {
            continue;
        };
        let usual = "umask 002; mkdir -p one/two && chmod -R g-w one && chmod 775 one && \
                     cp -r one three && touch a && chmod g+s a && stat -c %a one three/two a | xargs";
        let there = area.path(shared).display().to_string();
        assert_eq!(
            bash(&hands, &format!("cd {there}; {usual}")).await.content,
            "2775 2755 2664\n",
            "{by:?}"
        );
        let refused = bash(&hands, "chmod u+s a.txt").await;
        assert_eq!(refused.status, Status::Error, "{by:?}");
        hands.close().await;
        let told = enforced.unwrap().told.join("\n");
        insta::allow_duplicates! {
            insta::assert_snapshot!(told.replace(&there, "/w"), @"modes with setgid are let through, since /w has one");
        }
    }
}

/// What becomes of a file of the user's that is marked when commands write it, as `docs/trust.md` says.
#[tokio::test]
async fn a_marked_file_that_is_written_loses_its_mark_unless_it_is_mapped() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        let map = "python3 -c 'import mmap; f = open(\"marked\", \"r+b\"); \
                   mmap.mmap(f.fileno(), 4)[0:3] = b\"new\"'";
        let mut modes = String::new();
        for deed in [
            "echo new >>marked",
            ": >marked",
            "truncate -s 2 marked",
            "sed -i s/old/new/ marked",
            map,
            "mv marked m; mv m marked",
            "cp -p marked c; mv c marked",
            "cp -p group c; mv c marked",
            "cp marked c; mv c marked",
        ] {
            for (name, mode) in [("marked", 0o4755), ("group", 0o2775)] {
                let path = area.path("w").join(name);
                fs::write(&path, "old\n").unwrap();
                fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            }
            bash(&hands, &format!("umask 022; {deed}")).await;
            let mode = fs::metadata(area.path("w/marked")).unwrap().mode() & 0o7777;
            let deed = deed.split([' ', ';']).next().unwrap();
            writeln!(modes, "{mode:o} {deed}").unwrap();
        }
        hands.close().await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(modes, @"
            755 echo
            755 :
            755 truncate
            600 sed
            4755 python3
            4755 mv
            700 cp
            700 cp
            755 cp
            ");
        }
    }
}

/// What is said where such a mode is refused.
const HINT: &str = "[no file can be made setuid or setgid here (modes such as 4755 or g+s; sandbox), since \
                    others could run it with the user's rights; other modes can be set]";

/// In a directory that hands its group on, deeper than is looked for, with files of the user's that are marked.
fn deep(area: &Area) {
    let deep = area.path("w/sub/deep");
    fs::create_dir_all(deep.join("tree")).unwrap();
    fs::write(deep.join("tree/marked"), "x\n").unwrap();
    for (name, mode) in [("", 0o2775), ("tree", 0o2775), ("tree/marked", 0o4755)] {
        fs::set_permissions(deep.join(name), Permissions::from_mode(mode)).unwrap();
    }
}

/// Commits nothing to a new repository of this name that people share, at this second.
fn committed(name: &str, second: u32) -> String {
    format!(
        "git init -q {name}; cd {name}; git config core.sharedRepository group; \
         export GIT_AUTHOR_DATE='{second} +0000' GIT_COMMITTER_DATE='{second} +0000'; \
         git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a"
    )
}

/// Whatever meets the refusal, a model reads why.
#[tokio::test]
async fn whoever_is_refused_such_a_mode_is_told_why() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        deep(&area);
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        let python = |deed: &str| format!("python3 -c 'import os, pathlib, shutil; {deed}'");
        for deed in [
            "git init -q --shared s",
            "git init -q --shared --bare s.git",
            // Its commit is not kept beside its tree, and needs a directory of its own.
            &committed("t", 1_700_000_000),
            // It is kept beside its tree, so what fails is the next thing that git does.
            &committed("u", 1_700_000_022),
            "cp -a tree a",
            "cp -p tree/marked b",
            "tar cf - tree | tar xpf - --transform=s/tree/c/",
            "install -m 2755 tree/marked d",
            "mkdir -m 2775 e",
            "chmod -R g+s tree/../f* tree; ls",
            &python("os.chmod(\"tree/marked\", 0o4755)"),
            &python("pathlib.Path(\"tree\").chmod(0o2775)"),
            &python("shutil.copy(\"tree/marked\", \"g\")"),
            &python("shutil.copy2(\"tree/marked\", \"h\")"),
            &python("shutil.copytree(\"tree\", \"i\")"),
        ] {
            let outcome = bash(&hands, &format!("cd sub/deep; umask 022; {deed}")).await;
            assert!(
                outcome.content.ends_with(HINT),
                "{by:?}, {deed}: {outcome:?}"
            );
        }
        hands.close().await;
    }
}

/// What people do every day in such a directory asks for no such mode.
#[tokio::test]
async fn where_a_group_is_handed_on_further_down_usual_commands_succeed() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        deep(&area);
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        for deed in [
            "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a",
            "git clone -q r c && git -C c log --format=%s",
            "git -C r gc -q && git -C r worktree add -q ../wt",
            "mkdir -p m/n && cp -r m o && mv o p",
            "tar cf t.tar m && mkdir x && tar xf t.tar -C x --no-same-permissions",
            "python3 -c 'import shutil; shutil.copy(\"r/.git/HEAD\", \"q\")'",
            "install -d z/y && install -m 755 r/.git/HEAD z",
        ] {
            let outcome = bash(&hands, &format!("cd sub/deep; umask 022; {deed}")).await;
            assert_eq!(outcome.status, Status::Ok, "{by:?}, {deed}: {outcome:?}");
            assert!(
                !outcome.content.contains("not permitted"),
                "{deed}: {outcome:?}"
            );
        }
        hands.close().await;
    }
}
