//! Requests without an answer: whether the upstream may have the message.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use domain::delivery::CarrierAnswer;
use domain::ports::{Carrier as _, Health};
use domain::{Channel, Code};
use outbound::{Upstream, UpstreamSettings};

use super::fixture::{FixedClock, RecordingSink, queued, settings, wait_for};

fn start(settings: UpstreamSettings) -> Arc<Upstream> {
    let sink = Arc::new(RecordingSink::default());
    Upstream::start(settings, sink.clone(), sink, Arc::new(FixedClock))
}

/// The first line of the next request, whose body is not read.
fn read_head(reader: &mut BufReader<TcpStream>) -> String {
    let mut lines = reader.lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    lines.find(String::is_empty);
    first
}

/// The upstream gets the request on a kept connection and ends. That it cannot be reached afterwards says nothing about
/// that request.
#[tokio::test]
async fn an_upstream_that_ends_after_a_request_may_have_the_message() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = listener.local_addr().expect("bound");
    let probes = Arc::new(AtomicUsize::new(0));
    let answered = probes.clone();
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        while read_head(&mut reader).starts_with("GET") {
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
            (&stream).write_all(answer).expect("open");
            answered.fetch_add(1, Ordering::Relaxed);
        }
        // First the listener, so that the next connection is refused.
        drop(listener);
    });
    let upstream = start(settings(&format!("http://{address}")));
    wait_for("both probes", || probes.load(Ordering::Relaxed) == 2).await;
    // The last probe may not be done with its connection yet, but nobody accepts another one.
    let submitted = upstream.submit(&queued(Channel::Sms)).await;
    assert_eq!(submitted, CarrierAnswer::Unknown);
    server.join().expect("it ended");
    let submitted = upstream.submit(&queued(Channel::Sms)).await;
    assert_eq!(submitted, CarrierAnswer::NotNow(Code::LINK_DOWN), "refused");
}

/// The time is over before TLS is ready, so nothing was sent.
#[tokio::test]
async fn a_message_is_not_sent_without_a_connection() {
    // Connections wait in the backlog, and nobody answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = silent.local_addr().expect("bound");
    let mut settings = settings(&format!("https://{address}"));
    settings.timeout = Duration::from_millis(300);
    let upstream = start(settings);
    let submitted = upstream.submit(&queued(Channel::Sms)).await;
    assert_eq!(submitted, CarrierAnswer::NotNow(Code::LINK_DOWN));
    wait_for("down", || upstream.health() == Health::Down).await;
    let note = upstream.state().note;
    let expected = "the upstream cannot be reached: no connection within 300 ms";
    assert_eq!(note.as_deref(), Some(expected));
}
