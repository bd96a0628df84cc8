//! The carriers and routes that are stored in the database, beside those of the file.
//!
//! Each change stores all of them again, as a version that is encrypted, because carriers have secrets. All nodes follow the
//! newest version. Stored routes come before those of the file. A carrier of the file wins over a stored one of the same
//! name.

pub(crate) mod addresses;
pub(crate) mod edit;
pub(crate) mod operators;
pub(crate) mod secrets;
pub(crate) mod settings;
pub(crate) mod trial;

use std::sync::Arc;

use anyhow::Context as _;
use domain::ports::{CatalogueEntry, CatalogueKind, Store};
use engine::Catalogues;
use engine::catalogue::plans::PlanSource;
use engine::clock::SystemClock;
use engine::sending::published_rules::{NamedCarrier, PublishedRules};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::config::carriers::Carrier;
use crate::config::routes::Route;
use crate::config::{Config, Places, read_plan};

/// The key of a carrier's or route's name.
const NAME: &str = "name";
/// How many changes are listed.
const MAX_HISTORY: usize = 100;

/// Carriers and routes as they are stored: with the keys of the configuration file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StoredPlan {
    /// Who made the change that led to this version.
    pub(crate) by: String,
    /// That change, without secrets.
    pub(crate) change: String,
    pub(crate) carriers: Vec<Table>,
    /// In the order in which they are tried. They have names, too.
    pub(crate) routes: Vec<Table>,
    /// The carriers of files that routes name. Some nodes may not have them.
    pub(crate) named: Vec<NamedCarrier>,
}

impl StoredPlan {
    /// The newest version; 0 if nothing is stored.
    pub(crate) async fn read(catalogues: &Catalogues) -> anyhow::Result<(u32, Self)> {
        let version = catalogues.live().version(CatalogueKind::Plan);
        let plan = Self::read_version(catalogues, version).await?;
        Ok((version, plan.unwrap_or_default()))
    }

    /// A version, if it exists.
    pub(crate) async fn read_version(
        catalogues: &Catalogues,
        version: u32,
    ) -> anyhow::Result<Option<Self>> {
        let content = catalogues.version(CatalogueKind::Plan, version).await?;
        let plan = content.map(|content| serde_json::from_str(&content));
        plan.transpose().with_context(|| {
            format!(
                "version {version} of the carriers and routes in the database cannot be read by this program; \
                 `switchboard carrier undo` restores the one before"
            )
        })
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("tables of texts and numbers")
    }

    /// The name of a carrier or a route.
    pub(crate) fn name(table: &Table) -> &str {
        table.get(NAME).and_then(Value::as_str).unwrap_or_default()
    }

    /// The newest changes, the newest first.
    pub(crate) async fn history(
        catalogues: &Catalogues,
    ) -> anyhow::Result<Vec<(CatalogueEntry, Self)>> {
        let mut changes = Vec::new();
        let entries = catalogues.history(CatalogueKind::Plan).await?;
        for entry in entries.into_iter().take(MAX_HISTORY) {
            let plan = Self::read_version(catalogues, entry.version).await?;
            changes.push((entry, plan.unwrap_or_default()));
        }
        Ok(changes)
    }

    pub(crate) fn load(&self) -> anyhow::Result<PlanInForce> {
        self.load_at(&Places::default())
    }

    /// Reads everything. `places` says on which lines settings are, for mistakes.
    fn load_at(&self, places: &Places) -> anyhow::Result<PlanInForce> {
        let routes = self.routes.iter().cloned().map(|mut route| {
            route.remove(NAME);
            route
        });
        let (carriers, routes) = read_plan(self.carriers.clone(), routes.collect(), places)?;
        Ok(PlanInForce {
            carriers,
            routes,
            named: self.named.clone(),
        })
    }
}

/// The stored carriers and routes, as a node works with them.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlanInForce {
    carriers: Vec<Carrier>,
    pub(crate) routes: Vec<Route>,
    pub(crate) named: Vec<NamedCarrier>,
}

impl PlanInForce {
    /// The carriers of the file and those of the database.
    pub(crate) fn carriers(&self, config: &Config) -> Vec<Carrier> {
        if self.carriers.is_empty() {
            return config.carriers();
        }
        let mut all = config.own_carriers().to_vec();
        for stored in &self.carriers {
            if all.iter().any(|own| own.name() == stored.name()) {
                let carrier = stored.name();
                tracing::warn!(
                    carrier,
                    "the carrier of the file is used, not that of the database"
                );
            } else {
                all.push(stored.clone());
            }
        }
        all
    }

    /// The routes of the database, followed by these.
    pub(crate) fn rules(&self, of_files: &PublishedRules<Route>) -> PublishedRules<Route> {
        let routes = self.routes.iter().chain(&of_files.routes);
        let named = self.named.iter().filter(|named| {
            let mut others = of_files.carriers.iter();
            others.all(|other| other.name != named.name)
        });
        PublishedRules::new(
            of_files.revision,
            of_files.carriers.iter().chain(named).cloned().collect(),
            routes.cloned().collect(),
        )
    }
}

/// All carriers: those of the file and those of the database.
pub(crate) async fn all_carriers(
    config: &Config,
    store: &Arc<dyn Store>,
) -> anyhow::Result<Vec<Carrier>> {
    let catalogues = Catalogues::load(store.clone(), Arc::new(SystemClock)).await?;
    let (_, plan) = StoredPlan::read(&catalogues).await?;
    Ok(plan.load()?.carriers(config))
}

/// Where a carrier is configured.
pub(crate) fn source(config: &Config, carrier: &Carrier) -> PlanSource {
    let mut of_file = config.own_carriers().iter();
    let is_default = config.own_carriers().is_empty() && carrier.kind() == "simulator";
    if is_default || of_file.any(|own| own.name() == carrier.name()) {
        PlanSource::File
    } else {
        PlanSource::Database
    }
}

/// The routes of files that are in force, or those of this file if none were ever.
pub(crate) async fn routes_of_files(
    config: &Config,
    catalogues: &Catalogues,
) -> anyhow::Result<Vec<Route>> {
    let kind = CatalogueKind::Routes;
    let version = catalogues.live().version(kind);
    match catalogues.version(kind, version).await? {
        Some(published) => {
            let published: PublishedRules<Route> = serde_json::from_str(&published)
                .context("the routes in force cannot be read by this program")?;
            Ok(published.routes)
        }
        None => Ok(config.routes.clone()),
    }
}

/// The settings of a route as `route set` takes them: lists are separated by commas.
pub(crate) fn route_settings(route: &Table) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let settings = route.iter().filter_map(|(key, value)| {
        let value = match value {
            _ if key == NAME => return None,
            Value::Array(items) if items.is_empty() => return None,
            Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
            other => text(other),
        };
        Some((key.clone(), value))
    });
    settings.collect()
}
