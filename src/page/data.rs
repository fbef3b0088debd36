//! The entries of a run, taken in one by one and told as data for the page.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::Serialize;

use crate::exchange::{Ending, Reasoning, Response};
use crate::id::{EntryId, Span};
use crate::meter::Chars;
use crate::overlay::{Author, Layer, Overlay};
use crate::page::entries::{
    Attached, Called, Laid, Line, Recorded, Tasks, Thought, Tool, Used, What,
};
use crate::page::lists::{Lists, Piece};
use crate::page::texts::{self, Text, Texts};
use crate::secret::Masks;
use crate::setup::{Model, Setup};
use crate::transcript::{Entry, Event, Note, Purpose, Request, Speaker, Totals, User};
use crate::view::View;
use crate::wire::RENDERER;
use crate::words;

/// The most bytes of text that are told at once.
const TEXT_BYTES: usize = 48 << 20;

/// The data of a run, gathered entry by entry and told piece by piece: what was told never changes.
#[derive(Debug, Default)]
pub struct Data {
    view: View,
    /// The same run without its overlays: everything in full.
    raw: View,
    texts: Texts,
    lists: Lists,
    /// A setup of each model that was asked.
    makers: Vec<EntryId>,
    /// What all replies used so far.
    used: Totals,
    /// The newest request.
    asked: EntryId,
    lines: Vec<Line>,
    damage: Vec<String>,
    /// The last entry that was told.
    told: EntryId,
    cut: usize,
}

/// What a page begins with, or what is appended to it.
#[derive(Debug, Serialize)]
struct More {
    /// The version of this form.
    format: u32,
    /// The last entry that was told before.
    after: EntryId,
    /// The texts that are new, numbered on.
    texts: Vec<Text>,
    /// The messages that are new, numbered on.
    pieces: Vec<Piece>,
    entries: Vec<Line>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damage: Vec<String>,
}

impl Data {
    /// Data behind these masks. Unless told otherwise, what looks like a secret is masked.
    pub fn behind(masks: Masks) -> Self {
        Self {
            texts: Texts::behind(masks),
            ..Self::default()
        }
    }

    /// Takes the next entry in.
    pub fn take(&mut self, entry: &Arc<Entry>) {
        if entry.id < self.view.transcript().next_id() {
            return;
        }
        // A request is told by what stands before it, all else by what stands then.
        let request = if let Event::Request(request) = &entry.event {
            Some(self.request(request))
        } else {
            None
        };
        self.view.take(Arc::clone(entry));
        if !matches!(entry.event, Event::Overlay(_) | Event::Retract(_)) {
            self.raw.take(Arc::clone(entry));
        }
        let what = match request {
            Some(what) => self.numbered(entry.id, what),
            None => self.what(entry),
        };
        self.lines.push(Line {
            id: entry.id,
            at: entry.at.0,
            what,
        });
    }

    /// Something of the transcript cannot be read.
    pub fn damaged(&mut self, text: String) {
        if let Cow::Owned(shown) = self.texts.masks().text(&text) {
            self.damage.push(shown);
        } else {
            self.damage.push(text);
        }
    }

    /// What was gathered since it was last asked, as JSON that can stand in a page. The longest texts are
    /// cut so that a page stays one that a browser opens.
    pub fn more(&mut self) -> String {
        let mut texts = self.texts.take();
        texts::cut(&mut texts, TEXT_BYTES);
        self.cut += texts.iter().filter(|text| text.is_cut()).count();
        let last = self.view.transcript().last();
        let last = last.map_or(self.told, |last| last.id);
        let more = More {
            format: 1,
            after: std::mem::replace(&mut self.told, last),
            texts,
            pieces: self.lists.take(),
            entries: std::mem::take(&mut self.lines),
            damage: std::mem::take(&mut self.damage),
        };
        escaped(&serde_json::to_string(&more).unwrap_or_default())
    }

    /// Whether nothing was gathered since it was last told.
    pub fn is_told(&self) -> bool {
        self.lines.is_empty() && self.damage.is_empty()
    }

