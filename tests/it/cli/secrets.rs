//! Secrets wherever tools can print them, and every way in which something is shown or handed out.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use crate::cli::served::{first_line, get};
use crate::cli::{Place, Ran, ended, says, signal};
use crate::provider::{Answer, Provider};

/// What looks like a secret, a line each but for the keys at the end. The secret stands in `«»`,
/// what is drawn in it as `<24>`, of hexadecimal digits `<x32>`, of capital letters `<A16>`.
const SHAPES: &str = include_str!("shapes.txt");

/// Commands that show a run.
const SHOWING: [&str; 34] = [
    "list",
    "list --json",
    "show",
    "show --json",
    "print",
    "print --json",
    "print --format markdown",
    "print --view both",
    "print --view both --json",
    "print --compacted --format markdown",
    "print --at 5.1",
    "replay",
    "replay --json",
    "replay --at r9",
    "replay --diff r2 r9",
    "replay --diff r2 r9 --json",
    "replay --blame r9",
    "replay --blame r9 --json",
    "why --text .",
    "why --text . --json",
    "why --text [a-zA-Z0-9]{24}",
    "why 5.1",
    "page --out -",
    "export last",
    "export last --view both",
    "export last --format markdown",
    "export last --format markdown --view compacted",
    "export last --format atif",
    "compact last --dry-run",
    "compact last --dry-run --json",
    "lab last",
    "config show",
    "tools",
    "fork last",
];

/// Commands that explain a run of one call.
const EXPLAINING: [&str; 6] = [
    "replay --blame r2",
    "replay --diff r1 r2",
    "why 5.1",
    "why 5.1 --json",
    "why e5",
    "why e6",
];

/// Commands that write one into a file, which is named last.
const WRITING: [&str; 3] = [
    "page --out ../page.html",
    "export last --out ../run.jsonl",
    "export last --format atif --out ../run.json",
];

/// Commands that say something of a run or of the settings.
pub(super) const SAYING: [&str; 30] = [
    "list",
    "list --json",
    "show",
    "show --json",
    "print",
    "print --json",
    "print --format markdown",
    "print --view both",
    "print --compacted --json",
    "replay",
    "replay --json",
    "replay --diff r1 r2",
    "replay --blame r2",
    "why --text text",
    "why --text text --json",
    "compact last --dry-run",
    "lab last",
    "export last --format markdown",
    "tools",
    "tools --json",
    "tools Odd",
    "config show",
    "config path",
    "doctor",
    "pin last e3",
    "fork last",
    "retract last last",
    "completions bash",
    "config schema",
    "page",
];

/// The key of the server, which its variable's name does not tell.
pub(super) const KEY: &str = "server-pass/4711 with+signs";

/// The value of a variable that tools do not see.
const VALUE: &str = "sk-very-secret";

/// How the two are written otherwise.
const OTHERWISE: [&str; 5] = [
    "server-pass%2F4711%20with%2Bsigns",
    "c2VydmVyLXBhc3MvNDcxMSB3aXRoK3NpZ25z",
    "c2stdmVyeS1zZWNyZX",
    "736b2d766572792d736563726574",
    "server-pass\\/4711",
];

/// The shapes as a text, and the secrets in it.
pub(super) fn drawn() -> (String, Vec<String>) {
    let (mut text, mut secrets) = (String::new(), Vec::new());
    let mut seed: u64 = 11;
    let mut letters = SHAPES.chars();
    let mut open = None;
    while let Some(letter) = letters.next() {
        match letter {
            '«' => open = Some(text.len()),
            '»' => secrets.extend(open.take().map(|from| text[from..].to_owned())),
            '<' => {
                let count: String = letters.by_ref().take_while(|c| *c != '>').collect();
                let alphabet = match &count[..1] {
                    "x" => "0123456789abcdef",
                    "A" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
                    _ => "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
                };
                for _ in 0..count.trim_start_matches(['x', 'A']).parse().unwrap() {
                    seed = seed
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let place = (seed >> 33) as usize % alphabet.len();
                    text.push_str(&alphabet[place..=place]);
                }
            }
            letter => text.push(letter),
        }
    }
    (text, secrets)
}

