//! Policies tried on recorded runs, without a model.
//!
//! [`simulate`] plays a run again, request by request, with the settings of another policy: the view
//! and the plans are the real ones, only the model is a recording. [`Outcome`] is what that comes to,
//! [`outcomes`] tries many policies on many runs, [`search`] looks for a good one, [`plot`]
//! draws how the view grows. What a model would have said to a request that read differently, nobody
//! knows: the hidden results that it missed are counted as regret.

mod bill;
mod ids;
mod lines;
pub mod plot;
pub mod search;
mod retell;
mod sight;
mod simulate;
mod summarize;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use schemars::JsonSchema;
use serde::Serialize;

pub use bill::Prices;
pub use lines::QUOTE_CHARS;
pub use sight::{Half, Miss};
pub use simulate::{Played, simulate};
pub use summarize::Summaries;

use crate::id::EntryId;
use crate::lab::lines::Written;
use crate::setup::{Compaction, Model};
use crate::transcript::{Entry, Event, Purpose};

/// The window of a run that records none, in tokens.
pub const WINDOW: u64 = 200_000;

/// What a simulation is told beside the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// The context window of every model, in tokens; none: the recorded one, else [`WINDOW`].
    pub window: Option<u64>,
    /// What tokens cost.
    pub prices: Prices,
    /// How long summaries are.
    pub summaries: Summaries,
    /// What instructions and tools take that the runs do not hold, in tokens.
    pub overhead_tokens: u64,
}

impl Terms {
    fn window_of(&self, model: &Model) -> u64 {
        self.window.or(model.window).unwrap_or(WINDOW)
    }
}

/// A policy under a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// The name.
    pub name: String,
    /// The settings.
    pub policy: Compaction,
}

impl Contender {
    /// A policy under this name.
    pub fn new(name: impl Into<String>, policy: Compaction) -> Self {
        let name = name.into();
        Self { name, policy }
    }

    /// What every other policy is held against: no compaction.
    pub fn none() -> Self {
        let policy = Compaction {
            enabled: false,
            ..Compaction::default()
        };
        Self::new("none", policy)
    }

    /// The built-in policy, but with a pass whenever something is new.
    pub fn each_chance() -> Self {
        let mut policy = Compaction::default();
        policy.micro.min_gain_tokens = 0;
        Self::new("each chance", policy)
    }

    /// The built-in policy.
    pub fn built_in() -> Self {
        Self::new("default", Compaction::default())
    }
}

/// A recorded run that policies are tried on.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name, for people.
    pub name: String,
    entries: Vec<Arc<Entry>>,
    /// Whether another agent wrote it.
    is_imported: bool,
    /// The summaries that it recorded, in order.
    summaries: Vec<String>,
    /// The long lines of its entries, as digests.
    lines: HashMap<EntryId, Box<[u64]>>,
    /// What the calls of each response say.
    written: HashMap<EntryId, Vec<Written>>,
}

impl Source {
    /// The run of these entries.
    pub fn new(name: impl Into<String>, entries: Vec<Arc<Entry>>) -> Self {
        let mut source = Self {
            name: name.into(),
            entries: Vec::new(),
            is_imported: false,
            summaries: Vec::new(),
            lines: HashMap::new(),
            written: HashMap::new(),
        };
        let mut asked = HashMap::new();
        for entry in &entries {
            let long = lines::lines(entry);
            if !long.is_empty() {
                source.lines.insert(entry.id, long);
            }
            if let Event::Run(run) = &entry.event {
                source.is_imported = run.imported.is_some();
            } else if let Event::Request(request) = &entry.event {
                asked.insert(entry.id, &request.purpose);
            } else if let Event::Response(response) = &entry.event {
                if !response.calls.is_empty() {
                    source.written.insert(entry.id, lines::written(response));
                }
                let purpose = asked.get(&response.request);
                if let Some(Purpose::Summary(_) | Purpose::Combine(_)) = purpose {
                    source.summaries.push(response.text.clone());
                }
            }
        }
        source.entries = entries;
        source
    }

    /// The name of its file: of several runs in one, each has its number behind it.
    fn file(&self) -> &str {
        let numbered = self.name.rsplit_once(" #");
        let file = numbered.filter(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()));
        file.map_or(&*self.name, |(file, _)| file)
    }

    /// The number of requests of its rounds.
    pub fn requests(&self) -> usize {
        let rounds = self.entries.iter().filter(|entry| {
            matches!(&entry.event, Event::Request(request) if request.purpose == Purpose::Round)
        });
        rounds.count()
    }

    fn entry(&self, id: EntryId) -> Option<&Entry> {
        let place = self.entries.binary_search_by_key(&id, |entry| entry.id);
        self.entries.get(place.ok()?).map(Arc::as_ref)
    }

    fn written(&self, id: EntryId) -> &[Written] {
        let found = self.written.get(&id);
        found.map(Vec::as_slice).unwrap_or_default()
    }

    fn lines(&self, id: EntryId) -> &[u64] {
        self.lines.get(&id).map(AsRef::as_ref).unwrap_or_default()
    }
}

