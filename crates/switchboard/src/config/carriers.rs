//! `[[carrier]]`: the connections to networks.

mod http_carrier;
mod http_tables;

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use domain::Channel;
use engine::sending::routing::MAX_CARRIERS;
use outbound::smpp::{BindMode, Gsm7Form, IdForm, LongText};
use outbound::{UpstreamSettings, simulator};
use serde::{Deserialize, Serialize};
use url::Url;

use super::problems::Mistake;
use super::routes::{KnownCarrier, Route};
use super::secret::Secret;
pub(crate) use http_carrier::HttpCarrier;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Carrier {
    Simulator(SimulatorCarrier),
    Smpp(Box<SmppCarrier>),
    Upstream(Box<UpstreamCarrier>),
    Http(Box<HttpCarrier>),
}

impl Carrier {
    /// The simulated network, the default if no carrier is configured.
    pub(crate) fn simulator() -> Self {
        Self::Simulator(SimulatorCarrier {
            name: simulator_name(),
            costs: None,
        })
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Simulator(carrier) => &carrier.name,
            Self::Smpp(carrier) => &carrier.name,
            Self::Upstream(carrier) => &carrier.name,
            Self::Http(carrier) => &carrier.name,
        }
    }

    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Simulator(_) => "simulator",
            Self::Smpp(_) => "smpp",
            Self::Upstream(_) => "upstream",
            Self::Http(_) => "http",
        }
    }

    pub(crate) fn channels(&self) -> Vec<Channel> {
        match self {
            Self::Simulator(_) | Self::Upstream(_) => Channel::ALL.to_vec(),
            Self::Smpp(_) => vec![Channel::Sms],
            Self::Http(carrier) => carrier.channels(),
        }
    }

    pub(crate) fn costs(&self) -> Option<&Path> {
        match self {
            Self::Simulator(carrier) => carrier.costs.as_deref(),
            Self::Smpp(carrier) => carrier.costs.as_deref(),
            Self::Upstream(carrier) => carrier.costs.as_deref(),
            Self::Http(carrier) => carrier.costs.as_deref(),
        }
    }

    /// Reads its secret from the environment or a file.
    pub(super) fn resolve_secrets(&mut self) -> anyhow::Result<()> {
        let name = self.name().to_owned();
        match self {
            Self::Simulator(_) => Ok(()),
            Self::Smpp(carrier) => carrier
                .password
                .resolve(&format!("carrier '{name}': password")),
            Self::Upstream(carrier) => carrier.token.resolve(&format!("carrier '{name}': token")),
            Self::Http(carrier) => carrier.resolve_secrets(),
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        let name = self.name();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        ensure!(
            (1..=32).contains(&name.len()) && name.bytes().all(is_plain),
            "carrier.name '{name}' must be 1 to 32 letters, digits, dots, dashes and underscores"
        );
        match self {
            Self::Simulator(_) => ensure!(
                name == simulator::NAME,
                "carrier '{name}': the simulated network is always named {}; leave its name out",
                simulator::NAME
            ),
            Self::Smpp(carrier) => carrier
                .check()
                .with_context(|| format!("carrier '{name}'"))?,
            Self::Upstream(carrier) => {
                carrier
                    .check()
                    .with_context(|| format!("carrier '{name}'"))?;
            }
            // It has many texts, so each mistake is named: see `mistakes`.
            Self::Http(_) => {}
        }
        Ok(())
    }
}

