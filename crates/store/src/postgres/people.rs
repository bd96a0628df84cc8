//! The port for people and invitations.

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::ids::{AccountId, PersonId};
use domain::person::{Email, PasswordHash, Role};
use domain::ports::{
    Credentials, Invitation, InvitationRecord, NewPerson, NewSession, PeopleStore, PersonChanged,
    PersonRecord, Purpose, Redeemed, StoreError,
};
use domain::{Timestamp, TokenHash};
use tokio_postgres::Row;

use super::attempt::{self, Attempt};
use super::connected::end_grants_of;
use super::fault::Fault;
use super::second_factor::open_half;
use super::sessions::{SWEEP, open_session};
use super::{PostgresStore, Values, column};
use crate::rows::oauth::Ended;
use crate::rows::people::{InvitationColumns, PersonColumns, person_id};
use crate::rows::{Corrupt, micros};

const INVITE: &str = "
    INSERT INTO invitation (email, hash, person_id, role, account_id, expires_us) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (email, coalesce(account_id, 0), (person_id IS NOT NULL)) DO UPDATE SET hash = excluded.hash,
        person_id = excluded.person_id, role = excluded.role, expires_us = excluded.expires_us";
const FIND_INVITATION: &str =
    "SELECT email, person_id, role, account_id FROM invitation WHERE hash = $1 AND expires_us > $2";
const LIST_INVITATIONS: &str = "
    SELECT invitation.email, invitation.person_id, invitation.role, invitation.account_id,
        coalesce(invitation.account_id, person.account_id), invitation.expires_us
    FROM invitation LEFT JOIN person ON person.id = invitation.person_id
    WHERE invitation.expires_us > $1
        AND ($2::bigint IS NULL OR coalesce(invitation.account_id, person.account_id) = $2)
    ORDER BY invitation.email LIMIT $3";
const WITHDRAW_INVITATIONS: &str = "
    DELETE FROM invitation WHERE email = $1 AND ($2::bigint IS NULL OR account_id = $2
        OR (account_id IS NULL AND person_id IN (SELECT id FROM person WHERE account_id = $2)))
    RETURNING 1";
const USE_INVITATION: &str =
    "DELETE FROM invitation WHERE hash = $1 RETURNING email, person_id, role, account_id";
const CREATE_PERSON: &str = "
    INSERT INTO person (email, password, role, account_id, created_us) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (email) DO NOTHING RETURNING id";
const SET_PASSWORD: &str = "
    WITH ended AS (DELETE FROM session WHERE person_id = $1),
        halves AS (DELETE FROM half_open WHERE person_id = $1)
    UPDATE person SET password = $2 WHERE id = $1 RETURNING totp_secret IS NOT NULL";
const FIND_CREDENTIALS: &str = "
    SELECT id, email, role, account_id, password, totp_secret IS NOT NULL FROM person WHERE email = $1";

/// A person as lists show them.
macro_rules! person {
    ($which:literal) => {
        concat!(
            "SELECT id, email, role, account_id, created_us, seen_us, totp_secret IS NOT NULL FROM person ",
            $which
        )
    };
}

const FIND_PERSON: &str = person!("WHERE id = $1");
const LIST_PEOPLE: &str = person!("WHERE id > $1 ORDER BY id LIMIT $2");
/// Nobody is in it twice: the account in a person's own row is none of their further ones.
const LIST_PEOPLE_OF_ACCOUNT: &str = "
    SELECT id, email, role, account_id, created_us, seen_us, totp_secret IS NOT NULL FROM person
    WHERE id > $1 AND account_id = $3
    UNION ALL
    SELECT person.id, email, CASE person.role WHEN 'operator' THEN person.role ELSE membership.role END,
        membership.account_id, membership.created_us, membership.seen_us, totp_secret IS NOT NULL
    FROM membership JOIN person ON person.id = membership.person_id
    WHERE membership.person_id > $1 AND membership.account_id = $3
    ORDER BY 1 LIMIT $2";

/// Whoever takes an operator away waits for the others who do.
const OPERATORS: &str = "SELECT id FROM person WHERE role = 'operator' ORDER BY id FOR UPDATE";
/// Nobody who is removed or changed grants anything in that moment.
pub(super) const LOCK_PERSON: &str = "SELECT id FROM person WHERE id = $1 FOR UPDATE";
const SET_ROLE: &str = "UPDATE person SET role = $2, account_id = $3 WHERE id = $1 RETURNING 1";
/// The account in a person's own row is none of their further ones.
const END_SAME_MEMBERSHIP: &str = "
    DELETE FROM membership
    WHERE person_id = $1 AND account_id = (SELECT account_id FROM person WHERE id = $1)";
const END_SESSIONS: &str = "
    WITH halves AS (DELETE FROM half_open WHERE person_id = $1)
    DELETE FROM session WHERE person_id = $1";
const FORGET_LINKS: &str = "
    WITH codes AS (DELETE FROM recovery_code WHERE person_id = $1),
        memberships AS (DELETE FROM membership WHERE person_id = $1)
    DELETE FROM invitation WHERE person_id = $1";
