//! The API does what its document says: Schemathesis makes requests from the document and checks the answers.

use std::path::Path;
use std::process::Command;

use testkit::Backend;

use super::service::Service;
use crate::mcp::clients::python_program;

const CONFIG: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../testkit/openapi/schemathesis.toml"
);

#[test]
fn the_api_does_what_its_document_says() {
    let service = Service::start(Backend::Sqlite);
    let rich = service
        .server
        .cli(&["account", "credit", "main", "1000000"]);
    assert!(rich.status.success(), "{rich:?}");
    let folder = testkit::temp_dir("schemathesis").expect("a folder");
    let output = Command::new(python_program().with_file_name("schemathesis"))
        .current_dir(folder.path())
        .env("API_TOKEN", &service.token)
        .args(["--no-color", "--config-file"])
        .arg(Path::new(CONFIG))
        .args(["run", &service.server.url("/openapi.json")])
        .output()
        .expect("Schemathesis starts");
    let log = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{log}");
    for unexpected in ["FAILURES", "ERRORS", "WARNINGS"] {
        assert!(!log.contains(unexpected), "{unexpected}: {log}");
    }
    service.check_health();
}
