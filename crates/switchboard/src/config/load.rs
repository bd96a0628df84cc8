//! The sources of the configuration: a file, then the environment, then flags.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Context as _, bail};
use toml::de::DeTable;
use toml::{Table, Value};

use engine::sending::published_rules::NamedCarrier;

use super::carriers::{self, Carrier};
use super::problems::{Mistake, Places, Problems, join};
use super::routes::{KnownCarrier, Route};
use super::{Config, environment, presets};
use crate::cli::ConfigPaths;

/// The files that are looked for if none is named: in the working folder, and where packages install it.
const DEFAULT_FILES: [&str; 2] = ["switchboard.toml", "/etc/switchboard/switchboard.toml"];

/// Reads the configuration. The error names everything that is wrong.
pub(crate) fn load(paths: &ConfigPaths) -> anyhow::Result<Config> {
    let named = paths.config.as_deref();
    let file = match named.or_else(|| first_that_exists(&DEFAULT_FILES)) {
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| {
                format!(
                    "cannot read {}; run this as root or as the user of the service, or name another file with --config",
                    path.display()
                )
            })?;
            Some((path, text))
        }
        None => None,
    };
    let file = file.as_ref().map(|(path, text)| (*path, text.as_str()));
    let mut config = parse(file, std::env::vars())?;
    if let Some(folder) = &paths.data_dir {
        config.data_dir.clone_from(folder);
    }
    Ok(config)
}

/// Reads the settings of one carrier as a file has them: alone, or as a `[[carrier]]`.
pub(crate) fn read_carrier(path: &Path, text: &str) -> anyhow::Result<(Table, Places)> {
    let (mut table, places) = parse_file(path, text)?;
    match table.remove("carrier") {
        None => Ok((table, places)),
        Some(Value::Array(mut carriers)) if carriers.len() == 1 && table.is_empty() => {
            match carriers.remove(0) {
                Value::Table(carrier) => Ok((carrier, places.of_item("carrier.1"))),
                _ => bail!("[[carrier]] must be a table"),
            }
        }
        Some(_) => bail!("give the settings of one carrier, and nothing else"),
    }
}

/// Reads carriers and routes that are stored in the database. Their secrets are the values themselves.
pub(crate) fn read_plan(
    carriers: Vec<Table>,
    routes: Vec<Table>,
    places: &Places,
) -> Result<(Vec<Carrier>, Vec<Route>), Problems> {
    let list = |tables: Vec<Table>| Value::Array(tables.into_iter().map(Value::Table).collect());
    let mut table = Table::from_iter([
        ("carrier".to_owned(), list(carriers)),
        ("route".to_owned(), list(routes)),
    ]);
    let mut problems = Problems::default();
    for mistake in presets::apply(&mut table) {
        problems.add_mistake(places, &mistake);
    }
    let config = read_values(table, &HashMap::new(), places, &mut problems);
    problems.into_result()?;
    Ok((config.carriers, config.routes))
}

/// Finds what is wrong with stored carriers and routes, beside the carriers of the file and those of other nodes.
pub(crate) fn check_plan(
    all: &[Carrier],
    routes: &[Route],
    named: &[NamedCarrier],
    places: &Places,
) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let mut mistakes = carriers::find_mistakes(all, &[]);
    let elsewhere = named.iter().map(|named| KnownCarrier {
        name: &named.name,
        has_costs: true,
    });
    let known: Vec<KnownCarrier<'_>> = all
        .iter()
        .map(KnownCarrier::from)
        .chain(elsewhere)
        .collect();
    mistakes.extend(
        routes
            .iter()
            .filter_map(|route| route.rule(&known).err())
            .map(Mistake::from),
    );
    for mistake in &mistakes {
        problems.add_mistake(places, mistake);
    }
    problems.into_result()
}

fn first_that_exists<'a>(files: &[&'a str]) -> Option<&'a Path> {
    let mut paths = files.iter().map(|file| Path::new(*file));
    paths.find(|path| path.exists())
}

