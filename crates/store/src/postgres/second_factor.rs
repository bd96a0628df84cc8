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

use super::attempt::{self, Attempt};
use super::fault::Fault;
use super::people::bytes;
use super::sessions::{SWEEP, open_session};
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
const HAS: &str = "SELECT 1 FROM person WHERE id = $1 AND totp_secret IS NOT NULL FOR UPDATE";
const KEEP_CODES: &str =
    "INSERT INTO recovery_code (person_id, hash) SELECT $1, hash FROM unnest($2::bytea[]) AS hash";
const TRY: &str = "
    UPDATE half_open SET tries = tries + 1 FROM person
    WHERE half_open.hash = $1 AND half_open.expires_us > $2 AND half_open.tries < $3
        AND person.id = half_open.person_id AND person.totp_secret IS NOT NULL
    RETURNING person.id, person.email, person.role, person.account_id, person.totp_secret, person.totp_step";

/// Puts recovery codes in the place of others.
struct Renewal<'a> {
    person: PersonId,
    /// The step of the code that enables the factor; `None` when it is enabled already.
    enabling: Option<i64>,
    codes: &'a [TokenHash],
}

impl Attempt for Renewal<'_> {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let person = self.person.as_i64();
        let changed = match self.enabling {
            Some(step) => query(&transaction, ENABLE, &[&person, &step]).await?,
            None => query(&transaction, HAS, &[&person]).await?,
        };
        if changed.is_empty() {
            return Ok(false);
        }
        let codes: Vec<&[u8]> = self.codes.iter().map(bytes).collect();
        query(&transaction, sql::FORGET_CODES.postgres, &[&person]).await?;
        query(&transaction, KEEP_CODES, &[&person, &codes]).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

/// Keeps a sign-in half open.
struct Opening<'a> {
    person: PersonId,
    half: &'a TokenHash,
    expires: Timestamp,
    now: Timestamp,
}

impl Attempt for Opening<'_> {
    type Output = ();

    async fn run(&self, client: &mut Object) -> Result<(), Fault> {
        let transaction = client.transaction().await?;
        query(&transaction, SWEEP, &[&micros(self.now)]).await?;
        open_half(&transaction, self.person, self.half, self.expires).await?;
        transaction.commit().await?;
        Ok(())
    }
}

pub(super) async fn open_half(
    transaction: &Transaction<'_>,
    person: PersonId,
    half: &TokenHash,
    expires: Timestamp,
) -> Result<(), Fault> {
    let values: Values<'_> = &[&bytes(half), &person.as_i64(), &micros(expires)];
    query(transaction, sql::OPEN.postgres, values)
        .await
        .map(drop)
}

/// Replaces a pending sign-in with a session.
struct Closing<'a> {
    half: &'a TokenHash,
    proof: SecondProof,
    session: &'a NewSession,
    replaced: Option<&'a TokenHash>,
}

impl Attempt for Closing<'_> {
    type Output = bool;

    /// A wrong proof commits nothing, so that the pending sign-in stays for another attempt.
    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let now_us = micros(self.session.opened_at);
        let closed = query(
            &transaction,
            sql::CLOSE.postgres,
            &[&bytes(self.half), &now_us],
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
        let renewal = Renewal {
            person,
            enabling: Some(step),
            codes,
        };
        attempt::run(&self.pool, "enable a second factor", &renewal).await
    }

    async fn replace_recovery_codes(
        &self,
        person: PersonId,
        codes: &[TokenHash],
    ) -> Result<bool, StoreError> {
        let renewal = Renewal {
            person,
            enabling: None,
            codes,
        };
        attempt::run(&self.pool, "replace recovery codes", &renewal).await
    }

    async fn disable_second_factor(&self, person: PersonId) -> Result<bool, StoreError> {
        let values: Values<'_> = &[&person.as_i64()];
        let disabled = self.query("disable a second factor", DISABLE, values);
        Ok(!disabled.await?.is_empty())
    }

    async fn open_half(
        &self,
        person: PersonId,
        half: &TokenHash,
        expires: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let opening = Opening {
            person,
            half,
            expires,
            now,
        };
        attempt::run(&self.pool, "half open a sign-in", &opening).await
    }

    async fn try_half(
        &self,
        half: &TokenHash,
        most: u32,
        now: Timestamp,
    ) -> Result<Option<PendingSignIn>, StoreError> {
        let values: Values<'_> = &[&bytes(half), &micros(now), &i64::from(most)];
        let read = |row: &Row| {
            let secret: &[u8] = column(row, 4)?;
            people::half_open(
                &self.keys,
                PersonColumns::read(row)?,
                secret,
                column(row, 5)?,
            )
        };
        self.find("try a second factor", TRY, values, read).await
    }

    async fn close_half(
        &self,
        half: &TokenHash,
        proof: SecondProof,
        session: &NewSession,
        replaced: Option<&TokenHash>,
    ) -> Result<bool, StoreError> {
        let closing = Closing {
            half,
            proof,
            session,
            replaced,
        };
        attempt::run(&self.pool, "sign in", &closing).await
    }
}
