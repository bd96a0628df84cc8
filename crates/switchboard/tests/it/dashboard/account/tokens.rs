//! Tokens are edited and rotated.

use domain::Timestamp;
use serde_json::{Value, json};
use testkit::Backend;

use super::{admin, send};
use crate::dashboard::asking::age_sessions;
use crate::people::PASSWORD;
use crate::people::client::{Client, parameter};
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

on_both_backends!(
    an_edited_token_keeps_its_secret,
    a_rotated_token_works_for_the_chosen_time,
    tokens_of_clients_are_not_edited,
);

const API: &str = "/dashboard/settings/api";
const QUESTION: &str = "Current password";

/// The secret in a page.
fn secret_in(page: &str) -> String {
    let (_, rest) = page.split_once("<code>sb_").expect("a secret");
    let end = rest.find('<').expect("its end");
    format!("sb_{}", &rest[..end])
}

/// The path of the newest token whose name starts so.
fn newest(service: &Service, name: &str) -> String {
    let tokens = service.server.cli_json(&["token", "list", "--json"]);
    let named = |one: &&Value| one["name"].as_str().is_some_and(|it| it.starts_with(name));
    let tokens = tokens.as_array().expect("a list").iter().filter(named);
    let newest = tokens.max_by_key(|one| one["id"].as_u64());
    format!("{API}/tokens/{}", newest.expect("the token")["id"])
}

