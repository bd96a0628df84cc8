//! Routing: which carriers may take a message, in which order.
//!
//! The first rule whose conditions all hold decides. It names one or more carriers; the others are tried if the first
//! cannot take the message. A rule applies only to channels that one of its carriers serves.

mod rule;
mod trace;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use domain::ports::{AccessStore, StoreError};
use domain::{AccountId, AccountName, Channel, Money, Msisdn};
use numbering::reference::Location;
use tokio::task::AbortHandle;

use crate::catalogue::prices::PriceList;
use crate::catalogue::{CatalogueSnapshot, Catalogues};
use crate::ported::PortedNumbers;
use crate::refusals::Refusals;
use crate::sending::carriers::{Carriers, Routed};
use rule::CompiledRule;

pub(crate) use rule::RouteChoice;
pub use rule::{Choice, Condition, Rule};
pub use trace::{RouteCarrier, TracedRoute};

/// How often missing accounts that rules name are looked for.
const SEARCH_EVERY: Duration = Duration::from_millis(500);
/// A route names carriers by a byte.
pub const MAX_CARRIERS: usize = 255;

/// What routing needs to know about a carrier.
#[derive(Debug, Clone)]
pub struct CarrierFacts {
    pub name: String,
    pub channels: Vec<Channel>,
    /// What it charges for a part, by destination, if that is known.
    pub costs: Option<Arc<PriceList>>,
    /// Whether it sends nothing real.
    pub is_simulated: bool,
}

/// The carriers and the rules that choose among them. Without rules, every message may use every carrier, in their
/// order.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// At most [`MAX_CARRIERS`].
    pub carriers: Vec<CarrierFacts>,
    /// In the order in which they are tried.
    pub rules: Vec<Rule>,
}

/// Where a recipient is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Locations {
    /// As its digits tell.
    home: Location,
    /// The same, or what the number was ported to if that is known.
    ported: Location,
    /// Whether everything of the account goes by the second one.
    by_account: bool,
}

impl Locations {
    /// The location for prices, unless a rule goes by another one.
    pub(crate) fn for_account(&self) -> &Location {
        self.get(false)
    }

    fn get(&self, is_ported: bool) -> &Location {
        if is_ported || self.by_account {
            &self.ported
        } else {
            &self.home
        }
    }
}

/// Finds the carriers for messages.
pub struct Routing {
    store: Arc<dyn AccessStore>,
    catalogues: Arc<Catalogues>,
    table: ArcSwap<RoutingTable>,
    search: std::sync::Mutex<Option<AbortHandle>>,
    /// Messages that have no route at all: their recipient opted out, or operators block them.
    refusals: Arc<Refusals>,
    ported: Arc<PortedNumbers>,
}

/// The compiled rules, with the carriers that they refer to.
pub(crate) struct RoutingTable {
    plan: Plan,
    rules: Vec<CompiledRule>,
    costs: Vec<Option<Arc<PriceList>>>,
    /// Whether any rule needs the recipient's location.
    needs_location: bool,
    /// Whether any rule goes by the networks of ported numbers.
    uses_ported: bool,
    is_simulated: bool,
    carriers: Arc<Carriers>,
}

impl Routing {
    pub(crate) fn new(store: Arc<dyn AccessStore>, catalogues: Arc<Catalogues>) -> Arc<Self> {
        Arc::new(Self {
            store,
            catalogues,
            table: ArcSwap::from_pointee(RoutingTable::new(
                &Plan::default(),
                &HashMap::new(),
                Arc::default(),
            )),
            search: std::sync::Mutex::default(),
            refusals: Arc::default(),
            ported: Arc::default(),
        })
    }

    /// Puts a plan and its carriers in force, in the plan's order; a process that does not send has no carriers. A rule
    /// that names an account that does not exist yet applies as soon as the account exists.
    pub(crate) async fn set(
        self: &Arc<Self>,
        plan: Plan,
        carriers: Arc<Carriers>,
    ) -> Result<(), StoreError> {
        let mut accounts = HashMap::new();
        let missing = self.find_accounts(&plan, &mut accounts).await?;
        self.table
            .store(Arc::new(RoutingTable::new(&plan, &accounts, carriers)));
        let search = (missing > 0).then(|| {
            let routing = Arc::downgrade(self);
            let search_again =
                move || search_accounts(routing.clone(), plan.clone(), accounts.clone());
            supervise::spawn("routing-accounts", search_again).abort_handle()
        });
        let mut before = self.search.lock().expect("no holder panics");
        if let Some(before) = std::mem::replace(&mut *before, search) {
            before.abort();
        }
        Ok(())
    }

    pub(crate) fn catalogues(&self) -> &Arc<Catalogues> {
        &self.catalogues
    }

    pub(crate) fn refusals(&self) -> &Arc<Refusals> {
        &self.refusals
    }

    pub(crate) fn ported(&self) -> &Arc<PortedNumbers> {
        &self.ported
    }

    pub(crate) fn carriers(&self) -> Arc<Carriers> {
        self.table.load().carriers()
    }

    /// The carriers for a message, whose ID decides where carriers share messages.
    pub(crate) fn route(
        &self,
        channel: Channel,
        account: AccountId,
        to: &Msisdn,
        message_id: u64,
    ) -> Routed {
        let table = self.table.load();
        let locations = if table.needs_location {
            self.locate(&table, &self.catalogues.live(), Some(account), to)
        } else {
            Locations::default()
        };
        let chosen = table.choose(channel, account, to, &locations);
        Routed {
            route: chosen
                .map(|(choice, _)| choice.pick(message_id))
                .unwrap_or_default(),
            carriers: table.carriers(),
        }
    }

