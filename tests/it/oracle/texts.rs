//! The texts that stand in the place of contents.

use serde_json::{Map, Value};

use undertext::exchange::{Status, ToolCall, ToolResult};
use undertext::id::{CallId, EntryId};
use undertext::overlay::{Author, Form, Stub, Summary};
use undertext::transcript::{Event, Speaker, User};

use super::{Past, placed};

const CARRIED: &str = "[CARRIED OVER - the runtime shows this again from what is summarized above]";

impl Past<'_> {
    pub(super) fn stub(
        &self,
        overlay: EntryId,
        stub: &Stub,
        call: &ToolCall,
        result: &ToolResult,
    ) -> String {
        let (name, handle) = (&call.name, result.call);
        match (stub.form, stub.by.get(&handle)) {
            (Form::Previous, _) | (Form::Stale, None) => {
                let ok = result.status == Status::Ok;
                let status = if ok {
                    String::new()
                } else {
                    format!("{}, ", result.status.word())
                };
                let size = counted(result.content.lines().count() as u64, "line", "lines");
                format!("[Previous: used {name}] Recall {handle} shows it ({status}{size})")
            }
            (Form::Stale, Some(by)) => {
                format!("[Previous: used {name}] stale since {by}, Recall {handle} shows it")
            }
            (Form::Compacted, _) => {
                let ok = result.status == Status::Ok;
                let word = if ok { "success" } else { result.status.word() };
                let labels = match self.labels(overlay, call) {
                    labels if labels.is_empty() => labels,
                    labels => format!(" ({labels})"),
                };
                format!("[compacted] {name}: {word}{labels} Recall {handle} shows it")
            }
        }
    }

    fn labels(&self, overlay: EntryId, call: &ToolCall) -> String {
        let tools = self
            .setup_before(overlay)
            .map_or(&[][..], |setup| &setup.wire.tools);
        let names = tools
            .iter()
            .find(|tool| tool.name == call.name)
            .map(|tool| &tool.meta.labels);
        let arguments: Map<String, Value> =
            serde_json::from_str(&call.arguments).unwrap_or_default();
        let values = names
            .into_iter()
            .flatten()
            .filter_map(|name| arguments.get(name));
        let texts: Vec<_> = values
            .map(|value| {
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned)
            })
            .collect();
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let whole: Vec<char> = texts.join(", ").chars().map(plain).collect();
        if whole.len() <= 120 {
            whole.into_iter().collect()
        } else {
            whole[..119].iter().chain(&['…']).collect()
        }
    }

    pub(super) fn summary(&self, id: EntryId, summary: &Summary) -> String {
        let (from, to) = (summary.span.from, summary.span.to);
        let size = counted((to.0 - from.0).saturating_add(1), "entry", "entries");
        let numbers: Vec<_> = (1..)
            .zip(&self.rounds)
            .filter(|(_, round)| {
                let request = round.requests[0];
                from <= request && request <= to && request < id
            })
            .map(|(number, _): (u64, _)| number)
            .collect();
        let rounds = match numbers[..] {
            [] => String::new(),
            [only] => format!("round {only}, "),
            [first, .., last] => format!("rounds {first} to {last}, "),
        };
        let text = &summary.text;
        let whose = if summary.by == Author::User {
            "The user wrote this summary in place of older entries."
        } else {
            "The runtime made this summary in place of older entries; it is not from the user."
        };
        format!(
            "[CONVERSATION HISTORY SUMMARY - {size}, {rounds}overlay {id}]\n\
             {whose} Recall {id} shows what it covers.\n\n\
             {text}\n\
             [END SUMMARY - Recent conversation continues below]"
        )
    }

    /// What is shown again after the last summary.
    pub(super) fn carried(&self, overlay: EntryId, summary: &Summary) -> Option<String> {
        let carry = &summary.carry;
        let mut parts = vec![CARRIED.to_owned()];
        parts.extend(
            carry
                .entries
                .iter()
                .filter_map(|id| self.carried_entry(overlay, *id)),
        );
        parts.extend(
            carry
                .calls
                .iter()
                .filter_map(|call| self.carried_call(overlay, *call)),
        );
        let texts = [&carry.state, &carry.survival];
        parts.extend(texts.into_iter().filter(|text| !text.is_empty()).cloned());
        (parts.len() > 1).then(|| parts.join("\n\n"))
    }

    fn carried_entry(&self, overlay: EntryId, id: EntryId) -> Option<String> {
        if id >= overlay {
            return None;
        }
        if let Some(user) = self.user(id) {
            let speaker = match user.origin {
                Speaker::Task | Speaker::FollowUp => "user",
                Speaker::Hook | Speaker::Runtime => "runtime",
            };
            let text = self::user(user, |_| false);
            return Some(format!("[entry {id}, from the {speaker}]\n{text}"));
        }
        if let Some(response) = self.response(id) {
            return Some(format!(
                "[entry {id}, from the assistant]\n{}",
                response.text
            ));
        }
        let Event::Result(result) = self.event(id)? else {
            return None;
        };
        if result.call.response >= overlay {
            return None;
        }
        let call = placed(self.response(result.call.response)?, result.call)?;
        Some(format!(
            "[entry {id}, result of {}]\n{}",
            call.name, result.content
        ))
    }

    fn carried_call(&self, overlay: EntryId, handle: CallId) -> Option<String> {
        let call = placed(self.item(handle.response)?, handle)?;
        let (at, result) = self.result(handle)?;
        let (name, arguments, content) = (&call.name, &call.arguments, &result.content);
        (handle.response < overlay && at < overlay)
            .then(|| format!("[call {handle}, {name} {arguments}]\n{content}"))
    }
}

fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A user entry as it reads, if these of its attachments are hidden.
pub(super) fn user(user: &User, hidden: impl Fn(u32) -> bool) -> String {
    let mut parts = vec![user.text.clone()];
    for (place, attachment) in (1..).zip(&user.attachments) {
        let (name, media, inner) = (&attachment.name, &attachment.media, &attachment.text);
        parts.push(if hidden(place) {
            let characters = inner.chars().count();
            format!("[attachment {name}, {characters} characters, hidden]")
        } else {
            format!("[attachment {name}, {media}]\n{inner}")
        });
    }
    parts.join("\n\n")
}
