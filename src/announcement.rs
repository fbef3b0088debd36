//! Replies that announce work and call nothing.
//!
//! A reply without a call ends a run, and models do not always know that: some say what they will
//! do next and stop, some write the call into their text. [`announced`] finds such replies by how
//! they end, in English, and rather misses one than takes a final account for one.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a reply announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Announcement {
    /// Work that is yet to be done.
    Work,
    /// A call, written into the text.
    Call,
}

/// The longest text that words alone make an announcement, in characters: a longer one is a report.
const LONG: usize = 1_500;

/// How a sentence begins whose speaker is about to work.
const BEGINNINGS: [&str; 9] = [
    "let me ",
    "let's ",
    "let us ",
    "i'll ",
    "i will ",
    "i'm going to ",
    "i am going to ",
    "i'm about to ",
    "proceeding ",
];

/// Words before such a beginning that change nothing.
const FILLERS: [&str; 17] = [
    "ok",
    "okay",
    "alright",
    "great",
    "good",
    "perfect",
    "right",
    "now",
    "next",
    "first",
    "then",
    "so",
    "and",
    "but",
    "finally",
    "therefore",
    "step",
];

/// What follows such a beginning where nothing is announced.
const HARMLESS: [&str; 23] = [
    "know",
    "not ",
    "never ",
    "leave ",
    "wait",
    "stop",
    "finish here",
    "note ",
    "also note ",
    "mention",
    "also mention",
    "point out",
    "be ",
    "need ",
    "gladly",
    "happily",
    "keep ",
    "assume",
    "hope",
    "explain",
    "summarize",
    "summarise",
    "let you",
];

/// What in a sentence leaves it to the reader what happens next.
const CONDITIONS: [&str; 8] = [
    "if you",
    "if needed",
    "once you",
    "when you",
    "unless you",
    "as soon as",
    "let me know",
    "until you",
];

/// What a complete reply without calls announces, given the names of the tools that it could have
/// called; `None` if it ends the work.
pub fn announced(text: &str, tools: &[&str]) -> Option<Announcement> {
    let text = spoken(text);
    if tools.is_empty() || text.is_empty() {
        return None;
    }
    let (before, block) = last_block(text);
    if block.is_some_and(|block| is_call(block, tools)) || is_call(last_paragraph(text), tools) {
        return Some(Announcement::Call);
    }
    let last = last_sentence(last_paragraph(before));
    let colon = block.is_none() && text.ends_with(':');
    let is_short = text.chars().count() <= LONG;
    (colon || is_short && is_about_to(&last)).then_some(Announcement::Work)
}

/// What a text says to its reader: without the thoughts before it that some servers leave in their
/// tags. Thoughts that never end are all there is.
pub fn spoken(text: &str) -> &str {
    let mut text = text.trim();
    for (open, close) in [("<think>", "</think>"), ("<thinking>", "</thinking>")] {
        while let Some(thoughts) = text.strip_prefix(open) {
            text = thoughts
                .split_once(close)
                .map_or("", |(_, said)| said.trim());
        }
        // The beginning may be missing, where the request ended with it.
        if text.ends_with(close) && !text.contains(open) {
            text = "";
        }
    }
    text
}

/// The text before the fenced block that ends it, and what stands in the block; the whole text if
/// none does.
fn last_block(text: &str) -> (&str, Option<&str>) {
    let parts = text.strip_suffix("```").and_then(|open| {
        let fence = open.rfind("```")?;
        let inside = &open[fence + 3..];
        // Behind the fence stands a language, or nothing.
        let (_, inside) = inside.split_once('\n')?;
        Some((open[..fence].trim_end(), Some(inside.trim())))
    });
    parts.unwrap_or((text, None))
}

/// What stands behind the last blank line.
fn last_paragraph(text: &str) -> &str {
    let blank = text.rfind("\n\n").map_or(0, |at| at + 2);
    text[blank..].trim()
}

