//! `[[carrier]]` and `[[route]]`: the ways to the networks, and which messages go by which.

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use domain::{AccountName, Channel, Country, Network};
use engine::routing::{Choice, Condition, MAX_CARRIERS, Rule};
use outbound::simulator;
use outbound::smpp::{BindMode, Gsm7Form, IdForm, LongText};
use serde::{Deserialize, Serialize};
use url::Url;

/// A secret in the configuration; `config check` shows that there is one, not which.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(pub(crate) String);

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        "(hidden)".serialize(serializer)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(hidden)")
    }
}

/// A way to a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Carrier {
    Simulator(SimulatorCarrier),
    Smpp(Box<SmppCarrier>),
    Upstream(Box<UpstreamCarrier>),
}

impl Carrier {
    /// The simulated network, as it is when nobody configures a carrier.
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
        }
    }

    /// The word for its kind.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Simulator(_) => "simulator",
            Self::Smpp(_) => "smpp",
            Self::Upstream(_) => "upstream",
        }
    }

    /// What it can carry.
    pub(crate) fn channels(&self) -> Vec<Channel> {
        match self {
            Self::Simulator(_) | Self::Upstream(_) => Channel::ALL.to_vec(),
            Self::Smpp(_) => vec![Channel::Sms],
        }
    }

    /// Its cost list.
    pub(crate) fn costs(&self) -> Option<&Path> {
        match self {
            Self::Simulator(carrier) => carrier.costs.as_deref(),
            Self::Smpp(carrier) => carrier.costs.as_deref(),
            Self::Upstream(carrier) => carrier.costs.as_deref(),
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

/// An SMSC.
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
            answer_id: IdForm::AsIs,
            receipt_id: IdForm::AsIs,
            costs: None,
        }
    }
}

impl SmppCarrier {
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
        // Eight is what the protocol says; many take more.
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
        ensure!(self.enquire_every_s > 0, "enquire_every_s is 0");
        Ok(())
    }
}

/// Another service that speaks this API.
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
            .with_context(|| format!("header '{}' is no header name", self.header))?;
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

/// Which messages go by which carriers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Route {
    pub(crate) account: OneOrMany,
    pub(crate) channel: OneOrMany,
    pub(crate) country: OneOrMany,
    pub(crate) prefix: OneOrMany,
    pub(crate) network: OneOrMany,
    pub(crate) carriers: Vec<String>,
    pub(crate) by: By,
    pub(crate) weights: Vec<u32>,
}

/// In which order the carriers of a route are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
    /// As they are named.
    #[default]
    Order,
    /// By `weights`.
    Share,
    /// The cheapest first.
    Cost,
}

/// A text, or a list of texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl Default for OneOrMany {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl OneOrMany {
    fn parse<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<T>> {
        let texts = match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        };
        let parse = |text: &String| parse(text).with_context(|| format!("route.{key}"));
        texts.iter().map(parse).collect()
    }
}

impl Route {
    /// The rule, its carriers by their places.
    pub(crate) fn rule(&self, carriers: &[Carrier]) -> anyhow::Result<Rule> {
        ensure!(
            !self.carriers.is_empty(),
            "route.carriers is empty; name at least one"
        );
        let place = |name: &String| {
            let place = carriers.iter().position(|carrier| carrier.name() == name);
            place.with_context(|| {
                let known: Vec<_> = carriers.iter().map(Carrier::name).collect();
                format!(
                    "route.carriers: there is no carrier '{name}'; there are: {}",
                    known.join(", ")
                )
            })
        };
        let places: Vec<usize> = self
            .carriers
            .iter()
            .map(place)
            .collect::<anyhow::Result<_>>()?;
        let distinct: HashSet<_> = places.iter().collect();
        ensure!(
            distinct.len() == places.len(),
            "route.carriers names a carrier twice"
        );
        Ok(Rule {
            when: Condition {
                channels: self.channel.parse("channel", |text| Ok(text.parse()?))?,
                accounts: self
                    .account
                    .parse("account", |text| Ok(text.parse::<AccountName>()?))?,
                countries: self
                    .country
                    .parse("country", |text| Ok(Country::parse(text)?))?,
                prefixes: self.prefix.parse("prefix", parse_prefix)?,
                networks: self.network.parse("network", parse_network)?,
            },
            choice: self.choice(&places, carriers)?,
            carriers: places,
        })
    }

    fn choice(&self, places: &[usize], carriers: &[Carrier]) -> anyhow::Result<Choice> {
        if self.by != By::Share && !self.weights.is_empty() {
            bail!("route.weights counts only with by = \"share\"");
        }
        match self.by {
            By::Order => Ok(Choice::Order),
            By::Share => {
                ensure!(
                    self.weights.len() == self.carriers.len(),
                    "route.weights has {} numbers for {} carriers; give one for each",
                    self.weights.len(),
                    self.carriers.len()
                );
                ensure!(
                    self.weights.iter().any(|weight| *weight > 0),
                    "route.weights are all 0"
                );
                Ok(Choice::Share(self.weights.clone()))
            }
            By::Cost => {
                let has_costs = places
                    .iter()
                    .any(|place| carriers[*place].costs().is_some());
                ensure!(
                    has_costs,
                    "route.by is \"cost\", but none of its carriers has a cost list; set carrier.costs"
                );
                Ok(Choice::Cost)
            }
        }
    }
}

fn parse_prefix(text: &str) -> anyhow::Result<String> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let fits = (1..=15).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    ensure!(
        fits,
        "'{text}' must be the first digits of numbers, country code included, such as 371"
    );
    Ok(digits.to_owned())
}

fn parse_network(text: &str) -> anyhow::Result<Network> {
    let network = text
        .split_at_checked(3)
        .and_then(|(mcc, mnc)| Network::new(mcc, mnc));
    network
        .with_context(|| format!("'{text}' must be an MCC and an MNC without a gap, such as 24701"))
}

/// Checks carriers and routes as a whole.
pub(super) fn check(carriers: &[Carrier], routes: &[Route]) -> anyhow::Result<()> {
    ensure!(
        carriers.len() <= MAX_CARRIERS,
        "there are {} carriers; at most {MAX_CARRIERS} are possible",
        carriers.len()
    );
    let mut names = HashSet::new();
    for carrier in carriers {
        carrier.check()?;
        let name = carrier.name();
        ensure!(names.insert(name), "there are two carriers named '{name}'");
    }
    for (index, route) in routes.iter().enumerate() {
        route
            .rule(carriers)
            .with_context(|| format!("route {}", index + 1))?;
    }
    Ok(())
}
