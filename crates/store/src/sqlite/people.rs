//! The port for people and invitations.

use async_trait::async_trait;
use domain::ids::{AccountId, PersonId};
use domain::person::{Email, PasswordHash, Role};
use domain::ports::{
    Credentials, Invitation, InvitationRecord, NewPerson, NewSession, PeopleStore, PersonChanged,
    PersonRecord, Purpose, Redeemed, StoreError,
};
use domain::{Timestamp, TokenHash};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::SqliteStore;
use super::oauth::end_grants_of;
use super::second_factor::create_pending_sign_in;
use super::sessions::{
    Owner, delete_expired, end_session, end_sessions, end_sessions_except, open_session,
};
use crate::rows::micros;
use crate::rows::oauth::GrantsToEnd;
use crate::rows::people::{InvitationColumns, PersonColumns, person_id};
use crate::sql::people as sql;

const LIST_INVITATIONS: &str = "
    SELECT invitation.email, invitation.person_id, invitation.role, invitation.account_id,
        coalesce(invitation.account_id, person.account_id) AS about, invitation.expires_us
    FROM invitation LEFT JOIN person ON person.id = invitation.person_id
    WHERE invitation.expires_us > ?1 AND (?2 IS NULL OR coalesce(invitation.account_id, person.account_id) = ?2)
    ORDER BY invitation.email LIMIT ?3";
const SET_PASSWORD: &str = "UPDATE person SET password = ?2 WHERE id = ?1";
const HAS_SECOND_FACTOR: &str = "SELECT totp_secret IS NOT NULL FROM person WHERE id = ?1";

const COUNT_OTHER_OPERATORS: &str =
    "SELECT count(*) FROM person WHERE role = 'operator' AND id <> ?1";
const ROLE_OF: &str = "SELECT role FROM person WHERE id = ?1";
const SET_ROLE: &str = "UPDATE person SET role = ?2, account_id = ?3 WHERE id = ?1";
const REMOVE_PERSON: [&str; 4] = [
    "DELETE FROM invitation WHERE person_id = ?1",
    "DELETE FROM membership WHERE person_id = ?1",
    "DELETE FROM recovery_code WHERE person_id = ?1",
    "DELETE FROM person WHERE id = ?1",
];

fn invite(
    db: &Connection,
    invitation: &Invitation,
    link: &TokenHash,
    expires_us: i64,
) -> Result<()> {
    let columns = InvitationColumns::from_invitation(invitation);
    let values = params![
        columns.email,
        link.as_bytes(),
        columns.person_id,
        columns.role,
        columns.account_id,
        expires_us,
    ];
    db.prepare_cached(sql::INVITE.sqlite)?
        .execute(values)
        .map(drop)
}

pub(super) fn invitation(row: &Row<'_>) -> Result<Invitation> {
    Ok(InvitationColumns::read(row)?.invitation()?)
}

fn find_invitation(db: &Connection, link: &TokenHash, now_us: i64) -> Result<Option<Invitation>> {
    db.prepare_cached(sql::FIND_INVITATION.sqlite)?
        .query_row(params![link.as_bytes(), now_us], invitation)
        .optional()
}

fn list_invitations(
    db: &Connection,
    account: Option<AccountId>,
    limit: u32,
    now_us: i64,
) -> Result<Vec<InvitationRecord>> {
    let read = |row: &Row<'_>| Ok(InvitationColumns::read(row)?.record(row.get(4)?, row.get(5)?)?);
    db.prepare_cached(LIST_INVITATIONS)?
        .query_map(params![now_us, account.map(AccountId::as_i64), limit], read)?
        .collect()
}

