//! Several nodes: receipts find the one that has the session, and changes of a user reach all of them.

use std::collections::BTreeSet;

use testkit::{Backend, Server, TestDatabase};

use super::raw::{
    BIND_RECEIVER, BIND_TRANSMITTER, Client, DELIVER, ENQUIRE, RESPONSE, SUBMIT, Submit, UNBIND,
};
use super::{CONFIG, create_user, smpp_address};
use crate::rest::service::{binary, wait_for};

const MESSAGES: usize = 20;

#[test]
fn receipts_and_changes_reach_the_node_that_has_the_session() {
    let database = TestDatabase::create_blocking();
    let start = || {
        Server::builder(binary(), Backend::Sqlite)
            .env("SWITCHBOARD_DATABASE__URL", database.url())
            .config(CONFIG)
            .start()
    };
    let [first, second] = [start(), start()];
    let password = create_user(&first, "acme", &["--max-binds", "2"]);
    let sending = smpp_address(&first);
    let mut sender = Client::bound(sending, BIND_TRANSMITTER, "acme", &password);
    let receiving = smpp_address(&second);
    let mut receiver = Client::bound(receiving, BIND_RECEIVER, "acme", &password);
    let third = Client::connect(sending).bind(BIND_RECEIVER, "acme", &password);
    assert_ne!(third.status, 0, "sessions count over both nodes");
    let users = first.cli_json(&["smpp-user", "list", "--json"]);
    assert_eq!(users[0]["bound"], 2, "{users}");

    let submit = Submit {
        receipt: 1,
        ..Submit::default()
    };
    let accept = |_| sender.ask(SUBMIT, &submit.body()).text();
    let accepted: BTreeSet<String> = (0..MESSAGES).map(accept).collect();
    let mut reported = BTreeSet::new();
    while reported.len() < accepted.len() {
        let delivery = receiver.read().expect("a receipt");
        assert_eq!(delivery.command, DELIVER, "{delivery:?}");
        let text = String::from_utf8_lossy(&delivery.body).into_owned();
        let (_, rest) = text.split_once("id:").expect("an ID");
        let id = rest.split(' ').next().expect("an ID");
        assert!(reported.insert(id.to_owned()), "{id} came twice");
        receiver.write(DELIVER | RESPONSE, 0, delivery.sequence, b"\0");
    }
    assert_eq!(reported, accepted);
    wait_for("all are done", || {
        let list = ["callbacks", "list", "--json"];
        let waiting = second.cli_json(&list);
        waiting.as_array().expect("a list").is_empty().then_some(())
    });
    let all = ["callbacks", "list", "--all", "--json"];
    let done = second.cli_json(&all);
    let mut tries = done.as_array().expect("a list").iter();
    assert!(tries.all(|callback| callback["tries"] == 1), "{done}");

    // A change reaches all nodes: the session that is not allowed any more is unbound, the other one stays.
    let set = ["smpp-user", "set", "acme", "--allow-bind", "receiver"];
    assert!(second.cli(&set).status.success());
    let unbind = sender.read().expect("a PDU");
    assert_eq!(unbind.command, UNBIND, "{unbind:?}");
    let answer = receiver.ask(ENQUIRE, b"");
    assert_eq!(answer.command, ENQUIRE | RESPONSE, "{answer:?}");

    // Revoked on one node, unbound by the other one.
    assert!(first.cli(&["smpp-user", "revoke", "acme"]).status.success());
    let unbind = receiver.read().expect("a PDU");
    assert_eq!(unbind.command, UNBIND, "{unbind:?}");
    receiver.write(UNBIND | RESPONSE, 0, unbind.sequence, b"");
    assert_eq!(receiver.read(), None, "the connection is closed");
    wait_for("it is forgotten", || {
        let again = Client::connect(sending).bind(BIND_RECEIVER, "acme", &password);
        assert_ne!(again.status, 0, "{again:?}");
        let users = second.cli_json(&["smpp-user", "list", "--json"]);
        users.as_array().expect("a list").is_empty().then_some(())
    });
}

/// The worker hands receipts to the sessions of its own process.
#[test]
fn the_role_needs_the_worker() {
    let builder = Server::builder(binary(), Backend::Sqlite).config(CONFIG);
    let started = builder.arg("--roles").arg("api,smpp").try_start();
    let error = format!("{:?}", started.expect_err("refused"));
    assert!(error.contains("needs the role worker"), "{error}");
}
