//! `TodoWrite` and `TodoRead`: the todo list of a run.
//!
//! Neither keeps anything: the list is what the newest `TodoWrite` in the transcript says.

use futures::future::{BoxFuture, FutureExt as _};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::exchange::ToolSpec;
use crate::id::CallId;
use crate::tools::{Call, Outcome, Tool, arguments, declared, schema};

/// The name by which the working state knows the tool that writes the list.
const WRITE: &str = "TodoWrite";

/// The tool by which the model writes its todo list.
#[derive(Clone, Copy, Debug, Default)]
pub struct TodoWrite;

/// The tool by which the model reads its todo list.
#[derive(Clone, Copy, Debug, Default)]
pub struct TodoRead;

/// The arguments of `TodoWrite`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// The whole list, in the order of the work.
    #[schemars(length(max = 100))]
    todos: Vec<Todo>,
}

/// One item.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Todo {
    /// What is to be done, in a few words.
    #[schemars(length(min = 1, max = 500))]
    content: String,
    /// How far it is.
    status: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum State {
    Pending,
    #[serde(rename = "in_progress")]
    Started,
    Completed,
}

/// The arguments of `TodoRead`: none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl Tool for TodoWrite {
    fn spec(&self) -> ToolSpec {
        declared::spec(WRITE, schema::of::<List>())
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        let outcome = match serde_json::from_str::<List>(call.arguments) {
            Ok(list) => Outcome::ok(list.count()),
            Err(error) => Outcome::error(format!("The arguments do not fit: {error}")),
        };
        futures::future::ready(outcome).boxed()
    }
}

impl Tool for TodoRead {
    fn spec(&self) -> ToolSpec {
        declared::spec("TodoRead", schema::of::<Nothing>())
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        let text = match newest(&call) {
            Some(list) if list.todos.is_empty() => "The todo list is empty.".to_owned(),
            Some(list) => list.text(),
            None => "There is no todo list yet; TodoWrite begins one.".to_owned(),
        };
        futures::future::ready(Outcome::ok(text)).boxed()
    }
}

