//! A run as a document that people read.
//!
//! Whatever was said by a person, a model or a tool stands in a fenced block that is longer than any
//! fence in it, or in a line of code: none of it can end its block, begin a heading, or be taken for
//! this program's own words.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::exchange::{Message, Response, ToolResult};
use crate::export::{Shown, laid, reasoning};
use crate::id::{CallId, EntryId};
use crate::overlay::{Layer, Overlay};
use crate::transcript::{Entry, Event, Fault, Note, Purpose, Request, Run, Speaker, User};
use crate::view::{As, Content, View};
use crate::words::grouped;

/// Writes a run as a document.
pub fn write(view: &View, shown: Shown, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page { view, shown, out };
    page.head()?;
    match shown {
        Shown::Raw | Shown::Both => page.entries(),
        Shown::Compacted => page.messages(),
    }
}

/// A fence that the text does not hold.
pub fn fence(text: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

/// A text in a line, as code that it cannot end.
fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    if text.trim().is_empty() {
        return "nothing".to_owned();
    }
    let longest = text.split(|c| c != '`').map(str::len).max();
    let ticks = "`".repeat(longest.unwrap_or_default() + 1);
    let space = if text.contains('`') { " " } else { "" };
    format!("{ticks}{space}{text}{space}{ticks}")
}

/// A text within HTML.
fn plain(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

struct Page<'a> {
    view: &'a View,
    shown: Shown,
    out: &'a mut dyn Write,
}

