//! Price lists: a preview of the changes, then the import.

use serde_json::json;
use testkit::Backend;
use testkit::chrome::Chrome;

use super::{operator, post, price_for_all};
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

const PRICES: &str = "/dashboard/operator/prices";

on_both_backends!(an_import_is_refused_when_the_list_changed_in_between);

fn an_import_is_refused_when_the_list_changed_in_between(backend: Backend) {
    let service = Service::start(backend);
    let mut browser = operator(&service);
    let versions = || {
        let history = service.server.cli_json(&["rates", "history", "--json"]);
        history.as_array().expect("a list").len()
    };
    let (first, second) = (price_for_all("0.05"), price_for_all("0.06"));
    let preview = post(&mut browser, PRICES, &[("csv", &first)]);
    assert_eq!(preview.status, 200, "{}", preview.text());
    assert!(
        preview.text().contains("Import this list"),
        "{}",
        preview.text()
    );
    assert_eq!(versions(), 0, "a preview changes nothing");
    // Two people have previewed the changes to version 0. The second one to import has to preview again.
    let imported = post(&mut browser, PRICES, &[("csv", &first), ("seen", "0")]);
    assert_eq!(imported.status, 303, "{}", imported.text());
    let refused = post(&mut browser, PRICES, &[("csv", &second), ("seen", "0")]);
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert!(refused.text().contains("▲ +20.0 %"), "{}", refused.text());
    assert_eq!(versions(), 1);
    let imported = post(&mut browser, PRICES, &[("csv", &second), ("seen", "1")]);
    assert_eq!(imported.status, 303, "{}", imported.text());
    assert_eq!(versions(), 2);

    let export = browser.get("/dashboard/operator/prices.csv");
    assert_eq!(
        export.header("content-type"),
        Some("text/csv; charset=utf-8")
    );
    assert!(export.text().contains("0.06"), "{}", export.text());
    let former = browser.get("/dashboard/operator/prices.csv?version=1");
    assert!(former.text().contains("0.05"), "{}", former.text());
}

#[test]
fn a_list_with_problems_is_refused_with_all_of_them() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = operator(&service);
    let header = price_for_all("0.05");
    let wrong = format!("{header}Nowhere,XX,All,All,,,0.01\nLatvia,LV,All,All,,,dear\n");
    let page = post(&mut browser, PRICES, &[("csv", &wrong)]);
    assert_eq!(page.status, 422);
    let page = page.text();
    for expected in ["row 3", "row 4", "Nowhere,XX,All", "dear"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let (top, rest) = page.split_once("id=\"csv-problem\"").expect("the problems");
    assert!(!top.contains("<table") && rest.contains("<table"), "{page}");
    let nothing = "CountryName,CountryCode,Operator,Network,MCC,MNC,Rate\n";
    let page = post(&mut browser, PRICES, &[("csv", nothing)]);
    assert_eq!(page.status, 422);
    assert!(page.text().contains("no message could be sent any more"));

    let long = format!("{header}{}", "x".repeat(64 * 1024));
    let page = post(&mut browser, PRICES, &[("csv", &long)]);
    assert_eq!(page.status, 422, "larger than other forms may be");
    let huge = "x".repeat(5 * 1024 * 1024);
    let refused = post(&mut browser, PRICES, &[("csv", &huge)]);
    assert_eq!(refused.status, 413);
    assert!(refused.text().contains("at most 4 MB"));
}

#[tokio::test]
async fn a_message_costs_what_the_imported_list_says() {
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let page = crate::dashboard::operator(&service, &chrome).await;
    page.click("Prices").await;
    page.wait_for("The demonstration list is in force").await;
    page.click("Import a list").await;
    let file = service.server.data_dir().join("prices.csv");
    std::fs::write(&file, price_for_all("0.25")).expect("a file");
    page.attach("File", &file).await;
    page.wait_until("document.getElementById('csv').value.includes('0.25')")
        .await;
    page.click("Preview").await;
    page.wait_for("Changes in this list").await;
    page.wait_for("0.25").await;
    page.click("Import this list").await;
    page.wait_for("The list was imported").await;
    page.wait_gone("The demonstration list is in force").await;

    let message = json!({ "to": "+37120000001", "from": "Acme", "message": "x" });
    service.accept(&message);
    wait_for("the new price is charged", || {
        (service.balance() == "99.75").then_some(())
    });
    page.assert_no_browser_errors();
}
