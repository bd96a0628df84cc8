//! HTTPS, with a certificate that is renewed while the service runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use testkit::{Backend, temp_dir};

use super::service::{Service, sms, wait_for};

/// A certificate and its key, as files.
pub(crate) struct Files {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

fn files(folder: &Path, name: &str) -> Files {
    Files {
        cert: folder.join(format!("{name}.pem")),
        key: folder.join(format!("{name}.key")),
    }
}

/// Makes a certificate for loopback that carries this serial number.
pub(crate) fn make_certificate(folder: &Path, name: &str, serial: &str) -> Files {
    let created = files(folder, name);
    let mut command = Command::new("openssl");
    command
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-set_serial",
            serial,
        ])
        .arg("-keyout")
        .arg(&created.key)
        .arg("-out")
        .arg(&created.cert);
    run(&mut command);
    created
}

fn run(command: &mut Command) -> String {
    command.stdin(Stdio::null());
    let output = command.output().unwrap_or_else(|error| {
        panic!("this needs the programs openssl and curl: {command:?}: {error}")
    });
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The serial number of the certificate that is served, in hexadecimal.
fn served_serial(service: &Service) -> String {
    let address = service.server.addr().to_string();
    let script =
        "openssl s_client -connect \"$0\" 2>/dev/null </dev/null | openssl x509 -noout -serial";
    run(Command::new("sh").args(["-c", script, &address]))
        .trim()
        .to_owned()
}

#[test]
fn https_is_served_and_a_renewed_certificate_picked_up() {
    let folder = temp_dir("tls").expect("a temporary folder");
    let first = make_certificate(folder.path(), "served", "0x1001");
    let renewed = make_certificate(folder.path(), "renewed", "0x1002");
    let service = Service::with(Backend::Sqlite, |server| {
        server
            .env("SWITCHBOARD_TLS__CERT", first.cert.to_string_lossy())
            .env("SWITCHBOARD_TLS__KEY", first.key.to_string_lossy())
    });
    assert!(
        service.server.url("").starts_with("https://"),
        "{}",
        service.server.url("")
    );
    assert_eq!(served_serial(&service), "serial=1001");

    let send = |authority: &Path| {
        let mut command = Command::new("curl");
        command
            .args(["--silent", "--show-error", "--noproxy", "*", "--cacert"])
            .arg(authority)
            .args([
                "-H",
                &format!("X-Service-Token: {}", service.token),
                "-H",
                "Content-Type: application/json",
            ])
            .args(["-d", &sms().to_string(), &service.server.url("/sms")]);
        run(&mut command)
    };
    assert!(send(&first.cert).starts_with("[\""));
    let mut head = Command::new("curl");
    head.args(["--silent", "--noproxy", "*", "--head", "--cacert"])
        .arg(&first.cert)
        .arg(service.server.url("/dashboard/sign-in"));
    let head = run(&mut head).to_ascii_lowercase();
    assert!(
        head.contains("strict-transport-security: max-age=31536000"),
        "{head}"
    );
    assert!(
        service
            .server
            .output()
            .contains("curl -s https://127.0.0.1:"),
        "the printed command says https"
    );

    // Halfway through a renewal the two files do not match, and the old pair stays in use.
    fs::copy(&renewed.cert, &first.cert).expect("copied");
    wait_for("the mismatch is noticed", || {
        service
            .server
            .output()
            .contains("the old ones serve on")
            .then_some(())
    });
    assert_eq!(served_serial(&service), "serial=1001");
    fs::copy(&renewed.key, &first.key).expect("copied");
    wait_for("the renewed certificate", || {
        (served_serial(&service) == "serial=1002").then_some(())
    });
    assert!(send(&renewed.cert).starts_with("[\""));
}

#[test]
fn files_that_cannot_be_used_are_named_at_the_start() {
    let folder = temp_dir("tls").expect("a temporary folder");
    let one = make_certificate(folder.path(), "one", "1");
    let two = make_certificate(folder.path(), "two", "2");
    let none = files(folder.path(), "none");
    let cases = [
        ("no certificate", &none.cert, &one.key, "none.pem"),
        ("no key", &one.cert, &none.key, "none.key"),
        (
            "the key of another",
            &one.cert,
            &two.key,
            "do not go together",
        ),
        ("a key for a certificate", &one.key, &one.key, "one.key"),
        ("a certificate for a key", &one.cert, &one.cert, "one.pem"),
    ];
    for (case, cert, key, fragment) in cases {
        let started = testkit::Server::builder(super::service::binary(), Backend::Sqlite)
            .env("SWITCHBOARD_TLS__CERT", cert.to_string_lossy())
            .env("SWITCHBOARD_TLS__KEY", key.to_string_lossy())
            .try_start();
        let error = format!("{:?}", started.expect_err(case));
        assert!(error.contains(fragment), "{case}: {error}");
    }
}
