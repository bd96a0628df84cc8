//! Rows of messages that have ended.

use domain::ports::{Ended, Matched, Settled};
use domain::{Channel, Msisdn, Network, Outcome, TraceContext};

use super::callbacks::CallbackColumns;
use super::{Corrupt, billing, message_id, timestamp};

/// The columns of an ended message. They become a domain type outside of the writer thread.
#[derive(Debug)]
pub(crate) struct EndedColumns {
    pub(crate) id: i64,
    pub(crate) channel: Channel,
    pub(crate) network: Option<i32>,
    /// The recipient with its network, if the receipt named it.
    pub(crate) named: Option<(i64, i32)>,
    pub(crate) outcome: Outcome,
    pub(crate) began_us: i64,
    pub(crate) ended_us: i64,
    pub(crate) callback: Option<CallbackColumns>,
    pub(crate) trace: Option<Box<TraceContext>>,
}

impl EndedColumns {
    pub(crate) fn ended(self) -> Result<Ended, Corrupt> {
        Ok(Ended {
            id: message_id(self.id)?,
            channel: self.channel,
            network: billing::network(self.network)?,
            named: self.named.and_then(read_named),
            outcome: self.outcome,
            began_at: timestamp(self.began_us)?,
            ended_at: timestamp(self.ended_us)?,
            callback: self.callback.map(CallbackColumns::callback).transpose()?,
            trace: self.trace,
        })
    }
}

/// A recipient that cannot be read is not worth a failure.
fn read_named((recipient, network): (i64, i32)) -> Option<(Msisdn, Network)> {
    Msisdn::from_i64(recipient).zip(Network::from_code(network))
}

/// The columns of [`Settled`].
#[derive(Debug)]
pub(crate) enum SettledColumns {
    Stored,
    Ended(EndedColumns),
    Stale,
}

impl SettledColumns {
    pub(crate) fn settled(self) -> Result<Settled, Corrupt> {
        Ok(match self {
            Self::Stored => Settled::Stored,
            Self::Ended(columns) => Settled::Ended(columns.ended()?),
            Self::Stale => Settled::Stale,
        })
    }
}

/// The columns of [`Matched`].
#[derive(Debug)]
pub(crate) enum MatchedColumns {
    Ended(EndedColumns),
    Noted,
    Repeated,
    Kept,
}

impl MatchedColumns {
    pub(crate) fn matched(self) -> Result<Matched, Corrupt> {
        Ok(match self {
            Self::Ended(columns) => Matched::Ended(columns.ended()?),
            Self::Noted => Matched::Noted,
            Self::Repeated => Matched::Repeated,
            Self::Kept => Matched::Kept,
        })
    }
}
