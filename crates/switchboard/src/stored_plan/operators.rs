//! Carriers and routes for the operators' pages.

use std::path::Path;
use std::sync::Arc;

use anyhow::{bail, ensure};
use async_trait::async_trait;
use domain::ports::{Store, StoreError};
use engine::audit::Action;
use engine::catalogue::ImportError;
use engine::catalogue::plans::{
    CarrierDescription, CarrierExample, CarrierInput, CarrierPlans, PlanError, PlanOverview,
    PlanProblem, PlanSource, PlanVersion, PlannedCarrier, PlannedRoute, RouteInput, SentTest,
    TestInput, TestReport,
};
use engine::{Actor, Catalogues};
use outbound::http::PROOF_PURPOSE;
use tokio::sync::watch;
use toml::{Table, Value};

use super::addresses::{base_url, inbound_url};
use super::edit::{Change, Edited};
use super::trial::{Trial, find_report, is_testable};
use super::{NAME, StoredPlan, route_settings, routes_of_files, secrets, source};
use crate::config::carriers::Carrier;
use crate::config::presets::{PRESETS, Preset};
use crate::config::{Config, Problems, read_carrier};

/// The name of a typed description in errors.
const DESCRIPTION: &str = "description";
/// Secrets of these forms refer to the machine of the service, which a browser must not read.
const REFERENCES: [&str; 2] = ["env:", "file:"];

/// Reads and changes carriers and routes while the service runs.
pub(crate) struct OperatorPlans {
    /// The configuration in force.
    config: watch::Receiver<Arc<Config>>,
    store: Arc<dyn Store>,
    catalogues: Arc<Catalogues>,
}

impl OperatorPlans {
    pub(crate) fn new(
        config: watch::Receiver<Arc<Config>>,
        store: Arc<dyn Store>,
        catalogues: Arc<Catalogues>,
    ) -> Arc<Self> {
        Arc::new(Self {
            config,
            store,
            catalogues,
        })
    }

    fn config(&self) -> Arc<Config> {
        self.config.borrow().clone()
    }

    async fn stored(&self) -> anyhow::Result<StoredPlan> {
        self.catalogues.look_again().await?;
        Ok(StoredPlan::read(&self.catalogues).await?.1)
    }

    async fn carriers(&self, config: &Config) -> anyhow::Result<Vec<Carrier>> {
        Ok(self.stored().await?.load()?.carriers(config))
    }

    async fn read_all(&self) -> anyhow::Result<PlanOverview> {
        let config = self.config();
        let plan = self.stored().await?;
        let carriers = plan.load()?.carriers(&config);
        let mut routes: Vec<PlannedRoute> = plan
            .routes
            .iter()
            .map(|route| PlannedRoute {
                name: Some(StoredPlan::name(route).to_owned()),
                settings: route_settings(route),
                source: PlanSource::Database,
            })
            .collect();
        for route in routes_of_files(&config, &self.catalogues).await? {
            routes.push(PlannedRoute {
                name: None,
                settings: route_settings(&Table::try_from(route)?),
                source: PlanSource::File,
            });
        }
        Ok(PlanOverview {
            carriers: carriers
                .iter()
                .map(|carrier| planned(&config, carrier))
                .collect(),
            routes,
        })
    }

    async fn describe(&self, name: &str) -> anyhow::Result<Option<CarrierDescription>> {
        let config = self.config();
        let plan = self.stored().await?;
        let carriers = plan.load()?.carriers(&config);
        let Some(carrier) = carriers.iter().find(|carrier| carrier.name() == name) else {
            return Ok(None);
        };
        let base_url = base_url(&config, &*self.store).await?;
        let keys = self.store.derived_keys(PROOF_PURPOSE);
        let inbound_url = inbound_url(carrier, &base_url, &keys)?;
        let carrier_facts = planned(&config, carrier);
        let (text, secrets) = match carrier_facts.source {
            // It shows secrets as hidden.
            PlanSource::File => (toml::to_string(carrier)?, Vec::new()),
            PlanSource::Database => {
                let mut stored = plan.carriers.iter();
                let table = stored.find(|table| StoredPlan::name(table) == name);
                let mut table = table.cloned().unwrap_or_default();
                table.remove(NAME);
                let secrets = secrets::names(&table);
                secrets::take(&mut table);
                (toml::to_string(&table)?, secrets)
            }
        };
        Ok(Some(CarrierDescription {
            carrier: carrier_facts,
            text,
            secrets,
            inbound_url,
        }))
    }

