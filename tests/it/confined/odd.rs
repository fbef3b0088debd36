//! What is odd about files: directories without end, paths that are too long, names that are no text.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use serde_json::json;

use undertext::exchange::Status;
use undertext::hands::Hands;
use undertext::tools::Outcome;

use super::{Area, By, number, order};

async fn call(hands: &Hands, tool: &str, path: &str) -> Outcome {
    let arguments = match tool {
        "Read" => json!({ "path": path }),
        "Glob" => json!({ "pattern": format!("{path}/*") }),
        "Grep" => json!({ "pattern": "x", "path": path }),
        _ => json!({ "path": path, "content": "x" }),
    };
    hands.run(order(tool, &arguments)).await
}

/// However many entries a directory has, a look at it is short, and says that there are more.
#[tokio::test]
async fn a_directory_without_end_is_told_in_part() {
    let entries = number("UNDERTEXT_ENTRIES", 12_000);
    let area = Area::new();
    fs::create_dir(area.path("w/many")).unwrap();
    for entry in 0..entries {
        fs::File::create(area.path("w/many").join(entry.to_string())).unwrap();
    }
    for by in [By::Nothing, By::Namespaces, By::Landlock] {
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        let read = call(&hands, "Read", "many").await;
        assert_eq!(read.status, Status::Error);
        let (begin, end) = (
            "`many`: a directory, not a file. ",
            "[… and more: at least 9,",
        );
        assert!(read.content.starts_with(begin), "{by:?}: {read:?}");
        assert!(read.content.contains(end), "{by:?}: {read:?}");
        assert!(read.content.len() < 2_000, "{by:?}: {read:?}");
        for tool in ["Glob", "Grep"] {
            let found = call(&hands, tool, "many").await;
            let answered = [Status::Ok, Status::Timeout];
            assert!(answered.contains(&found.status), "{by:?}: {found:?}");
            assert!(found.content.chars().count() <= 60_000, "{by:?}, {tool}");
        }
        let written = call(&hands, "Write", "many/new").await;
        assert_eq!(written.status, Status::Ok, "{by:?}: {written:?}");
        fs::remove_file(area.path("w/many/new")).unwrap();
        hands.close().await;
    }
}

/// What no file can be called, or what leads nowhere, is said in a line.
#[tokio::test]
async fn paths_that_lead_nowhere_are_told() {
    let area = Area::new();
    symlink("loop", area.path("w/loop")).unwrap();
    fs::write(area.path("w/sub/line\nbreak"), "one\n").unwrap();
    let no_text = area.path("w/sub").join(OsStr::from_bytes(b"caf\xe9"));
    fs::write(no_text, "two\n").unwrap();
    // As long as a path may be with its end, one more, and one whose last name is too long.
    let longest = format!("{}a", "a/".repeat(2047));
    let longer = format!("{}ab", "a/".repeat(2048));
    let name = format!("sub/{}", "a".repeat(256));
    let mut ways = Vec::new();
    for by in [By::Nothing, By::Namespaces, By::Landlock] {
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        let mut told = String::new();
        for (tool, path) in [
            ("Read", "loop"),
            ("Read", "loop/x"),
            ("Write", "loop"),
            ("Read", &longest),
            ("Read", &longer),
            ("Write", &longer),
            ("Read", &name),
            ("Write", &name),
            ("Read", "sub/line\nbreak"),
            ("Read", "sub"),
        ] {
            let outcome = call(&hands, tool, path).await;
            let shown = path.get(..20).unwrap_or(path).escape_debug();
            let (_, said) = outcome.content.split_once("`: ").unwrap_or_default();
            let said = if said.is_empty() {
                &outcome.content
            } else {
                said
            };
            writeln!(
                told,
                "{tool} {shown}: {}: {}",
                outcome.status.word(),
                said.trim()
            )
            .unwrap();
        }
        hands.close().await;
        ways.push(told);
    }
    // The same whoever holds the hands.
    ways.dedup();
    let [told] = &ways[..] else {
        panic!("{ways:?}");
    };
    insta::assert_snapshot!(told, @"
        Read loop: error: filesystem loop or indirection limit (e.g. symlink loop)
        Read loop/x: error: filesystem loop or indirection limit (e.g. symlink loop)
        Write loop: error: filesystem loop or indirection limit (e.g. symlink loop)
        Read a/a/a/a/a/a/a/a/a/a/: error: invalid filename
        Read a/a/a/a/a/a/a/a/a/a/: error: invalid filename
        Write a/a/a/a/a/a/a/a/a/a/: error: invalid filename
        Read sub/aaaaaaaaaaaaaaaa: error: invalid filename
        Write sub/aaaaaaaaaaaaaaaa: error: invalid filename
        Read sub/line\\nbreak: ok: 1	one
        Read sub: error: a directory, not a file. Read one of the files in it:
        caf�
        line\\nbreak
        ");
}
