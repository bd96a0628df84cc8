//! Rows of sender IDs, and decisions that both databases make with them.

use domain::ids::SenderId;
use domain::ports::{Confirmed, NewSender, Registered, SenderRight};
use domain::sender::{
    Category, Judgement, PIN_LIFETIME, Pin, PinHash, PinOut, SEND_PAUSE, SenderKind, SenderName,
    SenderRecord, SenderState, Step,
};
use domain::{CallbackUrl, Timestamp};

use super::{Corrupt, SqlRow, account_id, duration_us, micros, timestamp, utf8};

/// The columns of a sender, in the order in which both databases select them.
pub(crate) struct SenderColumns {
    pub(crate) id: i64,
    pub(crate) account_id: i64,
    pub(crate) name: String,
    pub(crate) kind: i16,
    pub(crate) category: Option<i16>,
    pub(crate) description: Option<String>,
    pub(crate) notification_url: Option<Vec<u8>>,
    pub(crate) state: i16,
    pub(crate) reason: Option<String>,
    pub(crate) created_us: i64,
    pub(crate) pin: PinColumns,
}

/// The right to an originator.
pub(crate) fn sender_right<R: SqlRow>(row: &R) -> Result<Option<SenderRight>, R::Error> {
    match row.column::<i32>(0)? {
        0 => Ok(None),
        1 => Ok(Some(SenderRight::SenderId)),
        2 => Ok(Some(SenderRight::Number)),
        _ => Err(Corrupt("right to a sender").into()),
    }
}

/// The columns of a sender's PIN; they follow those of [`SenderColumns`].
pub(crate) struct PinColumns {
    pub(crate) hash: Option<Vec<u8>>,
    pub(crate) salt: Option<Vec<u8>>,
    pub(crate) expires_us: Option<i64>,
    pub(crate) sent_us: Option<i64>,
    pub(crate) tries: i32,
}

/// A sender ID within a transaction.
pub(crate) struct Sender {
    pub(crate) record: SenderRecord,
    pin: Option<PinOut>,
    pin_sent_us: Option<i64>,
}

impl SenderColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            account_id: row.column(1)?,
            name: row.column(2)?,
            kind: row.column(3)?,
            category: row.column(4)?,
            description: row.column(5)?,
            notification_url: row.column(6)?,
            state: row.column(7)?,
            reason: row.column(8)?,
            created_us: row.column(9)?,
            pin: PinColumns::read(row)?,
        })
    }

    pub(crate) fn sender(self) -> Result<Sender, Corrupt> {
        let pin_sent_us = self.pin.sent_us;
        Ok(Sender {
            pin: self.pin.out()?,
            pin_sent_us,
            record: self.record()?,
        })
    }

    fn record(self) -> Result<SenderRecord, Corrupt> {
        let kind = SenderKind::from_number(self.kind).ok_or(Corrupt("kind of sender"))?;
        let category = |number| Category::from_number(number).ok_or(Corrupt("category"));
        Ok(SenderRecord {
            id: sender_id(self.id)?,
            account: account_id(self.account_id)?,
            name: SenderName::parse(kind, &self.name).map_err(|_| Corrupt("sender name"))?,
            category: self.category.map(category).transpose()?,
            description: self.description,
            notification_url: self.notification_url.map(url).transpose()?,
            state: SenderState::from_number(self.state).ok_or(Corrupt("state of a sender"))?,
            reason: self.reason,
            created_at: timestamp(self.created_us)?,
        })
    }
}

impl PinColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            hash: row.column(10)?,
            salt: row.column(11)?,
            expires_us: row.column(12)?,
            sent_us: row.column(13)?,
            tries: row.column(14)?,
        })
    }

    fn out(&self) -> Result<Option<PinOut>, Corrupt> {
        let (Some(hash), Some(salt), Some(expires_us)) = (&self.hash, &self.salt, self.expires_us)
        else {
            return Ok(None);
        };
        let corrupt = |_| Corrupt("PIN");
        Ok(Some(PinOut {
            hash: PinHash {
                salt: salt.as_slice().try_into().map_err(corrupt)?,
                hash: hash.as_slice().try_into().map_err(corrupt)?,
            },
            expires_at: timestamp(expires_us)?,
            tries: u32::try_from(self.tries).map_err(|_| Corrupt("number of tries"))?,
        }))
    }
}

impl Sender {
    /// The result of registering a name that already has this active sender ID.
    pub(crate) fn register_again(&self, new: &NewSender) -> Registered {
        let (id, state) = (self.record.id, self.record.state);
        if state != SenderState::AwaitingConfirmation || new.pin.is_none() {
            return Registered::Exists(id, state);
        }
        let pause_us = duration_us(SEND_PAUSE);
        let is_soon = |sent_us: i64| micros(new.created_at) < sent_us.saturating_add(pause_us);
        if self.pin_sent_us.is_some_and(is_soon) {
            Registered::TooSoon(id)
        } else {
            Registered::PinAgain(id)
        }
    }

    /// Checks a guess. The caller counts a wrong one.
    pub(crate) fn judge(&self, guess: Pin, now: Timestamp) -> Confirmed {
        let state = self.record.state;
        match (state.after(Step::Confirm), self.pin) {
            (Err(_), _) => Confirmed::NotWaiting(state),
            (Ok(_), Some(pin)) => Confirmed::Judged(pin.judge(guess, now)),
            // The PIN could not be sent.
            (Ok(_), None) => Confirmed::Judged(Judgement::Expired),
        }
    }
}

/// `sender.state`, and the expiry of the PIN of a number.
pub(crate) fn first_columns(new: &NewSender) -> (i16, Option<i64>) {
    match new.pin {
        Some(_) => (
            SenderState::AwaitingConfirmation.number(),
            Some(micros(new.created_at + PIN_LIFETIME)),
        ),
        None => (SenderState::Pending.number(), None),
    }
}

/// Whether a guess uses up an attempt. The right guess uses up the PIN itself.
pub(crate) fn is_wrong_guess(confirmed: Confirmed) -> bool {
    matches!(confirmed, Confirmed::Judged(Judgement::Wrong { .. }))
}

/// Reads a sender ID.
pub(crate) fn sender_id(number: i64) -> Result<SenderId, Corrupt> {
    SenderId::from_i64(number).ok_or(Corrupt("sender ID"))
}

fn url(bytes: Vec<u8>) -> Result<CallbackUrl, Corrupt> {
    CallbackUrl::parse(&utf8(bytes)?).map_err(|_| Corrupt("callback URL"))
}