    async fn change_carrier(&self, by: &Actor, input: &CarrierInput) -> anyhow::Result<()> {
        let config = self.config();
        self.catalogues.look_again().await?;
        let mut edited = Edited::open(&config, &self.catalogues).await?;
        let name = input.name.as_str();
        let old = edited.carrier(name).cloned();
        ensure!(
            !(input.is_new && old.is_some()),
            "there is a carrier '{name}' already; change that one, or choose another name"
        );
        ensure!(
            input.is_new || old.is_some(),
            "there is no carrier '{name}' in the database"
        );
        let old = old.unwrap_or_default();
        let (carrier, places) = read_carrier(Path::new(DESCRIPTION), &input.description)?;
        let carrier = with_secrets(carrier, &old, input)?;
        let changed = changed_keys(&old, &carrier);
        edited.put_carrier(name, carrier, places)?;
        let subject = format!("carrier {name}");
        let change = Change::new(Action::CarrierSet, subject, changed.join(", "));
        edited.store(by, change).await
    }

    async fn change_route(&self, by: &Actor, input: &RouteInput) -> anyhow::Result<()> {
        let config = self.config();
        self.catalogues.look_again().await?;
        let mut edited = Edited::open(&config, &self.catalogues).await?;
        let name = input.name.as_str();
        ensure!(
            !(input.is_new && edited.has_route(name)),
            "there is a route '{name}' already; change that one, or choose another name"
        );
        ensure!(
            input.is_new || edited.has_route(name),
            "there is no route '{name}' in the database"
        );
        let given = input.settings.iter().filter(|(_, value)| !value.is_empty());
        let typed: Vec<String> = given.map(|(key, value)| format!("{key}={value}")).collect();
        edited.put_route(name, &typed, input.before.as_deref())?;
        let change = Change::new(Action::RouteSet, format!("route {name}"), typed.join(" "));
        edited.store(by, change).await
    }
}

#[async_trait]
impl CarrierPlans for OperatorPlans {
    async fn list(&self) -> Result<PlanOverview, PlanError> {
        self.read_all().await.map_err(problems)
    }

    async fn find_carrier(&self, name: &str) -> Result<Option<CarrierDescription>, PlanError> {
        self.describe(name).await.map_err(problems)
    }

    fn examples(&self) -> Vec<CarrierExample> {
        PRESETS.iter().map(of_preset).chain(of_kinds()).collect()
    }

    fn hide_secrets(&self, description: &str) -> String {
        secrets::hide(description)
    }

    async fn set_carrier(&self, by: &Actor, input: CarrierInput) -> Result<(), PlanError> {
        self.change_carrier(by, &input).await.map_err(problems)
    }

    async fn remove_carrier(&self, by: &Actor, name: &str) -> Result<(), PlanError> {
        let config = self.config();
        let removed = async {
            self.catalogues.look_again().await?;
            let mut edited = Edited::open(&config, &self.catalogues).await?;
            edited.remove_carrier(name)?;
            let change = Change::new(Action::CarrierRemove, format!("carrier {name}"), "");
            edited.store(by, change).await
        };
        removed.await.map_err(problems)
    }

    async fn set_route(&self, by: &Actor, input: RouteInput) -> Result<(), PlanError> {
        self.change_route(by, &input).await.map_err(problems)
    }

    async fn remove_route(&self, by: &Actor, name: &str) -> Result<(), PlanError> {
        let config = self.config();
        let removed = async {
            self.catalogues.look_again().await?;
            let mut edited = Edited::open(&config, &self.catalogues).await?;
            edited.remove_route(name)?;
            let change = Change::new(Action::RouteRemove, format!("route {name}"), "");
            edited.store(by, change).await
        };
        removed.await.map_err(problems)
    }

