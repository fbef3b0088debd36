//! A run on a desk: rounds and the replies of summarisers are written by hand, compaction decides.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;
use undertext::compaction::gather::{self, Gathered, Job, Text};
use undertext::compaction::{Plan, plan};
use undertext::exchange::{
    Facts, Hint, Response, Status, ToolCall, ToolMeta, ToolResult, ToolSpec, Treatment,
};
use undertext::id::{CallId, Digest, EntryId};
use undertext::model::Reply;
use undertext::overlay::{Author, Layer, Origin, Overlay, Size};
use undertext::record::Clock;
use undertext::setup::{Policy, Role, Setup};
use undertext::transcript::{
    BodyDigest, Entry, Estimate, Event, Fault, FaultClass, Note, Purpose, Request, Source, Speaker,
    User,
};
use undertext::view::{Sizes, View};

use crate::draft::reply;
use crate::oracle;
use crate::scene;

/// How a request for a text is answered, given what it is for and how many came before it.
pub(crate) type Answers<'a> = &'a dyn Fn(&Purpose, usize) -> Result<Reply, FaultClass>;

/// A run and what became of its summaries.
#[derive(Debug)]
pub(crate) struct Desk {
    /// The run.
    pub(crate) view: View,
    /// What was asked for, failed and laid, each on a line.
    pub(crate) said: String,
    /// The bodies of requests for texts.
    pub(crate) bodies: Vec<String>,
}

