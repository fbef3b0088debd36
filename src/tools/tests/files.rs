//! The file tools, each called as hands call it, in a temporary workspace.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;

use crate::exchange::Status;
use crate::id::{CallId, Digest, EntryId};
use crate::tools::scope::{self, Site};
use crate::tools::workspace::Workspace;
use crate::tools::{Outcome, bash, edit, read, write};

/// A workspace in a directory that holds other things as well.
pub(super) struct Bench {
    place: TempDir,
    site: Site,
}

impl Bench {
    pub(super) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("tree/sub")).unwrap();
        fs::write(place.path().join("secret"), "secret\n").unwrap();
        let workspace = Workspace::open(&place.path().join("tree"), None, Vec::new()).unwrap();
        let site = Site {
            call: CallId::new(EntryId(41), 2),
            workspace: Arc::new(workspace),
            cwd: None,
            known: None,
            chars: 20_000,
        };
        Self { place, site }
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.site.workspace.root().join(name)
    }

    /// Puts a file there and lets the model have seen it.
    pub(super) fn put(&mut self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.at(name), bytes.as_ref()).unwrap();
        self.site.known = Some(Digest::of(bytes.as_ref()));
    }

    fn read(&self, path: &str) -> Outcome {
        read::run(&self.site, &json!({"path": path}).to_string())
    }

    fn part(&self, path: &str, offset: u64, limit: u64) -> Outcome {
        let arguments = json!({"path": path, "offset": offset, "limit": limit});
        read::run(&self.site, &arguments.to_string())
    }

    pub(super) fn write(&self, path: &str, content: &str) -> Outcome {
        write::run(
            &self.site,
            &json!({"path": path, "content": content}).to_string(),
        )
    }

    pub(super) fn edit(&self, path: &str, edits: &[(&str, &str)]) -> Outcome {
        let edits: Vec<_> = edits
            .iter()
            .map(|(old, new)| json!({"old": old, "new": new}))
            .collect();
        edit::run(
            &self.site,
            &json!({"path": path, "edits": edits}).to_string(),
        )
    }

    /// What a call said, with the workspace's own path taken out.
    pub(super) fn said(&self, outcome: &Outcome) -> String {
        let root = self.site.workspace.root().to_str().unwrap();
        let place = root.strip_suffix("/tree").unwrap();
        format!(
            "{}: {}\n",
            outcome.status.word(),
            outcome.content.replace(place, "")
        )
    }

    /// What is in the directory, to see that nothing else was left there.
    fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(directory)).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn the_schemas_are_these() {
    let specs = [read::spec(), write::spec(), edit::spec(), bash::spec()];
    let text: String = specs
        .iter()
        .map(|spec| format!("{} {}", spec.name, spec.schema))
        .collect::<Vec<_>>()
        .join("\n");
    insta::assert_snapshot!(text, @r#"
    Read {"type":"object","properties":{"path":{"description":"The file, relative to the working directory or absolute.","type":"string"},"offset":{"description":"The first line to show, from 1.","type":["integer","null"],"minimum":1},"limit":{"description":"How many lines to show (2000 unless given).","type":["integer","null"],"minimum":1}},"additionalProperties":false,"required":["path"]}
    Write {"type":"object","properties":{"path":{"description":"The file, relative to the working directory or absolute.","type":"string"},"content":{"description":"Everything that is to stand in it.","type":"string"}},"additionalProperties":false,"required":["path","content"]}
    Edit {"type":"object","properties":{"path":{"description":"The file, relative to the working directory or absolute.","type":"string"},"edits":{"description":"The edits, made in order.","type":"array","items":{"description":"One edit.","type":"object","properties":{"old":{"description":"The text to replace, exactly as it is in the file.","type":"string","minLength":1},"new":{"description":"The text that takes its place.","type":"string"},"replace_all":{"description":"Replace it wherever it is, not only where it is unique.","type":["boolean","null"]}},"additionalProperties":false,"required":["old","new"]},"minItems":1}},"additionalProperties":false,"required":["path","edits"]}
    Bash {"type":"object","properties":{"command":{"description":"The command.","type":"string"},"timeout_ms":{"description":"After how many milliseconds it is ended (120000 unless given).","type":["integer","null"],"maximum":600000,"minimum":1},"background":{"description":"Let it run on after the call, as a job, without a limit unless one is given.","type":["boolean","null"]}},"additionalProperties":false,"required":["command"]}
    "#);
}

#[test]
fn a_file_is_read_by_numbered_lines() {
    let bench = Bench::new();
    let long = "ä".repeat(2010);
    fs::write(bench.at("a"), "one\r\ntwo\n\nfour").unwrap();
    fs::write(bench.at("long"), &long).unwrap();
    fs::write(bench.at("bytes"), b"caf\xe9\n").unwrap();
    fs::write(bench.at("empty"), "").unwrap();
    fs::write(bench.at("break"), "\n").unwrap();
    let outcomes = [
        bench.read("a"),
        bench.read("./sub/../a"),
        bench.part("a", 2, 2),
        bench.part("a", 4, 1),
        bench.part("a", 5, 1),
        bench.read("bytes"),
        bench.read("empty"),
        bench.read("break"),
    ];
    let text: String = outcomes.iter().map(|outcome| bench.said(outcome)).collect();
    insta::assert_snapshot!(text, @"
    ok:      1	one
         2	two
         3	
         4	four

    ok:      1	one
         2	two
         3	
         4	four

    ok:      2	two
         3	
    [lines 2–3 of 4; go on with offset 4]
    ok:      4	four

    error: `a`: has 4 lines; there is no line 5
    ok:      1	caf�

    ok: [an empty file]
    ok:      1
    ");

    let facts: Vec<_> = outcomes
        .iter()
        .flat_map(|outcome| &outcome.facts.read)
        .collect();
    assert!(facts[..4].iter().all(|read| read.path == "a"));
    assert!(
        facts[..4]
            .iter()
            .all(|read| read.sha256 == Digest::of(b"one\r\ntwo\n\nfour"))
    );
    let lines: Vec<_> = facts.iter().map(|read| read.lines).collect();
    let first = Some([1, 1]);
    assert_eq!(
        lines,
        [
            Some([1, 4]),
            Some([1, 4]),
            Some([2, 3]),
            Some([4, 4]),
            first,
            None,
            first
        ]
    );
    assert_eq!(
        bench.read("long").content,
        format!("     1\t{}[… 10 more characters]\n", "ä".repeat(2000))
    );
}

#[test]
fn a_long_file_is_read_in_pieces() {
    let mut bench = Bench::new();
    let lines: String = (1..=5310).fold(String::new(), |mut text, line| {
        writeln!(text, "line {line}").unwrap();
        text
    });
    fs::write(bench.at("long"), lines).unwrap();
    bench.site.chars = 200_000;
    let outcome = bench.read("long");
    assert!(
        outcome
            .content
            .starts_with("     1\tline 1\n     2\tline 2\n")
    );
    assert!(
        outcome
            .content
            .ends_with("\n  2000\tline 2000\n[lines 1–2000 of 5310; go on with offset 2001]")
    );
    assert!(
        bench
            .part("long", 5310, 9)
            .content
            .ends_with("  5310\tline 5310\n")
    );

    // What is shown fits, and says where to go on.
    bench.site.chars = 1000;
    let outcome = bench.part("long", 100, 3000);
    assert!(outcome.content.chars().count() <= 1000);
    assert_eq!(outcome.facts.read[0].lines, Some([100, 155]));
    assert!(
        outcome
            .content
            .ends_with("\n   155\tline 155\n[lines 100–155 of 5310; go on with offset 156]")
    );
}

#[test]
fn what_is_no_text_file_is_not_read() {
    let bench = Bench::new();
    let make = |name: &str| {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, bench.at(name), kind, mode, 0).unwrap();
    };
    make("fifo");
    drop(std::os::unix::net::UnixListener::bind(bench.at("socket")).unwrap());
    fs::write(bench.at("binary"), b"ELF\0").unwrap();
    fs::write(bench.at("sub/b\nc"), "").unwrap();
    fs::create_dir(bench.at("sub/deep")).unwrap();
    symlink("loop", bench.at("loop")).unwrap();
    symlink("none", bench.at("dangling")).unwrap();
    fs::File::create(bench.at("huge"))
        .unwrap()
        .set_len((64 << 20) + 1)
        .unwrap();
    let long = "x".repeat(5000);
    let paths = [
        "none", "binary/x", "sub", "binary", "fifo", "socket", "loop", "dangling", "huge", "",
        "a\0b", &long,
    ];
    let text: String = paths
        .iter()
        .map(|path| bench.said(&bench.read(path)))
        .collect();
    insta::assert_snapshot!(text.replace(&"x".repeat(300), "x…"), @r#"
    error: `none`: there is no such file
    error: `binary/x`: a part of the path is no directory
    error: `sub`: a directory, not a file. Read one of the files in it:
    b\nc
    deep/
    error: `binary`: a binary file of 4 bytes; use Bash
    error: `fifo`: a FIFO, not a file
    error: `socket`: a socket, not a file
    error: `loop`: filesystem loop or indirection limit (e.g. symlink loop)
    error: `dangling`: there is no such file
    error: `huge`: larger than 67,108,864 bytes, which is more than file tools take; use Bash
    error: ``: not a usable path
    error: `a\0b`: not a usable path
    error: `x…`: invalid filename
    "#);
    // Nor is any of it written to, or waited for.
    let text: String = ["fifo", "socket", "dangling", "sub", "binary/x"]
        .iter()
        .map(|path| bench.said(&bench.write(path, "")))
        .collect();
    insta::assert_snapshot!(text, @"
    error: `fifo`: a FIFO, not a file
    error: `socket`: a socket, not a file
    error: `dangling`: a symbolic link to nothing, not a file
    error: `sub`: a directory, not a file
    error: `binary/x`: a part of the path is no directory
    ");
}

#[test]
fn a_file_is_written_whole_if_it_is_as_the_model_knows_it() {
    let mut bench = Bench::new();
    let outcome = bench.write("new/deep/a", "one\ntwo");
    insta::assert_snapshot!(bench.said(&outcome), @"ok: Created `new/deep/a` (2 lines).");
    assert_eq!(outcome.facts.wrote[0].path, "new/deep/a");
    assert_eq!(outcome.facts.wrote[0].sha256, Digest::of(b"one\ntwo"));
    assert_eq!(fs::read(bench.at("new/deep/a")).unwrap(), b"one\ntwo");
    assert_eq!(bench.names("new/deep"), ["a"]);

    // Never read; changed since; as it was.
    fs::write(bench.at("b"), "old").unwrap();
    fs::set_permissions(bench.at("b"), fs::Permissions::from_mode(0o6751)).unwrap();
    let mut text = bench.said(&bench.write("b", "new"));
    bench.site.known = Some(Digest::of(b"older"));
    text += &bench.said(&bench.write("b", "new"));
    assert_eq!(fs::read(bench.at("b")).unwrap(), b"old");
    bench.site.known = Some(Digest::of(b"old"));
    text += &bench.said(&bench.write("b", "new\n"));
    insta::assert_snapshot!(text, @"
    error: `b`: not written, it exists and you have not read it. Read it first.
    error: `b`: not written, it changed since you last read it. Read it first.
    ok: Replaced `b` (1 line).
    ");
    assert_eq!(fs::read(bench.at("b")).unwrap(), b"new\n");
    // As whatever is written into, it gives nobody its owner's rights any more.
    assert_eq!(fs::metadata(bench.at("b")).unwrap().mode() & 0o7777, 0o751);

    // Another name of the file keeps what it had.
    bench.put("c", "old");
    fs::hard_link(bench.at("c"), bench.outside("linked")).unwrap();
    assert_eq!(bench.write("c", "new").status, Status::Ok);
    assert_eq!(fs::read(bench.outside("linked")).unwrap(), b"old");

    bench.put("d", "old");
    fs::set_permissions(bench.at("d"), fs::Permissions::from_mode(0o444)).unwrap();
    insta::assert_snapshot!(bench.said(&bench.write("d", "new")), @"error: `d`: read-only; if it is to change, make it writable first: chmod u+w in Bash");
    assert_eq!(bench.names("."), ["b", "c", "d", "new", "sub"]);
}

#[test]
fn an_edit_changes_exact_text_and_nothing_else() {
    for (old, edits, new) in [
        ("a b\n", &[("b", "c")][..], "a c\n"),
        // In order, each on what the one before left.
        ("a b\n", &[("b", "c"), ("a c", "d")], "d\n"),
        // Line ends of the file.
        (
            "a\r\nb\r\nc\r\n",
            &[("a\nb", "x\ny\nz")],
            "x\r\ny\r\nz\r\nc\r\n",
        ),
        ("a\r\nb\r\n", &[("b", "b\nc")], "a\r\nb\r\nc\r\n"),
        ("a\r\nb\r\n", &[("a\r\nb", "a\r\nc")], "a\r\nc\r\n"),
        ("a\nb\n", &[("a\r\nb", "a\nc")], "a\nc\n"),
        ("a\nb\r\nc\n", &[("c", "d\ne")], "a\nb\r\nd\ne\n"),
        ("a\r\nb\nc\n", &[("a\r\nb\nc", "d")], "d\n"),
        // No final line end.
        ("a\nb", &[("b", "c")], "a\nc"),
        ("a", &[("a", "")], ""),
        ("ä€😀", &[("€", "$")], "ä$😀"),
    ] {
        let mut bench = Bench::new();
        bench.put("a", old);
        let outcome = bench.edit("a", edits);
        assert_eq!(outcome.status, Status::Ok, "{old:?}: {outcome:?}");
        assert_eq!(fs::read_to_string(bench.at("a")).unwrap(), new, "{old:?}");
        assert_eq!(outcome.facts.wrote[0].sha256, Digest::of(new.as_bytes()));
        assert_eq!(bench.names("."), ["a", "sub"]);
    }
    // Not UTF-8: the other bytes stay.
    let mut bench = Bench::new();
    bench.put("a", b"caf\xe9 \xff\xfe a b\xe2\x82\n");
    assert_eq!(bench.edit("a", &[("a b", "\u{e9}")]).status, Status::Ok);
    assert_eq!(
        fs::read(bench.at("a")).unwrap(),
        b"caf\xe9 \xff\xfe \xc3\xa9\xe2\x82\n"
    );
    // Another name of the file keeps what it had; what is read-only stays as it is.
    fs::hard_link(bench.at("a"), bench.outside("linked")).unwrap();
    let before = fs::read(bench.outside("linked")).unwrap();
    bench.site.known = None;
    assert_eq!(bench.edit("a", &[("caf", "tea")]).status, Status::Ok);
    assert_eq!(fs::read(bench.outside("linked")).unwrap(), before);
    assert!(fs::read(bench.at("a")).unwrap().starts_with(b"tea"));
    assert_eq!(fs::metadata(bench.at("a")).unwrap().nlink(), 1);
    bench.put("d", "old");
    fs::set_permissions(bench.at("d"), fs::Permissions::from_mode(0o444)).unwrap();
    insta::assert_snapshot!(bench.said(&bench.edit("d", &[("old", "new")])), @"error: `d`: read-only; if it is to change, make it writable first: chmod u+w in Bash");
    assert_eq!(fs::read(bench.at("d")).unwrap(), b"old");
    assert_eq!(bench.names("."), ["a", "d", "sub"]);
    // The model need not have read it.
    fs::write(bench.at("a"), "one one\n").unwrap();
    bench.site.known = None;
    let edits = json!([{"old": "one", "new": "two", "replace_all": true}]);
    let outcome = edit::run(
        &bench.site,
        &json!({"path": "a", "edits": edits}).to_string(),
    );
    assert_eq!(fs::read(bench.at("a")).unwrap(), b"two two\n");
    insta::assert_snapshot!(bench.said(&outcome), @"
    ok: Edited `a`.
    @@ -1 +1 @@
    -one one
    +two two
    ");
}

#[test]
fn an_edit_that_is_not_clear_changes_nothing() {
    let mut bench = Bench::new();
    let text = "fn one() {\n    let x = 1;\n    call(x);\n}\n\nfn two() {\n    let x = 1;\n}\n";
    bench.put("a", text);
    let mut said = String::new();
    for edits in [
        &[("let x = 1;", "let x = 2;")][..],
        &[("fn one", "fn three"), ("none of it", "x")],
        &[("let x = 1;\n  call(x);", "")],
        &[("fn tow() {", "fn four() {")],
        &[("#!", "")],
        &[("", "x")],
        &[("one", "one")],
        &[("one", "three"), ("three", "one")],
    ] {
        said += &bench.said(&bench.edit("a", edits));
    }
    bench.site.known = Some(Digest::of(b"other"));
    said += &bench.said(&bench.edit("a", &[("one", "three")]));
    said += &bench.said(&bench.edit("none", &[("one", "three")]));
    insta::assert_snapshot!(said, @"
    error: `a`: not changed, `old` is found 2 times, on lines 2, 7. Add lines around it until it is unique, or set replace_all.
    error: `a`: not changed, edit 2 of 2: `old` is not in the file.
    error: `a`: not changed, `old` is not in the file. The nearest text, lines 2–3:
        let x = 1;
        call(x);
    error: `a`: not changed, `old` is not in the file. The nearest text, line 6:
    fn two() {
    error: `a`: not changed, `old` is not in the file.
    error: `a`: not changed, `old` is empty. To write a whole file use Write.
    error: `a`: not changed, `old` and `new` are the same.
    error: `a`: not changed, the edits leave everything as it is.
    error: `a`: not changed, it changed since you last read it. Read it again.
    error: `none`: there is no such file
    ");
    assert_eq!(fs::read_to_string(bench.at("a")).unwrap(), text);
}

#[test]
fn nothing_leads_out_of_the_workspace() {
    let mut bench = Bench::new();
    let secret = bench.outside("secret");
    symlink(&secret, bench.at("end")).unwrap();
    symlink("../../secret", bench.at("sub/relative")).unwrap();
    symlink(bench.place.path(), bench.at("middle")).unwrap();
    symlink("/proc/self/root", bench.at("root")).unwrap();
    symlink(bench.outside("new"), bench.at("made")).unwrap();
    fs::create_dir(bench.outside("tree-not")).unwrap();
    fs::write(bench.outside("tree-not/secret"), "secret\n").unwrap();
    bench.site.known = Some(Digest::of(b"secret\n"));

    let absolute = secret.to_str().unwrap().to_owned();
    let through_root = format!("root{absolute}");
    let work = bench
        .outside("tree-not/secret")
        .to_str()
        .unwrap()
        .to_owned();
    for path in [
        "../secret",
        "sub/../../secret",
        "sub/../../tree/../secret",
        "end",
        "sub/relative",
        "middle/secret",
        "middle/tree/../secret",
        &absolute,
        &through_root,
        &work,
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/self/cwd/none",
        "/dev/zero",
        "../none",
        "middle/new/none",
    ] {
        // Normal by its text, `middle/tree/../secret` is `middle/secret`.
        for outcome in [
            bench.read(path),
            bench.write(path, "mine"),
            bench.edit(path, &[("secret", "mine")]),
        ] {
            assert_eq!(outcome.status, Status::Denied, "{path}: {outcome:?}");
            assert!(outcome.facts.is_empty(), "{path}");
        }
    }
    // A link to nothing is not followed to make something.
    assert_eq!(bench.write("made", "mine").status, Status::Error);
    assert_eq!(bench.write("made/sub/a", "mine").status, Status::Error);
    assert_eq!(fs::read(&secret).unwrap(), b"secret\n");
    let mut names: Vec<_> = fs::read_dir(bench.place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["secret", "tree", "tree-not"]);
    insta::assert_snapshot!(bench.said(&bench.read("../secret")), @"denied: `../secret`: outside the workspace `/tree`; file tools act only below it");

    // Links that stay inside are fine, and a file keeps its place when one is written through.
    bench.put("sub/real", "a");
    symlink("sub/real", bench.at("link")).unwrap();
    symlink(bench.at("sub"), bench.at("directory")).unwrap();
    assert_eq!(bench.write("link", "b").status, Status::Ok);
    assert_eq!(fs::read(bench.at("sub/real")).unwrap(), b"b");
    assert!(bench.at("link").is_symlink());
    assert_eq!(bench.read("directory/real").content, "     1\tb\n");
    assert_eq!(bench.write("directory/new", "c").status, Status::Ok);
    assert_eq!(fs::read(bench.at("sub/new")).unwrap(), b"c");
}

#[test]
fn a_name_is_found_by_text_alone() {
    let root = Path::new("/w");
    for (cwd, path, expected) in [
        (None, "a/./b//c", "a/b/c"),
        (None, "/w/a", "a"),
        (None, "/x/a", "/x/a"),
        (None, "../x", "/x"),
        (None, "../../../x", "/x"),
        (None, ".", "."),
        (Some("/w/sub"), "a", "sub/a"),
        (Some("/w/sub"), "../a", "a"),
        (Some("/w/sub"), "/w/a", "a"),
        // Not below the root any more: relative paths count from the root.
        (Some("/old/sub"), "a", "a"),
        (Some("sub"), "a", "a"),
    ] {
        assert_eq!(scope::name(root, cwd, path), expected, "{cwd:?} {path}");
    }
    let mut bench = Bench::new();
    fs::write(bench.at("sub/a"), "x").unwrap();
    bench.site.cwd = Some(bench.at("sub").to_str().unwrap().to_owned());
    assert_eq!(bench.read("a").facts.read[0].path, "sub/a");
}
