//! The configuration: typed, without unknown keys, and checked as a whole before anything starts.

mod callbacks;
pub(crate) mod carriers;
mod database;
mod load;
mod messages;
mod oauth;
pub(crate) mod routes;
mod secret;
mod server;
mod telemetry;
mod urls;

use std::path::PathBuf;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use store::DatabaseUrl;

use callbacks::Callbacks;
use carriers::Carrier;
use database::Database;
pub(crate) use database::{Security, parse_keys};
pub(crate) use load::{load, modified_at};
use messages::{Billing, Retention, Senders, Simulator};
use oauth::OAuth;
use routes::Route;
pub(crate) use secret::Secret;
use server::{Auth, Limits, Server, Tls};
use telemetry::Metrics;
pub(crate) use telemetry::{Log, LogFormat};
use urls::Urls;

/// Every key with its default. `switchboard.example.toml` describes each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) data_dir: PathBuf,
    pub(crate) server: Server,
    pub(crate) tls: Tls,
    pub(crate) database: Database,
    pub(crate) urls: Urls,
    pub(crate) auth: Auth,
    pub(crate) oauth: OAuth,
    pub(crate) limits: Limits,
    pub(crate) metrics: Metrics,
    pub(crate) log: Log,
    pub(crate) billing: Billing,
    pub(crate) senders: Senders,
    pub(crate) callbacks: Callbacks,
    pub(crate) simulator: Simulator,
    pub(crate) retention: Retention,
    pub(crate) security: Security,
    #[serde(rename = "carrier")]
    carriers: Vec<Carrier>,
    #[serde(rename = "route")]
    pub(crate) routes: Vec<Route>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: "data".into(),
            server: Server::default(),
            tls: Tls::default(),
            database: Database::default(),
            urls: Urls::default(),
            auth: Auth::default(),
            oauth: OAuth::default(),
            limits: Limits::default(),
            metrics: Metrics::default(),
            log: Log::default(),
            billing: Billing::default(),
            senders: Senders::default(),
            callbacks: Callbacks::default(),
            simulator: Simulator::default(),
            retention: Retention::default(),
            security: Security::default(),
            carriers: Vec::new(),
            routes: Vec::new(),
        }
    }
}

impl Config {
    /// Reads secrets from the environment and from files.
    pub(crate) fn resolve_secrets(&mut self) -> anyhow::Result<()> {
        if let Some(url) = &mut self.database.url {
            url.resolve("database.url")?;
        }
        if let Some(token) = &mut self.metrics.token {
            token.resolve("metrics.token")?;
        }
        if let Some(key) = &mut self.security.key {
            key.resolve("security.key")?;
        }
        for key in &mut self.security.former_keys {
            key.resolve("security.former_keys")?;
        }
        self.carriers
            .iter_mut()
            .try_for_each(Carrier::resolve_secrets)
    }

    /// Refuses settings that are invalid or contradict each other; the service then does not start.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.database_url()?;
        self.security.keys()?;
        self.token_header()?;
        self.amount_header()?;
        self.tls.check()?;
        self.metrics.check(self.server.listen)?;
        self.urls.check()?;
        self.oauth.check()?;
        self.limits.check()?;
        self.database.check()?;
        self.billing.check()?;
        self.pin_from()?;
        carriers::check(&self.carriers(), &self.routes)?;
        self.log.targets()?;
        Ok(())
    }

    /// The configured database, or a file in the data folder.
    pub(crate) fn database_url(&self) -> anyhow::Result<DatabaseUrl> {
        match &self.database.url {
            Some(url) => url.0.parse().context("database.url"),
            None => Ok(DatabaseUrl::Sqlite(self.data_dir.join("switchboard.db"))),
        }
    }

    /// The configured carriers, or the simulated network.
    pub(crate) fn carriers(&self) -> Vec<Carrier> {
        if self.carriers.is_empty() {
            return vec![Carrier::simulator()];
        }
        self.carriers.clone()
    }
}
