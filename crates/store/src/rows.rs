//! The columns of rows, and how they become types of `domain`. Both databases share this.

use std::borrow::Cow;

use domain::ids::{AccountId, MessageId, NodeId, TokenId};
use domain::message::outcome::Outcome;
use domain::message::{
    AcceptedMessages, Holder, MessageRecord, MessageState, ScheduledRecord, SendTime, Submission,
};
use domain::ports::{Accepted, AccountRecord, NewAccount, SigningSecrets, StoredAnswer};
use domain::{Channel, KeyRing, Money, Msisdn, Originator, Timestamp};
use jiff::SignedDuration;

pub(crate) mod alerts;
pub(crate) mod audit;
pub(crate) mod billing;
pub(crate) mod binds;
pub(crate) mod callbacks;
pub(crate) mod carriers;
pub(crate) mod dispatch;
pub(crate) mod encrypted;
pub(crate) mod ended;
pub(crate) mod fold;
pub(crate) mod history;
pub(crate) mod inbound;
pub(crate) mod ledger_totals;
pub(crate) mod monitoring;
pub(crate) mod oauth;
pub(crate) mod operations;
pub(crate) mod opt_outs;
mod pages;
pub(crate) mod people;
pub(crate) mod polls;
pub(crate) mod ported;
pub(crate) mod privacy;
pub(crate) mod records;
pub(crate) mod replies;
pub(crate) mod request_log;
pub(crate) mod senders;
pub(crate) mod smpp_users;
pub(crate) mod sweep;
pub(crate) mod templates;
mod tokens;
pub(crate) mod traffic;
pub(crate) mod verify;
pub(crate) mod waiting;

pub(crate) use pages::{before, page};
pub(crate) use tokens::TokenColumns;

/// A row of either database. Both read a column into the same type, so each table is read in one place.
pub(crate) trait SqlRow {
    type Error: From<Corrupt>;

    fn column<T: SqlValue>(&self, at: usize) -> Result<T, Self::Error>;
}

/// A type that both databases can read a column into.
pub(crate) trait SqlValue:
    rusqlite::types::FromSql + for<'row> tokio_postgres::types::FromSql<'row>
{
}

impl<T> SqlValue for T where
    T: rusqlite::types::FromSql + for<'row> tokio_postgres::types::FromSql<'row>
{
}

/// `queue.owner`: no node holds it, so any node may claim it.
pub(crate) const NOBODY: i64 = 0;

/// `message.state`: waits to be handed to a carrier.
pub(crate) const QUEUED: i16 = 0;
/// `message.state`: waits for its send time.
pub(crate) const SCHEDULED: i16 = 1;
/// `message.state`: cancelled by the caller.
pub(crate) const CANCELLED: i16 = 2;