/// The last sentence of a paragraph in lower case, without marks of emphasis and lists.
fn last_sentence(paragraph: &str) -> String {
    let plain: String = paragraph
        .to_lowercase()
        .replace('\u{2019}', "'")
        .replace("...", "\u{2026}")
        .chars()
        .filter(|c| !matches!(c, '*' | '_' | '`' | '#' | '>'))
        .collect();
    let plain = plain.trim();
    let ends = [". ", "! ", "? ", ".\n", "!\n", "?\n", ":\n", "\u{2026} "];
    let start = ends
        .iter()
        .filter_map(|end| plain.rfind(end).map(|at| at + end.len()))
        .max();
    let sentence = &plain[start.unwrap_or(0)..];
    sentence
        .trim_start_matches(|c: char| c.is_whitespace() || c == '-')
        .to_owned()
}

/// Whether the speaker of this sentence is about to work.
fn is_about_to(sentence: &str) -> bool {
    if sentence.ends_with('?') || CONDITIONS.iter().any(|it| sentence.contains(it)) {
        return false;
    }
    let clauses = sentence
        .split([',', ';', '\u{2014}'])
        .flat_map(|part| part.split(" - "))
        .map(without_fillers);
    clauses.into_iter().any(|clause| {
        let behind = BEGINNINGS.iter().find_map(|it| clause.strip_prefix(it));
        behind.is_some_and(|behind| {
            let behind = without_fillers(behind);
            !HARMLESS.iter().any(|it| behind.starts_with(it))
        })
    })
}

/// The clause without the words before it that change nothing.
fn without_fillers(clause: &str) -> &str {
    let mut rest = clause.trim_start();
    while let Some(shorter) = FILLERS.iter().find_map(|filler| {
        let behind = rest.strip_prefix(filler)?;
        let shorter = behind.trim_start_matches([' ', '!', ':', '.']);
        (shorter.len() < behind.len()).then_some(shorter)
    }) {
        rest = shorter;
    }
    rest
}

/// Whether this text is a call of one of the tools as some model would write it: JSON with a name
/// and arguments, tags, or the name before its arguments. Words may stand before it, not behind.
fn is_call(text: &str, tools: &[&str]) -> bool {
    let is_tool = |name: &str| tools.iter().any(|tool| tool.eq_ignore_ascii_case(name));
    let bare = text.trim().trim_end_matches("</tool_call>").trim();
    let json = bare.match_indices('{').take(3).find_map(|(at, _)| {
        let object = bare[at..].trim_end_matches(']').trim_end();
        serde_json::from_str::<Value>(object).ok()
    });
    if let Some(json) = json {
        return is_json_call(&json, is_tool);
    }
    let last = bare.lines().next_back().unwrap_or_default().trim();
    let closed = last.starts_with("</") || last.starts_with('<') && last.contains("</");
    let tagged = closed
        && tools.iter().any(|tool| {
            let tags = [
                format!("<invoke name=\"{tool}\""),
                format!("<function={tool}>"),
                format!("<{tool}>"),
            ];
            tags.iter().any(|tag| bare.contains(tag.as_str()))
        });
    let called = last.strip_suffix(')').and_then(|call| call.split_once('('));
    tagged
        || called.is_some_and(|(name, arguments)| {
            tools.contains(&name) && arguments.contains(['"', '=', '\''])
        })
}

