//! Signing in by password, and out.

use testkit::Backend;

use super::{Browser, PASSWORD, joined, on_both_backends};
use crate::rest::service::Service;

on_both_backends!(
    a_password_opens_a_session_that_ends_with_signing_out,
    every_failed_sign_in_looks_the_same,
    sign_in_redirects_only_to_our_own_pages,
    a_stranger_cannot_lock_a_person_out_of_their_own_browser,
);

const WRONG: &str = "The email address or the password is wrong.";

/// A service with one person.
fn with_ann(backend: Backend) -> Service {
    let service = Service::start(backend);
    joined(&service, "ann@example.com", &[]);
    service
}

fn a_password_opens_a_session_that_ends_with_signing_out(backend: Backend) {
    let service = with_ann(backend);
    let mut browser = Browser::new(&service);
    let redirect = browser.get("/dashboard");
    assert_eq!(
        (redirect.status, redirect.header("location")),
        (303, Some("/dashboard/sign-in"))
    );
    browser.follow(&redirect);
    browser.set_cookie("switchboard", "planted");
    let signed_in = browser.submit(&[("email", " ANN@example.com "), ("password", PASSWORD)]);
    assert_eq!(
        (signed_in.status, signed_in.header("location")),
        (303, Some("/dashboard"))
    );
    let session = browser.cookie("switchboard").expect("a session").to_owned();
    assert_ne!(session, "planted", "an existing session is never reused");
    assert_eq!(browser.follow(&signed_in).status, 200);
    let again = browser.get("/dashboard/sign-in");
    assert_eq!(
        again.header("location"),
        Some("/dashboard"),
        "signed in already"
    );

    browser.get("/dashboard");
    let foreign = browser.post("/dashboard/sign-out", &[]);
    assert_eq!(foreign.status, 403, "another site cannot sign a person out");
    browser.get("/dashboard");
    let out = browser.sign_out();
    assert_eq!(
        (out.status, out.header("location")),
        (303, Some("/dashboard/sign-in"))
    );
    assert_eq!(browser.cookie("switchboard"), None);
    browser.set_cookie("switchboard", &session);
    assert_eq!(
        browser.get("/dashboard").status,
        303,
        "the old cookie does not work"
    );
}

fn every_failed_sign_in_looks_the_same(backend: Backend) {
    let service = with_ann(backend);
    let mut pages = Vec::new();
    for (case, email, password) in [
        ("wrong password", "ann@example.com", "violet tram twelve"),
        ("unknown person", "bob@example.com", PASSWORD),
        ("no address", "ann", PASSWORD),
        ("no password", "ann@example.com", ""),
    ] {
        let mut browser = Browser::new(&service);
        browser.get("/dashboard/sign-in");
        let refused = browser.submit(&[("email", email), ("password", password)]);
        assert_eq!(refused.status, 401, "{case}");
        assert_eq!(browser.cookie("switchboard"), None, "{case}");
        let text = refused.text();
        assert!(text.contains(WRONG), "{case}: {text}");
        assert!(
            text.contains(&format!("value=\"{email}\"")),
            "{case}: {text}"
        );
        assert!(
            !text.contains(PASSWORD),
            "{case}: a password is never shown"
        );
        let token = browser.hidden("form_token").expect("a token");
        pages.push(text.replace(email, "").replace(&token, ""));
    }
    pages.dedup();
    assert_eq!(pages.len(), 1, "{pages:#?}");
}

fn sign_in_redirects_only_to_our_own_pages(backend: Backend) {
    let service = with_ann(backend);
    for (next, expected) in [
        ("/oauth/consent/abc", "/oauth/consent/abc"),
        ("//evil.example", "/dashboard"),
        ("https://evil.example/dashboard/", "/dashboard"),
        ("/\\evil.example", "/dashboard"),
        ("/dashboard/\t/evil.example", "/dashboard"),
        ("/dashboard/%0d%0aSet-Cookie:x=y", "/dashboard"),
        ("javascript:alert(1)", "/dashboard"),
    ] {
        let mut browser = Browser::new(&service);
        let query = url::form_urlencoded::byte_serialize(next.as_bytes()).collect::<String>();
        let page = browser.get(&format!("/dashboard/sign-in?next={query}"));
        let carried = browser.hidden("next");
        assert_eq!(page.status, 200, "{next}");
        assert_eq!(
            carried.as_deref().unwrap_or("/dashboard"),
            expected,
            "{next}"
        );
        let token = browser.hidden("form_token").expect("a token");
        let fields = [
            ("form_token", token.as_str()),
            ("email", "ann@example.com"),
            ("password", PASSWORD),
            ("next", next),
        ];
        let signed_in = browser.post("/dashboard/sign-in", &fields);
        assert_eq!(
            (signed_in.status, signed_in.header("location")),
            (303, Some(expected)),
            "{next}"
        );
        let there = browser.get(&format!("/dashboard/sign-in?next={query}"));
        assert_eq!(
            there.header("location"),
            Some(expected),
            "signed in: {next}"
        );
    }
}

