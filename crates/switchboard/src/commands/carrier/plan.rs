//! `switchboard carrier set|remove|show|history|undo`: the carriers in the database.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use domain::ports::Store;
use engine::Actor;
use engine::audit::Action;
use serde_json::json;
use toml::Table;

use crate::cli::{CarrierSet, Output};
use crate::commands::{TIME, catalogues, print_json, store};
use crate::config::carriers::Carrier;
use crate::config::{Config, Places, read_carrier};
use crate::stored_plan::edit::{Change, Edited};
use crate::stored_plan::{StoredPlan, all_carriers, settings, source};

pub(super) async fn set_carrier(config: &Config, arguments: &CarrierSet) -> anyhow::Result<()> {
    let name = &arguments.name;
    let catalogues = catalogues(store(config).await?).await?;
    let mut edited = Edited::open(config, &catalogues).await?;
    let (mut carrier, places) = match (&arguments.from, edited.carrier(name)) {
        (Some(path), _) => read_file(path)?,
        (None, Some(stored)) => (stored.clone(), Places::default()),
        (None, None) => (Table::new(), Places::default()),
    };
    for typed in &arguments.settings {
        settings::set(&mut carrier, typed)?;
    }
    for key in &arguments.unset {
        settings::unset(&mut carrier, key)?;
    }
    settings::resolve_secrets(&mut carrier)?;
    edited.put_carrier(name, carrier, places)?;
    let change = Change::new(
        Action::CarrierSet,
        format!("carrier {name}"),
        keys(arguments),
    );
    edited.store(&Actor::command_line(), change).await?;
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

/// A file with the settings of one carrier. Errors name lines, but do not show them, because they may have secrets.
fn read_file(path: &Path) -> anyhow::Result<(Table, Places)> {
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)?;
    } else {
        let context = || format!("cannot read {}", path.display());
        text = std::fs::read_to_string(path).with_context(context)?;
    }
    read_carrier(path, &text)
}

pub(super) async fn remove_carrier(config: &Config, name: &str) -> anyhow::Result<()> {
    let catalogues = catalogues(store(config).await?).await?;
    let mut edited = Edited::open(config, &catalogues).await?;
    edited.remove_carrier(name)?;
    let change = Change::new(Action::CarrierRemove, format!("carrier {name}"), "");
    edited.store(&Actor::command_line(), change).await?;
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
    println!("# from the {}", source(config, found).name());
    print!("{}", toml::to_string(found)?);
    Ok(())
}

pub(super) async fn history(config: &Config, output: Output) -> anyhow::Result<()> {
    let catalogues = catalogues(store(config).await?).await?;
    let shown = StoredPlan::history(&catalogues).await?;
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
    let mut edited = Edited::open_any(config, &catalogues);
    let to = edited.go_back(to).await?;
    let change = Change::undo(to);
    edited.store(&Actor::command_line(), change).await?;
    println!("Carriers and routes in the database are those of version {to} again.");
    Ok(())
}
