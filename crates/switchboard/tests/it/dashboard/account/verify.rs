//! The page of one-time codes: a code is sent, entered and paid, and never shown.

use testkit::Backend;

use super::{admin, send};
use crate::dashboard::operator_pages::operator;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

on_both_backends!(a_code_is_sent_and_entered_without_scripts);

fn a_code_is_sent_and_entered_without_scripts(backend: Backend) {
    let service = Service::with(backend, |builder| {
        builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
    });
    let price = ["account", "set", "main", "verify_price=0.02"];
    assert!(service.server.cli(&price).status.success());
    let mut browser = admin(&service);
    let page = browser.get("/dashboard/verify").text();
    assert!(page.contains("Each correct code costs 0.02 EUR"), "{page}");
    assert!(page.contains("None yet"), "{page}");
    let key = browser.hidden("key").expect("a key");
    let refused = send(&mut browser, "/dashboard/verify", &[("to", "12")]);
    assert_eq!(refused.status, 422, "{}", refused.text());
    let number = "+37129100000";
    let fields = [("to", number), ("key", key.as_str())];
    let sent = send(&mut browser, "/dashboard/verify", &fields);
    assert_eq!(sent.status, 303, "{}", sent.text());
    let again = send(&mut browser, "/dashboard/verify", &fields);
    assert_eq!(again.header("location"), sent.header("location"));
    assert_eq!(service.stored(), 1, "sent once");

    let path = sent.header("location").expect("a page").to_owned();
    let inbox = ["simulator", "inbox", "--json", "--number", number];
    let text = wait_for("the code", || {
        let inbox = service.server.cli_json(&inbox);
        inbox[0]["message"].as_str().map(str::to_owned)
    });
    let (code, _) = text.split_at(6);
    let wrong = if code == "111111" { "222222" } else { "111111" };
    for (entered, words) in [(wrong, "Tries left: 4"), ("12", "digits")] {
        let refused = send(&mut browser, &path, &[("code", entered)]);
        assert_eq!(refused.status, 422, "{}", refused.text());
        let page = refused.text();
        assert!(page.contains(words), "{words}: {page}");
        assert!(!page.contains(wrong), "{page}");
    }
    let before = service.balance();
    let right = send(&mut browser, &path, &[("code", code)]);
    assert_eq!(right.status, 303, "{}", right.text());
    assert_ne!(service.balance(), before, "charged");
    let page = browser.follow(&right).text();
    for words in ["The code is right", "approved", "1 of 5", "0.02 EUR"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let late = send(&mut browser, &path, &[("code", code)]);
    assert!(late.text().contains("is approved"), "{}", late.text());

    let list = browser.get("/dashboard/verify").text();
    for words in [number, "approved", "+371291", "Latvia", "100.0 %", "247 0"] {
        assert!(list.contains(words), "{words}: {list}");
    }
    let mut operator = operator(&service);
    let all = operator.get("/dashboard/operator/verify").text();
    for words in ["main", "+371291", "Latvia", "normal"] {
        assert!(all.contains(words), "{words}: {all}");
    }
    assert!(!all.contains(number), "{all}");
    for page in [&list, &all] {
        assert!(!page.contains(code), "{page}");
    }
}
