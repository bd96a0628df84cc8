//! Pages without forms: messages of any account, routes, nodes, and carriers, which update themselves.

use serde_json::json;
use testkit::Backend;
use testkit::chrome::Chrome;

use super::operator;
use crate::rest::on_both_backends;
use crate::rest::service::Service;

on_both_backends!(an_operator_can_view_everything);

fn an_operator_can_view_everything(backend: Backend) {
    let routes = "[[route]]\ncountry = \"LV\"\ncarriers = [\"simulator\"]\n";
    let service = Service::with(backend, |builder| builder.config(routes));
    let token = service.create_account("acme");
    let body = json!({ "to": "+37120000001", "from": "Acme", "message": "<b>bold</b>" });
    let sent = service.call_as(&token, "POST", "/sms", body.to_string().as_bytes());
    assert_eq!(sent.status, 200, "{}", sent.text());
    let ids = sent.json();
    let id = ids[0].as_str().expect("an ID");
    let mut browser = operator(&service);
    let message = format!("/dashboard/operator/messages/{id}");
    for (path, expected) in [
        (
            message.as_str(),
            &["&#60;b&#62;bold", ">acme<", "What happened"][..],
        ),
        (
            "/dashboard/operator/nodes",
            &["this process", "alive", "schema"],
        ),
        (
            "/dashboard/operator/queues",
            &[
                "Due, high priority",
                "Reports parked",
                "None: no message is more than",
            ],
        ),
        (
            "/dashboard/operator/carriers",
            &["simulator", ">up<", "data-live"],
        ),
        ("/dashboard/operator/routes", &["country", "simulator"]),
        (
            "/dashboard/operator/routes?to=%2B37120000001&account=acme",
            &["rule 1", ">decides<"],
        ),
        (
            "/dashboard/operator/routes?to=%2B447700900000&account=main",
            &["no rule matches", "refused"],
        ),
        (
            "/dashboard/operator/reference?asked=247-01",
            &["LMT", "operational"],
        ),
        ("/dashboard/operator/accounts/2", &["49.9", "charge"]),
    ] {
        let page = browser.get(path);
        assert_eq!(page.status, 200, "{path}: {}", page.text());
        let text = page.text();
        for expected in expected {
            assert!(text.contains(expected), "{path}: {expected}: {text}");
        }
    }
    for (path, status) in [
        ("/dashboard/operator/messages/999999", 404),
        ("/dashboard/operator/messages/x", 404),
        ("/dashboard/operator/routes?to=12", 422),
        (
            "/dashboard/operator/routes?to=%2B37120000001&account=nobody",
            422,
        ),
    ] {
        assert_eq!(browser.get(path).status, status, "{path}");
    }
}

#[tokio::test]
async fn the_carriers_page_updates_itself() {
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let page = crate::dashboard::operator(&service, &chrome).await;
    page.click("Carriers").await;
    page.wait_for("Live").await;
    // A node that has just started has no row yet; it appears by itself.
    page.wait_until("document.querySelector('tbody time') !== null")
        .await;
    page.wait_for("simulator").await;
    // Nodes store the state of their carriers every two seconds.
    let stored_at = page
        .evaluate("document.querySelector('tbody time').dateTime")
        .await;
    page.wait_until(&format!(
        "document.querySelector('tbody time').dateTime !== {stored_at}"
    ))
    .await;
    page.assert_no_browser_errors();
}
