//! The port for sessions.

use async_trait::async_trait;
use domain::ids::{AccountId, PersonId};
use domain::person::{OpenSession, SessionRecord};
use domain::ports::{NewSession, SessionStore, StoreError};
use domain::{Timestamp, TokenHash};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::SqliteStore;
use crate::rows::people::{self, PersonColumns, SessionColumns, address};
use crate::rows::{micros, timestamp};
use crate::sql::sessions as sql;

const USE_LINK: &str = "DELETE FROM sign_in_link WHERE hash = ?1 RETURNING account_id";
const OPEN: &str = "
    INSERT INTO session (hash, account_id, person_id, expires_us, opened_us, seen_us, address, browser)
    VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7)";
const TOUCH: &str =
    "UPDATE session SET seen_us = ?2 WHERE hash = ?1 RETURNING person_id, chosen_account_id";
const SET_SEEN: &str = "UPDATE person SET seen_us = ?2 WHERE id = ?1";
const SET_MEMBER_SEEN: &str =
    "UPDATE membership SET seen_us = ?2 WHERE person_id = ?1 AND account_id = ?3";
const END_ALL_EXCEPT: &str = "DELETE FROM session WHERE person_id = ?1 AND hash <> ?2";
const END_ALL: &str = "DELETE FROM session WHERE person_id = ?1";
const END_PENDING: &str = "DELETE FROM half_open WHERE person_id = ?1";
const DELETE_EXPIRED: [&str; 4] = [
    "DELETE FROM sign_in_link WHERE expires_us <= ?1",
    "DELETE FROM invitation WHERE expires_us <= ?1",
    "DELETE FROM session WHERE expires_us <= ?1",
    "DELETE FROM half_open WHERE expires_us <= ?1",
];

/// Deletes expired rows. Called at each sign-in, which is rare enough.
pub(super) fn delete_expired(db: &Connection, now_us: i64) -> Result<()> {
    for sql in DELETE_EXPIRED {
        db.prepare_cached(sql)?.execute([now_us])?;
    }
    Ok(())
}

/// The owner of a new session.
#[derive(Clone, Copy)]
pub(super) enum Owner {
    Link(i64),
    Person(PersonId),
}

pub(super) fn open_session(db: &Connection, owner: Owner, session: &NewSession) -> Result<()> {
    let (account, person) = match owner {
        Owner::Link(account) => (Some(account), None),
        Owner::Person(person) => (None, Some(person.as_i64())),
    };
    let opened_us = micros(session.opened_at);
    let values = params![
        session.hash.as_bytes(),
        account,
        person,
        micros(session.expires),
        opened_us,
        address(&session.device),
        session.device.browser,
    ];
    db.prepare_cached(OPEN)?.execute(values)?;
    if let Some(person) = person {
        db.prepare_cached(SET_SEEN)?
            .execute(params![person, opened_us])?;
    }
    Ok(())
}

pub(super) fn end_session(db: &Connection, session: &TokenHash) -> Result<()> {
    db.prepare_cached(sql::END.sqlite)?
        .execute([session.as_bytes()])
        .map(drop)
}

/// Ends every session and every pending sign-in of a person.
pub(super) fn end_sessions(db: &Connection, person: PersonId) -> Result<u64> {
    let person = person.as_i64();
    db.prepare_cached(END_PENDING)?.execute([person])?;
    let ended = db.prepare_cached(END_ALL)?.execute([person])?;
    Ok(ended as u64)
}

/// Like [`end_sessions`], except for one session.
pub(super) fn end_sessions_except(
    db: &Connection,
    person: PersonId,
    kept: &TokenHash,
) -> Result<()> {
    let person = person.as_i64();
    db.prepare_cached(END_PENDING)?.execute([person])?;
    db.prepare_cached(END_ALL_EXCEPT)?
        .execute(params![person, kept.as_bytes()])
        .map(drop)
}

/// Replaces a sign-in link by a session.
fn redeem_link(db: &Connection, link: &TokenHash, session: &NewSession) -> Result<bool> {
    delete_expired(db, micros(session.opened_at))?;
    let mut use_link = db.prepare_cached(USE_LINK)?;
    let account = use_link
        .query_row([link.as_bytes()], |row| row.get(0))
        .optional()?;
    let Some(account) = account else {
        return Ok(false);
    };
    open_session(db, Owner::Link(account), session)?;
    Ok(true)
}

