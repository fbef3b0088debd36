//! `lab`: the table, the objects, the drawing and the search, and what is said of what cannot be read.

use std::fs;

use serde_json::Value;

use crate::cli::{Place, Ran};

/// The recording of another agent, and the run of the repository.
const EXCERPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/corpus/excerpts");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");

fn place() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.path("home/w/runs/deep")).unwrap();
    fs::copy(GOLDEN, place.path("home/w/runs/demo.jsonl")).unwrap();
    let session = format!("{EXCERPTS}/claude-code/session.jsonl");
    fs::copy(session, place.path("home/w/runs/deep/session.jsonl")).unwrap();
    fs::write(place.path("home/w/runs/notes.txt"), "no run\n").unwrap();
    let policy = "compaction:\n  micro:\n    keep_recent: 2\n    min_gain_tokens: 1000\n    min_gain_ratio: 0\n";
    fs::write(place.path("home/w/cheap.yaml"), policy).unwrap();
    place
}

fn objects(ran: &Ran) -> Vec<Value> {
    let lines = ran.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_table_has_a_block_a_run_and_a_line_a_policy() {
    let ran = place().run(&["lab", "runs", "--policy", "cheap.yaml", "--window", "20000"]);
    assert_eq!(
        (ran.code, &*ran.err),
        (0, "left out: 1 file without a run\n")
    );
    insta::assert_snapshot!(ran.out, @r"
      policy       requests   prompt  of none    cost  of none  passes    peak  hidden     regret
    runs/deep/session.jsonl
      none                5    3,352  100.0 %   1,387  100.0 %       0   1,167       0          -
      each chance         5    3,352  100.0 %   1,387  100.0 %       0   1,167       0          -
      default             5    3,352  100.0 %   1,387  100.0 %       0   1,167       0          -
      cheap.yaml          5    3,352  100.0 %   1,387  100.0 %       0   1,167       0          -
    runs/demo.jsonl
      none               15  200,396  100.0 %  38,800  100.0 %       0  20,838       0          -
      each chance        15  110,497   55.1 %  73,953  190.6 %       5  13,060      24  1 (4.2 %)
      default            15  119,498   59.6 %  54,254  139.8 %       2  13,547      24  1 (4.2 %)
      cheap.yaml         15  112,252   56.0 %  59,544  153.5 %       5  11,483      24  1 (4.2 %)
    2 runs
      none               20  203,748  100.0 %  40,187  100.0 %       0  20,838       0          -
      each chance        20  113,849   55.9 %  75,340  187.5 %       5  13,060      24  1 (4.2 %)
      default            20  122,850   60.3 %  55,641  138.5 %       2  13,547      24  1 (4.2 %)
      cheap.yaml         20  115,604   56.7 %  60,931  151.6 %       5  11,483      24  1 (4.2 %)
    none: 6 of 20 requests would not fit the window
    ");
}

#[test]
fn objects_say_the_same() {
    let ran = place().run(&["lab", "--json", "runs/demo.jsonl", "--cached-price", "1"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let objects = objects(&ran);
    let named: Vec<_> = objects
        .iter()
        .map(|it| (&it["type"], &it["policy"]))
        .collect();
    let kinds = ["tried", "total"].map(|kind| {
        let of = named.iter().filter(|(known, _)| *known == kind);
        of.map(|(_, policy)| policy.as_str().unwrap())
            .collect::<Vec<_>>()
    });
    assert_eq!(kinds, [["none", "each chance", "default"]; 2]);
    // Where a cached token costs as much as any other, prompts are all there is to pay.
    let none = &objects[0];
    assert_eq!(none["cost"].as_f64(), none["prompt_tokens"].as_f64());
    for one in &objects {
        assert!(one["requests"].as_u64() > Some(5), "{one}");
    }
}

#[test]
fn a_drawing_has_a_line_a_policy() {
    let place = place();
    let ran = place.run(&[
        "lab",
        "runs/demo.jsonl",
        "--policy",
        "cheap.yaml",
        "--plot",
        "a.svg",
    ]);
    assert_eq!((ran.code, &*ran.err), (0, "drawn: a.svg\n"));
    let drawn = fs::read_to_string(place.path("home/w/a.svg")).unwrap();
    assert!(drawn.starts_with("<svg ") && drawn.trim_end().ends_with("</svg>"));
    assert_eq!(drawn.matches(r#"<path class="line""#).count(), 8);
    assert!(drawn.matches("<circle ").count() > 2, "{drawn}");
    assert!(drawn.contains(">cheap.yaml</text>"), "{drawn}");
}

#[test]
fn a_search_learns_on_one_half_and_is_tried_on_the_other() {
    let place = place();
    let line = [
        "lab",
        "runs",
        "--search",
        "--window",
        "20000",
        "--regret-bound",
        "50",
    ];
    let ran = place.run(&line);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.out, place.run(&line).out);
    let (table, settings) = ran.out.split_once("\nfound on 1 other run, of ").unwrap();
    assert!(
        table.contains("runs/demo.jsonl") && !table.contains("session.jsonl"),
        "{table}"
    );
    // What it found is a policy.
    let settings = &settings[settings.find("compaction:").unwrap()..];
    fs::write(place.path("home/w/found.yaml"), settings).unwrap();
    let again = place.run(&[
        "lab",
        "runs/demo.jsonl",
        "--policy",
        "found.yaml",
        "--window",
        "20000",
    ]);
    let figures = |text: &str, name: &str| {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        let line = line.unwrap().trim_start().trim_start_matches(name);
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(figures(table, "found "), figures(&again.out, "found.yaml"));
}

/// One's own settings are tried as well, if they are not the built-in ones.
#[test]
fn settings_of_ones_own_are_one_more_policy() {
    let place = place();
    let policies = |line: &[&str]| {
        let ran = place.run(&[&["lab", "runs/demo.jsonl", "--json"], line].concat());
        let tried = objects(&ran).into_iter().filter(|it| it["type"] == "total");
        let names = tried.map(|it| it["policy"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let built_in = ["none", "each chance", "default"];
    assert_eq!(policies(&[]), built_in);
    let changed = policies(&["--set", "compaction.micro.keep_recent=1"]);
    assert_eq!(changed, [&built_in[..], &["yours"]].concat());
}

#[test]
fn what_cannot_be_tried_is_said() {
    let place = place();
    fs::write(
        place.path("home/w/bad.yaml"),
        "compaction:\n  micro:\n    keep_resent: 3\n",
    )
    .unwrap();
    fs::write(
        place.path("home/w/worse.yaml"),
        "compaction:\n  auto: { trigger_ratio: 7 }\n",
    )
    .unwrap();
    fs::write(place.path("home/w/other.yaml"), "model: { name: m }\n").unwrap();
    fs::create_dir(place.path("home/w/empty")).unwrap();
    for (line, code, said) in [
        (
            &["lab", "runs", "--policy", "bad.yaml"][..],
            2,
            "undertext: wrong setting in /home/w/bad.yaml:3:5: unknown key `keep_resent`, did you mean `keep_recent`?",
        ),
        (
            &["lab", "runs", "--policy", "worse.yaml"],
            2,
            "undertext: wrong setting in /home/w/worse.yaml:2:26: 7 is not between 0 and 1",
        ),
        (
            &["lab", "runs", "--policy", "other.yaml"],
            2,
            "undertext: other.yaml has no `compaction:` section",
        ),
        (
            &["lab", "runs", "--policy", "none.yaml"],
            2,
            "undertext: cannot read settings from /home/w/none.yaml: No such file or directory (os error 2)",
        ),
        (
            &["lab", "nothing"],
            2,
            "undertext: `nothing` is no run id, no part of one, and no path to a .jsonl file; `undertext list` shows all runs",
        ),
        (
            &["lab", "empty"],
            2,
            "undertext: there is no run with a request in it",
        ),
        (
            &["lab", "runs/demo.jsonl", "--search"],
            2,
            "undertext: --search learns on one half of the runs and tries on the other: name two or more",
        ),
    ] {
        let ran = place.run(line);
        assert_eq!((ran.code, &*ran.out), (code, ""), "{line:?}");
        assert_eq!(place.plain(ran.err.trim_end()), said, "{line:?}");
    }
    let ran = place.run(&["lab", "a.txt"]);
    assert_eq!((ran.code, &*ran.out), (2, ""), "{ran:?}");
    for line in [
        &["lab"][..],
        &["lab", "runs", "--cached-price", "-1"],
        &["lab", "runs", "--window", "10"],
        &["lab", "runs", "--regret-bound", "1"],
        &["lab", "runs", "--cache-lifetime", "5"],
    ] {
        assert_eq!(place.run(line).code, 2, "{line:?}");
    }
}
