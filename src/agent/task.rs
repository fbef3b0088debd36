//! How a run is begun or taken up again: settings and the user's message are recorded.

use crate::agent::{Agent, AgentError, untaken};
use crate::exchange::Clipped;
use crate::record::Recorder;
use crate::setup::{Hooks, Setup};
use crate::tools::clip;
use crate::transcript::{Attachment, Event, Note, Speaker, User};
use crate::view::{SHORT_TEXT, Sizes, View};
use crate::wire::offered;

/// What a person says: the task, or a later message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The text.
    pub text: String,
    /// Texts handed in with it.
    pub attachments: Vec<Attachment>,
}

impl Task {
    /// A task without attachments.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            attachments: Vec::new(),
        }
    }
}

impl Agent {
    /// Records the settings, if they changed, and what the person says.
    pub(super) fn begin(
        &self,
        recorder: &mut Recorder,
        task: Option<Task>,
    ) -> Result<(), AgentError> {
        if task
            .as_ref()
            .is_some_and(|task| task.text.trim().is_empty())
        {
            return Err(AgentError::EmptyTask);
        }
        if self.setup.policy.check.is_some() && self.hands.is_none() {
            return Err(AgentError::NoHands);
        }
        let models = &self.setup.wire.models;
        let others = [models.summary.as_ref(), models.fallback.as_ref()];
        for model in std::iter::once(&models.main).chain(others.into_iter().flatten()) {
            offered::check(&self.setup.wire.tools, model)?;
        }
        let view = recorder.view();
        let first = view.working().task.is_none();
        let finished = view.ledger().is_finished();
        if task.is_none() && (first || finished) {
            return Err(AgentError::NoTask);
        }
        let mut setup = Setup::clone(&self.setup);
        let main = &mut setup.wire.models.main;
        // What a refusal taught about the window outlives the run's end, for the same model.
        let same = view
            .wire()
            .is_some_and(|wire| wire.models.main.name == main.name);
        if let Some(learned) = view.ledger().learned_window.filter(|_| same) {
            main.window = Some(main.window.map_or(learned, |window| window.min(learned)));
        }
        if same {
            untaken::leave_out_learned(view, main);
        }
        let hooks = self.hooks(&mut setup);
        // As it is recorded: what is kept out makes it no other one.
        let kept = Event::Setup(Box::new(setup.clone()));
        if let Event::Setup(kept) = recorder.kept_out().event(kept) {
            setup = *kept;
        }
        if view.setup() != Some(&setup) {
            self.record(recorder, Event::Setup(Box::new(setup)))?;
            if let Some(text) = hooks {
                self.record(recorder, Event::Note(Note::Warning { text }))?;
            }
        }
        if let Some(task) = task {
            let origin = if first {
                Speaker::Task
            } else {
                Speaker::FollowUp
            };
            let policy = &self.setup.policy;
            let sizes = recorder.view().sizes();
            let chars = sizes.map_or(policy.limits.text_chars, |sizes: Sizes| {
                sizes.text_chars(policy)
            });
            let user = user(recorder, origin, task, chars)?;
            self.record(recorder, Event::User(user))?;
        }
        recorder.sync()?;
        Ok(())
    }
}

impl Agent {
    /// Takes the hooks out of the settings if nothing can run them, and returns what is said of it.
    fn hooks(&self, setup: &mut Setup) -> Option<String> {
        let hooks = &mut setup.policy.compaction.hooks;
        if self.hands.is_some() || hooks.is_default() {
            return None;
        }
        *hooks = Hooks::default();
        Some("the hooks of compaction do not run: there are no hands to run them".to_owned())
    }
}

/// A message in the user's place, clipped to about this many characters, or fewer if its own
/// take more tokens than plain ones do; the whole is kept as a blob.
pub(super) fn user(
    recorder: &mut Recorder,
    origin: Speaker,
    task: Task,
    chars: u64,
) -> Result<User, AgentError> {
    let Task {
        text,
        mut attachments,
    } = task;
    let known = recorder.kept_out();
    let text = known.replace(&text).into_owned();
    for attachment in &mut attachments {
        attachment.text = known.replace(&attachment.text).into_owned();
    }
    let chars = scaled(recorder.view(), &text, chars);
    let entry = recorder.view().transcript().next_id();
    let (text, clipped) = match clip::clip_entry(&text, chars, entry) {
        Some(short) => {
            let blob = recorder.keep(text.as_bytes())?;
            (
                short,
                Some(Clipped {
                    bytes: text.len() as u64,
                    blob,
                }),
            )
        }
        None => (text, None),
    };
    let mut left = chars.saturating_sub(text.chars().count() as u64);
    // Short ones first: what they leave of an equal share is for the long ones.
    let mut by_length: Vec<&mut Attachment> = attachments.iter_mut().collect();
    by_length.sort_by_key(|attachment| attachment.text.len());
    let mut sharers = by_length.len() as u64;
    for attachment in by_length {
        let share = left / sharers;
        sharers -= 1;
        if let Some(short) = clip::clip_entry(&attachment.text, share.max(200), entry) {
            let blob = recorder.keep(attachment.text.as_bytes())?;
            attachment.clipped = Some(Clipped {
                bytes: attachment.text.len() as u64,
                blob,
            });
            attachment.text = short;
        }
        left = left.saturating_sub(attachment.text.chars().count() as u64);
    }
    Ok(User {
        origin,
        text,
        attachments,
        clipped,
    })
}

/// The characters that a text may have, fewer if its own take more tokens than plain ones do.
fn scaled(view: &View, text: &str, chars: u64) -> u64 {
    let Some(sizes) = view.sizes() else {
        return chars;
    };
    let all = text.chars().count() as u64;
    let (takes, plain) = (
        view.text_tokens(text),
        all.div_ceil(4) * sizes.factor / 1000,
    );
    if takes > plain && all > SHORT_TEXT {
        (chars * plain.max(1) / takes).max(SHORT_TEXT.min(chars))
    } else {
        chars
    }
}
