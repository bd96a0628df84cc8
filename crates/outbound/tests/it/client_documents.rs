//! Client documents, fetched from hosts on this machine: which are accepted, and which hosts are never called.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use domain::oauth::ClientIdUrl;
use domain::ports::ClientDocuments as _;
use outbound::client_document::MAX_DOCUMENT_BYTES;
use outbound::{DocumentFetch, DocumentOptions, Guard};
use testkit::TEST_TIMEOUT;

use crate::receiver::{Receiver, Then};
use crate::setup::{SHORT, ScriptedResolver, options};
use crate::tls::{self_signed, start, trusting};

/// A host with this response, and a fetcher that trusts it.
async fn host(answer: String, then: Then, timeout: Duration) -> (Receiver, DocumentFetch) {
    let identity = self_signed();
    let mut dialer = options().dialer;
    dialer.tls = trusting(identity.certificate.clone());
    let receiver = start(identity, move |_| (answer.clone(), then)).await;
    let fetch = DocumentFetch::new(DocumentOptions {
        dialer,
        fetch_timeout: timeout,
        max_fetches: 16,
    });
    (receiver, fetch)
}

const CALLER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn id_at(receiver: &Receiver) -> ClientIdUrl {
    let id = format!("https://{}/client.json", receiver.address);
    ClientIdUrl::parse(&id).expect("an address")
}

fn document(kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}")
}

#[tokio::test]
async fn a_document_is_returned_unchanged() {
    let largest = "x".repeat(MAX_DOCUMENT_BYTES);
    for (kind, body) in [
        ("application/json", r#"{"client_id":"x"}"#),
        (
            "Application/JSON; charset=utf-8",
            "not JSON, which is not checked here",
        ),
        ("application/client+json", ""),
        ("application/json", &largest),
    ] {
        let (receiver, fetch) = host(document(kind, body), Then::Close, TEST_TIMEOUT).await;
        let fetched = fetch.fetch(CALLER, &id_at(&receiver)).await;
        assert_eq!(fetched.as_deref(), Ok(body.as_bytes()), "{kind}");
        let head = &receiver.requests()[0].head;
        assert!(head.starts_with("GET /client.json HTTP/1.1\r\n"), "{head}");
        let lower = head.to_ascii_lowercase();
        assert!(lower.contains("accept: application/json"), "{head}");
        assert!(
            !lower.contains("cookie") && !lower.contains("authorization"),
            "{head}"
        );
    }
}

#[tokio::test]
async fn other_content_is_refused_without_repeating_it() {
    let large = document("application/json", &"x".repeat(MAX_DOCUMENT_BYTES + 1));
    let elsewhere =
        "HTTP/1.1 302 Found\r\nlocation: https://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    let endless = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\nsecret";
    let cut =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\nsecret";
    for (name, answer, then, reason) in [
        (
            "a redirect",
            elsewhere.to_owned(),
            Then::Close,
            "answered 302",
        ),
        (
            "not found",
            "HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n".to_owned(),
            Then::Close,
            "answered 404",
        ),
        (
            "a page",
            document("text/html", "secret"),
            Then::Close,
            "application/json",
        ),
        (
            "no type",
            "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret".to_owned(),
            Then::Close,
            "application/json",
        ),
        ("too large", large, Then::Close, "more than 16384 bytes"),
        (
            "never ending",
            endless.to_owned(),
            Then::Repeat("secret"),
            "more than 16384 bytes",
        ),
        (
            "very slow",
            endless.to_owned(),
            Then::Drip("s"),
            "did not arrive within",
        ),
        ("silent", String::new(), Then::Hang, "did not arrive within"),
        ("cut off", cut.to_owned(), Then::Close, "broke off"),
        (
            "no HTTP",
            "secret\r\n\r\n".to_owned(),
            Then::Close,
            "does not answer by HTTPS",
        ),
    ] {
        let timeout = if reason.contains("within") {
            SHORT
        } else {
            TEST_TIMEOUT
        };
        let (receiver, fetch) = host(answer, then, timeout).await;
        let refused = fetch
            .fetch(CALLER, &id_at(&receiver))
            .await
            .expect_err(name)
            .0;
        assert!(refused.contains(reason), "{name}: {refused}");
        assert!(!refused.contains("secret"), "{name}: {refused}");
        // With a short timeout, the request may not have been sent.
        let requests = receiver.requests().len();
        assert!(
            requests == 1 || timeout == SHORT && requests == 0,
            "{name}: {requests} requests"
        );
    }
}

/// A name may resolve differently when it is connected to, so the address itself is checked.
#[tokio::test]
async fn a_name_with_an_internal_address_is_not_dialled() {
    let (receiver, _) = host(
        document("application/json", "{}"),
        Then::Close,
        TEST_TIMEOUT,
    )
    .await;
    let port = receiver.address.port();
    for (name, host, addresses) in [
        ("the address", "127.0.0.1", &["127.0.0.1"][..]),
        ("a name of it", "client.example", &["127.0.0.1"]),
        (
            "several of them",
            "client.example",
            &["10.0.0.1", "127.0.0.1", "::1"],
        ),
        ("mapped", "client.example", &["::ffff:127.0.0.1"]),
    ] {
        let mut dialer = options().dialer;
        dialer.guard = Guard::default();
        dialer.resolver = ScriptedResolver::new(&[addresses]);
        let fetch = DocumentFetch::new(DocumentOptions {
            dialer,
            fetch_timeout: TEST_TIMEOUT,
            max_fetches: 1,
        });
        let id = format!("https://{host}:{port}/client.json");
        let id = ClientIdUrl::parse(&id).expect("an address");
        let refused = fetch.fetch(CALLER, &id).await.expect_err(name).0;
        assert!(refused.contains("may not be called"), "{name}: {refused}");
        assert!(!refused.contains("127.0.0.1"), "{name}: {refused}");
    }
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn an_address_whose_documents_hang_leaves_capacity_for_others() {
    let (silent, fetch) = host(String::new(), Then::Hang, TEST_TIMEOUT).await;
    let fetch = Arc::new(fetch);
    let start = |caller: IpAddr| {
        let (fetch, id) = (fetch.clone(), id_at(&silent));
        tokio::spawn(async move { fetch.fetch(caller, &id).await.is_err() })
    };
    let hanging: Vec<_> = (0..20).map(|_| start(CALLER)).collect();
    silent.wait_for_requests(4).await;
    let other = start([192, 0, 2, 2].into());
    silent.wait_for_requests(5).await;
    assert!(!other.is_finished());
    assert!(hanging.iter().all(|fetch| !fetch.is_finished()));
    assert_eq!(
        silent.requests().len(),
        5,
        "four from one address, one from the other"
    );
}
