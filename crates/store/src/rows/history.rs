//! Rows of messages in lists and details.

use domain::delivery::CallbackAttempt;
use domain::ids::AccountId;
use domain::ports::{
    CallbackRecord, ID_BLOCK_LIFETIME, MessageDetail, MessageFilter, MessageSummary, Page,
    PartDetail, Place, StateName,
};
use domain::{Code, MessageId, Money, Msisdn, Originator, Outcome};

use super::binds::pool_of;
use super::dispatch::{interactive, priority, shape, test_mode};
use super::records::recipient;
use super::traffic::place_code;
use super::{
    CANCELLED, Corrupt, MessageColumns, QUEUED, SCHEDULED, SqlRow, account_id, channel_number,
    message_id, micros, originator, outcome, timestamp, utf8,
};

/// The columns of [`SummaryColumns`], of a row of `message` called `m`.
macro_rules! summary_columns {
    () => {
        "m.id, m.state, m.scheduled_us, m.final_us, m.parts, m.status, m.error, m.network, m.channel,
            EXISTS (SELECT 1 FROM queue AS q
                WHERE q.owner = -1 AND q.lane = 0 AND q.due_us = m.expires_us AND q.id = m.id),
            m.account_id, m.originator, m.recipient, m.body, m.price_micros, m.accepted_us, m.charged_micros, m.test_mode"
    };
}
/// The columns of [`DetailColumns`]; they follow those of the summary.
macro_rules! detail_columns {
    () => {
        "m.coding, m.priority, m.interactive, m.result, m.dlr_url, m.expires_us, m.seen_us"
    };
}
pub(crate) use {detail_columns, summary_columns};

/// The conditions of a filter that are checked on rows, without account and number. A missing condition matches every
/// row.
#[derive(Debug, Clone)]
pub(crate) struct MatchColumns {
    pub(crate) channel: Option<i16>,
    pub(crate) originator: Option<String>,
    pub(crate) status: Option<i16>,
    /// `message.state` of a message without a status.
    pub(crate) state: Option<i16>,
    /// Whether a carrier took it and has not reported on it.
    pub(crate) is_sent: Option<bool>,
    pub(crate) error: Option<i16>,
    pub(crate) since_us: i64,
    pub(crate) until_us: i64,
    /// As [`place_code`] gives them.
    pub(crate) places: Option<Vec<i32>>,
}

/// How much earlier a message may have been accepted than another with a lower ID, including differences of clocks.
fn disorder_us() -> i64 {
    2 * super::duration_us(ID_BLOCK_LIFETIME)
}

/// Searches the IDs for a time: rows up to `low` were accepted before it, rows from `high` on at that time or later,
/// except for the disorder of IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeSearch {
    time_us: i64,
    pub(crate) low: i64,
    pub(crate) high: i64,
}

impl TimeSearch {
    /// Searches between the lowest and the highest ID.
    fn new(time_us: i64, first: i64, last: i64) -> Self {
        Self {
            time_us,
            low: first.saturating_sub(1),
            high: last.saturating_add(1),
        }
    }

    /// Searches for the ID from which on (`high`) all rows were accepted at `until` or later.
    pub(crate) fn for_until(matching: &MatchColumns, first: i64, last: i64) -> Option<Self> {
        let given = matching.until_us < i64::MAX;
        given.then(|| Self::after(matching.until_us, first, last))
    }

    /// Searches for the ID up to which (`low`) all rows were accepted before `since`.
    pub(crate) fn for_since(matching: &MatchColumns, first: i64, last: i64) -> Option<Self> {
        let given = matching.since_us > i64::MIN;
        given.then(|| Self::before(matching.since_us, first, last))
    }

    /// Searches for the ID up to which (`low`) all rows were accepted before a time.
    pub(crate) fn before(time_us: i64, first: i64, last: i64) -> Self {
        Self::new(time_us.saturating_sub(disorder_us()), first, last)
    }

    /// Searches for the ID from which on (`high`) all rows were accepted at a time or later.
    pub(crate) fn after(time_us: i64, first: i64, last: i64) -> Self {
        Self::new(time_us.saturating_add(disorder_us()), first, last)
    }

