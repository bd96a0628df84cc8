//! Which addresses are called, from which local address, and which are not.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use outbound::{CallbackClient, DnsOptions, DnsResolver, Guard, Resolve, SystemResolver, UrlCheck};
use tokio::net::TcpListener;

use crate::receiver::{Receiver, Script, Then, answer};
use crate::setup::{ScriptedResolver, account, callback, deliver, options};

const ANSWER_OK: Script = |_| (answer("200 OK", "OK"), Then::Continue);

/// The address is not shown to callers.
pub(crate) const FORBIDDEN: &str = "the host leads to an address that may not be called";

fn only(network: &str) -> Guard {
    Guard::new(vec![network.parse().expect(network)])
}

#[tokio::test]
async fn a_forbidden_address_is_not_dialled_in_any_notation() {
    let receiver = Receiver::answering_ok().await;
    let port = receiver.address.port();
    for host in [
        "127.0.0.1",
        "0x7f.1",
        "2130706433",
        "017700000001",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "0.0.0.0",
        "[::]",
        "inside.example",
    ] {
        let mut options = options();
        options.dialer.guard = Guard::default();
        options.dialer.resolver = ScriptedResolver::new(&[&["127.0.0.1", "::1"]]);
        let client = CallbackClient::new(options);
        let attempt = deliver(&client, &format!("http://{host}:{port}/"))
            .await
            .attempt;
        assert_eq!(attempt.reason, FORBIDDEN, "{host}");
        assert_eq!((attempt.status, attempt.address), (None, None), "{host}");
    }
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_to_a_forbidden_address_leads_nowhere() {
    let receiver = Receiver::start("127.0.0.1:0", |_| {
        let head =
            "HTTP/1.1 307 Elsewhere\r\nlocation: http://127.0.0.2:1/\r\ncontent-length: 0\r\n\r\n";
        (head.to_owned(), Then::Continue)
    })
    .await;
    let delivery = deliver(&CallbackClient::new(options()), &receiver.url()).await;
    assert!(!delivery.received);
    assert_eq!(delivery.attempt.status, Some(307));
    assert_eq!(receiver.requests().len(), 1);
}

/// Two receivers on the same port: one at a permitted address, one at a forbidden one.
async fn two_at_one_port() -> (Receiver, Receiver) {
    let plain = |stream| async { Some(stream) };
    loop {
        let first = Receiver::start("127.0.0.2:0", ANSWER_OK).await;
        // Another program may use the port at the other address; then another port is tried.
        let second = TcpListener::bind(("127.0.0.1", first.address.port())).await;
        if let Ok(second) = second {
            return (first, Receiver::serve(second, ANSWER_OK, plain));
        }
    }
}

#[tokio::test]
async fn a_name_that_changes_after_the_check_is_refused_when_dialled() {
    let (permitted, forbidden) = two_at_one_port().await;
    let url = format!("http://moving.example:{}/", permitted.address.port());
    let resolver = ScriptedResolver::new(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let mut options = options();
    options.dialer.guard = only("127.0.0.2/32");
    options.dialer.resolver = resolver.clone();
    let check = UrlCheck::new(only("127.0.0.2/32"), resolver.clone());

    assert_eq!(
        check.check_url(account(), &callback(&url).url).await,
        Ok(())
    );
    let attempt = deliver(&CallbackClient::new(options), &url).await.attempt;
    assert_eq!(attempt.reason, FORBIDDEN);
    assert_eq!(resolver.lookups(), 2);
    assert!(permitted.requests().is_empty() && forbidden.requests().is_empty());
}

#[tokio::test]
async fn the_checked_address_is_the_one_that_is_dialled() {
    for (name, answers) in [
        (
            "it changes at once",
            &[&["127.0.0.2"][..], &["127.0.0.1"]][..],
        ),
        (
            "the forbidden one comes first",
            &[&["127.0.0.1", "127.0.0.2"]],
        ),
        (
            "the forbidden one comes last",
            &[&["127.0.0.2", "127.0.0.1"]],
        ),
    ] {
        let (permitted, forbidden) = two_at_one_port().await;
        let resolver = ScriptedResolver::new(answers);
        let mut options = options();
        options.dialer.guard = only("127.0.0.2/32");
        options.dialer.resolver = resolver.clone();
        let url = format!("http://moving.example:{}/", permitted.address.port());
        let delivery = deliver(&CallbackClient::new(options), &url).await;
        assert!(delivery.received, "{name}: {}", delivery.attempt.reason);
        assert_eq!(
            delivery.attempt.address,
            Some(permitted.address.to_string()),
            "{name}"
        );
        assert_eq!(resolver.lookups(), 1, "{name}");
        assert!(forbidden.requests().is_empty(), "{name}");
    }
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_does_not_answer() {
    let receiver = Receiver::start("127.0.0.2:0", ANSWER_OK).await;
    let mut options = options();
    // Nothing listens at the first address.
    options.dialer.resolver = ScriptedResolver::new(&[&["127.0.0.3", "127.0.0.2"]]);
    let url = format!("http://two.example:{}/", receiver.address.port());
    let delivery = deliver(&CallbackClient::new(options), &url).await;
    assert!(delivery.received, "{}", delivery.attempt.reason);
    assert_eq!(delivery.attempt.address, Some(receiver.address.to_string()));
}

#[tokio::test]
async fn a_callback_uses_the_configured_source_address() {
    let receiver = Receiver::answering_ok().await;
    let port = receiver.address.port();
    for (name, source, url, outcome) in [
        (
            "ours",
            "127.0.0.2",
            format!("http://127.0.0.1:{port}/"),
            "received",
        ),
        (
            "of another machine",
            "192.0.2.1",
            format!("http://127.0.0.1:{port}/"),
            "the source address that is set cannot be used: address not available",
        ),
        (
            "of the other family",
            "127.0.0.2",
            format!("http://[::1]:{port}/"),
            "the host cannot be called: no source address of the family of its address is set",
        ),
    ] {
        let mut options = options();
        options.dialer.source = vec![source.parse().expect(source)];
        let attempt = deliver(&CallbackClient::new(options), &url).await.attempt;
        assert_eq!(attempt.reason, outcome, "{name}");
    }
    let peers: Vec<_> = receiver
        .requests()
        .iter()
        .map(|request| request.peer.ip())
        .collect();
    assert_eq!(peers, ["127.0.0.2".parse::<IpAddr>().expect("an address")]);
}

#[tokio::test]
async fn an_unreachable_receiver_has_a_clear_reason() {
    let free = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = free.local_addr().expect("bound");
    drop(free);
    let delivery = deliver(
        &CallbackClient::new(options()),
        &format!("http://{address}/"),
    )
    .await;
    assert_eq!(delivery.attempt.reason, "refused the connection");
    assert_eq!(delivery.attempt.address, Some(address.to_string()));

    for (name, answers) in [("unknown", &[][..]), ("without addresses", &[&[][..]])] {
        let mut options = options();
        options.dialer.resolver = ScriptedResolver::new(answers);
        let client = CallbackClient::new(options);
        let attempt = deliver(&client, "http://nowhere.example/").await.attempt;
        assert_eq!(attempt.reason, "the name does not resolve", "{name}");
        assert_eq!(attempt.address, None, "{name}");
    }
}

/// Never responds.
struct SilentResolver;

#[async_trait]
impl Resolve for SilentResolver {
    async fn resolve(&self, _: &str, _: u16) -> io::Result<Vec<IpAddr>> {
        std::future::pending().await
    }
}

// The paused clock advances when every task is idle.
#[tokio::test(start_paused = true)]
async fn a_hanging_connection_times_out() {
    let silent = Receiver::start("127.0.0.1:0", |_| (String::new(), Then::Hang)).await;
    for (url, reason) in [
        (
            "http://slow.example/".to_owned(),
            "the name was not resolved within 3 s",
        ),
        (
            format!("https://{}/", silent.address),
            "the connection was not ready within 4 s",
        ),
    ] {
        let mut options = options();
        options.dialer.resolver = Arc::new(SilentResolver);
        let attempt = deliver(&CallbackClient::new(options), &url).await.attempt;
        assert_eq!(attempt.reason, reason, "{url}");
    }
}

#[tokio::test]
async fn names_in_the_hosts_file_resolve() {
    let resolvers: [Arc<dyn Resolve>; 2] = [
        Arc::new(SystemResolver::new(2)),
        Arc::new(DnsResolver::new(DnsOptions::default())),
    ];
    for resolver in resolvers {
        let receiver = Receiver::answering_ok().await;
        let mut options = options();
        options.dialer.resolver = resolver;
        let url = format!("http://localhost:{}/", receiver.address.port());
        let delivery = deliver(&CallbackClient::new(options), &url).await;
        assert!(delivery.received, "{}", delivery.attempt.reason);
    }
}
