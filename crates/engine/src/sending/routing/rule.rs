//! One rule: which messages it is for, and which carriers take those.

use std::collections::HashMap;
use std::sync::Arc;

use domain::{AccountId, AccountName, Channel, Country, Money, Msisdn, Network};
use numbering::reference::Location;

use super::CarrierFacts;
use crate::sending::carriers::Route;

/// Which messages a rule is for. Every condition that names something must hold; an empty one always does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Condition {
    /// The channel is one of these.
    pub channels: Vec<Channel>,
    /// The sender's account is one of these.
    pub accounts: Vec<AccountName>,
    /// The recipient's country is one of these.
    pub countries: Vec<Country>,
    /// The recipient's number begins with one of these: digits, country code included.
    pub prefixes: Vec<String>,
    /// The recipient's network, as its prefix tells, is one of these.
    pub networks: Vec<Network>,
}

/// How the carriers of a rule are ordered for a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// As they stand.
    #[default]
    Order,
    /// Each comes first for its share of the messages: a weight for each carrier. The others follow as they stand.
    Share(Vec<u32>),
    /// The cheapest first, by the carriers' cost lists; one whose cost is not known comes last.
    Cost,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Which messages it is for.
    pub when: Condition,
    /// Which carriers take them, by their places in the plan.
    pub carriers: Vec<usize>,
    /// In which order.
    pub choice: Choice,
}

impl Rule {
    pub(super) fn needs_place(&self) -> bool {
        let Condition {
            countries,
            networks,
            ..
        } = &self.when;
        !countries.is_empty() || !networks.is_empty() || self.choice == Choice::Cost
    }
}

/// A rule, ready to be asked.
pub(super) struct Compiled {
    when: Condition,
    /// `None`: of any account.
    accounts: Option<Vec<AccountId>>,
    /// For each channel, by its number.
    orders: [Orders; Channel::ALL.len()],
}

/// The carriers of a rule that serve a channel.
enum Orders {
    Fixed(Route),
    /// Each order with the sum of the weights up to and including its own.
    Shared(Vec<(u64, Route)>),
    Cheapest(Route),
}

impl Orders {
    fn new(rule: &Rule, channel: Channel, carriers: &[CarrierFacts]) -> Self {
        let serving: Vec<(usize, u8)> = rule
            .carriers
            .iter()
            .enumerate()
            .filter(|(_, carrier)| carriers[**carrier].channels.contains(&channel))
            .map(|(at, carrier)| (at, u8::try_from(*carrier).expect("a plan has few carriers")))
            .collect();
        let route: Route = serving.iter().map(|(_, carrier)| *carrier).collect();
        match &rule.choice {
            Choice::Order => Self::Fixed(route),
            Choice::Cost => Self::Cheapest(route),
            Choice::Share(weights) => {
                let mut sum = 0;
                let shared = serving.iter().filter_map(|(at, first)| {
                    let weight = weights.get(*at).copied().unwrap_or(1);
                    sum += u64::from(weight);
                    let rest = route.iter().filter(|carrier| *carrier != first);
                    (weight > 0)
                        .then(|| (sum, std::iter::once(first).chain(rest).copied().collect()))
                });
                Self::Shared(shared.collect())
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Fixed(route) | Self::Cheapest(route) => route.is_empty(),
            Self::Shared(orders) => orders.is_empty(),
        }
    }
}

impl Compiled {
    pub(super) fn new(
        rule: &Rule,
        carriers: &[CarrierFacts],
        accounts: &HashMap<AccountName, AccountId>,
    ) -> Self {
        let named = &rule.when.accounts;
        let known = || named.iter().filter_map(|name| accounts.get(name).copied());
        Self {
            accounts: (!named.is_empty()).then(|| known().collect()),
            orders: Channel::ALL.map(|channel| Orders::new(rule, channel, carriers)),
            when: rule.when.clone(),
        }
    }

    pub(super) fn fits(
        &self,
        channel: Channel,
        account: Option<AccountId>,
        to: &Msisdn,
        place: &Location,
    ) -> bool {
        let Condition {
            channels,
            accounts: _,
            countries,
            prefixes,
            networks,
        } = &self.when;
        let digits = to.digits();
        !self.orders[channel.number()].is_empty()
            && (channels.is_empty() || channels.contains(&channel))
            && self
                .accounts
                .as_ref()
                .is_none_or(|accounts| account.is_some_and(|account| accounts.contains(&account)))
            && (prefixes.is_empty() || prefixes.iter().any(|prefix| digits.starts_with(prefix)))
            && holds(countries, place.country)
            && holds(networks, place.network)
    }

    /// The carriers for a message that fits.
    pub(super) fn order(
        &self,
        channel: Channel,
        dice: u64,
        cost: impl Fn(u8) -> Option<Money>,
    ) -> Route {
        match &self.orders[channel.number()] {
            Orders::Fixed(route) => route.clone(),
            Orders::Shared(orders) => {
                let total = orders.last().map_or(1, |(sum, _)| *sum);
                let drawn = scatter(dice) % total;
                let first = orders.iter().find(|(sum, _)| drawn < *sum);
                first.map_or_else(|| Arc::new([]) as Route, |(_, route)| route.clone())
            }
            Orders::Cheapest(route) => {
                let mut priced: Vec<(bool, Option<Money>, u8)> = route
                    .iter()
                    .map(|carrier| (cost(*carrier), *carrier))
                    .map(|(cost, carrier)| (cost.is_none(), cost, carrier))
                    .collect();
                // Stable, so that of equally cheap ones the first named comes first.
                priced.sort_by_key(|(is_unknown, cost, _)| (*is_unknown, *cost));
                priced.into_iter().map(|(_, _, carrier)| carrier).collect()
            }
        }
    }
}

/// Dice are IDs, which follow each other: a caller whose every second message takes this route would always throw the
/// same. Each bit of the result depends on every bit given, by the finishing step of the generator `SplitMix64`.
fn scatter(dice: u64) -> u64 {
    let mut mixed = dice;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn holds<T: PartialEq>(wanted: &[T], found: Option<T>) -> bool {
    wanted.is_empty() || found.is_some_and(|found| wanted.contains(&found))
}
