//! Callbacks through an HTTP proxy: a real one, and a scripted one that misbehaves.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use outbound::dial::{HttpProxy, public_roots_and};
use outbound::{CallbackClient, Guard};
use testkit::Tinyproxy;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::receiver::{Receiver, Then, answer};
use crate::setup::{SHORT, ScriptedResolver, deliver, options};
use crate::tls;

fn proxy(url: &str) -> HttpProxy {
    HttpProxy::parse(url).expect(url)
}

fn client(url: &str) -> CallbackClient {
    let mut options = options();
    options.dialer.proxy = Some(proxy(url));
    CallbackClient::new(options)
}

/// A proxy that answers each request with this text and keeps what it was asked.
async fn scripted(text: &'static str, then: Then) -> Receiver {
    Receiver::start("127.0.0.1:0", move |_| (text, then)).await
}

/// A proxy that connects every tunnel to `receiver`, whatever host it is asked for. Returns its address and, for each
/// tunnel, the first line of the request.
async fn tunnelling(receiver: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("bound");
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = asked.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("accepts");
            let seen = seen.clone();
            tokio::spawn(async move { tunnel(stream, receiver, &seen).await });
        }
    });
    (address, asked)
}

async fn tunnel(
    mut stream: TcpStream,
    receiver: SocketAddr,
    asked: &Mutex<Vec<String>>,
) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    asked
        .lock()
        .expect("not poisoned")
        .push(head.lines().next()?.to_owned());
    let mut target = TcpStream::connect(receiver).await.ok()?;
    // In two pieces, as networks may deliver it.
    stream
        .write_all(b"HTTP/1.1 200 Connection esta")
        .await
        .ok()?;
    stream
        .write_all(b"blished\r\nVia: 1.1 test\r\n\r\n")
        .await
        .ok()?;
    copy_bidirectional(&mut stream, &mut target).await.ok()?;
    Some(())
}

#[tokio::test]
async fn a_real_proxy_carries_plain_and_tls_callbacks() {
    let plain = Receiver::answering_ok().await;
    let identity = tls::self_signed();
    let pem = identity.pem.clone();
    let secure = tls::start(identity, |_| (answer("200 OK", "OK"), Then::Continue)).await;
    let proxy_server = Tinyproxy::start(&[]);
    let mut options = options();
    options.dialer.proxy = Some(proxy(&proxy_server.right_url()));
    options.dialer.tls = public_roots_and(&pem).expect("a certificate");
    let client = CallbackClient::new(options);
    for (url, receiver) in [
        (plain.url(), &plain),
        (format!("https://{}/report", secure.address), &secure),
    ] {
        for _ in 0..2 {
            let attempt = deliver(&client, &url).await.attempt;
            assert_eq!(attempt.reason, "received", "{url}: {}", proxy_server.log());
            assert_eq!(attempt.address, None, "the proxy hides it");
        }
        let requests = receiver.requests();
        assert_eq!(requests.len(), 2, "{url}");
        assert_eq!(requests[0].connection, requests[1].connection, "one tunnel");
        assert!(requests[0].head.starts_with("POST /report HTTP/1.1\r\n"));
        assert!(!requests[0].head.to_lowercase().contains("proxy"), "{url}");
    }
}