/// What was hidden, and what of it was missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Missed {
    /// How many were hidden at any time.
    pub hidden: u64,
    /// Of those, how many a later call fetched again.
    pub fetched: u64,
    /// Of those, from how many the model wrote a long line later that it could not read any more.
    pub quoted: u64,
    /// Those that were fetched again, quoted, or both.
    pub regretted: u64,
}

impl Missed {
    fn add(&mut self, other: &Self) {
        self.hidden += other.hidden;
        self.fetched += other.fetched;
        self.quoted += other.quoted;
        self.regretted += other.regretted;
    }
}

/// What a run comes to under a policy. Tokens are characters of bodies / 4.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Outcome {
    /// Requests of rounds.
    pub requests: u64,
    /// Their prompts together, in tokens.
    pub prompt_tokens: u64,
    /// What of them the provider had cached.
    pub cached_tokens: u64,
    /// Requests for summaries.
    pub summaries: u64,
    /// What they read and wrote, in tokens.
    pub summary_tokens: u64,
    /// What all of it costs, in tokens that are read afresh.
    pub cost: f64,
    /// Compactions: overlays that were laid together are one.
    pub passes: u64,
    /// Overlays laid.
    pub overlays: u64,
    /// The longest prompt of a round, in tokens.
    pub peak_tokens: u64,
    /// Requests that would not have fitted the window.
    pub too_long: u64,
    /// The round of the first of them; not of several runs together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_long_from: Option<u32>,
    /// Results that were hidden at any time, and regretted.
    #[serde(flatten)]
    pub results: Missed,
    /// The same of arguments that hold a line which could be quoted; they are no part of the regret.
    pub arguments: Missed,
    /// What was missed, with its place in the recorded run; not of several runs together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<Miss>,
    /// The run would have ended, because a summary could not be had.
    pub stopped: bool,
    /// Requests that would have fitted behind the first that would not.
    #[serde(skip)]
    pub fits_again: u64,
    /// The prompt of each request, in tokens.
    #[serde(skip)]
    pub sizes: Vec<u64>,
    /// The requests before which something was laid, counted from 1.
    #[serde(skip)]
    pub pass_at: Vec<u64>,
}

impl Outcome {
    /// Adds what another run comes to.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.prompt_tokens += other.prompt_tokens;
        self.cached_tokens += other.cached_tokens;
        self.summaries += other.summaries;
        self.summary_tokens += other.summary_tokens;
        self.cost += other.cost;
        self.passes += other.passes;
        self.overlays += other.overlays;
        self.peak_tokens = self.peak_tokens.max(other.peak_tokens);
        self.too_long += other.too_long;
        self.results.add(&other.results);
        self.arguments.add(&other.arguments);
        self.stopped |= other.stopped;
    }

    /// The part of the hidden results that was missed.
    pub fn regret(&self) -> f64 {
        ratio(self.results.regretted, self.results.hidden)
    }

    /// The sum of several.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        all.into_iter().for_each(|one| sum.add(one));
        sum
    }
}

/// A part of a whole; of nothing, none.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of tokens and of results are far below 2^52"
)]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Tries every policy on every run: for each run, what it comes to under each policy.
pub fn outcomes(sources: &[Source], contenders: &[Contender], terms: &Terms) -> Vec<Vec<Outcome>> {
    let mut order: Vec<usize> = (0..sources.len()).collect();
    // The longest first, so that no thread begins it last.
    order.sort_by_key(|place| std::cmp::Reverse(sources[*place].entries.len()));
    let jobs: Vec<(usize, usize)> = order
        .iter()
        .flat_map(|source| (0..contenders.len()).map(move |contender| (*source, contender)))
        .collect();
    let tried = each(&jobs, |(source, contender)| {
        simulate(&sources[*source], &contenders[*contender].policy, terms).outcome
    });
    let mut found: HashMap<(usize, usize), Outcome> = jobs.into_iter().zip(tried).collect();
    let mut of = |source| {
        let outcomes = (0..contenders.len()).filter_map(|it| found.remove(&(source, it)));
        outcomes.collect()
    };
    (0..sources.len()).map(&mut of).collect()
}

/// Does the same with every one, on all cores; what comes of it stands in their order.
pub fn each<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let done = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let turns = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(place) else { return };
            let result = work(one);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((place, result));
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 0..threads.min(all.len()) {
            scope.spawn(turns);
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}
