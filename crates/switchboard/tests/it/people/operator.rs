//! The operator: from the link of the first start to a password.

use testkit::Backend;

use super::{Browser, PASSWORD, joined, on_both_backends};
use crate::rest::service::Service;

on_both_backends!(the_operator_may_set_a_password_after_the_first_link);

/// A browser in which the link of the first start was used.
fn by_link(service: &Service) -> Browser<'_> {
    let output = service.server.output();
    let (_, rest) = output.split_once("/dashboard/sign-in/").expect("a link");
    let link = rest.lines().next().expect("a line");
    let mut browser = Browser::new(service);
    browser.get(&format!("/dashboard/sign-in/{link}"));
    let signed_in = browser.submit(&[]);
    assert_eq!(
        (signed_in.status, signed_in.header("location")),
        (303, Some("/dashboard"))
    );
    browser
}

fn the_operator_may_set_a_password_after_the_first_link(backend: Backend) {
    let service = Service::start(backend);
    joined(&service, "ann@example.com", &[]);
    let mut browser = by_link(&service);
    let page = browser.get("/dashboard").text();
    assert!(page.contains("href=\"/dashboard/password\""), "{page}");
    let link_session = browser.cookie("switchboard").expect("a session").to_owned();

    let page = browser.get("/dashboard/password");
    assert_eq!(page.status, 200, "{}", page.text());
    for (email, password, expected) in [
        ("nobody", PASSWORD, "Write it like ann@example.com."),
        (
            "<script>alert(1)</script>",
            PASSWORD,
            "value=\"&#60;script&#62;alert(1)&#60;/script&#62;\"",
        ),
        (
            "ANN@example.com",
            PASSWORD,
            "This address is already in use.",
        ),
        ("op@example.com", "short", "shorter than 12 characters"),
    ] {
        let fields = [
            ("email", email),
            ("password", password),
            ("repeated", password),
        ];
        let page = browser.submit(&fields);
        assert_eq!(page.status, 422, "{email}: {}", page.text());
        assert!(page.text().contains(expected), "{email}: {}", page.text());
    }
    let page = browser.submit(&[
        ("email", "op@example.com"),
        ("password", "x"),
        ("repeated", "x"),
    ]);
    assert!(
        page.text().contains("value=\"op@example.com\""),
        "the input is kept"
    );

    let fields = [
        ("email", "Op@example.com"),
        ("password", PASSWORD),
        ("repeated", PASSWORD),
    ];
    let saved = browser.submit(&fields);
    assert_eq!(saved.status, 303, "{}", saved.text());
    let page = browser.follow(&saved).text();
    assert!(
        page.contains("op@example.com") && page.contains("100.00 EUR"),
        "{page}"
    );
    assert!(!page.contains("/dashboard/password"), "{page}");
    let home = browser.get("/dashboard/password");
    assert_eq!(
        home.header("location"),
        Some("/dashboard"),
        "nothing more to set"
    );

    let mut old = Browser::new(&service);
    old.set_cookie("switchboard", &link_session);
    assert_eq!(old.get("/dashboard").status, 303, "the session was rotated");
    let mut later = Browser::new(&service);
    later.get("/dashboard/sign-in");
    let signed_in = later.submit(&[("email", "op@example.com"), ("password", PASSWORD)]);
    assert_eq!(signed_in.status, 303, "{}", signed_in.text());
}

#[test]
fn the_form_of_another_session_sets_nothing() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = by_link(&service);
    let mut other = joined(&service, "ann@example.com", &[]);
    other.get("/dashboard");
    let page = other.get("/dashboard/sign-in");
    assert_eq!(page.status, 303, "she is signed in already");
    let fields = [
        ("email", "op@example.com"),
        ("password", PASSWORD),
        ("repeated", PASSWORD),
    ];
    for (case, token) in [
        ("none", None),
        ("made up", Some("0".repeat(64))),
        ("empty", Some(String::new())),
    ] {
        let mut all = fields.to_vec();
        let token = token.as_deref();
        all.extend(token.map(|token| ("form_token", token)));
        let refused = browser.post("/dashboard/password", &all);
        assert_eq!(refused.status, 403, "{case}: {}", refused.text());
    }
    let mut later = Browser::new(&service);
    later.get("/dashboard/sign-in");
    let signed_in = later.submit(&[("email", "op@example.com"), ("password", PASSWORD)]);
    assert_eq!(signed_in.status, 401, "nobody was created");
}
