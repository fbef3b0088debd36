//! Runs are deleted, exactly those that are meant.

use std::fs;

use serde_json::Value;
use undertext::record::{Durability, FileStorage};

use crate::cli::{Place, ran_id, says};
use crate::provider::Provider;

#[test]
fn runs_are_deleted_only_by_name_and_not_while_they_are_in_use() {
    let place = Place::new();
    let provider = Provider::new((0..3).map(|_| says("Done.")));
    let long = "x".repeat(3_000);
    for task in ["one", "two", &long] {
        place.ask(&provider, &["--set", "limits.text_chars=2000", task]);
    }
    let paths = place.transcripts();
    let ids: Vec<String> = paths.iter().map(|path| ran_id(path)).collect();
    fs::write(place.path("home/w/notes.jsonl"), "{}\n").unwrap();
    let held = FileStorage::open(&paths[0], Durability::None).unwrap();
    let mut said = String::new();
    for (code, line) in [
        (2, &["rm"][..]),
        (2, &["rm", "last"]),
        (2, &["rm", &ids[1][1..]]),
        (2, &["rm", &ids[1], "00000000"]),
        (2, &["rm", "notes.jsonl"]),
        (6, &["rm", &ids[0]]),
    ] {
        let ran = place.run(line);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{line:?} {ran:?}");
        said += &ran
            .err
            .lines()
            .next()
            .unwrap()
            .replace(&ids[1][1..], "7DIGITS");
        said.push('\n');
    }
    drop(held);
    assert_eq!(place.transcripts(), paths);
    assert!(paths[2].with_extension("blobs").exists());

    let ran = place.run(&["rm", &ids[2], &ids[2]]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let bytes = regex::Regex::new("[0-9,]+ bytes").unwrap();
    said += &bytes
        .replace_all(&ran.out, "N bytes")
        .replace(&format!("run {}", ids[2]), "run RUN");
    insta::assert_snapshot!(place.plain(&said), @"
    undertext: the following required arguments were not provided: <RUN>...; see --help
    undertext: `last` is too little to delete a run by; give its 8 digits as `undertext list` shows them
    undertext: `7DIGITS` is too little to delete a run by; give its 8 digits as `undertext list` shows them
    undertext: no run `00000000` in /home/.local/state/undertext/transcripts; `undertext list` shows all runs
    undertext: notes.jsonl holds no run; undertext deletes runs alone: remove another file with rm
    undertext: /home/.local/state/undertext/transcripts/UUID.jsonl is in use by another process; wait until that ends, or end it
    deleted run RUN with 1 blob, N bytes: /home/.local/state/undertext/transcripts/UUID.jsonl
    ");
    assert!(!paths[2].with_extension("blobs").exists());
    let path = paths[1].to_str().unwrap();
    let ran = place.run(&["rm", "--json", path]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&told["transcript"], &told["blobs"]),
        (&path.into(), &0.into())
    );
    assert_eq!(place.transcripts(), paths[..1]);
}
