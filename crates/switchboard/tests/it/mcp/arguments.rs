//! Unknown and doubled arguments, and the codes of refusals.

use serde_json::{Value, json};

use super::{Client, Era, TOOLS, failure, result_of, start, tool_output};
use crate::people::client::{Client as OAuthClient, parameter};
use crate::people::joined;
use crate::rest::service::{Service, sms, sms_with};

/// A call whose arguments are written as they are, so that they can have a key twice.
fn call_raw(service: &Service, tool: &str, arguments: &str) -> testkit::http::Response {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    );
    let version = [("MCP-Protocol-Version", Era::Handshake.version())];
    service.post(&service.token, &version, body.as_bytes())
}

#[test]
fn unknown_and_doubled_arguments_are_refused() {
    let service = start();
    let balance = service.balance();
    for (tool, arguments, part) in [
        (
            "send_sms",
            r#"{"to":"+37120000001","from":"Acme","message":"Hi","dryRun":true}"#,
            "'preview'",
        ),
        (
            "send_sms",
            r#"{"to":"+37120000001","from":"Acme","text":"Hi"}"#,
            "'message'",
        ),
        (
            "send_sms",
            r#"{"to":"+37120000001","from":"Acme","message":"Hi","Preview":true}"#,
            "'preview'",
        ),
        (
            "send_sms",
            r#"{"to":"+37120000001","from":"Acme","message":"Hi","preview":true,"preview":false}"#,
            "'preview' appears twice",
        ),
        (
            "send_sms",
            r#"{"to":"+37120000001","to":"+37120000002","from":"Acme","message":"Hi"}"#,
            "'to' appears twice",
        ),
        (
            "lookup_hlr",
            r#"{"msisdn":"+37129100000","callbackUrl":"https://example.com/"}"#,
            "'callBackUrl'",
        ),
        (
            "correct_phone_number",
            r#"{"numbers":[{"Number":"29111111","country":"LV"}]}"#,
            "'CountryIso'",
        ),
        (
            "correct_phone_number",
            r#"{"numbers":[{"Number":"1","Number":"2"}]}"#,
            "'Number' appears twice",
        ),
        ("get_account", r#"{"verbose":true}"#, "takes none"),
    ] {
        let (code, message) = failure(&call_raw(&service, tool, arguments));
        assert_eq!(code, "INVALID_INPUT", "{arguments}: {message}");
        assert!(message.contains(part), "{arguments}: {message}");
    }
    assert_eq!(service.stored(), 0, "nothing was sent");
    assert_eq!(service.balance(), balance, "nothing was charged");
    for (tool, _) in TOOLS {
        let (code, message) = failure(&call_raw(&service, tool, r#"{"noSuchArgument":1}"#));
        assert_eq!(code, "INVALID_INPUT", "{tool}: {message}");
        assert!(message.contains("'noSuchArgument'"), "{tool}: {message}");
    }
    // Outside the arguments, a doubled key makes the message invalid.
    let twice =
        br#"{"jsonrpc":"2.0","id":7,"method":"tools/list","method":"tools/call","params":{}}"#;
    let version = [("MCP-Protocol-Version", Era::Handshake.version())];
    let refused = service.post(&service.token, &version, twice);
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert_eq!(refused.json()["error"]["code"], -32600);
}

#[test]
fn the_schemas_are_closed_and_errors_are_described_once() {
    let service = start();
    let list = service.call_method(Era::Handshake, &service.token, "tools/list", json!({}));
    let tools = result_of(&list)["tools"].clone();
    for tool in tools.as_array().expect("a list") {
        let name = &tool["name"];
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        // A failed call has only the field `error`, so no field is required, and none is refused.
        let output = tool["outputSchema"].as_object().expect("a schema");
        let keys: Vec<&str> = output.keys().map(String::as_str).collect();
        assert_eq!(keys, ["properties", "type"], "{name}");
        let has_error = output["properties"].get("error").is_some();
        assert_eq!(has_error, name == "get_message", "{name}");
    }
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let hello = service.call_method(Era::Handshake, &service.token, "initialize", params);
    let instructions = result_of(&hello)["instructions"].clone();
    let instructions = instructions.as_str().expect("a text");
    for field in ["code", "message", "retryable", "service_error_code"] {
        assert!(instructions.contains(field), "{field}: {instructions}");
    }
}

/// The code, the service error code and whether a later call may work, of a refused call.
fn refusal(service: &Service, tool: &str, arguments: &Value) -> Value {
    refusal_as(service, &service.token, tool, arguments)
}

fn refusal_as(service: &Service, token: &str, tool: &str, arguments: &Value) -> Value {
    let response = service.call_tool(token, tool, arguments);
    failure(&response);
    let error = &result_of(&response)["structuredContent"]["error"];
    json!([
        error["code"],
        error["service_error_code"],
        error["retryable"]
    ])
}

fn set(service: &Service, rule: &str) {
    let set = service.server.cli(&["account", "set", "main", rule]);
    assert!(set.status.success(), "{rule}: {set:?}");
}

#[test]
fn refusals_have_their_service_error_code() {
    let service = start();
    for (changed, code) in [
        (json!({ "to": "12" }), 53),
        (json!({ "to": "29111111", "correctBy": "US" }), 53),
        (json!({ "coding": 0, "message": "\u{17f}" }), 60),
        (json!({ "udh": "%05%00%03%2A%02%01" }), 60),
        (json!({ "udh": "%FF", "coding": 0 }), 60),
        (json!({ "coding": 0, "message": "x".repeat(161) }), 61),
        (json!({ "message": "x".repeat(153 * 255 + 1) }), 61),
    ] {
        let expected = json!(["INVALID_INPUT", code, false]);
        let actual = refusal(&service, "send_sms", &sms_with(&changed));
        assert_eq!(actual, expected, "{changed}");
    }
    let none = json!(["INVALID_INPUT", null, false]);
    let empty = sms_with(&json!({ "message": "" }));
    assert_eq!(refusal(&service, "send_sms", &empty), none);
    let lookup = json!({ "msisdn": "12" });
    let prefix = json!({ "country": "LV", "number": "12" });
    let expected = json!(["INVALID_INPUT", 53, false]);
    for (tool, arguments) in [
        ("lookup_hlr", lookup),
        ("get_mobile_prefixes", prefix),
        ("register_msisdn_sender", json!({ "name": "12" })),
        (
            "register_msisdn_sender",
            json!({ "name": "+3712000000712" }),
        ),
    ] {
        let actual = refusal(&service, tool, &arguments);
        assert_eq!(actual, expected, "{tool}: {arguments}");
    }

    // One more message like this is above the first cap today, and above the second one on every day.
    service.accept(&sms());
    for (rule, code, retryable) in [
        ("daily_cap=0.05", 28, true),
        ("daily_cap=0.001", 28, false),
        ("daily_cap=off", 24, true),
        ("countries=EE", 21, false),
    ] {
        if code == 24 {
            let drained = ["account", "credit", "main", "-100"];
            assert!(service.server.cli(&drained).status.success());
        }
        set(&service, rule);
        let expected = json!(["FORBIDDEN", code, retryable]);
        // The rules are cached for a moment.
        crate::rest::service::wait_for(rule, || {
            (refusal(&service, "send_sms", &sms()) == expected).then_some(())
        });
        let preview = sms_with(&json!({ "preview": true }));
        let preview = tool_output(&service.call_tool(&service.token, "send_sms", &preview));
        assert_eq!(preview["sent"], false, "{preview}");
        assert_eq!(preview["accepted"], false, "{preview}");
        let why = &preview["refusal"];
        let why = json!([why["code"], why["service_error_code"], why["retryable"]]);
        assert_eq!(why, expected, "{preview}");
        assert_eq!(preview["parts"], 1, "{preview}");
        assert!(preview["cost"]["totalPrice"].is_string(), "{preview}");
    }
}

/// A message above the cap of a whole day is refused on every day, so repeating it is of no use.
#[test]
fn refusals_of_a_clients_cap_may_end_at_midnight() {
    let service = start();
    let as_admin = ["--role", "admin", "--account", "main"];
    let mut browser = joined(&service, "bob@example.com", &as_admin);
    let client = OAuthClient::new(&service);
    browser.get(&client.request_consent("sms:send"));
    let approved = browser.submit(&[
        ("scope", "sms:send"),
        ("daily_cap", "0.05"),
        ("decision", "approve"),
    ]);
    let code = parameter(&approved, "code").expect("a code");
    let granted = client.redeem(&code);
    let token = granted["access_token"].as_str().expect("a token");
    let three = sms_with(&json!({ "to": ["+37120000001", "+37120000002", "+37120000003"] }));
    let check = |arguments: &Value, retryable: bool| {
        let expected = json!(["FORBIDDEN", 28, retryable]);
        let actual = refusal_as(&service, token, "send_sms", arguments);
        assert_eq!(actual, expected, "{arguments}");
        let mut preview = arguments.clone();
        preview["preview"] = json!(true);
        let preview = tool_output(&service.call_tool(token, "send_sms", &preview));
        assert_eq!(preview["refusal"]["retryable"], retryable, "{preview}");
    };
    check(&three, false);
    tool_output(&service.call_tool(token, "send_sms", &sms()));
    check(&sms(), true);
    check(&three, false);
}

#[test]
fn a_preview_tells_limits_of_recipients_and_senders() {
    let service = start();
    let preview = |more: Value| {
        let mut arguments = sms_with(&more);
        arguments["preview"] = json!(true);
        tool_output(&service.call_tool(&service.token, "send_sms", &arguments))
    };
    let fine = preview(json!({}));
    assert_eq!(
        (&fine["accepted"], &fine["refusal"]),
        (&json!(true), &Value::Null)
    );
    set(&service, "per_recipient_hour=1");
    let twice = json!({ "to": ["+37120000001", "+37120000001"] });
    let why = preview(twice)["refusal"].clone();
    assert_eq!(why["service_error_code"], 23, "{why}");
    assert_eq!(preview(json!({}))["accepted"], true);
    service.accept(&sms());
    let why = preview(json!({}))["refusal"].clone();
    assert_eq!(
        (&why["service_error_code"], &why["retryable"]),
        (&json!(23), &json!(true))
    );
    assert_eq!(preview(json!({ "testMode": "1" }))["accepted"], true);
    set(&service, "per_recipient_hour=off");
    set(&service, "approved_senders_only=true");
    crate::rest::service::wait_for("the rule", || {
        let why = preview(json!({}))["refusal"].clone();
        let message = why["message"].as_str().unwrap_or_default();
        message.contains("approved sender").then_some(())
    });
    assert_eq!(service.stored(), 1, "only the message that was sent");
}
