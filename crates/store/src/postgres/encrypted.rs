//! Encrypts everything that is not encrypted with the current key of the database.

use deadpool_postgres::GenericClient;
use domain::KeyRing;
use tokio_postgres::Error;

use super::fault::asks_for_repetition;
use crate::encrypted::{BATCH, Encrypting, NamedKey, renew, renew_text, secret_place, totp_place};
use crate::sql::encrypted as sql;
use crate::{KeyRetention, OpenError, Options};

/// When several nodes start at once, one stores the name of its key and the others find it.
const NAME_KEY: &str = "
    INSERT INTO service_key (one, key_id, proof, kept) VALUES (1, $1, $2, $3) ON CONFLICT (one) DO NOTHING";
const NAME_NEWEST: &str = "UPDATE service_key SET key_id = $1, proof = $2";
const KEEP_KEY: &str = "UPDATE service_key SET kept = $2 WHERE key_id = $1 AND kept IS NULL";
/// Deletes a stored key, unless the text of a code still needs it.
const FORGET_KEPT: &str = "
    UPDATE service_key SET kept = NULL WHERE key_id = $1 AND kept IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM code_text WHERE substring(text FROM 1 FOR length($2::bytea)) <> $2::bytea)";
const PLAIN_ACCOUNTS: &str = "
    SELECT id, name, callback_secret, former_secret FROM account
    WHERE left(callback_secret, length($1::text)) <> $1::text
        OR left(former_secret, length($1::text)) <> $1::text LIMIT $2";
/// What another node has changed since stays as that left it.
const RENEW_ACCOUNTS: &str = "
    UPDATE account AS a SET callback_secret = g.newest, former_secret = g.former
    FROM UNNEST($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[])
        AS g (id, was_newest, was_former, newest, former)
    WHERE a.id = g.id AND a.callback_secret = g.was_newest AND a.former_secret IS NOT DISTINCT FROM g.was_former";
const PLAIN_PEOPLE: &str = "
    SELECT id, totp_secret, totp_offered FROM person
    WHERE substring(totp_secret FROM 1 FOR length($1::bytea)) <> $1::bytea
        OR substring(totp_offered FROM 1 FOR length($1::bytea)) <> $1::bytea LIMIT $2";
const RENEW_PEOPLE: &str = "
    UPDATE person AS p SET totp_secret = g.active, totp_offered = g.offered
    FROM UNNEST($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[])
        AS g (id, was_active, was_offered, active, offered)
    WHERE p.id = g.id AND p.totp_secret IS NOT DISTINCT FROM g.was_active
        AND p.totp_offered IS NOT DISTINCT FROM g.was_offered";

/// How often the database may ask for a repetition: many nodes may start at once.
const TRIES: u32 = 100;

/// What keeps secrets from being encrypted.
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

/// Finds the key that encrypts, or names one, and encrypts again what it does not encrypt yet. Says how many rows.
pub(super) async fn prepare(
    client: &impl GenericClient,
    database: &str,
    options: &Options,
    encrypting: Encrypting,
) -> Result<(KeyRing, u64), OpenError> {
    let mut tries = 1;
    loop {
        match prepare_once(client, database, options, encrypting).await {
            Ok(prepared) => return Ok(prepared),
            Err(Failed::Database(error)) if asks_for_repetition(&error) && tries < TRIES => {
                tries += 1;
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
    let named = match find(client).await? {
        Some(named) => named,
        None => name(client, keys, keep).await?,
    };
    let mut active = named.check(keys, database)?;
    let wanted = keys.newest();
    let is_over = encrypting == Encrypting::Newest && active.active() == wanted;
    if encrypting == Encrypting::Newest && !is_over {
        active = active.with_active(wanted).expect("it is among them");
        let named = NamedKey::from_keys(&active, KeyRetention::Elsewhere);
        let values: super::Values<'_> = &[&named.key_id, &named.proof];
        client.execute(NAME_NEWEST, values).await?;
    }
    let renewed = renew_accounts(client, &active).await? + renew_people(client, &active).await?;
    let id = active.active().to_string();
    match keep {
        KeyRetention::InDatabase if named.kept.is_none() => {
            let key = active.active_key().reveal();
            client.execute(KEEP_KEY, &[&id, &key]).await?;
        }
        KeyRetention::Elsewhere if is_over && renewed == 0 => {
            client.execute(FORGET_KEPT, &[&id, &active.head()]).await?;
        }
        _ => {}
    }
    Ok((active, renewed))
}

async fn find(client: &impl GenericClient) -> Result<Option<NamedKey>, Error> {
    let row = client.query_opt(sql::FIND_KEY.postgres, &[]).await?;
    row.map(|row| {
        Ok(NamedKey {
            key_id: row.try_get(0)?,
            proof: row.try_get(1)?,
            kept: row.try_get(2)?,
        })
    })
    .transpose()
}

async fn name(
    client: &impl GenericClient,
    keys: &KeyRing,
    keep: KeyRetention,
) -> Result<NamedKey, Error> {
    let named = NamedKey::from_keys(keys, keep);
    let values: super::Values<'_> = &[&named.key_id, &named.proof, &named.kept];
    client.execute(NAME_KEY, values).await?;
    Ok(find(client).await?.unwrap_or(named))
}

async fn renew_accounts(client: &impl GenericClient, keys: &KeyRing) -> Result<u64, Failed> {
    let (head, batch) = (keys.text_head(), i64::from(BATCH));
    let mut renewed = 0;
    loop {
        let found = client.query(PLAIN_ACCOUNTS, &[&head, &batch]).await?;
        if found.is_empty() {
            return Ok(renewed);
        }
        let (mut ids, mut were_newest, mut were_former) = (Vec::new(), Vec::new(), Vec::new());
        let (mut newest, mut former) = (Vec::new(), Vec::new());
        for row in &found {
            let place = secret_place(row.try_get(1)?);
            let was_newest: &str = row.try_get(2)?;
            let was_former: Option<&str> = row.try_get(3)?;
            ids.push(row.try_get::<_, i64>(0)?);
            newest.push(renew_text(keys, &place, was_newest)?);
            let again = was_former.map(|text| renew_text(keys, &place, text));
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
        let found = client.query(PLAIN_PEOPLE, &[&head, &batch]).await?;
        if found.is_empty() {
            return Ok(renewed);
        }
        let (mut ids, mut were_active, mut were_offered) = (Vec::new(), Vec::new(), Vec::new());
        let (mut active, mut offered) = (Vec::new(), Vec::new());
        for row in &found {
            let id: i64 = row.try_get(0)?;
            let place = totp_place(id);
            let again = |value: Option<&[u8]>| {
                let again = value.map(|value| renew(keys, &place, value));
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
