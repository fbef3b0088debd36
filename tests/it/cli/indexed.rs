//! A long run with an index beside it is gone on with as one without.

use std::fs;
use std::path::{Path, PathBuf};

use undertext::record::{Clock, Durability, FileStorage, OnDamage, Recorder};
use undertext::transcript::{Event, Note};

use crate::cli::{Place, looks, ran_id, says};
use crate::provider::Provider;

/// The run at this path as whoever goes on with it has it.
fn recorder(path: &Path) -> Recorder {
    let storage = FileStorage::open(path, Durability::Data).unwrap();
    Recorder::open(Box::new(storage), Clock::System, OnDamage::Refuse).unwrap()
}

/// Records a run and makes it long enough for an index, with what no request holds. Its index is kept.
fn long(place: &Place, task: &str) -> PathBuf {
    let provider = Provider::new([looks(), says("I looked.")]);
    assert_eq!(place.ask(&provider, &[task]).code, 0);
    let path = place.transcripts().pop().unwrap();
    let mut recorder = recorder(&path);
    for _ in 0..5 {
        let text = "long ".repeat(200_000);
        recorder
            .record(Event::Note(Note::Warning { text }))
            .unwrap();
    }
    assert!(recorder.keep_index().unwrap());
    path
}

/// Takes the run up, and says what it sent and what `replay --verify` found before and after.
fn goes_on(place: &Place, path: &Path) -> (Vec<u8>, [String; 2]) {
    let verified = || {
        let ran = place.run(&["replay", &ran_id(path), "--verify"]);
        format!("{}{}[exit {}]", ran.out, ran.err, ran.code)
    };
    let before = verified();
    let provider = Provider::new([says("Done.")]);
    let ran = place.ask(&provider, &["--resume", &ran_id(path), "Go on."]);
    assert_eq!((ran.code, &*ran.out), (0, "Done.\n"), "{ran:?}");
    (provider.body(), [before, verified()])
}

#[test]
fn a_run_sends_the_same_whatever_index_lies_beside_it() {
    let place = Place::new();
    let [other, path] = ["look at that", "look around"].map(|task| long(&place, task));
    let index = path.with_extension("index");
    let (earlier, strange) = (
        fs::read(&index).unwrap(),
        fs::read(other.with_extension("index")).unwrap(),
    );
    // What it covers is not all any more.
    let provider = Provider::new([looks(), says("I looked again.")]);
    let ran = place.ask(&provider, &["--resume", &ran_id(&path), "Look again."]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let whole = fs::read(&path).unwrap();
    fs::remove_file(&index).unwrap();
    assert!(recorder(&path).keep_index().unwrap());
    let newest = fs::read(&index).unwrap();

    let sent = goes_on(&place, &path);
    assert_eq!(
        sent.1,
        [
            "4 of 4 requests rebuilt, all digests equal\n[exit 0]",
            "5 of 5 requests rebuilt, all digests equal\n[exit 0]",
        ]
    );
    // Whether it is used shows in what is kept of it when the run ends: all but the stamp.
    let without_stamp = |index: &[u8]| index.len() - 100;
    for (what, beside, is_used) in [
        ("none", None, false),
        ("of now, hashed", Some(&newest[..]), true),
        ("of now, stamped", Some(&newest[..]), true),
        ("of before", Some(&earlier[..]), true),
        ("torn", Some(&newest[..newest.len() / 2]), false),
        ("without its stamp", Some(&newest[..newest.len() - 1]), true),
        ("of another run", Some(&strange[..]), false),
    ] {
        fs::write(&path, &whole).unwrap();
        fs::remove_file(&index).ok();
        if let Some(beside) = beside {
            fs::write(&index, beside).unwrap();
        }
        if what.ends_with("stamped") {
            assert!(!recorder(&path).keep_index().unwrap());
        }
        assert_eq!(goes_on(&place, &path), sent, "{what}");
        let kept = fs::read(&index).unwrap();
        let is_kept = beside.is_some_and(|beside| {
            let begin = &beside[..without_stamp(beside)];
            kept.starts_with(begin)
        });
        assert_eq!(is_kept, is_used, "{what}");
    }
}
