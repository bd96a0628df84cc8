//! Encrypts everything that is not encrypted with the current key of the database.

use deadpool_postgres::GenericClient;
use domain::KeyRing;
use tokio_postgres::Error;

use super::fault::is_retryable;
use crate::rows::encrypted::{
    BATCH, Encrypting, KeyRow, plan_context, renew, renew_text, secret_context, totp_context,
};
use crate::sql::encrypted as sql;
use crate::{KeyRetention, OpenError, Options};

/// When several nodes start at once, one stores the ID of its key and the others find it.
const STORE_KEY_ID: &str = "
    INSERT INTO service_key (one, key_id, proof, kept) VALUES (1, $1, $2, $3) ON CONFLICT (one) DO NOTHING";
const SET_NEWEST_KEY: &str = "UPDATE service_key SET key_id = $1, proof = $2";
const STORE_KEY: &str = "UPDATE service_key SET kept = $2 WHERE key_id = $1 AND kept IS NULL";
/// Deletes a stored key, unless the text of a code still needs it.
const DELETE_STORED_KEY: &str = "
    UPDATE service_key SET kept = NULL WHERE key_id = $1 AND kept IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM code_text WHERE substring(text FROM 1 FOR length($2::bytea)) <> $2::bytea)";
const LIST_ACCOUNTS_TO_RENEW: &str = "
    SELECT id, name, callback_secret, former_secret FROM account
    WHERE left(callback_secret, length($1::text)) <> $1::text
        OR left(former_secret, length($1::text)) <> $1::text LIMIT $2";
/// Rows that another node has changed meanwhile are skipped.
const RENEW_ACCOUNTS: &str = "
    UPDATE account AS a SET callback_secret = g.newest, former_secret = g.former
    FROM UNNEST($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[])
        AS g (id, was_newest, was_former, newest, former)
    WHERE a.id = g.id AND a.callback_secret = g.was_newest AND a.former_secret IS NOT DISTINCT FROM g.was_former";
const LIST_PEOPLE_TO_RENEW: &str = "
    SELECT id, totp_secret, totp_offered FROM person
    WHERE substring(totp_secret FROM 1 FOR length($1::bytea)) <> $1::bytea
        OR substring(totp_offered FROM 1 FOR length($1::bytea)) <> $1::bytea LIMIT $2";
const RENEW_PEOPLE: &str = "
    UPDATE person AS p SET totp_secret = g.active, totp_offered = g.offered
    FROM UNNEST($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[])
        AS g (id, was_active, was_offered, active, offered)
    WHERE p.id = g.id AND p.totp_secret IS NOT DISTINCT FROM g.was_active
        AND p.totp_offered IS NOT DISTINCT FROM g.was_offered";

const LIST_PLANS_TO_RENEW: &str = "
    SELECT version, content FROM catalogue
    WHERE kind = 7 AND left(content, length($1::text)) <> $1::text LIMIT $2";
/// A row that another node has changed meanwhile is skipped.
const RENEW_PLAN: &str =
    "UPDATE catalogue SET content = $3 WHERE kind = 7 AND version = $1 AND content = $2";

/// Maximum number of attempts: many nodes may start at once.
const MAX_ATTEMPTS: u32 = 100;

