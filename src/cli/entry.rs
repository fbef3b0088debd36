//! An entry as a person reads it: a headline, and below it, indented, everything it says.
//!
//! Nothing is left out and nothing is made visible here: that is the terminal's.

use std::fmt::Write as _;

use undertext::exchange::{Ending, Reasoning, Response, ToolResult, Usage};
use undertext::id::{CallId, EntryId};
use undertext::overlay::{Author, Hide, Layer, Overlay, Stub, Summary};
use undertext::setup::{Api, Setup};
use undertext::transcript::{
    BatchTask, End, Entry, Event, Fault, Note, Purpose, Request, Speaker, Totals, User,
};
use undertext::words;

use crate::cli::amount;
use crate::cli::brief;
use crate::cli::named;
use crate::cli::term::Look;

/// A line in pieces.
pub(crate) type Line = Vec<(Look, String)>;

/// The entry in lines; the first names it.
pub(crate) fn lines(entry: &Entry) -> Vec<Line> {
    let (head, body) = parts(entry);
    let look = match &entry.event {
        Event::User(_) | Event::Response(_) | Event::Overlay(_) | Event::End(_) => Look::Strong,
        Event::Fault(_) => Look::Bad,
        Event::Run(_)
        | Event::Setup(_)
        | Event::Request(_)
        | Event::Started(_)
        | Event::Result(_)
        | Event::Retract(_)
        | Event::Pin(_)
        | Event::Unpin(_)
        | Event::Note(_)
        | Event::Unknown(_) => Look::Plain,
    };
    let name = format!("{:<6}", format!("e{}", entry.id));
    // A text in a headline cannot begin another one.
    let head = head.replace('\n', "\\n");
    let mut lines = vec![vec![(Look::Faint, name), (look, head)]];
    for text in body {
        let indented = text
            .lines()
            .map(|line| vec![(Look::Plain, format!("      {line}"))]);
        lines.extend(indented);
    }
    lines
}

/// The file and the id of a task of a batch, and what the batch is called: `/w/tasks.jsonl, id map`
pub(crate) fn batch(task: &BatchTask) -> String {
    let mut text = task.file.clone();
    if let Some(id) = &task.id {
        write!(text, ", id {id}").ok();
    }
    if let Some(name) = &task.name {
        write!(text, ", in the batch {name}").ok();
    }
    text
}

/// The headline of an entry, without its name, and the texts below it.
pub(crate) fn parts(entry: &Entry) -> (String, Vec<String>) {
    event(entry.id, &entry.event)
}

fn event(id: EntryId, event: &Event) -> (String, Vec<String>) {
    match event {
        Event::Run(run) => {
            let mut head = format!("run {}", run.run);
            // A recording of another agent may not say where it worked.
            if !run.workspace.is_empty() {
                write!(head, " in {}", run.workspace).ok();
            }
            write!(head, ", {}", run.generator).ok();
            if let Some(parent) = &run.parent {
                write!(
                    head,
                    ", forked from {} at e{}",
                    parent.run.short(),
                    parent.entry
                )
                .ok();
            }
            if let Some(import) = &run.imported {
                write!(head, ", imported from {} ({})", import.file, import.format).ok();
            }
            if let Some(task) = &run.batch {
                write!(head, ", a task of {}", batch(task)).ok();
            }
            (head, run.name.iter().cloned().collect())
        }
        Event::Setup(given) => setup(given),
        Event::User(said) => user(said),
        Event::Request(request) => {
            let error = match &request.purpose {
                Purpose::Repair { error, .. } => Some(error.clone()),
                Purpose::Round | Purpose::Summary(_) | Purpose::Combine(_) => None,
            };
            (request_head(request), error.into_iter().collect())
        }
        Event::Response(reply) => response(id, reply),
        Event::Started(started) => (format!("{} started", started.call), Vec::new()),
        Event::Result(answer) => result(answer),
        Event::Overlay(laid) => overlay(laid),
        Event::Retract(retract) => {
            let overlays = entries(&retract.overlays);
            (
                format!("retract of {overlays} ({})", retract.origin.word()),
                Vec::new(),
            )
        }
        Event::Pin(pin) => (format!("pin on e{}", pin.entry), Vec::new()),
        Event::Unpin(pin) => (format!("pin off e{}", pin.entry), Vec::new()),
        Event::Fault(fault) => fault_lines(fault),
        Event::Note(note) => note_lines(note),
        Event::End(ended) => end(ended),
        Event::Unknown(unknown) => {
            let why = unknown
                .why
                .as_deref()
                .unwrap_or("of a type this version does not know");
            (
                format!("`{}` entry that is not understood: {why}", unknown.kind),
                vec![unknown.json.get().to_owned()],
            )
        }
    }
}

