//! What moves choose from: texts, tools, arguments and settings, plain and awkward ones.

use serde_json::value::RawValue;

use undertext::exchange::{Effect, Hint, Reasoning, Status, ToolMeta, ToolSpec, Treatment};
use undertext::setup::{
    Api, CallIds, EmptyContent, MessageOrder, Model, Models, Parameters, Policy, Profile,
    SchemaForm, SendBack, Setup, Wire,
};
use undertext::transcript::Speaker;

pub(super) fn pick<T: Copy>(from: &[T], which: u8) -> T {
    from[usize::from(which) % from.len()]
}

/// Settings that differ in everything a body depends on.
pub(super) fn setup(which: u8) -> Setup {
    let flag = |bit: u8| which >> bit & 1 == 1;
    let mut profile = Profile::default();
    profile.messages.empty_content = pick(
        &[EmptyContent::Omit, EmptyContent::Null, EmptyContent::Empty],
        which,
    );
    profile.reasoning.send_back = if flag(2) {
        SendBack::Never
    } else {
        SendBack::Always
    };
    profile.parameters.stream_usage = flag(3);
    // Strict ones are rarer than others.
    if flag(1) && flag(6) {
        profile.messages.order = MessageOrder::Alternate;
        profile.calls.ids = CallIds::Nine;
    }
    profile.messages.user_after_tool = !(flag(1) && flag(4));
    if flag(1) && flag(5) {
        profile.tools.schema = SchemaForm::Plain;
    }
    if flag(4) {
        profile.parameters.max_output_tokens = "max_tokens".to_owned();
    }
    let tool = |name: &str, schema: &str, labels: &[&str]| ToolSpec {
        name: name.to_owned(),
        description: format!("{name}s things – \"well\"."),
        schema: RawValue::from_string(schema.to_owned()).unwrap(),
        meta: ToolMeta {
            effect: Effect::Reads,
            hint: Hint::new(Treatment::Keep, Treatment::Strip),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            ..ToolMeta::default()
        },
    };
    let path = r#"{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer","minimum":1.0}}}"#;
    let tools = vec![
        tool("Read", path, &["path", "limit"]),
        tool(
            "Bash",
            r#"{"type": "object", "required": []}"#,
            &["command"],
        ),
        tool("Edit", path, &["path"]),
        tool("TodoWrite", "{}", &[]),
    ];
    let main = Model {
        name: "größe-1".to_owned(),
        server: which
            .is_multiple_of(5)
            .then(|| "https://elsewhere".to_owned()),
        api: Api::Chat,
        profile,
        window: Some(128_000),
        parameters: Parameters {
            max_output_tokens: flag(5).then_some(4_096),
            temperature: flag(6).then_some(0.2),
            reasoning_effort: flag(7).then(|| "low".to_owned()),
            cache_key: None,
        },
    };
    Setup {
        wire: Wire {
            instructions: pick(&["You are Undertext.\n", ""], which / 2).to_owned(),
            tools: if flag(0) {
                tools
            } else {
                tools[..usize::from(which % 3)].to_vec()
            },
            models: Models {
                main,
                summary: None,
                fallback: None,
            },
        },
        policy: Policy::default(),
    }
}

pub(super) fn reasoning(which: u8) -> Vec<Reasoning> {
    let text = |field: &str, text: &str| Reasoning::Text {
        field: field.to_owned(),
        text: text.to_owned(),
    };
    let raw = || Reasoning::raw(r#"{"type":"reasoning","id":"rs_1"}"#);
    let listed = |n: u8| Reasoning::Raw {
        raw: format!(r#"{{"type": "reasoning.text","n":{n}}}"#),
        field: Some("reasoning_details".to_owned()),
        after: None,
    };
    match which % 7 {
        0 | 1 => Vec::new(),
        6 => vec![listed(1), text("reasoning", "a"), listed(2)],
        2 => vec![text("reasoning_content", "Hm…\n")],
        3 => vec![
            text("reasoning_content", "first, "),
            raw(),
            text("reasoning_content", "then"),
        ],
        4 => vec![raw()],
        _ => vec![
            text("reasoning", "a"),
            text("content", "b"),
            text("thinking", ""),
            text("reasoning", "c"),
        ],
    }
}

pub(super) const TEXTS: [&str; 14] = [
    "",
    "Done.",
    "zwei\nZeilen",
    "„Gänse“ \"füßchen\" \\ back",
    "tab\tbell\u{7}nul\u{0}del\u{7f}",
    "🦀 eins 👩\u{200d}💻",
    "line\r\nline\n",
    "\n",
    " ",
    "\u{2028}\u{feff}x",
    "error: no such file\nat src/main.rs:3\n\n",
    "Recall 1.1 shows it",
    "[Previous: used Bash]",
    "A longer result, long enough that its stub is shorter than itself, as stubs ought to be: \
     it goes on and on, über viele Wörter hinweg, and ends here.",
];

pub(super) const NAMES: [&str; 3] = ["a.txt", "b ü.md", ""];

pub(super) const TOOLS: [&str; 6] = ["Read", "Bash", "Edit", "TodoWrite", "Read", "Nobody's"];

pub(super) const ARGUMENTS: [&str; 15] = [
    r#"{"path":"src/ä.rs"}"#,
    "{}",
    r#"{"path":"a\nb","limit":3}"#,
    r#"{"path":"src/a/very/long/path/that/goes/on/and/on/über/so/many/directories/that/its/label/must/be/cut/somewhere/near/the/end/of/it.rs"}"#,
    " {\"command\" : \"ls | grep \\\"x\\\"\"}\n",
    r#"{"todos":[{"text":"eins","status":"open"}]}"#,
    r#"{"path":"#,
    "[1]",
    "",
    r#""text""#,
    r#"{"path":null,"limit":1.50,"command":{"b":1,"a":[2]}}"#,
    r#"{"path":""}"#,
    r#"{"path":"\ud800"}"#,
    r#"{"path":"one","path":"two"}"#,
    r#"{"limit":10} trailing"#,
];

pub(super) const EXTRAS: [Option<&str>; 7] = [
    None,
    Some(r#"{"thought_signature":"abc=="}"#),
    Some(r#"{ "google" : {"x" : [1, 2.0]}, "index":0}"#),
    Some("{}"),
    Some("no json"),
    Some("[]"),
    Some(r#"{"id":"x","type":"y","function":{},"index":3,"ok":1e3}"#),
];

pub(super) const STATUSES: [Status; 7] = [
    Status::Ok,
    Status::Ok,
    Status::Error,
    Status::Denied,
    Status::Timeout,
    Status::Interrupted,
    Status::Cancelled,
];

pub(super) const SPEAKERS: [Speaker; 4] = [
    Speaker::FollowUp,
    Speaker::Task,
    Speaker::Hook,
    Speaker::Runtime,
];

pub(super) const FOREIGN: [&str; 4] = [
    r#""type":"dream","x":[1, 2]"#,
    r#""type":"started","call":17"#,
    r#""type":"user""#,
    r#""text": "no type at all" "#,
];
