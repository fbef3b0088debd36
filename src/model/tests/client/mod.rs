//! The client against local servers: what it sends, how long it waits, what it makes of answers.

mod connection;

use async_openai::types::chat::CreateChatCompletionRequest;
use futures::StreamExt as _;
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::exchange::Usage;
use crate::model::{
    ApiKey, Ask, Client, ClientError, Delta, Endpoint, Fault, Model as _, Reply, Timeouts,
};
use crate::setup::{self, Role};
use crate::transcript::FaultClass;

/// Spaces and order are nobody's but ours.
pub(super) const BODY: &str = "{\"model\":\"m\", \"stream\":true,\"max_completion_tokens\":100,\n \"messages\":[{\"role\":\"user\",\"content\":\"Hi \\u00e9 😀\"}]}";
pub(super) const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
pub(super) const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
pub(super) const DONE: &str = "data: [DONE]\n\n";
const KEY: &str = "sk-secret-123";

fn client(base_url: &str, key: Option<&str>, headers: &[(&str, &str)]) -> Client {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let endpoint = Endpoint {
        base_url: base_url.to_owned(),
        api_key: key.map(ApiKey::new),
        headers: headers.iter().map(owned).collect(),
    };
    Client::new(endpoint, Timeouts::default()).unwrap()
}

fn ask(window: Option<u64>) -> Ask {
    serde_json::from_str::<CreateChatCompletionRequest>(BODY).unwrap();
    Ask {
        body: BODY.as_bytes().into(),
        model: setup::Model {
            name: "m".to_owned(),
            server: None,
            api: setup::Api::default(),
            profile: setup::Profile::default(),
            window,
            parameters: setup::Parameters::default(),
        },
        role: Role::Main,
        summary: false,
    }
}

/// Everything that comes back, and its last item by itself.
async fn answer(client: &Client, ask: Ask) -> (Vec<Delta>, Result<Reply, Fault>) {
    let mut deltas: Vec<Delta> = client.ask(ask).collect().await;
    let last = match deltas.pop() {
        Some(Delta::Reply(reply)) => Ok(*reply),
        Some(Delta::Fault(fault)) => Err(*fault),
        last => panic!("{last:?} after {deltas:?}"),
    };
    let ends = |delta: &Delta| matches!(delta, Delta::Reply(_) | Delta::Fault(_));
    assert!(!deltas.iter().any(ends), "{deltas:?}");
    (deltas, last)
}

async fn server(template: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .respond_with(template)
        .mount(&server)
        .await;
    server
}

fn sse(body: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
}

#[tokio::test]
async fn the_body_is_sent_as_it_is_and_the_reply_comes_in_pieces() {
    let counts = "data: {\"id\":\"c1\",\"model\":\"m-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\n";
    let template = sse(&[TEXT, STOP, counts, DONE].concat());
    let server = server(template.insert_header("x-request-id", "req_7")).await;
    let base = format!("{}/v1/?api-version=2&x=y", server.uri());
    let client = client(
        &base,
        Some(&format!(" {KEY}\n")),
        &[("X-Title", "undertext")],
    );
    let (deltas, reply) = answer(&client, ask(None)).await;

    assert_eq!(deltas, [Delta::Text("a".to_owned())]);
    let usage = Usage {
        input: Some(7),
        output: Some(1),
        ..Usage::default()
    };
    let expected = Reply {
        usage: Some(usage),
        model: Some("m-1".to_owned()),
        provider_request: Some("req_7".to_owned()),
        ..Reply::text("a")
    };
    assert_eq!(reply, Ok(expected));

    let [request] = &server.received_requests().await.unwrap()[..] else {
        panic!("one request")
    };
    let header = |name: &str| {
        request
            .headers
            .get(name)
            .map(|value| value.to_str().unwrap())
    };
    assert_eq!(request.body, BODY.as_bytes());
    assert_eq!(request.url.query(), Some("api-version=2&x=y"));
    assert_eq!(header("authorization"), Some("Bearer sk-secret-123"));
    assert_eq!(header("content-type"), Some("application/json"));
    assert_eq!(
        header("content-length"),
        Some(BODY.len().to_string().as_str())
    );
    assert_eq!(header("x-title"), Some("undertext"));
    assert_eq!(header("openai-organization"), None);
    assert!(!format!("{client:?}").contains(KEY));
}

