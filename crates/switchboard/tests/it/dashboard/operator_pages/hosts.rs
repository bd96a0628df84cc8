//! Hosts of receivers that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, TEST_TIMEOUT};

use super::{operator, post};
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

const HOSTS: &str = "/dashboard/operator/hosts";

on_both_backends!(callbacks_that_wait_for_a_host_are_sent_again);

fn callbacks_that_wait_for_a_host_are_sent_again(backend: Backend) {
    let works = Arc::new(AtomicBool::new(false));
    let scripted = works.clone();
    let receiver = Receiver::builder()
        .script(move |_| {
            if scripted.load(Ordering::SeqCst) {
                Reply::ok()
            } else {
                Reply::answer(500, "no")
            }
        })
        .start();
    let service = Service::start(backend);
    service.accept(&json!({
        "to": "+37120000001", "from": "Acme", "message": "x", "dlrUrl": receiver.url("/report"),
    }));
    let mut browser = operator(&service);
    let host = receiver.addr().to_string();
    wait_for("a failed attempt", || {
        let page = browser.get(HOSTS).text();
        (page.contains(&host) && page.contains("500")).then_some(())
    });
    let tried = receiver.count();
    works.store(true, Ordering::SeqCst);
    let address = format!("http://{host}");
    // A host that only shares the prefix is another one.
    let other = address.trim_end_matches(|c: char| c.is_ascii_digit());
    let none = post(
        &mut browser,
        &format!("{HOSTS}/replay"),
        &[("address", other)],
    );
    let location = none.header("location").unwrap_or_default();
    assert!(location.contains("?said=replayed-0."), "{location}");
    // The failed attempt may not be settled yet, and callbacks that a node holds are skipped. On a slow machine, the
    // next regular attempt may come first.
    wait_for("it is sent again", || {
        if receiver.count() > tried {
            return Some(());
        }
        let replayed = post(
            &mut browser,
            &format!("{HOSTS}/replay"),
            &[("address", &address)],
        );
        let location = replayed.header("location").unwrap_or_default().to_owned();
        location.contains("?said=replayed-1.").then_some(())
    });
    assert!(receiver.wait_for(tried + 1, TEST_TIMEOUT), "it was sent");
    wait_for("nothing waits", || {
        let page = browser.get(HOSTS).text();
        page.contains("Nothing is waiting").then_some(())
    });
}