    /// The next IDs to check, ascending; none when the search is finished.
    pub(crate) fn probes(&self, count: i64) -> Vec<i64> {
        let width = self.high - self.low;
        let count = count.min(width - 1);
        let probe = |n: i64| {
            let step = i128::from(width) * i128::from(n) / i128::from(count + 1);
            self.low + i64::try_from(step).expect("less than the width")
        };
        (1..=count).map(probe).collect()
    }

    /// Narrows the search by the first row at or after a probe: its ID, and when it was accepted.
    pub(crate) fn narrow(&mut self, probe: i64, found: Option<(i64, i64)>) {
        match found {
            Some((id, accepted_us)) if id < self.high && accepted_us < self.time_us => {
                self.low = self.low.max(id);
            }
            _ if probe > self.low => self.high = self.high.min(probe),
            _ => {}
        }
    }
}

/// The conditions that an index finds rows by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexColumns {
    pub(crate) account_id: Option<i64>,
    pub(crate) recipient: Option<i64>,
}

impl MatchColumns {
    pub(crate) fn from_filter(filter: &MessageFilter) -> Self {
        let (status, state, is_sent) = filter.state.map_or((None, None, None), state_columns);
        let error = filter.error.map(Code::number);
        Self {
            channel: filter.channel.map(channel_number),
            originator: filter.from.as_deref().map(shown_originator),
            status,
            state,
            is_sent,
            error: error.map(|error| i16::try_from(error).expect("the catalogue ends at 999")),
            since_us: filter.since.map_or(i64::MIN, micros),
            until_us: filter.until.map_or(i64::MAX, micros),
            places: filter.places.as_deref().map(place_codes),
        }
    }
}

fn place_codes(places: &[Place]) -> Vec<i32> {
    let code = |place: &Place| match *place {
        Place::Network(network) => place_code(Some(network), None),
        Place::Country(country) => place_code(None, Some(country)),
    };
    places.iter().map(code).collect()
}

impl IndexColumns {
    pub(crate) fn from_filter(filter: &MessageFilter) -> Self {
        Self {
            account_id: filter.account.map(AccountId::as_i64),
            recipient: filter.to.as_ref().map(Msisdn::as_i64),
        }
    }
}

/// An originator as it is stored: a number with its plus sign, even if the filter has none.
fn shown_originator(text: &str) -> String {
    match Originator::parse_approved(text) {
        Ok(parsed) => originator(Some(&parsed)).into_owned(),
        Err(_) => text.to_owned(),
    }
}

/// The columns of a state: `message.status`, or `message.state` and whether a carrier took the message.
fn state_columns(state: StateName) -> (Option<i16>, Option<i16>, Option<bool>) {
    match state {
        StateName::Scheduled => (None, Some(SCHEDULED), None),
        StateName::Queued => (None, Some(QUEUED), Some(false)),
        StateName::Sent => (None, Some(QUEUED), Some(true)),
        StateName::Delivered => (Some(Outcome::Delivered.status().into()), None, None),
        StateName::Failed => (
            Some(Outcome::Failed(Code::FINE).status().into()),
            None,
            None,
        ),
        StateName::Expired => (Some(Outcome::Expired.status().into()), None, None),
        StateName::Cancelled => (None, Some(CANCELLED), None),
    }
}

/// The columns of a message in lists.
pub(crate) struct SummaryColumns {
    pub(crate) message: MessageColumns,
    pub(crate) account_id: i64,
    pub(crate) originator: String,
    pub(crate) recipient: i64,
    pub(crate) body: Vec<u8>,
    pub(crate) price_micros: i64,
    pub(crate) accepted_us: i64,
    pub(crate) charged_micros: Option<i64>,
    pub(crate) test_mode: Option<i16>,
}

impl SummaryColumns {
    pub(crate) fn summary(self) -> Result<MessageSummary, Corrupt> {
        let record = self.message.record()?;
        Ok(MessageSummary {
            id: record.id,
            account: account_id(self.account_id)?,
            channel: record.channel,
            from: Some(self.originator).filter(|from| !from.is_empty()),
            to: recipient(self.recipient)?,
            text: utf8(self.body)?,
            state: record.state,
            parts: record.parts,
            price: Money::from_micros(self.price_micros),
            charged: self.charged_micros.map(Money::from_micros),
            test_mode: self.test_mode.map(test_mode).transpose()?,
            network: record.network,
            accepted_at: timestamp(self.accepted_us)?,
        })
    }
}

