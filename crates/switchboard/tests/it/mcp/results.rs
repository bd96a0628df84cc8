//! Following messages and lookups, and what the account may do: the tools beside those of the contract.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::http;

use super::{Client, Era, failure, result_of, start, tool_output};
use crate::rest::service::{Service, sms, sms_with, tomorrow, wait_for};

/// The simulated network accepts messages to this number and never reports on them.
const SILENT: &str = "+447700900002";
/// The longest wait that a caller may ask for.
const LONGEST_S: u64 = 30;
const SHORTER_THAN_A_WAIT: Duration = Duration::from_secs(20);
/// How many calls of one account may wait at once.
const WAITS_OF_AN_ACCOUNT: usize = 16;

fn call(service: &Service, tool: &str, arguments: &Value) -> Value {
    tool_output(&service.call_tool(&service.token, tool, arguments))
}

/// What REST returns, with `final`.
fn in_rest(service: &Service, path: &str, is_final: bool) -> Value {
    let mut answer = service.get(path).json();
    answer["final"] = json!(is_final);
    answer
}

#[test]
fn messages_and_lookups_are_followed_to_their_end() {
    let service = start();
    for era in Era::BOTH {
        let call = |tool: &str, arguments: Value| {
            let params = json!({ "name": tool, "arguments": arguments });
            tool_output(&service.call_method(era, &service.token, "tools/call", params))
        };
        let followed = |tool: &str, id: &Value| {
            wait_for("the end", || {
                let answer = call(tool, json!({ "id": id, "waitSeconds": 10 }));
                (answer["final"] == true).then_some(answer)
            })
        };
        let sent = call("send_sms", sms());
        let id = &sent["messageIds"][0];
        let message = followed("get_message", id);
        assert_eq!(message["state"], "delivered");
        let path = format!("/sms/status/{}", id.as_str().expect("a string"));
        assert_eq!(message, in_rest(&service, &path, true));

        let lookup = call("lookup_hlr", json!({ "msisdn": "+37129100000" }));
        let id = &lookup["lookupId"];
        let lookup = followed("get_lookup", id);
        assert_eq!(lookup["result"]["error"], 0, "{lookup}");
        assert_eq!(lookup["result"]["id"], id.to_string());
        assert_eq!(lookup, in_rest(&service, &format!("/hlr/{id}"), true));

        // Without waiting, or after waiting in vain, the answer is the present state.
        let body = sms_with(&json!({ "to": SILENT }));
        let id = call("send_sms", body)["messageIds"][0].clone();
        for wait in [
            json!({}),
            json!({ "waitSeconds": 0 }),
            json!({ "waitSeconds": "1" }),
        ] {
            let mut arguments = wait;
            arguments["id"] = id.clone();
            let message = call("get_message", arguments);
            assert_eq!(message["final"], false, "{message}");
            assert_eq!(message["status"], Value::Null, "{message}");
        }
    }
}

/// Calls `get_message` on a connection of its own.
fn get_message(address: SocketAddr, token: &str, id: &str, wait_s: u64) -> Value {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    let arguments = json!({ "id": id, "waitSeconds": wait_s });
    let params = json!({ "name": "get_message", "arguments": arguments });
    let body = Era::Handshake.request("tools/call", params).to_string();
    let response = http::request(address, "POST", "/mcp", &headers, body.as_bytes());
    let result = result_of(&response.expect("an answer"));
    result["structuredContent"].clone()
}

