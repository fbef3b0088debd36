//! What programs read, held against the schema that the program itself writes.

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::cli::{Place, looks, ran_id, says};
use crate::provider::Provider;

/// A run that was compacted in several ways.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");

/// The schema of everything that is written with `--json`.
struct Published(Value);

impl Published {
    fn of(place: &Place) -> Self {
        let ran = place.run(&["config", "schema", "output"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        Self(serde_json::from_str(&ran.out).unwrap())
    }

    /// What holds the lines of one command.
    fn command(&self, name: &str) -> Validator {
        let definitions = &self.0["$defs"];
        assert!(definitions[name].is_object(), "{name}");
        let schema = json!({"$ref": format!("#/$defs/{name}"), "$defs": definitions});
        jsonschema::validator_for(&schema).unwrap()
    }

    /// Holds every line.
    fn hold(&self, name: &str, lines: &str) {
        let validator = self.command(name);
        assert!(!lines.is_empty(), "{name} wrote nothing");
        for line in lines.lines() {
            let object: Value = serde_json::from_str(line).unwrap();
            if let Err(error) = validator.validate(&object) {
                panic!("{name}: {error} at {}: {line:.2000}", error.instance_path());
            }
        }
    }
}

#[test]
fn whatever_a_command_writes_fits_its_schema() {
    let place = Place::new();
    let published = Published::of(&place);
    let provider = Provider::new([looks(), says("All done."), says("Again.")]);
    let mut seen = BTreeSet::new();
    let mut hold = |name: &'static str, out: &str| {
        published.hold(name, out);
        seen.insert(name);
    };
    hold("run", &place.ask(&provider, &["--json", "look"]).out);
    let again = place.ask(&provider, &["--continue", "--json", "again"]);
    hold("run", &again.out);
    let tasks = "{\"task\":\"look\",\"schema\":{\"type\":7}}\n{\"task\":\"look\"}";
    std::fs::create_dir(place.path("home/other")).unwrap();
    std::fs::write(place.path("home/w/tasks.jsonl"), tasks).unwrap();
    published.hold("batch-task", tasks);
    let batch = ["batch", "-m", "offline", "-C", "../other", "tasks.jsonl"];
    hold("batch", &place.run(&batch).out);
    hold("list", &place.run(&["list", "--json"]).out);
    hold("show", &place.run(&["show", "--json"]).out);
    for view in ["raw", "compacted", "both"] {
        let ran = place.run(&["print", "--json", "--view", view]);
        hold("print", &ran.out);
    }
    hold("replay", &place.run(&["replay", "--json"]).out);
    hold("page", &place.run(&["page", "--json"]).out);
    hold("replay", &place.run(&["replay", "--run", "--json"]).out);
    hold("config-path", &place.run(&["config", "path", "--json"]).out);
    hold("config-show", &place.run(&["config", "show", "--json"]).out);
    let wrong = ["config", "check", "--json", "--set", "nothing=1"];
    hold("config-check", &place.run(&wrong).out);
    hold("tools", &place.run(&["tools", "--json"]).out);
    let recording = crate::corpus::excerpts().join("codex/rollout.jsonl");
    let import = [
        "import",
        "--json",
        recording.to_str().unwrap(),
        "--out",
        "o",
    ];
    hold("import", &place.run(&import).out);
    let other = recording.to_str().unwrap();
    let golden = [
        "lab", GOLDEN, other, "--search", "--window", "12000", "--json",
    ];
    hold("lab", &place.run(&golden).out);
    hold("fork", &place.run(&["fork", "last", "--json"]).out);
    std::fs::copy(GOLDEN, place.path("home/w/golden.jsonl")).unwrap();
    for (name, at) in [
        ("pin", "9.2"),
        ("unpin", "9.2"),
        ("retract", "last"),
        ("expand", "9.2"),
    ] {
        hold(name, &place.run(&[name, "golden.jsonl", at, "--json"]).out);
    }
    for line in [
        &["why", "golden.jsonl", "9.2", "--json"][..],
        &["why", "golden.jsonl", "--text", "voucher", "--json"],
        &["why", "golden.jsonl", "last-compaction", "--json"],
    ] {
        hold("why", &place.run(line).out);
    }
    for line in [
        &["replay", "golden.jsonl", "--diff", "r9", "r12", "--json"][..],
        &["replay", "golden.jsonl", "--blame", "r11", "--json"],
    ] {
        hold("replay", &place.run(line).out);
    }
    let run = ran_id(&place.transcripts()[0]);
    let compact = ["compact", &run, "--json", "--strategy", "strip-tools"];
    hold("compact", &place.run(&compact).out);
    hold("rm", &place.run(&["rm", "--json", &run]).out);
    let doctor = ["doctor", "-m", "offline", "--json"];
    hold("doctor", &place.run(&doctor).out);
    let named = published.0["anyOf"].as_array().unwrap().iter();
    let named: BTreeSet<&str> = named
        .map(|one| one["$ref"].as_str().unwrap().rsplit('/').next().unwrap())
        .collect();
    assert_eq!(seen, named);
}

/// A run that was compacted, with every kind of entry that it has.
#[test]
fn a_recorded_run_fits_the_schema() {
    let place = Place::new();
    let published = Published::of(&place);
    for (name, line) in [
        ("show", ["show", "--json", GOLDEN]),
        ("print", ["print", "--json", GOLDEN]),
        ("replay", ["replay", "--json", GOLDEN]),
    ] {
        published.hold(name, &place.run(&line).out);
    }
}

#[test]
fn the_page_shows_lines_that_fit() {
    let place = Place::new();
    let published = Published::of(&place);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/json.md");
    let page = std::fs::read_to_string(page).unwrap();
    let sections = page.split("\n## ");
    for section in sections.filter_map(|section| section.strip_prefix('`')) {
        let command = section.split(" --json").next().unwrap().replace(' ', "-");
        published.command(&command);
        for line in section.lines().filter(|line| line.starts_with('{')) {
            published.hold(&command, line);
        }
    }
    // It is a schema that says something.
    let run = published.command("run");
    for wrong in [
        json!({"type": "start"}),
        json!({"type": "delta", "request": 4, "song": "la"}),
        json!({"id": 3, "at": "2026-11-22T02:11:09.714Z", "type": "user", "origin": "nobody", "text": ""}),
        json!({"id": 6, "at": "2026-11-22T02:11:09.714Z", "type": "started", "call": "five"}),
    ] {
        assert!(!run.is_valid(&wrong), "{wrong}");
    }
}
