//! Imported catalogues: reference data and price lists.
//!
//! Both are held in memory, so that a lookup costs no database read. A watcher asks the store four times a second for
//! newer versions, so that all nodes follow an import without a restart. Routing rules are published in the same way,
//! but read elsewhere.

pub mod prices;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use domain::billing::Priced;
use domain::kill_point::{KillPoint, pass};
use domain::ports::{CatalogueEntry, CatalogueKind, CatalogueStore, StoreError};
use domain::{AccountId, Clock};
use numbering::reference::{Difference, Files, Problem, Reference, difference};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::audit::{Action, Actor, Audit};
use prices::{Format, PriceDifference, PriceList, PriceProblem, Prices};

/// How often imports are looked for.
const WATCH_EVERY: Duration = Duration::from_millis(250);

/// Why an import did not happen. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The reference data is not valid.
    #[error("the reference data has problems")]
    Reference(Vec<Problem>),
    /// The price list is not valid.
    #[error("the price list has problems")]
    Prices(Vec<PriceProblem>),
    /// Somebody else imported in the meantime.
    #[error("somebody else imported at the same time; look at what they did and try again")]
    Overtaken,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The catalogues in force.
pub struct CatalogueSnapshot {
    /// Mobile operators, networks and prefixes.
    pub reference: Arc<Reference>,
    prices: [Prices; Priced::ALL.len()],
    loaded: Vec<CatalogueEntry>,
}

/// The four files of the reference data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReferenceFiles {
    /// `operators.csv`
    pub operators: String,
    /// `networks.csv`
    pub networks: String,
    /// `prefixes.csv`
    pub prefixes: String,
    /// `areas.csv`
    pub areas: String,
}

impl ReferenceFiles {
    /// The files that come with the program.
    pub fn embedded() -> Self {
        let files = Files::EMBEDDED;
        Self {
            operators: files.operators.to_owned(),
            networks: files.networks.to_owned(),
            prefixes: files.prefixes.to_owned(),
            areas: files.areas.to_owned(),
        }
    }

    fn parse(&self) -> Result<Reference, Vec<Problem>> {
        Reference::parse(&Files {
            operators: &self.operators,
            networks: &self.networks,
            prefixes: &self.prefixes,
            areas: &self.areas,
        })
    }
}

/// Checked reference data, ready to be imported.
pub struct ReferencePlan {
    files: ReferenceFiles,
    previous: u32,
    rows: u32,
    /// What it changes.
    pub difference: Difference,
}

/// A checked price list, ready to be imported.
pub struct PricePlan {
    priced: Priced,
    account: Option<AccountId>,
    previous: u32,
    list: PriceList,
    /// What it changes.
    pub difference: PriceDifference,
}

impl PricePlan {
    /// The version that this list was compared with and will replace.
    pub const fn previous(&self) -> u32 {
        self.previous
    }

    /// Whether it would leave everyone without a price, so that nothing could be sent. Messages from handsets without a
    /// price are free.
    pub fn leaves_nothing(&self) -> bool {
        self.priced != Priced::Inbound && self.account.is_none() && self.list.rows().is_empty()
    }
}

/// Reference data and prices.
pub struct Catalogues {
    store: Arc<dyn CatalogueStore>,
    clock: Arc<dyn Clock>,
    audit: Audit,
    live: ArcSwap<CatalogueSnapshot>,
    /// The version of the routing rules in force.
    routes: watch::Sender<u32>,
    watcher: std::sync::OnceLock<AbortHandle>,
}

impl Catalogues {
    /// Reads the catalogues in force.
    pub async fn load(
        store: Arc<dyn CatalogueStore>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let audit = Audit::new(store.clone(), clock.clone());
        Self::read(store, audit, clock).await
    }

    pub(crate) async fn read(
        store: Arc<dyn CatalogueStore>,
        audit: Audit,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let newest = store.list_newest().await?;
        let live = read_live(&*store, newest, None).await?;
        Ok(Self {
            store,
            clock,
            audit,
            routes: watch::Sender::new(live.version(CatalogueKind::Routes)),
            live: ArcSwap::from_pointee(live),
            watcher: std::sync::OnceLock::new(),
        })
    }