#[test]
fn a_wait_ends_with_the_message_and_with_the_service() {
    let mut service = start();
    let (address, token) = (service.server.addr(), service.token.clone());
    let silent = service
        .accept(&sms_with(&json!({ "to": SILENT })))
        .remove(0);
    let scheduled = sms_with(&json!({ "scheduled": tomorrow() }));
    let scheduled = service.accept(&scheduled).remove(0);
    let began = Instant::now();
    let in_vain = thread::spawn({
        let token = token.clone();
        move || get_message(address, &token, &silent, LONGEST_S)
    });
    let waiting = thread::spawn({
        let id = scheduled.clone();
        move || get_message(address, &token, &id, LONGEST_S)
    });
    // The calls above have begun by the time this one has waited.
    let message = get_message(address, &service.token, &scheduled, 1);
    assert_eq!(
        (&message["state"], &message["final"]),
        (&json!("scheduled"), &json!(false))
    );
    let cancelled = call(&service, "cancel_message", &json!({ "id": scheduled }));
    assert_eq!(cancelled, json!({ "id": scheduled, "status": "cancelled" }));
    let message = waiting.join().expect("an answer");
    assert_eq!(
        (&message["state"], &message["final"]),
        (&json!("cancelled"), &json!(true))
    );
    // On a machine that stalled, the other wait may be over by now.
    if began.elapsed() < SHORTER_THAN_A_WAIT {
        assert!(!in_vain.is_finished(), "it waits for all of its time");
    }

    let status = service.server.terminate();
    assert!(status.success(), "{status}");
    let message = in_vain.join().expect("an answer");
    assert_eq!(message["final"], false, "{message}");
}

#[test]
fn an_account_has_a_share_of_the_waiting_calls() {
    let service = start();
    let other = service.create_account("other");
    let (address, token) = (service.server.addr(), service.token.clone());
    let scheduled = sms_with(&json!({ "scheduled": tomorrow() }));
    let id = service.accept(&scheduled).remove(0);
    let waiting: Vec<_> = (0..WAITS_OF_AN_ACCOUNT)
        .map(|_| {
            let (token, id) = (token.clone(), id.clone());
            // A call that is refused, because the one below waits at that moment, is made again.
            thread::spawn(move || {
                wait_for("the end", || {
                    let message = get_message(address, &token, &id, LONGEST_S);
                    (message["state"] == "cancelled").then_some(())
                });
            })
        })
        .collect();
    let arguments = json!({ "id": id, "waitSeconds": 1 });
    let (code, message) = wait_for("all of them wait", || {
        let response = service.call_tool(&service.token, "get_message", &arguments);
        let is_error = result_of(&response)["isError"] == true;
        is_error.then(|| failure(&response))
    });
    assert_eq!(code, "RATE_LIMITED", "{message}");
    assert!(message.contains("waitSeconds"), "{message}");
    let at_once = call(&service, "get_message", &json!({ "id": id }));
    assert_eq!(at_once["state"], "scheduled", "an answer without waiting");
    let body = scheduled.to_string();
    let sent = service.call_as(&other, "POST", "/sms", body.as_bytes());
    let own = sent.json()[0].as_str().expect("an ID").to_owned();
    let waited = get_message(address, &other, &own, 1);
    assert_eq!(waited["state"], "scheduled", "another account may wait");

    call(&service, "cancel_message", &json!({ "id": id }));
    for waiting in waiting {
        waiting.join().expect("it ended");
    }
}

#[test]
fn an_account_is_described() {
    let service = start();
    let set = ["account", "set", "main", "daily_cap=10", "countries=LV"];
    assert!(service.server.cli(&set).status.success());
    let limited = service
        .create_token("main", &["--permission", "numbers:read"])
        .token;
    let account = tool_output(&service.call_tool(&limited, "get_account", &json!({})));
    assert_eq!(account["permissions"], json!(["numbers:read"]));
    assert_eq!(account["balance"], "100.00");
    assert_eq!(account["limits"]["leftToday"], "10.00");
    assert_eq!(account["limits"]["countries"], json!(["LV"]));
    let rest = service.call_as(&limited, "GET", "/token?limits", b"");
    assert_eq!(account, rest.json());
}

