//! Viber messages by the form *Send*.

use testkit::Backend;
use testkit::chrome::Chrome;

use super::joined;
use super::operator_pages::register;
use crate::rest::service::Service;

const SENDER: &str = "Acme & Co";
const TEXT: &str = "Your order is on its way";

#[tokio::test]
async fn a_viber_message_with_a_button_is_sent_and_seen() {
    let service = Service::with(Backend::Sqlite, |builder| {
        builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
    });
    let chrome = Chrome::start().await;
    let page = joined(&service, &chrome, "ann@example.com", &[]).await;
    let form = service.server.url("/dashboard/send");
    page.open(&form).await;
    page.select("Channel", "Viber").await;
    page.fill("To", "+37120000001").await;
    page.click("main >> Send").await;
    assert_eq!(page.status(), Some(422));
    page.wait_for("approved sender").await;
    assert_eq!(page.value("Channel").await, "viber", "the choice is kept");
    assert_eq!(service.stored(), 0);

    let sender = register(&service, SENDER, "our own name", None);
    let approved = service.server.cli(&["sender", "approve", &sender]);
    assert!(approved.status.success(), "{approved:?}");
    page.open(&form).await;
    assert_eq!(page.value("From").await, SENDER, "the approved sender");
    page.select("Channel", "Viber").await;
    page.fill("To", "+37120000001").await;
    page.fill("Text", TEXT).await;
    page.wait_for("0.012 EUR").await;
    page.click("Image and button (Viber)").await;
    page.fill("Button label", "Follow it").await;
    page.fill("Button address", "https://example.com/order")
        .await;
    page.click("main >> Send").await;
    page.wait_for("Viber message").await;
    for text in [TEXT, SENDER, "Follow it", "https://example.com/order"] {
        page.wait_for(text).await;
    }
    page.wait_for("Seen by the recipient").await;
    page.open(&service.server.url("/dashboard/messages?channel=viber"))
        .await;
    assert_eq!(page.count("tbody tr").await, 1);
    assert_eq!(service.balance(), "99.988");
    page.clear_browser_errors();
    page.reload().await;
    page.assert_no_browser_errors();
}