fn redeem_invitation(
    db: &Connection,
    link: &TokenHash,
    password: &PasswordHash,
    session: &NewSession,
    pending_expires: Timestamp,
    ends_grants: bool,
) -> Result<Option<Redeemed>> {
    delete_expired(db, micros(session.opened_at))?;
    let mut used = db.prepare_cached(sql::USE_INVITATION.sqlite)?;
    let used = used.query_row([link.as_bytes()], invitation).optional()?;
    let Some(used) = used else { return Ok(None) };
    let (person, needs_second_factor) = match used.purpose {
        Purpose::NewPassword(person) => {
            let values = params![person.as_i64(), password.as_str()];
            db.prepare_cached(SET_PASSWORD)?.execute(values)?;
            end_sessions(db, person)?;
            if ends_grants {
                end_grants_of(db, person, GrantsToEnd::All, micros(session.opened_at))?;
            }
            let has_second = db
                .prepare_cached(HAS_SECOND_FACTOR)?
                .query_row([person.as_i64()], |row| row.get(0))?;
            (Some(person), has_second)
        }
        Purpose::Join { role, account } => {
            let new = NewPerson {
                email: used.email,
                role,
                account,
                password: password.clone(),
                created_at: session.opened_at,
            };
            (insert_person(db, &new)?, false)
        }
    };
    let Some(person) = person else {
        return Ok(None);
    };
    if needs_second_factor {
        create_pending_sign_in(db, person, &session.hash, micros(pending_expires))?;
    } else {
        open_session(db, Owner::Person(person), session)?;
    }
    Ok(Some(Redeemed {
        person,
        needs_second_factor,
    }))
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
        .prepare_cached(sql::CREATE_PERSON.sqlite)?
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
    let read = |row: &Row<'_>| Ok(PersonColumns::read(row)?.credentials(row.get(4)?, row.get(5)?)?);
    db.prepare_cached(sql::FIND_CREDENTIALS.sqlite)?
        .query_row([email.as_str()], read)
        .optional()
}

fn record(row: &Row<'_>) -> Result<PersonRecord> {
    Ok(PersonColumns::read(row)?.record(row.get(4)?, row.get(5)?, row.get(6)?)?)
}

fn list_people(
    db: &Connection,
    account: Option<AccountId>,
    after: Option<PersonId>,
    limit: u32,
) -> Result<Vec<PersonRecord>> {
    let after = after.map_or(0, PersonId::as_i64);
    match account.map(AccountId::as_i64) {
        None => db
            .prepare_cached(sql::LIST_PEOPLE.sqlite)?
            .query_map(params![after, limit], record)?
            .collect(),
        Some(account) => db
            .prepare_cached(sql::LIST_PEOPLE_OF_ACCOUNT.sqlite)?
            .query_map(params![after, limit, account], record)?
            .collect(),
    }
}

/// Whether a person may stop being an operator, or be removed. There is one writer, so the answer stays valid.
fn check_not_last_operator(db: &Connection, id: PersonId) -> Result<PersonChanged> {
    let role: Option<String> = db
        .prepare_cached(ROLE_OF)?
        .query_row([id.as_i64()], |row| row.get(0))
        .optional()?;
    let others: i64 = db
        .prepare_cached(COUNT_OTHER_OPERATORS)?
        .query_row([id.as_i64()], |row| row.get(0))?;
    Ok(match role {
        None => PersonChanged::Unknown,
        Some(role) if role == Role::Operator.name() && others == 0 => PersonChanged::LastOperator,
        Some(_) => PersonChanged::Done,
    })
}

fn set_role(
    db: &Connection,
    id: PersonId,
    role: Role,
    account: Option<AccountId>,
    now: Timestamp,
) -> Result<PersonChanged> {
    let may = check_not_last_operator(db, id)?;
    let stays = role == Role::Operator && may == PersonChanged::LastOperator;
    if may == PersonChanged::Done || stays {
        let values = params![id.as_i64(), role.name(), account.map(AccountId::as_i64)];
        db.prepare_cached(SET_ROLE)?.execute(values)?;
        db.prepare_cached(sql::END_SAME_MEMBERSHIP.sqlite)?
            .execute([id.as_i64()])?;
        end_grants_of(db, id, GrantsToEnd::OfLostAccounts, micros(now))?;
        return Ok(PersonChanged::Done);
    }
    Ok(may)
}

