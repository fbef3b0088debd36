//! Connections that cannot be had, fall silent or flood, and runs that are stopped at any moment.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, Progress, Task, UNREAD};
use undertext::model::{Client, Endpoint, Fault, Reply, Scripted};
use undertext::record::{Clock, MemoryStorage, Recorder};
use undertext::setup::Policy;
use undertext::transcript::{Event, FaultClass};

use super::server::{Answer, CUTS, Last, Part};
use super::{Manner, check, play_until, resume, toolbox};
use crate::scene;

const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"Hé 漢😀"}}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

/// What is told of a run whose last attempt was answered.
const WHOLE: &str = "
    Complete stop: Hé 漢😀
    end, finished: Hé 漢😀";

fn whole() -> Answer {
    Answer::events(&[TEXT, STOP])
}

/// An agent whose server has this address.
fn agent(base_url: &str) -> Agent {
    let endpoint = Endpoint {
        base_url: base_url.to_owned(),
        api_key: None,
        headers: Vec::new(),
    };
    let manner = Manner::default();
    let client = Client::new(endpoint, manner.timeouts).unwrap();
    Agent::new(manner.setup, Arc::new(client), toolbox(&Arc::default()))
}

/// The faults of a run, all of one kind, and how many there were.
fn faults(storage: &MemoryStorage) -> (String, usize) {
    let entries = scene::entries(storage);
    let faults = entries.iter().filter_map(|entry| match &entry.event {
        Event::Fault(fault) => Some(format!("{}: {}", fault.class.word(), fault.message)),
        _ => None,
    });
    let mut faults: Vec<String> = faults.collect();
    let count = faults.len();
    faults.dedup();
    (faults.join("\n"), count)
}

