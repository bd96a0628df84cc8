//! Numbers with a fixed outcome.

use domain::message::code::CATALOGUE;
use domain::{Channel, Code, Msisdn};

/// Magic numbers start with this and end in a three-digit error code.
const MAGIC_PREFIX: &str = "447700900";
/// The number that a lookup reports as ported.
pub(super) const PORTED_NUMBER: &str = "447700900800";

/// What happens to a message to a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedOutcome {
    Delivered,
    /// Accepted, then reported as failed.
    Failed(Code),
    /// Not accepted.
    Refused(Code),
    /// Accepted, but never reported.
    Silent,
}

pub fn simulated_outcome(to: &Msisdn) -> SimulatedOutcome {
    let Some(code) = to
        .digits()
        .strip_prefix(MAGIC_PREFIX)
        .filter(|rest| rest.len() == 3)
    else {
        return SimulatedOutcome::Delivered;
    };
    match code.parse().ok().and_then(Code::new) {
        None | Some(Code::FINE) => SimulatedOutcome::Delivered,
        Some(Code::EXPIRED) => SimulatedOutcome::Silent,
        Some(code) if code.is_refunded() => SimulatedOutcome::Refused(code),
        Some(code) => SimulatedOutcome::Failed(code),
    }
}

/// A number with a fixed outcome, for documentation and tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MagicNumber {
    /// With its plus sign.
    pub number: String,
    pub channel: Channel,
    /// `delivered`, `failed` or `expired`; for a lookup also `ported`.
    pub outcome: &'static str,
    /// The error code in the delivery report.
    pub code: u16,
}

/// All magic numbers, by channel and code.
pub fn magic_numbers() -> impl Iterator<Item = MagicNumber> {
    let of_code = |channel: Channel, code: u16| {
        let is_silent = code == Code::EXPIRED.number();
        MagicNumber {
            number: format!("+{MAGIC_PREFIX}{code:03}"),
            channel,
            outcome: match code {
                0 => "delivered",
                _ if is_silent => "expired",
                _ => "failed",
            },
            // Such a lookup is never answered, so it ends with a timeout.
            code: if is_silent && channel == Channel::Hlr {
                Code::HLR_TIMEOUT.number()
            } else {
                code
            },
        }
    };
    let of_channel = move |channel: Channel| {
        CATALOGUE
            .iter()
            .map(move |entry| of_code(channel, entry.number))
    };
    let ported = MagicNumber {
        number: format!("+{PORTED_NUMBER}"),
        channel: Channel::Hlr,
        outcome: "ported",
        code: Code::FINE.number(),
    };
    Channel::ALL
        .into_iter()
        .flat_map(of_channel)
        .chain([ported])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_numbers_end_with_their_code() {
        let code = |number| Code::new(number).expect("in the catalogue");
        for (number, expected) in [
            ("+447700900000", SimulatedOutcome::Delivered),
            ("+447700900001", SimulatedOutcome::Failed(code(1))),
            ("+447700900002", SimulatedOutcome::Silent),
            ("+447700900018", SimulatedOutcome::Delivered),
            ("+447700900020", SimulatedOutcome::Refused(code(20))),
            ("+447700900043", SimulatedOutcome::Failed(code(43))),
            ("+447700900800", SimulatedOutcome::Delivered),
            ("+447700900999", SimulatedOutcome::Failed(code(999))),
            ("+4477009000431", SimulatedOutcome::Delivered),
            ("+37120000001", SimulatedOutcome::Delivered),
        ] {
            assert_eq!(
                simulated_outcome(&Msisdn::parse(number).expect(number)),
                expected,
                "{number}"
            );
        }
    }

    #[test]
    fn every_code_has_its_number() {
        let numbers: Vec<MagicNumber> = magic_numbers().collect();
        assert_eq!(numbers.len(), 3 * CATALOGUE.len() + 1);
        for magic in numbers
            .into_iter()
            .filter(|magic| magic.outcome != "ported")
        {
            let simulated = simulated_outcome(&Msisdn::parse(&magic.number).expect("a number"));
            let outcome = match simulated {
                SimulatedOutcome::Delivered => "delivered",
                SimulatedOutcome::Failed(_) | SimulatedOutcome::Refused(_) => "failed",
                SimulatedOutcome::Silent => "expired",
            };
            assert_eq!(outcome, magic.outcome, "{}", magic.number);
        }
    }
}
