//! The port for verifications.

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::billing::EntryKind;
use domain::code_cap::CodeCapReached;
use domain::ids::{AccountId, VerificationId};
use domain::ports::{MAX_CONVERSION_ROWS, NewVerification, Started, StoreError, VerifyStore};
use domain::verify::{
    Judgement, MAX_COUNTED, NetworkConversion, OneTimeCode, PrefixConversion, Verification, WINDOW,
};
use domain::{Money, Timestamp};
use tokio_postgres::Row;

use super::fault::Fault;
use super::retry::{self, Retryable};
use super::transaction::{execute, find, query};
use super::{PostgresStore, Values, billing, codes, column};
use crate::rows::traffic::place_code;
use crate::rows::verify::{
    conversion, network_conversion, prefix_conversion, sent, verification, verification_id,
};
use crate::rows::{Corrupt, micros};
use crate::sql::{Sql, verify as sql};

/// Stores a code, in the place of a pending one for the same number.
struct Start<'a>(&'a NewVerification);

impl Retryable for Start<'_> {
    type Output = Started;

    async fn run(&self, client: &mut Object) -> Result<Started, Fault> {
        let new = self.0;
        let transaction = client.transaction().await?;
        codes::lock(&transaction, new.to, new.account).await?;
        let (account, number) = (new.account.as_i64(), new.to.as_i64());
        let values: Values<'_> = &[&account, &number];
        let pending = find(&transaction, sql::FIND_PENDING.postgres, values).await?;
        let pending = pending.as_ref().map(verification).transpose()?;
        if let Some(pending) = &pending
            && pending.is_fresh(new.created_at)
        {
            return Ok(Started::TooSoon(pending.id));
        }
        if let Err(slowed) = check_prefix(&transaction, new).await? {
            return Ok(Started::Slowed(slowed));
        }
        if let Err(capped) = codes::count(&transaction, new.to, new.account, new.created_at).await?
        {
            return Ok(Started::CodeCapReached(capped));
        }
        if let Some(pending) = pending {
            let id = pending.id.as_i64();
            execute(&transaction, sql::REPLACE.postgres, &[&id]).await?;
        }
        let id = create(&transaction, new).await?;
        transaction.commit().await?;
        Ok(Started::New(id))
    }
}

/// Deletes a code that is pending, and makes the one that it replaced pending again. A check of the code, which locks its
/// row, comes before or after.
struct Withdraw(VerificationId);

impl Retryable for Withdraw {
    type Output = ();

    async fn run(&self, client: &mut Object) -> Result<(), Fault> {
        let id = self.0.as_i64();
        let transaction = client.transaction().await?;
        let found = find(&transaction, sql::FIND_WITHDRAWN.postgres, &[&id]).await?;
        let Some(found) = found.as_ref().map(verification).transpose()? else {
            return Ok(());
        };
        // No code may be started meanwhile, because a number has one pending code.
        codes::lock(&transaction, found.to, found.account).await?;
        execute(&transaction, sql::UNCOUNT.postgres, &[&id]).await?;
        if execute(&transaction, sql::WITHDRAW.postgres, &[&id]).await? == 1 {
            let (account, number) = (found.account.as_i64(), found.to.as_i64());
            let values: Values<'_> = &[&account, &number, &id];
            execute(&transaction, sql::RESTORE.postgres, values).await?;
        }
        transaction.commit().await?;
        Ok(())
    }
}

/// Whether the account may send another code to this prefix.
async fn check_prefix(
    transaction: &Transaction<'_>,
    new: &NewVerification,
) -> Result<Result<(), CodeCapReached>, Fault> {
    let since = micros(new.created_at - WINDOW);
    let (account, prefix) = (new.account.as_i64(), i64::from(new.prefix));
    let values: Values<'_> = &[&account, &prefix, &since, &i64::from(MAX_COUNTED)];
    let rows = query(transaction, sql::SENT_TO_PREFIX.postgres, values).await?;
    let codes = rows.iter().map(sent).collect::<Result<Vec<_>, Corrupt>>()?;
    let (conversion, last) = conversion(&codes);
    Ok(conversion.check(last, new.created_at))
}

async fn create(
    transaction: &Transaction<'_>,
    new: &NewVerification,
) -> Result<VerificationId, Fault> {
    let values: Values<'_> = &[
        &new.account.as_i64(),
        &new.to.as_i64(),
        &i64::from(new.prefix),
        &i16::from(new.length.digits()),
        &new.hash.hash.as_slice(),
        &new.hash.salt.as_slice(),
        &micros(new.created_at),
        &micros(new.expires_at),
        &place_code(new.network, new.country),
        &new.key.as_ref().map(<[u8; 32]>::as_slice),
    ];
    let created = find(transaction, sql::CREATE.postgres, values).await?;
    let created = created.ok_or(Corrupt("verification ID"))?;
    Ok(verification_id(column(&created, 0)?)?)
}

