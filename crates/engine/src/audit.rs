//! The audit log: who changed what, and from where.
//!
//! A use case that changes something on behalf of people takes a [`Actor`] and records the change *before* it makes it, so
//! that no change is missing from the log. A change that is refused afterwards gets a second entry.

mod action;
mod times;

use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;

use domain::ids::AuditId;
use domain::person::SignedIn;
use domain::ports::{AuditEntry, AuditFilter, AuditStore, Change, Cursor, Page, StoreError};
use domain::{Access, AccountId, Clock};

pub use action::{Action, REFUSED};
pub use times::{TextPart, split_times};

/// Longer texts are cut.
const MAX_WHO_CHARS: usize = 300;
const MAX_SUBJECT_CHARS: usize = 300;
const MAX_DETAIL_CHARS: usize = 2000;

/// Who makes a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// An email address, or another name where there is none.
    pub who: String,
    pub address: Option<IpAddr>,
}

impl Actor {
    /// Somebody with access to the machine, by a command of the program.
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

    /// A person who uses the sign-in link of the first start.
    pub fn link(address: IpAddr) -> Self {
        Self {
            who: "link of the first start".to_owned(),
            address: Some(address),
        }
    }

    /// A program that uses a token.
    pub fn token(access: &Access) -> Self {
        Self {
            who: format!("token {}", access.name),
            address: None,
        }
    }

    /// The person of a session.
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
    pub fn new(store: Arc<dyn AuditStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Records what is about to be done. If this fails, the caller must not do it.
    pub async fn record(
        &self,
        by: &Actor,
        account: Option<AccountId>,
        action: Action,
        subject: impl Display,
        detail: impl Display,
    ) -> Result<RecordedChange<'_>, StoreError> {
        let change = self.change(by, account, action.name(), &subject, &detail);
        self.store.record_change(&change).await?;
        Ok(RecordedChange {
            audit: self,
            change,
        })
    }

    /// Records a change that was refused before it began.
    pub async fn record_refused(
        &self,
        by: &Actor,
        account: Option<AccountId>,
        action: Action,
        subject: impl Display,
        why: impl Display,
    ) -> Result<(), StoreError> {
        let action = format!("{}{REFUSED}", action.name());
        let change = self.change(by, account, &action, &subject, &why);
        self.store.record_change(&change).await.map(drop)
    }

    /// Entries that match a filter, newest first.
    pub async fn search(
        &self,
        filter: &AuditFilter,
        cursor: Cursor<AuditId>,
    ) -> Result<Page<AuditEntry, AuditId>, StoreError> {
        self.store.search_changes(filter, cursor).await
    }

    fn change(
        &self,
        by: &Actor,
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

/// A change that is in the log and has yet to be made.
#[must_use = "a refusal has to be recorded, too"]
pub struct RecordedChange<'a> {
    audit: &'a Audit,
    change: Change,
}

impl RecordedChange<'_> {
    /// Records a refusal if the outcome is one, and returns the outcome.
    pub async fn done<T, E: Display>(self, outcome: Result<T, E>) -> Result<T, E> {
        if let Err(why) = &outcome {
            self.refused(why).await;
        }
        outcome
    }

    /// Records that the change was refused.
    pub async fn refused(self, why: &impl Display) {
        let action = format!("{}{REFUSED}", self.change.action);
        let refused = Change {
            action,
            detail: on_one_line(&why.to_string(), MAX_DETAIL_CHARS),
            at: self.audit.clock.now(),
            ..self.change
        };
        if let Err(error) = self.audit.store.record_change(&refused).await {
            // The attempt itself is in the log, which matters more.
            tracing::warn!(%error, action = refused.action, "a refusal could not be recorded in the audit log");
        }
    }
}

/// Describes what a change changes, from the facts before and after it, each with its name.
pub(crate) fn differences<const N: usize>(
    before: [(&str, String); N],
    after: [(&str, String); N],
) -> String {
    let both = before.into_iter().zip(after);
    let changed = both.filter(|(before, after)| before != after);
    let changed: Vec<String> = changed
        .map(|((name, before), (_, after))| format!("{name} {before} → {after}"))
        .collect();
    changed.join("; ")
}

/// Replaces control characters, which people may have typed, so that an entry stays on one line.
fn on_one_line(text: &str, max_chars: usize) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(max_chars).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_texts_are_one_line_of_limited_length() {
        for (text, max, expected) in [
            ("account 3 (acme)", 300, "account 3 (acme)"),
            ("two\nlines\0\u{7f}", 300, "two lines  "),
            ("äöü", 2, "äö"),
        ] {
            assert_eq!(on_one_line(text, max), expected, "{text:?}");
        }
    }
}
