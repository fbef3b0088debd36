//! How providers say that a request is too long, and how they say that requests come too often.

/// Where a refusal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// In the body of an answer of this status.
    Status(u16),
    /// In a plain document of status 200.
    Document,
    /// In the first event of a stream of status 200.
    Event,
    /// In the finish reason of a reply without text. The provider's count says how full the window is.
    Finish,
}

/// One provider's way of refusing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wording {
    /// Its number among the known faults.
    pub(crate) case: u32,
    pub(crate) how: How,
    /// What it says. `{max}` stands for the window, `{prompt}` for the size of the request, `{out}` for
    /// the output asked for, `{over}` for what is too much.
    pub(crate) says: &'static str,
}

impl Wording {
    /// Whether it names the window.
    pub(crate) fn names_window(&self) -> bool {
        self.says.contains("{max}")
    }

    /// Whether the provider adds the output that is asked for.
    pub(crate) fn adds_output(&self) -> bool {
        self.says.contains("{out}")
    }

    /// What it says of a request of so many tokens that asks for so much output.
    pub(crate) fn of(&self, prompt: u64, out: u64, max: u64) -> String {
        let over = (prompt + out).saturating_sub(max).max(1);
        let numbers = [
            ("{max}", max),
            ("{prompt}", prompt),
            ("{out}", out),
            ("{over}", over),
        ];
        let fill =
            |text: String, (name, number): (&str, u64)| text.replace(name, &number.to_string());
        numbers.into_iter().fold(self.says.to_owned(), fill)
    }
}

const fn refused(case: u32, how: How, says: &'static str) -> Wording {
    Wording { case, how, says }
}

const BAD: How = How::Status(400);

/// The wordings that are known.
pub(crate) const WORDINGS: [Wording; 29] = [
    refused(
        68,
        BAD,
        r#"{"error":{"message":"This model's maximum context length is {max} tokens. However, your messages resulted in {prompt} tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    ),
    refused(
        68,
        BAD,
        r#"{"error":{"message":"The request cannot be processed.","type":"invalid_request_error","param":null,"code":"context_length_exceeded"}}"#,
    ),
    refused(
        68,
        How::Event,
        r#"{"type":"error","error":{"type":"invalid_request_error","code":null,"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","param":"input"}}"#,
    ),
    refused(
        68,
        BAD,
        r#"{"error":{"message":"This endpoint's maximum context length is {max} tokens. However, you requested about {prompt} tokens ({prompt} of text input). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400,"metadata":{"provider_name":null}}}"#,
    ),
    refused(
        69,
        BAD,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: {prompt} tokens > {max} maximum"}}"#,
    ),
    refused(
        69,
        BAD,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: {prompt} + {out} > {max}, decrease input length or `max_tokens` and try again"}}"#,
    ),
    refused(
        70,
        BAD,
        r#"[{"error":{"code":400,"message":"The input token count ({prompt}) exceeds the maximum number of tokens allowed ({max}).","status":"INVALID_ARGUMENT"}}]"#,
    ),
    refused(
        71,
        BAD,
        r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is {max} but the request contains {prompt} tokens."}"#,
    ),
    refused(
        72,
        BAD,
        r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages"}}"#,
    ),
    refused(
        72,
        How::Status(413),
        r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
    ),
    refused(
        73,
        BAD,
        r#"{"object":"error","message":"The input ({prompt} tokens) is longer than the model's context length ({max} tokens).","type":"BadRequestError","param":null,"code":400}"#,
    ),
    refused(
        74,
        BAD,
        r#"{"object":"error","message":"you requested {out} output tokens and your prompt contains at least {prompt} input tokens","type":"BadRequestError","param":null,"code":400}"#,
    ),
    refused(
        74,
        BAD,
        r#"{"error":{"message":"This model's maximum context length is {max} tokens. However, you requested {out} output tokens and your prompt contains at least {prompt} input tokens. Please reduce the length of the input prompt or the number of requested output tokens.","type":"BadRequestError","param":"input_tokens","code":400}}"#,
    ),
    refused(
        75,
        BAD,
        r#"{"error":{"code":400,"message":"request ({prompt} tokens) exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":{prompt},"n_ctx":{max}}}"#,
    ),
    refused(
        75,
        How::Status(500),
        r#"{"error":{"code":500,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":{prompt},"n_ctx":{max}}}"#,
    ),
    refused(
        75,
        How::Event,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":{prompt},"n_ctx":{max}}}"#,
    ),
    refused(
        75,
        How::Document,
        r#"{"error":{"code":500,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":{prompt},"n_ctx":{max}}}"#,
    ),
    refused(
        76,
        BAD,
        r#"{"error":"prompt too long; exceeded max context length by {over} tokens"}"#,
    ),
    refused(
        76,
        How::Event,
        r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"}"#,
    ),
    refused(
        77,
        BAD,
        r#"{"object":"error","message":"Prompt contains {prompt} tokens and 0 draft tokens, too large for model with {max} maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}"#,
    ),
    refused(
        77,
        BAD,
        r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: {max} (requested: {prompt})","type":"invalid_request_error"}}"#,
    ),
    refused(
        77,
        BAD,
        r#"{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)","http_code":"400"}}"#,
    ),
    refused(
        77,
        BAD,
        r#"{"error":{"message":"prompt token count of {prompt} exceeds the limit of {max}","code":"model_max_prompt_tokens_exceeded"}}"#,
    ),
    refused(
        77,
        BAD,
        r#"{"error":{"message":"Input length {prompt} exceeds the maximum allowed input length of {max} tokens","type":"invalid_request_error"}}"#,
    ),
    refused(
        77,
        BAD,
        r#"{"message":"Input is too long for requested model."}"#,
    ),
    refused(78, BAD, ""),
    refused(78, How::Status(413), ""),
    refused(78, How::Finish, "model_context_window_exceeded"),
    refused(78, How::Finish, "length"),
];

/// What says that requests come too often, whatever it says of lengths: a status and a body.
pub(crate) const THROTTLED: [(u16, &str); 5] = [
    (
        429,
        r#"{"error":{"message":"Request too large for m in organization o on tokens per minute (TPM): Limit 6000, Requested 8000. Please reduce the length of the messages or completion.","type":"tokens","code":"rate_limit_exceeded"}}"#,
    ),
    (
        413,
        r#"{"error":{"message":"Request too large for m on tokens per minute (TPM): Limit 6000, Requested 8000, please reduce your message size","type":"tokens","code":"rate_limit_exceeded"}}"#,
    ),
    (
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute. Please reduce the prompt length"}}"#,
    ),
    (
        400,
        r#"{"__type":"ThrottlingException","code":"ThrottlingException","message":"Too many tokens, prompt is too long for now, please wait"}"#,
    ),
    (
        429,
        r#"[{"error":{"code":429,"message":"The input token count exceeds the maximum number of tokens allowed per minute","status":"RESOURCE_EXHAUSTED"}}]"#,
    ),
];