    /// Like [`Self::load`], and then follows imports. Must be called inside a tokio runtime.
    pub async fn start(
        store: Arc<dyn CatalogueStore>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, StoreError> {
        let catalogues = Arc::new(Self::load(store, clock).await?);
        let weak = Arc::downgrade(&catalogues);
        let watching = supervise::spawn("catalogue-watch", move || watch_all(weak.clone()));
        catalogues.watcher.get_or_init(|| watching.abort_handle());
        Ok(catalogues)
    }

    /// Stops following imports.
    pub fn stop(&self) {
        if let Some(watcher) = self.watcher.get() {
            watcher.abort();
        }
    }

    /// The catalogues in force. Do not hold the guard across an `await`.
    pub fn live(&self) -> Guard<Arc<CatalogueSnapshot>> {
        self.live.load()
    }

    /// Checks reference data before an import.
    pub fn plan_reference(&self, files: ReferenceFiles) -> Result<ReferencePlan, ImportError> {
        let live = self.live();
        let reference = files.parse().map_err(ImportError::Reference)?;
        let lines = [
            &files.operators,
            &files.networks,
            &files.prefixes,
            &files.areas,
        ];
        let rows = lines
            .iter()
            .map(|file| file.lines().count().saturating_sub(1))
            .sum::<usize>();
        Ok(ReferencePlan {
            previous: live.version(CatalogueKind::Reference),
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
            difference: difference(&live.reference, &reference),
            files,
        })
    }

    /// Imports reference data, which all nodes use within seconds. Returns its version.
    pub async fn import_reference(
        &self,
        by: &Actor,
        plan: ReferencePlan,
    ) -> Result<u32, ImportError> {
        let content = serde_json::to_string(&plan.files).expect("four texts");
        let (version, rows) = (plan.previous + 1, plan.rows);
        let subject = format!("reference data, version {version}");
        let detail = format!("{rows} rows");
        let recorded = self
            .audit
            .record(by, None, Action::ReferenceImport, subject, detail)
            .await?;
        let kind = CatalogueKind::Reference;
        let imported = self.import(kind, plan.previous, &content, rows).await;
        recorded.done(imported).await
    }

    /// Checks a price list before an import: the general one, or one account's own prices.
    pub fn plan_prices(
        &self,
        priced: Priced,
        account: Option<AccountId>,
        text: &str,
        format: Format,
    ) -> Result<PricePlan, ImportError> {
        let live = self.live();
        let list = PriceList::read(text, format, &live.reference).map_err(ImportError::Prices)?;
        let kind = price_kind(priced, account);
        let current = live.prices(priced);
        let nothing = PriceList::default();
        let before = match account {
            None => &*current.list,
            Some(account) => current
                .of_account
                .get(&account)
                .map_or(&nothing, |list| &**list),
        };
        Ok(PricePlan {
            priced,
            account,
            previous: live.version(kind),
            difference: PriceDifference::between(before, &list),
            list,
        })
    }

    /// Imports a price list, by which all nodes charge within seconds. Returns its version.
    pub async fn import_prices(&self, by: &Actor, plan: PricePlan) -> Result<u32, ImportError> {
        let rows = u32::try_from(plan.list.rows().len()).unwrap_or(u32::MAX);
        let account = plan.account;
        let subject = format!("prices for {}, version {}", plan.priced, plan.previous + 1);
        let difference = &plan.difference;
        let detail = format!(
            "{rows} rows: {} added, {} changed, {} removed",
            difference.added.len(),
            difference.changed.len(),
            difference.removed.len()
        );
        let recorded = self
            .audit
            .record(by, account, Action::PricesImport, subject, detail)
            .await?;
        let kind = price_kind(plan.priced, account);
        let content = plan.list.to_csv();
        let imported = self.import(kind, plan.previous, &content, rows).await;
        recorded.done(imported).await
    }

    /// Publishes routing rules as the successor of version `previous`; all nodes follow within a second. Returns their
    /// version.
    pub async fn publish_routes(
        &self,
        previous: u32,
        content: &str,
        rows: u32,
    ) -> Result<u32, ImportError> {
        self.import(CatalogueKind::Routes, previous, content, rows)
            .await
    }

    /// The version of the routing rules in force; 0 if none were ever published.
    pub fn routes(&self) -> watch::Receiver<u32> {
        self.routes.subscribe()
    }

    /// Asks the store for newer versions now, without waiting for the watcher.
    pub async fn look_again(&self) -> Result<(), StoreError> {
        self.refresh().await
    }

    pub(crate) fn now(&self) -> domain::Timestamp {
        self.clock.now()
    }

    async fn import(
        &self,
        kind: CatalogueKind,
        previous: u32,
        content: &str,
        rows: u32,
    ) -> Result<u32, ImportError> {
        let now = self.clock.now();
        pass(KillPoint::CatalogueBegins);
        let imported = self
            .store
            .import(kind, previous, content, rows, now)
            .await?;
        if !imported {
            return Err(ImportError::Overtaken);
        }
        pass(KillPoint::CatalogueImported);
        self.refresh().await?;
        Ok(previous + 1)
    }

    /// All versions of a catalogue, newest first.
    pub async fn history(&self, kind: CatalogueKind) -> Result<Vec<CatalogueEntry>, StoreError> {
        self.store.list_versions(kind).await
    }

    /// The content of a version, if it exists.
    pub async fn version(
        &self,
        kind: CatalogueKind,
        version: u32,
    ) -> Result<Option<String>, StoreError> {
        let found = self.store.find_catalogue(kind, version).await?;
        Ok(found.map(|catalogue| catalogue.content))
    }

    /// Puts the newest versions in force.
    async fn refresh(&self) -> Result<(), StoreError> {
        let newest = self.store.list_newest().await?;
        let current = self.live.load_full();
        if newest != current.loaded {
            let live = read_live(&*self.store, newest, Some(&current)).await?;
            let routes = live.version(CatalogueKind::Routes);
            self.live.store(Arc::new(live));
            let is_newer = |known: &mut u32| routes > std::mem::replace(known, routes);
            if !self.routes.send_if_modified(is_newer) {
                tracing::info!("imported reference data or prices are now in force");
            }
        }
        Ok(())
    }
}

impl CatalogueSnapshot {
    pub fn prices(&self, priced: impl Into<Priced>) -> &Prices {
        &self.prices[priced.into().number()]
    }