/// Settings with one tool, whose calls no hint strips.
pub(crate) fn setup(window: u64, summariser: Option<u64>, policy: Policy) -> Setup {
    let mut setup = scene::setup(window, policy);
    setup.wire.models.summary = summariser.map(scene::model);
    let meta = ToolMeta {
        hint: Hint::new(Treatment::Keep, Treatment::Keep),
        ..ToolMeta::default()
    };
    setup.wire.tools = vec![ToolSpec {
        name: "Show".to_owned(),
        description: "Shows a file.".to_owned(),
        schema: RawValue::from_string(r#"{"type":"object"}"#.to_owned()).unwrap(),
        meta,
    }];
    setup
}

impl Desk {
    /// A run with these settings and a task.
    pub(crate) fn new(setup: Setup) -> Self {
        let mut desk = Self::of(&[]);
        desk.record(Event::Run(scene::run(&Clock::fixed(scene::BEGIN))));
        desk.record(Event::Setup(Box::new(setup)));
        desk.record(Event::User(User {
            origin: Speaker::Task,
            text: "Mend the parser.".to_owned(),
            attachments: Vec::new(),
            clipped: None,
        }));
        desk
    }

    /// A run of these entries.
    pub(crate) fn of(entries: &[Arc<Entry>]) -> Self {
        Self {
            view: View::of(entries.iter().cloned()),
            said: String::new(),
            bodies: Vec::new(),
        }
    }

    pub(crate) fn record(&mut self, event: Event) -> EntryId {
        let id = self.view.transcript().next_id();
        let at = scene::BEGIN.plus_ms(id.0 * 1_234);
        self.view.take(Arc::new(Entry { id, at, event }));
        id
    }

    /// A round with one call, whose result is of this length.
    pub(crate) fn round(&mut self, chars: usize) {
        let number = self.view.rounds().all().len() + 1;
        let path = format!("src/{number}.rs");
        let request = self.request(Purpose::Round, Digest::of(b"a round"));
        let response = self.record(Event::Response(Response {
            text: format!("Now {path}."),
            calls: vec![ToolCall {
                name: "Show".to_owned(),
                arguments: json!({ "path": path }).to_string(),
                ..ToolCall::default()
            }],
            ..reply(request)
        }));
        self.record(Event::Result(ToolResult {
            call: CallId::new(response, 1),
            status: Status::Ok,
            content: scene::text(&path, chars),
            clipped: None,
            facts: Facts::default(),
            ms: None,
        }));
    }

    pub(crate) fn request(&mut self, purpose: Purpose, sha256: Digest) -> EntryId {
        let estimate = match purpose {
            Purpose::Round => Estimate::default(),
            _ => self.view.estimate_of(&purpose),
        };
        self.record(Event::Request(Request {
            purpose,
            round: None,
            setup: self.view.setup_entry().unwrap(),
            renderer: 1,
            body: BodyDigest { sha256, bytes: 1 },
            estimate,
        }))
    }

    /// Records a request for a text, which must be one that its model can read.
    pub(crate) fn ask(&mut self, purpose: &Purpose) -> EntryId {
        let role = match purpose {
            Purpose::Summary(ask) => ask.model,
            Purpose::Combine(ask) => ask.model,
            Purpose::Round | Purpose::Repair { .. } => Role::Main,
        };
        let setup = self.view.setup().unwrap();
        let model = setup.wire.models.role(role).unwrap();
        let fits = Sizes::new(model, &setup.policy, 0, self.view.factor()).fits;
        let tokens = self.view.estimate_of(purpose).tokens;
        assert!(tokens <= fits, "{tokens} of {fits} tokens: {purpose:?}");
        let body = self.view.body(purpose).unwrap();
        assert_eq!(oracle::pairing(&body.bytes), Ok(()));
        self.bodies
            .push(String::from_utf8(body.bytes.to_vec()).unwrap());
        writeln!(self.said, "{}", described(purpose)).unwrap();
        self.record(Event::Request(Request {
            purpose: purpose.clone(),
            round: None,
            setup: self.view.setup_entry().unwrap(),
            renderer: 1,
            body: body.digest(),
            estimate: self.view.estimate_of(purpose),
        }))
    }

    /// Answers the newest request for a text.
    pub(crate) fn answer(&mut self, answers: Answers<'_>) {
        let text = self.view.sought().texts().last().unwrap();
        let (request, purpose) = (text.request, text.purpose.clone());
        let asked = |entry: &&Arc<Entry>| match &entry.event {
            Event::Request(it) => it.purpose != Purpose::Round && entry.id < request,
            _ => false,
        };
        let before = self.view.transcript().entries().iter().filter(asked);
        self.record(match answers(&purpose, before.count()) {
            Ok(given) => Event::Response(Response {
                text: given.text,
                calls: given.calls,
                ending: given.ending,
                ..reply(request)
            }),
            Err(class) => Event::Fault(Fault {
                request,
                class,
                status: None,
                message: "no".to_owned(),
                attempt: 1,
                wait_ms: None,
                refused_call: None,
                usage: None,
            }),
        });
    }

    fn failed(&mut self, request: EntryId, why: String) {
        writeln!(self.said, "failed: {why}").unwrap();
        self.record(Event::Note(Note::SummaryFailed { request, why }));
    }

    /// Gets the text of a summary; `None` if it cannot be had.
    pub(crate) fn gather(&mut self, job: &Job, answers: Answers<'_>) -> Option<Text> {
        loop {
            match gather::gather(&self.view, job) {
                Gathered::Ask(purpose) => {
                    self.ask(&purpose);
                }
                Gathered::Waits => self.answer(answers),
                Gathered::Failed { request, why } => self.failed(request, why),
                Gathered::Text(text) => return Some(text),
                Gathered::Unavailable => return None,
            }
        }
    }

    /// Does what compaction wants before the next round; `false` if it wants the run to stop.
    pub(crate) fn compact(&mut self, answers: Answers<'_>) -> bool {
        loop {
            match plan(&self.view, scene::BEGIN) {
                None => return true,
                Some(Plan::Stop) => return false,
                Some(Plan::Ask(purpose)) => {
                    self.ask(&purpose);
                    self.answer(answers);
                }
                Some(Plan::Failed { request, why }) => self.failed(request, why),
                Some(Plan::Lay(pass)) => {
                    let first = self.view.transcript().next_id();
                    for draft in pass.drafts {
                        self.lay(pass.origin, draft.rule, first, draft.layer);
                    }
                }
            }
        }
    }

    /// Lays a layer.
    pub(crate) fn lay(
        &mut self,
        origin: Origin,
        rule: &str,
        pass: EntryId,
        layer: Layer,
    ) -> EntryId {
        let what = match &layer {
            Layer::Summary(summary) => {
                let by = match summary.by {
                    Author::Model => "a model",
                    Author::User => "a person",
                    Author::Rules => "rules",
                };
                format!("{rule} {} by {by}, depth {}", summary.span, summary.depth)
            }
            Layer::Stub(_) | Layer::Hide(_) | Layer::Show(_) => rule.to_owned(),
        };
        let id = self.view.transcript().next_id();
        writeln!(self.said, "{id}: {what}").unwrap();
        let (reason, size) = (String::new(), Size::default());
        self.record(Event::Overlay(Overlay {
            origin,
            rule: rule.to_owned(),
            pass,
            layer,
            size,
            reason,
        }))
    }
}

/// What a request asks for: `read 4 to 18, part 1 of 3, clip 1000`.
fn described(purpose: &Purpose) -> String {
    match purpose {
        Purpose::Summary(ask) => {
            let mut said = format!("{:?} reads {}", ask.model, ask.span);
            if let Some([part, of]) = ask.part {
                write!(said, ", part {part} of {of}").unwrap();
            }
            write!(said, ", clip {}", ask.clip).unwrap();
            if let Some(words) = ask.words {
                let these = ask.replaces.iter().map(EntryId::to_string);
                let these = these.collect::<Vec<_>>().join(" and ");
                write!(said, ", in place of {these}, {words} words").unwrap();
            }
            said
        }
        Purpose::Combine(ask) => {
            let of = ask.of.iter().map(|source| match source {
                Source::Response(entry) => format!("reply {entry}"),
                Source::Overlay(entry) => format!("overlay {entry}"),
            });
            let of = of.collect::<Vec<_>>().join(", ");
            let words = ask
                .words
                .map_or_else(String::new, |words| format!(", {words} words"));
            format!("{:?} combines {of} of {}{words}", ask.model, ask.span)
        }
        Purpose::Round | Purpose::Repair { .. } => format!("{purpose:?}"),
    }
}
