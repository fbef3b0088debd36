//! `page --serve`, from its first line to Ctrl-C.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;

use rustix::process::Signal;
use serde_json::Value;

use crate::cli::{Place, ended, signal};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/transcripts/demo.jsonl");

/// The first line that it printed.
pub(super) fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// What is answered at an address.
pub(super) fn get(url: &str) -> String {
    let (host, path) = url["http://".len()..].split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_page_is_served_until_ctrl_c() {
    let place = Place::new();
    for (how, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut child = place.command(&["page", GOLDEN, "--serve"]).spawn().unwrap();
        let url = first_line(&mut child);
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        let page = get(&url);
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page:.200}");
        assert!(page.contains("Find the bug and mend it"));
        signal(&child, how);
        let ran = ended(child);
        assert_eq!(ran.code, code, "{ran:?}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(ran.err, @"open it in a browser: it grows as the run does; Ctrl-C ends it");
        }
    }
    // Nothing was written.
    let left = std::fs::read_dir(place.path("home/w")).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["a.txt"]);
}

#[test]
fn other_machines_are_served_only_if_a_person_says_so() {
    let place = Place::new();
    let line = ["page", GOLDEN, "--json", "--serve", "0.0.0.0"];
    let mut child = place.command(&line).spawn().unwrap();
    let line = first_line(&mut child);
    let served: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(served["transcript"], GOLDEN);
    let url = served["url"].as_str().unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    assert!(get(url).starts_with("HTTP/1.1 200 OK\r\n"), "{url}");
    // The same port and secret, if this machine has an address for others.
    let rest = url.strip_prefix("http://127.0.0.1").unwrap();
    if let Some(elsewhere) = served.get("elsewhere") {
        let elsewhere = elsewhere.as_str().unwrap();
        assert!(elsewhere.ends_with(rest) && elsewhere != url, "{elsewhere}");
        assert!(!elsewhere.contains("0.0.0.0"), "{elsewhere}");
    }
    signal(&child, Signal::INT);
    let ran = ended(child);
    insta::assert_snapshot!(ran.err, @"warning: other machines can reach this page: anyone on the network who learns its address can read the run, and on the way it is not encrypted");
}

#[test]
fn what_cannot_be_served_is_told() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let mut said = String::new();
    for (line, code) in [
        (&["page", "--serve", "last"][..], 2),
        (&["page", GOLDEN, "--serve", &taken], 2),
        (&["page", "nothing.jsonl", "--serve"], 2),
        (&["page", GOLDEN, "--serve", "--out", "a.html"], 2),
    ] {
        let ran = place.run(line);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{ran:?}");
        said += &place.plain(&ran.err);
    }
    insta::assert_snapshot!(said, @"
    undertext: invalid value 'last' for '--serve [<ADDR>]': neither an address such as HOST nor a port; name the run before --serve; see --help
    undertext: cannot listen at HOST: Address already in use (os error 98); name another address; --serve alone takes a free port
    undertext: cannot read nothing.jsonl: No such file or directory (os error 2); check the path
    undertext: the argument '--serve [<ADDR>]' cannot be used with '--out <FILE>'; see --help
    ");
}
