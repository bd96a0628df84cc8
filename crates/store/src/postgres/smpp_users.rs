//! The port for SMPP users.

use async_trait::async_trait;
use deadpool_postgres::Object;
use domain::Timestamp;
use domain::ids::{AccountId, NodeId, SmppUserId};
use domain::ports::{NewSmppUser, SmppBinds, SmppCredentials, SmppUserStore, StoreError};
use domain::smpp_user::{SmppSession, SmppUser, SmppUserOptions, SystemId};
use tokio_postgres::Row;

use super::fault::Fault;
use super::retry::{self, Retryable};
use super::transaction::{execute, find, query};
use super::{PostgresStore, Values, column};
use crate::rows::smpp_users::{
    NewColumns, OptionColumns, SessionColumns, bind_count, read_credentials, read_session,
    read_user, smpp_user_id,
};
use crate::rows::{Corrupt, micros};
use crate::sql::smpp_users as sql;

const CREATE: &str = "
    WITH changed AS (
        INSERT INTO smpp_user (account_id, system_id, password, allow_ips, senders, countries, binds, receipt_date,
            receipt_id, receipt_error, max_binds, max_per_second, created_us)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        ON CONFLICT (system_id) WHERE revoked_us IS NULL DO NOTHING RETURNING id
    ), raised AS (
        UPDATE access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM changed)
    )
    SELECT id FROM changed";
const REVOKE: &str = "
    WITH changed AS (
        UPDATE smpp_user SET revoked_us = $2 WHERE system_id = $1 AND revoked_us IS NULL RETURNING id
    ), raised AS (
        UPDATE access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM changed)
    )
    SELECT id FROM changed";

/// Locks the user, so that two nodes do not take the last session at the same time.
const LOCK_USER: &str = "SELECT id FROM smpp_user WHERE id = $1 FOR UPDATE";
const BINDS_ELSEWHERE: &str = concat!(
    "SELECT CAST(coalesce(sum(b.binds), 0) AS BIGINT) FROM smpp_bind AS b JOIN node ON node.id = b.node
    WHERE b.user_id = $1 AND b.node <> $2 AND node.alive_until_us >= ",
    now_us!(),
);

const COUNT_BINDS: &str = concat!(
    "SELECT b.user_id, CAST(sum(b.binds) AS BIGINT) FROM smpp_bind AS b JOIN node ON node.id = b.node
    WHERE node.alive_until_us >= ",
    now_us!(),
    " GROUP BY b.user_id ORDER BY b.user_id",
);

const SENDERS_ELSEWHERE: &str = concat!(
    "SELECT b.user_id, CAST(sum(b.senders) AS BIGINT) FROM smpp_bind AS b JOIN node ON node.id = b.node
    WHERE b.node <> $1 AND b.senders > 0 AND node.alive_until_us >= ",
    now_us!(),
    " GROUP BY b.user_id",
);
const REPORT_SESSIONS: &str = "
    WITH ended AS (
        DELETE FROM smpp_session WHERE node = $1 AND number = ANY($2::bigint[])
    )
    INSERT INTO smpp_session (node, number, user_id, report)
    SELECT $1, g.* FROM UNNEST($3::bigint[], $4::bigint[], $5::text[]) AS g (number, user_id, report)
    ON CONFLICT (node, number) DO UPDATE SET report = excluded.report";
const LIST_SESSIONS: &str = concat!(
    "SELECT s.node, s.number, s.user_id, s.report FROM smpp_session AS s JOIN node ON node.id = s.node
    WHERE s.user_id = $1 AND node.alive_until_us >= ",
    now_us!(),
    " ORDER BY s.node, s.number",
);
const CHANGE: &str = "
    WITH changed AS (
        UPDATE smpp_user SET allow_ips = $2, senders = $3, countries = $4, binds = $5, receipt_date = $6,
            receipt_id = $7, receipt_error = $8, max_binds = $9, max_per_second = $10
        WHERE system_id = $1 AND revoked_us IS NULL RETURNING id
    ), raised AS (
        UPDATE access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM changed)
    )
    SELECT id FROM changed";

struct SetBinds {
    user: i64,
    node: i64,
    binds: i64,
    senders: i64,
    most: Option<i64>,
}

impl Retryable for SetBinds {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        query(&transaction, LOCK_USER, &[&self.user]).await?;
        let key: Values<'_> = &[&self.user, &self.node];
        if let Some(most) = self.most {
            let found = find(&transaction, BINDS_ELSEWHERE, key).await?;
            let found = found.ok_or(Corrupt("sum of sessions"))?;
            let elsewhere: i64 = column(&found, 0)?;
            if elsewhere.saturating_add(self.binds) > most {
                return Ok(false);
            }
        }
        if self.binds == 0 {
            execute(&transaction, sql::DELETE_BINDS.postgres, key).await?;
        } else {
            let values: Values<'_> = &[&self.user, &self.node, &self.binds, &self.senders];
            execute(&transaction, sql::SET_BINDS.postgres, values).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }
}

