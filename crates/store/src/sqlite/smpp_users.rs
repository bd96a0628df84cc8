//! The port for SMPP users.

use async_trait::async_trait;
use domain::Timestamp;
use domain::ids::{AccountId, NodeId, SmppUserId};
use domain::ports::{NewSmppUser, SmppBinds, SmppCredentials, SmppUserStore, StoreError};
use domain::smpp_user::{SmppSession, SmppUser, SmppUserOptions, SystemId};
use rusqlite::{Connection, OptionalExtension, Result, params};

use super::access::{change, raise_version};
use super::{SqliteStore, clock};
use crate::rows::micros;
use crate::rows::smpp_users::{
    NewColumns, OptionColumns, SessionColumns, bind_count, read_credentials, read_session,
    read_user, smpp_user_id,
};
use crate::sql::smpp_users as sql;

const CREATE: &str = "
    INSERT INTO smpp_user (account_id, system_id, password, allow_ips, senders, countries, binds, receipt_date,
        receipt_id, receipt_error, max_binds, max_per_second, created_us)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
    ON CONFLICT (system_id) WHERE revoked_us IS NULL DO NOTHING RETURNING id";
const BINDS_ELSEWHERE: &str = "
    SELECT coalesce(sum(b.binds), 0) FROM smpp_bind AS b JOIN node ON node.id = b.node
    WHERE b.user_id = ?1 AND b.node <> ?2 AND node.alive_until_us >= ?3";
const COUNT_BINDS: &str = "
    SELECT b.user_id, sum(b.binds) FROM smpp_bind AS b JOIN node ON node.id = b.node
    WHERE node.alive_until_us >= ?1 GROUP BY b.user_id ORDER BY b.user_id";
const SENDERS_ELSEWHERE: &str = "
    SELECT b.user_id, sum(b.senders) FROM smpp_bind AS b JOIN node ON node.id = b.node
    WHERE b.node <> ?1 AND b.senders > 0 AND node.alive_until_us >= ?2 GROUP BY b.user_id";
const REPORT_SESSION: &str = "
    INSERT INTO smpp_session (node, number, user_id, report) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (node, number) DO UPDATE SET report = excluded.report";
const DELETE_SESSION: &str = "DELETE FROM smpp_session WHERE node = ?1 AND number = ?2";
const LIST_SESSIONS: &str = "
    SELECT s.node, s.number, s.user_id, s.report FROM smpp_session AS s JOIN node ON node.id = s.node
    WHERE s.user_id = ?1 AND node.alive_until_us >= ?2 ORDER BY s.node, s.number";
const CHANGE: &str = "
    UPDATE smpp_user SET allow_ips = ?2, senders = ?3, countries = ?4, binds = ?5, receipt_date = ?6,
        receipt_id = ?7, receipt_error = ?8, max_binds = ?9, max_per_second = ?10
    WHERE system_id = ?1 AND revoked_us IS NULL";
const REVOKE: &str =
    "UPDATE smpp_user SET revoked_us = ?2 WHERE system_id = ?1 AND revoked_us IS NULL";

fn create(db: &Connection, user: &NewColumns) -> Result<Option<SmppUserId>> {
    let options = &user.options;
    let [allow, senders, countries, binds, date, id, error] = &options.texts;
    let values = params![
        user.account_id,
        user.system_id,
        user.password,
        allow,
        senders,
        countries,
        binds,
        date,
        id,
        error,
        options.max_binds,
        options.max_per_second,
        user.created_us,
    ];
    let created = db
        .prepare_cached(CREATE)?
        .query_row(values, |row| row.get(0))
        .optional()?;
    let Some(id) = created else { return Ok(None) };
    raise_version(db)?;
    Ok(Some(smpp_user_id(id)?))
}

fn set_binds(
    db: &Connection,
    user: SmppUserId,
    node: NodeId,
    binds: SmppBinds,
    most: Option<u32>,
) -> Result<bool> {
    let (user, node) = (user.as_i64(), node.as_i64());
    if let Some(most) = most {
        let now_us = clock::now_us(db)?;
        let elsewhere: i64 = db
            .prepare_cached(BINDS_ELSEWHERE)?
            .query_row([user, node, now_us], |row| row.get(0))?;
        if elsewhere.saturating_add(binds.all.into()) > most.into() {
            return Ok(false);
        }
    }
    if binds.all == 0 {
        db.prepare_cached(sql::DELETE_BINDS.sqlite)?
            .execute([user, node])?;
    } else {
        db.prepare_cached(sql::SET_BINDS.sqlite)?.execute([
            user,
            node,
            binds.all.into(),
            binds.senders.into(),
        ])?;
    }
    Ok(true)
}

fn find(db: &Connection, ids: &[SmppUserId]) -> Result<Vec<SmppUser>> {
    let mut statement = db.prepare_cached(sql::FIND_ONE_SQLITE)?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let user = statement.query_row([id.as_i64()], |row| read_user(row));
        found.extend(user.optional()?);
    }
    Ok(found)
}

