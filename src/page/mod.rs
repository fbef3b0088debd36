//! The page: a run as one file for a browser, in which its layers can be lifted.
//!
//! [`Data`] gathers what a page knows of a run, entry by entry; [`html`] makes a page of it that holds
//! everything it needs. A page that follows a live run is given what is new.
//!
//! Everything that a transcript says is data: it stands in one block of JSON in which nothing can end
//! the block, the script shows it as text alone, and the page's policy lets it load, send and open
//! nothing. How a run reads under other layers is computed by the script, by the algebra of
//! [`overlay`](crate::overlay); the exact messages of each request stand beside it, and the script
//! holds the one against the other.

mod base64;
mod data;
mod entries;
mod growing;
mod lists;
mod texts;
pub mod serve;

use sha2::{Digest as _, Sha256};

pub use data::Data;

const STYLE: &str = include_str!("page.css");

/// The script: one function, whose parts stand one in a file.
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("script/dom.js"),
    include_str!("script/run.js"),
    include_str!("script/layers.js"),
    include_str!("script/rows.js"),
    include_str!("script/chart.js"),
    include_str!("script/timeline.js"),
    include_str!("script/request.js"),
    include_str!("script/drawer.js"),
    include_str!("script/search.js"),
    include_str!("script/main.js"),
    "})();\n",
);

/// What a page that follows a run does beside that.
const LIVE: &str = include_str!("live.js");

const PAGE: &str = include_str!("page.html");

/// Whether a page follows its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// A file: it shows what it holds.
    File,
    /// It asks the server that it came from for what is new.
    Live,
}

/// What a page may do: run its own script and style, and ask its own server if it has one.
pub fn policy(life: Life) -> String {
    let (also, connect) = match life {
        Life::File => (String::new(), ""),
        Life::Live => (format!(" '{}'", digest(LIVE)), " connect-src 'self';"),
    };
    format!(
        "default-src 'none'; script-src '{}'{also}; style-src '{}';{connect} base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        digest(SCRIPT),
        digest(STYLE)
    )
}

fn digest(text: &str) -> String {
    format!(
        "sha256-{}",
        base64::encode(&Sha256::digest(text.as_bytes()))
    )
}

/// The page that begins with this data.
pub fn html(data: &str, life: Life) -> String {
    let room = PAGE.len() + STYLE.len() + SCRIPT.len() + LIVE.len() + data.len() + 1024;
    let mut html = String::with_capacity(room);
    for (place, part) in PAGE.split("%%").enumerate() {
        match (place % 2, part, life) {
            (0, text, _) => html.push_str(text),
            (_, "policy", _) => html.push_str(&policy(life)),
            (_, "style", _) => html.push_str(STYLE),
            (_, "script", _) => html.push_str(SCRIPT),
            (_, "data", _) => html.push_str(data),
            (_, "live", Life::Live) => {
                html.push_str("<script>");
                html.push_str(LIVE);
                html.push_str("</script>");
            }
            (_, _, _) => {}
        }
    }
    html
}
