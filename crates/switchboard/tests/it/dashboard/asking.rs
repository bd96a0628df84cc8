//! What is asked before a form takes effect, and what other sites and reloads cannot do.

use serde_json::json;
use testkit::Backend;
use testkit::http::Response;

use super::operator_pages::{operator, post};
use crate::people::browser::Browser;
use crate::people::{PASSWORD, joined};
use crate::rest::on_both_backends;
use crate::rest::service::{Service, sms, sms_with, wait_for};

on_both_backends!(
    weakening_an_account_asks_for_the_password,
    changing_a_balance_asks_first,
    reloading_the_page_of_a_new_token_creates_no_other,
    refunds_and_test_messages_are_shown,
);

const ALL_PEOPLE: &str = "/dashboard/operator/people";
const API: &str = "/dashboard/settings/api";

/// Moves the sign-in of everybody, and the last time that they entered their password, six minutes into the past.
pub(crate) fn age_sessions(service: &Service) {
    const AGE: &str = "UPDATE session
        SET opened_us = opened_us - 360000000, proved_us = proved_us - 360000000";
    if let Some(database) = service.server.database() {
        database.execute_blocking(AGE).expect("a valid statement");
        return;
    }
    let file = service.server.data_dir().join("switchboard.db");
    let file = rusqlite::Connection::open(file).expect("the file opens");
    file.busy_timeout(testkit::TEST_TIMEOUT).expect("it is set");
    file.execute_batch(AGE).expect("a valid statement");
}

fn admin(service: &Service) -> Browser<'_> {
    let more = ["--role", "admin", "--account", "main"];
    joined(service, "admin@example.com", &more)
}

fn has(page: &Response, text: &str) -> bool {
    page.text().contains(text)
}

/// The ID of the first person in the operator's list whose row has this email address.
fn person_id(browser: &mut Browser<'_>, email: &str) -> String {
    let page = browser.get(ALL_PEOPLE).text();
    let (_, row) = page
        .split_once(&format!("aria-label=\"Change {email}\""))
        .unwrap_or_else(|| panic!("no {email}: {page}"));
    let (_, id) = row.split_once("name=\"person\" value=\"").expect("an ID");
    id.split('"').next().expect("its end").to_owned()
}

#[test]
fn another_site_cannot_sign_a_person_out() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = operator(&service);
    let headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Sec-Fetch-Site", "cross-site"),
    ];
    // Browsers leave the cookie out, because it is SameSite=Lax, but would let the answer clear it.
    let forged = service.raw("POST", "/dashboard/sign-out", &headers, b"next=%2F");
    assert_eq!(forged.header("set-cookie"), None, "{}", forged.text());
    assert_eq!(browser.get(ALL_PEOPLE).status, 200, "still signed in");
}

#[test]
fn a_shared_search_keeps_its_filters_over_signing_in() {
    let service = Service::start(Backend::Sqlite);
    joined(&service, "ann@example.com", &["--account", "main"]);
    let mut browser = Browser::new(&service);
    let search = "/dashboard/messages?to=%2B371&state=failed";
    let away = browser.get(search);
    assert_eq!(away.status, 303);
    browser.follow(&away);
    let signed_in = browser.submit(&[("email", "ann@example.com"), ("password", PASSWORD)]);
    assert_eq!(signed_in.header("location"), Some(search));
}

fn weakening_an_account_asks_for_the_password(backend: Backend) {
    const QUESTION: &str = "Current password";
    const LINK: &str = "/dashboard/invitation/";
    let service = Service::start(backend);
    let mut browser = operator(&service);
    let me = person_id(&mut browser, "op@example.com");
    let me = me.as_str();
    let reset = [("action", "reset"), ("person", me)];
    let fresh = post(&mut browser, ALL_PEOPLE, &reset);
    assert!(has(&fresh, LINK), "just signed in: {}", fresh.text());

    age_sessions(&service);
    for fields in [
        vec![
            ("action", "invite"),
            ("email", "new@example.com"),
            ("role", "operator"),
        ],
        vec![("action", "role"), ("person", me), ("role", "operator")],
        vec![("action", "remove-second-factor"), ("person", me)],
        reset.to_vec(),
    ] {
        let asked = post(&mut browser, ALL_PEOPLE, &fields);
        assert_eq!(asked.status, 200, "{fields:?}: {}", asked.text());
        assert!(has(&asked, QUESTION), "{fields:?}: {}", asked.text());
        assert!(!has(&asked, LINK), "{fields:?}: {}", asked.text());
    }
    let wrong = browser.submit(&[("current_password", "not this one")]);
    assert_eq!(wrong.status, 422, "{}", wrong.text());
    assert!(has(&wrong, "not your password"), "{}", wrong.text());
    assert!(!has(&wrong, LINK), "{}", wrong.text());
    let right = browser.submit(&[("current_password", PASSWORD)]);
    assert_eq!(right.status, 200, "{}", right.text());
    assert!(has(&right, LINK), "{}", right.text());
    let again = post(&mut browser, ALL_PEOPLE, &reset);
    assert!(has(&again, LINK), "for five minutes: {}", again.text());
}

