//! The port for people, invitations and sessions.

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::ids::{AccountId, PersonId};
use domain::person::{Email, PasswordHash, SignedIn};
use domain::ports::{
    Credentials, Invitation, NewPerson, NewSession, PeopleStore, Purpose, StoreError,
};
use domain::{Timestamp, TokenHash};
use tokio_postgres::Row;

use super::attempt::{self, Attempt};
use super::fault::Fault;
use super::{PostgresStore, Values, column};
use crate::rows::people::{InvitationColumns, PersonColumns, person_id, signed_in};
use crate::rows::{Corrupt, micros};

const INVITE: &str = "
    INSERT INTO invitation (email, hash, person_id, role, account_id, expires_us) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (email) DO UPDATE SET hash = excluded.hash, person_id = excluded.person_id, role = excluded.role,
        account_id = excluded.account_id, expires_us = excluded.expires_us";
const FIND_INVITATION: &str =
    "SELECT email, person_id, role, account_id FROM invitation WHERE hash = $1 AND expires_us > $2";
const USE_INVITATION: &str =
    "DELETE FROM invitation WHERE hash = $1 RETURNING email, person_id, role, account_id";
const CREATE_PERSON: &str = "
    INSERT INTO person (email, password, role, account_id, created_us) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (email) DO NOTHING RETURNING id";
const SET_PASSWORD: &str = "
    WITH ended AS (DELETE FROM session WHERE person_id = $1)
    UPDATE person SET password = $2 WHERE id = $1";
const FIND_CREDENTIALS: &str =
    "SELECT id, email, role, account_id, password FROM person WHERE email = $1";

const CREATE_LINK: &str =
    "INSERT INTO sign_in_link (hash, account_id, expires_us) VALUES ($1, $2, $3)";
/// What is expired goes whenever somebody signs in: that is rare.
const REDEEM_LINK: &str = "
    WITH used AS (
        DELETE FROM sign_in_link WHERE hash = $1 OR expires_us <= $4 RETURNING hash, account_id, expires_us
    ), swept AS (
        DELETE FROM session WHERE expires_us <= $4
    )
    INSERT INTO session (hash, account_id, expires_us)
    SELECT $2::bytea, account_id, $3::bigint FROM used WHERE hash = $1 AND expires_us > $4
    RETURNING account_id";
const OPEN_SESSION: &str = "
    WITH replaced AS (DELETE FROM session WHERE hash = $4)
    INSERT INTO session (hash, person_id, expires_us) VALUES ($1, $2, $3)";
const SWEEP: &str = "
    WITH invitations AS (DELETE FROM invitation WHERE expires_us <= $1),
        links AS (DELETE FROM sign_in_link WHERE expires_us <= $1)
    DELETE FROM session WHERE expires_us <= $1";
const FIND_SESSION: &str = "
    SELECT person.id, person.email, person.role, person.account_id, session.account_id
    FROM session LEFT JOIN person ON person.id = session.person_id
    WHERE session.hash = $1 AND session.expires_us > $2";
const END_SESSION: &str = "DELETE FROM session WHERE hash = $1";

/// Uses up an invitation.
struct Redemption<'a> {
    link: &'a TokenHash,
    password: &'a PasswordHash,
    session: &'a NewSession,
    now: Timestamp,
}

impl Attempt for Redemption<'_> {
    type Output = Option<PersonId>;

    async fn run(&self, client: &mut Object) -> Result<Option<PersonId>, Fault> {
        let transaction = client.transaction().await?;
        run(&transaction, SWEEP, &[&micros(self.now)]).await?;
        let values: Values<'_> = &[&bytes(self.link)];
        let used = run(&transaction, USE_INVITATION, values).await?;
        let used = used.first().map(invitation).transpose()?;
        let person = match used {
            None => None,
            Some(used) => self.set_password(&transaction, used).await?,
        };
        if let Some(person) = person {
            open_session(&transaction, person, self.session, None).await?;
        }
        transaction.commit().await?;
        Ok(person)
    }
}

impl Redemption<'_> {
    async fn set_password(
        &self,
        transaction: &Transaction<'_>,
        used: Invitation,
    ) -> Result<Option<PersonId>, Fault> {
        match used.purpose {
            Purpose::NewPassword(person) => {
                let values: Values<'_> = &[&person.as_i64(), &self.password.as_str()];
                run(transaction, SET_PASSWORD, values).await?;
                Ok(Some(person))
            }
            Purpose::Join { role, account } => {
                let new = NewPerson {
                    email: used.email,
                    role,
                    account,
                    password: self.password.clone(),
                    created_at: self.now,
                };
                insert_person(transaction, &new).await
            }
        }
    }
}

/// Creates a person who is signed in already.
struct Creation<'a> {
    person: &'a NewPerson,
    session: &'a NewSession,
    replaced: &'a TokenHash,
}

impl Attempt for Creation<'_> {
    type Output = Option<PersonId>;

    async fn run(&self, client: &mut Object) -> Result<Option<PersonId>, Fault> {
        let transaction = client.transaction().await?;
        let person = insert_person(&transaction, self.person).await?;
        if let Some(person) = person {
            open_session(&transaction, person, self.session, Some(self.replaced)).await?;
        }
        transaction.commit().await?;
        Ok(person)
    }
}

/// Signs a person in.
struct Opening<'a> {
    person: PersonId,
    session: &'a NewSession,
    replaced: Option<&'a TokenHash>,
    now: Timestamp,
}

