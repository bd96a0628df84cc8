//! What the consent page offers, and what it shows about a client.

use super::client::{Client, REDIRECT, is_pending, parameter};
use super::consent::APPROVE;
use super::{Browser, PASSWORD, invite, joined, path};
use crate::rest::service::Service;
use testkit::Backend;

#[test]
fn only_offered_scopes_can_be_granted() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = joined(&service, "ann@example.com", &[]);
    let client = Client::new(&service);
    let request = client.request_consent("sms:rates numbers:read");
    for (case, fields, status) in [
        ("nothing", &[APPROVE][..], 422),
        ("not asked for", &[("scope", "sms:send"), APPROVE], 400),
        (
            "one of two not asked for",
            &[("scope", "sms:rates"), ("scope", "sms:send"), APPROVE],
            400,
        ),
        ("no scope", &[("scope", "sms:all"), APPROVE], 400),
        (
            "not a permission for clients",
            &[("scope", "viber:send"), APPROVE],
            400,
        ),
        ("empty", &[("scope", ""), APPROVE], 400),
        ("no decision", &[("scope", "sms:rates")], 400),
        (
            "another decision",
            &[("scope", "sms:rates"), ("decision", "maybe")],
            400,
        ),
    ] {
        let page = browser.get(&request);
        assert_eq!(page.status, 200, "{case}");
        let refused = browser.submit(fields);
        assert_eq!(refused.status, status, "{case}: {}", refused.text());
        assert!(is_pending(&mut browser, &request), "{case}");
    }
    browser.get(&request);
    let page = browser.submit(&[APPROVE]).text();
    assert!(page.contains("Nothing is ticked."), "{page}");
    assert!(!page.contains("\" checked"), "as it was sent: {page}");
    let answered = browser.submit(&[("scope", "numbers:read"), ("scope", "sms:rates"), APPROVE]);
    let code = parameter(&answered, "code").expect("a code");
    assert_eq!(client.redeem(&code)["scope"], "sms:rates numbers:read");
}

/// Without a scope in the request all five are offered, and the client gets those that the person picks.
#[test]
fn without_a_scope_all_are_offered_and_none_is_ticked() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = joined(&service, "ann@example.com", &[]);
    let client = Client::new(&service);
    for (scope, picked) in [
        ("", "numbers:read"),
        ("offline_access", "sms:send sms:rates"),
    ] {
        let request = client.request_consent(scope);
        let page = browser.get(&request).text();
        for offered in domain::oauth::SCOPES {
            let offered = format!("value=\"{offered}\">");
            assert!(page.contains(&offered), "{offered}: {page}");
        }
        assert_eq!(page.matches("type=\"checkbox\"").count(), 5, "{page}");
        assert!(!page.contains("\" checked"), "{page}");
        assert!(page.contains("Tick what it may do."), "{page}");

        let refused = browser.submit(&[APPROVE]);
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert!(refused.text().contains("Nothing is ticked."));
        assert!(is_pending(&mut browser, &request));
        let foreign = browser.submit(&[("scope", "viber:send"), APPROVE]);
        assert_eq!(foreign.status, 400, "{}", foreign.text());

        browser.get(&request);
        let mut fields: Vec<(&str, &str)> = picked.split(' ').map(|name| ("scope", name)).collect();
        fields.push(APPROVE);
        let answered = browser.submit(&fields);
        let code = parameter(&answered, "code").expect("a code");
        assert_eq!(client.redeem(&code)["scope"], picked);
    }
}

#[test]
fn nobody_can_consent_for_a_suspended_or_missing_account() {
    let service = Service::start(Backend::Sqlite);
    let client = Client::new(&service);
    let request = client.request_consent("sms:send");
    let mut ann = joined(&service, "ann@example.com", &[]);
    ann.get(&request);
    let token = ann.hidden("form_token").expect("a token");
    assert!(
        service
            .server
            .cli(&["account", "suspend", "main"])
            .status
            .success()
    );
    let fields = [
        ("form_token", token.as_str()),
        ("scope", "sms:send"),
        APPROVE,
    ];
    for refused in [ann.get(&request), ann.post(&request, &fields)] {
        assert_eq!(refused.status, 403, "{}", refused.text());
        assert!(
            refused.text().contains("This account is suspended"),
            "{}",
            refused.text()
        );
    }
    service.create_account("second");
    let mut operator = Browser::new(&service);
    operator.get(&path(&invite(
        &service,
        "op@example.com",
        &["--role", "operator"],
    )));
    operator.submit(&[("password", PASSWORD), ("repeated", PASSWORD)]);
    let refused = operator.get(&request);
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(
        refused.text().contains("You do not belong to an account"),
        "{}",
        refused.text()
    );
    // After signing out, another person can sign in and continue here.
    let out = operator.sign_out();
    let back = format!("/dashboard/sign-in?next={request}");
    assert_eq!(out.header("location"), Some(back.as_str()));
    let resumed = service.server.cli(&["account", "resume", "main"]);
    assert!(resumed.status.success());
    assert!(is_pending(&mut ann, &request), "nobody answered it");
}

