//! Receipts are kept until a session of the user accepts them.

use serde_json::Value;
use testkit::Backend;

use super::raw::{
    BIND_RECEIVER, BIND_TRANSCEIVER, BIND_TRANSMITTER, Client, DELIVER, Pdu, RESPONSE, SUBMIT,
    Submit, UNBIND,
};
use super::{create_user, start};
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

on_both_backends!(receipts_wait_for_a_session_that_accepts_them);

const FAILED: &str = "447700900043";

/// Callbacks to SMPP sessions of the user.
fn callbacks(service: &Service, more: &[&str]) -> Vec<Value> {
    let list = ["callbacks", "list", "--url", "smpp:acme", "--json"];
    let listed = service.server.cli_json(&[&list, more].concat());
    listed.as_array().expect("a list").clone()
}

fn read_delivery(client: &mut Client) -> Pdu {
    let delivery = client.read().expect("a receipt");
    assert_eq!(delivery.command, DELIVER, "{delivery:?}");
    delivery
}

fn receipts_wait_for_a_session_that_accepts_them(backend: Backend) {
    let (service, address) = start(backend, "");
    let password = create_user(&service.server, "acme", &[]);
    let another = create_user(&service.server, "another", &[]);
    let mut sender = Client::bound(address, BIND_TRANSMITTER, "acme", &password);
    let submit = |to, receipt| Submit {
        to,
        receipt,
        ..Submit::default()
    };
    let mut send = |to, receipt| {
        let answer = sender.ask(SUBMIT, &submit(to, receipt).body());
        assert_eq!((answer.command, answer.status), (SUBMIT | RESPONSE, 0));
        answer.text()
    };
    // The first gets no receipt, the second only if it fails.
    send(super::TO, 0);
    send(super::TO, 2);
    let id = send(FAILED, 2);
    let answer = sender.ask(UNBIND, b"");
    assert_eq!(answer.command, UNBIND | RESPONSE);
    assert_eq!(sender.read(), None, "the connection is closed");
    let is_about = |callback: &Value| {
        let payload = callback["payload"].as_str().unwrap_or_default();
        payload.contains(&format!("\"{id}\""))
    };
    wait_for("the callback waits", || {
        let waiting = callbacks(&service, &[]);
        waiting.iter().any(is_about).then_some(())
    });

    // Another user of the account does not get it; nor is it done when a session ends without an answer.
    let mut stranger = Client::bound(address, BIND_RECEIVER, "another", &another);
    let mut first = Client::bound(address, BIND_RECEIVER, "acme", &password);
    let delivery = read_delivery(&mut first);
    let text = String::from_utf8_lossy(&delivery.body).into_owned();
    assert!(
        text.contains(&format!("id:{id} sub:001 dlvrd:000")),
        "{text}"
    );
    assert!(text.contains("stat:UNDELIV err:043"), "{text}");
    drop(first);
    let mut second = Client::bound(address, BIND_RECEIVER, "acme", &password);
    let again = read_delivery(&mut second);
    assert_eq!(again.body, delivery.body, "the same receipt");
    second.write(DELIVER | RESPONSE, 0, again.sequence, b"\0");
    wait_for("nothing waits any more", || {
        callbacks(&service, &[]).is_empty().then_some(())
    });
    let done = callbacks(&service, &["--all"]);
    let done = done.into_iter().find(is_about).expect("it is kept");
    assert_eq!(done["tries"], 1, "an ended session is no attempt: {done}");
    for client in [&mut second, &mut stranger] {
        let answer = client.ask(UNBIND, b"");
        assert_eq!(answer.command, UNBIND | RESPONSE, "no other receipt came");
    }
    service.check_health();
}

