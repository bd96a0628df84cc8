//! The port for sender IDs: registration, confirmation, review, and the notification of each change.

use async_trait::async_trait;
use domain::Timestamp;
use domain::delivery::CallbackKind;
use domain::ids::{AccountId, SenderId};
use domain::ports::{
    Confirmed, ListRange, NewSender, Registered, Reviewed, SenderFilter, SenderRight, SenderStore,
    StoreError,
};
use domain::sender::{Judgement, Pin, PinHash, SenderRecord, SenderState, Step, notification};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{SqliteStore, access, clock, codes};
use crate::rows::senders::{
    Sender, SenderColumns, first_columns, is_wrong_guess, sender_id, sender_right,
};
use crate::rows::{NOBODY, micros};
use crate::sql::senders as sql;

const SENDER: &str = "
    SELECT id, account_id, name, kind, category, description, notification_url, state, reason, created_us,
        pin_hash, pin_salt, pin_expires_us, pin_sent_us, pin_tries FROM sender";
const LIVE: &str = "account_id = ?1 AND name = ?2 AND state IN (1, 2, 3)";
const CREATE: &str = "
    INSERT INTO sender (account_id, name, kind, category, description, notification_url, state, created_us, changed_us,
        pin_hash, pin_salt, pin_expires_us, pin_sent_us)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?10, ?11, ?12) RETURNING id";
const WITHDRAW_PIN: &str = "
    UPDATE sender SET pin_hash = NULL, pin_salt = NULL, pin_expires_us = NULL, pin_sent_us = NULL
    WHERE id = ?1 AND pin_hash = ?2";
/// Runs before the PIN itself is deleted.
const UNCOUNT_PIN: &str = "
    DELETE FROM code_sent WHERE (account_id, sent_us) =
        (SELECT account_id, pin_sent_us FROM sender WHERE id = ?1 AND pin_hash = ?2)";
const LIST_WAITING: &str =
    "WHERE state = 2 AND coalesce(pin_sent_us, created_us) <= ?1 ORDER BY id LIMIT ?2";
const CHANGE: &str = "
    UPDATE sender SET state = ?2, reason = ?3, changed_us = ?4, pin_hash = NULL, pin_salt = NULL, pin_expires_us = NULL
    WHERE id = ?1";
pub(super) const CREATE_CALLBACK: &str = "
    INSERT INTO callback (account_id, message_id, url, payload, created_us, due_us, state, tries, kind)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, ?7)";
pub(super) const QUEUE_CALLBACK: &str =
    "INSERT INTO callback_queue (owner, due_us, id, attempt) VALUES (?1, ?2, ?3, 0)";

#[async_trait]
impl SenderStore for SqliteStore {
    async fn register_sender(&self, sender: &NewSender) -> Result<Registered, StoreError> {
        let sender = sender.clone();
        self.write("register a sender", move |db| register(db, &sender))
            .await
    }

    async fn withdraw_pin(&self, id: SenderId, pin: &PinHash) -> Result<(), StoreError> {
        let pin = *pin;
        self.write("withdraw a PIN", move |db| withdraw_pin(db, id, &pin))
            .await
    }

    async fn confirm_sender(
        &self,
        account: AccountId,
        id: SenderId,
        guess: Pin,
        now: Timestamp,
    ) -> Result<Confirmed, StoreError> {
        self.write("confirm a sender", move |db| {
            confirm(db, account, id, guess, now)
        })
        .await
    }

    async fn find_sender(
        &self,
        account: Option<AccountId>,
        id: SenderId,
    ) -> Result<Option<SenderRecord>, StoreError> {
        self.read("find a sender", move |db| find(db, account, id))
            .await
    }

    async fn list_senders(
        &self,
        filter: SenderFilter,
        page: ListRange,
    ) -> Result<Vec<SenderRecord>, StoreError> {
        self.read("list senders", move |db| list(db, filter, page))
            .await
    }

