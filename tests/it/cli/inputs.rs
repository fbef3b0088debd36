//! What is no transcript, or not all of one, or not of this version; and every command that looks.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use undertext::transcript::{Event, jsonl};

use crate::cli::{Place, Ran, ended};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");

/// Every command that reads a run and changes nothing of it.
const LOOKS: [&[&str]; 14] = [
    &["show"],
    &["show", "--json"],
    &["print"],
    &["print", "--json", "--view", "both"],
    &["print", "--compacted", "--format", "markdown"],
    &["replay"],
    &["replay", "--verify"],
    &["replay", "--at", "r2"],
    &["replay", "--run"],
    &["export"],
    &["export", "--format", "markdown", "--view", "both"],
    &["export", "--format", "atif"],
    &["page", "--out", "-"],
    &["fork"],
];

/// The golden run with one entry changed, its checksum made anew.
fn changed(place: usize, change: impl FnOnce(&mut Event)) -> String {
    let golden = fs::read_to_string(GOLDEN).unwrap();
    let mut lines: Vec<String> = golden.lines().map(|line| format!("{line}\n")).collect();
    let mut entry = jsonl::decode(lines[place].trim_end().as_bytes()).unwrap();
    change(&mut entry.event);
    lines[place] = String::from_utf8(jsonl::encode(&entry).unwrap()).unwrap();
    lines.concat()
}

/// The golden run, of another format.
pub(crate) fn of_format(format: u32) -> String {
    changed(0, |event| {
        if let Event::Run(run) = event {
            run.format = format;
        }
    })
}

/// Lays the inputs out, each under a name of its own.
fn inputs(dir: &Path) -> Vec<&'static str> {
    let golden = fs::read_to_string(GOLDEN).unwrap();
    let (first, rest) = golden.split_once('\n').unwrap();
    let write = |name: &str, text: &str| fs::write(dir.join(name), text).unwrap();
    write("empty.jsonl", "");
    write("torn.jsonl", &first[..40]);
    write("headless.jsonl", rest);
    write(
        "damaged.jsonl",
        &golden.replacen("TodoWrite", "TodoWrote", 8),
    );
    write("newer.jsonl", &of_format(2));
    write(
        "other.jsonl",
        "{\"type\":\"session\",\"id\":\"x\"}\n{\"role\":\"user\"}\n",
    );
    write("nul.jsonl", &"\0".repeat(1 << 20));
    fs::create_dir(dir.join("directory.jsonl")).unwrap();
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, dir.join("pipe.jsonl"), FileType::Fifo, mode, 0).unwrap();
    symlink("/dev/zero", dir.join("zero.jsonl")).unwrap();
    vec![
        "empty.jsonl",
        "torn.jsonl",
        "headless.jsonl",
        "damaged.jsonl",
        "newer.jsonl",
        "other.jsonl",
        "nul.jsonl",
        "directory.jsonl",
        "pipe.jsonl",
        "zero.jsonl",
        "none.jsonl",
    ]
}

