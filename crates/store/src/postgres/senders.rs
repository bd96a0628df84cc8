//! The port for sender IDs: registration, confirmation, review, and the notification of each change.

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::Timestamp;
use domain::delivery::CallbackKind;
use domain::ids::{AccountId, SenderId};
use domain::ports::{
    Confirmed, ListRange, NewSender, Registered, Reviewed, SenderFilter, SenderRight, SenderStore,
    StoreError,
};
use domain::sender::{
    Category, Judgement, Pin, PinHash, SenderRecord, SenderState, Step, notification,
};
use tokio_postgres::Row;

use super::fault::{Fault, SerializationConflict};
use super::retry::{self, Retryable};
use super::transaction::{execute, find};
use super::{PostgresStore, Values, codes, column};
use crate::rows::senders::{
    Sender, SenderColumns, first_columns, is_wrong_guess, sender_id, sender_right,
};
use crate::rows::{Corrupt, micros};
use crate::sql::senders as sql;

macro_rules! sender {
    ($condition:literal) => {
        concat!(
            "SELECT id, account_id, name, kind, category, description, notification_url, state, reason, created_us,
                pin_hash, pin_salt, pin_expires_us, pin_sent_us, pin_tries FROM sender ",
            $condition
        )
    };
}
const LOCK_LIVE: &str =
    sender!("WHERE account_id = $1 AND name = $2 AND state IN (1, 2, 3) FOR UPDATE");
const LOCK: &str = sender!("WHERE id = $1 FOR UPDATE");
const LOCK_WAITING: &str = sender!(
    "WHERE state = 2 AND coalesce(pin_sent_us, created_us) <= $1 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED"
);
const LOCK_OWN: &str = sender!("WHERE id = $1 AND account_id = $2 FOR UPDATE");
const FIND: &str = sender!("WHERE id = $1 AND ($2::bigint IS NULL OR account_id = $2)");
const LIST: &str = sender!(
    "WHERE ($1::bigint IS NULL OR account_id = $1) AND ($2::smallint IS NULL OR state = $2) AND id > $5
    ORDER BY id LIMIT $3 OFFSET $4"
);
const CREATE: &str = "
    INSERT INTO sender (account_id, name, kind, category, description, notification_url, state, created_us, changed_us,
        pin_hash, pin_salt, pin_expires_us, pin_sent_us)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10, $11, $12)
    ON CONFLICT (account_id, name) WHERE state IN (1, 2, 3) DO NOTHING RETURNING id";
const WITHDRAW_PIN: &str = "
    WITH uncounted AS (
        DELETE FROM code_sent WHERE (account_id, sent_us) =
            (SELECT account_id, pin_sent_us FROM sender WHERE id = $1 AND pin_hash = $2)
    )
    UPDATE sender SET pin_hash = NULL, pin_salt = NULL, pin_expires_us = NULL, pin_sent_us = NULL
    WHERE id = $1 AND pin_hash = $2";
const CHANGE: &str = "
    WITH changed AS (
        UPDATE sender SET state = $2, reason = $3, changed_us = $4, pin_hash = NULL, pin_salt = NULL,
            pin_expires_us = NULL WHERE id = $1
    )
    UPDATE access_version SET version = version + 1";
const NOTIFY: &str = concat!(
    "WITH created AS (
        INSERT INTO callback (account_id, message_id, url, payload, created_us, due_us, state, tries, kind)
        VALUES ($1, $2, $3, $4, $5, ",
    now_us!(),
    ", 0, 0, $6) RETURNING id, due_us, message_id
    )
    INSERT INTO callback_queue (owner, due_us, id, attempt, message_id)
    SELECT 0, due_us, id, 0, message_id FROM created"
);

/// Registers a sender, or renews the PIN of one that waits for it.
struct Registration<'a>(&'a NewSender);

impl Retryable for Registration<'_> {
    type Output = Registered;

    async fn run(&self, client: &mut Object) -> Result<Registered, Fault> {
        let new = self.0;
        let transaction = client.transaction().await?;
        let (account, name) = (new.account.as_i64(), new.name.compared());
        let known = lock(&transaction, LOCK_LIVE, &[&account, &name]).await?;
        let existing = known.map(|known| known.register_again(new));
        if let (None | Some(Registered::PinAgain(_)), Some(number)) = (existing, new.pin_goes_to())
            && let Err(capped) =
                codes::count(&transaction, number, new.account, new.created_at).await?
        {
            return Ok(Registered::CodeCapReached(capped));
        }
        let registered = match existing {
            None => Registered::New(create(&transaction, new).await?),
            Some(existing) => existing,
        };
        if let (Registered::PinAgain(id), Some(pin)) = (registered, &new.pin) {
            renew_pin(&transaction, id, new, pin).await?;
        }
        transaction.commit().await?;
        Ok(registered)
    }
}

