//! The port for the second factor.

use async_trait::async_trait;
use domain::ids::PersonId;
use domain::person::TotpSecret;
use domain::ports::{
    NewSession, PendingSignIn, SecondFactor, SecondFactorStore, SecondProof, StoreError,
};
use domain::{KeyRing, Timestamp, TokenHash};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::SqliteStore;
use super::sessions::{Owner, delete_expired, end_session, open_session};
use crate::rows::micros;
use crate::rows::people::{self, FactorColumns, PersonColumns, person_id};
use crate::sql::second_factor as sql;

const ENABLE: &str = "
    UPDATE person SET totp_secret = totp_offered, totp_offered = NULL, totp_step = ?2
    WHERE id = ?1 AND totp_secret IS NULL AND totp_offered IS NOT NULL";
const DISABLE: &str = "
    UPDATE person SET totp_secret = NULL, totp_offered = NULL WHERE id = ?1 AND totp_secret IS NOT NULL";
const IS_ENABLED: &str =
    "SELECT EXISTS (SELECT 1 FROM person WHERE id = ?1 AND totp_secret IS NOT NULL)";
const INSERT_CODE: &str = "INSERT INTO recovery_code (person_id, hash) VALUES (?1, ?2)";
const USE_ATTEMPT: &str = "
    UPDATE half_open SET tries = tries + 1 WHERE hash = ?1 AND expires_us > ?2 AND tries < ?3 RETURNING person_id";
const FIND_PERSON: &str = "
    SELECT id, email, role, account_id, totp_secret, totp_step FROM person
    WHERE id = ?1 AND totp_secret IS NOT NULL";

pub(super) fn create_pending_sign_in(
    db: &Connection,
    person: PersonId,
    pending: &TokenHash,
    expires_us: i64,
) -> Result<()> {
    db.prepare_cached(sql::CREATE_PENDING.sqlite)?
        .execute(params![pending.as_bytes(), person.as_i64(), expires_us])
        .map(drop)
}

fn find(db: &Connection, keys: &KeyRing, person: PersonId) -> Result<SecondFactor> {
    let read = |row: &Row<'_>| Ok(FactorColumns::read(row)?.factor(keys, person)?);
    let found = db
        .prepare_cached(sql::FIND.sqlite)?
        .query_row([person.as_i64()], read)
        .optional()?;
    Ok(found.unwrap_or_default())
}

fn enable(db: &Connection, person: PersonId, step: i64, codes: &[TokenHash]) -> Result<bool> {
    let values = params![person.as_i64(), step];
    let is_enabled = db.prepare_cached(ENABLE)?.execute(values)? > 0;
    if is_enabled {
        replace_codes(db, person, codes)?;
    }
    Ok(is_enabled)
}

fn replace_codes(db: &Connection, person: PersonId, codes: &[TokenHash]) -> Result<()> {
    let person = person.as_i64();
    db.prepare_cached(sql::DELETE_CODES.sqlite)?
        .execute([person])?;
    let mut keep = db.prepare_cached(INSERT_CODE)?;
    for code in codes {
        keep.execute(params![person, code.as_bytes()])?;
    }
    Ok(())
}

fn try_pending_sign_in(
    db: &Connection,
    keys: &KeyRing,
    pending: &TokenHash,
    most: u32,
    now_us: i64,
) -> Result<Option<PendingSignIn>> {
    let tried: Option<i64> = db
        .prepare_cached(USE_ATTEMPT)?
        .query_row(params![pending.as_bytes(), now_us, most], |row| row.get(0))
        .optional()?;
    let Some(id) = tried else { return Ok(None) };
    let read = |row: &Row<'_>| {
        let secret: Vec<u8> = row.get(4)?;
        Ok(people::pending_sign_in(
            keys,
            PersonColumns::read(row)?,
            &secret,
            row.get(5)?,
        )?)
    };
    db.prepare_cached(FIND_PERSON)?
        .query_row([id], read)
        .optional()
}

