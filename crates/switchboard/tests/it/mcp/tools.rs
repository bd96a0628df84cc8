//! Each tool: its description, what it does, and how the refusals of REST are returned.

use serde_json::{Value, json};
use testkit::TEST_TIMEOUT;
use testkit::receiver::Receiver;

use super::{Client, Era, TOOLS, failure, result_of, start, tool_output};
use crate::rest::service::{Service, wait_for};

const MAX_LIST_BYTES: usize = 25_000;

fn listed(service: &Service, era: Era, token: &str) -> Vec<Value> {
    let response = service.call_method(era, token, "tools/list", json!({}));
    let result = result_of(&response);
    result["tools"].as_array().expect("a list").clone()
}

#[test]
fn every_tool_describes_its_scope_and_cost() {
    let service = start();
    let tools = listed(&service, Era::Handshake, &service.token);
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, TOOLS.map(|(name, _)| name));
    for (tool, (name, scope)) in tools.iter().zip(TOOLS) {
        let description = tool["description"].as_str().expect("a description");
        let needs = match scope {
            "" => "Needs no scope.".to_owned(),
            scope => format!("Needs the scope {scope}."),
        };
        assert!(
            description.contains(&needs) && description.contains("Example"),
            "{name}: {description}"
        );
        let billable = [
            "send_sms",
            "lookup_hlr",
            "start_verification",
            "check_verification",
        ];
        let billable = billable.contains(&name);
        let costs = (
            description.contains("COSTS MONEY"),
            description.contains("Free of charge"),
        );
        assert_eq!(costs, (billable, !billable), "{name}: {description}");
        assert!(tool["title"].is_string(), "{name}");
        let hints = tool["annotations"].as_object().expect("annotations");
        for hint in [
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ] {
            assert!(hints[hint].is_boolean(), "{name}: {hint}");
        }
        let destructive = billable || name == "cancel_message";
        assert_eq!(hints["destructiveHint"], json!(destructive), "{name}");
        let lists = ["list_senders", "list_inbox"];
        let reads = ["numbers:read", "sms:rates", ""].contains(&scope)
            || ["get_message", "get_lookup", "get_verification"].contains(&name)
            || lists.contains(&name);
        assert_eq!(hints["readOnlyHint"], json!(reads), "{name}");
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{name}: {schema}");
            assert!(tool[schema]["properties"].is_object(), "{name}: {schema}");
        }
    }
}

#[test]
fn the_list_is_the_same_for_everyone() {
    let service = start();
    let all = listed(&service, Era::Handshake, &service.token);
    let limited = service.create_token("main", &["--permission", "sms:rates"]);
    let other = service.create_account("other");
    assert_eq!(all, listed(&service, Era::Handshake, &limited.token));
    assert_eq!(all, listed(&service, Era::Stateless, &other));
    // Each conversation of a model begins with it.
    let bytes = json!({ "tools": all }).to_string().len();
    assert!(bytes < MAX_LIST_BYTES, "{bytes} bytes");
}

/// A valid call of each tool, and what its answer must contain.
fn calls(receiver: &Receiver, sender: u64, pin: &str) -> Vec<(&'static str, Value, Value)> {
    let url = receiver.url("/hlr");
    vec![
        (
            "send_sms",
            json!({ "to": "+37120000001", "from": "Acme", "message": "x".repeat(200) }),
            json!({ "parts": 2, "to": "+37120000001" }),
        ),
        (
            "send_sms",
            json!({ "to": ["+37120000001", "37120000002"], "from": "Acme", "message": "Hi", "testMode": "1" }),
            json!({ "parts": 2, "to": ["+37120000001", "37120000002"] }),
        ),
        (
            "get_sms_rates",
            json!({ "country": "lv", "operator": "lmt" }),
            json!({ "currency": "EUR", "demonstration": true }),
        ),
        (
            "confirm_msisdn_sender",
            json!({ "senderId": sender, "code": pin }),
            json!({ "senderId": sender, "status": "approved" }),
        ),
        (
            "lookup_hlr",
            json!({ "msisdn": "+37129100000", "callBackUrl": url }),
            json!({}),
        ),
        (
            "get_mcc_mnc_list",
            json!({ "country": "US", "Page": 2 }),
            json!({}),
        ),
        ("get_mobile_prefixes", json!({ "country": "lv" }), json!({})),
        (
            "correct_phone_number",
            json!({ "Number": "29 111 111", "CountryIso": "LV" }),
            json!({ "numbers": [{
                "Error": null, "Number": "29 111 111", "NumberType": "mobile", "CountryIso": "LV", "Mobile": true,
                "NumberE164": "+37129111111",
            }]}),
        ),
    ]
}

