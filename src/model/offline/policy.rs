//! What is said next: rules in order, of which the first that applies answers.

use crate::model::Reply;
use crate::model::offline::acts::Acts;
use crate::model::offline::read::{Message, Request};
use crate::model::offline::seen::{Called, Fate, Seen};
use crate::model::offline::{WINDOW, diagnose, extract, look, mend, project, tell};

/// The reply to a request: a function of what it says, and of nothing else.
pub fn reply(request: &Request) -> Reply {
    if let Some(ask) = summary_ask(request) {
        return Reply::text(extract::extract(ask, &Seen::of(&request.messages)));
    }
    let mind = Mind::of(request);
    let seen = &mind.seen;
    if seen.steps.is_empty() {
        return look::plan(&mind);
    }
    if !mind.acts().has_shell() {
        return tell::no_shell(&mind);
    }
    let Some(test) = mind.test.as_deref().filter(|test| mind.was_run(test)) else {
        return look::look(&mind);
    };
    match seen.runs(test).next_back() {
        Some(run) if run.fate() == Fate::Good => tell::passed(&mind, test),
        Some(run) if is_unrun(run) && mind.newest_is_unrun(test) => mind
            .acts()
            .say("The test did not run; once more.")
            .test(test)
            .reply(),
        // What takes too long is no failure that could be read.
        Some(run) if run.is_endless() && seen.noted("Suspects:").is_none() => {
            tell::endless(&mind, test)
        }
        Some(_) | None if !mind.acts().has_edit() => tell::no_edit(&mind, test),
        Some(_) | None if seen.noted("Suspects:").is_none() => diagnose::diagnose(&mind, test),
        Some(_) | None => diagnose::weigh(&mind, test).unwrap_or_else(|| mend::mend(&mind, test)),
    }
}

/// What the runtime asks if it asks for a summary.
fn summary_ask(request: &Request) -> Option<&str> {
    let Some(Message::User(text)) = request.messages.last() else {
        return None;
    };
    let asks = text.starts_with("[undertext, not the user]")
        && (text.contains("Write a summary of the conversation above")
            || text.contains("Make one summary of them"));
    asks.then_some(text)
}

fn is_unrun(run: &Called) -> bool {
    let text = &run.result;
    ["[undertext]", "not run: ", "interrupted", "cancelled"]
        .iter()
        .any(|start| text.starts_with(start))
}

/// What the script knows when it answers.
#[derive(Clone, Debug)]
pub(super) struct Mind<'a> {
    pub(super) request: &'a Request,
    pub(super) seen: Seen,
    /// The command of the test.
    pub(super) test: Option<String>,
    /// The files of the project, if they are listed.
    pub(super) files: Option<Vec<String>>,
}

impl<'a> Mind<'a> {
    fn of(request: &'a Request) -> Self {
        let seen = Seen::of(&request.messages);
        let noted = seen.noted("Test: `").and_then(|text| text.split_once('`'));
        let test = noted.map(|(command, _)| command.to_owned());
        let test = test.or_else(|| project::command_in_task(&seen.task));
        let files = project::files(&seen);
        Self {
            request,
            seen,
            test,
            files,
        }
    }

    /// A reply to begin.
    pub(super) fn acts(&self) -> Acts<'a> {
        Acts::new(&self.request.tools)
    }

    fn was_run(&self, test: &str) -> bool {
        self.seen.runs(test).next().is_some() || self.seen.noted("Suspects:").is_some()
    }

    /// Whether the newest run of the test did not happen, and not only now and again.
    fn newest_is_unrun(&self, test: &str) -> bool {
        let unrun = self
            .seen
            .runs(test)
            .rev()
            .take_while(|run| is_unrun(run))
            .count();
        (1..4).contains(&unrun)
    }

    /// Whether it pays to ask for a compaction: there is much, and none was asked for of late.
    pub(super) fn is_full(&self) -> bool {
        let recent = self.seen.calls().rev().take(20);
        let tokens = u64::try_from(self.request.chars / 4).unwrap_or(u64::MAX);
        tokens > WINDOW / 5
            && self.acts().offer("Compact", "focus").is_some()
            && !recent.into_iter().any(|called| called.name == "Compact")
    }

    /// The items of the todo list.
    pub(super) fn todos(&self, repair: &str) -> Vec<String> {
        let test = match &self.test {
            Some(test) => format!("Run the test: `{test}`"),
            None => "Find the test and run it".to_owned(),
        };
        let repair = if repair.is_empty() {
            "Repair: one plain change at a time"
        } else {
            repair
        };
        vec![
            "List the files and read the notes".to_owned(),
            test,
            "Read the failure and find the suspects".to_owned(),
            repair.to_owned(),
            "Say what was done".to_owned(),
        ]
    }
}
