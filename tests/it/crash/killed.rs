//! The program killed at random moments of runs whose tools keep a ledger, and taken up again until it
//! ends: no line of the ledger is missing or there twice, but for calls that say so.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;

use rustix::process::Signal;
use serde_json::Value;
use undertext::exchange::Status;
use undertext::id::CallId;
use undertext::record::runs::{self, Loaded};
use undertext::replay::Replay;
use undertext::transcript::{Event, Note, Speaker};

use crate::cli::{Place, ended, signal};
use crate::crash::{Draw, times};
use crate::provider::{Answer, Provider};

/// The calls of each reply; each number is a line of the ledger.
const REPLIES: [&[(&str, &str)]; 5] = [
    &[
        ("Bash", r#"{"command":"echo 1 >> ledger"}"#),
        ("Read", r#"{"path":"a.txt"}"#),
        ("Bash", r#"{"command":"echo 2 >> ledger; seq 30000"}"#),
    ],
    &[
        ("Write", r#"{"path":"b.txt","content":"one\n"}"#),
        ("Bash", r#"{"command":"echo 3 >> ledger"}"#),
    ],
    &[
        ("Bash", r#"{"command":"echo 4 >> ledger; cat ledger"}"#),
        (
            "Bash",
            r#"{"command":"seq 3000 | tail -1; echo 5 >> ledger"}"#,
        ),
        ("Bash", r#"{"command":"echo 6 >> ledger"}"#),
    ],
    &[
        ("Glob", r#"{"pattern":"*"}"#),
        ("Bash", r#"{"command":"seq 30001; echo 7 >> ledger"}"#),
    ],
    &[("Bash", r#"{"command":"echo 8 >> ledger"}"#)],
];

/// A model that goes on from where a request says that it is.
fn model() -> Provider {
    Provider::answering(|body: &Value| {
        let messages = body["messages"].as_array().unwrap();
        let said = messages
            .iter()
            .filter(|it| it["role"] == "assistant")
            .count();
        match REPLIES.get(said) {
            Some(calls) => Answer::Calls(calls.to_vec()),
            None => Answer::Text("All done.".to_owned()),
        }
    })
}

/// What happened in a campaign.
#[derive(Debug, Default)]
struct Counts {
    kills: u64,
    /// Runs that were killed before there was anything to take up, or to lose.
    unbegun: u64,
    interrupted: u64,
    torn: u64,
}

/// One run that is killed now and then.
struct Victim<'a> {
    place: Place,
    provider: &'a Provider,
    /// Its transcript, once there is one.
    transcript: Option<PathBuf>,
}

impl Victim<'_> {
    /// Begins the run, or takes it up.
    fn start(&self) -> Child {
        let server = ["run", "-q", "-m", "m", "--base-url", &self.provider.url];
        let mut line = server.to_vec();
        let transcript = self
            .transcript
            .as_deref()
            .map(|path| path.to_str().unwrap());
        match (transcript, self.has_task()) {
            (Some(path), true) => line.extend(["--resume", path]),
            (Some(path), false) => line.extend(["--resume", path, "Keep the ledger."]),
            (None, _) => line.push("Keep the ledger."),
        }
        let mut command = self.place.command(&line);
        command.stdout(Stdio::null()).spawn().unwrap()
    }

    fn has_task(&self) -> bool {
        let loaded = self
            .transcript
            .as_deref()
            .map(|path| runs::read(path).unwrap());
        let has_task = |loaded: Loaded| {
            let mut entries = loaded.view.transcript().entries().iter();
            entries.any(|it| matches!(&it.event, Event::User(user) if user.origin == Speaker::Task))
        };
        loaded.is_some_and(has_task)
    }

    /// Waits until the transcript has grown to so many bytes, and a moment longer, then kills it.
    /// `false` if it ended before.
    fn kill(&mut self, mut child: Child, bytes: u64, moment: usize) -> bool {
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                let mut said = String::new();
                std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).ok();
                assert!(status.success(), "{status}: {said}");
                self.find();
                return false;
            }
            self.find();
            let grown = self
                .transcript
                .as_deref()
                .map_or(0, |path| fs::metadata(path).map_or(0, |it| it.len()));
            if grown >= bytes {
                break;
            }
            std::thread::yield_now();
        }
        for _ in 0..moment {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        self.find();
        true
    }

    fn find(&mut self) {
        if self.transcript.is_none() {
            self.transcript = self.place.transcripts().pop();
        }
    }

    /// Whether something of the run is there; if not, nothing of it had begun, and what is left of the
    /// attempt is put away.
    fn has_begun(&mut self) -> bool {
        let Some(path) = self.transcript.clone() else {
            return false;
        };
        if runs::read(&path).unwrap().run().is_some() {
            return true;
        }
        assert_eq!(self.provider.asked(), 0, "nothing was asked");
        assert_eq!(self.ledger(), BTreeMap::new());
        fs::remove_file(path).unwrap();
        self.transcript = None;
        false
    }

    /// How often each line stands in the ledger.
    fn ledger(&self) -> BTreeMap<String, u32> {
        let text = fs::read_to_string(self.place.path("home/w/ledger"));
        let mut lines = BTreeMap::new();
        for line in text.unwrap_or_default().lines() {
            *lines.entry(line.to_owned()).or_default() += 1;
        }
        lines
    }
}

/// Lets one run be killed up to `kills` times, and checks what is there at the end.
fn kill(provider: &Provider, draw: &mut Draw, counts: &mut Counts) {
    let mut victim = Victim {
        place: Place::new(),
        provider,
        transcript: None,
    };
    provider.asked();
    // As far as a run comes; a little further it is not killed at all.
    let whole = 90_000;
    for _ in 0..=draw.below(3) {
        // Now and then before anything of the run is there.
        let (bytes, moment) = if draw.below(8) == 0 {
            (0, 30_000_000)
        } else {
            let reach = length(victim.transcript.as_deref());
            (reach + draw.below(whole) as u64, 400_000)
        };
        let child = victim.start();
        if !victim.kill(child, bytes, draw.below(moment)) {
            break;
        }
        counts.kills += 1;
        if !victim.has_begun() {
            counts.unbegun += 1;
        } else if is_finished(&victim) {
            break;
        }
    }
    let mut last = String::new();
    if !is_finished(&victim) {
        let ran = ended(victim.start());
        assert_eq!(ran.code, 0, "{ran:?}");
        last = ran.err;
        victim.find();
    }
    let path = victim.transcript.as_deref().unwrap();
    judge(&victim, path, counts)
        .unwrap_or_else(|text| panic!("{text}\n{last}\n{}", fs::read_to_string(path).unwrap()));
}

fn length(path: Option<&Path>) -> u64 {
    path.and_then(|path| fs::metadata(path).ok())
        .map_or(0, |found| found.len())
}

fn is_finished(victim: &Victim<'_>) -> bool {
    let loaded = victim
        .transcript
        .as_deref()
        .map(|path| runs::read(path).unwrap());
    loaded.is_some_and(|loaded| loaded.view.ledger().is_finished())
}

/// Nothing is lost and nothing happened twice.
fn judge(victim: &Victim<'_>, path: &Path, counts: &mut Counts) -> Result<(), String> {
    let loaded = runs::read(path).unwrap();
    if !loaded.damage.is_empty() || loaded.torn.is_some() || !loaded.view.ledger().is_finished() {
        return Err(format!("{:?} {:?}", loaded.damage, loaded.torn));
    }
    let entries = loaded.view.transcript().entries();
    let mut unsure = Vec::new();
    let mut answered: BTreeMap<CallId, u32> = BTreeMap::new();
    for entry in entries {
        match &entry.event {
            Event::Result(result) => {
                *answered.entry(result.call).or_default() += 1;
                if result.status == Status::Interrupted {
                    counts.interrupted += 1;
                    unsure.extend(
                        loaded
                            .view
                            .tool_call(result.call)
                            .map(|it| it.arguments.clone()),
                    );
                }
                if let Some(blob) = result.clipped.and_then(|clipped| clipped.blob) {
                    let kept = loaded.blobs.read(blob).map_err(|error| error.to_string())?;
                    kept.ok_or(format!("a blob of e{} is lost", entry.id))?;
                }
            }
            Event::Note(Note::Torn(_)) => counts.torn += 1,
            _ => {}
        }
    }
    let calls: usize = REPLIES.iter().map(|calls| calls.len()).sum();
    if answered.len() != calls || answered.values().any(|times| *times != 1) {
        return Err(format!("answered: {answered:?}"));
    }
    let ledger = victim.ledger();
    for line in 1..=8 {
        let command = format!("echo {line} >> ledger");
        match ledger.get(&line.to_string()) {
            Some(1) => {}
            None if unsure.iter().any(|arguments| arguments.contains(&command)) => {}
            times => return Err(format!("line {line} stands there {times:?} times")),
        }
    }
    let rebuilt: Vec<_> = Replay::new(entries.iter().map(Arc::clone)).collect();
    match rebuilt.iter().find(|it| !it.is_equal()) {
        Some(differs) => Err(format!("{differs:?}")),
        None => Ok(()),
    }
}

#[test]
fn a_run_that_is_killed_at_any_moment_loses_nothing_and_does_nothing_twice() {
    let provider = model();
    let mut counts = Counts::default();
    let kills = times("UNDERTEXT_KILLS", 6);
    let mut draw = Draw(kills);
    while counts.kills < kills {
        let before = counts.kills / 100;
        kill(&provider, &mut draw, &mut counts);
        if counts.kills / 100 > before {
            println!("{counts:?}");
        }
    }
    println!("{counts:?}");
}

#[test]
fn of_many_programs_that_take_a_run_up_at_once_one_works() {
    let place = Place::new();
    let provider = Provider::answering(|_| Answer::Silence);
    let server = ["run", "-m", "m", "--base-url", &provider.url];
    let first = place
        .command(&[&server[..], &["task"]].concat())
        .spawn()
        .unwrap();
    provider.body();
    let path = place.transcripts().remove(0);
    signal(&first, Signal::KILL);
    drop(ended_somehow(first));
    let many = times("UNDERTEXT_PROGRAMS", 5);
    let line = [&server[..], &["--resume", path.to_str().unwrap()]].concat();
    for _ in 0..times("UNDERTEXT_PROGRAM_ROUNDS", 1) {
        let mut all: Vec<Child> = (0..many)
            .map(|_| place.command(&line).spawn().unwrap())
            .collect();
        // One asks; all the others end by themselves.
        provider.body();
        while all.len() > 1 {
            let over = all
                .iter_mut()
                .position(|child| child.try_wait().unwrap().is_some());
            let Some(over) = over else {
                std::thread::yield_now();
                continue;
            };
            let ran = ended(all.swap_remove(over));
            let said = format!(
                "undertext: {} is in use by another process; wait until that ends, or go on with a copy: \
                 `undertext fork` makes one meanwhile\n",
                path.display()
            );
            assert_eq!((ran.code, ran.err), (6, said));
        }
        let winner = all.pop().unwrap();
        signal(&winner, Signal::KILL);
        drop(ended_somehow(winner));
        assert_eq!(provider.asked(), 0, "only one asked");
    }
    let loaded = runs::read(&path).unwrap();
    assert!(loaded.damage.is_empty() && loaded.torn.is_none());
}

fn ended_somehow(child: Child) -> std::process::Output {
    child.wait_with_output().unwrap()
}
