//! Callbacks through a proxy, and to receivers with a private certificate authority.

use std::fs;
use std::path::Path;
use std::process::Command;

use testkit::receiver::Receiver;
use testkit::{Backend, Tinyproxy, temp_dir};

use super::fixture::{attempts, callbacks, send, start_with, wait_for_reports};
use crate::rest::service::{Service, wait_for};

const PROXY: &str = "SWITCHBOARD_CALLBACKS__PROXY";
const TLS_CA: &str = "SWITCHBOARD_CALLBACKS__TLS_CA";

/// Creates an authority, and a certificate for 127.0.0.1 that it signs.
const MAKE_CERTIFICATES: &str = "
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=receiver -keyout own.key -out own.csr
    printf %s subjectAltName=IP:127.0.0.1 > own.ext
    openssl x509 -req -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile own.ext -out own.pem
";

fn make_certificates(folder: &Path) {
    let made = Command::new("sh")
        .args(["-euc", MAKE_CERTIFICATES])
        .current_dir(folder)
        .output()
        .expect("a shell");
    assert!(made.status.success(), "this needs openssl: {made:?}");
}

/// Sends a message that is reported to `url`, and returns the first attempt: its status and the reason.
fn first_attempt(service: &Service, url: &str) -> (Option<u64>, String) {
    send(service, url);
    wait_for("an attempt", || {
        let listed = callbacks(service, &["--url", url, "--all"]);
        let attempt = attempts(service, listed.first()?).first()?.clone();
        let reason = attempt["reason"].as_str().expect("a reason").to_owned();
        Some((attempt["status"].as_u64(), reason))
    })
}

#[test]
fn callbacks_go_through_the_proxy_with_its_password() {
    let folder = temp_dir("proxy").expect("a temporary folder");
    let proxy = Tinyproxy::start(&[]);
    let secret = folder.path().join("proxy-url");
    fs::write(&secret, proxy.right_url()).expect("written");
    let mut service = start_with(Backend::Sqlite, |builder| {
        builder.env(PROXY, format!("file:{}", secret.display()))
    });
    let receiver = Receiver::start();
    send(&service, &receiver.url("/dlr"));
    wait_for_reports(&receiver, 1);
    let tunnel = format!("CONNECT 127.0.0.1:{}", receiver.addr().port());
    wait_for("its log", || proxy.log().contains(&tunnel).then_some(()));

    let wrong = proxy.url("relay", "hush-hush");
    service.server.set_env(PROXY, Some(&wrong));
    service.server.restart();
    let (status, reason) = first_attempt(&service, &receiver.url("/refused"));
    assert_eq!(status, None);
    assert!(
        reason.contains("does not accept its user and password"),
        "{reason}"
    );
    let output = wait_for("a warning", || {
        let output = service.server.output();
        output.contains("callbacks.proxy").then_some(output)
    });
    assert!(output.contains(&proxy.address().to_string()), "{output}");
    for secret in ["hush-hush", Tinyproxy::PASSWORD] {
        assert!(!output.contains(secret), "{output}");
    }
    assert_eq!(receiver.count(), 1, "nothing goes past the proxy");
}

/// The receiver is another service with TLS; it answers, but not with `OK`.
#[test]
fn a_private_authority_is_trusted_besides_the_public_ones() {
    let folder = temp_dir("ca").expect("a temporary folder");
    make_certificates(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let receiver = Service::with(Backend::Sqlite, |builder| {
        builder
            .env("SWITCHBOARD_TLS__CERT", path("own.pem"))
            .env("SWITCHBOARD_TLS__KEY", path("own.key"))
    });
    let url = receiver.server.url("/nothing");
    assert!(url.starts_with("https://"), "{url}");
    for (trusts, status, expected) in [
        (true, Some(404), "answered 404"),
        (false, None, "nobody we trust has issued it"),
    ] {
        let service = start_with(Backend::Sqlite, |builder| {
            if trusts {
                builder.env(TLS_CA, path("ca.pem"))
            } else {
                builder
            }
        });
        let (answered, reason) = first_attempt(&service, &url);
        assert_eq!(answered, status, "{reason}");
        assert!(reason.contains(expected), "{reason}");
    }
}