/// Registers a number and reads the PIN from the simulated handset.
fn register_number(service: &Service, era: Era, number: &str) -> (u64, String) {
    let params = json!({ "name": "register_msisdn_sender", "arguments": { "name": number } });
    let answer = tool_output(&service.call_method(era, &service.token, "tools/call", params));
    assert_eq!(answer["status"], "awaiting_confirmation");
    let next = answer["next"].as_str().expect("a hint");
    assert!(next.contains("confirm_msisdn_sender"), "{next}");
    let inbox = ["simulator", "inbox", "--json", "--number", number];
    let text = wait_for("the PIN", || {
        let inbox = service.server.cli_json(&inbox);
        inbox[0]["message"].as_str().map(str::to_owned)
    });
    let pin = text.split(|c: char| !c.is_ascii_digit());
    let pin = pin.into_iter().find(|digits| digits.len() == 5);
    let id = answer["senderId"].as_u64().expect("an ID");
    (id, pin.expect("five digits").to_owned())
}

#[test]
fn every_tool_works_in_both_eras() {
    let service = start();
    let receiver = Receiver::start();
    for (era, number, name) in [
        (Era::Handshake, "+37120000031", "Acme"),
        (Era::Stateless, "+37120000032", "Acme Two"),
    ] {
        let (sender, pin) = register_number(&service, era, number);
        let call = |tool: &str, arguments: Value| {
            let params = json!({ "name": tool, "arguments": arguments });
            tool_output(&service.call_method(era, &service.token, "tools/call", params))
        };
        for (tool, arguments, expected) in calls(&receiver, sender, &pin) {
            let answer = call(tool, arguments);
            for (field, value) in expected.as_object().expect("fields") {
                assert_eq!(&answer[field], value, "{era:?} {tool}: {answer}");
            }
        }
        let registered = call(
            "register_sender_id",
            json!({ "name": name, "category": "Brand", "categoryDescription": "Ours" }),
        );
        assert_eq!(registered["status"], "pending");
        let id = registered["senderId"].as_u64().expect("an ID");
        let record = service.get(&format!("/senderId/{id}")).json();
        assert_eq!(record["name"], name);
        assert_eq!(record["type"], "AlphaNumeric");
        let networks = call("get_mcc_mnc_list", json!({ "country": "LV" }));
        let first = &networks["networks"][0];
        assert!(networks["total"].as_u64() > Some(0), "{networks}");
        let operator = call("get_operator", json!({ "operatorId": first["operatorId"] }));
        assert_eq!(operator["country"], "LV");
        assert_eq!(operator["mcc"], first["MCC"]);
    }
    assert!(receiver.wait_for(2, TEST_TIMEOUT));
}

/// Every item of a list, page by page. No page is larger than its limit.
fn pages(service: &Service, tool: &str, field: &str, filter: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    let mut arguments = filter.clone();
    arguments["limit"] = json!(500);
    loop {
        let page = tool_output(&service.call_tool(&service.token, tool, &arguments));
        let items = page[field].as_array().expect("a list");
        assert!(items.len() <= 500, "{} items", items.len());
        all.extend(items.iter().cloned());
        if page["nextCursor"].is_null() {
            assert_eq!(page["total"], json!(all.len()), "{tool}");
            return all;
        }
        arguments["cursor"] = page["nextCursor"].clone();
    }
}

#[test]
fn results_are_bounded() {
    let service = start();
    for (tool, field, arguments) in [
        ("get_sms_rates", "rates", json!({})),
        (
            "get_mobile_prefixes",
            "prefixes",
            json!({ "country": "IN" }),
        ),
        ("get_mcc_mnc_list", "networks", json!({ "country": "US" })),
    ] {
        let response = service.call_tool(&service.token, tool, &arguments);
        let answer = tool_output(&response);
        let items = answer[field].as_array().expect("a list").len();
        assert_eq!(items, 100, "{tool}");
        assert!(answer["total"].as_u64() > Some(100), "{tool}");
        // The result is there twice: structured and as text.
        let bytes = response.text().len();
        assert!(bytes < 64 * 1024, "{tool}: {bytes} bytes");
    }
}

