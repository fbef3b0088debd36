//! What a terminal shows: colour, the live line, narrow lines, and never a secret.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use regex::Regex;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::secrets::{EVIDENCE, KEY, drawn, place, show_all, shows};
use crate::cli::{Place, says};
use crate::provider::Provider;

/// Runs a command on a terminal of so many columns; its exit code, and all that the terminal got.
fn on_terminal(command: Command, columns: u16) -> (Option<i32>, String) {
    on_a_terminal(command, columns, &OnceLock::new())
}

/// Makes a terminal so many columns wide.
fn resize(terminal: impl AsFd, columns: u16) {
    let size = Winsize {
        ws_row: 40,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).unwrap();
}

/// The same, where the terminal can be had meanwhile.
fn on_a_terminal(
    mut command: Command,
    columns: u16,
    meanwhile: &OnceLock<OwnedFd>,
) -> (Option<i32>, String) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    resize(&terminal, columns);
    meanwhile.get_or_init(|| terminal.try_clone().unwrap());
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let name = Path::new(name.to_str().unwrap()).to_owned();
    let end = || {
        let options = File::options().read(true).write(true).to_owned();
        options.open(&name).unwrap()
    };
    command.stdout(end()).stderr(end());
    let mut child = command.spawn().unwrap();
    // The terminal ends when nobody has it open any more.
    drop(command);
    let (mut shown, mut some) = (Vec::new(), [0; 4096]);
    let mut terminal = File::from(terminal);
    while let Ok(count @ 1..) = terminal.read(&mut some) {
        shown.extend_from_slice(&some[..count]);
    }
    let code = child.wait().unwrap().code();
    (code, String::from_utf8_lossy(&shown).into_owned())
}

/// The text alone, in one line as well as in those that it was broken into.
fn plain(shown: &str) -> String {
    let commands = Regex::new("\x1b\\[[0-9;?]*[A-Za-z]").unwrap();
    let text = commands.replace_all(shown, "").replace("\r\n", "\n");
    let whole: String = text.split_whitespace().collect();
    format!("{text}\n{whole}")
}

#[test]
fn no_terminal_shows_what_looks_like_a_secret() {
    let (text, secrets) = drawn();
    let place = place(&text);
    let provider = Provider::new(show_all().into_iter().chain([says(&text)]));
    let shown = |line: &[&str]| {
        let mut command = place.command(line);
        command.env("MODEL_SERVER", KEY);
        let (code, shown) = on_terminal(command, 100);
        assert_eq!(code, Some(0), "{line:?}: {shown}");
        assert!(
            shown.contains('\x1b'),
            "{line:?} knows its terminal: {shown}"
        );
        let text = plain(&shown);
        let told = shows(text.as_bytes(), &secrets);
        assert!(told.is_empty(), "{line:?} shows {told:?}: {text}");
        text
    };
    let run = ["run", "-m", "m", "--base-url", &provider.url];
    let run = [&run[..], &["--api-key-env", "MODEL_SERVER", "print it"]].concat();
    let live = shown(&run);
    // The live line was there, and so was the answer.
    assert!(live.contains("round 1"), "{live}");
    assert!(live.contains(EVIDENCE), "{live}");
    for line in [
        &["show"][..],
        &["print"],
        &["print", "--compacted"],
        &["replay", "--at", "r3"],
        &["why", "--text", "."],
    ] {
        shown(line);
    }
    let provider = Provider::new(show_all().into_iter().chain([says(&text)]));
    let run = ["run", "-v", "-m", "m", "--base-url", &provider.url];
    let run = [&run[..], &["--api-key-env", "MODEL_SERVER", "print it"]].concat();
    let story = shown(&run);
    assert!(story.contains("Bash cat shapes.txt"), "{story}");
}

#[test]
fn a_narrow_terminal_breaks_no_word() {
    let place = Place::new();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");
    let dir = place.path("home/.local/state/undertext/transcripts");
    fs::create_dir_all(&dir).unwrap();
    fs::copy(
        golden,
        dir.join("01a1ffb1-ba00-7000-8000-000000000001.jsonl"),
    )
    .unwrap();
    for line in [
        &["list"][..],
        &["--help"],
        &["run", "--help"],
        &["why", "r1", "--help"],
    ] {
        let (code, shown) = on_terminal(place.command(line), 60);
        assert_eq!(code, Some(0));
        let text = plain(&shown);
        let lines = text.lines().rev().skip(1);
        let long: Vec<&str> = lines.filter(|line| line.chars().count() > 60).collect();
        assert!(long.is_empty(), "{line:?}: {long:#?}");
    }
    let mut command = place.command(&["list"]);
    command.env("COLUMNS", "60");
    let (_, shown) = on_terminal(command, 100);
    let ago = Regex::new(r"  \S+ ago +").unwrap();
    let text = plain(&shown);
    let row = ago.replace(text.lines().next().unwrap(), "  AGO  ");
    insta::assert_snapshot!(row.trim_end(), @"00000001  AGO  15 rounds  finished     demo 1");
}

/// A batch of one task.
fn batch(place: &Place, provider: &Provider) -> Command {
    std::fs::write(place.path("home/w/tasks.jsonl"), r#"{"task":"a"}"#).unwrap();
    let line = ["batch", "-m", "m", "--base-url", &provider.url];
    place.command(&[&line[..], &["tasks.jsonl"]].concat())
}

#[test]
fn a_batch_has_one_live_line() {
    let place = Place::new();
    let provider = Provider::new([says("Done.")]);
    let (code, shown) = on_terminal(batch(&place, &provider), 100);
    assert_eq!(code, Some(0), "{shown}");
    let expected = Regex::new("\r1 running · 0 finished · [0-9,]+ tokens · [0-9.a-z ]+\x1b\\[K");
    assert!(expected.unwrap().is_match(&shown), "{shown}");
}

/// A terminal that is made narrow while a batch goes on shows the live line cut to its new width.
#[test]
fn the_live_line_fits_a_terminal_that_is_made_narrow() {
    let place = Place::new();
    let terminal = Arc::new(OnceLock::new());
    let resized = Arc::clone(&terminal);
    let provider = Provider::answering(move |_| {
        if let Some(terminal) = resized.get() {
            resize(terminal, 21);
        }
        says("Done.")
    });
    let (code, shown) = on_a_terminal(batch(&place, &provider), 100, &terminal);
    assert_eq!(code, Some(0), "{shown}");
    let last = Regex::new("\r([^\r\x1b]+)\x1b\\[K").unwrap();
    let last = last.captures_iter(&shown).last().unwrap();
    assert_eq!(&last[1], "0 running · 1 finis", "{shown}");
}
