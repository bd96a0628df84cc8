//! The port for people who belong to several accounts.

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::ids::{AccountId, PersonId};
use domain::person::Membership;
use domain::person::Role;
use domain::ports::{Joining, MembershipStore, PersonChanged, Purpose, StoreError};
use domain::{Timestamp, TokenHash};
use tokio_postgres::Row;

use super::attempt::{self, Attempt};
use super::connected::end_grants_of;
use super::fault::Fault;
use super::people::{LOCK_PERSON, bytes, delete_person, invitation, run};
use super::{PostgresStore, Values, column};
use crate::rows::oauth::Ended;
use crate::rows::people::MembershipColumns;
use crate::rows::{Corrupt, micros};

const LIST: &str = "
    SELECT person_id, account_id, role, seen_us FROM membership WHERE person_id BETWEEN $1 AND $2
    ORDER BY person_id, account_id";
const USE_INVITATION: &str = "
    DELETE FROM invitation
    WHERE hash = $1 AND expires_us > $2 AND person_id IS NULL AND role <> 'operator' AND account_id IS NOT NULL
        AND email = (SELECT email FROM person WHERE id = $3)
    RETURNING email, person_id, role, account_id";
const FORGET_LINKS: &str = "DELETE FROM invitation WHERE person_id = $1";
/// For an operator who has seen no account so far.
const TAKE_AS_FIRST: &str =
    "UPDATE person SET account_id = $2 WHERE id = $1 AND account_id IS NULL";
const JOIN: &str = "
    INSERT INTO membership (person_id, account_id, role, created_us)
    SELECT id, $2::bigint, $3::text, $4::bigint FROM person WHERE id = $1 AND account_id <> $2
    ON CONFLICT (person_id, account_id) DO UPDATE SET role = excluded.role";
const SWITCH: &str = "
    UPDATE session SET hash = $2,
        chosen_account_id = (SELECT account_id FROM membership WHERE person_id = session.person_id AND account_id = $3)
    WHERE hash = $1 AND (
        EXISTS (SELECT 1 FROM person WHERE id = session.person_id AND account_id = $3)
        OR EXISTS (SELECT 1 FROM membership WHERE person_id = session.person_id AND account_id = $3))
    RETURNING 1";
const SET_ROLE: &str = "
    WITH first AS (
        UPDATE person SET role = $3 WHERE id = $1 AND account_id = $2 AND role <> 'operator' RETURNING id
    ), further AS (
        UPDATE membership SET role = $3 WHERE person_id = $1 AND account_id = $2 RETURNING person_id
    )
    SELECT id FROM first UNION ALL SELECT person_id FROM further";
const END_SESSIONS_THERE: &str = "
    DELETE FROM session WHERE person_id = $1 AND (chosen_account_id = $2
        OR (chosen_account_id IS NULL AND EXISTS (SELECT 1 FROM person WHERE id = $1 AND account_id = $2)))";
const LEAVE: &str = "DELETE FROM membership WHERE person_id = $1 AND account_id = $2 RETURNING 1";
const FIRST_ACCOUNT: &str = "SELECT role, account_id FROM person WHERE id = $1 FOR UPDATE";
const OLDEST: &str = "
    SELECT account_id, role, seen_us FROM membership WHERE person_id = $1 ORDER BY created_us, account_id LIMIT 1";
const SET_FIRST: &str = "UPDATE person SET role = $2, account_id = $3, seen_us = $4 WHERE id = $1";
const STAY_IN_FIRST: &str = "
    UPDATE session SET chosen_account_id = NULL WHERE person_id = $1 AND chosen_account_id = $2";

impl Attempt for Joining {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let (person, now_us) = (self.person.as_i64(), micros(self.now));
        run(&transaction, LOCK_PERSON, &[&person]).await?;
        let values: Values<'_> = &[&bytes(&self.link), &now_us, &person];
        let used = run(&transaction, USE_INVITATION, values).await?;
        let used = used.first().map(invitation).transpose()?;
        let Some(Purpose::Join {
            role,
            account: Some(account),
        }) = used.map(|used| used.purpose)
        else {
            return Ok(false);
        };
        let account = account.as_i64();
        run(&transaction, FORGET_LINKS, &[&person]).await?;
        run(&transaction, TAKE_AS_FIRST, &[&person, &account]).await?;
        let values: Values<'_> = &[&person, &account, &role.name(), &now_us];
        run(&transaction, JOIN, values).await?;
        let values: Values<'_> = &[&bytes(&self.session), &bytes(&self.renewed), &account];
        let switched = run(&transaction, SWITCH, values).await?;
        transaction.commit().await?;
        Ok(!switched.is_empty())
    }
}

