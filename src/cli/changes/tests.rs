//! Patches that git itself takes.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::Command;

use undertext::hands::{LARGEST_HELD, Workspace};

use super::*;

/// Writes files below a directory.
fn write(root: &Path, files: &[(&str, &[u8])]) {
    for (name, bytes) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Hands in this process.
fn hands(root: &Path) -> Hands {
    Hands::in_process(Workspace::open(root, None, Vec::new()).unwrap())
}

async fn take(root: &Path, left_out: Vec<PathBuf>) -> (Hands, Before) {
    let hands = hands(root);
    let before = Before::take(&hands, hands.root(), left_out).await.unwrap();
    (hands, before)
}

/// Every file below a directory with its mode and bytes, `.git` left out.
async fn tree(root: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let hands = hands(root);
    let paths = hands.files(root).await.unwrap();
    let mut files = Vec::new();
    let keep = |path: &Path, held| {
        let Held::File(file) = held else {
            return Ok::<_, LookError>(());
        };
        files.push((path.to_owned(), file.mode, file.text.unwrap_or_default()));
        Ok(())
    };
    hands.contents(&paths, keep).await.unwrap();
    files.sort();
    files
}

#[expect(clippy::disallowed_methods, reason = "the patch is for git to take")]
fn apply(root: &Path, patch: &[u8], more: &[&str]) {
    fs::write(root.with_extension("patch"), patch).unwrap();
    let mut command = Command::new("git");
    command.current_dir(root).arg("apply").args(more);
    let output = command.arg(root.with_extension("patch")).output().unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(patch)
    );
}

/// Lays out the files twice, changes one of the two, and lets git make the other one equal, then
/// undo that. The patch is returned.
async fn check(files: &[(&str, &[u8])], change: impl Fn(&Path)) -> Changes {
    let place = tempfile::tempdir().unwrap();
    let (ours, gits) = (place.path().join("ours"), place.path().join("gits"));
    for root in [&ours, &gits] {
        fs::create_dir(root).unwrap();
        write(root, files);
    }
    let original = tree(&gits).await;
    let (hands, before) = take(&ours, Vec::new()).await;
    change(&ours);
    let changes = before.changes(&hands).await.unwrap();
    if changes.named == 0 {
        apply(&gits, &changes.patch, &[]);
        assert_eq!(tree(&gits).await, tree(&ours).await);
        apply(&gits, &changes.patch, &["--reverse"]);
        assert_eq!(tree(&gits).await, original);
    }
    changes
}

fn every_kind_of_change(root: &Path, many: &str) {
    fs::remove_file(root.join("gone.txt")).unwrap();
    let text = many
        .replace("line 2\n", "")
        .replace("line 30\n", "line thirty\n");
    fs::write(root.join("many.txt"), text).unwrap();
    fs::write(root.join("open end.txt"), "a\nb\n").unwrap();
    fs::set_permissions(root.join("run.sh"), Permissions::from_mode(0o755)).unwrap();
    fs::write(root.join("latin.txt"), b"th\xe9\n").unwrap();
    fs::remove_file(root.join("kind")).unwrap();
    symlink("same", root.join("kind")).unwrap();
    let new: &[(&str, &[u8])] = &[
        ("new/in a/directory.txt", b"new\nopen"),
        ("empty", b""),
        ("q\"u\\o\tte", b"x\n"),
        ("f\u{fc}r", b"x\n"),
    ];
    write(root, new);
}

