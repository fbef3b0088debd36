//! What must work within a sandbox: the work itself.

use std::fs;

use serde_json::json;

use undertext::exchange::Status;
use undertext::sandbox::{Mechanism, Way};
use undertext::setup::{Network, Reach, Sandbox};

use super::{Area, By, bash, order, read};

#[tokio::test]
async fn the_work_itself_is_done_as_without() {
    for by in [By::Nothing, By::Namespaces, By::Landlock] {
        let area = Area::new();
        let Some((hands, _)) = area.hands(by).await else {
            continue;
        };
        for (command, expected) in [
            (
                "cat a.txt && echo new > sub/b.txt && cat sub/b.txt",
                "hello\nnew\n",
            ),
            ("cat ../outside/a.txt ~/tools/tool", "outside\na tool\n"),
            ("f=$(mktemp) && echo x > $f && cat $f && rm $f", "x\n"),
            (
                "mkdir d && mv a.txt d/ && chmod 700 d && rm -r d && ls",
                "sub\n",
            ),
            (
                "set -o pipefail; seq 3 | tac | head -1; echo $(( $(wc -l < /etc/passwd) > 0 ))",
                "3\n1\n",
            ),
            (
                "cat <(echo a) | tee sub/c; echo x > /dev/null; head -c 2 /dev/zero | wc -c",
                "a\n2\n",
            ),
            ("sleep 0.01 & wait; echo $?", "0\n"),
            (
                "echo out > /dev/stdout; echo err > /dev/stderr",
                "out\nerr\n",
            ),
        ] {
            let outcome = bash(&hands, command).await;
            assert_eq!(
                (outcome.status, outcome.content.as_str()),
                (Status::Ok, expected),
                "{by:?} {command}"
            );
        }
        let write = order(
            "Write",
            &json!({"path": "new/file.txt", "content": "text\n"}),
        );
        assert_eq!(hands.run(write).await.status, Status::Ok);
        let outcome = hands
            .run(order("Read", &json!({"path": "new/file.txt"})))
            .await;
        assert!(outcome.content.contains("text"), "{outcome:?}");
        hands.close().await;
        assert_eq!(read(&area.path("w/new/file.txt")), "text\n");
        // Nothing is left where the process had its own directory, or in the workspace.
        assert_eq!(fs::read_dir(area.path("tmp")).unwrap().count(), 0, "{by:?}");
        assert!(!area.path("w/.git").exists());
    }
}

/// Tools serve each other in their own network; nobody outside is reached.
#[tokio::test]
async fn a_server_of_ones_own_can_be_asked() {
    let area = Area::new();
    let Some((hands, _)) = area.hands(By::Namespaces).await else {
        return;
    };
    let command = "python3 - <<'X'\nimport socket, threading\ns = socket.create_server(('127.0.0.1', 0))\n\
                   threading.Thread(target=lambda: s.accept()[0].sendall(b'yes')).start()\n\
                   print(socket.create_connection(s.getsockname()).recv(9).decode())\nX";
    let outcome = bash(
        &hands,
        &format!("command -v python3 >/dev/null || {{ echo yes; exit; }}; {command}"),
    )
    .await;
    assert_eq!(outcome.content, "yes\n");
    hands.close().await;
}

#[tokio::test]
async fn to_read_only_is_to_write_nothing_that_lasts() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        let bounds = area
            .bounds(&Sandbox::ReadOnly(area.reach()))
            .by(super::ways(by));
        let Some((hands, _)) = super::had(by, area.start(bounds).await) else {
            continue;
        };
        let outcome = bash(
            &hands,
            "cat a.txt; echo x > $TMPDIR/x && cat $TMPDIR/x; echo x > a.txt",
        )
        .await;
        assert_eq!(outcome.status, Status::Error, "{outcome:?}");
        assert!(outcome.content.starts_with("hello\nx\n"), "{outcome:?}");
        assert!(
            outcome.content.contains("[nothing but $TMPDIR"),
            "{outcome:?}"
        );
        hands.close().await;
        assert_eq!(read(&area.path("w/a.txt")), "hello\n");
        assert!(!area.path("w/.git").exists());
    }
}

