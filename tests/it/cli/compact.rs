//! `compact`: what is hidden by hand, and what would be.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use undertext::record::{Durability, FileStorage};

use crate::cli::{Place, Ran, says};
use crate::provider::{Answer, Provider};

/// The golden run, in this place.
fn golden(place: &Place) -> PathBuf {
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");
    let to = place.path("demo.jsonl");
    fs::copy(from, &to).unwrap();
    to
}

/// `compact` of the golden run with these words.
fn compact(place: &Place, words: &str) -> Ran {
    let run = place.path("demo.jsonl");
    let line = ["compact", run.to_str().unwrap()].into_iter();
    place.run(&line.chain(words.split_whitespace()).collect::<Vec<_>>())
}

/// What each of these is answered with, on whichever stream.
fn each(place: &Place, code: i32, lines: &[&str]) -> String {
    let mut said = String::new();
    for words in lines {
        let ran = compact(place, words);
        assert_eq!(ran.code, code, "{words}: {ran:?}");
        writeln!(said, "$ {words}").unwrap();
        said += &(ran.out + &ran.err);
    }
    place.plain(&said)
}

#[test]
fn a_dry_run_says_what_the_real_one_does() {
    let place = Place::new();
    let path = golden(&place);
    let before = fs::read(&path).unwrap();
    let said = each(
        &place,
        0,
        &[
            "--dry-run --strategy strip-tools --strategy strip-attachments",
            "-n --strategy omit-tools --strategy prune-tools --keep-last 1",
            "-n --fresh",
            "-n --focus vouchers --from r12",
            "-n --strategy dedup-tools --from r11 --to r12",
        ],
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    insta::assert_snapshot!(said, @"
    $ --dry-run --strategy strip-tools --strategy strip-attachments
    run RUN: would be 5,965 → 5,757 tokens, 3 % less
    rounds 1–10 summarised before · 11–12 tools stripped · 13–15 kept

      strip-tools  5,965 → 5,757  1 result in rounds 1 to 12
      strip-attachments: nothing worth hiding in rounds 1 to 12

    a dry run: nothing was changed
    $ -n --strategy omit-tools --strategy prune-tools --keep-last 1
    run RUN: would be 5,965 → 4,983 tokens, 16 % less
    rounds 1–10 summarised before · 11–14 calls left out · 15 kept

      omit-tools   5,965 → 5,496  3 calls in rounds 1 to 14
      prune-tools  5,496 → 4,983  3 tools

    a dry run: nothing was changed
    $ -n --fresh
    run RUN: would be 5,965 → ~5,097 tokens, 14 % less
    rounds 1–12 summarised · 13–15 kept

      summarize  5,965 → ~5,097  would summarise rounds 1 to 12 with offline

    a dry run: nothing was changed; ~ stands for an expected size
    $ -n --focus vouchers --from r12
    run RUN: would be 5,965 → ~5,672 tokens, 4 % less
    rounds 1–10 summarised before · 11 kept · 12 summarised · 13–15 kept

      summarize  5,965 → ~5,672  would summarise round 12 with offline

    a dry run: nothing was changed; ~ stands for an expected size
    $ -n --strategy dedup-tools --from r11 --to r12
    run RUN: would be 5,965 → 5,756 tokens, 3 % less
    rounds 1–10 summarised before · 11–12 stale results stripped · 13–15 kept

      dedup-tools  5,965 → 5,756  1 result in rounds 11 to 12

    a dry run: nothing was changed
    ");
    let said = each(
        &place,
        0,
        &[
            "--strategy strip-tools --strategy strip-attachments",
            "--strategy strip-tools",
        ],
    );
    assert!(fs::read(&path).unwrap().starts_with(&before));
    insta::assert_snapshot!(said, @"
    $ --strategy strip-tools --strategy strip-attachments
    run RUN: 5,965 → 5,757 tokens, 3 % less
    rounds 1–10 summarised before · 11–12 tools stripped · 13–15 kept

      e73 strip-tools  5,965 → 5,757  1 result in rounds 1 to 12
      strip-attachments: nothing worth hiding in rounds 1 to 12

    to undo: undertext undo /demo.jsonl
    $ --strategy strip-tools
    run RUN: nothing worth hiding in rounds 1 to 12: 1,615 tokens, 0 can go
    ");
}

/// Programs read the same of a dry run as of a real one, but for what is laid.
#[test]
fn a_report_has_one_shape() {
    let place = Place::new();
    golden(&place);
    let words = "--json --strategy strip-tools --strategy strip-attachments";
    let planned = compact(&place, &format!("--dry-run {words}"));
    let laid = compact(&place, words);
    insta::assert_snapshot!(place.plain(&(planned.out + &laid.out)), @r#"
    {"run":"UUID","dry_run":true,"planned":1,"laid":0,"entries_hidden":1,"estimated_tokens_saved":208,"before":5965,"after":5757,"steps":[{"strategy":"strip-tools","span":[4,60],"rounds":[1,12],"hides":{"results":1},"entries_hidden":1,"estimated_tokens_saved":208,"before":5965,"after":5757}],"left_out":[{"strategy":"strip-attachments","why":"nothing worth hiding in rounds 1 to 12"}],"timeline":[{"rounds":[1,10],"reads":"summarised before"},{"rounds":[11,12],"reads":"tools stripped"},{"rounds":[13,15],"reads":"kept"}]}
    {"run":"UUID","dry_run":false,"planned":1,"laid":1,"entries_hidden":1,"estimated_tokens_saved":208,"before":5965,"after":5757,"steps":[{"strategy":"strip-tools","overlay":73,"span":[4,60],"rounds":[1,12],"hides":{"results":1},"entries_hidden":1,"estimated_tokens_saved":208,"before":5965,"after":5757}],"left_out":[{"strategy":"strip-attachments","why":"nothing worth hiding in rounds 1 to 12"}],"timeline":[{"rounds":[1,10],"reads":"summarised before"},{"rounds":[11,12],"reads":"tools stripped"},{"rounds":[13,15],"reads":"kept"}]}
    "#);
}

#[test]
fn a_model_is_asked_only_for_a_summary_that_nobody_wrote() {
    let place = Place::new();
    let path = golden(&place);
    let summaries = [
        place.run(&["compact", path.to_str().unwrap(), "--focus", "the vouchers"]),
        compact(&place, "--from r13 --to r14 --summary Mended."),
    ];
    let mut said = String::new();
    for ran in summaries {
        assert_eq!(ran.code, 0, "{ran:?}");
        said += &(ran.err + &ran.out);
    }
    let verified = place.run(&["replay", "--verify", path.to_str().unwrap()]);
    insta::assert_snapshot!(place.plain(&(said + &verified.out)), @"
    model: offline, a script in this program and no LLM
    asking offline for a summary of rounds 11 to 12 (about 455 tokens)
    run RUN: 5,965 → 5,503 tokens, 7 % less
    rounds 1–10 summarised before · 11–12 summarised · 13–15 kept

      e75 summarize  5,965 → 5,503  a summary of rounds 11 to 12

    to undo: undertext undo /demo.jsonl
    run RUN: 5,503 → 5,296 tokens, 3 % less
    rounds 1–12 summarised before · 13–14 summarised in your words · 15 kept

      e76 summarize  5,503 → 5,296  a summary of rounds 13 to 14

    to undo: undertext undo /demo.jsonl
    17 of 17 requests rebuilt, all digests equal
    ");

    // Whoever is named writes it; the run's own model stays what it was.
    let provider = Provider::new([says("In other words.")]);
    let words = format!("--fresh --to r12 -m m --base-url {}", provider.url);
    let ran = compact(&place, &words);
    assert_eq!(ran.code, 0, "{ran:?}");
    let asked: Value = serde_json::from_slice(&provider.body()).unwrap();
    assert_eq!(asked["model"], "m");
    let shown = place.run(&["show", "--json", path.to_str().unwrap()]).out;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["model"]["name"], "offline");
    assert_eq!(shown["overlays"][5]["origin"], "user");
}

#[test]
fn a_summary_that_cannot_be_had_changes_nothing() {
    let place = Place::new();
    let path = golden(&place);
    let refusal = Answer::Status(401, r#"{"error":{"message":"no such key"}}"#);
    let mut said = String::new();
    for (code, provider) in [
        (4, Provider::new([refusal])),
        (1, Provider::new([says(""), says(" ")])),
    ] {
        let words = format!("--focus x --from start -m m --base-url {}", provider.url);
        let ran = compact(&place, &words);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{ran:?}");
        said += &ran.err;
    }
    insta::assert_snapshot!(place.plain(&said), @"
    server: http://HOST/v1 (no key)
    asking m for a summary of rounds 1 to 12 (about 1,823 tokens)
    no summary: auth: no such key
    undertext: no summary could be had, so nothing was changed: auth: no such key; try again later or with another model, or write it yourself: `undertext compact --summary`
    server: http://HOST/v1 (no key)
    asking m for a summary of rounds 1 to 12 (about 1,823 tokens)
    no summary: empty
    asking m for a summary of rounds 1 to 12 (about 1,823 tokens)
    no summary: empty
    undertext: no summary could be had, so nothing was changed: empty; try again later or with another model, or write it yourself: `undertext compact --summary`
    ");
    let shown = place.run(&["show", "--json", path.to_str().unwrap()]).out;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["overlays"].as_array().unwrap().len(), 3);
}

#[test]
fn what_cannot_be_done_is_said_in_a_line() {
    let place = Place::new();
    let path = golden(&place);
    let before = fs::read(&path).unwrap();
    let nothing = each(
        &place,
        0,
        &[
            "--to t5",
            "--from r99",
            "--from e900",
            "--from 1s",
            "--keep-last 20",
            "--to e2",
            "--strategy strip-reasoning --to r12",
            "--strategy strip-tools --from r3 --to r9",
            "--strategy auto",
        ],
    );
    let refused = each(
        &place,
        2,
        &[
            "--from nowhere",
            "--from r9 --to r3",
            "--again e57",
            "--again e900",
            "--again e12",
            "--again x",
            "--rule hevy",
            "--profile none",
            "--from r5 --to r13 --summary Text.",
            "--strategy strip-tools --focus x",
            "--keep-last -1",
            "--strategy auto --strategy summarize",
        ],
    );
    insta::assert_snapshot!(nothing + &refused, @"
    $ --to t5
    run RUN: t5: this run has one turn of 15 rounds; name rounds, such as r1 to r12
    $ --from r99
    run RUN: r99 is not there: the run has 15 rounds
    $ --from e900
    run RUN: e900 is not there: the run has 72 entries
    $ --from 1s
    run RUN: 1s: nothing was recorded since then
    $ --keep-last 20
    run RUN: the run has 15 rounds, and the last 20 stay
    $ --to e2
    run RUN: e2 lies before the first round
    $ --strategy strip-reasoning --to r12
    run RUN: nothing worth hiding in rounds 1 to 12: 1,823 tokens, 0 can go
    $ --strategy strip-tools --from r3 --to r9
    run RUN: a summary stands for rounds 3 to 9 already: e57
    $ --strategy auto
    run RUN: 5,965 tokens are in use, and auto aims at 8,797
    $ --from nowhere
    undertext: invalid value 'nowhere' for '--from <ADDRESS>': `nowhere` is no address; use e210 (entry), r120 or r-3 (round), 5 or -3 (turn), 41.2 (call), 5h (ago), last, last-compaction, start or end; see --help
    $ --from r9 --to r3
    undertext: r9 lies behind r3; turn them round
    $ --again e57
    undertext: e57 stands: laying it again would change nothing
    $ --again e900
    undertext: e900 is no overlay of this run; `undertext show` lists them
    $ --again e12
    undertext: e12 is no overlay of this run; `undertext show` lists them
    $ --again x
    undertext: invalid value 'x' for '--again <OVERLAY>': an overlay is named by its entry, such as e210; see --help
    $ --rule hevy
    undertext: no rule is named `hevy`; did you mean `heavy`?
    $ --profile none
    undertext: no rule is named `none`; there is default, heavy, light
    $ --from r5 --to r13 --summary Text.
    undertext: your text for rounds 5 to 13 meets e57, a summary of rounds 1 to 10, and does not hold all of it; it is not widened by itself: name all of those rounds, or others
    $ --strategy strip-tools --focus x
    undertext: a focus, a text or `fresh` is about a summary; add `--strategy summarize`
    $ --keep-last -1
    undertext: invalid value '-1' for '--keep-last <N>': -1 is not in 0..=4294967295; see --help
    $ --strategy auto --strategy summarize
    undertext: auto ends with a summary where one is needed; name one of auto and summarize
    ");
    // A run that another process holds can be looked at, and is left alone.
    let held = FileStorage::open(&path, Durability::None).unwrap();
    let ran = compact(&place, "");
    assert_eq!(ran.code, 6, "{ran:?}");
    insta::assert_snapshot!(place.plain(&ran.err), @"undertext: /demo.jsonl is in use by another process; wait until that ends, or go on with a copy: `undertext fork` makes one meanwhile");
    assert_eq!(compact(&place, "-n").code, 0);
    drop(held);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_run_is_compacted_before_it_goes_on() {
    let place = Place::new();
    let path = golden(&place);
    let resume = ["--resume", path.to_str().unwrap(), "-C", "."];
    let provider = Provider::new([says("In short."), says("All done.")]);
    let more = ["--compact=heavy", "And now?"];
    let ran = place.ask(&provider, &[&resume[..], &more].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "All done.\n"), "{ran:?}");
    let about = |line: &&str| line.starts_with("compact");
    let lines: Vec<&str> = ran.err.lines().filter(about).collect();
    insta::assert_snapshot!(place.plain(&lines.join("\n")), @"compacted (user): [summary + 11 entries] → [2 summaries + 7 entries], 5,963 → 5,435 tokens, 1 overlay");
    let (_, asked) = (provider.body(), provider.body());
    assert!(String::from_utf8(asked).unwrap().contains("In short."));

    let new = place.ask(&provider, &["--compact", "Begin."]);
    let unknown = place.ask(
        &provider,
        &[&resume[..], &["--compact=none", "More."]].concat(),
    );
    let apart = place.ask(&provider, &[&resume[..], &["--compact", "heavy"]].concat());
    assert_eq!((new.code, unknown.code, apart.code), (2, 2, 2));
    insta::assert_snapshot!(place.plain(&(new.err + &unknown.err + &apart.err)), @"
    undertext: --compact goes with --resume or --continue: a new run has nothing to compact
    undertext: no rule is named `none`; there is default, heavy, light
    undertext: `heavy` would be the task; a rule is named so: --compact=heavy
    ");
}

#[test]
fn a_run_that_ended_stays_ended_when_it_is_summed_up() {
    let place = Place::new();
    let path = golden(&place);
    let json = |line: &[&str]| -> Value {
        let ran = place.run(line);
        serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"))
    };
    let forked = json(&["fork", path.to_str().unwrap(), "--json"]);
    let run = forked["run"].as_str().unwrap();
    let provider = Provider::new([
        says(" "),
        says("I’m sorry, but I can’t help with that."),
        says("In short."),
    ]);
    for code in [1, 0] {
        let asks = ["--focus", "x", "-m", "m", "--base-url", &provider.url];
        let ran = place.run(&[&["compact", run][..], &asks].concat());
        assert_eq!(ran.code, code, "{ran:?}");
        let shown = json(&["show", run, "--json"]);
        assert_eq!(shown["end"]["reason"], "finished", "{shown}");
        assert_eq!(json(&["list", "--json"])["state"], "finished");
    }
    assert_eq!(place.run(&["undo", run, "e57"]).code, 0);
    assert_eq!(place.run(&["compact", run, "--again", "57"]).code, 0);
    let twice = place.run(&["compact", run, "--again", "57"]);
    assert_eq!(twice.code, 2);
    insta::assert_snapshot!(place.plain(&twice.err), @"undertext: e57 stands again as e84: laying it once more would change nothing");
}

#[test]
fn tools_that_were_pruned_stay_out_until_they_are_named() {
    let place = Place::new();
    let path = golden(&place);
    assert_eq!(compact(&place, "--strategy prune-tools").code, 0);
    let provider = Provider::new([says("All done."), says("All done.")]);
    let tools = |more: &[&str]| {
        let line = ["--resume", path.to_str().unwrap(), "-C", ".", "Go on."];
        let ran = place.ask(&provider, &[&line[..], more].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        let body: Value = serde_json::from_slice(&provider.body()).unwrap();
        let names = body["tools"].as_array().unwrap().iter();
        let names = names.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    insta::assert_snapshot!(tools(&[]), @"Bash Read Edit Grep Glob Compact Recall TodoWrite");
    insta::assert_snapshot!(tools(&["--tools", "Read,Write"]), @"Read Write");
}

#[test]
fn a_fork_may_be_compacted_at_once() {
    let place = Place::new();
    let path = golden(&place);
    let before = fs::read(&path).unwrap();
    let fork = |more: &[&str]| {
        let line = ["fork", path.to_str().unwrap(), "--at", "r9"];
        place.run(&[&line[..], more].concat())
    };
    let ran = fork(&["--compact"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let id = crate::cli::ran_id(&place.transcripts()[0]);
    insta::assert_snapshot!(place.plain(&ran.out).replace(&id, "RUN"), @"
    run RUN: /home/.local/state/undertext/transcripts/UUID.jsonl
      forked from      00000001 at e47, after 9 rounds
      not taken over   5 blobs: lost to the parent as well
      next request     15,208 tokens, 108 % of 14,000
      to go on         undertext run --resume RUN
    run RUN: 15,208 → 12,365 tokens, 18 % less
    rounds 1–6 tools stripped · 7–9 kept

      e48 strip-tools  15,208 → 12,365  13 results in rounds 1 to 6
      strip-reasoning: nothing worth hiding in rounds 1 to 6

    to undo: undertext undo RUN
    ");
    let told = fork(&["--compact=light", "--json"]);
    let told: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(told["compacted"]["planned"], 0);
    let refused = fork(&["--compact=none"]);
    assert_eq!(
        (refused.code, place.transcripts().len()),
        (2, 2),
        "{refused:?}"
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}