#[test]
fn tools_return_what_rest_returns() {
    let service = start();
    let call = |tool: &str, arguments: Value| {
        tool_output(&service.call_tool(&service.token, tool, &arguments))
    };
    let rates = service.get("/rates").json();
    let paged = pages(&service, "get_sms_rates", "rates", &json!({}));
    assert_eq!(json!(paged), rates);
    let latvian: Vec<&Value> = rates
        .as_array()
        .expect("a list")
        .iter()
        .filter(|rate| rate["CountryCode"] == "LV")
        .collect();
    let by_name = call(
        "get_sms_rates",
        json!({ "country": "latvia", "operator": null }),
    );
    assert_eq!(by_name["rates"], json!(latvian));
    let none = call(
        "get_sms_rates",
        json!({ "country": "LV", "operator": "no such one" }),
    );
    assert_eq!(none["rates"], json!([]));
    let prefixes = service.get("/prefixes/LV").json();
    let country = json!({ "country": "LV" });
    let paged = pages(&service, "get_mobile_prefixes", "prefixes", &country);
    assert_eq!(json!(paged), prefixes);
    let own = &prefixes[0];
    let number = format!("+{}0000000", own["prefix"]);
    let found = call(
        "get_mobile_prefixes",
        json!({ "country": "LV", "number": number[..12] }),
    );
    let found = found["prefixes"].as_array().expect("a list");
    assert_eq!(found.len(), 1, "one number has one operator");
    let digits = found[0]["prefix"].to_string();
    assert!(number[1..].starts_with(&digits), "{digits} {number}");
    let networks = call("get_mcc_mnc_list", json!({ "country": "US", "Page": "2" }));
    assert_eq!(
        networks["networks"],
        service.get("/mccmnc/US?Page=2").json()
    );
    let several = json!([{ "Number": "29111111", "CountryIso": "LV" }, { "Number": "12" }]);
    let corrected = call("correct_phone_number", json!({ "numbers": several }));
    assert!(corrected["numbers"][1]["Error"].is_string(), "{corrected}");
    // The message exists under its ID in REST.
    let sent = call(
        "send_sms",
        json!({ "to": 37_120_000_001_u64, "from": "Acme", "message": "Hi" }),
    );
    assert_eq!(sent["to"], "37120000001");
    let id = sent["messageIds"][0].as_str().expect("a string");
    assert_eq!(service.get(&format!("/sms/status/{id}")).status, 200);
}