#[tokio::test]
async fn without_a_key_there_is_no_authorization() {
    for (key, headers, sent) in [
        (None, &[][..], None),
        (Some(" "), &[], None),
        (None, &[("Authorization", "Basic x")], Some("Basic x")),
    ] {
        let server = server(sse(&[TEXT, DONE].concat())).await;
        let client = client(&format!("{}/v1", server.uri()), key, headers);
        answer(&client, ask(None)).await.1.unwrap();
        let requests = server.received_requests().await.unwrap();
        let header = requests[0].headers.get("authorization");
        assert_eq!(header.map(|value| value.to_str().unwrap()), sent);
    }
}

#[tokio::test]
async fn a_failed_answer_keeps_its_status_its_wait_and_its_words() {
    use FaultClass::{Auth, Overflow, Overload, Permanent, Rate};
    let json =
        |status, body: &str| ResponseTemplate::new(status).set_body_raw(body, "application/json");
    let moved = ResponseTemplate::new(307).insert_header("location", "http://elsewhere/");
    let page = "<html><title>503 Service</title></html>";
    let long = format!("{{\"error\":{{\"message\":\"{}\"}}}}", "x".repeat(100_000));
    for (template, window, class, status, message, wait_ms) in [
        (
            ResponseTemplate::new(429)
                .insert_header("retry-after", "7")
                .set_body_string("slow"),
            None,
            Rate,
            429,
            "slow",
            Some(7000),
        ),
        (
            json(429, "{}")
                .insert_header("date", "Sat, 21 Nov 2026 20:00:00 GMT")
                .insert_header("retry-after", "Sat, 21 Nov 2026 20:01:00 GMT"),
            None,
            Rate,
            429,
            "status 429 without a message",
            Some(60_000),
        ),
        (
            json(400, r#"{"error":{"code":400,"message":"bad"}}"#),
            None,
            Permanent,
            400,
            "bad",
            None,
        ),
        (
            ResponseTemplate::new(503).set_body_raw(page, "text/html"),
            None,
            Overload,
            503,
            "503 Service",
            None,
        ),
        (
            json(401, r#"{"error":{"message":"wrong key sk-secret-123"}}"#),
            None,
            Auth,
            401,
            "wrong key [key]",
            None,
        ),
        (
            moved,
            None,
            Permanent,
            307,
            "redirects are not followed (status 307 Temporary Redirect, to `http://elsewhere/`)",
            None,
        ),
        (
            ResponseTemplate::new(413),
            None,
            Permanent,
            413,
            "status 413 without a message (the request has 114 bytes)",
            None,
        ),
        (
            ResponseTemplate::new(413),
            Some(30),
            Overflow,
            413,
            "status 413 without a message",
            None,
        ),
        (json(400, &long), None, Permanent, 400, "", None),
    ] {
        let server = server(template).await;
        let client = client(&format!("{}/v1", server.uri()), Some(KEY), &[]);
        let (deltas, fault) = answer(&client, ask(window)).await;
        let fault = fault.unwrap_err();
        assert_eq!(deltas, []);
        assert_eq!(
            (fault.class, fault.status),
            (class, Some(status)),
            "{fault:?}"
        );
        assert_eq!(fault.wait_ms, wait_ms, "{fault:?}");
        if message.is_empty() {
            assert!(fault.message.chars().count() < 1000);
        } else {
            assert_eq!(fault.message, message);
        }
        assert_eq!(server.received_requests().await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_plain_reply_and_a_mislabelled_stream_are_taken() {
    let plain = r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}"#;
    for body in [plain.to_owned(), [TEXT, STOP].concat()] {
        let template = ResponseTemplate::new(200).set_body_raw(body, "application/json");
        let server = server(template).await;
        let client = client(&format!("{}/v1", server.uri()), None, &[]);
        let (deltas, reply) = answer(&client, ask(None)).await;
        assert_eq!(reply, Ok(Reply::text("a")));
        assert_eq!(deltas, [Delta::Text("a".to_owned())]);
    }
}

#[tokio::test]
async fn a_compressed_reply_is_decoded_and_torn_if_it_is_cut() {
    // TEXT and STOP.
    const PACKED: [u8; 94] = [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x4b, 0x49, 0x2c, 0x49, 0xb4,
        0x52, 0xa8, 0x56, 0x4a, 0xce, 0xc8, 0xcf, 0x4c, 0x4e, 0x2d, 0x56, 0xb2, 0x8a, 0xae, 0x56,
        0x4a, 0x49, 0xcd, 0x29, 0x49, 0x54, 0xb2, 0x02, 0x0a, 0xe6, 0xe7, 0x95, 0xa4, 0xe6, 0x95,
        0x28, 0x59, 0x29, 0x25, 0x2a, 0xd5, 0xd6, 0xc6, 0xd6, 0x72, 0x71, 0xa5, 0xe0, 0x51, 0x5e,
        0xab, 0xa3, 0x94, 0x96, 0x99, 0x97, 0x59, 0x9c, 0x11, 0x5f, 0x94, 0x9a, 0x58, 0x9c, 0x9f,
        0x07, 0xd4, 0x56, 0x5c, 0x92, 0x5f, 0xa0, 0x04, 0xd6, 0x08, 0x00, 0x53, 0xc3, 0x30, 0x40,
        0x68, 0x00, 0x00, 0x00,
    ];
    for (packed, class) in [(&PACKED[..], None), (&PACKED[..60], Some(FaultClass::Torn))] {
        let template = ResponseTemplate::new(200).set_body_raw(packed, "text/event-stream");
        let server = server(template.insert_header("content-encoding", "gzip")).await;
        let client = client(&format!("{}/v1", server.uri()), None, &[]);
        let (_, last) = answer(&client, ask(None)).await;
        match class {
            None => assert_eq!(last, Ok(Reply::text("a"))),
            Some(class) => assert_eq!(last.unwrap_err().class, class),
        }
    }
}

#[test]
fn an_endpoint_that_cannot_be_used_is_refused() {
    for (base_url, key, header, message) in [
        (
            "localhost:1234/v1",
            "k",
            "a",
            "base url `localhost:1234/v1` must be an http or https address without a user name",
        ),
        (
            "ftp://host/",
            "k",
            "a",
            "base url `ftp://host/` must be an http or https address without a user name",
        ),
        (
            "http://me:pw@host/",
            "k",
            "a",
            "base url `…@host/` must be an http or https address without a user name",
        ),
        (
            "http://host/",
            "k\ny",
            "a",
            "the api key holds characters that no header may hold",
        ),
        (
            "http://host/",
            "k",
            "a b",
            "`a b` is no header that can be sent",
        ),
    ] {
        let endpoint = Endpoint {
            base_url: base_url.to_owned(),
            api_key: Some(ApiKey::new(key)),
            headers: vec![(header.to_owned(), "x".to_owned())],
        };
        assert!(!format!("{endpoint:?}").contains("\"k"));
        let error = Client::new(endpoint, Timeouts::default()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_client_for_tls_is_made_although_nobody_installed_a_provider() {
    let made = Client::new(
        Endpoint {
            base_url: "https://localhost/v1".to_owned(),
            api_key: None,
            headers: Vec::new(),
        },
        Timeouts::default(),
    );
    // A machine may lack root certificates; it must not panic.
    assert!(matches!(made, Ok(_) | Err(ClientError::Setup(_))));
}
