//! What some people decide about others.

use domain::person::Membership;
use domain::person::{Email, Person, Role};
use domain::ports::{InvitationRecord, PersonChanged, PersonRecord, Purpose, StoreError};
use domain::{AccountId, PersonId};

use super::{InviteError, Invited, People};
use crate::audit::{Action, By, Noted};

/// Invitations that are shown at once. More do not wait anywhere.
const MAX_INVITATIONS: u32 = 500;

/// Whom somebody decides about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Everybody: an operator.
    Everybody,
    /// Admins and members of this account: an admin.
    Account(AccountId),
}

impl Reach {
    /// The account that lists are limited to.
    pub fn account(self) -> Option<AccountId> {
        match self {
            Self::Everybody => None,
            Self::Account(account) => Some(account),
        }
    }

    /// An operator who belongs to the account is none of its admins' business.
    fn includes(self, role: Role, account: Option<AccountId>) -> bool {
        match self {
            Self::Everybody => true,
            Self::Account(own) => account == Some(own) && role != Role::Operator,
        }
    }
}

/// Why a decision about somebody changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// There is nobody of this name, or not for whoever asks.
    #[error("there is nobody of this name")]
    Unknown,
    /// There is no invitation for this address, or not for whoever asks.
    #[error("there is no invitation for this address any more")]
    NoInvitation,
    /// An admin cannot make operators.
    #[error("only an operator can make operators")]
    Operator,
    /// Only an operator may be without an account.
    #[error("an admin or a member needs an account")]
    NoAccount,
    /// It concerns other accounts, too.
    #[error("only an operator can make this link")]
    ByOperator,
    /// Nobody would be left to run the service.
    #[error("this is the last operator; make somebody else one first")]
    LastOperator,
    /// They can sign in already.
    #[error("{} can sign in already, as {}", .0.email, .0.role)]
    Known(Box<Person>),
    /// There is no second factor to take away.
    #[error("there is no second factor")]
    NoSecondFactor,
    /// The store could not.
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
    /// People by ID: at most `limit` of those after `after`.
    pub async fn list(
        &self,
        reach: Reach,
        after: Option<PersonId>,
        limit: u32,
    ) -> Result<Vec<PersonRecord>, StoreError> {
        self.store.list_people(reach.account(), after, limit).await
    }

    /// Invitations that can still be used.
    pub async fn list_invitations(
        &self,
        reach: Reach,
    ) -> Result<Vec<InvitationRecord>, StoreError> {
        let now = self.clock.now();
        self.store
            .list_invitations(reach.account(), MAX_INVITATIONS, now)
            .await
    }

    /// Invites somebody, as [`People::invite`] does, within somebody's reach.
    pub async fn invite_within(
        &self,
        by: &By,
        reach: Reach,
        email: Email,
        role: Role,
        account: Option<AccountId>,
    ) -> Result<Invited, ManageError> {
        if !reach.includes(role, account) {
            let action = Action::PersonInvite;
            let why = ManageError::Operator;
            self.audit
                .note_refused(by, reach.account(), action, &email, &why)
                .await?;
            return Err(why);
        }
        Ok(self.invite(by, email, role, account).await?)
    }

    /// Takes the invitation of an address to an account back, where one is named, or all of the address: the links work
    /// no longer.
    pub async fn withdraw_invitations(
        &self,
        by: &By,
        reach: Reach,
        email: &Email,
        account: Option<AccountId>,
    ) -> Result<(), ManageError> {
        let account = reach.account().or(account);
        let waiting = self.list_invitations(reach).await?;
        let mut waiting = waiting.into_iter();
        let found = waiting.find(|record| {
            record.invitation.email == *email && (account.is_none() || record.account == account)
        });
        let found = found.ok_or(ManageError::NoInvitation)?;
        let is_within = match found.invitation.purpose {
            Purpose::Join { role, account } => reach.includes(role, account),
            Purpose::NewPassword(person) => self.get(reach, person).await.is_ok(),
        };
        if !is_within {
            return Err(ManageError::NoInvitation);
        }
        let (about, action) = (found.account, Action::InvitationWithdraw);
        let noted = self.audit.note(by, about, action, email, "").await?;
        let withdrawn = match self.store.withdraw_invitations(email, account).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(ManageError::NoInvitation),
            Err(error) => Err(error.into()),
        };
        noted.done(withdrawn).await
    }

    /// Makes a link by which somebody sets a new password. For a person of several accounts only an operator can: an admin
    /// of one account could use the link to get into the others.
    pub async fn reset(
        &self,
        by: &By,
        reach: Reach,
        id: PersonId,
    ) -> Result<(Person, Invited), ManageError> {
        let person = self.get(reach, id).await?;
        if reach != Reach::Everybody && !self.store.list_memberships(id, id).await?.is_empty() {
            let (action, why) = (Action::PersonReset, ManageError::ByOperator);
            self.audit
                .note_refused(by, person.account, action, &person.email, &why)
                .await?;
            return Err(why);
        }
        let link = self.invite_again(by, &person).await?;
        Ok((person, link))
    }

    /// The further accounts of those on a page of a list.
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

    /// Changes what somebody may do, in an admin's account; for operators also which account they see first.
    pub async fn set_role(
        &self,
        by: &By,
        reach: Reach,
        id: PersonId,
        role: Role,
        account: Option<AccountId>,
    ) -> Result<Person, ManageError> {
        let person = self.get(reach, id).await?;
        let detail = format!("from {} to {role}", person.role);
        let noted = self.note(by, &person, Action::PersonRole, &detail).await?;
        let changed = if !reach.includes(role, account) {
            Err(ManageError::Operator)
        } else if account.is_none() && role != Role::Operator {
            Err(ManageError::NoAccount)
        } else {
            let store = &self.store;
            let changed = match reach {
                Reach::Everybody => store.set_role(id, role, account, self.clock.now()).await,
                Reach::Account(own) => store.set_role_in(id, own, role).await,
            };
            outcome(changed)
        };
        noted.done(changed).await?;
        Ok(Person {
            role,
            account,
            ..person
        })
    }

    /// Removes somebody, from an admin's account or, for operators, altogether. Their sessions there end, and what they
    /// granted to clients; what else they made stays.
    pub async fn remove(&self, by: &By, reach: Reach, id: PersonId) -> Result<Person, ManageError> {
        let person = self.get(reach, id).await?;
        let noted = self.note(by, &person, Action::PersonRemove, "").await?;
        let now = self.clock.now();
        let removed = outcome(match reach {
            Reach::Everybody => self.store.remove_person(id, now).await,
            Reach::Account(own) => self.store.leave_account(id, own, now).await,
        });
        noted.done(removed).await?;
        Ok(person)
    }

    /// Takes somebody's second factor away, for the day on which device and recovery codes are lost. For operators: an
    /// admin could otherwise become whoever they like.
    pub async fn remove_second_factor(&self, by: &By, id: PersonId) -> Result<Person, ManageError> {
        let person = self.get(Reach::Everybody, id).await?;
        let noted = self
            .note(by, &person, Action::SecondFactorRemove, "")
            .await?;
        let removed = match self.store.disable_second_factor(id).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(ManageError::NoSecondFactor),
            Err(error) => Err(error.into()),
        };
        noted.done(removed).await?;
        Ok(person)
    }

    /// Takes one of somebody's accounts away. For operators.
    pub async fn remove_from(
        &self,
        by: &By,
        id: PersonId,
        account: AccountId,
    ) -> Result<Person, ManageError> {
        let person = self.get(Reach::Everybody, id).await?;
        let there = self.find_in(&person, account).await?;
        let person = there.ok_or(ManageError::Unknown)?;
        let noted = self.note(by, &person, Action::PersonRemove, "").await?;
        let now = self.clock.now();
        let removed = outcome(self.store.leave_account(id, account, now).await);
        noted.done(removed).await?;
        Ok(person)
    }

    /// Somebody within reach, as they are in an admin's account.
    async fn get(&self, reach: Reach, id: PersonId) -> Result<Person, ManageError> {
        let found = self.store.find_person(id).await?;
        let person = found.ok_or(ManageError::Unknown)?.person;
        let person = match reach {
            Reach::Everybody => Some(person),
            Reach::Account(own) => self.find_in(&person, own).await?,
        };
        let within = |person: &Person| reach.includes(person.role, person.account);
        person.filter(within).ok_or(ManageError::Unknown)
    }

    async fn note(
        &self,
        by: &By,
        person: &Person,
        action: Action,
        detail: &str,
    ) -> Result<Noted<'_>, StoreError> {
        self.audit
            .note(by, person.account, action, &person.email, detail)
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