fn parse(
    file: Option<(&Path, &str)>,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<Config, Problems> {
    let (mut table, mut places) = match file {
        Some((path, text)) => parse_file(path, text)?,
        None => (Table::new(), Places::default()),
    };
    let mut problems = Problems::default();
    let (texts, unfitting) = environment::apply(&mut table, &mut places, variables);
    for error in unfitting {
        problems.add_mistake(&places, &error.into());
    }
    for mistake in presets::apply(&mut table) {
        problems.add_mistake(&places, &mistake);
    }
    let mut config = read_values(table, &texts, &places, &mut problems);
    for mistake in config.resolve_secrets() {
        problems.add_mistake(&places, &mistake);
    }
    for mistake in config.find_mistakes() {
        problems.add_mistake(&places, &mistake);
    }
    problems.into_result()?;
    Ok(config)
}

fn parse_file(path: &Path, text: &str) -> Result<(Table, Places), Problems> {
    let (spans, errors) = DeTable::parse_recoverable(text);
    let mut problems = Problems::default();
    for error in &errors {
        problems.add_syntax(path, text, error);
    }
    let table = text.parse().unwrap_or_else(|error| {
        if errors.is_empty() {
            problems.add_syntax(path, text, &error);
        }
        Table::new()
    });
    problems.into_result()?;
    Ok((table, Places::from_file(path, text, spans.get_ref())))
}

/// Reads the configuration from a table. What cannot be read is a problem and is left out.
fn read_values(
    table: Table,
    texts: &HashMap<String, String>,
    places: &Places,
    problems: &mut Problems,
) -> Config {
    let mut root = Value::Table(table);
    let mut found = HashSet::new();
    loop {
        if let Ok(config) = read(&root) {
            return config;
        }
        let Some((path, error)) = find_unreadable(&root) else {
            return Config::default();
        };
        let key = path
            .iter()
            .fold(String::new(), |key, part| join(&key, part));
        // A variable that looks like a number may be meant as a text.
        let text = texts.get(&key).map(|text| Value::String(text.clone()));
        let text = text.filter(|text| get(&root, &path) != Some(text));
        if text.is_none() {
            problems.add_value(places, &key, &error);
            if !found.insert(key) {
                return Config::default();
            }
        }
        replace(&mut root, &path, text);
    }
}

fn read(root: &Value) -> Result<Config, String> {
    let config = root.clone().try_into::<Config>();
    config.map_err(|error| error.message().to_owned())
}

/// The path to a value that cannot be read, and the error.
fn find_unreadable(root: &Value) -> Option<(Vec<String>, String)> {
    let sections = root.as_table().into_iter().flatten();
    let mut sections = sections.flat_map(|(section, value)| match value {
        Value::Array(items) if items.iter().all(Value::is_table) => {
            let item = |(index, item): (usize, &Value)| {
                (section, Some(index), Value::Array(vec![item.clone()]))
            };
            items.iter().enumerate().map(item).collect()
        }
        value => vec![(section, None, value.clone())],
    });
    let (index, root, mut path, error) = sections.find_map(|(section, index, value)| {
        let root = Value::Table(Table::from_iter([(section.clone(), value)]));
        let error = read(&root).err()?;
        let first = index.map(|_| "1".to_owned());
        let path: Vec<String> = [section.clone()].into_iter().chain(first).collect();
        Some((index, root, path, error))
    })?;
    while let Some(key) = find_cause(&root, &path, &error) {
        path.push(key);
    }
    if let Some(index) = index {
        path[1] = (index + 1).to_string();
    }
    Some((path, error))
}

/// The key of the table at this path that causes the error: without it there is none, or another one.
fn find_cause(root: &Value, path: &[String], error: &str) -> Option<String> {
    // All keys that it has may be right.
    if error.starts_with("missing field") {
        return None;
    }
    let keys = get(root, path)?.as_table()?.keys();
    let is_cause = |key: &&String| {
        // Without its kind, nothing else of a carrier is read.
        if *key == "kind" && !error.starts_with("unknown variant") {
            return false;
        }
        let mut without = root.clone();
        let path: Vec<String> = path.iter().chain([*key]).cloned().collect();
        replace(&mut without, &path, None);
        read(&without).err().as_deref() != Some(error)
    };
    keys.into_iter().find(is_cause).cloned()
}

fn get<'a>(root: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(root, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?.checked_sub(1)?),
        value => value.get(key.as_str()),
    })
}

/// Replaces a value, or removes it. An item that is removed from a list leaves an empty one, so that the others keep
/// their numbers.
fn replace(root: &mut Value, path: &[String], with: Option<Value>) {
    let Some((key, above)) = path.split_last() else {
        return;
    };
    let parent = above.iter().try_fold(root, |value, key| match value {
        Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?.checked_sub(1)?),
        value => value.get_mut(key.as_str()),
    });
    match (parent, with) {
        (Some(Value::Table(table)), Some(value)) => {
            table.insert(key.clone(), value);
        }
        (Some(Value::Table(table)), None) => {
            table.remove(key);
        }
        (Some(Value::Array(items)), with) => {
            let index = key.parse::<usize>().unwrap_or(0).wrapping_sub(1);
            if let Some(item) = items.get_mut(index) {
                *item = with.unwrap_or_else(|| empty_item(&path[0]));
            }
        }
        _ => {}
    }
}

/// An item of a list that can be read.
fn empty_item(list: &str) -> Value {
    let mut item = Table::new();
    if list == "carrier" {
        item.insert("kind".to_owned(), Value::String("simulator".to_owned()));
    }
    Value::Table(item)
}

#[cfg(test)]
mod tests;