    /// Where a recipient is, by its digits and by what is known about it.
    pub(crate) fn locate(
        &self,
        table: &RoutingTable,
        live: &CatalogueSnapshot,
        account: Option<AccountId>,
        to: &Msisdn,
    ) -> Locations {
        let home = live.reference.locate(to);
        let by_account = account.is_some_and(|account| self.ported.are_used_by(account));
        let ported = if by_account || table.uses_ported {
            self.ported.locate(&live.reference, to, &home)
        } else {
            home
        };
        Locations {
            home,
            ported,
            by_account,
        }
    }

    /// What a carrier charges for one part to a number, if its costs are known.
    pub(crate) fn cost(&self, carrier: &str, account: AccountId, to: &Msisdn) -> Option<Money> {
        let table = self.table.load();
        let mut carriers = table.plan.carriers.iter();
        let costs = carriers
            .find(|facts| facts.name == carrier)?
            .costs
            .as_ref()?;
        let live = self.catalogues.live();
        costs.price(&self.locate(&table, &live, Some(account), to).ported)
    }

    /// The rules in force. A request uses one table, even if another is loaded in the meantime.
    pub(crate) fn table(&self) -> Arc<RoutingTable> {
        self.table.load_full()
    }

    /// Whether all carriers are simulated, so that nothing real is sent.
    pub(crate) fn is_simulated(&self) -> bool {
        self.table.load().is_simulated
    }

    /// Looks up accounts that rules name, and returns how many do not exist.
    async fn find_accounts(
        &self,
        plan: &Plan,
        accounts: &mut HashMap<AccountName, AccountId>,
    ) -> Result<usize, StoreError> {
        let mut missing = 0;
        for name in plan.rules.iter().flat_map(|rule| &rule.when.accounts) {
            if accounts.contains_key(name) {
                continue;
            }
            match self.store.find_account(name.as_str()).await? {
                Some(account) => {
                    accounts.insert(name.clone(), account.id);
                }
                None => missing += 1,
            }
        }
        Ok(missing)
    }
}

impl Drop for Routing {
    fn drop(&mut self) {
        let search = self.search.get_mut().expect("no holder panics");
        if let Some(search) = search {
            search.abort();
        }
    }
}

async fn search_accounts(
    routing: std::sync::Weak<Routing>,
    plan: Plan,
    mut accounts: HashMap<AccountName, AccountId>,
) {
    loop {
        tokio::time::sleep(SEARCH_EVERY).await;
        let Some(routing) = routing.upgrade() else {
            return;
        };
        let known = accounts.len();
        match routing.find_accounts(&plan, &mut accounts).await {
            Err(error) => {
                tracing::warn!(%error, "cannot look for accounts that routing rules name; trying again");
            }
            Ok(missing) => {
                if accounts.len() > known {
                    let carriers = routing.carriers();
                    let table = RoutingTable::new(&plan, &accounts, carriers);
                    routing.table.store(Arc::new(table));
                }
                if missing == 0 {
                    return;
                }
            }
        }
    }
}

impl RoutingTable {
    fn new(
        plan: &Plan,
        accounts: &HashMap<AccountName, AccountId>,
        carriers: Arc<Carriers>,
    ) -> Self {
        let all = [Rule {
            when: Condition::default(),
            carriers: (0..plan.carriers.len()).collect(),
            choice: Choice::Order,
            ported_numbers: false,
        }];
        let rules = if plan.rules.is_empty() {
            &all[..]
        } else {
            &plan.rules
        };
        Self {
            plan: plan.clone(),
            rules: rules
                .iter()
                .map(|rule| CompiledRule::new(rule, &plan.carriers, accounts))
                .collect(),
            costs: plan
                .carriers
                .iter()
                .map(|carrier| carrier.costs.clone())
                .collect(),
            needs_location: rules.iter().any(Rule::needs_location),
            uses_ported: rules.iter().any(|rule| rule.ported_numbers),
            is_simulated: plan.carriers.iter().all(|carrier| carrier.is_simulated),
            carriers,
        }
    }

    pub(crate) fn carriers(&self) -> Arc<Carriers> {
        self.carriers.clone()
    }

    /// The carriers for a message, and the location by which its rule decided; `None` if no rule matches.
    pub(crate) fn choose(
        &self,
        channel: Channel,
        account: AccountId,
        to: &Msisdn,
        locations: &Locations,
    ) -> Option<(RouteChoice, Location)> {
        let (index, choice) = self.find(channel, Some(account), to, locations)?;
        Some((choice, *self.rules[index].location(locations)))
    }

    /// The index of the first matching rule, and the carriers that it names.
    fn find(
        &self,
        channel: Channel,
        account: Option<AccountId>,
        to: &Msisdn,
        locations: &Locations,
    ) -> Option<(usize, RouteChoice)> {
        let mut rules = self.rules.iter().enumerate();
        let (index, rule) =
            rules.find(|(_, rule)| rule.matches(channel, account, to, locations))?;
        let location = rule.location(locations);
        let choice = rule.choice(channel, location, |carrier| {
            self.costs[usize::from(carrier)]
                .as_ref()
                .and_then(|costs| costs.price(location))
        });
        Some((index, choice))
    }
}

#[cfg(test)]
mod tests;
