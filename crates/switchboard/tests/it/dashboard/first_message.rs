//! From the first start to the first delivered message, and hostile texts.

use serde_json::json;
use testkit::Backend;
use testkit::chrome::Chrome;
use testkit::receiver::{Receiver, Reply};

use super::operator;
use crate::rest::service::{Service, sms, sms_with};

#[tokio::test]
async fn a_new_operator_sees_the_first_message_delivered_and_reported() {
    let receiver = Receiver::start();
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let page = operator(&service, &chrome).await;
    page.assert_accessible().await;
    page.save_screenshots("overview-first-start").await;
    page.click("Send a test message").await;
    page.wait_for_path("/dashboard/send").await;
    page.wait_for("nothing real is sent").await;
    assert_eq!(page.value("To").await, "+447700900000");

    // The price follows what is typed.
    page.fill("Text", "It’s a start").await;
    page.wait_for("UCS-2").await;
    page.wait_for("is not in GSM-7").await;
    page.fill("Text", "A start").await;
    page.wait_for("GSM-7").await;
    page.wait_gone("is not in GSM-7").await;
    page.click("Time, report, test mode").await;
    page.fill("Report to", &receiver.url("/report")).await;
    page.click("main >> Send").await;

    // The page updates itself until the message is final and reported, without a reload.
    page.wait_until("location.pathname.startsWith('/dashboard/messages/')")
        .await;
    page.evaluate("window.untouched = true").await;
    page.wait_for("Delivered").await;
    page.wait_for("Report received").await;
    page.wait_for("Accepted by carrier simulator").await;
    assert_eq!(
        page.evaluate("window.untouched").await,
        true,
        "not loaded again"
    );
    assert_eq!(receiver.count(), 1);
    page.assert_no_browser_errors();
    page.assert_accessible().await;
}

#[tokio::test]
async fn times_are_in_the_local_zone_with_utc_on_hover() {
    let service = Service::start(Backend::Sqlite);
    service.accept(&sms());
    let chrome = Chrome::start().await;
    let page = operator(&service, &chrome).await;
    page.set_zone("Asia/Tokyo").await;
    page.open(&service.server.url("/dashboard/messages")).await;
    let checks = page
        .evaluate(
            "(() => {
                const time = document.querySelector('tbody time');
                const at = (timeZone) => new Date(time.dateTime).toLocaleTimeString('en-GB', { timeZone });
                const own = time.textContent.match(/\\d+(:\\d\\d:\\d\\d)/);
                return [
                    Number(own[0].split(':')[0]) % 12 === Number(at('Asia/Tokyo').split(':')[0]) % 12,
                    own[1] === at('Asia/Tokyo').slice(2),
                    time.title.endsWith(at('UTC') + ' UTC'),
                ];
            })()",
        )
        .await;
    assert_eq!(checks, json!([true, true, true]), "hour, minute, title");
}

#[tokio::test]
async fn the_form_keeps_what_was_typed_and_works_without_scripts() {
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let page = operator(&service, &chrome).await;
    page.disable_scripts().await;
    page.open(&service.server.url("/dashboard/send")).await;
    page.fill("To", "nobody").await;
    page.fill("Text", "Hello “you”").await;
    page.click("Check").await;
    page.wait_for("UCS-2").await;
    assert_eq!(page.value("Text").await, "Hello “you”");
    page.click("main >> Send").await;
    assert_eq!(page.status(), Some(422));
    assert_eq!(page.value("To").await, "nobody");
    page.fill("To", "+37120000001").await;
    page.click("main >> Send").await;
    page.wait_for("Message 1").await;
    page.assert_no_browser_errors();
}

#[tokio::test]
async fn hostile_texts_are_escaped() {
    const MARKUP: &str =
        "<img src=x onerror=\"window.broken=1\"><script>window.broken=1</script>'\"><b>&amp;";
    let receiver = Receiver::builder()
        .script(|_| Reply::answer(200, MARKUP))
        .start();
    let service = Service::start(Backend::Sqlite);
    // Sender names allow no markup, unlike other input from outside.
    let url = receiver.url("/<script>window.broken=1</script>?\"><b>");
    let [id]: [String; 1] = service
        .accept(&sms_with(&json!({ "message": MARKUP, "dlrUrl": url })))
        .try_into()
        .expect("one");
    let chrome = Chrome::start().await;
    let page = operator(&service, &chrome).await;
    for path in [
        "/dashboard/messages".to_owned(),
        format!("/dashboard/messages/{id}"),
        format!(
            "/dashboard/send?message={}&from=%3Cb%3E&to=%22%3E%3Cb%3E",
            "%3Cscript%3Ewindow.broken%3D1%3C%2Fscript%3E"
        ),
        "/dashboard/messages?from=%22%3E%3Cscript%3Ewindow.broken%3D1%3C%2Fscript%3E".to_owned(),
    ] {
        page.open(&service.server.url(&path)).await;
        assert_eq!(page.status(), Some(200), "{path}");
        let elements = page.count("main img, main script, main b").await;
        assert_eq!(elements, 0, "{path}: {}", page.text().await);
    }
    page.open(&service.server.url(&format!("/dashboard/messages/{id}")))
        .await;
    page.wait_for("Report not received").await;
    page.wait_for(MARKUP).await;
    page.wait_for("200, but the body was").await;
    assert_eq!(page.count("main img, main script, main b").await, 0);
    assert_eq!(page.evaluate("window.broken ?? 0").await, 0);
    page.assert_no_browser_errors();
}
