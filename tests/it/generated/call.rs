//! One call: what the model means, what the server sends of it, and whether it may run.

use std::fmt::Write as _;

use serde_json::Value;

use super::draw::Draw;

/// A call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The name as it is sent; `None` is left out.
    pub(super) name: Option<String>,
    pub(super) kind: Kind,
    pub(super) arguments: Sent,
    pub(super) worth: Worth,
}

/// How arguments are sent.
#[derive(Clone, Debug)]
pub(super) enum Sent {
    /// As a string that holds this text.
    Text(String),
    /// As this JSON value.
    Plain(String),
    Null,
    Missing,
}

/// The type of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Function,
    /// No type, or none that says anything.
    Unsaid(Option<&'static str>),
    /// Another type, with the function beside it.
    Other(&'static str),
    /// A call of a tool whose input is free text.
    Custom,
}

/// What may come of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// It runs, with this tool and exactly these arguments.
    Runs(&'static str, String),
    /// It does not run; its neighbours may.
    Not,
    /// Its arguments are not what a reply can hold that is whole: nothing of it runs.
    Malformed,
}

impl Call {
    /// A call without a name.
    pub(super) fn is_nameless(&self) -> bool {
        self.name.as_ref().is_none_or(|name| name.trim().is_empty())
    }

    /// A call that runs.
    pub(super) fn sound(draw: &mut Draw) -> Self {
        let (tool, arguments) = meant(draw);
        let worth = Worth::Runs(tool, arguments.clone());
        let arguments = match draw.below(16) {
            0 => Sent::Plain(arguments),
            1 => Sent::Text(quoted(&arguments)),
            2 => Sent::Text(format!(" {arguments}\n")),
            3 => Sent::Text(format!(" {}\t", quoted(&format!(" {arguments} ")))),
            4..8 if arguments == "{}" => match draw.below(4) {
                0 => Sent::Text(String::new()),
                1 => Sent::Text(" \n".to_owned()),
                2 => Sent::Null,
                _ => Sent::Missing,
            },
            _ => Sent::Text(arguments),
        };
        let kind = match draw.below(6) {
            0 => Kind::Unsaid(draw.pick(&[None, Some("null"), Some("\"\""), Some("7")])),
            _ => Kind::Function,
        };
        Self {
            name: Some(tool.to_owned()),
            kind,
            arguments,
            worth,
        }
    }

    /// A call that does not run.
    pub(super) fn flawed(draw: &mut Draw) -> Self {
        let mut call = Self::sound(draw);
        match draw.below(5) {
            0 => {
                call.name = name(draw);
                call.worth = Worth::Not;
            }
            1 => {
                let (tool, arguments) = unfit(draw);
                call.name = Some(tool.to_owned());
                call.arguments = if draw.one_in(4) {
                    Sent::Plain(arguments)
                } else {
                    Sent::Text(arguments)
                };
                call.worth = Worth::Not;
            }
            2 => {
                call.kind = if draw.one_in(2) {
                    Kind::Custom
                } else {
                    Kind::Other(draw.pick(&["retrieval", "FUNCTION", "tool", "functions"]))
                };
                call.worth = Worth::Not;
            }
            _ => {
                call.arguments = Sent::Text(malformed(draw));
                call.worth = Worth::Malformed;
                if draw.one_in(3) {
                    call.name = name(draw);
                }
            }
        }
        call
    }
}

/// A tool and arguments that fit it.
fn meant(draw: &mut Draw) -> (&'static str, String) {
    let text = string(draw);
    match draw.below(5) {
        0 => ("Status", "{}".to_owned()),
        1 if draw.one_in(2) => ("List", "{}".to_owned()),
        1 => ("List", format!("{{\"path\":{text}}}")),
        2 => {
            let deep = draw.pick(&["", ",\"deep\":true", ", \"deep\" : false"]);
            ("Look", format!("{{\"path\": {text}{deep}}}"))
        }
        _ => {
            let more = draw.pick(&[
                "",
                ",\"count\":1",
                ",\"count\":1000",
                ",\"tags\":[\"a\", \"}\"]",
            ]);
            ("Note", format!("{{\"text\":{text}{more}}}"))
        }
    }
}

/// Arguments that are JSON and fit no call of the tool.
fn unfit(draw: &mut Draw) -> (&'static str, String) {
    let text = string(draw);
    let (tool, arguments) = draw.pick(&[
        ("Note", "{}"),
        ("Note", "{\"txt\":@}"),
        ("Note", "{\"text\":@,\"more\":1}"),
        ("Note", "{\"text\":1}"),
        ("Note", "{\"text\":null}"),
        ("Note", "{\"text\":[@]}"),
        ("Note", "{\"text\":{\"text\":@}}"),
        ("Note", "{\"text\":@,\"count\":\"1\"}"),
        ("Note", "{\"text\":@,\"count\":1.5}"),
        ("Note", "{\"text\":@,\"count\":-1}"),
        ("Note", "{\"text\":@,\"count\":1001}"),
        ("Note", "{\"text\":@,\"tags\":@}"),
        ("Note", "{\"text\":@,\"tags\":[1]}"),
        ("Note", "[{\"text\":@}]"),
        ("Note", "true"),
        ("Note", "7"),
        ("Look", "[]"),
        ("Look", "{\"deep\":true}"),
        ("Look", "{\"path\":@,\"deep\":\"yes\"}"),
        ("Look", "{\"Path\":@}"),
        ("List", "{\"path\":7}"),
        ("Status", "{\"now\":true}"),
        ("Status", "[]"),
    ]);
    (tool, arguments.replace('@', &text))
}

/// Arguments that no careful reader takes for one object.
fn malformed(draw: &mut Draw) -> String {
    let text = string(draw);
    let whole = format!("{{\"text\":{text},\"count\":1}}");
    let nested = |deep: usize| format!("{{\"text\":{}1{}}}", "[".repeat(deep), "]".repeat(deep));
    match draw.below(20) {
        0..5 => {
            // Cut anywhere.
            let mut end = 1 + draw.below(whole.len() - 1);
            while !whole.is_char_boundary(end) {
                end -= 1;
            }
            whole[..end].to_owned()
        }
        5 => format!(
            "{whole}{}",
            draw.pick(&[
                "}",
                "{}",
                " x",
                "</tool_call>",
                "\n```",
                ",",
                "\"",
                "[DONE]"
            ])
        ),
        6 => format!(
            "{}{whole}",
            draw.pick(&["{", "x", "```json\n", "\u{feff}", "\u{a0}", "= ", "'"])
        ),
        7 => nested(65 + draw.below(1000)),
        8 => quoted(&quoted(&whole).replace('"', "")),
        9 => quoted(&whole[..whole.len() - 1]),
        10 => format!("{{\"text\":{text},\"text\":{text}}}"),
        11 => format!("{{\"text\":{text},\"count\":1,\"co\\u0075nt\":2}}"),
        12 => format!(
            "{{\"text\":{text},\"count\":{}}}",
            "9".repeat(20 + draw.below(400))
        ),
        _ => {
            let odd = draw.pick(&[
                "{\"text\":@,}",
                "{\"text\":@ /* why */}",
                "{\"text\":@} // why",
                "{'text':'a'}",
                "{\"text\":'a'}",
                "{text:@}",
                "{\"text\":\"a\nb\"}",
                "{\"text\":\"a\tb\"}",
                "{\"text\":@,\"count\":NaN}",
                "{\"text\":@,\"count\":Infinity}",
                "{\"text\":@,\"count\":+1}",
                "{\"text\":@,\"count\":01}",
                "{\"text\":@,\"count\":0x1}",
                "{\"text\":@,\"count\":1.}",
                "{\"text\":@,\"count\":1e999}",
                "{\"text\":@,\"count\":-1e400}",
                "{\"text\":@ \"count\":1}",
                "{\"text\":@,,\"count\":1}",
                "{\"text\":True}",
                "{\"text\":None}",
                "{\"text\":undefined}",
                "{\"text\":\"\\ud800\"}",
                "{\"text\":\"\\udc00\\ud800\"}",
                "{\"text\":\"\\x41\"}",
                "{\"text\":\"\\u12\"}",
                "{\"text\":\u{201c}a\u{201d}}",
                "{\"text\":@",
                "<text>a</text>",
                "text=a",
                "Note",
                "\"Note\"",
            ]);
            odd.replace('@', &text)
        }
    }
}

/// A name that is no tool's, though it may look like one; `None` is none at all.
fn name(draw: &mut Draw) -> Option<String> {
    let name = draw.pick(&[
        None,
        Some(""),
        Some(" "),
        Some("\n"),
        Some("note"),
        Some("NOTE"),
        Some("status"),
        Some(" Note"),
        Some("Note "),
        Some("Status\n"),
        Some("Note\u{200b}"),
        Some("N\u{43e}te"),
        Some("Not"),
        Some("Notes"),
        Some("functions.Note"),
        Some("default_api:Note"),
        Some("Note()"),
        Some("Note<|channel|>commentary"),
        Some("Delete"),
        Some("{\"name\":\"Note\"}"),
    ]);
    name.map(str::to_owned)
}

/// A string as JSON, full of what could be taken for something else.
fn string(draw: &mut Draw) -> String {
    let mut text = String::new();
    for _ in 0..draw.below(5) {
        text += draw.pick(&[
            "a",
            "b c",
            "\"",
            "\\",
            "\n",
            "\r\n",
            "\t",
            "\u{e9}",
            "\u{6f22}",
            "\u{1f600}",
            "{",
            "}}",
            "[]",
            ",",
            "data: ",
            "\n\ndata: [DONE]\n\n",
            "<tool_call>",
            "</think>",
            "```",
            "/* */",
            "//",
            "'",
            "\u{2028}",
            "\u{0}",
            "\u{feff}",
            "\u{fffd}",
            "NaN",
            ":",
            "\\u0041",
            "id",
        ]);
    }
    let json = quoted(&text);
    match draw.below(4) {
        0 => ascii(&json),
        1 => json.replace('/', "\\/"),
        _ => json,
    }
}

/// A text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The same JSON without characters beyond ASCII.
fn ascii(json: &str) -> String {
    let mut units = [0; 2];
    let mut all = String::new();
    for c in json.chars() {
        if c.is_ascii() {
            all.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            write!(all, "\\u{unit:04x}").unwrap();
        }
    }
    all
}
