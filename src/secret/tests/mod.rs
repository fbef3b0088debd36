mod known;
mod pieces;

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
fn a_port_at_which_an_address_was_cut_is_no_password() {
    check(&[
        (
            "GET https://ada:hunter2…",
            "GET https://ada:[masked: password]…",
        ),
        (
            "GET https://ada:1234567…",
            "GET https://ada:[masked: password]…",
        ),
        ("GET http://127.0.0.1:1811…", "GET http://127.0.0.1:1811…"),
        ("GET http://[::1]:18110…", "GET http://[::1]:18110…"),
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
    // A listing, a search or our own clipping took the first lines.
    for rest in [&pem[32 + 20..], &pem[32 + 65..]] {
        for begin in [
            "\n",
            "\\n",
            "\n  12│ ",
            "\n    12\t",
            "\n> ",
            "\nsrc/k-1.pem:12: ",
        ] {
            let text = |rest: &str| format!("[… 900 characters …]{begin}{rest}{begin}b");
            let rest = rest.replace('\n', begin);
            assert_eq!(masked(&text(&rest)), text("[masked: private key]"));
        }
    }
    let clipped = format!("{}\n[… 900 characters …]\n{}", &pem[..120], &pem[120..]);
    let told = "[masked: private key]\n[… 900 characters …]\n[masked: private key]";
    assert_eq!(masked(&clipped), told);
    let text = "a word\n-----END PRIVATE KEY-----";
    assert_eq!(masked(text), text);
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
