//! The port for the second factor.

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::ids::PersonId;
use domain::person::TotpSecret;
use domain::ports::{
    NewSession, PendingSignIn, SecondFactor, SecondFactorStore, SecondProof, StoreError,
};
use domain::{Timestamp, TokenHash};
use tokio_postgres::Row;

use super::fault::Fault;
use super::people::bytes;
use super::retry::{self, Retryable};
use super::sessions::{DELETE_EXPIRED, open_session};
use super::transaction::{execute, query};
use super::{PostgresStore, Values, column};
use crate::rows::micros;
use crate::rows::people::{self, FactorColumns, PersonColumns, person_id};
use crate::sql::second_factor as sql;

const ENABLE: &str = "
    UPDATE person SET totp_secret = totp_offered, totp_offered = NULL, totp_step = $2
    WHERE id = $1 AND totp_secret IS NULL AND totp_offered IS NOT NULL RETURNING 1";
const DISABLE: &str = "
    WITH codes AS (DELETE FROM recovery_code WHERE person_id = $1)
    UPDATE person SET totp_secret = NULL, totp_offered = NULL
    WHERE id = $1 AND totp_secret IS NOT NULL RETURNING 1";
/// Locks the person, so that changes of their codes follow one another.
const LOCK_ENABLED: &str =
    "SELECT 1 FROM person WHERE id = $1 AND totp_secret IS NOT NULL FOR UPDATE";
const INSERT_CODES: &str =
    "INSERT INTO recovery_code (person_id, hash) SELECT $1, hash FROM unnest($2::bytea[]) AS hash";
const USE_ATTEMPT: &str = "
    UPDATE half_open SET tries = tries + 1 FROM person
    WHERE half_open.hash = $1 AND half_open.expires_us > $2 AND half_open.tries < $3
        AND person.id = half_open.person_id AND person.totp_secret IS NOT NULL
    RETURNING person.id, person.email, person.role, person.account_id, person.totp_secret, person.totp_step";

/// Replaces the recovery codes, and enables the second factor first if `enabling` is given.
struct ReplaceCodes<'a> {
    person: PersonId,
    /// The step of the code that enables the second factor; `None` if it is enabled already.
    enabling: Option<i64>,
    codes: &'a [TokenHash],
}

impl Retryable for ReplaceCodes<'_> {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let person = self.person.as_i64();
        let changed = match self.enabling {
            Some(step) => query(&transaction, ENABLE, &[&person, &step]).await?,
            None => query(&transaction, LOCK_ENABLED, &[&person]).await?,
        };
        if changed.is_empty() {
            return Ok(false);
        }
        let codes: Vec<&[u8]> = self.codes.iter().map(bytes).collect();
        query(&transaction, sql::DELETE_CODES.postgres, &[&person]).await?;
        query(&transaction, INSERT_CODES, &[&person, &codes]).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

/// Stores a pending sign-in.
struct CreatePending<'a> {
    person: PersonId,
    pending: &'a TokenHash,
    expires: Timestamp,
    now: Timestamp,
}

impl Retryable for CreatePending<'_> {
    type Output = ();

    async fn run(&self, client: &mut Object) -> Result<(), Fault> {
        let transaction = client.transaction().await?;
        query(&transaction, DELETE_EXPIRED, &[&micros(self.now)]).await?;
        create_pending_sign_in(&transaction, self.person, self.pending, self.expires).await?;
        transaction.commit().await?;
        Ok(())
    }
}

pub(super) async fn create_pending_sign_in(
    transaction: &Transaction<'_>,
    person: PersonId,
    pending: &TokenHash,
    expires: Timestamp,
) -> Result<(), Fault> {
    let values: Values<'_> = &[&bytes(pending), &person.as_i64(), &micros(expires)];
    query(transaction, sql::CREATE_PENDING.postgres, values)
        .await
        .map(drop)
}

/// Replaces a pending sign-in with a session.
struct CompleteSignIn<'a> {
    pending: &'a TokenHash,
    proof: SecondProof,
    session: &'a NewSession,
    replaced: Option<&'a TokenHash>,
}