/// A place whose workspace holds the shapes, and the known values in every form.
pub(super) fn place(text: &str) -> Place {
    let place = Place::new();
    let known = format!("{KEY}\n{VALUE}\n{}\n", OTHERWISE[..4].join("\n"));
    fs::write(place.path("home/w/shapes.txt"), text).unwrap();
    fs::write(place.path("home/w/known.txt"), &known).unwrap();
    let tools = place.path("home/.config/undertext/tools");
    fs::create_dir_all(&tools).unwrap();
    fs::write(
        tools.join("Fetch.yaml"),
        "name: Fetch\ndescription: Fetches everything.\nmeta: { effect: reads }\ncommand: cat shapes.txt known.txt\n",
    )
    .unwrap();
    let config = place.path("home/.config/undertext/config.yaml");
    fs::write(
        config,
        "compaction:\n  estimate: chars\n  micro: { enabled: false }\n  \
         auto: { token_threshold: 9000 }\n  hooks: { before: cat hook.json }\n",
    )
    .unwrap();
    let reason = format!("{text}{known}");
    let hook = serde_json::json!({"veto": true, "reason": reason}).to_string();
    fs::write(place.path("home/w/hook.json"), hook).unwrap();
    place
}

fn command(place: &Place, line: &[&str]) -> Ran {
    let mut command = place.command(line);
    ended(command.env("MODEL_SERVER", KEY).spawn().unwrap())
}

/// A shape that holds no secret of its own: what is shown is masked, not left out.
pub(super) const EVIDENCE: &str = "[masked:";

/// Replies that print all of it in several ways.
pub(super) fn show_all() -> [Answer; 3] {
    let call = |name, arguments| Answer::Calls(vec![(name, arguments)]);
    [
        call("Bash", r#"{"command":"cat shapes.txt known.txt"}"#),
        call("Read", r#"{"path":"shapes.txt"}"#),
        call("Fetch", "{}"),
    ]
}

/// Those of these secrets, and of the known values, that a text holds.
pub(super) fn shows<'a>(bytes: &[u8], secrets: &'a [String]) -> Vec<&'a str> {
    let all = secrets.iter().map(String::as_str);
    let all = all.chain([KEY, VALUE]).chain(OTHERWISE);
    all.filter(|secret| holds(bytes, &secret[..secret.len().min(20)]))
        .collect()
}

/// Everything below a directory.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    all
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

