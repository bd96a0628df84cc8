//! Rows of messages as they are exported.

use domain::message::outcome::TakenParts;
use domain::message::{MessageRecord, MessageState};
use domain::ports::{ExportFilter, ExportRange, ExportedMessage};
use domain::{AccountId, MessageId, Money, Msisdn};

use super::history::TimeSearch;
use super::{Corrupt, MessageColumns, SqlRow, account_id, message_id, micros, timestamp};

/// The columns of [`RecordColumns`], of a row of `message` called `m`. A message that a carrier has is not marked as
/// sent before it ends, so its newest part is read.
macro_rules! record_columns {
    () => {
        "m.id, m.state, m.scheduled_us, m.final_us, m.parts, m.status, m.error, m.network, m.channel,
            EXISTS (SELECT 1 FROM queue AS q
                WHERE q.owner = -1 AND q.lane = 0 AND q.due_us = m.expires_us AND q.id = m.id),
            m.account_id, m.originator, m.recipient, m.price_micros, m.charged_micros, m.accepted_us,
            CASE WHEN m.sent_us IS NULL
                THEN (SELECT t.carrier FROM transit AS t WHERE t.id = m.id ORDER BY t.taken_us DESC LIMIT 1)
                ELSE m.carrier END,
            CASE WHEN m.sent_us IS NULL
                THEN (SELECT t.taken_us FROM transit AS t WHERE t.id = m.id ORDER BY t.taken_us DESC LIMIT 1)
                ELSE m.sent_us END,
            CASE WHEN m.sent_us IS NULL
                THEN (SELECT t.cost_micros FROM transit AS t WHERE t.id = m.id ORDER BY t.taken_us DESC LIMIT 1)
                ELSE m.cost_micros END"
    };
}
pub(crate) use record_columns;

/// `message.recipient` of a message whose number was erased.
pub(crate) const ERASED: i64 = 0;

/// The bounds of an export.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExportColumns {
    pub(crate) account_id: Option<i64>,
    pub(crate) since_us: i64,
    pub(crate) until_us: i64,
    /// IDs are between these two.
    pub(crate) after: i64,
    pub(crate) end: i64,
}

impl ExportColumns {
    pub(crate) fn new(filter: &ExportFilter, range: ExportRange) -> Self {
        Self {
            account_id: filter.account.map(AccountId::as_i64),
            since_us: micros(filter.since),
            until_us: micros(filter.until),
            after: range.after.map_or(0, MessageId::as_i64),
            end: range.before.map_or(i64::MAX, MessageId::as_i64),
        }
    }
}

/// The searches for the first and the last ID of an export, between the lowest and the highest that exist.
pub(crate) fn range_searches(filter: &ExportFilter, first: i64, last: i64) -> [TimeSearch; 2] {
    [
        TimeSearch::before(micros(filter.since), first, last),
        TimeSearch::after(micros(filter.until), first, last),
    ]
}

/// The range that the searches found.
pub(crate) fn export_range([since, until]: [TimeSearch; 2]) -> Result<ExportRange, Corrupt> {
    Ok(ExportRange {
        after: Some(since.low)
            .filter(|low| *low > 0)
            .map(message_id)
            .transpose()?,
        before: Some(message_id(until.high)?),
    })
}

/// The columns of an exported message.
pub(crate) struct RecordColumns {
    pub(crate) message: MessageColumns,
    account_id: i64,
    originator: String,
    recipient: i64,
    price_micros: i64,
    charged_micros: Option<i64>,
    accepted_us: i64,
    sent: Option<SentColumns>,
}

impl RecordColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            message: MessageColumns::read(row, 0)?,
            account_id: row.column(10)?,
            originator: row.column(11)?,
            recipient: row.column(12)?,
            price_micros: row.column(13)?,
            charged_micros: row.column(14)?,
            accepted_us: row.column(15)?,
            sent: SentColumns::read_optional(row, 16)?,
        })
    }

    /// Whether it was accepted within the times of an export.
    pub(crate) fn is_within(&self, columns: &ExportColumns) -> bool {
        (columns.since_us..columns.until_us).contains(&self.accepted_us)
    }

    pub(crate) fn message(self) -> Result<ExportedMessage, Corrupt> {
        let record = self.message.record()?;
        let sent = self.sent.as_ref();
        let sent_at = sent.map(|sent| timestamp(sent.at_us)).transpose()?;
        let cost = sent.and_then(|sent| sent.cost_micros);
        let price_micros = self
            .charged_micros
            .unwrap_or_else(|| self.price_by_rule(&record));
        Ok(ExportedMessage {
            id: record.id,
            account: account_id(self.account_id)?,
            channel: record.channel,
            from: Some(self.originator).filter(|from| !from.is_empty()),
            to: recipient(self.recipient)?,
            accepted_at: timestamp(self.accepted_us)?,
            sent_at,
            state: record.state,
            parts: record.parts,
            price: Money::from_micros(price_micros),
            cost: cost.map(Money::from_micros),
            carrier: self.sent.map(|sent| sent.carrier),
            network: record.network,
        })
    }

    /// The price of a message that has not ended, or that ended before prices after refunds were stored. Of the latter,
    /// nobody knows whether only some parts were taken.
    fn price_by_rule(&self, record: &MessageRecord) -> i64 {
        match record.state {
            MessageState::Cancelled { .. } => 0,
            MessageState::Ended { outcome, .. } => {
                let refunded = outcome.charged_parts(record.channel, TakenParts::All);
                refunded.map_or(self.price_micros, |_| 0)
            }
            _ => self.price_micros,
        }
    }
}

/// Reads a recipient; `None` if it was erased.
pub(crate) fn recipient(number: i64) -> Result<Option<Msisdn>, Corrupt> {
    if number == ERASED {
        return Ok(None);
    }
    Ok(Some(Msisdn::from_i64(number).ok_or(Corrupt("recipient"))?))
}

/// The carrier that took a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent<'a> {
    pub(crate) carrier: &'a str,
    pub(crate) at_us: i64,
    /// What it charges for all parts that it took.
    pub(crate) cost_micros: Option<i64>,
}

/// The same, read from a row.
#[derive(Debug, Clone)]
pub(crate) struct SentColumns {
    pub(crate) carrier: String,
    pub(crate) at_us: i64,
    pub(crate) cost_micros: Option<i64>,
}

impl SentColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            carrier: row.column(0)?,
            at_us: row.column(1)?,
            cost_micros: row.column(2)?,
        })
    }

    /// The columns from `first` on; `None` if they are all NULL.
    pub(crate) fn read_optional<R: SqlRow>(
        row: &R,
        first: usize,
    ) -> Result<Option<Self>, R::Error> {
        let (carrier, at_us): (Option<String>, Option<i64>) =
            (row.column(first)?, row.column(first + 1)?);
        let cost_micros = row.column(first + 2)?;
        Ok(carrier.zip(at_us).map(|(carrier, at_us)| Self {
            carrier,
            at_us,
            cost_micros,
        }))
    }

    pub(crate) fn sent(&self) -> Sent<'_> {
        Sent {
            carrier: &self.carrier,
            at_us: self.at_us,
            cost_micros: self.cost_micros,
        }
    }
}
