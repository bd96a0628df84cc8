//! Creating, changing and revoking SMPP users.

use testkit::Backend;

use super::{operator, post};
use crate::dashboard::asking::age_sessions;
use crate::people::PASSWORD;
use crate::rest::service::Service;

const HERE: &str = "/dashboard/operator/smpp-users";

#[test]
fn operators_create_change_and_revoke_smpp_users() {
    let service = Service::start(Backend::Sqlite);
    let mut browser = operator(&service);
    let page = browser.get(HERE);
    assert!(page.text().contains("No SMPP users"), "{}", page.text());
    let refused = browser.submit(&[
        ("account", "nobody"),
        ("system_id", "longer than fifteen"),
        ("max_binds", "many"),
    ]);
    assert_eq!(refused.status, 422, "{}", refused.text());
    let problems = refused.text().matches("class=\"problem\"").count();
    assert_eq!(problems, 3, "{}", refused.text());

    age_sessions(&service);
    browser.get(HERE);
    let opened_at = browser.hidden("newest").expect("a field");
    let fields = [
        ("account", "main"),
        ("system_id", "main-1"),
        ("max_binds", "4"),
        ("max_per_second", ""),
        ("networks", "192.0.2.1\r\n2001:db8::/32"),
        ("senders", "Acme Inc.\r\n+37120000001"),
        ("countries", "LV, EE"),
    ];
    let asked = browser.submit(&fields);
    assert!(
        asked.text().contains("Current password"),
        "{}",
        asked.text()
    );
    let created = browser.submit(&[("current_password", PASSWORD)]);
    assert_eq!(created.status, 200, "{}", created.text());
    assert!(
        created.text().contains("<code>main-1</code>"),
        "{}",
        created.text()
    );
    assert_eq!(
        created.header("cache-control"),
        Some("no-store"),
        "the password is on this page"
    );
    let again = [&fields[..1], &[("newest", opened_at.as_str())]].concat();
    let again = post(&mut browser, HERE, &again);
    assert_eq!(again.status, 422, "{}", again.text());
    assert!(
        again.text().contains("after this form was opened"),
        "{}",
        again.text()
    );

    let users = service.server.cli_json(&["smpp-user", "list", "--json"]);
    let users = users.as_array().expect("a list");
    assert_eq!(users.len(), 1, "{users:?}");
    assert_eq!(users[0]["maxBinds"], 4);
    assert_eq!(users[0]["senders"][1], "+37120000001");
    assert_eq!(users[0]["ips"][1], "2001:db8::/32");
    let list = browser.get(HERE).text();
    assert!(
        list.contains("EE LV") && list.contains("at most 4"),
        "{list}"
    );

    let user = format!("{HERE}/1");
    let page = browser.get(&user).text();
    assert!(page.contains("No session is bound"), "{page}");
    let refused = post(&mut browser, &user, &[("receipt_id", "octal")]);
    assert_eq!(refused.status, 422, "{}", refused.text());
    let fields = [
        ("max_per_second", "50"),
        ("binds", "transmitter"),
        ("receipt_id", "hex"),
    ];
    let changed = post(&mut browser, &user, &fields);
    assert_eq!(changed.status, 303, "{}", changed.text());
    let page = browser.follow(&changed).text();
    assert!(page.contains("All nodes follow"), "{page}");
    let users = service.server.cli_json(&["smpp-user", "list", "--json"]);
    assert_eq!(users[0]["maxPerSecond"], 50, "{users}");
    assert_eq!(users[0]["binds"], serde_json::json!(["transmitter"]));
    assert_eq!(users[0]["receipts"]["id"], "hex");
    assert_eq!(users[0]["maxBinds"], 0, "an empty field is no limit");

    let revoke = format!("{HERE}/revoke");
    let asked = post(&mut browser, &revoke, &[("system_id", "main-1")]);
    assert!(
        asked.text().contains("Revoke the SMPP user main-1?"),
        "{}",
        asked.text()
    );
    let revoked = browser.submit(&[("sure", "yes")]);
    assert_eq!(revoked.status, 303, "{}", revoked.text());
    let page = browser.follow(&revoked).text();
    for words in ["No SMPP users", "Revoked. "] {
        assert!(page.contains(words), "{words}: {page}");
    }
}
