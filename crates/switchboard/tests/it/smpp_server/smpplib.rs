//! A client on smpplib, for Python.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testkit::Backend;

use super::{TO, create_user, start};

#[test]
fn smpplib_gets_a_receipt_for_each_message() {
    let (service, address) = start(Backend::Sqlite, "");
    let password = create_user(&service.server, "acme", &[]);
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-python/bin/python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/smsc/client.py");
    let long = "long ".repeat(50);
    let output = Command::new(python)
        .arg(script)
        .args([&address.ip().to_string(), &address.port().to_string()])
        .args(["acme", &password, TO])
        .args(["Hello", "Привет", &long])
        .output()
        .unwrap_or_else(|error| panic!("this needs scripts/python-packages: {error}"));
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 4, "the client splits the long text in two");
    for line in &lines {
        let (id, receipt) = (line["id"].as_str(), line["receipt"].as_str());
        let (id, receipt) = (id.expect("an ID"), receipt.expect("a receipt"));
        let start = format!("id:{id} sub:001 dlvrd:001 ");
        assert!(receipt.starts_with(&start), "{receipt}");
        assert!(receipt.contains("stat:DELIVRD err:000"), "{receipt}");
    }
    service.check_health();
}
