//! Addresses that reports may not go to. They are checked when a message is accepted, and again before each request.

use std::fs;
use std::net::{IpAddr, UdpSocket};

use serde_json::{Value, json};
use testkit::receiver::{Receiver, Reply};
use testkit::{Backend, CALLBACKS_ALLOW};

use super::fixture::{callbacks, send, start_with};
use crate::rest::service::{Service, message, sms_with, tomorrow, wait_for};

const FORBIDDEN: &[(&str, &str, &str)] = &[
    (
        "loopback",
        "http://127.0.0.1:9000/dlr",
        "a loopback address",
    ),
    (
        "another address of this machine",
        "http://127.8.9.1/",
        "a loopback address",
    ),
    ("shortened", "http://127.1/", "a loopback address"),
    (
        "one decimal number",
        "http://2130706433/",
        "a loopback address",
    ),
    ("hexadecimal", "http://0x7f000001/", "a loopback address"),
    (
        "hexadecimal in part",
        "https://0x7f.1/",
        "a loopback address",
    ),
    ("octal", "http://017700000001/", "a loopback address"),
    ("wide digits", "http://１２７.0.0.1/", "a loopback address"),
    (
        "escaped digits",
        "http://%31%32%37.0.0.1/",
        "a loopback address",
    ),
    (
        "backslashes",
        "http:\\\\127.0.0.1\\dlr",
        "a loopback address",
    ),
    ("IPv6 loopback", "http://[::1]:9000/", "a loopback address"),
    (
        "mapped loopback",
        "http://[::ffff:127.0.0.1]/",
        "an IPv4-mapped address",
    ),
    (
        "mapped in hexadecimal",
        "http://[::ffff:7f00:1]/",
        "an IPv4-mapped address",
    ),
    (
        "compatible",
        "http://[::127.0.0.1]/",
        "an IPv4-compatible address",
    ),
    ("by name", "http://localhost:9000/", "a loopback address"),
    (
        "by name, with a dot",
        "http://LocalHost./",
        "a loopback address",
    ),
    (
        "below that name",
        "http://any.localhost/",
        "a loopback address",
    ),
    ("private, 10", "http://10.0.0.1/", "a private address"),
    (
        "private, 172",
        "http://172.31.255.254/",
        "a private address",
    ),
    (
        "private, 192",
        "https://192.168.1.1:8443/",
        "a private address",
    ),
    (
        "private, IPv6",
        "http://[fd00:ec2::254]/",
        "a private address",
    ),
    (
        "mapped private",
        "http://[::ffff:10.0.0.1]/",
        "an IPv4-mapped address",
    ),
    (
        "metadata",
        "http://169.254.169.254/latest",
        "a link-local address",
    ),
    (
        "link-local, IPv6",
        "http://[fe80::1]/",
        "a link-local address",
    ),
    (
        "carrier-grade NAT",
        "http://100.100.100.200/",
        "a carrier-grade NAT address",
    ),
    ("unspecified", "http://0.0.0.0/", "an unspecified address"),
    ("unspecified, short", "http://0/", "an unspecified address"),
    (
        "unspecified, IPv6",
        "http://[::]/",
        "an unspecified address",
    ),
    ("multicast", "http://224.0.0.1/", "a multicast address"),
    ("broadcast", "http://255.255.255.255/", "a reserved address"),
    ("NAT64", "http://[64:ff9b::7f00:1]/", "a NAT64 address"),
    ("6to4", "http://[2002:7f00:1::]/", "a 6to4 address"),
    ("Teredo", "http://[2001::1]/", "a Teredo address"),
    ("another scheme", "ftp://203.0.113.7/", "http"),
    ("a user", "http://me@203.0.113.7/", "user"),
    (
        "a user with a password",
        "http://me:hunter2@203.0.113.7/",
        "user",
    ),
];

fn sms_to(url: &str) -> Value {
    sms_with(&json!({ "dlrUrl": url, "scheduled": tomorrow() }))
}

fn check_refused(service: &Service, case: &str, url: &str, reason: &str) {
    let response = service.send(&sms_to(url));
    assert_eq!(response.status, 400, "{case}: {}", response.text());
    let text = message(&response);
    assert!(
        text.contains("'dlrUrl'") && text.contains(reason),
        "{case}: {text}"
    );
    assert!(!text.contains("hunter2"), "{case}: {text}");
}

