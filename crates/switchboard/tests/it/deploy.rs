//! The examples in `deploy/proxy`, run by the real proxies before two nodes. Only addresses and certificates are
//! replaced.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use testkit::{Backend, TempDir, temp_dir};

use crate::people::browser::Browser;
use crate::rest::service::{Service, wait_for};
use crate::rest::tls::make_certificate;

/// The nodes as the examples name them.
const EXAMPLE_NODES: [&str; 2] = ["10.0.0.11:8080", "10.0.0.12:8080"];
/// The address of the caller that a token is for, and of another one. Proxies connect from 127.0.0.1.
const CALLER: &str = "127.0.0.9";
const OTHER: &str = "127.0.0.8";

/// A running proxy. Ended on drop.
struct Proxy {
    process: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Its children end with it when it is asked, not when it is killed.
        crate::faults::signal::send("TERM", self.process.id());
        self.process.wait().expect("it ends");
    }
}

impl Proxy {
    /// Starts `program` with the example, changed by `adapt`: from the text, the folder and the address to listen on.
    fn start(
        name: &str,
        nodes: [SocketAddr; 2],
        adapt: impl FnOnce(String, &Path, SocketAddr) -> String,
        command: impl FnOnce(&Path) -> Command,
    ) -> Self {
        let folder = temp_dir("proxy").expect("a temporary folder");
        let certificate = make_certificate(folder.path(), "proxy", "7");
        let both = [&certificate.cert, &certificate.key].map(|file| fs::read(file).expect("it"));
        fs::write(folder.path().join("both.pem"), both.concat()).expect("written");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/proxy");
        let mut text = fs::read_to_string(file.join(name)).expect("the example");
        for (example, node) in EXAMPLE_NODES.iter().zip(nodes) {
            text = replace(&text, example, &node.to_string());
        }
        let address = free_address();
        let text = adapt(text, folder.path(), address);
        let changed = folder.path().join(name);
        fs::write(&changed, text).expect("written");
        let mut command = command(&changed);
        command
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.path().join("errors")).expect("a file"));
        let process = command.spawn().unwrap_or_else(|error| {
            panic!("this needs the proxies of Debian, see scripts/proxies: {command:?}: {error}")
        });
        let proxy = Self {
            process,
            address,
            _folder: folder,
        };
        wait_for("the proxy and its nodes", || {
            let answer = proxy.curl(CALLER, "/health/ready", &[]);
            (answer.status == 200).then_some(())
        });
        proxy
    }

    /// Sends a request from an address of this machine.
    fn curl(&self, from: &str, path: &str, arguments: &[&str]) -> Answer {
        let mut command = self.command(from, path, arguments);
        let output = command
            .args(["--write-out", "\n%{http_code}"])
            .output()
            .expect("curl");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (body, status) = text.rsplit_once('\n').unwrap_or(("", ""));
        Answer {
            status: status.parse().unwrap_or(0),
            body: body.to_owned(),
        }
    }

    fn command(&self, from: &str, path: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("curl");
        command
            .args(["--silent", "--insecure", "--noproxy", "*", "--path-as-is"])
            .args(["--interface", from])
            .args(arguments)
            .arg(format!("https://{}{path}", self.address));
        command
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    body: String,
}

/// An example that lacks what is replaced has changed, and so must this test.
fn replace(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "no {old} in:\n{text}");
    text.replace(old, new)
}

/// Proxies cannot listen on port 0, so a port that was free a moment ago is used.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("bound")
}

fn nginx(nodes: [SocketAddr; 2]) -> Proxy {
    let adapt = |text: String, folder: &Path, address: SocketAddr| {
        let folder = folder.display();
        let text = replace(&text, "listen 443 ", &format!("listen {address} "));
        let text = replace(
            &text,
            "/etc/ssl/sms.example.com.pem",
            &format!("{folder}/proxy.pem"),
        );
        let text = replace(
            &text,
            "/etc/ssl/sms.example.com.key",
            &format!("{folder}/proxy.key"),
        );
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {folder}/{kind};\n"))
            .concat();
        format!(
            "daemon off; pid {folder}/pid; error_log stderr;\nevents {{}}\nhttp {{ access_log off;\n{temporary}{text}}}\n"
        )
    };
    Proxy::start("nginx.conf", nodes, adapt, |file| {
        let mut command = Command::new("/usr/sbin/nginx");
        command.arg("-c").arg(file).args(["-e", "stderr"]);
        command
    })
}

fn caddy(nodes: [SocketAddr; 2]) -> Proxy {
    let adapt = |text: String, folder: &Path, address: SocketAddr| {
        let folder = folder.display();
        let site = format!("https://{address} {{\n\ttls {folder}/proxy.pem {folder}/proxy.key");
        let text = replace(&text, "sms.example.com {", &site);
        let text = replace(&text, "health_interval 5s", "health_interval 100ms");
        format!("{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n{text}")
    };
    Proxy::start("Caddyfile", nodes, adapt, |file| {
        let mut command = Command::new("caddy");
        let home = file.parent().expect("a folder");
        command
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(file)
            .env("HOME", home)
            .env("XDG_DATA_HOME", home)
            .env("XDG_CONFIG_HOME", home);
        command
    })
}