/// Otherwise another site could sign its visitors in as somebody else.
#[test]
fn a_forged_form_signs_nobody_in() {
    let service = with_ann(Backend::Sqlite);
    let fill = |token: &str| {
        vec![
            ("form_token".to_owned(), token.to_owned()),
            ("email".to_owned(), "ann@example.com".to_owned()),
            ("password".to_owned(), PASSWORD.to_owned()),
        ]
    };
    let mut other = Browser::new(&service);
    other.get("/dashboard/sign-in");
    let others = other.hidden("form_token").expect("a token");
    for (case, token, has_cookie, site) in [
        ("no token", "", true, None),
        ("made up", "x", true, None),
        ("another browser's", others.as_str(), true, None),
        ("without the cookie", others.as_str(), false, None),
        ("sent by another site", "own", true, Some("cross-site")),
        ("sent by a sibling site", "own", true, Some("same-site")),
    ] {
        let mut browser = Browser::new(&service);
        if has_cookie {
            browser.get("/dashboard/sign-in");
        }
        let own = has_cookie.then(|| browser.hidden("form_token").expect("a token"));
        let token = if token == "own" {
            own.as_deref().expect("a token")
        } else {
            token
        };
        if let Some(site) = site {
            browser.set_header("Sec-Fetch-Site", site);
        }
        let fields = fill(token);
        let fields: Vec<(&str, &str)> = fields
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        let refused = browser.post("/dashboard/sign-in", &fields);
        assert_eq!(refused.status, 403, "{case}: {}", refused.text());
        assert_eq!(browser.cookie("switchboard"), None, "{case}");
        // The returned page works.
        browser.set_header("Sec-Fetch-Site", "same-origin");
        let signed_in = browser.submit(&[("email", "ann@example.com"), ("password", PASSWORD)]);
        assert_eq!(signed_in.status, 303, "{case}: {}", signed_in.text());
    }
}

/// By address, for any person; and by person, from any address.
#[test]
fn password_guessing_is_slowed_down() {
    let service = Service::with(Backend::Sqlite, |server| server.config(BEHIND_A_PROXY));
    joined(&service, "ann@example.com", &[]);
    let sign_in_from = |address: &str, email: &str, password: &str| {
        let mut browser = Browser::new(&service);
        browser.set_header("X-Forwarded-For", address);
        browser.get("/dashboard/sign-in");
        browser.submit(&[("email", email), ("password", password)])
    };
    for n in 0..10 {
        let refused = sign_in_from("192.0.2.1", &format!("{n}@example.com"), "wrong");
        assert_eq!(refused.status, 401, "{n}");
    }
    let stopped = sign_in_from("192.0.2.1", "ann@example.com", PASSWORD);
    assert_eq!(stopped.status, 429, "even with the right password");
    let wait: u32 = stopped
        .header("retry-after")
        .expect("a time")
        .parse()
        .expect("seconds");
    assert!((1..=6).contains(&wait), "{wait}");
    assert!(
        stopped.text().contains("Too many attempts"),
        "{}",
        stopped.text()
    );
    assert!(
        stopped.text().contains("value=\"ann@example.com\""),
        "the input is kept"
    );
    assert_eq!(
        sign_in_from("192.0.2.2", "ann@example.com", PASSWORD).status,
        303,
        "other addresses are not affected"
    );

    for n in 0..20 {
        let refused = sign_in_from(&format!("198.51.100.{n}"), "ann@example.com", "wrong");
        assert_eq!(refused.status, 401, "{n}");
    }
    let stopped = sign_in_from("203.0.113.1", "Ann@example.com", PASSWORD);
    assert_eq!(stopped.status, 429, "from any address");
    assert_eq!(
        sign_in_from("203.0.113.1", "bob@example.com", "wrong").status,
        401
    );
}

const BEHIND_A_PROXY: &str = "[auth]\ntrusted_proxies = [\"127.0.0.0/8\"]";

/// Wrong passwords from many addresses block a sign-in, but not in a browser where the person was signed in before.
fn a_stranger_cannot_lock_a_person_out_of_their_own_browser(backend: Backend) {
    let mut service = Service::with(backend, |server| server.config(BEHIND_A_PROXY));
    let mut own = joined(&service, "ann@example.com", &[]);
    own.get("/dashboard");
    own.sign_out();
    let is_stopped = |service: &Service, n: u8| {
        let mut browser = Browser::new(service);
        browser.set_header("X-Forwarded-For", &format!("198.51.100.{n}"));
        browser.get("/dashboard/sign-in");
        let refused = browser.submit(&[("email", "ann@example.com"), ("password", "wrong")]);
        assert!([401, 429].contains(&refused.status), "{}", refused.status);
        refused.status == 429
    };
    // One failure is forgiven every half minute, so a slow machine needs more of them.
    let stopped = (0..200).any(|n| is_stopped(&service, n));
    assert!(stopped, "guesses are not limited");
    own.set_header("X-Forwarded-For", "192.0.2.7");
    for (password, expected) in [("wrong", 401), (PASSWORD, 303)] {
        own.get("/dashboard/sign-in");
        let answer = own.submit(&[("email", "ann@example.com"), ("password", password)]);
        assert_eq!(answer.status, expected, "it has its own count: {password}");
    }
    // The count is in the database; otherwise twenty more would be allowed.
    service.server.restart();
    let stopped = (200..210).any(|n| is_stopped(&service, n));
    assert!(stopped, "a restart does not reset the count");
}

/// Over HTTPS a cookie is bound to this host.
#[test]
fn cookies_are_bound_to_the_host_over_https() {
    let service = Service::with(Backend::Sqlite, |server| {
        server.config("[urls]\ndashboard = \"https://dashboard.example\"")
    });
    let page = Browser::new(&service).get("/dashboard/sign-in");
    let cookie = page.header("set-cookie").expect("a cookie").to_owned();
    assert!(cookie.starts_with("__Host-switchboard-form="), "{cookie}");
    let browser = joined(&service, "ann@example.com", &[]);
    assert!(browser.cookie("__Host-switchboard").is_some());
    for attribute in ["; Path=/", "; HttpOnly", "; SameSite=Lax", "; Secure"] {
        assert!(cookie.contains(attribute), "{attribute}: {cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
}
