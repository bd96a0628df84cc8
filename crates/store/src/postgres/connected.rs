//! The clients that may act for an account.

use deadpool_postgres::{Object, Transaction};
use domain::ids::{AccountId, GrantId, PersonId};
use domain::ports::{GrantRecord, StoreError};
use tokio_postgres::Row;

use super::attempt::Attempt;
use super::fault::Fault;
use super::oauth::{LOCK_BY_ID, RAISE_VERSION, end_grant, lock, run};
use super::people;
use super::{PostgresStore, Values, column};
use crate::rows::Corrupt;
use crate::rows::oauth::{ConnectedColumns, Ended};

const LIST: &str = "
    SELECT g.id, g.client_id, g.client_name, g.scopes, g.created_us,
        (SELECT max(t.last_used_us) FROM token AS t WHERE t.grant_id = g.id AND t.kind > 0),
        person.email
    FROM oauth_grant AS g LEFT JOIN person ON person.id = g.person_id
    WHERE g.account_id = $1 AND g.revoked_us IS NULL AND EXISTS (
        SELECT 1 FROM token AS t
        WHERE t.grant_id = g.id AND t.kind > 0 AND t.revoked_us IS NULL AND t.expires_us > $2)
    ORDER BY g.id DESC";
/// Whoever renews a token of one of these waits, or is waited for.
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

/// Ends what a person granted. Their row must be locked, or they could grant something meanwhile.
pub(super) async fn end_grants_of(
    transaction: &Transaction<'_>,
    person: PersonId,
    which: Ended,
    now_us: i64,
) -> Result<(), Fault> {
    let values: Values<'_> = &[&person.as_i64(), &(which == Ended::All)];
    let grants = people::run(transaction, LOCK_GRANTS_OF, values).await?;
    let grants: Result<Vec<i64>, Corrupt> = grants.iter().map(|row| column(row, 0)).collect();
    let grants = grants?;
    if grants.is_empty() {
        return Ok(());
    }
    for sql in [END_GRANTS, END_TOKENS] {
        run(transaction, sql, &[&grants, &now_us]).await?;
    }
    run(transaction, RAISE_VERSION, &[]).await.map(drop)
}

impl PostgresStore {
    /// Those with a token that can still be used or renewed.
    pub(super) async fn list_connected(
        &self,
        account: AccountId,
        now_us: i64,
    ) -> Result<Vec<GrantRecord>, StoreError> {
        let values: Values<'_> = &[&account.as_i64(), &now_us];
        self.list("list connected clients", LIST, values, connected)
            .await
    }
}

fn connected(row: &Row) -> Result<GrantRecord, Corrupt> {
    let columns = ConnectedColumns {
        id: column(row, 0)?,
        client_id: column(row, 1)?,
        client_name: column(row, 2)?,
        scopes: column(row, 3)?,
        created_us: column(row, 4)?,
        last_used_us: column(row, 5)?,
        granted_by: column(row, 6)?,
    };
    columns.record()
}

/// Ends a grant of an account with all its tokens.
pub(super) struct Disconnect {
    pub(super) account: AccountId,
    pub(super) id: GrantId,
    pub(super) now_us: i64,
}

impl Attempt for Disconnect {
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
