//! Values that the process knows.

use super::*;

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
    // The same in base64 and in hexadecimal.
    check(
        "YWRhOmszeS1vZi0xNi1s… 9 left out",
        "YWRhOm[secret]… 9 left out",
    );
    check(
        "… left out]\n312d362d6c657474657273 x",
        "… left out]\n312d362d6c657474657273 x",
    );
    check(
        "… left out …]\n31362d6c657474657273 x",
        "… left out …]\n[secret] x",
    );
    check("k3y-of-17-letters", "k3y-of-17-letters");
    assert_eq!(
        &*known().replace_bytes(b"\xffk3y-of-16-letters\xfe"),
        b"\xff[secret]\xfe"
    );
}

/// What libraries write into addresses, JSON, source code and pages, each in its own way.
#[test]
fn a_value_is_found_in_whatever_means_it() {
    let known = Known::new(["AbC/dEf+GhI@jKl!mNo&9921"]);
    for text in [
        "AbC/dEf%2BGhI%40jKl%21mNo%269921",
        "AbC%2FdEf%2bGhI%40jKl!mNo%269921",
        r"AbC/dEf+GhI@jKl!mNo\u00269921",
        r"AbC\/dEf\u002BGhI@jKl!mNo\\u00269921",
        r"AbC/dEf\x2bGhI@jKl!mNo\x269921",
        "AbC/dEf+GhI@jKl!mNo&amp;9921",
        "AbC&#x2F;dEf&#43;GhI@jKl!mNo&#38;9921",
        r"\u0041\u0062C/dEf+GhI@jKl!mNo&9921",
    ] {
        for (before, behind) in [("", ""), ("50%, a%20b&amp;é\\u00e9 ", "%%41&\\")] {
            let text = format!("{before}{text}{behind}");
            assert_eq!(known.replace(&text), format!("{before}[secret]{behind}"));
            assert!(known.is_in(&text));
        }
    }
    for other in ["AbC/dEf%2BGhI%40jKl%21mNo%26992", "&#;&#x;%+1%zz\\u+041\\"] {
        assert_eq!(known.replace(other), other);
    }
}

/// Most of a value is known whatever stands around it, and less of it only where it was cut.
#[test]
fn most_of_a_value_is_found_anywhere() {
    let known = Known::new(["tok-4f7Qz9.0b8Xk2Lm5Rt1Vw6Yc3Hd8Jn.0123456789"]);
    for (text, expected) in [
        (
            r#"write(1, "tok-4f7Qz9.0b8Xk2Lm5Rt1Vw6Yc3Hd8"..., 45) = 45"#,
            r#"write(1, "[secret]"..., 45) = 45"#,
        ),
        (
            "k: tok-4f7Qz9.0b8Xk2Lm5Rt1V   | k: tok-other",
            "k: [secret]   | k: tok-other",
        ),
        (
            "tok-4f7Qz9.0b8Xk\x1b[01;31m\x1b[K2Lm5\x1b[m\x1b[KRt1Vw6Yc3Hd8Jn.0123456789",
            "[secret]\x1b[01;31m\x1b[K2Lm5\x1b[m\x1b[K[secret]",
        ),
        ("not Rt1Vw6Yc3Hd8Jn.0123456789.txt", "not [secret].txt"),
        (
            "tok-4f7Qz9.0b8Xk2L and tok-4",
            "tok-4f7Qz9.0b8Xk2L and tok-4",
        ),
    ] {
        assert_eq!(known.replace(text), expected);
    }
}

