//! The offline model at work: the real client, loop and tools, on small projects in temporary
//! directories.

mod served;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures::stream::BoxStream;
use insta::assert_snapshot;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, Task};
use undertext::hands::{Hands, Workspace, allowed};
use undertext::model::offline::{NAME, Offline, WINDOW};
use undertext::model::{Ask, Client, Delta, Endpoint, Model, Timeouts};
use undertext::record::{Clock, MemoryStorage, Recorder};
use undertext::setup::{self, Models, Policy, Setup, Wire};
use undertext::tools::Toolbox;
use undertext::transcript::{Event, Run};

use crate::oracle;

/// A file: its path and its text.
type File = (&'static str, &'static str);

/// A library of shapes in awk, with a note and a test.
const SHAPES: [File; 6] = [
    (
        "GUIDE.md",
        "# shapes\n\nRun `sh spec/all.sh`. A shape is big from 10 on, huge above 250.\n",
    ),
    (
        "lib/shapes.awk",
        r#"# What shapes are.

function area(width, height) {
    return width * height
}

function size_name(area_now) {
    if (area_now > 250) {
        return "huge"
    }
    if (area_now >= 10) {
        return "big"
    }
    return "small"
}
"#,
    ),
    (
        "lib/main.awk",
        r#"$1 == "box" && NF == 3 {
    surface = area($2, $3)
    print $1, surface, size_name(surface)
    next
}

{
    print "bad shape", NR + 1
}
"#,
    ),
    (
        "spec/all.sh",
        r#"cd "$(dirname "$0")/.." || exit 2
bad=0
while read -r name row; do
    want=$(grep "^$name " spec/wanted.txt | cut -d' ' -f2-)
    got=$(echo "$row" | awk -f lib/shapes.awk -f lib/main.awk 2>&1)
    if [ "$want" = "$got" ]; then
        echo "ok $name"
    else
        echo "FAIL $name: expected $want, found $got"
        bad=1
    fi
done <spec/rows
exit $bad
"#,
    ),
    (
        "spec/rows",
        "tiny box 2 3\nedge box 2 5\nwide box 9 2\nmuch box 25 10\nmore box 25 11\nbad ring 1\n",
    ),
    (
        "spec/wanted.txt",
        "tiny box 6 small\nedge box 10 big\nwide box 18 big\nmuch box 250 big\nmore box 275 huge\n\
         bad bad shape 2\n",
    ),
];

/// A program of the shell whose test nobody names.
const STEPS: [File; 2] = [
    (
        "steps.sh",
        r#"# How many steps of a size reach a height: at most 40.
steps() {
    height=$1
    size=$2
    if [ "$size" -lt 1 ] || [ "$height" -gt 400 ]; then
        echo none
        return 1
    fi
    count=$(( (height + size - 1) / size ))
    if ! [ "$count" -gt 40 ]; then
        echo "$count"
    fi
}

steps "$1" "$2"
"#,
    ),
    (
        "test/steps.sh",
        r#"check() {
    got=$(sh steps.sh "$1" "$2")
    [ "$got" = "$3" ] || { echo "FAIL steps $1 $2: expected $3, got $got"; bad=1; }
}
check 10 3 4
check 9 3 3
check 400 10 40
check 401 100 none
check 5 0 none
check 82 2 ""
check 5 1 5
exit $bad
"#,
    ),
];

/// What a run came to.
struct Ran {
    /// The last words.
    text: String,
    /// Each reply, call and overlay, a line or more each.
    told: Vec<String>,
}

impl Ran {
    fn tries(&self) -> Vec<&str> {
        let own = self
            .told
            .iter()
            .filter(|told| !told.starts_with("An extract"));
        let lines = own.flat_map(|told| told.lines());
        lines.filter(|line| line.starts_with("Try ")).collect()
    }
}

/// A client whose bodies are judged before they are sent.
#[derive(Debug)]
struct Judged(Client);

impl Model for Judged {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        assert_eq!(oracle::pairing(&ask.body), Ok(()));
        self.0.ask(ask)
    }
}