/// If another transaction creates the same name first, this one is retried and finds it.
async fn create(transaction: &Transaction<'_>, new: &NewSender) -> Result<SenderId, Fault> {
    let (state, expires_us) = first_columns(new);
    let (account, created_us) = (new.account.as_i64(), micros(new.created_at));
    let (hash, salt) = pin_columns(new.pin.as_ref());
    let values: Values<'_> = &[
        &account,
        &new.name.compared(),
        &new.name.kind().number(),
        &new.category.map(Category::number),
        &new.description,
        &url(new),
        &state,
        &created_us,
        &hash,
        &salt,
        &expires_us,
        &new.pin.map(|_| created_us),
    ];
    let statement = transaction.prepare_cached(CREATE).await?;
    let created = transaction.query_opt(&statement, values).await?;
    let id = created.as_ref().ok_or(SerializationConflict)?;
    Ok(sender_id(column(id, 0)?)?)
}

async fn renew_pin(
    transaction: &Transaction<'_>,
    id: SenderId,
    new: &NewSender,
    pin: &PinHash,
) -> Result<(), Fault> {
    let (_, expires_us) = first_columns(new);
    let (hash, salt) = pin_columns(Some(pin));
    let (id, sent_us) = (id.as_i64(), micros(new.created_at));
    let values: Values<'_> = &[&id, &hash, &salt, &expires_us, &sent_us, &url(new)];
    execute(transaction, sql::RENEW_PIN.postgres, values)
        .await
        .map(drop)
}

fn pin_columns(pin: Option<&PinHash>) -> (Option<&[u8]>, Option<&[u8]>) {
    let hash = pin.map(|pin| pin.hash.as_slice());
    (hash, pin.map(|pin| pin.salt.as_slice()))
}

fn url(new: &NewSender) -> Option<&[u8]> {
    let url = new.notification_url.as_ref();
    url.map(|url| url.as_str().as_bytes())
}

/// Checks a guess. Other guesses wait for the lock and then see its count.
struct Confirmation {
    account: AccountId,
    id: SenderId,
    guess: Pin,
    now: Timestamp,
}

impl Retryable for Confirmation {
    type Output = Confirmed;

    async fn run(&self, client: &mut Object) -> Result<Confirmed, Fault> {
        let transaction = client.transaction().await?;
        let (id, account) = (self.id.as_i64(), self.account.as_i64());
        let Some(found) = lock(&transaction, LOCK_OWN, &[&id, &account]).await? else {
            return Ok(Confirmed::Unknown);
        };
        let confirmed = found.judge(self.guess, self.now);
        if is_wrong_guess(confirmed) {
            execute(&transaction, sql::COUNT_TRY.postgres, &[&id]).await?;
        }
        if confirmed == Confirmed::Judged(Judgement::Right) {
            let approved = SenderState::Approved;
            change(&transaction, found.record, approved, None, self.now).await?;
        }
        transaction.commit().await?;
        Ok(confirmed)
    }
}

/// Changes the state of a sender ID.
struct Review<'a> {
    id: SenderId,
    step: Step,
    reason: Option<&'a str>,
    now: Timestamp,
}

impl Retryable for Review<'_> {
    type Output = Reviewed;

    async fn run(&self, client: &mut Object) -> Result<Reviewed, Fault> {
        let transaction = client.transaction().await?;
        let Some(found) = lock(&transaction, LOCK, &[&self.id.as_i64()]).await? else {
            return Ok(Reviewed::Unknown);
        };
        let state = match found.record.state.after(self.step) {
            Ok(state) => state,
            Err(wrong) => return Ok(Reviewed::Refused(wrong)),
        };
        let changed = change(&transaction, found.record, state, self.reason, self.now).await?;
        transaction.commit().await?;
        Ok(Reviewed::Done(changed))
    }
}

/// Rejects numbers that were not confirmed with a PIN in time.
struct Expiry<'a> {
    before: Timestamp,
    reason: &'a str,
    now: Timestamp,
    limit: u32,
}