#[test]
fn senders_are_listed_in_pages() {
    let service = start();
    let other = service.create_account("other");
    let all = |page: &Value| page["senders"].as_array().expect("a list").clone();
    let none = json!({ "senders": [], "nextCursor": null });
    assert_eq!(call(&service, "list_senders", &json!({})), none);
    for name in ["One", "Two", "Three", "Four"] {
        let sender = json!({ "name": name, "category": "Brand", "categoryDescription": "Ours" });
        call(&service, "register_sender_id", &sender);
    }
    let page = call(&service, "list_senders", &json!({}));
    assert_eq!(json!(all(&page)), service.get("/senderId").json());
    assert_eq!((all(&page).len(), &page["nextCursor"]), (4, &Value::Null));
    for (limit, lengths) in [(2, vec![2, 2]), (3, vec![3, 1]), (4, vec![4])] {
        let mut arguments = json!({ "limit": limit });
        let mut found = Vec::new();
        let mut seen = Vec::new();
        loop {
            let page = call(&service, "list_senders", &arguments);
            found.push(all(&page).len());
            seen.extend(all(&page).iter().map(|sender| sender["name"].clone()));
            if page["nextCursor"].is_null() {
                break;
            }
            arguments["cursor"] = page["nextCursor"].clone();
        }
        assert_eq!(found, lengths);
        assert_eq!(seen, ["One", "Two", "Three", "Four"]);
    }
    let seen = tool_output(&service.call_tool(&other, "list_senders", &json!({})));
    assert_eq!(seen, none, "another account sees nothing");
}

#[test]
fn refusals_are_results_of_the_tool() {
    let service = start();
    let other = service.create_account("other");
    let sent = service
        .accept(&sms_with(&json!({ "to": SILENT })))
        .remove(0);
    let lookup = call(&service, "lookup_hlr", &json!({ "msisdn": "+37129100000" }));
    let lookup = lookup["lookupId"].clone();
    wait_for("the message is sent", || {
        let message = call(&service, "get_message", &json!({ "id": sent }));
        (message["state"] == "sent").then_some(())
    });
    let own = &service.token;
    let case = |token, code| move |tool, arguments, part| (token, tool, arguments, code, part);
    let (invalid, conflict) = (case(own, "INVALID_INPUT"), case(own, "CONFLICT"));
    let (unknown, foreign) = (case(own, "NOT_FOUND"), case(&other, "NOT_FOUND"));
    for (token, tool, arguments, code, part) in [
        invalid("get_message", json!({}), "'id'"),
        invalid("get_message", json!({ "id": [1] }), "'id'"),
        unknown("get_message", json!({ "id": "../token" }), "../token"),
        invalid(
            "get_message",
            json!({ "id": sent, "waitSeconds": 31 }),
            "0 to 30",
        ),
        invalid(
            "get_message",
            json!({ "id": sent, "waitSeconds": -1 }),
            "'waitSeconds'",
        ),
        invalid(
            "get_message",
            json!({ "id": sent, "waitSeconds": 1.5 }),
            "'waitSeconds'",
        ),
        invalid(
            "get_message",
            json!({ "id": sent, "waitSeconds": true }),
            "'waitSeconds'",
        ),
        unknown("get_message", json!({ "id": lookup }), "no message"),
        unknown("get_lookup", json!({ "id": sent }), "no lookup"),
        invalid(
            "get_lookup",
            json!({ "id": lookup, "waitSeconds": "x" }),
            "'waitSeconds'",
        ),
        conflict(
            "cancel_message",
            json!({ "id": sent }),
            "only a scheduled message",
        ),
        unknown("cancel_message", json!({ "id": "999999" }), "no message"),
        invalid("list_senders", json!({ "limit": 0 }), "'limit'"),
        invalid("list_senders", json!({ "limit": 501 }), "1 to 500"),
        invalid("list_senders", json!({ "cursor": "x" }), "'cursor'"),
        foreign(
            "get_message",
            json!({ "id": sent, "waitSeconds": 30 }),
            "no message",
        ),
        foreign("cancel_message", json!({ "id": sent }), "no message"),
        foreign(
            "get_lookup",
            json!({ "id": lookup, "waitSeconds": 30 }),
            "no lookup",
        ),
    ] {
        let (actual, message) = failure(&service.call_tool(token, tool, &arguments));
        assert_eq!(actual, code, "{tool} {arguments}: {message}");
        assert!(message.contains(part), "{tool} {arguments}: {message}");
    }
}
