//! The inventory: every route has an expected decision for every kind of caller.

use std::collections::BTreeSet;

use domain::Timestamp;
use serde_json::{Value, json};
use testkit::Backend;

use super::service::{Service, message, sms, sms_with, tomorrow};

/// Every permission there is.
const PERMISSIONS: [&str; 8] = [
    "sms:send",
    "sms:read",
    "viber:send",
    "sender:write",
    "hlr:lookup",
    "sms:rates",
    "numbers:read",
    "verify:send",
];

/// Method, documented path, the permissions (any one suffices), and the status with such a permission.
const ROUTES: &[(&str, &str, &[&str], u16)] = &[
    ("POST", "/sms", &["sms:send"], 200),
    ("GET", "/sms", &["sms:read"], 200),
    ("GET", "/sms/status/{id}", &["sms:read", "sms:send"], 200),
    ("GET", "/sms/inbox", &["sms:read", "sms:send"], 200),
    // It was sent, not received.
    ("GET", "/sms/inbox/{id}", &["sms:read", "sms:send"], 404),
    ("DELETE", "/sms/{id}", &["sms:send"], 200),
    ("GET", "/messages", &["sms:read"], 200),
    ("POST", "/sms/cost", &["sms:read", "sms:send"], 200),
    ("POST", "/sms/check", &["sms:read", "sms:send"], 200),
    ("GET", "/optOuts", &["sms:read"], 200),
    ("POST", "/optOuts", &["sms:send"], 200),
    // It is not listed.
    ("DELETE", "/optOuts/{number}", &["sms:send"], 404),
    // Its text has no place for the code.
    ("POST", "/verify", &["verify:send"], 400),
    // The ID is that of a message.
    ("GET", "/verify/{id}", &["verify:send"], 404),
    ("POST", "/verify/{id}/check", &["verify:send"], 404),
    ("POST", "/senderId", &["sender:write"], 200),
    ("GET", "/senderId", &["sender:write"], 200),
    ("GET", "/senderId/{senderId}", &["sender:write"], 200),
    // Names are not confirmed.
    (
        "POST",
        "/senderId/confirm/{senderId}",
        &["sender:write"],
        409,
    ),
    ("GET", "/rates", &["sms:rates"], 200),
    ("GET", "/operators/{operatorId}", &["numbers:read"], 200),
    ("GET", "/mccmnc/{country}", &["numbers:read"], 200),
    ("GET", "/prefixes/{country}", &["numbers:read"], 200),
    ("POST", "/numberCorrection", &["numbers:read"], 200),
    ("GET", "/numberCorrection", &["numbers:read"], 200),
    ("POST", "/viber", &["viber:send"], 403),
    ("POST", "/hlr", &["hlr:lookup"], 200),
    ("GET", "/hlr/{id}", &["hlr:lookup"], 404),
    ("GET", "/token", &[], 200),
];

fn token_with(service: &Service, permissions: &[&str]) -> String {
    let flags: Vec<&str> = permissions
        .iter()
        .flat_map(|name| ["--permission", name])
        .collect();
    service.create_token("main", &flags).token
}

#[test]
fn every_route_decides_about_every_caller() {
    let service = Service::start(Backend::Sqlite);
    let scheduled = sms_with(&json!({ "scheduled": tomorrow() }));
    for (method, route, permissions, success) in ROUTES {
        let id = &service.accept(&scheduled)[0];
        let path = match *route {
            "/sms" if *method == "GET" => "/sms?scheduled".to_owned(),
            route => route
                .replace("{id}", id)
                .replace("{operatorId}", "1")
                .replace("{senderId}", "1")
                .replace("{number}", "+37120000008")
                .replace("{country}", "LV"),
        };
        let body = match (*method, *route) {
            ("POST" | "GET", "/numberCorrection") => json!([{"Number": "29100000"}]).to_string(),
            ("POST", "/hlr") => {
                json!({"msisdn": "+37129100000", "callBackUrl": "http://127.0.0.1:9/hlr"})
                    .to_string()
            }
            ("POST", "/optOuts") => json!({"number": "+37120000009"}).to_string(),
            ("POST", "/senderId") => json!({"name": "Acme", "type": "AlphaNumeric", "category": "Brand", "categoryDescription": "ours"}).to_string(),
            ("POST", "/senderId/confirm/{senderId}") => json!({"code": "12345"}).to_string(),
            ("POST", "/verify/{id}/check") => json!({"code": "123456"}).to_string(),
            ("POST", _) => sms().to_string(),
            _ => String::new(),
        };
        let status = |token: &str| {
            service
                .call_as(token, method, &path, body.as_bytes())
                .status
        };
        let case = format!("{method} {route}");

        let headers = [("Content-Type", "application/json")];
        let response = service.raw(method, &path, &headers, body.as_bytes());
        assert_eq!(response.status, 401, "{case}: no token");
        assert!(
            message(&response).contains("No API token was given"),
            "{case}"
        );
        assert_eq!(status("sb_wrong"), 401, "{case}: wrong token");

        let others: Vec<&str> = PERMISSIONS
            .into_iter()
            .filter(|name| !permissions.contains(name))
            .collect();
        let without = token_with(&service, &others);
        let response = service.call_as(&without, method, &path, body.as_bytes());
        if permissions.is_empty() {
            assert_eq!(response.status, *success, "{case}: needs none");
        } else {
            assert_eq!(response.status, 403, "{case}: every other permission");
        }
        for permission in *permissions {
            let text = message(&response);
            assert!(text.contains(&format!("'{permission}'")), "{case}: {text}");
            let only = token_with(&service, &[permission]);
            assert_eq!(status(&only), *success, "{case}: only {permission}");
        }
    }
}

