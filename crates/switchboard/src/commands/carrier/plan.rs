//! `switchboard carrier set|remove|show|history|undo`: the carriers in the database.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use domain::ports::{CatalogueKind, Store};
use engine::audit::Action;
use engine::catalogue::plans::NewPlan;
use engine::sending::published_rules::NamedCarrier;
use engine::{Actor, Catalogues};
use serde_json::json;
use toml::{Table, Value};

use super::settings;
use crate::cli::{CarrierSet, Output};
use crate::commands::{TIME, catalogues, print_json, store};
use crate::config::carriers::Carrier;
use crate::config::{Config, check_plan};
use crate::stored_plan::{StoredPlan, all_carriers};

/// How many changes are listed.
const MAX_HISTORY: usize = 100;

/// The carriers and routes in the database, while they are changed.
pub(super) struct Edited<'a> {
    config: &'a Config,
    catalogues: Catalogues,
    previous: u32,
    pub(super) plan: StoredPlan,
}

impl<'a> Edited<'a> {
    pub(super) async fn open(config: &'a Config) -> anyhow::Result<Self> {
        let catalogues = catalogues(store(config).await?).await?;
        let (previous, plan) = StoredPlan::read(&catalogues).await?;
        Ok(Self {
            config,
            catalogues,
            previous,
            plan,
        })
    }

    /// Checks everything together, and stores it. `detail` names what is changed, without values.
    pub(super) async fn store(
        mut self,
        action: Action,
        subject: &str,
        detail: &str,
    ) -> anyhow::Result<()> {
        self.name_carriers_of_files();
        let plan = self.plan.load()?;
        let all = plan.carriers(self.config);
        check_plan(&all, &plan.routes, &plan.named)?;
        self.publish(action, subject, detail).await
    }

    async fn publish(mut self, action: Action, subject: &str, detail: &str) -> anyhow::Result<()> {
        let by = Actor::command_line();
        self.plan.by.clone_from(&by.who);
        self.plan.change = format!("{} {subject}", action.name());
        let rows = self.plan.carriers.len() + self.plan.routes.len();
        let new = NewPlan {
            action,
            subject,
            detail,
            previous: self.previous,
            content: &self.plan.to_json(),
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
        };
        self.catalogues.publish_plan(&by, new).await?;
        Ok(())
    }

    /// Nodes without a carrier of this file must know its channels, if a route names it.
    fn name_carriers_of_files(&mut self) {
        let routes = self.plan.routes.iter();
        let carriers = routes.filter_map(|route| route.get("carriers")?.as_array());
        let mut wanted: BTreeSet<String> = carriers
            .flatten()
            .filter_map(|name| Some(name.as_str()?.to_owned()))
            .collect();
        for stored in &self.plan.carriers {
            wanted.remove(StoredPlan::name(stored));
        }
        let mut named = Vec::new();
        for own in self.config.own_carriers() {
            if wanted.remove(own.name()) {
                named.push(NamedCarrier::new(own.name(), &own.channels()));
            }
        }
        // Those of other files stay as they were named there.
        let others = self.plan.named.drain(..);
        named.extend(others.filter(|other| wanted.contains(&other.name)));
        self.plan.named = named;
    }
}

pub(super) async fn set_carrier(config: &Config, arguments: &CarrierSet) -> anyhow::Result<()> {
    let name = &arguments.name;
    let is_of_file = config.own_carriers().iter().any(|own| own.name() == name);
    ensure!(
        !is_of_file,
        "carrier '{name}' is in the configuration file; change it there and reload, or remove it there first"
    );
    let mut edited = Edited::open(config).await?;
    let carriers = &mut edited.plan.carriers;
    let index = carriers.iter().position(|it| StoredPlan::name(it) == name);
    let mut carrier = match (&arguments.from, index) {
        (Some(path), _) => read_file(path)?,
        (None, Some(index)) => carriers[index].clone(),
        (None, None) => Table::new(),
    };
    for typed in &arguments.settings {
        settings::set(&mut carrier, typed)?;
    }
    for key in &arguments.unset {
        settings::unset(&mut carrier, key)?;
    }
    carrier.insert("name".to_owned(), Value::String(name.clone()));
    settings::finish(&mut carrier)?;
    match index {
        Some(index) => carriers[index] = carrier,
        None => carriers.push(carrier),
    }
    let subject = format!("carrier {name}");
    edited
        .store(Action::CarrierSet, &subject, &keys(arguments))
        .await?;
    println!("Carrier '{name}' is stored; all nodes use it within a second.");
    Ok(())
}

