//! `replay --verify` of transcripts that are not what they were.

use std::fs;

use undertext::transcript::{Event, jsonl};

use crate::cli::{Place, looks, says};
use crate::provider::Provider;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");

/// What `replay --verify` says of these bytes.
fn verified(bytes: &[u8]) -> String {
    let place = Place::new();
    fs::write(place.path("home/w/run.jsonl"), bytes).unwrap();
    let ran = place.run(&["replay", "run.jsonl", "--verify"]);
    let said = format!("{}{}[exit {}]\n", ran.out, ran.err, ran.code);
    place.plain(&said)
}

/// The golden run with one entry changed, its checksum made anew.
fn forged(change: impl Fn(&mut Event)) -> Vec<u8> {
    let file = fs::read(GOLDEN).unwrap();
    let lines = file.split(|byte| *byte == b'\n');
    let entries = lines.filter_map(|line| jsonl::decode(line).ok());
    let lines = entries.map(|mut entry| {
        change(&mut entry.event);
        jsonl::encode(&entry).unwrap()
    });
    lines.collect::<Vec<_>>().concat()
}

/// Somebody forged a result: what was sent is gone, but not where it stood.
#[test]
fn a_difference_is_named_by_request_and_message() {
    let forged = forged(|event| {
        if let Event::Result(result) = event
            && result.content.starts_with("FAIL")
        {
            result.content = "all cases pass".to_owned();
        }
    });
    insta::assert_snapshot!(verified(&forged), @"
    7 of 16 requests rebuilt; the first that is not: e21 (round 4): other bytes than were sent
      31,681 bytes were sent, 23,378 are built: 8,303 fewer
      bytes 0 to 23,122 are those of r3, which is equal
      the difference lies in what is new since r3:
        message 13, e18 response: Bash, bytes 23,123 to 23,306
        message 14, e20 result of Bash (sh tests/run.sh), bytes 23,307 to 23,376
    [exit 1]
    ");
}

#[test]
fn a_renderer_that_is_not_known_is_said_plainly() {
    let newer = forged(|event| {
        if let Event::Request(request) = event
            && request.round == Some(15)
        {
            request.renderer = 2;
        }
    });
    insta::assert_snapshot!(verified(&newer), @"
    15 of 16 requests rebuilt; the first that is not: e70 (round 15): made by renderer 2, which this version does not know: cannot be verified
    [exit 1]
    ");
}

/// One byte, anywhere: never is all said to be equal, and always the place is named.
#[test]
fn one_byte_flipped_is_named_by_place() {
    let place = Place::new();
    let provider = Provider::new([looks(), says("All done.")]);
    assert_eq!(place.ask(&provider, &["look around"]).code, 0);
    let path = &place.transcripts()[0];
    let whole = fs::read(path).unwrap();
    let copy = place.path("home/w/copy.jsonl");
    let ends = (0..whole.len()).filter(|at| whole[*at] == b'\n');
    let checksums = ends.clone().map(|end| end - 4);
    let stride = whole.len() / 200;
    let places = (0..200).map(|step| step * stride);
    for at in places.chain(ends).chain(checksums) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&copy, &bytes).unwrap();
        let ran = place.run(&["replay", "copy.jsonl", "--verify"]);
        assert!(matches!(ran.code, 1 | 6), "byte {at}: {ran:?}");
        assert!(!ran.out.contains("all digests equal"), "byte {at}: {ran:?}");
        let line = whole[..at].split(|byte| *byte == b'\n').count();
        let named = ran.out.contains(&format!("line {line}:"));
        let torn = ran.out.contains("are no entry");
        assert!(named || torn, "byte {at} of line {line}: {ran:?}");
    }
    fs::write(&copy, &whole).unwrap();
    let ran = place.run(&["replay", "copy.jsonl", "--verify"]);
    assert_eq!(
        (ran.code, &*ran.out),
        (0, "2 of 2 requests rebuilt, all digests equal\n")
    );
}
