//! Which sender IDs may be registered, and how they are listed.

use serde_json::{Value, json};
use testkit::Backend;

use super::senders::{name, number, register, registered, start, with};
use super::service::message;

#[test]
fn a_sender_that_breaks_a_rule_is_refused() {
    let service = start(Backend::Sqlite);
    let without = |key: &str| with(name("Acme"), key, Value::Null);
    for (case, body, words) in [
        ("no name", without("name"), "'name': it is missing"),
        ("no type", without("type"), "'type': it is missing"),
        (
            "no category",
            without("category"),
            "'category': it is missing",
        ),
        (
            "no description",
            without("categoryDescription"),
            "'categoryDescription': it is missing",
        ),
        ("type", with(name("Acme"), "type", json!("Name")), "'Name'"),
        (
            "category",
            with(name("Acme"), "category", json!("Shop")),
            "'Shop'",
        ),
        (
            "blank",
            with(name("Acme"), "categoryDescription", json!("  ")),
            "it is empty",
        ),
        (
            "U+0000",
            with(name("Acme"), "categoryDescription", json!("a\0")),
            "control",
        ),
        ("short", name("Ab"), "3 to 11"),
        ("long", name("Abcdefghijkl"), "3 to 11"),
        ("letters", name("Ācme"), "3 to 11"),
        (
            "object",
            with(name("Acme"), "name", json!({})),
            "an object was sent",
        ),
        (
            "boolean",
            with(name("Acme"), "type", json!(true)),
            "true is a boolean",
        ),
        (
            "local",
            with(number(), "name", json!("020000007")),
            "'name'",
        ),
        (
            "impossible",
            with(number(), "name", json!("+3712000000712")),
            "not a possible number",
        ),
        (
            "not a number",
            with(number(), "name", json!("Acme")),
            "international format",
        ),
        (
            "scheme",
            with(name("Acme"), "notificationUrl", json!("ftp://x.example")),
            "'notificationUrl'",
        ),
        (
            "private",
            with(name("Acme"), "notificationUrl", json!("http://10.0.0.1/")),
            "'notificationUrl'",
        ),
    ] {
        let response = register(&service, &body);
        assert_eq!(response.status, 400, "{case}: {}", response.text());
        assert!(
            message(&response).contains(words),
            "{case}: {}",
            response.text()
        );
    }
    assert_eq!(
        service.get("/senderId").json(),
        json!([]),
        "nothing was stored"
    );
    assert_eq!(service.stored(), 0, "nothing was sent");
}

#[test]
fn an_accounts_senders_are_listed_in_pages() {
    let service = start(Backend::Sqlite);
    let ids: Vec<u64> = ["Alpha", "Beta", "12345"]
        .map(|text| registered(&service, &name(text)))
        .to_vec();
    let listed = |query: &str| -> Vec<u64> {
        let list = service.get(&format!("/senderId{query}")).json();
        let list = list.as_array().expect("a list").clone();
        list.iter()
            .map(|one| one["id"].as_u64().expect("a number"))
            .collect()
    };
    assert_eq!(listed(""), ids);
    assert_eq!(listed("/?limit=2"), ids[..2]);
    assert_eq!(listed("?limit=2&offset=2"), ids[2..]);
    for query in ["limit=0", "limit=1001", "offset=-1"] {
        assert_eq!(
            service.get(&format!("/senderId?{query}")).status,
            400,
            "{query}"
        );
    }
    let other = service.create_account("other");
    let none = service.call_as(&other, "GET", "/senderId", b"");
    assert_eq!(none.json(), json!([]));
    for path in [
        "/senderId/x",
        "/senderId/0",
        "/senderId/999",
        "/senderId/%ff",
    ] {
        assert_eq!(service.get(path).status, 404, "{path}");
    }
}
