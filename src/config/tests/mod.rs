mod errors;
mod schema;
mod shown;

use std::fs;
use std::path::Path;

use super::*;
use crate::exchange::Treatment::{self, Keep, Strip};
use crate::exchange::{Hint, Supersession, ToolMeta};
use crate::profile::{self, Choice};
use crate::setup::{Sandbox, SendBack};
use crate::tools::bash;

fn environment(pairs: &[(&str, &str)]) -> Environment {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// The settings from a user's own file, a named file, variables, `--set` and flags.
fn settings(
    own: &str,
    file: &str,
    variables: &[(&str, &str)],
    set: &[&str],
    flags: Sections,
) -> Result<Settings, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &Path, text: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(&dir.path().join("undertext/config.yaml"), own);
    write(&dir.path().join("named.yaml"), file);
    let mut environment = environment(variables);
    environment.insert(
        "XDG_CONFIG_HOME".to_owned(),
        dir.path().to_str().unwrap().to_owned(),
    );
    load(&Sources {
        environment,
        files: vec![dir.path().join("named.yaml")],
        set: set.iter().map(|&text| text.to_owned()).collect(),
        flags,
    })
}

fn from_set(set: &[&str]) -> Result<Settings, ConfigError> {
    settings("", "", &[], set, Sections::default())
}

/// The whole chain of an error in one line, as `main` shows it.
fn line(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", line(source)),
        None => error.to_string(),
    }
}

#[test]
fn the_example_is_what_is_built_in() {
    let mut example = settings("", EXAMPLE, &[], &[], Sections::default()).unwrap();
    let tools = std::mem::take(&mut example.tools);
    if cfg!(not(target_os = "linux")) {
        example.policy.sandbox = Sandbox::Off;
    }
    assert_eq!(example, from_set(&[]).unwrap());

    for (name, tool) in tools {
        let hint = match name.as_str() {
            "read" | "grep" | "glob" | "bash" | "job" | "recall" => Hint::new(Keep, Strip),
            "write" => Hint::new(Strip, Keep),
            "edit" => Hint::new(Strip, Strip),
            _ => Hint::new(Keep, Keep),
        };
        assert_eq!(tool.enabled, Some(true));
        let omitted = ToolMeta {
            hint: Hint::new(Treatment::Omit, Treatment::Omit),
            ..ToolMeta::default()
        };
        let has_limit = matches!(name.as_str(), "bash" | "job");
        let usual = has_limit.then(|| bash::LIMIT.as_millis().try_into().unwrap());
        let meta = tool.meta(omitted);
        assert_eq!((meta.hint, meta.timeout_ms), (hint, usual), "{name}");
    }
}

#[test]
fn every_key_stands_in_the_example() {
    fn stands(value: &serde_json::Value, path: &[&str]) -> bool {
        let Some((key, rest)) = path.split_first() else {
            return true;
        };
        let Some(section) = value.as_object() else {
            return false;
        };
        match *key {
            "<name>" => section.values().any(|value| stands(value, rest)),
            key => section.get(key).is_some_and(|value| stands(value, rest)),
        }
    }
    let example: serde_json::Value = schema::plain(EXAMPLE).unwrap();
    let keys = Sections::all_keys();
    assert!(keys.contains(&"compaction.rules.<name>.keep_last".to_owned()));
    for key in keys {
        let path: Vec<&str> = key.split('.').collect();
        assert!(stands(&example, &path), "{key}");
    }
}

/// Values of every kind there is: for each key, one of them is another than what is built in.
const OTHERS: &[&str] = &[
    "false",
    "true",
    "7",
    "7s",
    "7GiB",
    "0.125",
    "keep",
    "strip",
    "chars",
    "stop",
    "none",
    "responses",
    "light",
    "{}",
    "[Bash]",
    "https://server/v1",
    "anything",
    "openai",
    "never",
    "on-request",
    "any",
    "plain",
    "omit",
    "off",
    "open",
];

/// Every key is read: some value of it makes other settings, or is refused for what it means.
#[test]
fn every_key_changes_something() {
    let dearer = ["model.prices.input=1", "model.prices.output=1"];
    let inner = ["request", "response", "dedup"];
    let inner = inner.map(|key| format!("tools.<name>.compaction.{key}"));
    for key in Sections::all_keys().into_iter().chain(inner) {
        let key = key.replace("rules.<name>", "rules.default");
        let key = key.replace("tools.<name>", "tools.bash");
        // Half of the prices are refused.
        let base: &[&str] = if key.starts_with("model.prices") {
            &dearer
        } else {
            &[]
        };
        let built_in = from_set(base).unwrap();
        let changes = |value: &&&str| {
            let change = format!("{key}={value}");
            match from_set(&[base, &[&change]].concat()) {
                Ok(settings) => settings != built_in,
                Err(_) => false,
            }
        };
        assert!(OTHERS.iter().any(|value| changes(&value)), "{key}");
    }
}

