//! One-time codes by tools: sent once under a key, checked, and paid.

use serde_json::{Value, json};

use super::{Client, failure, start, tool_output};
use crate::rest::service::wait_for;

#[test]
fn a_code_is_sent_and_checked_by_tools() {
    let service = start();
    let price = ["account", "set", "main", "verify_price=0.02"];
    assert!(service.server.cli(&price).status.success());
    let number = "+37120000051";
    let call = |tool: &str, arguments: Value| service.call_tool(&service.token, tool, &arguments);
    let arguments =
        json!({ "to": number, "from": "Acme", "message": "{code}", "idempotencyKey": "one" });
    let sent = tool_output(&call("start_verification", arguments.clone()));
    let again = tool_output(&call("start_verification", arguments.clone()));
    assert_eq!(again, sent, "sent once");
    let mut other = arguments;
    other["to"] = json!("+37120000052");
    assert_eq!(failure(&call("start_verification", other)).0, "CONFLICT");
    assert_eq!(service.stored(), 1);
    let id = sent["verificationId"].as_u64().expect("an ID");
    assert_eq!(sent["to"], number);

    let inbox = ["simulator", "inbox", "--json", "--number", number];
    let code = wait_for("the code", || {
        let inbox = service.server.cli_json(&inbox);
        inbox[0]["message"].as_str().map(str::to_owned)
    });
    let wrong = if code == "111111" { "222222" } else { "111111" };
    let (kind, message) = failure(&call(
        "check_verification",
        json!({ "id": id, "code": wrong }),
    ));
    assert_eq!(kind, "INVALID_INPUT", "{message}");
    assert!(message.contains("4 tries are left"), "{message}");
    let standing = || tool_output(&call("get_verification", json!({ "id": id })));
    let pending = standing();
    assert_eq!(pending["status"], "pending", "{pending}");
    assert_eq!(pending["final"], false, "{pending}");

    let before = service.balance();
    let right = json!({ "id": id, "code": code });
    let checked = tool_output(&call("check_verification", right.clone()));
    assert_eq!(checked, json!({ "id": id, "status": "approved" }));
    assert_ne!(service.balance(), before, "the right code is charged");
    let after = service.balance();
    assert_eq!(failure(&call("check_verification", right)).0, "CONFLICT");
    assert_eq!(service.balance(), after, "once");
    assert_eq!(standing()["final"], true);
    let stranger = service.create_account("other");
    let foreign = service.call_tool(&stranger, "get_verification", &json!({ "id": id }));
    assert_eq!(failure(&foreign).0, "NOT_FOUND");
}
