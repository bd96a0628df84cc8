//! Live updates: streams of server-sent events, limited in number and closed cleanly.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::chrome::Chrome;
use testkit::http;
use testkit::{Backend, TEST_TIMEOUT};

use super::operator;
use super::operator_pages::post;
use crate::people::browser::Browser;
use crate::people::joined;
use crate::rest::service::{Service, sms, sms_with};

/// A stream of events, read line by line.
struct Stream {
    lines: BufReader<TcpStream>,
    status: u16,
    head: String,
}

impl Stream {
    fn open(service: &Service, browser: &Browser<'_>, path: &str) -> Self {
        let addr = service.server.addr();
        let mut stream = TcpStream::connect(addr).expect("it listens");
        stream
            .set_read_timeout(Some(TEST_TIMEOUT))
            .expect("a timeout");
        let cookie = format!(
            "switchboard={}",
            browser.cookie("switchboard").unwrap_or_default()
        );
        let request = http::encode(addr, "GET", path, &[("Cookie", &cookie)], b"");
        stream.write_all(&request).expect("it reads");
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(lines.read_line(&mut head).expect("a head"), 0, "{head}");
        }
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Self {
            lines,
            status: status.expect("a status"),
            head: head.to_ascii_lowercase(),
        }
    }

    /// The next line; `None` at the end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line).expect("a line in time");
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// Reads until a line matches.
    fn wait_until(&mut self, what: &str, matches: impl Fn(&str) -> bool) {
        let until = Instant::now() + TEST_TIMEOUT;
        while Instant::now() < until {
            let line = self.line();
            if matches(&line.unwrap_or_else(|| panic!("it ended before {what}"))) {
                return;
            }
        }
        panic!("timed out waiting for {what}");
    }

    /// Reads until an event contains a text.
    fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |line| line.contains(text));
    }

    fn wait_for_heartbeat(&mut self) {
        self.wait_until("a heartbeat", |line| line == ":");
    }

    /// Reads until the last chunk of the answer, or the end of the connection.
    fn wait_for_end(&mut self) {
        let until = Instant::now() + TEST_TIMEOUT;
        while self.line().is_some_and(|line| line != "0") {
            assert!(Instant::now() < until, "the stream did not end");
        }
    }
}

#[test]
fn a_list_is_updated_and_its_stream_outlives_the_request_timeout() {
    let service = Service::with(Backend::Sqlite, |builder| {
        builder
            .env("SWITCHBOARD_LIMITS__HEADER_SECONDS", "1")
            .env("SWITCHBOARD_LIMITS__REQUEST_SECONDS", "1")
    });
    let browser = joined(&service, "ann@example.com", &[]);
    let mut stream = Stream::open(&service, &browser, "/dashboard/messages/live?from=Acme");
    assert_eq!(stream.status, 200, "{}", stream.head);
    for header in ["content-type: text/event-stream", "cache-control: no-store"] {
        assert!(stream.head.contains(header), "{}", stream.head);
    }
    stream.wait_for("event: renew");
    stream.wait_for("Nothing found.");
    let opened = Instant::now();
    while opened.elapsed() < Duration::from_secs(3) {
        stream.wait_for_heartbeat();
    }
    let [id]: [String; 1] = service.accept(&sms()).try_into().expect("one");
    service.accept(&sms_with(
        &json!({ "from": "Beta", "message": "not for this list" }),
    ));
    let row = format!("id=\"m{id}\"");
    stream.wait_until("its delivery", |line| {
        assert!(!line.contains("not for this list"), "{line}");
        line.contains(&row) && line.contains("state delivered")
    });
}

#[test]
fn a_lookup_is_followed_until_the_network_answers() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = joined(&service, "ann@example.com", &[]);
    // The simulated network never answers lookups of the second number.
    for (number, event, words) in [
        ("+447700900800", "event: last", "Original report"),
        ("+447700900002", "event: renew", "has not answered yet"),
    ] {
        let fields = [("msisdn", number), ("key", number)];
        let asked = post(&mut browser, "/dashboard/lookups", &fields);
        let page = asked.header("location").expect("its page").to_owned();
        let live = format!("{page}/live");
        let mut stream = Stream::open(&service, &browser, &live);
        stream.wait_for(event);
        stream.wait_for(words);
        let is_pending = event == "event: renew";
        let text = browser.get(&page).text();
        assert_eq!(text.contains(&format!("data-live=\"{live}\"")), is_pending);
    }
}

