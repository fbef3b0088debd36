//! What is wrong in a source is said with its place, and with what would be right.

use std::fmt::Write as _;
use std::fs;

use super::{line, settings};
use crate::config::{Sections, Sources, load};

/// What is said of a file that holds these bytes.
fn said(bytes: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.yaml");
    fs::write(&file, bytes).unwrap();
    let sources = Sources {
        files: vec![file],
        ..Sources::default()
    };
    match load(&sources) {
        Ok(_) => "ok".to_owned(),
        Err(error) => line(&error).replace(&format!("{}/", dir.path().display()), ""),
    }
}

/// What is said of each text, as it would be read.
fn all_said(texts: &[&str]) -> String {
    let mut all = String::new();
    for text in texts {
        let said = said(text.as_bytes());
        let said = said
            .strip_prefix("wrong setting in c.yaml:")
            .unwrap_or(&said);
        writeln!(all, "{}\n  {said}", text.escape_debug()).unwrap();
    }
    all
}

#[test]
fn what_is_no_settings_file_is_told_with_its_place() {
    insta::assert_snapshot!(all_said(&[
        "model: {}\n---\nlimits: {}\n",
        "compaction:\n\tenabled: true\n",
        "model:\n  name: a\n base_url: b\n",
        "model: { name: 'a }",
        "model: { name: a\n",
        "model: {}\nlimits: {}\nmodel: {}\n",
        "- a\n- b\n",
        "gpt-5",
        "model: [a]",
        "model: name: a\n",
        "model: *x",
        "model: \u{1b}[31m",
        "? [a]\n: b\n",
        "1: 2\n",
        "null: 2",
    ]), @r#"
    model: {}\n---\nlimits: {}\n
      3:1: a second document begins here; a file of settings holds one
    compaction:\n\tenabled: true\n
      2:2: a tab stands here; YAML is indented with spaces
    model:\n  name: a\n base_url: b\n
      3:2: a key is expected here; is the line indented like its neighbours?
    model: { name: \'a }
      1:16: unclosed quote
    model: { name: a\n
      1:8: unclosed bracket '{'
    model: {}\nlimits: {}\nmodel: {}\n
      3:1: `model` stands here twice
    - a\n- b\n
      1:1: keys must stand here, such as `name: value`
    gpt-5
      1:1: keys must stand here, such as `name: value`
    model: [a]
      1:8: keys must stand here, such as `name: value`
    model: name: a\n
      1:8: keys must stand here, such as `name: value`
    model: *x
      1:8: alias references unknown anchor
    model: \u{1b}[31m
      1:8: unexpected character: `\u{1b}'
    ? [a]\n: b\n
      1:3: one value must stand here, no list and no keys
    1: 2\n
      1:1: unknown key `1`, known here: model, compaction, limits, instructions, sandbox, transcripts, tools, profiles
    null: 2
      1:1: a text must stand here, not null
    "#);
    let aliases = vec!["*a"; 20_000].join(", ");
    let deep = "[".repeat(5_000);
    let mut bomb = "compaction:\n  micro:\n    exempt:\n    - &a [x]\n".to_owned();
    for (name, of) in ["ba", "cb", "dc", "ed", "fe", "gf"].map(|pair| pair.split_at(1)) {
        writeln!(bomb, "    - &{name} [*{of}, *{of}, *{of}, *{of}]").unwrap();
    }
    for (bytes, expected) in [
        (
            b"model:\n  name: \xc3\xa4\xff\n".as_slice(),
            "wrong setting in c.yaml:2:10: what stands here is not UTF-8",
        ),
        (
            &b"#".repeat((1 << 20) + 1),
            "cannot read settings from c.yaml: larger than 1 MiB",
        ),
        (
            format!("compaction:\n  micro:\n    exempt: [&a x, {aliases}]\n").as_bytes(),
            "wrong setting in c.yaml:4:1: settings need no aliases, or far fewer than stand here",
        ),
        (
            bomb.as_bytes(),
            "wrong setting in c.yaml:4:10: one value must stand here, no list and no keys",
        ),
        (
            format!("model: {deep}").as_bytes(),
            "wrong setting in c.yaml:1:8: keys must stand here, such as `name: value`",
        ),
    ] {
        assert_eq!(said(bytes), expected);
    }
}

#[test]
fn a_file_may_be_empty_and_come_from_another_system() {
    for text in [
        "",
        "# nothing\n",
        "---\n# nothing\n",
        "null",
        "{}",
        "model:\n",
        "model: null",
        "\u{feff}model: { temperature: 0 }\n",
        "model:\r\n  name: a\r\n",
        "---\nmodel: {}\n...\n",
        "tools:\n  Bash:\nlimits: # none\n",
    ] {
        assert_eq!(said(text.as_bytes()), "ok", "{text:?}");
    }
}

#[test]
fn unknown_keys_and_words_are_told_with_what_is_known() {
    insta::assert_snapshot!(all_said(&[
        "compaction:\n  micro:\n    keep_recnt: 5\n",
        "keep_recent: 5\n",
        "sandbox: { zzz: 1 }",
        "tools: { Bash: { compaction: { requests: keep } } }",
        "compaction: { rules: { mine: { summary: { a: 1 } } } }",
        "compaction: { estimate: exact }",
        "compaction: { rules: { mine: { reasoning: drop } } }",
        "tools: { Bash: { compaction: { request: stripe } } }",
        "transcripts: { sync: full }",
    ]), @r#"
    compaction:\n  micro:\n    keep_recnt: 5\n
      3:5: unknown key `keep_recnt`, did you mean `keep_recent`?
    keep_recent: 5\n
      1:1: unknown key `keep_recent`, did you mean `compaction.micro.keep_recent`?
    sandbox: { zzz: 1 }
      1:12: unknown key `zzz`, known here: mode, read, write, network, ask, ask_command, limits
    tools: { Bash: { compaction: { requests: keep } } }
      1:32: unknown key `requests`, did you mean `request`?
    compaction: { rules: { mine: { summary: { a: 1 } } } }
      1:43: unknown key `a`, known here: focus, instructions
    compaction: { estimate: exact }
      1:25: unknown word `exact`, known here: calibrated, chars
    compaction: { rules: { mine: { reasoning: drop } } }
      1:43: unknown word `drop`, known here: keep, strip
    tools: { Bash: { compaction: { request: stripe } } }
      1:41: unknown word `stripe`, known here: keep, strip, omit
    transcripts: { sync: full }
      1:22: unknown word `full`, known here: data, none
    "#);
}

#[test]
fn wrong_values_are_told_with_what_would_be_right() {
    insta::assert_snapshot!(all_said(&[
        "limits: { rounds: -1 }",
        "limits: { rounds: 0 }",
        "limits: { rounds: 1.5 }",
        "limits: { rounds: [1] }",
        "limits: { calls: null }",
        "limits: { tokens: many }",
        "limits: { wall_time: 90 }",
        "limits: { wall_time: soon }",
        "limits: { wall_time: 0s }",
        "limits: { cost: -2 }",
        "limits: { cost: cheap }",
        "compaction: { enabled: maybe }",
        "compaction: { default_rule: null }",
        "compaction: { auto: { tail_ratio: 1.5 } }",
        "compaction: { auto: { tail_ratio: -0.1 } }",
        "compaction: { auto: { tail_ratio: .nan } }",
        "compaction: { auto: { tail_ratio: 50% } }",
        "compaction: { micro: { exempt: Bash } }",
        "compaction: { micro: { exempt: [a, [b]] } }",
        "compaction: { rules: { mine: { summary: true } } }",
        "model: { temperature: -1 }",
        "model: { name: { a: b } }",
        "model: { api: [chat] }",
        "tools: { Bash: false }",
        "tools: { Bash: { compaction: 5 } }",
    ]), @"
    limits: { rounds: -1 }
      1:19: a whole number must stand here, not negative and at most 4294967295
    limits: { rounds: 0 }
      1:11: at least 1 must stand here
    limits: { rounds: 1.5 }
      1:19: a whole number must stand here, not negative and at most 4294967295
    limits: { rounds: [1] }
      1:19: one value must stand here, no list and no keys
    limits: { calls: null }
      1:18: a whole number must stand here, not negative and at most 4294967295
    limits: { tokens: many }
      1:19: a whole number that is not negative must stand here
    limits: { wall_time: 90 }
      1:22: `90` needs a unit, such as 90s or 90m
    limits: { wall_time: soon }
      1:22: `soon` is no length of time, such as 250ms, 90s, 5m or 1h30m
    limits: { wall_time: 0s }
      1:22: `0s` is no time at all; it must be longer
    limits: { cost: -2 }
      1:17: -2 is no price in US dollars
    limits: { cost: cheap }
      1:17: a number must stand here
    compaction: { enabled: maybe }
      1:24: true or false must stand here
    compaction: { default_rule: null }
      1:29: a text must stand here, not null
    compaction: { auto: { tail_ratio: 1.5 } }
      1:35: 1.5 is not between 0 and 1
    compaction: { auto: { tail_ratio: -0.1 } }
      1:35: -0.1 is not between 0 and 1
    compaction: { auto: { tail_ratio: .nan } }
      1:35: NaN is not between 0 and 1
    compaction: { auto: { tail_ratio: 50% } }
      1:35: a number must stand here
    compaction: { micro: { exempt: Bash } }
      1:32: a list must stand here, such as [Bash, Read]
    compaction: { micro: { exempt: [a, [b]] } }
      1:36: one value must stand here, no list and no keys
    compaction: { rules: { mine: { summary: true } } }
      1:32: {} for a summary or null for none must stand here
    model: { temperature: -1 }
      1:23: -1 is no temperature, such as 0 or 0.7
    model: { name: { a: b } }
      1:16: one value must stand here, no list and no keys
    model: { api: [chat] }
      1:15: a word must stand here
    tools: { Bash: false }
      1:16: keys must stand here, such as `name: value`
    tools: { Bash: { compaction: 5 } }
      1:18: one of keep, strip, strip-requests, strip-responses, omit or a mapping must stand here
    ");
}

#[test]
fn what_cannot_be_meant_is_told_with_the_place_it_stands_at() {
    insta::assert_snapshot!(all_said(&[
        "limits: {}\nprofiles:\n  mine:\n    base: opnai\n",
        "profiles:\n  mine:\n    parameters:\n      add: { top_k: 1, messages: [] }\n",
        "model:\n  prices:\n    input: 1\n",
        "model:\n  context_window: 1000\n  max_output_tokens: 1000\n",
        "model:\n  api_key_env: sk-secret\n",
        "model:\n  base_url: 127.0.0.1:8080?key=sk-secret\n",
        "compaction:\n  default_rule: none\n",
        "compaction:\n  auto:\n    trigger_ratio: 0\n",
    ]), @r#"
    limits: {}\nprofiles:\n  mine:\n    base: opnai\n
      setting in c.yaml:4 cannot be used: `profiles.mine.base` names `opnai`, which is no built-in profile; did you mean `openai`?
    profiles:\n  mine:\n    parameters:\n      add: { top_k: 1, messages: [] }\n
      setting in c.yaml:4 cannot be used: `profiles.mine.parameters.add` holds `messages`, which each request says by itself
    model:\n  prices:\n    input: 1\n
      setting in c.yaml:3 cannot be used: `model.prices` needs both `input` and `output`
    model:\n  context_window: 1000\n  max_output_tokens: 1000\n
      setting in c.yaml:3 cannot be used: `model.max_output_tokens` is 1000, which leaves nothing of `model.context_window`, 1000, to ask with
    model:\n  api_key_env: sk-secret\n
      setting in c.yaml:2 cannot be used: `model.api_key_env` takes the NAME of a variable, not a key
    model:\n  base_url: 127.0.0.1:8080?key=sk-secret\n
      setting in c.yaml:2 cannot be used: `model.base_url` is `127.0.0.1:8080`, but must begin with http:// or https://
    compaction:\n  default_rule: none\n
      setting in c.yaml:2 cannot be used: `compaction.default_rule` names `none`, which is not among `compaction.rules`; there is default, heavy, light
    compaction:\n  auto:\n    trigger_ratio: 0\n
      setting in c.yaml:3 cannot be used: `compaction.auto.trigger_ratio` must be more than 0; `enabled: false` switches it off
    "#);
    let variable = [("UNDERTEXT_MODEL__PRICES__INPUT", "1")];
    let error = settings("", "", &variable, &[], Sections::default()).unwrap_err();
    assert_eq!(
        line(&error),
        "setting in variable UNDERTEXT_MODEL__PRICES__INPUT cannot be used: `model.prices` needs \
         both `input` and `output`"
    );
}
