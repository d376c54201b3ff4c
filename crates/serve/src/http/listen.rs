//! Takes connections, holds each to its bounds, and closes the door in order: no new connection, every running call ends, then the rest
//! is dropped. Streams on which clients only listen end at once. It knows no route.

use super::closing::Closing;
use super::settings::Limits;
use super::stream::Patient;
use axum::{Extension, Router};
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Pause after the system gave no connection, most often because no file descriptor was left.
const PAUSE: Duration = Duration::from_millis(100);

/// Connections beyond the bound that are told so at the same time; the others are closed without a word.
const TURNED_AWAY: usize = 16;

/// Serves a router until `closing` is ready, and returns when the last answer is written or [`Limits::grace`] has passed.
pub(super) async fn serve(listener: TcpListener, router: Router, limits: &Limits, closing: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY));
    let protocol = protocol(limits);
    let (close, closed) = watch::channel(false);
    let closed = Closing::new(closed);
    let router = router.layer(Extension(closed.clone()));
    let mut connections = JoinSet::new();
    let mut closing = pin!(closing);
    loop {
        let accepted = tokio::select! {
            () = &mut closing => break,
            // Finished connections are taken out as they end: the set never grows with their number.
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let connection = connection(stream, protocol.clone(), router.clone(), limits.write_time, closed.clone());
            connections.spawn(async move {
                connection.await;
                drop(place);
            });
        } else if let Ok(place) = Arc::clone(&turned_away).try_acquire_owned() {
            connections.spawn(async move {
                let _ = timeout(Duration::from_secs(1), turn_away(stream)).await;
                drop(place);
            });
        }
    }
    drop(listener);
    let _ = close.send(true);
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(limits.grace, all).await;
}

/// The protocol of a connection. Its bounds on heads lie above those of [`super::guard`], whose refusals say what was wrong; what
/// passes even these gets a bare status.
fn protocol(limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_headers(limits.headers * 2)
        .max_buf_size((limits.head_bytes * 4).max(64 << 10))
        .keep_alive(true);
    builder
}

async fn connection(stream: TcpStream, protocol: Builder, router: Router, patience: Duration, mut closed: Closing) {
    let stream = TokioIo::new(Patient::new(stream, patience));
    let mut connection = pin!(protocol.serve_connection(stream, TowerToHyperService::new(router)));
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = closed.begun() => None,
    };
    // What goes wrong on a connection (a client that left, a head that is no HTTP) concerns its client alone, who was told.
    if ended.is_none() {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// Says that no place is left, without reading what was asked.
async fn turn_away(mut stream: TcpStream) -> io::Result<()> {
    let body = r#"{"error_code":"DEPENDENCY_UNAVAILABLE","message":"All connections are taken.","retryable":true,"details":{}}"#;
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await?;
    // A socket that is closed with unread bytes is reset, and the client may lose the answer.
    let mut unread = [0_u8; 4096];
    for _ in 0..16 {
        if tokio::io::AsyncReadExt::read(&mut stream, &mut unread).await? == 0 {
            break;
        }
    }
    Ok(())
}
