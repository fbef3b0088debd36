//! A second simulation, which shares no code with the program and reads entries as plain JSON.
//!
//! A prompt is the request in compact JSON: model, system text, tools, and all messages before, those
//! that a recorded compaction covers replaced by its text; four characters are a token. What it has in
//! common with the beginning of the prompt before it costs a tenth if that was sent within five minutes.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

/// A message: the item it belongs to, its entry, its text, and how it reads when it is put away.
struct Message(u64, u64, String, Option<String>);

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}
fn reply(entry: &Value, id: u64) -> String {
    let calls = (1..).zip(list(entry, "calls")).map(|(place, call)| {
        let object = serde_json::from_str::<Map<String, Value>>(text(call, "arguments"));
        let arguments = object.map_or("{}", |_| text(call, "arguments"));
        let function = json!({"name": call["name"], "arguments": arguments});
        json!({"id": format!("call_{id}_{place}"), "type": "function", "function": function})
    });
    let (calls, said) = (calls.collect::<Vec<_>>(), &entry["text"]);
    let mut message = json!({"role": "assistant", "content": said, "tool_calls": calls});
    for block in list(entry, "reasoning").filter(|block| block["text"].is_string()) {
        let field = text(block, "field");
        message[field] = Value::from(text(&message, field).to_owned() + text(block, "text"));
    }
    let fields = message.as_object_mut().unwrap();
    fields.retain(|_, field| !field.is_null() && *field != json!([]));
    message.to_string()
}

/// Puts results away but the newest few, above so many characters, when that frees so many tokens.
pub(super) fn play(entries: &[Value], gain: Option<usize>, micro: [usize; 2]) -> (f64, f64) {
    let (mut messages, mut names) = (Vec::<Message>::new(), HashMap::<String, &str>::new());
    let (mut head, mut exempt) = (String::new(), Vec::<&Value>::new());
    let (mut ids, mut laid, mut asked) = (HashMap::<u64, u64>::new(), 0, 0);
    let (mut prompts, mut cost) = (0, 0.0);
    let (mut sent, mut changed) = (None::<(i64, usize, String)>, None::<(usize, String)>);
    let chars = |text: &str| text.chars().count();
    let id = |value: &Value| value.as_u64().unwrap();
    for entry in entries {
        let number = id(&entry["id"]);
        ids.insert(number, number + laid);
        match text(entry, "type") {
            "setup" => {
                let wire = &entry["wire"];
                let tool = |it: &Value| {
                    json!({"type": "function", "function": {"name": it["name"],
                        "description": it["description"], "parameters": it["schema"]}})
                };
                let tools: Vec<Value> = list(wire, "tools").map(tool).collect();
                let system = json!({"role": "system", "content": wire["instructions"]}).to_string();
                let system = Some(system).filter(|_| wire["instructions"] != "");
                let system = system.unwrap_or_default();
                let told = format!(",'tools':{}", json!(tools)).replace(",'tools':[]", "");
                let stream = r#"{"model":,"stream":true,"stream_options":{"include_usage":true}"#;
                let told = format!("{stream}{told},'messages':[");
                head = format!("{}{told}{system}", wire["models"]["main"]["name"]);
                exempt.extend(list(wire, "tools").filter(|it| it["meta"]["exempt"] == true));
            }
            "user" => {
                let said = format!("{}{}", text(entry, "text"), entry["attachments"]);
                let said = json!({"role": "user", "content": said}).to_string();
                messages.push(Message(number, number, said, None));
            }
            "response" => {
                for (place, call) in (1..).zip(list(entry, "calls")) {
                    names.insert(format!("{number}.{place}"), text(call, "name"));
                }
                if entry["text"].is_string() || entry["calls"].is_array() {
                    messages.push(Message(number, number, reply(entry, ids[&number]), None));
                }
            }
            "result" => {
                let (call, content) = (text(entry, "call"), text(entry, "content"));
                let (of, place) = call.split_once('.').unwrap();
                let (of, name) = (of.parse().unwrap(), names[call]);
                let handle = format!("{}.{place}", ids[&of]);
                let wire = format!("call_{}", handle.replace('.', "_"));
                let tool = |content: &str| {
                    json!({"role": "tool", "tool_call_id": wire, "content": content}).to_string()
                };
                let status = format!("{}, ", text(entry, "status")).replace("ok, ", "");
                let count = content.lines().count();
                let lines = if count == 1 { "line" } else { "lines" };
                let told = format!("Recall {handle} shows it ({status}{count} {lines})");
                let stub = tool(&format!("[Previous: used {name}] {told}"));
                let may = chars(content) > micro[1] && exempt.iter().all(|it| it["name"] != name);
                let may = may && chars(&stub) < chars(&tool(content));
                let stub = Some(if may { stub } else { String::new() });
                messages.push(Message(of, number, tool(content), stub));
            }
            "overlay" => {
                let (layer, span) = (&entry["layer"], &entry["layer"]["span"]);
                let covered = |it: &Message| it.0 >= id(&span[0]) && it.0 <= id(&span[1]);
                let first = messages.iter().position(covered).unwrap();
                let of = messages[first].0;
                changed = Some((first, messages[first].2.clone()));
                let shown: Vec<u64> = list(&layer["carry"], "entries").map(id).collect();
                let again = entries.iter().filter(|it| shown.contains(&id(&it["id"])));
                let again: String = again.map(|it| text(it, "text")).collect();
                let whole = format!("{:550}{again}{}", "", text(layer, "text"));
                let whole = json!({"role": "user", "content": whole}).to_string();
                messages.retain(|it| !covered(it));
                messages.insert(first, Message(of, of, whole, None));
            }
            "request" => {
                let results = messages.iter_mut().enumerate();
                let mut old: Vec<_> = results.filter(|(_, it)| it.3.is_some()).collect();
                old.truncate(old.len().saturating_sub(micro[0]));
                old.retain(|(_, it)| it.1 < asked && it.3.as_deref() != Some(""));
                let saves = |it: &Message| chars(&it.2) - it.3.as_deref().map_or(0, chars);
                let freed = old.iter().map(|(_, it)| saves(it)).sum::<usize>();
                if !old.is_empty() && gain.is_some_and(|gain| freed.div_ceil(4) >= gain) {
                    let first = (old[0].0, old[0].1.2.clone());
                    changed = changed.filter(|it| it.0 <= first.0).or(Some(first));
                    let old = old.into_iter().map(|(_, it)| it);
                    old.for_each(|it| it.2 = it.3.replace(String::new()).unwrap());
                    laid += 1;
                }
                let at: jiff::Timestamp = text(entry, "at").parse().unwrap();
                let at = at.as_millisecond();
                let length = |it: &[Message]| it.iter().map(|it| chars(&it.2) + 1).sum::<usize>();
                let prompt = chars(&head) + length(&messages);
                let last = sent.as_ref();
                let warm = last.filter(|it| at - it.0 <= 300_000 && it.2 == head);
                let cached = match (warm, &changed) {
                    (None, _) => 0,
                    (Some((_, all, _)), None) => *all,
                    (Some(_), Some((place, old))) => {
                        let both = old.chars().zip(messages[*place].2.chars());
                        let alike = both.take_while(|(one, other)| one == other).count();
                        chars(&head) + length(&messages[..*place]) + alike
                    }
                };
                prompts += prompt;
                cost += (prompt - cached) as f64 + cached as f64 / 10.0;
                (asked, sent, changed) = (number, Some((at, prompt, head.clone())), None);
            }
            _ => {}
        }
    }
    (prompts as f64, cost)
}
