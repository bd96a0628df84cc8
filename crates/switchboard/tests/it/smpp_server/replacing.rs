//! `replace_sm`: a scheduled message gets another text and other times.

use std::net::SocketAddr;

use super::raw::{
    BIND_RECEIVER, BIND_TRANSMITTER, Client, DELIVER, REPLACE, RESPONSE, SUBMIT, Submit,
};
use super::{TO, create_user};
use crate::rest::service::{Service, wait_for};

const RINVMSGLEN: u32 = 0x01;
const RINVSRCADR: u32 = 0x0A;
const RINVMSGID: u32 = 0x0C;
const RREPLACEFAIL: u32 = 0x13;
const RINVSCHED: u32 = 0x61;
const RINVEXPIRY: u32 = 0x62;
const RINVDFTMSGID: u32 = 0x63;
const RINVDCS: u32 = 0x104;

const OLD: &[u8] = b"The text that nobody sees";
/// It has two parts.
const NEW: [u8; 200] = [b'n'; 200];

/// The fields of `replace_sm`.
#[derive(Clone)]
struct Replace<'a> {
    id: &'a str,
    from: &'a str,
    schedule: &'a str,
    validity: &'a str,
    default_message: u8,
    text: &'a [u8],
}

impl Replace<'_> {
    /// Asks for a receipt, too.
    fn ask(&self, client: &mut Client) -> u32 {
        let length = u8::try_from(self.text.len()).expect("short");
        let body = [
            format!("{}\0\x05\0{}\0", self.id, self.from).as_bytes(),
            format!("{}\0{}\0", self.schedule, self.validity).as_bytes(),
            &[1, self.default_message, length],
            self.text,
        ]
        .concat();
        let answer = client.ask(REPLACE, &body);
        assert_eq!(answer.command, REPLACE | RESPONSE);
        answer.status
    }
}

/// The balance in millionths.
fn balance(service: &Service) -> u64 {
    let balance = service.balance();
    let (whole, fraction) = balance.split_once('.').expect("a decimal number");
    let micros = format!("{whole}{fraction:0<6}");
    micros.parse().expect("a number")
}

pub(super) fn scheduled_messages_are_replaced(service: &Service, address: SocketAddr) {
    let password = create_user(&service.server, "later", &[]);
    let mut client = Client::bound(address, BIND_TRANSMITTER, "later", &password);
    let before = balance(service);
    let submit = Submit {
        schedule: "000001000000000R",
        text: OLD,
        ..Submit::default()
    };
    let id = client.ask(SUBMIT, &submit.body()).text();
    let price = before - balance(service);
    assert!(price > 0);
    let replace = Replace {
        id: &id,
        from: "Acme",
        schedule: "000000010000000R",
        validity: "000000020000000R",
        default_message: 0,
        text: &NEW,
    };
    a_wrong_replacement_changes_nothing(&mut client, &replace);
    assert_eq!(balance(service), before - price);

    for _ in 0..2 {
        assert_eq!(replace.ask(&mut client), 0);
        assert_eq!(balance(service), before - 2 * price, "charged once");
    }
    let short = Replace {
        schedule: "",
        validity: "",
        text: b"short",
        ..replace
    };
    assert_eq!(short.ask(&mut client), 0);
    assert_eq!(balance(service), before - price);
    let now = Replace {
        schedule: "000000000000000R",
        validity: "",
        ..replace
    };
    assert_eq!(now.ask(&mut client), 0);

    let mut receiver = Client::bound(address, BIND_RECEIVER, "later", &password);
    let receipt = receiver.read().expect("a receipt");
    assert_eq!(receipt.command, DELIVER, "{receipt:?}");
    receiver.write(DELIVER | RESPONSE, 0, receipt.sequence, b"\0");
    let receipt = String::from_utf8_lossy(&receipt.body).into_owned();
    let expected = format!("id:{id} sub:002 dlvrd:002 ");
    assert!(receipt.contains(&expected), "{receipt}");
    assert_eq!(now.ask(&mut client), RREPLACEFAIL, "it was sent");
    let inbox = ["simulator", "inbox", "--number", TO, "--json"];
    let new = String::from_utf8_lossy(&NEW);
    let inbox = wait_for("the text", || {
        let inbox = service.server.cli_json(&inbox).to_string();
        inbox.contains(&*new).then_some(inbox)
    });
    assert_eq!(inbox.matches(&*new).count(), 1, "{inbox}");
    assert!(!inbox.contains("nobody sees"), "{inbox}");
    assert_eq!(balance(service), before - 2 * price);
}

/// Each case breaks one rule.
fn a_wrong_replacement_changes_nothing(client: &mut Client, right: &Replace<'_>) {
    type Change = fn(&mut Replace<'_>);
    let cases: [(Change, u32); 10] = [
        (|it| it.id = "x", RINVMSGID),
        (|it| it.id = "999999999999", RINVMSGID),
        (|it| it.from = "Other", RINVSRCADR),
        (|it| it.from = "", RINVSRCADR),
        (|it| it.schedule = "tomorrow", RINVSCHED),
        (|it| it.schedule = "200101000000000+", RINVSCHED),
        (|it| it.validity = "000000010001000R", RINVEXPIRY),
        (|it| it.default_message = 1, RINVDFTMSGID),
        (|it| it.text = b"", RINVMSGLEN),
        (|it| it.text = b"\xE9", RINVDCS),
    ];
    for (index, (change, status)) in cases.into_iter().enumerate() {
        let mut wrong = right.clone();
        change(&mut wrong);
        assert_eq!(wrong.ask(client), status, "case {index}");
    }
}