/// A column has a value that this program never writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored {0} is not one that this program wrote")]
pub(crate) struct Corrupt(pub(crate) &'static str);

/// A time as both databases store it, truncated to microseconds.
pub(crate) fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

/// A duration as both databases store it.
pub(crate) fn duration_us(duration: SignedDuration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Reads a time back.
pub(crate) fn timestamp(micros: i64) -> Result<Timestamp, Corrupt> {
    Timestamp::from_microsecond(micros).map_err(|_| Corrupt("time"))
}

/// The cursor of a list of scheduled messages.
pub(crate) fn scheduled_key(after: Option<(Timestamp, MessageId)>) -> (i64, i64) {
    after.map_or((i64::MIN, 0), |(time, id)| (micros(time), id.as_i64()))
}

/// Reads a message ID.
pub(crate) fn message_id(number: i64) -> Result<MessageId, Corrupt> {
    MessageId::from_i64(number).ok_or(Corrupt("message ID"))
}

/// Reads an account ID.
pub(crate) fn account_id(number: i64) -> Result<AccountId, Corrupt> {
    AccountId::from_i64(number).ok_or(Corrupt("account ID"))
}

/// Reads a node ID.
pub(crate) fn node_id(number: i64) -> Result<NodeId, Corrupt> {
    NodeId::from_i64(number).ok_or(Corrupt("node ID"))
}

/// Reads a token ID.
pub(crate) fn token_id(number: i64) -> Result<TokenId, Corrupt> {
    TokenId::from_i64(number).ok_or(Corrupt("token ID"))
}

/// Reads the access version.
pub(crate) fn version(number: i64) -> Result<u64, Corrupt> {
    u64::try_from(number).map_err(|_| Corrupt("access version"))
}

/// Reads a text that is stored as bytes.
pub(crate) fn utf8(bytes: Vec<u8>) -> Result<String, Corrupt> {
    String::from_utf8(bytes).map_err(|_| Corrupt("text"))
}

/// The columns in which a submission's time, state and holder are stored.
pub(crate) struct SendColumns {
    pub(crate) scheduled_us: Option<i64>,
    pub(crate) state: i16,
    pub(crate) owner: i64,
    pub(crate) attempt: i32,
    /// `queue.account_id`.
    pub(crate) pool_account: i64,
    /// `queue.expires_us`.
    pub(crate) pool_expires_us: Option<i64>,
}

impl SendColumns {
    /// A message that a node holds from the start counts as claimed once.
    pub(crate) fn from_submission(submission: &Submission) -> Self {
        let (owner, attempt) = match submission.holder {
            Holder::Node(node) => (node.as_i64(), 1),
            Holder::Nobody => (NOBODY, 0),
            Holder::Pool(pool) => (binds::pool_owner(pool), 0),
        };
        let (scheduled_us, state) = match submission.send {
            SendTime::At(time) if attempt == 0 => (Some(micros(time)), SCHEDULED),
            SendTime::At(time) => (Some(micros(time)), QUEUED),
            SendTime::Now => (None, QUEUED),
        };
        let pooled = matches!(submission.holder, Holder::Pool(_));
        Self {
            scheduled_us,
            state,
            owner,
            attempt,
            pool_account: if pooled {
                submission.account.as_i64()
            } else {
                dispatch::NO_ACCOUNT
            },
            pool_expires_us: pooled.then(|| micros(submission.expires_at)),
        }
    }
}

/// The columns that show the state of a message.
pub(crate) struct MessageColumns {
    pub(crate) id: i64,
    pub(crate) channel: i16,
    pub(crate) state: i16,
    pub(crate) scheduled_us: Option<i64>,
    pub(crate) final_us: Option<i64>,
    pub(crate) parts: i16,
    pub(crate) status: Option<i16>,
    pub(crate) error: Option<i16>,
    pub(crate) network: Option<i32>,
    /// Whether a carrier has it.
    pub(crate) is_sent: bool,
}

impl MessageColumns {
    /// The columns from `first` on.
    pub(crate) fn read<R: SqlRow>(row: &R, first: usize) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(first)?,
            state: row.column(first + 1)?,
            scheduled_us: row.column(first + 2)?,
            final_us: row.column(first + 3)?,
            parts: row.column(first + 4)?,
            status: row.column(first + 5)?,
            error: row.column(first + 6)?,
            network: row.column(first + 7)?,
            channel: row.column(first + 8)?,
            is_sent: row.column(first + 9)?,
        })
    }

    pub(crate) fn record(&self) -> Result<MessageRecord, Corrupt> {
        Ok(MessageRecord {
            id: message_id(self.id)?,
            channel: channel(self.channel)?,
            state: self.state()?,
            parts: u8::try_from(self.parts).map_err(|_| Corrupt("number of parts"))?,
            network: billing::network(self.network)?,
        })
    }

    fn state(&self) -> Result<MessageState, Corrupt> {
        match (self.final_us, self.status, self.state, self.scheduled_us) {
            (Some(at), Some(_), _, _) => Ok(MessageState::Ended {
                outcome: outcome(self.status, self.error)?,
                at: timestamp(at)?,
            }),
            (Some(at), None, CANCELLED, _) => Ok(MessageState::Cancelled { at: timestamp(at)? }),
            (None, None, QUEUED, _) if self.is_sent => Ok(MessageState::Sent),
            (None, None, QUEUED, _) => Ok(MessageState::Queued),
            (None, None, SCHEDULED, Some(at)) => Ok(MessageState::Scheduled { at: timestamp(at)? }),
            _ => Err(Corrupt("message state")),
        }
    }
}

/// `message.channel`.
pub(crate) fn channel_number(channel: Channel) -> i16 {
    match channel {
        Channel::Sms => 0,
        Channel::Viber => 1,
        Channel::Hlr => 2,
    }
}

/// Reads a channel.
pub(crate) fn channel(number: i16) -> Result<Channel, Corrupt> {
    let known = Channel::ALL
        .into_iter()
        .find(|known| channel_number(*known) == number);
    known.ok_or(Corrupt("channel"))
}

/// An originator as both databases store it; a lookup has none, stored as an empty text.
pub(crate) fn originator(from: Option<&Originator>) -> Cow<'_, str> {
    match from {
        None => Cow::Borrowed(""),
        Some(Originator::Name(name)) => Cow::Borrowed(name.as_str()),
        Some(Originator::Msisdn(number)) => Cow::Owned(number.to_string()),
    }
}

/// Reads an outcome.
pub(crate) fn outcome(status: Option<i16>, error: Option<i16>) -> Result<Outcome, Corrupt> {
    let numbers = status.zip(error);
    numbers
        .and_then(|(status, error)| Outcome::from_numbers(status.into(), error.into()))
        .ok_or(Corrupt("outcome"))
}

/// An outcome as both databases store it: status, then error.
pub(crate) fn outcome_numbers(outcome: Outcome) -> (i16, i16) {
    let error = outcome.code().number();
    (
        outcome.status().into(),
        i16::try_from(error).expect("the catalogue ends at 999"),
    )
}

