//! What an AI client does with the tools, by the official SDKs: it writes to somebody, reads the reply and answers it.

use std::process::Command;

use serde_json::{Value, json};

use super::clients::{node, python, run, script};
use super::start;
use crate::rest::service::{Service, wait_for};

/// This number answers every SMS with the same text.
const ECHO: &str = "+447700900900";
const QUESTION: &str = "Can you deliver on Friday?";
const ANSWER: &str = "Thank you, Friday it is.";
/// Longer than the simulated network takes, shorter than the clients wait for an answer.
const WAIT_S: u64 = 25;

/// A value in the result of an earlier call, which the clients insert.
fn from_result(result: usize, path: &[Value]) -> Value {
    json!({ "result": result, "path": path })
}

/// The calls of a client whose account owns a number. The paths at the end are what a call is repeated for.
fn calls(number: &str) -> Value {
    let sent = |result| from_result(result, &[json!("messageIds"), json!(0)]);
    let of_reply = |field: &str| from_result(2, &[json!("messages"), json!(0), json!(field)]);
    let lookup = from_result(5, &[json!("lookupId")]);
    json!([
        ["send_sms", { "to": ECHO, "from": number, "message": QUESTION }],
        ["get_message", { "id": sent(0), "waitSeconds": WAIT_S }, ["status"]],
        ["list_inbox", { "from": ECHO, "to": number }, ["messages", 0]],
        ["send_sms", { "to": of_reply("from"), "from": of_reply("to"), "message": ANSWER }],
        ["get_message", { "id": sent(3), "waitSeconds": WAIT_S }, ["status"]],
        ["lookup_hlr", { "msisdn": "+37129100000" }],
        ["get_lookup", { "id": lookup, "waitSeconds": WAIT_S }, ["result"]],
    ])
}

fn check_conversation(service: &Service, number: &str, client: Command, mut instructions: Value) {
    let add = ["number", "add", "--number", number, "--account", "main"];
    let added = service.server.cli(&add);
    assert!(added.status.success(), "{added:?}");
    instructions["url"] = json!(service.server.url("/mcp"));
    instructions["token"] = json!(service.token);
    instructions["calls"] = calls(number);
    let report = run(client, &instructions);
    let results = report["results"].as_array().expect("results");
    for result in results {
        assert_eq!(result["isError"], json!(false), "{report}");
    }
    let content: Vec<&Value> = results
        .iter()
        .map(|result| &result["structuredContent"])
        .collect();
    let [
        sent,
        delivered,
        inbox,
        answered,
        answer_delivered,
        _,
        lookup,
    ] = content[..]
    else {
        panic!("{report}");
    };
    for message in [delivered, answer_delivered] {
        assert_eq!(message["state"], "delivered", "{message}");
        assert_eq!(message["final"], json!(true), "{message}");
    }
    let reply = &inbox["messages"][0];
    assert_eq!(reply["message"], QUESTION, "{inbox}");
    assert_eq!(reply["inReplyTo"], sent["messageIds"][0], "{inbox}");
    assert_eq!(lookup["result"]["error"], 0, "{lookup}");
    assert_eq!(lookup["final"], json!(true), "{lookup}");
    // The answer comes back, too.
    let path = format!("/sms/inbox?to={}", number.replace('+', "%2B"));
    let last = wait_for("the second reply", || {
        let inbox = service.get(&path).json();
        let messages = inbox.as_array().expect("a list");
        (messages.len() == 2).then(|| messages[0].clone())
    });
    assert_eq!(last["message"], ANSWER, "{last}");
    assert_eq!(last["inReplyTo"], answered["messageIds"][0], "{last}");
}

#[test]
fn a_client_reads_the_reply_and_answers_it() {
    let service = start();
    let typescript = || {
        let mut command = node();
        command.arg(script("client.mjs"));
        command
    };
    for (number, client, instructions) in [
        (
            "+37120000091",
            typescript(),
            json!({ "sdk": 1, "mode": "legacy" }),
        ),
        (
            "+37120000092",
            typescript(),
            json!({ "sdk": 2, "mode": "auto" }),
        ),
        (
            "+37120000093",
            python("client.py"),
            json!({ "mode": "auto" }),
        ),
    ] {
        check_conversation(&service, number, client, instructions);
    }
}
