//! The port for accounts and tokens.

use async_trait::async_trait;
use domain::access::Access;
use domain::ids::{AccountId, TokenId};
use domain::ports::{
    AccessStore, AccountRecord, Cursor, NewAccount, NewToken, Page, StoreError, TokenInput,
    TokenRecord,
};
use domain::{Timestamp, TokenHash};
use tokio_postgres::Row;

use super::oauth::Revoke;
use super::{PostgresStore, column, retry};
use crate::rows::{self, AccountColumns, Corrupt, TokenColumns, micros};

const VERSION: &str = "SELECT version FROM access_version";

macro_rules! account {
    ($condition:literal) => {
        concat!(
            "SELECT a.id, name, coalesce(l.balance_micros, 0), suspended, created_us,
                credit_limit_micros, daily_cap_micros, per_recipient_hour, countries, approved_senders_only,
                requests_per_second, codes_per_day, admins_consent_only, texts_for, low_balance_micros, ported_numbers,
                verify_price_micros
            FROM account AS a",
            newest_entry!("a.id"),
            $condition
        )
    };
}
const FIND_ACCOUNT: &str = account!("WHERE name = $1");
const FIND_ACCOUNT_BY_ID: &str = account!("WHERE a.id = $1");
const LIST_ACCOUNTS: &str = account!("ORDER BY a.id");
const SEARCH_ACCOUNTS: &str = account!(
    "WHERE a.id < $1 AND ($2::text IS NULL OR position(lower($2) IN lower(name)) > 0) ORDER BY a.id DESC LIMIT $3"
);
const LIST_NAMES: &str = "SELECT id, name FROM account WHERE id = ANY($1::bigint[])";

macro_rules! token {
    ($condition:literal) => {
        concat!(
            "SELECT token.id, token.name, account.id, account.name, account.suspended, token.permissions,
                token.allow_ips, token.expires_us, token.created_us, account.countries, account.approved_senders_only,
                token.last_used_us, token.grant_id, account.requests_per_second, token.daily_cap_micros
            FROM token JOIN account ON account.id = token.account_id
            WHERE token.revoked_us IS NULL AND ",
            $condition
        )
    };
}
/// Refresh tokens give no access.
const FIND_TOKEN: &str = token!("token.hash = $1 AND token.kind <> 2");
const LIST_TOKENS: &str = token!("($1::bigint IS NULL OR token.account_id = $1) ORDER BY token.id");

/// Wraps a change that returns the changed rows: if there are any, it raises the access version.
macro_rules! change {
    ($statement:literal) => {
        concat!(
            "WITH changed AS (", $statement, "),
            raised AS (UPDATE access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM changed))
            SELECT id FROM changed"
        )
    };
}
const CREATE_ACCOUNT: &str = "
    WITH changed AS (
        INSERT INTO account (name, suspended, callback_secret, created_us)
        VALUES ($1, FALSE, $3, $4) ON CONFLICT (name) DO NOTHING RETURNING id, created_us
    ), raised AS (
        UPDATE access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM changed)
    ), entered AS (
        INSERT INTO ledger (account_id, id, at_us, kind, amount_micros, balance_micros, messages)
        SELECT id, 1, created_us, 1, $2::bigint, $2::bigint, 0 FROM changed WHERE $2::bigint <> 0
    )
    SELECT id FROM changed";
const SET_SUSPENDED: &str =
    change!("UPDATE account SET suspended = $2 WHERE name = $1 RETURNING id");
const CREATE_TOKEN: &str = change!(
    "INSERT INTO token (account_id, name, hash, permissions, allow_ips, expires_us, created_us)
    VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id"
);
const CHANGE_TOKEN: &str = change!(
    "UPDATE token SET name = $3, permissions = $4, allow_ips = $5, expires_us = $6
    WHERE account_id = $1 AND id = $2 AND kind = 0 AND revoked_us IS NULL RETURNING id"
);
/// Without a time ($9), it revokes the replaced token. `least` ignores NULL.
const REPLACE_TOKEN: &str = "
    WITH ended AS (
        UPDATE token SET
            expires_us = least(expires_us, $9::bigint),
            revoked_us = CASE WHEN $9::bigint IS NULL THEN $7::bigint END
        WHERE account_id = $1 AND id = $8 AND kind = 0 AND revoked_us IS NULL RETURNING id
    ), changed AS (
        INSERT INTO token (account_id, name, hash, permissions, allow_ips, expires_us, created_us)
        SELECT $1, $2::text, $3::bytea, $4::text, $5::text, $6::bigint, $7::bigint FROM ended RETURNING id
    ), raised AS (
        UPDATE access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM changed)
    )
    SELECT id FROM changed";

/// The caller sorts by hash, so that two nodes do not deadlock.
const RECORD_USE: &str = "
    UPDATE token SET last_used_us = g.at_us FROM UNNEST($1::bytea[], $2::bigint[]) AS g (hash, at_us)
    WHERE token.hash = g.hash AND (token.last_used_us IS NULL OR token.last_used_us < g.at_us)";

#[async_trait]
impl AccessStore for PostgresStore {
    async fn access_version(&self) -> Result<u64, StoreError> {
        self.get("read the access version", VERSION, &[], |row| {
            rows::version(column(row, 0)?)
        })
        .await
    }

    async fn find_access(&self, hash: &TokenHash) -> Result<Option<Access>, StoreError> {
        let found = self
            .find(
                "find a token",
                FIND_TOKEN,
                &[&hash.as_bytes().as_slice()],
                token,
            )
            .await?;
        Ok(found.map(|record| record.access))
    }