    /// The number of texts that were told with a part left out.
    pub fn cut(&self) -> usize {
        self.cut
    }

    /// The view of all that was taken in.
    pub fn view(&self) -> &View {
        &self.view
    }

    fn text(&mut self, text: &str) -> usize {
        self.texts.number(text)
    }

    fn request(&mut self, request: &Request) -> What {
        let list = match &request.purpose {
            Purpose::Round => self.lists.round(&self.view, &mut self.texts),
            Purpose::Summary(_) | Purpose::Combine(_) | Purpose::Repair { .. } => {
                let asked = self.view.readings_for(&request.purpose);
                self.lists.asked(&self.view, &asked, &mut self.texts)
            }
        };
        let built = self.view.body_digest(&request.purpose);
        let proved = request.renderer == RENDERER && built == Some(request.body);
        let asks = (request.purpose != Purpose::Round).then(|| Box::new(request.purpose.clone()));
        What::Request {
            purpose: match request.purpose {
                Purpose::Round => "round",
                Purpose::Summary(_) => "summary",
                Purpose::Combine(_) => "combine",
                Purpose::Repair { .. } => "repair",
            },
            asks,
            round: request.round,
            turn: None,
            setup: request.setup,
            tokens: request.estimate.tokens,
            bytes: request.body.bytes,
            base: request.estimate.base,
            kept: (request.purpose == Purpose::Round)
                .then(|| self.kept())
                .flatten(),
            trigger: self.view.sizes().map(|sizes| sizes.trigger),
            unproved: !proved,
            list,
        }
    }

    /// How much more the next round's request would take if everything read in full; `None` where the
    /// transcript has lost a result, since what stands behind it cannot be measured.
    fn kept(&self) -> Option<i64> {
        if !self.view.open_calls().is_empty() {
            return None;
        }
        let rule = self.view.policy()?.compaction.estimate;
        // Both by one measure: without overlays, they are the same.
        let base = |view: &View| {
            let chars: Chars = view.fixed_chars() + view.chars_from(EntryId::FIRST);
            i64::try_from(chars.base(rule)).ok()
        };
        base(&self.raw)?.checked_sub(base(&self.view)?)
    }

    /// A request with the round that it belongs to, which is known once it is taken in.
    fn numbered(&mut self, id: EntryId, mut what: What) -> What {
        self.asked = id;
        if let (What::Request { round, turn, .. }, Some(of)) =
            (&mut what, self.view.rounds().of_request(id))
        {
            round.get_or_insert(of.number);
            *turn = Some(of.turn);
        }
        what
    }

    fn what(&mut self, entry: &Entry) -> What {
        match &entry.event {
            Event::Run(run) => What::Run {
                run: run.run,
                short: run.run.short(),
                workspace: self.text(&run.workspace),
                generator: self.text(&run.generator),
                name: run.name.as_deref().map(|name| self.text(name)),
                parent: run.parent,
                imported: run.imported.as_ref().map(|import| Recorded {
                    // What a fork took over was recorded by an agent that its format names alone.
                    by: self.texts.number(if run.parent.is_some() {
                        &import.format
                    } else {
                        &run.generator
                    }),
                    file: self.texts.number(&import.file),
                    skipped: import.skipped,
                }),
                batch: run.batch.as_ref().map(|task| Tasks {
                    file: self.text(&task.file),
                    id: task.id.as_deref().map(|id| self.text(id)),
                    name: task.name.as_deref().map(|name| self.text(name)),
                }),
            },
            Event::Setup(setup) => {
                self.lists.change_all();
                self.setup(entry.id, setup)
            }
            Event::User(user) => self.user(entry.id, user),
            Event::Response(response) => self.response(entry.id, response),
            Event::Started(started) => What::Started { call: started.call },
            Event::Result(result) => {
                self.lists.answer(result.call, self.asked);
                What::Result {
                    call: result.call,
                    status: result.status.word(),
                    content: self.text(&result.content),
                    clipped: result.clipped.map(|clipped| clipped.bytes),
                    ms: result.ms,
                }
            }
            Event::Overlay(overlay) => {
                self.lists.change(&overlay.layer);
                self.overlay(entry.id, overlay)
            }
            Event::Retract(retract) => {
                for id in &retract.overlays {
                    if let Some(overlay) = self.view.overlay(*id) {
                        self.lists.change(&overlay.layer);
                    }
                }
                What::Retract {
                    overlays: retract.overlays.clone(),
                    origin: retract.origin.word(),
                }
            }
            Event::Pin(pin) => What::Pin { entry: pin.entry },
            Event::Unpin(pin) => What::Unpin { entry: pin.entry },
            Event::Fault(fault) => What::Fault {
                request: fault.request,
                class: fault.class.word(),
                status: fault.status,
                message: self.text(&fault.message),
                attempt: fault.attempt,
                wait_ms: fault.wait_ms,
                used: self.used(),
            },
            Event::Note(note) => self.note(note),
            Event::End(end) => What::End {
                reason: end.reason.word(),
                text: self.text(&end.text),
                ms: end.totals.ms,
            },
            Event::Unknown(unknown) => What::Unknown {
                kind: self.text(&unknown.kind),
                json: self.text(unknown.json.get()),
            },
            // Told before it was taken in.
            Event::Request(request) => self.request(request),
        }
    }

