//! Only operators can use the operator's pages.

use testkit::Backend;

use super::{current_state, form_token, operator, post, price_for_all, register};
use crate::people::browser::Browser;
use crate::people::joined;
use crate::rest::service::Service;

/// Every page that can be read.
const PAGES: &[&str] = &[
    "/dashboard/operator/accounts",
    "/dashboard/operator/accounts/1",
    "/dashboard/operator/accounts/1/statement",
    "/dashboard/operator/accounts/1/statement.csv",
    "/dashboard/operator/margin",
    "/dashboard/operator/traffic",
    "/dashboard/operator/senders",
    "/dashboard/operator/verify",
    "/dashboard/operator/carriers",
    "/dashboard/operator/carriers/live",
    "/dashboard/operator/carriers/new",
    "/dashboard/operator/carriers/edit?name=simulator",
    "/dashboard/operator/carriers/test?name=simulator",
    "/dashboard/operator/carriers/test/live",
    "/dashboard/operator/carriers/history",
    "/dashboard/operator/routes/edit",
    "/dashboard/operator/messages/1",
    "/dashboard/operator/routes",
    "/dashboard/operator/prices",
    "/dashboard/operator/prices.csv",
    "/dashboard/operator/reference",
    "/dashboard/operator/blocks",
    "/dashboard/operator/numbers",
    "/dashboard/operator/smpp-users",
    "/dashboard/operator/smpp-users/1",
    "/dashboard/operator/smpp-users/1/live",
    "/dashboard/operator/unclaimed",
    "/dashboard/operator/unclaimed/1",
    "/dashboard/operator/carriers/handset",
    "/dashboard/operator/queues",
    "/dashboard/operator/hosts",
    "/dashboard/operator/nodes",
];

/// A path and its fields.
type Form = (&'static str, Vec<(&'static str, String)>);

fn field(name: &'static str, value: &str) -> (&'static str, String) {
    (name, value.to_owned())
}

/// Every form, with fields that change something when an operator sends them.
fn forms() -> Vec<Form> {
    let mut forms = plan_forms();
    forms.extend(other_forms());
    forms
}

/// Those of carriers and routes in the database.
fn plan_forms() -> Vec<Form> {
    let description =
        "kind = \"http\"\n[request]\nurl = \"http://127.0.0.1:1/\"\nquery = { to = \"{{ to }}\" }";
    let carrier = || vec![field("name", "beta"), field("description", description)];
    vec![
        ("/dashboard/operator/carriers/new", carrier()),
        ("/dashboard/operator/carriers/edit", carrier()),
        (
            "/dashboard/operator/carriers/test",
            vec![field("name", "beta"), field("to", "+37120000001")],
        ),
        (
            "/dashboard/operator/carriers/remove",
            vec![field("name", "beta"), field("sure", "yes")],
        ),
        (
            "/dashboard/operator/routes/edit",
            vec![field("name", "all"), field("carriers", "simulator")],
        ),
        (
            "/dashboard/operator/routes/remove",
            vec![field("name", "all"), field("sure", "yes")],
        ),
        (
            "/dashboard/operator/carriers/undo",
            vec![field("to", "0"), field("sure", "yes")],
        ),
    ]
}

fn other_forms() -> Vec<Form> {
    vec![
        ("/dashboard/operator/accounts", vec![field("name", "mine")]),
        (
            "/dashboard/operator/accounts/1/credit",
            vec![
                field("amount", "1000"),
                field("once", "1"),
                field("sure", "yes"),
            ],
        ),
        (
            "/dashboard/operator/accounts/1/limits",
            vec![
                field("was_credit_limit", "0.00"),
                field("credit_limit", "7"),
            ],
        ),
        (
            "/dashboard/operator/accounts/1/state",
            vec![field("state", "suspended"), field("sure", "yes")],
        ),
        (
            "/dashboard/operator/senders/1",
            vec![field("decision", "approve")],
        ),
        (
            "/dashboard/operator/prices",
            vec![
                field("channel", "sms"),
                field("seen", "0"),
                field("csv", &price_for_all("0.01")),
            ],
        ),
        (
            "/dashboard/operator/hosts/replay",
            vec![field("address", "https://example.com")],
        ),
        (
            "/dashboard/operator/blocks",
            vec![field("kind", "word"), field("value", "jackpot")],
        ),
        (
            "/dashboard/operator/blocks/remove",
            vec![
                field("kind", "word"),
                field("value", "jackpot"),
                field("sure", "yes"),
            ],
        ),
        (
            "/dashboard/operator/numbers",
            vec![field("number", "1234"), field("account", "main")],
        ),
        (
            "/dashboard/operator/numbers/remove",
            vec![field("number", "1234"), field("sure", "yes")],
        ),
        (
            "/dashboard/operator/smpp-users",
            vec![
                field("account", "main"),
                field("system_id", "acme"),
                field("sure", "yes"),
            ],
        ),
        (
            "/dashboard/operator/smpp-users/1",
            vec![field("max_binds", "3")],
        ),
        (
            "/dashboard/operator/smpp-users/revoke",
            vec![field("system_id", "acme"), field("sure", "yes")],
        ),
        (
            "/dashboard/operator/carriers/handset",
            vec![
                field("from", "+37120000001"),
                field("to", "1234"),
                field("message", "Hello"),
            ],
        ),
    ]
}

