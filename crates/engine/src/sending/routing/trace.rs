//! Which way a message would go, and why: for people who look after routes.

use domain::ports::Health;
use domain::{AccountId, Channel, Money, Msisdn};
use numbering::reference::Location;

use super::{Choice, Plan, Routing};

/// The way that a message would go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    /// What its recipient's first digits tell.
    pub place: Location,
    /// What it would cost the account; `None`: there is no price, so it is refused.
    pub price: Option<Money>,
    /// The rule that decides, by its place in the plan; `None`: no rule fits, so it is refused.
    pub rule: Option<usize>,
    /// How that rule orders its carriers.
    pub choice: Choice,
    /// The carriers, in the order in which they are asked. Where shares decide, each of them may come first.
    pub carriers: Vec<TracedCarrier>,
}

/// A carrier on that way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedCarrier {
    /// Its name.
    pub name: String,
    /// What it takes for a part there, where that is known.
    pub cost: Option<Money>,
    /// Its weight, where shares decide.
    pub weight: Option<u32>,
    /// How it does, where this process is connected to it.
    pub health: Option<Health>,
}

impl Routing {
    /// The carriers and rules that are in force.
    pub fn plan(&self) -> Plan {
        self.table.load().plan.clone()
    }

    /// The way that a message of this account, or of one that no rule names, would go.
    pub fn trace(&self, channel: Channel, account: Option<AccountId>, to: &Msisdn) -> Traced {
        let table = self.table.load();
        let live = self.catalogues.live();
        let place = live.reference.locate(to);
        let prices = live.prices(channel);
        let price = match account {
            Some(account) => prices.price(account, &place),
            None => prices.list.price(&place),
        };
        let Some((rule, route)) = table.find(channel, account, to, &place, 0) else {
            return Traced {
                place,
                price,
                rule: None,
                choice: Choice::Order,
                carriers: Vec::new(),
            };
        };
        let chosen = table.plan.rules.get(rule);
        let weight = |carrier: usize| {
            let chosen = chosen?;
            let Choice::Share(weights) = &chosen.choice else {
                return None;
            };
            let at = chosen.carriers.iter().position(|&named| named == carrier)?;
            Some(weights.get(at).copied().unwrap_or(1))
        };
        let carriers = route.iter().map(|&carrier| {
            let carrier = usize::from(carrier);
            let costs = table.costs[carrier].as_ref();
            TracedCarrier {
                name: table.plan.carriers[carrier].name.clone(),
                cost: costs.and_then(|costs| costs.price(&place)),
                weight: weight(carrier),
                health: table.carriers.health(carrier),
            }
        });
        Traced {
            place,
            price,
            rule: Some(rule),
            choice: chosen.map_or(Choice::Order, |rule| rule.choice.clone()),
            carriers: carriers.collect(),
        }
    }
}
