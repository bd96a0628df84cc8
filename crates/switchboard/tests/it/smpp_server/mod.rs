//! SMPP for customers, from outside: clients of other projects, and one that writes octets by hand.

mod flood;
mod hostile;
mod kannel;
mod nodes;
mod observed;
mod raw;
mod receipts;
mod replacing;
mod requests;
mod smpp34;
mod smpplib;
mod strangers;
mod tls;
mod versions;

use std::net::SocketAddr;

use serde_json::{Value, json};
use testkit::nodejs_client::NodeJsClient;
use testkit::{Backend, Server};

use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

const TO: &str = "447700900000";
pub(crate) const CONFIG: &str = "[smpp_server]\nlisten = \"127.0.0.1:0\"\n";

on_both_backends!(a_client_of_others_sends_and_receives);

/// Starts a service with more settings, and returns where its SMPP server listens.
fn start(backend: Backend, more: &str) -> (Service, SocketAddr) {
    let service = Service::with(backend, |builder| builder.config(format!("{CONFIG}{more}")));
    let address = smpp_address(&service.server);
    (service, address)
}

/// Where the SMPP server of a process listens.
pub(crate) fn smpp_address(server: &Server) -> SocketAddr {
    wait_for("the SMPP server", || {
        let output = server.output();
        let mut lines = output.lines();
        let line = lines.find_map(|line| line.split_once("SMPP listening on "))?;
        line.1.trim().parse().ok()
    })
}

/// Creates a user of the first account, and returns its password.
fn create_user(server: &Server, system_id: &str, more: &[&str]) -> String {
    let arguments = [
        &[
            "smpp-user",
            "create",
            "--account",
            "main",
            "--system-id",
            system_id,
            "--json",
        ],
        more,
    ];
    let created = server.cli_json(&arguments.concat());
    assert_eq!(created["systemId"], system_id, "{created}");
    created["password"].as_str().expect("a password").to_owned()
}

fn metric(service: &Service, name: &str) -> Option<u64> {
    let metrics = service.raw("GET", "/metrics", &[], b"").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line?.trim().parse().ok()
}

fn a_client_of_others_sends_and_receives(backend: Backend) {
    let (service, address) = start(backend, "");
    let password = create_user(&service.server, "acme", &[]);
    let mut client = NodeJsClient::start(address, "acme", &password);
    let texts = ["Hello @ [you]", "Привет", &"long ".repeat(80)];
    for text in texts {
        let field = if text.len() > 250 {
            "message_payload"
        } else {
            "short_message"
        };
        let mut fields = json!({
            "source_addr": "Acme", "source_addr_ton": 5, "destination_addr": TO, "dest_addr_ton": 1,
            "dest_addr_npi": 1, "registered_delivery": 1,
        });
        fields[field] = json!(text);
        client.send("submit_sm", &fields);
    }
    let answers = wait_for("answers", || {
        Some(client.events("submit_sm_resp")).filter(|answers| answers.len() == texts.len())
    });
    let receipts = wait_for("receipts", || {
        Some(client.events("deliver_sm")).filter(|receipts| receipts.len() == texts.len())
    });
    for answer in &answers {
        assert_eq!(answer["status"], 0, "{answer}");
        let id = answer["messageId"].as_str().expect("an ID");
        let of_message = |receipt: &&Value| receipt["receiptedId"] == id;
        let receipt = receipts.iter().find(of_message).expect("its receipt");
        let text = receipt["text"].as_str().expect("a text");
        // The long text has three parts.
        let starts_with_parts =
            |parts| text.starts_with(&format!("id:{id} sub:{parts} dlvrd:{parts} submit date:"));
        assert!(["001", "003"].into_iter().any(starts_with_parts), "{text}");
        assert!(text.ends_with("stat:DELIVRD err:000 text:"), "{text}");
        assert_eq!(
            (&receipt["from"], &receipt["to"]),
            (&json!(TO), &json!("Acme"))
        );
        assert_eq!(
            (&receipt["esmClass"], &receipt["messageState"]),
            (&json!(4), &json!(2))
        );
    }
    let inbox = ["simulator", "inbox", "--number", TO, "--json"];
    let inbox = service.server.cli_json(&inbox).to_string();
    for text in texts {
        assert!(inbox.contains(text), "{inbox}");
    }

    let add = [
        "number",
        "add",
        "--number",
        "+37120000009",
        "--account",
        "main",
    ];
    assert!(service.server.cli(&add).status.success());
    let reply = [
        "simulator",
        "reply",
        "--from",
        "+37120000001",
        "--to",
        "+37120000009",
        "--text",
        "Yes, ж",
    ];
    assert!(service.server.cli(&reply).status.success());
    let text = wait_for("the text of the handset", || {
        client.events("deliver_sm").get(texts.len()).cloned()
    });
    assert_eq!(
        (&text["from"], &text["text"]),
        (&json!("37120000001"), &json!("Yes, ж"))
    );
    assert_eq!(
        (&text["to"], &text["esmClass"]),
        (&json!("37120000009"), &json!(0))
    );

    assert_eq!(metric(&service, "switchboard_smpp_sessions"), Some(1));
    let accepted = "switchboard_smpp_submits_total{result=\"accepted\"}";
    assert_eq!(metric(&service, accepted), Some(3));
    let revoked = service.server.cli(&["smpp-user", "revoke", "acme"]);
    assert!(revoked.status.success());
    wait_for("the session is unbound", || {
        client.events("unbind").first().cloned()
    });
    wait_for("it is not counted any more", || {
        (metric(&service, "switchboard_smpp_sessions") == Some(0)).then_some(())
    });
    service.check_health();
}
