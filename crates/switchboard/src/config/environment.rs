//! Keys in the environment: `SWITCHBOARD_SECTION__KEY`, and `SWITCHBOARD_CARRIER__1__NAME` for the items of lists.

use std::collections::HashMap;

use anyhow::{Context as _, ensure};
use toml::{Table, Value};

use super::problems::{Places, join};

const PREFIX: &str = "SWITCHBOARD_";
/// Between the parts of a key.
const SEPARATOR: &str = "__";

/// Applies the environment variables that are keys, and returns their texts by key, and those that fit nothing. Other
/// variables with the prefix are ignored.
pub(super) fn apply(
    table: &mut Table,
    places: &mut Places,
    variables: impl Iterator<Item = (String, String)>,
) -> (HashMap<String, String>, Vec<anyhow::Error>) {
    let (mut texts, mut errors) = (HashMap::new(), Vec::new());
    let key = |(name, text): (String, String)| {
        let key = name.strip_prefix(PREFIX)?.to_ascii_lowercase();
        let is_key = key.contains(SEPARATOR) || key == "data_dir";
        is_key.then_some((key, name, text))
    };
    let mut variables: Vec<(String, String, String)> = variables.filter_map(key).collect();
    // The items of a list are set one after the other.
    variables.sort_by_cached_key(|(key, ..)| {
        let number = |part: &str| (part.parse::<usize>().unwrap_or(0), part.to_owned());
        key.split(SEPARATOR).map(number).collect::<Vec<_>>()
    });
    for (key, name, text) in variables {
        let path: Vec<&str> = key.split(SEPARATOR).collect();
        if let Err(error) = set(table, &path, parse_value(&text)) {
            errors.push(error.context(name));
            continue;
        }
        let mut key = String::new();
        for part in path {
            key = join(&key, part);
            places.set_by_variable(&key, &name);
        }
        texts.insert(key, text);
    }
    (texts, errors)
}

fn set(table: &mut Table, path: &[&str], value: Value) -> anyhow::Result<()> {
    let (key, rest) = path.split_first().context("it names no key")?;
    ensure!(!key.is_empty(), "a part of the key is missing");
    let (next, after) = match rest {
        [] => {
            table.insert((*key).to_owned(), value);
            return Ok(());
        }
        [next, after @ ..] => (next, after),
    };
    let Ok(number) = next.parse::<usize>() else {
        let entry = table.entry(*key).or_insert_with(|| Table::new().into());
        let inner = entry.as_table_mut();
        let inner = inner.with_context(|| format!("{key} does not name a section"))?;
        return set(inner, rest, value);
    };
    let entry = table
        .entry(*key)
        .or_insert_with(|| Vec::<Value>::new().into());
    let items = entry.as_array_mut();
    let items = items.with_context(|| format!("{key} is not a list"))?;
    ensure!(
        (1..=items.len() + 1).contains(&number),
        "there is no {key} {number}; the next one is {}",
        items.len() + 1
    );
    if number > items.len() {
        items.push(Table::new().into());
    }
    let item = &mut items[number - 1];
    if after.is_empty() {
        *item = value;
        return Ok(());
    }
    let item = item.as_table_mut();
    let item = item.with_context(|| format!("{key} {number} has no keys"))?;
    set(item, after, value)
}

/// `true`, numbers, `["lists"]` and `{ tables = 1 }` are parsed as such, everything else is a string.
fn parse_value(text: &str) -> Value {
    let parsed = format!("value = {text}")
        .parse::<Table>()
        .ok()
        .filter(|table| table.len() == 1)
        .and_then(|mut table| table.remove("value"));
    match parsed {
        Some(
            value @ (Value::Boolean(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Array(_)
            | Value::Table(_)),
        ) => value,
        _ => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table after these variables.
    fn table(file: &str, variables: &[(&str, &str)]) -> anyhow::Result<Table> {
        let mut table: Table = file.parse()?;
        let variables = variables
            .iter()
            .map(|(name, text)| (name.to_string(), text.to_string()));
        let (_, errors) = apply(&mut table, &mut Places::default(), variables);
        errors.into_iter().next().map_or(Ok(table), Err)
    }

    #[test]
    fn a_variable_sets_a_key() {
        for (file, variables, expected) in [
            (
                "",
                &[("SWITCHBOARD_SERVER__LISTEN", "[::1]:9000")][..],
                "server.listen = '[::1]:9000'",
            ),
            (
                "limits.in_flight = 1",
                &[("SWITCHBOARD_LIMITS__IN_FLIGHT", "12")],
                "limits.in_flight = 12",
            ),
            (
                "",
                &[("SWITCHBOARD_AUTH__TRUSTED_PROXIES", "['10.0.0.0/8']")],
                "auth.trusted_proxies = ['10.0.0.0/8']",
            ),
            (
                "",
                &[("SWITCHBOARD_DATA_DIR", "elsewhere")],
                "data_dir = 'elsewhere'",
            ),
            ("", &[("SWITCHBOARD_UNRELATED", "x"), ("PATH", "x")], ""),
            (
                "",
                &[
                    ("SWITCHBOARD_CARRIER__2__NAME", "beta"),
                    ("SWITCHBOARD_CARRIER__1__NAME", "alpha"),
                    ("SWITCHBOARD_CARRIER__1__TLS", "true"),
                ],
                "carrier = [{ name = 'alpha', tls = true }, { name = 'beta' }]",
            ),
            (
                "carrier = [{ name = 'alpha', window = 5 }]",
                &[
                    ("SWITCHBOARD_CARRIER__1__WINDOW", "7"),
                    ("SWITCHBOARD_CARRIER__2__NAME", "beta"),
                ],
                "carrier = [{ name = 'alpha', window = 7 }, { name = 'beta' }]",
            ),
            (
                "",
                &[(
                    "SWITCHBOARD_ROUTE__1",
                    "{ prefix = '371', carriers = ['a'] }",
                )],
                "route = [{ prefix = '371', carriers = ['a'] }]",
            ),
        ] {
            let expected: Table = expected.parse().expect("TOML");
            let set = table(file, variables).expect("set");
            assert_eq!(set, expected, "{variables:?}");
        }
        let routes: Vec<(String, String)> = (1..=12)
            .map(|n| (format!("SWITCHBOARD_ROUTE__{n}__PREFIX"), n.to_string()))
            .collect();
        let routes: Vec<(&str, &str)> = routes
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str()))
            .collect();
        let set = table("", &routes).expect("set");
        assert_eq!(set["route"].as_array().map(Vec::len), Some(12));
    }

    #[test]
    fn a_variable_that_fits_nothing_is_an_error() {
        for (name, expected) in [
            (
                "SWITCHBOARD_CARRIER__3__NAME",
                "there is no carrier 3; the next one is 1",
            ),
            ("SWITCHBOARD_CARRIER__0__NAME", "there is no carrier 0"),
            ("SWITCHBOARD_SERVER__", "a part of the key is missing"),
            (
                "SWITCHBOARD_DATA_DIR__X",
                "data_dir does not name a section",
            ),
        ] {
            let error = table("data_dir = 'data'", &[(name, "x")]).expect_err(name);
            let error = format!("{error:#}");
            assert!(error.contains(expected) && error.contains(name), "{error}");
        }
    }
}
