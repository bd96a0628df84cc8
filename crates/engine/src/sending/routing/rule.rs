//! A routing rule: which messages it applies to, and which carriers take those.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use domain::{AccountId, AccountName, Channel, Country, Money, Msisdn, Network};
use numbering::reference::Location;

use super::{CarrierFacts, Locations};
use crate::sending::carriers::Route;

/// Which messages a rule applies to. All conditions must hold; an empty one always does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Condition {
    pub channels: Vec<Channel>,
    pub accounts: Vec<AccountName>,
    /// Of the recipient.
    pub countries: Vec<Country>,
    /// Digits that the recipient's number may begin with, country code included.
    pub prefixes: Vec<String>,
    /// Of the recipient, as its prefix tells or, with [`Rule::ported_numbers`], as it was ported.
    pub networks: Vec<Network>,
}

/// How the carriers of a rule are ordered for a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// In the rule's order.
    #[default]
    Order,
    /// Each carrier is first for its share of the messages, by its weight. The others follow in the rule's order.
    Share(Vec<u32>),
    /// The cheapest first, by the carriers' cost lists. Carriers with an unknown cost are last.
    Cost,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Which messages it applies to.
    pub when: Condition,
    /// The indices of its carriers in the plan.
    pub carriers: Vec<usize>,
    /// How they are ordered.
    pub choice: Choice,
    /// Whether networks and costs are those that a number was ported to, if that is known.
    pub ported_numbers: bool,
}

impl Rule {
    pub(super) fn needs_location(&self) -> bool {
        let Condition {
            countries,
            networks,
            ..
        } = &self.when;
        !countries.is_empty() || !networks.is_empty() || self.choice == Choice::Cost
    }
}

/// A rule, prepared for matching.
pub(super) struct CompiledRule {
    when: Condition,
    ported_numbers: bool,
    /// `None` if it applies to all accounts.
    accounts: Option<Vec<AccountId>>,
    /// By channel number.
    by_channel: [ChannelCarriers; Channel::ALL.len()],
}

/// The carriers of a rule that serve a channel.
enum ChannelCarriers {
    Fixed(Route),
    Shared(SharedRoutes),
    Cheapest(CheapestRoutes),
}

/// How many orders of carriers a rule remembers; when there are more, it forgets all of them.
const MAX_REMEMBERED: usize = 1024;

/// Carriers that are ordered by cost. Cost lists do not change while a table is in force, so the order is the same for
/// all numbers with the same location.
struct CheapestRoutes {
    route: Route,
    remembered: RwLock<HashMap<Location, Route>>,
}

impl CheapestRoutes {
    fn new(route: Route) -> Self {
        Self {
            route,
            remembered: RwLock::default(),
        }
    }

    fn order(&self, location: &Location, cost: impl Fn(u8) -> Option<Money>) -> Route {
        let remembered = self.remembered.read().expect("no holder panics");
        if let Some(route) = remembered.get(location) {
            return route.clone();
        }
        drop(remembered);
        let mut priced: Vec<(bool, Option<Money>, u8)> = self
            .route
            .iter()
            .map(|carrier| (cost(*carrier), *carrier))
            .map(|(cost, carrier)| (cost.is_none(), cost, carrier))
            .collect();
        // The sort is stable, so equally cheap carriers keep the rule's order.
        priced.sort_by_key(|(is_unknown, cost, _)| (*is_unknown, *cost));
        let route: Route = priced.into_iter().map(|(_, _, carrier)| carrier).collect();
        let mut remembered = self.remembered.write().expect("no holder panics");
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(*location, route.clone());
        route
    }
}

/// Each route with the sum of the weights up to and including its own.
type SharedRoutes = Arc<[(u64, Route)]>;

/// The carriers that a rule names for a message.
#[derive(Debug, Clone)]
pub(crate) enum RouteChoice {
    One(Route),
    /// The message's ID decides which carrier is first.
    Shared(SharedRoutes),
}