/// A port at which connecting hangs: the queue of who connects is full. The rest keeps it so.
async fn full() -> (SocketAddr, TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let at = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    let patience = Duration::from_millis(300);
    while let Ok(stream) = tokio::time::timeout(patience, TcpStream::connect(at)).await {
        waiting.push(stream.unwrap());
        assert!(waiting.len() < 64, "connecting does not hang");
    }
    (at, listener, waiting)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn case_62_what_ends_before_an_answer_is_asked_again() {
    let begun = |bytes: &str, last| Answer::raw(bytes.as_bytes()).ends(last);
    check(
        62,
        "closed and reset before and within the head",
        &[
            begun("", Last::Close),
            begun("HTTP/1.1 200 OK\r\ncontent-", Last::Close),
            begun("HTTP/1.1 200 OK\r\ncontent-", Last::Reset),
            whole(),
        ],
        &[
            "retried, transport: the connection was lost before an answer: connection closed before message completed
            retried, transport: the connection was lost before an answer: connection closed before message completed
            retried, transport: the connection was lost before an answer: connection error: Connection reset by peer (os error 104)",
            WHOLE,
            "requests 4",
        ]
        .join("\n"),
    );
}

#[test]
fn case_62_no_connection_is_tried_six_times() {
    let told = |url: &str| {
        let storage = MemoryStorage::default();
        scene::go(
            &agent(url),
            &mut scene::create(&storage),
            Some(Task::new("Go.")),
        )
        .unwrap();
        faults(&storage)
    };
    // Nobody listens.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = format!("http://{}/v1", free.local_addr().unwrap());
    drop(free);
    let (text, count) = told(&refused);
    assert_eq!(count, 6);
    assert!(
        text.starts_with("transport: cannot connect: tcp connect error: Connection refused"),
        "{text}"
    );
    // No label of a name is that long, so nobody need be asked for it.
    let (text, count) = told(&format!("http://{}.test/v1", "a".repeat(64)));
    assert_eq!(count, 6);
    assert!(
        text.starts_with("transport: cannot connect: dns error"),
        "{text}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn case_62_a_connection_that_hangs_is_given_up_after_its_limit() {
    let (storage, never) = (MemoryStorage::default(), CancellationToken::new());
    let mut recorder = scene::create(&storage);
    let took = runtime().block_on(async {
        let (at, _listener, _waiting) = full().await;
        let agent = agent(&format!("http://{at}/v1"));
        tokio::time::pause();
        let begun = Instant::now();
        let task = Some(Task::new("Go."));
        agent.run(&mut recorder, task, &never).await.unwrap();
        begun.elapsed()
    });
    let timed_out = "transport: cannot connect: nothing came in time".to_owned();
    assert_eq!(faults(&storage), (timed_out, 6));
    assert!((180..=186).contains(&took.as_secs()), "{took:?}");
}

#[test]
fn case_63_silence_before_and_within_a_reply_is_a_stall_and_asked_again() {
    let mut comments = Answer::events(&[TEXT]);
    for _ in 0..7 {
        let minutes = Part::Silence(Duration::from_secs(100));
        comments = comments
            .then(minutes)
            .then(Part::Bytes(b": keep-alive\n\n".to_vec()));
    }
    check(
        63,
        "no first byte, none after some text, comments alone",
        &[
            Answer::raw("").ends(Last::Stay),
            Answer::events(&[TEXT]).ends(Last::Stay),
            comments.ends(Last::Stay),
            whole(),
        ],
        &[
            "retried, stall: no answer began for 300 s
            retried, stall: nothing came for 300 s
            retried, stall: neither text nor reasoning nor a call came for 600 s",
            WHOLE,
            "requests 4",
        ]
        .join("\n"),
    );
}

/// Forty minutes, and no limit on the whole.
#[test]
fn case_65_a_slow_but_healthy_stream_completes() {
    let mut slow = Answer::events(&[TEXT]);
    for _ in 0..24 {
        slow = slow
            .then(Part::Silence(Duration::from_secs(100)))
            .then(Part::Bytes(format!("data: {TEXT}\n\n").into_bytes()));
    }
    let slow = slow.then(Part::Bytes(format!("data: {STOP}\n\n").into_bytes()));
    let text = "Hé 漢😀".repeat(25);
    let expected = format!("Complete stop: {text}\nend, finished: {text}\nrequests 1");
    check(65, "forty minutes", &[slow], &expected);
}

/// A listener that reads nothing does not hold what it will never read, and the run has all of it.
#[test]
fn case_66_a_flood_of_pieces_does_not_pile_up_before_a_listener() {
    let mut data = vec![TEXT; 10_000];
    data.push(STOP);
    let answers = [Answer::events(&data)];
    for cut in CUTS {
        let storage = MemoryStorage::default();
        let mut recorder = scene::create(&storage);
        let (pieces, entries) = runtime().block_on(async {
            let server = super::Server::start(&answers, cut).await;
            let agent = agent(&server.url);
            let mut events = agent.events();
            let never = CancellationToken::new();
            let task = Some(Task::new("Go."));
            agent.run(&mut recorder, task, &never).await.unwrap();
            let (mut pieces, mut entries) = (0, Vec::new());
            while let Some(Some(progress)) = events.next().now_or_never() {
                match progress {
                    Progress::Delta { .. } => pieces += 1,
                    Progress::Entry(entry) => entries.push(entry.id),
                    Progress::Compaction(_) => {}
                }
            }
            (pieces, entries)
        });
        let kept = scene::entries(&storage);
        // The first entry is older than the listener.
        let ids: Vec<_> = kept[1..].iter().map(|entry| entry.id).collect();
        assert_eq!(entries, ids);
        assert!((1000..=UNREAD).contains(&pieces), "{pieces}");
        let text = kept.iter().find_map(|entry| match &entry.event {
            Event::Response(response) => Some(response.text.clone()),
            _ => None,
        });
        assert_eq!(text, Some("Hé 漢😀".repeat(10_000)));
    }
}

/// The moments of an answer at which a run may be stopped, each as what was sent by then.
fn moments() -> Vec<(&'static str, Vec<u8>)> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
    let thoughts = r#"{"choices":[{"delta":{"reasoning_content":"Hm."}}]}"#;
    let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"Change","arguments":"{\"path\":\"a\"}"}}]}}]}"#;
    let sent = |data: &[&str]| format!("{head}\r\n{}", super::server::events(data)).into_bytes();
    vec![
        ("before the head", Vec::new()),
        ("within the head", head.as_bytes().to_vec()),
        ("before the first event", sent(&[])),
        ("within the reasoning", sent(&[thoughts])),
        ("within the text", sent(&[TEXT, TEXT])),
        ("after a call, whose end is not told", sent(&[call])),
        ("after the finish reason", sent(&[call, STOP])),
        (
            "within an error",
            b"HTTP/1.1 500 S\r\ncontent-length: 99\r\n\r\n{\"error\":".to_vec(),
        ),
    ]
}

