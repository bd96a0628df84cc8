//! What weakens an account asks for the password, what does harm asks first, and what happens when such a form comes
//! too late, too large or as a page.

use serde_json::Value;
use testkit::Backend;

use super::asking::age_sessions;
use super::operator_pages::{post, register};
use crate::people::browser::Browser;
use crate::people::security::sign_in;
use crate::people::{PASSWORD, joined};
use crate::rest::on_both_backends;
use crate::rest::service::Service;

on_both_backends!(
    what_weakens_an_account_asks_for_the_password_after_five_minutes,
    what_does_harm_asks_first,
);

const OPT_OUTS: &str = "/dashboard/opt-outs";
const BLOCKS: &str = "/dashboard/operator/blocks";
const NUMBERS: &str = "/dashboard/operator/numbers";
const PEOPLE: &str = "/dashboard/operator/people";
const SECURITY: &str = "/dashboard/settings/security";

type Form<'a> = (&'a str, &'a [(&'a str, &'a str)]);

/// An operator who belongs to the first account.
fn operator(service: &Service) -> Browser<'_> {
    let more = ["--role", "operator", "--account", "main"];
    joined(service, "op@example.com", &more)
}

/// Every change is in the audit log.
fn log(service: &Service) -> Value {
    service.server.cli_json(&["audit", "--json"])
}

fn what_weakens_an_account_asks_for_the_password_after_five_minutes(backend: Backend) {
    const FORMS: &[Form<'_>] = &[
        (
            "/dashboard/operator/accounts/1/credit",
            &[("amount", "5"), ("note", ""), ("once", "a key")],
        ),
        (
            "/dashboard/operator/accounts/1/limits",
            &[("was_credit_limit", "0.00"), ("credit_limit", "7")],
        ),
        (
            "/dashboard/operator/smpp-users/1",
            &[("max_binds", "3"), ("networks", "")],
        ),
        ("/dashboard/settings/api/secret", &[]),
        ("/dashboard/settings/api/texts", &[("texts_admin", "on")]),
        (
            "/dashboard/settings/api/new",
            &[("name", "mine"), ("route", "sms:send"), ("expires", "")],
        ),
        ("/dashboard/accounts", &[("account", "2")]),
    ];
    let service = Service::start(backend);
    service.create_account("other");
    let created = ["smpp-user", "create", "--account", "main"];
    assert!(service.server.cli(&created).status.success());
    let mut browser = operator(&service);
    for (path, fields) in FORMS {
        age_sessions(&service);
        let before = log(&service);
        let asked = post(&mut browser, path, fields);
        assert_eq!(asked.status, 200, "{path}: {}", asked.text());
        let wrong = browser.submit(&[("current_password", "not this one")]);
        assert_eq!(wrong.status, 422, "{path}: {}", wrong.text());
        for page in [asked.text(), wrong.text()] {
            assert!(page.contains("Current password"), "{path}: {page}");
            assert!(!page.contains("whsec_"), "{path}: {page}");
            assert!(!page.contains("<code>sb_"), "{path}: {page}");
        }
        assert_eq!(log(&service), before, "{path}");
        let done = browser.submit(&[("current_password", PASSWORD)]);
        assert!([200, 303].contains(&done.status), "{path}");
        assert!(!done.text().contains("Current password"), "{path}");
        assert_ne!(log(&service), before, "{path}: {}", done.text());
    }
    // Back to the own account: nothing is gained by that.
    age_sessions(&service);
    let left = post(&mut browser, "/dashboard/accounts", &[("account", "")]);
    assert_eq!(left.status, 303, "{}", left.text());
}