    async fn review_sender(
        &self,
        id: SenderId,
        step: Step,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<Reviewed, StoreError> {
        let reason = reason.map(str::to_owned);
        self.write("review a sender", move |db| {
            review(db, id, step, reason.as_deref(), now)
        })
        .await
    }

    async fn expire_senders(
        &self,
        before: Timestamp,
        reason: &str,
        now: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let reason = reason.to_owned();
        self.write("expire senders", move |db| {
            expire(db, before, &reason, now, limit)
        })
        .await
    }

    async fn find_sender_right(
        &self,
        account: AccountId,
        name: &str,
    ) -> Result<Option<SenderRight>, StoreError> {
        let name = name.to_owned();
        self.read("find an approved sender", move |db| {
            let mut find = db.prepare_cached(sql::FIND_RIGHT.sqlite)?;
            find.query_row(params![account.as_i64(), name], |row| sender_right(row))
        })
        .await
    }
}

/// Registers a sender, or renews the PIN of one that waits for it.
fn register(db: &Connection, new: &NewSender) -> rusqlite::Result<Registered> {
    let mut live = db.prepare_cached(&format!("{SENDER} WHERE {LIVE}"))?;
    let values = params![new.account.as_i64(), new.name.compared()];
    let known = live.query_row(values, sender).optional()?;
    let existing = known.map(|known| known.register_again(new));
    if let (None | Some(Registered::PinAgain(_)), Some(number)) = (existing, new.pin_goes_to())
        && let Err(capped) = codes::count(db, number, new.account, new.created_at)?
    {
        return Ok(Registered::CodeCapReached(capped));
    }
    let Some(registered) = existing else {
        return create(db, new).map(Registered::New);
    };
    if let (Registered::PinAgain(id), Some(pin)) = (registered, &new.pin) {
        let (_, expires_us) = first_columns(new);
        db.prepare_cached(sql::RENEW_PIN.sqlite)?.execute(params![
            id.as_i64(),
            pin.hash,
            pin.salt,
            expires_us,
            micros(new.created_at),
            url(new),
        ])?;
    }
    Ok(registered)
}

fn create(db: &Connection, new: &NewSender) -> rusqlite::Result<SenderId> {
    let (state, expires_us) = first_columns(new);
    let created_us = micros(new.created_at);
    let values = params![
        new.account.as_i64(),
        new.name.compared(),
        new.name.kind().number(),
        new.category.map(domain::sender::Category::number),
        new.description,
        url(new),
        state,
        created_us,
        new.pin.map(|pin| pin.hash),
        new.pin.map(|pin| pin.salt),
        expires_us,
        new.pin.map(|_| created_us),
    ];
    let id = db
        .prepare_cached(CREATE)?
        .query_row(values, |row| row.get(0))?;
    Ok(sender_id(id)?)
}

fn url(new: &NewSender) -> Option<&[u8]> {
    let url = new.notification_url.as_ref();
    url.map(|url| url.as_str().as_bytes())
}

/// Deletes a PIN that could not be sent.
fn withdraw_pin(db: &Connection, id: SenderId, pin: &PinHash) -> rusqlite::Result<()> {
    let values = params![id.as_i64(), pin.hash];
    db.prepare_cached(UNCOUNT_PIN)?.execute(values)?;
    db.prepare_cached(WITHDRAW_PIN)?.execute(values).map(drop)
}

/// Checks a guess. There is one writer, so no two guesses see the same number of attempts.
fn confirm(
    db: &Connection,
    account: AccountId,
    id: SenderId,
    guess: Pin,
    now: Timestamp,
) -> rusqlite::Result<Confirmed> {
    let mut find = db.prepare_cached(&format!("{SENDER} WHERE id = ?1 AND account_id = ?2"))?;
    let values = [id.as_i64(), account.as_i64()];
    let Some(found) = find.query_row(values, sender).optional()? else {
        return Ok(Confirmed::Unknown);
    };
    let confirmed = found.judge(guess, now);
    if is_wrong_guess(confirmed) {
        db.prepare_cached(sql::COUNT_TRY.sqlite)?
            .execute([id.as_i64()])?;
    }
    if confirmed == Confirmed::Judged(Judgement::Right) {
        change(db, found.record, SenderState::Approved, None, now)?;
    }
    Ok(confirmed)
}

/// Changes the state of a sender ID.
fn review(
    db: &Connection,
    id: SenderId,
    step: Step,
    reason: Option<&str>,
    now: Timestamp,
) -> rusqlite::Result<Reviewed> {
    let mut find = db.prepare_cached(&format!("{SENDER} WHERE id = ?1"))?;
    let Some(found) = find.query_row([id.as_i64()], sender).optional()? else {
        return Ok(Reviewed::Unknown);
    };
    match found.record.state.after(step) {
        Ok(state) => change(db, found.record, state, reason, now).map(Reviewed::Done),
        Err(wrong) => Ok(Reviewed::Refused(wrong)),
    }
}

/// Rejects numbers that were not confirmed with a PIN in time.
fn expire(
    db: &Connection,
    before: Timestamp,
    reason: &str,
    now: Timestamp,
    limit: u32,
) -> rusqlite::Result<u64> {
    let waiting = db
        .prepare_cached(&format!("{SENDER} {LIST_WAITING}"))?
        .query_map(params![micros(before), limit], sender)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let count = waiting.len();
    for found in waiting {
        change(db, found.record, SenderState::Rejected, Some(reason), now)?;
    }
    Ok(count as u64)
}

/// Changes the state, raises the access version, and queues the notification.
fn change(
    db: &Connection,
    mut sender: SenderRecord,
    state: SenderState,
    reason: Option<&str>,
    now: Timestamp,
) -> rusqlite::Result<SenderRecord> {
    let previous = std::mem::replace(&mut sender.state, state);
    sender.reason = reason.map(str::to_owned);
    let values = params![sender.id.as_i64(), state.number(), reason, micros(now)];
    access::change(db, CHANGE, values)?;
    if let Some(url) = &sender.notification_url {
        let due_us = clock::now_us(db)?;
        let callback = db.prepare_cached(CREATE_CALLBACK)?.insert(params![
            sender.account.as_i64(),
            sender.id.as_i64(),
            url.as_str().as_bytes(),
            notification(&sender, previous, now),
            micros(now),
            due_us,
            CallbackKind::Sender.number(),
        ])?;
        let mut queue = db.prepare_cached(QUEUE_CALLBACK)?;
        queue.execute([NOBODY, due_us, callback])?;
    }
    Ok(sender)
}

/// One sender of an account.
fn find(
    db: &Connection,
    account: Option<AccountId>,
    id: SenderId,
) -> rusqlite::Result<Option<SenderRecord>> {
    let mut find = db.prepare_cached(&format!(
        "{SENDER} WHERE id = ?1 AND (?2 IS NULL OR account_id = ?2)"
    ))?;
    let values = params![id.as_i64(), account.map(AccountId::as_i64)];
    let found = find.query_row(values, sender);
    Ok(found.optional()?.map(|sender| sender.record))
}

/// Matching sender IDs, sorted by ID.
fn list(
    db: &Connection,
    filter: SenderFilter,
    page: ListRange,
) -> rusqlite::Result<Vec<SenderRecord>> {
    let mut list = db.prepare_cached(&format!(
        "{SENDER} WHERE (?1 IS NULL OR account_id = ?1) AND (?2 IS NULL OR state = ?2) AND id > ?5
        ORDER BY id LIMIT ?3 OFFSET ?4"
    ))?;
    let values = params![
        filter.account.map(AccountId::as_i64),
        filter.state.map(SenderState::number),
        page.limit,
        i64::try_from(page.offset).unwrap_or(i64::MAX),
        filter.after.map_or(0, SenderId::as_i64),
    ];
    list.query_map(values, |row| Ok(sender(row)?.record))?
        .collect()
}

fn sender(row: &Row<'_>) -> rusqlite::Result<Sender> {
    Ok(SenderColumns::read(row)?.sender()?)
}
