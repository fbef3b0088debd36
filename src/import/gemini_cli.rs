//! Gemini CLI: one object with all messages, or, newer, lines of which later ones change earlier ones.
//!
//! Calls and their results stand in the message that made them. Of lines, one with a known id takes
//! the place of the message, `$set` changes members of the whole, `$rewindTo` takes messages back.

use std::collections::HashMap;

use serde_json::Value;

use crate::exchange::{Reasoning, Status, Usage};
use crate::import::Unread;
use crate::import::fields;
use crate::import::lines::{string, take_list, text};
use crate::import::pen::Pen;
use crate::import::source::{Shape, Source};

/// The run of a session.
pub(super) fn read(source: &mut Source) -> Result<Vec<Pen>, Unread> {
    let mut pen = Pen::default();
    let (session, messages) = match source.shape()? {
        Shape::Lines => lines(source, &mut pen)?,
        Shape::List | Shape::Object => {
            let mut session = fields::whole(source)?;
            let messages = take_list(&mut session, "messages");
            (session, messages)
        }
    };
    let directory = session["directories"][0].as_str().unwrap_or_default();
    pen.run(directory, "", string(&session["sessionId"]));
    let mut models = messages.iter().map(|message| string(&message["model"]));
    pen.model(
        models.find(|name| !name.is_empty()).unwrap_or_default(),
        None,
    );
    for (number, message) in messages.into_iter().enumerate() {
        self::message(&mut pen, &number.to_string(), message);
    }
    Ok(vec![pen])
}

/// The session of a file of lines, and its messages as the last lines have them.
fn lines(source: &mut Source, pen: &mut Pen) -> Result<(Value, Vec<Value>), Unread> {
    let mut session = Value::Object(serde_json::Map::new());
    let mut messages: Vec<Value> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut lines = source.lines();
    while let Some(mut line) = lines.next()? {
        if let Some(to) = line["$rewindTo"].as_str() {
            let keep = places.get(to).copied().unwrap_or_default();
            pen.note(format!(
                "{} messages were taken back and are left out",
                messages.len().saturating_sub(keep)
            ));
            messages.truncate(keep);
            places.retain(|_, place| *place < keep);
        } else if line["$set"].is_object() {
            merge(&mut session, fields::take(&mut line, "$set"));
        } else if line["messages"].is_array() {
            merge(&mut session, line);
        } else if let Some(id) = line["id"].as_str() {
            if let Some(known) = places.get(id).and_then(|place| messages.get_mut(*place)) {
                *known = line;
            } else {
                places.insert(id.to_owned(), messages.len());
                messages.push(line);
            }
        } else if line["sessionId"].is_string() {
            merge(&mut session, line);
        } else {
            pen.skipped();
        }
    }
    (0..lines.skipped()).for_each(|_| pen.skipped());
    let set = take_list(&mut session, "messages");
    Ok((session, if set.is_empty() { messages } else { set }))
}

/// Sets the members of one object in another.
fn merge(session: &mut Value, set: Value) {
    if let (Value::Object(session), Value::Object(set)) = (session, set) {
        session.extend(set);
    }
}

fn message(pen: &mut Pen, key: &str, mut message: Value) {
    pen.at(fields::moment(&message["timestamp"]));
    let content = text(fields::take(&mut message, "content"));
    match string(&message["type"]) {
        "user" => pen.typed(content, Vec::new()),
        "gemini" => {
            pen.model(string(&message["model"]), None);
            for thought in take_list(&mut message, "thoughts") {
                let (subject, said) = (&thought["subject"], &thought["description"]);
                let text = format!("{}\n{}", string(subject), string(said));
                let (field, text) = ("thoughts".to_owned(), text.trim_matches('\n').to_owned());
                pen.thought(Some(key), Reasoning::Text { field, text });
            }
            pen.said(Some(key), &content);
            let mut calls = take_list(&mut message, "toolCalls");
            for call in &mut calls {
                let arguments = fields::arguments(fields::take(call, "args"));
                pen.called(
                    Some(key),
                    string(&call["id"]),
                    string(&call["name"]),
                    arguments,
                );
            }
            if let Some(usage) = counted(&message["tokens"]) {
                pen.usage(Some(key), usage);
            }
            for call in calls {
                answer(pen, call);
            }
        }
        kind => pen.note(format!("{kind}: {content}")),
    }
}

