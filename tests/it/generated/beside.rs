//! What stands beside the calls of a reply and must not run, though much of it looks like a call.

use super::draw::Draw;

/// Another choice, in which a sound call stands that must not run.
pub(super) fn other_choice(of: &str) -> String {
    format!(
        "{{\"index\":1,\"{of}\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"other\",\"type\":\"function\",\"function\":\
         {{\"name\":\"Note\",\"arguments\":\"{{\\\"text\\\":\\\"other\\\"}}\"}}}}]}},\"finish_reason\":\"tool_calls\"}}"
    )
}

/// An event that says nothing.
pub(super) fn noise(draw: &mut Draw) -> String {
    match draw.below(8) {
        0 => format!("{{\"choices\":[{}]}}", other_choice("delta")),
        1 => format!("{{\"choices\":[{},{{\"index\":0,\"delta\":{{}}}}]}}", other_choice("delta")),
        2 => "{\"choices\":[{\"index\":0,\"delta\":{},\"message\":{\"content\":\"whole\"},\"finish_reason\":\"\"}]}".to_owned(),
        other => ["{\"type\":\"ping\"}", "{\"choices\":[]}", "{\"choices\":null,\"usage\":null}", "{\"choices\":[{\"delta\":null}]}", "ping"][other - 3].to_owned(),
    }
}

/// What the model says beside its calls: often something that looks like a call.
pub(super) fn text(draw: &mut Draw) -> String {
    draw.pick(&[
        "",
        "",
        "I look.",
        "{\"name\": \"Note\", \"arguments\": {\"text\": \"as text\"}}",
        "<tool_call>\n{\"name\": \"Note\", \"arguments\": {\"text\": \"as text\"}}\n</tool_call>",
        "<function=Note>\n<parameter=text>\nas text\n</parameter>\n</function>",
        "<invoke name=\"Status\">\n</invoke>",
        "```json\n{\"tool\": \"Status\", \"input\": {}}\n```",
        "[TOOL_CALLS][{\"name\": \"Status\", \"arguments\": {}}]",
        "<|python_tag|>Note(text=\"as text\")",
        "<think>I call it: {\"name\": \"Status\", \"arguments\": {}}</think>\nDone.",
        "<think>\n<tool_call>{\"name\": \"Status\", \"arguments\": {}}</tool_call>",
        "{\"tool_calls\":[{\"id\":\"x\",\"type\":\"function\",\"function\":{\"name\":\"Status\",\"arguments\":\"{}\"}}]}",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"Status\",\"arguments\":\"{}\"}}]}}]}\n\ndata: [DONE]\n\n",
    ])
    .to_owned()
}

/// Members of a message that hold reasoning, each behind a comma.
pub(super) fn thoughts(draw: &mut Draw) -> &'static str {
    draw.pick(&[
        "",
        "",
        "",
        ",\"reasoning_content\":\"I call {\\\"name\\\":\\\"Status\\\",\\\"arguments\\\":{}}\"",
        ",\"reasoning\":\"hm\",\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"hm\",\"tool_calls\":[{\"function\":{\"name\":\"Status\",\"arguments\":\"{}\"}}]}]",
        ",\"thinking\":\"<tool_call>{\\\"name\\\":\\\"Status\\\",\\\"arguments\\\":{}}</tool_call>\"",
        ",\"thinking_blocks\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"}]",
    ])
}