/// Every tool prints everything, then the model says it.
fn run(place: &Place, text: &str) -> (Ran, Provider) {
    let call = |name, arguments| Answer::Calls(vec![(name, arguments)]);
    let provider = Provider::new([
        call(
            "Bash",
            r#"{"command":"seq 1 999; cat shapes.txt known.txt","background":true}"#,
        ),
        call("Job", r#"{"job":"5.1","action":"wait"}"#),
        call(
            "Bash",
            r#"{"command":"cat shapes.txt known.txt; seq 1 99999; cat known.txt shapes.txt"}"#,
        ),
        call("Read", r#"{"path":"shapes.txt"}"#),
        call("Read", r#"{"path":"known.txt"}"#),
        call("Grep", r#"{"pattern":".","path":"shapes.txt"}"#),
        call("Fetch", "{}"),
        says("I am done."),
        says(text),
    ]);
    let line = [
        "run",
        "--json",
        "-vv",
        "--log-file",
        "../log",
        "--output-last-message",
        "../said",
        "-m",
        "m",
        "--base-url",
        &provider.url,
        "--api-key-env",
        "MODEL_SERVER",
        "--check",
        "cat shapes.txt known.txt; test -e passed || { touch passed; exit 1; }",
        "print it all",
    ];
    (command(place, &line), provider)
}

#[test]
fn what_looks_like_a_secret_is_shown_nowhere_and_known_values_are_nowhere() {
    let (text, secrets) = drawn();
    assert!(secrets.len() >= 48);
    let place = place(&text);
    let (ran, provider) = run(&place, &text);
    assert_eq!(ran.code, 0, "{}\n{}", ran.err, ran.out);
    // The tools printed it, and the model read it.
    let bodies: Vec<Vec<u8>> = (0..9).map(|_| provider.body()).collect();
    let last = bodies.last().unwrap();
    for secret in &secrets {
        let secret = secret.replace('"', "\\\"");
        assert!(holds(last, &secret), "the model reads {secret}");
    }
    let hidden = || [KEY, VALUE].into_iter().chain(OTHERWISE);
    for value in hidden() {
        assert!(
            !bodies.iter().any(|body| holds(body, value)),
            "the model reads {value}"
        );
        for (path, bytes) in files(&place.path("home/.local")) {
            assert!(!holds(&bytes, value), "{path} holds {value}");
        }
    }
    assert!(holds(last, "[secret]"));
    let transcript = fs::read(&place.transcripts()[0]).unwrap();
    assert!(
        secrets
            .iter()
            .all(|secret| holds(&transcript, &secret.replace('"', "\\\"")))
    );
    let blobs = files(&place.path("home/.local"));
    assert!(blobs.iter().any(|(path, _)| path.contains(".blobs/")));
    assert!(holds(&transcript, r#""kind":"hook""#));

    let shown = |name: &str, bytes: &[u8]| {
        assert!(!bytes.is_empty(), "{name} shows nothing");
        let shown = shows(bytes, &secrets);
        assert!(
            shown.is_empty(),
            "{name} shows {shown:?}:\n{}",
            String::from_utf8_lossy(bytes)
        );
    };
    shown("run", ran.out.as_bytes());
    shown("run's remarks", ran.err.as_bytes());
    shown("the log", &fs::read(place.path("home/log")).unwrap());
    shown(
        "the last message",
        &fs::read(place.path("home/said")).unwrap(),
    );
    for line in SHOWING {
        let ran = command(&place, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.code, 0, "{line}: {}", ran.err);
        shown(line, [ran.out, ran.err].concat().as_bytes());
    }
    for line in WRITING {
        let ran = command(&place, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.code, 0, "{line}: {}", ran.err);
        let out = line.rsplit("../").next().unwrap();
        shown(line, &fs::read(place.path("home").join(out)).unwrap());
    }
    // What was masked is a transcript still; what is not is the file itself.
    assert_eq!(command(&place, &["show", "../run.jsonl"]).code, 0);
    let parent = place.transcripts()[0].display().to_string();
    let exact = command(&place, &["export", &parent, "--unmasked"]);
    assert!(exact.out.as_bytes() == transcript);
    let masked = command(&place, &["export", &parent]).err;
    insta::assert_snapshot!(masked, @"what looks like a secret is masked: the requests in it can no longer be verified; --unmasked writes it as it is");
    for line in [
        ["print", &parent, "--unmasked"],
        ["show", &parent, "--unmasked"],
    ] {
        assert_eq!(command(&place, &line).code, 0);
    }
    let print = command(&place, &["print", &parent, "--unmasked"]).out;
    assert!(secrets.iter().all(|secret| holds(print.as_bytes(), secret)));
}

/// Commands that change a run, play it again or try policies on it.
const CHANGING: [&str; 12] = [
    "replay --run",
    "replay --run --json",
    "lab last --json",
    "pin last e3",
    "unpin last e3",
    "expand last 5.1",
    "compact last",
    "compact last --json",
    "retract last last",
    "fork last --json",
    "doctor",
    "tools Fetch",
];

/// What a batch says of its lines, a page that is served, and whoever changes a run.
#[test]
fn nothing_that_works_on_runs_shows_a_secret() {
    let (text, secrets) = drawn();
    let place = place(&text);
    let provider = Provider::new(show_all().into_iter().chain([says(&text)]));
    // Whoever works on the run later knows the key as well.
    let config = place.path("home/.config/undertext/config.yaml");
    let server = format!(
        "model: {{ base_url: \"{}\", api_key_env: MODEL_SERVER }}\n",
        provider.url
    );
    fs::write(&config, fs::read_to_string(&config).unwrap() + &server).unwrap();
    // The second line is wrong, and what is wrong is told.
    let task =
        serde_json::json!({"id": secrets[0], "task": text, "check": "cat shapes.txt known.txt"});
    let wrong = serde_json::json!({"task": "x", &*secrets[11]: 1});
    fs::write(
        place.path("home/w/tasks.jsonl"),
        format!("{task}\n{wrong}\n"),
    )
    .unwrap();
    let batch = [
        "batch",
        "-v",
        "-m",
        "m",
        "--log-file",
        "../log",
        "tasks.jsonl",
    ];
    let clean = |name: &str, bytes: &[u8]| {
        let shown = shows(bytes, &secrets);
        let said = String::from_utf8_lossy(bytes);
        assert!(shown.is_empty(), "{name} shows {shown:?}:\n{said}");
    };
    let ran = command(&place, &batch);
    assert!(ran.out.contains("\"reason\":\"finished\""), "{ran:?}");
    assert!(ran.out.contains("unknown field"), "{ran:?}");
    assert!(ran.out.contains(EVIDENCE), "{ran:?}");
    clean("batch", [ran.out, ran.err].concat().as_bytes());
    clean("its log", &fs::read(place.path("home/log")).unwrap());
    let all = [&batch[..], &["--all", "--output", "../results"]].concat();
    let ran = command(&place, &all);
    clean("what it says again", [ran.out, ran.err].concat().as_bytes());
    clean("its file", &fs::read(place.path("home/results")).unwrap());
    for (path, bytes) in files(&place.path("home/.local")) {
        assert_eq!(shows(&bytes, &[]), [""; 0], "{path}");
    }

    let mut serving = place.command(&["page", "last", "--serve"]).spawn().unwrap();
    let page = get(&first_line(&mut serving));
    signal(&serving, Signal::INT);
    serving.wait().unwrap();
    assert!(page.contains(EVIDENCE), "{page}");
    clean("the page that is served", page.as_bytes());
    for line in CHANGING {
        let ran = command(&place, &line.split(' ').collect::<Vec<_>>());
        clean(line, [ran.out, ran.err].concat().as_bytes());
    }
}

/// What is played again keeps out what a run with these settings would: the key of the server too,
/// whether settings name it or it is said each time.
#[test]
fn known_values_are_kept_out_of_a_run_that_is_played_again() {
    for (settings, run, replay) in [
        (", api_key_env: MODEL_SERVER", "run", "replay --run"),
        (
            "",
            "run --api-key-env MODEL_SERVER",
            "replay --run --set model.api_key_env=MODEL_SERVER",
        ),
    ] {
        let place = place("");
        let provider = Provider::new(show_all().into_iter().chain([says("Done.")]));
        let config = place.path("home/.config/undertext/config.yaml");
        let url = &provider.url;
        let server = format!("model: {{ name: m, base_url: \"{url}\"{settings} }}\n");
        fs::write(config, server).unwrap();
        let run: Vec<&str> = run.split(' ').chain(["print it"]).collect();
        assert_eq!(command(&place, &run).code, 0);
        let again = command(&place, &replay.split(' ').collect::<Vec<_>>());
        assert_eq!(again.code, 0, "{again:?}");
        let runs = place.transcripts();
        assert_eq!(runs.len(), 2);
        for path in runs {
            let bytes = fs::read(&path).unwrap();
            assert!(holds(&bytes, "[secret]"));
            assert_eq!(shows(&bytes, &[]), [""; 0], "{replay}");
        }
    }
}

/// Keys at the places where tasks, names and labels are cut.
#[test]
fn what_is_cut_shows_no_part_of_a_secret() {
    let key = "SK7f3a9c0e5b1d82647f3a9c0e5b1d8264";
    for before in [10, 20, 40, 50, 70, 90] {
        let place = Place::new();
        let text = format!("{} {key} {key}", "x".repeat(before));
        let calls = Answer::Calls(vec![
            ("Bash", &*format!(r#"{{"command":"T={text}"}}"#).leak()),
            ("Odd", "{}"),
        ]);
        let provider = Provider::new([calls, says("Done.")]);
        let ran = place.ask(&provider, &["--name", &text, &text]);
        assert_eq!(ran.code, 0, "{ran:?}");
        for line in SHOWING.iter().filter(|line| !line.contains("r9")) {
            let mut command = place.command(&line.split(' ').collect::<Vec<_>>());
            let ran = ended(command.env("COLUMNS", "80").spawn().unwrap());
            let said = ran.out + &ran.err;
            assert!(!said.contains(&key[..8]), "{line}, {before}: {said}");
        }
        for line in EXPLAINING {
            let ran = place.run(&line.split(' ').collect::<Vec<_>>());
            assert_eq!(ran.code, 0, "{line}: {ran:?}");
            assert!(
                !ran.out.contains(&key[..8]),
                "{line}, {before}: {}",
                ran.out
            );
        }
    }
}

/// An argument that only its name gives away, where a call is named by what it is about.
#[test]
fn a_call_is_not_named_by_a_secret() {
    let key = "aB3dE5fG7hI9jK1lM3nO5pQ7rS9t";
    let place = Place::new();
    let login = format!(r#"{{"api_key":"{key}"}}"#);
    let calls = Answer::Calls(vec![("Login", &*login.leak())]);
    let provider = Provider::new([calls, says("Done.")]);
    let ran = place.ask(&provider, &["-v", "log in"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!(ran.out + &ran.err).contains(key));
    let showing = SHOWING.iter().filter(|line| !line.contains("r9"));
    for line in showing.chain(&EXPLAINING) {
        let ran = place.run(&line.split(' ').collect::<Vec<_>>());
        assert!(!(ran.out + &ran.err).contains(key), "{line}");
    }
    let why = place.run(&["why", "5.1"]).out;
    assert!(why.contains("Login ([masked: secret])"), "{why}");
}

/// A run says whose values it hides, and a name of a project stays what it is.
#[test]
fn a_run_says_what_it_hides() {
    let place = Place::new();
    std::fs::create_dir(place.path("home/acme-backend-4f")).unwrap();
    let call = Answer::Calls(vec![(
        "Bash",
        r#"{"command":"pwd; echo acme-backend, k9Xq2mZtw7"}"#,
    )]);
    let provider = Provider::new([call, says("Done."), says("Done.")]);
    let line = [
        "run",
        "-m",
        "m",
        "--base-url",
        &provider.url,
        "-C",
        "../acme-backend-4f",
        "go",
    ];
    let run = |line: &[&str]| {
        let mut command = place.command(line);
        command
            .env("SONAR_PROJECT_KEY", "acme-backend")
            .env("DEPLOY_TOKEN", "acme-backend-4f")
            .env("SONAR_TOKEN", "k9Xq2mZtw7")
            .env("X_TOKEN", "follow_up");
        ended(command.spawn().unwrap())
    };
    let ran = run(&line);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = ran
        .err
        .lines()
        .find(|line| line.contains("hidden"))
        .unwrap();
    insta::assert_snapshot!(told, @"values of SECRET_KEY, SONAR_TOKEN and X_TOKEN are hidden from the model and the transcript");
    provider.body();
    let body = String::from_utf8(provider.body()).unwrap();
    assert!(
        body.contains("/acme-backend-4f\\nacme-backend, [secret]"),
        "{body}"
    );
    // A value that is a word of the format is hidden in texts alone.
    let ran = run(&[
        "run",
        "--continue",
        "--base-url",
        &provider.url,
        "-C",
        "../acme-backend-4f",
        "a follow_up",
    ]);
    assert_eq!((ran.code, &*ran.out), (0, "Done.\n"), "{ran:?}");
    let transcript = fs::read_to_string(&place.transcripts()[0]).unwrap();
    assert!(transcript.contains(r#""origin":"follow_up","text":"a [secret]""#));
}
