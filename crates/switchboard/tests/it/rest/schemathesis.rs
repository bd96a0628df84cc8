//! The API does what its document says: Schemathesis makes requests from the document and checks the answers.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use testkit::Backend;

use super::service::{Service, wait_for};
use crate::mcp::clients::python_program;

/// The configuration and the hooks, which have the reasons for what is not checked.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/openapi");
/// This number answers every SMS.
const ECHO: &str = "+447700900900";
const OWN_NUMBER: &str = "+37120000091";

/// Gives the account everything that operations need: money, an approved sender and a message from a handset.
pub(super) fn fill(service: &Service) {
    let cli = |arguments: &[&str]| {
        let done = service.server.cli(arguments);
        assert!(done.status.success(), "{done:?}");
    };
    cli(&["account", "credit", "main", "1000000"]);
    let sender = json!({
        "name": "Acme", "type": "AlphaNumeric", "category": "Brand", "categoryDescription": "ours",
    });
    let body = sender.to_string();
    let registered = service.call_as(&service.token, "POST", "/senderId", body.as_bytes());
    cli(&["sender", "approve", &registered.text()]);
    cli(&["number", "add", "--number", OWN_NUMBER, "--account", "main"]);
    service.accept(&json!({ "to": ECHO, "from": OWN_NUMBER, "message": "Hello" }));
    wait_for("the answer of the handset", || {
        let inbox = service.get("/sms/inbox").json();
        inbox.as_array().filter(|inbox| !inbox.is_empty()).map(drop)
    });
}

#[test]
fn the_api_does_what_its_document_says() {
    // The hooks send each request as if from another address.
    let service = Service::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_AUTH__TRUSTED_PROXIES", r#"["127.0.0.0/8"]"#)
    });
    fill(&service);
    let folder = testkit::temp_dir("schemathesis").expect("a folder");
    let output = Command::new(python_program().with_file_name("schemathesis"))
        .current_dir(folder.path())
        .env("API_TOKEN", &service.token)
        .env("PYTHONPATH", FOLDER)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .args(["--no-color", "--config-file"])
        .arg(Path::new(FOLDER).join("schemathesis.toml"))
        .args(["run", &service.server.url("/openapi.json")])
        .output()
        .expect("Schemathesis starts");
    let log = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{log}");
    for unexpected in ["= FAILURES =", "= ERRORS =", "= WARNINGS ="] {
        assert!(!log.contains(unexpected), "{log}");
    }
    service.check_health();
}
