//! The port for the second factor.

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::ids::PersonId;
use domain::person::TotpSecret;
use domain::ports::{
    HalfOpen, NewSession, SecondFactor, SecondFactorStore, SecondProof, StoreError,
};
use domain::{Timestamp, TokenHash};
use tokio_postgres::Row;

use super::attempt::{self, Attempt};
use super::fault::Fault;
use super::people::{bytes, person, run};
use super::sessions::{SWEEP, open_session};
use super::{PostgresStore, Values, column};
use crate::rows::micros;
use crate::rows::people::{self, FactorColumns, person_id};

const FIND: &str = "
    SELECT totp_secret, totp_offered, totp_step, (SELECT count(*) FROM recovery_code WHERE person_id = person.id)
    FROM person WHERE id = $1";
const OFFER: &str = "
    UPDATE person SET totp_offered = $2 WHERE id = $1 AND totp_secret IS NULL RETURNING 1";
const ENABLE: &str = "
    UPDATE person SET totp_secret = totp_offered, totp_offered = NULL, totp_step = $2
    WHERE id = $1 AND totp_secret IS NULL AND totp_offered IS NOT NULL RETURNING 1";
const DISABLE: &str = "
    WITH codes AS (DELETE FROM recovery_code WHERE person_id = $1)
    UPDATE person SET totp_secret = NULL, totp_offered = NULL
    WHERE id = $1 AND totp_secret IS NOT NULL RETURNING 1";
/// Whoever changes the codes of a person waits for the others who do.
const HAS: &str = "SELECT 1 FROM person WHERE id = $1 AND totp_secret IS NOT NULL FOR UPDATE";
const FORGET_CODES: &str = "DELETE FROM recovery_code WHERE person_id = $1";
const KEEP_CODES: &str =
    "INSERT INTO recovery_code (person_id, hash) SELECT $1, hash FROM unnest($2::bytea[]) AS hash";
const USE_CODE: &str = "DELETE FROM recovery_code WHERE person_id = $1 AND hash = $2 RETURNING 1";
const USE_STEP: &str = "
    UPDATE person SET totp_step = $2 WHERE id = $1 AND totp_secret IS NOT NULL AND totp_step < $2 RETURNING 1";
const OPEN: &str = "INSERT INTO half_open (hash, person_id, expires_us) VALUES ($1, $2, $3)";
const TRY: &str = "
    UPDATE half_open SET tries = tries + 1 FROM person
    WHERE half_open.hash = $1 AND half_open.expires_us > $2 AND half_open.tries < $3
        AND person.id = half_open.person_id AND person.totp_secret IS NOT NULL
    RETURNING person.id, person.email, person.role, person.account_id, person.totp_secret, person.totp_step";
const CLOSE: &str = "
    DELETE FROM half_open WHERE hash = $1 AND expires_us > $2 RETURNING person_id";

/// Puts recovery codes in the place of others.
struct Renewal<'a> {
    person: PersonId,
    /// Whether the factor is enabled with them, and the step whose code is used.
    enabling: Option<i64>,
    codes: &'a [TokenHash],
}

impl Attempt for Renewal<'_> {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let person = self.person.as_i64();
        let changed = match self.enabling {
            Some(step) => run(&transaction, ENABLE, &[&person, &step]).await?,
            None => run(&transaction, HAS, &[&person]).await?,
        };
        if changed.is_empty() {
            return Ok(false);
        }
        let codes: Vec<&[u8]> = self.codes.iter().map(bytes).collect();
        run(&transaction, FORGET_CODES, &[&person]).await?;
        run(&transaction, KEEP_CODES, &[&person, &codes]).await?;
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
        run(&transaction, SWEEP, &[&micros(self.now)]).await?;
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
    run(transaction, OPEN, values).await.map(drop)
}

/// Puts a session in the place of what is half open.
struct Closing<'a> {
    half: &'a TokenHash,
    proof: SecondProof,
    session: &'a NewSession,
    replaced: Option<&'a TokenHash>,
}

impl Attempt for Closing<'_> {
    type Output = bool;

    /// Where the proof is no good nothing is committed, so that what is half open stays for another try.
    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let now_us = micros(self.session.opened_at);
        let closed = run(&transaction, CLOSE, &[&bytes(self.half), &now_us]).await?;
        let Some(closed) = closed.first() else {
            return Ok(false);
        };
        let owner: i64 = column(closed, 0)?;
        let used = match self.proof {
            SecondProof::Step(step) => run(&transaction, USE_STEP, &[&owner, &step]).await?,
            SecondProof::Recovery(code) => {
                run(&transaction, USE_CODE, &[&owner, &bytes(&code)]).await?
            }
        };
        if used.is_empty() {
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
        let read = |row: &Row| {
            let columns = FactorColumns {
                secret: column(row, 0)?,
                offered: column(row, 1)?,
                step: column(row, 2)?,
                codes: column(row, 3)?,
            };
            columns.factor(&self.keys, person)
        };
        let found = self
            .find("find a second factor", FIND, &[&person.as_i64()], read)
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
        let offered = self.query("offer a second factor", OFFER, values).await?;
        Ok(!offered.is_empty())
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
    ) -> Result<Option<HalfOpen>, StoreError> {
        let values: Values<'_> = &[&bytes(half), &micros(now), &i64::from(most)];
        let read = |row: &Row| {
            let secret: &[u8] = column(row, 4)?;
            people::half_open(&self.keys, person(row)?, secret, column(row, 5)?)
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
