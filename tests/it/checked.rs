//! Runs whose end a command decides: `check`.

use std::fs;
use std::sync::Arc;

use futures::StreamExt as _;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, AgentError, Progress, Task};
use undertext::hands::{Hands, Workspace};
use undertext::model::{Reply, Script, Scripted};
use undertext::record::{MemoryStorage, Recorder};
use undertext::setup::Policy;
use undertext::step::{self, Step};
use undertext::tools::Toolbox;
use undertext::transcript::{Event, Note, Reason};
use undertext::view::View;

use crate::looped::story;
use crate::scene;

/// A project whose test fails.
struct Project {
    place: TempDir,
    storage: MemoryStorage,
}

impl Project {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("sum.sh"), "echo $(($1 - $2))\n").unwrap();
        let test =
            "got=$(sh sum.sh 40 2)\n[ \"$got\" = 42 ] || { echo \"40 and 2: $got\"; exit 3; }\n";
        fs::write(place.path().join("test.sh"), test).unwrap();
        Self {
            place,
            storage: MemoryStorage::default(),
        }
    }

    fn agent(&self, policy: Policy, script: Vec<Script>) -> Agent {
        let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let workspace = Workspace::open(self.place.path(), None, environment).unwrap();
        let model = Arc::new(Scripted::new(script));
        Agent::new(scene::setup(100_000, policy), model, Toolbox::builtin())
            .with_hands(Hands::in_process(workspace))
    }

    /// Runs this script under this policy, and cancels the run when that is said of an entry.
    fn play(
        &self,
        recorder: &mut Recorder,
        (policy, script): (Policy, Vec<Script>),
        task: Option<&str>,
        cancels: impl Fn(&Event) -> bool,
    ) -> Reason {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let agent = self.agent(policy, script);
            let cancel = CancellationToken::new();
            let mut events = agent.events();
            let run = agent.run(recorder, task.map(Task::new), &cancel);
            let listen = async {
                while let Some(progress) = events.next().await {
                    let Progress::Entry(entry) = progress else {
                        continue;
                    };
                    if cancels(&entry.event) {
                        cancel.cancel();
                    }
                    if matches!(entry.event, Event::End(_)) {
                        break;
                    }
                }
            };
            futures::join!(run, listen).0.unwrap().reason
        })
    }

    fn story(&self, from: usize) -> String {
        story(&scene::entries(&self.storage)[from..])
    }
}

fn checked(check_rounds: u32) -> Policy {
    let mut policy = Policy {
        check: Some("sh test.sh".to_owned()),
        ..Policy::default()
    };
    policy.limits.check_rounds = check_rounds;
    policy
}

fn says(text: &str) -> Script {
    Reply::text(text).into()
}

fn never(_: &Event) -> bool {
    false
}