impl List {
    /// The list that a call wrote, from the arguments as the model gave them.
    fn written(arguments: &str) -> Option<Self> {
        let (text, _) = arguments::decode(arguments).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// How many items there are of each kind.
    fn count(&self) -> String {
        let all = self.todos.len();
        let of = |status| {
            let todos = self.todos.iter().filter(|todo| todo.status == status);
            todos.count()
        };
        let counts = [
            (of(State::Completed), "completed"),
            (of(State::Started), "in progress"),
            (of(State::Pending), "pending"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        match all {
            0 => "Noted: the todo list is empty.".to_owned(),
            1 => format!("Noted: 1 todo, {}.", counts.join(", ")),
            _ => format!("Noted: {all} todos, {}.", counts.join(", ")),
        }
    }

    /// The items, one a line.
    fn text(&self) -> String {
        let lines = (1..).zip(&self.todos).map(|(number, todo)| {
            let status = match todo.status {
                State::Pending => "pending",
                State::Started => "in_progress",
                State::Completed => "completed",
            };
            let words: Vec<&str> = todo.content.split_whitespace().collect();
            format!("{number}. [{status}] {}", words.join(" "))
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The newest list before a call: of the same reply, whose results are not in the view yet, or
/// else of the rounds before.
fn newest(call: &Call<'_>) -> Option<List> {
    let written = |id: CallId| List::written(&call.view.tool_call(id)?.arguments);
    let before = (1..call.id.place).rev();
    let own = before
        .map(|place| CallId::new(call.id.response, place))
        .filter(|id| {
            let made = call.view.tool_call(*id);
            made.is_some_and(|made| made.name == WRITE)
        })
        .find_map(written);
    own.or_else(|| written(call.view.working().todo?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::exchange::Status;
    use crate::id::EntryId;
    use crate::tools::{Place, Toolbox};
    use crate::transcript::Entry;
    use crate::view::View;

    /// A view of a task and one reply with these calls, the results of the first `answered` of
    /// which are there.
    fn view(calls: &[(&str, &str)], answered: usize) -> View {
        let mut view = View::default();
        let mut push = |event: serde_json::Value| {
            let id = view.transcript().next_id();
            let mut entry = serde_json::json!({"id": id, "at": "2026-11-21T20:00:00Z"});
            for (key, value) in event.as_object().unwrap() {
                entry[key] = value.clone();
            }
            let entry: Entry = serde_json::from_str(&entry.to_string()).unwrap();
            view.take(Arc::new(entry));
        };
        let run = "01890a5d-ac96-774b-bcce-b302099a8057";
        push(
            serde_json::json!({"type": "run", "format": 1, "run": run, "workspace": "/w",
            "generator": "g"}),
        );
        push(serde_json::json!({"type": "user", "origin": "task", "text": "t"}));
        let body = serde_json::json!({"sha256": format!("sha256:{}", "0".repeat(64)), "bytes": 1});
        let estimate = serde_json::json!({"chars": 1, "base": 1, "factor": 1000, "tokens": 1});
        push(
            serde_json::json!({"type": "request", "purpose": {"kind": "round"}, "round": 1,
            "setup": 2, "renderer": 1, "body": body, "estimate": estimate}),
        );
        let made: Vec<_> = calls
            .iter()
            .map(|(name, arguments)| serde_json::json!({"name": name, "arguments": arguments}))
            .collect();
        push(
            serde_json::json!({"type": "response", "request": 3, "text": "", "calls": made,
            "ending": "complete"}),
        );
        for place in 1..=answered {
            push(
                serde_json::json!({"type": "result", "call": format!("4.{place}"),
                "status": "ok", "content": "done"}),
            );
        }
        view
    }

    /// What the last of these calls is answered when the first `answered` have their results.
    fn check(calls: &[(&str, &str)], answered: usize) -> String {
        let view = view(calls, answered);
        let toolbox = Toolbox::builtin();
        let (name, arguments) = calls.last().unwrap();
        let arguments = match toolbox.check(name, arguments) {
            Ok(arguments) => arguments,
            Err(wrong) => return wrong,
        };
        let Some(Place::Brain(tool)) = toolbox.find(name) else {
            panic!("{name} is answered beside the view");
        };
        let place = u32::try_from(calls.len()).unwrap();
        let blobs = |_| None;
        let call = Call {
            id: CallId::new(EntryId(4), place),
            arguments: &arguments,
            view: &view,
            blobs: &blobs,
        };
        let outcome = tool.call(call).now_or_never().unwrap();
        assert_eq!(outcome.status, Status::Ok);
        outcome.content
    }

    const THREE: &str = r#"{"todos":[{"content":"read the test","status":"completed"},
        {"content":"mend the\nparser","status":"in_progress"},{"content":"run all tests","status":"pending"}]}"#;

    #[test]
    fn the_newest_list_is_read() {
        insta::assert_snapshot!(check(&[(WRITE, THREE)], 0), @"Noted: 3 todos, 1 completed, 1 in progress, 1 pending.");
        let expected = "1. [completed] read the test\n2. [in_progress] mend the parser\n\
                        3. [pending] run all tests";
        let read = ("TodoRead", "{}");
        assert_eq!(check(&[(WRITE, THREE), read], 1), expected);
        // As a string that holds the object, and in the same reply.
        let wrapped = serde_json::Value::from(THREE).to_string();
        for answered in [0, 1] {
            assert_eq!(check(&[(WRITE, &wrapped), read], answered), expected);
        }
        let empty = (WRITE, r#"{"todos":[]}"#);
        assert_eq!(check(&[empty], 0), "Noted: the todo list is empty.");
        let emptied = [(WRITE, THREE), empty, read];
        assert_eq!(check(&emptied, 2), "The todo list is empty.");
        // What did not fit wrote nothing.
        let wrong = [
            (WRITE, THREE),
            (WRITE, r#"{"todos":[{"content":"x"}]}"#),
            read,
        ];
        assert_eq!(check(&wrong, 1), expected);
        insta::assert_snapshot!(check(&[read], 0), @"There is no todo list yet; TodoWrite begins one.");
    }

    #[test]
    fn a_list_has_bounds() {
        let list = |count: usize, chars: usize| {
            let todo = serde_json::json!({"content": "ä".repeat(chars), "status": "pending"});
            serde_json::json!({"todos": vec![todo; count]}).to_string()
        };
        assert_eq!(
            check(&[(WRITE, &list(100, 500))], 0),
            "Noted: 100 todos, 100 pending."
        );
        insta::assert_snapshot!([list(101, 1), list(1, 501), list(1, 0), THREE.replace("pending", "open")]
            .map(|list| check(&[(WRITE, &list)], 0)).join("\n"), @r#"
            The call of TodoWrite did not run: /todos: value has more than 100 items.
            The call of TodoWrite did not run: /todos/0/content: value is longer than 500 characters.
            The call of TodoWrite did not run: /todos/0/content: "" is shorter than 1 character.
            The call of TodoWrite did not run: /todos/2/status: "open" is not one of "pending", "in_progress" or "completed".
            "#);
    }
}
