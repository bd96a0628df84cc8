//! Connected clients: grants of an account and of a person.

use deadpool_postgres::{Object, Transaction};
use domain::ids::{AccountId, GrantId, PersonId};
use domain::ports::{GrantRecord, StoreError};
use tokio_postgres::Row;

use super::tokens::{LOCK_BY_ID, RAISE_VERSION, end_grant, lock};
use crate::postgres::fault::Fault;
use crate::postgres::retry::Retryable;
use crate::postgres::transaction::{execute, query};
use crate::postgres::{PostgresStore, Values, column};
use crate::rows::Corrupt;
use crate::rows::oauth::{ConnectedColumns, GrantsToEnd};
use crate::sql::oauth as sql;

/// Locks the grants, so that no token of theirs is renewed at the same time.
const LOCK_GRANTS_OF: &str = "
    SELECT id FROM oauth_grant
    WHERE person_id = $1 AND revoked_us IS NULL
        AND ($2 OR NOT EXISTS (SELECT 1 FROM person WHERE id = $1 AND person.account_id = oauth_grant.account_id)
            AND NOT EXISTS (
                SELECT 1 FROM membership WHERE person_id = $1 AND membership.account_id = oauth_grant.account_id))
    ORDER BY id FOR UPDATE";
const END_GRANTS: &str = "UPDATE oauth_grant SET revoked_us = $2 WHERE id = ANY($1)";
const END_TOKENS: &str = "
    UPDATE token SET revoked_us = $2 WHERE grant_id = ANY($1) AND kind > 0 AND revoked_us IS NULL";

/// Ends the grants of a person. Their row must be locked, or they could grant something at the same time.
pub(in crate::postgres) async fn end_grants_of(
    transaction: &Transaction<'_>,
    person: PersonId,
    which: GrantsToEnd,
    now_us: i64,
) -> Result<(), Fault> {
    let values: Values<'_> = &[&person.as_i64(), &(which == GrantsToEnd::All)];
    let grants = query(transaction, LOCK_GRANTS_OF, values).await?;
    let grants: Result<Vec<i64>, Corrupt> = grants.iter().map(|row| column(row, 0)).collect();
    let grants = grants?;
    if grants.is_empty() {
        return Ok(());
    }
    for sql in [END_GRANTS, END_TOKENS] {
        execute(transaction, sql, &[&grants, &now_us]).await?;
    }
    execute(transaction, RAISE_VERSION, &[]).await.map(drop)
}

impl PostgresStore {
    /// Grants with a token that can still be used or renewed.
    pub(super) async fn list_connected(
        &self,
        account: AccountId,
        now_us: i64,
    ) -> Result<Vec<GrantRecord>, StoreError> {
        let values: Values<'_> = &[&account.as_i64(), &now_us];
        self.list(
            "list connected clients",
            sql::LIST_CONNECTED.postgres,
            values,
            connected,
        )
        .await
    }
}

fn connected(row: &Row) -> Result<GrantRecord, Corrupt> {
    ConnectedColumns::read(row)?.record()
}

/// Ends a grant of an account with all its tokens.
pub(super) struct RevokeGrant {
    pub(super) account: AccountId,
    pub(super) id: GrantId,
    pub(super) now_us: i64,
}

impl Retryable for RevokeGrant {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let grant = lock(&transaction, LOCK_BY_ID, &[&self.id.as_i64()]).await?;
        let Some(grant) = grant.filter(|grant| grant.account == self.account && !grant.revoked)
        else {
            return Ok(false);
        };
        let ended = end_grant(&transaction, &grant, self.now_us).await?;
        transaction.commit().await?;
        Ok(ended)
    }
}
