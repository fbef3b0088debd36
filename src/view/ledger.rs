//! How the run's requests went and what it has used: what limits, retries and estimates look at.

use serde::{Deserialize, Serialize};

use crate::announcement::{self, Announcement};
use crate::exchange::{Ending, Response, Status, Usage};
use crate::id::{CallId, EntryId};
use crate::json_text;
use crate::meter::{self, Chars, Factor};
use crate::overlay::{Layer, Origin};
use crate::setup::{EstimateRule, Prices, Setup};
use crate::transcript::turn::Rounds;
use crate::transcript::{
    At, Check, Entry, Event, Fault, FaultClass, Note, Purpose, Reason, Request, Speaker, Totals,
    Transcript, Work,
};
use crate::view::taught::Taught;

/// The account of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ledger {
    /// The newest request, whatever it is for.
    pub asked: Option<Asked>,
    /// When the newest round was asked for.
    pub round_asked: Option<(EntryId, At)>,
    /// What was used since the newest end, or since the beginning.
    #[serde(with = "json_text")]
    pub since_end: Totals,
    /// The same before the newest round's response.
    #[serde(with = "json_text")]
    pub before_round: Totals,
    /// What the whole run used.
    #[serde(with = "json_text")]
    pub whole: Totals,
    /// When the run was begun or taken up since the newest end.
    pub begun: Option<At>,
    /// What of the entries was work.
    work: Work,
    /// Why the run ended last.
    pub ended: Option<Reason>,
    /// The newest end.
    pub last_end: Option<EntryId>,
    /// The same call that failed again and again.
    pub failing: Option<Streak>,
    /// Corrections of the newest answer that were asked for and came.
    pub repairs: u32,
    /// Empty replies in a row.
    pub empties: u32,
    /// Replies cut at the limit of output in a row.
    pub cuts: u32,
    /// What the newest replies announced without calling anything, and how many did in a row.
    pub announced: Option<(Announcement, u32)>,
    /// What came of the newest check under these settings, and its entry.
    #[serde(with = "json_text")]
    pub check: Option<(EntryId, Check)>,
    /// Replies that failed the check since a person spoke or the run ended.
    pub checks_failed: u32,
    /// The newest entry of a user, whoever speaks.
    pub user: Option<EntryId>,
    /// The newest entry in which the runtime speaks.
    pub told: Option<EntryId>,
    /// Summaries that could not be had, in a row.
    pub summary_failures: u32,
    /// The same within the pass that is being made.
    pub pass_failures: u32,
    /// The newest fault that says that a request is too long, whatever that was for.
    pub refused: Option<EntryId>,
    /// The newest fault that says that a round's request is too long.
    pub overflowed: Option<EntryId>,
    /// The characters of the view when a summary last could not be had.
    pub failed_at: Chars,
    /// The number of rounds when the newest summary was laid.
    pub summary_round: Option<u32>,
    /// What a hook said of the pass that is due: its note.
    pub hook: Option<EntryId>,
    /// The newest overlay that belongs to a pass.
    pub overlay: Option<EntryId>,
    /// The newest overlay of origin recovery.
    pub recovered: Option<EntryId>,
    /// The newest summary that the model asked for.
    pub tool_summary: Option<EntryId>,
    /// The window that a refusal taught, as long as the model is the same.
    pub learned_window: Option<u64>,
    /// What the answers taught about the models.
    pub taught: Taught,
    /// The parameters that refusals taught not to send, as long as the model is the same.
    pub untaken: Vec<String>,
    /// Calls of the model that the server refused to pass on, in a row.
    pub refused_calls: u32,
    /// Passes of origin recovery since the newest response of a round.
    pub recoveries: u32,
    model: String,
    factor: Factor,
    prices: Option<Prices>,
    window: Option<u64>,
    left_out: Vec<String>,
}

