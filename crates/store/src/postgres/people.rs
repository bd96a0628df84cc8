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

use super::fault::Fault;
use super::oauth::end_grants_of;
use super::retry::{self, Retryable};
use super::second_factor::create_pending_sign_in;
use super::sessions::{DELETE_EXPIRED, open_session};
use super::transaction::query;
use super::{PostgresStore, Values, column};
use crate::rows::oauth::GrantsToEnd;
use crate::rows::people::{InvitationColumns, PersonColumns, person_id};
use crate::rows::{Corrupt, micros};
use crate::sql::people as sql;

const LIST_INVITATIONS: &str = "
    SELECT invitation.email, invitation.person_id, invitation.role, invitation.account_id,
        coalesce(invitation.account_id, person.account_id), invitation.expires_us
    FROM invitation LEFT JOIN person ON person.id = invitation.person_id
    WHERE invitation.expires_us > $1
        AND ($2::bigint IS NULL OR coalesce(invitation.account_id, person.account_id) = $2)
    ORDER BY invitation.email LIMIT $3";
const SET_PASSWORD: &str = "
    WITH ended AS (DELETE FROM session WHERE person_id = $1),
        halves AS (DELETE FROM half_open WHERE person_id = $1)
    UPDATE person SET password = $2 WHERE id = $1 RETURNING totp_secret IS NOT NULL";

/// Locks all operators, so that removals of operators follow one another.
const OPERATORS: &str = "SELECT id FROM person WHERE role = 'operator' ORDER BY id FOR UPDATE";
/// Locks a person, so that they cannot grant anything at the same time.
pub(super) const LOCK_PERSON: &str = "SELECT id FROM person WHERE id = $1 FOR UPDATE";
const SET_ROLE: &str = "UPDATE person SET role = $2, account_id = $3 WHERE id = $1 RETURNING 1";
const END_SESSIONS: &str = "
    WITH halves AS (DELETE FROM half_open WHERE person_id = $1)
    DELETE FROM session WHERE person_id = $1";
const DELETE_LINKS: &str = "
    WITH codes AS (DELETE FROM recovery_code WHERE person_id = $1),
        memberships AS (DELETE FROM membership WHERE person_id = $1)
    DELETE FROM invitation WHERE person_id = $1";
const REMOVE_PERSON: &str = "DELETE FROM person WHERE id = $1 RETURNING 1";
const CHANGE_PASSWORD: &str = "
    WITH ended AS (DELETE FROM session WHERE person_id = $1 AND hash <> $3),
        halves AS (DELETE FROM half_open WHERE person_id = $1)
    UPDATE person SET password = $2 WHERE id = $1 RETURNING 1";

struct Redemption<'a> {
    link: &'a TokenHash,
    password: &'a PasswordHash,
    session: &'a NewSession,
    pending_expires: Timestamp,
    ends_grants: bool,
}

impl Retryable for Redemption<'_> {
    type Output = Option<Redeemed>;

    async fn run(&self, client: &mut Object) -> Result<Option<Redeemed>, Fault> {
        let transaction = client.transaction().await?;
        query(
            &transaction,
            DELETE_EXPIRED,
            &[&micros(self.session.opened_at)],
        )
        .await?;
        let values: Values<'_> = &[&bytes(self.link)];
        let used = query(&transaction, sql::USE_INVITATION.postgres, values).await?;
        let used = used.first().map(invitation).transpose()?;
        let redeemed = match used {
            None => None,
            Some(used) => self.set_password(&transaction, used).await?,
        };
        if let Some(redeemed) = redeemed {
            self.sign_in(&transaction, redeemed).await?;
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
                let set = query(transaction, SET_PASSWORD, values).await?;
                if self.ends_grants {
                    let now_us = micros(self.session.opened_at);
                    end_grants_of(transaction, person, GrantsToEnd::All, now_us).await?;
                }
                let read = |row: &Row| {
                    Ok(Redeemed {
                        person,
                        needs_second_factor: column(row, 0)?,
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
                    needs_second_factor: false,
                }))
            }
        }
    }

    async fn sign_in(
        &self,
        transaction: &Transaction<'_>,
        redeemed: Redeemed,
    ) -> Result<(), Fault> {
        let (person, session) = (redeemed.person, self.session);
        if redeemed.needs_second_factor {
            create_pending_sign_in(transaction, person, &session.hash, self.pending_expires).await
        } else {
            open_session(transaction, person, session, None).await
        }
    }
}

/// Creates a person and signs them in.
struct Creation<'a> {
    person: &'a NewPerson,
    session: &'a NewSession,
    replaced: &'a TokenHash,
}

impl Retryable for Creation<'_> {
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

/// Changes the role of a person, or removes them.
struct RoleChange {
    id: PersonId,
    /// `None`: the person is removed.
    new_role: Option<(Role, Option<AccountId>)>,
    now: Timestamp,
}

impl Retryable for RoleChange {
    type Output = PersonChanged;

