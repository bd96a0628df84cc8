//! A scripted receiver.

use std::net::SocketAddr;
use std::time::Duration;

use testkit::TEST_TIMEOUT;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{interval, timeout};

/// What the receiver does after its response.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Then {
    Continue,
    Close,
    /// Sends nothing more, but keeps the connection open.
    Hang,
    /// Sends this again and again, as fast as possible.
    Repeat(&'static str),
    /// Sends this again and again, a piece every few milliseconds.
    Drip(&'static str),
}

/// The response for the n-th request of a connection, from 1. Other scripts return bytes.
pub(crate) type Script = fn(usize) -> (String, Then);

#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) connection: usize,
    pub(crate) peer: SocketAddr,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Runs until the runtime of its test ends.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    requests: watch::Receiver<Vec<ReceivedRequest>>,
    closed: watch::Receiver<usize>,
}

/// A response with `content-length`.
pub(crate) fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}")
}

impl Receiver {
    /// Answers every request with `200` and `OK`.
    pub(crate) async fn answering_ok() -> Self {
        Self::start("127.0.0.1:0", |_| (answer("200 OK", "OK"), Then::Continue)).await
    }

    pub(crate) async fn start<A: AsRef<[u8]> + Send>(
        bind: &str,
        script: impl Fn(usize) -> (A, Then) + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(bind).await.expect(bind);
        Self::serve(listener, script, |stream| async { Some(stream) })
    }

    /// Wraps its connections first, for instance in TLS.
    pub(crate) fn serve<A, S, F>(
        listener: TcpListener,
        script: impl Fn(usize) -> (A, Then) + Clone + Send + Sync + 'static,
        wrap: impl Fn(tokio::net::TcpStream) -> F + Send + 'static,
    ) -> Self
    where
        A: AsRef<[u8]> + Send,
        F: Future<Output = Option<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let address = listener.local_addr().expect("bound");
        let (received, requests) = watch::channel(Vec::new());
        let (closing, closed) = watch::channel(0);
        tokio::spawn(async move {
            for connection in 1.. {
                let (stream, peer) = listener.accept().await.expect("accepts");
                let (stream, received, closing) = (wrap(stream), received.clone(), closing.clone());
                let script = script.clone();
                tokio::spawn(async move {
                    if let Some(stream) = stream.await {
                        serve_connection(stream, &script, connection, peer, &received).await;
                    }
                    closing.send_modify(|count| *count += 1);
                });
            }
        });
        Self {
            address,
            requests,
            closed,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/report", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.borrow().clone()
    }

    /// Waits for this many requests.
    pub(crate) async fn wait_for_requests(&self, count: usize) {
        let mut requests = self.requests.clone();
        let enough = requests.wait_for(|requests| requests.len() >= count);
        let in_time = timeout(TEST_TIMEOUT, enough).await;
        in_time
            .expect("requests in time")
            .expect("the receiver runs");
    }

    /// Waits until this many connections were opened and closed.
    pub(crate) async fn wait_until_closed(&mut self, connections: usize) {
        let closed = self.closed.wait_for(|count| *count >= connections);
        let in_time = timeout(TEST_TIMEOUT, closed).await;
        in_time.expect("closed in time").expect("the receiver runs");
    }
}

/// Answers on one connection until either side closes it.
async fn serve_connection<A: AsRef<[u8]>, S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    script: &(impl Fn(usize) -> (A, Then) + Sync),
    connection: usize,
    peer: SocketAddr,
    received: &watch::Sender<Vec<ReceivedRequest>>,
) {
    for request in 1.. {
        let Some((head, body)) = read_request(&mut stream).await else {
            return;
        };
        let received_request = ReceivedRequest {
            connection,
            peer,
            head,
            body,
        };
        received.send_modify(|requests| requests.push(received_request));
        let (bytes, then) = script(request);
        if stream.write_all(bytes.as_ref()).await.is_err() || !follow_up(&mut stream, then).await {
            return;
        }
    }
}

/// Does what follows a response, and returns whether to read the next request.
async fn follow_up<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, then: Then) -> bool {
    match then {
        Then::Continue => return true,
        Then::Close => drop(stream.shutdown().await),
        Then::Hang => while stream.read_u8().await.is_ok() {},
        Then::Repeat(piece) => while stream.write_all(piece.as_bytes()).await.is_ok() {},
        Then::Drip(piece) => {
            let mut tick = interval(Duration::from_millis(10));
            while stream.write_all(piece.as_bytes()).await.is_ok() {
                tick.tick().await;
            }
        }
    }
    false
}

async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            // A request without `content-length` has no body.
            if body.len() >= length.unwrap_or("0").parse().expect("a number") {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
