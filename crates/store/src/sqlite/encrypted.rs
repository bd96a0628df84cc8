//! Encrypts everything that is not encrypted with the current key of the file.

use domain::KeyRing;
use rusqlite::{Connection, OptionalExtension, Result, TransactionBehavior, params};

use crate::encrypted::{BATCH, Encrypting, NamedKey, renew, renew_text, secret_place, totp_place};
use crate::sql::encrypted as sql;
use crate::{KeyRetention, OpenError};

const NAME_KEY: &str = "
    INSERT INTO service_key (one, key_id, proof) VALUES (1, ?1, ?2)
    ON CONFLICT (one) DO UPDATE SET key_id = ?1, proof = ?2";
const PLAIN_ACCOUNTS: &str = "
    SELECT id, name, callback_secret, former_secret FROM account
    WHERE substr(callback_secret, 1, length(?1)) <> ?1 OR substr(former_secret, 1, length(?1)) <> ?1 LIMIT ?2";
const RENEW_ACCOUNT: &str =
    "UPDATE account SET callback_secret = ?2, former_secret = ?3 WHERE id = ?1";
const PLAIN_PEOPLE: &str = "
    SELECT id, totp_secret, totp_offered FROM person
    WHERE substr(totp_secret, 1, length(?1)) <> ?1 OR substr(totp_offered, 1, length(?1)) <> ?1 LIMIT ?2";
const RENEW_PERSON: &str = "UPDATE person SET totp_secret = ?2, totp_offered = ?3 WHERE id = ?1";

/// Finds the key that encrypts, or names one, and encrypts again what it does not encrypt yet. Says how many rows.
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
    let named = find(connection).map_err(failed)?;
    let wanted = keys.newest();
    if let Some(named) = &named {
        keys = named.check(&keys, database)?;
    }
    let is_named =
        named.is_some() && (encrypting == Encrypting::AsBefore || keys.active() == wanted);
    if is_named && !has_plain(connection, &keys).map_err(failed)? {
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
        Some(named) if encrypting == Encrypting::AsBefore => keys = named.check(&keys, database)?,
        found => {
            if let Some(named) = found {
                named.check(&keys, database)?;
            }
            keys = keys.with_active(wanted).expect("it is among them");
            let named = NamedKey::from_keys(&keys, KeyRetention::Elsewhere);
            transaction
                .execute(NAME_KEY, params![named.key_id, named.proof])
                .map_err(failed)?;
        }
    }
    let renewed =
        renew_accounts(&transaction, &keys, &failed)? + renew_people(&transaction, &keys, &failed)?;
    transaction.commit().map_err(failed)?;
    connection
        .execute_batch("PRAGMA secure_delete = OFF")
        .map_err(failed)?;
    Ok((keys, renewed))
}

fn find(db: &Connection) -> Result<Option<NamedKey>> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok(NamedKey {
            key_id: row.get(0)?,
            proof: row.get(1)?,
            kept: row.get(2)?,
        })
    };
    db.query_row(sql::FIND_KEY.sqlite, [], read).optional()
}

fn has_plain(db: &Connection, keys: &KeyRing) -> Result<bool> {
    let accounts = db
        .prepare(PLAIN_ACCOUNTS)?
        .exists(params![keys.text_head(), 1])?;
    Ok(accounts || db.prepare(PLAIN_PEOPLE)?.exists(params![keys.head(), 1])?)
}

fn renew_accounts(
    db: &Connection,
    keys: &KeyRing,
    failed: &impl Fn(rusqlite::Error) -> OpenError,
) -> Result<u64, OpenError> {
    type Page = (i64, String, String, Option<String>);
    let find = || -> Result<Vec<Page>> {
        let mut statement = db.prepare(PLAIN_ACCOUNTS)?;
        let read =
            |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        let rows = statement.query_map(params![keys.text_head(), BATCH], read)?;
        rows.collect()
    };
    let mut renewed = 0;
    loop {
        let found = find().map_err(failed)?;
        if found.is_empty() {
            return Ok(renewed);
        }
        for (id, name, newest, former) in found {
            let place = secret_place(&name);
            let newest = renew_text(keys, &place, &newest)?;
            let former = former.map(|text| renew_text(keys, &place, &text));
            let values = params![id, newest, former.transpose()?];
            db.execute(RENEW_ACCOUNT, values).map_err(failed)?;
            renewed += 1;
        }
    }
}

fn renew_people(
    db: &Connection,
    keys: &KeyRing,
    failed: &impl Fn(rusqlite::Error) -> OpenError,
) -> Result<u64, OpenError> {
    type Page = (i64, Option<Vec<u8>>, Option<Vec<u8>>);
    let find = || -> Result<Vec<Page>> {
        let mut statement = db.prepare(PLAIN_PEOPLE)?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let rows = statement.query_map(params![keys.head(), BATCH], read)?;
        rows.collect()
    };
    let mut renewed = 0;
    loop {
        let found = find().map_err(failed)?;
        if found.is_empty() {
            return Ok(renewed);
        }
        for (id, active, offered) in found {
            let place = totp_place(id);
            let again = |value: Option<Vec<u8>>| {
                let again = value.map(|value| renew(keys, &place, &value));
                again.transpose()
            };
            let values = params![id, again(active)?, again(offered)?];
            db.execute(RENEW_PERSON, values).map_err(failed)?;
            renewed += 1;
        }
    }
}
