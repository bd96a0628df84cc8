//! From an invitation to a session.

use testkit::Backend;

use super::{Browser, PASSWORD, invite, joined, on_both_backends, path};
use crate::rest::service::Service;

on_both_backends!(
    an_invitation_leads_to_the_dashboard_of_its_account,
    a_link_works_once,
    a_refused_password_does_not_use_up_the_link,
    a_new_password_is_set_by_a_new_link,
);

fn an_invitation_leads_to_the_dashboard_of_its_account(backend: Backend) {
    let service = Service::start(backend);
    service.create_account("Acme & <Sons>");
    let invitation = invite(
        &service,
        "Ann@Example.com",
        &["--role", "admin", "--account", "Acme & <Sons>"],
    );
    assert_eq!(invitation["email"], "ann@example.com");
    assert_eq!(
        (&invitation["role"], &invitation["account"]),
        (&"admin".into(), &"Acme & <Sons>".into())
    );
    let mut browser = Browser::new(&service);
    let link = path(&invitation);
    for view in ["first", "second"] {
        let page = browser.get(&link);
        assert_eq!(page.status, 200, "{view}");
        let text = page.text();
        assert!(
            text.contains("the account Acme &#38; &#60;Sons&#62; as admin"),
            "{view}: {text}"
        );
        assert!(text.contains("value=\"ann@example.com\""), "{view}: {text}");
        assert!(text.contains("At least 12 characters"), "{view}: {text}");
    }
    let entered = browser.submit(&[("password", PASSWORD), ("repeated", PASSWORD)]);
    assert_eq!(
        (entered.status, entered.header("location")),
        (303, Some("/dashboard"))
    );
    let page = browser.follow(&entered).text();
    assert!(page.contains("Acme &#38; &#60;Sons&#62;"), "{page}");
    assert!(
        page.contains("50.00 EUR") && page.contains("ann@example.com"),
        "{page}"
    );
    assert!(
        !page.contains("100.00 EUR") && !page.contains("first token"),
        "another account: {page}"
    );
    assert!(
        !page.contains("Set a password"),
        "the password is already set: {page}"
    );
}

fn a_link_works_once(backend: Backend) {
    let service = Service::start(backend);
    let link = path(&invite(&service, "ann@example.com", &[]));
    let mut ann = Browser::new(&service);
    ann.get(&link);
    let mut thief = Browser::new(&service);
    thief.get(&link);
    let entered = ann.submit(&[("password", PASSWORD), ("repeated", PASSWORD)]);
    assert_eq!(entered.status, 303, "{}", entered.text());
    let chosen = [
        ("password", "another good phrase"),
        ("repeated", "another good phrase"),
    ];
    let late = thief.submit(&chosen);
    assert_eq!(late.status, 404, "{}", late.text());
    assert_eq!(thief.cookie("switchboard"), None);
    for (case, path) in [
        ("used", link.as_str()),
        ("unknown", "/dashboard/invitation/nonsense"),
    ] {
        let page = Browser::new(&service).get(path);
        assert_eq!(page.status, 404, "{case}");
        assert!(page.text().contains("This link does not work"), "{case}");
    }
}

fn a_refused_password_does_not_use_up_the_link(backend: Backend) {
    let service = Service::start(backend);
    let link = path(&invite(&service, "ann@example.com", &[]));
    let mut browser = Browser::new(&service);
    browser.get(&link);
    for (password, repeated, expected) in [
        ("too short", "too short", "shorter than 12 characters"),
        ("password1234", "password1234", "tried first"),
        ("ann@example.com", "ann@example.com", "tried first"),
        (
            "aaaaaaaaaaaaaaaa",
            "aaaaaaaaaaaaaaaa",
            "same few characters",
        ),
        (PASSWORD, "violet tram twelve", "do not match"),
    ] {
        let page = browser.submit(&[("password", password), ("repeated", repeated)]);
        assert_eq!(page.status, 422, "{password}: {}", page.text());
        assert!(
            page.text().contains(expected),
            "{password}: {}",
            page.text()
        );
        assert!(!page.text().contains(PASSWORD), "a password is never shown");
        assert_eq!(browser.cookie("switchboard"), None, "{password}");
    }
    let entered = browser.submit(&[("password", PASSWORD), ("repeated", PASSWORD)]);
    assert_eq!(entered.status, 303, "{}", entered.text());
}

