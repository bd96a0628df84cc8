//! Throttles are checked before the store: an address with too many failures finds nothing.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use domain::access::token::SEED_BYTES;
use domain::oauth::ClientIdUrl;
use domain::person::Device;
use domain::ports::{ClientDocuments, Store, UnusableDocument};
use domain::{Clock, Timestamp, TokenSecret};
use engine::identity::gate::Refusal;
use engine::identity::grants::{TokenError, TokenParams};
use engine::identity::hasher::Hasher;
use engine::identity::sign_in::{SessionError, SignIn};
use engine::{Actor, Gate, GrantSettings, Grants};
use jiff::SignedDuration;
use testkit::TEST_TIMEOUT;

use super::oauth;
use super::sample::{at, create_account, new_token};

on_both_stores!(
    an_address_that_guesses_tokens_is_not_looked_up,
    an_address_that_guesses_codes_is_not_looked_up,
    an_address_that_guesses_sessions_is_not_looked_up,
);

const GUESSER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
/// More failures than are allowed at one time.
const GUESSES: u16 = 600;

/// A clock that stands still, so that no failure is forgiven.
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        at(10)
    }
}

struct NoDocuments;

#[async_trait]
impl ClientDocuments for NoDocuments {
    async fn fetch(&self, _: IpAddr, _id: &ClientIdUrl) -> Result<Vec<u8>, UnusableDocument> {
        unreachable!("no client here has a document")
    }
}

/// A well-formed token; only number 0 exists.
fn secret(number: u16) -> TokenSecret {
    let mut seed = [7; SEED_BYTES];
    // Every two bytes select one of a few dozen letters.
    for (index, digit) in [number % 30, number / 30 % 30].into_iter().enumerate() {
        seed[2 * index..][..2].copy_from_slice(&digit.to_le_bytes());
    }
    TokenSecret::from_seed(&seed)
}

async fn an_address_that_guesses_tokens_is_not_looked_up(store: Arc<dyn Store>) {
    let owner = create_account(&store, "acme").await;
    let valid = secret(0);
    let token = new_token(owner, valid.reveal());
    store.create_token(&token).await.expect("it is created");
    let gate = Gate::start(store.clone(), Arc::new(FixedClock));
    let admit = async |secret: &TokenSecret, from| {
        let admitted = gate.admit(Some(secret.reveal()), from, &[]).await;
        admitted.map(|_| ())
    };
    for number in 1..=GUESSES {
        let refused = admit(&secret(number), GUESSER).await.expect_err("a guess");
        let expected = matches!(refused, Refusal::Unknown | Refusal::Throttled { .. });
        assert!(expected, "guess {number}: {refused}");
    }
    let refused = admit(&valid, GUESSER).await;
    assert!(
        matches!(refused, Err(Refusal::Throttled { retry_after_s: 1.. })),
        "the store was asked: {refused:?}"
    );
    // A cached token needs no lookup, so it passes.
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        admit(&valid, OTHER)
            .await
            .expect("another address is not throttled");
        if admit(&valid, GUESSER).await.is_ok() {
            break;
        }
        assert!(Instant::now() < deadline, "a cached token never passed");
        tokio::task::yield_now().await;
    }
    gate.stop().await;
}

async fn an_address_that_guesses_sessions_is_not_looked_up(store: Arc<dyn Store>) {
    let owner = create_account(&store, "acme").await;
    let sign_in = SignIn::new(
        store.clone(),
        Arc::new(FixedClock),
        Arc::new(Hasher::default()),
    );
    let device = Device {
        address: Some(OTHER),
        browser: "a browser".to_owned(),
    };
    let open = async || {
        let link = sign_in.create_link(&Actor::command_line(), owner).await;
        let session = sign_in.redeem(&device, &link.expect("a link")).await;
        session.expect("it is stored").expect("a session")
    };
    let (known, fresh) = (open().await, open().await);
    let is_found = async |session: &str, from| {
        let found = sign_in.find(session, from).await;
        found.map(|found| found.is_some())
    };
    assert!(
        is_found(&known, GUESSER)
            .await
            .expect("it is not throttled")
    );
    for number in 0..GUESSES {
        let guessed = is_found(&format!("guess {number}"), GUESSER).await;
        let expected = matches!(guessed, Ok(false) | Err(SessionError::Throttled { .. }));
        assert!(expected, "guess {number}: {guessed:?}");
    }
    let refused = is_found(&fresh, GUESSER).await;
    assert!(
        matches!(refused, Err(SessionError::Throttled { retry_after_s: 1.. })),
        "the store was asked: {refused:?}"
    );
    let found = is_found(&known, GUESSER).await;
    assert!(matches!(found, Ok(true)), "it is cached: {found:?}");
    let found = is_found(&fresh, OTHER).await;
    assert!(matches!(found, Ok(true)), "another address: {found:?}");
}

async fn an_address_that_guesses_codes_is_not_looked_up(store: Arc<dyn Store>) {
    oauth::granted(&store, "acme").await;
    let settings = GrantSettings {
        issuer: "https://auth.example".to_owned(),
        resource: "https://mcp.example/mcp".to_owned(),
        code_lifetime: SignedDuration::from_secs(60),
        access_lifetime: SignedDuration::from_hours(1),
        refresh_lifetime: SignedDuration::from_hours(1),
        grant_lifetime: SignedDuration::from_hours(24 * 180),
    };
    let clock = Arc::new(FixedClock);
    let grants = Grants::new(store.clone(), clock, Arc::new(NoDocuments), settings);
    let revoke = async |token: &str, from| grants.revoke(from, token, "client").await;
    let renew = async |from| {
        let params = TokenParams {
            grant_type: Some("refresh_token".to_owned()),
            client_id: Some("client".to_owned()),
            refresh_token: Some("refresh acme".to_owned()),
            ..TokenParams::default()
        };
        grants.exchange(&params, from).await.map(|_| ())
    };
    for number in 0..GUESSES {
        let guessed = revoke(&format!("guess {number}"), GUESSER).await;
        let expected = matches!(guessed, Ok(true) | Err(TokenError::Throttled { .. }));
        assert!(expected, "guess {number}: {guessed:?}");
    }
    let throttled = |result: Result<(), TokenError>| {
        let is_throttled = matches!(result, Err(TokenError::Throttled { retry_after_s: 1.. }));
        assert!(is_throttled, "the store was asked: {result:?}");
    };
    throttled(revoke("refresh acme", GUESSER).await.map(|_| ()));
    throttled(renew(GUESSER).await);
    assert!(
        oauth::opens(&store, "access acme").await,
        "it is still valid"
    );
    renew(OTHER)
        .await
        .expect("another address is not throttled");
    let ended = revoke("refresh acme", OTHER).await;
    assert!(matches!(ended, Ok(true)), "{ended:?}");
}
