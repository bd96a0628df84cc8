//! Encrypts everything that is not encrypted with the current key of the file.

use domain::KeyRing;
use rusqlite::{Connection, OptionalExtension, Result, Row, ToSql, TransactionBehavior, params};

use crate::rows::encrypted::{
    BATCH, Encrypting, KeyRow, plan_context, renew, renew_text, secret_context, totp_context,
};
use crate::sql::encrypted as sql;
use crate::{KeyRetention, OpenError};

const STORE_KEY_ID: &str = "
    INSERT INTO service_key (one, key_id, proof) VALUES (1, ?1, ?2)
    ON CONFLICT (one) DO UPDATE SET key_id = ?1, proof = ?2";
const LIST_ACCOUNTS_TO_RENEW: &str = "
    SELECT id, name, callback_secret, former_secret FROM account
    WHERE substr(callback_secret, 1, length(?1)) <> ?1 OR substr(former_secret, 1, length(?1)) <> ?1 LIMIT ?2";
const RENEW_ACCOUNT: &str =
    "UPDATE account SET callback_secret = ?2, former_secret = ?3 WHERE id = ?1";
const LIST_PEOPLE_TO_RENEW: &str = "
    SELECT id, totp_secret, totp_offered FROM person
    WHERE substr(totp_secret, 1, length(?1)) <> ?1 OR substr(totp_offered, 1, length(?1)) <> ?1 LIMIT ?2";
const RENEW_PERSON: &str = "UPDATE person SET totp_secret = ?2, totp_offered = ?3 WHERE id = ?1";

const LIST_PLANS_TO_RENEW: &str = "
    SELECT version, content FROM catalogue WHERE kind = 7 AND substr(content, 1, length(?1)) <> ?1 LIMIT ?2";
const RENEW_PLAN: &str = "UPDATE catalogue SET content = ?2 WHERE kind = 7 AND version = ?1";

/// Finds or sets the file's key, and encrypts every value that is not encrypted with it. Returns the number of rows.
pub(super) fn prepare(
    connection: &mut Connection,
    database: &str,
    keys: &KeyRing,
    encrypting: Encrypting,
) -> Result<(KeyRing, u64), OpenError> {
    let failed = |source: rusqlite::Error| OpenError::Encrypt {
        database: database.to_owned(),
        source: Box::new(source),
    };
    let mut keys = keys.clone();
    let key_row = find(connection).map_err(failed)?;
    let wanted = keys.newest();
    if let Some(key_row) = &key_row {
        keys = key_row.check(&keys, database)?;
    }
    let is_named =
        key_row.is_some() && (encrypting == Encrypting::AsBefore || keys.active() == wanted);
    if is_named && !needs_renewal(connection, &keys).map_err(failed)? {
        return Ok((keys, 0));
    }
    // Overwritten values must not remain in the file.
    connection
        .execute_batch("PRAGMA secure_delete = ON")
        .map_err(failed)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed)?;
    // Another process may have been faster.
    match find(&transaction).map_err(failed)? {
        Some(key_row) if encrypting == Encrypting::AsBefore => {
            keys = key_row.check(&keys, database)?;
        }
        found => {
            if let Some(key_row) = found {
                key_row.check(&keys, database)?;
            }
            keys = keys.with_active(wanted).expect("it is among them");
            let key_row = KeyRow::from_keys(&keys, KeyRetention::Elsewhere);
            transaction
                .execute(STORE_KEY_ID, params![key_row.key_id, key_row.proof])
                .map_err(failed)?;
        }
    }
    let renewed = renew_secrets(&transaction, &keys, &failed)?;
    transaction.commit().map_err(failed)?;
    connection
        .execute_batch("PRAGMA secure_delete = OFF")
        .map_err(failed)?;
    Ok((keys, renewed))
}

fn find(db: &Connection) -> Result<Option<KeyRow>> {
    let read = |row: &Row<'_>| {
        Ok(KeyRow {
            key_id: row.get(0)?,
            proof: row.get(1)?,
            stored_key: row.get(2)?,
        })
    };
    db.query_row(sql::FIND_KEY.sqlite, [], read).optional()
}

fn needs_renewal(db: &Connection, keys: &KeyRing) -> Result<bool> {
    let accounts = db
        .prepare(LIST_ACCOUNTS_TO_RENEW)?
        .exists(params![keys.text_head(), 1])?;
    let plans = db
        .prepare(LIST_PLANS_TO_RENEW)?
        .exists(params![keys.text_head(), 1])?;
    Ok(accounts
        || plans
        || db
            .prepare(LIST_PEOPLE_TO_RENEW)?
            .exists(params![keys.head(), 1])?)
}

/// Renews the rows that a statement finds, a batch at a time, until it finds none.
fn renew_rows<T>(
    db: &Connection,
    list: &str,
    head: &dyn ToSql,
    failed: &impl Fn(rusqlite::Error) -> OpenError,
    renew: impl Fn(T) -> Result<usize, OpenError>,
) -> Result<u64, OpenError>
where
    T: for<'r> TryFrom<&'r Row<'r>, Error = rusqlite::Error>,
{
    let find = || -> Result<Vec<T>> {
        let mut statement = db.prepare(list)?;
        let rows = statement.query_map(params![head, BATCH], |row| T::try_from(row))?;
        rows.collect()
    };
    let mut renewed = 0;
    loop {
        let found = find().map_err(failed)?;
        if found.is_empty() {
            return Ok(renewed);
        }
        for row in found {
            renew(row)?;
            renewed += 1;
        }
    }
}

fn renew_secrets(
    db: &Connection,
    keys: &KeyRing,
    failed: &impl Fn(rusqlite::Error) -> OpenError,
) -> Result<u64, OpenError> {
    let (head, text_head) = (keys.head(), keys.text_head());
    let account = |(id, name, newest, former): (i64, String, String, Option<String>)| {
        let context = secret_context(&name);
        let newest = renew_text(keys, &context, &newest)?;
        let former = former.map(|text| renew_text(keys, &context, &text));
        let values = params![id, newest, former.transpose()?];
        db.execute(RENEW_ACCOUNT, values).map_err(failed)
    };
    let person = |(id, active, offered): (i64, Option<Vec<u8>>, Option<Vec<u8>>)| {
        let context = totp_context(id);
        let again = |value: Option<Vec<u8>>| {
            let again = value.map(|value| renew(keys, &context, &value));
            again.transpose()
        };
        let values = params![id, again(active)?, again(offered)?];
        db.execute(RENEW_PERSON, values).map_err(failed)
    };
    let plan = |(version, content): (u32, String)| {
        let content = renew_text(keys, &plan_context(version), &content)?;
        let values = params![version, content];
        db.execute(RENEW_PLAN, values).map_err(failed)
    };
    Ok(
        renew_rows(db, LIST_ACCOUNTS_TO_RENEW, &text_head, failed, account)?
            + renew_rows(db, LIST_PEOPLE_TO_RENEW, &head, failed, person)?
            + renew_rows(db, LIST_PLANS_TO_RENEW, &text_head, failed, plan)?,
    )
}