    fn setup(&mut self, id: EntryId, setup: &Setup) -> What {
        let main = &setup.wire.models.main;
        let tools = setup.wire.tools.iter().map(|tool| Tool {
            name: self.texts.number(&tool.name),
            description: self.texts.number(&tool.description),
            schema: self.texts.number(tool.schema.get()),
        });
        let tools = tools.collect();
        What::Setup {
            model: self.text(&main.name),
            profile: self.text(&main.profile.name),
            window: main.window,
            trigger: self.view.sizes().map(|sizes| sizes.trigger),
            instructions: self.text(&setup.wire.instructions),
            tools,
            maker: self.maker(id, main),
            merges: main.profile.messages.merges(),
        }
    }

    /// The number of the model of a setup: the same for setups whose signed blocks go back.
    fn maker(&mut self, id: EntryId, model: &Model) -> usize {
        let known = self.makers.iter().position(|setup| {
            let setup = self.view.setup_at(setup.next());
            setup.is_some_and(|setup| setup.wire.models.main.made_by(model))
        });
        known.unwrap_or_else(|| {
            self.makers.push(id);
            self.makers.len() - 1
        })
    }

    fn user(&mut self, id: EntryId, user: &User) -> What {
        let attachments = user.attachments.iter().map(|attachment| {
            let (name, text) = (&attachment.name, &attachment.text);
            let reads = words::attachment(name, &attachment.media, text);
            let hidden = words::attachment_hidden(name, text.chars().count());
            Attached {
                name: self.texts.number(name),
                text: self.texts.number(text),
                reads: self.texts.number(&reads),
                hidden: self.texts.number(&hidden),
            }
        });
        let attachments = attachments.collect();
        let turns = self.view.rounds().turns();
        What::User {
            origin: match user.origin {
                Speaker::Task => "task",
                Speaker::FollowUp => "follow_up",
                Speaker::Hook => "hook",
                Speaker::Runtime => "runtime",
            }
            .to_owned(),
            turn: (turns.last() == Some(&id)).then_some(turns.len()),
            text: self.text(&user.text),
            attachments,
        }
    }

    fn response(&mut self, id: EntryId, response: &Response) -> What {
        let round = self.view.rounds().of_response(id).map(|round| round.number);
        let corrects = self.view.corrects(id);
        if let Some(reply) = corrects {
            self.lists.correct(reply);
        }
        let reasoning = response.reasoning.iter().map(|block| {
            let (Reasoning::Text { text, .. } | Reasoning::Raw { raw: text, .. }) = block;
            Thought {
                text: self.texts.number(text),
                opaque: block.is_opaque(),
            }
        });
        let reasoning = reasoning.collect();
        let calls = response.calls.iter().map(|call| Called {
            name: self.texts.number(&call.name),
            arguments: self.texts.number(&call.arguments),
        });
        let calls = calls.collect();
        What::Response {
            request: response.request,
            round,
            text: self.text(&response.text),
            reasoning,
            calls,
            ending: match response.ending {
                Ending::Complete => "complete",
                Ending::Cut => "cut",
                Ending::Filtered => "filtered",
                Ending::Refused => "refused",
            }
            .to_owned(),
            finish: response.finish.as_deref().map(|word| self.text(word)),
            ms: response.ms.map(|time| time.all),
            counted: response.usage.and_then(|usage| usage.input),
            corrects,
            used: self.used(),
        }
    }