/// Why secrets could not be encrypted.
enum Failed {
    Database(Error),
    Open(OpenError),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl From<OpenError> for Failed {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

/// Finds or sets the database's key, and encrypts every value that is not encrypted with it. Returns the number of
/// rows.
pub(super) async fn prepare(
    client: &impl GenericClient,
    database: &str,
    options: &Options,
    encrypting: Encrypting,
) -> Result<(KeyRing, u64), OpenError> {
    let mut attempts = 1;
    loop {
        match prepare_once(client, database, options, encrypting).await {
            Ok(prepared) => return Ok(prepared),
            Err(Failed::Database(error)) if is_retryable(&error) && attempts < MAX_ATTEMPTS => {
                attempts += 1;
            }
            Err(Failed::Database(error)) => {
                return Err(OpenError::Encrypt {
                    database: database.to_owned(),
                    source: Box::new(error),
                });
            }
            Err(Failed::Open(error)) => return Err(error),
        }
    }
}

async fn prepare_once(
    client: &impl GenericClient,
    database: &str,
    options: &Options,
    encrypting: Encrypting,
) -> Result<(KeyRing, u64), Failed> {
    let (keys, keep) = (&options.keys, options.keep_key);
    let key_row = match find(client).await? {
        Some(key_row) => key_row,
        None => store_key_id(client, keys, keep).await?,
    };
    let mut active = key_row.check(keys, database)?;
    let wanted = keys.newest();
    let is_rotated = encrypting == Encrypting::Newest && active.active() == wanted;
    if encrypting == Encrypting::Newest && !is_rotated {
        active = active.with_active(wanted).expect("it is among them");
        let key_row = KeyRow::from_keys(&active, KeyRetention::Elsewhere);
        let values: super::Values<'_> = &[&key_row.key_id, &key_row.proof];
        client.execute(SET_NEWEST_KEY, values).await?;
    }
    let renewed = renew_accounts(client, &active).await?
        + renew_people(client, &active).await?
        + renew_plans(client, &active).await?;
    let id = active.active().to_string();
    match keep {
        KeyRetention::InDatabase if key_row.stored_key.is_none() => {
            let key = active.active_key().reveal();
            client.execute(STORE_KEY, &[&id, &key]).await?;
        }
        KeyRetention::Elsewhere if is_rotated && renewed == 0 => {
            client
                .execute(DELETE_STORED_KEY, &[&id, &active.head()])
                .await?;
        }
        _ => {}
    }
    Ok((active, renewed))
}

async fn find(client: &impl GenericClient) -> Result<Option<KeyRow>, Error> {
    let row = client.query_opt(sql::FIND_KEY.postgres, &[]).await?;
    row.map(|row| {
        Ok(KeyRow {
            key_id: row.try_get(0)?,
            proof: row.try_get(1)?,
            stored_key: row.try_get(2)?,
        })
    })
    .transpose()
}

async fn store_key_id(
    client: &impl GenericClient,
    keys: &KeyRing,
    keep: KeyRetention,
) -> Result<KeyRow, Error> {
    let key_row = KeyRow::from_keys(keys, keep);
    let values: super::Values<'_> = &[&key_row.key_id, &key_row.proof, &key_row.stored_key];
    client.execute(STORE_KEY_ID, values).await?;
    Ok(find(client).await?.unwrap_or(key_row))
}

async fn renew_plans(client: &impl GenericClient, keys: &KeyRing) -> Result<u64, Failed> {
    let (head, batch) = (keys.text_head(), i64::from(BATCH));
    let mut renewed = 0;
    loop {
        let found = client.query(LIST_PLANS_TO_RENEW, &[&head, &batch]).await?;
        if found.is_empty() {
            return Ok(renewed);
        }
        for row in &found {
            let version: i64 = row.try_get(0)?;
            let old: &str = row.try_get(1)?;
            let context = plan_context(u32::try_from(version).unwrap_or_default());
            let new = renew_text(keys, &context, old)?;
            let values: super::Values<'_> = &[&version, &old, &new];
            renewed += client.execute(RENEW_PLAN, values).await?;
        }
    }
}

async fn renew_accounts(client: &impl GenericClient, keys: &KeyRing) -> Result<u64, Failed> {
    let (head, batch) = (keys.text_head(), i64::from(BATCH));
    let mut renewed = 0;
    loop {
        let found = client
            .query(LIST_ACCOUNTS_TO_RENEW, &[&head, &batch])
            .await?;
        if found.is_empty() {
            return Ok(renewed);
        }
        let (mut ids, mut were_newest, mut were_former) = (Vec::new(), Vec::new(), Vec::new());
        let (mut newest, mut former) = (Vec::new(), Vec::new());
        for row in &found {
            let context = secret_context(row.try_get(1)?);
            let was_newest: &str = row.try_get(2)?;
            let was_former: Option<&str> = row.try_get(3)?;
            ids.push(row.try_get::<_, i64>(0)?);
            newest.push(renew_text(keys, &context, was_newest)?);
            let again = was_former.map(|text| renew_text(keys, &context, text));
            former.push(again.transpose()?);
            were_newest.push(was_newest);
            were_former.push(was_former);
        }
        let values: super::Values<'_> = &[&ids, &were_newest, &were_former, &newest, &former];
        renewed += client.execute(RENEW_ACCOUNTS, values).await?;
    }
}

async fn renew_people(client: &impl GenericClient, keys: &KeyRing) -> Result<u64, Failed> {
    let (head, batch) = (keys.head(), i64::from(BATCH));
    let mut renewed = 0;
    loop {
        let found = client.query(LIST_PEOPLE_TO_RENEW, &[&head, &batch]).await?;
        if found.is_empty() {
            return Ok(renewed);
        }
        let (mut ids, mut were_active, mut were_offered) = (Vec::new(), Vec::new(), Vec::new());
        let (mut active, mut offered) = (Vec::new(), Vec::new());
        for row in &found {
            let id: i64 = row.try_get(0)?;
            let context = totp_context(id);
            let again = |value: Option<&[u8]>| {
                let again = value.map(|value| renew(keys, &context, value));
                again.transpose()
            };
            let was_active: Option<&[u8]> = row.try_get(1)?;
            let was_offered: Option<&[u8]> = row.try_get(2)?;
            ids.push(id);
            active.push(again(was_active)?);
            offered.push(again(was_offered)?);
            were_active.push(was_active);
            were_offered.push(was_offered);
        }
        let values: super::Values<'_> = &[&ids, &were_active, &were_offered, &active, &offered];
        renewed += client.execute(RENEW_PEOPLE, values).await?;
    }
}
