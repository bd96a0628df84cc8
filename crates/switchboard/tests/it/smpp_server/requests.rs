//! What clients may ask for, and with which status they are refused.

use std::net::SocketAddr;

use serde_json::Value;
use testkit::Backend;

use super::raw::{
    BIND_RECEIVER, BIND_TRANSCEIVER, BIND_TRANSMITTER, BROADCAST, CANCEL, Client, DELIVER, ENQUIRE,
    Pdu, QUERY, REPLACE, RESPONSE, SUBMIT, SUBMIT_MULTI, Submit, UNBIND,
};
use super::replacing::scheduled_messages_are_replaced;
use super::{create_user, start};
use crate::rest::service::{Service, wait_for};

const RINVMSGLEN: u32 = 0x01;
const RINVCMDLEN: u32 = 0x02;
const RINVCMDID: u32 = 0x03;
const RINVBNDSTS: u32 = 0x04;
const RALYBND: u32 = 0x05;
const RINVSRCADR: u32 = 0x0A;
const RINVDSTADR: u32 = 0x0B;
const RINVMSGID: u32 = 0x0C;
const RBINDFAIL: u32 = 0x0D;
const RINVPASWD: u32 = 0x0E;
const RREPLACEFAIL: u32 = 0x13;
const RINVNUMDESTS: u32 = 0x33;
const RCNTSUBDL: u32 = 0x44;
const RSUBMITFAIL: u32 = 0x45;
const RTHROTTLED: u32 = 0x58;
const RINVSCHED: u32 = 0x61;
const RINVEXPIRY: u32 = 0x62;
const RINVDCS: u32 = 0x104;

#[test]
fn requests_are_refused_with_the_status_of_their_rule() {
    let (mut service, address) = start(Backend::Sqlite, "idempotent_references = true\n");
    let limits = ["--max-binds", "2", "--allow-country", "gb"];
    let password = create_user(&service.server, "acme", &limits);
    let slow = create_user(&service.server, "slow", &["--max-per-second", "1"]);

    let mut wrong = Client::connect(address);
    let early = wrong.ask(SUBMIT, &Submit::default().body());
    assert_eq!(
        (early.command, early.status),
        (SUBMIT | RESPONSE, RINVBNDSTS)
    );
    assert_eq!(
        wrong.bind(BIND_TRANSMITTER, "acme", "wrong").status,
        RINVPASWD
    );
    assert_eq!(wrong.read(), None, "a refused bind ends the connection");

    let mut client = Client::bound(address, BIND_TRANSCEIVER, "acme", &password);
    let mut receiver = Client::bound(address, BIND_RECEIVER, "acme", &password);
    let third = Client::connect(address).bind(BIND_TRANSMITTER, "acme", &password);
    assert_eq!(third.status, RBINDFAIL, "two binds are the most");
    the_log_says_why_binds_are_refused(&service, address);
    let submit = receiver.ask(SUBMIT, &Submit::default().body());
    assert_eq!(submit.status, RINVBNDSTS, "a receiver does not send");
    assert_eq!(
        client.bind(BIND_TRANSCEIVER, "acme", &password).status,
        RALYBND
    );

    messages_are_checked(&mut client);
    let plain = Submit::default();
    let half = plain.body();
    let bad = client.ask(SUBMIT, &half[..10]);
    assert_eq!((bad.command, bad.status), (SUBMIT | RESPONSE, RINVCMDLEN));
    for (command, status) in [(BROADCAST, RINVCMDID), (0x4242, RINVCMDID)] {
        let answer = client.ask(command, b"");
        assert_eq!(
            (answer.command, answer.status),
            (RESPONSE, status),
            "generic_nack"
        );
    }
    a_message_goes_to_several(&service, address);
    scheduled_messages_are_queried_and_cancelled(&mut client);
    scheduled_messages_are_replaced(&service, address);
    a_user_may_only_do_what_was_allowed(&service, address);
    a_repeated_message_is_stored_once(&mut client);
    assert_eq!(client.ask(ENQUIRE, b"").command, ENQUIRE | RESPONSE);

    let mut slow = Client::bound(address, BIND_TRANSMITTER, "slow", &slow);
    assert_eq!(slow.ask(SUBMIT, &plain.body()).status, 0);
    wait_for("it is too fast", || {
        let status = slow.ask(SUBMIT, &plain.body()).status;
        (status == RTHROTTLED).then_some(())
    });

    let (mut asked, mut ended) = (receiver, client);
    let status = std::thread::spawn(move || service.server.terminate());
    for client in [&mut asked, &mut ended] {
        let unbind = wait_for("unbind", || client.read());
        assert_eq!(unbind.command, UNBIND, "{unbind:?}");
        client.write(UNBIND | RESPONSE, 0, unbind.sequence, b"");
        assert_eq!(client.read(), None, "the connection is closed");
    }
    drop(slow);
    assert!(status.join().expect("it ended").success());
}

