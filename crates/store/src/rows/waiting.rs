//! A scheduled message that is about to be replaced.

use domain::CallbackUrl;
use domain::message::WaitingMessage;

use super::dispatch::{priority, recipient, shape, test_mode};
use super::{Corrupt, SqlRow, timestamp, utf8};

pub(crate) struct WaitingColumns {
    originator: String,
    recipient: i64,
    body: Vec<u8>,
    coding: i16,
    parts: i16,
    coding_given: bool,
    udh: Option<Vec<u8>>,
    dlr_url: Option<Vec<u8>>,
    priority: i16,
    test_mode: Option<i16>,
    scheduled_us: i64,
    expires_us: i64,
}

impl WaitingColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            originator: row.column(0)?,
            recipient: row.column(1)?,
            body: row.column(2)?,
            coding: row.column(3)?,
            parts: row.column(4)?,
            coding_given: row.column(5)?,
            udh: row.column(6)?,
            dlr_url: row.column(7)?,
            priority: row.column(8)?,
            test_mode: row.column(9)?,
            scheduled_us: row.column(10)?,
            expires_us: row.column(11)?,
        })
    }

    pub(crate) fn message(self) -> Result<WaitingMessage, Corrupt> {
        let url = self.dlr_url.map(utf8).transpose()?;
        let url = url.as_deref().map(CallbackUrl::parse_stored).transpose();
        Ok(WaitingMessage {
            from: self.originator,
            to: recipient(self.recipient)?,
            text: utf8(self.body)?,
            coding: shape(self.coding, self.parts)?.coding,
            coding_given: self.coding_given,
            has_udh: self.udh.is_some(),
            dlr_url: url.map_err(|_| Corrupt("callback URL"))?,
            priority: priority(self.priority)?,
            test_mode: self.test_mode.map(test_mode).transpose()?,
            at: timestamp(self.scheduled_us)?,
            expires_at: timestamp(self.expires_us)?,
        })
    }
}