fn what_does_harm_asks_first(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = operator(&service);
    let sender = add_what_is_removed(&service, &mut browser);
    let mut phone = Browser::new(&service);
    phone.set_header("User-Agent", "Mozilla/5.0 (Android 15) Firefox/140.0");
    sign_in(&mut phone, "op@example.com", PASSWORD);
    let session = phone_session(&browser.get(SECURITY).text());
    let opt_out = format!("{OPT_OUTS}/remove");
    let block = format!("{BLOCKS}/remove");
    let number = format!("{NUMBERS}/remove");
    let sessions = format!("{SECURITY}/sessions");
    let cases: [(Form<'_>, &str); 6] = [
        (
            (&opt_out, &[("number", "+37120000001"), ("sender", "Acme")]),
            "Remove +37120000001 from the opt-outs?",
        ),
        (
            (&block, &[("kind", "word"), ("value", "jackpot")]),
            "Remove the rule for the word JACKPOT?",
        ),
        (
            (&number, &[("number", "1234"), ("keyword", "join")]),
            "Remove the number 1234 with the keyword join?",
        ),
        (
            (&sender, &[("decision", "revoke"), ("reason", "not theirs")]),
            "Revoke the sender Acme?",
        ),
        (
            (
                PEOPLE,
                &[("action", "withdraw"), ("email", "new@example.com")],
            ),
            "Withdraw the link for new@example.com?",
        ),
        ((&sessions, &[("session", &session)]), "End this session?"),
    ];
    for ((path, fields), title) in cases {
        let before = log(&service);
        let asked = post(&mut browser, path, fields);
        assert_eq!(asked.status, 200, "{path}: {}", asked.text());
        let text = asked.text();
        assert!(text.contains(title), "{title}: {text}");
        assert!(text.contains(">Cancel</a>"), "{title}: {text}");
        assert_eq!(log(&service), before, "{title}");
        let done = browser.submit(&[]);
        assert!(
            [200, 303].contains(&done.status),
            "{title}: {}",
            done.text()
        );
        assert_ne!(log(&service), before, "{title}: {}", done.text());
    }
    assert_eq!(phone.get("/dashboard").status, 303, "signed out");
    assert_eq!(browser.get(SECURITY).status, 200, "still signed in");
}

/// Adds one of each, and returns the address of the form of an approved sender.
fn add_what_is_removed(service: &Service, browser: &mut Browser<'_>) -> String {
    let sender = register(service, "Acme", "our name", None);
    let sender = format!("/dashboard/operator/senders/{sender}");
    for (path, fields) in [
        (
            OPT_OUTS,
            &[("number", "+37120000001"), ("sender", "Acme")][..],
        ),
        (BLOCKS, &[("kind", "word"), ("value", "jackpot")]),
        (
            NUMBERS,
            &[("number", "1234"), ("account", "main"), ("keyword", "join")],
        ),
        (&sender, &[("decision", "approve")]),
    ] {
        let done = post(browser, path, fields);
        assert_eq!(done.status, 303, "{path}: {}", done.text());
    }
    let invite = [
        ("action", "invite"),
        ("email", "new@example.com"),
        ("role", "operator"),
    ];
    assert_eq!(post(browser, PEOPLE, &invite).status, 200);
    sender
}

/// The name of the session that is not the browser's own.
fn phone_session(page: &str) -> String {
    let mut rows = page.split("<tr><td>");
    let row = rows.find(|row| row.contains("name=\"session\"") && !row.contains("this one"));
    let row = row.unwrap_or_else(|| panic!("no other session: {page}"));
    let (_, name) = row
        .split_once("name=\"session\" value=\"")
        .expect("its name");
    name.split('"').next().expect("its end").to_owned()
}

/// Addresses that only take forms, and their pages.
const ADDRESSES: &[(&str, &str)] = &[
    ("/dashboard/sign-out", "/dashboard"),
    ("/dashboard/send/measure", "/dashboard/send"),
    ("/dashboard/opt-outs/remove", OPT_OUTS),
    ("/dashboard/opt-outs/import", OPT_OUTS),
    ("/dashboard/templates/remove", "/dashboard/templates"),
    ("/dashboard/callbacks/test", "/dashboard/callbacks"),
    (
        "/dashboard/callbacks/{id}/replay",
        "/dashboard/callbacks/{id}",
    ),
    ("/dashboard/senders/{id}/confirm", "/dashboard/senders/{id}"),
    ("/dashboard/senders/{id}/pin", "/dashboard/senders/{id}"),
    (
        "/dashboard/senders/{id}/withdraw",
        "/dashboard/senders/{id}",
    ),
    ("/dashboard/settings/api/consent", "/dashboard/settings/api"),
    ("/dashboard/settings/api/texts", "/dashboard/settings/api"),
    ("/dashboard/settings/api/secret", "/dashboard/settings/api"),
    (
        "/dashboard/operator/accounts/{id}/credit",
        "/dashboard/operator/accounts/{id}",
    ),
    (
        "/dashboard/operator/accounts/{id}/limits",
        "/dashboard/operator/accounts/{id}",
    ),
    (
        "/dashboard/operator/accounts/{id}/state",
        "/dashboard/operator/accounts/{id}",
    ),
    ("/dashboard/operator/blocks/remove", BLOCKS),
    ("/dashboard/operator/numbers/remove", NUMBERS),
    (
        "/dashboard/operator/smpp-users/revoke",
        "/dashboard/operator/smpp-users",
    ),
    (
        "/dashboard/operator/hosts/replay",
        "/dashboard/operator/hosts",
    ),
    (
        "/dashboard/operator/senders/{id}",
        "/dashboard/operator/senders",
    ),
    (
        "/dashboard/operator/carriers/remove",
        "/dashboard/operator/carriers",
    ),
    (
        "/dashboard/operator/carriers/undo",
        "/dashboard/operator/carriers",
    ),
    (
        "/dashboard/operator/routes/remove",
        "/dashboard/operator/routes",
    ),
];

#[test]
fn the_address_of_a_form_leads_to_its_page() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = operator(&service);
    for (path, page) in ADDRESSES {
        let (path, page) = (path.replace("{id}", "1"), page.replace("{id}", "1"));
        browser.set_header("Accept", "application/json");
        assert_eq!(browser.get(&path).status, 405, "{path}: for programs");
        browser.set_header("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");
        let opened = browser.get(&path);
        assert_eq!(opened.status, 303, "{path}: {}", opened.text());
        assert_eq!(opened.header("location"), Some(page.as_str()), "{path}");
        let shown = browser.follow(&opened);
        // There is neither a callback nor a sender 1.
        assert!([200, 404].contains(&shown.status), "{path}");
        let kind = shown.header("content-type").unwrap_or_default();
        assert!(kind.starts_with("text/html"), "{path}: {kind}");
    }
}

