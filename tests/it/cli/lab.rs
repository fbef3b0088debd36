//! `lab`: the table, the objects, the drawing and the search, and what is said of what cannot be read.

use std::fs;

use serde_json::{Value, json};

use crate::cli::inputs::of_format;
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
    fs::write(place.path("home/w/runs/demo.index"), "beside a run").unwrap();
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
    insta::assert_snapshot!(ran.out, @"
      policy       requests   prompt  of none    cost  of none  passes    peak  hidden     regret  arguments missed
    runs/deep/session.jsonl
      none                5    3,352  100.0 %   1,387  100.0 %       0   1,167       0          -                 -
      each chance         5    3,352  100.0 %   1,387  100.0 %       0   1,167       0          -                 -
      default             5    3,352  100.0 %   1,387  100.0 %       0   1,167       0          -                 -
      cheap.yaml          5    3,352  100.0 %   1,387  100.0 %       0   1,167       0          -                 -
    runs/demo.jsonl
      none               15  200,396  100.0 %  38,800  100.0 %       0  20,838       0          -                 -
        does not fit from r10 on: `of none` counts requests that nobody could have sent
      each chance        15  110,497   55.1 %  73,953  190.6 %       5  13,060      24  1 (4.2 %)            0 of 1
      default            15  119,498   59.6 %  54,254  139.8 %       2  13,547      24  1 (4.2 %)            0 of 1
      cheap.yaml         15  112,252   56.0 %  59,544  153.5 %       5  11,483      24  1 (4.2 %)            0 of 1
    2 runs
      none               20  203,748  100.0 %  40,187  100.0 %       0  20,838       0          -                 -
        does not fit in 1 of 2 runs: `of none` counts requests that nobody could have sent
      each chance        20  113,849   55.9 %  75,340  187.5 %       5  13,060      24  1 (4.2 %)            0 of 1
      default            20  122,850   60.3 %  55,641  138.5 %       2  13,547      24  1 (4.2 %)            0 of 1
      cheap.yaml         20  115,604   56.7 %  60,931  151.6 %       5  11,483      24  1 (4.2 %)            0 of 1
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

/// The figures of the last policy of this name in a table.
fn figures(text: &str, name: &str) -> Vec<String> {
    let mut lines = text.lines().map(str::trim_start);
    let line = lines.rfind(|line| line.starts_with(name)).unwrap();
    let figures = line.trim_start_matches(name).split_whitespace();
    figures.map(str::to_owned).collect()
}

/// A search over these two runs, of which it learns on the first.
fn search(place: &Place, [learned, tried]: [&str; 2], bound: &str) -> String {
    let place = |name: &str| place.path(&format!("home/w/{name}"));
    fs::create_dir(place("searched")).unwrap();
    fs::copy(place(learned), place("searched/a.jsonl")).unwrap();
    fs::copy(place(tried), place("searched/b.jsonl")).unwrap();
    format!("lab searched --search --window 20000 --regret-bound {bound}")
}

#[test]
fn a_search_learns_on_one_half_and_is_tried_on_the_other() {
    let place = place();
    let line = search(&place, ["runs/demo.jsonl", "runs/deep/session.jsonl"], "50");
    let line: Vec<&str> = line.split(' ').collect();
    let ran = place.run(&line);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.out, place.run(&line).out);
    let (table, found) = ran.out.split_once("\n\n").unwrap();
    assert!(
        table.contains("searched/b.jsonl") && !table.contains("a.jsonl"),
        "{table}"
    );
    insta::assert_snapshot!(found, @"
    found on 1 other run, of 69 policies; on the run above it costs as much as default
    regret: 4.2 % there, 0.0 % here; at most 50 % is wanted
    compaction:
      micro:
        keep_recent: 2
        min_chars: 400
        min_gain_tokens: 10000
        min_gain_ratio: 2
      auto:
        token_threshold: 45000
        target_ratio: 0.4
        tail_ratio: 0.25
        bands_ratio: 0.2
    ");
    // What it found is a policy.
    let settings = &found[found.find("compaction:").unwrap()..];
    fs::write(place.path("home/w/found.yaml"), settings).unwrap();
    let again = ["lab", "searched/b.jsonl", "--policy", "found.yaml"];
    let again = place.run(&[&again[..], &["--window", "20000"]].concat());
    assert_eq!(figures(table, "found "), figures(&again.out, "found.yaml"));
}

/// What is no find is not shown as one, and that a bound breaks is said.
#[test]
fn a_search_that_finds_nothing_says_so() {
    let place = place();
    let line = search(&place, ["runs/deep/session.jsonl", "runs/demo.jsonl"], "2");
    let line: Vec<&str> = line.split(' ').collect();
    let ran = place.run(&line);
    let (table, found) = ran.out.split_once("\n\n").unwrap();
    assert!(!table.contains("found"), "{table}");
    insta::assert_snapshot!(found, @"
    nothing found: of 61 policies on 1 other run, none that keeps the bound is cheaper than default
    regret of default: 0.0 % there, 4.2 % here; at most 2 % is wanted
    the bound held there and breaks here: see what was missed (`misses` in --json)
    ");
    let told = objects(&place.run(&[&line[..], &["--json"]].concat()));
    let told = told.last().unwrap();
    let said = ["better", "bound_held", "bound_holds", "cheaper_percent"].map(|key| &told[key]);
    assert_eq!(json!(said), json!([false, true, false, 0.0]), "{told}");
}

/// Who names files of one name can tell them apart; what is no part of a policy is not dropped silently.
#[test]
fn policies_are_told_apart() {
    let place = place();
    for (name, text) in [
        (
            "a",
            "model: { name: m }\ncompaction:\n  micro: { keep_recent: 2 }\n",
        ),
        ("b", "compaction:\n  micro: { keep_recent: 3 }\n"),
    ] {
        fs::create_dir(place.path(&format!("home/w/{name}"))).unwrap();
        fs::write(place.path(&format!("home/w/{name}/cheap.yaml")), text).unwrap();
    }
    let files = ["a/cheap.yaml", "b/cheap.yaml", "a/cheap.yaml", "cheap.yaml"];
    let files = files.map(|file| ["--policy", file]).concat();
    let ran = place.run(&[&["lab", "runs/demo.jsonl", "--json"], &files[..]].concat());
    let left_out =
        "left out of a/cheap.yaml: `model.name` (line 1); a policy is its `compaction:` section";
    assert_eq!((ran.code, ran.err.trim_end()), (0, left_out));
    let tried = objects(&ran).into_iter().filter(|it| it["type"] == "tried");
    let names: Vec<Value> = tried.map(|it| it["policy"].clone()).collect();
    let ends = ["a/cheap.yaml", "b/cheap.yaml", "w/cheap.yaml"];
    assert_eq!(json!(names[3..]), json!(ends));
}

/// What is wrong with a transcript is said as whoever looks at it says it, and is no failure.
#[test]
fn a_run_with_damage_is_tried_and_the_damage_is_said() {
    let place = place();
    let golden = fs::read_to_string(GOLDEN).unwrap();
    for (name, text, said) in [
        (
            "torn",
            &golden[..golden.len() - 9],
            "does not end with an entry",
        ),
        (
            "damaged",
            &golden.replacen("# An order of", "# An odd of", 1),
            "is damaged: line 26",
        ),
        (
            "headless",
            &golden.replacen("\"id\":1,", "\"id\":2,", 1),
            "does not begin with a run",
        ),
        ("newer", &of_format(9), "has format 9, this version knows"),
    ] {
        let name = format!("{name}.jsonl");
        fs::write(place.path(&format!("home/w/{name}")), text).unwrap();
        let [looked, tried] = ["show", "lab"].map(|command| place.run(&[command, &name]));
        assert_eq!((tried.code, &tried.err), (0, &looked.err), "{name}");
        assert!(tried.err.contains(said), "{}", tried.err);
        assert!(tried.out.contains("each chance"), "{}", tried.out);
    }
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
            "undertext: other.yaml sets nothing in a `compaction:` section; a policy is what stands there",
        ),
        (
            &["lab", "runs", "--policy", "none.yaml"],
            2,
            "undertext: cannot read settings from /home/w/none.yaml: No such file or directory (os error 2); check the path",
        ),
        (
            &["lab", "nothing"],
            2,
            "undertext: `nothing` is no run id, no part of one, and no path to a .jsonl file; `undertext list` shows all runs",
        ),
        (
            &["lab", "empty"],
            2,
            "undertext: there is no run with a request in it; name one, or a directory that holds some",
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
        &["lab", "runs", "--regret-bound", "1"],
        &["lab", "runs", "--cache-lifetime", "5"],
    ] {
        assert_eq!(place.run(line).code, 2, "{line:?}");
    }
}

#[test]
fn a_number_out_of_range_is_told_its_range() {
    let place = place();
    for (flag, value, range) in [
        (
            "--cached-price",
            "2",
            "it is a number from 0 to 1, such as 0.1",
        ),
        (
            "--cached-price",
            "-1",
            "it is a number from 0 to 1, such as 0.1",
        ),
        (
            "--cache-write-price",
            "-1",
            "it is a number from 0 to 1000, such as 1.25",
        ),
        (
            "--output-price",
            "NaN",
            "it is a number from 0 to 1000, such as 1.25",
        ),
        (
            "--regret-bound",
            "101",
            "it is a number from 0 to 100, such as 2",
        ),
        ("--window", "10", "10 is not in 1000..=100000000"),
        ("--summary-tokens", "0", "0 is not in 1..=1000000"),
    ] {
        let ran = place.run(&["lab", "runs", "--search", flag, value]);
        assert_eq!((ran.code, &*ran.out), (2, ""), "{flag}");
        let said = ran.err.lines().next().unwrap();
        assert!(
            said.starts_with(&format!("undertext: invalid value '{value}' for '{flag} <")),
            "{said}"
        );
        assert!(
            said.ends_with(&format!(">': {range}; see --help")),
            "{said}"
        );
    }
}
