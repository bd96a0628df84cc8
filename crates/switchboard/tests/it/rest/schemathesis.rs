//! The API against its document, by a third-party scanner (`crates/testkit/openapi`).

use std::path::Path;
use std::process::Command;

use serde_json::json;
use testkit::Backend;

use super::service::{Service, sms_with, tomorrow, wait_for};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/openapi");

#[test]
fn the_document_is_exact() {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openapi-python/bin/schemathesis");
    assert!(
        program.exists(),
        "the packages for Python are missing; install them: scripts/python-packages"
    );
    let service = Service::start(Backend::Sqlite);
    let credited = service.server.cli(&["account", "credit", "main", "100000"]);
    assert!(credited.status.success(), "{credited:?}");
    let output = Command::new(program)
        .arg("--config-file")
        .arg(Path::new(FOLDER).join("schemathesis.toml"))
        .args(["run", &service.server.url("/openapi.json")])
        .current_dir(FOLDER)
        .env("PYTHONPATH", FOLDER)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SWITCHBOARD_TOKEN", &service.token)
        .env("SWITCHBOARD_EXISTING", existing(&service).to_string())
        .output()
        .expect("it starts");
    let log = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{log}");
    assert!(!log.contains("WARNINGS"), "{log}");
    service.check_health();
}

/// By operation: values of path parameters that exist.
fn existing(service: &Service) -> serde_json::Value {
    let post = |path: &str, body: &serde_json::Value| {
        let token = &service.token;
        let answer = service.call_as(token, "POST", path, body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    };
    let message = service.accept(&sms_with(&json!({ "testMode": "1" })))[0].clone();
    let later = service.accept(&sms_with(&json!({ "scheduled": tomorrow() })))[0].clone();
    let number = ["number", "add", "--number", "1234", "--account", "main"];
    assert!(service.server.cli(&number).status.success());
    let reply = [
        "simulator",
        "reply",
        "--from",
        "+37120000002",
        "--to",
        "1234",
        "--text",
        "Hi",
    ];
    assert!(service.server.cli(&reply).status.success());
    let inbound = wait_for("the inbound message", || {
        service.get("/sms/inbox").json()[0]["id"]
            .as_str()
            .map(str::to_owned)
    });
    let sender = json!({ "name": "Acme", "type": "AlphaNumeric", "category": "Brand", "categoryDescription": "x" });
    let sender = post("/senderId", &sender);
    let code = post("/verify", &json!({ "to": "+37120000003" }))["id"].clone();
    let lookup = post("/hlr?callback=none", &json!({ "msisdn": "+37129100000" }))[0].clone();
    post("/optOuts", &json!({ "number": "+37120000004" }));
    json!({
        "readMessageStatus": { "id": message },
        "cancelMessage": { "id": later },
        "readInboxMessage": { "id": inbound },
        "readSender": { "senderId": sender },
        "confirmSender": { "senderId": sender },
        "readVerification": { "id": code },
        "checkCode": { "id": code },
        "readLookup": { "id": lookup },
        "removeOptOut": { "number": "+37120000004" },
        "readOperator": { "operatorId": 1 },
        "listNetworks": { "country": "LV" },
        "listPrefixes": { "country": "LV" },
    })
}
