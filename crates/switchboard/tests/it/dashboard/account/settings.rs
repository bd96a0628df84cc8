//! Tokens, the signing secret, scheduled messages, callbacks and connected clients.

use serde_json::json;
use testkit::Backend;
use testkit::receiver::{Receiver, Reply};

use super::{admin, failed_callback, schedule, send};
use crate::people::client::{Client, parameter};
use crate::people::joined;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, in_seconds, sms_with, wait_for, with_offset};

on_both_backends!(
    a_token_is_shown_once_and_refused_after_its_deletion,
    scheduled_messages_are_paged_and_cancelled_once,
    callbacks_that_match_the_filter_are_sent_again,
    a_client_that_is_disconnected_is_answered_with_401,
);

const NEW_TOKEN: &str = "/dashboard/settings/api/new";
const API_SETTINGS: &str = "/dashboard/settings/api";

/// The secret in a page.
fn secret_in(page: &str) -> Option<String> {
    let (_, rest) = page.split_once("<code>sb_")?;
    let end = rest.find('<')?;
    Some(format!("sb_{}", &rest[..end]))
}

fn a_token_is_shown_once_and_refused_after_its_deletion(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = admin(&service);
    let fields = [
        ("name", "backend"),
        ("route", "sms:rates"),
        ("route", "numbers:read"),
        ("networks", "127.0.0.0/8, ::1"),
        ("expires", "30"),
    ];
    let created = send(&mut browser, NEW_TOKEN, &fields);
    assert_eq!(created.status, 200, "{}", created.text());
    assert_eq!(created.header("cache-control"), Some("no-store"));
    let secret = secret_in(&created.text()).expect("the secret");

    let described = service.call_as(&secret, "GET", "/token", b"").json();
    assert_eq!(described["name"], "backend");
    assert_eq!(
        described["permissions"],
        json!(["sms:rates", "numbers:read"])
    );
    assert_eq!(described["ips"], json!(["127.0.0.0/8", "::1/128"]));
    assert!(described["expires"].is_string(), "{described}");
    let send_sms = service.call_as(&secret, "POST", "/sms", b"{}");
    assert_eq!(send_sms.status, 403, "this permission was not ticked");

    let list = browser.get(API_SETTINGS).text();
    assert!(
        list.contains("backend") && list.contains("numbers:read"),
        "{list}"
    );
    assert!(
        !list.contains(&secret) && secret_in(&list).is_none(),
        "{list}"
    );
    let id = service.server.cli_json(&["token", "list", "--json"]);
    let id = id
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["name"] == "backend");
    let path = format!("{API_SETTINGS}/tokens/{}", id.expect("the token")["id"]);
    let confirmation = browser.get(&path);
    assert!(
        confirmation.text().contains("Delete the token"),
        "{}",
        confirmation.text()
    );
    let works = service.call_as(&secret, "GET", "/token", b"");
    assert_eq!(works.status, 200, "the confirmation page deletes nothing");
    let deleted = browser.submit(&[]);
    assert_eq!(deleted.status, 303, "{}", deleted.text());
    wait_for("the refusal", || {
        let refused = service.call_as(&secret, "GET", "/token", b"");
        (refused.status == 401).then_some(())
    });
    assert!(!browser.follow(&deleted).text().contains("backend"));
    assert_eq!(send(&mut browser, &path, &[]).status, 404, "it is gone");
}

#[test]
fn a_refused_token_keeps_what_was_typed() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = admin(&service);
    for (fields, field, words) in [
        (
            [("name", ""), ("route", "sms:send"), ("networks", "")],
            "name",
            "1 to 64 characters",
        ),
        (
            [
                ("name", "oauth:access:x"),
                ("route", "sms:send"),
                ("networks", ""),
            ],
            "name",
            "AI clients",
        ),
        (
            [("name", "typed"), ("route", ""), ("networks", "")],
            "route",
            "Tick what",
        ),
        (
            [
                ("name", "typed"),
                ("route", "sms:send"),
                ("networks", "nowhere"),
            ],
            "networks",
            "192.0.2.1",
        ),
    ] {
        let page = send(&mut browser, NEW_TOKEN, &fields);
        assert_eq!(page.status, 422, "{fields:?}");
        let text = page.text();
        assert!(text.contains(words), "{fields:?}: {text}");
        assert!(
            text.contains(&format!("id=\"{field}-problem\"")),
            "{fields:?}: {text}"
        );
        for (_, value) in fields {
            assert!(text.contains(value), "{value} is kept: {text}");
        }
        assert!(secret_in(&text).is_none());
    }
    let tokens = service.server.cli_json(&["token", "list", "--json"]);
    assert_eq!(
        tokens.as_array().map(Vec::len),
        Some(1),
        "only the first: {tokens}"
    );
}