/// What programs print that encode: with line ends, blanks, and both as JSON writes them.
#[test]
fn an_encoded_value_is_found_over_line_ends() {
    let value = "ghp-like/4f7Qz9.0b8Xk2Lm5Rt1Vw6Yc3Hd8Jn.0123456789.and+on+until?the~end";
    let known = Known::new([value]);
    for (text, expected) in [
        (
            "a Z2hwLWxpa2UvNGY3UXo5LjBiOFhrMkxtNVJ0MVZ3NlljM0hkOEpuLjAxMjM0NTY3ODkuYW5kK29u\n\
             K3VudGlsP3RoZX5lbmQ=\nb",
            "a [secret]Q=\nb",
        ),
        (
            "6768702d6c696b652f346637517a392e306238586b324c6d355274315677\n\
             365963334864384a6e2e303132333435363738392e616e642b6f6e2b756e\n\
             74696c3f7468657e656e64\n",
            "[secret]\n",
        ),
    ] {
        for end in ["\n", "\r\n", "\n    ", "\\n", "\\r\\n", "\\\\n"] {
            let (text, expected) = (text.replace('\n', end), expected.replace('\n', end));
            assert_eq!(known.replace(&text), expected);
            assert!(known.is_in(&text));
        }
    }
    let bytes: Vec<String> = value.bytes().map(|byte| format!(" {byte:02x}")).collect();
    let lines: Vec<String> = bytes.chunks(16).map(<[String]>::concat).collect();
    let text = format!(" 0a{0} 0a\n{0}\nü", lines.join("\n"));
    assert_eq!(known.replace(&text), " 0a [secret] 0a\n [secret]\nü");
    let text = "nothing of it:\n 67 68 70\n\\";
    assert_eq!(known.replace(text), text);
}

/// How programs show the bytes that they are given, with numbers before their lines and text beside them.
const DUMPS: [&str; 32] = [
    "od -tx1",
    "od -tx1z",
    "od -An -tx1",
    "od -c",
    "od -b",
    "od -tu1",
    "od -x",
    "od -v -w7 -tx1",
    "hexdump",
    "hexdump -C",
    "hexdump -c",
    "xxd",
    "xxd -u",
    "xxd -c 12 -g 1",
    "xxd -p",
    "xxd -i",
    r"xxd -p | sed 's/../\\x&/g'",
    "xxd -p | sed 's/../%&/g'",
    "xxd -p | sed 's/../:&/g'",
    "od -An -v -tu1 | sed 's/  */, /g'",
    "xxd | nl",
    "xxd | grep -n .",
    "hexdump -C | cat -n",
    "xxd | sed 's/^/> /'",
    "base64 -w 12 | sed 's/^/+/'",
    "xxd -g 4",
    "base64 -w 20 | cat -n",
    "base64 -w 10 | nl -ba",
    "base64 | grep -n .",
    "fold -w 10",
    "fold -w 10 | cat -n",
    "hexdump -C | sed 's/$/\\\\n/' | tr -d '\\n'",
];

/// However a program shows bytes, and wherever in them a value begins, nothing of it is left to read.
#[test]
fn a_value_is_found_in_what_shows_its_bytes() {
    let values = ["s3cr3t-9", "ghp-like/4f7Qz9.0b8Xk2Lm5Rt1Vw6Yc3Hd8Jn"];
    for value in values {
        let known = Known::new([value]);
        let texts: Vec<String> = (0..17)
            .map(|ahead| ".".repeat(ahead) + value + "/x/y\n")
            .collect();
        for dump in DUMPS {
            let Some(shown) = shown(dump, &texts) else {
                continue;
            };
            for (ahead, shown) in shown.iter().enumerate() {
                let told = known.replace(shown);
                assert!(told.contains("[secret]"), "{dump}, {ahead}: {shown}");
                assert!(
                    known.is_in(shown) && !known.is_in(&told),
                    "{dump}, {ahead}: {told}"
                );
                for part in value.as_bytes().windows(6) {
                    let part = String::from_utf8_lossy(part);
                    assert!(!told.contains(&*part), "{dump}, {ahead}: {told}");
                }
            }
        }
    }
}

/// What is only like a value where blanks and line ends are taken away is other text.
#[test]
fn text_without_its_blanks_is_no_value() {
    let known = Known::new(["pass word", "1234567890", "correct horse"]);
    for text in [
        "a password",
        "1\n2\n3\n4\n5\n6\n7\n8\n9\n0\n",
        "correct  horse",
    ] {
        assert_eq!(known.replace(text), text);
    }
}