const REMOVE_PERSON: &str = "DELETE FROM person WHERE id = $1 RETURNING 1";
const CHANGE_PASSWORD: &str = "
    WITH ended AS (DELETE FROM session WHERE person_id = $1 AND hash <> $3),
        halves AS (DELETE FROM half_open WHERE person_id = $1)
    UPDATE person SET password = $2 WHERE id = $1 RETURNING 1";

/// Uses up an invitation.
struct Redemption<'a> {
    link: &'a TokenHash,
    password: &'a PasswordHash,
    session: &'a NewSession,
    half_expires: Timestamp,
    ends_grants: bool,
}

impl Attempt for Redemption<'_> {
    type Output = Option<Redeemed>;

    async fn run(&self, client: &mut Object) -> Result<Option<Redeemed>, Fault> {
        let transaction = client.transaction().await?;
        run(&transaction, SWEEP, &[&micros(self.session.opened_at)]).await?;
        let values: Values<'_> = &[&bytes(self.link)];
        let used = run(&transaction, USE_INVITATION, values).await?;
        let used = used.first().map(invitation).transpose()?;
        let redeemed = match used {
            None => None,
            Some(used) => self.set_password(&transaction, used).await?,
        };
        if let Some(redeemed) = redeemed {
            self.let_in(&transaction, redeemed).await?;
        }
        transaction.commit().await?;
        Ok(redeemed)
    }
}

impl Redemption<'_> {
    async fn set_password(
        &self,
        transaction: &Transaction<'_>,
        used: Invitation,
    ) -> Result<Option<Redeemed>, Fault> {
        match used.purpose {
            Purpose::NewPassword(person) => {
                let values: Values<'_> = &[&person.as_i64(), &self.password.as_str()];
                let set = run(transaction, SET_PASSWORD, values).await?;
                if self.ends_grants {
                    let now_us = micros(self.session.opened_at);
                    end_grants_of(transaction, person, Ended::All, now_us).await?;
                }
                let read = |row: &Row| {
                    Ok(Redeemed {
                        person,
                        is_half_open: column(row, 0)?,
                    })
                };
                let set: Result<Option<Redeemed>, Corrupt> = set.first().map(read).transpose();
                Ok(set?)
            }
            Purpose::Join { role, account } => {
                let new = NewPerson {
                    email: used.email,
                    role,
                    account,
                    password: self.password.clone(),
                    created_at: self.session.opened_at,
                };
                let created = insert_person(transaction, &new).await?;
                Ok(created.map(|person| Redeemed {
                    person,
                    is_half_open: false,
                }))
            }
        }
    }

    async fn let_in(&self, transaction: &Transaction<'_>, redeemed: Redeemed) -> Result<(), Fault> {
        let (person, session) = (redeemed.person, self.session);
        if redeemed.is_half_open {
            open_half(transaction, person, &session.hash, self.half_expires).await
        } else {
            open_session(transaction, person, session, None).await
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

/// Changes what a person may do, or removes them.
struct SteppingDown {
    id: PersonId,
    /// What they become; `None`: nobody.
    become_this: Option<(Role, Option<AccountId>)>,
    now: Timestamp,
}

impl Attempt for SteppingDown {
    type Output = PersonChanged;

    async fn run(&self, client: &mut Object) -> Result<PersonChanged, Fault> {
        let transaction = client.transaction().await?;
        let id = self.id.as_i64();
        let operators = run(&transaction, OPERATORS, &[]).await?;
        let operators: Result<Vec<i64>, Corrupt> =
            operators.iter().map(|row| column(row, 0)).collect();
        let is_last = operators? == [id];
        run(&transaction, LOCK_PERSON, &[&id]).await?;
        let (person, now_us) = (self.id, micros(self.now));
        let changed = match self.become_this {
            Some((role, _)) if role != Role::Operator && is_last => {
                return Ok(PersonChanged::LastOperator);
            }
            None if is_last => return Ok(PersonChanged::LastOperator),
            Some((role, account)) => {
                let account = account.map(AccountId::as_i64);
                let values: Values<'_> = &[&id, &role.name(), &account];
                let changed = run(&transaction, SET_ROLE, values).await?;
                run(&transaction, END_SAME_MEMBERSHIP, &[&id]).await?;
                end_grants_of(&transaction, person, Ended::OfLostAccounts, now_us).await?;
                changed
            }
            None => delete_person(&transaction, person, now_us).await?,
        };
        transaction.commit().await?;
        Ok(if changed.is_empty() {
            PersonChanged::Unknown
        } else {
            PersonChanged::Done
        })
    }
}

/// Deletes a person, whose row is locked, and who is not the last operator.
pub(super) async fn delete_person(
    transaction: &Transaction<'_>,
    person: PersonId,
    now_us: i64,
) -> Result<Vec<Row>, Fault> {
    end_grants_of(transaction, person, Ended::All, now_us).await?;
    for sql in [END_SESSIONS, FORGET_LINKS] {
        run(transaction, sql, &[&person.as_i64()]).await?;
    }
    run(transaction, REMOVE_PERSON, &[&person.as_i64()]).await
}

/// Sets somebody's own password.
struct PasswordChange<'a> {
    id: PersonId,
    password: &'a PasswordHash,
    kept: &'a TokenHash,
    grants_end: Option<Timestamp>,
}

impl Attempt for PasswordChange<'_> {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let (password, kept) = (self.password.as_str(), bytes(self.kept));
        let values: Values<'_> = &[&self.id.as_i64(), &password, &kept];
        let set = run(&transaction, CHANGE_PASSWORD, values).await?;
        if let Some(now) = self.grants_end {
            end_grants_of(&transaction, self.id, Ended::All, micros(now)).await?;
        }
        transaction.commit().await?;
        Ok(!set.is_empty())
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

pub(super) async fn run(
    transaction: &Transaction<'_>,
    sql: &'static str,
    values: Values<'_>,
) -> Result<Vec<Row>, Fault> {
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.query(&statement, values).await?)
}