impl RouteChoice {
    /// Decides by the message's ID, so that a message always gets the same route.
    pub(crate) fn pick(&self, id: u64) -> Route {
        match self {
            Self::One(route) => route.clone(),
            Self::Shared(routes) => {
                let total = routes.last().map_or(1, |(sum, _)| *sum);
                let point = scatter(id) % total;
                let first = routes.iter().find(|(sum, _)| point < *sum);
                first.map_or_else(|| Arc::new([]) as Route, |(_, route)| route.clone())
            }
        }
    }
}

impl ChannelCarriers {
    fn new(rule: &Rule, channel: Channel, carriers: &[CarrierFacts]) -> Self {
        let serving: Vec<(usize, u8)> = rule
            .carriers
            .iter()
            .enumerate()
            .filter(|(_, carrier)| carriers[**carrier].channels.contains(&channel))
            .map(|(index, carrier)| {
                (
                    index,
                    u8::try_from(*carrier).expect("a plan has few carriers"),
                )
            })
            .collect();
        let route: Route = serving.iter().map(|(_, carrier)| *carrier).collect();
        match &rule.choice {
            Choice::Order => Self::Fixed(route),
            Choice::Cost => Self::Cheapest(CheapestRoutes::new(route)),
            Choice::Share(weights) => {
                let mut sum = 0;
                let shared = serving.iter().filter_map(|(index, first)| {
                    let weight = weights.get(*index).copied().unwrap_or(1);
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
            Self::Fixed(route) => route.is_empty(),
            Self::Shared(routes) => routes.is_empty(),
            Self::Cheapest(routes) => routes.route.is_empty(),
        }
    }
}

impl CompiledRule {
    pub(super) fn new(
        rule: &Rule,
        carriers: &[CarrierFacts],
        accounts: &HashMap<AccountName, AccountId>,
    ) -> Self {
        let named = &rule.when.accounts;
        let known = || named.iter().filter_map(|name| accounts.get(name).copied());
        Self {
            accounts: (!named.is_empty()).then(|| known().collect()),
            by_channel: Channel::ALL.map(|channel| ChannelCarriers::new(rule, channel, carriers)),
            when: rule.when.clone(),
            ported_numbers: rule.ported_numbers,
        }
    }

    /// The location by which it decides.
    pub(super) fn location<'a>(&self, locations: &'a Locations) -> &'a Location {
        locations.get(self.ported_numbers)
    }

    pub(super) fn matches(
        &self,
        channel: Channel,
        account: Option<AccountId>,
        to: &Msisdn,
        locations: &Locations,
    ) -> bool {
        let Condition {
            channels,
            accounts: _,
            countries,
            prefixes,
            networks,
        } = &self.when;
        let (digits, location) = (to.digits(), self.location(locations));
        !self.by_channel[channel.number()].is_empty()
            && (channels.is_empty() || channels.contains(&channel))
            && self
                .accounts
                .as_ref()
                .is_none_or(|accounts| account.is_some_and(|account| accounts.contains(&account)))
            && (prefixes.is_empty() || prefixes.iter().any(|prefix| digits.starts_with(prefix)))
            && is_allowed(countries, location.country)
            && is_allowed(networks, location.network)
    }

    /// The carriers for a message that matches. `cost` is what a carrier charges for a part to the location.
    pub(super) fn choice(
        &self,
        channel: Channel,
        location: &Location,
        cost: impl Fn(u8) -> Option<Money>,
    ) -> RouteChoice {
        match &self.by_channel[channel.number()] {
            ChannelCarriers::Fixed(route) => RouteChoice::One(route.clone()),
            ChannelCarriers::Shared(routes) => RouteChoice::Shared(routes.clone()),
            ChannelCarriers::Cheapest(routes) => RouteChoice::One(routes.order(location, cost)),
        }
    }
}

/// Scatters consecutive IDs, so that carriers do not alternate in step with a caller's messages. This is the finishing
/// step of the generator `SplitMix64`: each bit of the result depends on all bits of the ID.
fn scatter(id: u64) -> u64 {
    let mut mixed = id;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn is_allowed<T: PartialEq>(allowed: &[T], found: Option<T>) -> bool {
    allowed.is_empty() || found.is_some_and(|found| allowed.contains(&found))
}