/// Case 67: nothing of the reply is kept, nothing of it ran, and the same request is sent again.
/// From the order to stop on the time stands still, and moves on only if something is waited for.
#[test]
fn case_67_a_run_is_stopped_at_any_moment_of_an_answer() {
    for cut in CUTS {
        for (moment, bytes) in moments() {
            let (came, never) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
            let late = Arc::new(AtomicBool::new(false));
            let answer = Answer::raw(bytes)
                .then(Part::Tell(Arc::clone(&came)))
                .then(Part::Wait(never));
            let passed = Arc::clone(&late);
            let played = play_until(&[answer], cut, &Manner::default(), |cancel| {
                tokio::spawn(async move {
                    came.notified().await;
                    tokio::time::pause();
                    cancel.cancel();
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    passed.store(true, Ordering::SeqCst);
                });
            });
            let what = format!("{moment}, {cut:?}");
            assert!(!late.load(Ordering::SeqCst), "it took too long: {what}");
            assert_eq!(
                played.told(),
                "end, interrupted: interrupted; resume to go on\nrequests 1\n",
                "{what}"
            );
            let again = resume(&played.storage, &[whole()], cut);
            assert_eq!(again.received.len(), 1, "{what}");
            assert_eq!(again.received[0].body, played.received[0].body, "{what}");
            assert!(again.told().contains("end, finished: Hé 漢😀"), "{what}");
        }
    }
}

/// Case 67: the time stands where it was when the run was stopped, so nothing was waited for.
#[cfg(target_os = "linux")]
#[test]
fn case_67_a_run_is_stopped_while_it_connects() {
    let storage = MemoryStorage::default();
    let mut recorder = scene::create(&storage);
    let took = runtime().block_on(async {
        let (at, _listener, _waiting) = full().await;
        let agent = agent(&format!("http://{at}/v1"));
        tokio::time::pause();
        stopped_after(Duration::from_secs(10), &agent, &mut recorder).await
    });
    assert!(took < Duration::from_millis(200), "{took:?}");
    assert_eq!(faults(&storage), (String::new(), 0));
}

/// Case 67, and taken up again: what is left of the wait is waited.
#[test]
fn case_67_a_run_is_stopped_while_it_waits() {
    let storage = MemoryStorage::default();
    let limited = Fault {
        wait_ms: Some(300_000),
        ..Fault::new(FaultClass::Rate, "slow down")
    };
    let model = Scripted::new([limited.into(), Reply::text("Done.").into()]);
    let agent = scene::agent(100_000, Policy::default(), model.clone());
    let clock = Clock::System;
    let run = scene::run(&clock);
    let mut recorder = Recorder::create(Box::new(storage.clone()), clock, run).unwrap();
    let took = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(stopped_after(
            Duration::from_secs(10),
            &agent,
            &mut recorder,
        ));
    assert!(took < Duration::from_millis(200), "{took:?}");
    drop(recorder);
    assert_eq!(model.asked().len(), 1);
    scene::go(&agent, &mut scene::open(&storage), None).unwrap();
    let asked = model.asked();
    assert_eq!((asked.len(), &asked[0].body), (2, &asked[1].body));
}

/// Stops a run after this long; how long it takes to end from then on, in the time of timers.
async fn stopped_after(wait: Duration, agent: &Agent, recorder: &mut Recorder) -> Duration {
    let cancel = CancellationToken::new();
    let run = agent.run(recorder, Some(Task::new("Go.")), &cancel);
    let stop = async {
        tokio::time::sleep(wait).await;
        cancel.cancel();
        Instant::now()
    };
    let (finished, stopped) = futures::join!(run, stop);
    assert_eq!(finished.unwrap().text, "interrupted; resume to go on");
    stopped.elapsed()
}
