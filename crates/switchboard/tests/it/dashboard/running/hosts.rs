//! Receivers of reports that do not answer as they should.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, PATIENCE};

use super::{operator, post};
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

const HERE: &str = "/dashboard/operator/hosts";

on_both_backends!(what_waits_for_a_host_is_sent_again);

fn what_waits_for_a_host_is_sent_again(backend: Backend) {
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
    wait_for("a failed try", || {
        let page = browser.get(HERE).text();
        (page.contains(&host) && page.contains("500")).then_some(())
    });
    let tried = receiver.count();
    works.store(true, Ordering::SeqCst);
    let address = format!("http://{host}");
    // A host whose name only begins so is another.
    let other = address.trim_end_matches(|c: char| c.is_ascii_digit());
    let none = post(
        &mut browser,
        &format!("{HERE}/replay"),
        &[("address", other)],
    );
    assert_eq!(
        none.header("location"),
        Some("/dashboard/operator/hosts?replayed=0")
    );
    // The try that failed may not be settled yet, and what a node holds is left alone; on a slow machine the report's own
    // next try may come first.
    wait_for("it is sent again", || {
        if receiver.count() > tried {
            return Some(());
        }
        let replayed = post(
            &mut browser,
            &format!("{HERE}/replay"),
            &[("address", &address)],
        );
        let said = replayed.header("location").unwrap_or_default().to_owned();
        said.ends_with("?replayed=1").then_some(())
    });
    assert!(receiver.wait_for(tried + 1, PATIENCE), "it came");
    wait_for("nothing waits", || {
        let page = browser.get(HERE).text();
        page.contains("Nothing waits").then_some(())
    });
}