#[tokio::test]
async fn a_real_proxy_refuses_a_wrong_password_and_other_ports() {
    let receiver = Receiver::answering_ok().await;
    let proxy_server = Tinyproxy::start(&[443]);
    for (url, reason) in [
        (
            proxy_server.url("relay", "letmein"),
            "the proxy of this service does not accept its user and password (401)",
        ),
        (
            format!("http://{}", proxy_server.address()),
            "the proxy of this service does not accept its user and password (407)",
        ),
        (
            proxy_server.right_url(),
            "this service's proxy refused to connect to the receiver (403)",
        ),
    ] {
        let attempt = deliver(&client(&url), &receiver.url()).await.attempt;
        assert_eq!(attempt.reason, reason, "{url}");
    }
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn a_tunnel_belongs_to_one_origin_and_names_it() {
    let receiver = Receiver::answering_ok().await;
    let (address, asked) = tunnelling(receiver.address).await;
    // No name resolves here; only the proxy knows them.
    let client = client(&format!("http://{address}"));
    for url in [
        "http://one.example/a",
        "http://two.example:8080/b",
        "http://one.example/c",
    ] {
        let attempt = deliver(&client, url).await.attempt;
        assert_eq!(attempt.reason, "received", "{url}");
    }
    assert_eq!(
        *asked.lock().expect("not poisoned"),
        [
            "CONNECT one.example:80 HTTP/1.1",
            "CONNECT two.example:8080 HTTP/1.1"
        ]
    );
    let requests = receiver.requests();
    let hosts: Vec<_> = requests
        .iter()
        .map(|request| request.head.lines().find(|line| line.starts_with("host: ")))
        .collect();
    assert_eq!(
        hosts,
        [
            Some("host: one.example"),
            Some("host: two.example:8080"),
            Some("host: one.example")
        ]
    );
}

/// What is forbidden without a proxy is not passed to the proxy, as far as it can be known here.
#[tokio::test]
async fn forbidden_hosts_do_not_reach_the_proxy() {
    let proxy_server = scripted("HTTP/1.1 200 OK\r\n\r\n", Then::Continue).await;
    for (host, answers) in [
        ("127.0.0.1", &[][..]),
        ("0x7f.1", &[]),
        ("[::1]", &[]),
        ("10.0.0.1", &[]),
        ("169.254.169.254", &[]),
        ("localhost", &[]),
        ("inside.localhost", &[]),
        ("inside.example", &["10.0.0.1"]),
        // The proxy may choose either.
        ("both.example", &["192.0.2.1", "10.0.0.1"]),
    ] {
        let mut options = options();
        options.dialer.guard = Guard::default();
        options.dialer.resolver = ScriptedResolver::new(&[answers]);
        options.dialer.proxy = Some(proxy(&format!("http://{}", proxy_server.address)));
        let client = CallbackClient::new(options);
        let attempt = deliver(&client, &format!("http://{host}/")).await.attempt;
        assert_eq!(attempt.reason, crate::reach::FORBIDDEN, "{host}");
    }
    assert!(proxy_server.requests().is_empty());
}

#[tokio::test]
async fn failures_of_the_proxy_are_told_from_those_of_the_receiver() {
    let receiver = Receiver::answering_ok().await;
    for (text, then, reason) in [
        (
            "HTTP/1.1 403 Forbidden\r\ncontent-length: 4\r\n\r\nno!\n",
            Then::Continue,
            "this service's proxy refused to connect to the receiver (403)",
        ),
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            Then::Close,
            "the proxy of this service does not accept its user and password (407)",
        ),
        (
            "HTTP/1.1 504 Gateway Timeout\r\n\r\n",
            Then::Close,
            "this service's proxy could not reach the receiver (504)",
        ),
        (
            "SSH-2.0-OpenSSH\r\n",
            Then::Hang,
            "the answer of this service's proxy is not understood",
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\nSurprise",
            Then::Hang,
            "the answer of this service's proxy is not understood",
        ),
        (
            "HTTP/1.1 200 OK\r\n",
            Then::Repeat("X-Filler: 1\r\n"),
            "the answer of this service's proxy is not understood",
        ),
        (
            "",
            Then::Close,
            "the proxy of this service does not work: it closed the connection",
        ),
    ] {
        let proxy_server = scripted(text, then).await;
        let url = format!("http://relay:hunter2@{}", proxy_server.address);
        let attempt = deliver(&client(&url), &receiver.url()).await.attempt;
        assert_eq!(attempt.reason, reason, "{text:?}");
        let request = &proxy_server.requests()[0].head;
        let credentials = "Proxy-Authorization: Basic cmVsYXk6aHVudGVyMg==";
        assert!(request.contains(credentials), "{request}");
    }
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn a_dead_or_silent_proxy_costs_no_more_than_a_dead_receiver() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let dead = listener.local_addr().expect("bound");
    drop(listener);
    let attempt = deliver(&client(&format!("http://{dead}")), "http://192.0.2.1/").await;
    assert_eq!(
        attempt.attempt.reason,
        "the proxy of this service does not work: refused the connection"
    );
    let unknown = deliver(&client("http://proxy.example:3128"), "http://192.0.2.1/").await;
    assert_eq!(
        unknown.attempt.reason,
        "the proxy of this service does not work: the name does not resolve"
    );

    let silent = scripted("", Then::Hang).await;
    let mut options = options();
    options.try_timeout = SHORT;
    options.dialer.proxy = Some(proxy(&format!("http://{}", silent.address)));
    let attempt = deliver(&CallbackClient::new(options), "http://192.0.2.1/").await;
    assert_eq!(attempt.attempt.reason, "did not answer within 300 ms");
}