fn a_new_password_is_set_by_a_new_link(backend: Backend) {
    let service = Service::start(backend);
    let mut ann = joined(&service, "ann@example.com", &["--role", "admin"]);
    let refused = service.server.cli(&[
        "invite",
        "create",
        "--email",
        "ann@example.com",
        "--role",
        "operator",
    ]);
    assert!(!refused.status.success());
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("can sign in already, as admin"), "{error}");

    let invitation = invite(&service, "ann@example.com", &[]);
    assert_eq!(
        (&invitation["newPassword"], &invitation["role"]),
        (&true.into(), &"admin".into())
    );
    let mut again = Browser::new(&service);
    again.get(&path(&invitation));
    let changed = [
        ("password", "orange tram twelve"),
        ("repeated", "orange tram twelve"),
    ];
    assert_eq!(again.submit(&changed).status, 303);
    assert_eq!(again.get("/dashboard").status, 200);
    assert_eq!(
        ann.get("/dashboard").status,
        303,
        "older sessions have ended"
    );
    for (password, status) in [(PASSWORD, 401), ("orange tram twelve", 303)] {
        let mut browser = Browser::new(&service);
        browser.get("/dashboard/sign-in");
        let signed_in = browser.submit(&[("email", "ann@example.com"), ("password", password)]);
        assert_eq!(signed_in.status, status, "{password}");
    }
}

#[test]
fn an_expired_link_does_not_work() {
    let service = Service::start(Backend::Sqlite);
    let link = path(&invite(&service, "ann@example.com", &[]));
    let mut browser = Browser::new(&service);
    browser.get(&link);
    let file = service.server.data_dir().join("switchboard.db");
    let file = rusqlite::Connection::open(file).expect("the database opens");
    file.busy_timeout(std::time::Duration::from_secs(10))
        .expect("a timeout");
    file.execute("UPDATE invitation SET expires_us = 1", [])
        .expect("the statement is valid");
    let late = browser.submit(&[("password", PASSWORD), ("repeated", PASSWORD)]);
    assert_eq!(late.status, 404, "{}", late.text());
    assert_eq!(browser.get(&link).status, 404);
    assert_eq!(browser.cookie("switchboard"), None);
}

#[test]
fn the_account_is_the_only_one_or_must_be_named() {
    let service = Service::start(Backend::Sqlite);
    assert_eq!(invite(&service, "ann@example.com", &[])["account"], "main");
    service.create_account("second");
    let refusal = |arguments: &[&str]| {
        let mut all = vec!["invite", "create", "--email", "bob@example.com"];
        all.extend_from_slice(arguments);
        let output = service.server.cli(&all);
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (arguments, expected) in [
        (
            &[][..],
            "there are 2 accounts; name one with --account NAME",
        ),
        (
            &["--account", "third"][..],
            "there is no account named 'third'",
        ),
        (&["--role", "boss"][..], "is not a role"),
        (&["--email", "nobody"][..], "cannot be used multiple times"),
    ] {
        let error = refusal(arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    let bob = invite(&service, "bob@example.com", &["--account", "second"]);
    assert_eq!(
        (&bob["role"], &bob["account"]),
        (&"member".into(), &"second".into())
    );
    let operator = invite(&service, "op@example.com", &["--role", "operator"]);
    assert_eq!(operator["account"], serde_json::Value::Null);
    let mut browser = Browser::new(&service);
    browser.get(&path(&operator));
    assert_eq!(
        browser
            .submit(&[("password", PASSWORD), ("repeated", PASSWORD)])
            .status,
        303
    );
    let home = browser.get("/dashboard");
    assert_eq!(
        (home.status, home.header("location")),
        (303, Some("/dashboard/operator/accounts"))
    );
    let page = browser.get("/dashboard/password");
    assert_eq!(page.status, 303, "{}", page.text());
}