#[test]
fn later_sources_win() {
    let own = "model: { name: own, api: responses, profile: own, temperature: 1, max_output_tokens: 1 }\n\
               limits: { rounds: 1 }";
    let file = "model: { name: file, profile: file, temperature: 2, max_output_tokens: 2 }\n\
                limits: { rounds: null }";
    let variables = [
        ("UNDERTEXT_MODEL__NAME", "variable"),
        ("UNDERTEXT_MODEL__TEMPERATURE", "3"),
        ("UNDERTEXT_MODEL__MAX_OUTPUT_TOKENS", "3"),
        ("UNDERTEXT_CORPUS", "not a setting"),
    ];
    let set = ["model.name=set", "model.max_output_tokens=4"];
    let mut flags = Sections::default();
    flags.model.name = Given::value(Some("flag".to_owned()));
    let settings = settings(own, file, &variables, &set, flags).unwrap();
    let model = &settings.model;
    assert_eq!(model.api, crate::setup::Api::Responses);
    assert_eq!(model.profile.as_deref(), Some("file"));
    assert_eq!(model.parameters.temperature, Some(3.0));
    assert_eq!(model.parameters.max_output_tokens, Some(4));
    assert_eq!(model.name.as_deref(), Some("flag"));
    assert_eq!(settings.policy.limits.rounds, None);
}

#[test]
fn rules_and_tools_are_merged_key_by_key() {
    let own = "compaction: { rules: { mine: { summary: {} }, default: { keep_last: 9 } } }\n\
               tools: { Bash: { enabled: false, compaction: { request: omit } } }";
    let file = "compaction: { rules: { default: { reasoning: keep } } }";
    let variables = [("UNDERTEXT_TOOLS__BASH__ENABLED", "true")];
    let settings = settings(own, file, &variables, &[], Sections::default()).unwrap();
    let rules = &settings.policy.compaction.rules;
    assert_eq!(
        rules.keys().collect::<Vec<_>>(),
        ["default", "heavy", "light", "mine"]
    );
    assert!(rules["mine"].summary);
    let default = &rules["default"];
    assert_eq!((default.strip_reasoning, default.keep_last), (false, 9));
    let bash = settings.tool("Bash");
    assert_eq!(bash.enabled, Some(true));
    assert_eq!(
        bash.meta(ToolMeta::default()).hint,
        Hint::new(Treatment::Omit, Treatment::Strip)
    );
}

#[test]
fn a_tool_is_given_time_and_kept_from_being_deduplicated() {
    let supersession = Supersession {
        key: None,
        range: None,
        stale_after: Vec::new(),
    };
    let own = ToolMeta {
        supersession: Some(supersession),
        ..ToolMeta::default()
    };
    let set = "tools.Read={ timeout: 1m30s, compaction: { dedup: false } }";
    let settings = from_set(&[set]).unwrap();
    let expected = ToolMeta {
        timeout_ms: Some(90_000),
        ..ToolMeta::default()
    };
    assert_eq!(settings.tool("Read").meta(own.clone()), expected);
    let settings = from_set(&["tools.Read.compaction.dedup=true"]).unwrap();
    assert_eq!(settings.tool("Read").meta(own.clone()), own);
}

