//! Searches that lead elsewhere, cannot be done, or have no end.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::json;

use super::{Bench, project};
use crate::exchange::Status;
use crate::tools::{Outcome, glob, grep};

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
