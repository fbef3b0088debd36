use proptest::prelude::*;

use super::*;
use crate::exchange::{Status, ToolResult};
use crate::id::{CallId, EntryId};

/// Characters that look drawn at random and are the same each time. In samples they stand as
/// `<36>`, of hexadecimal digits `<x40>`, of capital letters `<A16>`: no scanner takes this file for
/// a leak.
fn drawn(sample: &str) -> String {
    let mut text = String::new();
    let mut seed: u64 = 7;
    let mut rest = sample;
    while let Some((before, after)) = rest.split_once('<') {
        let (count, behind) = after.split_once('>').unwrap();
        text.push_str(before);
        let alphabet = match count.as_bytes()[0] {
            b'x' => "0123456789abcdef",
            b'A' => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
            _ => "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        };
        for _ in 0..count.trim_start_matches(['x', 'A']).parse().unwrap() {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let place = (seed >> 33) as usize % alphabet.len();
            text.push_str(&alphabet[place..=place]);
        }
        rest = behind;
    }
    text + rest
}

fn check(samples: &[(&str, &str)]) {
    for (sample, expected) in samples {
        let text = drawn(sample);
        assert_eq!(masked(&text), *expected, "{sample}: {text}");
        assert_eq!(masked(expected), *expected, "masked twice");
    }
}

#[test]
fn every_shape_compiles() {
    for shape in &shapes::SHAPES {
        assert!(shape.regex().is_some(), "{}", shape.name);
    }
    assert!(!masked::may_hold(&"x".repeat(9000)));
}

#[test]
fn tokens_are_known_by_how_they_begin() {
    check(&[
        ("id AKIA<A16>.", "id [masked: AWS key id]."),
        (
            "AKIA<A16>,<40>",
            "[masked: AWS key id],[masked: AWS secret key]",
        ),
        (
            "aws_secret_access_key = <40>",
            "aws_secret_access_key = [masked: AWS secret key]",
        ),
        ("AIza<35>", "[masked: Google key]"),
        ("ya29.<60>", "[masked: Google token]"),
        ("GOCSPX-<28>", "[masked: Google secret]"),
        (
            "AccountKey=<86>==;Endpoint",
            "AccountKey=[masked: Azure key];Endpoint",
        ),
        (
            "?sv=1&sig=<43>%3D&x",
            "?sv=1&sig=[masked: Azure signature]&x",
        ),
        ("abc8Q~<34>", "[masked: Azure secret]"),
        ("dop_v1_<x64>", "[masked: DigitalOcean token]"),
        ("HRKU-<36>", "[masked: Heroku key]"),
        ("dapi<x32>", "[masked: Databricks token]"),
        ("<14>.atlasv1.<60>", "[masked: Terraform token]"),
        ("hvs.<24>", "[masked: Vault token]"),
        ("pul-<x40>", "[masked: Pulumi token]"),
        ("dp.pt.<43>", "[masked: Doppler token]"),
        ("tskey-auth-<16>-<32>", "[masked: Tailscale key]"),
        ("ghp_<36>", "[masked: GitHub token]"),
        ("remote: gho_<36>!", "remote: [masked: GitHub token]!"),
        ("github_pat_<22>_<59>", "[masked: GitHub token]"),
        ("glpat-<20>", "[masked: GitLab token]"),
        ("ATATT3<60>", "[masked: Atlassian token]"),
        ("npm_<36>", "[masked: npm token]"),
        ("pypi-AgEIcHlwaS5vcmc<60>", "[masked: PyPI token]"),
        ("rubygems_<x48>", "[masked: RubyGems key]"),
        ("dckr_pat_<27>", "[masked: Docker token]"),
        ("sk-ant-api03-<80>", "[masked: Anthropic key]"),
        ("sk-proj-<48>", "[masked: OpenAI key]"),
        ("sk-<48>", "[masked: API key]"),
        ("sk-or-v1-<x64>", "[masked: OpenRouter key]"),
        ("hf_<34>", "[masked: Hugging Face token]"),
        ("gsk_<52>", "[masked: Groq key]"),
        ("xai-<80>", "[masked: xAI key]"),
        ("r8_<37>", "[masked: Replicate token]"),
        ("xoxb-123456789012-<24>", "[masked: Slack token]"),
        (
            "https://hooks.slack.com/services/T0001/B0001/<24>",
            "https://hooks.slack.com/services/[masked: Slack webhook]",
        ),
        ("1234567890:AA<33>", "[masked: Telegram token]"),
        ("MTA<21>.<6>.<38>", "[masked: Discord token]"),
        ("sk_live_<24>", "[masked: Stripe key]"),
        ("whsec_<32>", "[masked: webhook secret]"),
        ("sq0atp-<22>", "[masked: Square token]"),
        ("shpat_<x32>", "[masked: Shopify token]"),
        ("SK<x32>", "[masked: Twilio key]"),
        ("SG.<22>.<43>", "[masked: SendGrid key]"),
        ("key-<x32>", "[masked: Mailgun key]"),
        ("<x32>-us12", "[masked: Mailchimp key]"),
        ("NRAK-<A27>", "[masked: New Relic key]"),
        ("glsa_<32>_<x8>", "[masked: Grafana token]"),
        ("lin_api_<40>", "[masked: Linear key]"),
        ("figd_<40>", "[masked: Figma token]"),
        ("AGE-SECRET-KEY-1<A58>", "[masked: age key]"),
        ("eyJ<20>.eyJ<40>.<43>", "[masked: token]"),
    ]);
}

#[test]
fn what_stands_where_secrets_stand_is_masked() {
    check(&[
        (
            "Authorization: Bearer <30>",
            "Authorization: Bearer [masked: credentials]",
        ),
        (
            "-H 'authorization: Basic dXNlcjpodW50ZXIy'",
            "-H 'authorization: Basic [masked: credentials]'",
        ),
        (
            r#"{"Authorization":"Token <20>"}"#,
            r#"{"Authorization":"Token [masked: credentials]"}"#,
        ),
        ("got bearer <x40> back", "got bearer [masked: token] back"),
        (
            "Set-Cookie: sid=s3ss<20>; Path=/",
            "Set-Cookie: sid=[masked: cookie]; Path=/",
        ),
        (
            "https://ada:hunter2@example.org/x",
            "https://ada:[masked: password]@example.org/x",
        ),
        (
            "postgres://app:s3cr3t@db:5432/app",
            "postgres://app:[masked: password]@db:5432/app",
        ),
        (
            "redis://:letmein@cache",
            "redis://:[masked: password]@cache",
        ),
        (
            "mongodb+srv://a:pa55w0rd@c.net",
            "mongodb+srv://a:[masked: password]@c.net",
        ),
        (
            "https://<40>@github.com/a/b",
            "https://[masked: token]@github.com/a/b",
        ),
        (
            "curl -s -u ada:hunter2 http://h",
            "curl -s -u ada:[masked: password] http://h",
        ),
        (
            "machine h login ada password hunter2",
            "machine h login ada password [masked: password]",
        ),
        (
            "machine h\n  login ada\n  password hunter2",
            "machine h\n  login ada\n  password [masked: password]",
        ),
        (
            "db.host:5432:app:ada:hunt3rX2",
            "db.host:5432:app:ada:[masked: password]",
        ),
        (
            "//registry.npmjs.org/:_authToken=<36>",
            "//registry.npmjs.org/:_authToken=[masked: npm token]",
        ),
        (
            r#"{"auths":{"h":{"auth":"YWRhOmh1bnRlcjI="}}}"#,
            r#"{"auths":{"h":{"auth":"[masked: Docker login]"}}}"#,
        ),
        (
            "root:$6$abcdefgh$<86>:1:",
            "root:[masked: hashed password]:1:",
        ),
        ("password = \"hunter2\"", "password = \"[masked: secret]\""),
        (
            "  db_password: 'x9$kLm2Qz'",
            "  db_password: '[masked: secret]'",
        ),
        (
            r#""clientSecret": "<24>","#,
            r#""clientSecret": "[masked: secret]","#,
        ),
        (
            "export API_TOKEN=<24>\nnext",
            "export API_TOKEN=[masked: secret]\nnext",
        ),
        (
            "DJANGO_SECRET_KEY=x7#k2!q<12>",
            "DJANGO_SECRET_KEY=[masked: secret]",
        ),
        ("x-api-key: <x32>", "x-api-key: [masked: secret]"),
        (
            "tool --password S3cretPa55w0rd run",
            "tool --password [masked: secret] run",
        ),
        (
            "Server=h;User Id=a;Password=hunter2;",
            "Server=h;User Id=a;Password=[masked: password];",
        ),
        (
            r#"say {\"password\":\"hunt3r2x\"}"#,
            r#"say {\"password\":\"[masked: secret]\"}"#,
        ),
        ("PrivateKey = <43>=", "PrivateKey = [masked: secret]"),
    ]);
}

#[test]
fn a_key_over_lines_is_masked_whole() {
    let pem =
        drawn("-----BEGIN RSA PRIVATE KEY-----\n<64>\n<64>\n<20>==\n-----END RSA PRIVATE KEY-----");
    for text in [
        pem.clone(),
        pem.replace('\n', "\\n"),
        pem.replace('\n', "\n  12│ "),
        pem.replace("RSA ", "OPENSSH "),
        pem.replace("KEY-----", "KEY BLOCK-----")
            .replace("RSA", "PGP"),
        pem.replace(
            "-----\n",
            "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB01\n\n",
        ),
    ] {
        let text = format!("a\n{text}\nb");
        assert_eq!(masked(&text), "a\n[masked: private key]\nb", "{text}");
    }
    let cut = &pem[..120];
    assert_eq!(masked(cut), "[masked: private key]");
    let text = "looks for -----BEGIN PRIVATE KEY----- in (all) files";
    assert_eq!(
        masked(text),
        "looks for [masked: private key] in (all) files"
    );

    let mut lines = Lines::default();
    let masks = Masks::default();
    let shown: Vec<String> = format!("a\n{pem}\nb")
        .lines()
        .map(|line| lines.next(&masks, line).into_owned())
        .collect();
    assert_eq!(
        shown,
        ["a", "[masked: private key]", "…", "…", "…", "", "b"]
    );
}

#[test]
fn what_tells_nothing_by_itself_stays() {
    for text in [
        "commit <x40>",
        "sha256:<x64>",
        "0198f3c2-7b1a-7cc3-9d5e-<x12>",
        "integrity sha512-<86>==",
        "checksum = \"<x64>\"",
        "data:image/png;base64,iVBORw0KGgo<200>",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI<43> ada@home",
        "-----BEGIN PUBLIC KEY-----\n<64>\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\n<64>\n-----END CERTIFICATE-----",
        "max_tokens: 4096, token_count=12345678",
        "let token = self.next_token();",
        "password: String, token: Option<String2>",
        "secretName: my-tls-secret-2",
        "TOKEN=${GITHUB_TOKEN} PASSWORD=$PASSWORD2",
        "api_key=os.environ['OPENAI_API_KEY']",
        "http://localhost:8080/path@2 and https://example.org/@user",
        "git@github.com:ada/undertext.git",
        "src/main.rs:12:5:warning:x",
        "error[E0308]: token: expected `u64`, found `usize`",
        "\"password\": \"string\", \"token\": \"changeme1\"",
        "tokens: 12310 of 10000 (key 1)",
    ] {
        let text = drawn(&text.replace("<S", "{S").replace("Option<", "Option{"));
        assert_eq!(masked(&text), text);
    }
}

const VALUE: &str = "hunter2/Correct Horse+9\"ü";

fn known() -> Known {
    Known::new([VALUE, "k3y-of-16-letters"])
}

#[test]
fn a_known_value_is_found_however_it_is_written() {
    let check = |text: &str, expected: &str| assert_eq!(known().replace(text), expected);
    check(&format!("a {VALUE} b"), "a [secret] b");
    check(
        r#"{"a":"hunter2/Correct Horse+9\"ü"}"#,
        r#"{"a":"[secret]"}"#,
    );
    check(
        "?q=hunter2%2FCorrect%20Horse%2B9%22%C3%BC&x",
        "?q=[secret]&x",
    );
    check("q=hunter2%2fCorrect+Horse%2b9%22%c3%bc", "q=[secret]");
    // base64 of `ada:k3y-of-16-letters` and of `x:k3y-of-16-letters`.
    check("Basic YWRhOmszeS1vZi0xNi1sZXR0ZXJz", "Basic YWRhOm[secret]");
    check("eDprM3ktb2YtMTYtbGV0dGVycw==", "eDp[secret]w==");
    check("6b33792d6f662d31362d6c657474657273", "[secret]");
    check("k3y-of-16-letter", "[secret]");
    check(
        "cut here: k3y-of-16\nletters",
        "cut here: [secret]\nletters",
    );
    check("…of-16-letters and on", "…[secret] and on");
    check("k3y-of-16 is not cut", "k3y-of-16 is not cut");
    check("k3y-of-17-letters", "k3y-of-17-letters");
    assert_eq!(
        &*known().replace_bytes(b"\xffk3y-of-16-letters\xfe"),
        b"\xff[secret]\xfe"
    );
}

#[test]
fn many_long_values_are_found() {
    let values: Vec<String> = (0..4).map(|n| drawn(&format!("{n:02}-<10000>"))).collect();
    let known = Known::new(&values);
    for value in &values {
        assert_eq!(known.replace(&format!("a {value} b")), "a [secret] b");
    }
}

/// What is there for these tests.
fn is_there(path: &str) -> bool {
    path == "/x9Kq2mZt"
}

#[test]
fn of_a_variable_that_is_known_which_is_secret() {
    let check = |name: &str, value: &str, secret: &str| {
        let (value, secret) = (drawn(value), drawn(secret));
        let known = Known::of_variable(name, &value, is_there);
        let printed = known.replace(&value);
        let rest = value.replacen(&secret, "[secret]", 1);
        assert_eq!(printed, rest, "{name}={value}");
    };
    // By the name.
    for (name, value) in [
        ("OPENAI_API_KEY", "not a shape 12"),
        ("DB_PASSWORD", "s3cr3t-pass"),
        ("DB_PASSWORD", "/k9Xq2mZtw"),
        ("DB_PASSWORD", "~k9Xq2mZtw"),
        ("DB_PASSWORD", ".k9Xq/2mZtw"),
        ("DB_PASSWORD", "k9Xq:/2mZtw"),
        ("DB_PASSWORD", "k9://2mZtw"),
        ("MYSQL_PWD", "correct-horse-battery"),
        ("AWS_SECRET_ACCESS_KEY", "/bPxRfiCY/K7MDENG/wJalrXUtnFEMI"),
        ("PIN_TOKEN", "493017264915"),
        ("DB_PASSWORD", "4930172649"),
        ("githubToken", "abcdefgh-1"),
        ("DEPLOY_KEY", "a8f3c9d1e2b47605"),
        ("NPM_AUTH", "x9$kLm2Qz7"),
        ("SECRET_ID", "0198f3c2-7b1a-7cc3-9d5e-0a1b2c3d4e5f"),
        ("ODD_NAME", "ghp_<36>"),
    ] {
        check(name, value, value);
    }
    // By where it stands.
    for (name, value, secret) in [
        (
            "DATABASE_URL",
            "postgres://ada:s3cr3tpass@h/db",
            "s3cr3tpass",
        ),
        ("REDIS", "redis://:pass%2Fword1@h", "pass%2Fword1"),
        (
            "SENTRY_DSN",
            "https://<x32>@o1.ingest.example.org/1",
            "<x32>",
        ),
        (
            "SLACK_WEBHOOK_SECRET",
            "https://hooks.slack.com/services/T0001/B0001/<24>",
            "T0001/B0001/<24>",
        ),
        ("GIT_TOKEN_URL", "https://ghp_<36>@github.com", "ghp_<36>"),
        (
            "GIT_REMOTE",
            "https://ghp_<36>:x-oauth-basic@github.com/a/b",
            "ghp_<36>",
        ),
        ("WEBHOOK_URL", "https://h/x?v=1&code=<x24>", "<x24>"),
        (
            "JAVA_OPTS",
            "-Xmx2g -Dpassword=hunt3r2-x1 -ea",
            "hunt3r2-x1",
        ),
    ] {
        check(name, value, secret);
    }
    for (name, value) in [
        ("SSH_AUTH_SOCK", "/tmp/ssh-1/agent.1"),
        ("SSH_AUTH_SOCK", "/x9Kq2mZt"),
        ("KEY_FILE", "~/.ssh/id_rsa"),
        ("TOKEN_SOCKET", "unix:path=/run/user/1000/bus"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/ada/gcp-key.json"),
        ("TOKEN_URL", "https://auth.example.org/oauth2/token"),
        ("DEPLOY_TOKEN_URL", "ssh://git-deploy@example.org/a/b"),
        ("PWD", "/k9Xq2mZtw"),
        ("MAX_TOKENS", "200000000000"),
        ("TOKEN_EXPIRES_AT", "1795291200000"),
        ("DB_PASSWORD", "1234567"),
        ("API_KEY", "ollama"),
        ("API_KEY", "placeholder"),
        ("DB_PASSWORD", "postgres"),
        ("SONAR_PROJECT_KEY", "acme-backend"),
        ("SONAR_PROJECT_KEY", "org.acme:backend-v2_2024"),
        ("AUTH_METHOD", "client_secret_basic"),
        ("SECRET_NAME", "acme-backend-tls"),
        ("HF_TOKENIZER", "bert-base-uncased"),
        ("KEYBOARD", "de-latin1-nodeadkeys"),
        ("EDITOR", "emacsclient -nw"),
        ("HOME", "/home/ada"),
    ] {
        let known = Known::of_variable(name, value, is_there);
        assert_eq!(known.count(), 0, "{name}={value}");
    }
    assert_eq!(format!("{:?}", known()), "Known(2)");
}

/// An address says it encoded, a program that has read it prints what is meant.
#[test]
fn of_a_password_in_an_address_both_spellings_are_known() {
    let known = Known::of_variable("URL", "redis://:pass%2Fword1@h", is_there);
    assert_eq!(known.replace("AUTH pass/word1"), "AUTH [secret]");
    let known = Known::of_address("redis://:pass%2Fword1@h");
    assert_eq!(known.replace("AUTH pass/word1"), "AUTH [secret]");
}

#[test]
fn what_a_path_holds_can_stay_readable() {
    let known = Known::new(["acme-backend-4f", "k3y-of-16-letters"]);
    let spared = known.but_for("/srv/acme-backend-4f/w");
    assert_eq!(spared.replace("acme-backend-4f"), "acme-backend-4f");
    assert_eq!(spared.replace("k3y-of-16-letters"), "[secret]");
    assert_eq!(known.but_for("/srv/w").count(), 2);
}

#[test]
fn an_event_loses_known_values_but_not_what_is_opaque() {
    let known = known();
    let result = |content: &str| {
        Event::Result(ToolResult {
            call: CallId::new(EntryId(5), 1),
            status: Status::Ok,
            content: content.to_owned(),
            clipped: None,
            facts: crate::exchange::Facts::default(),
            ms: Some(3),
        })
    };
    let json = |event: &Event| serde_json::to_string(event).unwrap();
    let told = known.event(result(&format!("a {VALUE} b")));
    assert_eq!(json(&told), json(&result("a [secret] b")));
    let raw = r#"{"type":"response","request":4,"text":"k3y-of-16-letters","reasoning":[{"raw":"k3y-of-16-letters"}],"ending":"complete"}"#;
    let entry = format!(
        "{{\"id\":1,\"at\":\"1970-01-01T00:00:00.000Z\",{}",
        &raw[1..]
    );
    let entry: Entry = serde_json::from_str(&entry).unwrap();
    let told = json(&known.event(entry.event));
    assert_eq!(told, raw.replacen("k3y-of-16-letters", "[secret]", 1));
}

/// Values that are words of ours, or what stands in every entry: only texts lose them.
#[test]
fn an_entry_stays_one_whatever_the_values_are() {
    let known = Known::new([
        "follow_up",
        "provider_request",
        "summary_failed",
        "2026-11-21",
        "k3y-of-16-letters",
    ]);
    let masks = [Masks::of_known(known.clone()), Masks::new(known.clone())];
    for (body, told) in [
        (
            r#""type":"user","origin":"follow_up","text":"a follow_up of 2026-11-21""#,
            r#""type":"user","origin":"follow_up","text":"a [secret] of [secret]""#,
        ),
        (
            r#""type":"note","kind":"summary_failed","request":4,"why":"summary_failed""#,
            r#""type":"note","kind":"summary_failed","request":4,"why":"[secret]""#,
        ),
        (
            r#""type":"response","request":4,"text":"provider_request","calls":[{"name":"Bash","arguments":"{\"k3y-of-16-letters\":1}"}],"ending":"complete","provider_request":"x""#,
            r#""type":"response","request":4,"text":"[secret]","calls":[{"name":"Bash","arguments":"{\"[secret]\":1}"}],"ending":"complete","provider_request":"x""#,
        ),
        (
            r#""type":"setup","wire":{"instructions":"follow_up","tools":[{"name":"follow_up","description":"k3y-of-16-letters","schema":{"properties":{"follow_up":{"enum":["follow_up"],"description":"follow_up"}}},"meta":{"effect":"reads","hint":{"request":"keep","response":"strip"}}}],"models":{"main":{"name":"m","api":"chat"}}},"policy":{}"#,
            r#""type":"setup","wire":{"instructions":"[secret]","tools":[{"name":"follow_up","description":"[secret]","schema":{"properties":{"follow_up":{"enum":["follow_up"],"description":"[secret]"}}},"meta":{"effect":"reads","hint":{"request":"keep","response":"strip"}}}],"models":{"main":{"name":"m","api":"chat"}}},"policy":{}"#,
        ),
    ] {
        let entry = |body: &str| -> Entry {
            let json = format!("{{\"id\":7,\"at\":\"2026-11-21T20:00:00.000Z\",{body}}}");
            serde_json::from_str(&json).unwrap()
        };
        let (entry, told) = (entry(body), entry(told));
        let json = |entry: &Entry| serde_json::to_string(entry).unwrap();
        let kept = Entry {
            event: known.event(entry.event.clone()),
            ..entry.clone()
        };
        assert_eq!(json(&kept), json(&told));
        for masks in &masks {
            assert_eq!(masks.json(&json(&entry)), json(&told));
            let line = |entry: &Entry| {
                let line = String::from_utf8(jsonl::encode(entry).unwrap()).unwrap();
                line.trim_end().to_owned()
            };
            assert_eq!(masks.json(&line(&entry)), line(&told));
        }
    }
}

#[test]
fn json_stays_json_and_its_names_count() {
    let masks = Masks::new(known());
    for (json, expected) in [
        (r#"{"a": 1, "b":"x"}"#, r#"{"a": 1, "b":"x"}"#.to_owned()),
        (
            r#"{"password":"hunt3r2x","n":1}"#,
            r#"{"password":"[masked: secret]","n":1}"#.to_owned(),
        ),
        (
            r#"{"arguments":"{\"password\":\"hunt3r2x\"}"}"#,
            r#"{"arguments":"{\"password\":\"[masked: secret]\"}"}"#.to_owned(),
        ),
        (
            r#"["k3y-of-16-letters",{"k3y-of-16-letters":2}]"#,
            r#"["[secret]",{"[secret]":2}]"#.to_owned(),
        ),
    ] {
        assert_eq!(masks.json(json), expected);
        assert_eq!(Masks::none().json(json), json);
    }
    assert_eq!(
        Masks::of_known(known()).text("ghp_123456789012345678"),
        "ghp_123456789012345678"
    );
}

/// What is given out of a text of which all but the beginning comes in pieces of so many bytes.
fn in_pieces(beginning: &str, text: &str, bytes: usize) -> String {
    let masks = Masks::new(known());
    let mut pieces = Pieces::default();
    let mut given = pieces.take(&masks, beginning);
    let mut rest = text;
    while !rest.is_empty() {
        let end = (bytes.min(rest.len())..=rest.len()).find(|at| rest.is_char_boundary(*at));
        let (piece, behind) = rest.split_at(end.unwrap());
        given += &pieces.take(&masks, piece);
        rest = behind;
    }
    given + &pieces.finish(&masks)
}

/// Lines that are longer than what is held back, with secrets wherever it may be given out.
#[test]
fn a_long_line_is_masked_like_a_short_one() {
    let lines: String = (0..400).map(|_| drawn("<64>\n")).collect();
    let (begin, end) = (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
        "-----END PGP PRIVATE KEY BLOCK-----",
    );
    let key = format!("{begin}{lines}{end}");
    let last = "and k3y-of-16-letters, Bearer <40> ghp_<36> SK<x32> \"password\": \"hunt3r2x\"";
    for (name, filler) in [
        ("words", "some words ".repeat(1600)),
        ("one word", "word".repeat(4200) + "/"),
        (
            "two words",
            "word".repeat(2500) + " " + &"word".repeat(2500) + "/",
        ),
        ("values", "{\"some\":\"ünd\"},".repeat(1200)),
        ("a key", format!("{key}\n")),
        ("a key in one line", key.replace('\n', "\\n") + " "),
        ("the first half of a key", key[..20_000].to_owned()),
    ] {
        for before in (0..99).step_by(33) {
            // What is held back is passed at another place in what follows.
            let count = filler.chars().count();
            let cut = if name.contains("key") {
                0
            } else {
                count - 16_384 + before
            };
            let filler: String = filler.chars().skip(cut).collect();
            let rest = if name.contains("half") {
                &key[20_000..]
            } else {
                ""
            };
            let rest = drawn(&format!("{rest}{last} {last}\nand {last}"));
            let whole = Masks::new(known())
                .text(&format!("{filler}{rest}"))
                .into_owned();
            for bytes in [5, 300] {
                let given = in_pieces(&filler, &rest, bytes);
                assert!(
                    given == whole,
                    "{name}, {before}, {bytes}:\n{given}\n{whole}"
                );
            }
        }
    }
}

/// Nothing is held back without end.
#[test]
fn of_a_line_without_end_most_is_given_out() {
    let masks = Masks::new(known());
    for word in ["word ", "word", "\"a\":1,"] {
        let mut pieces = Pieces::default();
        let piece = word.repeat(500);
        let given: usize = (0..30).map(|_| pieces.take(&masks, &piece).len()).sum();
        assert!(30 * piece.len() - given <= 16 << 10, "{word}: {given}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// However a text is cut into pieces, what is given out is what is shown of the whole.
    #[test]
    fn pieces_are_masked_like_the_whole(cuts in prop::collection::vec(1..9_usize, 1..200)) {
        let text = drawn(concat!(
            "The token is ghp_<36>, then\npassword = \"hunter2\" and k3y-of-16-letters here.\n",
            "-----BEGIN RSA PRIVATE KEY-----\n<64>\n<32>\n-----END RSA PRIVATE KEY-----\n",
            "An ünusual end, Authorization: Bearer <30> eyJ<20>.eyJ<40>.<43>",
        ));
        let masks = Masks::new(known());
        let mut pieces = Pieces::default();
        let mut given = String::new();
        let mut rest = text.as_str();
        for cut in cuts.into_iter().cycle() {
            let end = (cut..rest.len()).find(|at| rest.is_char_boundary(*at));
            let end = end.unwrap_or(rest.len());
            let (piece, behind) = rest.split_at(end);
            given += &pieces.take(&masks, piece);
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        given += &pieces.finish(&masks);
        prop_assert_eq!(given, masks.text(&text).into_owned());
    }

    /// Nothing panics, and what was masked stays.
    #[test]
    fn any_text_is_masked_once(text in "(?s)([a-z_=:/@\" ]{0,8}(token|password|secret|://|-----BEGIN |PRIVATE KEY-----|ghp_|eyJ|Bearer |AKIA)?.{0,6}){0,12}") {
        let once = masked(&text).into_owned();
        prop_assert_eq!(masked(&once), once.as_str());
    }
}