fn borrowed<'a>(fields: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    let fields = fields.iter();
    fields
        .map(|(name, value)| (*name, value.as_str()))
        .collect()
}

#[test]
fn others_can_neither_view_nor_change_anything() {
    let service = Service::start(Backend::Sqlite);
    assert_eq!(register(&service, "Acme", "a brand", None), "1");
    let mut others = [
        ("member", joined(&service, "ann@example.com", &[])),
        (
            "admin",
            joined(&service, "adam@example.com", &["--role", "admin"]),
        ),
    ];
    let before = current_state(&service);
    for (role, browser) in &mut others {
        for path in PAGES {
            let page = browser.get(path);
            assert_eq!(page.status, 403, "{role} {path}: {}", page.text());
            assert!(
                page.text().contains("You do not have access to this page"),
                "{role} {path}"
            );
        }
        for (path, fields) in forms() {
            let refused = post(browser, path, &borrowed(&fields));
            assert_eq!(refused.status, 403, "{role} {path}: {}", refused.text());
        }
    }
    let mut stranger = Browser::new(&service);
    for path in PAGES {
        assert_sent_to_sign_in(path, &stranger.get(path));
    }
    for (path, fields) in forms() {
        assert_sent_to_sign_in(path, &stranger.post(path, &borrowed(&fields)));
    }
    assert_eq!(current_state(&service), before);
}

fn assert_sent_to_sign_in(path: &str, response: &testkit::http::Response) {
    let location = response.header("location").unwrap_or_default();
    assert!(
        response.status == 303 && location.starts_with("/dashboard/sign-in"),
        "{path}: {} {location}",
        response.status
    );
}

#[test]
fn a_form_of_another_site_changes_nothing() {
    let service = Service::start(Backend::Sqlite);
    register(&service, "Acme", "a brand", None);
    let mut browser = operator(&service);
    let other = joined(&service, "other@example.com", &["--role", "operator"]);
    let foreign = form_token(&other);
    let before = current_state(&service);
    for (path, fields) in forms() {
        for (case, token) in [
            ("none", None),
            ("empty", Some("")),
            ("another session's", Some(foreign.as_str())),
        ] {
            let mut all = borrowed(&fields);
            all.extend(token.map(|token| ("form_token", token)));
            let refused = browser.post(path, &all);
            assert_eq!(refused.status, 403, "{case} {path}: {}", refused.text());
        }
    }
    assert_eq!(current_state(&service), before);
    // With the right token the same fields do change something, so the table is valid.
    for (path, fields) in forms() {
        let done = post(&mut browser, path, &borrowed(&fields));
        // These show something once: the password, and how a test message ended that nobody listened for.
        let shows = path.ends_with("/smpp-users") || path.ends_with("/test");
        let expected = if shows { 200 } else { 303 };
        assert_eq!(done.status, expected, "{path}: {}", done.text());
    }
    assert_ne!(current_state(&service), before);
}

#[test]
fn unknown_items_are_not_found() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = operator(&service);
    for path in [
        "/dashboard/operator/accounts/99",
        "/dashboard/operator/accounts/0",
        "/dashboard/operator/accounts/x",
        "/dashboard/operator/smpp-users/99",
        "/dashboard/operator/smpp-users/x/live",
        "/dashboard/operator/prices?account=nobody",
        "/dashboard/operator/prices?channel=fax",
        "/dashboard/operator/prices.csv?version=9",
        "/dashboard/operator/prices.csv?version=x",
    ] {
        let page = browser.get(path);
        assert_eq!(page.status, 404, "{path}: {}", page.text());
    }
    for (path, fields, expected) in [
        (
            "/dashboard/operator/accounts/99/credit",
            [("amount", "1")],
            404,
        ),
        (
            "/dashboard/operator/senders/99",
            [("decision", "approve")],
            404,
        ),
        (
            "/dashboard/operator/senders/99",
            [("decision", "praise")],
            400,
        ),
        (
            "/dashboard/operator/accounts/1/state",
            [("state", "odd")],
            400,
        ),
        (
            "/dashboard/operator/hosts/replay",
            [("address", "https://")],
            400,
        ),
        (
            "/dashboard/operator/hosts/replay",
            [("address", "a/b://c/d")],
            400,
        ),
    ] {
        let refused = post(&mut browser, path, &fields);
        assert_eq!(refused.status, expected, "{path}: {}", refused.text());
    }
}