#[test]
fn the_operator_of_the_first_start_sets_a_password_first() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = Browser::new(&service);
    browser.get(&super::first_link(&service));
    assert_eq!(browser.submit(&[]).status, 303);
    age_sessions(&service);
    let fields = [("action", "invite"), ("email", "new@example.com")];
    let asked = post(&mut browser, ALL_PEOPLE, &fields);
    assert_eq!(asked.header("location"), Some("/dashboard/password"));

    browser.get("/dashboard/password");
    let saved = browser.submit(&[
        ("email", "op@example.com"),
        ("password", PASSWORD),
        ("repeated", PASSWORD),
    ]);
    assert_eq!(saved.status, 303, "{}", saved.text());
    let page = browser.follow(&saved);
    assert!(has(&page, "Your password was saved"), "{}", page.text());
    let used = Browser::new(&service).get(&super::first_link(&service));
    assert_eq!(used.status, 404, "{}", used.text());
    assert!(!has(&used, "<button"), "{}", used.text());
}

#[test]
fn removing_a_person_asks_first() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = operator(&service);
    let mut ann = joined(&service, "ann@example.com", &["--account", "main"]);
    let id = person_id(&mut browser, "ann@example.com");
    let fields = [
        ("action", "remove"),
        ("person", id.as_str()),
        ("who", "ann@example.com"),
    ];
    let asked = post(&mut browser, ALL_PEOPLE, &fields);
    assert_eq!(asked.status, 200, "{}", asked.text());
    assert!(has(&asked, "Remove ann@example.com?"), "{}", asked.text());
    assert_eq!(ann.get("/dashboard").status, 200, "nothing was done");
    let removed = browser.submit(&[]);
    assert!(has(&removed, "can no longer sign in"), "{}", removed.text());
    assert_eq!(ann.get("/dashboard").status, 303, "signed out");
}

#[test]
fn suspending_an_account_and_signing_out_everywhere_ask_first() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = operator(&service);
    let state = "/dashboard/operator/accounts/1/state";
    let suspend = [("state", "suspended")];
    let asked = post(&mut browser, state, &suspend);
    assert!(has(&asked, "Suspend the account main?"), "{}", asked.text());
    let is_suspended = || {
        let accounts = service.server.cli_json(&["account", "list", "--json"]);
        accounts[0]["suspended"] == json!(true)
    };
    assert!(!is_suspended());
    assert_eq!(browser.submit(&[]).status, 303);
    assert!(is_suspended());

    let sessions = "/dashboard/settings/security/sessions";
    let asked = post(&mut browser, sessions, &[("action", "all")]);
    assert!(has(&asked, "Sign out everywhere?"), "{}", asked.text());
    assert_eq!(browser.get(ALL_PEOPLE).status, 200, "still signed in");
    post(
        &mut browser,
        sessions,
        &[("action", "all"), ("sure", "yes")],
    );
    assert_eq!(browser.get(ALL_PEOPLE).status, 303);
}

fn changing_a_balance_asks_first(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = operator(&service);
    let balance = || {
        let accounts = service.server.cli_json(&["account", "list", "--json"]);
        accounts[0]["balance"].as_str().expect("a text").to_owned()
    };
    let fields = [("amount", "-1000000"), ("note", ""), ("once", "a key")];
    let path = "/dashboard/operator/accounts/1/credit";
    let asked = post(&mut browser, path, &fields);
    assert_eq!(asked.status, 200, "{}", asked.text());
    for text in ["Take 1,000,000.00", "100.00", "-999,900.00"] {
        let minus = text.replace('-', "−");
        assert!(
            has(&asked, text) || has(&asked, &minus),
            "{text}: {}",
            asked.text()
        );
    }
    assert_eq!(balance(), "100.00");
    let taken = browser.submit(&[]);
    assert_eq!(taken.status, 303, "{}", taken.text());
    assert_eq!(balance(), "-999900.00");
    let page = browser.follow(&taken);
    assert!(has(&page, "The balance was changed."), "{}", page.text());
    let mut indebted = admin(&service);
    let overview = indebted.get("/dashboard");
    assert!(has(&overview, "Not enough balance."), "{}", overview.text());
    assert!(!has(&overview, "First steps"), "{}", overview.text());

    let two = [("amount", "much"), ("note", "a\nb"), ("once", "a key")];
    let refused = post(&mut browser, path, &two);
    assert_eq!(refused.status, 422);
    for problem in ["is not an amount of money", "a note is one line"] {
        assert!(has(&refused, problem), "{problem}: {}", refused.text());
    }
}

