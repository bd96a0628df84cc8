//! Statements that both databases understand, one file for each port.
//!
//! They are written with the parameters of `SQLite` (`?1`), and the compiler derives the text for `PostgreSQL` (`$1`).
//! Statements of hot paths are not shared, because each backend is optimized in its own way.
//!
//! Statements of all files write kinds and states as numbers:
//!
//! | column | numbers |
//! |---|---|
//! | `queue.owner` | 0 nobody, -1 a carrier has it, below -1 a route pool, above 0 the node that holds it |
//! | `callback_queue.owner` | 0 nobody, below 0 the queue of a receiver, above 0 the node that holds it |
//! | `message.state` | 0 queued, 1 scheduled, 2 cancelled |
//! | `message.status`, `transit.status` | 1 delivered, 2 failed, 16 expired |
//! | `message.channel` | 0 SMS, 1 Viber, 2 lookup |
//! | `callback.state` | 0 waiting, 1 parked, 2 delivered |
//! | `callback.kind` | 0 delivery report, 1 lookup, 2 sender ID, 3 message from a handset |
//! | `ledger.kind` | 1 credit, 2 charge, 3 refund, 4 message from a handset, 5 verification |
//! | `token.kind` | 0 API token, 1 access token, 2 refresh token |
//! | `opt_out.via` | 0 keyword, 1 API, 2 dashboard, 3 import |
//! | `block_rule.kind` | 0 number, 1 prefix, 2 sender, 3 word |
//! | `sender.state` | 1 under review, 2 waits for its PIN, 3 approved, 4 rejected, 5 revoked |
//! | `verification.state` | 0 pending, 1 approved, 2 expired or replaced, 3 failed |

pub(crate) mod alerts;
pub(crate) mod attempts;
pub(crate) mod audit;
pub(crate) mod billing;
pub(crate) mod binds;
pub(crate) mod callbacks;
pub(crate) mod catalogue;
pub(crate) mod codes;
pub(crate) mod encrypted;
pub(crate) mod fold;
pub(crate) mod history;
pub(crate) mod inbound;
pub(crate) mod inbound_sources;
pub(crate) mod ledger_totals;
pub(crate) mod memberships;
pub(crate) mod message_detail;
pub(crate) mod messages;
pub(crate) mod monitoring;
pub(crate) mod oauth;
pub(crate) mod operations;
pub(crate) mod opt_outs;
pub(crate) mod people;
pub(crate) mod ported;
pub(crate) mod replay;
pub(crate) mod replies;
pub(crate) mod request_log;
pub(crate) mod second_factor;
pub(crate) mod senders;
pub(crate) mod sessions;
pub(crate) mod smpp_users;
pub(crate) mod templates;
pub(crate) mod verify;

/// One statement for both databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sql {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

/// Makes an [`Sql`] from a text with numbered parameters (`?1`).
macro_rules! sql {
    ($text:expr) => {{
        const TEXT: &str = $text;
        const BYTES: [u8; TEXT.len()] = $crate::sql::with_dollars(TEXT);
        $crate::sql::Sql {
            sqlite: TEXT,
            postgres: $crate::sql::utf8(&BYTES),
        }
    }};
}
use sql;

/// The text with `$1` for each `?1`, which has the same length.
const fn with_dollars<const LENGTH: usize>(text: &str) -> [u8; LENGTH] {
    let text = text.as_bytes();
    let mut bytes = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        let is_parameter = text[at] == b'?' && at + 1 < LENGTH && text[at + 1].is_ascii_digit();
        bytes[at] = if is_parameter { b'$' } else { text[at] };
        at += 1;
    }
    bytes
}

const fn utf8(bytes: &[u8]) -> &str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("replacing one ASCII character by another keeps the text valid"),
    }
}

#[cfg(test)]
mod tests {
    use domain::billing::EntryKind;
    use domain::delivery::CallbackKind;
    use domain::oauth::TokenKind;
    use domain::sender::SenderState;
    use domain::{Channel, Code, Outcome};

    use super::*;
    use crate::rows::callbacks::{DONE, PARKED, WAITING};
    use crate::rows::{CANCELLED, NOBODY, QUEUED, SCHEDULED, channel_number};

    #[test]
    fn statements_use_the_numbers_of_the_types() {
        let status = |outcome: Outcome| i16::from(outcome.status());
        for (name, number, expected) in [
            ("queued", QUEUED, 0),
            ("scheduled", SCHEDULED, 1),
            ("cancelled", CANCELLED, 2),
            ("delivered", status(Outcome::Delivered), 1),
            ("failed", status(Outcome::Failed(Code::ABSENT)), 2),
            ("expired", status(Outcome::Expired), 16),
            ("SMS", channel_number(Channel::Sms), 0),
            ("Viber", channel_number(Channel::Viber), 1),
            ("lookup", channel_number(Channel::Hlr), 2),
            ("waiting callback", WAITING, 0),
            ("parked callback", PARKED, 1),
            ("delivered callback", DONE, 2),
            ("callback of a report", CallbackKind::Report.number(), 0),
            ("callback of a lookup", CallbackKind::Lookup.number(), 1),
            ("callback of a sender ID", CallbackKind::Sender.number(), 2),
            (
                "callback of a message from a handset",
                CallbackKind::Inbound.number(),
                3,
            ),
            ("credit", EntryKind::Credit.number(), 1),
            ("charge", EntryKind::Charge.number(), 2),
            ("refund", EntryKind::Refund.number(), 3),
            ("inbound", EntryKind::Inbound.number(), 4),
            ("verification", EntryKind::Verification.number(), 5),
            ("API token", TokenKind::Api.number(), 0),
            ("access token", TokenKind::Access.number(), 1),
            ("refresh token", TokenKind::Refresh.number(), 2),
            (
                "unconfirmed sender ID",
                SenderState::AwaitingConfirmation.number(),
                2,
            ),
            ("approved sender ID", SenderState::Approved.number(), 3),
        ] {
            assert_eq!(number, expected, "{name}");
        }
        assert_eq!(NOBODY, 0);
    }

    #[test]
    fn only_parameters_are_rewritten() {
        for (name, statement, sqlite, postgres) in [
            ("one", sql!("a = ?1"), "a = ?1", "a = $1"),
            (
                "two digits",
                sql!("VALUES (?9, ?10)"),
                "VALUES (?9, ?10)",
                "VALUES ($9, $10)",
            ),
            ("no number", sql!("a ? b"), "a ? b", "a ? b"),
            ("at the end", sql!("a ?"), "a ?", "a ?"),
            ("other letters", sql!("'ä' = ?1"), "'ä' = ?1", "'ä' = $1"),
        ] {
            assert_eq!(statement, Sql { sqlite, postgres }, "{name}");
        }
    }
}