    async fn create_account(&self, account: &NewAccount) -> Result<Option<AccountId>, StoreError> {
        let account = rows::with_encrypted_secret(&self.keys, account);
        let (balance, created_us) = (account.balance.micros(), micros(account.created_at));
        let name = account.name.as_str();
        let values: super::Values<'_> = &[&name, &balance, &account.callback_secret, &created_us];
        self.find("create an account", CREATE_ACCOUNT, values, |row| {
            rows::account_id(column(row, 0)?)
        })
        .await
    }

    async fn find_account(&self, name: &str) -> Result<Option<AccountRecord>, StoreError> {
        self.find("find an account", FIND_ACCOUNT, &[&name], account)
            .await
    }

    async fn find_account_by_id(&self, id: AccountId) -> Result<Option<AccountRecord>, StoreError> {
        self.find(
            "find an account",
            FIND_ACCOUNT_BY_ID,
            &[&id.as_i64()],
            account,
        )
        .await
    }

    async fn list_accounts(&self) -> Result<Vec<AccountRecord>, StoreError> {
        self.list("list accounts", LIST_ACCOUNTS, &[], account)
            .await
    }

    async fn search_accounts(
        &self,
        name: Option<&str>,
        cursor: Cursor<AccountId>,
    ) -> Result<Page<AccountRecord, AccountId>, StoreError> {
        let before = rows::before(cursor.before.map(AccountId::get));
        let limit = i64::from(cursor.limit);
        let values: super::Values<'_> = &[&before, &name, &limit];
        let found = self
            .list("search accounts", SEARCH_ACCOUNTS, values, account)
            .await?;
        Ok(rows::page(found, cursor.limit, |account| account.id))
    }

    async fn list_account_names(
        &self,
        ids: &[AccountId],
    ) -> Result<Vec<(AccountId, String)>, StoreError> {
        let ids: Vec<i64> = ids.iter().map(|id| id.as_i64()).collect();
        let read = |row: &Row| Ok((rows::account_id(column(row, 0)?)?, column(row, 1)?));
        self.list("list the names of accounts", LIST_NAMES, &[&ids], read)
            .await
    }

    async fn set_suspended(&self, name: &str, suspended: bool) -> Result<bool, StoreError> {
        let changed = self
            .query("suspend an account", SET_SUSPENDED, &[&name, &suspended])
            .await?;
        Ok(!changed.is_empty())
    }

    async fn create_token(&self, token: &NewToken) -> Result<TokenId, StoreError> {
        let (account, hash) = (token.account.as_i64(), token.hash.as_bytes().as_slice());
        let (permissions, allow) = (token.permissions.to_names(), token.allow.to_string());
        let (expires_us, created_us) = (token.expires.map(micros), micros(token.created_at));
        let values: super::Values<'_> = &[
            &account,
            &token.name,
            &hash,
            &permissions,
            &allow,
            &expires_us,
            &created_us,
        ];
        self.get("create a token", CREATE_TOKEN, values, |row| {
            rows::token_id(column(row, 0)?)
        })
        .await
    }

    async fn list_tokens(
        &self,
        account: Option<AccountId>,
    ) -> Result<Vec<TokenRecord>, StoreError> {
        self.list(
            "list tokens",
            LIST_TOKENS,
            &[&account.map(AccountId::as_i64)],
            token,
        )
        .await
    }

    async fn change_token(
        &self,
        account: AccountId,
        id: TokenId,
        input: &TokenInput,
    ) -> Result<bool, StoreError> {
        let (permissions, allow) = (input.permissions.to_names(), input.allow.to_string());
        let values: super::Values<'_> = &[
            &account.as_i64(),
            &id.as_i64(),
            &input.name,
            &permissions,
            &allow,
            &input.expires.map(micros),
        ];
        let changed = self.query("change a token", CHANGE_TOKEN, values).await?;
        Ok(!changed.is_empty())
    }

    async fn replace_token(
        &self,
        replaced: TokenId,
        until: Option<Timestamp>,
        token: &NewToken,
    ) -> Result<Option<TokenId>, StoreError> {
        let (permissions, allow) = (token.permissions.to_names(), token.allow.to_string());
        let values: super::Values<'_> = &[
            &token.account.as_i64(),
            &token.name,
            &token.hash.as_bytes().as_slice(),
            &permissions,
            &allow,
            &token.expires.map(micros),
            &micros(token.created_at),
            &replaced.as_i64(),
            &until.map(micros),
        ];
        self.find("replace a token", REPLACE_TOKEN, values, |row| {
            rows::token_id(column(row, 0)?)
        })
        .await
    }

    async fn revoke_token(
        &self,
        account: Option<AccountId>,
        id: TokenId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let revoke = Revoke {
            account,
            token: id,
            now,
        };
        retry::run(&self.pool, "revoke a token", &revoke).await
    }

    async fn record_token_use(&self, used: &[(TokenHash, Timestamp)]) -> Result<(), StoreError> {
        let mut used = used.to_vec();
        used.sort_unstable_by_key(|(hash, _)| *hash.as_bytes());
        let hashes: Vec<&[u8]> = used.iter().map(|(hash, _)| &hash.as_bytes()[..]).collect();
        let times: Vec<i64> = used.iter().map(|(_, at)| micros(*at)).collect();
        let values: super::Values<'_> = &[&hashes, &times];
        let recorded = self.query("record the use of tokens", RECORD_USE, values);
        recorded.await.map(drop)
    }
}

fn token(row: &Row) -> Result<TokenRecord, Corrupt> {
    TokenColumns::read(row)?.record()
}

fn account(row: &Row) -> Result<AccountRecord, Corrupt> {
    AccountColumns::read(row)?.record()
}