/// What the service says about a token, once it matches.
fn described(service: &Service, secret: &str, matches: impl Fn(&Value) -> bool) -> Value {
    wait_for("the change", || {
        let answer = service.call_as(secret, "GET", "/token", b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        Some(answer.json()).filter(&matches)
    })
}

fn an_edited_token_keeps_its_secret(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = admin(&service);
    let fields = [
        ("name", "backend"),
        ("route", "sms:rates"),
        ("networks", "127.0.0.0/8, ::1"),
        ("expires", "30"),
    ];
    let created = send(&mut browser, &format!("{API}/new"), &fields);
    let secret = secret_in(&created.text());
    let expires = described(&service, &secret, |_| true)["expires"].clone();
    let edit = format!("{}/edit", newest(&service, "backend"));
    let form = browser.get(&edit).text();
    for expected in ["value=\"backend\"", "127.0.0.0/8\n::1", "As it is"] {
        assert!(form.contains(expected), "{expected}: {form}");
    }
    let wrong = browser.submit(&[("name", ""), ("networks", "here"), ("expires", "9")]);
    assert_eq!(wrong.status, 422, "{}", wrong.text());
    for field in ["name", "route", "networks", "expires"] {
        let problem = format!("id=\"{field}-problem\"");
        assert!(wrong.text().contains(&problem), "{field}: {}", wrong.text());
    }

    age_sessions(&service);
    browser.get(&edit);
    let narrow = [
        ("name", "shop"),
        ("route", "sms:rates"),
        ("networks", "127.0.0.0/8"),
        ("expires", "keep"),
    ];
    let saved = browser.submit(&narrow);
    assert_eq!(saved.status, 303, "no question: {}", saved.text());
    assert!(browser.follow(&saved).text().contains("Saved."));
    let changed = described(&service, &secret, |token| token["name"] == "shop");
    assert_eq!(changed["ips"], json!(["127.0.0.0/8"]));
    assert_eq!(changed["expires"], expires, "as it was");

    browser.get(&edit);
    let wide = [
        ("name", "shop"),
        ("route", "sms:rates"),
        ("route", "sms:read"),
        ("expires", ""),
    ];
    let asked = browser.submit(&wide);
    assert_eq!(asked.status, 200, "{}", asked.text());
    assert!(asked.text().contains(QUESTION), "{}", asked.text());
    let saved = browser.submit(&[("current_password", PASSWORD)]);
    assert_eq!(saved.status, 303, "{}", saved.text());
    let changed = described(&service, &secret, |token| token["expires"].is_null());
    let mut permissions: Vec<&str> = changed["permissions"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    permissions.sort_unstable();
    assert_eq!(permissions, ["sms:rates", "sms:read"]);
    assert_eq!(changed["ips"], json!([]));
    let log = service.server.cli_json(&["audit", "--json"]);
    let entries = log.as_array().expect("a list").iter();
    let details: Vec<&str> = entries
        .filter(|entry| entry["action"] == "token.change")
        .filter_map(|entry| entry["detail"].as_str())
        .collect();
    assert_eq!(details.len(), 2, "{log}");
    let renamed = "name backend → shop; from 127.0.0.0/8 ::1/128 → 127.0.0.0/8";
    assert!(details.contains(&renamed), "{details:?}");
}

fn a_rotated_token_works_for_the_chosen_time(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = admin(&service);
    let fields = [
        ("name", "backend"),
        ("route", "sms:rates"),
        ("networks", "127.0.0.1 ::1"),
        ("expires", "30"),
    ];
    let created = send(&mut browser, &format!("{API}/new"), &fields);
    let first = secret_in(&created.text());
    let before = described(&service, &first, |_| true);

    let rotate = format!("{}/rotate", newest(&service, "backend"));
    browser.get(&rotate);
    let wrong = browser.submit(&[("grace", "2")]);
    assert_eq!(wrong.status, 422, "{}", wrong.text());
    browser.get(&rotate);
    let opened_at = browser.hidden("newest").expect("the newest token");
    let again = [("newest", opened_at.as_str()), ("grace", "1")];
    let rotated = browser.submit(&[("grace", "1")]);
    assert_eq!(rotated.status, 200, "{}", rotated.text());
    let text = rotated.text();
    assert!(text.contains("The old token works until"), "{text}");
    let second = secret_in(&text);
    let reloaded = send(&mut browser, &rotate, &again);
    assert_eq!(reloaded.status, 422, "{}", reloaded.text());
    assert!(reloaded.text().contains("was created already"));

    let old = described(&service, &first, |token| {
        token["expires"] != before["expires"]
    });
    let new = described(&service, &second, |_| true);
    for field in ["name", "permissions", "ips"] {
        assert_eq!(new[field], before[field], "{field}");
    }
    let expires = |token: &Value| -> Timestamp {
        let time = token["expires"].as_str().expect("a time");
        time.parse().expect("RFC 3339")
    };
    assert!(expires(&old) < expires(&before), "{old}");
    assert!(expires(&new) >= expires(&before), "{new}");

    age_sessions(&service);
    let rotate = format!("{}/rotate", newest(&service, "backend"));
    browser.get(&rotate);
    let asked = browser.submit(&[("grace", "0")]);
    assert!(asked.text().contains(QUESTION), "{}", asked.text());
    let rotated = browser.submit(&[("current_password", PASSWORD)]);
    assert_eq!(rotated.status, 200, "{}", rotated.text());
    assert!(rotated.text().contains("The old token is deleted"));
    let third = secret_in(&rotated.text());
    wait_for("the refusal", || {
        let refused = service.call_as(&second, "GET", "/token", b"");
        (refused.status == 401).then_some(())
    });
    for secret in [&first, &third] {
        described(&service, secret, |_| true);
    }
    let log = service.server.cli_json(&["audit", "--json"]).to_string();
    assert_eq!(log.matches("\"token.rotate\"").count(), 2, "{log}");
    for secret in [&first, &second, &third] {
        assert!(!log.contains(secret.as_str()), "{log}");
    }
}

fn tokens_of_clients_are_not_edited(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = admin(&service);
    let client = Client::new(&service);
    browser.get(&client.request_consent("sms:rates"));
    let answered = browser.submit(&[("scope", "sms:rates"), ("decision", "approve")]);
    client.redeem(&parameter(&answered, "code").expect("a code"));
    let path = newest(&service, "oauth:");
    let list = browser.get(API).text();
    for (page, fields) in [
        (
            "edit",
            &[("name", "mine"), ("route", "sms:send"), ("expires", "")][..],
        ),
        ("rotate", &[("grace", "0")]),
    ] {
        let path = format!("{path}/{page}");
        assert!(!list.contains(&format!("{path}\"")), "{list}");
        assert_eq!(browser.get(&path).status, 404, "{path}");
        assert_eq!(send(&mut browser, &path, fields).status, 404, "{path}");
    }
}
