//! A confirmation code appears only on the handset, and is never shown to the person who asked for it.

use serde_json::json;
use testkit::Backend;

use super::{joined, on_both_backends};
use crate::rest::service::{Service, wait_for};

on_both_backends!(a_pin_is_shown_only_on_its_handset);

const NUMBER: &str = "+37120000123";
const SHOWN: &str = "(confirmation code)";

fn a_pin_is_shown_only_on_its_handset(backend: Backend) {
    let service = Service::start(backend);
    let mut admin = joined(&service, "ann@example.com", &["--role", "admin"]);
    let mut operator = joined(&service, "bob@example.com", &["--role", "operator"]);
    let body = json!({ "name": NUMBER, "type": "MSISDN" }).to_string();
    let registered = service.call_as(&service.token, "POST", "/senderId", body.as_bytes());
    assert_eq!(registered.status, 200, "{}", registered.text());
    let inbox = ["simulator", "inbox", "--number", NUMBER, "--json"];
    let pin = wait_for("the PIN", || {
        let newest = service.server.cli_json(&inbox)[0]["message"].clone();
        newest.as_str().map(|text| text[..5].to_owned())
    });
    let list = wait_for("the delivery", || {
        let page = admin.get("/dashboard/messages?state=delivered").text();
        page.contains("<tr id=\"m").then_some(page)
    });
    let (_, id) = list.split_once("<tr id=\"m").expect("a row");
    let id = id.split('"').next().expect("an ID").to_owned();
    assert!(list.contains(SHOWN), "{list}");
    let detail = format!("/dashboard/messages/{id}");
    let page = admin.get(&detail).text();
    assert!(page.contains(SHOWN), "{page}");
    assert!(
        !page.contains("/dashboard/send?"),
        "it cannot be sent again"
    );
    let callbacks = "/dashboard/callbacks".to_owned();
    for address in [&detail, "/dashboard/messages", "/dashboard", &callbacks] {
        let page = admin.get(address);
        assert_eq!(page.status, 200, "{address}");
        assert!(!page.text().contains(&pin), "{address}");
    }
    let audit = operator.get("/dashboard/operator/audit").text();
    assert!(!audit.contains(&pin));
    for path in [
        format!("/sms/status/{id}"),
        "/senderId".to_owned(),
        "/sms?scheduled".to_owned(),
    ] {
        let answer = service.get(&path).text();
        assert!(!answer.contains(&pin), "{path}: {answer}");
    }
    let output = service.server.output();
    assert!(!output.contains(&pin), "not in the log");
}