/// A request and what became of it so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Its entry.
    pub request: EntryId,
    /// What it is for.
    #[serde(with = "json_text")]
    pub purpose: Purpose,
    /// When it was recorded.
    pub at: At,
    /// Its response.
    pub response: Option<EntryId>,
    /// Attempts that failed.
    pub attempts: u32,
    /// Of those, the ones since it was first sent or the run was taken up again.
    pub tries: u32,
    /// When the first of those failed.
    pub since: At,
    /// The newest fault: its class, and when to ask again, unless there is no asking again.
    pub fault: Option<(FaultClass, Option<At>)>,
    /// The entry of the newest fault.
    pub fault_entry: Option<EntryId>,
    /// The run ended after its newest attempt.
    pub ended: bool,
}

/// The same call that failed again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streak {
    /// The newest of them.
    pub call: CallId,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: String,
    /// How often, in a row.
    pub times: u32,
}

impl Ledger {
    /// The learned factor, in thousandths; [`meter::PLAIN`] where the rule learns nothing.
    pub fn factor(&self, rule: EstimateRule) -> u64 {
        match rule {
            EstimateRule::Calibrated => self.factor.value(),
            EstimateRule::Chars => meter::PLAIN,
        }
    }

    /// Whether the model finished its work and nobody has spoken since.
    pub fn is_finished(&self) -> bool {
        self.ended == Some(Reason::Finished) && self.user < self.last_end
    }

    /// The newest request, if it asks for a correction.
    pub fn repairing(&self) -> Option<&Asked> {
        let asked = self.asked.as_ref();
        asked.filter(|asked| matches!(asked.purpose, Purpose::Repair { .. }))
    }

