//! Notifications: webhooks and e-mails about what goes wrong.

mod mail;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use serde_json::Value;
use testkit::receiver::{ReceivedRequest, Receiver};
use testkit::smsc::Smsc;
use testkit::{Backend, temp_dir};

use crate::deliver::reports::check_headers;
use crate::people::joined;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, sms_with, wait_for};
use crate::rest::tls::make_certificate;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

on_both_backends!(
    a_carrier_that_goes_down_and_up_is_told_once,
    a_low_balance_is_told_to_operators_and_to_the_account,
);

/// An address where nobody listens.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("its address")
}

pub(crate) fn webhook(receiver: &Receiver, events: &str) -> String {
    let url = receiver.url("/events");
    format!("[[notify]]\nurl = '{url}'\nsecret = '{SECRET}'\nevents = [{events}]\n")
}

fn start(backend: Backend, config: &str) -> Service {
    Service::with(backend, |builder| {
        builder
            .config(config)
            .env("SWITCHBOARD_CALLBACKS__ALLOW", "['127.0.0.0/8']")
    })
}

pub(crate) fn body(request: &ReceivedRequest) -> Value {
    serde_json::from_slice(&request.body).expect("JSON")
}

/// The notifications of this type.
fn of_type(receiver: &Receiver, event: &str) -> Vec<ReceivedRequest> {
    let mut requests = receiver.received();
    requests.retain(|request| body(request)["type"] == event);
    requests
}

pub(crate) fn wait_for_event(receiver: &Receiver, event: &str) -> ReceivedRequest {
    wait_for(event, || of_type(receiver, event).into_iter().next())
}

fn a_carrier_that_goes_down_and_up_is_told_once(backend: Backend) {
    let (receiver, address) = (Receiver::start(), free_address());
    let carrier = format!(
        "[[carrier]]\nkind = 'smpp'\nname = 'alpha'\naddress = '{address}'\nsystem_id = 'user'\n"
    );
    let notify = webhook(&receiver, "'carrier.down', 'carrier.up'");
    let mut service = start(backend, &format!("{carrier}{notify}"));
    let down = wait_for_event(&receiver, "carrier.down");
    check_headers(&down, SECRET);
    let told = body(&down);
    assert_eq!(told["data"]["carrier"], "alpha", "{told}");
    assert!(told["data"]["reason"].is_string(), "{told}");
    let time = told["timestamp"].as_str().expect("a time");
    assert!(time.ends_with('Z') && time.len() == 20, "{time}");

    // What was told survives a restart: the carrier is still down, and that is not told again.
    service.server.restart();
    let smsc = Smsc::builder().bind(address).start();
    let up = wait_for_event(&receiver, "carrier.up");
    check_headers(&up, SECRET);
    assert_eq!(of_type(&receiver, "carrier.down").len(), 1);
    assert!(!smsc.bound().is_empty());
    let output = service.server.output();
    for secret in [SECRET, &receiver.url("")] {
        assert!(!output.contains(secret), "{secret} in the log");
    }
}

fn a_low_balance_is_told_to_operators_and_to_the_account(backend: Backend) {
    let (receiver, own) = (Receiver::start(), Receiver::start());
    let service = start(backend, &webhook(&receiver, "'balance.low'"));
    let mut admin = joined(
        &service,
        "ann@example.com",
        &["--role", "admin", "--account", "main"],
    );
    let page = admin.get("/dashboard/settings/notifications").text();
    assert!(page.contains("This service does not send email"), "{page}");
    let refused = admin.submit(&[("low_balance", "-3"), ("url", "ftp://x")]);
    assert_eq!(refused.status, 400);
    for problem in ["-3.00 is out of range", "only http and https"] {
        assert!(refused.text().contains(problem), "{}", refused.text());
    }
    admin.get("/dashboard/settings/notifications");
    let saved = admin.submit(&[("low_balance", "1000000"), ("url", &own.url("/own"))]);
    assert_eq!(saved.status, 303, "{}", saved.text());
    for receiver in [&receiver, &own] {
        let low = wait_for_event(receiver, "balance.low");
        let told = body(&low);
        assert_eq!(told["data"]["account"], "main", "{told}");
        assert_eq!(told["data"]["lowBalance"], "1000000.00", "{told}");
    }
    let page = wait_for("the alert on a page", || {
        let page = admin.get("/dashboard/messages").text();
        page.contains("The balance of main is low").then_some(page)
    });
    assert!(page.contains("aria-label=\"Alerts\""), "{page}");

    // Another account sees nothing of it.
    service.create_account("other");
    let mut other = joined(
        &service,
        "bob@example.com",
        &["--role", "admin", "--account", "other"],
    );
    let page = other.get("/dashboard").text();
    assert!(!page.contains("aria-label=\"Alerts\""), "{page}");
    assert_eq!(of_type(&own, "balance.low").len(), 1);
}

