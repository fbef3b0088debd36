//! Cases 57 and 66: requests of too many bytes, and more pieces than a disk keeps up with.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;
use undertext::agent::{Agent, Task};
use undertext::id::Digest;
use undertext::model::{Client, Endpoint, Timeouts};
use undertext::record::{Clock, MemoryStorage, Recorder, Storage};
use undertext::setup::Policy;
use undertext::transcript::Event;

use super::reply::{DONE, STOP, TEXT};
use super::server::{Answer, CUTS, Server};
use super::{Manner, check_in, toolbox};
use crate::scene;

/// Nothing is compacted for it: the words are those of a proxy, which counts bytes.
#[test]
fn case_57_a_request_of_too_many_bytes_is_told_with_its_size() {
    let manner = Manner {
        task: "Read this. ".repeat(4_000).leak(),
        ..Manner::default()
    };
    let page = "<html><head><title>413 Request Entity Too Large</title></head></html>";
    let object = r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#;
    for (name, answer, says) in [
        (
            "a page",
            Answer::new(413, "content-type: text/html\r\n", page),
            "413 Request Entity Too Large",
        ),
        (
            "an object",
            Answer::json(413, object),
            "Request exceeds the maximum size",
        ),
        (
            "nothing",
            Answer::json(413, ""),
            "status 413 without a message",
        ),
    ] {
        let told = format!("{says} (the request has 45001 bytes)");
        check_in(
            57,
            name,
            &manner,
            &vec![answer; 3],
            &format!(
                "failed, permanent: {told}
                 end, provider: the provider failed for good: {told}; resume to go on
                 requests 1"
            ),
        );
    }
}

/// A storage that counts how often it is made to work.
#[derive(Debug)]
struct Counted {
    storage: MemoryStorage,
    count: Arc<AtomicUsize>,
}

impl Storage for Counted {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.storage.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.storage.sync()
    }

    fn read(&self) -> io::Result<Box<dyn BufRead + Send + '_>> {
        self.storage.read()
    }

    fn length(&self) -> io::Result<u64> {
        self.storage.length()
    }

    fn write_blob(&mut self, digest: Digest, bytes: &[u8]) -> io::Result<()> {
        self.storage.write_blob(digest, bytes)
    }

    fn read_blob(&self, digest: Digest) -> io::Result<Option<Vec<u8>>> {
        self.storage.read_blob(digest)
    }

    fn location(&self) -> String {
        self.storage.location()
    }
}

/// No piece waits for the disk, however slow that is: it has as much to do for one as for many.
#[test]
fn case_66_the_disk_has_as_much_to_do_for_one_piece_as_for_ten_thousand() {
    let mut counts = Vec::new();
    for cut in CUTS {
        for pieces in [1, 10_000] {
            let mut data = vec![TEXT; pieces];
            data.extend([STOP, DONE]);
            let (storage, count) = (MemoryStorage::default(), Arc::default());
            let counted = Counted {
                storage: storage.clone(),
                count: Arc::clone(&count),
            };
            let clock = Clock::fixed(scene::BEGIN);
            let run = scene::run(&clock);
            let mut recorder = Recorder::create(Box::new(counted), clock, run).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let server = Server::start(&[Answer::events(&data)], cut).await;
                let endpoint = Endpoint {
                    base_url: server.url.clone(),
                    api_key: None,
                    headers: Vec::new(),
                };
                let client = Client::new(endpoint, Timeouts::default()).unwrap();
                let setup = scene::setup(100_000, Policy::default());
                let agent = Agent::new(setup, Arc::new(client), toolbox(&Arc::default()));
                let never = CancellationToken::new();
                let task = Some(Task::new("Go."));
                agent.run(&mut recorder, task, &never).await.unwrap();
            });
            let text = scene::entries(&storage)
                .iter()
                .find_map(|entry| match &entry.event {
                    Event::Response(response) => Some(response.text.clone()),
                    _ => None,
                });
            assert_eq!(text, Some("Hé 漢😀".repeat(pieces)));
            counts.push(count.load(Ordering::SeqCst));
        }
    }
    let first = counts[0];
    assert!(
        first > 0 && counts.iter().all(|count| *count == first),
        "{counts:?}"
    );
}
