//! Sample values for the tests.

use std::sync::Arc;

use domain::ids::{AccountId, MessageId};
use domain::message::text::{Coding, Shape};
use domain::message::{Holder, IdempotencyClaim, Priority, Recipient, SendTime, Submission};
use domain::ports::{Accepted, ListRange, NewAccount, NewToken, Store, StoreError, WorkStore};
use domain::{AllowList, Channel, Money, Msisdn, Originator, Permissions, Timestamp, TokenHash};

pub(crate) const EVERYTHING: ListRange = ListRange {
    limit: 1_000,
    offset: 0,
};

/// A fixed time plus a number of seconds.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("within range")
}

pub(crate) fn account(number: u64) -> AccountId {
    AccountId::new(number).expect("an ID")
}

pub(crate) fn message(number: u64) -> MessageId {
    MessageId::new(number).expect("an ID")
}

pub(crate) fn hash(secret: &str) -> TokenHash {
    TokenHash::from_secret(secret)
}

/// A plain message of account 1 with this many recipients and IDs from `first` on, accepted at second 0.
pub(crate) fn submission(first: u64, recipients: u64) -> Submission {
    let recipient = |n: u64| Recipient {
        id: message(first + n),
        to: Msisdn::parse(&format!("+3712{:07}", (first + n) % 10_000_000_000)).expect("a number"),
        network: None,
        country: None,
        price: Money::ZERO,
        refused: None,
    };
    Submission {
        account: account(1),
        channel: Channel::Sms,
        recipients: (0..recipients).map(recipient).collect(),
        from: Some(Originator::parse("Acme").expect("a name")),
        carries_code: false,
        notice: false,
        interactive: None,
        text: "Your code is 1234".to_owned(),
        shape: Shape {
            coding: Coding::Gsm7,
            parts: 1,
        },
        udh: None,
        coding_given: false,
        dlr_url: None,
        priority: Priority::Normal,
        send: SendTime::Now,
        accepted_at: at(0),
        expires_at: at(259_200),
        test_mode: None,
        idempotency: None,
        holder: Holder::Nobody,
        trace: None,
    }
}

/// A message that is scheduled for a later second.
pub(crate) fn scheduled(first: u64, second: i64) -> Submission {
    Submission {
        send: SendTime::At(at(second)),
        ..submission(first, 1)
    }
}

/// A message with an idempotency key that expires at second 100.
pub(crate) fn keyed(first: u64, key: u8, body: u8) -> Submission {
    let claim = IdempotencyClaim {
        key: [key; 32],
        body: [body; 32],
        expires_at: at(100),
    };
    Submission {
        idempotency: Some(claim),
        ..submission(first, 2)
    }
}

/// Stores a batch; the error is the first of any submission.
pub(crate) async fn try_accept<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    batch: Vec<Submission>,
) -> Result<Vec<Accepted>, Arc<StoreError>> {
    store.accept(Arc::new(batch)).await.into_iter().collect()
}

/// Stores a batch.
pub(crate) async fn accept<S: WorkStore + ?Sized>(
    store: &Arc<S>,
    batch: Vec<Submission>,
) -> Vec<Accepted> {
    try_accept(store, batch)
        .await
        .expect("the store accepts the batch")
}

pub(crate) fn new_account(name: &str) -> NewAccount {
    NewAccount {
        name: name.parse().expect("a name"),
        balance: Money::from_micros(12_345_678),
        callback_secret: format!("secret of {name}"),
        created_at: at(1),
    }
}

pub(crate) fn new_token(account: AccountId, secret: &str) -> NewToken {
    NewToken {
        account,
        name: format!("token {secret}"),
        hash: hash(secret),
        permissions: Permissions::all(),
        allow: AllowList::default(),
        expires: None,
        created_at: at(2),
    }
}

/// Creates an account that must not exist yet.
pub(crate) async fn create_account(store: &Arc<dyn Store>, name: &str) -> AccountId {
    let created = store
        .create_account(&new_account(name))
        .await
        .expect("the store answers");
    created.expect("the name is free")
}