#[test]
fn what_is_wrong_names_its_source() {
    let variable =
        |name, value| settings("", "", &[(name, value)], &[], Sections::default()).unwrap_err();
    for (error, expected) in [
        (
            variable("UNDERTEXT_LIMITS__ROUNDS", "many"),
            "wrong setting in variable UNDERTEXT_LIMITS__ROUNDS: \
             a whole number must stand here, not negative and at most 4294967295",
        ),
        (
            variable("UNDERTEXT_MODEL__NOME", "x"),
            "wrong setting in variable UNDERTEXT_MODEL__NOME: \
             unknown key `nome`, did you mean `name`?",
        ),
        (
            from_set(&["limits.rounds=0"]).unwrap_err(),
            "wrong setting in --set limits.rounds=0: \
             at least 1 must stand here",
        ),
        (
            from_set(&["limits.rounds"]).unwrap_err(),
            "wrong setting in --set limits.rounds: \
             a setting is given as key=value, such as model.name=gpt-5",
        ),
        (
            from_set(&["compaction.default_rule=none"]).unwrap_err(),
            "settings cannot be used: `compaction.default_rule` names `none`, \
             which is not among `compaction.rules`; there is default, heavy, light",
        ),
        (
            from_set(&["tools.Bash.timeout=0s"]).unwrap_err(),
            "wrong setting in --set tools.Bash.timeout=0s: `0s` is no time at all; it must be longer",
        ),
        (
            from_set(&["compaction.rules.default.tools.dedup=false"]).unwrap_err(),
            "wrong setting in --set compaction.rules.default.tools.dedup=false: \
             unknown key `dedup`, did you mean `compaction.rules.<name>.dedup`?",
        ),
        (
            from_set(&["model.prices.input=1"]).unwrap_err(),
            "settings cannot be used: `model.prices` needs both `input` and `output`",
        ),
        (
            from_set(&["profiles.mine.base=opnai"]).unwrap_err(),
            "settings cannot be used: `profiles.mine.base` names `opnai`, which is no built-in \
             profile; did you mean `openai`?",
        ),
        (
            from_set(&["profiles.mine.reasoning.sendback=never"]).unwrap_err(),
            "wrong setting in --set profiles.mine.reasoning.sendback=never: \
             unknown key `sendback`, did you mean `send_back`?",
        ),
        (
            from_set(&["model.api_key_env=sk-secret"]).unwrap_err(),
            "settings cannot be used: `model.api_key_env` takes the NAME of a variable, not a key",
        ),
        (
            from_set(&["model.api_key=sk-secret"]).unwrap_err(),
            "wrong setting in --set model.api_key=…: \
             unknown key `api_key`, did you mean `api_key_env`?",
        ),
        (
            from_set(&["model={token: sk-secret}"]).unwrap_err(),
            "wrong setting in --set model=…: unknown key `token`, known here: name, base_url, \
             api_key_env, api, profile, context_window, max_output_tokens, temperature, \
             reasoning_effort, prices, timeouts, retries",
        ),
        (
            from_set(&["api_key: sk-secret"]).unwrap_err(),
            "wrong setting in --set …: \
             a setting is given as key=value, such as model.name=gpt-5",
        ),
        (
            from_set(&["model.base_url=127.0.0.1:8080?key=sk-secret"]).unwrap_err(),
            "settings cannot be used: `model.base_url` is `127.0.0.1:8080`, \
             but must begin with http:// or https://",
        ),
    ] {
        assert_eq!(line(&error), expected);
    }
    let file = settings("", "limits:\n  rounds: x\n", &[], &[], Sections::default());
    let text = line(&file.unwrap_err());
    assert!(text.contains("/named.yaml:2:11: a whole number"), "{text}");
    let missing = load(&Sources {
        files: vec!["/nowhere/x.yaml".into()],
        ..Sources::default()
    });
    assert_eq!(
        line(&missing.unwrap_err()),
        "cannot read settings from /nowhere/x.yaml: No such file or directory (os error 2)"
    );
}

#[test]
fn a_key_goes_only_to_the_server_it_was_set_for() {
    let openai = ("OPENAI_API_KEY", "sk-openai");
    let mine = ("MINE", "sk-mine");
    let check = |own: &str, set: &[&str], variables: &[(&str, &str)], expected: &str| {
        let settings = settings(own, "", variables, set, Sections::default()).unwrap();
        let found = match settings.endpoint(&environment(variables)) {
            Ok(endpoint) => {
                let key = endpoint.key.as_ref().map_or("no key", Key::secret);
                format!("{} {key}", endpoint.base_url)
            }
            Err(error) => line(&error),
        };
        assert_eq!(found, expected);
    };
    let local = "model.base_url=http://127.0.0.1:11434/v1/";
    let named = "model: { base_url: 'https://mine/v1', api_key_env: MINE }";
    check("", &[], &[openai], "https://api.openai.com/v1 sk-openai");
    check("", &[local], &[openai], "http://127.0.0.1:11434/v1 no key");
    check(named, &[], &[openai, mine], "https://mine/v1 sk-mine");
    check(named, &[local], &[mine], "http://127.0.0.1:11434/v1 no key");
    check(
        named,
        &[local, "model.api_key_env=OPENAI_API_KEY"],
        &[openai, mine],
        "http://127.0.0.1:11434/v1 sk-openai",
    );
    let usual = ("OPENAI_BASE_URL", "http://localhost:8080/v1");
    check(
        "",
        &[],
        &[usual, openai],
        "http://localhost:8080/v1 sk-openai",
    );
    check("", &[], &[usual], "http://localhost:8080/v1 no key");
    check(
        "",
        &[],
        &[],
        "cannot ask the server: no key for https://api.openai.com/v1: \
         variable OPENAI_API_KEY is not set",
    );
    check(
        named,
        &[],
        &[openai],
        "cannot ask the server: variable MINE, which should hold the key for https://mine/v1, \
         is not set",
    );
    let endpoint = Settings::default().endpoint(&environment(&[openai]));
    assert!(!format!("{endpoint:?}").contains("sk-"));
}

