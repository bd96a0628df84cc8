//! The pages for numbers, prices, lookups and examples show the same as the API.

use testkit::Backend;

use super::{admin, send};
use crate::people::joined;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

on_both_backends!(a_lookup_shows_its_price_and_result_and_is_made_once,);

#[test]
fn a_list_of_numbers_is_corrected_as_the_api_does() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = admin(&service);
    let list = "29 111 111\r\n+49 151 23456789\r\nnonsense";
    let page = send(
        &mut browser,
        "/dashboard/numbers",
        &[("numbers", list), ("country", "LV")],
    );
    assert_eq!(page.status, 200);
    let text = page.text();
    for words in [
        "+37129111111",
        "+4915123456789",
        "<strong>2</strong> corrected",
        "<strong>1</strong> could not",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let by_api = service.call_as(
        &service.token,
        "POST",
        "/numberCorrection",
        br#"[{"Number":"nonsense","CountryIso":"LV"}]"#,
    );
    let error = by_api.json()[0]["Error"]
        .as_str()
        .expect("a reason")
        .to_owned();
    assert!(
        text.contains(&error.replace('\'', "&#39;")),
        "{error}: {text}"
    );

    let long = "29111111\n".repeat(2001);
    let refused = send(&mut browser, "/dashboard/numbers", &[("numbers", &long)]);
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("2,001 are more than 2,000"));
    let refused = send(
        &mut browser,
        "/dashboard/numbers",
        &[("numbers", " "), ("country", "ZZ")],
    );
    assert_eq!(refused.status, 422, "no numbers, and an unknown country");
}

#[test]
fn prices_are_searched_paged_and_downloaded() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = admin(&service);
    let by_api = service.get("/rates?format=csv");
    let download = browser.get("/dashboard/rates.csv");
    assert_eq!(download.body, by_api.body, "the same list");
    assert_eq!(
        download.header("content-type"),
        Some("text/csv; charset=utf-8")
    );

    let rows = |text: &str| text.matches("<td class=\"number once\">").count();
    let found = browser.get("/dashboard/rates?q=latvia+247").text();
    assert!(found.contains("Latvia") && rows(&found) > 0, "{found}");
    assert!(
        browser
            .get("/dashboard/rates?q=nowhere")
            .text()
            .contains("No matching prices")
    );
    let total = by_api.text().lines().count() - 1;
    let (mut count, mut path) = (0, "/dashboard/rates".to_owned());
    loop {
        let page = browser.get(&path).text();
        count += rows(&page);
        let Some((_, rest)) = page.split_once("href=\"/dashboard/rates?after=") else {
            break;
        };
        let after = rest.split('"').next().expect("an address");
        path = format!("/dashboard/rates?after={after}");
        assert!(count <= total, "no row is shown twice");
    }
    assert_eq!(count, total, "every row is shown");
}

fn a_lookup_shows_its_price_and_result_and_is_made_once(backend: Backend) {
    let service = Service::with(backend, |builder| {
        builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
    });
    let mut browser = admin(&service);
    let before = service.balance();
    let offer = browser.get("/dashboard/lookups?msisdn=%2B44+7700+900800");
    assert!(
        offer.text().contains("Look up for 0.005 EUR"),
        "{}",
        offer.text()
    );
    assert_eq!(service.balance(), before, "no lookup was made");
    let key = browser.hidden("key").expect("a key");
    let fields = [("msisdn", "+447700900800"), ("key", key.as_str())];
    let first = send(&mut browser, "/dashboard/lookups", &fields);
    assert_eq!(first.status, 303, "{}", first.text());
    let after = service.balance();
    assert_ne!(after, before, "charged");
    let second = send(&mut browser, "/dashboard/lookups", &fields);
    assert_eq!(second.header("location"), first.header("location"));
    assert_eq!(service.balance(), after, "sent twice, looked up once");

    let path = first.header("location").expect("a page").to_owned();
    let page = wait_for("the answer", || {
        let page = browser.get(&path).text();
        page.contains("can be reached").then_some(page)
    });
    for words in ["+447700900800", "yes, from", "United Kingdom"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let list = browser.get("/dashboard/lookups").text();
    assert!(list.contains(&format!("href=\"{path}\"")), "{list}");
    let refused = browser.get("/dashboard/lookups?msisdn=12");
    assert_eq!(refused.status, 422, "{}", refused.text());
}

#[test]
fn the_examples_contain_this_servers_addresses_and_no_token() {
    let service = Service::start(Backend::Sqlite);
    for (email, role) in [("ann@example.com", "member"), ("bob@example.com", "admin")] {
        let more = ["--role", role, "--account", "main"];
        let mut browser = joined(&service, email, &more);
        let page = browser.get("/dashboard/connect").text();
        let base = service.server.url("");
        for address in [format!("{base}/sms"), format!("{base}/mcp")] {
            assert!(page.contains(&address), "{address}: {page}");
        }
        assert!(!page.contains("sb_") && !page.contains("whsec_"), "{page}");
        let can_create_tokens = page.contains("href=\"/dashboard/settings/api/new\"");
        assert_eq!(can_create_tokens, role == "admin");
    }
}
