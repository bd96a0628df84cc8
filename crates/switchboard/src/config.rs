//! The configuration: typed, without unknown keys, and checked as a whole before anything starts.

mod callbacks;
pub(crate) mod carriers;
mod database;
mod environment;
mod load;
mod messages;
mod notify;
mod oauth;
pub(crate) mod presets;
mod problems;
pub(crate) mod routes;
mod secret;
mod server;
mod smpp_server;
mod telemetry;
mod urls;

use std::path::PathBuf;

use anyhow::Context as _;
use engine::NotifyTarget;
use serde::{Deserialize, Serialize};
use store::DatabaseUrl;

use callbacks::Callbacks;
use carriers::Carrier;
use database::Database;
pub(crate) use database::{Security, parse_keys};
pub(crate) use load::{check_plan, load, read_carrier, read_plan};
use messages::{Billing, Inbound, OptOutWords, Retention, Senders, Simulator};
use notify::{Mail, Notify};
use oauth::OAuth;
use problems::Mistake;
pub(crate) use problems::{Places, Problems};
use routes::{Route, RoutingSettings};
pub(crate) use secret::Secret;
pub(crate) use server::SecondFactor;
use server::{Auth, Limits, Server, Tls};
use smpp_server::SmppServer;
use telemetry::Metrics;
pub(crate) use telemetry::{Collector, Log, LogFormat, Traces};
use urls::Urls;
pub(crate) use urls::reachable;

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
    pub(crate) smpp_server: SmppServer,
    pub(crate) metrics: Metrics,
    pub(crate) log: Log,
    pub(crate) traces: Traces,
    pub(crate) billing: Billing,
    pub(crate) senders: Senders,
    pub(crate) inbound: Inbound,
    optout: OptOutWords,
    pub(crate) callbacks: Callbacks,
    pub(crate) simulator: Simulator,
    pub(crate) retention: Retention,
    pub(crate) security: Security,
    pub(crate) routing: RoutingSettings,
    pub(crate) mail: Mail,
    #[serde(rename = "notify")]
    notify: Vec<Notify>,
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
            smpp_server: SmppServer::default(),
            metrics: Metrics::default(),
            log: Log::default(),
            traces: Traces::default(),
            billing: Billing::default(),
            senders: Senders::default(),
            inbound: Inbound::default(),
            optout: OptOutWords::default(),
            callbacks: Callbacks::default(),
            simulator: Simulator::default(),
            retention: Retention::default(),
            security: Security::default(),
            routing: RoutingSettings::default(),
            mail: Mail::default(),
            notify: Vec::new(),
            carriers: Vec::new(),
            routes: Vec::new(),
        }
    }
}

impl Config {
    /// Reads secrets from the environment and from files.
    fn resolve_secrets(&mut self) -> Vec<Mistake> {
        let resolved = self.secrets().map(|(key, secret)| secret.resolve(key));
        let mut mistakes: Vec<Mistake> = resolved
            .filter_map(Result::err)
            .map(Mistake::from)
            .collect();
        mistakes.extend(notify::resolve_secrets(&mut self.notify));
        mistakes.extend(carriers::resolve_secrets(&mut self.carriers));
        mistakes
    }

    /// Finds settings that are invalid or contradict each other; the service then does not start.
    fn find_mistakes(&self) -> Vec<Mistake> {
        let checks = [
            self.database_url().map(drop),
            self.security.keys().map(drop),
            self.token_header().map(drop),
            self.amount_header().map(drop),
            self.tls.check(),
            self.smpp_server.check(&self.tls),
            self.metrics.check(self.server.listen),
            self.database.check(),
            self.billing.check(),
            self.retention.check(),
            self.optout.check(),
            self.callbacks.check(),
            self.pin_from().map(drop),
            self.log.targets().map(drop),
            self.mail.mailer().map(drop),
            self.traces.collector().map(drop),
        ];
        let checks = checks
            .into_iter()
            .chain(self.urls.checks())
            .chain(self.oauth.checks())
            .chain(self.limits.checks());
        let mut mistakes: Vec<Mistake> =
            checks.filter_map(Result::err).map(Mistake::from).collect();
        mistakes.extend(notify::find_mistakes(&self.notify, &self.mail));
        mistakes.extend(carriers::find_mistakes(&self.carriers(), &self.routes));
        mistakes
    }

    /// Checks the configuration again after flags have changed it.
    pub(crate) fn check(&self) -> Result<(), Problems> {
        let mut problems = Problems::default();
        for mistake in self.find_mistakes() {
            problems.add_mistake(&Places::default(), &mistake);
        }
        problems.into_result()
    }

    /// The secrets outside of carriers.
    fn secrets(&mut self) -> impl Iterator<Item = (&'static str, &mut Secret)> {
        let url = self.database.url.as_mut();
        let token = self.metrics.token.as_mut();
        let key = self.security.key.as_mut();
        let proxy = self.callbacks.proxy.as_mut();
        let mail = self.mail.url.as_mut();
        let collector = self.traces.authorization.as_mut();
        let former = self.security.former_keys.iter_mut();
        let single = [
            ("database.url", url),
            ("metrics.token", token),
            ("security.key", key),
            ("callbacks.proxy", proxy),
            ("mail.url", mail),
            ("traces.authorization", collector),
        ];
        let single = single
            .into_iter()
            .filter_map(|(name, secret)| Some((name, secret?)));
        single.chain(former.map(|key| ("security.former_keys", key)))
    }

    /// Where notifications go.
    pub(crate) fn notify_targets(&self) -> anyhow::Result<Vec<NotifyTarget>> {
        notify::targets(&self.notify, &self.mail)
    }

    /// The configured database, or a file in the data folder.
    pub(crate) fn database_url(&self) -> anyhow::Result<DatabaseUrl> {
        match &self.database.url {
            Some(url) => url.0.parse().context("database.url"),
            None => Ok(DatabaseUrl::Sqlite(self.data_dir.join("switchboard.db"))),
        }
    }

    /// The carriers that the configuration names.
    pub(crate) fn own_carriers(&self) -> &[Carrier] {
        &self.carriers
    }

    /// The configured carriers, or the simulated network.
    pub(crate) fn carriers(&self) -> Vec<Carrier> {
        if self.carriers.is_empty() {
            return vec![Carrier::simulator()];
        }
        self.carriers.clone()
    }
}
