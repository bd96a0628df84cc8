//! Clients that are known by a document at the address that is their ID: which are never even asked for.

use std::io::ErrorKind;
use std::net::TcpListener;

use testkit::Backend;

use super::site::{REDIRECT, Site, error, with};

#[test]
fn no_document_is_fetched_from_where_nobody_may_look() {
    let site = Site::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_CALLBACKS__ALLOW", "[]")
    });
    let trap = TcpListener::bind("127.0.0.1:0").expect("binds");
    trap.set_nonblocking(true).expect("a socket");
    let port = trap.local_addr().expect("an address").port();
    let good = site.question("", REDIRECT);
    for place in [
        "https://127.0.0.1:PORT/client.json",
        "https://127.1:PORT/client.json",
        "https://2130706433:PORT/client.json",
        "https://0x7f000001:PORT/client.json",
        "https://localhost:PORT/client.json",
        "https://a.localhost:PORT/client.json",
        "https://[::1]:PORT/client.json",
        "https://[::ffff:127.0.0.1]:PORT/client.json",
        "https://[64:ff9b::7f00:1]:PORT/client.json",
        "https://0.0.0.0:PORT/client.json",
        "https://10.0.0.1/client.json",
        "https://172.16.0.1/client.json",
        "https://192.168.1.1/client.json",
        "https://100.64.0.1/client.json",
        "https://169.254.169.254/latest/meta-data",
        "https://[fd00:ec2::254]/latest/meta-data",
        "https://[fe80::1]/client.json",
        "http://127.0.0.1:PORT/client.json",
        "https://user@127.0.0.1:PORT/client.json",
        "https://client.example:x@127.0.0.1:PORT/client.json",
        "https://127.0.0.1:PORT/client.json#x",
        "https://127.0.0.1:PORT/a/../client.json",
        "https://127.0.0.1:PORT/%2e%2e/client.json",
        "https://127.0.0.1:PORT",
        "https://127.0.0.1:PORT/",
        "HTTPS://127.0.0.1:PORT/client.json",
        "https:127.0.0.1:PORT/client.json",
        "https:\\\\127.0.0.1:PORT\\client.json",
        "file:///etc/passwd",
        "gopher://127.0.0.1:PORT/x",
    ] {
        let id = place.replace("PORT", &port.to_string());
        let before = site.issued();
        let answer = site.authorize(&with(&good, "client_id", &id));
        assert_eq!(answer.status, 400, "{id}: {}", answer.text());
        assert_eq!(answer.header("location"), None, "{id}");
        assert_eq!(error(&answer), "invalid_request", "{id}");
        assert_eq!(site.issued(), before, "{id}");
        let knocked = trap.accept().expect_err("nobody knocked");
        assert_eq!(knocked.kind(), ErrorKind::WouldBlock, "{id}");
    }
}

/// A host that says nothing of use is not repeated to whoever asked.
#[test]
fn a_host_that_is_no_web_server_is_no_client() {
    let site = Site::start(Backend::Sqlite);
    let trap = TcpListener::bind("127.0.0.1:0").expect("binds");
    let port = trap.local_addr().expect("an address").port();
    drop(trap);
    let id = format!("https://127.0.0.1:{port}/client.json");
    let before = site.issued();
    let params = with(&site.question("", REDIRECT), "client_id", &id);
    let answer = site.authorize(&params);
    assert_eq!((answer.status, answer.header("location")), (400, None));
    assert!(
        answer.text().contains("refused the connection"),
        "{}",
        answer.text()
    );
    assert_eq!(site.issued(), before);
}
