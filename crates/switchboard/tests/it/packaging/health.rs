//! `switchboard health`, which containers run as their health check.

use std::fs;
use std::net::TcpListener;
use std::process::Output;

use testkit::{Backend, temp_dir};

use crate::rest::service::{Service, wait_for};
use crate::rest::tls::make_certificate;

fn health(service: &Service) -> Output {
    let address = service.server.addr().to_string();
    service.server.cli(&["health", "--listen", &address])
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn health_says_whether_the_service_is_ready() {
    let folder = temp_dir("health").expect("a temporary folder");
    let file = folder.path().join("panic");
    let setting = format!("node.beaten:{}", file.display());
    let mut service = Service::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_PANIC_AT", setting)
    });
    wait_for("the service is ready", || {
        let output = health(&service);
        (output.status.success() && output.stdout == b"ready\n").then_some(())
    });

    fs::write(&file, "").expect("written");
    let refused = wait_for("a task is down", || {
        Some(health(&service)).filter(|output| !output.status.success())
    });
    assert_eq!(refused.status.code(), Some(1));
    let said = errors(&refused);
    assert!(said.contains("is not ready"), "{said}");

    service.server.kill9();
    let refused = health(&service);
    assert_eq!(refused.status.code(), Some(1));
    let said = errors(&refused);
    assert!(said.contains("does not answer"), "{said}");
}

#[test]
fn health_trusts_only_the_certificate_of_the_service() {
    let folder = temp_dir("health").expect("a temporary folder");
    let own = make_certificate(folder.path(), "own", "1");
    let other = make_certificate(folder.path(), "other", "2");
    let mut service = Service::with(Backend::Sqlite, |builder| {
        builder
            .env("SWITCHBOARD_TLS__CERT", own.cert.to_string_lossy())
            .env("SWITCHBOARD_TLS__KEY", own.key.to_string_lossy())
    });
    wait_for("the service is ready", || {
        health(&service).status.success().then_some(())
    });
    let other = other.cert.to_string_lossy().into_owned();
    service
        .server
        .set_env("SWITCHBOARD_TLS__CERT", Some(&other));
    let refused = health(&service);
    assert_eq!(refused.status.code(), Some(1));
    let said = errors(&refused);
    assert!(said.contains("not the certificate of tls.cert"), "{said}");
}

/// Something else has the port and says nothing sensible.
#[test]
fn another_program_on_the_port_is_not_ready() {
    let service = Service::start(Backend::Sqlite);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let other = std::thread::spawn(move || drop(listener.accept()));
    let output = service.server.cli(&["health", "--listen", &address]);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    other.join().expect("it accepted");
}
