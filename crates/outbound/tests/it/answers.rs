//! Responses of receivers, and how they are judged.

use domain::TraceContext;
use domain::delivery::{Callback, CallbackKind};
use outbound::CallbackClient;

use crate::receiver::{Receiver, Script, Then, answer};
use crate::setup::{SECRET, SHORT, callback, client, deliver, now, options};

#[tokio::test]
async fn a_report_arrives_signed_and_is_received() {
    let receiver = Receiver::answering_ok().await;
    let delivery = deliver(&client(), &format!("{}?a=b#c", receiver.url())).await;

    assert!(delivery.received);
    let attempt = delivery.attempt;
    assert_eq!(attempt.reason, "received");
    assert_eq!(attempt.status, Some(200));
    assert_eq!(attempt.body, b"OK");
    assert_eq!(attempt.address, Some(receiver.address.to_string()));
    assert_eq!(attempt.at, now());

    let request = receiver.requests().remove(0);
    assert_eq!(request.body, r#"{"id":"7","status":2,"error":43}"#);
    let mut lines: Vec<_> = request.head.lines().collect();
    assert_eq!(lines.remove(0), "POST /report?a=b HTTP/1.1");
    lines.sort_unstable();
    // The signature was computed with Python: base64(hmac.new(key, b"7.1731672000." + body, "sha256").digest()).
    let wanted = [
        "content-length: 32".to_owned(),
        "content-type: application/json".to_owned(),
        format!("host: {}", receiver.address),
        format!("user-agent: Switchboard/{}", env!("CARGO_PKG_VERSION")),
        "webhook-id: 7".to_owned(),
        "webhook-signature: v1,q28PO4RY16KuDVZbIsLwthCCAovQCBQ8kcw29JdmQpE=".to_owned(),
        "webhook-timestamp: 1731672000".to_owned(),
    ];
    assert_eq!(lines, wanted);
}

struct Case {
    name: &'static str,
    script: Script,
    kind: CallbackKind,
    status: Option<u16>,
    /// `None`: acknowledged.
    reason: Option<&'static str>,
}

const fn case(name: &'static str, script: Script) -> Case {
    Case {
        name,
        script,
        kind: CallbackKind::Report,
        status: Some(200),
        reason: None,
    }
}

impl Case {
    const fn any_2xx(mut self) -> Self {
        self.kind = CallbackKind::Sender;
        self
    }

    const fn fails(mut self, status: Option<u16>, reason: &'static str) -> Self {
        self.status = status;
        self.reason = Some(reason);
        self
    }

    const fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    async fn check(self) {
        let receiver = Receiver::start("127.0.0.1:0", self.script).await;
        let callback = Callback {
            kind: self.kind,
            ..callback(&receiver.url())
        };
        let delivery = client().deliver(&callback, &[SECRET], now()).await;
        let reason = delivery.attempt.reason.as_str();
        assert_eq!(delivery.received, self.reason.is_none(), "{}", self.name);
        assert_eq!(reason, self.reason.unwrap_or("received"), "{}", self.name);
        assert_eq!(delivery.attempt.status, self.status, "{}", self.name);
        let address = Some(receiver.address.to_string());
        assert_eq!(delivery.attempt.address, address, "{}", self.name);
        assert_eq!(receiver.requests().len(), 1, "{}: called once", self.name);
    }
}

fn raw(text: &str) -> (String, Then) {
    (text.to_owned(), Then::Close)
}

#[tokio::test]
async fn only_200_and_the_body_ok_count() {
    let cases = [
        case("white space around it", |_| {
            raw(&answer("200 Fine", " \r\n\tOK\n"))
        }),
        case("chunked", |_| {
            raw(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nO\r\n1\r\nK\r\n0\r\n\r\n",
            )
        }),
        case("without a length, until the end", |_| {
            raw("HTTP/1.0 200 OK\r\n\r\nOK")
        }),
        case("another word", |_| raw(&answer("200 OK", "okay")))
            .fails(Some(200), "200, but the body was 'okay'"),
        case("another case", |_| raw(&answer("200 OK", "ok")))
            .fails(Some(200), "200, but the body was 'ok'"),
        case("a long body", |_| raw(&answer("200 OK", &"x".repeat(100)))).fails(
            Some(200),
            "200, but the body was 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'",
        ),
        case("an empty body", |_| raw(&answer("200 OK", " \n")))
            .fails(Some(200), "200, but the body was empty"),
        case("no content", |_| raw("HTTP/1.1 204 No Content\r\n\r\n")).fails(
            Some(204),
            "answered 204; only 200 with the body 'OK' counts",
        ),
        case("created", |_| raw(&answer("201 Created", "OK"))).fails(
            Some(201),
            "answered 201; only 200 with the body 'OK' counts",
        ),
        case("moved temporarily", |_| {
            raw("HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 2\r\n\r\nOK")
        })
        .fails(
            Some(302),
            "redirected to another address (302); redirects are not followed",
        ),
        case("moved permanently", |_| {
            raw("HTTP/1.1 308 Moved\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n")
        })
        .fails(
            Some(308),
            "redirected to another address (308); redirects are not followed",
        ),
        case("broken", |_| raw(&answer("500 Oh", "OK"))).fails(Some(500), "answered 500"),
        case("gone", |_| raw(&answer("410 Gone", ""))).fails(Some(410), "answered 410"),
    ];
    for case in cases {
        case.check().await;
    }
}

#[tokio::test]
async fn broken_answers_fail() {
    let cases = [
        case("hangs up", |_| raw("")).fails(None, "closed the connection without an answer"),
        case("hangs up in the head", |_| {
            raw("HTTP/1.1 200 OK\r\ncontent-")
        })
        .fails(None, "closed the connection without an answer"),
        case("hangs up in the body", |_| {
            raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nOK")
        })
        .fails(Some(200), "200, but the body broke off"),
        case("not HTTP", |_| raw("220 mail.example ESMTP\r\n\r\n"))
            .fails(None, "the answer is not HTTP"),
        case("a head without end", |_| {
            (
                "HTTP/1.1 200 OK\r\n".to_owned(),
                Then::Repeat("x-more: and more of it\r\n"),
            )
        })
        .fails(None, "the head of the answer is too long"),
    ];
    for case in cases {
        case.check().await;
    }
}

#[tokio::test]
async fn any_2xx_counts_for_callbacks_about_senders() {
    let cases = [
        case("any 2xx: no content", |_| {
            raw("HTTP/1.1 204 No Content\r\n\r\n")
        })
        .any_2xx()
        .status(204),
        case("any 2xx: with any body", |_| {
            raw(&answer("202 Accepted", "later"))
        })
        .any_2xx()
        .status(202),
        case("any 2xx: a redirect", |_| {
            raw("HTTP/1.1 301 Moved\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n")
        })
        .any_2xx()
        .fails(
            Some(301),
            "redirected to another address (301); redirects are not followed",
        ),
        case("any 2xx: broken", |_| raw(&answer("503 No", "")))
            .any_2xx()
            .fails(Some(503), "answered 503"),
    ];
    for case in cases {
        case.check().await;
    }
}

/// The head of a response with a slow body.
const ENDLESS: &str = "HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\nOK";

#[tokio::test]
async fn an_endless_response_times_out() {
    let cases: [(&str, Script, &str, &[u8]); 5] = [
        (
            "sends nothing",
            |_| (String::new(), Then::Hang),
            "did not answer within 300 ms",
            b"",
        ),
        (
            "drips its head",
            |_| ("HTTP/1.1 200 OK\r\nx: ".to_owned(), Then::Drip("x")),
            "did not answer within 300 ms",
            b"",
        ),
        (
            "stops in its body",
            |_| (ENDLESS.to_owned(), Then::Hang),
            "200, but the body did not end within 300 ms",
            b"OK",
        ),
        (
            "drips its body",
            |_| (ENDLESS.to_owned(), Then::Drip(" ")),
            "200, but the body did not end within 300 ms",
            b"OK ",
        ),
        (
            "sends its body without end",
            |_| (ENDLESS.to_owned(), Then::Repeat(" ")),
            "200, but the body was longer than 1 KiB",
            b"OK ",
        ),
    ];
    for (name, script, reason, body_start) in cases {
        let mut receiver = Receiver::start("127.0.0.1:0", script).await;
        let mut options = options();
        options.try_timeout = SHORT;
        let delivery = deliver(&CallbackClient::new(options), &receiver.url()).await;
        let attempt = delivery.attempt;
        assert_eq!(
            (delivery.received, attempt.reason.as_str()),
            (false, reason),
            "{name}"
        );
        assert!(attempt.body.starts_with(body_start), "{name}");
        assert!(attempt.body.len() <= 1024, "{name}");
        assert_eq!(
            attempt.address,
            Some(receiver.address.to_string()),
            "{name}"
        );
        receiver.wait_until_closed(1).await;
    }
}

#[tokio::test]
async fn a_damaged_secret_sends_nothing() {
    let receiver = Receiver::answering_ok().await;
    let report = callback(&receiver.url());
    let delivery = client().deliver(&report, &["whsec_%"], now()).await;
    assert!(!delivery.received);
    let reason = "the account's callback secret is not 'whsec_' and a key in Base64";
    assert_eq!(delivery.attempt.reason, reason);
    assert!(receiver.requests().is_empty());
    assert!(client().deliver(&report, &[SECRET], now()).await.received);
}

#[tokio::test]
async fn a_report_on_a_traced_message_goes_on_with_its_trace() {
    let receiver = Receiver::answering_ok().await;
    let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let traced = Callback {
        trace: TraceContext::parse(header.as_bytes()).map(Box::new),
        ..callback(&receiver.url())
    };
    let again = Callback {
        tries: traced.tries + 1,
        ..traced.clone()
    };
    for callback in [&traced, &again, &callback(&receiver.url())] {
        let delivery = client().deliver(callback, &[SECRET], now()).await;
        assert!(delivery.received);
    }
    let sent: Vec<Option<String>> = receiver
        .requests()
        .iter()
        .map(|request| {
            let mut lines = request.head.lines();
            let found = lines.find_map(|line| line.strip_prefix("traceparent: "));
            found.map(str::to_owned)
        })
        .collect();
    let [Some(first), Some(second), None] = &sent[..] else {
        panic!("{sent:?}");
    };
    for sent in [first, second] {
        assert!(TraceContext::parse(sent.as_bytes()).is_some(), "{sent}");
        let same_trace = sent.starts_with(&header[..36]) && sent.ends_with(&header[52..]);
        assert!(same_trace && sent != header, "{sent}");
    }
    assert_ne!(first, second, "each attempt is its own parent");
}
