//! Which source set a key, and what may stand in a file.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use super::environment;
use super::schema::plain;
use crate::config::{EXAMPLE, Given, Layers, Origin, SCHEMA, Sections, Sources};

#[test]
fn each_key_is_shown_with_what_set_it() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("undertext/config.yaml");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(
        &own,
        "model:\n  name: own\n  base_url: https://own/v1\n  api_key_env: OWN\n\
         limits:\n  rounds: 9\n  tokens: 9\n  calls: 64\n",
    )
    .unwrap();
    let named = dir.path().join("named.yaml");
    fs::write(
        &named,
        "tools:\n  Mine:\n    compaction: { request: omit }\n",
    )
    .unwrap();
    let mut flags = Sections::default();
    flags.transcripts.dir = Given::value(Some("here".into()));
    let config = dir.path().to_str().unwrap();
    let sources = Sources {
        environment: environment(&[
            ("XDG_CONFIG_HOME", config),
            ("UNDERTEXT_MODEL__BASE_URL", "https://other/v1?key=secret"),
            ("UNDERTEXT_COMPACTION__AUTO__MIN_ROUNDS", "2"),
        ]),
        files: vec![named],
        set: vec![
            "limits.rounds=7".into(),
            "compaction.rules.mine.summary={}".into(),
        ],
        flags,
    };
    let mut shown = String::new();
    for key in Layers::read(&sources).unwrap().in_force().unwrap() {
        if key.origin != Origin::BuiltIn || key.default.as_ref() != Some(&key.value) {
            let origin = key.origin.to_string().replace(config, "");
            writeln!(shown, "{} = {}  # {origin}", key.path.join("."), key.value).unwrap();
        }
    }
    insta::assert_snapshot!(shown, @r#"
    model.name = "own"  # /undertext/config.yaml:2
    model.base_url = "https://other/v1"  # variable UNDERTEXT_MODEL__BASE_URL
    compaction.auto.min_rounds = 2  # variable UNDERTEXT_COMPACTION__AUTO__MIN_ROUNDS
    compaction.rules.mine.summary = {}  # --set
    limits.rounds = 7  # --set
    limits.tokens = 9  # /undertext/config.yaml:7
    limits.calls = 64  # /undertext/config.yaml:8
    transcripts.dir = "here"  # flag
    tools.mine.compaction = {"request":"omit"}  # /named.yaml:3
    "#);
}

#[test]
fn nothing_but_what_is_built_in_is_the_example() {
    let keys = Layers::read(&Sources::default())
        .unwrap()
        .in_force()
        .unwrap();
    assert!(keys.iter().all(|key| key.origin == Origin::BuiltIn));
    let mut shown = json!({});
    for key in keys {
        assert_eq!(key.default, Some(key.value.clone()));
        let place = key
            .path
            .iter()
            .fold(&mut shown, |place, key| &mut place[key]);
        *place = key.value;
    }
    let mut example: Value = plain(EXAMPLE).unwrap();
    let tools = example["tools"].take().as_object().unwrap().clone();
    let folded = tools
        .into_iter()
        .map(|(name, tool)| (name.to_lowercase(), tool));
    example["tools"] = folded.collect();
    assert_eq!(shown, example);
}

#[test]
fn the_schema_takes_what_is_taken_and_nothing_else() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong = |yaml: &str| {
        let value: Value = plain(yaml).unwrap();
        let errors = validator.iter_errors(&value);
        errors.map(|error| error.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(wrong(EXAMPLE), Vec::<String>::new());
    for yaml in [
        "model:\ntools:\n",
        "compaction: { rules: { mine: { tools: { request: omit }, summary: {} } } }",
        "limits: { wall_time: 1h30m, cost: 2.5 }",
    ] {
        assert_eq!(wrong(yaml), Vec::<String>::new(), "{yaml}");
    }
    for yaml in [
        "model: { nome: a }",
        "limits: { rounds: 0 }",
        "limits: { wall_time: 90 }",
        "limits: { calls: null }",
        "limits: { cost: -1 }",
        "compaction: { auto: { tail_ratio: 2 } }",
        "compaction: { rules: { mine: { summary: true } } }",
        "tools: { Bash: { compaction: stripe } }",
        "transcripts: { sync: full }",
    ] {
        assert_ne!(wrong(yaml), Vec::<String>::new(), "{yaml}");
    }
    // Every key says what it means and what it is if nobody sets it.
    for key in Sections::all_keys() {
        let place = key.split('.').fold(&schema, |schema, key| match key {
            "<name>" => &schema["additionalProperties"],
            key => &schema["properties"][key],
        });
        assert!(place["description"].is_string(), "{key}");
        assert!(
            place.get("default").is_some() || key.contains("<name>"),
            "{key}"
        );
    }
}
