//! Alerts: what is wrong at present, and when somebody is notified about it.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};

use crate::ids::AccountId;
use crate::quoted::Quoted;

/// How long an event about the same subject is not repeated.
pub const QUIET: SignedDuration = SignedDuration::from_mins(10);
/// How long a carrier must be down, or up again, before a notification is sent: a link that is connecting is not down.
const SETTLING: SignedDuration = SignedDuration::from_secs(4);

/// What an alert is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// A carrier that is down on all nodes.
    Carrier,
    /// An account whose balance is low or used up.
    Balance,
    /// A receiver of an account's callbacks that fails.
    CallbackHost,
    /// A sender ID that waits for a review.
    Sender,
    /// A node that died.
    Node,
    /// A disk that is nearly full.
    Disk,
    /// A certificate that expires soon.
    Certificate,
    /// Numbers of an account to which codes are slowed down, because nearly none is entered.
    Verify,
    /// The delivery rate of an account, or of all together, that is falling.
    DeliveryRate,
}

impl Topic {
    pub const ALL: [Self; 9] = [
        Self::Carrier,
        Self::Balance,
        Self::CallbackHost,
        Self::Sender,
        Self::Node,
        Self::Disk,
        Self::Certificate,
        Self::Verify,
        Self::DeliveryRate,
    ];

    /// The name in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Carrier => "carrier",
            Self::Balance => "balance",
            Self::CallbackHost => "callbacks.host",
            Self::Sender => "sender",
            Self::Node => "node",
            Self::Disk => "disk",
            Self::Certificate => "certificate",
            Self::Verify => "verify",
            Self::DeliveryRate => "delivery",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.name() == name)
    }

    /// How long a level must last before a notification is sent.
    const fn settling(self) -> SignedDuration {
        match self {
            Self::Carrier => SETTLING,
            _ => SignedDuration::ZERO,
        }
    }
}

/// What a notification is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    CarrierDown,
    CarrierUp,
    BalanceLow,
    BalanceEmpty,
    CallbacksHostDown,
    SenderPending,
    NodeLost,
    DiskLow,
    CertificateExpiring,
    VerifySlowed,
    DeliveryFalling,
}