#[test]
fn a_message_is_followed_until_it_is_final() {
    let service = Service::start(Backend::Sqlite);
    let browser = joined(&service, "ann@example.com", &[]);
    let [id]: [String; 1] = service.accept(&sms()).try_into().expect("one");
    let mut stream = Stream::open(
        &service,
        &browser,
        &format!("/dashboard/messages/{id}/live"),
    );
    stream.wait_for("event: last");
    stream.wait_for(">Delivered");
    stream.wait_for_end();
}

#[test]
fn the_streams_of_a_session_are_limited_and_released() {
    let service = Service::start(Backend::Sqlite);
    let ann = joined(&service, "ann@example.com", &[]);
    let bob = joined(&service, "bob@example.com", &[]);
    let open = |browser: &Browser<'_>| Stream::open(&service, browser, "/dashboard/live");
    let mut streams: Vec<Stream> = (0..4).map(|_| open(&ann)).collect();
    let refused = open(&ann);
    assert_eq!(refused.status, 503, "{}", refused.head);
    assert!(refused.head.contains("retry-after: 5"), "{}", refused.head);
    assert_eq!(open(&bob).status, 200, "others have their own limit");
    streams.pop();
    let next = open(&ann);
    assert_eq!(next.status, 200, "the released stream is available again");
    let signed_out = Browser::new(&service);
    assert_eq!(open(&signed_out).status, 303);
}

#[test]
fn streams_do_not_delay_a_graceful_stop() {
    let mut service = Service::start(Backend::Sqlite);
    let ann = joined(&service, "ann@example.com", &[]);
    let mut streams: Vec<Stream> = ["/dashboard/live", "/dashboard/messages/live"]
        .iter()
        .map(|path| Stream::open(&service, &ann, path))
        .collect();
    for stream in &mut streams {
        stream.wait_for("event: renew");
    }
    drop(ann);
    let status = service.server.terminate();
    assert!(status.success(), "{}", service.server.output());
    assert!(!service.server.output().contains("did not end in time"));
    for stream in &mut streams {
        stream.wait_for_end();
    }
}

#[tokio::test]
async fn the_list_and_the_counters_update_themselves() {
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let page = operator(&service, &chrome).await;
    page.wait_for("First steps").await;
    page.open(&service.server.url("/dashboard/messages")).await;
    page.wait_for("No messages yet.").await;
    page.wait_for("Live").await;
    service.accept(&sms_with(&json!({ "message": "swift" })));
    page.wait_for("swift").await;
    page.wait_for("delivered").await;

    // An update keeps the focus and the input, even when a row is inserted above.
    page.evaluate("document.querySelector('tbody a').focus()")
        .await;
    let focus_before = page.evaluate("document.activeElement.textContent").await;
    page.evaluate("window.scrolled = window.scrollY").await;
    service.accept(&sms_with(&json!({ "message": "heron" })));
    page.wait_for("heron").await;
    let focus_after = page.evaluate("document.activeElement.textContent").await;
    assert_eq!(focus_after, focus_before, "the focus stays on its message");
    page.press("/").await;
    let focused = page.evaluate("document.activeElement.name").await;
    assert_eq!(focused, "to", "the first filter");

    page.open(&service.server.url("/dashboard")).await;
    page.wait_for("2 finished").await;
    page.evaluate("document.querySelector('#hours-table').open = true")
        .await;
    service.accept(&sms());
    page.wait_for("3 finished").await;
    let open = page
        .evaluate("document.querySelector('#hours-table').open")
        .await;
    assert_eq!(open, true, "an opened table stays open");
    page.assert_no_browser_errors();
}