struct Leaving {
    person: PersonId,
    account: AccountId,
    now: Timestamp,
}

impl Attempt for Leaving {
    type Output = PersonChanged;

    async fn run(&self, client: &mut Object) -> Result<PersonChanged, Fault> {
        let transaction = client.transaction().await?;
        let (id, lost) = (self.person.as_i64(), self.account.as_i64());
        let first = run(&transaction, FIRST_ACCOUNT, &[&id]).await?;
        let Some(row) = first.first() else {
            return Ok(PersonChanged::Unknown);
        };
        let (role, first): (String, Option<i64>) = (column(row, 0)?, column(row, 1)?);
        run(&transaction, END_SESSIONS_THERE, &[&id, &lost]).await?;
        let now_us = micros(self.now);
        if first != Some(lost) {
            if run(&transaction, LEAVE, &[&id, &lost]).await?.is_empty() {
                return Ok(PersonChanged::Unknown);
            }
        } else if !leave_first(&transaction, id, &role).await? {
            delete_person(&transaction, self.person, now_us).await?;
        }
        end_grants_of(&transaction, self.person, Ended::OfLostAccounts, now_us).await?;
        transaction.commit().await?;
        Ok(PersonChanged::Done)
    }
}

/// Puts the oldest of a person's further accounts in the place of their first; an operator may be left with none. `false`
/// when nothing is left.
async fn leave_first(
    transaction: &Transaction<'_>,
    person: i64,
    role: &str,
) -> Result<bool, Fault> {
    let is_operator = role == Role::Operator.name();
    let next = run(transaction, OLDEST, &[&person]).await?;
    let Some(next) = next.first() else {
        if is_operator {
            let values: Values<'_> = &[&person, &role, &None::<i64>, &None::<i64>];
            run(transaction, SET_FIRST, values).await?;
        }
        return Ok(is_operator);
    };
    let (account, member_role, seen_us): (i64, String, Option<i64>) =
        (column(next, 0)?, column(next, 1)?, column(next, 2)?);
    let role = if is_operator { role } else { &member_role };
    let values: Values<'_> = &[&person, &role, &account, &seen_us];
    run(transaction, SET_FIRST, values).await?;
    for sql in [LEAVE, STAY_IN_FIRST] {
        run(transaction, sql, &[&person, &account]).await?;
    }
    Ok(true)
}

fn membership(row: &Row) -> Result<Membership, Corrupt> {
    let columns = MembershipColumns {
        person_id: column(row, 0)?,
        account_id: column(row, 1)?,
        role: column(row, 2)?,
        seen_us: column(row, 3)?,
    };
    columns.membership()
}

#[async_trait]
impl MembershipStore for PostgresStore {
    async fn list_memberships(
        &self,
        first: PersonId,
        last: PersonId,
    ) -> Result<Vec<Membership>, StoreError> {
        let values: Values<'_> = &[&first.as_i64(), &last.as_i64()];
        self.list("list accounts of people", LIST, values, membership)
            .await
    }

    async fn join_account(&self, joining: &Joining) -> Result<bool, StoreError> {
        attempt::run(&self.pool, "join an account", joining).await
    }

    async fn switch_account(
        &self,
        session: &TokenHash,
        renewed: &TokenHash,
        account: AccountId,
    ) -> Result<bool, StoreError> {
        let values: Values<'_> = &[&bytes(session), &bytes(renewed), &account.as_i64()];
        let switched = self.query("switch accounts", SWITCH, values).await?;
        Ok(!switched.is_empty())
    }

    async fn set_role_in(
        &self,
        person: PersonId,
        account: AccountId,
        role: Role,
    ) -> Result<PersonChanged, StoreError> {
        let values: Values<'_> = &[&person.as_i64(), &account.as_i64(), &role.name()];
        let changed = self.query("change a role", SET_ROLE, values).await?;
        Ok(if changed.is_empty() {
            PersonChanged::Unknown
        } else {
            PersonChanged::Done
        })
    }

    async fn leave_account(
        &self,
        person: PersonId,
        account: AccountId,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError> {
        let leaving = Leaving {
            person,
            account,
            now,
        };
        attempt::run(&self.pool, "leave an account", &leaving).await
    }
}