#[test]
fn showing_the_signing_secret_is_in_the_audit_log() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = admin(&service);
    let has_secret = |page: &str| {
        page.split("<code>whsec_")
            .nth(1)
            .is_some_and(|rest| !rest.starts_with('•'))
    };
    assert!(!has_secret(&browser.get(API_SETTINGS).text()));
    let shown = send(&mut browser, "/dashboard/settings/api/secret", &[]);
    assert!(has_secret(&shown.text()), "{}", shown.text());
    assert_eq!(shown.header("cache-control"), Some("no-store"));
    assert!(
        !has_secret(&browser.get(API_SETTINGS).text()),
        "not in a second view"
    );
    let log = service.server.cli_json(&["audit", "--json"]);
    let entry = log
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["action"] == "secret.show");
    assert_eq!(entry.expect("a line")["who"], "admin@example.com");
    assert!(!log.to_string().contains("whsec_"), "{log}");
}

#[test]
fn the_signing_secret_is_replaced_once() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = admin(&service);
    let rotate = "/dashboard/settings/api/secret/rotate";
    assert!(browser.get(API_SETTINGS).text().contains(rotate));
    assert!(browser.get(rotate).text().contains("For 24 hours"));
    let first = send(&mut browser, "/dashboard/settings/api/secret", &[]).text();
    let replaced = send(&mut browser, rotate, &[]);
    assert_eq!(replaced.status, 303, "{}", replaced.text());
    let page = browser.follow(&replaced).text();
    assert!(page.contains("The signing secret was replaced"), "{page}");
    let second = send(&mut browser, "/dashboard/settings/api/secret", &[]).text();
    let secret = |page: &str| {
        let (_, rest) = page.split_once("whsec_").expect("a secret");
        rest.chars().take(32).collect::<String>()
    };
    assert_ne!(secret(&first), secret(&second));
    let log = service.server.cli_json(&["audit", "--json"]);
    let mut entries = log.as_array().expect("a list").iter();
    let entry = entries.find(|one| one["action"] == "secret.rotate");
    let detail = entry.expect("a line")["detail"].as_str().expect("a text");
    let time = detail.rsplit(' ').next().expect("a time");
    assert_eq!(time.len(), "2026-11-25T13:37:08Z".len(), "{detail}");
    assert!(!log.to_string().contains("whsec_"), "{log}");
    let page = browser.get("/dashboard/settings/audit").text();
    let shown = format!("also signs until <time datetime=\"{time}\"");
    assert!(page.contains(&shown), "{shown}: {page}");
}

fn scheduled_messages_are_paged_and_cancelled_once(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = admin(&service);
    let empty = browser.get("/dashboard/scheduled").text();
    assert!(empty.contains("Nothing is scheduled"), "{empty}");
    let time = with_offset(in_seconds(3600), 0);
    // All at the same time, so only the IDs decide the order.
    let to: Vec<String> = (0..51).map(|n| format!("+371200001{n:02}")).collect();
    let body = sms_with(&json!({ "to": to, "scheduled": time }));
    let ids = service.accept(&body);
    let first = browser.get("/dashboard/scheduled").text();
    let row = |id: &String| format!("/dashboard/scheduled/{id}\"");
    assert!(
        ids[..50].iter().all(|id| first.contains(&row(id))),
        "{first}"
    );
    assert!(!first.contains(&row(&ids[50])), "{first}");
    let (_, rest) = first
        .split_once("href=\"/dashboard/scheduled?after=")
        .expect("a link to the next page");
    let after = rest.split('"').next().expect("an address");
    let second = browser
        .get(&format!("/dashboard/scheduled?after={after}"))
        .text();
    assert!(
        second.contains(&row(&ids[50])) && !second.contains(&row(&ids[49])),
        "{second}"
    );

    let path = format!("/dashboard/scheduled/{}", ids[0]);
    let confirmation = browser.get(&path);
    assert!(
        confirmation.text().contains("Cancel this message?"),
        "{}",
        confirmation.text()
    );
    let balance = service.balance();
    assert_eq!(browser.submit(&[]).status, 303);
    assert_ne!(service.balance(), balance, "refunded");
    let message = browser.get(&format!("/dashboard/messages/{}", ids[0]));
    let message = message.text();
    assert!(
        message.contains("<dt>Price</dt><dd>0.00 "),
        "paid in the end: {message}"
    );
    assert!(message.contains(" refunded)"), "{message}");
    assert!(message.contains("Refunded: "), "{message}");
    let again = send(&mut browser, &path, &[]);
    assert_eq!(again.status, 409, "{}", again.text());
    assert!(
        again.text().contains("already cancelled"),
        "{}",
        again.text()
    );

    let kept = schedule(&service, "kept");
    assert_eq!(service.scheduled_as(&service.token).len(), 51);
    assert_eq!(
        send(&mut browser, "/dashboard/scheduled/999999", &[]).status,
        404
    );
    assert!(
        browser
            .get("/dashboard/scheduled")
            .text()
            .contains("Scheduled")
    );
    assert_eq!(
        service.get(&format!("/sms/status/{kept}")).json()["state"],
        "scheduled"
    );
}

