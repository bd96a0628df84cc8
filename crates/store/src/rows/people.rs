//! Rows of people, invitations and sessions.

use domain::ids::{AccountId, PersonId};
use domain::person::{Email, PasswordHash, Person, Role, SignedIn};
use domain::ports::{Credentials, Invitation, Purpose};

use super::{Corrupt, account_id};

/// The columns of a person, in the order in which both databases select them.
pub(crate) struct PersonColumns {
    pub(crate) id: i64,
    pub(crate) email: String,
    pub(crate) role: String,
    pub(crate) account_id: Option<i64>,
}

impl PersonColumns {
    pub(crate) fn person(self) -> Result<Person, Corrupt> {
        Ok(Person {
            id: person_id(self.id)?,
            email: email(&self.email)?,
            role: role(&self.role)?,
            account: self.account_id.map(account_id).transpose()?,
        })
    }

    /// With the column of the password, which follows.
    pub(crate) fn credentials(self, password: String) -> Result<Credentials, Corrupt> {
        Ok(Credentials {
            person: self.person()?,
            password: PasswordHash::new(password),
        })
    }
}

/// The columns of an invitation.
pub(crate) struct InvitationColumns {
    pub(crate) email: String,
    pub(crate) person_id: Option<i64>,
    pub(crate) role: String,
    pub(crate) account_id: Option<i64>,
}

impl InvitationColumns {
    /// The role is kept for both purposes, so that the column is never empty.
    pub(crate) fn of(invitation: &Invitation) -> Self {
        let (person_id, role, account_id) = match invitation.purpose {
            Purpose::Join { role, account } => (None, role, account.map(AccountId::as_i64)),
            Purpose::NewPassword(person) => (Some(person.as_i64()), Role::Member, None),
        };
        Self {
            email: invitation.email.as_str().to_owned(),
            person_id,
            role: role.name().to_owned(),
            account_id,
        }
    }

    pub(crate) fn invitation(self) -> Result<Invitation, Corrupt> {
        let purpose = match self.person_id {
            Some(person) => Purpose::NewPassword(person_id(person)?),
            None => Purpose::Join {
                role: role(&self.role)?,
                account: self.account_id.map(account_id).transpose()?,
            },
        };
        Ok(Invitation {
            email: email(&self.email)?,
            purpose,
        })
    }
}

/// Whose a session is: the account of a link, or the columns of a person.
pub(crate) fn signed_in(
    link_account: Option<i64>,
    person: Option<PersonColumns>,
) -> Result<SignedIn, Corrupt> {
    match (link_account, person) {
        (Some(account), None) => Ok(SignedIn::ByLink(account_id(account)?)),
        (None, Some(columns)) => Ok(SignedIn::Person(columns.person()?)),
        _ => Err(Corrupt("session")),
    }
}

/// Reads a person's ID.
pub(crate) fn person_id(number: i64) -> Result<PersonId, Corrupt> {
    PersonId::from_i64(number).ok_or(Corrupt("person ID"))
}

fn email(text: &str) -> Result<Email, Corrupt> {
    text.parse().map_err(|_| Corrupt("email address"))
}

fn role(name: &str) -> Result<Role, Corrupt> {
    name.parse().map_err(|_| Corrupt("role"))
}