impl Retryable for CompleteSignIn<'_> {
    type Output = bool;

    /// A wrong proof commits nothing, so that the pending sign-in stays for another attempt.
    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let now_us = micros(self.session.opened_at);
        let closed = query(
            &transaction,
            sql::DELETE_PENDING.postgres,
            &[&bytes(self.pending), &now_us],
        )
        .await?;
        let Some(closed) = closed.first() else {
            return Ok(false);
        };
        let owner: i64 = column(closed, 0)?;
        let used = match self.proof {
            SecondProof::Step(step) => {
                execute(&transaction, sql::USE_STEP.postgres, &[&owner, &step]).await?
            }
            SecondProof::Recovery(code) => {
                execute(
                    &transaction,
                    sql::USE_CODE.postgres,
                    &[&owner, &bytes(&code)],
                )
                .await?
            }
        };
        if used == 0 {
            return Ok(false);
        }
        let person = person_id(owner)?;
        open_session(&transaction, person, self.session, self.replaced).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

#[async_trait]
impl SecondFactorStore for PostgresStore {
    async fn find_second_factor(&self, person: PersonId) -> Result<SecondFactor, StoreError> {
        let read = |row: &Row| FactorColumns::read(row)?.factor(&self.keys, person);
        let found = self
            .find(
                "find a second factor",
                sql::FIND.postgres,
                &[&person.as_i64()],
                read,
            )
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn offer_second_factor(
        &self,
        person: PersonId,
        secret: &TotpSecret,
    ) -> Result<bool, StoreError> {
        let secret = people::encrypted_totp(&self.keys, person, secret);
        let values: Values<'_> = &[&person.as_i64(), &secret];
        let offered = self
            .execute("offer a second factor", sql::OFFER.postgres, values)
            .await?;
        Ok(offered > 0)
    }

    async fn enable_second_factor(
        &self,
        person: PersonId,
        step: i64,
        codes: &[TokenHash],
    ) -> Result<bool, StoreError> {
        let replacement = ReplaceCodes {
            person,
            enabling: Some(step),
            codes,
        };
        retry::run(&self.pool, "enable a second factor", &replacement).await
    }

    async fn replace_recovery_codes(
        &self,
        person: PersonId,
        codes: &[TokenHash],
    ) -> Result<bool, StoreError> {
        let replacement = ReplaceCodes {
            person,
            enabling: None,
            codes,
        };
        retry::run(&self.pool, "replace recovery codes", &replacement).await
    }

    async fn disable_second_factor(&self, person: PersonId) -> Result<bool, StoreError> {
        let values: Values<'_> = &[&person.as_i64()];
        let disabled = self.query("disable a second factor", DISABLE, values);
        Ok(!disabled.await?.is_empty())
    }

    async fn create_pending_sign_in(
        &self,
        person: PersonId,
        pending: &TokenHash,
        expires: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let creation = CreatePending {
            person,
            pending,
            expires,
            now,
        };
        retry::run(&self.pool, "create a pending sign-in", &creation).await
    }

    async fn try_pending_sign_in(
        &self,
        pending: &TokenHash,
        most: u32,
        now: Timestamp,
    ) -> Result<Option<PendingSignIn>, StoreError> {
        let values: Values<'_> = &[&bytes(pending), &micros(now), &i64::from(most)];
        let read = |row: &Row| {
            let secret: &[u8] = column(row, 4)?;
            people::pending_sign_in(
                &self.keys,
                PersonColumns::read(row)?,
                secret,
                column(row, 5)?,
            )
        };
        self.find("try a second factor", USE_ATTEMPT, values, read)
            .await
    }

    async fn complete_sign_in(
        &self,
        pending: &TokenHash,
        proof: SecondProof,
        session: &NewSession,
        replaced: Option<&TokenHash>,
    ) -> Result<bool, StoreError> {
        let completion = CompleteSignIn {
            pending,
            proof,
            session,
            replaced,
        };
        retry::run(&self.pool, "sign in", &completion).await
    }
}