impl Retryable for Expiry<'_> {
    type Output = u64;

    async fn run(&self, client: &mut Object) -> Result<u64, Fault> {
        let transaction = client.transaction().await?;
        let statement = transaction.prepare_cached(LOCK_WAITING).await?;
        let values: Values<'_> = &[&micros(self.before), &i64::from(self.limit)];
        let waiting = transaction.query(&statement, values).await?;
        for row in &waiting {
            let (found, rejected) = (record(row)?, SenderState::Rejected);
            change(&transaction, found, rejected, Some(self.reason), self.now).await?;
        }
        transaction.commit().await?;
        Ok(waiting.len() as u64)
    }
}

/// Changes the state, raises the access version, and queues the notification.
async fn change(
    transaction: &Transaction<'_>,
    mut sender: SenderRecord,
    state: SenderState,
    reason: Option<&str>,
    now: Timestamp,
) -> Result<SenderRecord, Fault> {
    let previous = std::mem::replace(&mut sender.state, state);
    sender.reason = reason.map(str::to_owned);
    let (id, now_us) = (sender.id.as_i64(), micros(now));
    let values: Values<'_> = &[&id, &state.number(), &reason, &now_us];
    execute(transaction, CHANGE, values).await?;
    if let Some(url) = &sender.notification_url {
        let account = sender.account.as_i64();
        let (url, payload) = (
            url.as_str().as_bytes(),
            notification(&sender, previous, now),
        );
        let kind = CallbackKind::Sender.number();
        let values: Values<'_> = &[&account, &id, &url, &payload, &now_us, &kind];
        execute(transaction, NOTIFY, values).await?;
    }
    Ok(sender)
}

async fn lock(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: Values<'_>,
) -> Result<Option<Sender>, Fault> {
    let found = find(transaction, sql, values).await?;
    Ok(found.as_ref().map(read).transpose()?)
}

#[async_trait]
impl SenderStore for PostgresStore {
    async fn register_sender(&self, sender: &NewSender) -> Result<Registered, StoreError> {
        retry::run(&self.pool, "register a sender", &Registration(sender)).await
    }

    async fn withdraw_pin(&self, id: SenderId, pin: &PinHash) -> Result<(), StoreError> {
        let (id, hash) = (id.as_i64(), pin.hash.as_slice());
        self.query("withdraw a PIN", WITHDRAW_PIN, &[&id, &hash])
            .await
            .map(drop)
    }

    async fn confirm_sender(
        &self,
        account: AccountId,
        id: SenderId,
        guess: Pin,
        now: Timestamp,
    ) -> Result<Confirmed, StoreError> {
        let confirmation = Confirmation {
            account,
            id,
            guess,
            now,
        };
        retry::run(&self.pool, "confirm a sender", &confirmation).await
    }

    async fn find_sender(
        &self,
        account: Option<AccountId>,
        id: SenderId,
    ) -> Result<Option<SenderRecord>, StoreError> {
        let values: Values<'_> = &[&id.as_i64(), &account.map(AccountId::as_i64)];
        self.find("find a sender", FIND, values, record).await
    }

    async fn list_senders(
        &self,
        filter: SenderFilter,
        page: ListRange,
    ) -> Result<Vec<SenderRecord>, StoreError> {
        let account = filter.account.map(AccountId::as_i64);
        let state = filter.state.map(SenderState::number);
        let limit = i64::from(page.limit);
        let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
        let after = filter.after.map_or(0, SenderId::as_i64);
        let values: Values<'_> = &[&account, &state, &limit, &offset, &after];
        self.list("list senders", LIST, values, record).await
    }

    async fn review_sender(
        &self,
        id: SenderId,
        step: Step,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<Reviewed, StoreError> {
        let review = Review {
            id,
            step,
            reason,
            now,
        };
        retry::run(&self.pool, "review a sender", &review).await
    }

    async fn expire_senders(
        &self,
        before: Timestamp,
        reason: &str,
        now: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let expiry = Expiry {
            before,
            reason,
            now,
            limit,
        };
        retry::run(&self.pool, "expire senders", &expiry).await
    }

    async fn find_sender_right(
        &self,
        account: AccountId,
        name: &str,
    ) -> Result<Option<SenderRight>, StoreError> {
        let values: Values<'_> = &[&account.as_i64(), &name];
        let (operation, sql) = ("find an approved sender", sql::FIND_RIGHT.postgres);
        self.get(operation, sql, values, sender_right).await
    }
}

fn record(row: &Row) -> Result<SenderRecord, Corrupt> {
    Ok(read(row)?.record)
}

fn read(row: &Row) -> Result<Sender, Corrupt> {
    SenderColumns::read(row)?.sender()
}