/// What a pipe of programs makes of each of these; `None` where it cannot be had.
#[expect(clippy::disallowed_methods, reason = "real programs are the judges")]
fn shown(dump: &str, texts: &[String]) -> Option<Vec<String>> {
    let program = dump.split(' ').next().unwrap_or_default();
    let each = texts.iter().map(|text| {
        let script =
            format!("command -v {program} >/dev/null || exit 9; printf %s \"$1\" | {dump}");
        let mut bash = std::process::Command::new("bash");
        let output = bash.args(["-c", &script, "bash", text]).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code() != Some(9)).then_some(text)
    });
    each.collect()
}

/// What has numbers before its lines and is no dump stays as it is, and so does what is beside a value.
#[test]
fn numbered_lines_stay_but_for_the_value() {
    let known = known();
    let text = "     1\tlet a = 1;\n     2\tlet b = \"k3y-of-16-letters\";\n";
    let told = "     1\tlet a = 1;\n     2\tlet b = \"[secret]\";\n";
    assert_eq!(known.replace(text), told);
    let text = "12: a  |b|\n00000000: 6b33 792d  k3y-\ndeadbeef  6b 33 |k3|\n";
    assert_eq!(known.replace(text), text);
    let text =
        "000: 6b33 792d 6f66 2d31 362d 6c65 7474 6572  k3y-of-16-letter\n010: 7320 20  s  \nnext";
    assert_eq!(known.replace(text), "000: [secret]\nnext");
}