fn haproxy(nodes: [SocketAddr; 2]) -> Proxy {
    let adapt = |text: String, folder: &Path, address: SocketAddr| {
        let folder = folder.display();
        let text = replace(&text, "bind :443", &format!("bind {address}"));
        let text = replace(
            &text,
            "/etc/ssl/sms.example.com.pem",
            &format!("{folder}/both.pem"),
        );
        replace(&text, "inter 5s", "inter 100ms")
    };
    Proxy::start("haproxy.cfg", nodes, adapt, |file| {
        let mut command = Command::new("/usr/sbin/haproxy");
        command.arg("-db").arg("-f").arg(file);
        command
    })
}

fn node() -> Service {
    Service::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_AUTH__TRUSTED_PROXIES", r#"["127.0.0.1/32"]"#)
    })
}

fn check(start: fn([SocketAddr; 2]) -> Proxy) {
    let service = node();
    // Both lines of the example lead to the same service, because SQLite has one worker.
    let proxy = start([service.server.addr(); 2]);
    the_caller_is_known_by_its_own_address(&service, &proxy);
    metrics_are_not_exposed(&proxy);
    live_pages_are_not_buffered(&service, &proxy);
    a_large_body_is_passed_on(&service, &proxy);
}

fn token_for(service: &Service, address: &str) -> String {
    let arguments = [
        "token",
        "create",
        "--account",
        "main",
        "--allow-ip",
        address,
        "--json",
    ];
    let created = service.server.cli_json(&arguments);
    let token = created["token"].as_str().expect("a token");
    format!("X-Service-Token: {token}")
}

fn the_caller_is_known_by_its_own_address(service: &Service, proxy: &Proxy) {
    let token = token_for(service, CALLER);
    let forged = format!("X-Forwarded-For: {CALLER}");
    for (case, from, headers, expected) in [
        ("the caller", CALLER, vec!["-H", token.as_str()], 200),
        ("another", OTHER, vec!["-H", &token], 403),
        (
            "a forged address",
            OTHER,
            vec!["-H", &token, "-H", &forged],
            403,
        ),
    ] {
        let answer = proxy.curl(from, "/token", &headers);
        assert_eq!(answer.status, expected, "{case}: {}", answer.body);
    }
    let page = ["--head"];
    let head = proxy.curl(CALLER, "/dashboard/sign-in", &page).body;
    let head = head.to_ascii_lowercase();
    assert!(head.contains("strict-transport-security"), "{head}");
}

fn metrics_are_not_exposed(proxy: &Proxy) {
    for path in [
        "/metrics",
        "/metrics?x",
        "/%6detrics",
        "//metrics",
        "/./metrics",
    ] {
        let answer = proxy.curl(CALLER, path, &[]);
        assert!(matches!(answer.status, 403 | 404), "{path}: {answer:?}");
        assert!(!answer.body.contains("switchboard_"), "{path}: {answer:?}");
    }
}

/// An event arrives while the stream stays open.
fn live_pages_are_not_buffered(service: &Service, proxy: &Proxy) {
    let output = service.server.output();
    let (_, link) = output.split_once("/dashboard/sign-in/").expect("a link");
    let link = link.split_whitespace().next().expect("a secret");
    let mut browser = Browser::new(service);
    browser.get(&format!("/dashboard/sign-in/{link}"));
    assert_eq!(browser.submit(&[]).status, 303);
    let session = browser.cookie("switchboard").expect("a session");
    let cookie = format!("switchboard={session}");
    let mut command = proxy.command(
        CALLER,
        "/dashboard/messages/live",
        &["--no-buffer", "--cookie", &cookie],
    );
    let mut stream = command.stdout(Stdio::piped()).spawn().expect("curl");
    let mut lines = BufReader::new(stream.stdout.take().expect("piped")).lines();
    let mut next = || lines.next().expect("it goes on").expect("text");
    while !next().starts_with("data:") {}
    let token = format!("X-Service-Token: {}", service.token);
    let body = r#"{"to":"+37120000001","from":"Streaming","message":"Hello"}"#;
    let json = "Content-Type: application/json";
    let sent = proxy.curl(CALLER, "/sms", &["-H", &token, "-H", json, "-d", body]);
    assert_eq!(sent.status, 200, "{sent:?}");
    while !next().contains("Streaming") {}
    stream.kill().expect("ended");
    stream.wait().expect("ended");
}

/// The largest body that the service takes passes the proxy, too.
fn a_large_body_is_passed_on(service: &Service, proxy: &Proxy) {
    let folder = temp_dir("body").expect("a temporary folder");
    let file = folder.path().join("body");
    let body = format!(
        r#"{{"to":"+37120000001","from":"A","message":"{}"}}"#,
        "x".repeat(2_000_000)
    );
    fs::write(&file, body).expect("written");
    let token = format!("X-Service-Token: {}", service.token);
    let json = "Content-Type: application/json";
    let file = format!("@{}", file.display());
    let answer = proxy.curl(
        CALLER,
        "/sms",
        &["-H", &token, "-H", json, "--data-binary", &file],
    );
    assert_eq!(answer.status, 400, "{answer:?}");
    let problem: Value = serde_json::from_str(&answer.body).expect("the service answered");
    assert!(problem.is_object() || problem.is_array(), "{problem}");
}

#[test]
fn nginx_works_as_the_example_says() {
    check(nginx);
}

#[test]
fn caddy_works_as_the_example_says() {
    check(caddy);
}

#[test]
fn haproxy_works_as_the_example_says() {
    check(haproxy);
}
