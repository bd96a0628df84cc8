//! The log of changes: who changed what, and from where.
//!
//! A use case that changes something for people takes a [`By`] and notes the change down *before* it makes it, so that
//! nothing is done that nobody can find out. What is then refused is noted as refused.

mod action;

use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;

use domain::ids::AuditId;
use domain::person::SignedIn;
use domain::ports::{AuditEntry, AuditFilter, AuditStore, Change, Found, Look, StoreError};
use domain::{AccountId, Clock};

pub use action::{Action, REFUSED};

/// The longest name, subject and detail, in characters; what is longer is cut.
const MAX_WHO_CHARS: usize = 300;
const MAX_SUBJECT_CHARS: usize = 300;
const MAX_DETAIL_CHARS: usize = 2000;

/// Who makes a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// An email address, or what takes its place.
    pub who: String,
    /// From where, where that is known.
    pub address: Option<IpAddr>,
}

impl By {
    /// Whoever runs the program's commands on its machine.
    pub fn command_line() -> Self {
        Self {
            who: "command line".to_owned(),
            address: None,
        }
    }

    /// The service itself, when it starts on an empty database.
    pub fn first_start() -> Self {
        Self {
            who: "first start".to_owned(),
            address: None,
        }
    }

    /// Whoever uses the link of the first start.
    pub fn link(address: IpAddr) -> Self {
        Self {
            who: "link of the first start".to_owned(),
            address: Some(address),
        }
    }

    /// Whoever is signed in.
    pub fn signed_in(signed_in: &SignedIn, address: IpAddr) -> Self {
        match signed_in {
            SignedIn::ByLink(_) => Self::link(address),
            SignedIn::Person(person) => Self {
                who: person.email.to_string(),
                address: Some(address),
            },
        }
    }
}

/// The log of changes.
#[derive(Clone)]
pub struct Audit {
    store: Arc<dyn AuditStore>,
    clock: Arc<dyn Clock>,
}

impl Audit {
    /// Works on a store.
    pub fn new(store: Arc<dyn AuditStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Notes down what is about to be done. When this fails, it must not be done.
    pub async fn note(
        &self,
        by: &By,
        account: Option<AccountId>,
        action: Action,
        subject: impl Display,
        detail: impl Display,
    ) -> Result<Noted<'_>, StoreError> {
        let change = self.change(by, account, action.name(), &subject, &detail);
        self.store.note_change(&change).await?;
        Ok(Noted {
            audit: self,
            change,
        })
    }

    /// Notes down what was refused before it was begun.
    pub async fn note_refused(
        &self,
        by: &By,
        account: Option<AccountId>,
        action: Action,
        subject: impl Display,
        why: impl Display,
    ) -> Result<(), StoreError> {
        let action = format!("{}{REFUSED}", action.name());
        let change = self.change(by, account, &action, &subject, &why);
        self.store.note_change(&change).await.map(drop)
    }

    /// Changes that fit, the newest first.
    pub async fn look(
        &self,
        filter: &AuditFilter,
        look: Look<AuditId>,
    ) -> Result<Found<AuditEntry, AuditId>, StoreError> {
        self.store.look_for_changes(filter, look).await
    }

    fn change(
        &self,
        by: &By,
        account: Option<AccountId>,
        action: &str,
        subject: &dyn Display,
        detail: &dyn Display,
    ) -> Change {
        Change {
            who: on_one_line(&by.who, MAX_WHO_CHARS),
            address: by.address,
            account,
            action: action.to_owned(),
            subject: on_one_line(&subject.to_string(), MAX_SUBJECT_CHARS),
            detail: on_one_line(&detail.to_string(), MAX_DETAIL_CHARS),
            at: self.clock.now(),
        }
    }
}

/// A change that was noted down and is now to be made.
#[must_use = "a refusal has to be noted, too"]
pub struct Noted<'a> {
    audit: &'a Audit,
    change: Change,
}

impl Noted<'_> {
    /// Notes down that it was refused, if it was, and gives the outcome back.
    pub async fn done<T, E: Display>(self, outcome: Result<T, E>) -> Result<T, E> {
        if let Err(why) = &outcome {
            self.refused(why).await;
        }
        outcome
    }

    /// Notes down that it was refused.
    pub async fn refused(self, why: &impl Display) {
        let action = format!("{}{REFUSED}", self.change.action);
        let refused = Change {
            action,
            detail: on_one_line(&why.to_string(), MAX_DETAIL_CHARS),
            at: self.audit.clock.now(),
            ..self.change
        };
        if let Err(error) = self.audit.store.note_change(&refused).await {
            // What was tried is noted; that nothing came of it is the lesser half.
            tracing::warn!(%error, action = refused.action, "a refusal could not be noted");
        }
    }
}

/// What people typed may hold anything; the log holds lines.
fn on_one_line(text: &str, max_chars: usize) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(max_chars).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_one_line_that_ends() {
        for (text, max, expected) in [
            ("account 3 (acme)", 300, "account 3 (acme)"),
            ("two\nlines\0\u{7f}", 300, "two lines  "),
            ("äöü", 2, "äö"),
        ] {
            assert_eq!(on_one_line(text, max), expected, "{text:?}");
        }
    }
}