/// The result of a call, if one was recorded.
fn answer(pen: &mut Pen, mut call: Value) {
    pen.at(fields::moment(&call["timestamp"]));
    let result = match fields::take(&mut call, "result") {
        Value::Array(parts) => parts,
        one @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_)) => vec![one],
    };
    let result = result.into_iter().map(part).collect::<Vec<_>>().join(
        "
",
    );
    let status = match string(&call["status"]) {
        "success" => Status::Ok,
        "error" => Status::Error,
        "cancelled" => Status::Cancelled,
        _ if result.is_empty() => return,
        _ => Status::Ok,
    };
    pen.answered(string(&call["id"]), status, result);
}

/// The text of a part of a result.
fn part(mut part: Value) -> String {
    let response = part.pointer_mut("/functionResponse/response");
    let Some(mut response) = response.map(Value::take) else {
        return text(part);
    };
    for member in ["output", "error"] {
        let found = fields::take(&mut response, member);
        if !found.is_null() {
            return text(found);
        }
    }
    response.to_string()
}

/// What was counted; thoughts are part of what we call the output.
fn counted(tokens: &Value) -> Option<Usage> {
    let sum = |names: [&str; 2]| {
        let known = names.into_iter().filter_map(|name| tokens[name].as_u64());
        known.reduce(u64::saturating_add)
    };
    let found = Usage {
        input: sum(["input", "tool"]),
        cached: tokens["cached"].as_u64(),
        cache_write: None,
        output: sum(["output", "thoughts"]),
        reasoning: tokens["thoughts"].as_u64(),
    };
    (found != Usage::default()).then_some(found)
}

#[cfg(test)]
mod tests {
    use crate::import::Format;
    use crate::import::told::{survives, told};

    #[test]
    fn a_result_stands_beside_its_call() {
        let recording = r#"{"sessionId":"s","projectHash":"p","messages":[
            {"id":"1","type":"user","content":[{"text":"Fix"},{"text":"it."}],"timestamp":"2025-10-27T19:56:01.701Z"},
            {"id":"2","type":"info","content":"Update available"},
            {"id":"3","type":"gemini","content":"","model":"g","thoughts":[{"subject":"Plan","description":"Look."},{"subject":"","description":"Again."}],
             "tokens":{"input":100,"output":5,"cached":60,"thoughts":7,"tool":1,"total":113},
             "toolCalls":[
                {"id":"c1","name":"ls","args":{"path":"."},"status":"error","result":[{"functionResponse":{"id":"c1","response":{"error":"absolute!"}}}]},
                {"id":"c2","name":"ls","args":{"path":"/"},"status":"success","result":[{"functionResponse":{"response":{"output":"a"}}},{"text":"b"}]},
                {"id":"c3","name":"ls","args":{},"status":"success","result":[{"functionResponse":{"response":{"rows":[1]}}}]},
                {"id":"c4","name":"rm","args":{},"status":"cancelled"},
                {"id":"c5","name":"rm","args":{},"status":"executing"}]},
            {"id":"4","type":"gemini","content":"Done.","model":"g"}]}"#;
        survives("session-1.json", Format::GeminiCli, recording);
        insta::assert_snapshot!(told("session-1.json", recording), @r#"
        run gemini-cli session "s"
        setup g ""
        Task "Fix\nit."
        note "info: Update available"
        Complete "" thought "Plan\nLook." thought "Again." c1:ls{"path":"."} c2:ls{"path":"/"} c3:ls{} c4:rm{} c5:rm{} (101 60 - 12 7)
          result 6.1 error "absolute!"
          result 6.2 ok "a\nb"
          result 6.3 ok "{\"rows\":[1]}"
          result 6.4 cancelled ""
          result 6.5 interrupted "interrupted, effect unknown"
        Complete "Done."
        "#);
    }

    #[test]
    fn later_lines_change_earlier_ones() {
        let recording = [
            r#"{"sessionId":"s","projectHash":"p","kind":"main"}"#,
            r#"{"id":"1","type":"user","content":"Fix it."}"#,
            r#"{"id":"2","type":"gemini","content":"Hal"}"#,
            r#"{"$set":{"directories":["/w"]}}"#,
            r#"{"id":"2","type":"gemini","content":"Half done.","model":"g"}"#,
            r#"{"id":"3","type":"user","content":"A slip."}"#,
            r#"{"id":"4","type":"gemini","content":"What?"}"#,
            r#"{"$rewindTo":"3"}"#,
            r#"{"id":"3","type":"user","content":"Go on."}"#,
            "{\"torn",
            r#"{"odd":1}"#,
        ];
        survives("session-1.jsonl", Format::GeminiCli, &recording.join("\n"));
        insta::assert_snapshot!(told("session-1.jsonl", &recording.join("\n")), @r#"
        run gemini-cli in "/w" session "s" skipped "2"
        note "2 messages were taken back and are left out"
        setup g ""
        Task "Fix it."
        Complete "Half done."
        FollowUp "Go on."
        "#);
    }
}