fn remove_person(db: &Connection, id: PersonId, now: Timestamp) -> Result<PersonChanged> {
    let may = check_not_last_operator(db, id)?;
    if may == PersonChanged::Done {
        delete_person(db, id, now)?;
    }
    Ok(may)
}

/// Deletes a person who is not the last operator.
pub(super) fn delete_person(db: &Connection, id: PersonId, now: Timestamp) -> Result<()> {
    end_grants_of(db, id, GrantsToEnd::All, micros(now))?;
    end_sessions(db, id)?;
    for sql in REMOVE_PERSON {
        db.prepare_cached(sql)?.execute([id.as_i64()])?;
    }
    Ok(())
}

fn set_password(
    db: &Connection,
    id: PersonId,
    password: &PasswordHash,
    kept: &TokenHash,
    grants_end: Option<Timestamp>,
) -> Result<bool> {
    let values = params![id.as_i64(), password.as_str()];
    let is_set = db.prepare_cached(SET_PASSWORD)?.execute(values)? > 0;
    if is_set {
        end_sessions_except(db, id, kept)?;
        if let Some(now) = grants_end {
            end_grants_of(db, id, GrantsToEnd::All, micros(now))?;
        }
    }
    Ok(is_set)
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

    async fn list_invitations(
        &self,
        account: Option<AccountId>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<InvitationRecord>, StoreError> {
        self.read("list invitations", move |db| {
            list_invitations(db, account, limit, micros(now))
        })
        .await
    }

    async fn withdraw_invitations(
        &self,
        email: &Email,
        account: Option<AccountId>,
    ) -> Result<bool, StoreError> {
        let (email, account) = (email.clone(), account.map(AccountId::as_i64));
        self.write("withdraw invitations", move |db| {
            let mut withdraw = db.prepare_cached(sql::WITHDRAW_INVITATIONS.sqlite)?;
            Ok(withdraw.execute(params![email.as_str(), account])? > 0)
        })
        .await
    }

    async fn redeem_invitation(
        &self,
        link: &TokenHash,
        password: &PasswordHash,
        session: &NewSession,
        pending_expires: Timestamp,
        ends_grants: bool,
    ) -> Result<Option<Redeemed>, StoreError> {
        let (link, password, session) = (*link, password.clone(), session.clone());
        self.write("accept an invitation", move |db| {
            redeem_invitation(db, &link, &password, &session, pending_expires, ends_grants)
        })
        .await
    }

    async fn create_person(
        &self,
        person: &NewPerson,
        session: &NewSession,
        replaced: &TokenHash,
    ) -> Result<Option<PersonId>, StoreError> {
        let (person, session, replaced) = (person.clone(), session.clone(), *replaced);
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

    async fn find_person(&self, id: PersonId) -> Result<Option<PersonRecord>, StoreError> {
        self.read("find a person", move |db| {
            let mut find = db.prepare_cached(sql::FIND_PERSON.sqlite)?;
            find.query_row([id.as_i64()], record).optional()
        })
        .await
    }

    async fn list_people(
        &self,
        account: Option<AccountId>,
        after: Option<PersonId>,
        limit: u32,
    ) -> Result<Vec<PersonRecord>, StoreError> {
        self.read("list people", move |db| {
            list_people(db, account, after, limit)
        })
        .await
    }

    async fn set_role(
        &self,
        id: PersonId,
        role: Role,
        account: Option<AccountId>,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError> {
        self.write("change a role", move |db| {
            set_role(db, id, role, account, now)
        })
        .await
    }

    async fn remove_person(
        &self,
        id: PersonId,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError> {
        self.write("remove a person", move |db| remove_person(db, id, now))
            .await
    }

    async fn set_password(
        &self,
        id: PersonId,
        password: &PasswordHash,
        kept: &TokenHash,
        grants_end: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let (password, kept) = (password.clone(), *kept);
        self.write("set a password", move |db| {
            set_password(db, id, &password, &kept, grants_end)
        })
        .await
    }
}