fn find(db: &Connection, session: &TokenHash, now_us: i64) -> Result<Option<OpenSession>> {
    let read = |row: &Row<'_>| {
        let is_person = row.get::<_, Option<i64>>(0)?.is_some();
        let person = is_person.then(|| PersonColumns::read(row)).transpose()?;
        Ok(people::open_session(row.get(4)?, person, row.get(5)?)?)
    };
    db.prepare_cached(sql::FIND.sqlite)?
        .query_row(params![session.as_bytes(), now_us], read)
        .optional()
}

fn touch(db: &Connection, session: &TokenHash, now_us: i64) -> Result<()> {
    let mut touch = db.prepare_cached(TOUCH)?;
    let touched: Option<(Option<i64>, Option<i64>)> = touch
        .query_row(params![session.as_bytes(), now_us], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    match touched {
        Some((Some(person), None)) => db
            .prepare_cached(SET_SEEN)?
            .execute(params![person, now_us])?,
        Some((Some(person), Some(account))) => db
            .prepare_cached(SET_MEMBER_SEEN)?
            .execute(params![person, now_us, account])?,
        Some((None, _)) | None => 0,
    };
    Ok(())
}

fn list(db: &Connection, person: PersonId, limit: u32, now_us: i64) -> Result<Vec<SessionRecord>> {
    let read = |row: &Row<'_>| Ok(SessionColumns::read(row)?.record()?);
    db.prepare_cached(sql::LIST.sqlite)?
        .query_map(params![person.as_i64(), now_us, limit], read)?
        .collect()
}

#[async_trait]
impl SessionStore for SqliteStore {
    async fn open_session(
        &self,
        person: PersonId,
        session: &NewSession,
        replaced: Option<&TokenHash>,
    ) -> Result<(), StoreError> {
        let (session, replaced) = (session.clone(), replaced.copied());
        self.write("sign in", move |db| {
            delete_expired(db, micros(session.opened_at))?;
            if let Some(replaced) = replaced {
                end_session(db, &replaced)?;
            }
            open_session(db, Owner::Person(person), &session)
        })
        .await
    }

    async fn create_sign_in_link(
        &self,
        link: &TokenHash,
        account: AccountId,
        expires: Timestamp,
    ) -> Result<(), StoreError> {
        let link = *link;
        self.write("create a sign-in link", move |db| {
            let values = params![link.as_bytes(), account.as_i64(), micros(expires)];
            db.prepare_cached(sql::CREATE_LINK.sqlite)?
                .execute(values)
                .map(drop)
        })
        .await
    }

    async fn has_sign_in_link(&self, link: &TokenHash, now: Timestamp) -> Result<bool, StoreError> {
        let link = *link;
        self.read("find a sign-in link", move |db| {
            db.prepare_cached(sql::FIND_LINK.sqlite)?
                .exists(params![link.as_bytes(), micros(now)])
        })
        .await
    }

    async fn redeem_sign_in_link(
        &self,
        link: &TokenHash,
        session: &NewSession,
    ) -> Result<bool, StoreError> {
        let (link, session) = (*link, session.clone());
        self.write("sign in", move |db| redeem_link(db, &link, &session))
            .await
    }

    async fn find_session(
        &self,
        session: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<OpenSession>, StoreError> {
        let session = *session;
        self.read("find a session", move |db| find(db, &session, micros(now)))
            .await
    }

    async fn touch_session(&self, session: &TokenHash, now: Timestamp) -> Result<(), StoreError> {
        let session = *session;
        self.write("use a session", move |db| touch(db, &session, micros(now)))
            .await
    }

    async fn find_proof(
        &self,
        session: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        let session = *session;
        self.read("find when a session was proved", move |db| {
            let read = |row: &Row<'_>| Ok(timestamp(row.get(0)?)?);
            db.prepare_cached(sql::FIND_PROOF.sqlite)?
                .query_row(params![session.as_bytes(), micros(now)], read)
                .optional()
        })
        .await
    }

    async fn set_proof(&self, session: &TokenHash, now: Timestamp) -> Result<(), StoreError> {
        let session = *session;
        self.write("prove a session", move |db| {
            db.prepare_cached(sql::SET_PROOF.sqlite)?
                .execute(params![session.as_bytes(), micros(now)])
                .map(drop)
        })
        .await
    }

    async fn list_sessions(
        &self,
        person: PersonId,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        self.read("list sessions", move |db| {
            list(db, person, limit, micros(now))
        })
        .await
    }

    async fn end_session(&self, session: &TokenHash) -> Result<(), StoreError> {
        let session = *session;
        self.write("end a session", move |db| end_session(db, &session))
            .await
    }

    async fn end_sessions(&self, person: PersonId) -> Result<u64, StoreError> {
        self.write("end sessions", move |db| end_sessions(db, person))
            .await
    }
}
