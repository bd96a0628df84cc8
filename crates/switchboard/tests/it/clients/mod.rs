//! The client libraries (`clients/`) against the real service, and the code of `docs/SIGNATURES.md`.

mod packages;
mod signatures;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::Backend;

use self::packages::{Installed, run};
use crate::deliver::reports::signing_account;
use crate::rest::service::Service;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients");
/// This number answers every SMS with the same text.
const ECHO: &str = "+447700900900";
const NUMBER: &str = "+37120000091";

/// Runs the script of a client library against a service, and returns the service with its token.
///
/// The script prints the port of its receiver, reads what to do, and prints what it saw.
fn check_client(mut client: Command) -> (Service, String) {
    let service = Service::start(Backend::Sqlite);
    let (token, secret) = signing_account(&service);
    let mut child = client
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the client starts");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let mut port = String::new();
    output.read_line(&mut port).expect("it prints its port");
    let callback_url = format!("http://127.0.0.1:{}/callbacks", port.trim());
    let add = ["number", "add", "--number", NUMBER, "--account", "signed"];
    let added = [&add[..], &["--url", callback_url.as_str()]].concat();
    let added = service.server.cli(&added);
    let instructions = json!({
        "url": service.server.url(""), "token": token, "secret": secret,
        "callbackUrl": callback_url, "to": ECHO, "from": NUMBER,
    });
    let mut input = child.stdin.take().expect("piped");
    // If it failed, its standard error says why.
    writeln!(input, "{instructions}").ok();
    drop(input);
    let mut printed = String::new();
    output.read_to_string(&mut printed).expect("text");
    let ended = child.wait_with_output().expect("it ends");
    let log = String::from_utf8_lossy(&ended.stderr);
    assert!(added.status.success(), "{added:?}");
    assert!(ended.status.success(), "{printed}{log}");
    let seen: Value = serde_json::from_str(&printed).unwrap_or_else(|e| panic!("{e}: {printed}"));

    let id = seen["sent"]["ids"][0].as_str().expect("an ID");
    assert_eq!(seen["sent"]["parts"], 1, "{seen}");
    assert_eq!(seen["repeated"], seen["sent"], "the same key sends once");
    assert_eq!(seen["report"]["id"], id, "{seen}");
    assert_eq!(seen["report"]["status"], 1, "{seen}");
    assert_eq!(seen["status"]["state"], "delivered", "{seen}");
    assert_eq!(seen["inbound"]["from"], ECHO, "{seen}");
    assert_eq!(seen["inbound"]["message"], "Grüße", "{seen}");
    assert_eq!(seen["inbound"]["inReplyTo"], id, "{seen}");
    assert_eq!(seen["inbox"], json!([seen["inbound"]["id"]]), "{seen}");
    assert_eq!(seen["forged"], json!([401, 401]), "{seen}");
    assert_eq!(seen["check"]["accepted"], true, "{seen}");
    let refused = json!({ "status": 400, "errorCode": 53 });
    assert_eq!(seen["refused"], refused, "{seen}");
    // Three messages were sent, and one of them with the same key again.
    assert_eq!(seen["listed"].as_array().map(Vec::len), Some(3), "{seen}");
    assert_eq!(seen["listed"][2], id, "{seen}");
    let networks = service
        .get("/mccmnc/US")
        .header("x-total-count")
        .map(str::to_owned);
    assert_eq!(seen["networks"].to_string(), networks.expect("a total"));
    let lookup = seen["lookupId"].to_string();
    assert_eq!(seen["lookup"]["id"].as_str(), Some(&*lookup), "{seen}");
    let attempts = |path: &str| seen["attempts"][path].as_array().expect("keys");
    for path in ["/sms", "/viber", "/verify", "/hlr"] {
        let keys = attempts(path);
        assert_eq!(keys.len(), 3, "{path}: {seen}");
        assert!(keys[0].is_string(), "{path}: {seen}");
        assert!(keys.iter().all(|key| *key == keys[0]), "{path}: {seen}");
    }
    assert_eq!(attempts("/verify/1/check").len(), 1, "not repeated: {seen}");
    (service, token)
}

