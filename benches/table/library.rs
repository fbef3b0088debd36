//! Rounds of the library, against a server and on the disk.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use undertext::agent::{Agent, Task};
use undertext::model::{ApiKey, Client, Endpoint, Timeouts};
use undertext::record::{Clock, Durability, FileStorage, MemoryStorage, Recorder};
use undertext::setup::Policy;
use undertext::transcript::Reason;

use crate::server::{Asked, Script, Server};
use crate::{Row, TRIES, limits, middle, middle_by, ms, scene, timed};

/// The task's length: with it, a view of more than 100,000 tokens.
const TASK: usize = 420_000;

/// The length of a result.
const RESULT: usize = 4000;

/// Rounds of the long run.
const LONG: u32 = 10_100;

/// A round's own time: from a response's last byte to the next request's first one.
pub(crate) fn round() -> Vec<Row> {
    let directory = tempfile::tempdir().unwrap();
    let (asked, lines) = asked(directory.path(), Durability::Data);
    let synced = middle(own_times(&asked));
    let body = asked.last().map_or(0, |asked| asked.bytes);
    let appends = limits::synced_append(directory.path(), lines / 2) * 2;
    let (digest, copy) = (limits::digest(lines), limits::copy(body));
    let limit = appends + digest + copy;
    let times = synced.as_secs_f64() / limit.as_secs_f64();
    let (asked, _) = self::asked(directory.path(), Durability::None);
    let unsynced = middle(own_times(&asked));
    vec![
        Row::new(
            "a round's own time at 100,000 tokens",
            "1.5 × the limit",
            format!(
                "two synced appends {}, SHA-256 {}, copy {}",
                ms(appends),
                ms(digest),
                ms(copy)
            ),
            format!("{} ({times:.2} ×)", ms(synced)),
            times <= 1.5,
        ),
        Row::new(
            "the same with `sync: none`",
            "1 ms",
            format!("SHA-256 {}, copy {}", ms(digest), ms(copy)),
            ms(unsynced),
            unsynced <= Duration::from_millis(1),
        ),
    ]
}

/// What a server was asked in a run with a long task and a read-only call a round, and how many bytes
/// were recorded in a round.
fn asked(directory: &std::path::Path, durability: Durability) -> (Vec<Asked>, usize) {
    const ROUNDS: usize = 100;
    let server = Server::new(Script {
        rounds: ROUNDS,
        tool: "Show",
        arguments: |round| json!({ "path": format!("src/{round}.rs"), "chars": RESULT }),
        before_last: Arc::new(|| {}),
    });
    let endpoint = Endpoint {
        base_url: server.url.clone(),
        api_key: Some(ApiKey::new("x")),
        headers: Vec::new(),
    };
    let client = Client::new(endpoint, Timeouts::default()).unwrap();
    let mut policy = Policy::default();
    policy.compaction.enabled = false;
    let agent = Agent::new(
        scene::setup(1_000_000, policy),
        Arc::new(client),
        scene::toolbox(),
    );
    let clock = Clock::System;
    let run = scene::run(&clock);
    let storage = FileStorage::create(directory, run.run, durability).unwrap();
    let path = storage.path().to_owned();
    let mut recorder = Recorder::create(Box::new(storage), clock, run).unwrap();
    let task = Task::new("What is to be read. ".repeat(TASK / 20));
    let finished = scene::go(&agent, &mut recorder, Some(task)).unwrap();
    assert_eq!(finished.reason, Reason::Finished);
    let length = usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap();
    (server.take(), length.saturating_sub(TASK) / ROUNDS)
}

fn own_times(asked: &[Asked]) -> impl Iterator<Item = Duration> {
    let pairs = asked.windows(2);
    pairs.map(|pair| pair[1].first - pair[0].answered)
}

/// Late rounds of a run that is compacted again and again, against early ones.
pub(crate) fn long() -> Vec<Row> {
    let tries = TRIES.map(|()| {
        let (asked, recorder) = timed::run(LONG, 64_000, true, MemoryStorage::default());
        // On average: in some of these rounds there is compaction.
        let times =
            |from: usize, to: usize| (asked[to] - asked[from]) / u32::try_from(to - from).unwrap();
        (times(100, 600), times(9_600, 10_100), recorder)
    });
    let ratio = |early: Duration, late: Duration| late.as_secs_f64() / early.as_secs_f64();
    let (early, late, recorder) =
        middle_by(tries, |a, b| ratio(a.0, a.1).total_cmp(&ratio(b.0, b.1)));
    let ratio = ratio(early, late);
    let (_, short) = timed::run(LONG / 10, 64_000, true, MemoryStorage::default());
    let work = |recorder: &Recorder, rounds: u32| {
        let (work, rounds) = (recorder.view().work(), u64::from(rounds));
        [work.visited, work.rendered, work.hashed, work.measured].map(|count| count / rounds)
    };
    let (short, long) = (work(&short, LONG / 10), work(&recorder, LONG));
    let told = |[visited, rendered, hashed, measured]: [u64; 4]| {
        format!(
            "{visited} looked at, {rendered} bytes rendered, {hashed} hashed, {measured} measured"
        )
    };
    // Summaries stand in the view until there are so many that they are combined, and until then each
    // leaves less room than the one before. So a short run asks for fewer of them a round: what is
    // measured for them is held against what is new, a result as it stands in a body.
    let new = timed::CHARS as u64 * 5 / 4;
    let is_bound = |place: usize| long[place] * 5 <= short[place] * 6;
    let bound = (0..3).all(is_bound) && long[3] <= new;
    vec![
        Row::new(
            "round 10,000 with compaction, against round 100",
            "1.2 ×",
            format!("rounds 100 to 600: {}", ms(early)),
            format!("{} ({ratio:.2} ×)", ms(late)),
            ratio <= 1.2,
        ),
        Row::new(
            "work in one of these rounds, on average",
            "1.2 × that of a run a tenth as long; measured for summaries: no more than is new",
            format!(
                "new are {} characters and what stands around them; the short run: {}",
                timed::CHARS,
                told(short)
            ),
            told(long),
            bound,
        ),
    ]
}
