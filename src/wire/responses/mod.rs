//! Responses: the head of a body, and each message as the items that it takes.
//!
//! Nothing is stored at the provider: each request carries its whole input, and reasoning comes
//! encrypted and goes back as it came. Items that a reply was made of stand again in their order.
//! Their ids go back only beside the reasoning they came with, because a provider that knows an id
//! misses the reasoning that compaction took away; ids of calls are ours, as they always are.

mod items;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use items::{BETWEEN, Placed, Several};

use crate::exchange::{Message, ToolSpec};
use crate::setup::{OutputFormat, OutputSchema, Profile, SchemaForm, SendBack};
use crate::wire::call::call_id;
use crate::wire::chat::{json, tools};
use crate::wire::string::string;
use crate::wire::{Head, lower};

/// Everything of a body before its first item.
pub fn head(head: &Head<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let (parameters, profile) = (&head.model.parameters, &head.model.profile);
    let takes = |name: &str| head.takes(name);
    out.extend_from_slice(b"{\"model\":");
    json(&mut out, &head.model.name);
    out.extend_from_slice(b",\"stream\":true");
    if takes("store") {
        out.extend_from_slice(b",\"store\":false");
    }
    if profile.reasoning.send_back == SendBack::Always && takes("include") {
        out.extend_from_slice(b",\"include\":[\"reasoning.encrypted_content\"]");
    }
    if let Some(tokens) = parameters.max_output_tokens
        && takes("max_output_tokens")
    {
        member(&mut out, "max_output_tokens", &tokens);
    }
    if let Some(temperature) = parameters.temperature
        && takes("temperature")
    {
        member(&mut out, "temperature", &temperature);
    }
    if let Some(effort) = &parameters.reasoning_effort
        && takes("reasoning")
    {
        out.extend_from_slice(b",\"reasoning\":{\"effort\":");
        json(&mut out, effort);
        out.push(b'}');
    }
    let key = parameters.cache_key.as_ref();
    if let Some(key) = key.filter(|_| profile.cache.key && takes("prompt_cache_key")) {
        member(&mut out, "prompt_cache_key", key);
    }
    for (name, value) in head.added() {
        member(&mut out, name, value);
    }
    tools(&mut out, head, tool);
    if let Some(schema) = head.form().filter(|_| takes("text")) {
        text_format(&mut out, schema, profile.output.format);
    }
    if !head.instructions.is_empty() {
        member(&mut out, "instructions", head.instructions);
    }
    out.extend_from_slice(b",\"input\":[");
    out
}

/// Appends a member, with a comma before it.
fn member(out: &mut Vec<u8>, name: &str, value: &(impl Serialize + ?Sized)) {
    out.push(b',');
    json(out, name);
    out.push(b':');
    json(out, value);
}

fn tool(out: &mut Vec<u8>, spec: &ToolSpec, form: SchemaForm) {
    out.extend_from_slice(b"{\"type\":\"function\",\"name\":");
    json(out, &spec.name);
    member(out, "description", &spec.description);
    out.extend_from_slice(b",\"parameters\":");
    match form {
        SchemaForm::Full => out.extend_from_slice(spec.schema.get().as_bytes()),
        SchemaForm::Plain => json(out, &lower::plain(spec.schema.get())),
    }
    // Unless told otherwise, the provider would make every parameter required.
    out.extend_from_slice(b",\"strict\":false}");
}

fn text_format(out: &mut Vec<u8>, output: &OutputSchema, format: OutputFormat) {
    match format {
        OutputFormat::JsonSchema => {
            out.extend_from_slice(b",\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":");
            json(out, &output.name);
            out.extend_from_slice(b",\"schema\":");
            out.extend_from_slice(output.schema.get().as_bytes());
            out.extend_from_slice(b"}}");
        }
        OutputFormat::JsonObject => {
            out.extend_from_slice(b",\"text\":{\"format\":{\"type\":\"json_object\"}}");
        }
        OutputFormat::None => {}
    }
}

/// One message as items, with commas between them.
pub fn message(out: &mut Vec<u8>, message: &Message<'_>, profile: &Profile) {
    match message {
        Message::User { text } => {
            out.extend_from_slice(b"{\"type\":\"message\",\"role\":\"user\",\"content\":");
            string(out, text);
            out.push(b'}');
        }
        Message::Assistant {
            text,
            reasoning,
            calls,
            extra,
        } => {
            let back = match profile.reasoning.send_back {
                SendBack::Always => reasoning.as_ref(),
                SendBack::Never => &[],
            };
            items::assistant(out, (text, extra.as_deref()), back, calls, profile);
        }
        Message::Tool { call, text } => {
            out.extend_from_slice(b"{\"type\":\"function_call_output\",\"call_id\":");
            string(out, &call_id(*call, &profile.calls));
            out.extend_from_slice(b",\"output\":");
            string(out, text);
            out.push(b'}');
        }
    }
}
