//! `print`: a run from its beginning, as it is or as the model reads it.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use undertext::address::Address;
use undertext::exchange::Clipped;
use undertext::export::markdown::fence;
use undertext::id::Span;
use undertext::record::{Blobs, Clock};
use undertext::tools::clip;
use undertext::transcript::{At, Entry, Event, Purpose, jsonl};
use undertext::view::View;

use crate::cli::exit::{Exit, Failure};
use crate::cli::find::{self, Found};
use crate::cli::place::Place;
use crate::cli::sent::{self, Sent};
use crate::cli::term::{Look, Term};
use crate::cli::{Format, PrintArgs, Process, Shown, entry};

/// Prints a run.
pub(crate) fn print(args: &PrintArgs, process: &Process, term: &mut Term) -> Result<Exit, Failure> {
    let found = find::read(&args.run, &args.settings, process, term)?;
    let shown = if args.compacted {
        Shown::Compacted
    } else {
        args.view
    };
    let format = if args.json { Format::Json } else { args.format };
    write(&found, args.at.as_ref(), shown, format, term)?;
    Ok(Exit::Done)
}

/// Writes what there is of a run, or what is at a place.
pub(crate) fn write(
    found: &Found,
    at: Option<&Place>,
    shown: Shown,
    format: Format,
    term: &mut Term,
) -> Result<(), Failure> {
    let now = Clock::System.now();
    let mut page = Page {
        term,
        format,
        wrapped: shown == Shown::Both,
    };
    if shown != Shown::Compacted {
        page.title("Entries as they are")?;
        raw(found, at, now, &mut page)?;
    }
    if shown != Shown::Raw {
        page.title("Messages as the model reads them")?;
        compacted(&found.loaded.view, at, now, &mut page)?;
    }
    Ok(())
}

/// Where it is printed, and how.
struct Page<'a> {
    term: &'a mut Term,
    format: Format,
    /// Entries and messages follow each other, and are told apart.
    wrapped: bool,
}

