//! People: who may sign in, and as what.

mod email;
mod password;
mod session;
mod totp;

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use crate::ids::{AccountId, PersonId};
use crate::shown::Shown;

pub use email::{Email, NotAnEmail};
pub use password::{MIN_PASSWORD_CHARS, Password, PasswordHash, WeakPassword};
pub use session::{Device, OpenSession, SessionRecord};
pub use totp::{RECOVERY_BYTES, RECOVERY_CODES, RecoveryCode, TOTP_BYTES, TotpSecret};

/// What a person may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Runs the service.
    Operator,
    /// Runs an account.
    Admin,
    /// Works with an account.
    Member,
}

impl Role {
    /// Every role, from the most powerful on.
    pub const ALL: [Self; 3] = [Self::Operator, Self::Admin, Self::Member];

    /// The name that databases, pages and the command line use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name belongs to no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is no role; choose from operator, admin, member", Shown(.0))]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(name: &str) -> Result<Self, UnknownRole> {
        Self::ALL
            .into_iter()
            .find(|role| role.name() == name)
            .ok_or_else(|| UnknownRole(name.to_owned()))
    }
}

/// Somebody who may sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The ID.
    pub id: PersonId,
    /// What they sign in with; nobody else has it.
    pub email: Email,
    /// What they may do.
    pub role: Role,
    /// The account that they see. Only an operator may have none.
    pub account: Option<AccountId>,
}

impl Person {
    /// The same person as they are in one of their further accounts.
    #[must_use]
    pub fn with_membership(self, further: &Membership) -> Self {
        let role = match self.role {
            Role::Operator => Role::Operator,
            Role::Admin | Role::Member => further.role,
        };
        Self {
            role,
            account: Some(further.account),
            ..self
        }
    }
}

/// Whose session it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedIn {
    /// The operator, who opened the one-time link of the first start and has not said yet who they are.
    ByLink(AccountId),
    /// A person.
    Person(Person),
}

impl SignedIn {
    /// The one account that may be seen and acted for.
    pub fn account(&self) -> Option<AccountId> {
        match self {
            Self::ByLink(account) => Some(*account),
            Self::Person(person) => person.account,
        }
    }

    /// What they may do.
    pub fn role(&self) -> Role {
        match self {
            Self::ByLink(_) => Role::Operator,
            Self::Person(person) => person.role,
        }
    }

    /// Who it is, where that is known.
    pub fn person(&self) -> Option<&Person> {
        match self {
            Self::ByLink(_) => None,
            Self::Person(person) => Some(person),
        }
    }
}

/// A further account of a person, besides the one that they see first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// Who.
    pub person: PersonId,
    /// Which account.
    pub account: AccountId,
    /// What they may do there. An operator may do everything anywhere.
    pub role: Role,
    /// When they last worked with it, to within some minutes.
    pub seen_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_is_found_by_its_name() {
        for role in Role::ALL {
            assert_eq!(role.name().parse(), Ok(role));
        }
        assert!("Operator".parse::<Role>().is_err());
    }
}
