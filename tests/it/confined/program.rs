//! What is the program's own, as its tools find it: its key, its settings, its transcripts and locks.
//!
//! The program itself runs, in a home directory of which tools may read and write all that a user can
//! name; and the same tools run with `--sandbox off`, where they find everything.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use undertext::exchange::Status;
use undertext::transcript::{Event, Note, Run, Speaker, jsonl};

use super::{Area, By, bash, order, read};
use crate::draft::Draft;
use crate::provider::{Answer, Provider};

/// A run.
const RUN: &str = "0199d6a2-7b1c-7000-8000-00007c31d0f2";

/// Each line says a word and how often something was found; nothing prints the key itself, which would be
/// hidden.
const LOOKS: &str = r"exec 2>/dev/null; cd; found() { echo $1 $(grep -aFc server-pass); }
env | found variables
cat /proc/[0-9]*/environ | tr '\0' '\n' | found processes
cat .config/undertext/config.yaml | found settings
echo transcripts $(ls .local/state/undertext/transcripts | grep -c jsonl)
echo others $(cat .local/state/undertext/transcripts/*.jsonl | grep -c OTHER)
echo locks $(ls .local/state/undertext/locks | grep -c lock)
echo cores $(ulimit -c | grep -vc '^0$')
echo proxies $(env | grep -ic '^[a-z]*_proxy=')
echo '# evil' >> .config/undertext/config.yaml
mkdir -p .config/undertext/skills/evil && echo evil > .config/undertext/skills/evil/SKILL.md
echo evil > .local/state/undertext/transcripts/evil.jsonl
rm -rf .local/state/undertext/locks
true";

/// What the model was told of the looks.
fn told(area: &Area, sandbox: &str) -> String {
    let provider = Provider::new([
        Answer::Calls(vec![(
            "Bash",
            json!({ "command": LOOKS }).to_string().leak(),
        )]),
        Answer::Text("Done.".to_owned()),
    ]);
    fs::create_dir_all(area.path("home/.config/undertext")).unwrap();
    let settings = "sandbox: { read: ['~'], write: ['~/.config', '~/.local'] }\n# server-pass\n";
    fs::write(area.path("home/.config/undertext/config.yaml"), settings).unwrap();
    let transcripts = area.path("home/.local/state/undertext/transcripts");
    fs::create_dir_all(&transcripts).unwrap();
    let other = transcripts.join("01a1ffb1-ba00-7000-8000-000000000001.jsonl");
    fs::write(other, "OTHER\n").unwrap();
    #[expect(clippy::disallowed_methods, reason = "the program is what is tested")]
    let ended = Command::new(env!("CARGO_BIN_EXE_undertext"))
        .args(["run", "-q", "-m", "m", "--base-url", &provider.url])
        .args([
            "--api-key-env",
            "MODEL_SERVER",
            "--sandbox",
            sandbox,
            "Look.",
        ])
        .current_dir(area.path("w"))
        .env_clear()
        .env("PATH", env!("PATH"))
        .env("HOME", area.path("home"))
        .env("TMPDIR", area.path("tmp"))
        .env("MODEL_SERVER", "server-pass/4711")
        .env("HTTPS_PROXY", "http://127.0.0.1:9")
        .env("NO_PROXY", "127.0.0.1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(ended.status.success(), "{sandbox}: {ended:?}");
    provider.body();
    let result: Value = provider.messages().pop().unwrap();
    result["content"].as_str().unwrap().to_owned()
}

/// Whether something was written where only the program itself writes.
fn is_changed(area: &Area) -> bool {
    let own = area.path("home/.config/undertext");
    let state = area.path("home/.local/state/undertext");
    read(&own.join("config.yaml")).contains("evil")
        || own.join("skills/evil").exists()
        || state.join("transcripts/evil.jsonl").exists()
}

#[test]
fn what_is_the_programs_own_is_not_for_its_tools() {
    let area = Area::new();
    let open = told(&area, "off");
    let counts = |told: &str| -> Vec<(String, u32)> {
        let lines = told.lines().filter(|line| !line.starts_with('['));
        let split = lines.map(|line| line.split_once(' ').unwrap_or((line, "0")));
        split
            .map(|(word, count)| (word.to_owned(), count.parse().unwrap()))
            .collect()
    };
    for (word, count) in counts(&open) {
        // No sandbox is needed to keep the key, and ways of the user's, from the variables of tools.
        let expected = !["variables", "proxies", "cores"].contains(&&*word);
        assert!(count > 0 || !expected, "{word}: {open}");
        assert!(
            count == 0 || word != "variables" && word != "proxies",
            "{word}: {open}"
        );
    }
    assert!(is_changed(&area));
    let area = Area::new();
    let held = told(&area, "workspace");
    let counted = counts(&held);
    assert_eq!(counted.len(), counts(&open).len(), "{held}");
    for (word, count) in counted {
        assert_eq!(count, 0, "{word}: {held}");
    }
    assert!(!is_changed(&area));
}

/// What tools do to a transcript in their workspace, which is taken up by its path.
const TAMPERS: &str = r"exec 2>/dev/null
grep -c SECRET kept.jsonl; ls kept.blobs; echo evil >> kept.jsonl; echo evil > kept.blobs/evil
mv kept.jsonl other; mv kept.blobs others; rm -rf kept.jsonl kept.blobs; mv new kept.jsonl
echo evil > kept.index; echo tried";

/// A transcript in the workspace in which its run began, so long that it has an index, and its bytes.
fn kept(area: &Area) -> (PathBuf, Vec<u8>) {
    let path = area.path("w/kept.jsonl");
    let mut draft = Draft::default();
    let workspace = area.path("w").display().to_string();
    draft.push(Event::Run(Run::new(RUN.parse().unwrap(), workspace)));
    draft.user(Speaker::Task, "SECRET");
    for _ in 0..5 {
        // No request holds it.
        let text = "long ".repeat(200_000);
        draft.push(Event::Note(Note::Warning { text }));
    }
    let lines = draft.entries().iter();
    let lines: Vec<u8> = lines.flat_map(|it| jsonl::encode(it).unwrap()).collect();
    fs::write(&path, &lines).unwrap();
    (path, lines)
}

/// The program, by which a run is taken up and gone on with from this directory.
fn goes_on(area: &Area, directory: &str, provider: &Provider, line: &[&str]) -> Output {
    let run = ["run", "-q", "-m", "m", "--base-url", &provider.url];
    program(area, directory, &[&run, line].concat())
}

/// The program, started in this directory.
#[expect(clippy::disallowed_methods, reason = "the program is what is tested")]
fn program(area: &Area, directory: &str, line: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_undertext"))
        .args(line)
        .current_dir(area.path(directory))
        .env_clear()
        .env("PATH", env!("PATH"))
        .env("HOME", area.path("home"))
        .env("TMPDIR", area.path("tmp"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn a_transcript_in_the_workspace_is_not_for_tools() {
    let area = Area::new();
    let (path, lines) = kept(&area);
    fs::create_dir(area.path("w/kept.blobs")).unwrap();
    fs::write(area.path("w/kept.blobs/blob"), "SECRET").unwrap();
    fs::write(area.path("w/new"), "evil").unwrap();
    let provider = Provider::new([
        Answer::Calls(vec![(
            "Bash",
            json!({ "command": TAMPERS }).to_string().leak(),
        )]),
        Answer::Text("Done.".to_owned()),
    ]);
    let ended = goes_on(&area, "w", &provider, &["--resume", "kept.jsonl", "Look."]);
    assert!(ended.status.success(), "{ended:?}");
    provider.body();
    let result: Value = provider.messages().pop().unwrap();
    let told = result["content"].as_str().unwrap();
    assert!(told.contains("tried") && !told.contains("blob"), "{told}");
    assert!(!told.lines().any(|line| line == "1"), "{told}");
    assert!(fs::read(&path).unwrap().starts_with(&lines));
    let blobs = fs::read_dir(area.path("w/kept.blobs")).unwrap();
    assert_eq!(blobs.count(), 1);
    // Nor is an index made, or one of theirs believed.
    assert_eq!(read(&area.path("w/kept.index")), "evil\n");
}

/// Outside the directory of transcripts any run could have laid an index, whatever holds the tools of this one.
#[test]
fn no_index_is_read_elsewhere() {
    let area = Area::new();
    kept(&area);
    fs::write(area.path("w/kept.index"), "evil\n").unwrap();
    let path = area.path("w/kept.jsonl");
    let resume = ["--resume", path.to_str().unwrap(), "More."];
    for (directory, more) in [
        ("w", &["--sandbox", "read-only"][..]),
        ("w", &["--sandbox", "off"]),
        ("outside", &["-C", "."]),
    ] {
        let provider = Provider::new([Answer::Text("Done.".to_owned())]);
        let ended = goes_on(&area, directory, &provider, &[&resume, more].concat());
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(read(&area.path("w/kept.index")), "evil\n", "{more:?}");
    }
    // Not where that run went on and began, but where it went on once.
    fs::rename(&path, area.path("outside/kept.jsonl")).unwrap();
    fs::write(area.path("outside/kept.index"), "evil\n").unwrap();
    let path = area.path("outside/kept.jsonl");
    let resume = ["--resume", path.to_str().unwrap(), "More."];
    for (transcripts, is_read) in [("home", false), ("outside", true)] {
        let provider = Provider::new([Answer::Text("Done.".to_owned())]);
        let transcripts = area.path(transcripts);
        let more = ["--transcripts", transcripts.to_str().unwrap()];
        let ended = goes_on(&area, "w", &provider, &[&resume[..], &more].concat());
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(read(&area.path("outside/kept.index")) != "evil\n", is_read);
    }
}

/// Lets that run go on with a command.
fn counted(area: &Area, path: &str) {
    let call = vec![("Bash", r#"{"command": "seq 200"}"#)];
    let provider = Provider::new([Answer::Calls(call), Answer::Text("Done.".to_owned())]);
    let ended = goes_on(area, "w", &provider, &["--resume", path, "Count."]);
    assert!(ended.status.success(), "{ended:?}");
}

/// Nor by whoever changes how that run reads.
#[test]
fn no_edit_reads_an_index_elsewhere() {
    let area = Area::new();
    kept(&area);
    fs::write(area.path("w/kept.index"), "evil\n").unwrap();
    let path = area.path("w/kept.jsonl");
    let path = path.to_str().unwrap();
    counted(&area, path);
    for line in [
        &["pin", path, "e2"][..],
        &["unpin", path, "e2"],
        &[
            "compact",
            path,
            "--strategy",
            "strip-tools",
            "--keep-last",
            "0",
        ],
        &["retract", path],
    ] {
        let ended = program(&area, "outside", line);
        assert!(ended.status.success(), "{line:?}: {ended:?}");
        assert_eq!(read(&area.path("w/kept.index")), "evil\n", "{line:?}");
    }
    // Nor where that directory is called something else by now.
    fs::rename(area.path("w"), area.path("elsewhere")).unwrap();
    let path = area.path("elsewhere/kept.jsonl");
    let ended = program(&area, "outside", &["pin", path.to_str().unwrap(), "e2"]);
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(read(&area.path("elsewhere/kept.index")), "evil\n");
}

/// A fork has an index if the settings say so.
#[test]
fn a_fork_keeps_an_index_if_it_is_to() {
    let area = Area::new();
    kept(&area);
    let path = area.path("w/kept.jsonl");
    let path = path.to_str().unwrap();
    counted(&area, path);
    let line = [
        "compact",
        path,
        "--strategy",
        "strip-tools",
        "--keep-last",
        "0",
    ];
    assert!(program(&area, "outside", &line).status.success());
    for (index, count) in [("false", 0), ("true", 1)] {
        let set = format!("transcripts.index={index}");
        let made = area.path(index);
        let made_in = made.to_str().unwrap();
        let line = [
            "fork",
            path,
            "--transcripts",
            made_in,
            "--set",
            &set,
            "--without",
            "last",
        ];
        let ended = program(&area, "outside", &line);
        assert!(ended.status.success(), "{ended:?}");
        let files = fs::read_dir(&made).unwrap().flatten();
        let indexes = files.filter(|file| file.path().extension().is_some_and(|it| it == "index"));
        assert_eq!(indexes.count(), count, "{index}");
    }
}

/// File tools show nothing that is out of bounds, and change nothing, by any of their arguments.
#[tokio::test]
async fn file_tools_reach_nothing_out_of_bounds() {
    let paths = [
        "{home}/.ssh/id",
        "../home/.ssh/id",
        "{home}/.netrc",
        "{home}/tools/key",
        "{ours}/run.jsonl",
        "link/.ssh/id",
        "end",
        "/proc/self/root{home}/.ssh/id",
        "/proc/self/cwd/../home/.ssh/id",
        "/proc/self/environ",
        "/proc/1/environ",
        "/proc/self/mem",
        "/etc/shadow",
        "/dev/mem",
        "sub/../../home/.netrc",
    ];
    let mut tried = 0;
    for by in [By::Nothing, By::Namespaces, By::Landlock] {
        let area = Area::new();
        let symlink = std::os::unix::fs::symlink::<std::path::PathBuf, std::path::PathBuf>;
        symlink(area.path("home"), area.path("w/link")).unwrap();
        symlink(area.path("home/.ssh/id"), area.path("w/end")).unwrap();
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        let text = |name: &str| area.path(name).display().to_string();
        for path in paths {
            let path = path.replace("{home}", &text("home"));
            let path = path.replace("{ours}", &text("ours"));
            let (directory, name) = path.rsplit_once('/').unwrap_or((".", &path));
            let edit = json!([{"old": "SECRET", "new": "evil"}]);
            for (tool, arguments) in [
                ("Read", json!({ "path": path })),
                ("Grep", json!({"pattern": ".", "path": path})),
                (
                    "Grep",
                    json!({"pattern": "S", "path": directory, "glob": name}),
                ),
                ("Glob", json!({"pattern": "*", "path": directory})),
                ("Glob", json!({ "pattern": path })),
                ("Write", json!({"path": path, "content": "evil\n"})),
                ("Edit", json!({"path": path, "edits": edit})),
            ] {
                let outcome = hands.run(order(tool, &arguments)).await;
                tried += 1;
                let said = &outcome.content;
                let is_shown = said.contains("SECRET") || said.contains("root:");
                assert!(!is_shown, "{by:?} {tool} {arguments}: {said}");
                // Where a link itself lies in the workspace, its name may be told.
                let is_refused = outcome.status != Status::Ok || tool == "Glob" && path == "end";
                let is_empty = said.starts_with("No match") || said.starts_with("Nothing matches");
                assert!(is_refused || is_empty, "{by:?} {tool} {arguments}: {said}");
            }
        }
        hands.close().await;
        for name in [
            "home/.ssh/id",
            "home/.netrc",
            "home/tools/key",
            "ours/run.jsonl",
        ] {
            assert_eq!(read(&area.path(name)), "SECRET\n", "{by:?} {name}");
        }
    }
    println!("{tried} calls of file tools");
}

/// No argument of a call takes the sandbox away: there is none for it.
#[tokio::test]
async fn no_argument_takes_the_sandbox_away() {
    let area = Area::new();
    for by in [By::Namespaces, By::Landlock] {
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        for (name, value) in [
            ("sandbox", json!("off")),
            ("sandbox", json!(false)),
            ("no_sandbox", json!(true)),
            ("dangerously_disable_sandbox", json!(true)),
            ("dangerouslyDisableSandbox", json!(true)),
            ("with_escalated_permissions", json!(true)),
            ("sandbox_permissions", json!("require_escalated")),
            ("network", json!("open")),
            ("write", json!(["/"])),
            ("env", json!({"UNDERTEXT_SANDBOX__MODE": "off"})),
        ] {
            let mut arguments = json!({"command": "touch ../outside/new"});
            arguments[name] = value;
            let outcome = hands.run(order("Bash", &arguments)).await;
            assert_eq!(outcome.status, Status::Error, "{by:?} {arguments}");
            let said = &outcome.content;
            assert!(said.contains(&format!("unknown field `{name}`")), "{said}");
        }
        // Nor does what a command is told of.
        let command = "export UNDERTEXT_SANDBOX__MODE=off; touch ../outside/new";
        assert_eq!(bash(&hands, command).await.status, Status::Error);
        hands.close().await;
        assert!(!area.path("outside/new").exists(), "{by:?}");
    }
}