#[test]
fn an_expired_request_is_not_found() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = joined(&service, "ann@example.com", &[]);
    let slow = Client::new(&service).request_consent("sms:send");
    let file = service.server.data_dir().join("switchboard.db");
    let file = rusqlite::Connection::open(file).expect("the database opens");
    file.busy_timeout(std::time::Duration::from_secs(10))
        .expect("a timeout");
    file.execute("UPDATE oauth_request SET expires_us = 1", [])
        .expect("the statement is valid");
    for request in [slow.as_str(), "/oauth/consent/unknown"] {
        let page = browser.get(request);
        assert_eq!(page.status, 404, "{request}");
        let text = page.text();
        assert!(
            text.contains("start again in the program"),
            "{request}: {text}"
        );
    }
}

#[test]
fn hostile_names_are_escaped() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = joined(&service, "ann@example.com", &[]);
    for (name, shown) in [
        (
            "<script>alert(1)</script>",
            "&#60;script&#62;alert(1)&#60;/script&#62;",
        ),
        (
            "\"><img src=x onerror=alert(1)>",
            "&#34;&#62;&#60;img src=x onerror=alert(1)&#62;",
        ),
        (
            "</title></bdi><form action=//evil>",
            "&#60;/title&#62;&#60;/bdi&#62;&#60;form action=//evil&#62;",
        ),
        ("' onclick='alert(1)", "&#39; onclick=&#39;alert(1)"),
        (
            "{{ account }} {% include x %}",
            "{{ account }} {% include x %}",
        ),
        ("&lt;b&gt;", "&#38;lt;b&#38;gt;"),
    ] {
        let client = Client::with(&service, name, REDIRECT);
        let page = browser.get(&client.request_consent("sms:send")).text();
        assert!(
            page.contains(&format!("<bdi>{shown}</bdi>")),
            "{name}: {page}"
        );
        let raw = name.contains(['<', '"']) && page.contains(name);
        assert!(!raw && !page.contains("<script"), "{name}: {page}");
        assert_eq!(page.matches("<form").count(), 2, "{name}: {page}");
    }
}

/// The page shows the host of the redirect, with a warning if any local program could receive it. It may redirect only
/// there, and cannot be framed.
#[test]
fn the_redirect_target_is_shown_and_allowed() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = joined(&service, "ann@example.com", &[]);
    for (redirect, host, warns, forms) in [
        (
            REDIRECT,
            "client.example",
            false,
            "form-action 'self' https:",
        ),
        (
            "http://127.0.0.1:33418/cb",
            "127.0.0.1:33418",
            true,
            "form-action 'self' https: http:",
        ),
        (
            "http://localhost:8123/cb",
            "localhost:8123",
            true,
            "form-action 'self' https: http:",
        ),
        (
            "com.example.app:/cb",
            "com.example.app:",
            true,
            "form-action 'self' https: com.example.app:",
        ),
    ] {
        let client = Client::with(&service, "Agent", redirect);
        let page = browser.get(&client.request_consent("sms:send"));
        let text = page.text();
        assert!(
            text.contains(&format!("<strong>{host}</strong>")),
            "{redirect}: {text}"
        );
        let warned = text.contains("A program on this device gets the answer.");
        assert_eq!(warned, warns, "{redirect}: {text}");
        let policy = page.header("content-security-policy").expect("a policy");
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(
            !policy.contains("script-src") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert!(policy.ends_with(forms), "{policy}");
        assert_eq!(page.header("x-frame-options"), Some("DENY"));
        assert_eq!(page.header("cache-control"), Some("no-store"));
        let answered = browser.submit(&[("scope", "sms:send"), APPROVE]);
        let to = answered.header("location").expect("a location");
        assert!(to.starts_with(&format!("{redirect}?code=")), "{to}");
    }
}
