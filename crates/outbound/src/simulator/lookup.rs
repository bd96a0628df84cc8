//! Answers lookups.

use domain::delivery::CarrierAnswer;
use domain::message::lookup::Subscriber;
use domain::{Code, Msisdn, Network};

use super::Simulator;
use super::magic_numbers::{PORTED_NUMBER, SimulatedOutcome};

const IMSI_DIGITS: usize = 15;

impl Simulator {
    pub(super) fn look_up(&self, to: &Msisdn, simulated: SimulatedOutcome) -> CarrierAnswer {
        let code = match simulated {
            SimulatedOutcome::Silent => return CarrierAnswer::NotNow(Code::HLR_TIMEOUT),
            SimulatedOutcome::Refused(code) => {
                return CarrierAnswer::Answered(Subscriber::unknown(code));
            }
            SimulatedOutcome::Failed(code) if code.is_no_lookup() => {
                return CarrierAnswer::Answered(Subscriber::unknown(code));
            }
            SimulatedOutcome::Failed(code) => code,
            SimulatedOutcome::Delivered => Code::FINE,
        };
        let origin = self.numbers.locate(to);
        let other = (to.digits() == PORTED_NUMBER)
            .then(|| self.numbers.other_operator(&origin))
            .flatten();
        let home = other.as_ref().unwrap_or(&origin);
        CarrierAnswer::Answered(Subscriber {
            code,
            imsi: home
                .network
                .filter(|_| code == Code::FINE)
                .map(|network| imsi(network, to)),
            country: home.country,
            operator: home.operator.as_ref().map(|operator| operator.id),
            network: home.network,
            ported_from: origin.operator.clone().filter(|_| other.is_some()),
        })
    }
}

/// An IMSI that is always the same for a number: the network, then the last digits of the number.
fn imsi(network: Network, number: &Msisdn) -> u64 {
    let network = network.to_string();
    let digits = number.digits();
    let left = IMSI_DIGITS - network.len();
    let end = &digits[digits.len().saturating_sub(left)..];
    let text = format!("{network}{end:0>left$}");
    text.parse().expect("fifteen digits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_imsi_has_fifteen_digits_and_starts_with_the_network() {
        for (mcc, mnc, number, expected) in [
            ("247", "01", "+37129100000", 247_017_129_100_000),
            ("310", "260", "+12125550123", 310_260_125_550_123),
            ("247", "01", "+2901234", 247_010_002_901_234),
        ] {
            let network = Network::new(mcc, mnc).expect("a network");
            let number = Msisdn::parse(number).expect(number);
            assert_eq!(imsi(network, &number), expected);
        }
    }
}