    async fn history(&self) -> Result<Vec<PlanVersion>, PlanError> {
        let history = StoredPlan::history(&self.catalogues).await;
        let version = |(entry, plan): (domain::ports::CatalogueEntry, StoredPlan)| PlanVersion {
            version: entry.version,
            at: entry.at,
            carriers: plan.carriers.len(),
            routes: plan.routes.len(),
            by: plan.by,
            change: plan.change,
        };
        let history = history.map(|history| history.into_iter().map(version).collect());
        history.map_err(problems)
    }

    async fn undo(&self, by: &Actor, to: u32) -> Result<(), PlanError> {
        let config = self.config();
        let undone = async {
            self.catalogues.look_again().await?;
            let mut edited = Edited::open_any(&config, &self.catalogues);
            let to = edited.go_back(Some(to)).await?;
            edited.store(by, Change::undo(to)).await
        };
        undone.await.map_err(problems)
    }

    async fn send_test(&self, input: TestInput) -> Result<SentTest, PlanError> {
        let config = self.config();
        let sent = async {
            let carriers = self.carriers(&config).await?;
            let trial = Trial::new(&config, &*self.store, &carriers, &input).await?;
            let catalogues = self.catalogues.clone();
            trial.send(&config, &self.store, catalogues).await
        };
        sent.await.map_err(problems)
    }

    async fn find_test_report(
        &self,
        carrier: &str,
        references: &[String],
    ) -> Result<Option<TestReport>, PlanError> {
        Ok(find_report(&*self.store, carrier, references).await?)
    }
}

fn planned(config: &Config, carrier: &Carrier) -> PlannedCarrier {
    PlannedCarrier {
        name: carrier.name().to_owned(),
        kind: carrier.kind(),
        channels: carrier.channels(),
        source: source(config, carrier),
        is_testable: is_testable(carrier),
    }
}

/// Adds the secrets that stay and those that are typed, in the description or in fields of their own.
fn with_secrets(mut carrier: Table, old: &Table, input: &CarrierInput) -> anyhow::Result<Table> {
    let described = secrets::take(&mut carrier);
    let kept = secrets::take(&mut old.clone()).into_iter();
    let kept = kept.filter(|(name, _)| !input.removed_secrets.contains(name));
    let typed = input.secrets.iter().map(|(name, value)| {
        let name = name.trim().to_owned();
        (name, Value::String(value.trim().to_owned()))
    });
    for (name, value) in kept.chain(described).chain(typed) {
        let Value::String(text) = value else {
            bail!("{name} must be a text in quotes");
        };
        // Nothing was typed, so it stays.
        if text.is_empty() {
            continue;
        }
        ensure!(
            !REFERENCES.iter().any(|start| text.starts_with(start)),
            "{name}: enter the secret itself; env: and file: work in the configuration file and on the command line"
        );
        secrets::put(&mut carrier, &name, text)?;
    }
    Ok(carrier)
}

/// The keys whose values differ. Secrets are named one by one.
fn changed_keys(old: &Table, new: &Table) -> Vec<String> {
    let flat = |table: &Table| {
        let mut table = table.clone();
        let mut all = secrets::take(&mut table);
        all.extend(table);
        all.retain(|(key, _)| key != NAME);
        all
    };
    let (old, new) = (flat(old), flat(new));
    let is_in = |list: &[(String, Value)], one: &(String, Value)| list.contains(one);
    let set = new.iter().filter(|one| !is_in(&old, one));
    let removed = old
        .iter()
        .filter(|(key, _)| new.iter().all(|(other, _)| other != key));
    set.chain(removed).map(|(key, _)| key.clone()).collect()
}

fn of_preset(preset: &'static Preset) -> CarrierExample {
    let mut example = preset.example();
    example.remove(NAME);
    let secrets = secrets::names(&example);
    secrets::take(&mut example);
    CarrierExample {
        name: preset.name,
        title: preset.title(),
        text: toml::to_string(&example).unwrap_or_default(),
        secrets,
        preset: Some(preset.text),
    }
}