pub(super) fn bytes(hash: &TokenHash) -> &[u8] {
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

    async fn list_invitations(
        &self,
        account: Option<AccountId>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<InvitationRecord>, StoreError> {
        let account = account.map(AccountId::as_i64);
        let values: Values<'_> = &[&micros(now), &account, &i64::from(limit)];
        let read = |row: &Row| invitation_columns(row)?.record(column(row, 4)?, column(row, 5)?);
        self.list("list invitations", LIST_INVITATIONS, values, read)
            .await
    }

    async fn withdraw_invitations(
        &self,
        email: &Email,
        account: Option<AccountId>,
    ) -> Result<bool, StoreError> {
        let values: Values<'_> = &[&email.as_str(), &account.map(AccountId::as_i64)];
        let withdrawn = self.query("withdraw invitations", WITHDRAW_INVITATIONS, values);
        Ok(!withdrawn.await?.is_empty())
    }

    async fn redeem_invitation(
        &self,
        link: &TokenHash,
        password: &PasswordHash,
        session: &NewSession,
        half_expires: Timestamp,
        ends_grants: bool,
    ) -> Result<Option<Redeemed>, StoreError> {
        let redemption = Redemption {
            link,
            password,
            session,
            half_expires,
            ends_grants,
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
        let read = |row: &Row| person(row)?.credentials(column(row, 4)?, column(row, 5)?);
        self.find("find a person", FIND_CREDENTIALS, &[&email.as_str()], read)
            .await
    }

    async fn find_person(&self, id: PersonId) -> Result<Option<PersonRecord>, StoreError> {
        self.find("find a person", FIND_PERSON, &[&id.as_i64()], record)
            .await
    }

    async fn list_people(
        &self,
        account: Option<AccountId>,
        after: Option<PersonId>,
        limit: u32,
    ) -> Result<Vec<PersonRecord>, StoreError> {
        let (after, limit) = (after.map_or(0, PersonId::as_i64), i64::from(limit));
        match account.map(AccountId::as_i64) {
            None => {
                let values: Values<'_> = &[&after, &limit];
                self.list("list people", LIST_PEOPLE, values, record).await
            }
            Some(account) => {
                let values: Values<'_> = &[&after, &limit, &account];
                self.list("list people", LIST_PEOPLE_OF_ACCOUNT, values, record)
                    .await
            }
        }
    }

    async fn set_role(
        &self,
        id: PersonId,
        role: Role,
        account: Option<AccountId>,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError> {
        let change = SteppingDown {
            id,
            become_this: Some((role, account)),
            now,
        };
        attempt::run(&self.pool, "change a role", &change).await
    }

    async fn remove_person(
        &self,
        id: PersonId,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError> {
        let change = SteppingDown {
            id,
            become_this: None,
            now,
        };
        attempt::run(&self.pool, "remove a person", &change).await
    }

    async fn set_password(
        &self,
        id: PersonId,
        password: &PasswordHash,
        kept: &TokenHash,
        grants_end: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let change = PasswordChange {
            id,
            password,
            kept,
            grants_end,
        };
        attempt::run(&self.pool, "set a password", &change).await
    }
}

fn record(row: &Row) -> Result<PersonRecord, Corrupt> {
    person(row)?.record(column(row, 4)?, column(row, 5)?, column(row, 6)?)
}

fn invitation_columns(row: &Row) -> Result<InvitationColumns, Corrupt> {
    Ok(InvitationColumns {
        email: column(row, 0)?,
        person_id: column(row, 1)?,
        role: column(row, 2)?,
        account_id: column(row, 3)?,
    })
}

pub(super) fn invitation(row: &Row) -> Result<Invitation, Corrupt> {
    invitation_columns(row)?.invitation()
}

pub(super) fn person(row: &Row) -> Result<PersonColumns, Corrupt> {
    Ok(PersonColumns {
        id: column(row, 0)?,
        email: column(row, 1)?,
        role: column(row, 2)?,
        account_id: column(row, 3)?,
    })
}