/// A wrong proof writes nothing, so that the pending sign-in stays for another attempt.
fn complete_sign_in(
    db: &Connection,
    pending: &TokenHash,
    proof: SecondProof,
    session: &NewSession,
    replaced: Option<&TokenHash>,
) -> Result<bool> {
    let now_us = micros(session.opened_at);
    let owner: Option<i64> = db
        .prepare_cached("SELECT person_id FROM half_open WHERE hash = ?1 AND expires_us > ?2")?
        .query_row(params![pending.as_bytes(), now_us], |row| row.get(0))
        .optional()?;
    let Some(owner) = owner else {
        return Ok(false);
    };
    let used = match proof {
        SecondProof::Step(step) => db
            .prepare_cached(sql::USE_STEP.sqlite)?
            .execute([owner, step])?,
        SecondProof::Recovery(code) => db
            .prepare_cached(sql::USE_CODE.sqlite)?
            .execute(params![owner, code.as_bytes()])?,
    };
    if used == 0 {
        return Ok(false);
    }
    db.prepare_cached(sql::DELETE_PENDING.sqlite)?
        .query_row(params![pending.as_bytes(), now_us], |_| Ok(()))?;
    if let Some(replaced) = replaced {
        end_session(db, replaced)?;
    }
    open_session(db, Owner::Person(person_id(owner)?), session)?;
    Ok(true)
}

#[async_trait]
impl SecondFactorStore for SqliteStore {
    async fn find_second_factor(&self, person: PersonId) -> Result<SecondFactor, StoreError> {
        let keys = self.keys.clone();
        self.read("find a second factor", move |db| find(db, &keys, person))
            .await
    }

    async fn offer_second_factor(
        &self,
        person: PersonId,
        secret: &TotpSecret,
    ) -> Result<bool, StoreError> {
        let secret = people::encrypted_totp(&self.keys, person, secret);
        self.write("offer a second factor", move |db| {
            let values = params![person.as_i64(), secret];
            Ok(db.prepare_cached(sql::OFFER.sqlite)?.execute(values)? > 0)
        })
        .await
    }

    async fn enable_second_factor(
        &self,
        person: PersonId,
        step: i64,
        codes: &[TokenHash],
    ) -> Result<bool, StoreError> {
        let codes = codes.to_vec();
        self.write("enable a second factor", move |db| {
            enable(db, person, step, &codes)
        })
        .await
    }

    async fn replace_recovery_codes(
        &self,
        person: PersonId,
        codes: &[TokenHash],
    ) -> Result<bool, StoreError> {
        let codes = codes.to_vec();
        self.write("replace recovery codes", move |db| {
            let has: bool = db
                .prepare_cached(IS_ENABLED)?
                .query_row([person.as_i64()], |row| row.get(0))?;
            if has {
                replace_codes(db, person, &codes)?;
            }
            Ok(has)
        })
        .await
    }

    async fn disable_second_factor(&self, person: PersonId) -> Result<bool, StoreError> {
        self.write("disable a second factor", move |db| {
            let person = person.as_i64();
            db.prepare_cached(sql::DELETE_CODES.sqlite)?
                .execute([person])?;
            Ok(db.prepare_cached(DISABLE)?.execute([person])? > 0)
        })
        .await
    }

    async fn create_pending_sign_in(
        &self,
        person: PersonId,
        pending: &TokenHash,
        expires: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let pending = *pending;
        self.write("create a pending sign-in", move |db| {
            delete_expired(db, micros(now))?;
            create_pending_sign_in(db, person, &pending, micros(expires))
        })
        .await
    }

    async fn try_pending_sign_in(
        &self,
        pending: &TokenHash,
        most: u32,
        now: Timestamp,
    ) -> Result<Option<PendingSignIn>, StoreError> {
        let (pending, keys) = (*pending, self.keys.clone());
        self.write("try a second factor", move |db| {
            try_pending_sign_in(db, &keys, &pending, most, micros(now))
        })
        .await
    }

    async fn complete_sign_in(
        &self,
        pending: &TokenHash,
        proof: SecondProof,
        session: &NewSession,
        replaced: Option<&TokenHash>,
    ) -> Result<bool, StoreError> {
        let (pending, session, replaced) = (*pending, session.clone(), replaced.copied());
        self.write("sign in", move |db| {
            complete_sign_in(db, &pending, proof, &session, replaced.as_ref())
        })
        .await
    }
}
