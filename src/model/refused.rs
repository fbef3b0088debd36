//! What a refusal is about, beside its class: a parameter, tools at all, or the model's own call.

use crate::model::loose::{Object, Value};

/// What a refusal is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The parameter that the server does not take, as it names it.
    pub(crate) parameter: Option<String>,
    /// The call that the model wrote and the server refused; empty if it does not tell what that was.
    pub(crate) call: Option<String>,
    /// Whether the server or the model takes no tools.
    pub(crate) tools: bool,
}

/// Codes by which a server says that it does not take a parameter.
const CODES: [&str; 4] = [
    "unsupported_parameter",
    "unsupported_value",
    "unknown_parameter",
    "extra_forbidden",
];

/// Words in small letters after which the parameter stands.
const BEFORE: [&str; 12] = [
    "unsupported parameter",
    "unsupported value",
    "unknown parameter",
    "unknown field",
    "unknown name",
    "unrecognized request argument supplied",
    "unrecognized request arguments supplied",
    "unrecognized parameter",
    "unexpected parameter",
    "does not support parameter",
    "does not support parameters",
    "does not support",
];

/// Words in small letters before which the parameter stands.
const BEHIND: [&str; 5] = [
    " is unsupported",
    " is not supported",
    " does not support",
    " is not permitted",
    " is deprecated for this model",
];

/// Words in small letters by which a server says that it takes no tools.
const TOOLS: [&str; 12] = [
    "does not support tools",
    "doesn't support tools",
    "does not support tool use",
    "does not support tool call",
    "does not support function",
    "endpoints found that support tool",
    "tools are not supported",
    "tool use is not supported",
    "tool calling is not supported",
    "function calling is not enabled",
    "requires --enable-auto-tool-choice",
    "tools param requires --jinja",
];

/// Words in small letters by which a server says that the model's call was no call.
const CALLS: [&str; 3] = [
    "tool_use_failed",
    "failed to call a function",
    "malformed_function_call",
];

/// What a failed answer of this status is about: `told` is what its objects tell, `message` its message
/// in full.
pub(crate) fn refused(status: Option<u16>, told: Refused, message: &str) -> Refused {
    let is_request = matches!(status, None | Some(400 | 422 | 500));
    let mut refused = if is_request { told } else { Refused::default() };
    let lower = message.to_ascii_lowercase();
    if matches!(status, None | Some(400 | 404 | 422 | 500 | 501)) {
        refused.tools = TOOLS.iter().any(|words| lower.contains(words));
    }
    if is_request && CALLS.iter().any(|words| lower.contains(words)) {
        refused.call.get_or_insert_default();
    }
    if status == Some(500) || refused.tools || refused.call.is_some() {
        refused.parameter = None;
    } else if matches!(status, None | Some(400 | 422)) && refused.parameter.is_none() {
        refused.parameter = worded(message, &lower);
    }
    refused
}

/// What a provider's word for the end of a reply says of the model's own call.
pub(crate) fn by_finish(word: &str) -> Option<String> {
    let word = word.to_ascii_lowercase();
    word.contains("malformed_function_call").then(String::new)
}

impl Refused {
    /// Takes in what one object of an error tells.
    pub(crate) fn take(&mut self, object: &Object<'_>) {
        let words = ["code", "type"].map(|name| object.word(name).unwrap_or_default());
        let words = words.map(|word| word.to_lowercase());
        if words.iter().any(|word| CODES.contains(&word.as_str())) {
            let place = object.get("loc").and_then(Value::array).unwrap_or_default();
            let place = place
                .into_iter()
                .filter_map(Value::text)
                .map(|text| text.text);
            let named = object
                .word("param")
                .or_else(|| place.into_iter().find(|part| part != "body"));
            self.parameter = self.parameter.take().or(named);
        }
        let failed = object.get("failed_generation");
        if failed.is_some() || words.iter().any(|word| word == "tool_use_failed") {
            let text =
                failed.map(|failed| failed.text().map_or(failed.raw().to_owned(), |t| t.text));
            self.call = self.call.take().or(Some(text.unwrap_or_default()));
        }
    }
}

