//! Explains the route of a message, for operators.

use domain::ports::Health;
use domain::{AccountId, Channel, Money, Msisdn};
use numbering::reference::Location;

use super::{Choice, Plan, Routing};

/// The route that a message would take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedRoute {
    /// The country and network that decide: as the recipient's digits tell, or as it was ported.
    pub place: Location,
    /// What it would cost the account. `None` if there is no price, so it would be refused.
    pub price: Option<Money>,
    /// The index of the rule that decides. `None` if no rule matches, so it would be refused.
    pub rule: Option<usize>,
    pub choice: Choice,
    /// In order of preference. If carriers share messages, each of them may be first.
    pub carriers: Vec<RouteCarrier>,
}

/// A carrier of that route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteCarrier {
    pub name: String,
    /// What it charges for a part, if that is known.
    pub cost: Option<Money>,
    /// Its weight, if carriers share messages.
    pub weight: Option<u32>,
    /// `None` if this process is not connected to it.
    pub health: Option<Health>,
}

impl Routing {
    /// The carriers and rules in force.
    pub fn plan(&self) -> Plan {
        self.table.load().plan.clone()
    }

    /// The route of a message; `None` stands for an account that no rule names.
    pub fn trace(&self, channel: Channel, account: Option<AccountId>, to: &Msisdn) -> TracedRoute {
        let table = self.table.load();
        let live = self.catalogues.live();
        let locations = self.locate(&table, &live, account, to);
        let prices = live.prices(channel);
        let price = |place: &Location| match account {
            Some(account) => prices.price(account, place),
            None => prices.list.price(place),
        };
        let Some((rule, choice)) = table.find(channel, account, to, &locations) else {
            let place = *locations.for_account();
            return TracedRoute {
                place,
                price: price(&place),
                rule: None,
                choice: Choice::Order,
                carriers: Vec::new(),
            };
        };
        let place = *table.rules[rule].location(&locations);
        let route = choice.pick(0);
        let chosen = table.plan.rules.get(rule);
        let weight = |carrier: usize| {
            let chosen = chosen?;
            let Choice::Share(weights) = &chosen.choice else {
                return None;
            };
            let index = chosen.carriers.iter().position(|&named| named == carrier)?;
            Some(weights.get(index).copied().unwrap_or(1))
        };
        let carriers = route.iter().map(|&carrier| {
            let carrier = usize::from(carrier);
            let costs = table.costs[carrier].as_ref();
            RouteCarrier {
                name: table.plan.carriers[carrier].name.clone(),
                cost: costs.and_then(|costs| costs.price(&place)),
                weight: weight(carrier),
                health: table.carriers.health(carrier),
            }
        });
        TracedRoute {
            place,
            price: price(&place),
            rule: Some(rule),
            choice: chosen.map_or(Choice::Order, |rule| rule.choice.clone()),
            carriers: carriers.collect(),
        }
    }
}
