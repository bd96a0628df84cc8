//! A client on smpp34, for Rust.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::smpp34::client::{BIND_TYPE, SMSC, SmppClient, SmppClientListener};
use ::smpp34::{SmppConnectionInformation, TlvList as _, deliver_sm, deliver_sm_resp};
use async_trait::async_trait;
use testkit::Backend;
use tokio::runtime::{Builder, Runtime};

use super::{TO, create_user, metric, start};
use crate::rest::on_both_backends;
use crate::rest::service::wait_for;

/// Between two `enquire_link`. The client ends a session in which one is not answered.
const ENQUIRE_MS: u64 = 20;
const INIT_MS: u64 = 30_000;
const RESPONSE_MS: u64 = 30_000;
const INACTIVITY_MS: u64 = 300_000;
const BUFFER: usize = 1500;
const WINDOW: usize = 10;
const IS_RECEIPT: u8 = 4;
const DELIVERED: u8 = 2;

on_both_backends!(smpp34_sends_queries_and_gets_a_receipt);

/// What the client tells.
#[derive(Default)]
struct Listener(Mutex<Events>);

#[derive(Default)]
struct Events {
    bound: Option<SMSC>,
    deliveries: Vec<deliver_sm>,
    is_unbound: bool,
}

impl Listener {
    fn events(&self) -> MutexGuard<'_, Events> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SmppClientListener for Listener {
    async fn on_smsc_bound(&self, smsc: SMSC, _: &String) {
        self.events().bound = Some(smsc);
    }

    async fn on_deliver_sm(
        &self,
        message: deliver_sm,
        _: &SmppConnectionInformation,
        _: &String,
    ) -> deliver_sm_resp {
        self.events().deliveries.push(message.clone());
        message.accept()
    }

    async fn on_smsc_unbound(&self, _: &String) {
        self.events().is_unbound = true;
    }
}

/// Connects as `acme` and sends the bind.
fn connect(
    runtime: &Runtime,
    address: SocketAddr,
    password: &str,
    listener: &Arc<Listener>,
) -> SmppClient {
    let mut client = SmppClient::new_with_default_timers(
        address.ip().to_string(),
        address.port(),
        false,
        BIND_TYPE::TRX,
        "acme".to_owned(),
        password.to_owned(),
        String::new(),
        0,
        0,
        String::new(),
        listener.clone(),
        INIT_MS,
        ENQUIRE_MS,
        INACTIVITY_MS,
        RESPONSE_MS,
        BUFFER,
        WINDOW,
    );
    runtime.block_on(client.start());
    client
}

fn smpp34_sends_queries_and_gets_a_receipt(backend: Backend) {
    let (service, address) = start(backend, "");
    let password = create_user(&service.server, "acme", &[]);
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");

    let refused = Arc::<Listener>::default();
    let client = connect(&runtime, address, "wrong", &refused);
    wait_for("the task of the refused client ends", || {
        // Only the test and the client itself still have it.
        (Arc::strong_count(&refused) == 2).then_some(())
    });
    assert!(!client.is_alive() && refused.events().bound.is_none());

    let listener = Arc::<Listener>::default();
    let client = connect(&runtime, address, &password, &listener);
    let smsc = wait_for("the bind", || listener.events().bound.take());
    assert_eq!(metric(&service, "switchboard_smpp_sessions"), Some(1));
    let submit = smsc
        .submit_sm()
        .source_addr_ton(5)
        .source_addr("Acme")
        .dest_addr_ton(1)
        .dest_addr_npi(1)
        .destination_addr(TO)
        .registered_delivery(1)
        .short_message(b"Hello");
    let answer = runtime.block_on(submit.send()).expect("an answer");
    assert_eq!(answer.command_status(), 0);
    let id = answer.message_id.expect("an ID");

    let receipt = wait_for("the receipt", || listener.events().deliveries.pop());
    let text = String::from_utf8_lossy(&receipt.short_message).into_owned();
    let beginning = format!("id:{id} sub:001 dlvrd:001 ");
    assert!(text.starts_with(&beginning), "{text}");
    assert!(text.contains("stat:DELIVRD err:000"), "{text}");
    assert_eq!(receipt.tlvs.receipted_message_id().as_ref(), Some(&id));
    assert_eq!(receipt.tlvs.message_state(), Some(DELIVERED));
    assert_eq!(
        (receipt.source_addr.as_str(), receipt.esm_class),
        (TO, IS_RECEIPT)
    );
    assert_eq!(receipt.destination_addr, "Acme");

    let query = |id: &str| {
        let query = smsc.send_query_sm(id.to_owned(), 5, 0, "Acme".to_owned());
        runtime.block_on(query).expect("an answer")
    };
    let found = query(&id);
    assert_eq!((found.command_status(), &found.message_id), (0, &id));
    assert_eq!((found.message_state, found.error_code), (DELIVERED, 0));
    assert_ne!(query("99").command_status(), 0, "nobody sent this");
    // Each request of the client has the next number, and it sends an `enquire_link` only after the last was answered.
    let (bind, submit, mut queries) = (1, 1, 2);
    wait_for("three enquire_link", || {
        queries += 1;
        let others = query(&id).header.sequence_number - bind - submit - queries;
        (others >= 3).then_some(())
    });

    runtime.block_on(smsc.send_unbind()).expect("unbind_resp");
    wait_for("the session ends", || {
        let is_over = metric(&service, "switchboard_smpp_sessions") == Some(0);
        (is_over && listener.events().is_unbound).then_some(())
    });
    assert!(listener.events().deliveries.is_empty(), "one receipt came");
    drop(client);
    service.check_health();
}
