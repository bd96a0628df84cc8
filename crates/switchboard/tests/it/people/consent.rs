//! Consent: what a client is granted, and answers that are refused.

use domain::Money;
use testkit::Backend;

use super::client::{Client, REDIRECT, is_pending, parameter};
use super::security::send;
use super::{Browser, PASSWORD, invite, joined, on_both_backends, path};
use crate::dashboard::asking::age_sessions;
use crate::rest::service::{Service, wait_for};

on_both_backends!(
    only_ticked_scopes_are_granted,
    a_client_spends_what_the_person_allows,
    a_repeated_request_counts_once_for_the_cap,
    permission_to_spend_asks_for_the_password,
    denying_grants_nothing,
    a_request_is_answered_once,
    only_the_form_of_the_same_session_and_request_is_accepted,
    only_admins_can_consent_if_the_account_requires_it,
    clients_are_disconnected_with_the_person_who_connected_them,
    a_new_password_disconnects_clients_if_ticked,
);

const API: &str = "/dashboard/settings/api";
pub(super) const APPROVE: (&str, &str) = ("decision", "approve");
const DENY: (&str, &str) = ("decision", "deny");

fn only_ticked_scopes_are_granted(backend: Backend) {
    let service = Service::start(backend);
    service.create_account("second");
    joined(&service, "bob@example.com", &["--account", "second"]);
    let client = Client::new(&service);
    let request = client.request_consent("sms:send sms:rates numbers:read");

    let mut browser = Browser::new(&service);
    let redirect = browser.get(&request);
    let sign_in = format!("/dashboard/sign-in?next={request}");
    assert_eq!(
        (redirect.status, redirect.header("location")),
        (303, Some(sign_in.as_str()))
    );
    browser.follow(&redirect);
    let signed_in = browser.submit(&[("email", "bob@example.com"), ("password", PASSWORD)]);
    assert_eq!(signed_in.header("location"), Some(request.as_str()));
    let page = browser.follow(&signed_in);
    assert_eq!(page.status, 200, "{}", page.text());
    let text = page.text();
    for expected in [
        "<bdi>Helpful Agent</bdi>",
        "<strong>client.example</strong>",
        "<strong>second</strong>, balance 50.00 EUR",
        "value=\"sms:send\">",
        "value=\"sms:rates\" checked",
        "value=\"numbers:read\" checked",
        "costs money",
        "Each message is paid from the balance.",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    for unexpected in ["hlr:lookup", "sender:write", "viber:send", "100.00"] {
        assert!(!text.contains(unexpected), "{unexpected}: {text}");
    }

    let answered = browser.submit(&[("scope", "sms:rates"), APPROVE]);
    assert_eq!(answered.status, 303, "{}", answered.text());
    let to = answered.header("location").expect("a location");
    assert!(to.starts_with(&format!("{REDIRECT}?code=")), "{to}");
    assert_eq!(answered.header("cache-control"), Some("no-store"));
    assert_eq!(answered.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(parameter(&answered, "state").as_deref(), Some("the state"));
    assert!(parameter(&answered, "iss").is_some(), "{to}");
    let code = parameter(&answered, "code").expect("a code");
    let granted = client.redeem(&code);
    assert_eq!(granted["scope"], "sms:rates");
    let token = granted["access_token"].as_str().expect("a token");
    let described = service.call_as(token, "GET", "/token", b"").json();
    assert_eq!(described["account"], "second");
    assert_eq!(described["permissions"], serde_json::json!(["sms:rates"]));
    assert_eq!(service.call_as(token, "GET", "/rates", b"").status, 200);
    let sms = br#"{"to":"+37120000001","from":"Acme","message":"Hello"}"#;
    assert_eq!(service.call_as(token, "POST", "/sms", sms).status, 403);

    let list = ["token", "list", "--account", "second", "--json"];
    let tokens = service.server.cli_json(&list).to_string();
    assert!(tokens.contains("oauth:access:"), "{tokens}");
}

fn a_client_spends_what_the_person_allows(backend: Backend) {
    let service = Service::start(backend);
    let as_admin = ["--role", "admin", "--account", "main"];
    let mut browser = joined(&service, "bob@example.com", &as_admin);
    let client = Client::new(&service);
    let request = client.request_consent("sms:send hlr:lookup");
    let page = browser.get(&request).text();
    assert!(page.contains("name=\"daily_cap\""), "{page}");
    assert!(!page.contains(" checked"), "{page}");
    let send = ("scope", "sms:send");
    let wrong = browser.submit(&[send, ("daily_cap", "much"), APPROVE]);
    assert_eq!(wrong.status, 422, "{}", wrong.text());
    assert!(wrong.text().contains("value=\"much\""), "{}", wrong.text());
    let answered = browser.submit(&[send, ("daily_cap", "0.10"), APPROVE]);
    let code = parameter(&answered, "code").expect("a code");
    let granted = client.redeem(&code);
    let token = granted["access_token"].as_str().expect("a token");

    let limits = || service.call_as(token, "GET", "/token?limits", b"").json()["limits"].clone();
    assert_eq!(limits()["clientDailyCap"], "0.10");
    assert_eq!(limits()["clientLeftToday"], "0.10");
    let sms = br#"{"to":["+37120000001","+37120000002"],"from":"Acme","message":"Hello"}"#;
    let price = service.call_as(token, "POST", "/sms/check", sms).json();
    assert_eq!(price["accepted"], true, "{price}");
    assert_eq!(service.call_as(token, "POST", "/sms", sms).status, 200);
    assert_ne!(limits()["clientLeftToday"], "0.10");
    // What is refused for another reason does not count.
    let left = limits()["clientLeftToday"].clone();
    let invalid = br#"{"to":"12","from":"Acme","message":"Hello"}"#;
    assert_eq!(service.call_as(token, "POST", "/sms", invalid).status, 400);
    assert_eq!(limits()["clientLeftToday"], left);

    let before = service.balance();
    let refused = service.call_as(token, "POST", "/sms", sms);
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert_eq!(refused.header("x-error-code"), Some("28"));
    assert!(refused.text().contains("this client"), "{}", refused.text());
    let check = service.call_as(token, "POST", "/sms/check", sms).json();
    assert_eq!(check["refusal"]["error"], 28, "{check}");
    assert_eq!(service.balance(), before, "nothing was charged");
    let own = service.call_as(&service.token, "POST", "/sms", sms);
    assert_eq!(own.status, 200, "the account's own tokens have no such cap");

    let page = browser.get(API).text();
    assert!(page.contains("at most 0.10 EUR a day"), "{page}");
    assert!(page.contains("spends at most 0.10 EUR a day"), "{page}");
    let tokens = service.server.cli_json(&["token", "list", "--json"]);
    for token in tokens.as_array().expect("a list") {
        let is_of_client = token["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("oauth:"));
        let cap = is_of_client.then_some("0.10");
        assert_eq!(token["dailyCap"], serde_json::json!(cap), "{token}");
    }
    let table = service.server.cli(&["token", "list"]);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    let capped = table.lines().filter(|line| line.contains("  0.10  "));
    assert_eq!(capped.count(), 2, "{table}");
}

/// Gives consent, and returns the access token.
pub(super) fn connect(client: &Client, browser: &mut Browser) -> String {
    let request = client.request_consent("sms:rates");
    let page = browser.get(&request);
    assert_eq!(page.status, 200, "{}", page.text());
    let answered = browser.submit(&[("scope", "sms:rates"), APPROVE]);
    let code = parameter(&answered, "code").expect("a code");
    let granted = client.redeem(&code);
    granted["access_token"]
        .as_str()
        .expect("a token")
        .to_owned()
}

fn only_admins_can_consent_if_the_account_requires_it(backend: Backend) {
    let service = Service::start(backend);
    let member_of_main = ["--account", "main"];
    let mut member = joined(&service, "ann@example.com", &member_of_main);
    let as_admin = ["--role", "admin", "--account", "main"];
    let mut admin = joined(&service, "bob@example.com", &as_admin);
    let client = Client::new(&service);
    connect(&client, &mut member);

    admin.get(API);
    let set = send(
        &mut admin,
        "/dashboard/settings/api/consent",
        &[("admins_consent_only", "true")],
    );
    assert_eq!(set.status, 303, "{}", set.text());
    let accounts = service.server.cli_json(&["account", "list", "--json"]);
    assert_eq!(accounts[0]["adminsConsentOnly"], true);
    let request = client.request_consent("sms:rates");
    member.get("/dashboard/settings/security");
    let token = member.token();
    let answer = [
        ("form_token", token.as_str()),
        ("scope", "sms:rates"),
        APPROVE,
    ];
    for refused in [member.get(&request), member.post(&request, &answer)] {
        assert_eq!(refused.status, 403, "{}", refused.text());
        let text = refused.text();
        assert!(text.contains("An admin has to connect this"), "{text}");
    }
    assert!(is_pending(&mut admin, &request), "it is not answered");
    connect(&client, &mut admin);

    let back = ["account", "set", "main", "admins_consent_only=false"];
    let set = service.server.cli(&back);
    assert!(set.status.success(), "{set:?}");
    connect(&client, &mut member);
}

fn clients_are_disconnected_with_the_person_who_connected_them(backend: Backend) {
    let service = Service::start(backend);
    let as_admin = ["--role", "admin", "--account", "main"];
    let mut admin = joined(&service, "bob@example.com", &as_admin);
    let mut member = joined(&service, "ann@example.com", &["--account", "main"]);
    let client = Client::new(&service);
    let (own, anns_token) = (connect(&client, &mut admin), connect(&client, &mut member));
    let status = |token: &str| service.call_as(token, "GET", "/token", b"").status;
    assert_eq!((status(&own), status(&anns_token)), (200, 200));
    let page = admin.get(API).text();
    for email in ["ann@example.com", "bob@example.com"] {
        assert!(page.contains(&format!(">{email}</td>")), "{email}: {page}");
    }
    let people = "/dashboard/settings/people";
    let page = admin.get(people).text();
    let (_, row) = page
        .split_once("aria-label=\"Change ann@example.com\"")
        .expect("ann");
    let (_, id) = row.split_once("name=\"person\" value=\"").expect("an ID");
    let id = id.split('"').next().expect("its end");
    let fields = [("action", "remove"), ("person", id), ("sure", "yes")];
    let removed = send(&mut admin, people, &fields);
    assert_eq!(removed.status, 200, "{}", removed.text());
    wait_for("her client is refused", || {
        (status(&anns_token) == 401).then_some(())
    });
    assert_eq!(status(&own), 200);
}

fn a_new_password_disconnects_clients_if_ticked(backend: Backend) {
    const OTHER: &str = "purple tram eleven";
    let service = Service::start(backend);
    let mut browser = joined(&service, "ann@example.com", &["--account", "main"]);
    let client = Client::new(&service);
    let status = |token: &str| service.call_as(token, "GET", "/token", b"").status;
    let token = connect(&client, &mut browser);
    let password_path = "/dashboard/settings/security/password";
    let change = |browser: &mut Browser, old, new, more: &[(&str, &str)]| {
        browser.get("/dashboard/settings/security");
        let fields = [("old", old), ("password", new), ("repeated", new)];
        let changed = send(browser, password_path, &[&fields[..], more].concat());
        assert_eq!(changed.status, 200, "{}", changed.text());
    };
    change(&mut browser, PASSWORD, OTHER, &[]);
    assert_eq!(status(&token), 200, "the box was not ticked");
    change(&mut browser, OTHER, PASSWORD, &[("disconnect", "true")]);
    wait_for("the client is refused", || {
        (status(&token) == 401).then_some(())
    });

    let token = connect(&client, &mut browser);
    let reset = |more: &[(&str, &str)]| {
        let link = invite(&service, "ann@example.com", &[]);
        let mut browser = Browser::new(&service);
        browser.get(&path(&link));
        let fields = [("password", OTHER), ("repeated", OTHER)];
        let set = browser.submit(&[&fields[..], more].concat());
        assert_eq!(set.status, 303, "{}", set.text());
    };
    reset(&[]);
    assert_eq!(status(&token), 200, "the box was not ticked");
    reset(&[("disconnect", "true")]);
    wait_for("the client is refused", || {
        (status(&token) == 401).then_some(())
    });
}

fn a_repeated_request_counts_once_for_the_cap(backend: Backend) {
    let service = Service::start(backend);
    let as_admin = ["--role", "admin", "--account", "main"];
    let mut browser = joined(&service, "bob@example.com", &as_admin);
    let client = Client::new(&service);
    browser.get(&client.request_consent("sms:send"));
    let send = ("scope", "sms:send");
    let answered = browser.submit(&[send, ("daily_cap", "5"), APPROVE]);
    let granted = client.redeem(&parameter(&answered, "code").expect("a code"));
    let token = granted["access_token"].as_str().expect("a token");
    let left = || {
        let limits = service.call_as(token, "GET", "/token?limits", b"").json();
        let left: Option<Money> = limits["limits"]["clientLeftToday"]
            .as_str()
            .and_then(|left| left.parse().ok());
        left.expect("an amount")
    };
    let sms = br#"{"to":"+37120000001","from":"Acme","message":"Hello"}"#;
    let call = |key: &str| {
        let key = [("Idempotency-Key", key)];
        let response = service.call_with(token, "POST", "/sms", &key, sms);
        assert_eq!(response.status, 200, "{}", response.text());
        response.text()
    };
    let start = left();
    let first = call("key-1");
    let price = start.minus(left());
    assert!(price > Money::ZERO);
    assert_eq!(call("key-1"), first);
    // None of them finds an earlier answer before it is counted.
    let answers: Vec<String> = std::thread::scope(|scope| {
        let calls = [(); 12].map(|()| scope.spawn(|| call("key-2")));
        calls.map(|call| call.join().expect("an answer")).into()
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(left(), start.minus(price).minus(price));
}

fn denying_grants_nothing(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = joined(&service, "ann@example.com", &[]);
    let client = Client::new(&service);
    let request = client.request_consent("sms:send");
    browser.get(&request);
    let answered = browser.submit(&[("scope", "sms:send"), DENY]);
    assert_eq!(answered.status, 303, "{}", answered.text());
    let error = parameter(&answered, "error");
    assert_eq!(error.as_deref(), Some("access_denied"));
    assert_eq!(parameter(&answered, "code"), None);
    assert_eq!(parameter(&answered, "state").as_deref(), Some("the state"));
    assert!(!is_pending(&mut browser, &request));
    let tokens = service.server.cli_json(&["token", "list", "--json"]);
    assert!(!tokens.to_string().contains("oauth:"), "{tokens}");
}

fn a_request_is_answered_once(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = joined(&service, "ann@example.com", &[]);
    let client = Client::new(&service);
    for (first, second) in [(APPROVE, APPROVE), (APPROVE, DENY), (DENY, APPROVE)] {
        let request = client.request_consent("sms:rates");
        browser.get(&request);
        let token = browser.hidden("form_token").expect("a token");
        let fields = |decision| {
            [
                ("form_token", token.as_str()),
                ("scope", "sms:rates"),
                decision,
            ]
        };
        let answered = browser.post(&request, &fields(first));
        assert_eq!(answered.status, 303, "{first:?}");
        for again in [
            browser.post(&request, &fields(second)),
            browser.get(&request),
        ] {
            assert_eq!(again.status, 404, "{first:?} {second:?}");
            assert_eq!(again.header("location"), None);
            assert!(
                again.text().contains("This request is no longer valid"),
                "{}",
                again.text()
            );
        }
    }
    let request = client.request_consent("sms:send sms:rates");
    let page = browser.get(&request);
    assert_eq!(
        page.status, 200,
        "consent is not remembered: the next request is shown again"
    );
}

fn only_the_form_of_the_same_session_and_request_is_accepted(backend: Backend) {
    let service = Service::start(backend);
    let mut ann = joined(&service, "ann@example.com", &[]);
    let mut bob = joined(&service, "bob@example.com", &[]);
    let client = Client::new(&service);
    let (request, other) = (
        client.request_consent("sms:send"),
        client.request_consent("sms:send"),
    );
    ann.get("/dashboard");
    bob.get(&request);
    let bobs_token = bob.hidden("form_token").expect("a token");
    ann.get(&other);
    let other_token = ann.hidden("form_token").expect("a token");
    ann.get(&request);
    let own = ann.hidden("form_token").expect("a token");
    for (case, token, site) in [
        ("none", "", None),
        ("made up", "0123456789", None),
        ("of another session", bobs_token.as_str(), None),
        ("of another request", other_token.as_str(), None),
        (
            "her own, sent by another site",
            own.as_str(),
            Some("cross-site"),
        ),
        (
            "her own, sent by a sibling site",
            own.as_str(),
            Some("same-site"),
        ),
    ] {
        ann.set_header("Sec-Fetch-Site", site.unwrap_or("same-origin"));
        for decision in [APPROVE, DENY] {
            let fields = [("form_token", token), ("scope", "sms:send"), decision];
            let refused = ann.post(&request, &fields);
            assert_eq!(
                refused.status,
                403,
                "{case} {decision:?}: {}",
                refused.text()
            );
            assert_eq!(refused.header("location"), None, "{case}");
            assert!(is_pending(&mut bob, &request), "{case}");
        }
    }
    // Older browsers name only the origin.
    let mut old = Browser::new(&service);
    old.get("/dashboard/sign-in");
    old.submit(&[("email", "ann@example.com"), ("password", PASSWORD)]);
    old.get(&request);
    for origin in ["https://evil.example", "http://127.0.0.1:9"] {
        old.set_header("Origin", origin);
        let refused = old.submit(&[("scope", "sms:send"), APPROVE]);
        assert_eq!(refused.status, 403, "{origin}: {}", refused.text());
        assert!(is_pending(&mut bob, &request), "{origin}");
        old.get(&request);
    }
    let mut signed_out = Browser::new(&service);
    let fields = [("form_token", own.as_str()), ("scope", "sms:send"), APPROVE];
    let refused = signed_out.post(&request, &fields);
    let to = refused.header("location").unwrap_or_default();
    assert!(to.starts_with("/dashboard/sign-in"), "{to}");
    assert!(is_pending(&mut bob, &request) && is_pending(&mut bob, &other));

    ann.set_header("Sec-Fetch-Site", "same-origin");
    ann.get("/dashboard");
    ann.sign_out();
    ann.get("/dashboard/sign-in");
    ann.submit(&[("email", "ann@example.com"), ("password", PASSWORD)]);
    let stale = ann.post(&request, &fields);
    assert_eq!(stale.status, 403, "of a session that has ended");
    ann.get(&request);
    assert_eq!(ann.submit(&[("scope", "sms:send"), APPROVE]).status, 303);
}

fn permission_to_spend_asks_for_the_password(backend: Backend) {
    const SPEND: [(&str, &str); 2] = [("scope", "sms:send"), APPROVE];
    let service = Service::start(backend);
    let mut browser = joined(&service, "ann@example.com", &[]);
    let client = Client::new(&service);
    let request = client.request_consent("sms:send sms:rates");
    let fresh = browser.get(&request).text();
    assert!(!fresh.contains("Current password"), "{fresh}");
    age_sessions(&service);
    for (given, problem) in [
        (None, "Enter your password."),
        (Some("not this one"), "This is not your password."),
    ] {
        let page = browser.get(&request).text();
        assert!(page.contains("Current password"), "{page}");
        let given = given.map(|given| ("current_password", given));
        let fields: Vec<_> = SPEND.into_iter().chain(given).collect();
        let refused = browser.submit(&fields);
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert!(refused.text().contains(problem), "{}", refused.text());
        assert!(is_pending(&mut browser, &request));
    }
    let fields = [SPEND[0], APPROVE, ("current_password", PASSWORD)];
    let allowed = browser.submit(&fields);
    let code = parameter(&allowed, "code").expect("a code");
    assert_eq!(client.redeem(&code)["scope"], "sms:send");

    age_sessions(&service);
    browser.get(&client.request_consent("sms:rates"));
    let free = browser.submit(&[("scope", "sms:rates"), APPROVE]);
    let code = parameter(&free, "code").expect("no password for what is free");
    assert_eq!(client.redeem(&code)["scope"], "sms:rates");
}
