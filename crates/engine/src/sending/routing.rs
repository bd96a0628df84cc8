//! Routing: which carriers may take a message, in which order.
//!
//! Rules are asked in their order; the first whose conditions all hold decides, and names one carrier or several: the
//! others are asked when the first cannot. A rule counts only for channels that one of its carriers serves.

mod rule;
mod trace;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use domain::ports::{AccessStore, StoreError};
use domain::{AccountId, AccountName, Channel, Msisdn};
use numbering::reference::Location;
use tokio::task::AbortHandle;

use crate::catalogue::Catalogues;
use crate::catalogue::prices::PriceList;
use crate::sending::carriers::{Carriers, Route, Routed};
use rule::Compiled;

pub use rule::{Choice, Condition, Rule};
pub use trace::{Traced, TracedCarrier};

/// How often accounts that rules name are looked for, as long as there are none of that name.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The most carriers that there may be: a route names them by a byte.
pub const MAX_CARRIERS: usize = 255;

/// What routing has to know about a carrier.
#[derive(Debug, Clone)]
pub struct CarrierFacts {
    /// Its name.
    pub name: String,
    /// What it can carry.
    pub channels: Vec<Channel>,
    /// What it takes for a part, by destination, where that is known.
    pub costs: Option<Arc<PriceList>>,
    /// Whether nothing real goes out by it.
    pub is_simulated: bool,
}

/// The carriers and the rules that choose among them. Without rules every message may go by every carrier, in their
/// order.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The carriers; at most [`MAX_CARRIERS`].
    pub carriers: Vec<CarrierFacts>,
    /// The rules, in the order in which they are asked.
    pub rules: Vec<Rule>,
}

/// What decides where messages go.
pub struct Routing {
    store: Arc<dyn AccessStore>,
    catalogues: Arc<Catalogues>,
    table: ArcSwap<Table>,
    looking: std::sync::Mutex<Option<AbortHandle>>,
}

/// The rules, ready to be asked, with the carriers that they are about.
struct Table {
    plan: Plan,
    rules: Vec<Compiled>,
    costs: Vec<Option<Arc<PriceList>>>,
    /// Whether any rule asks for more than the number itself tells.
    needs_place: bool,
    /// Whether no carrier sends anything real.
    is_simulated: bool,
    carriers: Arc<Carriers>,
}

impl Routing {
    pub(crate) fn new(store: Arc<dyn AccessStore>, catalogues: Arc<Catalogues>) -> Arc<Self> {
        Arc::new(Self {
            store,
            catalogues,
            table: ArcSwap::from_pointee(Table::new(
                &Plan::default(),
                &HashMap::new(),
                Arc::default(),
            )),
            looking: std::sync::Mutex::default(),
        })
    }

    /// Goes over to another plan, and to the carriers that it is about, in its order; a process that does not send has
    /// none. A rule that names an account which does not exist yet counts from the moment it does.
    pub(crate) async fn set(
        self: &Arc<Self>,
        plan: Plan,
        carriers: Arc<Carriers>,
    ) -> Result<(), StoreError> {
        let mut accounts = HashMap::new();
        let missing = self.find_accounts(&plan, &mut accounts).await?;
        self.table
            .store(Arc::new(Table::new(&plan, &accounts, carriers)));
        let looking = (missing > 0).then(|| {
            let routing = Arc::downgrade(self);
            let look = move || look_for_accounts(routing.clone(), plan.clone(), accounts.clone());
            supervise::spawn("routing-accounts", look).abort_handle()
        });
        let mut before = self.looking.lock().expect("no holder panics");
        if let Some(before) = std::mem::replace(&mut *before, looking) {
            before.abort();
        }
        Ok(())
    }

    /// By which numbers are located.
    pub(crate) fn catalogues(&self) -> &Arc<Catalogues> {
        &self.catalogues
    }

    /// The carriers that there are.
    pub(crate) fn carriers(&self) -> Arc<Carriers> {
        self.table.load().carriers.clone()
    }

    /// The carriers for a message. `dice` decides where shares do.
    pub(crate) fn route(
        &self,
        channel: Channel,
        account: AccountId,
        to: &Msisdn,
        dice: u64,
    ) -> Routed {
        let table = self.table.load();
        let place = if table.needs_place {
            self.catalogues.live().reference.locate(to)
        } else {
            Location::default()
        };
        let route = table.route(channel, account, to, &place, dice);
        Routed {
            route: route.unwrap_or_default(),
            carriers: table.carriers.clone(),
        }
    }

    /// Whether there is a carrier for a message.
    pub(crate) fn has_route(&self, channel: Channel, account: AccountId, to: &Msisdn) -> bool {
        !self.route(channel, account, to, 0).route.is_empty()
    }

    /// Whether there is no carrier but simulated ones, so that nothing real is sent.
    pub(crate) fn is_simulated(&self) -> bool {
        self.table.load().is_simulated
    }

    /// Finds the accounts that rules name and that are not known yet; says how many are missing.
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
        let looking = self.looking.get_mut().expect("no holder panics");
        if let Some(looking) = looking {
            looking.abort();
        }
    }
}

async fn look_for_accounts(
    routing: std::sync::Weak<Routing>,
    plan: Plan,
    mut accounts: HashMap<AccountName, AccountId>,
) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(routing) = routing.upgrade() else {
            return;
        };
        let known = accounts.len();
        match routing.find_accounts(&plan, &mut accounts).await {
            Err(error) => tracing::warn!(%error, "accounts that routes name cannot be looked for"),
            Ok(missing) => {
                if accounts.len() > known {
                    let carriers = routing.carriers();
                    let table = Table::new(&plan, &accounts, carriers);
                    routing.table.store(Arc::new(table));
                }
                if missing == 0 {
                    return;
                }
            }
        }
    }
}

impl Table {
    fn new(
        plan: &Plan,
        accounts: &HashMap<AccountName, AccountId>,
        carriers: Arc<Carriers>,
    ) -> Self {
        let all = [Rule {
            when: Condition::default(),
            carriers: (0..plan.carriers.len()).collect(),
            choice: Choice::Order,
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
                .map(|rule| Compiled::new(rule, &plan.carriers, accounts))
                .collect(),
            costs: plan
                .carriers
                .iter()
                .map(|carrier| carrier.costs.clone())
                .collect(),
            needs_place: rules.iter().any(Rule::needs_place),
            is_simulated: plan.carriers.iter().all(|carrier| carrier.is_simulated),
            carriers,
        }
    }

    fn route(
        &self,
        channel: Channel,
        account: AccountId,
        to: &Msisdn,
        place: &Location,
        dice: u64,
    ) -> Option<Route> {
        let found = self.find(channel, Some(account), to, place, dice);
        found.map(|(_, route)| route)
    }

    /// The place of the rule that decides, and the carriers that it leads to.
    fn find(
        &self,
        channel: Channel,
        account: Option<AccountId>,
        to: &Msisdn,
        place: &Location,
        dice: u64,
    ) -> Option<(usize, Route)> {
        let mut rules = self.rules.iter().enumerate();
        let (at, rule) = rules.find(|(_, rule)| rule.fits(channel, account, to, place))?;
        let route = rule.order(channel, dice, |carrier| {
            self.costs[usize::from(carrier)]
                .as_ref()
                .and_then(|costs| costs.price(place))
        });
        Some((at, route))
    }
}

#[cfg(test)]
mod tests;
