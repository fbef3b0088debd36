//! The transcripts that stand in the repository, and the demo that makes one of them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use undertext::record::runs;
use undertext::replay::Replay;
use undertext::transcript::Entry;

/// The entries of a transcript that reads without damage and whose every request rebuilds.
fn entries(path: &Path) -> Vec<Arc<Entry>> {
    let loaded = runs::read(path).unwrap();
    let name = path.display();
    assert!(loaded.damage.is_empty(), "{name}: {:?}", loaded.damage);
    assert_eq!(loaded.torn, None, "{name}");
    let entries = loaded.view.transcript().entries().to_vec();
    let mut requests = 0;
    for rebuilt in Replay::new(entries.iter().cloned()) {
        requests += 1;
        assert!(rebuilt.is_equal(), "{name}: {rebuilt:?}");
    }
    assert!(requests > 0, "{name}");
    entries
}

/// The transcripts in a directory, by name.
fn transcripts(directory: &Path) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(directory).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn every_transcript_in_the_repository_rebuilds() {
    let paths = transcripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts"));
    assert!(!paths.is_empty());
    for path in paths {
        entries(&path);
    }
}

/// The program itself, which is built with the command line only.
#[cfg(feature = "cli")]
mod demo {
    use std::process::Command;

    use undertext::overlay::Origin;
    use undertext::transcript::{Event, Reason};

    use super::*;

    /// What the demo prints when it is run with these arguments and no setting of this machine.
    fn run(home: &Path, arguments: &[&str]) -> String {
        #[expect(
            clippy::disallowed_methods,
            reason = "a test runs the program as a person would"
        )]
        let output = Command::new(env!("CARGO_BIN_EXE_undertext"))
            .arg("demo")
            .args(arguments)
            .env_clear()
            .env("PATH", env!("PATH"))
            .env("HOME", home)
            .env("TMPDIR", home)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success() && errors.is_empty(),
            "{text}{errors}"
        );
        text
    }

    #[test]
    fn the_demo_does_what_it_shows() {
        let home = tempfile::tempdir().unwrap();
        let printed = run(home.path(), &[]);
        let directory = home.path().join(".local/state/undertext/transcripts");
        let [path] = transcripts(&directory).try_into().unwrap();
        let entries = entries(&path);

        compacted_three_ways(&entries);
        let Some(Event::End(end)) = entries.last().map(|entry| &entry.event) else {
            panic!("no end")
        };
        assert_eq!(end.reason, Reason::Finished);
        assert!(end.text.contains("passes now"), "{}", end.text);

        let facts = |name: &str| {
            let line = printed.lines().rfind(|line| line.starts_with(name));
            line.unwrap()[name.len()..].trim().to_owned()
        };
        assert_eq!(
            facts("ended"),
            "finished; the project's test, run once more by this program: all cases pass"
        );
        assert_eq!(facts("transcript"), path.display().to_string());
        // Nothing is left of the workspace.
        let left: Vec<_> = fs::read_dir(home.path())
            .unwrap()
            .map(|file| file.unwrap().file_name())
            .collect();
        assert_eq!(left, [".local"]);
    }

    /// The run that stands in the repository shows what the demo shows.
    #[test]
    fn the_golden_run_is_a_demo() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        compacted_three_ways(&entries(&root.join("transcripts/demo.jsonl")));
    }

    /// The runtime put results away, compacted when it had to, and did so when asked.
    #[track_caller]
    fn compacted_three_ways(entries: &[Arc<Entry>]) {
        for origin in [Origin::Micro, Origin::Auto, Origin::Tool] {
            let laid = |entry: &Arc<Entry>| matches!(&entry.event, Event::Overlay(laid) if laid.origin == origin);
            assert!(entries.iter().any(laid), "{origin:?}");
        }
    }
}
