//! Texts from handsets: from the carrier to the account's URL.

use serde_json::{Value, json};
use testkit::Backend;
use testkit::receiver::{ReceivedRequest, Receiver};
use testkit::smsc::{Receipt, Smsc};

use super::{carrier, start};
use crate::deliver::reports::{check_headers, signing_account};
use crate::rest::on_both_backends;
use crate::rest::service::{Service, sms_with, wait_for};

const HANDSET: &str = "37120000001";

on_both_backends!(
    a_text_reaches_its_account,
    parts_in_any_order_are_one_message,
    a_text_is_not_lost_or_doubled_when_the_link_breaks,
    stop_counts_when_the_carrier_is_answered,
);

fn text(text: impl Into<Vec<u8>>, to: &str) -> Receipt {
    Receipt::message(text).from(HANDSET).to(to)
}

fn send(smsc: &Smsc, receipt: &Receipt) {
    wait_for("a link that accepts it", || smsc.send(receipt));
}

fn add_number(service: &Service, arguments: &[&str]) {
    let added = service
        .server
        .cli(&[&["number", "add"], arguments].concat());
    let stderr = String::from_utf8_lossy(&added.stderr);
    assert!(added.status.success(), "{stderr}");
}

fn body(request: &ReceivedRequest) -> Value {
    serde_json::from_slice(&request.body).expect("JSON")
}

/// Waits for this many callbacks, and returns all that came.
fn wait_for_callbacks(receiver: &Receiver, count: usize) -> Vec<ReceivedRequest> {
    wait_for("the callbacks", || {
        Some(receiver.received()).filter(|received| received.len() >= count)
    })
}

fn a_text_reaches_its_account(backend: Backend) {
    let (smsc, receiver) = (Smsc::start(), Receiver::start());
    let service = start(backend, carrier("alpha", smsc.addr(), ""));
    let url = receiver.url("/all");
    let setting = ["account", "set", "main", &format!("inbound_url={url}")];
    assert!(service.server.cli(&setting).status.success());
    add_number(&service, &["--number", "1234", "--account", "main"]);
    let join = receiver.url("/join");
    let (_, secret) = signing_account(&service);
    let keyword = [
        "--number",
        "1234",
        "--account",
        "signed",
        "--keyword",
        "Join",
        "--url",
        &join,
    ];
    add_number(&service, &keyword);
    let sent = service.accept(&sms_with(&json!({"to": "+37120000001", "from": "1234"})));

    send(&smsc, &text("Hello", "1234"));
    send(&smsc, &text("JOIN, please", "1234"));
    send(&smsc, &text("nobody's", "5678"));
    let callbacks = wait_for_callbacks(&receiver, 2);
    let of = |path: &str| callbacks.iter().find(|request| request.path == path);
    let hello = body(of("/all").expect("the number's"));
    let expected = json!({
        "id": hello["id"], "from": "+37120000001", "to": "1234", "message": "Hello", "received": hello["received"],
        "parts": 1, "coding": 0, "udh": null, "mcc": "247", "mnc": "02", "keyword": null, "inReplyTo": sent[0],
        "incomplete": false,
    });
    assert_eq!(hello, expected);
    let join = of("/join").expect("the keyword's");
    assert_eq!(body(join)["keyword"], "Join");
    check_headers(join, &secret);
    let listed = service.server.cli_json(&["number", "list", "--json"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
}

/// Greek letters, in three parts.
fn parts_in_any_order_are_one_message(backend: Backend) {
    let (smsc, receiver) = (Smsc::start(), Receiver::start());
    let mut service = start(backend, carrier("alpha", smsc.addr(), ""));
    let url = receiver.url("/inbound");
    add_number(
        &service,
        &["--number", "1234", "--account", "main", "--url", &url],
    );
    let words = ["Καλημέρα ", "σε ", "όλους"];
    let part = |sequence: usize| {
        let letters = words[sequence - 1]
            .encode_utf16()
            .flat_map(u16::to_be_bytes);
        let header = [5, 0, 3, 77, 3, u8::try_from(sequence).expect("few")];
        let octets: Vec<u8> = header.into_iter().chain(letters).collect();
        text(octets, "1234").esm_class(0x40).data_coding(8)
    };
    send(&smsc, &part(3));
    send(&smsc, &part(1));
    wait_for("both parts are stored", || {
        (smsc.answers_after(0).len() == 2).then_some(())
    });
    service.server.kill9();
    service.server.restart();
    send(&smsc, &part(2));
    let callbacks = wait_for_callbacks(&receiver, 1);
    let message = body(&callbacks[0]);
    assert_eq!(message["message"], words.concat());
    assert_eq!(
        (&message["parts"], &message["coding"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(message["incomplete"], false);
}

/// What was stored and whose answer is lost comes again; a text that was sent twice is two messages.
fn a_text_is_not_lost_or_doubled_when_the_link_breaks(backend: Backend) {
    let (smsc, receiver) = (Smsc::start(), Receiver::start());
    let service = start(backend, carrier("alpha", smsc.addr(), ""));
    let url = receiver.url("/inbound");
    add_number(
        &service,
        &["--number", "1234", "--account", "main", "--url", &url],
    );
    send(&smsc, &text("yes", "1234"));
    send(&smsc, &text("yes", "1234"));
    wait_for_callbacks(&receiver, 2);
    send(&smsc, &text("lost answer", "1234"));
    wait_for_callbacks(&receiver, 3);
    let before = smsc.bound();
    smsc.hang_up();
    wait_for("another link", || {
        let bound = smsc.bound();
        (!bound.is_empty() && bound.iter().all(|link| !before.contains(link))).then_some(())
    });
    send(&smsc, &text("lost answer", "1234"));
    send(&smsc, &text("the last", "1234"));
    let callbacks = wait_for_callbacks(&receiver, 4);
    let mut texts: Vec<String> = callbacks
        .iter()
        .map(|request| {
            body(request)["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    texts.sort_unstable();
    assert_eq!(texts, ["lost answer", "the last", "yes", "yes"]);
}

/// What is sent after the answer to STOP ends with error 27; the reply goes out, also if the node is killed.
fn stop_counts_when_the_carrier_is_answered(backend: Backend) {
    let smsc = Smsc::start();
    let mut service = start(backend, carrier("alpha", smsc.addr(), ""));
    add_number(&service, &["--number", "1234", "--account", "main"]);
    let code = |service: &Service| {
        let message = json!({"to": "+37120000001", "from": "1234", "message": "Offer"});
        let ids = service.accept(&sms_with(&message));
        wait_for("the end of a message", || {
            let status = service.get(&format!("/sms/status/{}", ids[0])).json();
            status["error"].as_u64()
        })
    };
    let answered = |count: usize| {
        wait_for("the answer to a text", || {
            (smsc.answers_after(0).len() == count).then_some(())
        });
    };
    send(&smsc, &text("Stop", "1234"));
    answered(1);
    assert_eq!(code(&service), 27);
    service.server.kill9();
    service.server.restart();
    let wait_until_sent = |part: &str| {
        wait_for(part, || {
            let log = smsc.log();
            let texts = log.submits.iter().map(|submit| &submit.short_message);
            let mut texts = texts.map(|text| String::from_utf8_lossy(text));
            texts.any(|text| text.contains(part)).then_some(())
        });
    };
    wait_until_sent("Reply START");
    assert_eq!(code(&service), 27);
    send(&smsc, &text("start", "1234"));
    wait_until_sent("Reply STOP");
    let message = json!({"to": "+37120000001", "from": "1234", "message": "Offer"});
    service.accept(&sms_with(&message));
    wait_until_sent("Offer");
}