fn setup(given: &Setup) -> (String, Vec<String>) {
    let model = &given.wire.models.main;
    let api = match model.api {
        Api::Chat => "chat",
        Api::Responses => "responses",
    };
    let window = model.window.map_or_else(
        || "unknown window".to_owned(),
        |window| format!("window {}", amount::count(window)),
    );
    let tools: Vec<&str> = given
        .wire
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    let head = format!(
        "setup: {} ({api}, profile {}, {window})",
        model.name, model.profile.name
    );
    (
        head,
        vec![
            format!("tools: {}", tools.join(", ")),
            given.wire.instructions.clone(),
        ],
    )
}

fn user(said: &User) -> (String, Vec<String>) {
    let who = match said.origin {
        Speaker::Task => "task",
        Speaker::FollowUp => "follow-up",
        Speaker::Hook => "hook",
        Speaker::Runtime => "runtime",
    };
    let mut body = vec![said.text.clone()];
    for attachment in &said.attachments {
        body.push(format!(
            "attachment {} ({}):",
            attachment.name, attachment.media
        ));
        body.push(attachment.text.clone());
    }
    (format!("user ({who})"), body)
}

fn request_head(request: &Request) -> String {
    let purpose = match &request.purpose {
        Purpose::Round => match request.round {
            Some(round) => format!("round {round}"),
            None => "round".to_owned(),
        },
        Purpose::Summary(summary) => {
            let part = summary
                .part
                .map_or_else(String::new, |[part, of]| format!(", part {part} of {of}"));
            format!("summary of {}{part}", summary.span)
        }
        Purpose::Combine(combine) => format!("summaries of {} into one", combine.span),
        Purpose::Repair { response, .. } => format!("correction of e{response}"),
    };
    format!(
        "request: {purpose}, about {} tokens in {} bytes",
        amount::count(request.estimate.tokens),
        amount::count(request.body.bytes)
    )
}

fn response(id: EntryId, reply: &Response) -> (String, Vec<String>) {
    let ending = match reply.ending {
        Ending::Complete => "",
        Ending::Cut => " (cut: nothing of it runs)",
        Ending::Filtered => " (ended by a content filter)",
        Ending::Refused => " (refused)",
    };
    let used = reply.usage.as_ref().map_or_else(String::new, usage);
    let mut body = Vec::new();
    for block in &reply.reasoning {
        body.push(match block {
            Reasoning::Text { text, .. } => format!("[reasoning] {text}"),
            Reasoning::Raw { raw, .. } => {
                format!(
                    "[reasoning, opaque, {}]",
                    amount::of(raw.len() as u64, "byte")
                )
            }
        });
    }
    body.push(reply.text.clone());
    for (place, call) in (1..).zip(&reply.calls) {
        body.push(format!(
            "{} {} {}",
            CallId::new(id, place),
            named::tool(&call.name),
            call.arguments
        ));
    }
    (format!("response{ending}{used}"), body)
}

