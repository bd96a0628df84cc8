//! Reports outlive the process, however it ends.

use std::sync::atomic::{AtomicBool, Ordering};

use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, Server};

use super::post::{callbacks, payload, send, start, wait_for_reports};
use crate::rest::service::wait_for;

/// A way for the process to end.
type End = fn(&mut Server);

fn terminate(server: &mut Server) {
    let status = server.terminate();
    assert!(status.success(), "{status}");
}

/// An address on which nobody listens: one of a host that no other test uses, so that its port stays free.
fn deserted(backend: Backend) -> String {
    let host = match backend {
        Backend::Sqlite => "127.0.3.1:0",
        Backend::Postgres => "127.0.3.2:0",
    };
    Receiver::builder().bind(host).start().addr().to_string()
}

/// Refused before two ends of the service, received after them.
fn a_waiting_report_outlives_the_process(backend: Backend) {
    let mut service = start(backend);
    let address = deserted(backend);
    let id = send(&service, &format!("http://{address}/dlr"));
    let callback = wait_for("the first try", || {
        let list = callbacks(&service, &[]);
        list.into_iter().find(|one| one["tries"] == 1)
    });
    assert_eq!(callback["last"]["reason"], "refused the connection");
    let ends: [(&str, End); 2] = [("terminated", terminate), ("killed", Server::kill9)];
    for (case, end) in ends {
        end(&mut service.server);
        service.server.restart();
        let [kept] = &callbacks(&service, &[])[..] else {
            panic!("{case}: one callback waits");
        };
        assert_eq!(
            (&kept["id"], &kept["state"]),
            (&callback["id"], &"waiting".into()),
            "{case}"
        );
    }
    let receiver = Receiver::builder().bind(address).start();
    let number = callback["id"].to_string();
    let replayed = service
        .server
        .cli(&["callbacks", "replay", "--id", &number]);
    assert!(replayed.status.success(), "{replayed:?}");
    let report = wait_for_reports(&receiver, 1).remove(0);
    assert_eq!(report.text(), payload(&id, 1, 0));
    assert_eq!(report.header("webhook-id"), Some(number.as_str()));
}

/// The receiver has the request but never answered it, and then nobody was there to hear the answer.
fn try_again_after(backend: Backend, end: End) {
    let mut service = start(backend);
    let first = AtomicBool::new(true);
    let receiver = Receiver::builder().script(move |_| {
        if first.swap(false, Ordering::Relaxed) {
            Reply::hang()
        } else {
            Reply::ok()
        }
    });
    let receiver = receiver.start();
    send(&service, &receiver.url("/dlr"));
    wait_for_reports(&receiver, 1);
    end(&mut service.server);
    service.server.restart();
    let reports = wait_for_reports(&receiver, 2);
    assert_eq!(reports[0].text(), reports[1].text());
    assert_eq!(
        reports[0].header("webhook-id"),
        reports[1].header("webhook-id")
    );
    wait_for("the end of the callback", || {
        callbacks(&service, &[]).is_empty().then_some(())
    });
}

fn a_try_is_made_again_after_a_graceful_end(backend: Backend) {
    try_again_after(backend, terminate);
}

fn a_try_is_made_again_after_a_crash(backend: Backend) {
    try_again_after(backend, Server::kill9);
}

crate::rest::on_both_backends!(
    a_waiting_report_outlives_the_process,
    a_try_is_made_again_after_a_graceful_end,
    a_try_is_made_again_after_a_crash,
);
