//! A recorded run whose tools run for real once more.

use std::fmt::Write as _;
use std::fs;

use regex::Regex;
use serde_json::Value;

use crate::cli::{Place, Ran, ended, looks, says};
use crate::provider::{Answer, Provider};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");

/// Plays a run again, with temporary files where they can be counted.
fn again(place: &Place, line: &[&str]) -> Ran {
    let temporary = place.path("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let line = [&["replay", "--run"], line].concat();
    let ran = ended(
        place
            .command(&line)
            .env("TMPDIR", &temporary)
            .spawn()
            .unwrap(),
    );
    let left = fs::read_dir(&temporary).unwrap().count();
    assert_eq!(left, usize::from(line.contains(&"--keep")), "{ran:?}");
    ran
}

/// What is said, without what differs from one time to the next.
fn plain(place: &Place, ran: &Ran) -> String {
    let text = place.plain(&format!("{}{}exit {}\n", ran.err, ran.out, ran.code));
    let made = Regex::new("undertext-(replay|demo)-[A-Za-z0-9]{6}").unwrap();
    let text = made.replace_all(&text, "undertext-$1-NEW");
    let named = Regex::new("(print|of run) [0-9a-f]{8}").unwrap();
    named.replace_all(&text, "$1 RUN").into_owned()
}

fn verify(place: &Place) {
    for path in place.transcripts() {
        let ran = place.run(&["replay", "--verify", path.to_str().unwrap()]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
}

#[test]
fn a_demo_is_played_again_without_a_difference() {
    let place = Place::new();
    let ran = again(&place, &[GOLDEN, "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(told["from"]["demo"]["seed"], 1);
    assert_eq!(told["played"], 15);
    assert_eq!(told["compared"], 29);
    assert_eq!(told["differences"], Value::Array(Vec::new()));
    assert_eq!(told["courses"], Value::Array(Vec::new()));
    // It was compacted as the recorded one was: by recorded settings, with the recorded summary.
    let overlays = |path: &str| {
        let text = fs::read_to_string(path).unwrap();
        text.matches(r#""type":"overlay""#).count()
    };
    assert_eq!(
        overlays(told["transcript"].as_str().unwrap()),
        overlays(GOLDEN)
    );
    verify(&place);
}

#[test]
fn the_first_result_that_differs_is_told() {
    let place = Place::new();
    let ran = again(&place, &[GOLDEN, "--keep", "--json"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    let kept = told["workspace"].as_str().unwrap();
    let project = place.path("home/project");
    fs::rename(kept, &project).unwrap();
    let readme = project.join("README.md");
    let text = fs::read_to_string(&readme).unwrap();
    fs::write(&readme, text.replacen("# till", "# Till", 1)).unwrap();

    let workspace = project.to_str().unwrap();
    let ran = again(&place, &[GOLDEN, "--workspace", workspace, "--stop"]);
    let text = plain(&place, &ran).replace(GOLDEN, "GOLDEN");
    insta::assert_snapshot!(text, @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    workspace: /tmp/undertext-replay-NEW/undertext-demo, a copy of /home/project
    sandbox: off, the recorded commands run with your own rights
    first difference: 9.3 Read, round 2
      line 1           expected |     1	# till
                       got      |     1	# Till
      then             undertext print GOLDEN --at 9.3
      now              undertext print RUN --at 9.3
      played           2 of 15 responses of run GOLDEN; no model was asked
      what happened    undertext print RUN
    9 results compared, 1 differs
    exit 1
    ");
    let ran = again(&place, &[GOLDEN, "--workspace", workspace]);
    assert!(ran.out.contains("15 of 15 responses"), "{ran:?}");
    assert!(ran.out.contains("differs as well"), "{ran:?}");
    verify(&place);
}

/// The recorded run failed once, was taken up, recalled what it read, and was told more. Its copy
/// begins without the failure, so that every handle is another one.
#[test]
fn a_run_is_played_where_nothing_of_it_is_touched() {
    let place = Place::new();
    let refusal = r#"{"error":{"message":"no","code":"invalid_api_key"}}"#;
    let provider = Provider::new([
        Answer::Status(401, refusal),
        Answer::Calls(vec![
            ("Bash", r#"{"command":"pwd; cat a.txt"}"#),
            ("Write", r#"{"path":"b.txt","content":"b\n"}"#),
        ]),
        Answer::Calls(vec![("Recall", r#"{"handle":"8.1"}"#)]),
        says("Done."),
        Answer::Calls(vec![("Bash", r#"{"command":"cat b.txt"}"#)]),
        says("Done as well."),
    ]);
    assert_eq!(place.ask(&provider, &["look"]).code, 4);
    assert_eq!(place.ask(&provider, &["--continue"]).code, 0);
    assert_eq!(place.ask(&provider, &["--continue", "and b?"]).code, 0);
    let recorded = fs::read_to_string(&place.transcripts()[0]).unwrap();
    assert!(recorded.contains(r#""call":"8.1""#), "{recorded}");
    let workspace = place.path("home/w");
    fs::remove_file(workspace.join("b.txt")).unwrap();

    let same = again(&place, &["last"]);
    fs::write(workspace.join("a.txt"), "hello\nyou\n").unwrap();
    let other = again(&place, &["last"]);
    assert!(!workspace.join("b.txt").exists());
    insta::assert_snapshot!(plain(&place, &same) + &plain(&place, &other), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    workspace: /tmp/undertext-replay-NEW/w, a copy of /home/w as it is now; --workspace names another
    sandbox: off, the recorded commands run with your own rights
      played           5 of 5 responses of run RUN; no model was asked
      what happened    undertext print RUN
    4 results compared, none differs
    exit 0
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    workspace: /tmp/undertext-replay-NEW/w, a copy of /home/w as it is now; --workspace names another
    sandbox: off, the recorded commands run with your own rights
    first difference: 8.1 Bash, round 1
      line 3           expected |
                       got      |you
      then             undertext print RUN --at 8.1
      now              undertext print RUN --at 5.1
      differs as well  14.1 Recall, round 2
      played           5 of 5 responses of run RUN; no model was asked
      what happened    undertext print RUN
    4 results compared, 2 differ
    exit 1
    ");
    verify(&place);
}

/// The check command has a say as well, and then the turn takes another course.
#[test]
fn a_turn_that_takes_another_course_is_told() {
    let place = Place::new();
    let ok = place.path("home/w/ok");
    fs::write(&ok, "").unwrap();
    let provider = Provider::new([looks(), says("Done.")]);
    let ran = place.ask(&provider, &["--check", "test -f ok", "look"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    fs::remove_file(&ok).unwrap();
    let ran = again(&place, &["last"]);
    insta::assert_snapshot!(plain(&place, &ran), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
    workspace: /tmp/undertext-replay-NEW/w, a copy of /home/w as it is now; --workspace names another
    sandbox: off, the recorded commands run with your own rights
      another course   turn 1 asked for more than was recorded
      played           2 of 2 responses of run RUN; no model was asked
      what happened    undertext print RUN
    2 results compared, none differs; the run took another course
    exit 1
    ");
}

#[test]
fn what_cannot_be_played_is_said() {
    let place = Place::new();
    let provider = Provider::new([
        Answer::Calls(vec![("Bash", r#"{"command":"true"}"#)]),
        says("Done."),
    ]);
    place.ask(&provider, &["look"]);
    let path = place.transcripts().remove(0);
    let text = fs::read_to_string(&path).unwrap();
    let run = path.to_str().unwrap();
    let mut told = String::new();
    for line in [
        &["--stop"][..],
        &["--run", "--verify"],
        &["--run", run, "--workspace", "/nowhere"],
        &["--run", run, "--workspace", "/"],
    ] {
        let ran = place.run(&[&["replay"], line].concat());
        writeln!(told, "{}exit {}", ran.err, ran.code).unwrap();
    }
    for (from, to) in [(r#""text":"look""#, r#""text":"took""#), ("", "")] {
        fs::write(&path, text.replace(from, to)).unwrap();
        // Whoever moved it away has to name it.
        if from.is_empty() {
            fs::rename(place.path("home/w"), place.path("home/moved")).unwrap();
        }
        let mut command = place.command(&["replay", "--run", run]);
        let ran = ended(command.current_dir(place.path("home")).spawn().unwrap());
        writeln!(told, "{}exit {}", ran.err, ran.code).unwrap();
    }
    insta::assert_snapshot!(place.plain(&told), @"
    undertext: the following required arguments were not provided: --run; see --help
    exit 2
    undertext: the argument '--run' cannot be used with '--verify'; see --help
    exit 2
    undertext: workspace /nowhere cannot be used: No such file or directory (os error 2); make that directory first, or name another
    exit 2
    undertext: workspace / is the whole file system; name a project's directory with -C
    exit 2
    warning: /home/.local/state/undertext/transcripts/UUID.jsonl is damaged: line 3: checksum does not match; line 4: entry 3 is missing
    undertext: a damaged run cannot be played; `undertext fork --at` makes a sound run of what lies before the damage
    exit 6
    undertext: the run's workspace /home/w is not here; --workspace names a directory to begin with a copy of
    exit 2
    ");
}

/// What another agent recorded runs only where a person says so.
#[test]
fn commands_of_strangers_do_not_run_by_themselves() {
    let place = Place::new();
    let recording = crate::corpus::excerpts().join("codex/rollout.jsonl");
    let imported = place.run(&["import", recording.to_str().unwrap(), "--json"]);
    let told: Value = serde_json::from_str(&imported.out).unwrap();
    let transcript = told["transcript"].as_str().unwrap();
    let ran = again(&place, &[transcript]);
    assert_eq!(ran.code, 2);
    insta::assert_snapshot!(ran.err, @"undertext: another agent recorded this run, so its commands are somebody else's, and they would run with your rights; name a directory to begin with (--workspace) if that is what you want");
    let both = place.run(&["replay", transcript, "--run", "--diff", "r1", "r2"]);
    assert_eq!(both.code, 2, "{both:?}");
}
