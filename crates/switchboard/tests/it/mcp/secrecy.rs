//! Secrets never appear in the log of the MCP server, not even at the highest level.

use serde_json::json;
use testkit::Backend;

use super::{Client, Era, start};
use crate::rest::service::{Service, wait_for};

const TEXT: &str = "Your secret code is QX7-PLUM";
const NUMBER: &str = "37120000987";
const PIN: &str = "86420";

/// Calls that succeed, fail and are refused, in both eras.
fn use_everything(service: &Service, wrong: &str) {
    for era in Era::BOTH {
        for token in [service.token.as_str(), wrong] {
            let call = |name: &str, arguments| {
                let params = json!({ "name": name, "arguments": arguments });
                service.call_method(era, token, "tools/call", params);
            };
            call(
                "send_sms",
                json!({ "to": NUMBER, "from": "Acme", "message": TEXT }),
            );
            call(
                "send_sms",
                json!({ "to": "12", "from": "Acme", "message": TEXT }),
            );
            call(
                "confirm_msisdn_sender",
                json!({ "senderId": 1, "code": PIN }),
            );
            call("register_msisdn_sender", json!({ "name": NUMBER }));
            call(TEXT, json!({}));
            service.call_method(era, token, "tools/list", json!({}));
            service.call_method(era, token, TEXT, json!({ "text": TEXT }));
        }
    }
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": TEXT, "version": "1" },
    }});
    service.post(&service.token, &[], initialize.to_string().as_bytes());
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1, "reason": TEXT } });
    service.post(&service.token, &[], cancelled.to_string().as_bytes());
    service.post(&service.token, &[], TEXT.as_bytes());
    service.post(&service.token, &[("Host", "secret.example")], b"{}");
    let bearer = format!("Bearer {}", service.token);
    service.raw("GET", "/mcp", &[("Authorization", &bearer)], b"");
}

#[test]
fn logs_contain_no_token_and_no_content_of_calls() {
    let mut service = Service::with(Backend::Sqlite, |builder| {
        builder.env(
            "SWITCHBOARD_LOG__LEVEL",
            "trace,rmcp=trace,rmcp::service=trace",
        )
    });
    // The first start prints the token. After the restart, it must not appear.
    service.server.restart();
    let wrong = "sb_wrongwrongwrong";
    use_everything(&service, wrong);
    service.server.terminate();
    let output = wait_for("the last line", || {
        let output = service.server.output();
        output.contains("\"stopped\"").then_some(output)
    });
    assert!(
        output.contains("\"answered\""),
        "requests are logged: {output}"
    );
    for (case, secret) in [
        ("a token", service.token.as_str()),
        ("most of a token", &service.token[3..35]),
        ("a wrong token", wrong),
        ("a text", TEXT),
        ("part of a text", "QX7-PLUM"),
        ("a whole number", NUMBER),
        ("a PIN", PIN),
        ("a foreign name", "secret.example"),
    ] {
        if let Some(line) = output.lines().find(|line| line.contains(secret)) {
            panic!("{case} is in the output: {line}");
        }
    }
}

#[test]
fn callers_share_nothing() {
    let service = start();
    let other = service.create_account("other");
    let tokens = [service.token.clone(), other];
    let sent: Vec<String> = std::thread::scope(|scope| {
        let callers = (0..8).map(|n: usize| {
            let (service, token) = (&service, &tokens[n % 2]);
            scope.spawn(move || {
                let sms = json!({ "to": "+37120000001", "from": "Acme", "message": "Hi", "testMode": "1" });
                let output = super::tool_output(&service.call_tool(token, "send_sms", &sms));
                output["messageIds"][0].as_str().expect("an ID").to_owned()
            })
        });
        let callers: Vec<_> = callers.collect();
        callers
            .into_iter()
            .map(|caller| caller.join().expect("no panic"))
            .collect()
    });
    for (n, id) in sent.iter().enumerate() {
        for (m, token) in tokens.iter().enumerate() {
            let expected = if n % 2 == m { 200 } else { 404 };
            let path = format!("/sms/status/{id}");
            let status = service.call_as(token, "GET", &path, b"").status;
            assert_eq!(status, expected, "message {n} of token {m}");
        }
    }
}