fn simulator_name() -> String {
    simulator::NAME.to_owned()
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SimulatorCarrier {
    #[serde(default = "simulator_name")]
    pub(crate) name: String,
    pub(crate) costs: Option<PathBuf>,
}

/// The default time to wait for a late answer while the link is alive.
const LATE_ANSWER_S: u64 = 300;
const MAX_LATE_ANSWER_S: u64 = 3600;
/// The most attempts without an answer.
const MAX_UNKNOWN_TRIES: u32 = 100;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SmppCarrier {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) tls: bool,
    pub(crate) tls_ca: Option<PathBuf>,
    pub(crate) tls_name: Option<String>,
    pub(crate) system_id: String,
    pub(crate) password: Secret,
    pub(crate) system_type: String,
    pub(crate) service_type: String,
    pub(crate) bind: BindMode,
    pub(crate) binds: u16,
    pub(crate) window: usize,
    pub(crate) max_per_second: Option<u32>,
    pub(crate) response_timeout_s: u64,
    pub(crate) late_answer_s: Option<u64>,
    pub(crate) unknown_tries: u32,
    pub(crate) enquire_every_s: u64,
    pub(crate) source: Option<IpAddr>,
    pub(crate) gsm7: Gsm7Form,
    pub(crate) ucs2_coding: u8,
    pub(crate) long: LongText,
    pub(crate) source_ton: Option<u8>,
    pub(crate) source_npi: Option<u8>,
    pub(crate) dest_ton: Option<u8>,
    pub(crate) dest_npi: Option<u8>,
    pub(crate) validity: bool,
    pub(crate) registered_delivery: u8,
    pub(crate) answer_id: IdForm,
    pub(crate) receipt_id: IdForm,
    pub(crate) match_recipient: bool,
    pub(crate) unmarked_receipts: bool,
    pub(crate) costs: Option<PathBuf>,
}

impl Default for SmppCarrier {
    fn default() -> Self {
        Self {
            name: String::new(),
            address: String::new(),
            tls: false,
            tls_ca: None,
            tls_name: None,
            system_id: String::new(),
            password: Secret::default(),
            system_type: String::new(),
            service_type: String::new(),
            bind: BindMode::Transceiver,
            binds: 1,
            window: 50,
            max_per_second: None,
            response_timeout_s: 10,
            late_answer_s: None,
            unknown_tries: 2,
            enquire_every_s: 30,
            source: None,
            gsm7: Gsm7Form::Default,
            ucs2_coding: 8,
            long: LongText::Udh,
            source_ton: None,
            source_npi: None,
            dest_ton: None,
            dest_npi: None,
            validity: true,
            registered_delivery: 1,
            answer_id: IdForm::Auto,
            receipt_id: IdForm::Auto,
            match_recipient: true,
            unmarked_receipts: false,
            costs: None,
        }
    }
}

impl SmppCarrier {
    /// How long the answer to a message is awaited while the link is alive.
    pub(crate) fn late_answer_s(&self) -> u64 {
        let default = LATE_ANSWER_S.max(self.response_timeout_s);
        self.late_answer_s.unwrap_or(default)
    }

    fn check(&self) -> anyhow::Result<()> {
        let has_port = self
            .address
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        ensure!(
            has_port,
            "address '{}' must be a host and a port, such as smsc.example:2775",
            self.address
        );
        ensure!(!self.system_id.is_empty(), "system_id is not set");
        ensure!(self.system_id.len() <= 15, "system_id is longer than 15");
        // The protocol allows eight characters, but many SMSCs take more.
        ensure!(self.password.0.len() <= 64, "password is longer than 64");
        ensure!(
            self.tls || (self.tls_ca.is_none() && self.tls_name.is_none()),
            "tls_ca or tls_name is set, but tls is not"
        );
        ensure!(
            (1..=64).contains(&self.binds),
            "binds is {}; give 1 to 64",
            self.binds
        );
        check_window(self.window)?;
        check_rate(self.max_per_second)?;
        ensure!(self.response_timeout_s > 0, "response_timeout_s is 0");
        ensure!(
            self.late_answer_s.is_none_or(|late| {
                (self.response_timeout_s..=MAX_LATE_ANSWER_S).contains(&late)
            }),
            "late_answer_s must be from response_timeout_s ({}) to {MAX_LATE_ANSWER_S}",
            self.response_timeout_s
        );
        ensure!(
            (1..=MAX_UNKNOWN_TRIES).contains(&self.unknown_tries),
            "unknown_tries is {}; give 1 to {MAX_UNKNOWN_TRIES}",
            self.unknown_tries
        );
        ensure!(self.enquire_every_s > 0, "enquire_every_s is 0");
        Ok(())
    }
}

/// Another service with this API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpstreamCarrier {
    pub(crate) name: String,
    pub(crate) url: Url,
    pub(crate) token: Secret,
    #[serde(default = "token_header")]
    pub(crate) header: String,
    pub(crate) report_url: Option<Url>,
    #[serde(default = "upstream_window")]
    pub(crate) window: usize,
    pub(crate) max_per_second: Option<u32>,
    #[serde(default = "upstream_timeout_s")]
    pub(crate) timeout_s: u64,
    pub(crate) costs: Option<PathBuf>,
}

