//! Compaction by hand: what a person orders, and the plan that it becomes.
//!
//! An [`Order`] says what is to be done and where. [`Order::resolve`] turns its addresses into entry
//! ids, once, before anything is laid; [`plan()`] tries its stages, from left to right, on a copy of the
//! view, and leaves out what saves nothing; [`Plan::lay`] records what it came to. A dry run and a
//! real one share the plan. Nothing here asks a model: a plan that needs a summary says so by
//! [`Plan::wanted`], and is made again when the text is there.
//!
//! What an automatic pass leaves alone, a range by hand leaves alone as well: the first task, pins,
//! live state, the newest round. A single call or entry that is named by itself is not spared.

mod plan;
mod range;
mod report;
mod stages;
mod writing;

use std::fmt;
use std::str::FromStr;

pub use plan::{Plan, Step, plan};
pub use range::{Place, Resolved};
pub use report::{Hidden, LeftOut, Report, StepReport, Stretch};
pub use writing::{Wanted, Written};

use crate::address::Address;
use crate::exchange::{Hint, Treatment};
use crate::id::EntryId;
use crate::setup::Rule;

/// Rounds at the end that stay, unless something else is said.
const KEEP_LAST: u32 = 3;

/// What a person orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// What is to be done.
    pub work: Work,
    /// Where it begins; none: at the start.
    pub from: Option<Address>,
    /// Where it ends; none: before the rounds that stay.
    pub to: Option<Address>,
    /// Rounds at the start that stay; none: as the rule says, or none where a beginning is given.
    pub keep_first: Option<u32>,
    /// Rounds at the end that stay; none: as the rule says, or none where an end is given.
    pub keep_last: Option<u32>,
    /// What a summary must preserve.
    pub focus: Option<String>,
    /// The summary's text, written by the person.
    pub text: Option<String>,
    /// Whether older summaries are made anew, from what they cover.
    pub fresh: bool,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// What a named rule says.
    Rule(String, Rule),
    /// These, from left to right.
    Strategies(Vec<Strategy>),
    /// The layer of this overlay is laid anew.
    Again(EntryId),
}

impl Order {
    /// An order to do this on all rounds but those that stay.
    pub fn new(work: Work) -> Self {
        Self {
            work,
            from: None,
            to: None,
            keep_first: None,
            keep_last: None,
            focus: None,
            text: None,
            fresh: false,
        }
    }

    /// The stages, in the order in which they are laid.
    fn stages(&self) -> Vec<Stage> {
        match &self.work {
            Work::Rule(_, rule) => {
                let tools = rule.tools.map(|asked| Stage::Calls("strip-tools", asked));
                let parts = [
                    rule.strip_reasoning.then_some(Stage::Reasoning),
                    rule.dedup.then_some(Stage::Dedup),
                    tools,
                    rule.strip_attachments.then_some(Stage::Attachments),
                    rule.summary.then_some(Stage::Summary),
                ];
                parts.into_iter().flatten().collect()
            }
            Work::Strategies(strategies) => {
                let mut stages = Vec::new();
                for stage in strategies.iter().map(|strategy| strategy.stage()) {
                    // A second time it would find nothing.
                    if !stages.contains(&stage) {
                        stages.push(stage);
                    }
                }
                stages
            }
            Work::Again(_) => Vec::new(),
        }
    }

    /// The rule that it names, if it names one.
    pub fn rule(&self) -> Option<&Rule> {
        match &self.work {
            Work::Rule(_, rule) => Some(rule),
            Work::Strategies(_) | Work::Again(_) => None,
        }
    }

    /// What a summary must preserve, by the person's word or the rule's.
    fn focus(&self) -> Option<String> {
        let said = self.focus.clone();
        said.or_else(|| self.rule()?.focus.clone())
    }

    /// Why the overlays are laid, for people.
    fn reason(&self) -> String {
        match &self.work {
            Work::Rule(name, _) => format!("by hand, rule {name}"),
            Work::Strategies(_) => "by hand".to_owned(),
            Work::Again(overlay) => format!("by hand, e{overlay} again"),
        }
    }

    /// Refuses what does not go together, whatever the run.
    fn check(&self) -> Result<(), Refused> {
        let stages = self.stages();
        let writes = |stage: &Stage| matches!(stage, Stage::Summary | Stage::Auto);
        let summaries = stages.iter().filter(|stage| writes(stage)).count();
        if summaries > 1 {
            return Err(Refused::TwoSummaries);
        }
        let about_text = self.focus.is_some() || self.text.is_some() || self.fresh;
        if about_text && summaries == 0 {
            return Err(Refused::NoSummary);
        }
        if self
            .text
            .as_ref()
            .is_some_and(|text| text.trim().is_empty())
        {
            return Err(Refused::EmptyText);
        }
        Ok(())
    }
}

