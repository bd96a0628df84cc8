//! The conversation in `docs/MCP.md` is one that an AI client had with the service.

use std::fmt::Write as _;
use std::{env, fs};

use serde_json::{Value, json};

use super::clients::{python, run};
use super::start;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/MCP.md");
const UPDATE: &str = "UPDATE_SNAPSHOTS";
const BEGIN: &str = "<!-- A test writes the conversation. -->\n";
const END: &str = "<!-- End of the conversation. -->\n";

/// What is different in each run, and what the page has in its place.
const MESSAGE_ID: &str = "10001";
const TIMES: [(&str, &str); 2] = [
    ("dlrDate", "2030-01-31 07:30:02"),
    ("expires", "2030-03-02T07:30:00Z"),
];

/// The steps: what a client does, the tool, and its arguments. `id` is the ID of the message.
fn steps(id: &Value) -> [(&'static str, &'static str, Value); 4] {
    let sms = |more: Value| {
        let mut sms =
            json!({ "to": "+37120000001", "from": "Acme", "message": "Your table is ready." });
        let (fields, more) = (sms.as_object_mut(), more.as_object());
        if let Some((fields, more)) = fields.zip(more) {
            fields.extend(more.clone());
        }
        sms
    };
    [
        (
            "What it costs, and whether it would be accepted",
            "send_sms",
            sms(json!({ "preview": true })),
        ),
        (
            "Send it",
            "send_sms",
            sms(json!({ "idempotencyKey": "table-7" })),
        ),
        (
            "Wait for the delivery",
            "get_message",
            json!({ "id": id, "waitSeconds": 25 }),
        ),
        ("Read the balance", "get_account", json!({})),
    ]
}

/// Replaces what is different in each run.
fn settled(value: &Value, id: &str) -> Value {
    match value {
        Value::String(text) if text == id => json!(MESSAGE_ID),
        Value::Array(list) => list.iter().map(|one| settled(one, id)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| {
                let time = TIMES.iter().find(|(name, _)| name == key);
                let value = match time {
                    Some((_, time)) if value.is_string() => json!(time),
                    _ => settled(value, id),
                };
                (key.clone(), value)
            })
            .collect(),
        other => other.clone(),
    }
}

#[test]
fn the_documented_conversation_is_one_that_ran() {
    let service = start();
    let from_result = json!({ "result": 1, "path": ["messageIds", 0] });
    let calls = steps(&from_result).map(|(_, tool, arguments)| match tool {
        // It is repeated until the message has ended.
        "get_message" => json!([tool, arguments, ["status"]]),
        _ => json!([tool, arguments]),
    });
    let instructions = json!({
        "mode": "auto", "url": service.server.url("/mcp"), "token": service.token, "calls": calls,
    });
    let report = run(python("client.py"), &instructions);
    let results = report["results"].as_array().expect("results");
    let content = |number: usize| &results[number]["structuredContent"];
    let id = content(1)["messageIds"][0].as_str().expect("an ID");
    assert_eq!(content(2)["state"], "delivered", "{report}");
    assert!(!content(3)["balance"].is_null(), "{report}");

    let mut conversation = String::new();
    for (number, (what, tool, arguments)) in steps(&json!(MESSAGE_ID)).into_iter().enumerate() {
        let answer = serde_json::to_string_pretty(&settled(content(number), id)).expect("JSON");
        write!(
            conversation,
            "\n{what}: `{tool}` with `{arguments}`\n\n```json\n{answer}\n```\n"
        )
        .expect("strings take everything");
    }
    conversation.push('\n');
    let page = fs::read_to_string(PAGE).expect("docs/MCP.md");
    let (before, rest) = page.split_once(BEGIN).expect("where it begins");
    let (committed, after) = rest.split_once(END).expect("where it ends");
    if env::var_os(UPDATE).is_some() {
        let page = format!("{before}{BEGIN}{conversation}{END}{after}");
        fs::write(PAGE, page).expect("the page can be written");
        return;
    }
    assert_eq!(
        committed, conversation,
        "docs/MCP.md is not what the service answers; if that is intended, update it with\n  \
         {UPDATE}=1 cargo test -p switchboard --test it the_documented_conversation"
    );
}
