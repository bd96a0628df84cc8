//! Managing other people: roles, removal, password resets, withdrawn invitations.

use domain::person::Membership;
use domain::person::{Email, Person, Role};
use domain::ports::{InvitationRecord, PersonChanged, PersonRecord, Purpose, StoreError};
use domain::{AccountId, PersonId};

use super::{InviteError, Invited, People};
use crate::audit::{Action, Actor, RecordedChange};

/// Maximum number of invitations in a list.
const MAX_INVITATIONS: u32 = 500;

/// The people that somebody may manage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeopleScope {
    /// For operators.
    Everybody,
    /// Admins and members of this account; for its admins.
    Account(AccountId),
}

impl PeopleScope {
    /// The account that lists are limited to.
    pub fn account(self) -> Option<AccountId> {
        match self {
            Self::Everybody => None,
            Self::Account(account) => Some(account),
        }
    }

    /// An account's admins do not manage operators who belong to it.
    fn includes(self, role: Role, account: Option<AccountId>) -> bool {
        match self {
            Self::Everybody => true,
            Self::Account(own) => account == Some(own) && role != Role::Operator,
        }
    }
}

/// Why a change of a person was refused.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// There is no such person within reach.
    #[error("there is no such person")]
    Unknown,
    /// There is no such invitation within reach.
    #[error("there is no invitation for this address any more")]
    NoInvitation,
    /// An admin cannot make operators.
    #[error("only an operator can make operators")]
    Operator,
    /// Only an operator may be without an account.
    #[error("an admin or a member needs an account")]
    NoAccount,
    /// The person belongs to other accounts, too.
    #[error("only an operator can make this link")]
    ByOperator,
    /// The service would have no operator left.
    #[error("this is the last operator; make someone else an operator first")]
    LastOperator,
    #[error("{} can sign in already, as {}", .0.email, .0.role)]
    Known(Box<Person>),
    #[error("there is no second factor")]
    NoSecondFactor,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<InviteError> for ManageError {
    fn from(error: InviteError) -> Self {
        match error {
            InviteError::Known(person) => Self::Known(Box::new(person)),
            InviteError::NoAccount => Self::NoAccount,
            InviteError::Store(error) => Self::Store(error),
        }
    }
}

impl People {
    /// People by ID, at most `limit` of those after `after`.
    pub async fn list(
        &self,
        scope: PeopleScope,
        after: Option<PersonId>,
        limit: u32,
    ) -> Result<Vec<PersonRecord>, StoreError> {
        self.store.list_people(scope.account(), after, limit).await
    }

    /// Invitations that are still valid.
    pub async fn list_invitations(
        &self,
        scope: PeopleScope,
    ) -> Result<Vec<InvitationRecord>, StoreError> {
        let now = self.clock.now();
        self.store
            .list_invitations(scope.account(), MAX_INVITATIONS, now)
            .await
    }

    /// Like [`People::invite`], within somebody's reach.
    pub async fn invite_within(
        &self,
        by: &Actor,
        scope: PeopleScope,
        email: Email,
        role: Role,
        account: Option<AccountId>,
    ) -> Result<Invited, ManageError> {
        if !scope.includes(role, account) {
            let action = Action::PersonInvite;
            let why = ManageError::Operator;
            self.audit
                .record_refused(by, scope.account(), action, &email, &why)
                .await?;
            return Err(why);
        }
        Ok(self.invite(by, email, role, account).await?)
    }

