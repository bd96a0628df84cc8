//! People and their roles.

mod email;
mod password;
mod session;
mod totp;

use jiff::Timestamp;

use crate::ids::{AccountId, PersonId};

pub use crate::role::{Role, UnknownRole};
pub use email::{Email, NotAnEmail};
pub use password::{MIN_PASSWORD_CHARS, Password, PasswordHash, WeakPassword};
pub use session::{Device, OpenSession, SessionRecord};
pub use totp::{RECOVERY_BYTES, RECOVERY_CODES, RecoveryCode, TOTP_BYTES, TotpSecret};

/// Somebody who signs in to the dashboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub id: PersonId,
    /// Unique.
    pub email: Email,
    pub role: Role,
    /// The account that they see first. Only an operator may have none.
    pub account: Option<AccountId>,
}

impl Person {
    /// The same person in another of their accounts.
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

/// The identity of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedIn {
    /// The operator who opened the one-time link of the first start and has not created a person yet.
    ByLink(AccountId),
    Person(Person),
}

impl SignedIn {
    /// The account that the session shows and acts for.
    pub fn account(&self) -> Option<AccountId> {
        match self {
            Self::ByLink(account) => Some(*account),
            Self::Person(person) => person.account,
        }
    }

    pub fn role(&self) -> Role {
        match self {
            Self::ByLink(_) => Role::Operator,
            Self::Person(person) => person.role,
        }
    }

    pub fn person(&self) -> Option<&Person> {
        match self {
            Self::ByLink(_) => None,
            Self::Person(person) => Some(person),
        }
    }
}

/// An account of a person besides the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    pub person: PersonId,
    pub account: AccountId,
    /// The role in this account. An operator remains an operator in every account.
    pub role: Role,
    /// Accurate to a few minutes.
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