    /// The version in force; 0 if nothing was ever imported.
    pub fn version(&self, kind: CatalogueKind) -> u32 {
        let entry = self.loaded.iter().find(|entry| entry.kind == kind);
        entry.map_or(0, |entry| entry.version)
    }
}

async fn watch_all(catalogues: std::sync::Weak<Catalogues>) {
    let mut tick = tokio::time::interval(WATCH_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(catalogues) = catalogues.upgrade() else {
            return;
        };
        if let Err(error) = catalogues.refresh().await {
            tracing::warn!(%error, "cannot look for imported reference data and prices; trying again");
        }
    }
}

/// Reads the newest versions. Unchanged or unreadable reference data is taken over from `before`.
async fn read_live(
    store: &dyn CatalogueStore,
    newest: Vec<CatalogueEntry>,
    before: Option<&CatalogueSnapshot>,
) -> Result<CatalogueSnapshot, StoreError> {
    let find = |kind| newest.iter().find(|entry| entry.kind == kind).copied();
    let is_new = |entry: &CatalogueEntry| before.is_none_or(|live| !live.loaded.contains(entry));
    let mut reference = match before {
        Some(live) => live.reference.clone(),
        None => Arc::new(Reference::embedded()),
    };
    if let Some(entry) = find(CatalogueKind::Reference).filter(is_new)
        && let Some(read) = read_reference(store, entry).await?
    {
        reference = Arc::new(read);
    }
    let mut prices = Vec::with_capacity(Priced::ALL.len());
    for priced in Priced::ALL {
        prices.push(read_lists(store, priced, &newest, &reference).await?);
    }
    Ok(CatalogueSnapshot {
        reference,
        prices: prices.try_into().expect("one for each kind"),
        loaded: newest,
    })
}

/// The catalogue that holds prices: the general one, or an account's.
pub fn price_kind(priced: Priced, account: Option<AccountId>) -> CatalogueKind {
    match account {
        None => CatalogueKind::Rates(priced),
        Some(account) => CatalogueKind::AccountRates(priced, account),
    }
}

/// Reads the general price list and those of accounts.
async fn read_lists(
    store: &dyn CatalogueStore,
    priced: Priced,
    newest: &[CatalogueEntry],
    reference: &Reference,
) -> Result<Prices, StoreError> {
    let mut list = None;
    let mut of_account = HashMap::new();
    for entry in newest {
        match entry.kind {
            CatalogueKind::Rates(of) if of == priced => {
                list = read_prices(store, *entry, reference).await?;
            }
            CatalogueKind::AccountRates(of, account) if of == priced => {
                if let Some(list) = read_prices(store, *entry, reference).await? {
                    of_account.insert(account, Arc::new(list));
                }
            }
            _ => {}
        }
    }
    let (list, is_demonstration) = match (list, priced) {
        (Some(list), _) => (list, false),
        (None, Priced::Channel(channel)) => (prices::demonstration(channel, reference), true),
        (None, Priced::Inbound) => (PriceList::default(), false),
    };
    Ok(Prices {
        list: Arc::new(list),
        of_account,
        is_demonstration,
    })
}

async fn read_reference(
    store: &dyn CatalogueStore,
    entry: CatalogueEntry,
) -> Result<Option<Reference>, StoreError> {
    let Some(found) = store.find_catalogue(entry.kind, entry.version).await? else {
        return Ok(None);
    };
    let files: Option<ReferenceFiles> = serde_json::from_str(&found.content).ok();
    let read = files.and_then(|files| files.parse().ok());
    if read.is_none() {
        tracing::error!(
            entry.version,
            "the imported reference data cannot be read by this version; import it again"
        );
    }
    Ok(read)
}

async fn read_prices(
    store: &dyn CatalogueStore,
    entry: CatalogueEntry,
    reference: &Reference,
) -> Result<Option<PriceList>, StoreError> {
    let Some(found) = store.find_catalogue(entry.kind, entry.version).await? else {
        return Ok(None);
    };
    Ok(Some(PriceList::read_back(&found.content, reference)))
}
