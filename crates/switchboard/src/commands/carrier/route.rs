//! `switchboard route …`

use engine::Actor;
use engine::audit::Action;
use serde_json::{Value as Json, json};
use toml::Table;

use crate::cli::{Output, RouteCommand, RouteSet};
use crate::commands::{catalogues, print_json, store};
use crate::config::Config;
use crate::stored_plan::edit::{Change, Edited};
use crate::stored_plan::{StoredPlan, route_settings, routes_of_files};

pub(in crate::commands) async fn run(config: &Config, command: RouteCommand) -> anyhow::Result<()> {
    match command {
        RouteCommand::List { output } => list(config, output).await,
        RouteCommand::Set(arguments) => set(config, &arguments).await,
        RouteCommand::Remove { name } => remove(config, &name).await,
    }
}

async fn set(config: &Config, arguments: &RouteSet) -> anyhow::Result<()> {
    let name = &arguments.name;
    let catalogues = catalogues(store(config).await?).await?;
    let mut edited = Edited::open(config, &catalogues).await?;
    edited.put_route(name, &arguments.settings, arguments.before.as_deref())?;
    let detail = arguments.settings.join(" ");
    let change = Change::new(Action::RouteSet, format!("route {name}"), detail);
    edited.store(&Actor::command_line(), change).await?;
    println!("Route '{name}' is stored; all nodes use it within a second.");
    Ok(())
}

async fn remove(config: &Config, name: &str) -> anyhow::Result<()> {
    let catalogues = catalogues(store(config).await?).await?;
    let mut edited = Edited::open(config, &catalogues).await?;
    edited.remove_route(name)?;
    let change = Change::new(Action::RouteRemove, format!("route {name}"), "");
    edited.store(&Actor::command_line(), change).await?;
    println!("Route '{name}' is removed; `switchboard carrier undo` brings it back.");
    Ok(())
}

async fn list(config: &Config, output: Output) -> anyhow::Result<()> {
    let catalogues = catalogues(store(config).await?).await?;
    let (_, plan) = StoredPlan::read(&catalogues).await?;
    let of_files = routes_of_files(config, &catalogues).await?;
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

fn as_json(mut route: Json, source: &str) -> Json {
    route["source"] = json!(source);
    route
}

/// The settings of a route as `route set` takes them.
fn in_words(route: &Table) -> String {
    let settings = route_settings(route).into_iter();
    let words: Vec<String> = settings
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    words.join(" ")
}
