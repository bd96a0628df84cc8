//! Rows of messages whose texts are forgotten, or that are about one number.

use domain::Msisdn;
use domain::inbound::message::InboundMessage;
use domain::inbound::number::InboundNumber;

use super::{SqlRow, micros};

/// How many rows one step reads.
pub(crate) const ROWS: u32 = 20_000;
/// How often all messages are read again, for those that ended long after they were accepted.
const SWEEP_EVERY_US: i64 = 86_400_000_000;

/// The forms in which a number is stored.
#[derive(Debug, Clone)]
pub(crate) struct NumberColumns {
    pub(crate) recipient: i64,
    pub(crate) originator: String,
    /// A URL that contains these is erased.
    pub(crate) digits: Vec<u8>,
}

impl NumberColumns {
    pub(crate) fn new(number: &Msisdn) -> Self {
        Self {
            recipient: number.as_i64(),
            originator: number.to_string(),
            digits: number.digits().as_bytes().to_vec(),
        }
    }
}

/// What is taken out of messages from handsets.
#[derive(Debug, Clone)]
pub(crate) enum InboundChange {
    /// The texts of those that were received at this time or before.
    ForgetText {
        before_us: i64,
    },
    Erase(NumberColumns),
}

impl InboundChange {
    /// The message after the change; `None` if the change does not apply to it.
    pub(crate) fn apply(&self, message: InboundMessage) -> Option<InboundMessage> {
        match self {
            Self::ForgetText { before_us } => {
                let is_old = micros(message.received_at) <= *before_us;
                is_old.then(|| InboundMessage {
                    text: String::new(),
                    ..message
                })
            }
            Self::Erase(number) => {
                let is_sender = message.from == number.originator;
                let is_recipient = message.to.to_string() == number.originator;
                (is_sender || is_recipient).then(|| InboundMessage {
                    from: if is_sender {
                        String::new()
                    } else {
                        message.from
                    },
                    to: if is_recipient {
                        InboundNumber::Erased
                    } else {
                        message.to
                    },
                    text: String::new(),
                    udh: None,
                    keyword: None,
                    ..message
                })
            }
        }
    }

    /// Callback URLs that contain these are erased, with the answers of their receivers.
    pub(crate) fn digits(&self) -> Option<&[u8]> {
        match self {
            Self::ForgetText { .. } => None,
            Self::Erase(number) => Some(&number.digits),
        }
    }
}

/// A message as far as its text needs it.
pub(crate) struct TextRow {
    id: i64,
    accepted_us: i64,
    final_us: Option<i64>,
    has_text: bool,
}

impl TextRow {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            accepted_us: row.column(1)?,
            final_us: row.column(2)?,
            has_text: row.column(3)?,
        })
    }
}

/// The position of the search for old texts. It moves forward with time. Once a day it starts again, so a text stays at
/// most a day longer than it should.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TextSweep {
    pub(crate) after: i64,
    began_us: Option<i64>,
}

/// The texts to forget in one step.
#[derive(Debug)]
pub(crate) struct OldTexts {
    pub(crate) before_us: i64,
    pub(crate) ids: Vec<i64>,
    pub(crate) sweep: TextSweep,
    pub(crate) has_more: bool,
}

impl TextSweep {
    /// Starts again if it is time to.
    pub(crate) fn begin(mut self, now_us: i64) -> Self {
        let is_due = |began_us: i64| began_us.saturating_add(SWEEP_EVERY_US) <= now_us;
        if self.began_us.is_none_or(is_due) {
            self.after = 0;
            self.began_us = Some(now_us);
        }
        self
    }

    /// Chooses the texts to forget among the next rows, `read` of which were asked for.
    pub(crate) fn choose(mut self, rows: &[TextRow], before_us: i64, limit: u32) -> OldTexts {
        let mut ids = Vec::new();
        let mut has_more = rows.len() >= ROWS as usize;
        for row in rows {
            if ids.len() >= limit as usize {
                has_more = true;
                break;
            }
            // No later message can have ended before the time, because IDs ascend with acceptance.
            if row.accepted_us > before_us {
                has_more = false;
                break;
            }
            self.after = row.id;
            let is_over = row.final_us.is_some_and(|at| at <= before_us);
            ids.extend((is_over && row.has_text).then_some(row.id));
        }
        OldTexts {
            before_us,
            ids,
            sweep: self,
            has_more,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, accepted_us: i64, final_us: Option<i64>, has_text: bool) -> TextRow {
        TextRow {
            id,
            accepted_us,
            final_us,
            has_text,
        }
    }

    #[test]
    fn old_texts_are_chosen_and_the_sweep_moves_on() {
        let rows = [
            row(1, 10, Some(20), true),
            row(2, 11, None, true),
            row(3, 12, Some(21), false),
            row(4, 13, Some(60), true),
            row(5, 14, Some(22), true),
            row(6, 51, Some(52), true),
        ];
        let sweep = TextSweep::default().begin(100);
        let old = sweep.choose(&rows, 50, 10);
        assert_eq!(
            (old.ids, old.sweep.after, old.has_more),
            (vec![1, 5], 5, false)
        );
        let some = sweep.choose(&rows, 50, 1);
        assert_eq!(
            (some.ids, some.sweep.after, some.has_more),
            (vec![1], 1, true)
        );
    }

    #[test]
    fn a_sweep_starts_again_after_a_day() {
        let sweep = TextSweep {
            after: 7,
            began_us: Some(100),
        };
        assert_eq!(sweep.begin(SWEEP_EVERY_US + 99).after, 7);
        assert_eq!(sweep.begin(SWEEP_EVERY_US + 100).after, 0);
    }
}
