//! The port for confirmation codes: their number is limited, and their texts are stored until the message has ended.

use async_trait::async_trait;
use domain::code_cap::{self, CodeCapReached, NUMBER_DAY};
use domain::delivery::QueuedMessage;
use domain::encryption::KEY_BYTES;
use domain::ids::AccountId;
use domain::message::Recipient;
use domain::message::code_text::{self, SHOWN};
use domain::ports::{CodeStore, KeyStore, StoreError};
use domain::{KeyRing, Msisdn, Timestamp};
use jiff::SignedDuration;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{SqliteStore, clock};
use crate::rows::dispatch;
use crate::rows::encrypted::salt;
use crate::rows::{duration_us, micros, timestamp};
use crate::sql::codes as sql;

const PRUNE: &str = "
    DELETE FROM code_sent WHERE (number, sent_us, account_id) IN
        (SELECT number, sent_us, account_id FROM code_sent WHERE sent_us <= ?1 LIMIT ?2)";

const INSERT_TEXT: &str = "INSERT INTO code_text (message_id, text) VALUES (?1, ?2)";
const FIND_TEXT: &str = "SELECT text FROM code_text WHERE message_id = ?1";
const PRUNE_TEXTS: &str = "
    DELETE FROM code_text WHERE message_id IN (
        SELECT c.message_id FROM code_text AS c LEFT JOIN message AS m ON m.id = c.message_id
        WHERE m.id IS NULL OR m.final_us <= ?2 OR m.final_us IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM transit AS t WHERE t.id = c.message_id AND t.carrier = ?1)
        LIMIT ?3)";

#[async_trait]
impl CodeStore for SqliteStore {
    async fn prune_codes(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.write("prune codes", move |db| prune(db, before, limit))
            .await
    }

    async fn prune_code_texts(
        &self,
        inbox: &str,
        age: SignedDuration,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let inbox = inbox.to_owned();
        self.write("prune the texts of codes", move |db| {
            prune_texts(db, &inbox, duration_us(age), limit)
        })
        .await
    }
}

impl KeyStore for SqliteStore {
    fn derived_keys(&self, purpose: &str) -> Vec<[u8; KEY_BYTES]> {
        self.keys.derived_keys(purpose)
    }
}

/// Stores a text that carries a code, encrypted.
pub(super) fn store_text(
    db: &Connection,
    keys: &KeyRing,
    recipient: &Recipient,
    text: &str,
) -> rusqlite::Result<()> {
    let encrypted = code_text::encrypt(keys, &recipient.to, text, salt());
    let values = params![recipient.id.as_i64(), encrypted];
    db.prepare_cached(INSERT_TEXT)?.execute(values).map(drop)
}

/// Restores the text of a message that carries a code.
pub(super) fn reveal(
    db: &Connection,
    keys: &KeyRing,
    queued: &mut QueuedMessage,
) -> rusqlite::Result<()> {
    if queued.text != SHOWN {
        return Ok(());
    }
    let found: Option<Vec<u8>> = db
        .prepare_cached(FIND_TEXT)?
        .query_row([queued.id.as_i64()], |row| row.get(0))
        .optional()?;
    if let Some(encrypted) = found {
        queued.text = dispatch::code_text(keys, &queued.to, &encrypted)?;
    }
    Ok(())
}

fn prune_texts(db: &Connection, inbox: &str, age_us: i64, limit: u32) -> rusqlite::Result<u64> {
    let values = params![inbox, clock::now_us(db)? - age_us, limit];
    let pruned = db.prepare_cached(PRUNE_TEXTS)?.execute(values)?;
    Ok(pruned as u64)
}

/// Counts a code that is about to be sent, unless the limit is reached.
pub(super) fn count(
    db: &Connection,
    number: Msisdn,
    account: AccountId,
    now: Timestamp,
) -> rusqlite::Result<Result<(), CodeCapReached>> {
    let sent_to = db
        .prepare_cached(sql::SENT_TO.sqlite)?
        .query_map(params![number.as_i64(), NUMBER_DAY], sent_at)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let sent_by = db
        .prepare_cached(sql::SENT_BY.sqlite)?
        .query_row([account.as_i64()], sent_at)
        .optional()?;
    let checked =
        code_cap::check_number(&sent_to, now).and_then(|()| code_cap::check_account(sent_by, now));
    if checked.is_ok() {
        let values = params![number.as_i64(), account.as_i64(), micros(now)];
        db.prepare_cached(sql::COUNT.sqlite)?.execute(values)?;
    }
    Ok(checked)
}

fn sent_at(row: &Row<'_>) -> rusqlite::Result<Timestamp> {
    Ok(timestamp(row.get(0)?)?)
}

/// Deletes codes that no longer count.
fn prune(db: &Connection, before: Timestamp, limit: u32) -> rusqlite::Result<u64> {
    let values = params![micros(before), limit];
    let pruned = db.prepare_cached(PRUNE)?.execute(values)?;
    Ok(pruned as u64)
}