    /// Withdraws the invitation of an address to one account, or all invitations of the address.
    pub async fn withdraw_invitations(
        &self,
        by: &Actor,
        scope: PeopleScope,
        email: &Email,
        account: Option<AccountId>,
    ) -> Result<(), ManageError> {
        let account = scope.account().or(account);
        let waiting = self.list_invitations(scope).await?;
        let mut waiting = waiting.into_iter();
        let found = waiting.find(|record| {
            record.invitation.email == *email && (account.is_none() || record.account == account)
        });
        let found = found.ok_or(ManageError::NoInvitation)?;
        let is_within = match found.invitation.purpose {
            Purpose::Join { role, account } => scope.includes(role, account),
            Purpose::NewPassword(person) => self.get(scope, person).await.is_ok(),
        };
        if !is_within {
            return Err(ManageError::NoInvitation);
        }
        let (about, action) = (found.account, Action::InvitationWithdraw);
        let recorded = self.audit.record(by, about, action, email, "").await?;
        let withdrawn = match self.store.withdraw_invitations(email, account).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(ManageError::NoInvitation),
            Err(error) => Err(error.into()),
        };
        recorded.done(withdrawn).await
    }

    /// Creates a password reset link. For a person of several accounts only an operator may: an admin of one account
    /// could use the link to get into the others.
    pub async fn reset(
        &self,
        by: &Actor,
        scope: PeopleScope,
        id: PersonId,
    ) -> Result<(Person, Invited), ManageError> {
        let person = self.get(scope, id).await?;
        if scope != PeopleScope::Everybody && !self.store.list_memberships(id, id).await?.is_empty()
        {
            let (action, why) = (Action::PersonReset, ManageError::ByOperator);
            self.audit
                .record_refused(by, person.account, action, &person.email, &why)
                .await?;
            return Err(why);
        }
        let link = self.invite_again(by, &person).await?;
        Ok((person, link))
    }

    /// The further accounts of the people on a page of a list.
    pub async fn list_memberships(
        &self,
        people: &[PersonRecord],
    ) -> Result<Vec<Membership>, StoreError> {
        let (Some(first), Some(last)) = (people.first(), people.last()) else {
            return Ok(Vec::new());
        };
        self.store
            .list_memberships(first.person.id, last.person.id)
            .await
    }

    /// Changes a person's role: an admin within their account, an operator altogether. An operator also sets which
    /// account the person sees first.
    pub async fn set_role(
        &self,
        by: &Actor,
        scope: PeopleScope,
        id: PersonId,
        role: Role,
        account: Option<AccountId>,
    ) -> Result<Person, ManageError> {
        let person = self.get(scope, id).await?;
        let detail = format!("from {} to {role}", person.role);
        let recorded = self
            .record(by, &person, Action::PersonRole, &detail)
            .await?;
        let changed = if !scope.includes(role, account) {
            Err(ManageError::Operator)
        } else if account.is_none() && role != Role::Operator {
            Err(ManageError::NoAccount)
        } else {
            let store = &self.store;
            let changed = match scope {
                PeopleScope::Everybody => store.set_role(id, role, account, self.clock.now()).await,
                PeopleScope::Account(own) => store.set_account_role(id, own, role).await,
            };
            outcome(changed)
        };
        recorded.done(changed).await?;
        Ok(Person {
            role,
            account,
            ..person
        })
    }

    /// Removes a person: an admin from their account, an operator altogether. The person's sessions there end and their
    /// grants to clients are revoked.
    pub async fn remove(
        &self,
        by: &Actor,
        scope: PeopleScope,
        id: PersonId,
    ) -> Result<Person, ManageError> {
        let person = self.get(scope, id).await?;
        let recorded = self.record(by, &person, Action::PersonRemove, "").await?;
        let now = self.clock.now();
        let removed = outcome(match scope {
            PeopleScope::Everybody => self.store.remove_person(id, now).await,
            PeopleScope::Account(own) => self.store.remove_member(id, own, now).await,
        });
        recorded.done(removed).await?;
        Ok(person)
    }

    /// Removes a person's second factor, if device and recovery codes are lost. Only for operators: an admin could use
    /// it to sign in as another person.
    pub async fn remove_second_factor(
        &self,
        by: &Actor,
        id: PersonId,
    ) -> Result<Person, ManageError> {
        let person = self.get(PeopleScope::Everybody, id).await?;
        let recorded = self
            .record(by, &person, Action::SecondFactorRemove, "")
            .await?;
        let removed = match self.store.disable_second_factor(id).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(ManageError::NoSecondFactor),
            Err(error) => Err(error.into()),
        };
        recorded.done(removed).await?;
        Ok(person)
    }

    /// Removes a person from one of their accounts. Only for operators.
    pub async fn remove_from(
        &self,
        by: &Actor,
        id: PersonId,
        account: AccountId,
    ) -> Result<Person, ManageError> {
        let person = self.get(PeopleScope::Everybody, id).await?;
        let member = self.find_in(&person, account).await?;
        let person = member.ok_or(ManageError::Unknown)?;
        let recorded = self.record(by, &person, Action::PersonRemove, "").await?;
        let now = self.clock.now();
        let removed = outcome(self.store.remove_member(id, account, now).await);
        recorded.done(removed).await?;
        Ok(person)
    }

    /// A person within reach, with their role in the admin's account.
    async fn get(&self, scope: PeopleScope, id: PersonId) -> Result<Person, ManageError> {
        let found = self.store.find_person(id).await?;
        let person = found.ok_or(ManageError::Unknown)?.person;
        let person = match scope {
            PeopleScope::Everybody => Some(person),
            PeopleScope::Account(own) => self.find_in(&person, own).await?,
        };
        let within = |person: &Person| scope.includes(person.role, person.account);
        person.filter(within).ok_or(ManageError::Unknown)
    }

    async fn record(
        &self,
        by: &Actor,
        person: &Person,
        action: Action,
        detail: &str,
    ) -> Result<RecordedChange<'_>, StoreError> {
        self.audit
            .record(by, person.account, action, &person.email, detail)
            .await
    }
}

fn outcome(changed: Result<PersonChanged, StoreError>) -> Result<(), ManageError> {
    match changed? {
        PersonChanged::Done => Ok(()),
        PersonChanged::Unknown => Err(ManageError::Unknown),
        PersonChanged::LastOperator => Err(ManageError::LastOperator),
    }
}
