//! Inspect: a log of samples, zipped or as one object; each sample is a run.
//!
//! The messages of a sample are its context. Beside them stand events, which know what was counted,
//! which tools were offered and when. Long texts stand apart, as attachments by their hash.

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::io::{Cursor, Read as _};

use serde_json::Value;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::exchange::{Status, Usage};
use crate::import::Unread;
use crate::import::fields;
use crate::import::json;
use crate::import::lines::{string, take_list, take_text, text};
use crate::import::pen::Pen;
use crate::import::source::Source;
use crate::transcript::Speaker;

/// The most bytes that are read of a member of an archive.
const MEMBER: u64 = 512 << 20;

/// How a string begins that stands for an attachment.
const ATTACHMENT: &str = "attachment://";

/// The runs of a log.
pub(super) fn read(source: &mut Source) -> Result<Vec<Pen>, Unread> {
    let bytes = source.whole()?;
    if bytes.starts_with(b"PK") {
        return archive(bytes);
    }
    let mut log = json::parse(&bytes).map_err(|error| fields::unread(&error))?;
    drop(bytes);
    let samples = take_list(&mut log, "samples").into_iter();
    Ok(samples.map(|sample| self::sample(sample, &log)).collect())
}

/// The samples of an archive, by the names of their members.
fn archive(bytes: Vec<u8>) -> Result<Vec<Pen>, Unread> {
    let broken = |error: ZipError| Unread::Broken(format!("its archive is broken: {error}"));
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    let names = archive.file_names().collect::<Result<Vec<_>, _>>();
    let names = names.map_err(broken)?.into_iter();
    let samples = names.filter(|name| name.starts_with("samples/") && name.ends_with(".json"));
    let mut samples: Vec<String> = samples.map(Cow::into_owned).collect();
    samples.sort_unstable();
    let header = match member(&mut archive, "header.json") {
        Ok(header) => header,
        // A log that was never finished has none.
        Err(Unread::Broken(_)) => Value::Null,
        Err(error) => return Err(error),
    };
    let mut pens = Vec::new();
    let mut unread = Vec::new();
    for name in samples {
        match member(&mut archive, &name) {
            Ok(found) => pens.push(sample(found, &header)),
            Err(error) => unread.push(error),
        }
    }
    // One that is torn does not hold back the others.
    match (pens.first_mut(), unread.len()) {
        (Some(first), count) => (0..count).for_each(|_| first.skipped()),
        (None, 0) => {}
        (None, _) => return Err(unread.swap_remove(0)),
    }
    Ok(pens)
}

/// A member that is JSON.
fn member(archive: &mut ZipArchive<Cursor<Vec<u8>>>, name: &str) -> Result<Value, Unread> {
    let broken = |why: String| Unread::Broken(format!("its member {name} {why}"));
    let unread = |error: &dyn Error| broken(format!("cannot be read: {error}"));
    let member = archive.by_name(name).map_err(|error| unread(&error))?;
    let mut bytes = Vec::new();
    let read = member.take(MEMBER + 1).read_to_end(&mut bytes);
    read.map_err(|error| unread(&error))?;
    if bytes.len() as u64 > MEMBER {
        return Err(broken(format!("is longer than {MEMBER} bytes")));
    }
    json::parse(&bytes).map_err(|error| broken(format!("is no JSON: {error}")))
}

/// One sample, and what its log says of all.
fn sample(mut sample: Value, log: &Value) -> Pen {
    let mut pen = Pen::default();
    let attached = fields::take(&mut sample, "attachments");
    let eval = &log["eval"];
    let version = string(&eval["packages"]["inspect_ai"]);
    let (task, id) = (string(&eval["task"]), text(fields::take(&mut sample, "id")));
    let id = format!("{task} {id} {}", sample["epoch"]);
    pen.run("", version, id.trim());
    pen.model(string(&eval["model"]), None);
    pen.at(fields::moment(&sample["events"][0]["timestamp"]));
    let known = events(&mut pen, take_list(&mut sample, "events"), &attached);
    for (number, mut message) in take_list(&mut sample, "messages").into_iter().enumerate() {
        whole(&mut message, &attached);
        self::message(&mut pen, &number.to_string(), message, &known);
    }
    let error = fields::take(&mut sample, "error");
    if !error.is_null() {
        pen.note(format!("the sample failed: {}", string(&error["message"])));
    }
    pen
}