/// Takes half a minute: that long it takes until a callback was tried three times.
#[test]
fn a_failing_callback_host_is_told() {
    let (receiver, dead) = (Receiver::start(), free_address());
    let service = start(
        Backend::Sqlite,
        &webhook(&receiver, "'callbacks.host_down'"),
    );
    let mut message = sms_with(&serde_json::json!({}));
    message["dlrUrl"] = format!("http://{dead}/dlr?secret=1").into();
    service.accept(&message);
    let told = body(&wait_for_event(&receiver, "callbacks.host_down"));
    assert_eq!(told["data"]["host"], dead.to_string(), "{told}");
    assert_eq!(told["data"]["account"], "main", "{told}");
    assert!(!told.to_string().contains("secret"), "{told}");
    let mut member = joined(&service, "ann@example.com", &[]);
    let alert = format!("{dead} does not accept callbacks: ");
    let page = wait_for("the alert on a page", || {
        let page = member.get("/dashboard/messages").text();
        page.contains(&alert).then_some(page)
    });
    for expected in ["since <time datetime=", "Correct the receiver"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
}

/// A process that is killed does not leave, and the next one finds its row.
#[test]
fn a_killed_node_and_a_pending_sender_are_told() {
    let receiver = Receiver::start();
    let notify = webhook(&receiver, "'node.lost', 'sender.pending'");
    let mut service = start(Backend::Sqlite, &notify);
    let sender = serde_json::json!({
        "name": "Acme", "type": "AlphaNumeric", "category": "Company", "categoryDescription": "our own name",
    });
    let body_text = sender.to_string();
    let token = service.token.clone();
    let registered = service.call_as(&token, "POST", "/senderId", body_text.as_bytes());
    assert_eq!(registered.status, 200, "{}", registered.text());
    let pending = body(&wait_for_event(&receiver, "sender.pending"));
    assert_eq!(pending["data"]["sender"], "Acme", "{pending}");
    service.server.kill9();
    service.server.restart();
    let lost = body(&wait_for_event(&receiver, "node.lost"));
    let node = lost["data"]["node"].as_str().expect("a name");
    assert!(node.contains("127.0.0.1:"), "{lost}");
    assert_eq!(of_type(&receiver, "sender.pending").len(), 1);
}

/// The certificate of the test expires in two days.
#[test]
fn an_empty_balance_and_an_expiring_certificate_are_told() {
    let folder = temp_dir("tls").expect("a temporary folder");
    let served = make_certificate(folder.path(), "served", "0x1001");
    let receiver = Receiver::start();
    let events = webhook(&receiver, "'balance.empty', 'certificate.expiring'");
    let service = Service::with(Backend::Sqlite, |builder| {
        builder
            .config(&events)
            .env("SWITCHBOARD_CALLBACKS__ALLOW", "['127.0.0.0/8']")
            .env("SWITCHBOARD_TLS__CERT", served.cert.to_string_lossy())
            .env("SWITCHBOARD_TLS__KEY", served.key.to_string_lossy())
    });
    let expiring = body(&wait_for_event(&receiver, "certificate.expiring"));
    assert!(expiring["data"]["host"].is_string(), "{expiring}");
    let expires = expiring["data"]["expires"].as_str().expect("a time");
    assert!(expires.ends_with('Z') && expires.len() == 20, "{expires}");
    let set = ["account", "set", "main", "low_balance=1"];
    assert!(service.server.cli(&set).status.success());
    let all = ["account", "credit", "main", "-100"];
    assert!(service.server.cli(&all).status.success());
    let empty = body(&wait_for_event(&receiver, "balance.empty"));
    assert_eq!(empty["data"]["account"], "main", "{empty}");
    assert_eq!(empty["data"]["balance"], "0.00", "{empty}");
}
