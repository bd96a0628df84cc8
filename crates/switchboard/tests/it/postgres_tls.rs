//! TLS to a real `PostgreSQL` server, in every `sslmode`, with server and client certificates.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use testkit::{Backend, PostgresServer, Server, TempDir, temp_dir};

use crate::rest::service::{Service, binary, sms, wait_for};

const DATABASE: &str = "SWITCHBOARD_DATABASE__URL";

/// Creates an authority, certificates for `localhost` and for the user `postgres` that it signs, and another authority
/// that signs nothing.
const MAKE_CERTIFICATES: &str = "
    for name in ca other; do
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=$name \\
            -keyout $name.key -out $name.pem
    done
    sign() {
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=$2 -keyout $1.key -out $1.csr
        printf %s \"$3\" > $1.ext
        openssl x509 -req -in $1.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile $1.ext -out $1.pem
    }
    sign server localhost subjectAltName=DNS:localhost
    sign client postgres extendedKeyUsage=clientAuth
";

/// The server refuses plain connections, so every connection that succeeds is encrypted.
const ONLY_TLS: &[u8] =
    b"local all all trust\nhostnossl all all all reject\nhostssl all all all trust\n";
const ONLY_CERTIFICATES: &[u8] =
    b"local all all trust\nhostnossl all all all reject\nhostssl all all all cert\n";

struct TlsServer {
    folder: TempDir,
    server: PostgresServer,
}

impl TlsServer {
    fn start() -> Self {
        let folder = temp_dir("pg-tls").expect("a temporary folder");
        let made = Command::new("sh")
            .args(["-euc", MAKE_CERTIFICATES])
            .current_dir(folder.path())
            .output()
            .expect("a shell");
        assert!(made.status.success(), "this needs openssl: {made:?}");
        let server = PostgresServer::start("").expect("a server");
        let read = |name: &str| fs::read(folder.path().join(name)).expect("the file was made");
        for (name, from) in [
            ("server.crt", "server.pem"),
            ("server.key", "server.key"),
            ("root.crt", "ca.pem"),
        ] {
            server.add_file(name, &read(from)).expect("a file");
        }
        let tls_server = Self { folder, server };
        tls_server.set_access_rules(ONLY_TLS);
        tls_server
    }

    /// Sets the access rules and restarts the server, so that they apply.
    fn set_access_rules(&self, rules: &[u8]) {
        let server = &self.server;
        server.add_file("pg_hba.conf", rules).expect("a file");
        let on = "ssl = on\nssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'\nssl_ca_file = 'root.crt'\n\
                  listen_addresses = 'localhost'\n";
        server.reconfigure(on).expect("settings");
        server.stop_immediately().expect("stopped");
        server.resume().expect("started");
    }

    /// `{}` in the query is replaced by the folder of the certificates.
    fn url(&self, host: &str, query: &str) -> String {
        let port = self.server.port();
        let folder = self.folder.path().display().to_string();
        let query = query.replace("{}", &folder);
        format!("postgres://postgres@{host}:{port}/postgres?{query}")
    }

    fn run(&self, url: &str, arguments: &[&str]) -> Output {
        let data = self.folder.path().join("data");
        Command::new(binary())
            .args(arguments)
            .arg("--data-dir")
            .arg(data)
            .env(DATABASE, url)
            .current_dir(self.folder.path())
            .output()
            .expect("it runs")
    }
}

fn check(tls_server: &TlsServer, cases: &[(&str, &str, Option<&str>)]) {
    for (host, query, refused) in cases {
        let url = tls_server.url(host, query);
        let output = tls_server.run(&url, &["account", "list", "--json"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        match refused {
            None => assert!(output.status.success(), "{host} {query}: {stderr}"),
            Some(reason) => {
                assert!(!output.status.success(), "{host} {query}");
                assert!(stderr.contains(reason), "{host} {query}: {stderr}");
            }
        }
    }
}

#[test]
fn every_sslmode_is_enforced_and_a_service_works_with_client_certificates() {
    let tls_server = TlsServer::start();
    let ca = "sslrootcert={}/ca.pem";
    let other_ca = "sslrootcert={}/other.pem";
    check(
        &tls_server,
        &[
            ("127.0.0.1", "", None),
            ("127.0.0.1", "sslmode=disable", Some("pg_hba.conf")),
            ("127.0.0.1", "sslmode=prefer", None),
            ("127.0.0.1", "sslmode=require", None),
            (
                "127.0.0.1",
                &format!("sslmode=require&{other_ca}"),
                Some("sslmode=require failed"),
            ),
            ("127.0.0.1", &format!("sslmode=verify-ca&{ca}"), None),
            (
                "127.0.0.1",
                &format!("sslmode=verify-ca&{other_ca}"),
                Some("signed by an authority"),
            ),
            (
                "127.0.0.1",
                "sslmode=verify-ca",
                Some("signed by an authority"),
            ),
            (
                "127.0.0.1",
                &format!("sslmode=verify-full&{ca}"),
                Some("name the host of the URL"),
            ),
            ("localhost", &format!("sslmode=verify-full&{ca}"), None),
            (
                "localhost",
                &format!("sslmode=verify-full&{other_ca}"),
                Some("signed by an authority"),
            ),
            (
                "localhost",
                "sslmode=verify-full&sslrootcert=/no/such.pem",
                Some("cannot read sslrootcert"),
            ),
            // The first of two servers does not exist.
            (
                "127.0.0.1:1,localhost",
                &format!("sslmode=verify-full&{ca}"),
                None,
            ),
        ],
    );

    tls_server.set_access_rules(ONLY_CERTIFICATES);
    let own = "sslcert={}/client.pem&sslkey={}/client.key";
    let full = format!("sslmode=verify-full&{ca}&{own}");
    check(
        &tls_server,
        &[
            (
                "localhost",
                &format!("sslmode=verify-full&{ca}"),
                Some("client certificate"),
            ),
            ("localhost", &full, None),
        ],
    );
    check_service_works(&tls_server, &tls_server.url("localhost", &full));
}

/// All connections of a service use TLS: requests, the worker, heartbeats, copies.
fn check_service_works(tls_server: &TlsServer, url: &str) {
    let server = Server::builder(binary(), Backend::Sqlite)
        .env(DATABASE, url)
        .env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
        .start();
    let made = server.cli_json(&["token", "create", "--account", "main", "--json"]);
    let token = made["token"].as_str().expect("a token").to_owned();
    let service = Service { server, token };
    let id = service.accept(&sms()).remove(0);
    wait_for("the delivery", || {
        let status = service.get(&format!("/sms/status/{id}")).json();
        (status["state"] == "delivered").then_some(())
    });
    let file = tls_server.folder.path().join("backup.db");
    let backup = [
        "backup",
        "--to",
        file.to_str().expect("a plain path"),
        "--json",
    ];
    service.server.cli_json(&backup);
    assert!(is_database(&file));
}

fn is_database(file: &Path) -> bool {
    fs::read(file).is_ok_and(|bytes| bytes.starts_with(b"SQLite format 3"))
}