#[test]
fn notices_cannot_be_forged() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = admin(&service);
    let created = post(
        &mut browser,
        "/dashboard/settings/notifications",
        &[("url", ""), ("email", ""), ("low_balance", "")],
    );
    assert_eq!(created.status, 303, "{}", created.text());
    let address = created.header("location").expect("an address").to_owned();
    let page = browser.get(&address);
    assert!(
        has(&page, "The notifications were changed."),
        "{}",
        page.text()
    );
    let (_, proof) = address.rsplit_once('.').expect("a proof");
    for forged in [
        "/dashboard/settings/notifications?said=saved".to_owned(),
        "/dashboard/settings/notifications?said=saved.0000000000000000".to_owned(),
        format!("{API}?said=deleted.{proof}"),
        format!("{API}?said=deleted"),
        "/dashboard/messages?sent=3".to_owned(),
        "/dashboard/opt-outs?added=3".to_owned(),
    ] {
        let page = browser.get(&forged);
        assert_eq!(page.status, 200, "{forged}");
        assert!(!has(&page, "class=\"box said"), "{forged}: {}", page.text());
    }
    let mut other = joined(
        &service,
        "other@example.com",
        &["--role", "admin", "--account", "main"],
    );
    let page = other.get(&address);
    assert!(!has(&page, "class=\"box said"), "{}", page.text());
    let mut operator = operator(&service);
    for forged in [
        "/dashboard/operator/numbers?said=added",
        "/dashboard/operator/smpp-users?said=revoked",
        "/dashboard/operator/carriers/handset?sent=1",
        "/dashboard/operator/carriers/handset?said=sent-1",
    ] {
        let page = operator.get(forged);
        assert_eq!(page.status, 200, "{forged}");
        assert!(!has(&page, "class=\"box said"), "{forged}: {}", page.text());
    }
}

fn reloading_the_page_of_a_new_token_creates_no_other(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = admin(&service);
    let tokens = || {
        let tokens = service.server.cli_json(&["token", "list", "--json"]);
        let tokens = tokens.as_array().expect("a list").clone();
        tokens.iter().filter(|one| one["name"] == "backend").count()
    };
    let form = browser.get("/dashboard/settings/api/new");
    assert!(
        !has(&form, " checked"),
        "nothing is ticked: {}",
        form.text()
    );
    let newest = browser.hidden("newest").expect("the newest token");
    let fields = [
        ("newest", newest.as_str()),
        ("name", "backend"),
        ("route", "sms:send"),
        ("expires", ""),
    ];
    let create = |browser: &mut Browser<'_>| post(browser, "/dashboard/settings/api/new", &fields);
    let created = create(&mut browser);
    assert_eq!(created.status, 200, "{}", created.text());
    assert!(has(&created, "<code>sb_"), "{}", created.text());
    let reloaded = create(&mut browser);
    assert_eq!(reloaded.status, 422, "{}", reloaded.text());
    assert!(has(&reloaded, "was created already"), "{}", reloaded.text());
    assert!(!has(&reloaded, "<code>sb_"), "{}", reloaded.text());
    assert_eq!(tokens(), 1);
    let another = browser.submit(&[("name", "backend"), ("route", "sms:send"), ("expires", "")]);
    assert_eq!(another.status, 200, "wanted: {}", another.text());
    assert_eq!(tokens(), 2);
}

fn refunds_and_test_messages_are_shown(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = admin(&service);
    // The simulated network refuses messages to this number, with error 60.
    let refused = sms_with(&json!({ "to": "+447700900060" }));
    let test = sms_with(&json!({ "testMode": "1" }));
    let ids: Vec<String> = [sms(), refused, test]
        .iter()
        .map(|body| service.accept(body).remove(0))
        .collect();
    let ended = |id: &str| {
        let path = format!("/dashboard/messages/{id}");
        move |browser: &mut Browser<'_>| {
            wait_for("the end", || {
                let page = browser.get(&path).text();
                let is_over = !page.contains("data-live=\"/dashboard/messages/");
                is_over.then_some(page)
            })
        }
    };
    let pages: Vec<String> = ids.iter().map(|id| ended(id)(&mut browser)).collect();
    assert!(!pages[0].contains("refunded"), "{}", pages[0]);
    assert!(pages[1].contains(" refunded)"), "{}", pages[1]);
    assert!(pages[1].contains("Refunded: "), "{}", pages[1]);
    let list = browser.get("/dashboard/messages").text();
    assert_eq!(list.matches(">refunded<").count(), 1, "{list}");
    assert_eq!(
        list.matches("<span class=\"tag\">test</span>").count(),
        1,
        "{list}"
    );
    let overview = browser.get("/dashboard").text();
    let counted = "<div class=\"value\">2 <span";
    assert!(
        overview.contains(counted),
        "test messages are not counted: {overview}"
    );
}

#[test]
fn a_pending_sender_can_be_withdrawn() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = admin(&service);
    let id = super::operator_pages::register(&service, "Acme", "our name", None);
    let path = format!("/dashboard/senders/{id}");
    let page = browser.get(&path).text();
    assert!(page.contains("Withdraw"), "{page}");
    let withdraw = format!("{path}/withdraw");
    let asked = post(&mut browser, &withdraw, &[]);
    assert!(has(&asked, "Withdraw the sender Acme?"), "{}", asked.text());
    let done = browser.submit(&[]);
    assert_eq!(done.status, 303, "{}", done.text());
    let page = browser.follow(&done).text();
    assert!(page.contains("Withdrawn by the account."), "{page}");
    assert!(!page.contains(&withdraw), "{page}");
    let again = post(&mut browser, &withdraw, &[("sure", "yes")]);
    assert_eq!(again.status, 422, "{}", again.text());
}