/// What can be done to the rounds of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Reasoning is left out.
    StripReasoning,
    /// Calls are stripped as their tools' hints say.
    StripTools,
    /// Arguments are stripped, where the tool does not keep them.
    StripRequests,
    /// Results are stripped, where the tool does not keep them.
    StripResponses,
    /// Whole calls are left out, where the tool does not keep their results.
    OmitTools,
    /// Calls that a later one made superfluous are left out.
    DedupTools,
    /// The texts that were handed in with messages are left out.
    StripAttachments,
    /// Tools that were never called are no longer offered.
    PruneTools,
    /// A summary takes the place of the rounds.
    Summarize,
    /// What an automatic pass would do, until its target is reached.
    Auto,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::StripReasoning,
        Self::StripTools,
        Self::StripRequests,
        Self::StripResponses,
        Self::OmitTools,
        Self::DedupTools,
        Self::StripAttachments,
        Self::PruneTools,
        Self::Summarize,
        Self::Auto,
    ];

    /// The word by which it is named.
    pub fn word(self) -> &'static str {
        match self {
            Self::StripReasoning => "strip-reasoning",
            Self::StripTools => "strip-tools",
            Self::StripRequests => "strip-requests",
            Self::StripResponses => "strip-responses",
            Self::OmitTools => "omit-tools",
            Self::DedupTools => "dedup-tools",
            Self::StripAttachments => "strip-attachments",
            Self::PruneTools => "prune-tools",
            Self::Summarize => "summarize",
            Self::Auto => "auto",
        }
    }

    fn stage(self) -> Stage {
        use Treatment::{Keep, Omit, Strip};
        let calls = |request, response| Stage::Calls(self.word(), Hint::new(request, response));
        match self {
            Self::StripReasoning => Stage::Reasoning,
            Self::StripTools => calls(Strip, Strip),
            Self::StripRequests => calls(Strip, Keep),
            Self::StripResponses => calls(Keep, Strip),
            Self::OmitTools => calls(Omit, Omit),
            Self::DedupTools => Stage::Dedup,
            Self::StripAttachments => Stage::Attachments,
            Self::PruneTools => Stage::Prune,
            Self::Summarize => Stage::Summary,
            Self::Auto => Stage::Auto,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|strategy| strategy.word() == text);
        let word = || text.chars().take(40).collect();
        found.ok_or_else(|| UnknownStrategy { word: word() })
    }
}

/// A word names no strategy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no strategy is named `{word}`; there is {}", Strategy::ALL.map(Strategy::word).join(", "))]
pub struct UnknownStrategy {
    word: String,
}

/// One stage of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Reasoning,
    /// The name it goes by, and what is asked for where the tool does not say otherwise.
    Calls(&'static str, Hint),
    Dedup,
    Attachments,
    Prune,
    Summary,
    Auto,
}

/// An order is refused: nothing is planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The end lies before the beginning.
    #[error("{from} lies behind {to}; turn them round")]
    Inverted {
        /// Where it was to begin.
        from: Address,
        /// Where it was to end.
        to: Address,
    },
    /// There is no such overlay.
    #[error("e{0} is no overlay of this run; `undertext show` lists them")]
    NoOverlay(EntryId),
    /// The overlay stands.
    #[error("e{0} stands: laying it again would change nothing")]
    Stands(EntryId),
    /// The same was laid again already, and stands.
    #[error("e{overlay} stands again as e{other}: laying it once more would change nothing")]
    StandsAs {
        /// What was to be laid.
        overlay: EntryId,
        /// What stands.
        other: EntryId,
    },
    /// A summary that a person wrote is in the way.
    #[error(
        "a summary of {what} meets e{overlay}, which a person wrote for {written}; take that back \
         first (`undertext retract RUN e{overlay}`), or name other rounds"
    )]
    Written {
        /// What was ordered.
        what: Place,
        /// The summary.
        overlay: EntryId,
        /// What it covers.
        written: Place,
    },
    /// A text for a part of what a summary covers.
    #[error(
        "your text for {what} meets e{overlay}, a summary of {other}, and does not hold all of it; \
         it is not widened by itself: name all of those rounds, or others"
    )]
    Partly {
        /// What was ordered.
        what: Place,
        /// The summary.
        overlay: EntryId,
        /// What it covers.
        other: Place,
    },
    /// Texts by people would take more than their share.
    #[error("texts by people would take {tokens} tokens, and {most} are theirs; say it shorter")]
    Share {
        /// What they would take together.
        tokens: u64,
        /// What they may take.
        most: u64,
    },
    /// Two stages would each write a summary.
    #[error("auto ends with a summary where one is needed; name one of auto and summarize")]
    TwoSummaries,
    /// There is no summary that this could be about.
    #[error("a focus, a text or `fresh` is about a summary; add `--strategy summarize`")]
    NoSummary,
    /// The text says nothing.
    #[error("the summary's text is empty")]
    EmptyText,
    /// The run has recorded no settings.
    #[error("the run has no settings yet, so there is nothing to compact")]
    NoSettings,
}