impl Attempt for Opening<'_> {
    type Output = ();

    async fn run(&self, client: &mut Object) -> Result<(), Fault> {
        let transaction = client.transaction().await?;
        run(&transaction, SWEEP, &[&micros(self.now)]).await?;
        open_session(&transaction, self.person, self.session, self.replaced).await?;
        transaction.commit().await?;
        Ok(())
    }
}

async fn insert_person(
    transaction: &Transaction<'_>,
    new: &NewPerson,
) -> Result<Option<PersonId>, Fault> {
    let (email, password, role) = (new.email.as_str(), new.password.as_str(), new.role.name());
    let (account, created_us) = (new.account.map(AccountId::as_i64), micros(new.created_at));
    let values: Values<'_> = &[&email, &password, &role, &account, &created_us];
    let created = run(transaction, CREATE_PERSON, values).await?;
    let read = |row: &Row| person_id(column(row, 0)?);
    Ok(created.first().map(read).transpose()?)
}

async fn open_session(
    transaction: &Transaction<'_>,
    person: PersonId,
    session: &NewSession,
    replaced: Option<&TokenHash>,
) -> Result<(), Fault> {
    let (person, expires_us) = (person.as_i64(), micros(session.expires));
    let values: Values<'_> = &[
        &bytes(&session.hash),
        &person,
        &expires_us,
        &replaced.map(bytes),
    ];
    run(transaction, OPEN_SESSION, values).await.map(drop)
}

async fn run(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: Values<'_>,
) -> Result<Vec<Row>, Fault> {
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.query(&statement, values).await?)
}

fn bytes(hash: &TokenHash) -> &[u8] {
    hash.as_bytes()
}

#[async_trait]
impl PeopleStore for PostgresStore {
    async fn create_invitation(
        &self,
        invitation: &Invitation,
        link: &TokenHash,
        expires: Timestamp,
    ) -> Result<(), StoreError> {
        let columns = InvitationColumns::of(invitation);
        let values: Values<'_> = &[
            &columns.email,
            &bytes(link),
            &columns.person_id,
            &columns.role,
            &columns.account_id,
            &micros(expires),
        ];
        self.query("create an invitation", INVITE, values)
            .await
            .map(drop)
    }

    async fn find_invitation(
        &self,
        link: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<Invitation>, StoreError> {
        let values: Values<'_> = &[&bytes(link), &micros(now)];
        self.find("find an invitation", FIND_INVITATION, values, invitation)
            .await
    }

    async fn redeem_invitation(
        &self,
        link: &TokenHash,
        password: &PasswordHash,
        session: &NewSession,
        now: Timestamp,
    ) -> Result<Option<PersonId>, StoreError> {
        let redemption = Redemption {
            link,
            password,
            session,
            now,
        };
        attempt::run(&self.pool, "accept an invitation", &redemption).await
    }

    async fn create_person(
        &self,
        person: &NewPerson,
        session: &NewSession,
        replaced: &TokenHash,
    ) -> Result<Option<PersonId>, StoreError> {
        let creation = Creation {
            person,
            session,
            replaced,
        };
        attempt::run(&self.pool, "create a person", &creation).await
    }

    async fn find_credentials(&self, email: &Email) -> Result<Option<Credentials>, StoreError> {
        let read = |row: &Row| person(row)?.credentials(column(row, 4)?);
        self.find("find a person", FIND_CREDENTIALS, &[&email.as_str()], read)
            .await
    }

    async fn open_session(
        &self,
        person: PersonId,
        session: &NewSession,
        replaced: Option<&TokenHash>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let opening = Opening {
            person,
            session,
            replaced,
            now,
        };
        attempt::run(&self.pool, "sign in", &opening).await
    }

    async fn create_sign_in_link(
        &self,
        link: &TokenHash,
        account: AccountId,
        expires: Timestamp,
    ) -> Result<(), StoreError> {
        let values: Values<'_> = &[&bytes(link), &account.as_i64(), &micros(expires)];
        self.query("create a sign-in link", CREATE_LINK, values)
            .await
            .map(drop)
    }

    async fn redeem_sign_in_link(
        &self,
        link: &TokenHash,
        session: &NewSession,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (expires_us, now_us) = (micros(session.expires), micros(now));
        let values: Values<'_> = &[&bytes(link), &bytes(&session.hash), &expires_us, &now_us];
        let opened = self.query("sign in", REDEEM_LINK, values).await?;
        Ok(!opened.is_empty())
    }

    async fn find_session(
        &self,
        session: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<SignedIn>, StoreError> {
        let values: Values<'_> = &[&bytes(session), &micros(now)];
        let read = |row: &Row| {
            let is_person = column::<Option<i64>>(row, 0)?.is_some();
            let person = is_person.then(|| person(row)).transpose()?;
            signed_in(column(row, 4)?, person)
        };
        self.find("find a session", FIND_SESSION, values, read)
            .await
    }

    async fn end_session(&self, session: &TokenHash) -> Result<(), StoreError> {
        self.query("end a session", END_SESSION, &[&bytes(session)])
            .await
            .map(drop)
    }
}

fn invitation(row: &Row) -> Result<Invitation, Corrupt> {
    let columns = InvitationColumns {
        email: column(row, 0)?,
        person_id: column(row, 1)?,
        role: column(row, 2)?,
        account_id: column(row, 3)?,
    };
    columns.invitation()
}

fn person(row: &Row) -> Result<PersonColumns, Corrupt> {
    Ok(PersonColumns {
        id: column(row, 0)?,
        email: column(row, 1)?,
        role: column(row, 2)?,
        account_id: column(row, 3)?,
    })
}
