//! The side of [`Hands`](super::Hands) that works: takes orders, runs tools, answers each once.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::hands::{Answer, Ask, Order};
use crate::id::CallId;
use crate::tools::scope::Site;
use crate::tools::workspace::Workspace;
use crate::tools::{Outcome, bash, edit, read, write};

/// Serves until nobody can ask any more; then ends what still runs, and waits for it.
pub(super) async fn serve(
    workspace: Arc<Workspace>,
    mut asked: mpsc::UnboundedReceiver<Ask>,
    answer: mpsc::UnboundedSender<Answer>,
) {
    let mut running: HashMap<Id, (CallId, CancellationToken)> = HashMap::new();
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            ask = asked.recv() => match ask {
                Some(Ask::Order(order)) => {
                    let (call, cancel) = (order.call, CancellationToken::new());
                    let site = Arc::clone(&workspace);
                    let task = calls.spawn(perform(site, order, cancel.clone()));
                    running.insert(task.id(), (call, cancel));
                }
                Some(Ask::Cancel(call)) => {
                    for (_, cancel) in running.values().filter(|(other, _)| *other == call) {
                        cancel.cancel();
                    }
                }
                None => break,
            },
            Some(done) = calls.join_next_with_id() => {
                let (task, outcome) = match done {
                    Ok((task, outcome)) => (task, outcome),
                    Err(error) => (error.id(), failed()),
                };
                if let Some((call, _)) = running.remove(&task) {
                    answer.send(Answer { call, outcome }).ok();
                }
            }
        }
    }
    for (_, cancel) in running.values() {
        cancel.cancel();
    }
    while calls.join_next().await.is_some() {}
}

/// Performs one order.
async fn perform(workspace: Arc<Workspace>, order: Order, cancel: CancellationToken) -> Outcome {
    let Order {
        call,
        tool,
        arguments,
        cwd,
        known,
        chars,
    } = order;
    let site = Site {
        call,
        workspace,
        cwd,
        known,
        chars,
    };
    let outcome = match tool.as_str() {
        "Bash" => bash::run(&site, &arguments, &cancel).await,
        "Read" => file(read::run, site, arguments).await,
        "Write" => file(write::run, site, arguments).await,
        "Edit" => file(edit::run, site, arguments).await,
        _ => Outcome::error(format!("There is no tool {tool} here.")),
    };
    outcome.clipped(chars, call)
}

/// Runs a file tool where it may block. It is short: once begun it is not cut off.
async fn file(tool: fn(&Site, &str) -> Outcome, site: Site, arguments: String) -> Outcome {
    let done = tokio::task::spawn_blocking(move || tool(&site, &arguments)).await;
    done.unwrap_or_else(|_| failed())
}

/// The answer to a call whose tool did not come to an end of its own.
fn failed() -> Outcome {
    Outcome::error("The tool itself failed; what it did until then may have taken effect.")
}