/// The client answers the first attempt with `ESME_RMSGQFUL`.
#[test]
fn a_refused_receipt_is_sent_again_in_the_format_of_its_user() {
    const RMSGQFUL: u32 = 0x14;
    let (service, address) = start(Backend::Sqlite, "");
    let format = [
        ["--receipt-id", "hex"],
        ["--receipt-date", "seconds"],
        ["--receipt-error", "zero"],
    ];
    let password = create_user(&service.server, "acme", &format.concat());
    let mut client = Client::bound(address, BIND_TRANSCEIVER, "acme", &password);
    let submit = Submit {
        to: FAILED,
        receipt: 1,
        ..Submit::default()
    };
    let id = client.ask(SUBMIT, &submit.body()).text();
    let number = u64::from_str_radix(&id, 16).expect("hexadecimal");

    let first = read_delivery(&mut client);
    let text = String::from_utf8_lossy(&first.body).into_owned();
    let (_, text) = text.split_once("id:").expect("a receipt");
    let words: Vec<&str> = text.split(' ').collect();
    // id:… sub:… dlvrd:… submit date:… done date:… stat:… err:… text:
    let [
        got,
        _,
        _,
        _,
        submitted,
        _,
        done,
        "stat:UNDELIV",
        "err:000",
        ..,
    ] = words[..]
    else {
        panic!("{text}");
    };
    assert_eq!(got, id);
    for date in [submitted, done] {
        let digits = date.strip_prefix("date:").expect("a date");
        assert_eq!(digits.len(), "YYMMDDhhmmss".len(), "{text}");
    }
    client.write(DELIVER | RESPONSE, RMSGQFUL, first.sequence, b"\0");
    let refused = wait_for("the refusal", || {
        callbacks(&service, &[])
            .into_iter()
            .find(|callback| callback["tries"] == 1)
    });
    let payload = refused["payload"].as_str().expect("text");
    assert!(payload.contains(&format!("\"{number}\"")), "{refused}");
    let reason = refused["last"]["reason"].as_str().expect("text");
    assert!(reason.contains("ESME_RMSGQFUL"), "{reason}");

    let second = read_delivery(&mut client);
    assert_eq!(second.body, first.body);
    client.write(DELIVER | RESPONSE, 0, second.sequence, b"\0");
    wait_for("nothing waits any more", || {
        callbacks(&service, &[]).is_empty().then_some(())
    });
    let replay = ["callbacks", "replay", "--url", "smpp:acme", "--all"];
    let replayed = service.server.cli(&replay);
    assert!(replayed.status.success(), "{replayed:?}");
    let third = read_delivery(&mut client);
    assert_eq!(third.body, first.body, "replayed");
    client.write(DELIVER | RESPONSE, 0, third.sequence, b"\0");
    service.check_health();
}

/// The server has sent `unbind`, and the client has not answered it yet.
#[test]
fn a_session_that_leaves_gets_nothing_more() {
    let (service, address) = start(Backend::Sqlite, "");
    let password = create_user(&service.server, "acme", &[]);
    let another = create_user(&service.server, "another", &[]);
    let cli = |arguments: &[&str]| {
        let done = service.server.cli(arguments);
        assert!(done.status.success(), "{done:?}");
    };
    let number = "+37120000009";
    cli(&["number", "add", "--number", number, "--account", "main"]);
    let mut leaving = Client::bound(address, BIND_RECEIVER, "acme", &password);
    cli(&["smpp-user", "set", "acme", "--allow-bind", "transmitter"]);
    let unbind = leaving.read().expect("a PDU");
    assert_eq!(unbind.command, UNBIND, "{unbind:?}");

    let from = "+37120000001";
    let reply = ["simulator", "reply", "--from", from, "--to", number];
    cli(&[&reply[..], &["--text", "Hello"]].concat());
    wait_for("the text waits", || {
        let list = ["callbacks", "list", "--url", "smpp:", "--json"];
        let waiting = service.server.cli_json(&list);
        (waiting.as_array().expect("a list").len() == 1).then_some(())
    });
    leaving.write(UNBIND | RESPONSE, 0, unbind.sequence, b"");
    assert_eq!(leaving.read(), None, "the connection is closed");
    let mut next = Client::bound(address, BIND_RECEIVER, "another", &another);
    let text = read_delivery(&mut next);
    next.write(DELIVER | RESPONSE, 0, text.sequence, b"\0");
    service.check_health();
}

/// It could never be delivered.
#[test]
fn a_user_that_cannot_receive_gets_no_receipt() {
    let (service, address) = start(Backend::Sqlite, "");
    let only = ["--allow-bind", "transmitter"];
    let password = create_user(&service.server, "acme", &only);
    let mut client = Client::bound(address, BIND_TRANSMITTER, "acme", &password);
    let submit = Submit {
        receipt: 1,
        ..Submit::default()
    };
    let id = client.ask(SUBMIT, &submit.body()).text();
    wait_for("it is delivered", || {
        let status = service.get(&format!("/sms/status/{id}")).json();
        (status["status"] == 1).then_some(())
    });
    assert_eq!(callbacks(&service, &["--all"]), Vec::<Value>::new());
    service.check_health();
}
