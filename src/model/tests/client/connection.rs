//! The client on connections that end early, stall, or stay open.

use std::time::Duration;

use futures::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Instant, pause, resume, sleep};

use super::{BODY, DONE, STOP, TEXT, answer, ask, client};
use crate::model::{Client, Delta, Fault, Model as _, Reply};
use crate::transcript::FaultClass;

/// Serves one connection: reads the request, sends the head of a stream, then lets `send` go on
/// with the connection. The receiver hears when the request was read.
async fn raw<F, S>(send: S) -> (Client, oneshot::Receiver<()>)
where
    S: FnOnce(TcpStream) -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let (tell, told) = oneshot::channel();
    tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
        while !request.ends_with(BODY.as_bytes()) {
            let read = connection.read(&mut buffer).await.unwrap();
            assert!(read > 0);
            request.extend_from_slice(&buffer[..read]);
        }
        tell.send(()).unwrap();
        send(connection).await;
    });
    (client(&base, None, &[]), told)
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";

async fn write(connection: &mut TcpStream, parts: &[&str]) {
    connection
        .write_all(parts.concat().as_bytes())
        .await
        .unwrap();
}

/// Asks, and lets time pass as soon as the server has read the request.
async fn answer_soon(
    (client, heard): (Client, oneshot::Receiver<()>),
) -> (Vec<Delta>, Result<Reply, Fault>, Duration) {
    let asked = tokio::spawn(async move { answer(&client, ask(None)).await });
    heard.await.unwrap();
    pause();
    let before = Instant::now();
    let (deltas, last) = asked.await.unwrap();
    let took = before.elapsed();
    resume();
    (deltas, last, took)
}

#[tokio::test]
async fn a_connection_that_ends_early_is_torn_or_lost() {
    for (rest, class, pieces) in [
        // An orderly end in the middle of the text.
        (format!("{HEAD}\r\n{TEXT}"), FaultClass::Torn, 1),
        // Shorter than announced; chunks that stop.
        (
            format!("{HEAD}content-length: 1000\r\n\r\n{TEXT}"),
            FaultClass::Torn,
            1,
        ),
        (
            format!("{HEAD}transfer-encoding: chunked\r\n\r\n1000\r\n{TEXT}"),
            FaultClass::Torn,
            1,
        ),
        // Nothing of a reply yet.
        (
            format!("{HEAD}content-length: 1000\r\n\r\n"),
            FaultClass::Transport,
            0,
        ),
        (String::new(), FaultClass::Transport, 0),
    ] {
        let shown = rest.clone();
        let server = raw(|mut connection| async move {
            write(&mut connection, &[&rest]).await;
        });
        let (client, _heard) = server.await;
        let (deltas, last) = answer(&client, ask(None)).await;
        let fault = last.unwrap_err();
        assert_eq!(
            (fault.class, deltas.len()),
            (class, pieces),
            "{shown} {fault:?}"
        );
    }
    // Nobody listens.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let fault = answer(&client(&base, None, &[]), ask(None))
        .await
        .1
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::Transport);
    assert!(!fault.message.contains("http://"), "{}", fault.message);
}

#[tokio::test]
async fn a_loss_after_the_finish_reason_does_no_harm() {
    let server = raw(|mut connection| async move {
        let head = "content-length: 1000\r\n\r\n";
        write(&mut connection, &[HEAD, head, TEXT, STOP]).await;
    });
    let (client, _heard) = server.await;
    assert_eq!(answer(&client, ask(None)).await.1, Ok(Reply::text("a")));
}

#[tokio::test]
async fn after_the_finish_reason_it_waits_two_seconds_and_no_more() {
    let server = raw(|mut connection| async move {
        write(&mut connection, &[HEAD, "\r\n", TEXT, STOP]).await;
        // Comments do not prolong it.
        while connection.write_all(b": on\n\n").await.is_ok() {
            sleep(Duration::from_millis(300)).await;
        }
    });
    let (_, last, took) = answer_soon(server.await).await;
    assert_eq!(last, Ok(Reply::text("a")));
    assert!((1900..2600).contains(&took.as_millis()), "{took:?}");
}

#[tokio::test]
async fn an_error_within_a_stream_is_acted_on_at_once() {
    let server = raw(|mut connection| async move {
        let error = "data: {\"error\":{\"code\":429,\"message\":\"slow\"}}\n\n";
        write(&mut connection, &[HEAD, "\r\n", TEXT, error]).await;
        sleep(Duration::from_secs(3600)).await;
    });
    let (deltas, last, took) = answer_soon(server.await).await;
    let fault = last.unwrap_err();
    assert_eq!((fault.class, fault.status), (FaultClass::Rate, Some(429)));
    assert_eq!(deltas.len(), 1);
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn silence_is_a_stall_before_and_after_some_text() {
    for text in ["", TEXT] {
        let server = raw(move |mut connection| async move {
            if !text.is_empty() {
                write(&mut connection, &[HEAD, "\r\n", text]).await;
            }
            sleep(Duration::from_secs(3600)).await;
        });
        let (_, last, took) = answer_soon(server.await).await;
        assert_eq!(last.unwrap_err().class, FaultClass::Stall);
        assert!((298..=302).contains(&took.as_secs()), "{took:?}");
    }
}

#[tokio::test]
async fn comments_alone_are_no_progress() {
    let server = raw(|mut connection| async move {
        write(&mut connection, &[HEAD, "\r\n", TEXT]).await;
        while connection.write_all(b": on\n\n").await.is_ok() {
            sleep(Duration::from_secs(10)).await;
        }
    });
    let (_, last, took) = answer_soon(server.await).await;
    assert_eq!(last.unwrap_err().class, FaultClass::Stall);
    assert!((598..=612).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test]
async fn a_slow_but_healthy_stream_completes() {
    let server = raw(|mut connection| async move {
        write(&mut connection, &[HEAD, "\r\n"]).await;
        for _ in 0..24 {
            write(&mut connection, &[TEXT]).await;
            sleep(Duration::from_secs(100)).await;
        }
        write(&mut connection, &[STOP, DONE]).await;
    });
    let (deltas, last, took) = answer_soon(server.await).await;
    assert_eq!(last, Ok(Reply::text("a".repeat(24))));
    assert_eq!(deltas.len(), 24);
    assert!(took >= Duration::from_secs(2400), "{took:?}");
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let (tell, told) = oneshot::channel();
    let server = raw(|mut connection| async move {
        write(&mut connection, &[HEAD, "\r\n", TEXT]).await;
        let end = connection.read(&mut [0; 16]).await;
        tell.send(matches!(end, Ok(0) | Err(_))).unwrap();
    });
    let (client, _heard) = server.await;
    let mut stream = client.ask(ask(None));
    assert_eq!(stream.next().await, Some(Delta::Text("a".to_owned())));
    drop(stream);
    assert_eq!(told.await, Ok(true));
}
