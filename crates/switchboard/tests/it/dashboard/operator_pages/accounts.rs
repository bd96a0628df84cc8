//! Accounts: the list, money, limits and suspension.

use serde_json::json;
use testkit::Backend;
use testkit::chrome::Chrome;

use super::{operator, post};
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

on_both_backends!(
    accounts_are_found_by_name_and_page_by_page,
    two_concurrent_forms_do_not_overwrite_each_other,
    a_form_sent_twice_credits_once,
);

fn accounts_are_found_by_name_and_page_by_page(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = operator(&service);
    for number in 1..=51 {
        let name = format!("shop {number:02}");
        let created = post(
            &mut browser,
            "/dashboard/operator/accounts",
            &[("name", &name)],
        );
        assert_eq!(created.status, 303, "{}", created.text());
    }
    let page = browser.get("/dashboard/operator/accounts?name=SHOP").text();
    assert!(page.contains("shop 51") && page.contains("shop 02") && !page.contains("shop 01"));
    let (_, older) = page
        .split_once("rel=\"next\"")
        .expect("a link to older ones");
    assert!(older.contains("Older"), "{older}");
    let address = "/dashboard/operator/accounts?name=SHOP&before=";
    let (_, rest) = page
        .split_once(&address.replace('&', "&#38;"))
        .expect("an address");
    let before = rest.split('"').next().expect("a key");
    let page = browser.get(&format!("{address}{before}")).text();
    assert!(
        page.contains("shop 01") && !page.contains("shop 02"),
        "{page}"
    );
    let page = browser
        .get("/dashboard/operator/accounts?name=nobody")
        .text();
    assert!(page.contains("No matching account"), "{page}");

    for (name, balance, expected) in [
        (
            "shop 01",
            "",
            "an account named &#39;shop 01&#39; exists already",
        ),
        ("", "", "is not an account name"),
        ("fine", "much", "is not an amount of money"),
    ] {
        let fields = [("name", name), ("balance", balance)];
        let page = post(&mut browser, "/dashboard/operator/accounts", &fields);
        assert_eq!(page.status, 422, "{name}: {}", page.text());
        assert!(page.text().contains(expected), "{name}: {}", page.text());
    }
}

fn a_form_sent_twice_credits_once(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = operator(&service);
    let path = "/dashboard/operator/accounts/1";
    let page = browser.get(path).text();
    let (_, rest) = page.split_once("name=\"once\" value=\"").expect("a key");
    let once = rest.split('"').next().expect("its end");
    let send = |browser: &mut _, amount: &str, once: &str| {
        let fields = [("amount", amount), ("once", once), ("sure", "yes")];
        post(browser, &format!("{path}/credit"), &fields).status
    };
    for (amount, once, status, balance) in [
        ("5", once, 303, "105.00"),
        ("5", once, 303, "105.00"),
        ("5", "another", 303, "110.00"),
        // A refused form does not use up its key, and the form that is returned has a new one.
        ("much", "third", 422, "110.00"),
        ("5", "", 400, "110.00"),
    ] {
        assert_eq!(send(&mut browser, amount, once), status, "{amount} {once}");
        let accounts = service.server.cli_json(&["account", "list", "--json"]);
        assert_eq!(accounts[0]["balance"], json!(balance), "{amount} {once}");
    }
}

/// A form contains the values that it was shown with, and changes only those that differ.
fn two_concurrent_forms_do_not_overwrite_each_other(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = operator(&service);
    let shown = [
        ("was_credit_limit", "0.00"),
        ("was_daily_cap", ""),
        ("was_per_recipient_hour", ""),
        ("was_countries", ""),
        ("was_approved_senders_only", "false"),
    ];
    let path = "/dashboard/operator/accounts/1/limits";
    for changed in [
        [("credit_limit", "5"), ("daily_cap", "")],
        [("credit_limit", "0.00"), ("daily_cap", "20")],
    ] {
        let fields = [&shown[..], &changed].concat();
        let set = post(&mut browser, path, &fields);
        assert_eq!(set.status, 303, "{}", set.text());
    }
    let accounts = service.server.cli_json(&["account", "list", "--json"]);
    assert_eq!(
        (&accounts[0]["creditLimit"], &accounts[0]["dailyCap"]),
        (&json!("5.00"), &json!("20.00"))
    );
    for (field, value, expected) in [
        ("credit_limit", "-1", "from 0.00"),
        ("daily_cap", "never", "is not an amount"),
        ("per_recipient_hour", "0", "whole number from 1"),
        ("countries", "XX", "&#39;XX&#39;"),
    ] {
        let page = post(&mut browser, path, &[(field, value)]);
        assert_eq!(page.status, 422, "{field}: {}", page.text());
        assert!(page.text().contains(expected), "{field}: {}", page.text());
    }
}

#[tokio::test]
async fn an_account_is_created_credited_limited_suspended_and_resumed() {
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let page = crate::dashboard::operator(&service, &chrome).await;
    page.open(&service.server.url("/dashboard/operator/accounts"))
        .await;
    page.click("New account").await;
    page.fill("Name", "Acme").await;
    page.fill("Opening balance", "much").await;
    page.click("Create account").await;
    page.wait_for("is not an amount of money").await;
    page.fill("Opening balance", "10").await;
    page.click("Create account").await;
    page.wait_for("The account was created").await;
    page.wait_for("10.00 EUR").await;

    page.fill("Amount", "-2.50").await;
    page.fill("Note", "a correction").await;
    page.click("Change balance").await;
    page.wait_for("Take 2.50 EUR from Acme?").await;
    page.wait_for("Afterwards it is 7.50 EUR.").await;
    page.click("Take").await;
    page.wait_for("The balance was changed").await;
    page.wait_for("7.50 EUR").await;
    page.wait_for("a correction").await;

    page.fill("Countries", "LV").await;
    page.tick("Only its own approved senders").await;
    page.click("Set limits").await;
    page.wait_for("The limits were changed").await;
    assert_eq!(page.value("Countries").await, "LV");

    let token = service.create_token("Acme", &[]).token;
    let status = || service.call_as(&token, "GET", "/token", b"").status;
    assert_eq!(status(), 200);
    let body = json!({ "to": "+37120000001", "from": "Acme", "message": "x" }).to_string();
    let sent = service.call_as(&token, "POST", "/sms", body.as_bytes());
    assert_eq!(sent.status, 403, "approved senders only: {}", sent.text());

    page.click("Suspend").await;
    page.wait_for("Suspend the account Acme?").await;
    let findings = page.findings().await;
    assert!(findings.is_empty(), "{findings:?}");
    page.click("Suspend").await;
    page.wait_for("The account is suspended").await;
    wait_for("a refusal", || (status() == 403).then_some(()));
    page.click("Resume").await;
    page.wait_for("The account is active again").await;
    wait_for("an answer", || (status() == 200).then_some(()));
    page.assert_no_browser_errors();
}