    async fn run(&self, client: &mut Object) -> Result<PersonChanged, Fault> {
        let transaction = client.transaction().await?;
        let id = self.id.as_i64();
        let operators = query(&transaction, OPERATORS, &[]).await?;
        let operators: Result<Vec<i64>, Corrupt> =
            operators.iter().map(|row| column(row, 0)).collect();
        let is_last = operators? == [id];
        query(&transaction, LOCK_PERSON, &[&id]).await?;
        let (person, now_us) = (self.id, micros(self.now));
        let changed = match self.new_role {
            Some((role, _)) if role != Role::Operator && is_last => {
                return Ok(PersonChanged::LastOperator);
            }
            None if is_last => return Ok(PersonChanged::LastOperator),
            Some((role, account)) => {
                let account = account.map(AccountId::as_i64);
                let values: Values<'_> = &[&id, &role.name(), &account];
                let changed = query(&transaction, SET_ROLE, values).await?;
                query(&transaction, sql::END_SAME_MEMBERSHIP.postgres, &[&id]).await?;
                end_grants_of(&transaction, person, GrantsToEnd::OfLostAccounts, now_us).await?;
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

/// Deletes a person who is not the last operator. Their row must be locked.
pub(super) async fn delete_person(
    transaction: &Transaction<'_>,
    person: PersonId,
    now_us: i64,
) -> Result<Vec<Row>, Fault> {
    end_grants_of(transaction, person, GrantsToEnd::All, now_us).await?;
    for sql in [END_SESSIONS, DELETE_LINKS] {
        query(transaction, sql, &[&person.as_i64()]).await?;
    }
    query(transaction, REMOVE_PERSON, &[&person.as_i64()]).await
}

/// Changes the password of a person.
struct PasswordChange<'a> {
    id: PersonId,
    password: &'a PasswordHash,
    kept: &'a TokenHash,
    grants_end: Option<Timestamp>,
}

impl Retryable for PasswordChange<'_> {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let (password, kept) = (self.password.as_str(), bytes(self.kept));
        let values: Values<'_> = &[&self.id.as_i64(), &password, &kept];
        let set = query(&transaction, CHANGE_PASSWORD, values).await?;
        if let Some(now) = self.grants_end {
            end_grants_of(&transaction, self.id, GrantsToEnd::All, micros(now)).await?;
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
    let created = query(transaction, sql::CREATE_PERSON.postgres, values).await?;
    let read = |row: &Row| person_id(column(row, 0)?);
    Ok(created.first().map(read).transpose()?)
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
        let columns = InvitationColumns::from_invitation(invitation);
        let values: Values<'_> = &[
            &columns.email,
            &bytes(link),
            &columns.person_id,
            &columns.role,
            &columns.account_id,
            &micros(expires),
        ];
        self.query("create an invitation", sql::INVITE.postgres, values)
            .await
            .map(drop)
    }

    async fn find_invitation(
        &self,
        link: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<Invitation>, StoreError> {
        let values: Values<'_> = &[&bytes(link), &micros(now)];
        self.find(
            "find an invitation",
            sql::FIND_INVITATION.postgres,
            values,
            invitation,
        )
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
        let read =
            |row: &Row| InvitationColumns::read(row)?.record(column(row, 4)?, column(row, 5)?);
        self.list("list invitations", LIST_INVITATIONS, values, read)
            .await
    }

    async fn withdraw_invitations(
        &self,
        email: &Email,
        account: Option<AccountId>,
    ) -> Result<bool, StoreError> {
        let values: Values<'_> = &[&email.as_str(), &account.map(AccountId::as_i64)];
        let withdrawn = self.execute(
            "withdraw invitations",
            sql::WITHDRAW_INVITATIONS.postgres,
            values,
        );
        Ok(withdrawn.await? > 0)
    }

    async fn redeem_invitation(
        &self,
        link: &TokenHash,
        password: &PasswordHash,
        session: &NewSession,
        pending_expires: Timestamp,
        ends_grants: bool,
    ) -> Result<Option<Redeemed>, StoreError> {
        let redemption = Redemption {
            link,
            password,
            session,
            pending_expires,
            ends_grants,
        };
        retry::run(&self.pool, "accept an invitation", &redemption).await
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
        retry::run(&self.pool, "create a person", &creation).await
    }

    async fn find_credentials(&self, email: &Email) -> Result<Option<Credentials>, StoreError> {
        let read =
            |row: &Row| PersonColumns::read(row)?.credentials(column(row, 4)?, column(row, 5)?);
        self.find(
            "find a person",
            sql::FIND_CREDENTIALS.postgres,
            &[&email.as_str()],
            read,
        )
        .await
    }

    async fn find_person(&self, id: PersonId) -> Result<Option<PersonRecord>, StoreError> {
        self.find(
            "find a person",
            sql::FIND_PERSON.postgres,
            &[&id.as_i64()],
            record,
        )
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
                self.list("list people", sql::LIST_PEOPLE.postgres, values, record)
                    .await
            }
            Some(account) => {
                let values: Values<'_> = &[&after, &limit, &account];
                self.list(
                    "list people",
                    sql::LIST_PEOPLE_OF_ACCOUNT.postgres,
                    values,
                    record,
                )
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
        let change = RoleChange {
            id,
            new_role: Some((role, account)),
            now,
        };
        retry::run(&self.pool, "change a role", &change).await
    }

    async fn remove_person(
        &self,
        id: PersonId,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError> {
        let change = RoleChange {
            id,
            new_role: None,
            now,
        };
        retry::run(&self.pool, "remove a person", &change).await
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
        retry::run(&self.pool, "set a password", &change).await
    }
}

fn record(row: &Row) -> Result<PersonRecord, Corrupt> {
    PersonColumns::read(row)?.record(column(row, 4)?, column(row, 5)?, column(row, 6)?)
}

pub(super) fn invitation(row: &Row) -> Result<Invitation, Corrupt> {
    InvitationColumns::read(row)?.invitation()
}
