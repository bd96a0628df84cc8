//! The port for memberships: people who belong to several accounts.

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::ids::{AccountId, PersonId};
use domain::person::Membership;
use domain::person::Role;
use domain::ports::{Joining, MembershipStore, PersonChanged, Purpose, StoreError};
use domain::{Timestamp, TokenHash};
use tokio_postgres::Row;

use super::fault::Fault;
use super::oauth::end_grants_of;
use super::people::{LOCK_PERSON, bytes, delete_person, invitation};
use super::retry::{self, Retryable};
use super::transaction::{execute, query};
use super::{PostgresStore, Values, column};
use crate::rows::oauth::GrantsToEnd;
use crate::rows::people::MembershipColumns;
use crate::rows::{Corrupt, micros};
use crate::sql::memberships as sql;

const SET_ROLE: &str = "
    WITH first AS (
        UPDATE person SET role = $3 WHERE id = $1 AND account_id = $2 AND role <> 'operator' RETURNING id
    ), further AS (
        UPDATE membership SET role = $3 WHERE person_id = $1 AND account_id = $2 RETURNING person_id
    )
    SELECT id FROM first UNION ALL SELECT person_id FROM further";
const FIND_FIRST_ACCOUNT: &str = "SELECT role, account_id FROM person WHERE id = $1 FOR UPDATE";

impl Retryable for Joining {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let (person, now_us) = (self.person.as_i64(), micros(self.now));
        query(&transaction, LOCK_PERSON, &[&person]).await?;
        let values: Values<'_> = &[&bytes(&self.link), &now_us, &person];
        let used = query(&transaction, sql::USE_INVITATION.postgres, values).await?;
        let used = used.first().map(invitation).transpose()?;
        let Some(Purpose::Join {
            role,
            account: Some(account),
        }) = used.map(|used| used.purpose)
        else {
            return Ok(false);
        };
        let account = account.as_i64();
        query(&transaction, sql::DELETE_LINKS.postgres, &[&person]).await?;
        query(
            &transaction,
            sql::SET_FIRST_IF_NONE.postgres,
            &[&person, &account],
        )
        .await?;
        let values: Values<'_> = &[&person, &account, &role.name(), &now_us];
        execute(&transaction, sql::JOIN.postgres, values).await?;
        let values: Values<'_> = &[&bytes(&self.session), &bytes(&self.renewed), &account];
        let switched = execute(&transaction, sql::SWITCH.postgres, values).await?;
        transaction.commit().await?;
        Ok(switched > 0)
    }
}

struct RemoveMember {
    person: PersonId,
    account: AccountId,
    now: Timestamp,
}

impl Retryable for RemoveMember {
    type Output = PersonChanged;

    async fn run(&self, client: &mut Object) -> Result<PersonChanged, Fault> {
        let transaction = client.transaction().await?;
        let (id, lost) = (self.person.as_i64(), self.account.as_i64());
        let first = query(&transaction, FIND_FIRST_ACCOUNT, &[&id]).await?;
        let Some(row) = first.first() else {
            return Ok(PersonChanged::Unknown);
        };
        let (role, first): (String, Option<i64>) = (column(row, 0)?, column(row, 1)?);
        query(
            &transaction,
            sql::END_ACCOUNT_SESSIONS.postgres,
            &[&id, &lost],
        )
        .await?;
        let now_us = micros(self.now);
        if first != Some(lost) {
            let left = execute(&transaction, sql::LEAVE.postgres, &[&id, &lost]).await?;
            if left == 0 {
                return Ok(PersonChanged::Unknown);
            }
        } else if !replace_first_account(&transaction, id, &role).await? {
            delete_person(&transaction, self.person, now_us).await?;
        }
        end_grants_of(
            &transaction,
            self.person,
            GrantsToEnd::OfLostAccounts,
            now_us,
        )
        .await?;
        transaction.commit().await?;
        Ok(PersonChanged::Done)
    }
}

/// Makes the oldest membership of a person their first account; an operator may have none. `false` if the person has no
/// account left.
async fn replace_first_account(
    transaction: &Transaction<'_>,
    person: i64,
    role: &str,
) -> Result<bool, Fault> {
    let is_operator = role == Role::Operator.name();
    let next = query(transaction, sql::FIND_OLDEST.postgres, &[&person]).await?;
    let Some(next) = next.first() else {
        if is_operator {
            let values: Values<'_> = &[&person, &role, &None::<i64>, &None::<i64>];
            query(transaction, sql::SET_FIRST.postgres, values).await?;
        }
        return Ok(is_operator);
    };
    let (account, member_role, seen_us): (i64, String, Option<i64>) =
        (column(next, 0)?, column(next, 1)?, column(next, 2)?);
    let role = if is_operator { role } else { &member_role };
    let values: Values<'_> = &[&person, &role, &account, &seen_us];
    query(transaction, sql::SET_FIRST.postgres, values).await?;
    for sql in [sql::LEAVE.postgres, sql::RESET_CHOSEN_ACCOUNT.postgres] {
        execute(transaction, sql, &[&person, &account]).await?;
    }
    Ok(true)
}

fn membership(row: &Row) -> Result<Membership, Corrupt> {
    MembershipColumns::read(row)?.membership()
}

#[async_trait]
impl MembershipStore for PostgresStore {
    async fn list_memberships(
        &self,
        first: PersonId,
        last: PersonId,
    ) -> Result<Vec<Membership>, StoreError> {
        let values: Values<'_> = &[&first.as_i64(), &last.as_i64()];
        self.list(
            "list accounts of people",
            sql::LIST.postgres,
            values,
            membership,
        )
        .await
    }

    async fn join_account(&self, joining: &Joining) -> Result<bool, StoreError> {
        retry::run(&self.pool, "join an account", joining).await
    }

    async fn switch_account(
        &self,
        session: &TokenHash,
        renewed: &TokenHash,
        account: Option<AccountId>,
    ) -> Result<bool, StoreError> {
        let account = account.map(AccountId::as_i64);
        let values: Values<'_> = &[&bytes(session), &bytes(renewed), &account];
        let switched = self
            .execute("switch accounts", sql::SWITCH.postgres, values)
            .await?;
        Ok(switched > 0)
    }

    async fn set_account_role(
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

    async fn remove_member(
        &self,
        person: PersonId,
        account: AccountId,
        now: Timestamp,
    ) -> Result<PersonChanged, StoreError> {
        let removal = RemoveMember {
            person,
            account,
            now,
        };
        retry::run(&self.pool, "remove a member", &removal).await
    }
}
