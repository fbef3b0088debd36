//! The strongest opinion on each content.
//!
//! A content keeps the opinions that stand on it, by overlay; laying adds one, retracting takes it
//! away, and how the content reads is looked up from what is left. So the order in which overlays
//! were laid hardly matters, and a retract uncovers exactly what its overlay alone covered.

use serde::{Deserialize, Serialize};

use crate::id::{CallId, EntryId};
use crate::overlay::Form;

/// How one content reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// As it is in its entry.
    Full,
    /// As a stub, laid by this overlay.
    Stubbed(Stubbed),
    /// Not at all, by this overlay.
    Hidden(EntryId),
}

/// The stub that a content reads as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stubbed {
    /// The overlay that laid it.
    pub overlay: EntryId,
    /// How it reads.
    pub form: Form,
    /// The later call that made a stale result so.
    pub by: Option<CallId>,
}

/// One overlay's opinion on a call or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Opinion {
    /// The result reads as a stub.
    StubResult {
        /// How it reads.
        form: Form,
        /// The later call that made it stale.
        by: Option<CallId>,
    },
    /// The arguments read `{}`.
    StubArguments,
    /// The whole call is left out.
    Hide,
    /// Older stubs and hides are lifted.
    Show,
}

/// The opinions on one call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallLayers(Box<[(EntryId, Opinion)]>);

impl CallLayers {
    /// Lays an overlay's opinion.
    pub fn lay(&mut self, overlay: EntryId, opinion: Opinion) {
        self.0 = with(&mut self.0, (overlay, opinion));
    }

    /// Takes every opinion of an overlay away.
    pub fn retract(&mut self, overlay: EntryId) {
        let laid = std::mem::take(&mut self.0).into_iter();
        self.0 = laid.filter(|(laid, _)| *laid != overlay).collect();
    }

    /// The newest overlay whose `show` stands on the call.
    pub fn shown(&self) -> Option<EntryId> {
        self.newest(None, |opinion| matches!(opinion, Opinion::Show))
            .map(|(overlay, _)| overlay)
    }

    /// How the result reads, as far as this call's own layers go.
    pub fn result(&self) -> Reads {
        self.reads(|opinion| matches!(opinion, Opinion::StubResult { .. }))
    }

    /// How the arguments read, as far as this call's own layers go.
    pub fn arguments(&self) -> Reads {
        self.reads(|opinion| matches!(opinion, Opinion::StubArguments))
    }

    fn reads(&self, stubs: impl Fn(Opinion) -> bool) -> Reads {
        let shown = self.shown();
        if let Some((overlay, _)) = self.newest(shown, |o| matches!(o, Opinion::Hide)) {
            return Reads::Hidden(overlay);
        }
        match self.newest(shown, stubs) {
            Some((overlay, Opinion::StubResult { form, by })) => {
                Reads::Stubbed(Stubbed { overlay, form, by })
            }
            Some((overlay, Opinion::StubArguments | Opinion::Hide | Opinion::Show)) => {
                Reads::Stubbed(Stubbed {
                    overlay,
                    form: Form::Previous,
                    by: None,
                })
            }
            None => Reads::Full,
        }
    }

    /// The newest opinion of a kind that is newer than `after`.
    fn newest(
        &self,
        after: Option<EntryId>,
        kind: impl Fn(Opinion) -> bool,
    ) -> Option<(EntryId, Opinion)> {
        let standing = self.0.iter().filter(|(overlay, opinion)| {
            kind(*opinion) && after.is_none_or(|shown| *overlay > shown)
        });
        standing.copied().max_by_key(|(overlay, _)| *overlay)
    }
}

/// The overlays that hold one opinion on a content that knows only that one: hidden reasoning, a
/// hidden attachment, a hidden round, a summary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cover(Box<[EntryId]>);

impl Cover {
    /// Lays an overlay. Laying it twice is laying it once.
    pub fn lay(&mut self, overlay: EntryId) {
        if !self.0.contains(&overlay) {
            self.0 = with(&mut self.0, overlay);
        }
    }

    /// Takes an overlay away.
    pub fn retract(&mut self, overlay: EntryId) {
        let laid = std::mem::take(&mut self.0).into_iter();
        self.0 = laid.filter(|laid| *laid != overlay).collect();
    }

    /// The newest overlay that stands: the one whose opinion wins.
    pub fn newest(&self) -> Option<EntryId> {
        self.0.iter().copied().max()
    }
}

/// What is in a list and one more, in no more room than that takes: a long run has a list for each of
/// its calls, and hardly any is longer than one.
fn with<T>(list: &mut Box<[T]>, item: T) -> Box<[T]> {
    let mut list = std::mem::take(list).into_vec();
    list.reserve_exact(1);
    list.push(item);
    list.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREVIOUS: Opinion = Opinion::StubResult {
        form: Form::Previous,
        by: None,
    };
    const COMPACTED: Opinion = Opinion::StubResult {
        form: Form::Compacted,
        by: None,
    };

    fn check(opinions: &[(u64, Opinion)], result: &str, arguments: &str) {
        let mut layers = CallLayers::default();
        for (overlay, opinion) in opinions {
            layers.lay(EntryId(*overlay), *opinion);
        }
        let text = |reads| match reads {
            Reads::Full => "full".to_owned(),
            Reads::Stubbed(stub) => format!("stub {}", stub.overlay),
            Reads::Hidden(overlay) => format!("hidden {overlay}"),
        };
        assert_eq!(
            [text(layers.result()), text(layers.arguments())],
            [result, arguments]
        );
    }

    #[test]
    fn the_strongest_opinion_wins_and_among_equals_the_newest() {
        use Opinion::{Hide, Show, StubArguments};
        check(&[], "full", "full");
        check(&[(9, COMPACTED), (8, PREVIOUS)], "stub 9", "full");
        check(&[(8, Hide), (9, PREVIOUS)], "hidden 8", "hidden 8");
        check(&[(8, StubArguments), (9, PREVIOUS)], "stub 9", "stub 8");
        check(&[(8, PREVIOUS), (9, Show)], "full", "full");
        check(&[(8, Hide), (9, Show), (10, PREVIOUS)], "stub 10", "full");
        check(&[(7, Show), (8, Hide)], "hidden 8", "hidden 8");
    }

    #[test]
    fn a_retract_uncovers_what_its_overlay_alone_covered() {
        let mut layers = CallLayers::default();
        layers.lay(EntryId(8), PREVIOUS);
        layers.lay(EntryId(9), Opinion::Hide);
        layers.retract(EntryId(9));
        assert!(matches!(layers.result(), Reads::Stubbed(stub) if stub.overlay == EntryId(8)));
        layers.retract(EntryId(8));
        assert_eq!(layers.result(), Reads::Full);
    }
}
