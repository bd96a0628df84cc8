//! The port for SMPP users.

use async_trait::async_trait;
use domain::Timestamp;
use domain::ids::{AccountId, SmppUserId};
use domain::ports::{NewSmppUser, SmppCredentials, SmppUserStore, StoreError};
use domain::smpp_user::{SmppUser, SystemId};

use super::{PostgresStore, Values, column};
use crate::rows::micros;
use crate::rows::smpp_users::{NewColumns, read_credentials, read_user, smpp_user_id};
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

#[async_trait]
impl SmppUserStore for PostgresStore {
    async fn create_smpp_user(&self, user: &NewSmppUser) -> Result<Option<SmppUserId>, StoreError> {
        let user = NewColumns::new(user);
        let [system_id, password, allow, senders, countries, binds, date, id, error] = &user.texts;
        let values: Values<'_> = &[
            &user.account_id,
            system_id,
            password,
            allow,
            senders,
            countries,
            binds,
            date,
            id,
            error,
            &user.max_binds,
            &user.max_per_second,
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