    /// What the newest entry used.
    fn used(&mut self) -> Used {
        let (before, now) = (self.used, self.view.ledger().whole);
        self.used = now;
        let cost = |totals: Totals| totals.cost_usd_micro.unwrap_or_default();
        Used {
            input: now.input.saturating_sub(before.input),
            cached: now.cached.saturating_sub(before.cached),
            output: now.output.saturating_sub(before.output),
            cost: now
                .cost_usd_micro
                .map(|_| cost(now).saturating_sub(cost(before))),
        }
    }

    fn overlay(&mut self, id: EntryId, overlay: &Overlay) -> What {
        let layer = match &overlay.layer {
            Layer::Stub(stub) => {
                let results = stub.results.iter().filter_map(|call| {
                    let by = stub.by.get(call).copied();
                    let text = self.view.stub_of(*call, id, stub.form, by)?;
                    Some((*call, self.texts.number(&text)))
                });
                Laid::Stub {
                    results: results.collect(),
                    arguments: stub.arguments.clone(),
                }
            }
            Layer::Hide(hide) => Laid::Hide {
                calls: hide.calls.clone(),
                reasoning: hide.reasoning.clone(),
                attachments: hide.attachments.clone(),
                rounds: hide.rounds.clone(),
                why: hide.why.clone(),
            },
            Layer::Summary(summary) => {
                let (text, carry) = (
                    self.view.summary_text(id),
                    self.view.carry_text(id, &summary.carry),
                );
                Laid::Summary {
                    // What comes later does not come under it.
                    span: Span::new(summary.span.from, summary.span.to.min(id)),
                    by: match summary.by {
                        Author::Model => "model",
                        Author::User => "user",
                        Author::Rules => "rules",
                    },
                    depth: summary.depth,
                    focus: summary.focus.as_deref().map(|focus| self.text(focus)),
                    text: self.text(&text.unwrap_or_default()),
                    carry: carry.map(|carry| self.text(&carry)),
                }
            }
            Layer::Show(show) => Laid::Show {
                calls: show.calls.clone(),
            },
        };
        What::Overlay {
            origin: overlay.origin.word(),
            rule: self.text(&overlay.rule),
            pass: overlay.pass,
            size: [overlay.size.before, overlay.size.after],
            reason: self.text(&words::figures(&overlay.reason)),
            layer,
        }
    }

    fn note(&mut self, note: &Note) -> What {
        let (kind, text) = match note {
            Note::Warning { text } => ("warning", text.clone()),
            Note::Torn(torn) => (
                "torn",
                format!("the last {} bytes were no whole entry", torn.bytes),
            ),
            Note::Damage { text } => ("damage", text.clone()),
            Note::SummaryFailed { request, why } => {
                ("summary_failed", format!("request e{request}: {why}"))
            }
            Note::Hook(hook) => ("hook", hook.text.clone()),
            Note::Check(check) => {
                let verdict = if check.passed { "passed" } else { "failed" };
                let exit = check.exit.map(|exit| format!(" (exit {exit})"));
                ("check", format!("{verdict}{}", exit.unwrap_or_default()))
            }
        };
        What::Note {
            kind,
            text: self.text(&text),
        }
    }
}

/// JSON in which nothing ends the element that it stands in, or a line of a script.
fn escaped(json: &str) -> String {
    let mut safe = String::with_capacity(json.len() + json.len() / 64);
    // None of these stands outside of strings in JSON.
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{7f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => {
                write!(safe, "\\u{:04x}", u32::from(character)).ok();
            }
            _ => safe.push(character),
        }
    }
    safe
}
