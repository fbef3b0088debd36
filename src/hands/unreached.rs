//! What a program could not reach of the network, and what the user can say to allow it.

use crate::sandbox::Bounds;

/// How programs say that there is no network.
const NETWORK: [&str; 31] = [
    "could not resolve host",
    "couldn't resolve host",
    "failed to lookup address",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "unable to resolve host",
    "network is unreachable",
    "nodename nor servname",
    "no address associated with hostname",
    "getaddrinfo",
    "eai_again",
    "enotfound",
    "enetunreach",
    "no such host",
    "couldn't connect to server",
    "failed to connect to",
    "unable to connect to",
    "failed to establish a new connection",
    "403 not a host of this sandbox",
    "no matching distribution found",
    "could not read from remote repository",
    "dial tcp",
    "dns error",
    "unknownhostexception",
    "unknown host",
    "tunnel failed, response 403",
    "http code 403 from proxy",
    "statuscode=403",
    UNREACHED[0],
    UNREACHED[1],
];

/// The surest of these.
const SURE: [&str; 3] = ["resolve host: ", "resolve hostname ", "eai_again "];

/// How programs say that the proxy of the run does not reach a host that is allowed.
const UNREACHED: [&str; 2] = ["tunnel failed, response 502", "http code 502 from proxy"];

/// What is served by tools themselves.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// What stands before the name of a host that could not be reached, the surest first.
const BEFORE: [&str; 13] = [
    "resolve host: ",
    "resolve hostname ",
    "resolving '",
    "resolve '",
    "eai_again ",
    "enotfound ",
    "unknown host ",
    "unknownhostexception: ",
    "host='",
    "lookup ",
    "connect to host ",
    "connect to ",
    "://",
];

/// Hosts of which one is of no use without the others.
const TOGETHER: [&[&str]; 3] = [
    &["index.crates.io", "static.crates.io"],
    &["pypi.org", "files.pythonhosted.org"],
    &[
        "proxy.golang.org",
        "sum.golang.org",
        "storage.googleapis.com",
    ],
];

/// How a program says that it found no package, which names no host, and where it looked.
const LOOKED: [(&str, &str); 1] = [("no matching distribution found", "pypi.org")];

/// How many lines before one that says that the network failed may say of what it spoke.
const BACK: usize = 4;

/// The line that helps where the network is what failed.
pub(super) fn line(content: &str, bounds: &Bounds) -> Option<String> {
    let lines: Vec<String> = content.lines().map(str::to_lowercase).collect();
    let mut failed = lines.iter().enumerate();
    failed.find(|(_, line)| says(line, &NETWORK) && !says(line, &LOCAL))?;
    if bounds.open {
        return None;
    }
    let host = host(&lines);
    let what = host
        .as_deref()
        .map_or(String::new(), |host| format!("could not reach {host}: "));
    let hosts = &bounds.hosts;
    if bounds.asks {
        let named = hosts.iter().map(|host| format!("{host}, "));
        return Some(format!(
            "[{what}of the network only {}what the user allows when asked can be reached, through \
             HTTPS_PROXY (sandbox)]",
            named.collect::<String>()
        ));
    }
    if lines.iter().any(|line| says(line, &UNREACHED)) {
        return Some(format!(
            "[{what}there is no answer, or the name leads to this machine or a private network (sandbox); \
             for that the user names the address as well: --network=HOST,ADDRESS]"
        ));
    }
    let mut wanted: Vec<&str> = hosts.iter().map(String::as_str).collect();
    match host.as_deref() {
        Some(host) => {
            let together = TOGETHER.iter().find(|hosts| hosts.contains(&host));
            let more = together.map_or(vec![host], |hosts| hosts.to_vec());
            wanted.extend(
                more.into_iter()
                    .filter(|more| !hosts.iter().any(|host| host == more)),
            );
        }
        None => wanted.push("HOST"),
    }
    let wanted = wanted.join(",");
    Some(if hosts.is_empty() {
        format!(
            "[{what}the network is off (sandbox); the user allows it with --network={wanted} or \
             --network=open]"
        )
    } else {
        format!(
            "[{what}of the network only {} can be reached, through HTTPS_PROXY (sandbox); the user allows \
             more with --network={wanted}, and other ports than 80 and 443 as HOST:PORT]",
            hosts.join(", ")
        )
    })
}

/// The same where only words that nothing else explains count, which name the host.
pub(super) fn surely(lines: &[&str], bounds: &Bounds) -> Option<String> {
    let is_sure = |line: &&&str| {
        let line = line.to_lowercase();
        says(&line, &SURE) && named(&line).is_some()
    };
    line(lines.iter().find(is_sure)?, bounds)
}

/// The host that could not be reached, as far as the lines around the failure name one.
fn host(lines: &[String]) -> Option<String> {
    for (at, line) in lines.iter().enumerate() {
        if !says(line, &NETWORK) || says(line, &LOCAL) {
            continue;
        }
        let around = lines.get(at.saturating_sub(BACK)..=at).unwrap_or_default();
        if let Some(host) = around.iter().rev().find_map(|line| named(line)) {
            return Some(host);
        }
    }
    let mut looked = LOOKED.iter();
    let found = looked.find(|(words, _)| lines.iter().any(|line| line.contains(words)));
    found.map(|(_, host)| (*host).to_owned())
}

