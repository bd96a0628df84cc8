//! The originators that a caller may use.

use std::fmt;
use std::str::FromStr;

use crate::sender::originator::{Originator, OriginatorError};

/// The originators that a caller may use. An empty list allows every one that the account may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedSenders(Vec<Originator>);

impl AllowedSenders {
    pub fn new(senders: Vec<Originator>) -> Self {
        Self(senders)
    }

    pub fn allows(&self, originator: &Originator) -> bool {
        let compared = originator.compared();
        self.0.is_empty() || self.0.iter().any(|sender| sender.compared() == compared)
    }

    pub fn as_slice(&self) -> &[Originator] {
        &self.0
    }
}

/// The stored form: one originator on each line, because names may contain spaces.
impl fmt::Display for AllowedSenders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let senders: Vec<&str> = self.0.iter().map(Originator::compared).collect();
        f.write_str(&senders.join("\n"))
    }
}

/// Whether the account may use an originator is checked with each message.
impl FromStr for AllowedSenders {
    type Err = OriginatorError;

    fn from_str(text: &str) -> Result<Self, OriginatorError> {
        text.lines()
            .map(Originator::parse_approved)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_compared_and_stored() {
        let list: AllowedSenders = "Acme Inc.\n37120000001".parse().expect("two senders");
        for (sender, allowed) in [
            ("Acme Inc.", true),
            ("+37120000001", true),
            ("37120000001", true),
            ("Acme", false),
            ("37120000002", false),
        ] {
            let sender = Originator::parse(sender).expect(sender);
            assert_eq!(list.allows(&sender), allowed, "{sender}");
            assert!(AllowedSenders::default().allows(&sender));
        }
        assert_eq!(list.to_string().parse(), Ok(list));
        assert_eq!("".parse(), Ok(AllowedSenders::default()));
    }
}
