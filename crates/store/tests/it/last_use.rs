//! The time of last use of tokens reaches the store.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use domain::access::token::SEED_BYTES;
use domain::ports::Store;
use domain::{Permission, TokenSecret};
use engine::Gate;
use engine::clock::SystemClock;
use testkit::TEST_TIMEOUT;

use super::sample::{create_account, new_token};

on_both_stores!(
    a_use_is_stored_when_the_gate_stops,
    a_use_before_a_change_is_stored,
);

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A gate, and the secrets of two tokens; the second may not send.
async fn two_tokens(store: &Arc<dyn Store>) -> (Arc<Gate>, [TokenSecret; 2]) {
    let owner = create_account(store, "acme").await;
    let secrets = [1, 2].map(|byte| TokenSecret::from_seed(&[byte; SEED_BYTES]));
    for (secret, permission) in secrets
        .iter()
        .zip([Permission::SmsSend, Permission::SmsRates])
    {
        let mut token = new_token(owner, secret.reveal());
        token.permissions = [permission].into_iter().collect();
        store.create_token(&token).await.expect("it is created");
    }
    (Gate::start(store.clone(), Arc::new(SystemClock)), secrets)
}

async fn is_admitted(gate: &Gate, secret: &TokenSecret) -> bool {
    let send = &[Permission::SmsSend];
    gate.admit(Some(secret.reveal()), HERE, send).await.is_ok()
}

/// Whether each token is known to have been used.
async fn used(store: &Arc<dyn Store>) -> Vec<bool> {
    let tokens = store.list_tokens(None).await.expect("answers");
    tokens
        .iter()
        .map(|token| token.last_used_at.is_some())
        .collect()
}

async fn a_use_is_stored_when_the_gate_stops(store: Arc<dyn Store>) {
    let (gate, [sender, other]) = two_tokens(&store).await;
    assert!(is_admitted(&gate, &sender).await);
    assert!(!is_admitted(&gate, &other).await, "it has no permission");
    assert_eq!(used(&store).await, [false, false]);
    gate.stop().await;
    assert_eq!(used(&store).await, [true, false]);
}

async fn a_use_before_a_change_is_stored(store: Arc<dyn Store>) {
    let (gate, [sender, _]) = two_tokens(&store).await;
    assert!(is_admitted(&gate, &sender).await);
    assert!(is_admitted(&gate, &sender).await, "from the cache");
    let suspended = store.set_suspended("acme", true).await;
    assert!(suspended.expect("answers"));
    // Once the gate refuses the token, it has emptied its cache.
    let deadline = std::time::Instant::now() + TEST_TIMEOUT;
    while is_admitted(&gate, &sender).await {
        assert!(
            std::time::Instant::now() < deadline,
            "the gate never refuses"
        );
        tokio::task::yield_now().await;
    }
    gate.stop().await;
    assert_eq!(used(&store).await, [true, false]);
}
