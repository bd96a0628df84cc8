//! The port for people who belong to several accounts.

use async_trait::async_trait;
use domain::ids::{AccountId, PersonId};
use domain::person::Membership;
use domain::person::Role;
use domain::ports::{Joining, MembershipStore, PersonChanged, Purpose, StoreError};
use domain::{Timestamp, TokenHash};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::SqliteStore;
use super::connected::end_grants_of;
use super::people::{delete_person, invitation};
use crate::rows::micros;
use crate::rows::oauth::Ended;
use crate::rows::people::MembershipColumns;

const LIST: &str = "
    SELECT person_id, account_id, role, seen_us FROM membership WHERE person_id BETWEEN ?1 AND ?2
    ORDER BY person_id, account_id";
const USE_INVITATION: &str = "
    DELETE FROM invitation
    WHERE hash = ?1 AND expires_us > ?2 AND person_id IS NULL AND role <> 'operator' AND account_id IS NOT NULL
        AND email = (SELECT email FROM person WHERE id = ?3)
    RETURNING email, person_id, role, account_id";
const FORGET_LINKS: &str = "DELETE FROM invitation WHERE person_id = ?1";
/// For an operator who has seen no account so far.
const TAKE_AS_FIRST: &str =
    "UPDATE person SET account_id = ?2 WHERE id = ?1 AND account_id IS NULL";
const JOIN: &str = "
    INSERT INTO membership (person_id, account_id, role, created_us)
    SELECT id, ?2, ?3, ?4 FROM person WHERE id = ?1 AND account_id <> ?2
    ON CONFLICT (person_id, account_id) DO UPDATE SET role = excluded.role";
const SWITCH: &str = "
    UPDATE session SET hash = ?2,
        chosen_account_id = (SELECT account_id FROM membership WHERE person_id = session.person_id AND account_id = ?3)
    WHERE hash = ?1 AND (
        EXISTS (SELECT 1 FROM person WHERE id = session.person_id AND account_id = ?3)
        OR EXISTS (SELECT 1 FROM membership WHERE person_id = session.person_id AND account_id = ?3))";
const SET_FIRST_ROLE: &str = "
    UPDATE person SET role = ?3 WHERE id = ?1 AND account_id = ?2 AND role <> 'operator'";
const SET_ROLE: &str = "UPDATE membership SET role = ?3 WHERE person_id = ?1 AND account_id = ?2";
const END_SESSIONS_THERE: &str = "
    DELETE FROM session WHERE person_id = ?1 AND (chosen_account_id = ?2
        OR (chosen_account_id IS NULL AND EXISTS (SELECT 1 FROM person WHERE id = ?1 AND account_id = ?2)))";
const LEAVE: &str = "DELETE FROM membership WHERE person_id = ?1 AND account_id = ?2";
const FIRST_ACCOUNT: &str = "SELECT role, account_id FROM person WHERE id = ?1";
const OLDEST: &str = "
    SELECT account_id, role, seen_us FROM membership WHERE person_id = ?1 ORDER BY created_us, account_id LIMIT 1";
const SET_FIRST: &str = "UPDATE person SET role = ?2, account_id = ?3, seen_us = ?4 WHERE id = ?1";
const STAY_IN_FIRST: &str = "
    UPDATE session SET chosen_account_id = NULL WHERE person_id = ?1 AND chosen_account_id = ?2";

fn list(db: &Connection, first: PersonId, last: PersonId) -> Result<Vec<Membership>> {
    let read = |row: &Row<'_>| {
        let columns = MembershipColumns {
            person_id: row.get(0)?,
            account_id: row.get(1)?,
            role: row.get(2)?,
            seen_us: row.get(3)?,
        };
        Ok(columns.membership()?)
    };
    db.prepare_cached(LIST)?
        .query_map([first.as_i64(), last.as_i64()], read)?
        .collect()
}

fn join(db: &Connection, joining: &Joining) -> Result<bool> {
    let (person, now_us) = (joining.person.as_i64(), micros(joining.now));
    let used = db
        .prepare_cached(USE_INVITATION)?
        .query_row(params![joining.link.as_bytes(), now_us, person], invitation)
        .optional()?;
    let Some(Purpose::Join {
        role,
        account: Some(account),
    }) = used.map(|used| used.purpose)
    else {
        return Ok(false);
    };
    db.prepare_cached(FORGET_LINKS)?.execute([person])?;
    let id = account.as_i64();
    db.prepare_cached(TAKE_AS_FIRST)?
        .execute(params![person, id])?;
    db.prepare_cached(JOIN)?
        .execute(params![person, id, role.name(), now_us])?;
    switch(db, &joining.session, &joining.renewed, account)
}

fn switch(
    db: &Connection,
    session: &TokenHash,
    renewed: &TokenHash,
    account: AccountId,
) -> Result<bool> {
    let values = params![session.as_bytes(), renewed.as_bytes(), account.as_i64()];
    Ok(db.prepare_cached(SWITCH)?.execute(values)? > 0)
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
        .prepare_cached(FIRST_ACCOUNT)?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((role, first)) = first else {
        return Ok(PersonChanged::Unknown);
    };
    db.prepare_cached(END_SESSIONS_THERE)?.execute([id, lost])?;
    if first != Some(lost) {
        if db.prepare_cached(LEAVE)?.execute([id, lost])? == 0 {
            return Ok(PersonChanged::Unknown);
        }
    } else if !leave_first(db, id, &role)? {
        delete_person(db, person, now)?;
        return Ok(PersonChanged::Done);
    }
    end_grants_of(db, person, Ended::OfLostAccounts, micros(now))?;
    Ok(PersonChanged::Done)
}

/// Puts the oldest of a person's further accounts in the place of their first; an operator may be left with none. `false`
/// when nothing is left.
fn leave_first(db: &Connection, person: i64, role: &str) -> Result<bool> {
    let is_operator = role == Role::Operator.name();
    let next: Option<(i64, String, Option<i64>)> = db
        .prepare_cached(OLDEST)?
        .query_row([person], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let mut set = db.prepare_cached(SET_FIRST)?;
    match next {
        None if !is_operator => return Ok(false),
        None => set.execute(params![person, role, None::<i64>, None::<i64>])?,
        Some((account, member_role, seen_us)) => {
            let role = if is_operator { role } else { &member_role };
            set.execute(params![person, role, account, seen_us])?;
            db.prepare_cached(LEAVE)?.execute([person, account])?;
            db.prepare_cached(STAY_IN_FIRST)?
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
        account: AccountId,
    ) -> Result<bool, StoreError> {
        let (session, renewed) = (*session, *renewed);
        self.write("switch accounts", move |db| {
            switch(db, &session, &renewed, account)
        })
        .await
    }

    async fn set_role_in(
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

    async fn leave_account(
        &self,
        person: PersonId,
        account: AccountId,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError> {
        self.write("leave an account", move |db| {
            leave(db, person, account, now)
        })
        .await
    }
}
