//! `Grep` and `Glob`.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::exchange::{Facts, Status};
use crate::id::{CallId, EntryId};
use crate::tools::scope::Site;
use crate::tools::walk::Watch;
use crate::tools::workspace::Workspace;
use crate::tools::{Outcome, glob, grep};

/// A workspace in a directory that holds other things as well.
struct Bench {
    place: TempDir,
    site: Site,
    cancel: CancellationToken,
    late: CancellationToken,
}

impl Bench {
    /// A workspace with these files.
    fn new(files: &[(&str, &str)]) -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("tree")).unwrap();
        fs::create_dir(place.path().join("outside")).unwrap();
        fs::write(place.path().join("outside/secret"), "secret\n").unwrap();
        let workspace = Workspace::open(&place.path().join("tree"), None, Vec::new()).unwrap();
        let site = Site {
            call: CallId::new(EntryId(41), 2),
            workspace: Arc::new(workspace),
            cwd: None,
            known: None,
            chars: 20_000,
        };
        let bench = Self {
            place,
            site,
            cancel: CancellationToken::new(),
            late: CancellationToken::new(),
        };
        for (name, text) in files {
            bench.put(name, text);
        }
        bench
    }

    fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.site.workspace.root().join(name)
    }

    fn put(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn call(&self, tool: fn(&Site, &str, &Watch) -> Outcome, arguments: &Value) -> Outcome {
        let watch = Watch::new(self.cancel.clone(), self.late.clone());
        let outcome = tool(&self.site, &arguments.to_string(), &watch);
        // To search is not to read: `Edit` still asks for a `Read`.
        assert_eq!(outcome.facts, Facts::default());
        assert!(outcome.content.chars().count() as u64 <= self.site.chars);
        outcome
    }

    /// What each call says, with the workspace's own path taken out.
    fn check(&self, tool: fn(&Site, &str, &Watch) -> Outcome, calls: &[Value]) -> String {
        let root = self.site.workspace.root().to_str().unwrap();
        let place = root.strip_suffix("/tree").unwrap();
        let said = calls.iter().map(|arguments| {
            let outcome = self.call(tool, arguments);
            let (status, content) = (outcome.status.word(), outcome.content);
            format!(
                "{arguments} {status}\n{}\n",
                content.replace(place, "").trim_end()
            )
        });
        said.collect::<String>().replace(place, "")
    }
}

