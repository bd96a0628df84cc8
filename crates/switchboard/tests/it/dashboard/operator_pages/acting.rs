//! What operators do for customers: find their messages, act for them, create tokens for them.

use serde_json::json;
use testkit::Backend;
use testkit::http::Response;

use super::{operator, post};
use crate::dashboard::asking::age_sessions;
use crate::people::PASSWORD;
use crate::people::browser::Browser;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

const ALL: &str = "/dashboard/operator/messages";
const ACCOUNTS: &str = "/dashboard/accounts";

on_both_backends!(
    operators_find_out_why_a_message_did_not_arrive,
    operators_act_for_an_account_and_create_tokens_for_it,
);

/// Sends a message of a new account, acme, that the simulated network refuses with error 60. Returns its ID.
fn refused_message(service: &Service) -> String {
    let token = service.create_account("acme");
    let body = json!({ "to": "+447700900060", "from": "Acme", "message": "x" });
    let sent = service.call_as(&token, "POST", "/sms", body.to_string().as_bytes());
    assert_eq!(sent.status, 200, "{}", sent.text());
    let ids = sent.json();
    ids[0].as_str().expect("an ID").to_owned()
}

fn check_contains(page: &Response, texts: &[&str]) {
    assert_eq!(page.status, 200, "{}", page.text());
    for text in texts {
        assert!(page.text().contains(text), "{text}: {}", page.text());
    }
}

/// The address of the first link on a page whose address starts like this.
fn link(page: &Response, start: &str) -> String {
    let text = page.text();
    let (_, rest) = text
        .split_once(&format!("href=\"{start}"))
        .unwrap_or_else(|| panic!("no link to {start}: {text}"));
    let rest = rest.split('"').next().expect("its end");
    format!("{start}{}", rest.replace("&#38;", "&"))
}

fn operators_find_out_why_a_message_did_not_arrive(backend: Backend) {
    let service = Service::start(backend);
    let id = refused_message(&service);
    let mut browser = operator(&service);
    let by_number = format!("{ALL}?account=acme&to=%2B447700900060");
    let list = wait_for("the end", || {
        let page = browser.get(&by_number);
        page.text().contains(">failed<").then_some(page)
    });
    let message = format!("{ALL}/{id}");
    check_contains(&list, &[&message, ">acme<", "60 ", "1 message", "refunded"]);
    check_contains(&browser.get(&message), &["What happened", "error 60"]);
    let sorted = browser.get(&format!("{ALL}?sort=-price"));
    check_contains(&sorted, &["aria-sort=\"descending\"", &message]);
    let by_id = browser.get(&format!("{ALL}?id={id}"));
    assert_eq!(by_id.header("location"), Some(message.as_str()));
    for wrong in ["account=nobody", "id=999999", "to=x&since=y"] {
        let page = browser.get(&format!("{ALL}?{wrong}"));
        assert_eq!(page.status, 422, "{wrong}: {}", page.text());
    }
    let two = browser.get(&format!("{ALL}?to=x&since=y")).text();
    assert_eq!(two.matches("class=\"problem\"").count(), 2, "{two}");

    // The entries of the ledger lead to their messages.
    let account = browser.get("/dashboard/operator/accounts/2");
    let charged = link(&account, &format!("{ALL}?account=acme&#38;since="));
    check_contains(&browser.get(&charged.replace("&#38;", "&")), &[&message]);

    // The search leads to the only result, and lists several.
    let found = browser.get("/dashboard/search?q=acme");
    let address = Some("/dashboard/operator/accounts/2");
    assert_eq!(found.header("location"), address);
    let found = browser.get(&format!("/dashboard/search?q={id}"));
    let address = found.header("location").unwrap_or_default().to_owned();
    assert_eq!(address, message, "{}", found.text());
    let none = browser.get("/dashboard/search?q=nothing-of-this-name");
    check_contains(&none, &["Nothing found."]);

    let missing = browser.get("/dashboard/no/such/page");
    assert_eq!(missing.status, 404);
    assert!(
        missing.text().contains("Page not found"),
        "{}",
        missing.text()
    );
    assert!(missing.text().contains("All messages"), "with the menu");
    let stranger = Browser::new(&service).get("/dashboard/no/such/page");
    assert_eq!(stranger.status, 404);
    assert!(!stranger.text().contains("All messages"), "without it");
}

fn operators_act_for_an_account_and_create_tokens_for_it(backend: Backend) {
    let service = Service::start(backend);
    let id = refused_message(&service);
    let mut browser = operator(&service);
    let page = browser.get("/dashboard/operator/accounts/2");
    check_contains(&page, &["Act for this account", "Create a token"]);
    assert_eq!(browser.get("/dashboard/messages").status, 404, "no account");

    let entered = post(&mut browser, ACCOUNTS, &[("account", "2")]);
    assert_eq!(entered.status, 303, "{}", entered.text());
    let own = format!("/dashboard/messages/{id}");
    check_contains(&browser.get("/dashboard/messages"), &[&own, ">acme<"]);
    let log = browser.get("/dashboard/settings/audit");
    check_contains(&log, &["account.enter", "op@example.com"]);
    // Messages of a country whose networks are unknown are counted in that country.
    wait_for("the country", || {
        let overview = browser.get("/dashboard").text();
        overview.contains(">United Kingdom<").then_some(())
    });
    check_contains(
        &browser.get(ACCOUNTS),
        &["You are acting for <bdi>acme</bdi>"],
    );
    let left = post(&mut browser, ACCOUNTS, &[("account", "")]);
    assert_eq!(left.status, 303, "{}", left.text());
    assert_eq!(browser.get("/dashboard/messages").status, 404, "no account");
    let unknown = post(&mut browser, ACCOUNTS, &[("account", "99")]);
    assert_eq!(unknown.status, 404, "{}", unknown.text());

    age_sessions(&service);
    let form = "/dashboard/operator/accounts/2/token";
    let page = browser.get(form);
    check_contains(&page, &["Create a token for <bdi>acme</bdi>"]);
    let fields = [
        ("name", "backend"),
        ("route", "sms:send"),
        ("route", "sms:rates"),
        ("expires", ""),
    ];
    let asked = browser.submit(&fields);
    check_contains(&asked, &["Current password"]);
    let created = browser.submit(&[("current_password", PASSWORD)]);
    check_contains(&created, &["New token for acme", "<code>sb_"]);
    let tokens = ["token", "list", "--account", "acme", "--json"];
    let tokens = service.server.cli_json(&tokens);
    let created = tokens.as_array().expect("a list").iter();
    let created: Vec<_> = created.filter(|token| token["name"] == "backend").collect();
    assert_eq!(created.len(), 1, "{tokens}");
    let routes = created[0]["permissions"].to_string();
    assert!(routes.contains("sms:rates"), "{routes}");
}
