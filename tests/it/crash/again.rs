//! A run that is taken up again and again: by another model, with other tools, at any time of day.

use undertext::agent::Task;
use undertext::id::EntryId;
use undertext::model::{Fault, Reply, Script, Scripted};
use undertext::record::{Clock, MemoryStorage, OnDamage, Recorder};
use undertext::replay::Replay;
use undertext::setup::Policy;
use undertext::transcript::{At, FaultClass, Reason};

use crate::crash::times;
use crate::scene;

const WINDOW: u64 = 100_000;

#[test]
fn a_run_is_taken_up_again_and_again_with_what_there_is() {
    let storage = MemoryStorage::default();
    let hour = 3_600_000;
    let turns = times("UNDERTEXT_RESUMES", 24);
    for turn in 0..turns {
        // An hour back, a day forward, the first moment of all.
        let moment = match turn % 4 {
            0 => scene::BEGIN,
            1 => At(scene::BEGIN.0 - hour),
            2 => At(scene::BEGIN.0 + 24 * hour),
            _ => At(0),
        };
        let mut script: Vec<Script> = vec![
            Reply::calls([
                ("Show", format!(r#"{{"path":"s{turn}","chars":40}}"#)),
                ("Change", format!(r#"{{"path":"c{turn}","chars":40}}"#)),
            ])
            .into(),
        ];
        let ends = if turn == turns - 1 {
            script.push(Reply::text("Done.").into());
            Reason::Finished
        } else {
            script.push(Fault::new(FaultClass::Permanent, "no").into());
            Reason::Provider
        };
        let mut setup = scene::setup(WINDOW, Policy::default());
        setup.wire.models.main.name = format!("model-{}", turn % 3);
        let mut toolbox = scene::toolbox();
        if turn % 5 == 4 {
            toolbox = toolbox.without(["Change".to_owned()].iter()).unwrap();
        }
        let model = std::sync::Arc::new(Scripted::new(script));
        let agent = undertext::agent::Agent::new(setup, model, toolbox);
        let clock = Clock::fixed(moment);
        let before = storage.bytes();
        let mut recorder = if turn == 0 {
            let run = scene::run(&clock);
            Recorder::create(Box::new(storage.clone()), clock, run).unwrap()
        } else {
            Recorder::open(Box::new(storage.clone()), clock, OnDamage::Refuse).unwrap()
        };
        let task = (turn == 0).then(|| Task::new("Go."));
        let ended = scene::go(&agent, &mut recorder, task).unwrap();
        assert_eq!(ended.reason, ends, "{turn}: {ended:?}");
        assert!(storage.bytes().starts_with(&before));
    }
    let entries = scene::entries(&storage);
    let ids = (1..).map(EntryId).zip(&entries);
    assert!(ids.clone().all(|(id, entry)| entry.id == id));
    let earlier = |pair: &[std::sync::Arc<undertext::transcript::Entry>]| pair[1].at < pair[0].at;
    assert!(
        entries.windows(2).filter(|pair| earlier(pair)).count() as u64 > turns / 3,
        "clocks were set back"
    );
    let rebuilt: Vec<_> = Replay::new(entries).collect();
    assert!(
        rebuilt.len() as u64 == 2 * turns
            && rebuilt.iter().all(undertext::replay::Rebuilt::is_equal)
    );
}
