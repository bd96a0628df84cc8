//! Messages that the upstream may have: no other carrier of the route gets them.

use std::net::TcpListener;

use serde_json::json;
use testkit::Backend;
use testkit::receiver::Receiver;

use super::lossy_proxy::LossyProxy;
use super::{Chain, carrier, wait_for_reported_states};
use crate::http_carrier;
use crate::rest::on_both_backends;
use crate::rest::service::{Service, wait_for};

on_both_backends!(
    a_message_whose_answer_is_lost_goes_to_no_other_carrier,
    a_message_that_was_not_sent_goes_to_the_next_carrier,
);

/// A provider that takes every message, as the second carrier of all routes.
fn next_carrier() -> (Receiver, String) {
    let provider = http_carrier::provider(|_| http_carrier::taken());
    let config = http_carrier::carrier("next", &provider.url("/send"), "", "");
    (provider, config)
}

/// The upstream has stored the message, and the connection breaks before its answer.
fn a_message_whose_answer_is_lost_goes_to_no_other_carrier(backend: Backend) {
    let upstream = Service::with(backend, |builder| {
        builder.env("SWITCHBOARD_SIMULATOR__DELAY_MS", "20")
    });
    let proxy = LossyProxy::start(upstream.server.addr());
    let (next, its_config) = next_carrier();
    let config = [carrier(&proxy.url(), &upstream.token), its_config].concat();
    let chain = Chain::with(upstream, config, backend);
    let receiver = Receiver::start();
    // One on a kept connection, and one on the new connection that replaces it.
    proxy.lose_answers(2);
    let id = chain.send(&receiver, &json!({}));
    assert_eq!(wait_for_reported_states(&receiver, 1), [(id, 1, 0)]);
    assert_eq!(proxy.losses_left(), 0);
    assert_eq!((chain.upstream.stored(), next.count()), (1, 0));
    // It works again, so the next message goes there.
    let id = chain.send(&receiver, &json!({}));
    assert!(wait_for_reported_states(&receiver, 2).contains(&(id, 1, 0)));
    assert_eq!((chain.upstream.stored(), next.count()), (2, 0));
}

/// Nothing listens at the upstream's address.
fn a_message_that_was_not_sent_goes_to_the_next_carrier(backend: Backend) {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", free.local_addr().expect("an address"));
    drop(free);
    let (next, its_config) = next_carrier();
    let config = [carrier(&url, "sb_token"), its_config].concat();
    let front = Service::with(backend, |builder| builder.config(config));
    front.send(&crate::rest::service::sms_with(&json!({})));
    wait_for("the message at the next carrier", || {
        (next.count() == 1).then_some(())
    });
}
