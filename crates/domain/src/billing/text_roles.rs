//! The roles that see message texts in the dashboard.

use std::fmt;
use std::str::FromStr;

use crate::role::{Role, UnknownRole};

const ALL: &str = "all";
const NONE: &str = "none";

/// Who sees the texts of an account's messages in the dashboard. Tokens are not affected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TextRoles {
    /// Everybody who may see the messages.
    #[default]
    All,
    /// Only these.
    Only(Vec<Role>),
}

impl TextRoles {
    /// Only these roles; all roles together are everybody.
    pub fn only(mut roles: Vec<Role>) -> Self {
        roles.sort_unstable_by_key(|role| role.name());
        roles.dedup();
        if Role::ALL.iter().all(|role| roles.contains(role)) {
            return Self::All;
        }
        Self::Only(roles)
    }

    pub fn includes(&self, role: Role) -> bool {
        match self {
            Self::All => true,
            Self::Only(roles) => roles.contains(&role),
        }
    }
}

/// The stored form, which is also the value of `account set`: `all`, `none`, or roles separated by commas.
impl fmt::Display for TextRoles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str(ALL),
            Self::Only(roles) if roles.is_empty() => f.write_str(NONE),
            Self::Only(roles) => {
                let names: Vec<&str> = roles.iter().map(|role| role.name()).collect();
                f.write_str(&names.join(","))
            }
        }
    }
}

impl FromStr for TextRoles {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        match text {
            ALL => Ok(Self::All),
            NONE => Ok(Self::only(Vec::new())),
            roles => {
                let roles = roles.split(',').map(|role| role.trim().parse());
                Ok(Self::only(roles.collect::<Result<_, _>>()?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_and_written() {
        for (text, written, member) in [
            ("all", "all", true),
            ("none", "none", false),
            ("operator,admin", "admin,operator", false),
            ("member, admin,member", "admin,member", true),
            ("operator,admin,member", "all", true),
        ] {
            let roles: TextRoles = text.parse().expect(text);
            assert_eq!(roles.to_string(), written, "{text}");
            assert_eq!(roles.includes(Role::Member), member, "{text}");
            assert_eq!(written.parse(), Ok(roles), "{text}");
        }
        assert!("owner".parse::<TextRoles>().is_err());
        assert!("".parse::<TextRoles>().is_err());
    }
}
