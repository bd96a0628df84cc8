//! Metrics of SMPP carriers, in addition to those of every carrier. The counters are looked up once, because every
//! message counts.

use ::metrics::{Counter, counter};

/// What a carrier delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    /// A final receipt that was stored with its message.
    Final,
    /// A final receipt that was stored for a part that is not known yet.
    Unmatched,
    /// A final receipt or a text that could not be stored; the carrier will deliver it again.
    NotTaken,
    /// A receipt about an intermediate state.
    Intermediate,
    /// A receipt without an ID.
    WithoutId,
    /// A text from a handset that was stored.
    Handset,
    /// A text from a handset that was sent to no number.
    Unreadable,
}

impl Received {
    /// In the order of declaration.
    const ALL: [Self; 7] = [
        Self::Final,
        Self::Unmatched,
        Self::NotTaken,
        Self::Intermediate,
        Self::WithoutId,
        Self::Handset,
        Self::Unreadable,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Unmatched => "unmatched",
            Self::NotTaken => "not_taken",
            Self::Intermediate => "passing",
            Self::WithoutId => "nameless",
            Self::Handset => "handset",
            Self::Unreadable => "unreadable",
        }
    }
}

pub(super) struct Metrics {
    throttled: Counter,
    received: [Counter; Received::ALL.len()],
}

impl Metrics {
    pub(super) fn new(carrier: &str) -> Self {
        let carrier = || carrier.to_owned();
        Self {
            throttled: counter!("switchboard_smpp_throttled_total", "carrier" => carrier()),
            received: Received::ALL.map(|kind| {
                counter!("switchboard_smpp_received_total", "carrier" => carrier(), "kind" => kind.name())
            }),
        }
    }

    pub(super) fn throttled(&self) {
        self.throttled.increment(1);
    }

    pub(super) fn received(&self, kind: Received) {
        self.received[kind as usize].increment(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_counter() {
        for (index, kind) in Received::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index, "{}", kind.name());
        }
    }
}
