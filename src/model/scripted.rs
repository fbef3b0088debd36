//! A model that answers from a list: for tests and for runs without a provider.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::{self, BoxStream, StreamExt as _};

use crate::exchange::Reasoning;
use crate::model::{Ask, Delta, Fault, Model, Reply};
use crate::transcript::FaultClass;

/// A function that answers a request.
type Answer = dyn Fn(&Ask) -> Result<Reply, Fault> + Send + Sync;

/// One answer.
#[derive(Clone)]
pub enum Script {
    /// A reply, piece by piece and then whole.
    Reply(Reply),
    /// A fault.
    Fault(Fault),
    /// Whatever the function makes of the request.
    With(Arc<Answer>),
    /// Nothing, for ever: whoever asks must stop waiting.
    Silence,
}

impl Script {
    /// An answer computed from the request.
    pub fn with(answer: impl Fn(&Ask) -> Result<Reply, Fault> + Send + Sync + 'static) -> Self {
        Self::With(Arc::new(answer))
    }
}

impl From<Reply> for Script {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

impl From<Fault> for Script {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply(reply) => f.debug_tuple("Reply").field(reply).finish(),
            Self::Fault(fault) => f.debug_tuple("Fault").field(fault).finish(),
            Self::With(_) => f.write_str("With(..)"),
            Self::Silence => f.write_str("Silence"),
        }
    }
}

/// A model that gives one answer after the other, and a fault of class local when there is none
/// left. It remembers what it was asked. Clones are the same model.
#[derive(Clone, Debug)]
pub struct Scripted {
    state: Arc<Mutex<State>>,
    summaries: Option<Script>,
}

#[derive(Debug)]
struct State {
    answers: VecDeque<Script>,
    asked: Vec<Ask>,
}

impl Scripted {
    /// A model with these answers.
    pub fn new(answers: impl IntoIterator<Item = Script>) -> Self {
        let state = State {
            answers: answers.into_iter().collect(),
            asked: Vec::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            summaries: None,
        }
    }

    /// The same model, in which requests for summaries take no answer from the list but are
    /// answered by a function.
    #[must_use]
    pub fn with_summaries(
        mut self,
        answer: impl Fn(&Ask) -> Result<Reply, Fault> + Send + Sync + 'static,
    ) -> Self {
        self.summaries = Some(Script::with(answer));
        self
    }

    /// Everything it was asked, oldest first.
    pub fn asked(&self) -> Vec<Ask> {
        self.state().asked.clone()
    }

    /// The number of answers that are left.
    pub fn left(&self) -> usize {
        self.state().answers.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of the request and takes its answer from where it stands.
    fn answer(&self, ask: &Ask) -> Script {
        let mut state = self.state();
        state.asked.push(ask.clone());
        let number = state.asked.len();
        let script = match &self.summaries {
            Some(script) if ask.summary => Some(script.clone()),
            _ => state.answers.pop_front(),
        };
        script.unwrap_or_else(|| {
            let message = format!("the script has no answer for request {number}");
            Script::Fault(Fault::new(FaultClass::Local, message))
        })
    }
}

impl Model for Scripted {
    fn ask(&self, ask: Ask) -> BoxStream<'static, Delta> {
        let answer = match self.answer(&ask) {
            Script::Reply(reply) => Ok(reply),
            Script::Fault(fault) => Err(fault),
            Script::With(answer) => answer(&ask),
            Script::Silence => return stream::pending().boxed(),
        };
        stream::iter(match answer {
            Ok(reply) => pieces(reply),
            Err(fault) => vec![Delta::Fault(Box::new(fault))],
        })
        .boxed()
    }
}

/// A reply as it would have come: reasoning, text line by line, calls, and the whole.
fn pieces(reply: Reply) -> Vec<Delta> {
    let reasoning = reply.reasoning.iter().filter_map(|block| match block {
        Reasoning::Text { text, .. } => Some(Delta::Reasoning(text.clone())),
        Reasoning::Raw { .. } => None,
    });
    let lines = reply.text.split_inclusive('\n');
    let text = lines.map(|line| Delta::Text(line.to_owned()));
    let calls = reply.calls.iter().map(|call| Delta::Call {
        name: call.name.clone(),
    });
    let mut pieces: Vec<Delta> = reasoning.chain(text).chain(calls).collect();
    pieces.push(Delta::Reply(Box::new(reply)));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::{self, Role};

    async fn ask(model: &Scripted, body: &str, summary: bool) -> Vec<Delta> {
        let ask = Ask {
            body: body.as_bytes().into(),
            model: setup::Model {
                name: "m".to_owned(),
                server: None,
                api: setup::Api::default(),
                profile: setup::Profile::default(),
                window: None,
                parameters: setup::Parameters::default(),
            },
            role: Role::Main,
            summary,
        };
        model.ask(ask).collect().await
    }

    #[tokio::test]
    async fn it_answers_in_order_and_says_when_the_list_is_over() {
        let fault = Fault::new(FaultClass::Rate, "slow down");
        let scripts = [
            Script::from(Reply::text("a\nb")),
            Script::from(fault.clone()),
            Script::with(|ask| Ok(Reply::text(String::from_utf8_lossy(&ask.body)))),
            Script::from(Reply::calls([("Read", "{}")])),
        ];
        let model = Scripted::new(scripts).with_summaries(|_| Ok(Reply::text("summary")));
        let whole = |reply| Delta::Reply(Box::new(reply));
        let text = |text: &str| Delta::Text(text.to_owned());

        assert_eq!(
            ask(&model, "1", false).await,
            [text("a\n"), text("b"), whole(Reply::text("a\nb"))]
        );
        assert_eq!(
            ask(&model, "2", true).await,
            [text("summary"), whole(Reply::text("summary"))]
        );
        assert_eq!(
            ask(&model, "3", false).await,
            [Delta::Fault(Box::new(fault))]
        );
        assert_eq!(
            ask(&model.clone(), "4", false).await,
            [text("4"), whole(Reply::text("4"))]
        );
        let name = "Read".to_owned();
        assert_eq!(
            ask(&model, "5", false).await,
            [Delta::Call { name }, whole(Reply::calls([("Read", "{}")]))]
        );
        let none = Fault::new(FaultClass::Local, "the script has no answer for request 6");
        assert_eq!(
            ask(&model, "6", false).await,
            [Delta::Fault(Box::new(none))]
        );

        let asked = model.asked();
        let bodies: Vec<_> = asked.iter().map(|ask| &*ask.body).collect();
        assert_eq!(bodies, [b"1", b"2", b"3", b"4", b"5", b"6"]);
        assert!(asked[1].summary && !asked[2].summary);
        assert_eq!(model.left(), 0);
    }
}