    pub(super) fn take(
        &mut self,
        entry: &Entry,
        transcript: &Transcript,
        rounds: &Rounds,
        chars: Chars,
    ) {
        if self.work.take(entry) {
            self.begun.get_or_insert(entry.at);
        }
        match &entry.event {
            Event::Setup(setup) => self.take_setup(entry.id, setup),
            Event::User(user) => {
                self.user = Some(entry.id);
                match user.origin {
                    Speaker::Runtime => self.told = Some(entry.id),
                    Speaker::Task | Speaker::FollowUp => self.checks_failed = 0,
                    Speaker::Hook => {}
                }
            }
            Event::Request(request) => self.take_request(entry, request),
            Event::Response(response) => self.take_response(entry, response, transcript, rounds),
            Event::Result(result) => {
                let known = rounds.of_response(result.call.response).is_some();
                if known {
                    self.since_end.calls += 1;
                    self.whole.calls += 1;
                    self.take_result(result.call, result.status, transcript);
                }
            }
            Event::Fault(fault) => self.take_fault(entry, fault, rounds),
            Event::Note(note) => self.take_note(entry.id, note, chars),
            Event::Overlay(overlay) => {
                self.overlay = Some(entry.id);
                if overlay.origin == Origin::Recovery {
                    self.recovered = Some(entry.id);
                    self.recoveries += u32::from(overlay.pass == entry.id);
                }
                if let Layer::Summary(summary) = &overlay.layer {
                    self.summary_failures = 0;
                    // One that makes room for the summary that was asked for is not that yet.
                    if !summary.is_merge() {
                        if overlay.origin == Origin::Tool {
                            self.tool_summary = Some(entry.id);
                        }
                        self.summary_round = rounds.last().map(|round| round.number);
                    }
                }
                self.pass_failures = 0;
                if overlay.origin != Origin::Micro {
                    self.hook = None;
                }
            }
            Event::End(end) => {
                self.ended = Some(end.reason);
                self.last_end = Some(entry.id);
                // How long it took is known when it ends.
                self.whole.ms = self.whole.ms.saturating_add(end.totals.ms);
                self.since_end = Totals::default();
                self.before_round = Totals::default();
                self.begun = None;
                self.pass_failures = 0;
                if end.reason == Reason::Compaction {
                    // Whoever takes it up again wants the summary tried again.
                    self.summary_failures = 0;
                }
                self.recoveries = 0;
                self.failing = None;
                self.repairs = 0;
                self.empties = 0;
                self.cuts = 0;
                self.refused_calls = 0;
                self.announced = None;
                self.checks_failed = 0;
                if let Some(asked) = &mut self.asked {
                    asked.ended = true;
                }
            }
            Event::Run(_)
            | Event::Started(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::Unknown(_) => {}
        }
    }

    fn take_setup(&mut self, entry: EntryId, setup: &Setup) {
        self.taught.take_setup(&setup.wire.models);
        let model = &setup.wire.models.main;
        let name = format!("{}\n{}", model.name, model.profile.name);
        let learned = self.refused.is_some_and(|fault| fault.next() == entry);
        if self.model != name {
            self.model = name;
            self.factor = Factor::default();
            self.learned_window = None;
            self.untaken.clear();
        } else if learned && self.window != model.window {
            self.learned_window = model.window;
        }
        self.take_left_out(entry, &model.profile.parameters.leave_out);
        self.prices.clone_from(&setup.policy.prices);
        self.check = None;
        self.hook = None;
        self.window = model.window;
    }

    /// What is left out right behind a fault was learned from it.
    fn take_left_out(&mut self, entry: EntryId, now: &[String]) {
        let fault = self.asked.as_ref().and_then(|asked| asked.fault_entry);
        if fault.is_some_and(|fault| fault.next() == entry) {
            let news = now.iter().filter(|name| !self.left_out.contains(name));
            self.untaken.extend(news.cloned());
        }
        self.left_out = now.to_vec();
    }

    fn take_fault(&mut self, entry: &Entry, fault: &Fault, rounds: &Rounds) {
        self.take_refused_call(fault);
        if let Some(usage) = fault.usage {
            for totals in [&mut self.since_end, &mut self.whole] {
                add(totals, usage, self.prices.as_ref());
            }
        }
        if fault.class == FaultClass::Overflow {
            self.refused = Some(entry.id);
            let repairs = self
                .repairing()
                .is_some_and(|asked| asked.request == fault.request);
            if repairs || rounds.of_request(fault.request).is_some() {
                self.overflowed = Some(entry.id);
            }
        }
        if let Some(asked) = self.asked.as_mut().filter(|a| a.request == fault.request) {
            asked.attempts = asked.attempts.max(fault.attempt);
            if fault.class == FaultClass::Local {
                (asked.tries, asked.since) = (0, entry.at);
            } else {
                if asked.tries == 0 {
                    asked.since = entry.at;
                }
                asked.tries += 1;
            }
            let again = fault.wait_ms.map(|wait| entry.at.plus_ms(wait));
            asked.fault = Some((fault.class, again));
            asked.fault_entry = Some(entry.id);
        }
    }

    fn take_refused_call(&mut self, fault: &Fault) {
        if fault.refused_call.is_some() {
            self.refused_calls += 1;
        } else if !fault.class.retried() {
            self.refused_calls = 0;
        }
    }

    fn take_note(&mut self, entry: EntryId, note: &Note, chars: Chars) {
        match note {
            Note::SummaryFailed { request, .. } => {
                // What a person asked for by hand says nothing of the loop's own.
                let asked = self
                    .asked
                    .as_ref()
                    .filter(|asked| asked.request == *request);
                if asked.is_none_or(|asked| asked.purpose.origin() != Origin::User) {
                    self.summary_failures += 1;
                    self.pass_failures += 1;
                    self.failed_at = chars;
                }
            }
            Note::Check(check) => {
                // One that was run again, because the run was killed beside it, counts once.
                let before = self.check.replace((entry, *check));
                let again = before.is_some_and(|(_, before)| before.response == check.response);
                self.checks_failed += u32::from(!check.passed && !again);
            }
            Note::Hook(_) => self.hook = Some(entry),
            Note::Warning { .. } | Note::Torn(_) | Note::Damage { .. } => {}
        }
    }

    fn take_request(&mut self, entry: &Entry, request: &Request) {
        self.since_end.requests += 1;
        self.whole.requests += 1;
        if request.purpose == Purpose::Round {
            self.round_asked = Some((entry.id, entry.at));
            self.pass_failures = 0;
            self.hook = None;
        }
        self.asked = Some(Asked {
            request: entry.id,
            purpose: request.purpose.clone(),
            at: entry.at,
            response: None,
            attempts: 0,
            tries: 0,
            since: entry.at,
            fault: None,
            fault_entry: None,
            ended: false,
        });
    }

    fn take_response(
        &mut self,
        entry: &Entry,
        response: &Response,
        transcript: &Transcript,
        rounds: &Rounds,
    ) {
        if let Some(asked) = self
            .asked
            .as_mut()
            .filter(|a| a.request == response.request)
        {
            let first = asked.response.is_none();
            asked.response.get_or_insert(entry.id);
            if first && matches!(asked.purpose, Purpose::Repair { .. }) {
                self.repairs += 1;
                self.recoveries = 0;
            }
        }
        let is_round = rounds.of_response(entry.id).is_some();
        if is_round {
            self.refused_calls = 0;
            self.before_round = self.since_end;
            self.recoveries = 0;
            self.repairs = 0;
            let silent = announcement::spoken(&response.text).is_empty();
            let empty = silent && response.calls.is_empty();
            let complete = response.ending == Ending::Complete;
            self.empties = if empty && complete {
                self.empties + 1
            } else {
                0
            };
            self.cuts = if response.ending == Ending::Cut {
                self.cuts + 1
            } else {
                0
            };
            let before = self.announced.map_or(0, |(_, times)| times);
            self.announced = (complete && response.calls.is_empty())
                .then(|| announced(response, transcript))
                .flatten()
                .map(|what| (what, before + 1));
        }
        let request = transcript.get(response.request).map(|entry| &entry.event);
        let request = match request {
            Some(Event::Request(request)) => Some(request),
            Some(_) | None => None,
        };
        let asked = request.map_or(0, |request| request.estimate.tokens);
        let (usage, estimated) = meter::used(response, asked);
        for totals in [&mut self.since_end, &mut self.whole] {
            totals.rounds += u64::from(is_round);
            totals.estimated += u64::from(estimated);
            add(totals, usage, self.prices.as_ref());
        }
        let Some(request) = request else {
            return;
        };
        self.taught.take_answered(request);
        if let (true, Some(input)) = (is_round, response.usage.and_then(|usage| usage.input)) {
            let believed = self.factor.learn(request.estimate.base, input, self.window);
            // A server that counts nothing says zero.
            if !believed && input > 0 {
                self.taught.take_doubted(entry.id);
            }
        }
    }

    fn take_result(&mut self, call: CallId, status: Status, transcript: &Transcript) {
        let Some(Event::Response(response)) = transcript.get(call.response).map(|e| &e.event)
        else {
            return;
        };
        let Some(made) = call.index().and_then(|index| response.calls.get(index)) else {
            return;
        };
        if status == Status::Ok {
            self.failing = None;
            return;
        }
        let before = self
            .failing
            .take()
            .filter(|streak| streak.name == made.name && streak.arguments == made.arguments);
        self.failing = Some(Streak {
            call,
            name: made.name.clone(),
            arguments: made.arguments.clone(),
            times: before.map_or(0, |streak| streak.times) + 1,
        });
    }
}

/// What a reply announces, given the tools that it could have called.
fn announced(response: &Response, transcript: &Transcript) -> Option<Announcement> {
    let Event::Request(request) = &transcript.get(response.request)?.event else {
        return None;
    };
    let Event::Setup(setup) = &transcript.get(request.setup)?.event else {
        return None;
    };
    let tools = setup.wire.tools.iter().map(|tool| tool.name.as_str());
    announcement::announced(&response.text, &tools.collect::<Vec<_>>())
}

fn add(totals: &mut Totals, usage: Usage, prices: Option<&Prices>) {
    let more = |total: u64, count: Option<u64>| total.saturating_add(count.unwrap_or(0));
    totals.input = more(totals.input, usage.input);
    totals.cached = more(totals.cached, usage.cached);
    totals.output = more(totals.output, usage.output);
    if let Some(prices) = prices {
        let cost = more(meter::cost(usage, prices), totals.cost_usd_micro);
        totals.cost_usd_micro = Some(cost);
    }
}
