//! Hooks of compaction, as a person sets them up.

use std::fs;

use serde_json::{Value, json};

use crate::cli::{Place, says};
use crate::provider::{Answer, Provider};

/// A place whose user has these settings of hooks, and little room in the window.
fn place(hooks: &str) -> Place {
    let place = Place::new();
    let file = place.path("home/.config/undertext/config.yaml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let settings = format!(
        "model: {{ context_window: 40000 }}\n\
         compaction:\n  estimate: chars\n  auto: {{ token_threshold: 9000 }}\n  \
         micro: {{ enabled: false }}\n  hooks: {hooks}\n\
         tools: {{ Bash: {{ compaction: keep }} }}\n"
    );
    fs::write(file, settings).unwrap();
    place
}

/// A server whose fifth answer fills the window; the summary comes next, if it is asked for.
fn provider(last: &[&str]) -> Provider {
    let call = |command| Answer::Calls(vec![("Bash", command)]);
    let counts = [
        call(r#"{"command":"seq 1 3000"}"#),
        call(r#"{"command":"seq 2 3001"}"#),
        call(r#"{"command":"seq 3 3002"}"#),
        call(r#"{"command":"seq 4 3003"}"#),
        call(r#"{"command":"seq 5 3004"}"#),
    ];
    Provider::new(counts.into_iter().chain(last.iter().map(|text| says(text))))
}

/// What is said of hooks and passes in a run that ends well.
fn check(place: &Place, provider: &Provider) -> String {
    let ran = place.ask(provider, &["count"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Counted.\n"), "{ran:?}");
    let told = ran.err.lines().filter(|line| {
        let hook = line.contains("hook");
        hook || line.starts_with("compacted")
    });
    let told: Vec<&str> = told.map(|line| line.split(": [").next().unwrap()).collect();
    place.plain(&told.join("\n"))
}

#[test]
fn a_hook_may_forbid_a_pass() {
    let place = place(r#"{ before: 'echo "{\"veto\": true, \"reason\": \"the tests run\"}"' }"#);
    let told = check(&place, &provider(&["Counted."]));
    insta::assert_snapshot!(told, @"hook: no compaction now (the tests run)");
    let shown = place.run(&["print", "--at", "e24"]).out;
    insta::assert_snapshot!(shown, @"e24   note: hook: no compaction now (the tests run)");
}

/// It reads what the schema says, and sees neither keys nor what a tool would not see.
#[test]
fn what_a_hook_wants_kept_is_asked_for() {
    let place = place(
        r#"{ before: 'cat > asked; env > seen; echo "{\"keep\": [\"port 8042\"]}"', after: 'cat > told' }"#,
    );
    let provider = provider(&["Counted five times.", "Counted."]);
    let told = check(&place, &provider);
    insta::assert_snapshot!(told, @"
    hook: 1 text must be kept
    compacted (auto)
    ");
    let requests: Vec<_> = (0..6).map(|_| provider.messages()).collect();
    let asked = requests[5].last().unwrap()["content"].as_str().unwrap();
    let kept = asked.split_once("word for word:").unwrap().1;
    assert_eq!(kept, "\n- port 8042");
    let seen = fs::read_to_string(place.path("home/w/seen")).unwrap();
    assert!(!seen.contains("sk-very-secret"), "{seen}");

    let schema: Value =
        serde_json::from_str(&place.run(&["config", "schema", "output"]).out).unwrap();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/json.md");
    let page = fs::read_to_string(page).unwrap();
    for (name, event, file) in [
        ("hook-before", "{\"event\":\"before\"", "asked"),
        ("hook-after", "{\"event\":\"after\"", "told"),
    ] {
        let definitions = &schema["$defs"];
        let schema = json!({"$ref": format!("#/$defs/{name}"), "$defs": definitions});
        let validator = jsonschema::validator_for(&schema).unwrap();
        let read = fs::read_to_string(place.path("home/w").join(file)).unwrap();
        let shown = page.lines().find(|line| line.starts_with(event)).unwrap();
        for line in [read.as_str(), shown] {
            assert!(line.starts_with(event), "{line}");
            let object: Value = serde_json::from_str(line).unwrap();
            validator.validate(&object).unwrap();
        }
    }
}

#[test]
fn a_hook_that_misbehaves_does_not_keep_the_run_from_going_on() {
    let last = ["Counted five times.", "Counted."];
    for (hooks, told) in [
        (
            "{ before: sleep 1000 & sleep 1000, timeout: 100ms }",
            "warning: the hook before compaction did not end within TIME\ncompacted (auto)",
        ),
        (
            "{ before: echo yes >&2; exit 1 }",
            "warning: the hook before compaction failed with exit 1: yes\ncompacted (auto)",
        ),
        (
            "{ after: exit 2 }",
            "compacted (auto)\nwarning: the hook after compaction failed with exit 2",
        ),
    ] {
        assert_eq!(check(&place(hooks), &provider(&last)), told, "{hooks}");
    }
}

/// What lies in a workspace runs nothing.
#[test]
fn the_workspace_sets_no_hooks() {
    let place = place("{}");
    let settings = "compaction: { hooks: { before: touch ran, after: touch ran } }\n";
    fs::write(place.path("home/w/config.yaml"), settings).unwrap();
    let told = check(&place, &provider(&["Counted five times.", "Counted."]));
    assert_eq!(told, "compacted (auto)");
    assert!(!place.path("home/w/ran").exists());
}

/// It may be set up for the first time: what was recorded knows nothing of it.
#[test]
fn a_hook_is_told_of_what_is_compacted_by_hand_before_a_run_goes_on() {
    let place = place("{}");
    let call = Answer::Calls(vec![("Bash", r#"{"command":"seq 1 300"}"#)]);
    let texts = ["Counted.", "In short.", "Counted."];
    let provider = Provider::new([call].into_iter().chain(texts.map(says)));
    check(&place, &provider);
    let settings = [
        "compaction.rules.heavy.keep_last=1",
        "compaction.hooks.after=cat > told",
    ];
    let settings = settings.map(|setting| ["--set", setting]);
    let line = [
        &["--continue", "--compact=heavy", "Again."],
        &settings.concat()[..],
    ]
    .concat();
    let ran = place.ask(&provider, &line);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = fs::read_to_string(place.path("home/w/told")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (&told["event"], &told["origin"]),
        (&json!("after"), &json!("user"))
    );
}
