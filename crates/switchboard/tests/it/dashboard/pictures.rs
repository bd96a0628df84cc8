//! Pictures of pages for the documentation. `scripts/pictures` makes them, and beside each a list of the words on the page.
//!
//! Without that script the test compares the words, so that pictures of an older dashboard are noticed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use testkit::Backend;
use testkit::chrome::{Chrome, Page};

use super::operator;
use crate::rest::service::{Service, sms_with, wait_for};

/// The folder for new pictures; without it no picture is made.
const FOLDER: &str = "SWITCHBOARD_PICTURES";
const PAGES: [(&str, &str); 2] = [
    ("overview", "/dashboard"),
    ("message", "/dashboard/messages/{failed}"),
];
const WORDS: &str = r"[...document.querySelectorAll('nav a, nav summary, h1, h2, h3, dt, th')]
    .map(element => element.textContent.replace(/\d+/g, '#').replace(/\s+/g, ' ').trim())
    .filter(words => words).join('\n')";

#[tokio::test]
async fn pictures_for_the_documentation() {
    let new = std::env::var_os(FOLDER).map(PathBuf::from);
    let present = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
    let service = Service::start(Backend::Sqlite);
    let chrome = Chrome::start().await;
    let to: Vec<String> = (0..40)
        .map(|number| format!("+371200000{number:02}"))
        .collect();
    let text = "Hello Ann, your order 1001 is ready.";
    let mut messages = service.accept(&sms_with(
        &json!({ "to": to, "from": "Acme", "message": text }),
    ));
    let absent = json!({ "to": "+447700900043", "from": "Acme", "message": text });
    let failed = service.accept(&sms_with(&absent)).remove(0);
    messages.push(failed.clone());
    wait_for("the final states", || {
        let status =
            |id: &String| service.get(&format!("/sms/status/{id}")).json()["status"].clone();
        messages
            .iter()
            .all(|id| !status(id).is_null())
            .then_some(())
    });
    let page = operator(&service, &chrome).await;
    page.set_viewport(1280, 800).await;
    for (name, path) in PAGES {
        let path = path.replace("{failed}", &failed);
        page.open(&service.server.url(&path)).await;
        let words = words(&page).await;
        if let Some(folder) = &new {
            page.screenshot(&folder.join(format!("{name}.png"))).await;
            fs::write(folder.join(format!("{name}.txt")), words).expect("a writable folder");
        } else {
            let shown = fs::read_to_string(present.join(format!("{name}.txt"))).expect("the words");
            assert_eq!(
                words, shown,
                "the picture of the page '{name}' is out of date; run scripts/pictures"
            );
        }
    }
}

/// The menu, the headings and the names of fields and columns, without numbers, one on each line.
async fn words(page: &Page) -> String {
    let words = page.evaluate(WORDS).await;
    format!("{}\n", words.as_str().expect("a text"))
}
