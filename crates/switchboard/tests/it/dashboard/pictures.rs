//! Pictures of pages for the documentation. `scripts/pictures` makes them.

use std::path::PathBuf;

use serde_json::json;
use testkit::Backend;
use testkit::chrome::Chrome;

use super::operator;
use crate::rest::service::{Service, sms_with, wait_for};

/// The folder for the pictures; without it nothing is made.
const FOLDER: &str = "SWITCHBOARD_PICTURES";
const PAGES: [(&str, &str); 2] = [
    ("overview", "/dashboard"),
    ("message", "/dashboard/messages/{failed}"),
];

#[tokio::test]
async fn pictures_for_the_documentation() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let to: Vec<String> = (0..40)
        .map(|number| format!("+371200000{number:02}"))
        .collect();
    let text = "Hello Ann, your order 1001 is ready.";
    service.accept(&sms_with(
        &json!({ "to": to, "from": "Acme", "message": text }),
    ));
    let absent = json!({ "to": "+447700900043", "from": "Acme", "message": text });
    let failed = service.accept(&sms_with(&absent)).remove(0);
    wait_for("the final states", || {
        let state = service.get(&format!("/sms/status/{failed}")).json();
        (state["state"] == "failed").then_some(())
    });
    let page = operator(&service, &chrome).await;
    page.set_viewport(1280, 800).await;
    for (name, path) in PAGES {
        let path = path.replace("{failed}", &failed);
        page.open(&service.server.url(&path)).await;
        page.screenshot(&folder.join(format!("{name}.png"))).await;
    }
}
