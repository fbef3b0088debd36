//! Somebody is asked about what is out of bounds, and the answer holds for exactly that.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};

use futures::future::FutureExt as _;
use serde_json::{Value, json};

use undertext::exchange::Status;
use undertext::hands::{Approval, Hands, Verdict, Wish};
use undertext::id::Digest;
use undertext::setup::Sandbox;

use super::{Area, By, bash, had, order, read, repository, ways};

/// Hands that ask, if this machine can hold them so; what they asked is noted.
async fn asking(area: &Area, by: By) -> Option<(Hands, Arc<Mutex<Vec<String>>>)> {
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let (notes, place) = (Arc::clone(&asked), area.path("").display().to_string());
    let approval = Approval::by(move |question| {
        notes
            .lock()
            .unwrap()
            .push(question.wish.to_string().replace(&place, "/"));
        let allow = match &question.wish {
            Wish::Read { path } | Wish::Write { path } => path.ends_with("yes.txt"),
            Wish::Connect { host, .. } => host == "127.0.0.1",
        };
        let reason = (!allow).then(|| "not this one".to_owned());
        async move { Verdict { allow, reason } }.boxed()
    });
    let bounds = area.bounds(&Sandbox::Workspace(area.reach())).by(ways(by));
    let hands = Hands::confined_asking(
        area.workspace(),
        Vec::new(),
        bounds,
        area.launch(),
        approval,
    );
    Some((had(by, hands.await)?.0, asked))
}

#[tokio::test]
async fn a_file_outside_is_allowed_for_that_call_and_nothing_else() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        let Some((hands, asked)) = asking(&area, by).await else {
            continue;
        };
        repository(&area.path("outside/bare"));
        let place = area.path("").display().to_string();
        let write = async |path: &str| {
            let arguments = json!({"path": path, "content": "new\n"});
            let outcome = hands.run(order("Write", &arguments)).await;
            (outcome.status, outcome.content.replace(&place, "/"))
        };
        let (status, said) = write("../outside/yes.txt").await;
        assert_eq!(status, Status::Ok, "{by:?} {said}");
        let line =
            "[sandbox: the user was asked and allowed for this call to write /outside/yes.txt]";
        assert!(said.ends_with(line), "{by:?} {said}");
        assert_eq!(read(&area.path("outside/yes.txt")), "new\n");
        let (status, said) = write("../outside/no.txt").await;
        assert_eq!(status, Status::Denied);
        let line =
            "[sandbox: the user was asked and refused to write /outside/no.txt: not this one]";
        assert!(said.ends_with(line), "{by:?} {said}");
        // The next call is held as before, and a command is not asked for.
        let outcome = bash(&hands, "echo x >> ../outside/yes.txt").await;
        assert_eq!(outcome.status, Status::Error, "{outcome:?}");
        // What is hidden or protected is nobody's to allow here.
        for path in [
            "../ours/yes.txt",
            ".git/hooks/yes.txt",
            "../outside/.git/yes.txt",
            "../outside/.GIT/yes.txt",
            "../outside/.hg/yes.txt",
            "../outside/.jj/repo/yes.txt",
            "../outside/bare/hooks/yes.txt",
            "/proc/yes.txt",
        ] {
            let (status, said) = write(path).await;
            assert_eq!(status, Status::Denied, "{by:?} {path}: {said}");
        }
        let outcome = hands
            .run(order("Read", &json!({"path": "../home/yes.txt"})))
            .await;
        assert_eq!(outcome.status, Status::Error, "{outcome:?}");
        hands.close().await;
        assert_eq!(read(&area.path("outside/yes.txt")), "new\n");
        assert!(!area.path("outside/no.txt").exists() && !area.path("w/.git").exists());
        assert_eq!(
            *asked.lock().unwrap(),
            [
                "to write /outside/yes.txt",
                "to write /outside/no.txt",
                "to read /home/yes.txt"
            ],
            "{by:?}"
        );
    }
}

