//! `[[route]]`: which messages go to which carriers.

use std::collections::HashSet;

use anyhow::{Context as _, bail, ensure};
use domain::{AccountName, Country, Network};
use engine::sending::routing::{Choice, Condition, Rule};
use serde::{Deserialize, Serialize};

use super::carriers::Carrier;

/// Settings of all routes together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RoutingSettings {
    /// Routes with a higher revision replace those with a lower one, on all nodes.
    pub(crate) revision: u64,
}

/// What a route needs to know about a carrier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownCarrier<'a> {
    pub(crate) name: &'a str,
    /// Whether its costs are known, possibly only to another node.
    pub(crate) has_costs: bool,
}

impl<'a> From<&'a Carrier> for KnownCarrier<'a> {
    fn from(carrier: &'a Carrier) -> Self {
        Self {
            name: carrier.name(),
            has_costs: carrier.costs().is_some(),
        }
    }
}

/// Which messages go to which carriers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Route {
    pub(crate) account: OneOrMany,
    pub(crate) channel: OneOrMany,
    pub(crate) country: OneOrMany,
    pub(crate) prefix: OneOrMany,
    pub(crate) network: OneOrMany,
    pub(crate) carriers: Vec<String>,
    pub(crate) by: CarrierOrder,
    pub(crate) weights: Vec<u32>,
    /// Left out of published rules unless it is set, so that older programs can read them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ported_numbers: bool,
}

/// The order in which the carriers of a route are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CarrierOrder {
    /// As listed.
    #[default]
    Order,
    /// By `weights`.
    Share,
    /// The cheapest first.
    Cost,
}

/// A text or a list of texts.
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
    /// The rule with the indices of its carriers.
    pub(crate) fn rule(&self, carriers: &[KnownCarrier<'_>]) -> anyhow::Result<Rule> {
        ensure!(
            !self.carriers.is_empty(),
            "route.carriers is empty; name at least one"
        );
        let index = |name: &String| {
            let index = carriers.iter().position(|carrier| carrier.name == name);
            index.with_context(|| {
                let known: Vec<_> = carriers.iter().map(|carrier| carrier.name).collect();
                format!(
                    "route.carriers: there is no carrier '{name}'; there are: {}",
                    known.join(", ")
                )
            })
        };
        let indices: Vec<usize> = self
            .carriers
            .iter()
            .map(index)
            .collect::<anyhow::Result<_>>()?;
        let distinct: HashSet<_> = indices.iter().collect();
        ensure!(
            distinct.len() == indices.len(),
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
            choice: self.choice(&indices, carriers)?,
            carriers: indices,
            ported_numbers: self.ported_numbers,
        })
    }

    fn choice(&self, indices: &[usize], carriers: &[KnownCarrier<'_>]) -> anyhow::Result<Choice> {
        if self.by != CarrierOrder::Share && !self.weights.is_empty() {
            bail!("route.weights counts only with by = \"share\"");
        }
        match self.by {
            CarrierOrder::Order => Ok(Choice::Order),
            CarrierOrder::Share => {
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
            CarrierOrder::Cost => {
                let has_costs = indices.iter().any(|index| carriers[*index].has_costs);
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
