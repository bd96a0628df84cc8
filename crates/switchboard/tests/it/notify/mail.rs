//! E-mail, to a real mail server.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use testkit::{Backend, temp_dir};

use super::{free_address, start};
use crate::people::{invite, joined};
use crate::rest::service::wait_for;

const PASSWORD: &str = "pass%20word";

/// A mail server.
struct MailServer {
    process: Child,
    port: u16,
    certificate: PathBuf,
    mails: Arc<Mutex<Vec<Value>>>,
    _folder: testkit::TempDir,
}

impl MailServer {
    fn start(mode: &str) -> Self {
        let folder = temp_dir("mail").expect("a temporary folder");
        let (certificate, key) = make_certificate(folder.path());
        let python = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-python/bin/python");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/mail/server.py");
        let mut process = Command::new(&python)
            .arg(script)
            .arg(mode)
            .args([&certificate, &key])
            .args(["user", "pass word"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("this needs scripts/python-packages: {error}"));
        let output = process.stdout.take().expect("piped");
        let mut lines = BufReader::new(output).lines();
        let port = lines.next().expect("a port").expect("text");
        let mails = Arc::<Mutex<Vec<Value>>>::default();
        let received = mails.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mail = serde_json::from_str(&line).expect("JSON");
                received.lock().expect("no holder panics").push(mail);
            }
        });
        Self {
            process,
            port: port.parse().expect("a number"),
            certificate,
            mails,
            _folder: folder,
        }
    }

    /// The first mail with this in its subject.
    fn wait_for(&self, subject: &str) -> Value {
        wait_for(subject, || {
            let mails = self.mails.lock().expect("no holder panics");
            let is_it = |mail: &&Value| {
                mail["subject"]
                    .as_str()
                    .is_some_and(|s| s.contains(subject))
            };
            mails.iter().find(is_it).cloned()
        })
    }

    fn settings(&self, url: &str) -> String {
        let url = url.replace("PORT", &self.port.to_string());
        let ca = self.certificate.display();
        format!("[mail]\nurl = '{url}'\nfrom = 'Alerts <alerts@example.com>'\ntls_ca = '{ca}'\n")
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        if self.process.kill().is_ok() {
            drop(self.process.wait());
        }
    }
}

fn make_certificate(folder: &Path) -> (PathBuf, PathBuf) {
    let (certificate, key) = (folder.join("mail.pem"), folder.join("mail.key"));
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args(["-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .expect("this needs openssl");
    assert!(made.status.success(), "{made:?}");
    (certificate, key)
}

fn check_mails(mode: &str, url: &str) {
    let server = MailServer::start(mode);
    let address = free_address();
    let config = format!(
        "{}[[notify]]\nemail = 'ops@example.com'\nevents = ['carrier.down']\n\
         [[carrier]]\nkind = 'smpp'\nname = 'alpha'\naddress = '{address}'\nsystem_id = 'user'\n",
        server.settings(url)
    );
    let service = start(Backend::Sqlite, &config);
    let mail = server.wait_for("carrier alpha is down");
    assert_eq!(mail["to"][0], "ops@example.com", "{mail}");
    assert_eq!(mail["from"], "Alerts <alerts@example.com>", "{mail}");
    assert_eq!(
        (&mail["tls"], &mail["user"]),
        (&true.into(), &"user".into())
    );
    let text = mail["text"].as_str().expect("a text");
    assert!(text.contains("Carrier alpha is down."), "{text}");

    let invited = invite(
        &service,
        "ann@example.com",
        &["--role", "admin", "--account", "main"],
    );
    assert_eq!(invited["mailed"], true, "{invited}");
    let link = invited["link"].as_str().expect("a link");
    let mail = server.wait_for("Your invitation");
    assert_eq!(mail["to"][0], "ann@example.com", "{mail}");
    assert!(
        mail["text"].as_str().expect("a text").contains(link),
        "{mail}"
    );

    let mut admin = joined(
        &service,
        "bob@example.com",
        &["--role", "admin", "--account", "main"],
    );
    let page = admin.get("/dashboard/settings/notifications").text();
    assert!(page.contains("name=\"email\""), "{page}");
    admin.get("/dashboard/settings/people");
    let fields = [
        ("email", "eve@example.com"),
        ("role", "member"),
        ("account", ""),
    ];
    let invite = [&fields[..], &[("action", "invite")]].concat();
    let token = admin.token();
    let posted = [&invite[..], &[("form_token", token.as_str())]].concat();
    let page = admin.post("/dashboard/settings/people", &posted).text();
    assert!(page.contains("It was also sent to them by email"), "{page}");

    let output = service.server.output();
    for secret in [PASSWORD, "pass word", "ops@example.com"] {
        assert!(!output.contains(secret), "{secret} in the log: {output}");
    }
}

#[test]
fn mails_are_sent_over_tls_with_a_password() {
    check_mails("smtps", "smtps://user:pass%20word@localhost:PORT");
}

#[test]
fn mails_are_sent_over_starttls_with_a_password() {
    check_mails(
        "starttls",
        "smtp://user:pass%20word@localhost:PORT?tls=required",
    );
}

#[test]
fn a_failing_mail_server_is_named_in_the_answer() {
    let server = MailServer::start("smtps");
    let config = server.settings("smtps://user:wrong@localhost:PORT");
    let service = start(Backend::Sqlite, &config);
    let invited = invite(&service, "ann@example.com", &["--account", "main"]);
    assert_eq!(invited["mailed"], false, "{invited}");
    let told = service.server.cli(&[
        "invite",
        "create",
        "--email",
        "bob@example.com",
        "--account",
        "main",
    ]);
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(text.contains("the mail server answered 535"), "{text}");
}
