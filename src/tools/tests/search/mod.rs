//! `Grep` and `Glob`.

mod hostile;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::exchange::Facts;
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