/// Runs the first two pieces of code of a README: one sends a message, and the other lists those that failed.
fn check_readme(
    (language, file): (&str, &str),
    folder: &Path,
    (service, token): &(Service, String),
    mut program: Command,
) {
    let page = std::fs::read_to_string(folder.join("README.md")).expect("a README");
    let code = code_blocks(&page, language)[..2].join("\n");
    let url = "https://switchboard.example.com";
    assert!(code.contains(url), "{code}");
    let code = code.replace(url, &service.server.url(""));
    std::fs::write(folder.join(file), code).expect("a file");
    let printed = run(program.arg(file).env("SWITCHBOARD_TOKEN", token));
    let (id, state) = printed.trim().split_once(' ').expect("an ID and a state");
    let status = service.call_as(token, "GET", &format!("/sms/status/{id}"), b"");
    assert_eq!(status.status, 200, "{printed}");
    let expected = ["queued", "sent", "delivered"];
    assert!(expected.contains(&state), "{printed}");
    service.check_health();
}

/// The pieces of code in a language on a page.
fn code_blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    let rests = page.split(&start).skip(1);
    rests
        .map(|rest| rest.split_once("\n```").expect("an end").0)
        .collect()
}

#[test]
fn the_client_for_typescript_sends_and_receives() {
    let installed = Installed::typescript();
    let node = |arguments: &[&str]| {
        let mut node = installed.node();
        node.args(arguments);
        node
    };
    run(&mut node(&[
        "--test",
        "tests/handlers.test.mjs",
        "tests/readme.test.mjs",
    ]));
    run(&mut node(&["tests/document.mjs"]));
    let compiler = "../node_modules/typescript/bin/tsc";
    run(&mut node(&[compiler, "--project", "tests"]));
    let service = check_client(node(&["tests/against-service.mjs"]));
    check_readme(
        ("js", "sending.mjs"),
        &installed.path(),
        &service,
        node(&[]),
    );
}

#[test]
fn the_client_for_python_sends_and_receives() {
    let installed = Installed::python();
    let python = |arguments: &[&str]| {
        let mut python = installed.python_program();
        python.args(arguments);
        python
    };
    run(&mut python(&["-m", "unittest", "discover", "-s", "tests"]));
    let mut types = python(&["-m", "mypy", "--strict", "--cache-dir"]);
    types
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("mypy"))
        .args(["tests/every_method.py", "lib/switchboard_client"])
        .env("MYPYPATH", "lib");
    run(&mut types);
    let service = check_client(python(&["tests/against_service.py"]));
    check_readme(
        ("python", "sending.py"),
        &installed.path(),
        &service,
        python(&[]),
    );
}

/// Every operation of the document is a method of both clients. Numbers are corrected by POST only.
#[test]
fn the_clients_have_every_operation() {
    let document = std::fs::read_to_string(packages::DOCUMENT).expect("the document");
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let read = |path: &str| std::fs::read_to_string(Path::new(FOLDER).join(path)).expect(path);
    // A generator has an asterisk before its name.
    let code = read("typescript/src/client.js").replace('*', " ");
    let types = read("typescript/src/index.d.ts");
    let python = read("python/src/switchboard_client/client.py");
    let use_of_types = read("typescript/tests/every-method.ts");
    let use_of_python = read("python/tests/every_method.py");
    let mut missing = Vec::new();
    let paths = document["paths"].as_object().expect("paths");
    let operations = paths
        .values()
        .flat_map(|path| path.as_object().expect("methods").values());
    for operation in operations {
        let id = operation["operationId"].as_str().expect("an ID");
        if id == "correctNumbersByGet" {
            continue;
        }
        let name = snake_case(id);
        for (file, text, method) in [
            ("client.js", &code, format!(" {id}(")),
            ("index.d.ts", &types, format!("  {id}(")),
            ("client.py", &python, format!("def {name}(")),
            (
                "every-method.ts",
                &use_of_types,
                format!("switchboard.{id}("),
            ),
            (
                "every_method.py",
                &use_of_python,
                format!("switchboard.{name}("),
            ),
        ] {
            if !text.contains(&method) {
                missing.push(format!("{file}: {method}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}