fn client(offline: &Offline) -> Client {
    let endpoint = Endpoint {
        base_url: offline.base_url.clone(),
        api_key: None,
        headers: Vec::new(),
    };
    Client::new(endpoint, Timeouts::default()).unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// Lets the script work on a directory, in a window of this size.
fn run(directory: &Path, task: &str, window: u64) -> Ran {
    block_on(async {
        let offline = Offline::serve().await.unwrap();
        let models = Models {
            main: setup::Model {
                window: Some(window),
                ..setup::Model::named(NAME)
            },
            summary: None,
            fallback: None,
        };
        let setup = Setup {
            wire: Wire {
                instructions: "You work.".to_owned(),
                tools: Vec::new(),
                models,
            },
            policy: Policy::default(),
        };
        let environment = allowed([("PATH".into(), "/usr/bin:/bin".into())], &[]);
        let workspace = Workspace::open(directory, None, environment).unwrap();
        let agent = Agent::new(
            setup,
            Arc::new(Judged(client(&offline))),
            Toolbox::builtin(),
        )
        .with_hands(Hands::in_process(workspace));
        let clock = Clock::System;
        let begun = Run::new(clock.new_run(), "/w");
        let storage = Box::new(MemoryStorage::default());
        let mut recorder = Recorder::create(storage, clock, begun).unwrap();
        let cancel = CancellationToken::new();
        let task = Some(Task::new(task));
        let finished = agent.run(&mut recorder, task, &cancel).await.unwrap();
        let mut told = Vec::new();
        for entry in recorder.view().transcript().entries() {
            match &entry.event {
                Event::Response(response) => {
                    told.push(response.text.clone());
                    let calls = response.calls.iter();
                    told.extend(calls.map(|call| format!("  {} {}", call.name, call.arguments)));
                }
                Event::Overlay(overlay) => told.push(format!("[overlay {}]", overlay.rule)),
                _ => {}
            }
        }
        Ran {
            text: finished.text,
            told,
        }
    })
}

fn lay_out(files: &[File]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

/// Breaks a file of a project by one text in the place of another.
fn broken(files: &[File], path: &str, right: &str, wrong: &str) -> tempfile::TempDir {
    let directory = lay_out(files);
    let file = directory.path().join(path);
    let healthy = fs::read_to_string(&file).unwrap();
    assert_eq!(healthy.matches(right).count(), 1, "{right}");
    fs::write(&file, healthy.replace(right, wrong)).unwrap();
    directory
}

#[test]
fn plain_bugs_are_mended_within_few_tries() {
    let task = "`sh spec/all.sh` fails. Mend it.";
    for (path, right, wrong, most) in [
        ("lib/shapes.awk", ">= 10", "> 10", 4),
        ("lib/shapes.awk", "> 250", "> 205", 4),
        ("lib/shapes.awk", ">= 10", ">= 11", 4),
        ("lib/shapes.awk", "width * height", "width / height", 6),
        ("lib/shapes.awk", "width * height", "width * heigth", 3),
        ("lib/main.awk", "surface = area", "surfcae = area", 3),
        ("lib/main.awk", "== \"box\"", "!= \"box\"", 16),
        ("lib/main.awk", "area($2, $3)", "area($2, $4)", 20),
        ("lib/main.awk", "NR + 1", "NR", 8),
    ] {
        let directory = broken(&SHAPES, path, right, wrong);
        let ran = run(directory.path(), task, WINDOW);
        let said = ran.told.join("\n");
        assert!(
            ran.text.starts_with("`sh spec/all.sh` passes now."),
            "{wrong}: {said}"
        );
        assert!(
            ran.tries().len() <= most,
            "{wrong}: {} tries",
            ran.tries().len()
        );
    }
}

#[test]
fn a_test_that_nobody_names_is_found_and_the_shell_is_mended() {
    for (right, wrong) in [
        ("-lt 1", "-le 1"),
        ("-gt 400", "-ge 400"),
        ("size - 1", "size + 1"),
        ("! [ \"$count\"", "[ \"$count\""),
        (" || [ \"$height\"", " && [ \"$height\""),
        ("height=$1", "height=$2"),
        ("\"$1\" \"$2\"\n", "\"$2\" \"$1\"\n"),
    ] {
        let directory = broken(&STEPS, "steps.sh", right, wrong);
        let ran = run(
            directory.path(),
            "Something is wrong with the steps. Mend it.",
            WINDOW,
        );
        let said = ran.told.join("\n");
        assert!(
            ran.text.starts_with("`sh test/steps.sh` passes now."),
            "{wrong}: {said}"
        );
    }
}

#[test]
fn what_it_cannot_mend_it_leaves_as_it_was_and_says_so() {
    let directory = broken(&SHAPES, "lib/shapes.awk", "\"small\"", "\"little\"");
    let path = directory.path().join("lib/shapes.awk");
    let before = fs::read_to_string(&path).unwrap();
    // So little room that hardly anything stays to be read.
    let ran = run(directory.path(), "`sh spec/all.sh` fails. Mend it.", 12_000);
    assert_snapshot!(ran.text, @"I could not mend it: `sh spec/all.sh` still fails. I tried 47 plain repairs, one at a time, in `lib/shapes.awk`, `lib/main.awk`, and took all of them back: the files are as they were. What fails speaks of: box, tiny, small, little. I am a script and no LLM: I can only look for a failing test and try plain repairs.");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    let overlays = ran.told.iter().filter(|told| told.starts_with("[overlay"));
    assert!(overlays.count() > 3, "{}", ran.told.join("\n"));
    // Whatever was put away, nothing is tried twice, and the count goes on.
    let tries = ran.tries();
    let changes = tries.iter().map(|line| line.split_once(" in ").unwrap().1);
    assert_eq!(changes.collect::<BTreeSet<_>>().len(), tries.len());
    for (place, line) in tries.iter().enumerate() {
        assert!(
            line.starts_with(&format!("Try {} in ", place + 1)),
            "{line}"
        );
    }
}

#[test]
fn what_cannot_be_changed_is_said_to_be_so() {
    let directory = broken(&STEPS, "steps.sh", "-lt 1", "-le 1");
    let path = directory.path().join("steps.sh");
    let mut rights = fs::metadata(&path).unwrap().permissions();
    rights.set_readonly(true);
    fs::set_permissions(&path, rights).unwrap();
    let before = fs::read_to_string(&path).unwrap();
    let ran = run(directory.path(), "The test fails. Mend it.", WINDOW);
    assert_snapshot!(ran.text, @"I could not mend it: `sh test/steps.sh` still fails. I could change nothing. Every change of `steps.sh` was rejected. What fails speaks of: steps. I am a script and no LLM: I can only look for a failing test and try plain repairs.");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    assert_eq!(ran.tries().len(), 2);
}

#[test]
fn another_task_is_left_alone() {
    let directory = broken(&STEPS, "steps.sh", "-lt 1", "-le 1");
    let ran = run(directory.path(), "Write a poem about the sea.", WINDOW);
    assert_snapshot!(ran.text, @"This is nothing that I can do, and I changed nothing. I am a script and no LLM: I can only look for a failing test and try plain repairs. A task that says what fails, with the command of a test in backquotes, is one for me.");
}