/// A link that leads elsewhere by the time of the answer leads the call nowhere else.
#[tokio::test]
async fn what_was_allowed_is_the_file_that_was_asked_about() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        let link = area.path("w/link");
        symlink(area.path("outside/yes.txt"), &link).unwrap();
        fs::write(area.path("outside/yes.txt"), "").unwrap();
        let other = area.path("outside/other.txt");
        let approval = Approval::by(move |_| {
            fs::remove_file(&link).unwrap();
            symlink(&other, &link).unwrap();
            let (allow, reason) = (true, None);
            async move { Verdict { allow, reason } }.boxed()
        });
        let bounds = area.bounds(&Sandbox::Workspace(area.reach())).by(ways(by));
        let (here, launch) = (area.workspace(), area.launch());
        let hands = Hands::confined_asking(here, Vec::new(), bounds, launch, approval).await;
        let Some((hands, _)) = had(by, hands) else {
            continue;
        };
        let arguments = json!({"path": "link", "content": "new\n"});
        let mut write = order("Write", &arguments);
        write.known = Some(Digest::of(b""));
        let outcome = hands.run(write).await;
        assert_eq!(outcome.status, Status::Ok, "{by:?} {outcome:?}");
        hands.close().await;
        assert_eq!(read(&area.path("outside/yes.txt")), "new\n", "{by:?}");
        assert!(!area.path("outside/other.txt").exists(), "{by:?}");
    }
}

/// The port of a server that says `yes` to everything.
fn served() -> u16 {
    use std::io::{Read as _, Write as _};
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in server.incoming().map_while(Result::ok) {
            let asked = stream.read(&mut [0; 1024]).is_ok();
            assert!(asked);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes")
                .ok();
        }
    });
    port
}

/// A port of a host is asked for once, and reached from then on; what else listens there is not.
#[tokio::test]
async fn a_port_of_a_host_is_allowed_for_the_run() {
    let area = Area::new();
    let (port, beside) = (served(), served());
    let Some((hands, asked)) = asking(&area, By::Namespaces).await else {
        return;
    };
    let ask = |host: &str, port: u16| {
        format!(
            "exec 3<>/dev/tcp/127.0.0.1/${{HTTP_PROXY##*:}}; \
             printf 'GET http://{host}:{port}/ HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3"
        )
    };
    let allowed = |port: u16| {
        format!(
            "yes\n[sandbox: the user was asked and allowed for this run to connect to 127.0.0.1:{port}]"
        )
    };
    let first = bash(&hands, &ask("127.0.0.1", port)).await.content;
    assert!(first.ends_with(&allowed(port)), "{first}");
    let again = bash(&hands, &ask("127.0.0.1", port)).await.content;
    assert!(again.ends_with("yes"), "{again}");
    let second = bash(&hands, &ask("127.0.0.1", beside)).await.content;
    assert!(second.ends_with(&allowed(beside)), "{second}");
    let other = bash(&hands, &ask("localhost", port)).await.content;
    assert!(other.starts_with("HTTP/1.1 403"), "{other}");
    let refused = format!("refused to connect to localhost:{port}: not this one]");
    assert!(other.ends_with(&refused), "{other}");
    hands.close().await;
    let expected = [
        format!("to connect to 127.0.0.1:{port}"),
        format!("to connect to 127.0.0.1:{beside}"),
        format!("to connect to localhost:{port}"),
    ];
    assert_eq!(*asked.lock().unwrap(), expected);
}

/// A program that decides reads the question as one JSON object.
#[tokio::test]
async fn a_program_can_be_asked() {
    let area = Area::new();
    let note = area.path("note");
    let script = format!(
        "cat > {}; echo '{{\"allow\":true,\"reason\":\"once\"}}'",
        note.display()
    );
    let path = ("PATH".into(), env!("PATH").into());
    let approval = Approval::command(
        "/bin/sh".into(),
        vec!["-c".into(), script.into()],
        vec![path],
    );
    let bounds = area.bounds(&Sandbox::Workspace(area.reach()));
    let hands = Hands::confined_asking(
        area.workspace(),
        Vec::new(),
        bounds,
        area.launch(),
        approval,
    );
    let Some((hands, _)) = had(By::Nothing, hands.await) else {
        return;
    };
    let outcome = hands
        .run(order("Read", &json!({"path": "../outside/a.txt"})))
        .await;
    assert_eq!(outcome.status, Status::Ok, "{outcome:?}");
    assert!(
        outcome.content.contains("outside") && outcome.content.ends_with(": once]"),
        "{outcome:?}"
    );
    hands.close().await;
    let mut question: Value = serde_json::from_str(&read(&note)).unwrap();
    question["call"] = Value::Null;
    let text = question
        .to_string()
        .replace(area.path("").to_str().unwrap(), "/");
    let expected = json!({
        "wants": "read",
        "path": "/outside/a.txt",
        "call": null,
        "tool": "Read",
        "arguments": {"path": "../outside/a.txt"},
        "workspace": "/w",
        "policy": question["policy"],
    });
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap()["wants"],
        expected["wants"]
    );
    let told: Value = serde_json::from_str(&text).unwrap();
    for key in ["path", "tool", "arguments", "workspace"] {
        assert_eq!(told[key], expected[key], "{key}");
    }
}
