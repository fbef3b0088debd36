//! What the answers of a run teach about its models: how much they read, and which counts to doubt.

use serde::{Deserialize, Serialize};

use crate::id::EntryId;
use crate::setup::{Models, Role};
use crate::transcript::Request;

/// What was taught, as long as the models are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taught {
    names: Vec<Option<String>>,
    /// The largest estimate of a request that was answered, by the role that was asked.
    answered: [u64; 3],
    doubted: Option<EntryId>,
}

impl Taught {
    pub(super) fn take_setup(&mut self, models: &Models) {
        let all = [
            Some(&models.main),
            models.summary.as_ref(),
            models.fallback.as_ref(),
        ];
        let names = all.map(|model| model.map(|model| model.name.clone()));
        if self.names != names {
            let names = names.to_vec();
            *self = Self {
                names,
                ..Self::default()
            };
        }
    }

    pub(super) fn take_answered(&mut self, request: &Request) {
        let most = &mut self.answered[request.purpose.role() as usize];
        *most = request.estimate.tokens.max(*most);
    }

    pub(super) fn take_doubted(&mut self, response: EntryId) {
        self.doubted.get_or_insert(response);
    }

    /// The largest estimate of a request that the model in this role answered.
    pub fn answered(&self, role: Role) -> u64 {
        let [main, summary, fallback] = self.answered;
        let own = self
            .names
            .get(Role::Summary as usize)
            .is_some_and(Option::is_some);
        match role {
            Role::Main if own => main,
            Role::Summary if own => summary,
            Role::Main | Role::Summary => main.max(summary),
            Role::Fallback => fallback,
        }
    }

    /// The first response whose count of what was read is not believed.
    pub fn doubted(&self) -> Option<EntryId> {
        self.doubted
    }
}
