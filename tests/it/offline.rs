//! The script at work: the real client, loop and tools, on small projects in temporary directories.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use undertext::agent::{Agent, Task};
use undertext::hands::{Hands, Workspace, allowed};
use undertext::model::offline::{NAME, Offline, WINDOW};
use undertext::model::{Client, Endpoint, Timeouts};
use undertext::record::{Clock, MemoryStorage, Recorder};
use undertext::setup::{self, Models, Policy, Setup, Wire};
use undertext::tools::Toolbox;
use undertext::transcript::{Event, Run};

/// A file: its path and its text.
type File = (&'static str, &'static str);

/// A library of shapes, with a note and a test.
const SHAPES: [File; 4] = [
    (
        "GUIDE.md",
        "# shapes\n\nRun `sh spec/all.sh`. A shape is big from 10 on, huge above 250.\n",
    ),
    (
        "lib/shapes.awk",
        "# What shapes are.\n\nfunction area(width, height) {\n    return width * height\n}\n\n\
         function size_name(area_now) {\n    if (area_now > 250) {\n        return \"huge\"\n    }\n    \
         if (area_now >= 10) {\n        return \"big\"\n    }\n    return \"small\"\n}\n",
    ),
    (
        "lib/main.awk",
        "$1 == \"box\" && NF == 3 {\n    surface = area($2, $3)\n    print $1, surface, size_name(surface)\n    \
         next\n}\n\n{\n    print \"bad shape\", NR + 1\n}\n",
    ),
    (
        "spec/all.sh",
        "cd \"$(dirname \"$0\")/..\" || exit 2\nbad=0\nwhile read -r name row; do\n    \
         want=$(grep \"^$name \" spec/wanted.txt | cut -d' ' -f2-)\n    \
         got=$(echo \"$row\" | awk -f lib/shapes.awk -f lib/main.awk 2>&1)\n    \
         if [ \"$want\" = \"$got\" ]; then\n        echo \"ok $name\"\n    else\n        \
         echo \"FAIL $name: expected $want, found $got\"\n        bad=1\n    fi\ndone <spec/rows\nexit $bad\n",
    ),
];

const CASES: [File; 2] = [
    (
        "spec/rows",
        "tiny box 2 3\nedge box 2 5\nwide box 9 2\nmuch box 25 10\nmore box 25 11\nbad ring 1\n",
    ),
    (
        "spec/wanted.txt",
        "tiny box 6 small\nedge box 10 big\nwide box 18 big\nmuch box 250 big\nmore box 275 huge\nbad bad shape 2\n",
    ),
];

/// What the script says when it ends, and each reply and call before.
fn run(directory: &Path, task: &str) -> (String, Vec<String>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let offline = Offline::serve().await.unwrap();
        let endpoint = Endpoint {
            base_url: offline.base_url.clone(),
            api_key: None,
            headers: Vec::new(),
        };
        let client = Client::new(endpoint, Timeouts::default()).unwrap();
        let models = Models {
            main: setup::Model {
                window: Some(WINDOW),
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
        let environment = allowed(std::env::vars_os(), &[]);
        let workspace = Workspace::open(directory, None, environment).unwrap();
        let agent = Agent::new(setup, Arc::new(client), Toolbox::builtin())
            .with_hands(Hands::in_process(workspace));
        let clock = Clock::System;
        let begun = Run::new(clock.new_run(), "/w");
        let storage = MemoryStorage::default();
        let mut recorder = Recorder::create(Box::new(storage), clock, begun).unwrap();
        let cancel = CancellationToken::new();
        let finished = agent
            .run(&mut recorder, Some(Task::new(task)), &cancel)
            .await
            .unwrap();
        let mut told = Vec::new();
        for entry in recorder.view().transcript().entries() {
            if let Event::Response(response) = &entry.event {
                told.push(response.text.clone());
                let calls = response.calls.iter();
                told.extend(calls.map(|call| format!("  {} {}", call.name, call.arguments)));
            } else if let Event::Result(result) = &entry.event {
                told.push(format!("    = {}", result.content));
            } else if let Event::Overlay(overlay) = &entry.event {
                told.push(format!("[{:?} {}]", overlay.origin, overlay.rule));
            }
        }
        (finished.text, told)
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

/// Breaks a file by putting one text in the place of another, and lets the script mend it.
#[track_caller]
fn check(path: &str, right: &str, wrong: &str, most: usize) {
    let directory = lay_out(&[&SHAPES[..], &CASES[..]].concat());
    let file = directory.path().join(path);
    let healthy = fs::read_to_string(&file).unwrap();
    assert_eq!(healthy.matches(right).count(), 1, "{right}");
    fs::write(&file, healthy.replace(right, wrong)).unwrap();
    let (text, told) = run(directory.path(), "`sh spec/all.sh` fails. Mend it.");
    let said = told.join("\n");
    assert!(
        text.starts_with("`sh spec/all.sh` passes now."),
        "{right} {wrong}: {text}\n{said}"
    );
    let tries = told
        .iter()
        .filter(|line| line.starts_with("Try ") || line.contains("\nTry "))
        .count();
    assert!(tries <= most, "{right} {wrong}: {tries} tries");
}

#[test]
fn plain_bugs_are_mended() {
    check("lib/shapes.awk", ">= 10", "> 10", 6);
    check("lib/shapes.awk", "> 250", "> 205", 6);
    check("lib/shapes.awk", "width * height", "width / height", 20);
    check("lib/main.awk", "surface = area", "surfcae = area", 6);
    check("lib/main.awk", "$1 == \"box\" &&", "$1 != \"box\" &&", 20);
    check("lib/main.awk", "area($2, $3)", "area($2, $4)", 20);
    check("lib/main.awk", "NR + 1", "NR", 60);
}