impl Page<'_> {
    fn head(&mut self) -> io::Result<()> {
        let view = self.view;
        let entries = view.transcript().entries();
        let first = entries.first().map(|first| &first.event);
        if let Some(Event::Run(run)) = first {
            self.run(run)?;
        } else {
            writeln!(self.out, "# A run without its first entry\n")?;
        }
        if let Some(setup) = view.setup() {
            let model = &setup.wire.models.main.name;
            writeln!(self.out, "- Model: {}", code(model))?;
        }
        let number = |number: usize, [one, more]: [&str; 2]| {
            let noun = if number == 1 { one } else { more };
            format!("{} {noun}", grouped(number as u64))
        };
        let rounds = view.rounds();
        let ended = view.ledger().ended;
        let ended = ended.map_or("not ended", |reason| reason.word());
        writeln!(
            self.out,
            "- {}, {}, {}; {ended}",
            number(rounds.turns().len(), ["turn", "turns"]),
            number(rounds.all().len(), ["round", "rounds"]),
            number(entries.len(), ["entry", "entries"]),
        )?;
        if self.shown == Shown::Compacted {
            writeln!(self.out, "- As its model reads it at the end")?;
        }
        writeln!(self.out)
    }

    fn run(&mut self, run: &Run) -> io::Result<()> {
        writeln!(self.out, "# Run {}\n", run.run.short())?;
        if let Some(name) = &run.name {
            writeln!(self.out, "- Name: {}", code(name))?;
        }
        writeln!(self.out, "- Id: {}", code(&run.run.to_string()))?;
        if let Some(parent) = run.parent {
            let (run, entry) = (parent.run, parent.entry);
            writeln!(self.out, "- Forked from {} at e{entry}", run.short())?;
        }
        writeln!(self.out, "- Workspace: {}", code(&run.workspace))?;
        writeln!(self.out, "- Written by: {}", code(&run.generator))
    }

    /// A text in a block that it cannot end. One that says nothing is no block.
    fn block(&mut self, kind: &str, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let fence = fence(text);
        let text = text.strip_suffix('\n').unwrap_or(text);
        writeln!(self.out, "{fence}{kind}\n{text}\n{fence}\n")
    }

    /// The same, folded below a line.
    fn folded(&mut self, line: &str, blocks: &[(&str, &str)]) -> io::Result<()> {
        writeln!(self.out, "<details>\n<summary>{}</summary>\n", plain(line))?;
        for (kind, text) in blocks {
            self.block(kind, text)?;
        }
        writeln!(self.out, "</details>\n")
    }

    /// How a content reads at the end, if that is asked for and it does not read in full.
    fn reads(&self, content: Content) -> Option<String> {
        if self.shown != Shown::Both {
            return None;
        }
        Some(match self.view.reads_as(content) {
            As::Full | As::Open | As::Absent => return None,
            As::Stub(by) => format!("reads as a stub (e{by})"),
            As::Hidden(by) => format!("is hidden (e{by})"),
            As::Summarised(by) => format!("reads in the summary e{by}"),
            As::Corrected(by) => format!("reads as its correction e{by}"),
        })
    }

    /// Entries in their order; results stand with their calls.
    fn entries(&mut self) -> io::Result<()> {
        let view = self.view;
        let mut results: BTreeMap<CallId, &ToolResult> = BTreeMap::new();
        for entry in view.transcript().entries() {
            if let Event::Result(result) = &entry.event {
                results.entry(result.call).or_insert(result);
            }
        }
        let mut turn = 0;
        for entry in view.transcript().entries() {
            if let Event::User(user) = &entry.event
                && matches!(user.origin, Speaker::Task | Speaker::FollowUp)
            {
                turn += 1;
                writeln!(self.out, "## Turn {turn}\n")?;
            }
            self.entry(entry, &results)?;
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry, results: &BTreeMap<CallId, &ToolResult>) -> io::Result<()> {
        let id = entry.id;
        match &entry.event {
            Event::Setup(setup) => {
                let line = format!("e{id}: settings and system text");
                self.folded(&line, &[("text", &setup.wire.instructions)])
            }
            Event::User(user) => self.user(id, user),
            Event::Request(request) => self.request(id, request),
            Event::Response(response) => self.response(id, response, results),
            Event::Overlay(overlay) => self.overlay(id, overlay),
            Event::Retract(retract) => {
                let names = retract.overlays.iter().map(|overlay| format!("e{overlay}"));
                let names: Vec<String> = names.collect();
                writeln!(self.out, "**e{id}** {} taken back\n", names.join(" "))
            }
            Event::Pin(pin) => writeln!(self.out, "**e{id}** pins e{}\n", pin.entry),
            Event::Unpin(pin) => writeln!(self.out, "**e{id}** unpins e{}\n", pin.entry),
            Event::Fault(fault) => self.fault(id, fault),
            Event::Note(note) => self.note(id, note),
            Event::End(end) => {
                writeln!(self.out, "## Ended: {}\n", end.reason.word())?;
                self.block("text", &end.text)
            }
            Event::Unknown(unknown) => {
                writeln!(self.out, "**e{id}** is not understood\n")?;
                self.block("json", unknown.json.get())
            }
            Event::Run(_) | Event::Started(_) | Event::Result(_) => Ok(()),
        }
    }

    fn user(&mut self, id: EntryId, user: &User) -> io::Result<()> {
        let who = match user.origin {
            Speaker::Task => "Task",
            Speaker::FollowUp => "Follow-up",
            Speaker::Hook => "Hook",
            Speaker::Runtime => "Runtime",
        };
        let reads = self.reads(Content::Text(id));
        let reads = reads.map_or_else(String::new, |reads| format!(" — {reads}"));
        writeln!(self.out, "### {who} (e{id}){reads}\n")?;
        self.block("text", &user.text)?;
        for (place, attachment) in (1..).zip(&user.attachments) {
            let reads = self.reads(Content::Attachment(id, place));
            let reads = reads.map_or_else(String::new, |reads| format!(" — {reads}"));
            let line = format!("{} ({}){reads}", attachment.name, attachment.media);
            self.folded(&line, &[("text", &attachment.text)])?;
        }
        Ok(())
    }

    fn request(&mut self, id: EntryId, request: &Request) -> io::Result<()> {
        let what = match (&request.purpose, request.round) {
            (Purpose::Round, Some(round)) => format!("Round {round}"),
            (Purpose::Round, None) => "Round".to_owned(),
            (Purpose::Summary(summary), _) => format!("Summary of {}", summary.span),
            (Purpose::Combine(combine), _) => format!("Summaries of {}", combine.span),
            (Purpose::Repair { response, .. }, _) => format!("Correction of e{response}"),
        };
        let tokens = grouped(request.estimate.tokens);
        writeln!(self.out, "### {what} (e{id})\n\nAbout {tokens} tokens.\n")
    }

    fn response(
        &mut self,
        id: EntryId,
        response: &Response,
        results: &BTreeMap<CallId, &ToolResult>,
    ) -> io::Result<()> {
        if let Some(thought) = reasoning(&response.reasoning) {
            let reads = self.reads(Content::Reasoning(id));
            let reads = reads.map_or_else(String::new, |reads| format!(" — {reads}"));
            self.folded(&format!("Reasoning{reads}"), &[("text", &thought)])?;
        }
        if !response.text.is_empty()
            && let Some(reads) = self.reads(Content::Text(id))
        {
            writeln!(self.out, "This {reads}:\n")?;
        }
        self.block("text", &response.text)?;
        for (index, call) in response.calls.iter().enumerate() {
            let at = CallId::at(id, index);
            let result = results.get(&at);
            let status = result.map_or("not answered", |result| result.status.word());
            let mut line = format!("{at} {}: {status}", call.name);
            let whole = self.reads(Content::Result(at));
            let made = self.reads(Content::Arguments(at));
            // What covers both is named once.
            let made = made.filter(|made| whole.as_ref() != Some(made));
            let made = made.map(|made| format!("its arguments: {made}"));
            for reads in whole.into_iter().chain(made) {
                line.push_str(" — ");
                line.push_str(&reads);
            }
            let content = result.map_or("", |result| result.content.as_str());
            self.folded(&line, &[("json", &call.arguments), ("text", content)])?;
        }
        Ok(())
    }

    fn overlay(&mut self, id: EntryId, overlay: &Overlay) -> io::Result<()> {
        writeln!(self.out, "**{}**\n", laid(id, overlay))?;
        match &overlay.layer {
            Layer::Summary(summary) => self.block("text", &summary.text),
            Layer::Stub(_) | Layer::Hide(_) | Layer::Show(_) => Ok(()),
        }
    }

    fn fault(&mut self, id: EntryId, fault: &Fault) -> io::Result<()> {
        let (class, message) = (fault.class.word(), code(&fault.message));
        writeln!(self.out, "**e{id}** failed ({class}): {message}\n")
    }

    fn note(&mut self, id: EntryId, note: &Note) -> io::Result<()> {
        let text = match note {
            Note::Warning { text } | Note::Damage { text } => code(text),
            Note::Torn(torn) => format!("a torn line of {} bytes", grouped(torn.bytes)),
            Note::SummaryFailed { request, why } => {
                format!("no summary of e{request}: {}", code(why))
            }
            Note::Hook(hook) if hook.veto => {
                format!("the hook forbade the pass: {}", code(&hook.text))
            }
            Note::Hook(hook) => format!("the hook was asked: {}", code(&hook.text)),
            Note::Check(check) if check.passed => "the check passed".to_owned(),
            Note::Check(_) => "the check failed".to_owned(),
        };
        writeln!(self.out, "**e{id}** {text}\n")
    }

    /// The messages as the model reads them at the end.
    fn messages(&mut self) -> io::Result<()> {
        let view = self.view;
        if let Some(setup) = view.setup() {
            self.folded("System", &[("text", &setup.wire.instructions)])?;
        }
        for message in view.messages() {
            match message {
                Message::User { text } => {
                    writeln!(self.out, "## User\n")?;
                    self.block("text", &text)?;
                }
                Message::Assistant {
                    text,
                    reasoning: blocks,
                    calls,
                    extra: _,
                } => {
                    writeln!(self.out, "## Assistant\n")?;
                    if let Some(thought) = reasoning(&blocks) {
                        self.folded("Reasoning", &[("text", &thought)])?;
                    }
                    self.block("text", &text)?;
                    for call in calls {
                        writeln!(
                            self.out,
                            "Calls {}:\n",
                            code(&format!("{} {}", call.id, call.name))
                        )?;
                        self.block("json", &call.arguments)?;
                    }
                }
                Message::Tool { call, text } => {
                    self.folded(&format!("Result of {call}"), &[("text", &text)])?;
                }
            }
        }
        let next = view.estimate().tokens;
        writeln!(
            self.out,
            "The next request takes about {} tokens.",
            grouped(next)
        )
    }
}