fn report_sessions(
    db: &Connection,
    node: NodeId,
    changed: &SessionColumns,
    ended: &[u64],
) -> Result<()> {
    let node = node.as_i64();
    let mut report = db.prepare_cached(REPORT_SESSION)?;
    let ids = changed.numbers.iter().zip(&changed.users);
    for ((number, user), text) in ids.zip(&changed.reports) {
        report.execute(params![node, number, user, text])?;
    }
    let mut delete = db.prepare_cached(DELETE_SESSION)?;
    for number in ended {
        delete.execute([node, number.cast_signed()])?;
    }
    Ok(())
}

#[async_trait]
impl SmppUserStore for SqliteStore {
    async fn create_smpp_user(&self, user: &NewSmppUser) -> Result<Option<SmppUserId>, StoreError> {
        let user = NewColumns::new(user);
        self.write("create an SMPP user", move |db| create(db, &user))
            .await
    }

    async fn find_smpp_credentials(
        &self,
        system_id: &SystemId,
    ) -> Result<Option<SmppCredentials>, StoreError> {
        let system_id = system_id.clone();
        self.read("find an SMPP user", move |db| {
            let mut statement = db.prepare_cached(sql::FIND_CREDENTIALS.sqlite)?;
            let found = statement.query_row([system_id.as_str()], |row| read_credentials(row));
            found.optional()
        })
        .await
    }

    async fn find_smpp_users(&self, ids: &[SmppUserId]) -> Result<Vec<SmppUser>, StoreError> {
        let ids = ids.to_vec();
        self.read("find SMPP users", move |db| find(db, &ids)).await
    }

    async fn list_smpp_users(
        &self,
        account: Option<AccountId>,
    ) -> Result<Vec<SmppUser>, StoreError> {
        self.read("list SMPP users", move |db| {
            let mut statement = db.prepare_cached(sql::LIST.sqlite)?;
            let users = statement.query_map([account.map(AccountId::as_i64)], |row| read_user(row));
            users?.collect()
        })
        .await
    }

    async fn set_smpp_binds(
        &self,
        user: SmppUserId,
        node: NodeId,
        binds: SmppBinds,
        most: Option<u32>,
    ) -> Result<bool, StoreError> {
        self.write("count the sessions of an SMPP user", move |db| {
            set_binds(db, user, node, binds, most)
        })
        .await
    }

    async fn count_smpp_binds(&self) -> Result<Vec<(SmppUserId, u32)>, StoreError> {
        self.read("count the sessions of SMPP users", |db| {
            let now_us = clock::now_us(db)?;
            let mut statement = db.prepare_cached(COUNT_BINDS)?;
            let counts =
                statement.query_map([now_us], |row| Ok(bind_count(row.get(0)?, row.get(1)?)?));
            counts?.collect()
        })
        .await
    }

    async fn count_smpp_senders_elsewhere(
        &self,
        node: NodeId,
    ) -> Result<Vec<(SmppUserId, u32)>, StoreError> {
        self.read("count the sessions of SMPP users", move |db| {
            let now_us = clock::now_us(db)?;
            let mut statement = db.prepare_cached(SENDERS_ELSEWHERE)?;
            let counts = statement.query_map([node.as_i64(), now_us], |row| {
                Ok(bind_count(row.get(0)?, row.get(1)?)?)
            });
            counts?.collect()
        })
        .await
    }

    async fn report_smpp_sessions(
        &self,
        node: NodeId,
        changed: &[SmppSession],
        ended: &[u64],
    ) -> Result<(), StoreError> {
        let changed = SessionColumns::new(changed);
        let ended = ended.to_vec();
        self.write("store the sessions of SMPP users", move |db| {
            report_sessions(db, node, &changed, &ended)
        })
        .await
    }

    async fn list_smpp_sessions(
        &self,
        user: SmppUserId,
    ) -> Result<Vec<(NodeId, SmppSession)>, StoreError> {
        self.read("list the sessions of an SMPP user", move |db| {
            let now_us = clock::now_us(db)?;
            let mut statement = db.prepare_cached(LIST_SESSIONS)?;
            let sessions = statement.query_map([user.as_i64(), now_us], |row| read_session(row));
            sessions?.collect()
        })
        .await
    }

    async fn change_smpp_user(
        &self,
        system_id: &SystemId,
        options: &SmppUserOptions,
    ) -> Result<bool, StoreError> {
        let system_id = system_id.clone();
        let options = OptionColumns::new(options);
        self.write("change an SMPP user", move |db| {
            let [allow, senders, countries, binds, date, id, error] = &options.texts;
            let values = params![
                system_id.as_str(),
                allow,
                senders,
                countries,
                binds,
                date,
                id,
                error,
                options.max_binds,
                options.max_per_second,
            ];
            change(db, CHANGE, values)
        })
        .await
    }

    async fn revoke_smpp_user(
        &self,
        system_id: &SystemId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let system_id = system_id.clone();
        self.write("revoke an SMPP user", move |db| {
            change(db, REVOKE, params![system_id.as_str(), micros(now)])
        })
        .await
    }
}
