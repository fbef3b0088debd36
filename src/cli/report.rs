//! What is shown of a run while it goes on.
//!
//! To people: remarks on standard error, and one live line on a terminal. To programs: every entry
//! and every piece of a reply, one JSON object a line on standard output.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use undertext::agent::Progress;
use undertext::compaction::notice::Notice;
use undertext::id::{CallId, EntryId};
use undertext::model::Delta;
use undertext::record::{Clock, Recorder, Stopwatch};
use undertext::secret::{Masks, Pieces};
use undertext::transcript::{Entry, Event, Note, Purpose, jsonl};

use crate::cli::output::{Piece, Told};
use crate::cli::story::Story;
use crate::cli::term::{Look, Term};
use crate::cli::{amount, brief, notice};

/// The widest line of the story, in characters.
const WIDTH: usize = 100;

/// What people are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum People {
    /// What went wrong, and the answer.
    Little,
    /// What is worth a line.
    Lines,
    /// The same, and what is only planned.
    All,
    /// The same, with a line about what goes on now.
    Live,
}

/// Shows a run.
pub(crate) struct Report<'a> {
    term: &'a mut Term,
    json: bool,
    people: People,
    clock: Clock,
    /// The length of the task that is yet to be recorded, in characters.
    task_chars: u64,
    round: u32,
    tokens: u64,
    trigger: Option<u64>,
    /// A reply without calls is checked.
    checks: bool,
    /// What is asked for is a summary.
    summarizes: bool,
    /// Calls that are not answered yet.
    open: VecDeque<(CallId, String)>,
    /// What is going on, and since when.
    doing: String,
    since: Stopwatch,
    /// What came in of a reply and may not be shown yet.
    text: Pieces,
    thoughts: Pieces,
    asked: EntryId,
    /// Tells each round and call, if people are told all.
    story: Option<Story>,
}

impl<'a> Report<'a> {
    /// A report of this run from here on.
    pub(crate) fn new(term: &'a mut Term, json: bool, live: bool, recorder: &Recorder) -> Self {
        let clock = recorder.clock().clone();
        let view = recorder.view();
        let people = match (live, term.is_live()) {
            (true, true) => People::Live,
            (true, false) => People::Lines,
            (false, _) => People::All,
        };
        let width = term.columns().map_or(WIDTH, |columns| columns.min(WIDTH));
        let story = || Story::new(view.clone(), width, term.masks().clone(), "[calls nothing]");
        Self {
            story: (people == People::All).then(story),
            people,
            since: clock.stopwatch(),
            clock,
            task_chars: 0,
            term,
            json,
            round: view.rounds().last().map_or(0, |round| round.number),
            tokens: view.estimate().tokens,
            trigger: view.setup().map(brief::trigger),
            checks: view.policy().is_some_and(|policy| policy.check.is_some()),
            summarizes: false,
            open: VecDeque::new(),
            doing: String::new(),
            text: Pieces::default(),
            thoughts: Pieces::default(),
            asked: EntryId(0),
        }
    }

    /// What is hidden in all that is shown.
    pub(crate) fn masks(&self) -> &Masks {
        self.term.masks()
    }

    /// Says nothing to people from now on but what went wrong, and the answer.
    pub(crate) fn keep_quiet(&mut self, quiet: bool) {
        if quiet {
            self.people = People::Little;
        }
    }

    /// Takes note of a task that is about to be recorded, to tell how much of it was.
    pub(crate) fn expect_task(&mut self, task: Option<&str>) {
        self.task_chars = task.map_or(0, |task| task.chars().count() as u64);
    }

    /// Whether there is a live line to keep alive.
    pub(crate) fn is_live(&self) -> bool {
        self.people == People::Live
    }

    /// Shows what happened. Only standard output matters: nobody need read the other.
    pub(crate) fn take(&mut self, progress: &Progress) -> io::Result<()> {
        match progress {
            Progress::Entry(entry) => self.entry(entry),
            Progress::Delta { request, delta } => self.delta(*request, delta),
            Progress::Compaction(told) => self.compaction(told),
        }
    }

    /// Shows an entry.
    pub(crate) fn entry(&mut self, entry: &Arc<Entry>) -> io::Result<()> {
        self.pieces_end()?;
        if self.json {
            let line = jsonl::encode(entry).map_err(io::Error::other)?;
            let line = String::from_utf8_lossy(&line);
            self.term.print_json(line.trim_end())?;
        }
        self.tell(entry);
        match &entry.event {
            Event::Setup(setup) => {
                self.trigger = Some(brief::trigger(setup));
                self.checks = setup.policy.check.is_some();
            }
            Event::Request(request) => {
                if let Some(round) = request.round {
                    self.round = round;
                    self.tokens = request.estimate.tokens;
                }
                let doing = match &request.purpose {
                    Purpose::Round => "asking",
                    Purpose::Summary(_) | Purpose::Combine(_) => "summarizing",
                    Purpose::Repair { response, .. } => {
                        self.say(Look::Plain, &brief::repair(*response));
                        "correcting"
                    }
                };
                self.summarizes = doing == "summarizing";
                self.begin(doing);
                self.progress()?;
            }
            Event::Response(response) => {
                let calls = (1..).zip(&response.calls);
                self.open = calls
                    .map(|(place, call)| (CallId::new(entry.id, place), call.name.clone()))
                    .collect();
                if response.calls.is_empty() && self.checks {
                    self.begin("checking");
                    self.progress()?;
                }
                self.next_call()?;
            }
            Event::Result(result) => {
                self.open.retain(|(call, _)| *call != result.call);
                self.next_call()?;
            }
            // A line is told of its pass.
            Event::Overlay(laid) => self.tokens = laid.size.after,
            // One that is not asked again is told at the end.
            Event::Fault(fault) if fault.wait_ms.is_some() => {
                self.say(Look::Bad, &brief::fault(entry.id, fault));
                self.begin("waiting");
            }
            Event::Note(note) => self.note(note),
            Event::User(said) => {
                for text in brief::clipped(said, self.task_chars) {
                    self.say(Look::Bad, &text);
                }
            }
            Event::Run(_)
            | Event::Started(_)
            | Event::Fault(_)
            | Event::Retract(_)
            | Event::Pin(_)
            | Event::Unpin(_)
            | Event::End(_)
            | Event::Unknown(_) => {}
        }
        self.tick();
        Ok(())
    }

