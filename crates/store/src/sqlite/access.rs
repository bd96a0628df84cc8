//! The port for accounts and tokens.

use async_trait::async_trait;
use domain::access::Access;
use domain::billing::EntryKind;
use domain::ids::{AccountId, TokenId};
use domain::ports::{
    AccessStore, AccountRecord, Cursor, NewAccount, NewToken, Page, StoreError, TokenInput,
    TokenRecord,
};
use domain::{Money, Timestamp, TokenHash};
use rusqlite::{Connection, OptionalExtension, Params, Result, Row, params};

use super::billing::{Change, account_with_balance};
use super::{SqliteStore, oauth};
use crate::rows::{self, AccountColumns, TokenColumns, micros};

const ACCOUNT: &str = concat!(
    "SELECT a.id, name, coalesce(l.balance_micros, 0), suspended, created_us, credit_limit_micros,
        daily_cap_micros, per_recipient_hour, countries, approved_senders_only, requests_per_second, codes_per_day,
        admins_consent_only, texts_for, low_balance_micros, ported_numbers, verify_price_micros
    FROM",
    account_with_balance!(),
);
const CREATE_ACCOUNT: &str = "
    INSERT INTO account (name, suspended, callback_secret, created_us) VALUES (?1, FALSE, ?2, ?3)
    ON CONFLICT (name) DO NOTHING RETURNING id";
const SET_SUSPENDED: &str = "UPDATE account SET suspended = ?2 WHERE name = ?1";

const TOKEN: &str = "
    SELECT token.id, token.name, account.id, account.name, account.suspended, token.permissions, token.allow_ips,
        token.expires_us, token.created_us, account.countries, account.approved_senders_only, token.last_used_us,
        token.grant_id, account.requests_per_second, token.daily_cap_micros
    FROM token JOIN account ON account.id = token.account_id
    WHERE token.revoked_us IS NULL";
const CREATE_TOKEN: &str = "
    INSERT INTO token (account_id, name, hash, permissions, allow_ips, expires_us, created_us)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id";
const CHANGE_TOKEN: &str = "
    UPDATE token SET name = ?3, permissions = ?4, allow_ips = ?5, expires_us = ?6
    WHERE account_id = ?1 AND id = ?2 AND kind = 0 AND revoked_us IS NULL";
/// Without a time (?3), it revokes the token at ?4.
const END_REPLACED: &str = "
    UPDATE token SET
        expires_us = min(coalesce(expires_us, ?3), coalesce(?3, expires_us)),
        revoked_us = CASE WHEN ?3 IS NULL THEN ?4 END
    WHERE account_id = ?1 AND id = ?2 AND kind = 0 AND revoked_us IS NULL";
const IS_TOKEN_OF: &str = "SELECT EXISTS (SELECT 1 FROM token WHERE id = ?1 AND account_id = ?2)";
const RECORD_USE: &str = "
    UPDATE token SET last_used_us = ?2 WHERE hash = ?1 AND (last_used_us IS NULL OR last_used_us < ?2)";
/// Revokes one token of any kind. [`revoke_token`] decides whether its family is revoked, too.
pub(super) const REVOKE_TOKEN: &str =
    "UPDATE token SET revoked_us = ?2 WHERE id = ?1 AND revoked_us IS NULL";

#[async_trait]
impl AccessStore for SqliteStore {
    async fn access_version(&self) -> Result<u64, StoreError> {
        self.read("read the access version", version).await
    }

    async fn find_access(&self, hash: &TokenHash) -> Result<Option<Access>, StoreError> {
        let hash = *hash;
        let found = self
            .read("find a token", move |db| find_token(db, &hash))
            .await?;
        Ok(found.map(|record| record.access))
    }

    async fn create_account(&self, account: &NewAccount) -> Result<Option<AccountId>, StoreError> {
        let account = rows::with_encrypted_secret(&self.keys, account);
        self.write("create an account", move |db| create_account(db, &account))
            .await
    }

    async fn find_account(&self, name: &str) -> Result<Option<AccountRecord>, StoreError> {
        let name = name.to_owned();
        self.read("find an account", move |db| find_account(db, &name))
            .await
    }

    async fn find_account_by_id(&self, id: AccountId) -> Result<Option<AccountRecord>, StoreError> {
        self.read("find an account", move |db| find_account_by_id(db, id))
            .await
    }

    async fn list_accounts(&self) -> Result<Vec<AccountRecord>, StoreError> {
        self.read("list accounts", list_accounts).await
    }