#[test]
fn signing_in_again_after_a_form_leads_to_its_page() {
    let service = Service::start(Backend::Sqlite);
    operator(&service);
    let mut browser = Browser::new(&service);
    browser.set_header("Accept", "text/html");
    let late = browser.post("/dashboard/opt-outs/remove", &[("number", "+37120000001")]);
    browser.follow(&late);
    let signed_in = browser.submit(&[("email", "op@example.com"), ("password", PASSWORD)]);
    let redirect = browser.follow(&signed_in);
    assert_eq!(redirect.header("location"), Some(OPT_OUTS));
    assert_eq!(browser.follow(&redirect).status, 200);
}

#[test]
fn a_form_that_is_too_large_says_how_much_it_may_have() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = operator(&service);
    let import = format!("{OPT_OUTS}/import");
    for (path, bytes, limit) in [
        ("/dashboard/templates", 520 * 1024, "at most 512 KB"),
        (&*import, 1025 * 1024, "at most 1 MB"),
    ] {
        let text = "x".repeat(bytes);
        let refused = post(&mut browser, path, &[("text", &text)]);
        assert_eq!(refused.status, 413, "{path}: {}", refused.text());
        for words in ["The form is too large", limit, "Nothing was done"] {
            assert!(
                refused.text().contains(words),
                "{words}: {}",
                refused.text()
            );
        }
    }
}