impl Event {
    pub const ALL: [Self; 11] = [
        Self::CarrierDown,
        Self::CarrierUp,
        Self::BalanceLow,
        Self::BalanceEmpty,
        Self::CallbacksHostDown,
        Self::SenderPending,
        Self::NodeLost,
        Self::DiskLow,
        Self::CertificateExpiring,
        Self::VerifySlowed,
        Self::DeliveryFalling,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::CarrierDown => "carrier.down",
            Self::CarrierUp => "carrier.up",
            Self::BalanceLow => "balance.low",
            Self::BalanceEmpty => "balance.empty",
            Self::CallbacksHostDown => "callbacks.host_down",
            Self::SenderPending => "sender.pending",
            Self::NodeLost => "node.lost",
            Self::DiskLow => "disk.low",
            Self::CertificateExpiring => "certificate.expiring",
            Self::VerifySlowed => "verify.slowed",
            Self::DeliveryFalling => "delivery.falling",
        }
    }

    /// Whether the account that it is about is notified, too, where it wants that.
    pub const fn is_for_accounts(self) -> bool {
        matches!(
            self,
            Self::BalanceLow
                | Self::BalanceEmpty
                | Self::CallbacksHostDown
                | Self::VerifySlowed
                | Self::DeliveryFalling
        )
    }

    /// The event of a topic that reaches a level from another; `None` if that is not told.
    const fn of(topic: Topic, from: Level, to: Level) -> Option<Self> {
        match (topic, from, to) {
            (Topic::Carrier, _, Level::Fine) => Some(Self::CarrierUp),
            (_, _, Level::Fine) | (_, Level::Worse, Level::Bad) => None,
            (Topic::Carrier, ..) => Some(Self::CarrierDown),
            (Topic::Balance, _, Level::Bad) => Some(Self::BalanceLow),
            (Topic::Balance, _, Level::Worse) => Some(Self::BalanceEmpty),
            (Topic::CallbackHost, ..) => Some(Self::CallbacksHostDown),
            (Topic::Sender, ..) => Some(Self::SenderPending),
            (Topic::Node, ..) => Some(Self::NodeLost),
            (Topic::Disk, ..) => Some(Self::DiskLow),
            (Topic::Certificate, ..) => Some(Self::CertificateExpiring),
            (Topic::Verify, ..) => Some(Self::VerifySlowed),
            (Topic::DeliveryRate, ..) => Some(Self::DeliveryFalling),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not an event; choose from carrier.down, carrier.up, balance.low, balance.empty, callbacks.host_down, \
    sender.pending, node.lost, disk.low, certificate.expiring, verify.slowed, delivery.falling", Quoted(.0))]
pub struct UnknownEvent(String);

impl FromStr for Event {
    type Err = UnknownEvent;

    fn from_str(name: &str) -> Result<Self, UnknownEvent> {
        let event = Self::ALL.into_iter().find(|event| event.name() == name);
        event.ok_or_else(|| UnknownEvent(name.to_owned()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    Fine,
    Bad,
    Worse,
}

impl Level {
    pub const ALL: [Self; 3] = [Self::Fine, Self::Bad, Self::Worse];

    pub const fn number(self) -> usize {
        match self {
            Self::Fine => 0,
            Self::Bad => 1,
            Self::Worse => 2,
        }
    }
}

/// What is known about a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    pub topic: Topic,
    pub subject: String,
    /// `None` if it is about the whole service.
    pub account: Option<AccountId>,
    pub level: Level,
    /// Since when it has this level.
    pub since: Timestamp,
    /// The level that the last notification was about.
    pub told: Level,
    /// When each level was last told.
    pub told_at: [Option<Timestamp>; 3],
    /// What notifications and pages show, a JSON object.
    pub data: String,
}

/// What was seen of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub topic: Topic,
    pub subject: String,
    pub account: Option<AccountId>,
    pub level: Level,
    pub data: String,
    /// Whether a first level that is not fine is not told: nothing has changed, as far as is known.
    pub quiet_at_first: bool,
}

/// What follows from an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Nothing,
    Store(Alert, Option<Event>),
    Remove,
}

/// Decides what is stored and whether a notification is sent: at most one within [`QUIET`] for each event and subject.
/// After that time, the current level is sent if it differs from the last one sent.
pub fn decide(before: Option<&Alert>, seen: &Observation, now: Timestamp) -> Decision {
    let Some(before) = before else {
        if seen.level == Level::Fine {
            return Decision::Nothing;
        }
        let told = if seen.quiet_at_first {
            seen.level
        } else {
            Level::Fine
        };
        let first = Alert {
            topic: seen.topic,
            subject: seen.subject.clone(),
            account: seen.account,
            level: seen.level,
            since: now,
            told,
            told_at: [None; 3],
            data: seen.data.clone(),
        };
        let (alert, event) = tell(first, now);
        return Decision::Store(alert, event);
    };
    let is_recent = |at: &Option<Timestamp>| at.is_some_and(|at| now.duration_since(at) < QUIET);
    if seen.level == Level::Fine
        && (before.level, before.told) == (Level::Fine, Level::Fine)
        && !before.told_at.iter().any(is_recent)
    {
        return Decision::Remove;
    }
    let mut after = before.clone();
    if seen.level != before.level {
        (after.level, after.since) = (seen.level, now);
        after.data.clone_from(&seen.data);
    } else if seen.level != Level::Fine && seen.topic == Topic::CallbackHost {
        // How many callbacks wait. The observer keeps the data if they are nearly as many as before.
        after.data.clone_from(&seen.data);
    }
    let (after, event) = tell(after, now);
    if after == *before {
        return Decision::Nothing;
    }
    Decision::Store(after, event)
}

fn tell(mut alert: Alert, now: Timestamp) -> (Alert, Option<Event>) {
    let (level, told) = (alert.level, alert.told);
    if level == told || now.duration_since(alert.since) < alert.topic.settling() {
        return (alert, None);
    }
    let Some(event) = Event::of(alert.topic, told, level) else {
        alert.told = level;
        return (alert, None);
    };
    let last = &mut alert.told_at[level.number()];
    if last.is_some_and(|last| now.duration_since(last) < QUIET) {
        return (alert, None);
    }
    *last = Some(now);
    alert.told = level;
    (alert, Some(event))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("in range")
    }

    /// Runs a series of levels, each with its second, and returns the events with theirs.
    fn events(topic: Topic, levels: &[(i64, Level)]) -> Vec<(i64, Event)> {
        let mut alert: Option<Alert> = None;
        let mut events = Vec::new();
        for (second, level) in levels {
            let seen = Observation {
                topic,
                subject: "subject".to_owned(),
                account: None,
                level: *level,
                data: "{}".to_owned(),
                quiet_at_first: false,
            };
            match decide(alert.as_ref(), &seen, at(*second)) {
                Decision::Nothing => {}
                Decision::Store(after, event) => {
                    events.extend(event.map(|event| (*second, event)));
                    alert = Some(after);
                }
                Decision::Remove => alert = None,
            }
        }
        events
    }

    #[test]
    fn each_change_is_told_once() {
        use Event::{BalanceEmpty, BalanceLow, CarrierDown, CarrierUp, DiskLow};
        use Level::{Bad, Fine, Worse};
        for (case, topic, levels, expected) in [
            (
                "down and up",
                Topic::Carrier,
                vec![
                    (0, Fine),
                    (5, Bad),
                    (10, Bad),
                    (15, Bad),
                    (100, Fine),
                    (105, Fine),
                    (110, Fine),
                ],
                vec![(10, CarrierDown), (105, CarrierUp)],
            ),
            (
                "down for a moment",
                Topic::Carrier,
                vec![(0, Bad), (3, Fine), (10, Fine)],
                vec![],
            ),
            (
                "a balance falls, and money is added",
                Topic::Balance,
                vec![
                    (0, Bad),
                    (5, Bad),
                    (10, Worse),
                    (15, Worse),
                    (20, Fine),
                    (25, Fine),
                ],
                vec![(0, BalanceLow), (10, BalanceEmpty)],
            ),
            (
                "a balance falls again soon",
                Topic::Balance,
                vec![
                    (0, Bad),
                    (20, Fine),
                    (30, Bad),
                    (599, Bad),
                    (600, Bad),
                    (605, Bad),
                ],
                vec![(0, BalanceLow), (600, BalanceLow)],
            ),
            (
                "a balance is refunded and used up",
                Topic::Balance,
                vec![(0, Worse), (5, Bad), (10, Worse), (15, Bad), (20, Worse)],
                vec![(0, BalanceEmpty)],
            ),
            (
                "a disk",
                Topic::Disk,
                vec![(0, Bad), (5, Bad), (10, Fine)],
                vec![(0, DiskLow)],
            ),
        ] {
            assert_eq!(events(topic, &levels), expected, "{case}");
        }
    }

    #[test]
    fn a_flapping_carrier_notifies_rarely_and_its_last_state_is_told() {
        let flap = |second| {
            let is_down = second % 20 < 10 && second < 3600;
            (second, if is_down { Level::Bad } else { Level::Fine })
        };
        let levels: Vec<_> = (0..5000).step_by(5).map(flap).collect();
        let told = events(Topic::Carrier, &levels);
        assert!(told.len() <= 14, "{told:?}");
        assert_eq!(told.last().map(|(_, event)| *event), Some(Event::CarrierUp));
    }

    #[test]
    fn what_was_so_at_first_is_not_told_if_that_is_asked() {
        let seen = Observation {
            topic: Topic::Balance,
            subject: "7".to_owned(),
            account: AccountId::new(7),
            level: Level::Worse,
            data: "{}".to_owned(),
            quiet_at_first: true,
        };
        let Decision::Store(alert, None) = decide(None, &seen, at(0)) else {
            panic!("stored without an event");
        };
        assert_eq!((alert.level, alert.told), (Level::Worse, Level::Worse));
    }

    #[test]
    fn the_data_of_a_failing_receiver_stay_current() {
        for (topic, expected) in [(Topic::CallbackHost, "new"), (Topic::Balance, "old")] {
            let mut seen = Observation {
                topic,
                subject: "7".to_owned(),
                account: None,
                level: Level::Bad,
                data: "old".to_owned(),
                quiet_at_first: true,
            };
            let Decision::Store(alert, None) = decide(None, &seen, at(0)) else {
                panic!("stored without an event");
            };
            seen.data = "new".to_owned();
            let data = match decide(Some(&alert), &seen, at(5)) {
                Decision::Store(alert, None) => alert.data,
                _ => alert.data,
            };
            assert_eq!(data, expected, "{topic:?}");
        }
    }

    #[test]
    fn a_subject_that_is_fine_is_forgotten_after_the_quiet_period() {
        let fine = |alert: &Alert| Observation {
            topic: alert.topic,
            subject: alert.subject.clone(),
            account: None,
            level: Level::Fine,
            data: String::new(),
            quiet_at_first: false,
        };
        let alert = Alert {
            topic: Topic::Disk,
            subject: "host".to_owned(),
            account: None,
            level: Level::Fine,
            since: at(0),
            told: Level::Fine,
            told_at: [None, Some(at(0)), None],
            data: String::new(),
        };
        assert_eq!(
            decide(Some(&alert), &fine(&alert), at(599)),
            Decision::Nothing
        );
        assert_eq!(
            decide(Some(&alert), &fine(&alert), at(600)),
            Decision::Remove
        );
    }

    #[test]
    fn names_are_read_back() {
        for event in Event::ALL {
            assert_eq!(event.name().parse(), Ok(event));
        }
        for topic in Topic::ALL {
            assert_eq!(Topic::from_name(topic.name()), Some(topic));
        }
        assert!("carrier.sad".parse::<Event>().is_err());
    }
}
