//! `switchboard route …`

use anyhow::{Context as _, ensure};
use domain::ports::CatalogueKind;
use engine::Catalogues;
use engine::audit::Action;
use engine::sending::published_rules::PublishedRules;
use serde_json::{Value as Json, json};
use toml::{Table, Value};

use super::plan::Edited;
use super::settings;
use crate::cli::{Output, RouteCommand, RouteSet};
use crate::commands::{catalogues, print_json, store};
use crate::config::Config;
use crate::config::routes::Route;
use crate::stored_plan::StoredPlan;

pub(in crate::commands) async fn run(config: &Config, command: RouteCommand) -> anyhow::Result<()> {
    match command {
        RouteCommand::List { output } => list(config, output).await,
        RouteCommand::Set(arguments) => set(config, &arguments).await,
        RouteCommand::Remove { name } => remove(config, &name).await,
    }
}

async fn set(config: &Config, arguments: &RouteSet) -> anyhow::Result<()> {
    let name = &arguments.name;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    ensure!(
        (1..=32).contains(&name.len()) && name.bytes().all(is_plain),
        "the name '{name}' must be 1 to 32 letters, digits, dots, dashes and underscores"
    );
    let mut route = Table::from_iter([("name".to_owned(), Value::String(name.clone()))]);
    for typed in &arguments.settings {
        let (key, value) = settings::route_setting(typed)?;
        ensure!(key != "name", "the name is the first argument");
        ensure!(
            route.insert(key, value).is_none(),
            "'{typed}' is given twice; give it once"
        );
    }
    let mut edited = Edited::open(config).await?;
    let routes = &mut edited.plan.routes;
    let find = |routes: &[Table], name: &str| {
        routes
            .iter()
            .position(|route| StoredPlan::name(route) == name)
    };
    let before = find(routes, name);
    if let Some(index) = before {
        routes.remove(index);
    }
    let index = match &arguments.before {
        Some(next) => find(routes, next)
            .with_context(|| format!("there is no route '{next}' in the database"))?,
        None => before.unwrap_or(routes.len()),
    };
    routes.insert(index, route);
    let subject = format!("route {name}");
    let detail = arguments.settings.join(" ");
    edited.store(Action::RouteSet, &subject, &detail).await?;
    println!("Route '{name}' is stored; all nodes use it within a second.");
    Ok(())
}

async fn remove(config: &Config, name: &str) -> anyhow::Result<()> {
    let mut edited = Edited::open(config).await?;
    let routes = &mut edited.plan.routes;
    let before = routes.len();
    routes.retain(|route| StoredPlan::name(route) != name);
    ensure!(
        routes.len() < before,
        "there is no route '{name}' in the database; those of the configuration file are changed there"
    );
    let subject = format!("route {name}");
    edited.store(Action::RouteRemove, &subject, "").await?;
    println!("Route '{name}' is removed; `switchboard carrier undo` brings it back.");
    Ok(())
}

async fn list(config: &Config, output: Output) -> anyhow::Result<()> {
    let catalogues = catalogues(store(config).await?).await?;
    let (_, plan) = StoredPlan::read(&catalogues).await?;
    let of_files = of_files(config, &catalogues).await?;
    if output.json {
        let stored = plan
            .routes
            .iter()
            .map(|route| as_json(json!(route), "database"));
        let others = of_files.iter().map(|route| as_json(json!(route), "file"));
        print_json(&stored.chain(others).collect());
        return Ok(());
    }
    println!("{:>3}  {:<8}  {:<16}  ROUTE", "", "SOURCE", "NAME");
    let row = |number: usize, source: &str, name: &str, route: &str| {
        println!("{number:>3}  {source:<8}  {name:<16}  {route}");
    };
    for (index, route) in plan.routes.iter().enumerate() {
        row(
            index + 1,
            "database",
            StoredPlan::name(route),
            &in_words(route),
        );
    }
    for (index, route) in of_files.iter().enumerate() {
        let table = Table::try_from(route)?;
        row(plan.routes.len() + index + 1, "file", "", &in_words(&table));
    }
    Ok(())
}

/// The routes of files that are in force, or those of this file if none were ever.
async fn of_files(config: &Config, catalogues: &Catalogues) -> anyhow::Result<Vec<Route>> {
    let kind = CatalogueKind::Routes;
    let version = catalogues.live().version(kind);
    match catalogues.version(kind, version).await? {
        Some(published) => {
            let published: PublishedRules<Route> = serde_json::from_str(&published)
                .context("the routes in force cannot be read by this program")?;
            Ok(published.routes)
        }
        None => Ok(config.routes.clone()),
    }
}

fn as_json(mut route: Json, source: &str) -> Json {
    route["source"] = json!(source);
    route
}

/// The settings of a route as `route set` takes them.
fn in_words(route: &Table) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let words = route.iter().filter_map(|(key, value)| {
        let value = match value {
            _ if key == "name" => return None,
            Value::Array(items) if items.is_empty() => return None,
            Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
            other => text(other),
        };
        Some(format!("{key}={value}"))
    });
    words.collect::<Vec<_>>().join(" ")
}