    /// Tells of a round and of its calls, a line each; of all else there are words of its own.
    fn tell(&mut self, entry: &Arc<Entry>) {
        let Some(story) = &mut self.story else {
            return;
        };
        let lines = story.lines(entry);
        if matches!(entry.event, Event::Response(_) | Event::Result(_)) {
            for line in lines {
                self.term.say(&line).ok();
            }
        }
    }

    fn note(&mut self, note: &Note) {
        let look = match note {
            // It is told with what is done then.
            Note::SummaryFailed { .. } => return,
            Note::Check(check) if check.passed => Look::Faint,
            Note::Hook(hook) if !hook.failed && !hook.veto && hook.keep.is_empty() => return,
            Note::Hook(hook) if !hook.failed => Look::Plain,
            Note::Warning { .. }
            | Note::Torn(_)
            | Note::Damage { .. }
            | Note::Hook(_)
            | Note::Check(_) => Look::Bad,
        };
        self.say(look, &brief::note(note));
    }

    /// Shows what a compaction comes to.
    fn compaction(&mut self, told: &Notice) -> io::Result<()> {
        self.object(&Told::Notice(told.clone()))?;
        match told {
            Notice::Planned(planned) => {
                self.doing = notice::asks(planned);
                if self.people == People::All {
                    self.say(Look::Plain, &notice::line(told));
                }
            }
            Notice::Laid(_) => self.say(Look::Plain, &notice::line(told)),
            Notice::Failed(_) if self.people == People::Little => {}
            Notice::Failed(_) => self.say(Look::Bad, &notice::line(told)),
        }
        self.tick();
        Ok(())
    }

    fn delta(&mut self, request: EntryId, delta: &Delta) -> io::Result<()> {
        self.asked = request;
        let masks = self.term.masks();
        let (piece, doing) = match delta {
            Delta::Text(text) => (Piece::Text(self.text.take(masks, text)), "writing"),
            Delta::Reasoning(text) => {
                let piece = self.thoughts.take(masks, text);
                (Piece::Reasoning(piece), "thinking")
            }
            Delta::Call { name } => {
                self.pieces_end()?;
                (Piece::Call(name.clone()), "calling")
            }
            Delta::Reply(_) | Delta::Fault(_) => return Ok(()),
        };
        self.piece(piece)?;
        if self.doing != doing && !self.summarizes {
            self.begin(doing);
            self.tick();
        }
        Ok(())
    }

    /// Shows what was held back of a reply: no more of it comes.
    fn pieces_end(&mut self) -> io::Result<()> {
        let masks = self.term.masks();
        let (thoughts, text) = (self.thoughts.finish(masks), self.text.finish(masks));
        self.piece(Piece::Reasoning(thoughts))?;
        self.piece(Piece::Text(text))
    }

    /// Tells programs of a piece of a reply, unless it is empty.
    fn piece(&mut self, piece: Piece) -> io::Result<()> {
        let (Piece::Text(text) | Piece::Reasoning(text) | Piece::Call(text)) = &piece;
        if text.is_empty() {
            return Ok(());
        }
        let request = self.asked;
        self.object(&Told::Delta { request, piece })
    }

    fn next_call(&mut self) -> io::Result<()> {
        if let Some((_, name)) = self.open.front() {
            let name = name.clone();
            self.begin(&name);
            self.progress()?;
        }
        Ok(())
    }

    fn begin(&mut self, doing: &str) {
        doing.clone_into(&mut self.doing);
        self.since = self.clock.stopwatch();
    }

    /// Tells programs what the live line tells people.
    fn progress(&mut self) -> io::Result<()> {
        self.object(&Told::Progress {
            round: self.round,
            tokens: self.tokens,
            doing: self.doing.clone(),
            trigger: self.trigger,
        })
    }

    /// Shows the live line anew.
    pub(crate) fn tick(&mut self) {
        if !self.is_live() || self.round == 0 {
            return;
        }
        let (round, doing) = (self.round, &self.doing);
        let fill = brief::fill(self.tokens, self.trigger);
        let since = match self.since.ms() {
            ms @ 0..60_000 => format!("{} s", ms / 1_000),
            ms => amount::time(ms),
        };
        self.term
            .live(&format!("round {round} · {fill} · {doing} {since}"))
            .ok();
    }

    /// Writes a line to standard error, whoever reads it.
    pub(crate) fn say(&mut self, look: Look, text: &str) {
        if self.people != People::Little || look == Look::Bad {
            self.term.say(&[(look, text)]).ok();
        }
    }

    /// Writes an object to standard output, if programs read it.
    pub(crate) fn object(&mut self, told: &Told) -> io::Result<()> {
        if self.json {
            self.term.print_json(&serde_json::to_string(told)?)?;
        }
        Ok(())
    }

    /// Writes the answer to standard output, if people read it.
    pub(crate) fn answer(&mut self, text: &str) -> io::Result<()> {
        if !self.json {
            self.term.answer(text)?;
        }
        Ok(())
    }
}
