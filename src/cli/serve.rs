//! `page --serve`: the page of a run on a port, which grows as the run does.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;
use undertext::page::serve::{ServeError, Server};
use undertext::record::Follow;

use crate::cli::exit::{Exit, Failure};
use crate::cli::term::{Look, Term};
use crate::cli::{process, stop};

/// What is said when the person does not wait.
const AT_ONCE: &str = "ended at once";

/// Where a page is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listen(pub(crate) SocketAddr);

/// The text is no address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("neither an address such as 127.0.0.1:8080 nor a port; name the run before --serve")]
pub(crate) struct ListenError;

impl FromStr for Listen {
    type Err = ListenError;

    /// A number and a port, or one of them; without a number this machine alone, without a port one
    /// that is free.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        if let Ok(port) = text.parse() {
            return Ok(Self(SocketAddr::new(here, port)));
        }
        let local = text.strip_prefix("localhost");
        if let Some(rest) = local {
            let port = match rest.strip_prefix(':') {
                Some(port) => port.parse().map_err(|_| ListenError)?,
                None if rest.is_empty() => 0,
                None => return Err(ListenError),
            };
            return Ok(Self(SocketAddr::new(here, port)));
        }
        if let Ok(address) = text.parse() {
            return Ok(Self(SocketAddr::new(address, 0)));
        }
        text.parse().map(Self).map_err(|_| ListenError)
    }
}

/// What is told of a page that is served.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Served {
    /// Its address on this machine; whoever knows it, and reaches it, can read the run.
    url: String,
    /// Its address on other machines, if it is another one and known.
    #[serde(skip_serializing_if = "Option::is_none")]
    elsewhere: Option<String>,
    /// The transcript that it follows.
    transcript: String,
}

/// Serves the page of a transcript until the person ends it.
pub(crate) fn serve(
    listen: Listen,
    path: &Path,
    json: bool,
    term: &mut Term,
) -> Result<Exit, Failure> {
    let runtime = process::runtime()?;
    let exit = runtime.block_on(async {
        let mut signals = stop::watch(AT_ONCE, term.masks())?;
        let follow = Follow::open(path).map_err(failed_to_follow)?;
        let mut server = Server::serve(listen.0, follow, term.masks().clone())
            .await
            .map_err(failed)?;
        tell(listen, &server, path, json, term)?;
        tokio::select! {
            Some(exit) = signals.recv() => Ok(exit),
            () = server.ended() => {
                let text = "the page is served no longer: this machine does not let it listen; \
                            begin it anew";
                Err(Failure::new(Exit::Unfinished, anyhow::Error::msg(text)))
            }
        }
    });
    // Who still waits for more of the run is not waited for.
    runtime.shutdown_background();
    exit
}

fn tell(
    listen: Listen,
    server: &Server,
    path: &Path,
    json: bool,
    term: &mut Term,
) -> Result<(), Failure> {
    if !listen.0.ip().is_loopback() {
        let text = "other machines can reach this page: anyone on the network who learns its address can \
                    read the run, and on the way it is not encrypted";
        term.say(&[(Look::Bad, "warning: "), (Look::Plain, text)])?;
    }
    if json {
        let told = Served {
            url: server.url.clone(),
            elsewhere: server.elsewhere.clone(),
            transcript: path.display().to_string(),
        };
        term.print_json(&serde_json::to_string(&told).map_err(io::Error::from)?)?;
        return Ok(());
    }
    term.print(&[(Look::Strong, &server.url)])?;
    if let Some(elsewhere) = &server.elsewhere {
        term.say(&[
            (Look::Plain, "on other machines: "),
            (Look::Strong, elsewhere),
        ])?;
    }
    let text = "open it in a browser: it grows as the run does; Ctrl-C ends it";
    term.say(&[(Look::Faint, text)])?;
    Ok(())
}

fn failed_to_follow(error: undertext::record::FollowError) -> Failure {
    Failure::new(Exit::Transcript, error)
}

fn failed(error: ServeError) -> Failure {
    let exit = match &error {
        ServeError::Listen { .. } => Exit::Usage,
        ServeError::Random => Exit::Unfinished,
        ServeError::Follow(_) => Exit::Transcript,
    };
    Failure::new(exit, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_given_in_part() {
        for (text, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("8080", "127.0.0.1:8080"),
            ("localhost", "127.0.0.1:0"),
            ("localhost:80", "127.0.0.1:80"),
            ("0.0.0.0", "0.0.0.0:0"),
            ("::1", "[::1]:0"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(text.parse::<Listen>().unwrap().0.to_string(), expected);
        }
        for text in [
            "",
            "last",
            "80808",
            "localhost:",
            "localhost:x",
            "localhosts",
            "a.example:80",
        ] {
            assert_eq!(text.parse::<Listen>(), Err(ListenError), "{text}");
        }
    }
}