fn callbacks_that_match_the_filter_are_sent_again(backend: Backend) {
    let service = Service::with(backend, |builder| {
        builder.env("SWITCHBOARD_CALLBACKS__PARK_AFTER_DAYS", "0")
    });
    let receiver = Receiver::builder()
        .script(|_| Reply::answer(200, "later"))
        .start();
    let callback = failed_callback(&service, &receiver.url("/dlr"));
    let mut browser = admin(&service);
    let list = browser.get("/dashboard/callbacks").text();
    for words in ["parked", &receiver.addr().to_string(), "later"] {
        assert!(list.contains(words), "{words}: {list}");
    }
    let url = receiver.url("");
    for (fields, words) in [
        (vec![("url", url.as_str())], "At most 1 callback<"),
        (vec![("url", "http://192.0.2.1/")], "No callback matches"),
        (vec![("from", "2020-01-01T00:00")], "At most 1 callback<"),
        (vec![("until", "2020-01-01T00:00")], "No callback matches"),
    ] {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&fields)
            .finish();
        let confirmation = browser
            .get(&format!("/dashboard/callbacks/replay?{query}"))
            .text();
        assert!(confirmation.contains(words), "{fields:?}: {confirmation}");
    }
    assert_eq!(receiver.count(), 1, "the preview sends nothing");
    let unfiltered = send(&mut browser, "/dashboard/callbacks/replay", &[]);
    assert_eq!(unfiltered.status, 400, "a filter is required");
    let done = send(
        &mut browser,
        "/dashboard/callbacks/replay",
        &[("url", &url)],
    );
    assert!(
        done.text().contains("1 callback is being sent again"),
        "{}",
        done.text()
    );
    wait_for("the second attempt", || {
        (receiver.count() == 2).then_some(())
    });
    let path = format!("/dashboard/callbacks/{}", callback["id"]);
    wait_for("both attempts on the page", || {
        let page = browser.get(&path).text();
        (page.matches("200, but the body was").count() >= 2).then_some(())
    });
    let log = service.server.cli_json(&["audit", "--json"]);
    let replays = log.as_array().expect("a list").iter();
    let replays = replays.filter(|one| one["action"] == "callback.replay");
    assert_eq!(replays.count(), 1, "{log}");
}

fn a_client_that_is_disconnected_is_answered_with_401(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = admin(&service);
    let client = Client::new(&service);
    browser.get(&client.request_consent("sms:rates numbers:read"));
    let answered = browser.submit(&[("scope", "sms:rates"), ("decision", "approve")]);
    let granted = client.redeem(&parameter(&answered, "code").expect("a code"));
    let token = granted["access_token"].as_str().expect("a token");
    assert_eq!(service.call_as(token, "GET", "/rates", b"").status, 200);

    let list = browser.get(API_SETTINGS).text();
    for words in [
        "oauth:access:",
        "oauth:refresh:",
        "Helpful Agent",
        "Read prices",
    ] {
        assert!(list.contains(words), "{words}: {list}");
    }
    let (_, rest) = list
        .split_once("href=\"/dashboard/settings/api/clients/")
        .expect("a link");
    let id = rest.split('"').next().expect("an ID");
    let path = format!("{API_SETTINGS}/clients/{id}");

    service.create_account("other");
    let more = ["--role", "admin", "--account", "other"];
    let mut other = joined(&service, "eve@example.com", &more);
    assert_eq!(other.get(&path).status, 404);
    assert_eq!(send(&mut other, &path, &[]).status, 404);
    let mut member = joined(&service, "bob@example.com", &["--account", "main"]);
    assert_eq!(send(&mut member, &path, &[]).status, 403);
    assert_eq!(
        service.call_as(token, "GET", "/rates", b"").status,
        200,
        "not disconnected yet"
    );

    assert!(
        browser
            .get(&path)
            .text()
            .contains("Disconnect <bdi>Helpful Agent")
    );
    let done = browser.submit(&[]);
    assert_eq!(done.status, 303, "{}", done.text());
    wait_for("the refusal", || {
        let refused = service.call_as(token, "GET", "/rates", b"");
        (refused.status == 401).then_some(())
    });
    let list = browser.follow(&done).text();
    assert!(
        !list.contains("oauth:") && !list.contains("Helpful Agent"),
        "{list}"
    );
    assert_eq!(send(&mut browser, &path, &[]).status, 404, "it is gone");
}
