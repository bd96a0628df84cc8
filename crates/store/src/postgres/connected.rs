//! The clients that may act for an account.

use deadpool_postgres::Object;
use domain::ids::{AccountId, GrantId};
use domain::ports::{GrantRecord, StoreError};
use tokio_postgres::Row;

use super::attempt::Attempt;
use super::fault::Fault;
use super::oauth::{LOCK_BY_ID, end_grant, lock};
use super::{PostgresStore, column};
use crate::rows::Corrupt;
use crate::rows::oauth::ConnectedColumns;

const LIST: &str = "
    SELECT g.id, g.client_id, g.client_name, g.scopes, g.created_us,
        (SELECT max(t.last_used_us) FROM token AS t WHERE t.grant_id = g.id AND t.kind > 0)
    FROM oauth_grant AS g
    WHERE g.account_id = $1 AND g.revoked_us IS NULL AND EXISTS (
        SELECT 1 FROM token AS t
        WHERE t.grant_id = g.id AND t.kind > 0 AND t.revoked_us IS NULL AND t.expires_us > $2)
    ORDER BY g.id DESC";

impl PostgresStore {
    /// Those with a token that can still be used or renewed.
    pub(super) async fn list_connected(
        &self,
        account: AccountId,
        now_us: i64,
    ) -> Result<Vec<GrantRecord>, StoreError> {
        let values: super::Values<'_> = &[&account.as_i64(), &now_us];
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