/// The host that a line names.
fn named(line: &str) -> Option<String> {
    BEFORE.iter().find_map(|before| {
        let (_, rest) = line.split_once(before)?;
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let name = rest.get(..end)?.trim_end_matches('.');
        let is_host = name.contains('.') && name.starts_with(|c: char| c.is_ascii_alphanumeric());
        is_host.then(|| name.to_owned())
    })
}

/// Whether the text holds one of these. What is a word, as the code of an error is, is no part of another:
/// a `FileNotFoundError` is no `ENOTFOUND`.
pub(super) fn says(text: &str, words: &[&str]) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    words.iter().any(|word| {
        let is_word = word.chars().all(is_part);
        let mut places = text.match_indices(word);
        places.any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            !is_word || !before.ends_with(is_part) && !after.starts_with(is_part)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What programs print without a network, as they print it.
    #[test]
    fn what_could_not_be_reached_is_named_with_what_allows_it() {
        let off = Bounds::default();
        let told = |content: &str| line(content, &off).unwrap_or_default();
        for (content, wanted) in [
            (
                "    Updating crates.io index\nwarning: spurious network error (1 try remaining): [6] \
                 Couldn't resolve host name (Could not resolve host: index.crates.io)",
                "index.crates.io: --network=index.crates.io,static.crates.io",
            ),
            (
                "npm error code EAI_AGAIN\nnpm error syscall getaddrinfo\nnpm error errno EAI_AGAIN\n\
                 npm error request to https://registry.npmjs.org/left-pad failed, reason: getaddrinfo \
                 EAI_AGAIN registry.npmjs.org",
                "registry.npmjs.org: --network=registry.npmjs.org",
            ),
            (
                "ERROR: Could not find a version that satisfies the requirement x (from versions: none)\n\
                 ERROR: No matching distribution found for x",
                "pypi.org: --network=pypi.org,files.pythonhosted.org",
            ),
            (
                "go: module example.com/x: Get \"https://proxy.golang.org/example.com/x/@v/list\": dial \
                 tcp: lookup proxy.golang.org on 10.0.0.2:53: dial udp 10.0.0.2:53: connect: network is \
                 unreachable",
                "proxy.golang.org: --network=proxy.golang.org,sum.golang.org,storage.googleapis.com",
            ),
            (
                "fatal: unable to access 'https://github.com/x/y/': Could not resolve host: github.com",
                "github.com: --network=github.com",
            ),
            (
                "ssh: Could not resolve hostname github.com: Temporary failure in name resolution",
                "github.com: --network=github.com",
            ),
            (
                "curl: (6) Could not resolve host: example.com",
                "example.com: --network=example.com",
            ),
            (
                "curl: (7) Failed to connect to 10.1.2.3 port 80 after 0 ms: Couldn't connect to server",
                "10.1.2.3: --network=10.1.2.3",
            ),
            (
                "W: Failed to fetch http://deb.debian.org/debian/x  Temporary failure resolving \
                 'deb.debian.org'",
                "deb.debian.org: --network=deb.debian.org",
            ),
            (
                "fatal: Could not read from remote repository.",
                "--network=HOST",
            ),
        ] {
            let (host, allows) = wanted.rsplit_once(": ").unwrap_or(("", wanted));
            let what = if host.is_empty() {
                String::new()
            } else {
                format!("could not reach {host}: ")
            };
            assert_eq!(
                told(content),
                format!(
                    "[{what}the network is off (sandbox); the user allows it with {allows} or \
                     --network=open]"
                ),
                "{content}"
            );
        }
        let some = Bounds {
            hosts: vec!["crates.io".to_owned()],
            ..Bounds::default()
        };
        let refused = "error: failed to download from `https://index.crates.io/config.json`\n\n\
                       Caused by:\n  [56] CONNECT tunnel failed, response 403";
        insta::assert_snapshot!(line(refused, &some).unwrap(), @"[could not reach index.crates.io: of the network only crates.io can be reached, through HTTPS_PROXY (sandbox); the user allows more with --network=crates.io,index.crates.io,static.crates.io, and other ports than 80 and 443 as HOST:PORT]");
        let unanswered =
            "fatal: unable to access 'https://git.corp/x/': CONNECT tunnel failed, response 502";
        insta::assert_snapshot!(line(unanswered, &some).unwrap(), @"[could not reach git.corp: there is no answer, or the name leads to this machine or a private network (sandbox); for that the user names the address as well: --network=HOST,ADDRESS]");
        let asked = Bounds {
            asks: true,
            ..some.clone()
        };
        insta::assert_snapshot!(line(refused, &asked).unwrap(), @"[could not reach index.crates.io: of the network only crates.io, what the user allows when asked can be reached, through HTTPS_PROXY (sandbox)]");
        // Who has the user's network is told nothing of the sandbox.
        let open = Bounds {
            open: true,
            ..Bounds::default()
        };
        assert_eq!(line(refused, &open), None);
        for content in [
            "curl: (7) Failed to connect to localhost port 9",
            "1 test failed",
        ] {
            assert_eq!(told(content), "", "{content}");
        }
    }
}
