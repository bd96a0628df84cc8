//! An account that uses up its share of a common resource does not delay other accounts.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use domain::Clock as _;
use engine::clock::SystemClock;
use jiff::SignedDuration;
use serde_json::{Value, json};
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, NameServer, Record};

use super::service::{Service, sms_with, wait_for};

/// More concurrent requests than the service allows lookups and fetches for all accounts.
const CONCURRENT_REQUESTS: usize = 150;

/// How many requests of the other account must be answered as if it were alone, out of at most twice as many: a machine
/// that stalls may cost some of them their time limits. Without its own share, an account gets few of them through.
const ANSWERED: usize = 10;

/// How many lookups one account may have at once, and the time limit of each.
const SHARE: usize = 8;
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs `check` while another account floods the service. `make_body` makes the body of each request from its number.
/// By then, all requests of the flood are on their way.
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
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_for("the flood", || {
                let begun = number.load(Ordering::Relaxed);
                (begun >= CONCURRENT_REQUESTS as u64).then_some(())
            });
            check()
        }));
        stop.store(true, Ordering::Release);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Sends numbered requests until enough of them got the expected answer.
fn assert_mostly_answered(mut is_answered: impl FnMut(usize) -> bool) {
    let answered = (0..2 * ANSWERED).filter(|number| is_answered(*number));
    let answered = answered.take(ANSWERED).count();
    assert_eq!(answered, ANSWERED, "of {} requests", 2 * ANSWERED);
}

#[test]
fn names_that_never_resolve_delay_no_other_account() {
    let names = NameServer::start(|name| {
        if name.ends_with("inside.example") {
            Record::address([10, 0, 0, 1])
        } else {
            Record::NoAnswer
        }
    })
    .expect("a name server");
    let service = Service::with(Backend::Sqlite, |server| {
        let list = format!("[\"{}\"]", names.address());
        server.env("SWITCHBOARD_CALLBACKS__NAME_SERVERS", list)
    });
    let greedy = service.create_account("greedy");
    // Sent later, so that no report of theirs is looked up, too. Each name has a domain of its own, because a domain has
    // a share as well.
    let later = SystemClock.now() + SignedDuration::from_hours(24 * 30);
    let hanging = |number: u64| {
        let url = format!("http://hangs{number}.example/");
        sms_with(&json!({"dlrUrl": url, "scheduled": later.to_string()}))
    };
    let begun = Instant::now();
    while_another_account_floods(&service, &greedy, "/sms", hanging, || {
        // A name that is not looked up in time passes, so a refusal shows that it was looked up.
        assert_mostly_answered(|number| {
            let url = format!("http://{number}.inside.example/");
            let response = service.send(&sms_with(&json!({"dlrUrl": url})));
            response.status == 400 && response.text().contains("private address")
        });
        let names_under = |suffix| names.name_count_under(suffix);
        let asked = names_under(".example") - names_under("inside.example");
        let rounds = begun.elapsed().as_secs() / LOOKUP_TIMEOUT.as_secs() + 1;
        let share = SHARE * usize::try_from(rounds).expect("a few");
        assert!(
            asked <= share,
            "{asked} names in {rounds} times the time limit"
        );
    });
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
        assert_mostly_answered(|number| {
            let body = message(good.url(&format!("/{number}.gif"))).to_string();
            let response = service.call_as(&service.token, "POST", "/viber", body.as_bytes());
            response.status == 200
        });
    });
}
