//! The configuration: typed, closed, checked as a whole before anything starts.

pub(crate) mod carriers;
mod load;
pub(crate) mod routes;
mod secret;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use domain::{Originator, ServiceKey};
use http::HeaderName;
use ipnet::IpNet;
use outbound::Guard;
use serde::{Deserialize, Serialize};
use store::DatabaseUrl;
use url::Url;

use carriers::Carrier;
pub(crate) use load::{load, modified_at};
use routes::Route;
pub(crate) use secret::Secret;

/// A shorter token could be guessed.
const MIN_METRICS_TOKEN_BYTES: usize = 16;

/// Every key with its default. `switchboard.example.toml` says what each is for.
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Server {
    pub(crate) listen: SocketAddr,
    pub(crate) header_prefix: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tls {
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Database {
    #[serde(serialize_with = "hide_password")]
    pub(crate) url: Option<Secret>,
    pub(crate) connections: usize,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Urls {
    pub(crate) base: Option<Url>,
    pub(crate) mcp: Option<Url>,
    pub(crate) auth: Option<Url>,
    pub(crate) dashboard: Option<Url>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Auth {
    pub(crate) query_token: bool,
    pub(crate) trusted_proxies: Vec<IpNet>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OAuth {
    pub(crate) code_seconds: u32,
    pub(crate) access_seconds: u32,
    pub(crate) refresh_days: u32,
    pub(crate) grant_days: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) connections: usize,
    pub(crate) connections_per_address: Option<usize>,
    pub(crate) in_flight: usize,
    pub(crate) accept_queue: usize,
    pub(crate) held_messages: usize,
    pub(crate) body_bytes: usize,
    pub(crate) header_seconds: u64,
    pub(crate) body_seconds: u64,
    pub(crate) request_seconds: u64,
    pub(crate) write_seconds: u64,
    pub(crate) shutdown_seconds: u64,
    pub(crate) drain_seconds: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Metrics {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) token: Option<Secret>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) level: String,
    pub(crate) format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Billing {
    pub(crate) currency: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Senders {
    pub(crate) pin_from: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Callbacks {
    pub(crate) allow: Option<Vec<IpNet>>,
    pub(crate) source: Vec<IpAddr>,
    pub(crate) name_servers: Vec<SocketAddr>,
    pub(crate) park_after_days: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Simulator {
    pub(crate) delay_ms: u64,
    pub(crate) window: usize,
    pub(crate) journal: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Retention {
    pub(crate) messages_days: u32,
    pub(crate) ledger_days: u32,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Security {
    pub(crate) key: Option<Secret>,
    pub(crate) former_keys: Vec<Secret>,
}

impl Security {
    /// The configured key, if there is one, and those that can still decrypt.
    pub(crate) fn keys(&self) -> anyhow::Result<(Option<ServiceKey>, Vec<ServiceKey>)> {
        let read = |secret: &Secret| crate::keys::parse(&secret.0);
        let mut keys = Vec::new();
        if let Some(key) = &self.key {
            keys = read(key).context("security.key")?;
            ensure!(!keys.is_empty(), "security.key is empty");
        }
        let newest = (!keys.is_empty()).then(|| keys.remove(0));
        for key in &self.former_keys {
            keys.extend(read(key).context("security.former_keys")?);
        }
        Ok((newest, keys))
    }
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

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 8080).into(),
            header_prefix: "X-Service".to_owned(),
        }
    }
}

impl Default for Database {
    fn default() -> Self {
        Self {
            url: None,
            connections: 8,
        }
    }
}

impl Default for OAuth {
    fn default() -> Self {
        Self {
            code_seconds: 60,
            access_seconds: 3600,
            refresh_days: 30,
            grant_days: 180,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_address: None,
            in_flight: 4096,
            accept_queue: 8192,
            held_messages: 30_000,
            body_bytes: 2 * 1024 * 1024,
            header_seconds: 30,
            body_seconds: 10,
            request_seconds: 30,
            write_seconds: 30,
            shutdown_seconds: 30,
            drain_seconds: 0,
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Auto,
        }
    }
}

impl Default for Billing {
    fn default() -> Self {
        Self {
            currency: "EUR".to_owned(),
        }
    }
}

impl Default for Senders {
    fn default() -> Self {
        Self {
            pin_from: "Switchboard".to_owned(),
        }
    }
}

impl Default for Simulator {
    fn default() -> Self {
        Self {
            delay_ms: 300,
            window: 500,
            journal: None,
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            messages_days: 90,
            ledger_days: 0,
        }
    }
}

impl Config {
    /// Reads secrets from where they are kept.
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

    /// Says what contradicts itself. A service with such a configuration does not start.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.database_url()?;
        self.security.keys()?;
        self.token_header()?;
        self.amount_header()?;
        match (&self.tls.cert, &self.tls.key) {
            (Some(_), None) => bail!("tls.cert is set, but tls.key is not; give both or none"),
            (None, Some(_)) => bail!("tls.key is set, but tls.cert is not; give both or none"),
            _ => {}
        }
        if let Some(token) = &self.metrics.token {
            let is_token = token.0.len() >= MIN_METRICS_TOKEN_BYTES
                && token.0.bytes().all(|b| b.is_ascii_graphic());
            ensure!(
                is_token,
                "metrics.token must have at least {MIN_METRICS_TOKEN_BYTES} characters, none of them a space; openssl rand -hex 32 prints one"
            );
        }
        if let Some(metrics) = self.metrics.listen {
            let same = metrics == self.server.listen && metrics.port() != 0;
            ensure!(
                !same,
                "metrics.listen and server.listen are both {metrics}; give metrics a port of its own"
            );
        }
        for (key, url) in [
            ("urls.base", &self.urls.base),
            ("urls.mcp", &self.urls.mcp),
            ("urls.auth", &self.urls.auth),
            ("urls.dashboard", &self.urls.dashboard),
        ] {
            let web = url
                .as_ref()
                .is_none_or(|url| matches!(url.scheme(), "http" | "https"));
            ensure!(web, "{key} must be an http or https address");
        }
        for (key, value, most) in self.oauth.ranges() {
            ensure!(
                (1..=most).contains(&value),
                "oauth.{key} is {value}; give 1 to {most}"
            );
        }
        for (key, value) in self.limits.positive() {
            ensure!(value > 0, "limits.{key} is 0; give at least 1");
        }
        ensure!(
            self.database.connections > 0,
            "database.connections is 0; give at least 1"
        );
        let letters = self
            .billing
            .currency
            .bytes()
            .all(|b| b.is_ascii_uppercase());
        ensure!(
            self.billing.currency.len() == 3 && letters,
            "billing.currency must be an ISO 4217 code such as EUR"
        );
        self.pin_from()?;
        carriers::check(&self.carriers(), &self.routes)?;
        crate::telemetry::parse_level(&self.log.level)?;
        Ok(())
    }

    /// The database: the one that is set, or a file in the data folder.
    pub(crate) fn database_url(&self) -> anyhow::Result<DatabaseUrl> {
        match &self.database.url {
            Some(url) => url.0.parse().context("database.url"),
            None => Ok(DatabaseUrl::Sqlite(self.data_dir.join("switchboard.db"))),
        }
    }

    /// The carriers; the simulated network where none is named.
    pub(crate) fn carriers(&self) -> Vec<Carrier> {
        if self.carriers.is_empty() {
            return vec![Carrier::simulator()];
        }
        self.carriers.clone()
    }

    /// Who PINs come from.
    pub(crate) fn pin_from(&self) -> anyhow::Result<Originator> {
        Originator::parse(&self.senders.pin_from).context("senders.pin_from")
    }

    /// The header that carries a token.
    pub(crate) fn token_header(&self) -> anyhow::Result<HeaderName> {
        self.header("Token")
    }

    /// The answer header that counts parts.
    pub(crate) fn amount_header(&self) -> anyhow::Result<HeaderName> {
        self.header("Amount-Sent")
    }

    fn header(&self, name: &str) -> anyhow::Result<HeaderName> {
        let prefix = &self.server.header_prefix;
        format!("{prefix}-{name}")
            .parse()
            .with_context(|| format!("server.header_prefix '{prefix}' does not make a header name"))
    }

    /// Whether nobody but this machine can reach the listener.
    pub(crate) fn is_loopback(&self) -> bool {
        self.server.listen.ip().to_canonical().is_loopback()
    }

    /// Whether somebody tries the service out: everything is on this machine, and nothing says that others come by a
    /// proxy, which looks like this from here.
    fn is_development(&self) -> bool {
        let is_sqlite = matches!(self.database_url(), Ok(DatabaseUrl::Sqlite(_)));
        let is_alone = self.urls == Urls::default() && self.auth.trusted_proxies.is_empty();
        self.is_loopback() && is_sqlite && is_alone && self.tls == Tls::default()
    }

    /// The networks that callbacks may go to although they are not public: this machine itself in development, unless
    /// the configuration says otherwise.
    pub(crate) fn callback_allow(&self) -> Vec<IpNet> {
        match &self.callbacks.allow {
            Some(networks) => networks.clone(),
            None if self.is_development() => Guard::loopback(),
            None => Vec::new(),
        }
    }

    /// The address that people reach the API by.
    pub(crate) fn base_url(&self, listening: SocketAddr) -> String {
        self.url_or_local(self.urls.base.as_ref(), listening)
    }

    /// The address that people reach the dashboard by.
    pub(crate) fn dashboard_url(&self, listening: SocketAddr) -> String {
        self.url_or_local(self.urls.dashboard.as_ref(), listening)
    }

    /// The address that AI clients reach the MCP server by; it stands at `/mcp` under it.
    pub(crate) fn mcp_url(&self, listening: SocketAddr) -> String {
        self.url_or_base(self.urls.mcp.as_ref(), listening)
    }

    /// The address of the authorization server, which is also its name.
    pub(crate) fn auth_url(&self, listening: SocketAddr) -> String {
        self.url_or_base(self.urls.auth.as_ref(), listening)
    }

    fn url_or_base(&self, url: Option<&Url>, listening: SocketAddr) -> String {
        self.url_or_local(url.or(self.urls.base.as_ref()), listening)
    }

    fn url_or_local(&self, url: Option<&Url>, listening: SocketAddr) -> String {
        url.map_or_else(
            || self.local_url(listening),
            |url| url.as_str().trim_end_matches('/').to_owned(),
        )
    }

    /// The address of the listener itself; one that listens everywhere is reached on this machine.
    pub(crate) fn local_url(&self, listening: SocketAddr) -> String {
        let scheme = if self.tls.cert.is_some() {
            "https"
        } else {
            "http"
        };
        let ip = match listening.ip() {
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        format!("{scheme}://{}", SocketAddr::new(ip, listening.port()))
    }
}

impl OAuth {
    fn ranges(&self) -> [(&'static str, u32, u32); 4] {
        [
            ("code_seconds", self.code_seconds, 600),
            ("access_seconds", self.access_seconds, 86_400),
            ("refresh_days", self.refresh_days, 365),
            ("grant_days", self.grant_days, 3650),
        ]
    }
}

impl Limits {
    /// How many connections one address may have: a quarter of all, unless the configuration says otherwise.
    pub(crate) fn per_address(&self) -> usize {
        self.connections_per_address
            .unwrap_or_else(|| (self.connections / 4).max(1))
    }

    fn positive(&self) -> [(&'static str, u64); 11] {
        let wide = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        [
            ("connections", wide(self.connections)),
            ("connections_per_address", wide(self.per_address())),
            ("in_flight", wide(self.in_flight)),
            ("accept_queue", wide(self.accept_queue)),
            ("held_messages", wide(self.held_messages)),
            ("body_bytes", wide(self.body_bytes)),
            ("header_seconds", self.header_seconds),
            ("body_seconds", self.body_seconds),
            ("request_seconds", self.request_seconds),
            ("write_seconds", self.write_seconds),
            ("shutdown_seconds", self.shutdown_seconds),
        ]
    }
}

/// `config check` shows what is in force, but no password.
#[expect(clippy::ref_option, reason = "the signature is serde's")]
fn hide_password<S: serde::Serializer>(
    url: &Option<Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let shown = url.as_ref().map(|url| {
        url.0
            .parse::<DatabaseUrl>()
            .map_or("(unreadable)".into(), |url| url.to_string())
    });
    shown.serialize(serializer)
}
