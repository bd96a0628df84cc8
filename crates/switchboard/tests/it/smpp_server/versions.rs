//! Clients of other versions of the protocol, and `data_sm`.

use testkit::Backend;

use super::raw::{BIND_TRANSCEIVER, BIND_TRANSMITTER, Client, DATA, RESPONSE, SUBMIT, Submit};
use super::{create_user, start};

const RINVDCS: u32 = 0x104;

#[test]
fn clients_of_other_versions_bind_and_submit() {
    let (service, address) = start(Backend::Sqlite, "");
    let password = create_user(&service.server, "acme", &[]);
    // SMPP 3.3 has no optional parameters; to 5.0, the server says that it has 3.4.
    for (version, parameters) in [
        ('\x33', &b""[..]),
        ('\x34', b"\x02\x10\0\x01\x34"),
        ('\x50', b"\x02\x10\0\x01\x34"),
    ] {
        let mut client = Client::connect(address);
        let body = format!("acme\0{password}\0\0{version}\0\0\0");
        let answer = client.ask(BIND_TRANSCEIVER, body.as_bytes());
        assert_eq!(answer.command, BIND_TRANSCEIVER | RESPONSE, "{version:?}");
        assert_eq!(answer.status, 0, "{version:?}");
        let expected = [b"switchboard\0", parameters].concat();
        assert_eq!(answer.body, expected, "{version:?}");
        let answer = client.ask(SUBMIT, &Submit::default().body());
        assert_eq!(answer.status, 0, "{version:?}");
    }
    service.check_health();
}

#[test]
fn data_sm_is_stored_like_submit_sm() {
    let (service, address) = start(Backend::Sqlite, "");
    let password = create_user(&service.server, "acme", &[]);
    let mut client = Client::bound(address, BIND_TRANSMITTER, "acme", &password);
    let data = |coding: u8, text: &[u8]| {
        let length = u16::try_from(text.len()).expect("short").to_be_bytes();
        let addresses = format!("\0\x05\0Acme\0\x01\x01{}\0", super::TO);
        let flags = [0, 0, coding];
        [addresses.as_bytes(), &flags, &[0x04, 0x24], &length, text].concat()
    };
    let accepted = client.ask(DATA, &data(8, b"\x04\x16\0!"));
    assert_eq!((accepted.command, accepted.status), (DATA | RESPONSE, 0));
    let path = format!("/sms/status/{}", accepted.text());
    assert_eq!(service.get(&path).status, 200);
    let inbox = ["simulator", "inbox", "--number", super::TO, "--json"];
    crate::rest::service::wait_for("the message", || {
        let inbox = service.server.cli_json(&inbox).to_string();
        inbox.contains("Ж!").then_some(())
    });
    // Half of a character.
    let refused = client.ask(DATA, &data(8, b"\xD8\x3D"));
    assert_eq!(
        (refused.command, refused.status),
        (DATA | RESPONSE, RINVDCS)
    );
    assert_eq!(refused.text(), "");
    service.check_health();
}