#[tokio::test]
async fn git_takes_the_patch() {
    let many: Vec<String> = (1..=40).map(|n| format!("line {n}\n")).collect();
    let many = many.concat();
    let files: &[(&str, &[u8])] = &[
        ("gone.txt", b"one\ntwo\n"),
        ("many.txt", many.as_bytes()),
        ("open end.txt", b"a\nb"),
        ("run.sh", b"echo\n"),
        ("latin.txt", b"caf\xe9\n"),
        ("kind", b"a file\n"),
        ("same", b"same\n"),
    ];
    let changes = check(files, |root| every_kind_of_change(root, &many)).await;
    assert_eq!((changes.files, changes.named), (10, 0));
    insta::assert_snapshot!(String::from_utf8_lossy(&changes.patch), @r#"
    diff --git a/empty b/empty
    new file mode 100644
    diff --git a/für b/für
    new file mode 100644
    --- /dev/null
    +++ b/für
    @@ -0,0 +1 @@
    +x
    diff --git a/gone.txt b/gone.txt
    deleted file mode 100644
    --- a/gone.txt
    +++ /dev/null
    @@ -1,2 +0,0 @@
    -one
    -two
    diff --git a/kind b/kind
    deleted file mode 100644
    --- a/kind
    +++ /dev/null
    @@ -1 +0,0 @@
    -a file
    diff --git a/kind b/kind
    new file mode 120000
    --- /dev/null
    +++ b/kind
    @@ -0,0 +1 @@
    +same
    \ No newline at end of file
    diff --git a/latin.txt b/latin.txt
    --- a/latin.txt
    +++ b/latin.txt
    @@ -1 +1 @@
    -caf�
    +th�
    diff --git a/many.txt b/many.txt
    --- a/many.txt
    +++ b/many.txt
    @@ -1,5 +1,4 @@
     line 1
    -line 2
     line 3
     line 4
     line 5
    @@ -27,7 +26,7 @@
     line 27
     line 28
     line 29
    -line 30
    +line thirty
     line 31
     line 32
     line 33
    diff --git a/new/in a/directory.txt b/new/in a/directory.txt
    new file mode 100644
    --- /dev/null
    +++ b/new/in a/directory.txt	
    @@ -0,0 +1,2 @@
    +new
    +open
    \ No newline at end of file
    diff --git a/open end.txt b/open end.txt
    --- a/open end.txt	
    +++ b/open end.txt	
    @@ -1,2 +1,2 @@
     a
    -b
    \ No newline at end of file
    +b
    diff --git "a/q\"u\\o\011te" "b/q\"u\\o\011te"
    new file mode 100644
    --- /dev/null
    +++ "b/q\"u\\o\011te"
    @@ -0,0 +1 @@
    +x
    diff --git a/run.sh b/run.sh
    old mode 100644
    new mode 100755
    "#);
}

#[tokio::test]
async fn what_is_no_text_is_named_and_the_rest_still_taken() {
    let large = "x\n".repeat(LARGEST_HELD / 2 + 1);
    let files: &[(&str, &[u8])] = &[
        ("a.bin", b"\0one"),
        ("large", large.as_bytes()),
        ("run.bin", b"\0same"),
        ("text", b"a\n"),
    ];
    let change = |root: &Path| {
        write(
            root,
            &[("a.bin", b"\0two"), ("new.bin", b"\0"), ("text", b"b\n")],
        );
        fs::write(root.join("large"), format!("{large}x\n")).unwrap();
        fs::set_permissions(root.join("run.bin"), Permissions::from_mode(0o755)).unwrap();
    };
    let changes = check(files, change).await;
    assert_eq!((changes.files, changes.named), (2, 3));
    insta::assert_snapshot!(String::from_utf8_lossy(&changes.patch), @"
    Binary files a/a.bin and b/a.bin differ
    Binary files a/large and b/large differ
    Binary files /dev/null and b/new.bin differ
    diff --git a/run.bin b/run.bin
    old mode 100644
    new mode 100755
    diff --git a/text b/text
    --- a/text
    +++ b/text
    @@ -1 +1 @@
    -a
    +b
    ");
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("w");
    write(&root, files);
    apply(&root, &changes.patch, &[]);
    assert_eq!(fs::read(root.join("text")).unwrap(), b"b\n");
    assert_eq!(
        fs::metadata(root.join("run.bin")).unwrap().mode() & 0o777,
        0o755
    );
}

#[tokio::test]
async fn what_a_repository_ignores_is_left_out_also_when_it_is_ignored_late() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    let files: &[(&str, &[u8])] = &[
        (".git/HEAD", b"ref: refs/heads/main\n"),
        (".gitignore", b"target/\n"),
        ("target/out", b"1\n"),
        ("notes", b"1\n"),
        ("ours/log", b"1\n"),
    ];
    write(root, files);
    let (hands, before) = take(root, vec![root.join("ours")]).await;
    let later: &[(&str, &[u8])] = &[
        (".git/HEAD", b"later"),
        (".gitignore", b"target/\nnotes\n"),
        ("target/out", b"2\n"),
        ("notes", b"2\n"),
        ("ours/log", b"2\n"),
    ];
    write(root, later);
    let changes = before.changes(&hands).await.unwrap();
    let patch = String::from_utf8(changes.patch).unwrap();
    let names: Vec<&str> = patch
        .lines()
        .filter(|line| line.starts_with("diff"))
        .collect();
    assert_eq!(
        names,
        [
            "diff --git a/.gitignore b/.gitignore",
            "diff --git a/notes b/notes"
        ]
    );
    write(root, files);
    assert_eq!(before.changes(&hands).await.unwrap().patch, b"");
}

/// A directory that gave way to a link is gone, with all that was in it: what the link leads to stays
/// out of the patch. What a repository excludes counts in a workspace below its root as well.
#[tokio::test]
async fn nothing_outside_comes_into_a_patch() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let root = place.join("project/w");
    let files: &[(&str, &[u8])] = &[("keys/id", b"mine\n"), ("out/x", b"1\n"), ("log", b"1\n")];
    write(&root, files);
    write(
        &place,
        &[
            ("secret/id", b"SECRET\n"),
            ("project/.gitignore", b"out/\n"),
        ],
    );
    write(&place, &[("project/.git/info/exclude", b"log\n")]);
    let hands = hands(&root);
    let project = place.join("project");
    let before = Before::take(&hands, &project, Vec::new()).await.unwrap();
    fs::rename(root.join("keys"), root.join("out/keys")).unwrap();
    symlink(place.join("secret"), root.join("keys")).unwrap();
    write(&root, &[("out/x", b"2\n"), ("log", b"2\n")]);
    let changes = before.changes(&hands).await.unwrap();
    let patch = String::from_utf8(changes.patch).unwrap();
    insta::assert_snapshot!(patch.replace(place.to_str().unwrap(), "/PLACE"), @r"
    diff --git a/keys b/keys
    new file mode 120000
    --- /dev/null
    +++ b/keys
    @@ -0,0 +1 @@
    +/PLACE/secret
    \ No newline at end of file
    diff --git a/keys/id b/keys/id
    deleted file mode 100644
    --- a/keys/id
    +++ /dev/null
    @@ -1 +0,0 @@
    -mine
    ");
}