/// The parameter that words name.
fn worded(message: &str, lower: &str) -> Option<String> {
    let before = BEFORE.iter().filter_map(|words| {
        let at = lower.find(words)? + words.len();
        let rest = message
            .get(at..)?
            .trim_start_matches([' ', ':', '\'', '"', '`', '[', '(']);
        Some(rest.split(|c| !is_part(c)).next().unwrap_or_default())
    });
    let behind = BEHIND.iter().filter_map(|words| {
        let rest = message
            .get(..lower.find(words)?)?
            .trim_end_matches([' ', '\'', '"', '`']);
        Some(rest.rsplit(|c| !is_part(c)).next().unwrap_or_default())
    });
    let named = before.chain(behind).map(|name| name.trim_matches('.'));
    let mut named = named.filter(|name| is_parameter(name));
    named.next().map(str::to_owned)
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

/// Whether a word may be the name of a parameter, and not one of the sentence.
fn is_parameter(word: &str) -> bool {
    let small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '.';
    let sentence = [
        "the",
        "this",
        "that",
        "model",
        "parameter",
        "parameters",
        "value",
        "it",
        "and",
    ];
    word.len() > 2
        && word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(small)
        && !sentence.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::said::Said;

    fn of(status: u16, body: &str) -> Refused {
        let Said {
            refused: told,
            message,
            ..
        } = Said::of(body);
        refused((status != 200).then_some(status), told, &message)
    }

    #[test]
    fn case_53_the_parameter_that_is_not_taken_is_named() {
        for (status, body, parameter) in [
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#,
                Some("max_tokens"),
            ),
            (
                400,
                r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.","param":"temperature","code":"unsupported_value"}}"#,
                Some("temperature"),
            ),
            (
                400,
                r#"{"error":{"message":"Unrecognized request argument supplied: reasoning_effort","param":null,"code":null}}"#,
                Some("reasoning_effort"),
            ),
            (
                400,
                r#"{"error":"temperature does not support 0.2 with this model. Only the default (1) value is supported"}"#,
                Some("temperature"),
            ),
            (
                422,
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":{}}]}"#,
                Some("stream_options"),
            ),
            (
                400,
                r#"[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"stream_options\": Cannot find field.","status":"INVALID_ARGUMENT"}}]"#,
                Some("stream_options"),
            ),
            (
                400,
                r#"{"error":{"message":"property 'reasoning_effort' is unsupported","type":"invalid_request_error"}}"#,
                Some("reasoning_effort"),
            ),
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not supported with this model.","param":"reasoning.effort","code":"unsupported_parameter"}}"#,
                Some("reasoning.effort"),
            ),
            (
                400,
                r#"{"error":{"message":"litellm.UnsupportedParamsError: openai does not support parameters: ['temperature'], for model=x"}}"#,
                Some("temperature"),
            ),
            (
                400,
                r#"{"error":{"metadata":{"raw":"{\"error\":{\"param\":\"top_k\",\"code\":\"unknown_parameter\"}}"}}}"#,
                Some("top_k"),
            ),
            (
                200,
                r#"{"error":{"param":"temperature","code":"unsupported_parameter"}}"#,
                Some("temperature"),
            ),
            (
                400,
                r#"{"error":{"message":"Invalid value for temperature","param":"temperature","code":"invalid_value"}}"#,
                None,
            ),
            (
                400,
                r#"{"error":{"message":"This model does not support the value."}}"#,
                None,
            ),
            (400, "Bad Request", None),
            (
                429,
                r#"{"error":{"param":"temperature","code":"unsupported_parameter"}}"#,
                None,
            ),
            (
                500,
                r#"{"error":{"param":"temperature","code":"unsupported_parameter"}}"#,
                None,
            ),
        ] {
            assert_eq!(of(status, body).parameter.as_deref(), parameter, "{body}");
        }
    }

    #[test]
    fn case_54_a_server_without_tools_says_so_in_its_words() {
        for (status, body, tools) in [
            (
                400,
                r#"{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"api_error"}}"#,
                true,
            ),
            (
                404,
                r#"{"error":{"message":"No endpoints found that support tool use. Try disabling \"Read\".","code":404}}"#,
                true,
            ),
            (
                400,
                r#"{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","code":400}"#,
                true,
            ),
            (
                500,
                r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#,
                true,
            ),
            (
                400,
                r#"{"error":{"message":"this model does not support parallel tool calls"}}"#,
                false,
            ),
            (
                429,
                r#"{"error":{"message":"does not support tools"}}"#,
                false,
            ),
        ] {
            assert_eq!(of(status, body).tools, tools, "{body}");
        }
    }

    #[test]
    fn case_55_the_call_that_is_refused_is_told() {
        for (status, body, call) in [
            (
                400,
                r#"{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=Read>{\"path\": }"}}"#,
                Some("<function=Read>{\"path\": }"),
            ),
            (
                400,
                r#"{"error":{"message":"tool call validation failed","code":"tool_use_failed"}}"#,
                Some(""),
            ),
            (
                400,
                r#"{"error":{"message":"x","failed_generation":[1]}}"#,
                Some("[1]"),
            ),
            (
                200,
                r#"{"error":{"message":"m","code":"tool_use_failed","failed_generation":"x"}}"#,
                Some("x"),
            ),
            (400, r#"{"error":{"message":"m"}}"#, None),
            (
                401,
                r#"{"error":{"message":"m","code":"tool_use_failed"}}"#,
                None,
            ),
        ] {
            assert_eq!(of(status, body).call.as_deref(), call, "{body}");
        }
        assert_eq!(
            by_finish("function_call_filter: MALFORMED_FUNCTION_CALL").as_deref(),
            Some("")
        );
        assert_eq!(by_finish("stop"), None);
    }
}
