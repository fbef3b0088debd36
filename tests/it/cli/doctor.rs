//! `doctor`: what it finds at servers of all kinds.

use std::fmt::Write as _;

use crate::cli::{Place, Ran, says};
use crate::provider::{Answer, Provider};

const LIST: &str = r#"{"data":[{"id":"m","context_length":65536},{"id":"other"}]}"#;
const SUM: (&str, &str) = ("Add", r#"{"a":17,"b":25}"#);

/// What is found at a server that gives these answers, in place of `doctor` and its server.
fn found(answers: impl IntoIterator<Item = Answer>, more: &[&str]) -> String {
    let place = Place::new();
    let provider = Provider::new(answers);
    let line = ["doctor", "-m", "m", "--base-url", &provider.url];
    said(&place, &place.run(&[&line, more].concat()))
}

fn said(place: &Place, ran: &Ran) -> String {
    assert!(!place.path("home/.local").exists(), "{ran:?}");
    format!("{}exit {}", place.plain(&ran.out), ran.code)
}

fn list() -> Answer {
    Answer::Status(200, LIST)
}

fn calls() -> Answer {
    Answer::Calls(vec![SUM])
}

#[test]
fn a_good_server_is_told_line_by_line() {
    let window = ["--set", "model.context_window=65536"];
    let good = || [list(), says("ready"), calls(), says("42")];
    insta::assert_snapshot!(found(good(), &window), @"
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    ok    key       none is sent
    ok    server    http://HOST/v1 answers
    ok    model     m, which the server lists
    ok    profile   compatible: no profile is for this server
    ok    window    65,536 tokens, as your settings say
    ok    prices    not known: cost is not counted
    ok    reply     whole, finish reason stop, 1000 tokens in and 10 out
    ok    call      made, with whole arguments, and its result was read

    Nothing needs to change.
    exit 0
    ");
    let json = found(good(), &[&window[..], &["--json"]].concat());
    let json = json.strip_suffix("\nexit 0").unwrap();
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!((&json["usable"], &json["exit"]), (&true.into(), &0.into()));
    assert_eq!(json["checks"][9]["name"], "call");
    assert_eq!(json["change"], serde_json::json!([]));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table, and the text that it makes")]
fn what_is_wrong_at_a_server_is_named_with_what_to_change() {
    let refused = r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#;
    let none = r#"{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}"#;
    let toolless = r#"{"error":{"message":"m does not support tools"}}"#;
    let uncounted = r#"{"choices":[{"message":{"content":"ready"},"finish_reason":"stop"}]}"#;
    let broke = r#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#;
    let written = "<tool_call>{\"name\":\"Add\",\"arguments\":{\"a\":17,\"b\":25}}</tool_call>";
    let page = "<html><body>It works!</body></html>";
    let small = r#"{"data":[{"id":"m","max_model_len":4096,"owned_by":"vllm"}]}"#;
    let named = ["--api-key-env", "SECRET_KEY"];
    let larger = ["--set", "model.context_window=65536"];
    let mut all = String::new();
    for (what, answers, more) in [
        ("wrong key", vec![Answer::Status(401, refused)], &named[..]),
        (
            "unknown model",
            vec![
                Answer::Status(200, r#"{"data":[{"id":"m2"}]}"#),
                Answer::Status(404, none),
            ],
            &larger,
        ),
        (
            "no tools",
            vec![list(), says("ready"), Answer::Status(400, toolless)],
            &larger,
        ),
        (
            "words in place of a call",
            vec![list(), says("ready"), says("It is 42.")],
            &larger,
        ),
        (
            "a call written as text",
            vec![list(), says("ready"), says(written), says(written)],
            &larger,
        ),
        ("no credit", vec![list(), Answer::Status(429, broke)], &[]),
        (
            "no usage",
            vec![list(), Answer::Status(200, uncounted), calls(), says("42")],
            &larger,
        ),
        (
            "a web page",
            vec![Answer::Status(200, page), Answer::Status(200, page)],
            &larger,
        ),
        (
            "a small window",
            vec![
                Answer::Status(200, small),
                says("ready"),
                calls(),
                says("42"),
            ],
            &larger,
        ),
        (
            "a limit of the cost without prices",
            vec![Answer::Status(404, ""), says("ready"), calls(), says("42")],
            &["--set", "limits.cost=1"],
        ),
    ] {
        writeln!(all, "== {what}\n{}", found(answers, more)).unwrap();
    }
    assert!(!all.contains("sk-very-secret"));
    insta::assert_snapshot!(all, @"
    == wrong key
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    ok    key       from SECRET_KEY
    ok    server    http://HOST/v1 answers
    fail  key       the server refuses it: Incorrect API key provided

    It does not work. What to change:
      put a key that is valid at http://HOST/v1 into SECRET_KEY
    exit 2
    == unknown model
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    ok    key       none is sent
    ok    server    http://HOST/v1 answers
    warn  model     the server does not list m; there is m2
    ok    profile   compatible: no profile is for this server
    ok    window    65,536 tokens, as your settings say
    ok    prices    not known: cost is not counted
    fail  reply     permanent (404): The model `m` does not exist

    It does not work. What to change:
      take the name that is listed: -m m2
      see that the model's name and the address are right
    exit 4
    == no tools
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    ok    key       none is sent
    ok    server    http://HOST/v1 answers
    ok    model     m, which the server lists
    ok    profile   compatible: no profile is for this server
    ok    window    65,536 tokens, as your settings say
    ok    prices    not known: cost is not counted
    ok    reply     whole, finish reason stop, 1000 tokens in and 10 out
    fail  call      permanent (400): m does not support tools; this model or server takes no tools, and all work here is done by tools: choose another model, or start the server with tools on (vLLM: --enable-auto-tool-choice --tool-call-parser NAME; llama-server: --jinja)

    It does not work. What to change:
      take a model that is made for tools, or switch tool calls on at the server
    exit 4
    == words in place of a call
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    ok    key       none is sent
    ok    server    http://HOST/v1 answers
    ok    model     m, which the server lists
    ok    profile   compatible: no profile is for this server
    ok    window    65,536 tokens, as your settings say
    ok    prices    not known: cost is not counted
    ok    reply     whole, finish reason stop, 1000 tokens in and 10 out
    fail  call      the model answered in words instead

    It does not work. What to change:
      take a model that is made for tools, or switch tool calls on at the server
    exit 1
    == a call written as text
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    ok    key       none is sent
    ok    server    http://HOST/v1 answers
    ok    model     m, which the server lists
    ok    profile   compatible: no profile is for this server
    ok    window    65,536 tokens, as your settings say
    ok    prices    not known: cost is not counted
    ok    reply     whole, finish reason stop, 1000 tokens in and 10 out
    fail  call      the model wrote it as text, which does not run

    It does not work. What to change:
      take a model that is made for tools, or switch tool calls on at the server
    exit 1
    == no credit
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    ok    key       none is sent
    ok    server    http://HOST/v1 answers
    ok    model     m, which the server lists
    ok    profile   compatible: no profile is for this server
    warn  window    the server says 65,536 tokens; it is not used yet
    ok    prices    not known: cost is not counted
    fail  reply     permanent (429): You exceeded your quota

    It does not work. What to change:
      see to credit and limits of your account at the provider
    What may be better:
      model.context_window: 65536
    exit 4
    == no usage
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    ok    key       none is sent
    ok    server    http://HOST/v1 answers
    ok    model     m, which the server lists
    ok    profile   compatible: no profile is for this server
    ok    window    65,536 tokens, as your settings say
    ok    prices    not known: cost is not counted
    warn  reply     whole, finish reason stop, but tokens are not reported
    ok    call      made, with whole arguments, and its result was read

    It works. What may be better:
      tokens and cost will be estimates; see if the server can report usage when streaming
    exit 0
    == a web page
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    ok    key       none is sent
    warn  server    http://HOST/v1 answers, but the server sent a web page
    ok    model     m; the server lists none
    ok    profile   compatible: no profile is for this server
    ok    window    65,536 tokens, as your settings say
    ok    prices    not known: cost is not counted
    fail  reply     permanent: the answer is no model's reply: `<html><body>It works!</body></html>`

    It does not work. What to change:
      see that http://HOST/v1 is the address of an API; most end in /v1
      see that the model's name and the address are right
    exit 4
    == a small window
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    ok    key       none is sent
    ok    server    http://HOST/v1 answers
    ok    model     m, which the server lists
    ok    profile   compatible: no profile is for this server
    warn  window    65,536 tokens, as your settings say; the server says 4,096 tokens
    ok    prices    not known: cost is not counted
    ok    reply     whole, finish reason stop, 1000 tokens in and 10 out
    ok    call      made, with whole arguments, and its result was read

    It works. What may be better:
      model.context_window: 4096
      the server seems to be vllm: model.profile: vllm
    exit 0
    == a limit of the cost without prices
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    ok    key       none is sent
    ok    server    http://HOST/v1 answers, without a list of models (404)
    ok    model     m; the server lists none
    ok    profile   compatible: no profile is for this server
    warn  window    not known; it is learned when the server says that a request is too long
    fail  prices    not known, so that limits.cost cannot hold
    ok    reply     whole, finish reason stop, 1000 tokens in and 10 out
    ok    call      made, with whole arguments, and its result was read

    It does not work. What to change:
      model.prices: { input: …, output: … }, in US dollars per million tokens
    What may be better:
      name the model's window, in tokens: model.context_window: 128000
    exit 2
    ");
}

#[test]
fn without_a_server_or_a_key_it_says_so() {
    let place = Place::new();
    let mut all = String::new();
    for line in [
        &["doctor", "-m", "m", "--base-url", "http://127.0.0.1:1/v1"][..],
        &["doctor", "-m", "gpt-5"],
        &[
            "doctor",
            "-m",
            "m",
            "--base-url",
            "http://x/v1",
            "--api-key-env",
            "MINE",
        ],
        &["doctor", "-m", "m", "--set", "model.nome=x"],
        &["doctor", "-m", "offline"],
    ] {
        let ran = said(&place, &place.run(line));
        writeln!(all, "$ {}\n{ran}", line.join(" ")).unwrap();
    }
    insta::assert_snapshot!(place.plain(&all), @"
    $ doctor -m m --base-url http://HOST/v1
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    ok    key       none is sent
    fail  server    http://HOST/v1: cannot connect: tcp connect error: Connection refused (os error 111)

    It does not work. What to change:
      start that server, or name another with --base-url
    exit 4
    $ doctor -m gpt-5
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    fail  key       no key for https://api.openai.com/v1; set OPENAI_API_KEY, name another server with --base-url, or try `undertext demo`

    It does not work. What to change:
      set the variable: export OPENAI_API_KEY=…
      or name a server that needs none: undertext doctor --base-url http://HOST/v1 -m MODEL
    exit 2
    $ doctor -m m --base-url http://x/v1 --api-key-env MINE
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    fail  key       cannot ask the server: variable MINE, which should hold the key for http://x/v1, is not set

    It does not work. What to change:
      set the variable: export MINE=…
      or name a server that needs none: undertext doctor --base-url http://HOST/v1 -m MODEL
    exit 2
    $ doctor -m m --set model.nome=x
    fail  settings  wrong setting in --set model.nome=x: unknown key `nome`, did you mean `name`?

    It does not work. What to change:
      mend that setting; `undertext config check` says when it is right
    exit 2
    $ doctor -m offline
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    ok    key       none is needed
    ok    model     offline, a script in this program and no LLM
    ok    window    32,000 tokens
    ok    reply     whole, finish reason stop, 65 tokens in and 35 out

    Nothing needs to change.
    exit 0
    ");
}

/// Whether a line tells of what a user may open.
#[cfg(target_os = "linux")]
fn is_of_what_opens(line: &&str) -> bool {
    let parts = [
        "workspace, by",
        "off: ",
        "writing",
        "modes",
        "hooks",
        "reading",
        "network",
        "sockets",
    ];
    line.contains(" sandbox ") && parts.iter().any(|part| line.contains(part))
}

/// What the settings opened is not called stopped; what they left closed is.
#[cfg(target_os = "linux")]
#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn what_the_user_opened_is_told_as_open() {
    let place = Place::new();
    let mut all = String::new();
    for (what, more) in [
        ("nothing", &[][..]),
        ("the network", &["--network=open"]),
        ("hosts", &["--network=crates.io,*.crates.io"]),
        (
            "a directory",
            &[
                "--set",
                "sandbox.write=[~/site]",
                "--set",
                "sandbox.read=[~/notes,~/.cargo]",
            ],
        ),
        (
            "what counts from here",
            &["--set", "sandbox.write=[../site,sub]"],
        ),
        ("home", &["--set", "sandbox.read=['~']"]),
        ("everything", &["--set", "sandbox.read=[/]"]),
        ("all", &["--sandbox=off"]),
    ] {
        for name in ["home/site", "home/w/sub"] {
            std::fs::create_dir_all(place.path(name)).unwrap();
        }
        let line = [&["doctor", "-m", "offline"], more].concat();
        let mut command = place.command(&line);
        command.env_remove("UNDERTEXT_SANDBOX__MODE");
        let ran = crate::cli::ended(command.spawn().unwrap());
        let told = place.plain(&ran.out);
        let is_off = more.contains(&"--sandbox=off");
        if !is_off && !told.contains("by namespaces (Landlock 7)") {
            println!("skipped: other mechanisms say it in other words");
            return;
        }
        writeln!(all, "== {what}").unwrap();
        for line in told.lines().filter(is_of_what_opens) {
            writeln!(all, "{line}").unwrap();
        }
    }
    insta::assert_snapshot!(all, @"
    == nothing
    ok    sandbox   workspace, by namespaces (Landlock 7); no network (--network=open allows it)
    ok    sandbox   stopped: writing outside the workspace, by a file system of its own
    ok    sandbox   stopped: modes, owners and times of files outside it, by read-only mounts
    ok    sandbox   stopped: hooks and config of repositories that are there, by read-only mounts; what runs is ended, should you replace one of them
    ok    sandbox   stopped: setuid and setgid files in the workspace, by a filter of system calls; but for your own that a program maps, and for setgid if what they may write, or a directory in it, is setgid
    ok    sandbox   stopped: reading home, keys and other transcripts, by a file system of its own
    ok    sandbox   stopped: the network and services of this machine, by a network of its own
    ok    sandbox   stopped: sockets of buses, containers and agents, by a file system and a network of its own, but for those in what it may read
    warn  sandbox   NOT stopped: memory that no process has mapped; /dev/shm is limited; memfds, pipes, sockets and messages are not counted
    == the network
    ok    sandbox   workspace, by namespaces (Landlock 7); with your network
    ok    sandbox   stopped: writing outside the workspace, by a file system of its own
    ok    sandbox   stopped: modes, owners and times of files outside it, by read-only mounts
    ok    sandbox   stopped: hooks and config of repositories that are there, by read-only mounts; what runs is ended, should you replace one of them
    ok    sandbox   stopped: setuid and setgid files in the workspace, by a filter of system calls; but for your own that a program maps, and for setgid if what they may write, or a directory in it, is setgid
    ok    sandbox   stopped: reading home, keys and other transcripts, by a file system of its own
    warn  sandbox   NOT stopped: the network and services of this machine; you opened it (sandbox.network)
    ok    sandbox   stopped: sockets of buses, containers and agents, by a file system of its own and Landlock, but for those in what it may read
    warn  sandbox   NOT stopped: memory that no process has mapped; /dev/shm is limited; memfds, pipes, sockets and messages are not counted
    == hosts
    ok    sandbox   workspace, by namespaces (Landlock 7); network: crates.io, *.crates.io
    ok    sandbox   stopped: writing outside the workspace, by a file system of its own
    ok    sandbox   stopped: modes, owners and times of files outside it, by read-only mounts
    ok    sandbox   stopped: hooks and config of repositories that are there, by read-only mounts; what runs is ended, should you replace one of them
    ok    sandbox   stopped: setuid and setgid files in the workspace, by a filter of system calls; but for your own that a program maps, and for setgid if what they may write, or a directory in it, is setgid
    ok    sandbox   stopped: reading home, keys and other transcripts, by a file system of its own
    ok    sandbox   stopped: the network and services of this machine, by a network of its own; but for crates.io, *.crates.io, as you said
    ok    sandbox   stopped: sockets of buses, containers and agents, by a file system and a network of its own, but for those in what it may read
    warn  sandbox   NOT stopped: memory that no process has mapped; /dev/shm is limited; memfds, pipes, sockets and messages are not counted
    == a directory
    ok    sandbox   workspace, by namespaces (Landlock 7); no network (--network=open allows it)
    ok    sandbox   stopped: writing outside the workspace, by a file system of its own; but for /home/site, as you said
    ok    sandbox   stopped: modes, owners and times of files outside it, by read-only mounts; but for /home/site, as you said
    ok    sandbox   stopped: hooks and config of repositories that are there, by read-only mounts; what runs is ended, should you replace one of them; but for /home/site, as you said
    ok    sandbox   stopped: setuid and setgid files in the workspace, by a filter of system calls; but for your own that a program maps, and for setgid if what they may write, or a directory in it, is setgid
    ok    sandbox   stopped: reading home, keys and other transcripts, by a file system of its own; but for /home/notes, /home/site, as you said
    ok    sandbox   stopped: the network and services of this machine, by a network of its own
    ok    sandbox   stopped: sockets of buses, containers and agents, by a file system and a network of its own, but for those in what it may read
    warn  sandbox   NOT stopped: memory that no process has mapped; /dev/shm is limited; memfds, pipes, sockets and messages are not counted
    == what counts from here
    ok    sandbox   workspace, by namespaces (Landlock 7); no network (--network=open allows it)
    ok    sandbox   stopped: writing outside the workspace, by a file system of its own; but for /home/site, as you said
    ok    sandbox   stopped: modes, owners and times of files outside it, by read-only mounts; but for /home/site, as you said
    ok    sandbox   stopped: hooks and config of repositories that are there, by read-only mounts; what runs is ended, should you replace one of them; but for /home/site, sub, as you said
    ok    sandbox   stopped: setuid and setgid files in the workspace, by a filter of system calls; but for your own that a program maps, and for setgid if what they may write, or a directory in it, is setgid
    ok    sandbox   stopped: reading home, keys and other transcripts, by a file system of its own; but for /home/site, as you said
    ok    sandbox   stopped: the network and services of this machine, by a network of its own
    ok    sandbox   stopped: sockets of buses, containers and agents, by a file system and a network of its own, but for those in what it may read
    warn  sandbox   NOT stopped: memory that no process has mapped; /dev/shm is limited; memfds, pipes, sockets and messages are not counted
    == home
    ok    sandbox   workspace, by namespaces (Landlock 7); no network (--network=open allows it)
    ok    sandbox   stopped: writing outside the workspace, by a file system of its own
    ok    sandbox   stopped: modes, owners and times of files outside it, by read-only mounts
    ok    sandbox   stopped: hooks and config of repositories that are there, by read-only mounts; what runs is ended, should you replace one of them
    ok    sandbox   stopped: setuid and setgid files in the workspace, by a filter of system calls; but for your own that a program maps, and for setgid if what they may write, or a directory in it, is setgid
    warn  sandbox   NOT stopped: reading home, keys and other transcripts; you opened /home
    ok    sandbox   stopped: the network and services of this machine, by a network of its own
    ok    sandbox   stopped: sockets of buses, containers and agents, by a file system and a network of its own, but for those in what it may read
    warn  sandbox   NOT stopped: memory that no process has mapped; /dev/shm is limited; memfds, pipes, sockets and messages are not counted
    == everything
    ok    sandbox   workspace, by namespaces (Landlock 7); no network (--network=open allows it)
    ok    sandbox   stopped: writing outside the workspace, by a file system of its own
    ok    sandbox   stopped: modes, owners and times of files outside it, by read-only mounts
    ok    sandbox   stopped: hooks and config of repositories that are there, by read-only mounts; what runs is ended, should you replace one of them
    ok    sandbox   stopped: setuid and setgid files in the workspace, by a filter of system calls; but for your own that a program maps, and for setgid if what they may write, or a directory in it, is setgid
    warn  sandbox   NOT stopped: reading home, keys and other transcripts; you opened /
    ok    sandbox   stopped: the network and services of this machine, by a network of its own
    ok    sandbox   stopped: sockets of buses, containers and agents, by a file system and a network of its own, but for those in what it may read
    warn  sandbox   NOT stopped: memory that no process has mapped; /dev/shm is limited; memfds, pipes, sockets and messages are not counted
    == all
    warn  sandbox   off: tools run with your own rights
    ");
}

#[test]
fn without_a_model_it_says_which_there_are() {
    let place = Place::new();
    let provider = Provider::new([list()]);
    let ran = place.run(&["doctor", "--base-url", &provider.url]);
    insta::assert_snapshot!(said(&place, &ran), @"
    ok    settings  no file; all as built in
    warn  sandbox   off: tools run with your own rights
    ok    key       none is sent
    ok    server    http://HOST/v1 answers
    fail  model     none is named; there is m, other

    It does not work. What to change:
      name one: undertext doctor -m MODEL, or model.name in config.yaml
    exit 2
    ");
}
