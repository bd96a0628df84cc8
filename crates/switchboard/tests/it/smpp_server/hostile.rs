//! Clients that break the rules end their own connection at most.

use std::io::Write as _;
use std::time::Duration;

use serde_json::json;
use testkit::Backend;

use super::raw::{BIND_TRANSCEIVER, Client, ENQUIRE, QUERY, RESPONSE, SUBMIT, Submit, pdu};
use super::{TO, create_user, metric, start};
use crate::rest::on_both_backends;
use crate::rest::service::wait_for;

on_both_backends!(a_client_that_reads_nothing_stalls_nobody);

const GENERIC_NACK: u32 = RESPONSE;
const RINVCMDLEN: u32 = 0x02;

#[test]
fn hostile_clients_do_not_affect_others() {
    let limits = "connections = 8\n[limits]\nwrite_seconds = 1\nconnections_per_address = 6\n";
    let (service, address) = start(Backend::Sqlite, limits);
    let password = create_user(&service.server, "acme", &[]);
    let mut good = Client::bound(address, BIND_TRANSCEIVER, "acme", &password);

    for length in [0_u32, 15, 65_537, u32::MAX] {
        let mut liar = Client::connect(address);
        liar.stream.write_all(&length.to_be_bytes()).expect("open");
        let nack = liar.read().expect("an answer");
        assert_eq!((nack.command, nack.status), (GENERIC_NACK, RINVCMDLEN));
        assert_eq!(liar.read(), None, "{length}");
    }

    // Half a PDU, and then nothing: it waits, and the others do not.
    let mut half = Client::bound(address, BIND_TRANSCEIVER, "acme", &password);
    let submit = pdu(SUBMIT, 0, 7, &Submit::default().body());
    half.stream.write_all(&submit[..20]).expect("open");
    let answer = good.ask(SUBMIT, &Submit::default().body());
    assert_eq!(answer.status, 0);
    half.stream.write_all(&submit[20..]).expect("open");
    let answer = half.read().expect("an answer");
    assert_eq!((answer.sequence, answer.status), (7, 0));

    // Requests without reading the answers: the connection is closed, and memory stays bounded.
    let mut flood = Client::bound(address, BIND_TRANSCEIVER, "acme", &password);
    let many = pdu(ENQUIRE, 0, 1, b"").repeat(4096);
    wait_for("the flood is cut off", || {
        flood.stream.write_all(&many).is_err().then_some(())
    });

    // More connections than one address may have: the next is closed at once.
    let mut idle: Vec<Client> = Vec::new();
    wait_for("a connection is refused", || {
        idle.push(Client::connect(address));
        let refused = metric(&service, "switchboard_smpp_connections_refused_total");
        refused.filter(|count| *count > 0)
    });
    assert_eq!(good.ask(ENQUIRE, b"").command, ENQUIRE | RESPONSE);
    drop(idle);
    service.check_health();
}

/// Its requests must not keep what the requests of others wait for, such as connections to the database.
fn a_client_that_reads_nothing_stalls_nobody(backend: Backend) {
    let (service, address) = start(backend, "[limits]\nwrite_seconds = 600\n");
    let password = create_user(&service.server, "acme", &[]);
    let message = json!({ "to": TO, "from": "Acme", "message": "Hello" });
    let id = &service.accept(&message)[0];
    let deaf = create_user(&service.server, "deaf", &[]);
    let mut deaf = Client::bound(address, BIND_TRANSCEIVER, "deaf", &deaf);
    let query = pdu(QUERY, 0, 1, format!("{id}\0\x05\0Acme\0").as_bytes());
    let enquire = pdu(ENQUIRE, 0, 1, b"");
    let many = [query, enquire.repeat(4)].concat().repeat(1000);
    deaf.stream
        .set_write_timeout(Some(Duration::from_secs(1)))
        .expect("a duration");
    wait_for("nothing more is read", || {
        deaf.stream.write_all(&many).is_err().then_some(())
    });
    for _ in 0..50 {
        service.accept(&message);
        let read = service.get(&format!("/sms/status/{id}"));
        assert_eq!(read.status, 200, "{}", read.text());
    }
    let mut good = Client::bound(address, BIND_TRANSCEIVER, "acme", &password);
    let answer = good.ask(SUBMIT, &Submit::default().body());
    assert_eq!(answer.status, 0);
    assert_eq!(metric(&service, "switchboard_smpp_sessions"), Some(2));
    // It does not read `unbind` either.
    let revoke = service.server.cli(&["smpp-user", "revoke", "deaf"]);
    assert!(revoke.status.success());
    wait_for("it is cut off", || {
        (metric(&service, "switchboard_smpp_sessions") == Some(1)).then_some(())
    });
    drop(deaf);
    service.check_health();
}