    async fn search_accounts(
        &self,
        name: Option<&str>,
        cursor: Cursor<AccountId>,
    ) -> Result<Page<AccountRecord, AccountId>, StoreError> {
        let name = name.map(str::to_owned);
        let before = rows::before(cursor.before.map(AccountId::get));
        let limit = cursor.limit;
        let found = self
            .read("search accounts", move |db| {
                search_accounts(db, name.as_deref(), before, limit)
            })
            .await?;
        Ok(rows::page(found, limit, |account| account.id))
    }

    async fn list_account_names(
        &self,
        ids: &[AccountId],
    ) -> Result<Vec<(AccountId, String)>, StoreError> {
        let ids = ids.to_vec();
        self.read("list the names of accounts", move |db| list_names(db, &ids))
            .await
    }

    async fn set_suspended(&self, name: &str, suspended: bool) -> Result<bool, StoreError> {
        let name = name.to_owned();
        self.write("suspend an account", move |db| {
            set_suspended(db, &name, suspended)
        })
        .await
    }

    async fn create_token(&self, token: &NewToken) -> Result<TokenId, StoreError> {
        let token = token.clone();
        self.write("create a token", move |db| create_token(db, &token))
            .await
    }

    async fn list_tokens(
        &self,
        account: Option<AccountId>,
    ) -> Result<Vec<TokenRecord>, StoreError> {
        self.read("list tokens", move |db| list_tokens(db, account))
            .await
    }

    async fn change_token(
        &self,
        account: AccountId,
        id: TokenId,
        input: &TokenInput,
    ) -> Result<bool, StoreError> {
        let input = input.clone();
        self.write("change a token", move |db| {
            let values = params![
                account.as_i64(),
                id.as_i64(),
                input.name,
                input.permissions.to_names(),
                input.allow.to_string(),
                input.expires.map(micros),
            ];
            change(db, CHANGE_TOKEN, values)
        })
        .await
    }

    async fn replace_token(
        &self,
        replaced: TokenId,
        until: Option<Timestamp>,
        token: &NewToken,
    ) -> Result<Option<TokenId>, StoreError> {
        let (token, until_us) = (token.clone(), until.map(micros));
        self.write("replace a token", move |db| {
            replace_token(db, replaced, until_us, &token)
        })
        .await
    }

    async fn revoke_token(
        &self,
        account: Option<AccountId>,
        id: TokenId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.write("revoke a token", move |db| {
            revoke_token(db, account, id, micros(now))
        })
        .await
    }

    async fn record_token_use(&self, used: &[(TokenHash, Timestamp)]) -> Result<(), StoreError> {
        let used: Vec<_> = used.iter().map(|(hash, at)| (*hash, micros(*at))).collect();
        self.write("record the use of tokens", move |db| record_use(db, &used))
            .await
    }
}

fn version(db: &Connection) -> Result<u64> {
    let version = db
        .prepare_cached("SELECT version FROM access_version")?
        .query_row([], |row| row.get(0))?;
    Ok(rows::version(version)?)
}

pub(super) fn raise_version(db: &Connection) -> Result<()> {
    db.prepare_cached("UPDATE access_version SET version = version + 1")?
        .execute([])?;
    Ok(())
}

/// The token with this hash, unless it is revoked or a refresh token.
fn find_token(db: &Connection, hash: &TokenHash) -> Result<Option<TokenRecord>> {
    let mut statement =
        db.prepare_cached(&format!("{TOKEN} AND token.hash = ?1 AND token.kind <> 2"))?;
    statement.query_row([hash.as_bytes()], token).optional()
}

/// The tokens of one account, or all of them.
fn list_tokens(db: &Connection, of: Option<AccountId>) -> Result<Vec<TokenRecord>> {
    let mut statement = db.prepare_cached(&format!(
        "{TOKEN} AND (?1 IS NULL OR token.account_id = ?1) ORDER BY token.id"
    ))?;
    statement
        .query_map([of.map(AccountId::as_i64)], token)?
        .collect()
}

/// Creates a token.
fn create_token(db: &Connection, token: &NewToken) -> Result<TokenId> {
    let values = params![
        token.account.as_i64(),
        token.name,
        token.hash.as_bytes(),
        token.permissions.to_names(),
        token.allow.to_string(),
        token.expires.map(micros),
        micros(token.created_at),
    ];
    let id = db
        .prepare_cached(CREATE_TOKEN)?
        .query_row(values, |row| row.get(0))?;
    raise_version(db)?;
    Ok(rows::token_id(id)?)
}

/// Creates a token and ends the one that it replaces; `None` when there is none to replace.
fn replace_token(
    db: &Connection,
    replaced: TokenId,
    until_us: Option<i64>,
    token: &NewToken,
) -> Result<Option<TokenId>> {
    let values = params![
        token.account.as_i64(),
        replaced.as_i64(),
        until_us,
        micros(token.created_at),
    ];
    if db.prepare_cached(END_REPLACED)?.execute(values)? == 0 {
        return Ok(None);
    }
    create_token(db, token).map(Some)
}