/// Checks a guess. Other guesses wait for the lock and then see its count.
struct Check<'a> {
    account: AccountId,
    id: VerificationId,
    guess: &'a OneTimeCode,
    now: Timestamp,
}

impl Retryable for Check<'_> {
    type Output = Option<Judgement>;

    async fn run(&self, client: &mut Object) -> Result<Option<Judgement>, Fault> {
        let transaction = client.transaction().await?;
        let (id, account) = (self.id.as_i64(), self.account.as_i64());
        let found = find(&transaction, sql::LOCK.postgres, &[&id, &account]).await?;
        let Some(found) = found.as_ref().map(verification).transpose()? else {
            return Ok(None);
        };
        let judged = found.judge(self.guess, self.now);
        if let Some((state, tries)) = judged.change() {
            let tries = i32::try_from(tries).unwrap_or(1);
            let values: Values<'_> = &[&id, &state.number(), &tries];
            execute(&transaction, sql::CHANGE.postgres, values).await?;
            if judged == Judgement::Right && found.price != Money::ZERO {
                let done = [(account, found.price.micros())];
                billing::charge_done(&transaction, EntryKind::Verification, &done).await?;
            }
            transaction.commit().await?;
        }
        Ok(Some(judged))
    }
}

impl PostgresStore {
    /// Counts codes of all accounts, by the first statement, or of one, by the second.
    async fn count_codes<T>(
        &self,
        [all, of_account]: [Sql; 2],
        account: Option<AccountId>,
        since: Timestamp,
        limit: u32,
        read: fn(&Row) -> Result<T, Corrupt>,
    ) -> Result<Vec<T>, StoreError> {
        let operation = "count verifications";
        let (since, limit, rows) = (
            micros(since),
            i64::from(limit),
            i64::from(MAX_CONVERSION_ROWS),
        );
        let Some(account) = account else {
            let values: Values<'_> = &[&since, &limit, &rows];
            return self.list(operation, all.postgres, values, read).await;
        };
        let values: Values<'_> = &[&since, &limit, &rows, &account.as_i64()];
        self.list(operation, of_account.postgres, values, read)
            .await
    }
}

#[async_trait]
impl VerifyStore for PostgresStore {
    async fn start_verification(&self, new: &NewVerification) -> Result<Started, StoreError> {
        retry::run(&self.pool, "start a verification", &Start(new)).await
    }

    async fn withdraw_verification(&self, id: VerificationId) -> Result<(), StoreError> {
        retry::run(&self.pool, "withdraw a verification", &Withdraw(id)).await
    }

    async fn check_verification(
        &self,
        account: AccountId,
        id: VerificationId,
        guess: &OneTimeCode,
        now: Timestamp,
    ) -> Result<Option<Judgement>, StoreError> {
        let check = Check {
            account,
            id,
            guess,
            now,
        };
        retry::run(&self.pool, "check a code", &check).await
    }

    async fn find_verification(
        &self,
        account: AccountId,
        id: VerificationId,
    ) -> Result<Option<Verification>, StoreError> {
        let values: Values<'_> = &[&id.as_i64(), &account.as_i64()];
        self.find(
            "find a verification",
            sql::FIND.postgres,
            values,
            verification,
        )
        .await
    }

    async fn find_keyed_verification(
        &self,
        account: AccountId,
        key: &[u8; 32],
    ) -> Result<Option<Verification>, StoreError> {
        let values: Values<'_> = &[&account.as_i64(), &key.as_slice()];
        let statement = sql::FIND_KEYED.postgres;
        self.find(
            "find a verification by its key",
            statement,
            values,
            verification,
        )
        .await
    }

    async fn list_verifications(
        &self,
        account: AccountId,
        before: Option<VerificationId>,
        limit: u32,
    ) -> Result<Vec<Verification>, StoreError> {
        let before = before.map_or(i64::MAX, VerificationId::as_i64);
        let values: Values<'_> = &[&account.as_i64(), &before, &i64::from(limit)];
        let statement = sql::LIST.postgres;
        self.list("list verifications", statement, values, verification)
            .await
    }

    async fn list_conversions(
        &self,
        account: Option<AccountId>,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<PrefixConversion>, StoreError> {
        let statements = [sql::CONVERSIONS, sql::CONVERSIONS_OF_ACCOUNT];
        let read = prefix_conversion;
        self.count_codes(statements, account, since, limit, read)
            .await
    }

    async fn list_network_conversions(
        &self,
        account: Option<AccountId>,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<NetworkConversion>, StoreError> {
        let statements = [sql::NETWORKS, sql::NETWORKS_OF_ACCOUNT];
        let read = network_conversion;
        self.count_codes(statements, account, since, limit, read)
            .await
    }

    async fn prune_verifications(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let values: Values<'_> = &[&micros(before), &i64::from(limit)];
        self.execute("prune verifications", sql::PRUNE.postgres, values)
            .await
    }
}
