//! Old tool results are put away, and old arguments of tools that let theirs go, rarely and deeply.
//!
//! Each pass moves the prefix that the provider has cached, so it waits until it frees enough, in
//! tokens and beside what is then read afresh, or until the cache is cold anyway. As the first stage of
//! an automatic pass it takes any gain.

use crate::compaction::{Draft, Pass};
use crate::overlay::{Form, Layer, Origin, Size, Stub};
use crate::transcript::At;
use crate::view::{Parts, Sizes, View};

/// What micro-compaction sees when it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Calls of which something could be put away.
    pub candidates: usize,
    /// Tokens that would be freed.
    pub gain: u64,
    /// Tokens from which a pass is made.
    pub needed: u64,
    /// Whether the provider's cache is taken to be gone.
    pub cold: bool,
}

impl Look {
    /// Whether a pass is made now.
    pub fn fires(&self) -> bool {
        self.candidates > 0 && (self.gain >= self.needed || self.cold)
    }
}

impl std::fmt::Display for Look {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            candidates,
            gain,
            needed,
            cold,
        } = self;
        let unit = if *candidates == 1 {
            "candidate"
        } else {
            "candidates"
        };
        write!(f, "micro: {candidates} {unit}, {gain} of {needed} tokens")?;
        match (self.fires(), cold) {
            (true, true) => f.write_str(", cache is cold"),
            (true, false) => Ok(()),
            (false, _) => f.write_str(", waits"),
        }
    }
}

/// Looks at what could be put away now; `None` if micro-compaction is off.
pub fn look(view: &View, now: At) -> Option<Look> {
    let micro = &view.policy()?.compaction.micro;
    let sizes = view.sizes()?;
    let ripe = view.ripe();
    let asked = view.ledger().round_asked;
    let gain = view.tokens(ripe.saves);
    let mut needed = micro.min_gain_tokens.min(sizes.trigger / 10);
    // Who never waits does not wait for this either, and what frees too little need not be measured.
    if (1..=gain).contains(&needed)
        && let Some(first) = ripe.first
    {
        let behind = view.tokens(view.chars_from(first.response) - ripe.saves);
        needed = needed.max(Sizes::part_of(behind, micro.min_gain_ratio));
    }
    micro.enabled.then(|| Look {
        candidates: ripe.calls,
        gain,
        needed,
        cold: asked.is_some_and(|(_, at)| now.ms_since(at) >= micro.cold_after_ms),
    })
}

/// The pass that is due now, if any.
pub fn plan(view: &View, now: At) -> Option<Pass> {
    let look = look(view, now).filter(Look::fires)?;
    let before = view.estimate().tokens;
    let draft = Draft {
        rule: "micro",
        layer: layer(view)?,
        size: Size {
            before,
            after: before.saturating_sub(look.gain),
        },
        reason: format!(
            "{} of {} tokens{}",
            look.gain,
            look.needed,
            if look.cold { ", cache is cold" } else { "" }
        ),
    };
    Some(Pass {
        origin: Origin::Micro,
        drafts: vec![draft],
    })
}

/// The layer that puts every candidate away; `None` if there is none, or if micro-compaction is off.
pub fn layer(view: &View) -> Option<Layer> {
    if !view.policy()?.compaction.micro.enabled {
        return None;
    }
    let mut stub = Stub {
        form: Form::Previous,
        ..Stub::default()
    };
    for (call, candidate) in view.ripe_calls() {
        if candidate.part != Parts::Arguments {
            stub.results.push(call);
        }
        if candidate.part != Parts::Result {
            stub.arguments.push(call);
        }
    }
    let some = !stub.results.is_empty() || !stub.arguments.is_empty();
    some.then_some(Layer::Stub(stub))
}
