//! `[[route]]`: which messages go by which carriers.

use std::collections::HashSet;

use anyhow::{Context as _, bail, ensure};
use domain::{AccountName, Country, Network};
use engine::sending::routing::{Choice, Condition, Rule};
use serde::{Deserialize, Serialize};

use super::carriers::Carrier;

/// What rules need to know of a carrier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) name: &'a str,
    /// Whether its costs are known, or may be known to others.
    pub(crate) has_costs: bool,
}

impl<'a> From<&'a Carrier> for Known<'a> {
    fn from(carrier: &'a Carrier) -> Self {
        Self {
            name: carrier.name(),
            has_costs: carrier.costs().is_some(),
        }
    }
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
    pub(crate) fn rule(&self, carriers: &[Known<'_>]) -> anyhow::Result<Rule> {
        ensure!(
            !self.carriers.is_empty(),
            "route.carriers is empty; name at least one"
        );
        let place = |name: &String| {
            let place = carriers.iter().position(|carrier| carrier.name == name);
            place.with_context(|| {
                let known: Vec<_> = carriers.iter().map(|carrier| carrier.name).collect();
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

    fn choice(&self, places: &[usize], carriers: &[Known<'_>]) -> anyhow::Result<Choice> {
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
                let has_costs = places.iter().any(|place| carriers[*place].has_costs);
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