#[test]
fn the_inventory_is_complete() {
    let service = Service::start(Backend::Sqlite);
    let document = service.get("/openapi.json").json();
    let paths = document["paths"].as_object().expect("paths");
    let documented: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods").keys();
            methods.map(move |method| (method.to_uppercase(), path.clone()))
        })
        .collect();
    let listed: BTreeSet<(String, String)> = ROUTES
        .iter()
        .map(|(method, path, ..)| ((*method).to_owned(), (*path).to_owned()))
        .collect();
    assert_eq!(
        listed, documented,
        "ROUTES lists exactly the documented operations"
    );
}

#[test]
fn a_token_describes_itself() {
    let service = Service::start(Backend::Sqlite);
    let described = service.get("/token").json();
    let expires = described["expires"]
        .as_str()
        .expect("the first one expires");
    expires.parse::<Timestamp>().expect("a time");
    let expected = json!({
        "account": "main", "name": "first token", "permissions": PERMISSIONS, "ips": [], "expires": expires,
        "currency": "EUR", "balance": "100.00",
    });
    assert_eq!(described, expected);

    let flags = [
        "--name",
        "reader",
        "--permission",
        "sms:read",
        "--allow-ip",
        "127.0.0.1",
        "--allow-ip",
        "2001:db8::/32",
        "--expires",
        "30d",
    ];
    let reader = service.create_token("main", &flags).token;
    let mut described = service.call_as(&reader, "GET", "/token", b"").json();
    let expires = described["expires"].take();
    let expires: jiff::Timestamp = expires.as_str().expect("a time").parse().expect("RFC 3339");
    let left = expires
        .duration_since(super::service::in_seconds(0))
        .as_hours();
    assert!((719..=720).contains(&left), "{expires}");
    let expected = json!({
        "account": "main", "name": "reader", "permissions": ["sms:read"], "ips": ["127.0.0.1/32", "2001:db8::/32"],
        "expires": null, "currency": "EUR", "balance": "100.00",
    });
    assert_eq!(described, expected);
}

#[test]
fn a_token_tells_the_limits_of_its_account_when_asked() {
    let service = Service::start(Backend::Sqlite);
    let limits = |service: &Service| service.get("/token?limits").json()["limits"].clone();
    let unlimited = json!({
        "creditLimit": "0.00", "dailyCap": null, "leftToday": null, "perRecipientHour": null, "countries": [],
        "approvedSendersOnly": false, "requestsPerSecond": null, "clientDailyCap": null, "clientLeftToday": null,
    });
    assert_eq!(limits(&service), unlimited);
    let set = [
        "account",
        "set",
        "main",
        "credit_limit=5",
        "daily_cap=10",
        "per_recipient_hour=3",
        "countries=LV,EE",
        "requests_per_second=1000",
    ];
    assert!(service.server.cli(&set).status.success());
    let before = service.balance();
    service.accept(&sms());
    let spent: Vec<domain::Money> = [before, service.balance()]
        .iter()
        .map(|balance| balance.parse().expect("an amount"))
        .collect();
    let cap: domain::Money = "10".parse().expect("an amount");
    let expected = json!({
        "creditLimit": "5.00", "dailyCap": "10.00", "leftToday": cap.minus(spent[0].minus(spent[1])).to_string(),
        "perRecipientHour": 3, "countries": ["EE", "LV"], "approvedSendersOnly": false, "requestsPerSecond": 1000,
        "clientDailyCap": null, "clientLeftToday": null,
    });
    assert_eq!(limits(&service), expected);
    assert!(spent[1] < spent[0], "the message was charged");
    assert_eq!(service.get("/token").json().get("limits"), None);
}

#[test]
fn an_account_reaches_only_its_own_data() {
    let service = Service::start(Backend::Sqlite);
    let other = service.create_account("other");
    service.accept(&sms_with(&json!({ "scheduled": tomorrow() })));
    assert_eq!(service.scheduled_as(&other), Vec::<Value>::new());
    assert_eq!(
        service.call_as(&other, "GET", "/token", b"").json()["account"],
        "other"
    );
    assert_eq!(
        service.call_as(&other, "GET", "/token", b"").json()["balance"],
        "50.00"
    );
}