#[test]
fn the_schemas_are_these() {
    let text = [grep::spec(), glob::spec()]
        .map(|spec| format!("{} {}", spec.name, spec.schema))
        .join("\n");
    insta::assert_snapshot!(text, @r#"
    Grep {"type":"object","properties":{"pattern":{"description":"The regular expression.","type":"string"},"path":{"description":"The file or directory to search (the working directory unless given).","type":["string","null"]},"glob":{"description":"Only files that match: `*.rs`, `*.{ts,tsx}`, or counted from `path`: `src/**/*.py`; all but those with `!`: `!*.lock`.","type":["string","null"]},"output":{"description":"What to show (`matches` unless given).","type":["string","null"],"enum":["matches","files","count",null]},"case_insensitive":{"description":"Do not tell upper from lower case.","type":["boolean","null"]},"context":{"description":"How many lines to show before and after each match.","type":["integer","null"],"minimum":0,"maximum":100},"multiline":{"description":"Let a match span lines; `.` then matches line breaks as well.","type":["boolean","null"]},"limit":{"description":"How many matching lines (or files) to show (200 unless given).","type":["integer","null"],"maximum":5000,"minimum":1}},"additionalProperties":false,"required":["pattern"]}
    Glob {"type":"object","properties":{"pattern":{"description":"The pattern: `*` within a name, `**` any directories, `?`, `[a-z]`, `{a,b}`.","type":"string"},"path":{"description":"The directory to look in (the working directory unless given).","type":["string","null"]}},"additionalProperties":false,"required":["pattern"]}
    "#);
}

/// A small project.
fn project() -> Bench {
    Bench::new(&[
        (".env", "TOTAL=1\n"),
        (".git/config", "total\n"),
        (".github/ci.yml", "run: total\n"),
        (".gitignore", "/target\n*.log\n"),
        ("README.md", "# Totals\n\nIt adds a total.\n"),
        ("src/deep/sum.rs", "fn total() {}\r\n// total of totals\r\n"),
        (
            "src/lib.rs",
            "mod deep;\n\nuse deep::total;\n\n\n\nfn other() {}\n",
        ),
        ("src/lib.log", "total\n"),
        ("target/total.d", "total\n"),
        ("target/x/total.log", "total\n"),
    ])
}

#[test]
fn lines_that_match_are_shown_with_their_place() {
    let bench = project();
    insta::assert_snapshot!(bench.check(grep::run, &[
        json!({"pattern": "total"}),
        json!({"pattern": "TOTAL", "case_insensitive": true, "path": "README.md"}),
        json!({"pattern": r"\(\) \{\}$", "path": "./src"}),
        json!({"pattern": "^(fn|use)", "context": 1, "glob": "*.rs"}),
        json!({"pattern": "^(mod|use)", "context": 1, "limit": 1}),
        json!({"pattern": "total", "output": "files"}),
        json!({"pattern": "total", "output": "count", "glob": "src/**"}),
        json!({"pattern": "total", "limit": 2}),
        json!({"pattern": "total", "output": "files", "limit": 1}),
        json!({"pattern": "total", "glob": "!*.{rs,yml}"}),
        json!({"pattern": "deep;.*other", "multiline": true}),
        json!({"pattern": "nowhere"}),
        json!({"pattern": "total", "glob": "*.zig"}),
        json!({"pattern": "-e", "path": "src"}),
    ]), @r#"
    {"pattern":"total"} ok
    .github/ci.yml:1: run: total
    README.md:3: It adds a total.
    src/deep/sum.rs:1: fn total() {}
    src/deep/sum.rs:2: // total of totals
    src/lib.rs:3: use deep::total;
    {"pattern":"TOTAL","case_insensitive":true,"path":"README.md"} ok
    README.md:1: # Totals
    README.md:3: It adds a total.
    {"pattern":"\\(\\) \\{\\}$","path":"./src"} ok
    src/deep/sum.rs:1: fn total() {}
    src/lib.rs:7: fn other() {}
    {"pattern":"^(fn|use)","context":1,"glob":"*.rs"} ok
    src/deep/sum.rs:1: fn total() {}
    src/deep/sum.rs-2- // total of totals
    --
    src/lib.rs-2- 
    src/lib.rs:3: use deep::total;
    src/lib.rs-4- 
    --
    src/lib.rs-6- 
    src/lib.rs:7: fn other() {}
    {"pattern":"^(mod|use)","context":1,"limit":1} ok
    src/lib.rs:1: mod deep;
    src/lib.rs-2- 
    [the first 1 of 2 matching lines, in 1 file; narrow pattern, path or glob, or set limit]
    {"pattern":"total","output":"files"} ok
    .github/ci.yml
    README.md
    src/deep/sum.rs
    src/lib.rs
    {"pattern":"total","output":"count","glob":"src/**"} ok
    src/deep/sum.rs: 2
    src/lib.rs: 1
    [3 matching lines in 2 files]
    {"pattern":"total","limit":2} ok
    .github/ci.yml:1: run: total
    README.md:3: It adds a total.
    [the first 2 of 5 matching lines, in 4 files; narrow pattern, path or glob, or set limit]
    {"pattern":"total","output":"files","limit":1} ok
    .github/ci.yml
    [the first 1 of 4 files; narrow pattern, path or glob, or set limit]
    {"pattern":"total","glob":"!*.{rs,yml}"} ok
    README.md:3: It adds a total.
    {"pattern":"deep;.*other","multiline":true} ok
    src/lib.rs:1: mod deep;
    src/lib.rs:2: 
    src/lib.rs:3: use deep::total;
    src/lib.rs:4: 
    src/lib.rs:5: 
    src/lib.rs:6: 
    src/lib.rs:7: fn other() {}
    {"pattern":"nowhere"} ok
    No match; 6 files searched.
    {"pattern":"total","glob":"*.zig"} ok
    No match; 0 files searched.
    {"pattern":"-e","path":"src"} ok
    No match; 2 files searched.
    "#);
}

#[test]
fn files_are_found_by_name() {
    let bench = project();
    insta::assert_snapshot!(bench.check(glob::run, &[
        json!({"pattern": "*"}),
        json!({"pattern": "*.rs"}),
        json!({"pattern": "./*.md"}),
        json!({"pattern": "src/*.rs"}),
        json!({"pattern": "src/**/*.rs"}),
        json!({"pattern": "**/*.rs", "path": "src/deep"}),
        json!({"pattern": "*.{md,yml}"}),
        json!({"pattern": "*/"}),
        json!({"pattern": "./*/"}),
        json!({"pattern": "*.zig"}),
        json!({"pattern": bench.at("src/*.rs").to_str().unwrap()}),
    ]), @r#"
    {"pattern":"*"} ok
    .env
    .github/ci.yml
    .gitignore
    README.md
    src/deep/sum.rs
    src/lib.rs
    {"pattern":"*.rs"} ok
    src/deep/sum.rs
    src/lib.rs
    {"pattern":"./*.md"} ok
    README.md
    {"pattern":"src/*.rs"} ok
    src/lib.rs
    {"pattern":"src/**/*.rs"} ok
    src/deep/sum.rs
    src/lib.rs
    {"pattern":"**/*.rs","path":"src/deep"} ok
    src/deep/sum.rs
    {"pattern":"*.{md,yml}"} ok
    .github/ci.yml
    README.md
    {"pattern":"*/"} ok
    .github/
    src/
    src/deep/
    {"pattern":"./*/"} ok
    .github/
    src/
    {"pattern":"*.zig"} ok
    Nothing matches `*.zig`; 6 files looked at.
    {"pattern":"/tree/src/*.rs"} ok
    src/lib.rs
    "#);
}

#[test]
fn what_gitignore_names_is_searched_only_if_a_path_leads_there() {
    let bench = Bench::new(&[
        (".gitignore", "\u{feff}/build\n*.log\n\n# a comment\n[\n"),
        ("build/out.txt", "x\n"),
        ("keep/.gitignore", "!kept.log\nsub/\n"),
        ("keep/kept.log", "x\n"),
        ("keep/lost.log", "x\n"),
        ("keep/sub/a", "x\n"),
        ("src/build/a", "x\n"),
        // Other programs' settings, and the user's, have no say.
        (".ignore", "*\n"),
        (".rgignore", "*\n"),
        (".git/info/exclude", "*\n"),
        ("outer/.git/HEAD", "x\n"),
        ("outer/a", "x\n"),
    ]);
    fs::write(bench.place.path().join(".gitignore"), "*\n").unwrap();
    fs::create_dir(bench.at("linked")).unwrap();
    bench.put("linked/a", "x\n");
    symlink(
        bench.place.path().join(".gitignore"),
        bench.at("linked/.gitignore"),
    )
    .unwrap();
    insta::assert_snapshot!(bench.check(grep::run, &[
        json!({"pattern": "x", "output": "files"}),
        json!({"pattern": "x", "output": "files", "path": "build"}),
        json!({"pattern": "x", "output": "files", "path": "keep"}),
        json!({"pattern": "x", "output": "files", "path": "keep/sub"}),
        json!({"pattern": "x", "output": "files", "path": "keep/lost.log"}),
    ]), @r#"
    {"pattern":"x","output":"files"} ok
    keep/kept.log
    linked/a
    outer/a
    src/build/a
    {"pattern":"x","output":"files","path":"build"} ok
    build/out.txt
    {"pattern":"x","output":"files","path":"keep"} ok
    keep/kept.log
    {"pattern":"x","output":"files","path":"keep/sub"} ok
    keep/sub/a
    {"pattern":"x","output":"files","path":"keep/lost.log"} ok
    keep/lost.log
    "#);
    insta::assert_snapshot!(bench.check(glob::run, &[
        json!({"pattern": "build/*"}),
        json!({"pattern": "*.log"}),
    ]), @r#"
    {"pattern":"build/*"} ok
    build/out.txt
    {"pattern":"*.log"} ok
    keep/kept.log
    "#);
}

#[test]
fn paths_lead_nowhere_but_below_the_roots() {
    let mut bench = project();
    symlink("../outside", bench.at("out")).unwrap();
    symlink("deep", bench.at("src/in")).unwrap();
    symlink(".", bench.at("src/loop")).unwrap();
    symlink("none", bench.at("dangling")).unwrap();
    let outside = bench.place.path().join("outside");
    let long = "a/".repeat(2048);
    let paths = [
        "out",
        "out/secret",
        "..",
        "",
        "none",
        "a\0b",
        "src/in",
        "dangling",
    ];
    let mut calls: Vec<_> = paths
        .iter()
        .map(|path| json!({"pattern": "total|secret", "path": path}))
        .collect();
    calls.push(json!({"pattern": "secret"}));
    calls.push(json!({"pattern": "secret", "path": outside.to_str().unwrap()}));
    insta::assert_snapshot!(bench.check(grep::run, &calls), @r#"
    {"pattern":"total|secret","path":"out"} denied
    `out`: outside the workspace `/tree`; file tools act only below it
    {"pattern":"total|secret","path":"out/secret"} denied
    `out/secret`: outside the workspace `/tree`; file tools act only below it
    {"pattern":"total|secret","path":".."} denied
    `..`: outside the workspace `/tree`; file tools act only below it
    {"pattern":"total|secret","path":""} error
    ``: not a usable path
    {"pattern":"total|secret","path":"none"} error
    `none`: there is no such file or directory
    {"pattern":"total|secret","path":"a\u0000b"} error
    `a\0b`: not a usable path
    {"pattern":"total|secret","path":"src/in"} ok
    src/deep/sum.rs:1: fn total() {}
    src/deep/sum.rs:2: // total of totals
    {"pattern":"total|secret","path":"dangling"} error
    `dangling`: there is no such file or directory
    {"pattern":"secret"} ok
    No match; 6 files searched.
    {"pattern":"secret","path":"/outside"} denied
    `/outside`: outside the workspace `/tree`; file tools act only below it
    "#);
    insta::assert_snapshot!(bench.check(glob::run, &[
        json!({"pattern": "../outside/*"}),
        json!({"pattern": "out/*"}),
        json!({"pattern": "/etc/*.conf"}),
        json!({"pattern": "*/../../outside/*"}),
        json!({"pattern": "none/*.rs"}),
        json!({"pattern": "*", "path": "README.md"}),
        json!({"pattern": "src/loop/src/loop/*.rs"}),
        json!({"pattern": "src/loop/loop/*.rs"}),
        json!({"pattern": "secret"}),
        json!({"pattern": "{loop,in,out}"}),
        json!({"pattern": ""}),
        json!({"pattern": "/"}),
    ]), @r#"
    {"pattern":"../outside/*"} denied
    `../outside/`: outside the workspace `/tree`; file tools act only below it
    {"pattern":"out/*"} denied
    `out/`: outside the workspace `/tree`; file tools act only below it
    {"pattern":"/etc/*.conf"} denied
    `/etc/`: outside the workspace `/tree`; file tools act only below it
    {"pattern":"*/../../outside/*"} error
    The pattern `*/../../outside/*` cannot be used: it holds `..`; name the directory as path instead.
    {"pattern":"none/*.rs"} error
    `none/`: there is no such file or directory
    {"pattern":"*","path":"README.md"} error
    `README.md/`: a file, not a directory to look in
    {"pattern":"src/loop/src/loop/*.rs"} error
    `src/loop/src/loop/`: there is no such file or directory
    {"pattern":"src/loop/loop/*.rs"} ok
    src/lib.rs
    {"pattern":"secret"} ok
    Nothing matches `secret`; 10 files looked at.
    {"pattern":"{loop,in,out}"} ok
    out
    src/in
    src/loop
    {"pattern":""} error
    The pattern `` cannot be used: it is empty.
    {"pattern":"/"} error
    The pattern `/` cannot be used: it is empty.
    "#);
    assert_eq!(
        bench
            .call(grep::run, &json!({"pattern": "x", "path": long}))
            .status,
        Status::Error
    );

    // Below another working directory, paths are such as file tools take there.
    bench.site.cwd = Some(bench.at("src").to_str().unwrap().to_owned());
    insta::assert_snapshot!(bench.check(grep::run, &[
        json!({"pattern": "total", "output": "files"}),
        json!({"pattern": "total", "output": "files", "path": ".."}),
    ]), @r#"
    {"pattern":"total","output":"files"} ok
    deep/sum.rs
    lib.rs
    {"pattern":"total","output":"files","path":".."} ok
    /tree/.github/ci.yml
    /tree/README.md
    deep/sum.rs
    lib.rs
    "#);
}

#[test]
fn a_pattern_that_cannot_be_used_is_told() {
    let bench = project();
    let long = "a".repeat(10_001);
    let mut said = bench.check(
        grep::run,
        &[
            json!({"pattern": "total("}),
            json!({"pattern": r"(?=total)"}),
            json!({"pattern": r"(a)\1"}),
            json!({"pattern": r"deep;\n"}),
            json!({"pattern": "((a{1000}){1000}){1000}"}),
            json!({"pattern": "a", "glob": "a["}),
            json!({"pattern": "a", "glob": "/src/*.rs"}),
            json!({"pattern": "a", "glob": "!../*"}),
        ],
    );
    writeln!(
        said,
        "{}",
        bench.call(grep::run, &json!({"pattern": long})).content
    )
    .unwrap();
    insta::assert_snapshot!(said, @r#"
    {"pattern":"total("} error
    The pattern cannot be used; escape what is meant as text.
    regex parse error:
        total(
             ^
    error: unclosed group
    {"pattern":"(?=total)"} error
    The pattern cannot be used; escape what is meant as text.
    regex parse error:
        (?=total)
        ^^^
    error: look-around, including look-ahead and look-behind, is not supported
    {"pattern":"(a)\\1"} error
    The pattern cannot be used; escape what is meant as text.
    regex parse error:
        (a)\1
           ^^
    error: backreferences are not supported
    {"pattern":"deep;\\n"} error
    The pattern holds a line break; set multiline to search across lines.
    {"pattern":"((a{1000}){1000}){1000}"} error
    The pattern cannot be used: compiled regex exceeds size limit of 10485760.
    {"pattern":"a","glob":"a["} error
    The glob `a[` cannot be used: unclosed character class; missing ']'.
    {"pattern":"a","glob":"/src/*.rs"} error
    The glob `/src/*.rs` cannot be used: it counts from path and cannot begin with a slash.
    {"pattern":"a","glob":"!../*"} error
    The glob `../*` cannot be used: it holds `..`; name the directory as path instead.
    The pattern is longer than 10,000 bytes.
    "#);
}

#[test]
fn a_pattern_that_explodes_elsewhere_is_quick() {
    let bench = Bench::new(&[("a", &format!("{}!\n", "a".repeat(100_000)))]);
    insta::assert_snapshot!(bench.check(grep::run, &[
        json!({"pattern": "^(a+)+$"}),
        json!({"pattern": "(a|a|aa)*b", "multiline": true}),
    ]), @r#"
    {"pattern":"^(a+)+$"} ok
    No match; 1 file searched.
    {"pattern":"(a|a|aa)*b","multiline":true} ok
    No match; 1 file searched.
    "#);
}

#[test]
fn whatever_a_tree_holds_is_shown_or_told() {
    let bench = Bench::new(&[
        ("a/utf-16", "\u{0}"),
        (
            "long",
            &format!("{}HERE{}\n", "ä".repeat(5000), "z".repeat(5000)),
        ),
        ("-dash", "HERE\n"),
    ]);
    bench.put("a/latin", b"caf\xe9 HERE\n");
    bench.put("a/binary", b"HERE\n\0\x01\n");
    // Behind the part of a file that is looked at first.
    let late = [&b"HERE\n".repeat(100_000)[..], b"\0"].concat();
    bench.put("a/late", late);
    bench.put("a/utf-16", b"\xff\xfeH\0E\0R\0E\0\n\0");
    bench.put("line\nbreak", "HERE\n");
    bench.put(OsStr::from_bytes(b"caf\xe9"), "HERE\n");
    bench.put("\u{1b}[31mred", "HERE\n");
    bench.put("huge", vec![b'x'; 17 << 20]);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        bench.at("pipe"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    insta::assert_snapshot!(bench.check(grep::run, &[
        json!({"pattern": "HERE"}),
        json!({"pattern": "HERE", "path": "a/binary"}),
        json!({"pattern": "HERE", "path": "pipe"}),
        json!({"pattern": "HERE", "glob": "huge", "multiline": true}),
    ]), @r#"
    {"pattern":"HERE"} ok
    \u{1b}[31mred:1: HERE
    -dash:1: HERE
    a/latin:1: caf� HERE
    a/utf-16:1: HERE
    caf�:1: HERE
    line\nbreak:1: HERE
    long:1: …ääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääHEREzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz…
    [2 binary files left out]
    [1 file too large to search left out; use Bash]
    {"pattern":"HERE","path":"a/binary"} ok
    No match; 0 files searched.
    [1 binary file left out]
    {"pattern":"HERE","path":"pipe"} error
    `pipe`: a FIFO, not a file
    {"pattern":"HERE","glob":"huge","multiline":true} ok
    No match; 0 files searched.
    [1 file too large to search left out; use Bash]
    "#);
    insta::assert_snapshot!(bench.check(glob::run, &[json!({"pattern": "*"})]), @r#"
    {"pattern":"*"} ok
    \u{1b}[31mred
    -dash
    a/binary
    a/late
    a/latin
    a/utf-16
    caf�
    huge
    line\nbreak
    long
    pipe
    "#);
}

#[test]
fn more_than_fits_is_counted() {
    let mut bench = Bench::new(&[]);
    for file in 0..600 {
        let lines = format!("a line with a hit {file}\n").repeat(3);
        bench.put(format!("dir/file-{file:03}"), lines);
    }
    let end = |outcome: &Outcome| {
        let lines: Vec<_> = outcome.content.lines().collect();
        format!("{} lines, {}\n", lines.len() - 1, lines.last().unwrap())
    };
    let calls = [
        json!({"pattern": "hit"}),
        json!({"pattern": "hit", "limit": 1000}),
        json!({"pattern": "hit", "limit": 4, "context": 2}),
        json!({"pattern": "hit", "output": "files", "limit": 500}),
        json!({"pattern": "hit", "output": "count", "limit": 500}),
    ];
    let mut said = String::new();
    for chars in [40_000, 2000] {
        bench.site.chars = chars;
        for call in &calls {
            said.push_str(&end(&bench.call(grep::run, call)));
        }
        said.push_str(&end(&bench.call(glob::run, &json!({"pattern": "file-*"}))));
    }
    insta::assert_snapshot!(said, @r#"
    200 lines, [the first 200 of 1,800 matching lines, in 600 files; narrow pattern, path or glob, or set limit]
    1000 lines, [the first 1,000 of 1,800 matching lines, in 600 files; narrow pattern, path or glob, or set limit]
    4 lines, [the first 4 of 1,800 matching lines, in 600 files; narrow pattern, path or glob, or set limit]
    500 lines, [the first 500 of 600 files; narrow pattern, path or glob, or set limit]
    501 lines, [1,800 matching lines in 600 files]
    500 lines, [the first 500 of 600 files; narrow pattern or path]
    38 lines, [the first 38 of 1,800 matching lines, in 600 files; narrow pattern, path or glob]
    38 lines, [the first 38 of 1,800 matching lines, in 600 files; narrow pattern, path or glob]
    4 lines, [the first 4 of 1,800 matching lines, in 600 files; narrow pattern, path or glob, or set limit]
    107 lines, [the first 107 of 600 files; narrow pattern, path or glob]
    88 lines, [1,800 matching lines in 600 files]
    114 lines, [the first 114 of 600 files; narrow pattern or path]
    "#);
}

#[test]
fn a_tree_may_be_too_deep() {
    let bench = Bench::new(&[]);
    bench.put(format!("{}a", "d/".repeat(63)), "x\n");
    bench.put(format!("{}b", "d/".repeat(64)), "x\n");
    let said = bench.check(grep::run, &[json!({"pattern": "x"})]);
    insta::assert_snapshot!(said.replace("d/d/d/d/d/d/d/d/d/", "9/"), @r#"
    {"pattern":"x"} ok
    9/9/9/9/9/9/9/a:1: x
    [1 directory more than 64 levels down left out; give one as path]
    "#);
}

#[test]
fn a_search_ends_when_it_is_told_to() {
    let bench = project();
    bench.late.cancel();
    let calls = [
        json!({"pattern": "total"}),
        json!({"pattern": "total", "path": "README.md"}),
    ];
    insta::assert_snapshot!(bench.check(grep::run, &calls), @r#"
    {"pattern":"total"} timeout
    [ended after 30 s before everything was searched; give a directory below as path]
    {"pattern":"total","path":"README.md"} timeout
    [ended after 30 s before everything was searched; give a directory below as path]
    "#);
    bench.cancel.cancel();
    insta::assert_snapshot!(bench.check(grep::run, &calls[..1]), @r#"
    {"pattern":"total"} cancelled
    [cancelled before everything was searched]
    "#);
    insta::assert_snapshot!(bench.check(glob::run, &[json!({"pattern": "*"})]), @r#"
    {"pattern":"*"} cancelled
    [cancelled before everything was searched]
    "#);
}

#[test]
fn a_directory_that_cannot_be_read_is_told() {
    let bench = project();
    fs::set_permissions(bench.at("src"), fs::Permissions::from_mode(0o0)).unwrap();
    fs::set_permissions(bench.at("README.md"), fs::Permissions::from_mode(0o0)).unwrap();
    let said = bench.check(grep::run, &[json!({"pattern": "total"})]);
    fs::set_permissions(bench.at("src"), fs::Permissions::from_mode(0o755)).unwrap();
    // Nothing is closed to root.
    if !rustix::process::geteuid().is_root() {
        insta::assert_snapshot!(said, @r#"
        {"pattern":"total"} ok
        .github/ci.yml:1: run: total
        [2 files or directories could not be read]
        "#);
    }
}
