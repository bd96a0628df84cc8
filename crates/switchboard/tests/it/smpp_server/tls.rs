//! SMPP over TLS, with the certificate of `[tls]`.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use testkit::{Backend, temp_dir};

use super::raw::{ENQUIRE, RESPONSE, pdu};
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
    client.kill().expect("it runs");
    client.wait().expect("it ended");
}