/// Revokes a token, and with a refresh token all of its family; `false` when there is none to revoke.
fn revoke_token(
    db: &Connection,
    account: Option<AccountId>,
    id: TokenId,
    now_us: i64,
) -> Result<bool> {
    if let Some(account) = account {
        let values = [id.as_i64(), account.as_i64()];
        let mut is_theirs = db.prepare_cached(IS_TOKEN_OF)?;
        if !is_theirs.query_row(values, |row| row.get(0))? {
            return Ok(false);
        }
    }
    match oauth::end_family(db, id.as_i64(), now_us)? {
        Some(ended) => Ok(ended),
        None => change(db, REVOKE_TOKEN, [id.as_i64(), now_us]),
    }
}

/// Stores when tokens were last used.
fn record_use(db: &Connection, used: &[(TokenHash, i64)]) -> Result<()> {
    let mut record = db.prepare_cached(RECORD_USE)?;
    for (hash, at_us) in used {
        record.execute(params![hash.as_bytes(), at_us])?;
    }
    Ok(())
}

/// Creates an account; `None` when the name is taken.
/// Its secret is encrypted already.
fn create_account(db: &Connection, account: &NewAccount) -> Result<Option<AccountId>> {
    let values = params![
        account.name.as_str(),
        account.callback_secret,
        micros(account.created_at),
    ];
    let created = db
        .prepare_cached(CREATE_ACCOUNT)?
        .query_row(values, |row| row.get(0))
        .optional()?;
    let Some(id) = created else { return Ok(None) };
    raise_version(db)?;
    if account.balance != Money::ZERO {
        let opening = Change {
            account_id: id,
            kind: EntryKind::Credit,
            amount_micros: account.balance.micros(),
            messages: 0,
            note: None,
            at_us: micros(account.created_at),
        };
        opening.write_entry(db)?;
    }
    Ok(Some(rows::account_id(id)?))
}

/// The account of this name.
fn find_account(db: &Connection, name: &str) -> Result<Option<AccountRecord>> {
    let mut statement = db.prepare_cached(&format!("{ACCOUNT} WHERE name = ?1"))?;
    statement.query_row([name], account).optional()
}

/// The account of this ID.
fn find_account_by_id(db: &Connection, id: AccountId) -> Result<Option<AccountRecord>> {
    let mut statement = db.prepare_cached(&format!("{ACCOUNT} WHERE a.id = ?1"))?;
    statement.query_row([id.as_i64()], account).optional()
}

/// Every account.
fn list_accounts(db: &Connection) -> Result<Vec<AccountRecord>> {
    let mut statement = db.prepare_cached(&format!("{ACCOUNT} ORDER BY a.id"))?;
    statement.query_map([], account)?.collect()
}

/// Accounts with a text in their name, the newest first.
fn search_accounts(
    db: &Connection,
    name: Option<&str>,
    before: i64,
    limit: u32,
) -> Result<Vec<AccountRecord>> {
    let mut statement = db.prepare_cached(&format!(
        "{ACCOUNT} WHERE a.id < ?1 AND (?2 IS NULL OR instr(lower(name), lower(?2)) > 0) ORDER BY a.id DESC LIMIT ?3"
    ))?;
    statement
        .query_map(params![before, name, limit], account)?
        .collect()
}

/// The names of accounts.
fn list_names(db: &Connection, ids: &[AccountId]) -> Result<Vec<(AccountId, String)>> {
    let mut statement = db.prepare_cached("SELECT name FROM account WHERE id = ?1")?;
    let mut names = Vec::with_capacity(ids.len());
    for id in ids {
        let name = statement.query_row([id.as_i64()], |row| row.get(0));
        names.extend(name.optional()?.map(|name| (*id, name)));
    }
    Ok(names)
}

/// Suspends or resumes an account; `false` when there is no account with this name.
fn set_suspended(db: &Connection, name: &str, suspended: bool) -> Result<bool> {
    change(db, SET_SUSPENDED, params![name, suspended])
}

/// Changes one row, and raises the version if there was one.
pub(super) fn change(db: &Connection, sql: &str, values: impl Params) -> Result<bool> {
    let changed = db.prepare_cached(sql)?.execute(values)? > 0;
    if changed {
        raise_version(db)?;
    }
    Ok(changed)
}

fn token(row: &Row<'_>) -> Result<TokenRecord> {
    Ok(TokenColumns::read(row)?.record()?)
}

fn account(row: &Row<'_>) -> Result<AccountRecord> {
    Ok(AccountColumns::read(row)?.record()?)
}
