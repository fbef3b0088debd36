//! Settings: written, found, checked and shown.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use crate::cli::{Place, Ran};

const EXAMPLE: &str = include_str!("../../../config.yaml.example");

/// Runs a line with these variables.
fn run(place: &Place, line: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = place.command(line);
    command.envs(variables.iter().copied());
    super::ended(command.spawn().unwrap())
}

#[test]
fn a_file_is_written_once_and_is_right() {
    let place = Place::new();
    let mut said = String::new();
    let mut note = |line: &[&str], code: i32| {
        let ran = place.run(line);
        assert_eq!(ran.code, code, "{line:?} {ran:?}");
        write!(said, "$ {}\n{}{}", line.join(" "), ran.out, ran.err).unwrap();
    };
    note(&["config", "path"], 0);
    note(&["config", "init"], 0);
    note(&["config", "path"], 0);
    note(&["config", "check"], 0);
    note(&["config", "show", "--changed"], 0);
    let file = place.path("home/.config/undertext/config.yaml");
    assert_eq!(fs::read_to_string(&file).unwrap(), EXAMPLE);
    fs::write(&file, "model:\n  nome: mine\n").unwrap();
    note(&["config", "init"], 2);
    note(&["config", "path"], 0);
    note(&["config", "check", "--set", "limits.rounds=0"], 2);
    note(&["config", "check", "--json"], 2);
    note(&["run", "task"], 2);
    fs::remove_file(&file).unwrap();
    fs::write(
        place.path("home/w/other.yaml"),
        "model: { base_url: 'ftp://h' }\n",
    )
    .unwrap();
    note(&["config", "check", "other.yaml"], 2);
    note(&["config", "check", "none.yaml"], 2);
    note(&["config", "check", "--set", "model.profile=opnai"], 2);
    insta::assert_snapshot!(place.plain(&said), @r#"
    $ config path
    absent  /home/.config/undertext/config.yaml
    `undertext config init` writes the file that is absent
    $ config init
    wrote /home/.config/undertext/config.yaml
    change what you like; `undertext config check` says whether it is right
    $ config path
    read    /home/.config/undertext/config.yaml
    $ config check
    ok
    $ config show --changed
    every setting has its default
    $ config init
    undertext: /home/.config/undertext/config.yaml is there already and stays as it is; edit it, or move it away first
    $ config path
    wrong   /home/.config/undertext/config.yaml
    $ config check --set limits.rounds=0
    undertext: wrong setting in /home/.config/undertext/config.yaml:2:3: unknown key `nome`, did you mean `name`?
    undertext: wrong setting in --set limits.rounds=0: at least 1 must stand here
    $ config check --json
    {"ok":false,"errors":["wrong setting in /home/.config/undertext/config.yaml:2:3: unknown key `nome`, did you mean `name`?"]}
    $ run task
    undertext: wrong setting in /home/.config/undertext/config.yaml:2:3: unknown key `nome`, did you mean `name`?
    $ config check other.yaml
    undertext: setting in other.yaml:1 cannot be used: `model.base_url` is `ftp://h`, but must begin with http:// or https://
    $ config check none.yaml
    undertext: cannot read settings from none.yaml: No such file or directory (os error 2); check the path
    $ config check --set model.profile=opnai
    undertext: no profile is named `opnai`; did you mean `openai`?
    "#);
    assert!(!place.path("home/.local").exists());
}

/// Settings that are no file are not waited for, and nothing begins without those that were meant.
#[test]
fn settings_that_cannot_be_read_are_told_and_nothing_begins() {
    let place = Place::new();
    let file = place.path("home/.config/undertext/config.yaml");
    let mut said = String::new();
    let kinds: [fn(&Path); 4] = [
        |file| fs::create_dir(file).unwrap(),
        |file| mknodat(CWD, file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
        |file| symlink("/dev/zero", file).unwrap(),
        |file| symlink("config.yaml", file).unwrap(),
    ];
    for kind in kinds {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        kind(&file);
        for line in [
            &["config", "check"][..],
            &["config", "path"],
            &["run", "task"],
        ] {
            let ran = place.run(line);
            write!(said, "{} {}{}", ran.code, ran.out, ran.err).unwrap();
        }
        fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }
    insta::assert_snapshot!(place.plain(&said), @"
    2 undertext: cannot read settings from /home/.config/undertext/config.yaml: not a file; settings stand in a file of YAML, of at most 1 MiB
    0 wrong   /home/.config/undertext/config.yaml
    2 undertext: cannot read settings from /home/.config/undertext/config.yaml: not a file; settings stand in a file of YAML, of at most 1 MiB
    2 undertext: cannot read settings from /home/.config/undertext/config.yaml: not a file; settings stand in a file of YAML, of at most 1 MiB
    0 wrong   /home/.config/undertext/config.yaml
    2 undertext: cannot read settings from /home/.config/undertext/config.yaml: not a file; settings stand in a file of YAML, of at most 1 MiB
    2 undertext: cannot read settings from /home/.config/undertext/config.yaml: not a file; settings stand in a file of YAML, of at most 1 MiB
    0 wrong   /home/.config/undertext/config.yaml
    2 undertext: cannot read settings from /home/.config/undertext/config.yaml: not a file; settings stand in a file of YAML, of at most 1 MiB
    2 undertext: cannot read settings from /home/.config/undertext/config.yaml: Too many levels of symbolic links (os error 40); check where its links lead
    0 wrong   /home/.config/undertext/config.yaml
    2 undertext: cannot read settings from /home/.config/undertext/config.yaml: Too many levels of symbolic links (os error 40); check where its links lead
    ");
    assert!(!place.path("home/.local").exists());
}

#[test]
fn every_setting_is_shown_with_what_set_it() {
    let place = Place::new();
    fs::write(
        place.path("home/w/mine.yaml"),
        "# mine\nmodel:\n  name: qwen3:8b\ncompaction:\n  summary:\n    instructions: |\n      \
         Keep names.\n      Keep numbers: all.\n  rules:\n    tiny: { keep_last: 1 }\n",
    )
    .unwrap();
    let line = [
        "config",
        "show",
        "--config",
        "mine.yaml",
        "--set",
        "limits.wall_time=90m",
    ];
    let variables = [("UNDERTEXT_TOOLS__BASH__ENABLED", "false")];
    let shown = run(&place, &line, &variables);
    assert_eq!((shown.code, shown.err.as_str()), (0, ""));

    let changed = run(&place, &[&line[..], &["--changed"]].concat(), &variables);
    insta::assert_snapshot!(changed.out, @r#"
    model:
      name: qwen3:8b                          # mine.yaml:3
    compaction:
      summary:
        instructions: "Keep names.\nKeep numbers: all.\n"  # mine.yaml:7
      rules:
        tiny:
          keep_last: 1                        # mine.yaml:10
    limits:
      wall_time: 1h30m                        # --set
    tools:
      bash:
        enabled: false                        # variable UNDERTEXT_TOOLS__BASH__ENABLED
    "#);

    // What is shown is itself a file that makes the same settings.
    for text in [&shown.out, &changed.out] {
        fs::write(place.path("home/w/again.yaml"), text).unwrap();
        let again = place.run(&["config", "show", "--json", "--config", "again.yaml"]);
        let before = run(&place, &[&line[..], &["--json"]].concat(), &variables);
        let values = |ran: &Ran| -> Vec<(Value, Value)> {
            let lines = ran
                .out
                .lines()
                .map(|line| serde_json::from_str(line).unwrap());
            lines
                .map(|line: Value| (line["key"].clone(), line["value"].clone()))
                .collect()
        };
        assert_eq!(values(&again), values(&before));
    }
    let json = run(
        &place,
        &[&line[..], &["--changed", "--json"]].concat(),
        &variables,
    );
    insta::assert_snapshot!(json.out, @r#"
    {"key":"model.name","value":"qwen3:8b","default":null,"from":{"kind":"file","name":"mine.yaml","line":3}}
    {"key":"compaction.summary.instructions","value":"Keep names.\nKeep numbers: all.\n","default":null,"from":{"kind":"file","name":"mine.yaml","line":7}}
    {"key":"compaction.rules.tiny.keep_last","value":1,"from":{"kind":"file","name":"mine.yaml","line":10}}
    {"key":"limits.wall_time","value":"1h30m","default":null,"from":{"kind":"set"}}
    {"key":"tools.bash.enabled","value":false,"default":true,"from":{"kind":"variable","name":"UNDERTEXT_TOOLS__BASH__ENABLED"}}
    "#);
}

#[test]
fn settings_that_cannot_be_meant_are_shown_and_refused() {
    let place = Place::new();
    let line = ["config", "show", "--changed"];
    let variables = [
        ("UNDERTEXT_MODEL__PRICES__INPUT", "2.5"),
        ("UNDERTEXT_MODEL_NAME", "m"),
    ];
    let shown = run(&place, &line, &variables);
    let checked = run(&place, &["config", "check"], &variables);
    assert_eq!((shown.code, checked.code), (2, 2));
    insta::assert_snapshot!(shown.out + &shown.err + &checked.err, @"
    model:
      prices:
        input: 2.5                            # variable UNDERTEXT_MODEL__PRICES__INPUT
    undertext: setting in variable UNDERTEXT_MODEL__PRICES__INPUT cannot be used: `model.prices` needs both `input` and `output`
    warning: UNDERTEXT_MODEL_NAME is not read; two underscores stand between levels: UNDERTEXT_MODEL__NAME
    undertext: setting in variable UNDERTEXT_MODEL__PRICES__INPUT cannot be used: `model.prices` needs both `input` and `output`
    ");
}

#[test]
fn schemas_and_completions_go_to_standard_output() {
    let place = Place::new();
    for line in [&["config", "schema"][..], &["config", "schema", "config"]] {
        let schema: Value = serde_json::from_str(&place.run(line).out).unwrap();
        assert_eq!(
            schema["properties"]["limits"]["properties"]["rounds"]["default"],
            500
        );
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.run(&["completions", shell]);
        assert_eq!((script.code, script.err.as_str()), (0, ""), "{shell}");
        for word in ["undertext", "replay", "max-rounds"] {
            assert!(script.out.contains(word), "{shell} {word}");
        }
    }
}
