//! The port for memberships: people who belong to several accounts.

use async_trait::async_trait;
use domain::ids::{AccountId, PersonId};
use domain::person::Membership;
use domain::person::Role;
use domain::ports::{Joining, MembershipStore, PersonChanged, Purpose, StoreError};
use domain::{Timestamp, TokenHash};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::SqliteStore;
use super::oauth::end_grants_of;
use super::people::{delete_person, invitation};
use crate::rows::micros;
use crate::rows::oauth::GrantsToEnd;
use crate::rows::people::MembershipColumns;
use crate::sql::memberships as sql;

const SET_FIRST_ROLE: &str = "
    UPDATE person SET role = ?3 WHERE id = ?1 AND account_id = ?2 AND role <> 'operator'";
const SET_ROLE: &str = "UPDATE membership SET role = ?3 WHERE person_id = ?1 AND account_id = ?2";
const FIND_FIRST_ACCOUNT: &str = "SELECT role, account_id FROM person WHERE id = ?1";

fn list(db: &Connection, first: PersonId, last: PersonId) -> Result<Vec<Membership>> {
    let read = |row: &Row<'_>| Ok(MembershipColumns::read(row)?.membership()?);
    db.prepare_cached(sql::LIST.sqlite)?
        .query_map([first.as_i64(), last.as_i64()], read)?
        .collect()
}

fn join(db: &Connection, joining: &Joining) -> Result<bool> {
    let (person, now_us) = (joining.person.as_i64(), micros(joining.now));
    let used = db
        .prepare_cached(sql::USE_INVITATION.sqlite)?
        .query_row(params![joining.link.as_bytes(), now_us, person], invitation)
        .optional()?;
    let Some(Purpose::Join {
        role,
        account: Some(account),
    }) = used.map(|used| used.purpose)
    else {
        return Ok(false);
    };
    db.prepare_cached(sql::DELETE_LINKS.sqlite)?
        .execute([person])?;
    let id = account.as_i64();
    db.prepare_cached(sql::SET_FIRST_IF_NONE.sqlite)?
        .execute(params![person, id])?;
    db.prepare_cached(sql::JOIN.sqlite)?
        .execute(params![person, id, role.name(), now_us])?;
    switch(db, &joining.session, &joining.renewed, Some(account))
}

fn switch(
    db: &Connection,
    session: &TokenHash,
    renewed: &TokenHash,
    account: Option<AccountId>,
) -> Result<bool> {
    let account = account.map(AccountId::as_i64);
    let values = params![session.as_bytes(), renewed.as_bytes(), account];
    Ok(db.prepare_cached(sql::SWITCH.sqlite)?.execute(values)? > 0)
}

fn set_role(
    db: &Connection,
    person: PersonId,
    account: AccountId,
    role: Role,
) -> Result<PersonChanged> {
    let mut changed = 0;
    for sql in [SET_FIRST_ROLE, SET_ROLE] {
        let values = params![person.as_i64(), account.as_i64(), role.name()];
        changed += db.prepare_cached(sql)?.execute(values)?;
    }
    Ok(if changed == 0 {
        PersonChanged::Unknown
    } else {
        PersonChanged::Done
    })
}

fn leave(
    db: &Connection,
    person: PersonId,
    account: AccountId,
    now: Timestamp,
) -> Result<PersonChanged> {
    let (id, lost) = (person.as_i64(), account.as_i64());
    let first: Option<(String, Option<i64>)> = db
        .prepare_cached(FIND_FIRST_ACCOUNT)?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((role, first)) = first else {
        return Ok(PersonChanged::Unknown);
    };
    db.prepare_cached(sql::END_ACCOUNT_SESSIONS.sqlite)?
        .execute([id, lost])?;
    if first != Some(lost) {
        if db.prepare_cached(sql::LEAVE.sqlite)?.execute([id, lost])? == 0 {
            return Ok(PersonChanged::Unknown);
        }
    } else if !replace_first_account(db, id, &role)? {
        delete_person(db, person, now)?;
        return Ok(PersonChanged::Done);
    }
    end_grants_of(db, person, GrantsToEnd::OfLostAccounts, micros(now))?;
    Ok(PersonChanged::Done)
}

/// Makes the oldest membership of a person their first account; an operator may have none. `false` if the person has no
/// account left.
fn replace_first_account(db: &Connection, person: i64, role: &str) -> Result<bool> {
    let is_operator = role == Role::Operator.name();
    let next: Option<(i64, String, Option<i64>)> = db
        .prepare_cached(sql::FIND_OLDEST.sqlite)?
        .query_row([person], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let mut set = db.prepare_cached(sql::SET_FIRST.sqlite)?;
    match next {
        None if !is_operator => return Ok(false),
        None => set.execute(params![person, role, None::<i64>, None::<i64>])?,
        Some((account, member_role, seen_us)) => {
            let role = if is_operator { role } else { &member_role };
            set.execute(params![person, role, account, seen_us])?;
            db.prepare_cached(sql::LEAVE.sqlite)?
                .execute([person, account])?;
            db.prepare_cached(sql::RESET_CHOSEN_ACCOUNT.sqlite)?
                .execute([person, account])?
        }
    };
    Ok(true)
}

#[async_trait]
impl MembershipStore for SqliteStore {
    async fn list_memberships(
        &self,
        first: PersonId,
        last: PersonId,
    ) -> Result<Vec<Membership>, StoreError> {
        self.read("list accounts of people", move |db| list(db, first, last))
            .await
    }

    async fn join_account(&self, joining: &Joining) -> Result<bool, StoreError> {
        let joining = *joining;
        self.write("join an account", move |db| join(db, &joining))
            .await
    }

    async fn switch_account(
        &self,
        session: &TokenHash,
        renewed: &TokenHash,
        account: Option<AccountId>,
    ) -> Result<bool, StoreError> {
        let (session, renewed) = (*session, *renewed);
        self.write("switch accounts", move |db| {
            switch(db, &session, &renewed, account)
        })
        .await
    }

    async fn set_account_role(
        &self,
        person: PersonId,
        account: AccountId,
        role: Role,
    ) -> Result<PersonChanged, StoreError> {
        self.write("change a role", move |db| {
            set_role(db, person, account, role)
        })
        .await
    }

    async fn remove_member(
        &self,
        person: PersonId,
        account: AccountId,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError> {
        self.write("remove a member", move |db| leave(db, person, account, now))
            .await
    }
}
