//! The port for people, invitations and sessions.

use async_trait::async_trait;
use domain::ids::{AccountId, PersonId};
use domain::person::{Email, PasswordHash, SignedIn};
use domain::ports::{
    Credentials, Invitation, NewPerson, NewSession, PeopleStore, Purpose, StoreError,
};
use domain::{Timestamp, TokenHash};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::SqliteStore;
use crate::rows::micros;
use crate::rows::people::{InvitationColumns, PersonColumns, person_id, signed_in};

const INVITE: &str = "
    INSERT INTO invitation (email, hash, person_id, role, account_id, expires_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (email) DO UPDATE SET hash = excluded.hash, person_id = excluded.person_id, role = excluded.role,
        account_id = excluded.account_id, expires_us = excluded.expires_us";
const FIND_INVITATION: &str =
    "SELECT email, person_id, role, account_id FROM invitation WHERE hash = ?1 AND expires_us > ?2";
const USE_INVITATION: &str =
    "DELETE FROM invitation WHERE hash = ?1 RETURNING email, person_id, role, account_id";
const CREATE_PERSON: &str = "
    INSERT INTO person (email, password, role, account_id, created_us) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (email) DO NOTHING RETURNING id";
const SET_PASSWORD: &str = "UPDATE person SET password = ?2 WHERE id = ?1";
const FIND_CREDENTIALS: &str =
    "SELECT id, email, role, account_id, password FROM person WHERE email = ?1";

const CREATE_LINK: &str =
    "INSERT INTO sign_in_link (hash, account_id, expires_us) VALUES (?1, ?2, ?3)";
const USE_LINK: &str = "DELETE FROM sign_in_link WHERE hash = ?1 RETURNING account_id";
const OPEN_SESSION: &str =
    "INSERT INTO session (hash, account_id, person_id, expires_us) VALUES (?1, ?2, ?3, ?4)";
const FIND_SESSION: &str = "
    SELECT person.id, person.email, person.role, person.account_id, session.account_id
    FROM session LEFT JOIN person ON person.id = session.person_id
    WHERE session.hash = ?1 AND session.expires_us > ?2";
const END_SESSION: &str = "DELETE FROM session WHERE hash = ?1";
const END_SESSIONS: &str = "DELETE FROM session WHERE person_id = ?1";
const SWEEP: [&str; 3] = [
    "DELETE FROM sign_in_link WHERE expires_us <= ?1",
    "DELETE FROM invitation WHERE expires_us <= ?1",
    "DELETE FROM session WHERE expires_us <= ?1",
];

/// Forgets what is expired. It goes whenever somebody signs in: that is rare.
fn sweep(db: &Connection, now_us: i64) -> Result<()> {
    for sql in SWEEP {
        db.prepare_cached(sql)?.execute([now_us])?;
    }
    Ok(())
}

/// Whose a session is to be.
#[derive(Clone, Copy)]
enum Owner {
    Link(i64),
    Person(PersonId),
}

fn open_session(db: &Connection, owner: Owner, session: &NewSession) -> Result<()> {
    let (account, person) = match owner {
        Owner::Link(account) => (Some(account), None),
        Owner::Person(person) => (None, Some(person.as_i64())),
    };
    let (hash, expires_us) = (session.hash.as_bytes(), micros(session.expires));
    db.prepare_cached(OPEN_SESSION)?
        .execute(params![hash, account, person, expires_us])
        .map(drop)
}

fn end_session(db: &Connection, session: &TokenHash) -> Result<()> {
    db.prepare_cached(END_SESSION)?
        .execute([session.as_bytes()])
        .map(drop)
}

fn invite(
    db: &Connection,
    invitation: &Invitation,
    link: &TokenHash,
    expires_us: i64,
) -> Result<()> {
    let columns = InvitationColumns::of(invitation);
    let values = params![
        columns.email,
        link.as_bytes(),
        columns.person_id,
        columns.role,
        columns.account_id,
        expires_us,
    ];
    db.prepare_cached(INVITE)?.execute(values).map(drop)
}

fn invitation(row: &Row<'_>) -> Result<Invitation> {
    let columns = InvitationColumns {
        email: row.get(0)?,
        person_id: row.get(1)?,
        role: row.get(2)?,
        account_id: row.get(3)?,
    };
    Ok(columns.invitation()?)
}

fn find_invitation(db: &Connection, link: &TokenHash, now_us: i64) -> Result<Option<Invitation>> {
    db.prepare_cached(FIND_INVITATION)?
        .query_row(params![link.as_bytes(), now_us], invitation)
        .optional()
}

fn redeem_invitation(
    db: &Connection,
    link: &TokenHash,
    password: &PasswordHash,
    session: &NewSession,
    now: Timestamp,
) -> Result<Option<PersonId>> {
    sweep(db, micros(now))?;
    let mut used = db.prepare_cached(USE_INVITATION)?;
    let used = used.query_row([link.as_bytes()], invitation).optional()?;
    let Some(used) = used else { return Ok(None) };
    let person = match used.purpose {
        Purpose::NewPassword(person) => {
            let values = params![person.as_i64(), password.as_str()];
            db.prepare_cached(SET_PASSWORD)?.execute(values)?;
            db.prepare_cached(END_SESSIONS)?
                .execute([person.as_i64()])?;
            Some(person)
        }
        Purpose::Join { role, account } => {
            let new = NewPerson {
                email: used.email,
                role,
                account,
                password: password.clone(),
                created_at: now,
            };
            insert_person(db, &new)?
        }
    };
    if let Some(person) = person {
        open_session(db, Owner::Person(person), session)?;
    }
    Ok(person)
}

fn insert_person(db: &Connection, new: &NewPerson) -> Result<Option<PersonId>> {
    let values = params![
        new.email.as_str(),
        new.password.as_str(),
        new.role.name(),
        new.account.map(AccountId::as_i64),
        micros(new.created_at),
    ];
    let created = db
        .prepare_cached(CREATE_PERSON)?
        .query_row(values, |row| row.get(0))
        .optional()?;
    Ok(created.map(person_id).transpose()?)
}

fn create_person(
    db: &Connection,
    new: &NewPerson,
    session: &NewSession,
    replaced: &TokenHash,
) -> Result<Option<PersonId>> {
    let person = insert_person(db, new)?;
    if let Some(person) = person {
        end_session(db, replaced)?;
        open_session(db, Owner::Person(person), session)?;
    }
    Ok(person)
}

fn find_credentials(db: &Connection, email: &Email) -> Result<Option<Credentials>> {
    let read = |row: &Row<'_>| Ok(person(row)?.credentials(row.get(4)?)?);
    db.prepare_cached(FIND_CREDENTIALS)?
        .query_row([email.as_str()], read)
        .optional()
}

fn person(row: &Row<'_>) -> Result<PersonColumns> {
    Ok(PersonColumns {
        id: row.get(0)?,
        email: row.get(1)?,
        role: row.get(2)?,
        account_id: row.get(3)?,
    })
}

/// Puts a session in the place of a link.
fn redeem_link(
    db: &Connection,
    link: &TokenHash,
    session: &NewSession,
    now_us: i64,
) -> Result<bool> {
    sweep(db, now_us)?;
    let mut use_link = db.prepare_cached(USE_LINK)?;
    let account = use_link
        .query_row([link.as_bytes()], |row| row.get(0))
        .optional()?;
    let Some(account) = account else {
        return Ok(false);
    };
    open_session(db, Owner::Link(account), session)?;
    Ok(true)
}

fn find_session(db: &Connection, session: &TokenHash, now_us: i64) -> Result<Option<SignedIn>> {
    let read = |row: &Row<'_>| {
        let is_person = row.get::<_, Option<i64>>(0)?.is_some();
        let person = is_person.then(|| person(row)).transpose()?;
        Ok(signed_in(row.get(4)?, person)?)
    };
    db.prepare_cached(FIND_SESSION)?
        .query_row(params![session.as_bytes(), now_us], read)
        .optional()
}