#[test]
fn a_failing_check_is_told_and_a_passing_one_ends_the_run() {
    let project = Project::new();
    let mend = r#"{"command":"sed -i s/-/+/ sum.sh"}"#;
    let script = vec![
        says("It adds."),
        Reply::calls([("Bash", mend)]).into(),
        says("Now it adds."),
    ];
    let mut recorder = scene::create(&project.storage);
    project.play(&mut recorder, (checked(5), script), Some("Go."), never);
    insta::assert_snapshot!(project.story(3), @r#"
    4 request, round 1
    5 response to 4, Complete: It adds.
    6 check of 5 failed, exit Some(3)
    7 user, Hook: [undertext, not the user] The work is not done yet: the check `sh test.sh` failed with exit 3. Mend what it reports, then say again that you are done: it is run each time. It printed:

    40 and 2: 38
    [exit 3]
    8 request, round 2
    9 response to 8, Complete:  Bash{"command":"sed -i s/-/+/ sum.sh"}
    10 started 9.1
    11 result of 9.1, ok: [no output]
    12 request, round 3
    13 response to 12, Complete: Now it adds.
    14 check of 13 passed, exit Some(0)
    15 end, finished: Now it adds.
    "#);
}

/// After the last round of telling, the run ends; taken up again, it goes on with what it was told.
#[test]
fn a_check_that_keeps_failing_ends_the_run() {
    let project = Project::new();
    let script = vec![says("It adds."), says("It does add.")];
    let mut recorder = scene::create(&project.storage);
    project.play(&mut recorder, (checked(1), script), Some("Go."), never);
    drop(recorder);
    let ended = scene::entries(&project.storage).len();
    insta::assert_snapshot!(project.story(3), @"
    4 request, round 1
    5 response to 4, Complete: It adds.
    6 check of 5 failed, exit Some(3)
    7 user, Hook: [undertext, not the user] The work is not done yet: the check `sh test.sh` failed with exit 3. Mend what it reports, then say again that you are done: it is run each time. It printed:

    40 and 2: 38
    [exit 3]
    8 request, round 2
    9 response to 8, Complete: It does add.
    10 check of 9 failed, exit Some(3)
    11 user, Hook: [undertext, not the user] The work is not done yet: the check `sh test.sh` failed with exit 3. Mend what it reports, then say again that you are done: it is run each time. It printed:

    40 and 2: 38
    [exit 3]
    12 end, check: the check `sh test.sh` fails with exit 3, after 1 repair; resume to go on
    ");
    let script = vec![says("It must."), says("Really.")];
    let mut recorder = scene::open(&project.storage);
    project.play(&mut recorder, (checked(1), script), None, never);
    insta::assert_snapshot!(project.story(ended), @"
    13 request, round 3
    14 response to 13, Complete: It must.
    15 check of 14 failed, exit Some(3)
    16 user, Hook: [undertext, not the user] The work is not done yet: the check `sh test.sh` failed with exit 3. Mend what it reports, then say again that you are done: it is run each time. It printed:

    40 and 2: 38
    [exit 3]
    17 request, round 4
    18 response to 17, Complete: Really.
    19 check of 18 failed, exit Some(3)
    20 user, Hook: [undertext, not the user] The work is not done yet: the check `sh test.sh` failed with exit 3. Mend what it reports, then say again that you are done: it is run each time. It printed:

    40 and 2: 38
    [exit 3]
    21 end, check: the check `sh test.sh` fails with exit 3, after 1 repair; resume to go on
    ");
}

/// A check leaves nothing behind when the run is stopped while it runs; it is run again.
#[test]
fn a_check_that_was_cancelled_is_run_again() {
    let project = Project::new();
    let mut slow = checked(5);
    slow.check = Some("sleep 1000".to_owned());
    let mut recorder = scene::create(&project.storage);
    let replied = |event: &Event| matches!(event, Event::Response(_));
    project.play(
        &mut recorder,
        (slow, vec![says("Done.")]),
        Some("Go."),
        replied,
    );
    drop(recorder);
    let mut quick = checked(5);
    quick.check = Some("true".to_owned());
    let mut recorder = scene::open(&project.storage);
    project.play(&mut recorder, (quick, Vec::new()), None, never);
    insta::assert_snapshot!(project.story(3), @"
    4 request, round 1
    5 response to 4, Complete: Done.
    6 end, interrupted: interrupted; resume to go on
    7 setup
    8 check of 5 passed, exit Some(0)
    9 end, finished: Done.
    ");
}

/// Killed after any entry, the run goes on: a check whose output the model was not given is run again
/// and counts once.
#[test]
fn what_follows_a_check_is_decided_by_the_entries() {
    let project = Project::new();
    let script = vec![says("It adds."), says("It does add.")];
    let mut recorder = scene::create(&project.storage);
    project.play(&mut recorder, (checked(1), script), Some("Go."), never);
    let entries = scene::entries(&project.storage);
    let next = |kept: usize| {
        let view = View::of(entries[..kept].iter().cloned());
        let step = step::next(&view, scene::BEGIN);
        match step {
            Step::Ask(_) => "ask".to_owned(),
            Step::Check(response) => format!("check of {response}"),
            Step::Stop(reason) => reason.word().to_owned(),
            Step::Wait(_) | Step::Call(_) | Step::Compact(_) | Step::Hook(_) => panic!("{step:?}"),
        }
    };
    let steps: Vec<String> = (4..=entries.len()).map(next).collect();
    assert_eq!(
        steps,
        [
            "ask",
            "check of 5",
            "check of 5",
            "ask",
            "ask",
            "check of 9",
            "check of 9",
            "check",
            "ask"
        ]
    );
    // The second failing check, run twice.
    let mut entries: Vec<_> = entries[..10].to_vec();
    let mut again = (*entries[9]).clone();
    assert!(matches!(again.event, Event::Note(Note::Check(_))));
    again.id = again.id.next();
    entries.push(Arc::new(again));
    assert_eq!(View::of(entries).ledger().checks_failed, 2);
}

/// What passed under other settings, which may name another command, does not end the work.
#[test]
fn a_check_passes_under_its_own_settings() {
    let project = Project::new();
    let mut policy = checked(5);
    policy.check = Some("true".to_owned());
    let mut recorder = scene::create(&project.storage);
    project.play(
        &mut recorder,
        (policy, vec![says("Done.")]),
        Some("Go."),
        never,
    );
    let mut entries = scene::entries(&project.storage);
    let end = entries.pop().unwrap();
    let next = |entries: &[_]| step::next(&View::of(entries.iter().cloned()), scene::BEGIN);
    assert_eq!(next(&entries), Step::Stop(Reason::Finished));
    let mut settings = (*entries[1]).clone();
    settings.id = end.id;
    entries.push(Arc::new(settings));
    assert!(matches!(next(&entries), Step::Check(_)));
}

#[test]
fn a_long_output_is_clipped_and_kept() {
    let project = Project::new();
    let mut policy = checked(0);
    policy.check = Some("seq 1000; exit 1".to_owned());
    policy.limits.result_chars = 330;
    let mut recorder = scene::create(&project.storage);
    project.play(
        &mut recorder,
        (policy, vec![says("Done.")]),
        Some("Go."),
        never,
    );
    let entries = scene::entries(&project.storage);
    let [.., told, _] = &entries[..] else {
        panic!("{entries:?}")
    };
    let Event::User(told) = &told.event else {
        panic!("{told:?}")
    };
    insta::assert_snapshot!(told.text, @"
    [undertext, not the user] The work is not done yet: the check `seq 1000; exit 1` failed with exit 1. Mend what it reports, then say again 
    [… 3,816 characters left out; Recall e7 shows all …]
    969
    970
    971
    972
    973
    974
    975
    976
    977
    978
    979
    980
    981
    982
    983
    984
    985
    986
    987
    988
    989
    990
    991
    992
    993
    994
    995
    996
    997
    998
    999
    1000
    [exit 1]
    ");
    let blob = told.clipped.unwrap().blob.unwrap();
    let whole = recorder.storage().read_blob(blob).unwrap().unwrap();
    let whole = String::from_utf8(whole).unwrap();
    assert!(whole.contains("\n499\n500\n501\n") && whole.ends_with("1000\n[exit 1]"));
}

#[test]
fn a_check_needs_hands() {
    let agent = scene::agent(100_000, checked(5), Scripted::new([]));
    let mut recorder = scene::create(&MemoryStorage::default());
    let refused = scene::go(&agent, &mut recorder, Some(Task::new("Go.")));
    assert!(matches!(refused, Err(AgentError::NoHands)));
}