/// The columns of a message that only its detail shows.
pub(crate) struct DetailColumns {
    pub(crate) coding: i16,
    pub(crate) priority: i16,
    pub(crate) interactive: Option<Vec<u8>>,
    pub(crate) result: Option<String>,
    pub(crate) dlr_url: Option<Vec<u8>>,
    pub(crate) expires_us: i64,
    pub(crate) seen_us: Option<i64>,
}

/// The row of a message in the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueRowColumns {
    pub(crate) owner: i64,
    pub(crate) due_us: i64,
    pub(crate) attempt: i32,
}

impl QueueRowColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            owner: row.column(0)?,
            due_us: row.column(1)?,
            attempt: row.column(2)?,
        })
    }
}

/// Rows of other tables that belong to a message.
pub(crate) struct RelatedRows {
    pub(crate) queue_row: Option<QueueRowColumns>,
    pub(crate) parts: Vec<PartDetail>,
    pub(crate) callbacks: Vec<(CallbackRecord, Vec<CallbackAttempt>)>,
}

impl DetailColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            coding: row.column(18)?,
            priority: row.column(19)?,
            interactive: row.column(20)?,
            result: row.column(21)?,
            dlr_url: row.column(22)?,
            expires_us: row.column(23)?,
            seen_us: row.column(24)?,
        })
    }

    pub(crate) fn detail(
        self,
        summary: SummaryColumns,
        related: RelatedRows,
    ) -> Result<MessageDetail, Corrupt> {
        let queue_row = related.queue_row;
        let attempt = |queue_row: QueueRowColumns| u32::try_from(queue_row.attempt);
        let waiting = queue_row.filter(|queue_row| {
            queue_row.owner == super::NOBODY || pool_of(queue_row.owner).is_some()
        });
        Ok(MessageDetail {
            shape: shape(self.coding, summary.message.parts)?,
            priority: priority(self.priority)?,
            interactive: interactive(self.interactive.as_deref())?,
            result: self.result,
            dlr_url: self.dlr_url.map(utf8).transpose()?,
            scheduled_at: summary.message.scheduled_us.map(timestamp).transpose()?,
            expires_at: timestamp(self.expires_us)?,
            seen_at: self.seen_us.map(timestamp).transpose()?,
            attempts: queue_row
                .map(attempt)
                .transpose()
                .map_err(|_| Corrupt("attempt"))?,
            due_at: waiting
                .map(|queue_row| timestamp(queue_row.due_us))
                .transpose()?,
            parts: related.parts,
            callbacks: related.callbacks,
            summary: summary.summary()?,
        })
    }
}

/// The columns of a part that a carrier took.
pub(crate) struct PartColumns {
    pub(crate) part: i16,
    pub(crate) carrier: String,
    pub(crate) reference: Vec<u8>,
    pub(crate) taken_us: i64,
    pub(crate) status: Option<i16>,
    pub(crate) error: Option<i16>,
}

impl PartColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            part: row.column(0)?,
            carrier: row.column(1)?,
            reference: row.column(2)?,
            taken_us: row.column(3)?,
            status: row.column(4)?,
            error: row.column(5)?,
        })
    }

    pub(crate) fn part(self) -> Result<PartDetail, Corrupt> {
        let reported = self.status.is_some();
        Ok(PartDetail {
            part: u16::try_from(self.part).map_err(|_| Corrupt("part"))?,
            carrier: self.carrier,
            reference: utf8(self.reference)?,
            taken_at: timestamp(self.taken_us)?,
            outcome: reported
                .then(|| outcome(self.status, self.error))
                .transpose()?,
        })
    }
}

/// One page of messages, and the ID at which the search stopped.
pub(crate) struct MessagePage {
    pub(crate) rows: Vec<SummaryColumns>,
    pub(crate) next: Option<i64>,
}

impl MessagePage {
    /// IDs start at 1, so no page follows ID 1.
    pub(crate) fn into_page(self) -> Result<Page<MessageSummary, MessageId>, Corrupt> {
        let rows = self.rows.into_iter().map(SummaryColumns::summary);
        let next = self.next.filter(|next| *next > 1).map(message_id);
        Ok(Page {
            rows: rows.collect::<Result<_, _>>()?,
            next: next.transpose()?,
        })
    }
}

/// How many rows of a queue are read to find one message.
pub(crate) const QUEUE_ROWS: i64 = 20_000;

#[cfg(test)]
mod tests;
