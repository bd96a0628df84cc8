//! The roles of people.

use std::fmt;
use std::str::FromStr;

use crate::quoted::Quoted;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Operator,
    Admin,
    Member,
}

impl Role {
    /// Every role, the most powerful first.
    pub const ALL: [Self; 3] = [Self::Operator, Self::Admin, Self::Member];

    /// The name in the database, on pages and on the command line.
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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a role; choose from operator, admin, member", Quoted(.0))]
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
