//! Reports survive a stop and a crash of the process.

use std::sync::atomic::{AtomicBool, Ordering};

use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, Server};

use super::fixture::{callbacks, payload, send, start, wait_for_reports};
use crate::rest::service::wait_for;

/// How the process ends.
type Stop = fn(&mut Server);

fn terminate(server: &mut Server) {
    let status = server.terminate();
    assert!(status.success(), "{status}");
}

/// An address where nobody listens. No other test uses its host, so its port stays free.
fn unused_address(backend: Backend) -> String {
    let host = match backend {
        Backend::Sqlite => "127.0.3.1:0",
        Backend::Postgres => "127.0.3.2:0",
    };
    Receiver::builder().bind(host).start().addr().to_string()
}

/// The receiver is down until the service was stopped and killed once each.
fn a_waiting_report_survives_restarts(backend: Backend) {
    let mut service = start(backend);
    let address = unused_address(backend);
    let id = send(&service, &format!("http://{address}/dlr"));
    let callback = wait_for("the first attempt", || {
        let list = callbacks(&service, &[]);
        list.into_iter().find(|one| one["tries"] == 1)
    });
    assert_eq!(callback["last"]["reason"], "refused the connection");
    let stops: [(&str, Stop); 2] = [("terminated", terminate), ("killed", Server::kill9)];
    for (case, stop) in stops {
        stop(&mut service.server);
        service.server.restart();
        let [callback_now] = &callbacks(&service, &[])[..] else {
            panic!("{case}: one callback waits");
        };
        assert_eq!(
            (&callback_now["id"], &callback_now["state"]),
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

/// The receiver got the request, but the process ended before the answer.
fn check_attempt_is_repeated_after(backend: Backend, stop: Stop) {
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
    stop(&mut service.server);
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

fn an_attempt_is_repeated_after_a_graceful_stop(backend: Backend) {
    check_attempt_is_repeated_after(backend, terminate);
}

fn an_attempt_is_repeated_after_a_crash(backend: Backend) {
    check_attempt_is_repeated_after(backend, Server::kill9);
}

crate::rest::on_both_backends!(
    a_waiting_report_survives_restarts,
    an_attempt_is_repeated_after_a_graceful_stop,
    an_attempt_is_repeated_after_a_crash,
);
