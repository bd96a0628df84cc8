//! Pages on a phone: tables become cards, and no page scrolls sideways.

use serde_json::{Value, json};
use testkit::Backend;
use testkit::chrome::{Chrome, Page};

use super::operator_pages::register;
use super::{account, operator};
use crate::rest::service::{Service, sms, sms_with};

/// What is wrong with the tables, and how many cards there are.
const CARDS: &str = "(() => {
    const problems = [];
    let cards = 0;
    for (const table of document.querySelectorAll('main .table > table')) {
        const heads = [...table.querySelectorAll('thead th')];
        if (heads.length < 3) continue;
        for (const row of table.querySelectorAll('tbody tr')) {
            cards += 1;
            if (getComputedStyle(row).display !== 'block') problems.push(`no card: ${row.innerText}`);
            let place = 0;
            for (const cell of row.cells) {
                const head = heads[place];
                place += cell.colSpan;
                if (cell.colSpan > 1 || head.querySelector('.unseen') || !cell.textContent.trim()) continue;
                const shown = getComputedStyle(cell, '::before').content;
                if (shown !== JSON.stringify(head.textContent.trim())) problems.push(`${shown} before ${cell.innerText}`);
            }
        }
    }
    return [problems, cards];
})()";

/// The addresses of the menu.
async fn menu(page: &Page) -> Vec<String> {
    let links = "[...document.querySelectorAll('nav .sidebar a')].map((link) => link.href)";
    let links = page.evaluate(links).await;
    let links = links.as_array().expect("a list").iter();
    let links = links.map(|link| link.as_str().expect("an address").to_owned());
    links.collect()
}

/// Fails if cells of a table do not show the names of their columns. Returns the number of cards.
async fn check_cards(page: &Page) -> u64 {
    let found = page.evaluate(CARDS).await;
    assert_eq!(found[0], json!([]), "{}", page.address().await);
    found[1].as_u64().expect("a number")
}

#[tokio::test]
async fn tables_become_cards_and_no_page_scrolls_sideways() {
    let service = Service::start(Backend::Sqlite);
    service.create_account("an account with a name that is as long as names of customers are");
    register(&service, "Acme Shop", "our shop", None);
    account::sample_items(&service);
    service.accept(&sms_with(&json!({ "message": "long".repeat(40) })));
    let chrome = Chrome::start().await;
    let page = operator(&service, &chrome).await;
    page.set_viewport(375, 812).await;
    let mut links = menu(&page).await;
    links.push(service.server.url("/dashboard/operator/accounts/1"));
    links.push(service.server.url("/dashboard/messages?totals=1"));
    let mut with_cards = Vec::new();
    let mut too_wide = Vec::new();
    for link in &links {
        page.open(link).await;
        assert_eq!(page.status(), Some(200), "{link}");
        if check_cards(&page).await > 0 {
            with_cards.push(page.path().await);
        }
        if page.is_too_wide().await {
            too_wide.push(link.as_str());
        }
    }
    for path in [
        "/dashboard/messages",
        "/dashboard/callbacks",
        "/dashboard/settings/api",
        "/dashboard/operator/accounts",
        "/dashboard/operator/accounts/1",
        "/dashboard/operator/messages",
        "/dashboard/operator/carriers",
    ] {
        assert!(with_cards.iter().any(|one| one == path), "{with_cards:?}");
    }
    page.disable_scripts().await;
    for link in &links {
        page.open(link).await;
        if page.is_too_wide().await {
            too_wide.push(link);
        }
    }
    assert_eq!(too_wide, [""; 0]);
    page.assert_no_browser_errors();
}

#[tokio::test]
async fn rows_that_arrive_later_are_cards_too() {
    let service = Service::start(Backend::Sqlite);
    service.accept(&sms());
    let chrome = Chrome::start().await;
    let page = operator(&service, &chrome).await;
    page.set_viewport(375, 812).await;
    page.open(&service.server.url("/dashboard/messages")).await;
    page.wait_for("Live").await;
    let before = check_cards(&page).await;
    service.accept(&sms_with(&json!({ "message": "heron" })));
    page.wait_for("heron").await;
    assert_eq!(check_cards(&page).await, before + 1);
    let price = "[...document.querySelectorAll('tbody td[data-label=Price]')].length";
    assert_eq!(page.evaluate(price).await, Value::from(before + 1));
    page.assert_no_browser_errors();
}