/// Why a message without a queue row cannot be cancelled. A message that is still marked as scheduled was claimed just
/// now, so it is queued.
pub(crate) fn not_waiting(state: MessageState) -> MessageState {
    match state {
        MessageState::Scheduled { .. } => MessageState::Queued,
        other => other,
    }
}

/// The columns of the scheduled list.
pub(crate) struct ScheduledColumns {
    pub(crate) id: i64,
    pub(crate) scheduled_us: i64,
    pub(crate) originator: String,
    pub(crate) recipient: i64,
    pub(crate) body: Vec<u8>,
    pub(crate) dlr_url: Option<Vec<u8>>,
}

impl ScheduledColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            scheduled_us: row.column(1)?,
            originator: row.column(2)?,
            recipient: row.column(3)?,
            body: row.column(4)?,
            dlr_url: row.column(5)?,
        })
    }

    pub(crate) fn record(self) -> Result<ScheduledRecord, Corrupt> {
        Ok(ScheduledRecord {
            id: message_id(self.id)?,
            at: timestamp(self.scheduled_us)?,
            from: self.originator,
            to: Msisdn::from_i64(self.recipient).ok_or(Corrupt("recipient"))?,
            text: utf8(self.body)?,
            dlr_url: self.dlr_url.map(utf8).transpose()?,
        })
    }
}

/// The columns of an idempotency key's answer.
pub(crate) struct AnswerColumns {
    pub(crate) body: Vec<u8>,
    pub(crate) first_id: i64,
    pub(crate) messages: i64,
    pub(crate) parts: i64,
}

impl AnswerColumns {
    /// The columns from `first` on.
    pub(crate) fn read<R: SqlRow>(row: &R, first: usize) -> Result<Self, R::Error> {
        Ok(Self {
            body: row.column(first)?,
            first_id: row.column(first + 1)?,
            messages: row.column(first + 2)?,
            parts: row.column(first + 3)?,
        })
    }

    pub(crate) fn answer(&self) -> Result<StoredAnswer, Corrupt> {
        let count = |number: i64| u32::try_from(number).map_err(|_| Corrupt("answer"));
        Ok(StoredAnswer {
            body: self
                .body
                .as_slice()
                .try_into()
                .map_err(|_| Corrupt("answer"))?,
            receipt: AcceptedMessages {
                first: message_id(self.first_id)?,
                messages: count(self.messages)?,
                parts: count(self.parts)?,
            },
        })
    }
}

/// The result for a request with a key that was used before.
pub(crate) fn repeated(stored: &StoredAnswer, body: &[u8; 32]) -> Accepted {
    if stored.body == *body {
        Accepted::Replayed(stored.receipt)
    } else {
        Accepted::KeyConflict
    }
}

/// The columns of an account.
pub(crate) struct AccountColumns {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) balance_micros: i64,
    pub(crate) rules: billing::RulesColumns,
    pub(crate) suspended: bool,
    pub(crate) created_us: i64,
}

impl AccountColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            name: row.column(1)?,
            balance_micros: row.column(2)?,
            suspended: row.column(3)?,
            created_us: row.column(4)?,
            rules: billing::RulesColumns::read(row, 5)?,
        })
    }

    pub(crate) fn record(self) -> Result<AccountRecord, Corrupt> {
        Ok(AccountRecord {
            id: account_id(self.id)?,
            name: self.name,
            balance: Money::from_micros(self.balance_micros),
            rules: self.rules.rules()?,
            suspended: self.suspended,
            created_at: timestamp(self.created_us)?,
        })
    }
}

/// A new account with its secret encrypted.
pub(crate) fn with_encrypted_secret(keys: &KeyRing, account: &NewAccount) -> NewAccount {
    let context = encrypted::secret_context(account.name.as_str());
    NewAccount {
        callback_secret: encrypted::encrypt_text(keys, &context, &account.callback_secret),
        ..account.clone()
    }
}

/// The columns of an account's signing secrets. The former secret is valid until `until_us`.
pub(crate) struct SecretColumns {
    pub(crate) name: String,
    pub(crate) newest: String,
    pub(crate) former: Option<String>,
    pub(crate) until_us: Option<i64>,
}

impl SecretColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            name: row.column(0)?,
            newest: row.column(1)?,
            former: row.column(2)?,
            until_us: row.column(3)?,
        })
    }

    pub(crate) fn secrets(self, keys: &KeyRing) -> Result<SigningSecrets, Corrupt> {
        let context = encrypted::secret_context(&self.name);
        let former = match (self.former, self.until_us) {
            (Some(text), Some(until_us)) => Some((
                encrypted::decrypt_text(keys, &context, &text)?,
                timestamp(until_us)?,
            )),
            _ => None,
        };
        Ok(SigningSecrets {
            newest: encrypted::decrypt_text(keys, &context, &self.newest)?,
            former,
        })
    }
}