#[test]
fn forbidden_addresses_are_a_bad_request() {
    let service = start_with(Backend::Sqlite, |builder| {
        builder.env(CALLBACKS_ALLOW, "[]")
    });
    for (case, url, reason) in FORBIDDEN {
        check_refused(&service, case, url, reason);
    }
    assert_eq!(service.scheduled_as(&service.token), Vec::<Value>::new());
    service.accept(&sms_to("http://203.0.113.7/dlr"));
    assert_eq!(service.stored(), 1, "a refused message is stored");
}

#[test]
fn only_networks_that_the_operator_allows_are_allowed() {
    let service = start_with(Backend::Sqlite, |builder| {
        builder.env(CALLBACKS_ALLOW, r#"["10.1.0.0/16"]"#)
    });
    let mapped = "http://[::ffff:10.1.2.3]/dlr";
    for url in ["http://10.1.2.3/dlr", "http://167838211/dlr", mapped] {
        service.accept(&sms_to(url));
    }
    for (case, url) in [
        ("the neighbouring network", "http://10.2.0.1/"),
        ("loopback, which the list replaces", "http://127.0.0.1/"),
    ] {
        check_refused(&service, case, url, "address");
    }
}

/// People who try out the service run the receiver on the same machine.
#[test]
fn a_service_in_development_may_call_only_its_own_machine() {
    let service = start_with(Backend::Sqlite, |builder| {
        builder.without_env(CALLBACKS_ALLOW)
    });
    for url in [
        "http://127.0.0.1:9/",
        "http://localhost:9/",
        "http://[::1]:9/",
    ] {
        service.accept(&sms_to(url));
    }
    check_refused(
        &service,
        "the local network",
        "http://192.168.1.1/",
        "a private address",
    );
}

/// A service behind a proxy listens on loopback as well, and others reach it through the proxy.
#[test]
fn a_service_that_others_may_reach_does_not_call_its_own_machine() {
    let settings = [
        ("PostgreSQL", Backend::Postgres, None),
        (
            "an address",
            Backend::Sqlite,
            Some(("SWITCHBOARD_URLS__BASE", "https://sms.example")),
        ),
        (
            "another address",
            Backend::Sqlite,
            Some(("SWITCHBOARD_URLS__DASHBOARD", "https://sms.example")),
        ),
        (
            "a proxy",
            Backend::Sqlite,
            Some(("SWITCHBOARD_AUTH__TRUSTED_PROXIES", r#"["127.0.0.1/32"]"#)),
        ),
    ];
    for (name, backend, variable) in settings {
        let service = start_with(backend, |builder| {
            let builder = builder.without_env(CALLBACKS_ALLOW);
            match variable {
                Some((key, value)) => builder.env(key, value),
                None => builder,
            }
        });
        for url in [
            "http://127.0.0.1:9/",
            "http://localhost:9/",
            "http://[::1]:9/",
        ] {
            check_refused(&service, name, url, "a loopback address");
        }
    }
}

/// Its own public address belongs to the same machine.
#[test]
fn a_service_does_not_call_its_own_public_address() {
    let Some(own) = own_address() else {
        println!("this machine has only loopback addresses");
        return;
    };
    let service = start_with(Backend::Sqlite, |builder| builder);
    let url = format!("http://{own}:9/");
    check_refused(&service, "own address", &url, "address");
}

/// An address of this machine that is not loopback.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("203.0.113.1:9").ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_loopback()).then_some(own)
}

/// An address that was allowed when the message was accepted is not called once it is forbidden.
#[test]
fn addresses_are_checked_again_before_each_request() {
    let mut service = start_with(Backend::Sqlite, |builder| {
        builder.without_env(CALLBACKS_ALLOW).config("")
    });
    let receiver = Receiver::builder()
        .script(|_| Reply::answer(500, ""))
        .start();
    send(&service, &receiver.url("/dlr"));
    let last_reason = |service: &Service| callbacks(service, &[])[0]["last"]["reason"].clone();
    wait_for("the first attempt", || {
        let list = callbacks(&service, &[]);
        list.into_iter().find(|one| one["tries"] == 1)
    });
    assert_eq!(last_reason(&service), "answered 500");

    let settings = service.server.data_dir().with_file_name("switchboard.toml");
    fs::write(settings, "[callbacks]\nallow = []\n").expect("a settings file");
    service.server.terminate();
    let calls_before = receiver.count();
    service.server.restart();
    let url = receiver.url("/");
    let replayed = service.server.cli(&["callbacks", "replay", "--url", &url]);
    assert!(replayed.status.success(), "{replayed:?}");
    wait_for("an attempt that the service refuses", || {
        let reason = "the host leads to an address that may not be called";
        (last_reason(&service) == reason).then_some(())
    });
    assert_eq!(receiver.count(), calls_before, "the receiver was called");
}
