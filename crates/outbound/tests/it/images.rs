//! Images, fetched from hosts on this machine: which are accepted, and which hosts are never called.

use std::sync::Arc;
use std::time::Duration;

use domain::ports::ImageGuard as _;
use domain::{AccountId, ImageUrl};
use outbound::{Guard, ImageCheck, ImageOptions};
use testkit::TEST_TIMEOUT;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::receiver::{Receiver, Then, answer};
use crate::samples::{gif, jpeg, png};
use crate::setup::{SHORT, ScriptedResolver, account, options};

const MAX_BYTES: usize = 1_048_576;

/// The fetch limit for tests where it does not matter.
const MANY: usize = 8;

fn image_options() -> ImageOptions {
    ImageOptions {
        dialer: options().dialer,
        check_timeout: TEST_TIMEOUT,
        max_fetches: MANY,
    }
}

fn checker(check_timeout: Duration, max_fetches: usize) -> Arc<ImageCheck> {
    Arc::new(ImageCheck::new(ImageOptions {
        check_timeout,
        max_fetches,
        ..image_options()
    }))
}

/// The error text for the caller, if any.
async fn refusal(check: &ImageCheck, url: &str) -> Option<String> {
    refusal_for(account(), check, url).await
}

async fn refusal_for(account: AccountId, check: &ImageCheck, url: &str) -> Option<String> {
    let url = ImageUrl::parse(url).expect(url);
    check
        .check(account, &url)
        .await
        .err()
        .map(|refused| refused.0)
}

fn start_check(check: &Arc<ImageCheck>, url: String) -> JoinHandle<Option<String>> {
    start_check_for(account(), check, url)
}

fn start_check_for(
    account: AccountId,
    check: &Arc<ImageCheck>,
    url: String,
) -> JoinHandle<Option<String>> {
    let check = Arc::clone(check);
    tokio::spawn(async move { refusal_for(account, &check, &url).await })
}

/// A response with a file.
fn file(content: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n",
        content.len()
    );
    [head.as_bytes(), content].concat()
}

async fn host(answer: Vec<u8>, then: Then) -> Receiver {
    Receiver::start("127.0.0.1:0", move |_| (answer.clone(), then)).await
}

fn image_at(host: &Receiver, name: &str) -> String {
    format!("http://{}/{name}", host.address)
}

/// A PNG of this size; data after its end is ignored.
fn png_of_size(bytes: usize) -> Vec<u8> {
    let mut file = png();
    file.resize(bytes, 0);
    file
}

#[tokio::test]
async fn images_of_each_type_are_accepted_under_any_name() {
    let without_length = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &jpeg()].concat();
    for (name, answer, path) in [
        ("a JPEG", file(&jpeg()), "x.jpeg"),
        ("a PNG", file(&png()), "x.png?size=1#top"),
        ("a GIF", file(&gif(1)), "x.gif"),
        ("a PNG with another extension", file(&png()), "x.gif"),
        ("the largest", file(&png_of_size(MAX_BYTES)), "x.png"),
        ("one without a length", without_length, "x.jpeg"),
    ] {
        let mut host = host(answer, Then::Close).await;
        let check = checker(TEST_TIMEOUT, MANY);
        assert_eq!(
            refusal(&check, &image_at(&host, path)).await,
            None,
            "{name}"
        );
        host.wait_until_closed(1).await;
        let head = &host.requests()[0].head;
        let (request, fields) = head.split_once("\r\n").expect("fields");
        let (sent_path, _) = path.split_once('#').unwrap_or((path, ""));
        assert_eq!(request, format!("GET /{sent_path} HTTP/1.1"), "{name}");
        assert!(
            fields.contains("accept: image/jpeg, image/png, image/gif"),
            "{head}"
        );
    }
}

#[tokio::test]
async fn unusable_images_are_refused() {
    let head = |length: usize| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
    let endless = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let zeros = "0".repeat(64 * 1024).leak();
    let too_large = "the image has more than 1048576 bytes; give a smaller one";
    for (name, answer, then, reason) in [
        (
            "an animation",
            file(&gif(2)),
            Then::Continue,
            "the GIF is animated; give one with a single frame",
        ),
        (
            "a page with the extension of an image",
            file(b"<html>not found</html>"),
            Then::Continue,
            "the file is not a JPEG, PNG or GIF, whatever its name says",
        ),
        ("nothing", file(b""), Then::Continue, "the file is empty"),
        (
            "half an upload",
            file(&png()[..40]),
            Then::Continue,
            "the PNG is not whole: its end is missing",
        ),
        (
            "too large by its header, and it never comes",
            head(MAX_BYTES + 1).into_bytes(),
            Then::Hang,
            too_large,
        ),
        (
            "too large by its body",
            [endless.clone(), png_of_size(MAX_BYTES + 1)].concat(),
            Then::Close,
            too_large,
        ),
        ("without end", endless, Then::Repeat(zeros), too_large),
        (
            "in chunks without end",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
            Then::Repeat("8\r\n00000000\r\n"),
            too_large,
        ),
    ] {
        let mut host = host(answer, then).await;
        let check = checker(TEST_TIMEOUT, MANY);
        let got = refusal(&check, &image_at(&host, "x.png")).await;
        assert_eq!(got.as_deref(), Some(reason), "{name}");
        host.wait_until_closed(1).await;
    }
}

