//! The check of a URL when it is given.

use std::time::Duration;

use domain::CallbackUrl;
use domain::ports::UrlGuard as _;
use outbound::{Guard, UrlCheck};

use crate::setup::{ScriptedResolver, account};

fn url(text: &str) -> CallbackUrl {
    CallbackUrl::parse(text).expect(text)
}

#[tokio::test(start_paused = true)]
async fn a_result_is_cached_for_a_while() {
    let resolver = ScriptedResolver::new(&[&["8.8.8.8"], &["10.0.0.1"]]);
    let check = UrlCheck::new(Guard::default(), resolver.clone());
    for (name, wait_s, text, permitted, lookups) in [
        ("the first time", 0, "http://a.example/x", true, 1),
        (
            "remembered for the host",
            29,
            "http://A.example:81/y",
            true,
            1,
        ),
        ("looked up again", 2, "http://a.example/x", false, 2),
        (
            "a refusal is remembered, too",
            1,
            "https://a.example/",
            false,
            2,
        ),
        ("another host", 0, "http://b.example/", false, 3),
        ("an address needs no lookup", 0, "http://8.8.8.8/", true, 3),
        ("neither does localhost", 0, "http://localhost/", false, 3),
    ] {
        tokio::time::advance(Duration::from_secs(wait_s)).await;
        let got = check.check(account(), &url(text)).await;
        assert_eq!(
            (got.is_ok(), resolver.lookups()),
            (permitted, lookups),
            "{name}"
        );
    }
}

#[tokio::test]
async fn the_refusal_tells_the_caller_the_reason() {
    let check = UrlCheck::new(Guard::default(), ScriptedResolver::new(&[]));
    let refused = check.check(account(), &url("http://0x7f.1/")).await;
    let text = refused.expect_err("loopback").to_string();
    assert_eq!(
        text,
        "127.0.0.1 is a loopback address; callbacks cannot reach it"
    );
}
