//! Connections that never bind, and guesses of passwords.

use std::net::Ipv4Addr;

use testkit::Backend;

use super::raw::{BIND_TRANSCEIVER, BIND_TRANSMITTER, Client, RESPONSE, SUBMIT, Submit};
use super::{create_user, metric, start};
use crate::rest::service::{connect_from, wait_for};

const RINVCMDLEN: u32 = 0x02;
const RINVPASWD: u32 = 0x0E;
const RTHROTTLED: u32 = 0x58;

/// Each address takes as many connections as it gets.
#[test]
fn connections_that_never_bind_leave_room_for_customers() {
    let (service, address) = start(Backend::Sqlite, "connections = 200\n");
    let password = create_user(&service.server, "acme", &[]);
    let mut held = Vec::new();
    for stranger in 2..14 {
        let from = Ipv4Addr::new(127, 0, 0, stranger);
        held.extend((0..50).map(|_| connect_from(from, address).expect("it listens")));
    }
    wait_for("most of them are refused", || {
        let refused = metric(&service, "switchboard_smpp_connections_refused_total");
        refused.filter(|count| *count >= 600 - 200)
    });
    let mut client = Client::bound(address, BIND_TRANSCEIVER, "acme", &password);
    let answer = client.ask(SUBMIT, &Submit::default().body());
    assert_eq!(answer.status, 0, "{answer:?}");
    drop(held);
    service.check_health();
}

#[test]
fn long_pdus_are_read_only_from_bound_clients() {
    const UNKNOWN: [u8; 2] = [0x14, 0x00];
    let (service, address) = start(Backend::Sqlite, "");
    let password = create_user(&service.server, "acme", &[]);
    let of_size = |octets: usize| {
        let body = Submit::default().body();
        let value = vec![0; octets - 16 - body.len() - 4];
        let length = u16::try_from(value.len()).expect("short").to_be_bytes();
        [body, UNKNOWN.to_vec(), length.to_vec(), value].concat()
    };
    let mut stranger = Client::connect(address);
    stranger.send(SUBMIT, &of_size(1025));
    let nack = stranger.read().expect("an answer");
    assert_eq!((nack.command, nack.status), (RESPONSE, RINVCMDLEN));
    assert_eq!(stranger.read(), None, "the connection is closed");

    let mut client = Client::bound(address, BIND_TRANSCEIVER, "acme", &password);
    for octets in [1025, 65_536] {
        let answer = client.ask(SUBMIT, &of_size(octets));
        let expected = (SUBMIT | RESPONSE, 0);
        assert_eq!((answer.command, answer.status), expected, "{octets}");
    }
    service.check_health();
}

/// An address has ten attempts.
#[test]
fn guesses_are_slowed_and_a_known_client_binds() {
    let (service, address) = start(Backend::Sqlite, "");
    let password = create_user(&service.server, "acme", &[]);
    drop(Client::bound(address, BIND_TRANSMITTER, "acme", &password));
    let guess = |guess: usize| {
        let mut stranger = Client::connect(address);
        let answer = stranger.bind(BIND_TRANSMITTER, "acme", &format!("g{guess}"));
        assert_eq!(stranger.read(), None, "the connection is closed");
        answer.status
    };
    let mut guesses = 0..;
    let status = wait_for("a guess is slowed", || {
        let status = guess(guesses.next().expect("endless"));
        (status != RINVPASWD).then_some(status)
    });
    assert_eq!(status, RTHROTTLED);
    assert!(guesses.start >= 11, "{guesses:?}");
    drop(Client::bound(address, BIND_TRANSMITTER, "acme", &password));

    let count = |result: &str| {
        let name = format!("switchboard_smpp_binds_total{{result=\"{result}\"}}");
        metric(&service, &name)
    };
    assert_eq!(count("bound"), Some(2));
    assert_eq!(count("slowed"), Some(1));
    assert_eq!(count("refused"), Some(guesses.start as u64 - 1));
    let output = service.server.output();
    let refused = "an SMPP bind was refused: too many attempts to bind";
    assert!(output.contains(refused), "{output}");
    service.check_health();
}