/// Examples of the kinds of carriers.
fn of_kinds() -> impl Iterator<Item = CarrierExample> {
    let http = "kind = \"http\"\nchannels = [\"sms\"]\n\n[request]\nurl = \"https://provider.example/send\"\n\
        headers = { Authorization = \"Bearer {{ secret.key }}\" }\n\
        json = { to = \"{{ to }}\", from = \"{{ from }}\", text = \"{{ text }}\", callback = \"{{ report_url }}\" }\n\n\
        [response]\nid = \"/id\"\n\n[report]\nstate = \"/status\"\ndelivered = [\"delivered\"]\n\
        failed = [\"failed\"]\n";
    let smpp = "kind = \"smpp\"\naddress = \"smsc.example:2775\"\nsystem_id = \"user\"\n";
    let upstream = "kind = \"upstream\"\nurl = \"https://other.example\"\n";
    let all = [
        ("smpp", "An SMSC, by SMPP 3.4", smpp, "password"),
        (
            "upstream",
            "Another service with this same REST API",
            upstream,
            "token",
        ),
        (
            "http",
            "A provider with an HTTP API of its own",
            http,
            "secret.key",
        ),
    ];
    all.into_iter()
        .map(|(name, title, text, secret)| CarrierExample {
            name,
            title,
            text: text.to_owned(),
            secrets: vec![secret.to_owned()],
            preset: None,
        })
}

fn problems(error: anyhow::Error) -> PlanError {
    let error = match error.downcast::<Problems>() {
        Ok(problems) => {
            let problem = |(line, text): (Option<usize>, &str)| PlanProblem {
                line,
                text: without_number(line, text).to_owned(),
            };
            return PlanError::Wrong(problems.lines().map(problem).collect());
        }
        Err(error) => error,
    };
    let error = match error.downcast::<ImportError>() {
        Ok(ImportError::Store(error)) => return PlanError::Store(error),
        Ok(other) => anyhow::Error::from(other),
        Err(error) => error,
    };
    match error.downcast::<StoreError>() {
        Ok(error) => PlanError::Store(error),
        Err(error) => PlanError::Wrong(vec![PlanProblem {
            line: None,
            text: format!("{error:#}"),
        }]),
    }
}

/// A key of the description without the number of its carrier: `window`, not `carrier.3.window`.
fn without_number(line: Option<usize>, text: &str) -> &str {
    let within = |text| {
        let (_, key) = str::strip_prefix(text, "carrier.")?.split_once('.')?;
        Some(key)
    };
    line.and_then(|_| within(text)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(secrets: &[(&str, &str)], removed: &[&str]) -> CarrierInput {
        CarrierInput {
            name: "beta".to_owned(),
            is_new: false,
            description: String::new(),
            secrets: secrets
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            removed_secrets: removed.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn secrets_stay_unless_others_are_typed() {
        let table = |text: &str| text.parse::<Table>().expect("TOML");
        let old = table("window = 1\nsecret = { a = '1', b = '2', c = '3' }");
        let typed = table("window = 2\nsecret = { a = '', c = '4' }");
        let new = with_secrets(
            typed.clone(),
            &old,
            &input(&[("secret.d", " 5 "), ("secret.c", "")], &["secret.b"]),
        )
        .expect("valid");
        let expected = table("window = 2\nsecret = { a = '1', c = '4', d = '5' }");
        assert_eq!(new, expected);
        assert_eq!(
            changed_keys(&old, &new),
            ["secret.c", "secret.d", "window", "secret.b"]
        );
        for (name, value) in [("window", "1"), ("token", "env:PATH"), ("", "x")] {
            with_secrets(typed.clone(), &old, &input(&[(name, value)], &[])).expect_err(name);
        }
    }

    #[test]
    fn examples_need_only_secrets() {
        for example in PRESETS.iter().map(of_preset).chain(of_kinds()) {
            let name = example.name;
            assert!(!example.secrets.is_empty(), "{name}");
            let mut carrier: Table = example.text.parse().expect(name);
            for secret in &example.secrets {
                secrets::put(&mut carrier, secret, "x".to_owned()).expect(name);
            }
            carrier.insert(NAME.to_owned(), Value::String(name.to_owned()));
            let plan = StoredPlan {
                carriers: vec![carrier],
                ..StoredPlan::default()
            };
            plan.load().expect(name);
        }
    }
}
