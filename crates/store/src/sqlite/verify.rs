//! The port for verifications.

use async_trait::async_trait;
use domain::billing::EntryKind;
use domain::ids::{AccountId, VerificationId};
use domain::ports::{MAX_CONVERSION_ROWS, NewVerification, Started, StoreError, VerifyStore};
use domain::verify::{
    Judgement, MAX_COUNTED, NetworkConversion, OneTimeCode, PrefixConversion, Verification, WINDOW,
};
use domain::{Money, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::billing::Change;
use super::{SqliteStore, codes};
use crate::rows::micros;
use crate::rows::traffic::place_code;
use crate::rows::verify::{
    conversion, network_conversion, prefix_conversion, sent, verification, verification_id,
};
use crate::sql::verify as sql;

#[async_trait]
impl VerifyStore for SqliteStore {
    async fn start_verification(&self, new: &NewVerification) -> Result<Started, StoreError> {
        let new = *new;
        self.write("start a verification", move |db| start(db, &new))
            .await
    }

    async fn withdraw_verification(&self, id: VerificationId) -> Result<(), StoreError> {
        self.write("withdraw a verification", move |db| withdraw(db, id))
            .await
    }

    async fn check_verification(
        &self,
        account: AccountId,
        id: VerificationId,
        guess: &OneTimeCode,
        now: Timestamp,
    ) -> Result<Option<Judgement>, StoreError> {
        let guess = *guess;
        self.write("check a code", move |db| {
            check(db, account, id, &guess, now)
        })
        .await
    }

    async fn find_verification(
        &self,
        account: AccountId,
        id: VerificationId,
    ) -> Result<Option<Verification>, StoreError> {
        self.read("find a verification", move |db| find(db, account, id))
            .await
    }

    async fn find_keyed_verification(
        &self,
        account: AccountId,
        key: &[u8; 32],
    ) -> Result<Option<Verification>, StoreError> {
        let key = *key;
        self.read("find a verification by its key", move |db| {
            db.prepare_cached(sql::FIND_KEYED.sqlite)?
                .query_row(params![account.as_i64(), key], |row| verification(row))
                .optional()
        })
        .await
    }

    async fn list_verifications(
        &self,
        account: AccountId,
        before: Option<VerificationId>,
        limit: u32,
    ) -> Result<Vec<Verification>, StoreError> {
        let before = before.map_or(i64::MAX, VerificationId::as_i64);
        self.read("list verifications", move |db| {
            db.prepare_cached(sql::LIST.sqlite)?
                .query_map(params![account.as_i64(), before, limit], |row| {
                    verification(row)
                })?
                .collect()
        })
        .await
    }

    async fn list_conversions(
        &self,
        account: Option<AccountId>,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<PrefixConversion>, StoreError> {
        let statements = [sql::CONVERSIONS.sqlite, sql::CONVERSIONS_OF_ACCOUNT.sqlite];
        self.read("count verifications", move |db| {
            count(db, statements, account, since, limit, |row| {
                prefix_conversion(row)
            })
        })
        .await
    }

    async fn list_network_conversions(
        &self,
        account: Option<AccountId>,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<NetworkConversion>, StoreError> {
        let statements = [sql::NETWORKS.sqlite, sql::NETWORKS_OF_ACCOUNT.sqlite];
        self.read("count verifications by network", move |db| {
            count(db, statements, account, since, limit, |row| {
                network_conversion(row)
            })
        })
        .await
    }

    async fn prune_verifications(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.write("prune verifications", move |db| {
            let mut prune = db.prepare_cached(sql::PRUNE.sqlite)?;
            Ok(prune.execute(params![micros(before), limit])? as u64)
        })
        .await
    }
}

/// Stores a code, in the place of a pending one for the same number.
fn start(db: &Connection, new: &NewVerification) -> rusqlite::Result<Started> {
    let (account, number) = (new.account.as_i64(), new.to.as_i64());
    let pending = db
        .prepare_cached(sql::FIND_PENDING.sqlite)?
        .query_row([account, number], |row| verification(row))
        .optional()?;
    if let Some(pending) = &pending
        && pending.is_fresh(new.created_at)
    {
        return Ok(Started::TooSoon(pending.id));
    }
    if let Err(slowed) = check_prefix(db, new)? {
        return Ok(Started::Slowed(slowed));
    }
    if let Err(capped) = codes::count(db, new.to, new.account, new.created_at)? {
        return Ok(Started::CodeCapReached(capped));
    }
    if let Some(pending) = pending {
        db.prepare_cached(sql::REPLACE.sqlite)?
            .execute([pending.id.as_i64()])?;
    }
    let values = params![
        account,
        number,
        new.prefix,
        new.length.digits(),
        new.hash.hash,
        new.hash.salt,
        micros(new.created_at),
        micros(new.expires_at),
        place_code(new.network, new.country),
        new.key,
    ];
    let id = db
        .prepare_cached(sql::CREATE.sqlite)?
        .query_row(values, |row| row.get(0))?;
    Ok(Started::New(verification_id(id)?))
}

/// Deletes a code that is pending, and makes the one that it replaced pending again.
fn withdraw(db: &Connection, id: VerificationId) -> rusqlite::Result<()> {
    let withdrawn = db
        .prepare_cached(sql::FIND_WITHDRAWN.sqlite)?
        .query_row([id.as_i64()], |row| verification(row))
        .optional()?;
    let Some(withdrawn) = withdrawn else {
        return Ok(());
    };
    for sql in [sql::UNCOUNT, sql::WITHDRAW] {
        db.prepare_cached(sql.sqlite)?.execute([id.as_i64()])?;
    }
    let (account, number) = (withdrawn.account.as_i64(), withdrawn.to.as_i64());
    let mut restore = db.prepare_cached(sql::RESTORE.sqlite)?;
    restore.execute([account, number, id.as_i64()]).map(drop)
}

/// Whether the account may send another code to this prefix.
fn check_prefix(
    db: &Connection,
    new: &NewVerification,
) -> rusqlite::Result<Result<(), domain::code_cap::CodeCapReached>> {
    let since = micros(new.created_at - WINDOW);
    let values = params![new.account.as_i64(), new.prefix, since, MAX_COUNTED];
    let codes = db
        .prepare_cached(sql::SENT_TO_PREFIX.sqlite)?
        .query_map(values, |row| sent(row))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let (conversion, last) = conversion(&codes);
    Ok(conversion.check(last, new.created_at))
}

/// Counts codes of all accounts, by the first statement, or of one, by the second.
fn count<T>(
    db: &Connection,
    [all, of_account]: [&str; 2],
    account: Option<AccountId>,
    since: Timestamp,
    limit: u32,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let since = micros(since);
    match account {
        None => db
            .prepare_cached(all)?
            .query_map(params![since, limit, MAX_CONVERSION_ROWS], read)?
            .collect(),
        Some(account) => {
            let values = params![since, limit, MAX_CONVERSION_ROWS, account.as_i64()];
            db.prepare_cached(of_account)?
                .query_map(values, read)?
                .collect()
        }
    }
}

/// Checks a guess. There is one writer, so no two guesses see the same number of tries.
fn check(
    db: &Connection,
    account: AccountId,
    id: VerificationId,
    guess: &OneTimeCode,
    now: Timestamp,
) -> rusqlite::Result<Option<Judgement>> {
    let Some(found) = find(db, account, id)? else {
        return Ok(None);
    };
    let judged = found.judge(guess, now);
    if let Some((state, tries)) = judged.change() {
        let values = params![id.as_i64(), state.number(), tries];
        db.prepare_cached(sql::CHANGE.sqlite)?.execute(values)?;
    }
    if judged == Judgement::Right && found.price != Money::ZERO {
        let charge = Change {
            account_id: account.as_i64(),
            kind: EntryKind::Verification,
            amount_micros: -found.price.micros(),
            messages: 1,
            note: None,
            at_us: micros(now),
        };
        charge.write_entry(db)?;
    }
    Ok(Some(judged))
}

fn find(
    db: &Connection,
    account: AccountId,
    id: VerificationId,
) -> rusqlite::Result<Option<Verification>> {
    db.prepare_cached(sql::FIND.sqlite)?
        .query_row([id.as_i64(), account.as_i64()], |row| verification(row))
        .optional()
}