/// A tool, arguments that REST or the tool itself refuses, the code, and what the message must name.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    (
        "send_sms",
        r#"{"to":"12","from":"Acme","message":"Hi"}"#,
        "INVALID_INPUT",
        "'to'",
    ),
    ("send_sms", "{}", "INVALID_INPUT", "'to'"),
    (
        "send_sms",
        r#"{"to":"+37120000001","from":"A","message":"x","scheduled":"now"}"#,
        "INVALID_INPUT",
        "'scheduled'",
    ),
    (
        "get_operator",
        r#"{"operatorId":9999999}"#,
        "NOT_FOUND",
        "9999999",
    ),
    (
        "get_operator",
        r#"{"operatorId":"../token"}"#,
        "NOT_FOUND",
        "../token",
    ),
    ("get_operator", "{}", "INVALID_INPUT", "'operatorId'"),
    (
        "get_operator",
        r#"{"operatorId":[1]}"#,
        "INVALID_INPUT",
        "'operatorId'",
    ),
    ("get_mcc_mnc_list", r#"{"country":"QQ"}"#, "NOT_FOUND", "QQ"),
    (
        "get_mobile_prefixes",
        r#"{"country":"LV/../EE"}"#,
        "NOT_FOUND",
        "LV",
    ),
    (
        "get_mobile_prefixes",
        r#"{"country":""}"#,
        "INVALID_INPUT",
        "'country'",
    ),
    (
        "get_mcc_mnc_list",
        r#"{"country":"LV","Page":0}"#,
        "INVALID_INPUT",
        "'Page'",
    ),
    (
        "get_mcc_mnc_list",
        r#"{"country":"LV","Page":"1&x=2"}"#,
        "INVALID_INPUT",
        "'Page'",
    ),
    (
        "confirm_msisdn_sender",
        r#"{"senderId":12345,"code":"12345"}"#,
        "NOT_FOUND",
        "sender",
    ),
    (
        "confirm_msisdn_sender",
        r#"{"senderId":12345,"code":"1"}"#,
        "INVALID_INPUT",
        "'code'",
    ),
    (
        "confirm_msisdn_sender",
        r#"{"code":"12345"}"#,
        "INVALID_INPUT",
        "'senderId'",
    ),
    ("lookup_hlr", "{}", "INVALID_INPUT", "'msisdn'"),
    ("start_verification", "{}", "INVALID_INPUT", "'to'"),
    (
        "start_verification",
        r#"{"to":"+37120000001","message":"no place"}"#,
        "INVALID_INPUT",
        "{code}",
    ),
    (
        "check_verification",
        r#"{"id":12345,"code":"123456"}"#,
        "NOT_FOUND",
        "no such verification",
    ),
    (
        "check_verification",
        r#"{"code":"123456"}"#,
        "INVALID_INPUT",
        "'id'",
    ),
    (
        "check_verification",
        r#"{"id":12345,"code":"12a"}"#,
        "INVALID_INPUT",
        "'code'",
    ),
    (
        "get_verification",
        r#"{"id":12345}"#,
        "NOT_FOUND",
        "no verification",
    ),
    (
        "lookup_hlr",
        r#"{"msisdn":"+37129100000","callBackUrl":"http://10.0.0.1/"}"#,
        "INVALID_INPUT",
        "'callBackUrl'",
    ),
    (
        "get_sms_rates",
        r#"{"country":1}"#,
        "INVALID_INPUT",
        "'country'",
    ),
    (
        "get_sms_rates",
        r#"{"limit":501}"#,
        "INVALID_INPUT",
        "'limit'",
    ),
    (
        "get_mobile_prefixes",
        r#"{"country":"LV","number":"12"}"#,
        "INVALID_INPUT",
        "'number'",
    ),
    ("correct_phone_number", "{}", "INVALID_INPUT", "'Number'"),
    (
        "correct_phone_number",
        r#"{"numbers":"x"}"#,
        "INVALID_INPUT",
        "'numbers'",
    ),
    (
        "register_sender_id",
        r#"{"name":"A","category":"Brand","categoryDescription":"x"}"#,
        "INVALID_INPUT",
        "'name'",
    ),
    (
        "register_msisdn_sender",
        r#"{"name":"Acme"}"#,
        "INVALID_INPUT",
        "'name'",
    ),
];

#[test]
fn refusals_of_rest_are_results_of_the_tool() {
    let service = start();
    let poor = service
        .server
        .cli_json(&["account", "create", "--name", "poor", "--json"]);
    assert!(poor.is_object());
    let poor = service.create_token("poor", &[]).token;
    let sms = |to: &str| json!({ "to": to, "from": "Acme", "message": "Hi" });
    let before = service.balance();
    for (tool, arguments, code, part) in REFUSED {
        let parsed = serde_json::from_str(arguments).expect("JSON");
        let (actual, message) = failure(&service.call_tool(&service.token, tool, &parsed));
        assert_eq!(&actual, code, "{tool} {arguments}: {message}");
        assert!(message.contains(part), "{tool} {arguments}: {message}");
    }
    let (code, message) = failure(&service.call_tool(&poor, "send_sms", &sms("+37120000001")));
    assert_eq!(code, "FORBIDDEN", "{message}");
    assert!(message.contains("balance"), "{message}");
    assert_eq!(service.balance(), before, "nothing was charged");
    assert_eq!(service.stored(), 0, "nothing was stored");

    let name = json!({ "name": "Acme", "category": "Brand", "categoryDescription": "Ours" });
    tool_output(&service.call_tool(&service.token, "register_sender_id", &name));
    let again = service.call_tool(&service.token, "register_sender_id", &name);
    assert_eq!(failure(&again).0, "CONFLICT");
}

#[test]
fn a_trace_of_the_client_stays_with_the_message() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let service = start();
    let call = json!({
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {
            "name": "send_sms",
            "arguments": { "to": "+37120000001", "from": "Acme", "message": "Hello" },
        },
    });
    let trace = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let headers = [
        ("MCP-Protocol-Version", Era::Handshake.version()),
        ("traceparent", trace.as_str()),
    ];
    let sent = service.post(&service.token, &headers, call.to_string().as_bytes());
    tool_output(&sent);
    wait_for("a line in the log", || {
        let output = service.server.output();
        let mut lines = output.lines().filter(|line| line.contains(TRACE));
        lines.find(|line| line.contains("accepted")).map(drop)
    });
}