fn usage(usage: &Usage) -> String {
    let part = |number: Option<u64>, what: &str| {
        number.map(|number| format!("{} {what}", amount::count(number)))
    };
    let parts = [
        part(usage.input, "in"),
        part(usage.cached, "cached"),
        part(usage.output, "out"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(", tokens: {}", parts.join(", "))
    }
}

fn result(answer: &ToolResult) -> (String, Vec<String>) {
    let mut head = format!("{} {}", answer.call, answer.status.word());
    if let Some(ms) = answer.ms {
        write!(head, ", {}", amount::time(ms)).ok();
    }
    if let Some(clipped) = &answer.clipped {
        write!(
            head,
            ", clipped for the model from {} bytes",
            amount::count(clipped.bytes)
        )
        .ok();
    }
    (head, vec![answer.content.clone()])
}

fn overlay(laid: &Overlay) -> (String, Vec<String>) {
    let (what, text) = match &laid.layer {
        Layer::Stub(stub) => (stub_text(stub), None),
        Layer::Hide(hide) => (hide_text(hide), None),
        Layer::Summary(summary) => (summary_text(summary), Some(summary.text.clone())),
        Layer::Show(show) => (format!("shows {}", calls(&show.calls)), None),
    };
    let head = format!(
        "overlay ({}, pass e{}): {what}, about {} to {} tokens",
        laid.origin.word(),
        laid.pass,
        amount::count(laid.size.before),
        amount::count(laid.size.after)
    );
    let reason =
        (!laid.reason.is_empty()).then(|| format!("because: {}", words::figures(&laid.reason)));
    (head, reason.into_iter().chain(text).collect())
}

fn stub_text(stub: &Stub) -> String {
    let mut parts = Vec::new();
    if !stub.results.is_empty() {
        parts.push(format!("stubs results of {}", calls(&stub.results)));
    }
    if !stub.arguments.is_empty() {
        parts.push(format!("stubs arguments of {}", calls(&stub.arguments)));
    }
    parts.join(", ")
}

fn hide_text(hide: &Hide) -> String {
    let mut parts = Vec::new();
    if !hide.calls.is_empty() {
        parts.push(format!("hides {}", calls(&hide.calls)));
    }
    if !hide.reasoning.is_empty() {
        parts.push(format!("hides reasoning of {}", entries(&hide.reasoning)));
    }
    if !hide.attachments.is_empty() {
        let number = hide.attachments.len() as u64;
        parts.push(format!("hides {}", amount::of(number, "attachment")));
    }
    if !hide.rounds.is_empty() {
        let spans: Vec<String> = hide.rounds.iter().map(ToString::to_string).collect();
        parts.push(format!("hides the rounds in {}", spans.join(" ")));
    }
    parts.join(", ")
}

fn summary_text(summary: &Summary) -> String {
    let by = match summary.by {
        Author::Model => "a model",
        Author::User => "a person",
        Author::Rules => "rules",
    };
    format!("summary of {} by {by}", summary.span)
}

fn fault_lines(fault: &Fault) -> (String, Vec<String>) {
    let status = fault
        .status
        .map_or_else(String::new, |status| format!(" {status}"));
    let next = fault.wait_ms.map_or_else(
        || "not asked again".to_owned(),
        |ms| format!("asked again in {}", amount::time(ms)),
    );
    let head = format!(
        "fault: {}{status} on e{}, attempt {}, {next}",
        fault.class.word(),
        fault.request,
        fault.attempt
    );
    (head, vec![fault.message.clone()])
}

fn note_lines(note: &Note) -> (String, Vec<String>) {
    match note {
        Note::Warning { text } => ("note: warning".to_owned(), vec![text.clone()]),
        Note::Torn(torn) => {
            let bytes = amount::of(torn.bytes, "byte");
            let head = format!("note: {bytes} of an unfinished entry left out");
            (head, Vec::new())
        }
        Note::Damage { text } => ("note: damage accepted".to_owned(), vec![text.clone()]),
        Note::SummaryFailed { request, why } => (
            format!("note: no summary from e{request}: {why}"),
            Vec::new(),
        ),
        Note::Hook(said) => (format!("note: {}", brief::note(note)), said.keep.clone()),
        Note::Check(_) => (format!("note: {}", brief::note(note)), Vec::new()),
    }
}

fn end(ended: &End) -> (String, Vec<String>) {
    let totals = totals(&ended.totals);
    (
        format!("end: {}, {totals}", ended.reason.word()),
        vec![ended.text.clone()],
    )
}

/// What was used, in one line.
pub(crate) fn totals(totals: &Totals) -> String {
    let mut text = format!(
        "{}, {}, {} tokens in ({} cached), {} out",
        amount::of(totals.rounds, "round"),
        amount::of(totals.calls, "call"),
        amount::count(totals.input),
        amount::count(totals.cached),
        amount::count(totals.output)
    );
    text += &estimated(totals);
    text += &cost(totals);
    text + &format!(", {}", amount::time(totals.ms))
}

/// `, 1 of 3 requests estimated`; nothing if the provider counted all.
pub(crate) fn estimated(totals: &Totals) -> String {
    if totals.estimated == 0 {
        return String::new();
    }
    let (estimated, requests) = (totals.estimated, amount::of(totals.requests, "request"));
    format!(", {} of {requests} estimated", amount::count(estimated))
}

/// `, $0.42`, or that it is not known.
pub(crate) fn cost(totals: &Totals) -> String {
    match totals.cost_usd_micro {
        Some(cost) => format!(", {}", amount::money(cost)),
        None => ", cost unknown".to_owned(),
    }
}

/// The first few calls by name, the others by number.
fn calls(calls: &[CallId]) -> String {
    some(calls, ToString::to_string)
}

fn entries(entries: &[EntryId]) -> String {
    some(entries, |entry| format!("e{entry}"))
}

fn some<T>(all: &[T], name: impl Fn(&T) -> String) -> String {
    const SHOWN: usize = 8;
    let names: Vec<String> = all.iter().take(SHOWN).map(name).collect();
    match all.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{} and {more} more", names.join(" ")),
        _ => names.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_reads_from_its_beginning() {
        let transcript = [
            r#"{"id":1,"at":"2026-11-21T20:00:00.123Z","type":"run","format":1,"run":"0199d6a2-7b1c-7000-8000-00007c31d0f2","workspace":"/w","generator":"undertext 0.1.0"}"#,
            r#"{"id":3,"type":"user","origin":"task","text":"fix it\nplease","attachments":[{"name":"a.txt","media":"text/plain","text":"hello"}]}"#,
            r#"{"id":4,"type":"request","purpose":{"kind":"round"},"round":1,"setup":2,"renderer":1,"body":{"sha256":"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","bytes":40211},"estimate":{"chars":40100,"base":10025,"factor":1000,"tokens":10025}}"#,
            r#"{"id":5,"type":"response","request":4,"text":"I look.","reasoning":[{"field":"reasoning_content","text":"hm"},{"raw":"{}"}],"calls":[{"name":"Read","arguments":"{\"path\":\"a\"}"}],"ending":"complete","usage":{"input":9000,"cached":8000,"output":120}}"#,
            r#"{"id":6,"type":"started","call":"5.1"}"#,
            r#"{"id":7,"type":"result","call":"5.1","status":"ok","content":"one\ntwo","clipped":{"bytes":120000},"ms":12}"#,
            r#"{"id":8,"type":"overlay","origin":"micro","rule":"micro","pass":8,"layer":{"kind":"stub","form":"previous","results":["5.1"]},"size":{"before":12000,"after":8000},"reason":"12310 of 10000 tokens"}"#,
            r#"{"id":9,"type":"retract","overlays":[8],"origin":"user"}"#,
            r#"{"id":10,"type":"pin","entry":3}"#,
            r#"{"id":11,"type":"fault","request":4,"class":"rate","status":429,"message":"slow down","attempt":1,"wait_ms":2000}"#,
            r#"{"id":12,"type":"note","kind":"summary_failed","request":4,"why":"cut\ne99  forged"}"#,
            r#"{"id":13,"type":"dream","x":1}"#,
            r#"{"id":14,"type":"overlay","origin":"auto","rule":"auto","pass":14,"layer":{"kind":"summary","span":[4,7],"text":"It was read.","by":"model"},"size":{"before":12000,"after":8000}}"#,
            r#"{"id":15,"type":"note","kind":"check","response":5,"passed":false,"exit":1,"ms":2100}"#,
            r#"{"id":16,"type":"end","reason":"finished","text":"done","totals":{"rounds":1,"requests":1,"calls":1,"input":9000,"cached":8000,"output":120,"cost_usd_micro":12345,"ms":2100}}"#,
        ];
        let mut text = String::new();
        for line in transcript {
            for line in lines(&serde_json::from_str(line).unwrap()) {
                let line: String = line.into_iter().map(|(_, piece)| piece).collect();
                text += line.trim_end();
                text.push('\n');
            }
        }
        insta::assert_snapshot!(text, @r#"
        e1    run 0199d6a2-7b1c-7000-8000-00007c31d0f2 in /w, undertext 0.1.0
        e3    user (task)
              fix it
              please
              attachment a.txt (text/plain):
              hello
        e4    request: round 1, about 10,025 tokens in 40,211 bytes
        e5    response, tokens: 9,000 in, 8,000 cached, 120 out
              [reasoning] hm
              [reasoning, opaque, 2 bytes]
              I look.
              5.1 Read {"path":"a"}
        e6    5.1 started
        e7    5.1 ok, 12 ms, clipped for the model from 120,000 bytes
              one
              two
        e8    overlay (micro, pass e8): stubs results of 5.1, about 12,000 to 8,000 tokens
              because: 12,310 of 10,000 tokens
        e9    retract of e8 (user)
        e10   pin on e3
        e11   fault: rate 429 on e4, attempt 1, asked again in 2.0 s
              slow down
        e12   note: no summary from e4: cut\ne99  forged
        e13   `dream` entry that is not understood: of a type this version does not know
              {"id":13,"type":"dream","x":1}
        e14   overlay (auto, pass e14): summary of e4–e7 by a model, about 12,000 to 8,000 tokens
              It was read.
        e15   note: check of e5: failed with exit 1, 2.1 s
        e16   end: finished, 1 round, 1 call, 9,000 tokens in (8,000 cached), 120 out, $0.0123, 2.1 s
              done
        "#);
    }
}