/// What `declare -p`, `set` and `printf %q` of bash print, and `export -p` of dash, alone and in JSON.
/// The value stands in `«»`.
#[test]
fn a_value_is_found_as_shells_quote_it() {
    for (value, quoted) in [
        (
            r#"a$b"c\d`e'f!g h&i;j(k)l<m>n{o}p*q[r]s?t^u,v~w#x=y:z"#,
            [
                r#"declare -x T="«a\$b\"c\\d\`e'f!g h&i;j(k)l<m>n{o}p*q[r]s?t^u,v~w#x=y:z»""#,
                r#"T='«a$b"c\d`e'\''f!g h&i;j(k)l<m>n{o}p*q[r]s?t^u,v~w#x=y:z»'"#,
                r#"«a\$b\"c\\d\`e\'f\!g\ h\&i\;j\(k\)l\<m\>n\{o\}p\*q\[r\]s\?t\^u\,v~w#x=y:z»"#,
                r#"export T='«a$b"c\d`e'"'"'f!g h&i;j(k)l<m>n{o}p*q[r]s?t^u,v~w#x=y:z»'"#,
            ],
        ),
        (
            "two''quotes'",
            [
                r#"declare -x T="«two''quotes'»""#,
                r"T='«two'\'''\''quotes'\''»'",
                r"«two\'\'quotes\'»",
                r#"export T='«two'"''"'quotes'"'»""#,
            ],
        ),
        (
            "tab\tü\u{1}\u{1b}\u{7f}'\"$\\e",
            [
                r#"declare -x T=$'«tab\tü\001\E\177\'"$\\e»'"#,
                r#"T=$'«tab\t\303\274\001\E\177\'"$\\e»'"#,
                r#"$'«tab\tü\001\E\177\'"$\\e»'"#,
                "export T='«tab\tü\u{1}\u{1b}\u{7f}'\"'\"'\"$\\e»'",
            ],
        ),
    ] {
        let known = Known::new([value]);
        for quoted in quoted {
            let (before, rest) = quoted.split_once('«').unwrap();
            let (form, behind) = rest.split_once('»').unwrap();
            let text = format!("{before}{form}{behind}");
            let told = format!("{before}[secret]{behind}");
            assert_eq!(known.replace(&text), told);
            let json = |text: &str| serde_json::to_string(text).unwrap();
            assert_eq!(known.replace(&json(&text)), json(&told));
            assert_eq!(known.replace(&json(&json(&text))), json(&json(&told)));
        }
    }
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

#[test]
fn short_names_tell_as_well_and_not_what_only_begins_like_them() {
    for (name, value) in [
        ("SSHPASS", "Tr0ub4dor&3"),
        ("DB_PW", "correct-horse-battery"),
        ("SMTP_PSWD", "correct-horse-battery"),
        ("LDAP_BIND_CRED", "correct-horse-battery"),
        ("WIFI_PSK", "correct horse battery"),
        ("VAULT_UNSEAL", "k9Xq2mZtw7+Lp/4R="),
        ("OTP_SEED", "JBSWY3DPEHPK3PXP"),
    ] {
        let known = Known::of_variable(name, value, is_there);
        assert_eq!(known.replace(value), "[secret]", "{name}={value}");
    }
    for (name, value) in [
        ("OLDPWD", "/k9Xq2mZtw"),
        ("GIT_ASKPASS", "k9Xq2mZtw"),
        ("PROXY_BYPASS", "10.0.0.0/8,k9.local"),
        ("PW_TEST_BROWSER", "chromium-1124x"),
        ("PWNED_AT", "k9Xq2mZtw"),
        ("CREDITS", "k9Xq2mZtw"),
        ("GOOGLE_CREDS", "/home/ada/gcp-key.json"),
        ("CREDS_STORE", "secretservice-1"),
        ("RANDOM_SEED", "123456789012"),
        ("SEED_DATA", "acme-fixtures-2024"),
        ("UNSEALED", "k9Xq2mZtw"),
    ] {
        let known = Known::of_variable(name, value, is_there);
        assert_eq!(known.count(), 0, "{name}={value}");
    }
}

/// An address says it encoded, a program that has read it prints what is meant.
#[test]
fn of_a_password_in_an_address_both_spellings_are_known() {
    let known = Known::of_variable("URL", "redis://:pass%2Fword1@h", is_there);
    assert_eq!(known.replace("AUTH pass/word1"), "AUTH [secret]");
    let known = Known::of_address("redis://:pass%2Fword1@h");
    assert_eq!(known.replace("AUTH pass/word1"), "AUTH [secret]");
    // A sign is no digit.
    let known = Known::of_address("redis://:pass%+1word%2F1@h");
    assert_eq!(known.replace("AUTH pass%+1word/1"), "AUTH [secret]");
}

/// Programs take single fields out of credentials that are JSON.
#[test]
fn of_a_value_that_is_json_the_secret_strings_are_known() {
    let key = drawn("-----BEGIN PRIVATE KEY-----\n<64>\n<40>\n-----END PRIVATE KEY-----\n");
    let id = drawn("<x40>");
    let credentials = serde_json::json!({
        "type": "service_account",
        "project_id": "acme-prod-314159",
        "private_key_id": id,
        "private_key": key,
        "client_email": "bot-7@acme-prod-314159.iam.example.org",
        "token_uri": "https://oauth2.example.org/token",
        "logins": [{"user": "ada-lovelace-2026x", "p": "x9$kLm2Qz7"}],
    })
    .to_string();
    let inside = serde_json::json!([credentials]).to_string();
    let rest = "acme-prod-314159 bot-7@acme-prod-314159.iam.example.org \
                https://oauth2.example.org/token ada-lovelace-2026x service_account";
    for json in [credentials, inside] {
        let known = Known::of_variable("GOOGLE_CREDENTIALS", &json, is_there);
        let told = known
            .replace(&format!("{key}{id} x9$kLm2Qz7 {rest}"))
            .into_owned();
        assert_eq!(told, format!("[secret]\n[secret] [secret] {rest}"));
        assert_eq!(known.replace(&json), "[secret]");
        assert_eq!(known.replace(key.lines().nth(2).unwrap()), "[secret]");
    }
    // Of a variable that says nothing, what its fields say.
    let json = r#"{"db": {"password": "correct-horse-battery", "p": "x9$kLm2Qz7"}}"#;
    let known = Known::of_variable("APP_CONFIG", json, is_there);
    let told = known.replace("correct-horse-battery x9$kLm2Qz7");
    assert_eq!(told, "[secret] x9$kLm2Qz7");
    assert!(Known::of_variable("APP_CONFIG", r#"{"password": "#, is_there).is_empty());
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