fn token_header() -> String {
    "X-Service-Token".to_owned()
}

fn upstream_window() -> usize {
    50
}

fn upstream_timeout_s() -> u64 {
    10
}

impl UpstreamCarrier {
    /// The carrier's settings. `base_url` is where this service is reached unless `report_url` says otherwise.
    pub(crate) fn settings(&self, base_url: &str) -> anyhow::Result<UpstreamSettings> {
        let name = &self.name;
        let report_url = match &self.report_url {
            Some(url) => url.clone(),
            None => {
                Url::parse(base_url).with_context(|| format!("carrier '{name}': report_url"))?
            }
        };
        Ok(UpstreamSettings {
            name: name.clone(),
            url: self.url.clone(),
            token: self.token.0.clone(),
            header: self.header.parse()?,
            report_url,
            window: self.window,
            max_per_second: self.max_per_second,
            timeout: Duration::from_secs(self.timeout_s),
        })
    }

    fn check(&self) -> anyhow::Result<()> {
        for (key, url) in [
            ("url", Some(&self.url)),
            ("report_url", self.report_url.as_ref()),
        ] {
            let is_web = url.is_none_or(|url| matches!(url.scheme(), "http" | "https"));
            ensure!(is_web, "{key} must be an http or https address");
            let is_plain = |url: &Url| {
                let has_user = !url.username().is_empty() || url.password().is_some();
                !has_user && url.query().is_none() && url.fragment().is_none()
            };
            ensure!(
                url.is_none_or(is_plain),
                "{key} must hold no user, password, query or fragment; the token has a key of its own"
            );
        }
        ensure!(!self.token.0.is_empty(), "token is empty");
        let is_token = self.token.0.bytes().all(|byte| byte.is_ascii_graphic());
        ensure!(is_token, "token holds a character that no token has");
        self.header
            .parse::<http::HeaderName>()
            .with_context(|| format!("header '{}' is not a header name", self.header))?;
        check_window(self.window)?;
        check_rate(self.max_per_second)?;
        ensure!(self.timeout_s > 0, "timeout_s is 0");
        Ok(())
    }
}

fn check_window(window: usize) -> anyhow::Result<()> {
    ensure!(
        (1..=10_000).contains(&window),
        "window is {window}; give 1 to 10000"
    );
    Ok(())
}

fn check_rate(rate: Option<u32>) -> anyhow::Result<()> {
    ensure!(
        rate != Some(0),
        "max_per_second is 0; give at least 1, or leave it out for no limit"
    );
    Ok(())
}

/// Reads the secrets of carriers from the environment and from files.
pub(super) fn resolve_secrets(carriers: &mut [Carrier]) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for (index, carrier) in carriers.iter_mut().enumerate() {
        if let Err(error) = carrier.resolve_secrets() {
            mistakes.push(Mistake::in_item("carrier", index, error));
        }
    }
    mistakes
}

/// Checks carriers and routes together.
pub(super) fn find_mistakes(carriers: &[Carrier], routes: &[Route]) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    if carriers.len() > MAX_CARRIERS {
        let count = carriers.len();
        let error = anyhow!("there are {count} carriers; at most {MAX_CARRIERS} are possible");
        mistakes.push(error.into());
    }
    let mut names = HashSet::new();
    for (index, carrier) in carriers.iter().enumerate() {
        let mut add = |error| mistakes.push(Mistake::in_item("carrier", index, error));
        if let Err(error) = carrier.check() {
            add(error);
        }
        if let Carrier::Http(http) = carrier {
            for error in http.mistakes() {
                add(error.context(format!("carrier '{}'", http.name)));
            }
        }
        let name = carrier.name();
        if !names.insert(name) {
            add(anyhow!("there are two carriers named '{name}'"));
        }
    }
    let known: Vec<KnownCarrier<'_>> = carriers.iter().map(KnownCarrier::from).collect();
    for (index, route) in routes.iter().enumerate() {
        let rule = route.rule(&known);
        if let Err(error) = rule.with_context(|| format!("route {}", index + 1)) {
            mistakes.push(Mistake::in_item("route", index, error));
        }
    }
    mistakes
}