#[test]
fn whatever_is_looked_at_is_told_in_a_line() {
    let place = Place::new();
    let dir = place.path("home/w");
    let mut told = String::new();
    for input in inputs(&dir) {
        writeln!(told, "{input}").unwrap();
        // What many commands say alike is told once.
        let mut said: Vec<(String, Vec<String>)> = Vec::new();
        for line in LOOKS {
            let Ran { code, err, .. } = place.run(&[line, &[input]].concat());
            assert!(!err.contains("panicked"), "{line:?} {input}: {err}");
            let last = err.lines().rev().find(|line| !line.starts_with("  "));
            let last = last.unwrap_or("nothing");
            let last = format!("{code} {}", place.plain(last).replace("/home/w/", ""));
            let line = line.join(" ");
            match said.iter_mut().find(|(text, _)| *text == last) {
                Some((_, lines)) => lines.push(line),
                None => said.push((last, vec![line])),
            }
        }
        for (text, lines) in said {
            let who = if lines.len() == LOOKS.len() {
                "all".to_owned()
            } else {
                lines.join(", ")
            };
            writeln!(told, "  {text}\n    {who}").unwrap();
        }
    }
    insta::assert_snapshot!(told, @"
    empty.jsonl
      6 undertext: empty.jsonl holds no run: it is empty; `undertext list` shows all runs
        all
    torn.jsonl
      6 undertext: torn.jsonl holds no run: its first line is JSON that is cut off; what other agents recorded is read by `undertext import`
        all
    headless.jsonl
      0 warning: headless.jsonl is damaged: line 1: entry 1 is missing
        show, show --json, print, print --json --view both, print --compacted --format markdown, replay, replay --at r2
      6 warning: headless.jsonl is damaged: line 1: entry 1 is missing
        replay --verify, export, export --format markdown --view both, export --format atif, page --out -
      6 undertext: a damaged run cannot be played; `undertext fork --at` makes a sound run of what lies before the damage
        replay --run
      6 undertext: headless.jsonl is damaged before e72: line 1: entry 1 is missing; `undertext print` shows what is left
        fork
    damaged.jsonl
      0 warning: damaged.jsonl is damaged: line 2: checksum does not match; line 3: entry 2 is missing (and 8 places more)
        show, show --json, print, replay
      0 the run has no settings yet, so nothing is read
        print --json --view both, print --compacted --format markdown
      6 warning: damaged.jsonl is damaged: line 2: checksum does not match; line 3: entry 2 is missing (and 8 places more)
        replay --verify, export, export --format markdown --view both, export --format atif, page --out -
      1 undertext: request e17 cannot be rebuilt: entries before it are missing; `undertext print` shows what is left
        replay --at r2
      6 undertext: a damaged run cannot be played; `undertext fork --at` makes a sound run of what lies before the damage
        replay --run
      6 undertext: damaged.jsonl is damaged before e72: line 2: checksum does not match; `undertext print` shows what is left
        fork
    newer.jsonl
      0 warning: newer.jsonl has format 2, this version knows formats up to 1; what is shown may be wrong
        show, show --json, print, print --json --view both, print --compacted --format markdown, replay, replay --at r2
      6 undertext: this version cannot verify a run of a newer format; use the undertext that recorded it, or a newer one
        replay --verify
      6 undertext: this version cannot play a run of a newer format; use the undertext that recorded it, or a newer one
        replay --run
      6 warning: newer.jsonl has format 2, this version knows formats up to 1; what is shown may be wrong
        export, export --format markdown --view both, export --format atif, page --out -
      6 undertext: newer.jsonl has format 2, this version knows formats up to 1; use the undertext that recorded it, or a newer one
        fork
    other.jsonl
      6 undertext: other.jsonl holds no run: its first line is an object, but no entry of a transcript; what other agents recorded is read by `undertext import`
        all
    nul.jsonl
      6 undertext: nul.jsonl holds no run: its first line is no JSON; what other agents recorded is read by `undertext import`
        all
    directory.jsonl
      6 undertext: directory.jsonl is a directory, not a plain file; name a transcript in it
        all
    pipe.jsonl
      6 undertext: pipe.jsonl is a named pipe, not a plain file; write what it gives into a file whose name ends in .jsonl, and name that
        all
    zero.jsonl
      6 undertext: zero.jsonl is a symbolic link, not a plain file; name the file that it leads to
        all
    none.jsonl
      2 undertext: cannot read none.jsonl: No such file or directory (os error 2); check the path
        all
    ");
}

#[test]
fn a_list_goes_on_behind_what_is_no_run() {
    let place = Place::new();
    let dir = place.path("home/.local/state/undertext/transcripts");
    fs::create_dir_all(&dir).unwrap();
    for (number, input) in inputs(&dir).into_iter().enumerate() {
        let name = format!("01a1ffb1-ba00-7000-8000-0000000000{number:02}.jsonl");
        if input != "none.jsonl" {
            fs::rename(dir.join(input), dir.join(name)).unwrap();
        }
    }
    fs::copy(
        GOLDEN,
        dir.join("01a1ffb1-ba00-7000-8000-000000000099.jsonl"),
    )
    .unwrap();
    let ran = place.run(&["list"]);
    let text = format!("{}{}exit {}", ran.out, ran.err, ran.code);
    // How long ago is as wide as it is.
    let age = regex::Regex::new(r"(\d+[dhm] ago|just now) *").unwrap();
    insta::assert_snapshot!(age.replace_all(&place.plain(&text), "AGO "), @"
    00000099  AGO 15 rounds  finished     /tmp/undertext-demo  demo 1  `sh tests/run.sh` fails. Find the bug and mend it.…
    00000006  AGO 0 rounds  open           
    00000005  AGO 0 rounds  open           
    00000004  AGO 15 rounds  finished, newer format  /tmp/undertext-demo  demo 1  `sh tests/run.sh` fails. Find the bug and mend it.…
    00000003  AGO 11 rounds  finished, damaged  /tmp/undertext-demo  demo 1  `sh tests/run.sh` fails. Find the bug and mend it.…
    00000002  AGO 15 rounds  finished, damaged    `sh tests/run.sh` fails. Find the bug and mend it. The…
    00000001  AGO 0 rounds  open           
    00000000  AGO 0 rounds  open           
    exit 0
    ");
}

/// A request that another renderer made cannot be built here. All others can.
#[test]
fn a_request_of_another_renderer_is_said_and_the_others_are_not_hurt() {
    let place = Place::new();
    let mut told = String::new();
    for renderer in [0, 2] {
        // The request of the second round.
        let text = changed(7, |event| {
            let Event::Request(request) = event else {
                panic!("{event:?}")
            };
            request.renderer = renderer;
        });
        fs::write(place.path("home/w/other.jsonl"), text).unwrap();
        for line in [
            &["show", "other.jsonl"][..],
            &["print", "other.jsonl", "--compacted"],
            &["print", "other.jsonl", "--compacted", "--at", "r2"],
            &["print", "other.jsonl", "--compacted", "--at", "r3"],
            &["replay", "other.jsonl"],
            &["replay", "other.jsonl", "--at", "r2"],
            &["replay", "other.jsonl", "--at", "r3"],
            &["replay", "other.jsonl", "--run"],
            &["compact", "other.jsonl", "--dry-run"],
            &["export", "other.jsonl", "--format", "markdown"],
            &["fork", "other.jsonl"],
        ] {
            let mut command = place.command(line);
            let ran = ended(command.spawn().unwrap());
            let last = ran.out.lines().last().unwrap_or("nothing");
            let last: String = last.chars().take(100).collect();
            writeln!(
                told,
                "$ {}\n{last}\n{}exit {}",
                line.join(" "),
                ran.err,
                ran.code
            )
            .unwrap();
        }
    }
    let told = place.plain(&told);
    let made = regex::Regex::new("undertext-demo-[A-Za-z0-9]{6}").unwrap();
    let (older, newer) = told
        .split_once("$ show")
        .unwrap()
        .1
        .split_once("$ show")
        .unwrap();
    assert_eq!(older.replace("renderer 0", "renderer 2").len(), newer.len());
    insta::assert_snapshot!(made.replace_all(newer, "undertext-demo-NEW"), @r#"
     other.jsonl
                  How I know: the test failed before this change and passes with it. It was the first tr
    exit 0
    $ print other.jsonl --compacted
          How I know: the test failed before this change and passes with it. It was the first try. I am 
    exit 0
    $ print other.jsonl --compacted --at r2
    nothing
    undertext: request e8 cannot be rebuilt: renderer 2 made it, which this version does not know; use the undertext that recorded it
    exit 1
    $ print other.jsonl --compacted --at r3
              16	above the limit. There is none for old customers, however often they ask.
    exit 0
    $ replay other.jsonl
    15 of 16 requests rebuilt; the first that is not: e8 (round 2): made by renderer 2, which this versi
    exit 0
    $ replay other.jsonl --at r2
    nothing
    undertext: request e8 cannot be rebuilt: renderer 2 made it, which this version does not know; use the undertext that recorded it
    exit 1
    $ replay other.jsonl --at r3
    {"model":"offline","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function"
    exit 0
    $ replay other.jsonl --run
    29 results compared, none differs
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    workspace: /tmp/undertext-demo-NEW, the project of demo 1, laid out anew
    sandbox: off, the recorded commands run with your own rights
    exit 0
    $ compact other.jsonl --dry-run
    a dry run: nothing was changed
    exit 0
    $ export other.jsonl --format markdown

    exit 0
    $ fork other.jsonl
      to go on         undertext run --resume RUN "TASK"
    exit 0
    "#);
}
