//! The port for sessions.

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::ids::{AccountId, PersonId};
use domain::person::{OpenSession, SessionRecord};
use domain::ports::{NewSession, SessionStore, StoreError};
use domain::{Timestamp, TokenHash};
use tokio_postgres::Row;

use super::fault::Fault;
use super::people::bytes;
use super::retry::{self, Retryable};
use super::transaction::query;
use super::{PostgresStore, Values, column};
use crate::rows::people::{self, PersonColumns, SessionColumns, address};
use crate::rows::{Corrupt, micros, timestamp};
use crate::sql::sessions as sql;

/// Expired rows are deleted at each sign-in, which is rare enough.
const REDEEM_LINK: &str = "
    WITH used AS (
        DELETE FROM sign_in_link WHERE hash = $1 OR expires_us <= $4 RETURNING hash, account_id, expires_us
    ), swept AS (
        DELETE FROM session WHERE expires_us <= $4
    )
    INSERT INTO session (hash, account_id, expires_us, opened_us, seen_us, address, browser)
    SELECT $2::bytea, account_id, $3::bigint, $4, $4, $5::text, $6::text FROM used
    WHERE hash = $1 AND expires_us > $4
    RETURNING account_id";
const OPEN: &str = "
    WITH replaced AS (DELETE FROM session WHERE hash = $4),
        seen AS (UPDATE person SET seen_us = $5 WHERE id = $2)
    INSERT INTO session (hash, person_id, expires_us, opened_us, seen_us, address, browser)
    VALUES ($1, $2, $3, $5, $5, $6, $7)";
pub(super) const DELETE_EXPIRED: &str = "
    WITH invitations AS (DELETE FROM invitation WHERE expires_us <= $1),
        links AS (DELETE FROM sign_in_link WHERE expires_us <= $1),
        halves AS (DELETE FROM half_open WHERE expires_us <= $1)
    DELETE FROM session WHERE expires_us <= $1";
const TOUCH: &str = "
    WITH touched AS (UPDATE session SET seen_us = $2 WHERE hash = $1 RETURNING person_id, chosen_account_id),
        seen AS (
            UPDATE membership SET seen_us = $2 FROM touched
            WHERE membership.person_id = touched.person_id AND membership.account_id = touched.chosen_account_id)
    UPDATE person SET seen_us = $2 FROM touched
    WHERE person.id = touched.person_id AND touched.chosen_account_id IS NULL";
const END_ALL: &str = "
    WITH halves AS (DELETE FROM half_open WHERE person_id = $1)
    DELETE FROM session WHERE person_id = $1 RETURNING 1";

struct SignIn<'a> {
    person: PersonId,
    session: &'a NewSession,
    replaced: Option<&'a TokenHash>,
}

impl Retryable for SignIn<'_> {
    type Output = ();

    async fn run(&self, client: &mut Object) -> Result<(), Fault> {
        let transaction = client.transaction().await?;
        query(
            &transaction,
            DELETE_EXPIRED,
            &[&micros(self.session.opened_at)],
        )
        .await?;
        open_session(&transaction, self.person, self.session, self.replaced).await?;
        transaction.commit().await?;
        Ok(())
    }
}

pub(super) async fn open_session(
    transaction: &Transaction<'_>,
    person: PersonId,
    session: &NewSession,
    replaced: Option<&TokenHash>,
) -> Result<(), Fault> {
    let values: Values<'_> = &[
        &bytes(&session.hash),
        &person.as_i64(),
        &micros(session.expires),
        &replaced.map(bytes),
        &micros(session.opened_at),
        &address(&session.device),
        &session.device.browser,
    ];
    query(transaction, OPEN, values).await.map(drop)
}

#[async_trait]
impl SessionStore for PostgresStore {
    async fn open_session(
        &self,
        person: PersonId,
        session: &NewSession,
        replaced: Option<&TokenHash>,
    ) -> Result<(), StoreError> {
        let sign_in = SignIn {
            person,
            session,
            replaced,
        };
        retry::run(&self.pool, "sign in", &sign_in).await
    }

    async fn create_sign_in_link(
        &self,
        link: &TokenHash,
        account: AccountId,
        expires: Timestamp,
    ) -> Result<(), StoreError> {
        let values: Values<'_> = &[&bytes(link), &account.as_i64(), &micros(expires)];
        self.query("create a sign-in link", sql::CREATE_LINK.postgres, values)
            .await
            .map(drop)
    }

    async fn has_sign_in_link(&self, link: &TokenHash, now: Timestamp) -> Result<bool, StoreError> {
        let values: Values<'_> = &[&bytes(link), &micros(now)];
        let found = self.query("find a sign-in link", sql::FIND_LINK.postgres, values);
        Ok(!found.await?.is_empty())
    }

    async fn redeem_sign_in_link(
        &self,
        link: &TokenHash,
        session: &NewSession,
    ) -> Result<bool, StoreError> {
        let values: Values<'_> = &[
            &bytes(link),
            &bytes(&session.hash),
            &micros(session.expires),
            &micros(session.opened_at),
            &address(&session.device),
            &session.device.browser,
        ];
        let opened = self.query("sign in", REDEEM_LINK, values).await?;
        Ok(!opened.is_empty())
    }

    async fn find_session(
        &self,
        session: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<OpenSession>, StoreError> {
        let values: Values<'_> = &[&bytes(session), &micros(now)];
        let read = |row: &Row| {
            let is_person = column::<Option<i64>>(row, 0)?.is_some();
            let person = is_person.then(|| PersonColumns::read(row)).transpose()?;
            people::open_session(column(row, 4)?, person, column(row, 5)?)
        };
        self.find("find a session", sql::FIND.postgres, values, read)
            .await
    }

    async fn touch_session(&self, session: &TokenHash, now: Timestamp) -> Result<(), StoreError> {
        let values: Values<'_> = &[&bytes(session), &micros(now)];
        self.query("use a session", TOUCH, values).await.map(drop)
    }

    async fn find_proof(
        &self,
        session: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        let values: Values<'_> = &[&bytes(session), &micros(now)];
        let read = |row: &Row| timestamp(column(row, 0)?);
        let doing = "find when a session was proved";
        self.find(doing, sql::FIND_PROOF.postgres, values, read)
            .await
    }

    async fn set_proof(&self, session: &TokenHash, now: Timestamp) -> Result<(), StoreError> {
        let values: Values<'_> = &[&bytes(session), &micros(now)];
        self.query("prove a session", sql::SET_PROOF.postgres, values)
            .await
            .map(drop)
    }

    async fn list_sessions(
        &self,
        person: PersonId,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        let values: Values<'_> = &[&person.as_i64(), &micros(now), &i64::from(limit)];
        self.list("list sessions", sql::LIST.postgres, values, record)
            .await
    }

    async fn end_session(&self, session: &TokenHash) -> Result<(), StoreError> {
        self.query("end a session", sql::END.postgres, &[&bytes(session)])
            .await
            .map(drop)
    }

    async fn end_sessions(&self, person: PersonId) -> Result<u64, StoreError> {
        let values: Values<'_> = &[&person.as_i64()];
        let ended = self.query("end sessions", END_ALL, values).await?;
        Ok(ended.len() as u64)
    }
}

fn record(row: &Row) -> Result<SessionRecord, Corrupt> {
    SessionColumns::read(row)?.record()
}