/// Whether this object names a tool and gives it arguments.
fn is_json_call(json: &Value, is_tool: impl Fn(&str) -> bool + Copy) -> bool {
    if let Some(inner @ Value::Object(_)) = json.get("function") {
        return is_json_call(inner, is_tool);
    }
    let mut names = ["name", "tool", "tool_name", "function"]
        .iter()
        .filter_map(|key| json.get(key)?.as_str());
    let mut arguments = ["arguments", "args", "parameters", "input", "tool_input"]
        .iter()
        .filter_map(|key| json.get(key));
    names.any(is_tool) && arguments.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: Option<Announcement>, texts: &[&str]) {
        for text in texts {
            assert_eq!(
                announced(text, &["Bash", "Read", "Edit"]),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn a_reply_that_ends_in_plans_announces_work() {
        check(
            Some(Announcement::Work),
            &[
                "Let me now run the tests:",
                "Let me run the tests.",
                "I'll edit the file next.",
                "I\u{2019}ll edit the file next",
                "The bug is in `parse`.\n\nI will fix it now.",
                "Next, I'll look at the caller.",
                "OK! First, let me look around.",
                "I found it, so I'll change the bound.",
                "The tests fail \u{2014} let me see why\u{2026}",
                "**Next step:** I'll run the tests.",
                "Now I'm going to read the parser...",
                "Two things are wrong. Let's begin with the first.",
                "Let me run them:\n\n```sh\ncargo test\n```",
                "Now I will look at the files:\n- a.rs\n\nHere is what I change:",
            ],
        );
        let long = format!("{} Now the change:", "It was read. ".repeat(200));
        check(Some(Announcement::Work), &[&long]);
    }

    #[test]
    fn a_final_account_announces_nothing() {
        check(
            None,
            &[
                "",
                "Done.",
                "I fixed the parser. Let me know if you want more tests.",
                "I fixed it. Let me know what you think!",
                "You can now run the tests.",
                "I would next look at the cache.",
                "Next, run the tests.",
                "Shall I go on? I'll wait for your word.",
                "Should I fix the second bug too?",
                "I'll add more tests if you like them.",
                "If you want, I'll also update the changelog.",
                "Once you have set the key, I'll be able to go on.",
                "I will not touch the tests.",
                "I'll need the password of the server.",
                "I'll leave the old name in place.",
                "I'll stop here.",
                "The tests pass, so I'll stop.",
                "That is all; I'll finish here.",
                "I'll note that one test failed before, too.",
                "I'll also mention that the cache is cold.",
                "I said \"let me see\" and then I fixed it. All tests pass.",
                "I'll begin with the cause. The bound was wrong. It is right now.",
                "Let me explain the cause: the bound was off by one.",
                "Run it with:\n\n```sh\ncargo run\n```",
                "What changed:\n- the parser\n- its test",
                "The letter let us in.",
            ],
        );
        let long = format!("{} I'll stay near it.", "It was changed. ".repeat(200));
        check(None, &[&long]);
    }

    #[test]
    fn thoughts_in_tags_are_not_spoken() {
        for (text, said) in [
            ("Done.", "Done."),
            ("<think>Let me see.</think>\n\nDone.", "Done."),
            (
                "<thinking>a</thinking><thinking>b</thinking> Done.",
                "Done.",
            ),
            ("<think>I call it now", ""),
            ("<think>a</think>\n", ""),
            ("I call it now.\n</think>", ""),
            (
                "I took `<think>` out, and </think>",
                "I took `<think>` out, and </think>",
            ),
            ("", ""),
        ] {
            assert_eq!(spoken(text), said, "{text}");
        }
        check(None, &["<think>Let me run the tests."]);
        check(
            Some(Announcement::Work),
            &["<think>It failed.</think>Let me run the tests."],
        );
    }

    #[test]
    fn a_call_in_the_text_is_announced_and_not_one_that_is_told_of() {
        check(
            Some(Announcement::Call),
            &[
                r#"{"name": "Bash", "arguments": {"command": "ls"}}"#,
                "I look.\n\n```json\n{\"tool\": \"Read\",\n \"input\": {\"path\": \"a\"}}\n```",
                r#"<tool_call>{"name":"Read","arguments":{"path":"a"}}</tool_call>"#,
                r#"[{"type":"function","function":{"name":"Bash","arguments":"{}"}}]"#,
                "<function=Bash>\n<parameter=command>\nls\n</parameter>\n</function>",
                "<invoke name=\"Edit\">\n<parameter name=\"path\">a</parameter>\n</invoke>",
                "<Read>\n<path>a</path>\n</Read>",
                "I read it:\n\n```\nRead(path=\"a\")\n```",
            ],
        );
        check(
            None,
            &[
                r#"The file holds {"name": "Bash", "arguments": {}}, which is no call of mine."#,
                "```json\n{\"name\": \"left-pad\", \"arguments\": {}}\n```",
                "```json\n{\"name\": \"Bash\", \"version\": 5}\n```",
                "The page now has `<Read>` in it. It passes.",
                "```rust\nRead(path)\n```",
            ],
        );
        assert_eq!(announced("Let me run the tests:", &[]), None);
    }
}
