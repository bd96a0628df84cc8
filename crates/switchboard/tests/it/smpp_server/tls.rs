//! SMPP over TLS, with the certificate of `[tls]`.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use testkit::{Backend, temp_dir};

use super::create_user;
use super::raw::{BIND_TRANSMITTER, ENQUIRE, RESPONSE, SUBMIT, Submit, pdu};
use crate::rest::service::{Service, wait_for};
use crate::rest::tls::make_certificate;

#[test]
fn clients_connect_over_tls() {
    let folder = temp_dir("tls").expect("a temporary folder");
    let files = make_certificate(folder.path(), "served", "0x1001");
    let service = Service::with(Backend::Sqlite, |server| {
        server
            .env("SWITCHBOARD_TLS__CERT", files.cert.to_string_lossy())
            .env("SWITCHBOARD_TLS__KEY", files.key.to_string_lossy())
            .config("[smpp_server]\ntls_listen = \"127.0.0.1:0\"\n")
    });
    let address: SocketAddr = wait_for("the SMPP server", || {
        let output = service.server.output();
        let mut lines = output.lines();
        let line = lines.find_map(|line| line.split_once("SMPP over TLS listening on "))?;
        line.1.trim().parse().ok()
    });
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-connect", &address.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this needs the program openssl");
    let mut input = client.stdin.take().expect("piped");
    let mut output = client.stdout.take().expect("piped");
    input
        .write_all(&pdu(ENQUIRE, 0, 1, b""))
        .expect("it is connected");
    let mut answer = [0; 16];
    output.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer[..], pdu(ENQUIRE | RESPONSE, 0, 1, b""));

    let password = create_user(&service.server, "acme", &[]);
    let bind = format!("acme\0{password}\0\0\x34\0\0\0");
    let welcome = pdu(
        BIND_TRANSMITTER | RESPONSE,
        0,
        2,
        b"switchboard\0\x02\x10\0\x01\x34",
    );
    let accepted = pdu(SUBMIT | RESPONSE, 0, 3, b"1\0");
    for (request, expected) in [
        (pdu(BIND_TRANSMITTER, 0, 2, bind.as_bytes()), welcome),
        (pdu(SUBMIT, 0, 3, &Submit::default().body()), accepted),
    ] {
        input.write_all(&request).expect("it is connected");
        let mut answer = vec![0; expected.len()];
        output.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer, expected);
    }
    client.kill().expect("it runs");
    client.wait().expect("it ended");
}