#[async_trait]
impl SmppUserStore for PostgresStore {
    async fn create_smpp_user(&self, user: &NewSmppUser) -> Result<Option<SmppUserId>, StoreError> {
        let user = NewColumns::new(user);
        let options = &user.options;
        let [allow, senders, countries, binds, date, id, error] = &options.texts;
        let values: Values<'_> = &[
            &user.account_id,
            &user.system_id,
            &user.password,
            allow,
            senders,
            countries,
            binds,
            date,
            id,
            error,
            &options.max_binds,
            &options.max_per_second,
            &user.created_us,
        ];
        self.find("create an SMPP user", CREATE, values, |row| {
            smpp_user_id(column(row, 0)?)
        })
        .await
    }

    async fn find_smpp_credentials(
        &self,
        system_id: &SystemId,
    ) -> Result<Option<SmppCredentials>, StoreError> {
        self.find(
            "find an SMPP user",
            sql::FIND_CREDENTIALS.postgres,
            &[&system_id.as_str()],
            read_credentials,
        )
        .await
    }

    async fn find_smpp_users(&self, ids: &[SmppUserId]) -> Result<Vec<SmppUser>, StoreError> {
        let ids: Vec<i64> = ids.iter().map(|id| id.as_i64()).collect();
        let sql = sql::FIND_MANY_POSTGRES;
        self.list("find SMPP users", sql, &[&ids], read_user).await
    }

    async fn list_smpp_users(
        &self,
        account: Option<AccountId>,
    ) -> Result<Vec<SmppUser>, StoreError> {
        let account = account.map(AccountId::as_i64);
        let sql = sql::LIST.postgres;
        self.list("list SMPP users", sql, &[&account], read_user)
            .await
    }

    async fn set_smpp_binds(
        &self,
        user: SmppUserId,
        node: NodeId,
        binds: SmppBinds,
        most: Option<u32>,
    ) -> Result<bool, StoreError> {
        let set = SetBinds {
            user: user.as_i64(),
            node: node.as_i64(),
            binds: binds.all.into(),
            senders: binds.senders.into(),
            most: most.map(i64::from),
        };
        retry::run(&self.pool, "count the sessions of an SMPP user", &set).await
    }

    async fn count_smpp_binds(&self) -> Result<Vec<(SmppUserId, u32)>, StoreError> {
        let read = |row: &Row| bind_count(column(row, 0)?, column(row, 1)?);
        self.list("count the sessions of SMPP users", COUNT_BINDS, &[], read)
            .await
    }

    async fn count_smpp_senders_elsewhere(
        &self,
        node: NodeId,
    ) -> Result<Vec<(SmppUserId, u32)>, StoreError> {
        let read = |row: &Row| bind_count(column(row, 0)?, column(row, 1)?);
        let operation = "count the sessions of SMPP users";
        self.list(operation, SENDERS_ELSEWHERE, &[&node.as_i64()], read)
            .await
    }

    async fn report_smpp_sessions(
        &self,
        node: NodeId,
        changed: &[SmppSession],
        ended: &[u64],
    ) -> Result<(), StoreError> {
        let changed = SessionColumns::new(changed);
        let ended: Vec<i64> = ended.iter().map(|number| number.cast_signed()).collect();
        let values: Values<'_> = &[
            &node.as_i64(),
            &ended,
            &changed.numbers,
            &changed.users,
            &changed.reports,
        ];
        let operation = "store the sessions of SMPP users";
        let stored = self.query(operation, REPORT_SESSIONS, values).await;
        stored.map(drop)
    }

    async fn list_smpp_sessions(
        &self,
        user: SmppUserId,
    ) -> Result<Vec<(NodeId, SmppSession)>, StoreError> {
        let operation = "list the sessions of an SMPP user";
        self.list(operation, LIST_SESSIONS, &[&user.as_i64()], read_session)
            .await
    }

    async fn change_smpp_user(
        &self,
        system_id: &SystemId,
        options: &SmppUserOptions,
    ) -> Result<bool, StoreError> {
        let options = OptionColumns::new(options);
        let [allow, senders, countries, binds, date, id, error] = &options.texts;
        let values: Values<'_> = &[
            &system_id.as_str(),
            allow,
            senders,
            countries,
            binds,
            date,
            id,
            error,
            &options.max_binds,
            &options.max_per_second,
        ];
        let changed = self.query("change an SMPP user", CHANGE, values).await?;
        Ok(!changed.is_empty())
    }

    async fn revoke_smpp_user(
        &self,
        system_id: &SystemId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let values: Values<'_> = &[&system_id.as_str(), &micros(now)];
        let changed = self.query("revoke an SMPP user", REVOKE, values).await?;
        Ok(!changed.is_empty())
    }
}