/// Each case breaks one rule.
fn messages_are_checked(client: &mut Client) {
    type Change = fn(&mut Submit<'static>);
    let cases: [(Change, u32); 13] = [
        (|it| it.to = "123", RINVDSTADR),
        (|it| it.to = "37120000001", RSUBMITFAIL),
        (|it| it.from = "", RINVSRCADR),
        (|it| it.from = "far too long a name", RINVSRCADR),
        (|it| it.text = b"", RINVMSGLEN),
        (|it| it.text = &[0x7F; 161], 0),
        (|it| it.coding = 0x99, RINVDCS),
        (|it| it.schedule = "tomorrow", RINVSCHED),
        (|it| it.schedule = "200101000000000+", RINVSCHED),
        (|it| it.validity = "000000000001000R", RINVEXPIRY),
        (
            |it| {
                // A relative time counts from the submission, so this ends before the message is sent.
                it.schedule = "000001000000000R";
                it.validity = "000000010000000R";
            },
            RINVEXPIRY,
        ),
        // Half of an emoji.
        (
            |it| {
                it.coding = 8;
                it.text = b"\xD8\x3D";
            },
            RINVDCS,
        ),
        (|_| {}, 0),
    ];
    for (index, (change, status)) in cases.into_iter().enumerate() {
        let mut submit = Submit::default();
        change(&mut submit);
        let answer = client.ask(SUBMIT, &submit.body());
        let expected = (SUBMIT | RESPONSE, status);
        assert_eq!((answer.command, answer.status), expected, "case {index}");
    }
}

/// Some destinations are refused, the others get their messages and receipts.
fn a_message_goes_to_several(service: &Service, server: SocketAddr) {
    let password = create_user(&service.server, "several", &["--allow-country", "gb"]);
    let mut client = Client::bound(server, BIND_TRANSMITTER, "several", &password);
    let mut receiver = Client::bound(server, BIND_RECEIVER, "several", &password);
    let address = |number: &str| format!("\x01\x01\x01{number}\0");
    let body = |destinations: &[String]| {
        let count = u8::try_from(destinations.len()).expect("few");
        let after = b"\0\0\0\0\0\x01\0\0\0\x02Hi";
        let before = [&b"\0\x05\0Acme\0"[..], &[count]].concat();
        [&before[..], destinations.concat().as_bytes(), after].concat()
    };
    let to = ["447700900000", "123", "37120000001", "447700900999"];
    let sent = client.ask(SUBMIT_MULTI, &body(&to.map(address)));
    assert_eq!((sent.command, sent.status), (SUBMIT_MULTI | RESPONSE, 0));
    let first: u64 = sent.text().parse().expect("an ID");
    let unsuccessful = &sent.body[sent.text().len() + 1..];
    let expected = b"\x02\x01\x01123\0\0\0\0\x0B\x01\x0137120000001\0\0\0\0\x45";
    assert_eq!(unsuccessful, expected);
    let mut expected = vec![(first, to[0]), (first + 1, to[3])];
    while !expected.is_empty() {
        let delivery = receiver.read().expect("a receipt");
        assert_eq!(delivery.command, DELIVER, "{delivery:?}");
        receiver.write(DELIVER | RESPONSE, 0, delivery.sequence, b"\0");
        let text = String::from_utf8_lossy(&delivery.body).into_owned();
        let is_about = |(id, to): &(u64, &str)| {
            text.contains(&format!("id:{id} ")) && text.contains(&format!("{to}\0"))
        };
        let found = expected.iter().position(is_about);
        expected.remove(found.unwrap_or_else(|| panic!("{text}")));
    }
    let list = ["\x02all\0".to_owned()];
    for (destinations, status) in [(&list[..], RCNTSUBDL), (&list[..0], RINVNUMDESTS)] {
        let refused = client.ask(SUBMIT_MULTI, &body(destinations));
        assert_eq!(refused.status, status);
    }
    let refused = client.ask(SUBMIT_MULTI, &body(&[address("123")]));
    assert_eq!(refused.status, RINVDSTADR, "nobody is left");
}

/// The reference is the client's own.
fn a_repeated_message_is_stored_once(client: &mut Client) {
    let mut send = |text: &[u8], reference: u8| {
        let submit = Submit {
            text,
            ..Submit::default()
        };
        let parameter = [0x02, 0x04, 0, 2, 0, reference];
        let body = [&submit.body()[..], &parameter].concat();
        client.ask(SUBMIT, &body).text()
    };
    let id = send(b"once", 1);
    assert_eq!(send(b"once", 1), id);
    assert_ne!(send(b"once", 2), id, "another reference");
    assert_ne!(send(b"another text", 1), id);
}

/// The client learns less: strangers must not find out which system IDs there are.
fn the_log_says_why_binds_are_refused(service: &Service, address: SocketAddr) {
    let elsewhere = ["--allow-ip", "192.0.2.0/24"];
    let password = create_user(&service.server, "elsewhere", &elsewhere);
    for (system_id, given) in [("stranger", "guessed"), ("elsewhere", &password)] {
        let refused = Client::connect(address).bind(BIND_TRANSMITTER, system_id, given);
        assert_eq!(refused.status, RINVPASWD, "{system_id}");
    }
    for (system_id, why) in [
        (Some("acme"), "the password is wrong"),
        (Some("acme"), "the user has as many sessions as it may have"),
        (None, "the system ID is unknown or revoked"),
        (Some("elsewhere"), "the user may not bind from this address"),
    ] {
        let line = wait_for(why, || {
            let output = service.server.output();
            let found = output.lines().find(|line| line.contains(why))?;
            serde_json::from_str::<Value>(found).ok()
        });
        assert_eq!(line["message"], format!("an SMPP bind was refused: {why}"));
        assert_eq!(line["address"], "127.0.0.1", "{line}");
        assert_eq!(line["system_id"].as_str(), system_id, "{line}");
    }
    let output = service.server.output();
    for secret in ["stranger", "guessed", &password] {
        assert!(!output.contains(secret), "{secret}");
    }
}

fn a_user_may_only_do_what_was_allowed(service: &Service, address: SocketAddr) {
    let limits = ["--allow-bind", "transmitter", "--allow-sender", "Acme"];
    let password = create_user(&service.server, "narrow", &limits);
    let receiver = Client::connect(address).bind(BIND_RECEIVER, "narrow", &password);
    assert_eq!(receiver.status, RBINDFAIL);
    let mut client = Client::bound(address, BIND_TRANSMITTER, "narrow", &password);
    for (from, status) in [("Other", RINVSRCADR), ("Acme", 0)] {
        let submit = Submit {
            from,
            ..Submit::default()
        };
        let answer = client.ask(SUBMIT, &submit.body());
        assert_eq!(answer.status, status, "{from}");
    }
}

fn scheduled_messages_are_queried_and_cancelled(client: &mut Client) {
    let later = Submit {
        schedule: "000001000000000R",
        ..Submit::default()
    };
    let id = client.ask(SUBMIT, &later.body()).text();
    let query = |client: &mut Client, id: &str| -> Pdu {
        client.ask(QUERY, format!("{id}\0\x05\0Acme\0").as_bytes())
    };
    let found = query(client, &id);
    assert_eq!((found.status, found.text()), (0, id.clone()));
    assert_eq!(found.body[id.len() + 1..], [0, 0, 0], "scheduled");
    // The answer has room for 64 octets.
    for width in [40, 80] {
        let found = query(client, &format!("{id:0>width$}"));
        assert_eq!((found.status, found.text()), (0, id.clone()), "{width}");
    }
    for unknown in ["x", "9999999999"] {
        assert_eq!(query(client, unknown).status, RINVMSGID, "{unknown}");
    }
    let cancel = format!("\0{id}\0\x05\0Acme\0\x01\x01{}\0", super::TO);
    let cancelled = client.ask(CANCEL, cancel.as_bytes());
    assert_eq!(
        (cancelled.command, cancelled.status),
        (CANCEL | RESPONSE, 0)
    );
    let replace = format!("{id}\0\x05\0Acme\0\0\0\0\0\x02Hi");
    let replaced = client.ask(REPLACE, replace.as_bytes());
    assert_eq!(
        (replaced.command, replaced.status),
        (REPLACE | RESPONSE, RREPLACEFAIL)
    );
    let found = query(client, &id);
    let state = &found.body[found.body.len() - 2..];
    assert_eq!(state, [4, 0], "deleted");
}