/// Puts attachments back where they stood.
fn whole(value: &mut Value, attached: &Value) {
    match value {
        Value::String(text) => {
            let hash = text.strip_prefix(ATTACHMENT);
            if let Some(found) = hash.and_then(|hash| attached[hash].as_str()) {
                found.clone_into(text);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| whole(value, attached)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|value| whole(value, attached)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What events say of a message or of a call.
#[derive(Default)]
struct Known {
    /// When it was there.
    at: Value,
    usage: Option<Usage>,
    finish: String,
}

/// What the events say, by the ids of messages and calls. Tools are told at once.
fn events(pen: &mut Pen, events: Vec<Value>, attached: &Value) -> HashMap<String, Known> {
    let mut known = HashMap::new();
    for mut event in events {
        let ended = fields::take(&mut event, "completed");
        let at = if ended.is_null() {
            fields::take(&mut event, "timestamp")
        } else {
            ended
        };
        match string(&event["event"]) {
            "model" => {
                let mut tools = fields::take(&mut event, "tools");
                whole(&mut tools, attached);
                fields::tools(pen, tools.as_array().map_or(&[], Vec::as_slice));
                let output = &event["output"];
                let choice = &output["choices"][0];
                let entry = Known {
                    at,
                    usage: counted(&output["usage"]),
                    finish: string(&choice["stop_reason"]).to_owned(),
                };
                known.insert(string(&choice["message"]["id"]).to_owned(), entry);
            }
            "tool" => {
                let entry = Known {
                    at,
                    ..Known::default()
                };
                known.insert(string(&event["id"]).to_owned(), entry);
            }
            _ => {}
        }
    }
    known
}

fn message(pen: &mut Pen, key: &str, mut message: Value, known: &HashMap<String, Known>) {
    let id = take_text(&mut message, "id");
    let content = fields::take(&mut message, "content");
    match string(&message["role"]) {
        "system" => pen.instructions(&text(content)),
        // What nobody put in was added by the solver.
        "user" if matches!(string(&message["source"]), "input" | "operator") => {
            pen.typed(text(content), Vec::new());
        }
        "user" => pen.user(Speaker::Runtime, text(content), Vec::new()),
        "assistant" => {
            let known = known.get(&id);
            pen.at(known.and_then(|known| fields::moment(&known.at)));
            said(pen, key, content);
            for mut call in take_list(&mut message, "tool_calls") {
                let name = take_text(&mut call, "function");
                let arguments = fields::arguments(fields::take(&mut call, "arguments"));
                pen.called(Some(key), string(&call["id"]), &name, arguments);
            }
            if let Some(known) = known {
                known
                    .usage
                    .into_iter()
                    .for_each(|usage| pen.usage(Some(key), usage));
                let ending = fields::ending(&known.finish);
                pen.ending(Some(key), ending, Some(&known.finish));
            }
        }
        "tool" => {
            let call = string(&message["tool_call_id"]);
            pen.at(known.get(call).and_then(|known| fields::moment(&known.at)));
            let (status, content) = answer(text(content), &message["error"]);
            pen.answered(call, status, content);
        }
        role => pen.note(format!("{role}: {}", text(content))),
    }
}

/// What the model said, part by part.
fn said(pen: &mut Pen, key: &str, content: Value) {
    let Value::Array(parts) = content else {
        pen.said(Some(key), &text(content));
        return;
    };
    for mut part in parts {
        if string(&part["type"]) != "reasoning" {
            pen.said(Some(key), &text(part));
            continue;
        }
        // What is redacted can be read in the summary, if at all.
        let readable = if part["redacted"] == true {
            "summary"
        } else {
            "reasoning"
        };
        pen.mused(Some(key), take_text(&mut part, readable));
    }
}

/// How a call went, and what the model read of it: what went wrong, where nothing else is said.
fn answer(content: String, error: &Value) -> (Status, String) {
    if error.is_null() {
        return (Status::Ok, content);
    }
    let status = match string(&error["type"]) {
        "timeout" => Status::Timeout,
        "approval" => Status::Denied,
        _ => Status::Error,
    };
    let said = string(&error["message"]);
    let content = match content.is_empty() {
        true => said.to_owned(),
        false if content.contains(said) => content,
        false => format!("{content}\n{said}"),
    };
    (status, content)
}

/// What was counted: reads and writes of the cache are left out of the input.
fn counted(usage: &Value) -> Option<Usage> {
    let read = usage["input_tokens_cache_read"].as_u64();
    let written = usage["input_tokens_cache_write"].as_u64();
    let input = usage["input_tokens"].as_u64()?;
    let all = [read, written].into_iter().flatten();
    Some(Usage {
        input: Some(all.fold(input, u64::saturating_add)),
        cached: read,
        cache_write: written,
        output: usage["output_tokens"].as_u64(),
        reasoning: usage["reasoning_tokens"].as_u64(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use zip::write::{SimpleFileOptions, ZipWriter};

    use crate::import::Format;
    use crate::import::told::{survives, told, told_bytes};

    const SAMPLE: &str = r#"{"id":"one","epoch":1,"attachments":{"h1":"Fix it.","h2":"all the output"},
        "messages":[
            {"id":"m0","role":"system","content":"You act."},
            {"id":"m1","role":"user","source":"input","content":"attachment://h1"},
            {"id":"m2","role":"assistant","content":[
                {"type":"reasoning","reasoning":"Hm.","signature":"s","redacted":false},
                {"type":"reasoning","reasoning":"opaque","redacted":true},
                {"type":"text","text":"Look."},{"type":"text","text":""}],
             "tool_calls":[{"id":"c1","function":"bash","arguments":{"cmd":"ls"}},{"id":"c2","function":"bash","arguments":{"cmd":"w"}}]},
            {"id":"m3","role":"tool","tool_call_id":"c1","content":"attachment://h2"},
            {"id":"m4","role":"tool","tool_call_id":"c2","content":"","error":{"type":"timeout","message":"too slow"}},
            {"id":"m5","role":"user","content":"[usage] 1,333"},
            {"id":"m6","role":"assistant","content":"Done."}],
        "events":[
            {"event":"sample_init","timestamp":"2025-09-14T21:23:49-07:00"},
            {"event":"model","timestamp":"2025-09-14T21:23:50-07:00","completed":"2025-09-14T21:23:56-07:00",
             "tools":[{"name":"bash","description":"Runs.","parameters":{"type":"object"}}],
             "output":{"choices":[{"message":{"id":"m2"},"stop_reason":"tool_calls"}],
                "usage":{"input_tokens":8,"output_tokens":221,"input_tokens_cache_write":4,"input_tokens_cache_read":1104,"reasoning_tokens":107}}},
            {"event":"tool","id":"c1","timestamp":"2025-09-14T21:23:57-07:00"}],
        "error":{"message":"out of time"}}"#;

    const HEADER: &str =
        r#"{"status":"error","eval":{"task":"t","model":"m","packages":{"inspect_ai":"0.3"}}}"#;

    fn zipped(members: &[(&str, &str)]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default();
        for (name, text) in members {
            writer.start_file(*name, options).unwrap();
            writer.write_all(text.as_bytes()).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn a_sample_is_a_run() {
        let members = [
            ("header.json", HEADER),
            ("samples/one_epoch_1.json", SAMPLE),
        ];
        let log = told_bytes("a.eval", &zipped(&members));
        // The name of the file says nothing that its beginning does not say.
        assert_eq!(told_bytes("-", &zipped(&members)), log);
        insta::assert_snapshot!(log, @r#"
        run inspect 0.3 session "t one 1"
        setup m "You act." bash={"type":"object"}
        Task "Fix it."
        Complete "Look." thought "Hm." c1:bash{"cmd":"ls"} c2:bash{"cmd":"w"} (1116 1104 4 221 107)
          result 5.1 ok "all the output"
          result 5.2 timeout "too slow"
        Runtime "[usage] 1,333"
        Complete "Done."
        note "the sample failed: out of time"
        "#);
        let inner = HEADER.strip_suffix('}').unwrap();
        let json = format!("{inner},\"samples\":[{SAMPLE},{SAMPLE}]}}").replace('\n', "");
        assert_eq!(told("a.json", &json), log.repeat(2));
        survives(
            "a.json",
            Format::Inspect,
            &json.replace(&format!(",{SAMPLE}"), ""),
        );
        // Without its header the log is one that was not finished.
        let torn = told_bytes("a.eval", &zipped(&members[1..]));
        assert_eq!(torn.lines().count(), log.lines().count());
    }

    #[test]
    fn an_archive_that_cannot_be_read_says_why() {
        let whole = zipped(&[("samples/one.json", SAMPLE)]);
        // The method stands in the header of the member and in the directory at the end.
        let mut other = whole.clone();
        let directory = whole.windows(4).rposition(|four| four == b"PK\x01\x02");
        for method in [8, directory.unwrap() + 10] {
            other[method] = 93;
        }
        for (bytes, says) in [
            (
                &whole[..whole.len() / 2],
                "its archive is broken: invalid Zip archive: Could not find EOCD",
            ),
            (
                &other[..],
                "its member samples/one.json cannot be read: compression method not supported: 93",
            ),
            (
                &zipped(&[("samples/one.json", "{")])[..],
                "its member samples/one.json is no JSON: EOF while parsing an object at line 1 column 1",
            ),
        ] {
            let said = format!("cannot understand a.eval as inspect: {says}\n");
            assert_eq!(told_bytes("a.eval", bytes), said);
        }
    }
}