#[tokio::test]
async fn images_that_cannot_be_fetched_are_refused() {
    let moved = "HTTP/1.1 302 Elsewhere\r\nlocation: /y.png\r\ncontent-length: 0\r\n\r\n";
    for (name, answer, reason) in [
        (
            "not there",
            answer("404 Not Found", "no"),
            "its host answered 404; only 200 counts",
        ),
        (
            "a part of it",
            answer("206 Partial Content", "x"),
            "its host answered 206; only 200 counts",
        ),
        (
            "a redirect",
            moved.to_owned(),
            "its host answered 302; redirects are not followed",
        ),
        (
            "broken off",
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".to_owned(),
            "the connection broke off",
        ),
        (
            "hung up",
            String::new(),
            "closed the connection without an answer",
        ),
        (
            "something else",
            "220 mail.example\r\n".to_owned(),
            "the answer is not HTTP",
        ),
    ] {
        let host = host(answer.into_bytes(), Then::Close).await;
        let got = refusal(&checker(TEST_TIMEOUT, MANY), &image_at(&host, "x.png")).await;
        let wanted = format!("the image cannot be fetched ({reason})");
        assert_eq!(got, Some(wanted), "{name}");
        assert_eq!(host.requests().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_slow_host_times_out() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n";
    for (name, answer, then, reason) in [
        (
            "no answer",
            "",
            Then::Hang,
            "its host did not answer within 300 ms",
        ),
        (
            "half a head",
            "HTTP/1.1 200 OK\r\n",
            Then::Hang,
            "its host did not answer within 300 ms",
        ),
        (
            "a head that drips",
            "HTTP/1.1 200 OK\r\n",
            Then::Drip("x: y\r\n"),
            "its host did not answer within 300 ms",
        ),
        (
            "no body",
            head,
            Then::Hang,
            "it did not arrive within 300 ms",
        ),
        (
            "a body that drips",
            head,
            Then::Drip("x"),
            "it did not arrive within 300 ms",
        ),
    ] {
        let mut host = host(answer.as_bytes().to_vec(), then).await;
        let got = refusal(&checker(SHORT, MANY), &image_at(&host, "x.png")).await;
        let wanted = format!("the image cannot be fetched ({reason})");
        assert_eq!(got, Some(wanted), "{name}");
        host.wait_until_closed(1).await;
    }
}

#[tokio::test]
async fn a_forbidden_address_is_not_called() {
    let host = host(file(&png()), Then::Continue).await;
    let port = host.address.port();
    for (name, target, reason) in [
        ("plain", "127.0.0.1", "127.0.0.1 is a loopback address"),
        ("in disguise", "0x7f.1", "127.0.0.1 is a loopback address"),
        (
            "mapped",
            "[::ffff:127.0.0.1]",
            "::ffff:127.0.0.1 is an IPv4-mapped address",
        ),
        (
            "by this machine's name",
            "localhost",
            "'localhost' leads to a loopback address",
        ),
        (
            "behind a name",
            "inside.example",
            "'inside.example' leads to a loopback address",
        ),
    ] {
        let mut options = image_options();
        options.dialer.guard = Guard::default();
        options.dialer.resolver = ScriptedResolver::new(&[&["127.0.0.1"]]);
        let check = ImageCheck::new(options);
        let got = refusal(&check, &format!("http://{target}:{port}/x.png")).await;
        let wanted = format!("{reason}; images are not fetched from there");
        assert_eq!(got, Some(wanted), "{name}");
    }
    assert!(host.requests().is_empty());
}

#[tokio::test]
async fn an_unreachable_host_has_a_clear_reason() {
    let free = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let unused = free.local_addr().expect("bound");
    drop(free);
    for (url, reason) in [
        (format!("http://{unused}/x.png"), "refused the connection"),
        (
            "http://nowhere.example/x.png".to_owned(),
            "the name does not resolve",
        ),
    ] {
        let got = refusal(&checker(TEST_TIMEOUT, MANY), &url).await;
        let wanted = format!("the image cannot be fetched ({reason})");
        assert_eq!(got, Some(wanted), "{url}");
    }
}

#[tokio::test]
async fn results_are_cached_and_failures_are_not() {
    for (name, answer, fetches) in [
        ("a good image", file(&png()), 1),
        ("an animation", file(&gif(2)), 1),
        ("too large", file(&png_of_size(MAX_BYTES + 1)), 1),
        (
            "not there yet",
            answer("404 Not Found", "no").into_bytes(),
            2,
        ),
    ] {
        let host = host(answer, Then::Close).await;
        let check = checker(TEST_TIMEOUT, MANY);
        let url = image_at(&host, "x.png");
        let first = refusal(&check, &url).await;
        assert_eq!(refusal(&check, &url).await, first, "{name}");
        assert_eq!(host.requests().len(), fetches, "{name}");
        refusal(&check, &format!("{url}?another")).await;
        assert_eq!(host.requests().len(), fetches + 1, "{name}");
    }
}

#[tokio::test]
async fn concurrent_checks_share_a_fetch() {
    let host = host(file(&png()), Then::Continue).await;
    let check = checker(TEST_TIMEOUT, 1);
    let checks: Vec<_> = (0..50)
        .map(|_| start_check(&check, image_at(&host, "x.png")))
        .collect();
    for running in checks {
        assert_eq!(running.await.expect("runs"), None);
    }
    assert_eq!(host.requests().len(), 1);
}

/// Starts checks of images on hosts that never respond, each for its own account, and waits until all hosts were
/// called.
async fn hang(check: &Arc<ImageCheck>, hosts: usize) -> Vec<JoinHandle<Option<String>>> {
    let silent = Receiver::start("0.0.0.0:0", |_| ("", Then::Hang)).await;
    let port = silent.address.port();
    let start = |host: usize| {
        let account = 1000 * u64::from(port) + u64::try_from(host).expect("few");
        let account = AccountId::new(account).expect("in range");
        let url = format!("http://127.0.1.{host}:{port}/x.png");
        start_check_for(account, check, url)
    };
    let checks = (1..=hosts).map(start).collect();
    silent.wait_for_requests(hosts).await;
    checks
}

#[tokio::test]
async fn hanging_hosts_leave_permits_for_others_up_to_the_bound() {
    let good = host(file(&png()), Then::Continue).await;
    let check = checker(TEST_TIMEOUT, 16);
    let hanging = hang(&check, 15).await;
    assert_eq!(refusal(&check, &image_at(&good, "1.png")).await, None);

    let last = hang(&check, 1).await;
    let waiting = start_check(&check, image_at(&good, "2.png"));
    // A cached result needs no permit.
    assert_eq!(refusal(&check, &image_at(&good, "1.png")).await, None);
    assert_eq!(good.requests().len(), 1);
    assert!(!waiting.is_finished());
    last[0].abort();
    assert_eq!(waiting.await.expect("runs"), None);
    assert!(hanging.iter().all(|check| !check.is_finished()));
}

#[tokio::test]
async fn an_account_whose_hosts_hang_leaves_capacity_for_others() {
    let good = host(file(&png()), Then::Continue).await;
    let silent = Receiver::start("127.0.0.1:0", |_| ("", Then::Hang)).await;
    let check = checker(TEST_TIMEOUT, 16);
    let greedy = AccountId::new(2).expect("in range");
    let hanging: Vec<_> = (0..50)
        .map(|n| start_check_for(greedy, &check, image_at(&silent, &format!("{n}.png"))))
        .collect();
    silent.wait_for_requests(8).await;
    assert_eq!(refusal(&check, &image_at(&good, "x.png")).await, None);
    assert_eq!(silent.requests().len(), 8, "no more than its share");
    assert!(hanging.iter().all(|check| !check.is_finished()));
}

#[tokio::test]
async fn a_check_without_a_permit_in_time_is_refused() {
    let good = host(file(&png()), Then::Continue).await;
    // As if all permits were taken for longer than the timeout.
    let check = checker(SHORT, 0);
    let busy = "the image was not fetched: too many others are being fetched; try again shortly";
    let got = refusal(&check, &image_at(&good, "x.png")).await;
    assert_eq!(got.as_deref(), Some(busy));
    assert!(good.requests().is_empty());
}

#[tokio::test]
async fn a_late_permit_is_not_blamed_on_the_host() {
    let check = checker(Duration::from_secs(1), 1);
    let first = hang(&check, 1).await;
    let silent = host(Vec::new(), Then::Hang).await;
    let second = start_check(&check, image_at(&silent, "x.png"));
    for (name, running, reason) in [
        (
            "the first",
            first.into_iter().next().expect("one"),
            "the image cannot be fetched (its host did not answer within 1 s)",
        ),
        (
            "the second",
            second,
            "the image was not fetched: too many others are being fetched; try again shortly",
        ),
    ] {
        let got = running.await.expect("runs");
        assert_eq!(got.as_deref(), Some(reason), "{name}");
    }
}