/// The keys that were given. Values may be secrets.
fn keys(arguments: &CarrierSet) -> String {
    let file = arguments.from.as_ref().map(|_| "all settings");
    let set = arguments.settings.iter();
    let set = set.map(|typed| typed.split_once('=').map_or("", |(key, _)| key));
    let unset = arguments.unset.iter().map(String::as_str);
    let keys: Vec<&str> = file.into_iter().chain(set).chain(unset).collect();
    keys.join(", ")
}

/// A file with the settings of one carrier: alone, or as a `[[carrier]]`.
fn read_file(path: &Path) -> anyhow::Result<Table> {
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)?;
    } else {
        let context = || format!("cannot read {}", path.display());
        text = std::fs::read_to_string(path).with_context(context)?;
    }
    // The error would show the line, which may have a secret.
    let parsed: Result<Table, toml::de::Error> = text.parse();
    let mut table = parsed.map_err(|error| {
        anyhow::anyhow!("{} is not valid TOML: {}", path.display(), error.message())
    })?;
    match table.remove("carrier") {
        None => Ok(table),
        Some(Value::Array(mut carriers)) if carriers.len() == 1 && table.is_empty() => {
            match carriers.remove(0) {
                Value::Table(carrier) => Ok(carrier),
                _ => bail!("[[carrier]] must be a table"),
            }
        }
        Some(_) => bail!("give the settings of one carrier, and nothing else"),
    }
}

pub(super) async fn remove_carrier(config: &Config, name: &str) -> anyhow::Result<()> {
    let mut edited = Edited::open(config).await?;
    let carriers = &mut edited.plan.carriers;
    let before = carriers.len();
    carriers.retain(|carrier| StoredPlan::name(carrier) != name);
    if carriers.len() == before {
        let is_of_file = config.own_carriers().iter().any(|own| own.name() == name);
        ensure!(
            !is_of_file,
            "carrier '{name}' is in the configuration file; remove it there and reload"
        );
        bail!("there is no carrier '{name}' in the database");
    }
    let subject = format!("carrier {name}");
    edited.store(Action::CarrierRemove, &subject, "").await?;
    println!("Carrier '{name}' is removed; `switchboard carrier undo` brings it back.");
    Ok(())
}

pub(super) async fn show(config: &Config, name: &str) -> anyhow::Result<()> {
    let store: Arc<dyn Store> = store(config).await?;
    let carriers = all_carriers(config, &store).await?;
    let found = carriers.iter().find(|carrier| carrier.name() == name);
    let found = found.with_context(|| {
        let known: Vec<&str> = carriers.iter().map(Carrier::name).collect();
        format!(
            "there is no carrier '{name}'; there are {}",
            known.join(", ")
        )
    })?;
    println!("# from the {}", super::source(config, found));
    print!("{}", toml::to_string(found)?);
    Ok(())
}

pub(super) async fn history(config: &Config, output: Output) -> anyhow::Result<()> {
    let catalogues = catalogues(store(config).await?).await?;
    let mut shown = Vec::new();
    for entry in catalogues
        .history(CatalogueKind::Plan)
        .await?
        .into_iter()
        .take(MAX_HISTORY)
    {
        let plan = StoredPlan::read_version(&catalogues, entry.version).await?;
        shown.push((entry, plan.unwrap_or_default()));
    }
    if output.json {
        let change = |(entry, plan): &(domain::ports::CatalogueEntry, StoredPlan)| {
            json!({
                "version": entry.version,
                "at": entry.at.to_string(),
                "by": plan.by,
                "change": plan.change,
                "carriers": plan.carriers.len(),
                "routes": plan.routes.len(),
            })
        };
        print_json(&shown.iter().map(change).collect());
        return Ok(());
    }
    println!("{:>7}  {:<20}  {:<24}  CHANGE", "VERSION", "WHEN", "WHO");
    for (entry, plan) in &shown {
        let at = entry.at.strftime(TIME).to_string();
        println!(
            "{:>7}  {at:<20}  {:<24}  {}",
            entry.version, plan.by, plan.change
        );
    }
    Ok(())
}

pub(super) async fn undo(config: &Config, to: Option<u32>) -> anyhow::Result<()> {
    let catalogues = catalogues(store(config).await?).await?;
    let previous = catalogues.live().version(CatalogueKind::Plan);
    ensure!(previous > 0, "nothing was changed in the database yet");
    let to = to.unwrap_or(previous - 1);
    let plan = match to {
        // Before the first change.
        0 => StoredPlan::default(),
        to => StoredPlan::read_version(&catalogues, to)
            .await?
            .with_context(|| {
                format!("there is no version {to}; see `switchboard carrier history`")
            })?,
    };
    let edited = Edited {
        config,
        catalogues,
        previous,
        plan,
    };
    let subject = format!("version {to} of carriers and routes");
    edited.store(Action::CarrierUndo, &subject, "").await?;
    println!("Carriers and routes in the database are those of version {to} again.");
    Ok(())
}
