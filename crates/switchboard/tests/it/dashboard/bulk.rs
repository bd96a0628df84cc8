//! *Send to many* in a browser: a file, its price, and the progress.

use std::fs;
use std::time::Instant;

use testkit::Backend;
use testkit::chrome::Chrome;

use super::joined;
use crate::rest::service::Service;

const ROWS: usize = 10_000;

/// Notes each state of the progress that the page shows.
const WATCH: &str = "(() => {
    const bar = () => document.querySelector('main progress').value;
    window.seen = [bar()];
    const note = () => { if (seen.at(-1) !== bar()) seen.push(bar()); };
    new MutationObserver(note).observe(document.querySelector('main'), { subtree: true, childList: true, attributes: true });
})()";

#[tokio::test]
async fn ten_thousand_rows_are_priced_sent_and_followed() {
    let service = Service::start(Backend::Sqlite);
    let credit = ["account", "credit", "main", "900"];
    assert!(service.server.cli(&credit).status.success());
    let rows = (0..ROWS).map(|row| format!("+3712000{row:04},Ann {row}\n"));
    let file = service.server.data_dir().join("customers.csv");
    let csv = std::iter::once("to,name\n".to_owned()).chain(rows);
    fs::write(&file, csv.collect::<String>()).expect("a file");

    let chrome = Chrome::start().await;
    let page = joined(&service, &chrome, "ann@example.com", &[]).await;
    page.click("Send to many").await;
    page.fill("From", "Acme").await;
    page.fill("Text", "Hi {name}, it is ready").await;
    page.attach("File", &file).await;
    page.wait_until("document.getElementById('csv').value.includes('Ann 9999')")
        .await;
    page.click("Check and show the price").await;
    page.wait_for("Send 10,000 messages?").await;
    for text in ["406.00 EUR", "594.00 EUR", "Hi Ann 0, it is ready"] {
        page.wait_for(text).await;
    }
    assert_eq!(service.stored(), 0, "nothing is sent yet");

    let began = Instant::now();
    page.click("main >> Send 10,000 messages").await;
    page.wait_until("location.pathname.startsWith('/dashboard/bulk/jobs/')")
        .await;
    page.evaluate(WATCH).await;
    page.wait_for("10,000 of 10,000").await;
    page.wait_for("done").await;
    println!("{ROWS} rows were accepted in {:?}", began.elapsed());
    let seen = page.evaluate("window.seen").await;
    let seen = seen.as_array().expect("the page was not loaded again");
    assert!(seen.len() > 2, "the page updates itself: {seen:?}");
    assert_eq!(service.stored(), ROWS as u64);
    assert_eq!(service.balance(), "594.00");
    page.wait_for("Refused 0").await;
    page.assert_no_browser_errors();
    page.assert_accessible().await;
}