#[test]
fn models_share_parameters_but_not_the_window() {
    let local = Some("http://127.0.0.1:1/v1");
    assert_eq!(Settings::default().models(local), None);
    let settings = from_set(&[
        "model.name=big",
        "model.context_window=1000",
        "model.temperature=0",
        "compaction.summary.model=small",
        "compaction.summary.fallback_model=big",
    ]);
    let settings = settings.unwrap();
    let models = settings.models(local).unwrap();
    assert_eq!(models.main.window, Some(1000));
    assert_eq!(models.main.server.as_deref(), Some("http://127.0.0.1:1"));
    let (summary, fallback) = (models.summary.unwrap(), models.fallback.unwrap());
    assert_eq!((summary.name.as_str(), summary.window), ("small", None));
    assert_eq!(summary.parameters.temperature, Some(0.0));
    assert_eq!(
        (fallback.name.as_str(), fallback.window),
        ("big", Some(1000))
    );
    let unserved = settings.models(None).unwrap().main;
    assert_eq!(
        (unserved.server, unserved.profile.name.as_str()),
        (None, "openai")
    );
}

#[test]
fn what_is_known_of_a_model_counts_where_nothing_is_said() {
    let set = ["model.name=gpt-5", "compaction.summary.model=gpt-4o-mini"];
    let models = |more: &[&str]| {
        let settings = from_set(&[&set, more].concat()).unwrap();
        let models = settings.models(Some(PUBLIC_SERVER)).unwrap();
        (models.main.window, models.summary.unwrap().window)
    };
    assert_eq!(models(&[]), (Some(272_000), Some(128_000)));
    assert_eq!(
        models(&["model.context_window=9"]),
        (Some(9), Some(128_000))
    );
}

/// What a profile of one's own says lies over the one it is based on; the built-in one of its name
/// if it names none.
#[test]
fn profiles_of_ones_own_come_first() {
    let own = "profiles:\n\
               \x20 mine: { base: mistral, hosts: ['*.example.org'], calls: { id_max: 12 } }\n\
               \x20 groq: { output: { beside_tools: true } }\n\
               \x20 plain:\n\
               model: { name: m }";
    let with = |more: &[&str]| settings(own, "", &[], more, Sections::default()).unwrap();
    let chosen = |settings: &Settings, url: &str| {
        let Choice { profile, why } = settings.profile(url, "m");
        format!("{}: {why}", profile.name)
    };
    let settings = with(&[]);
    for (url, expected) in [
        (
            "https://llm.example.org/v1",
            "mine: the host is llm.example.org",
        ),
        (
            "https://api.groq.com/openai/v1",
            "groq: the host is api.groq.com",
        ),
        (
            "http://127.0.0.1:8080/v1",
            "compatible: no profile is for this server",
        ),
    ] {
        assert_eq!(chosen(&settings, url), expected);
    }
    let named = with(&["model.profile=plain"]);
    let url = "https://api.groq.com/openai/v1";
    assert_eq!(chosen(&named, url), "plain: model.profile names it");

    let mine = settings.profile_named("mine").unwrap();
    let mut expected = profile::named("mistral").unwrap();
    expected.name = "mine".to_owned();
    expected.calls.id_max = 12;
    assert_eq!(mine, expected);
    let groq = settings.profile_named("groq").unwrap();
    assert!(groq.output.beside_tools && groq.reasoning.send_back == SendBack::Never);
    assert_eq!(
        settings.profile_names()[..4],
        ["groq", "mine", "plain", "openai"]
    );
}

#[test]
fn transcripts_go_below_the_home_directory_unless_told() {
    let dir = |set: &[&str], variables: &[(&str, &str)]| {
        let settings = from_set(set).unwrap();
        let dir = settings.transcripts_dir(&environment(variables));
        dir.map_or_else(|error| line(&error), |dir| dir.display().to_string())
    };
    let home = ("HOME", "/home/me");
    assert_eq!(
        dir(&[], &[home]),
        "/home/me/.local/state/undertext/transcripts"
    );
    let state = ("XDG_STATE_HOME", "/state");
    assert_eq!(dir(&[], &[home, state]), "/state/undertext/transcripts");
    let relative = ("XDG_STATE_HOME", "state");
    assert_eq!(
        dir(&[], &[home, relative]),
        "/home/me/.local/state/undertext/transcripts"
    );
    assert_eq!(dir(&["transcripts.dir=here"], &[]), "here");
    assert_eq!(
        dir(&[], &[]),
        "settings cannot be used: neither XDG_STATE_HOME nor HOME says where transcripts go; \
         name a directory with --transcripts"
    );
}
