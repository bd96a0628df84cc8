//! One connection: TLS if asked for, then HTTP/1.1 requests, one after the other.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::handler::Handler;
use super::progress::Progress;
use super::{Limits, Tls};

/// The time for a TLS handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// The most headers of a request; more are answered 431.
const MAX_HEADERS: usize = 100;
/// The most bytes of a request's head; more are answered 431.
const MAX_HEAD_BYTES: usize = 32 * 1024;
/// Time to send the last bytes, and the pause after which a peer is assumed to have read its answer.
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// Total time for a peer to stop sending after its answer.
const LINGER_TIME: Duration = Duration::from_secs(30);
const DROP_BYTES: usize = 8 * 1024;

pub(super) struct Connections {
    handler: Arc<Handler>,
    tls: Option<Arc<Tls>>,
    http: http1::Builder,
    header_time: Duration,
    write_time: Duration,
    stop: watch::Receiver<bool>,
}

impl Connections {
    pub(super) fn new(
        handler: Handler,
        tls: Option<Arc<Tls>>,
        limits: &Limits,
        stop: watch::Receiver<bool>,
    ) -> Arc<Self> {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(limits.header_time)
            // A peer that closes its sending side still wants to read the answer.
            .half_close(true)
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD_BYTES);
        Arc::new(Self {
            handler: Arc::new(handler),
            tls,
            http,
            header_time: limits.header_time,
            write_time: limits.write_time,
            stop,
        })
    }

    pub(super) async fn run(self: Arc<Self>, stream: TcpStream, peer: IpAddr) {
        // Without this, a small answer waits until the peer acknowledges the previous one.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection ended before it began");
            return;
        }
        let stream = Progress::new(stream, self.write_time, reset);
        let Some(tls) = &self.tls else {
            return self.talk(stream, peer).await;
        };
        match tokio::time::timeout(HANDSHAKE_TIME, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => self.talk(stream, peer).await,
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    }

    async fn talk<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S, peer: IpAddr) {
        let handler = &self.handler;
        let service = service_fn(move |request| {
            let handler = handler.clone();
            Box::pin(async move {
                Ok::<_, std::convert::Infallible>(handler.answer(request, peer).await)
            })
        });
        let mut connection = self.http.serve_connection(TokioIo::new(stream), service);
        let mut stop = self.stop.clone();
        let first = tokio::select! {
            ended = std::future::poll_fn(|cx| connection.poll_without_shutdown(cx)) => Some(ended),
            _ = stop.wait_for(|stop| *stop) => None,
        };
        let ended = if let Some(ended) = first {
            ended
        } else {
            Pin::new(&mut connection).graceful_shutdown();
            std::future::poll_fn(|cx| connection.poll_without_shutdown(cx)).await
        };
        let parts = connection.into_parts();
        let mut stream = parts.io.into_inner();
        match ended {
            Err(error) if error.is_timeout() && !parts.read_buf.is_empty() => {
                let seconds = self.header_time.as_secs();
                let message = format!("The request's headers did not arrive within {seconds} s.");
                answer_incomplete(&mut stream, &message).await;
            }
            Err(error) if error.is_incomplete_message() && !parts.read_buf.is_empty() => {
                let message = "The request ended before its headers were complete.";
                answer_incomplete(&mut stream, message).await;
            }
            Err(error) => tracing::debug!(%error, "a connection ended badly"),
            Ok(()) => {}
        }
        let patience = if *stop.borrow() {
            Duration::ZERO
        } else {
            CLOSE_TIME
        };
        // Errors do not matter here: the peer may be gone.
        tokio::time::timeout(LINGER_TIME, close(&mut stream, patience))
            .await
            .ok();
    }
}

/// Makes the kernel drop the unread answer, which it would keep for minutes otherwise.
fn reset(stream: &TcpStream) {
    metrics::counter!("switchboard_http_connections_stalled_total").increment(1);
    if let Err(error) = stream.set_zero_linger() {
        tracing::debug!(%error, "a connection that nobody reads could not be reset");
    }
}

/// Closes gracefully. Reads and drops what the peer still sends: unread data would make the kernel reset the
/// connection, and the peer might never read its answer.
async fn close<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, patience: Duration) {
    let closed = tokio::time::timeout(CLOSE_TIME, stream.shutdown()).await;
    if !matches!(closed, Ok(Ok(()))) {
        return;
    }
    let mut dropped = vec![0; DROP_BYTES];
    while let Ok(Ok(1..)) = tokio::time::timeout(patience, stream.read(&mut dropped)).await {}
}

/// hyper would close without an answer.
async fn answer_incomplete<S: AsyncWrite + Unpin>(stream: &mut S, message: &str) {
    let body = serde_json::json!({ "message": message }).to_string();
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncache-control: no-cache\r\n\
         x-content-type-options: nosniff\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    tokio::time::timeout(CLOSE_TIME, stream.write_all(answer.as_bytes()))
        .await
        .ok();
}
