//! The callback receiver, called by the kit's client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use testkit::TEST_TIMEOUT;
use testkit::http::{self, Connection};
use testkit::receiver::{Receiver, Reply};

#[test]
fn requests_are_answered_ok_and_logged() {
    let receiver = Receiver::start();
    let before = Instant::now();
    let mut connection = Connection::open(receiver.addr()).expect("connect");
    let large = vec![b'x'; 100_000];
    for body in [&b"{\"id\":\"1\"}"[..], b"", &large] {
        let answer = connection
            .request("POST", "/dlr?a=1", &[("X-Signature", "s")], body)
            .expect("an answer on the same connection");
        assert_eq!((answer.status, answer.text().as_str()), (200, "OK"));
    }
    assert!(receiver.wait_for(3, TEST_TIMEOUT));
    let requests = receiver.received();
    assert_eq!(requests[0].json(), serde_json::json!({"id": "1"}));
    assert_eq!(
        (requests[1].body.len(), requests[2].body.len()),
        (0, 100_000)
    );
    for one in &requests {
        assert_eq!(
            (one.method.as_str(), one.path.as_str()),
            ("POST", "/dlr?a=1")
        );
        assert_eq!(one.header("x-signature"), Some("s"));
        assert!(one.at >= before && one.peer == requests[0].peer);
    }
}

#[test]
fn requests_sent_together_are_answered_in_order() {
    let receiver = Receiver::builder()
        .script(|request| Reply::answer(200, request.number.to_string()))
        .start();
    let mut connection = Connection::open(receiver.addr()).expect("connect");
    let one = http::encode(receiver.addr(), "POST", "/", &[], b"body");
    connection.send(&one.repeat(3)).expect("all at once");
    for number in 0..3 {
        let answer = connection.read_response().expect("an answer for each");
        assert_eq!(answer.text(), number.to_string());
    }
}

#[test]
fn a_script_decides_each_answer() {
    let delay = Duration::from_millis(30);
    let receiver = Receiver::builder()
        .script(move |request| match request.path {
            "/fail" => Reply::answer(503, "not now"),
            "/late" => Reply::ok().after(delay),
            "/hang" => Reply::hang(),
            "/close" => Reply::close(),
            "/last" => Reply::ok().then_close(),
            "/moved" => {
                Reply::raw("HTTP/1.1 302 Found\r\nLocation: /fail\r\nContent-Length: 0\r\n\r\n")
            }
            _ => Reply::ok(),
        })
        .start();
    let ask = |path: &str| {
        let mut connection = Connection::open(receiver.addr()).expect("connect");
        if path == "/hang" {
            connection.set_deadline(Duration::from_millis(50));
        }
        let answer = connection.request("POST", path, &[], b"x");
        (
            answer.map(|answer| (answer.status, answer.text())),
            connection,
        )
    };
    let cases = [
        ("/fail", Some((503, "not now"))),
        ("/late", Some((200, "OK"))),
        ("/hang", None),
        ("/close", None),
        ("/last", Some((200, "OK"))),
        ("/moved", Some((302, ""))),
        ("/", Some((200, "OK"))),
    ];
    for (path, expected) in cases {
        let expected = expected.map(|(status, body)| (status, body.to_owned()));
        let started = Instant::now();
        assert_eq!(ask(path).0.ok(), expected, "{path}");
        assert!(path != "/late" || started.elapsed() >= delay);
    }
    let (_, mut closed) = ask("/last");
    assert!(
        closed.request("POST", "/", &[], b"x").is_err(),
        "still open"
    );
    assert_eq!(receiver.count(), cases.len() + 1, "all are logged");
}

#[test]
fn a_hanging_connection_does_not_delay_others() {
    let receiver = Receiver::builder()
        .script(|request| match request.body {
            b"hang" => Reply::hang(),
            _ => Reply::ok(),
        })
        .start();
    let mut hanging = Connection::open(receiver.addr()).expect("connect");
    let bytes = http::encode(receiver.addr(), "POST", "/", &[], b"hang");
    hanging.send(&bytes).expect("sent");
    assert!(receiver.wait_for(1, TEST_TIMEOUT));
    let answer = http::request(receiver.addr(), "POST", "/", &[], b"x").expect("an answer");
    assert_eq!(answer.status, 200);
}

#[test]
fn a_closure_gets_requests_instead_of_the_log() {
    let bytes = Arc::new(AtomicUsize::new(0));
    let sum = Arc::clone(&bytes);
    let receiver = Receiver::builder()
        .on_request(move |path, body| {
            sum.fetch_add(path.len() + body.len(), Ordering::Relaxed);
        })
        .start();
    http::request(receiver.addr(), "POST", "/ab", &[], b"1234").expect("an answer");
    assert_eq!((receiver.count(), receiver.received().len()), (1, 0));
    assert_eq!(bytes.load(Ordering::Relaxed), 7);
}

#[test]
fn a_receiver_has_the_requested_address_and_closes_everything_on_drop() {
    let receiver = Receiver::builder().bind("127.0.0.7:0").start();
    let addr = receiver.addr();
    assert_eq!(receiver.url("/a"), format!("http://{addr}/a"));
    assert!(addr.to_string().starts_with("127.0.0.7:"));
    let second = Receiver::builder().bind(addr.to_string()).try_start();
    assert!(second.is_err(), "the address is in use");
    assert!(
        !receiver.wait_for(1, Duration::ZERO),
        "there was no request"
    );
    let mut open = Connection::open(addr).expect("connect");
    drop(receiver);
    assert!(
        open.request("POST", "/", &[], b"x").is_err(),
        "still served"
    );
    assert!(Connection::open(addr).is_err(), "still listening");
}
