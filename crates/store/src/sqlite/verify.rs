//! The port for verifications.

use async_trait::async_trait;
use domain::Timestamp;
use domain::ids::{AccountId, VerificationId};
use domain::ports::{NewVerification, Started, StoreError, VerifyStore};
use domain::verify::{Judgement, MAX_COUNTED, OneTimeCode, PrefixConversion, Verification, WINDOW};
use rusqlite::{Connection, OptionalExtension, params};

use super::{SqliteStore, codes};
use crate::rows::micros;
use crate::rows::verify::{conversion, prefix_conversion, sent, verification, verification_id};
use crate::sql::verify as sql;

#[async_trait]
impl VerifyStore for SqliteStore {
    async fn start_verification(&self, new: &NewVerification) -> Result<Started, StoreError> {
        let new = *new;
        self.write("start a verification", move |db| start(db, &new))
            .await
    }

    async fn withdraw_verification(&self, id: VerificationId) -> Result<(), StoreError> {
        self.write("withdraw a verification", move |db| {
            db.prepare_cached(sql::UNCOUNT.sqlite)?
                .execute([id.as_i64()])?;
            let mut withdraw = db.prepare_cached(sql::WITHDRAW.sqlite)?;
            withdraw.execute([id.as_i64()]).map(drop)
        })
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

    async fn list_conversions(
        &self,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<PrefixConversion>, StoreError> {
        self.read("count verifications", move |db| {
            db.prepare_cached(sql::CONVERSIONS.sqlite)?
                .query_map(params![micros(since), limit], |row| prefix_conversion(row))?
                .collect()
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
    ];
    let id = db
        .prepare_cached(sql::CREATE.sqlite)?
        .query_row(values, |row| row.get(0))?;
    Ok(Started::New(verification_id(id)?))
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
