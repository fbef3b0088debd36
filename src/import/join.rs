//! Responses that came right behind another: one, since a request never ends with the model's own text.

use std::mem;

use crate::import::pen::{Draft, Pen, What};

/// Joins responses that nothing stands between; returns how many.
pub(super) fn join(pen: &mut Pen) -> u64 {
    let mut joined = 0;
    let mut before: Option<usize> = None;
    for item in &pen.items {
        match item.what {
            // What was asked for by itself stays by itself.
            What::Response(place) if pen.drafts[place].purpose.is_some() => before = None,
            What::Response(place) => {
                let speaks = |draft: &Draft| draft.calls.is_empty() && !draft.text.is_empty();
                let Some(earlier) = before.filter(|earlier| speaks(&pen.drafts[*earlier])) else {
                    before = Some(place);
                    continue;
                };
                let later = mem::take(&mut pen.drafts[place]);
                joined += u64::from(!later.text.is_empty() || !later.calls.is_empty());
                pen.drafts[earlier].add(later);
            }
            What::User(..) | What::Compacted(_) => before = None,
            What::Instructions(_)
            | What::Model(..)
            | What::Note(_)
            | What::Settings(_)
            | What::Change(_)
            | What::Reply(_) => {}
        }
    }
    joined
}

impl Draft {
    /// Adds what came right behind it.
    fn add(&mut self, later: Self) {
        if !self.text.is_empty() && !later.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(&later.text);
        self.reasoning.extend(later.reasoning);
        self.calls.extend(later.calls);
        self.usage = later.usage.or(self.usage);
        self.ending = later.ending.or(self.ending);
        self.finish = later.finish.or(self.finish.take());
        self.provider_request = later.provider_request.or(self.provider_request.take());
    }
}