/// What is named may be written too, and a repository may be made where that was allowed.
#[tokio::test]
async fn what_is_named_may_be_written() {
    for by in [By::Namespaces, By::Landlock] {
        let area = Area::new();
        let reach = Reach {
            write: vec!["../outside".into(), ".git".into()],
            ..area.reach()
        };
        let bounds = area.bounds(&Sandbox::Workspace(reach)).by(super::ways(by));
        let Some((hands, _)) = super::had(by, area.start(bounds).await) else {
            continue;
        };
        let outcome = bash(
            &hands,
            "echo x > ../outside/new && mkdir -p .git/hooks && cat ../outside/new",
        )
        .await;
        assert!(
            outcome.content.starts_with("x\n[changed: .git/hooks;"),
            "{by:?} {outcome:?}"
        );
        hands.close().await;
        assert!(area.path("w/.git/hooks").exists());
    }
}

/// Older systems: less of Landlock is enough beside namespaces, and too little of both is refused.
#[tokio::test]
async fn what_cannot_be_enforced_is_refused() {
    let area = Area::new();
    let started = async |ways: Vec<Way>| {
        let bounds = area.bounds(&Sandbox::Workspace(area.reach())).by(ways);
        match area.start(bounds).await {
            Ok((hands, enforced)) => {
                hands.close().await;
                format!("{:?} {}", enforced.mechanism, enforced.landlock)
            }
            Err(error) => error.to_string(),
        }
    };
    let spaces = started(vec![Way::Namespaces, Way::Landlock(7)]).await;
    if spaces.starts_with(&format!("{:?}", Mechanism::Namespaces)) {
        for version in [0, 1, 3, 5] {
            let said = started(vec![Way::Namespaces, Way::Landlock(version)]).await;
            assert_eq!(said, format!("Namespaces {version}"));
        }
    }
    if started(vec![Way::Landlock(3)]).await == "Landlock 3" {
        assert_eq!(
            started(vec![Way::Landlock(2)]).await,
            "no namespaces can be had, and Landlock 2 of this kernel is too old without them: 3 is \
             needed"
        );
    }
    assert_eq!(
        started(vec![Way::Landlock(0)]).await,
        "this kernel has neither namespaces nor Landlock for it"
    );
    let reach = Reach {
        network: Network::Hosts(vec!["example.com".into()]),
        ..area.reach()
    };
    let bounds = area
        .bounds(&Sandbox::Workspace(reach))
        .by(vec![Way::Landlock(7)]);
    assert_eq!(
        area.start(bounds).await.unwrap_err().to_string(),
        "single hosts can be allowed only where namespaces can be had; --network=open allows all"
    );
    assert_eq!(fs::read_dir(area.path("tmp")).unwrap().count(), 0);
}

/// Of the network only the hosts that were named are reached, through the proxy that tools are told of.
#[tokio::test]
async fn hosts_that_were_named_are_reached_through_the_proxy() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let area = Area::new();
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = server.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = server.accept().await {
            let asked = stream.read(&mut [0; 1024]).await;
            assert!(asked.is_ok_and(|read| read > 0));
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes")
                .await
                .ok();
        }
    });
    let reach = Reach {
        network: Network::Hosts(vec![format!("127.0.0.1:{port}"), "127.0.0.3".into()]),
        ..area.reach()
    };
    let bounds = area
        .bounds(&Sandbox::Workspace(reach))
        .by(super::ways(By::Namespaces));
    let Some((hands, _)) = super::had(By::Namespaces, area.start(bounds).await) else {
        return;
    };
    let ask = |host: &str| {
        format!(
            "exec 3<>/dev/tcp/127.0.0.1/${{HTTP_PROXY##*:}}; \
             printf 'GET http://{host}:{port}/ HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n' >&3; cat <&3"
        )
    };
    let outcome = bash(&hands, &ask("127.0.0.1")).await;
    assert!(outcome.content.ends_with("yes"), "{outcome:?}");
    // Of a host without a port only those of the web are allowed.
    for other in ["localhost", "127.0.0.2", "127.0.0.3", "example.com"] {
        let outcome = bash(&hands, &ask(other)).await;
        assert!(
            outcome.content.starts_with("HTTP/1.1 403"),
            "{other}: {outcome:?}"
        );
    }
    let outcome = bash(&hands, &format!("exec 3<>/dev/tcp/127.0.0.1/{port}")).await;
    assert_eq!(
        outcome.status,
        Status::Error,
        "the host's own loopback: {outcome:?}"
    );
    hands.close().await;
}