#[async_trait]
impl PeopleStore for SqliteStore {
    async fn create_invitation(
        &self,
        invitation: &Invitation,
        link: &TokenHash,
        expires: Timestamp,
    ) -> Result<(), StoreError> {
        let (invitation, link) = (invitation.clone(), *link);
        self.write("create an invitation", move |db| {
            invite(db, &invitation, &link, micros(expires))
        })
        .await
    }

    async fn find_invitation(
        &self,
        link: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<Invitation>, StoreError> {
        let link = *link;
        self.read("find an invitation", move |db| {
            find_invitation(db, &link, micros(now))
        })
        .await
    }

    async fn redeem_invitation(
        &self,
        link: &TokenHash,
        password: &PasswordHash,
        session: &NewSession,
        now: Timestamp,
    ) -> Result<Option<PersonId>, StoreError> {
        let (link, password, session) = (*link, password.clone(), *session);
        self.write("accept an invitation", move |db| {
            redeem_invitation(db, &link, &password, &session, now)
        })
        .await
    }

    async fn create_person(
        &self,
        person: &NewPerson,
        session: &NewSession,
        replaced: &TokenHash,
    ) -> Result<Option<PersonId>, StoreError> {
        let (person, session, replaced) = (person.clone(), *session, *replaced);
        self.write("create a person", move |db| {
            create_person(db, &person, &session, &replaced)
        })
        .await
    }

    async fn find_credentials(&self, email: &Email) -> Result<Option<Credentials>, StoreError> {
        let email = email.clone();
        self.read("find a person", move |db| find_credentials(db, &email))
            .await
    }

    async fn open_session(
        &self,
        person: PersonId,
        session: &NewSession,
        replaced: Option<&TokenHash>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (session, replaced) = (*session, replaced.copied());
        self.write("sign in", move |db| {
            sweep(db, micros(now))?;
            if let Some(replaced) = replaced {
                end_session(db, &replaced)?;
            }
            open_session(db, Owner::Person(person), &session)
        })
        .await
    }

    async fn create_sign_in_link(
        &self,
        link: &TokenHash,
        account: AccountId,
        expires: Timestamp,
    ) -> Result<(), StoreError> {
        let link = *link;
        self.write("create a sign-in link", move |db| {
            let values = params![link.as_bytes(), account.as_i64(), micros(expires)];
            db.prepare_cached(CREATE_LINK)?.execute(values).map(drop)
        })
        .await
    }

    async fn redeem_sign_in_link(
        &self,
        link: &TokenHash,
        session: &NewSession,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (link, session) = (*link, *session);
        self.write("sign in", move |db| {
            redeem_link(db, &link, &session, micros(now))
        })
        .await
    }

    async fn find_session(
        &self,
        session: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<SignedIn>, StoreError> {
        let session = *session;
        self.read("find a session", move |db| {
            find_session(db, &session, micros(now))
        })
        .await
    }

    async fn end_session(&self, session: &TokenHash) -> Result<(), StoreError> {
        let session = *session;
        self.write("end a session", move |db| end_session(db, &session))
            .await
    }
}
