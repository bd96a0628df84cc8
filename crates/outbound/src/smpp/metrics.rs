//! What is counted about a carrier that speaks SMPP, beside what is counted about every carrier. The counters are looked up once, for each message counts.

use ::metrics::{Counter, counter};

/// What came from a carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    /// A final receipt, stored with its message.
    Final,
    /// A final receipt, stored for a part that is not known yet.
    Unmatched,
    /// A final receipt that could not be stored; the carrier brings it again.
    NotTaken,
    /// A receipt that tells no end.
    Passing,
    /// A receipt that does not say for which message.
    Nameless,
    /// A message from a handset.
    Handset,
}

impl Received {
    /// In the order of their declaration.
    const ALL: [Self; 6] = [
        Self::Final,
        Self::Unmatched,
        Self::NotTaken,
        Self::Passing,
        Self::Nameless,
        Self::Handset,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Unmatched => "unmatched",
            Self::NotTaken => "not_taken",
            Self::Passing => "passing",
            Self::Nameless => "nameless",
            Self::Handset => "handset",
        }
    }
}

/// The counters of a carrier.
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

    /// The carrier asked for less.
    pub(super) fn throttled(&self) {
        self.throttled.increment(1);
    }

    /// Something came.
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
