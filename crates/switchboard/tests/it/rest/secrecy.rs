//! Secrets never appear in a log, not even at the highest level.

use serde_json::{Value, json};
use testkit::Backend;
use testkit::http::Connection;

use super::service::{Service, sms_with, tomorrow, wait_for};
use crate::people::browser::Browser;

const TEXT: &str = "Your secret code is QX7-PLUM";
const NUMBER: &str = "37120000987";
const PASSWORD: &str = "violet tram eleven";
const URL_SECRET: &str = "hunter2";

/// Calls every route, with valid and with invalid requests.
fn use_everything(service: &Service, wrong: &str) {
    let token = &service.token;
    let good = sms_with(&json!({
        "to": format!("+{NUMBER}"), "message": TEXT, "dlrUrl": "https://example.com/?key=hunter2", "scheduled": tomorrow(),
    }));
    let id = &service.accept(&good)[0];
    let key = [("Idempotency-Key", "secret-key")];
    service.call_with(token, "POST", "/sms", &key, good.to_string().as_bytes());
    service.call_with(token, "POST", "/sms", &key, good.to_string().as_bytes());
    let bad = sms_with(&json!({"to": [NUMBER, "12"], "message": TEXT}));
    assert_eq!(service.send(&bad).status, 400);
    let cut = good.to_string();
    assert_eq!(
        service
            .call_as(token, "POST", "/sms", &cut.as_bytes()[..cut.len() - 1])
            .status,
        400
    );
    service.get("/sms?scheduled");
    service.get(&format!("/sms/status/{id}"));
    service.delete(&format!("/sms/{id}"));
    service.delete(&format!("/sms/{id}"));
    service.get("/token");
    assert_eq!(service.call_as(wrong, "GET", "/token", b"").status, 401);
    assert_eq!(
        service
            .raw("GET", &format!("/token?at={token}"), &[], b"")
            .status,
        200
    );
    service.raw("GET", &format!("/nothing/{NUMBER}?at={token}"), &[], b"");
    let mut connection = Connection::open(service.server.addr()).expect("the server accepts");
    let request =
        format!("GET /token HTTP/1.1\r\nX-Service-Token: {token}\r\nBad Header: {TEXT}\r\n\r\n");
    connection.send(request.as_bytes()).expect("sent");
    assert_eq!(connection.read_response().expect("answered").status, 400);
}

/// Signs in by the link and by an invitation. Returns the secrets of the session and of the invitation.
fn use_pages(service: &Service, link: &str) -> (String, String) {
    let mut browser = Browser::new(service);
    browser.get(&format!("/dashboard/sign-in/{link}"));
    browser.submit(&[]);
    assert_eq!(browser.get("/dashboard").status, 200);
    let session = browser.cookie("switchboard").expect("a session").to_owned();
    let invite = ["invite", "create", "--email", "ann@example.com", "--json"];
    let invitation = service.server.cli_json(&invite);
    let invited = invitation["link"].as_str().expect("a link");
    let (_, invited) = invited.rsplit_once('/').expect("a path");
    browser.get(&format!("/dashboard/invitation/{invited}"));
    browser.submit(&[("password", PASSWORD), ("repeated", PASSWORD)]);
    browser.get("/dashboard");
    browser.sign_out();
    for password in ["wrong", PASSWORD] {
        browser.get("/dashboard/sign-in");
        browser.submit(&[("email", "ann@example.com"), ("password", password)]);
    }
    assert_eq!(browser.get("/dashboard").status, 200);
    (session, invited.to_owned())
}

/// Everything is logged at the highest level. After the restart, the output has nothing but the log.
fn logs_hold_no_secret(backend: Backend) {
    let mut service = Service::with(backend, |server| {
        server
            .env("SWITCHBOARD_LOG__LEVEL", "trace")
            .env("SWITCHBOARD_AUTH__QUERY_TOKEN", "true")
    });
    let welcome = service.server.output();
    let (_, link) = welcome
        .split_once("/dashboard/sign-in/")
        .expect("the one-time link");
    let link = link.lines().next().expect("a line").to_owned();
    let wrong = "sb_wrongwrongwrong";
    use_everything(&service, wrong);
    service.server.restart();
    use_everything(&service, wrong);
    let (session, invited) = use_pages(&service, &link);
    service.server.terminate();
    let output = wait_for("the last line", || {
        let output = service.server.output();
        output.contains("\"stopped\"").then_some(output)
    });

    let lines: Vec<&str> = output
        .lines()
        .filter(|line| line.starts_with('{'))
        .collect();
    assert!(
        lines.iter().any(|line| line.contains("\"answered\"")),
        "requests are logged: {output}"
    );
    for line in &lines {
        let parsed: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(
            parsed["timestamp"].is_string() && parsed["level"].is_string(),
            "{line}"
        );
    }
    for (case, secret) in [
        ("a token", service.token.as_str()),
        ("most of a token", &service.token[3..35]),
        ("a wrong token", wrong),
        ("a text", TEXT),
        ("part of a text", "QX7-PLUM"),
        ("a whole number", NUMBER),
        ("an address with a key", URL_SECRET),
        ("a one-time link", &link),
        ("a session", &session),
        ("an invitation", &invited),
        ("a password", PASSWORD),
        ("an email address", "ann@example.com"),
        ("an idempotency key", "secret-key"),
    ] {
        if let Some(line) = output.lines().find(|line| line.contains(secret)) {
            panic!("{case} is in the output: {line}");
        }
    }
}

on_both_backends!(logs_hold_no_secret);

#[test]
fn the_database_holds_no_token() {
    let mut service = Service::start(Backend::Sqlite);
    service.get("/token");
    service.server.terminate();
    let folder = std::fs::read_dir(service.server.data_dir()).expect("the data folder");
    for file in folder {
        let path = file.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("a file");
        let secret = &service.token.as_bytes()[3..35];
        assert!(
            !bytes.windows(secret.len()).any(|window| window == secret),
            "{}",
            path.display()
        );
    }
}
