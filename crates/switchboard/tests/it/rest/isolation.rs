//! An account that uses up its share of a common resource does not delay other accounts.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use serde_json::{Value, json};
use testkit::http::Response;
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, NameServer, Record};

use super::service::{Service, sms_with, wait_for};

/// More concurrent requests than the service allows lookups and fetches for all accounts.
const CONCURRENT_REQUESTS: usize = 150;

/// Runs `check` while another account floods the service. `make_body` makes the body of each request from its number.
fn while_another_account_floods<T>(
    service: &Service,
    greedy: &str,
    path: &str,
    make_body: impl Fn(u64) -> Value + Sync,
    check: impl FnOnce() -> T,
) -> T {
    let (stop, number) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..CONCURRENT_REQUESTS {
            scope.spawn(|| {
                while !stop.load(Ordering::Acquire) {
                    let body = make_body(number.fetch_add(1, Ordering::Relaxed)).to_string();
                    service.call_as(greedy, "POST", path, body.as_bytes());
                }
            });
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
        stop.store(true, Ordering::Release);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn names_that_never_resolve_delay_no_other_account() {
    let names = NameServer::start(|name| match name {
        "inside.example" => Record::address([10, 0, 0, 1]),
        _ => Record::NoAnswer,
    })
    .expect("a name server");
    let service = Service::with(Backend::Sqlite, |server| {
        let list = format!("[\"{}\"]", names.address());
        server.env("SWITCHBOARD_CALLBACKS__NAME_SERVERS", list)
    });
    let hanging = |number: u64| {
        sms_with(&json!({"dlrUrl": format!("http://{number}.hangs{number}.example/")}))
    };
    while_another_account_floods(
        &service,
        &service.create_account("greedy"),
        "/sms",
        hanging,
        || {
            wait_for("the flood", || {
                (names.query_count_under(".example") >= 8).then_some(())
            });
            // A name that is not looked up in time passes, so a refusal shows that it was looked up.
            let request = sms_with(&json!({"dlrUrl": "http://inside.example/"}));
            let refused = wait_for("the expected answer", || {
                let response = service.send(&request);
                (response.status == 400).then_some(response)
            });
            assert!(
                refused.text().contains("private address"),
                "{}",
                refused.text()
            );
        },
    );
}

#[test]
fn images_on_hosts_that_hang_delay_no_other_account() {
    const SENDER: &str = "Acme";
    let service = Service::start(Backend::Sqlite);
    let silent = Receiver::builder().script(|_| Reply::hang()).start();
    let good = Receiver::builder()
        .script(|_| Reply::answer(200, super::viber::gif(1)))
        .start();
    let message = |image: String| {
        json!({
            "to": "+37120000001", "from": SENDER, "message": "Hello", "im": {"image": {"url": image}},
        })
    };
    let approve = |token: &str| {
        let body = json!({"name": SENDER, "type": "AlphaNumeric", "category": "Brand", "categoryDescription": "ours"});
        let registered = service.call_as(token, "POST", "/senderId", body.to_string().as_bytes());
        assert_eq!(registered.status, 200, "{}", registered.text());
        let approved = service
            .server
            .cli(&["sender", "approve", &registered.text()]);
        assert!(approved.status.success(), "{approved:?}");
    };
    let greedy = service.create_account("greedy");
    approve(&service.token);
    approve(&greedy);
    let hanging = |number: u64| message(silent.url(&format!("/{number}.png")));
    while_another_account_floods(&service, &greedy, "/viber", hanging, || {
        wait_for("the flood", || (silent.count() >= 8).then_some(()));
        let body = message(good.url("/x.gif")).to_string();
        let response: Response = wait_for("the expected answer", || {
            let response = service.call_as(&service.token, "POST", "/viber", body.as_bytes());
            (response.status == 200).then_some(response)
        });
        assert_eq!(response.status, 200, "{}", response.text());
    });
}
