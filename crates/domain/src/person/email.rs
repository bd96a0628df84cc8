//! The email address that a person signs in with.

use std::fmt;
use std::str::FromStr;

use crate::quoted::Quoted;

/// The longest address that can receive mail.
const MAX_BYTES: usize = 254;

/// An email address in lower case, so that people may sign in with any spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Email(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not an email address; write it like ann@example.com", Quoted(.0))]
pub struct NotAnEmail(String);

impl Email {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the `@`.
    pub fn local_part(&self) -> &str {
        self.0.split('@').next().unwrap_or_default()
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Email {
    type Err = NotAnEmail;

    /// Refuses only what cannot be an address; the arrival of the invitation proves the rest.
    fn from_str(text: &str) -> Result<Self, NotAnEmail> {
        let email = text.trim().to_lowercase();
        let forbidden =
            |c: char| c.is_control() || c.is_whitespace() || "<>()[],;:\\\"".contains(c);
        let well_formed = email.split_once('@').is_some_and(|(local, domain)| {
            let labels = |domain: &str| domain.split('.').all(|label| !label.is_empty());
            !local.is_empty() && !domain.contains('@') && labels(domain)
        });
        if well_formed && email.len() <= MAX_BYTES && !email.contains(forbidden) {
            Ok(Self(email))
        } else {
            Err(NotAnEmail(text.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_become_lower_case() {
        for (text, expected) in [
            ("ann@example.com", Some("ann@example.com")),
            (" Ann@Example.COM\n", Some("ann@example.com")),
            ("a+b.c@x-y.example", Some("a+b.c@x-y.example")),
            ("root@localhost", Some("root@localhost")),
            ("zoë@exämple.eu", Some("zoë@exämple.eu")),
            ("", None),
            ("ann", None),
            ("@example.com", None),
            ("ann@", None),
            ("ann@example..com", None),
            ("ann@example.com.", None),
            ("ann@b@example.com", None),
            ("an n@example.com", None),
            ("Ann <ann@example.com>", None),
            ("ann\0@example.com", None),
            ("a,b@example.com", None),
        ] {
            let read = text.parse::<Email>().ok();
            assert_eq!(read.as_ref().map(Email::as_str), expected, "{text:?}");
        }
        let long = format!("{}@example.com", "a".repeat(MAX_BYTES));
        assert!(long.parse::<Email>().is_err());
    }

    proptest! {
        #[test]
        fn parsed_addresses_round_trip(text in "\\PC{0,30}@\\PC{0,30}") {
            if let Ok(email) = text.parse::<Email>() {
                prop_assert_eq!(email.as_str().parse::<Email>(), Ok(email));
            }
        }
    }
}