impl Page<'_> {
    fn title(&mut self, text: &str) -> io::Result<()> {
        match self.format {
            Format::Text if self.wrapped => self.term.print(&[(Look::Strong, text)]),
            Format::Markdown if self.wrapped => {
                self.term.print(&[(Look::Strong, format!("## {text}\n"))])
            }
            Format::Text | Format::Markdown | Format::Json => Ok(()),
        }
    }

    /// A heading with a block below it.
    fn block(&mut self, head: &str, body: &[String]) -> io::Result<()> {
        let text = body.join("\n");
        let text = text.trim_end_matches('\n');
        let head = head.replace('\n', "\\n");
        self.term
            .print(&[(Look::Strong, format!("### {head}\n"))])?;
        if text.is_empty() {
            return Ok(());
        }
        let fence = fence(text);
        self.term
            .print(&[(Look::Plain, format!("{fence}\n{text}\n{fence}\n"))])
    }

    fn json(&mut self, view: &str, name: &str, json: &str) -> io::Result<()> {
        if self.wrapped {
            let wrapped = format!("{{\"view\":\"{view}\",\"{name}\":{json}}}");
            return self.term.print_json(&wrapped);
        }
        self.term.print_json(json)
    }

    fn message(&mut self, sent: &Sent) -> io::Result<()> {
        match self.format {
            Format::Json => self.json("compacted", "message", &sent.json),
            Format::Markdown => self.block(&sent.head, &sent.body),
            Format::Text => {
                self.term.print(&[(Look::Strong, &sent.head)])?;
                // Whole, before it is cut into lines.
                let masks = self.term.masks().clone();
                for text in &sent.body {
                    for line in masks.text(text).lines() {
                        self.term.print(&[(Look::Plain, format!("      {line}"))])?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// Prints entries as they are.
fn raw(found: &Found, at: Option<&Place>, now: At, page: &mut Page<'_>) -> Result<(), Failure> {
    let view = &found.loaded.view;
    let span = at.map(|at| at.span(view, now)).transpose()?;
    if page.format == Format::Json {
        return lines(&found.path, span, page);
    }
    let entries = match span {
        Some(span) => view.transcript().span(span),
        None => view.transcript().entries(),
    };
    let blobs = Blobs::beside(&found.path);
    // Whole, before they are cut into lines.
    let masks = page.term.masks().clone();
    for one in entries {
        let one = in_full(one, &blobs);
        let one = &*masks.entry(&one);
        if page.format == Format::Markdown {
            let (head, body) = entry::parts(one);
            page.block(&format!("e{} {head}", one.id), &body)?;
            continue;
        }
        for line in entry::lines(one) {
            page.term.print(&line)?;
        }
    }
    Ok(())
}

/// The entry with the whole of what was clipped in it, as far as that was kept.
fn in_full<'a>(entry: &'a Entry, blobs: &Blobs) -> Cow<'a, Entry> {
    let whole = |clipped: Option<Clipped>| {
        let bytes = blobs.read(clipped?.blob?).ok().flatten()?;
        Some(clip::text(&bytes))
    };
    let mut full = Cow::Borrowed(entry);
    match &entry.event {
        Event::Result(result) => {
            if let Some(text) = whole(result.clipped)
                && let Event::Result(result) = &mut full.to_mut().event
            {
                result.content = text;
            }
        }
        Event::User(user) => {
            let texts = user.attachments.iter().map(|attachment| attachment.clipped);
            let texts: Vec<Option<String>> = texts.map(whole).collect();
            let text = whole(user.clipped);
            if (text.is_some() || texts.iter().any(Option::is_some))
                && let Event::User(user) = &mut full.to_mut().event
            {
                if let Some(text) = text {
                    user.text = text;
                }
                for (attachment, text) in user.attachments.iter_mut().zip(texts) {
                    if let Some(text) = text {
                        attachment.text = text;
                    }
                }
            }
        }
        Event::Run(_)
        | Event::Setup(_)
        | Event::Request(_)
        | Event::Response(_)
        | Event::Started(_)
        | Event::Overlay(_)
        | Event::Retract(_)
        | Event::Pin(_)
        | Event::Unpin(_)
        | Event::Fault(_)
        | Event::Note(_)
        | Event::End(_)
        | Event::Unknown(_) => {}
    }
    full
}

/// Prints the lines of the file.
fn lines(path: &Path, span: Option<Span>, page: &mut Page<'_>) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        let context = format!("cannot read {}", path.display());
        Failure::new(Exit::Transcript, anyhow::Error::new(error).context(context))
    };
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line).map_err(failed)? > 0 {
        let bytes = line.strip_suffix(b"\n").unwrap_or(&line);
        let is_meant =
            span.is_none_or(|span| jsonl::decode(bytes).is_ok_and(|entry| span.contains(entry.id)));
        match std::str::from_utf8(bytes) {
            Ok(json) if is_meant && (!page.wrapped || jsonl::decode(bytes).is_ok()) => {
                page.json("raw", "entry", json)?;
            }
            // Damage is shown as it is, but never among other objects.
            Err(_) if is_meant && !page.wrapped => {
                page.term.print_json(&String::from_utf8_lossy(bytes))?;
            }
            Ok(_) | Err(_) => {}
        }
        line.clear();
    }
    Ok(())
}

/// Prints what a request sent, or what the next one would send.
fn compacted(view: &View, at: Option<&Place>, now: At, page: &mut Page<'_>) -> Result<(), Failure> {
    let is_end = |at: &&Place| at.address == Address::End;
    let body = match at.filter(|at| !is_end(at)) {
        None => view.body(&Purpose::Round),
        Some(at) => {
            let (body, but) = sent::body(view, at.request(view, now)?)?;
            if let Some(but) = but {
                page.term
                    .say(&[(Look::Bad, "warning: "), (Look::Plain, &but)])?;
            }
            Some(body)
        }
    };
    let Some(body) = body else {
        page.term.say(&[(
            Look::Faint,
            "the run has no settings yet, so nothing is read",
        )])?;
        return Ok(());
    };
    for sent in sent::messages(&body)? {
        page.message(&sent)?;
    }
    Ok(())
}
