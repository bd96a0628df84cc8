//! Settings of carriers and routes as they are typed: `KEY=VALUE`.

use anyhow::{Context as _, bail, ensure};
use toml::{Table, Value};

use super::secrets;
use crate::config::Secret;

/// Their values are always texts, even if they look like numbers.
const TEXTS: [&str; 10] = [
    "address",
    "base_url",
    "password",
    "proxy",
    "report_url",
    "system_id",
    "system_type",
    "service_type",
    "token",
    "url",
];
/// They name files, which other nodes do not have.
const FILES: [&str; 2] = ["costs", "tls_ca"];
/// Conditions and carriers of a route.
const LISTS: [&str; 6] = [
    "account", "carriers", "channel", "country", "network", "prefix",
];

/// Sets a setting of a carrier; a dot leads into a table.
pub(crate) fn set(carrier: &mut Table, typed: &str) -> anyhow::Result<()> {
    let (key, value) = split(typed)?;
    let (parent, last) = descend(carrier, key)?;
    let is_text = TEXTS.contains(&last) || key.starts_with("secret.");
    let read = if is_text { None } else { typed_value(value) };
    let value = read.unwrap_or_else(|| Value::String(value.to_owned()));
    parent.insert(last.to_owned(), value);
    Ok(())
}

/// Removes a setting of a carrier.
pub(crate) fn unset(carrier: &mut Table, key: &str) -> anyhow::Result<()> {
    let (parent, last) = descend(carrier, key)?;
    ensure!(parent.remove(last).is_some(), "{key} is not set");
    Ok(())
}

/// Refuses settings that other nodes cannot have.
pub(crate) fn refuse_files(carrier: &Table) -> anyhow::Result<()> {
    for key in FILES {
        ensure!(
            !carrier.contains_key(key),
            "{key} names a file, which other nodes do not have; configure this carrier in the file of each node instead"
        );
    }
    Ok(())
}

/// Reads the secrets that refer to the environment or a file of this machine.
pub(crate) fn resolve_secrets(carrier: &mut Table) -> anyhow::Result<()> {
    for (name, value) in secrets::take(carrier) {
        let Value::String(text) = value else {
            bail!("{name} must be a text");
        };
        let mut secret = Secret(text);
        secret.resolve(&name)?;
        secrets::put(carrier, &name, secret.0)?;
    }
    Ok(())
}

/// Reads a setting of a route.
pub(crate) fn route_setting(typed: &str) -> anyhow::Result<(String, Value)> {
    let (key, value) = split(typed)?;
    let parts = || {
        value
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
    };
    let value = if LISTS.contains(&key) {
        let texts = parts().map(|part| Value::String(part.to_owned()));
        Value::Array(texts.collect())
    } else if key == "weights" {
        let numbers = parts().map(|part| part.parse::<i64>().map(Value::Integer));
        let numbers: Result<Vec<Value>, _> = numbers.collect();
        let context = || format!("weights must be whole numbers, not '{value}'");
        Value::Array(numbers.with_context(context)?)
    } else {
        typed_value(value).unwrap_or_else(|| Value::String(value.to_owned()))
    };
    Ok((key.to_owned(), value))
}

fn split(typed: &str) -> anyhow::Result<(&str, &str)> {
    let pair = typed.split_once('=').filter(|(key, _)| !key.is_empty());
    pair.with_context(|| format!("'{}' is no KEY=VALUE", key_of(typed)))
}

/// What is typed may be a secret, so errors show only its key.
fn key_of(typed: &str) -> &str {
    typed.split_once('=').map_or("…", |(key, _)| key)
}

/// A number, a truth value, a list or a table, as the configuration file has it.
fn typed_value(value: &str) -> Option<Value> {
    let mut table: Table = format!("x = {value}").parse().ok()?;
    table.remove("x").filter(|_| table.is_empty())
}

/// The table that has a setting, and the last part of its key.
fn descend<'t, 'k>(table: &'t mut Table, key: &'k str) -> anyhow::Result<(&'t mut Table, &'k str)> {
    let (above, last) = match key.rsplit_once('.') {
        Some((above, last)) => (Some(above), last),
        None => (None, key),
    };
    let mut table = table;
    for part in above.into_iter().flat_map(|above| above.split('.')) {
        let inner = table
            .entry(part)
            .or_insert_with(|| Value::Table(Table::new()));
        table = inner
            .as_table_mut()
            .with_context(|| format!("{part} in {key} is not a table"))?;
    }
    Ok((table, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carrier(settings: &[&str]) -> anyhow::Result<Table> {
        let mut carrier = Table::new();
        for typed in settings {
            set(&mut carrier, typed)?;
        }
        refuse_files(&carrier)?;
        resolve_secrets(&mut carrier)?;
        Ok(carrier)
    }

    #[test]
    fn settings_have_the_types_of_the_file() {
        let set = carrier(&[
            "kind=smpp",
            "address=smsc.example:2775",
            "password=12345",
            "system_id=true",
            "window=20",
            "tls=true",
            "channels=[\"sms\", \"hlr\"]",
            "request.url=https://x.example/?a=b",
            "request.json.to={{ to }}",
            "secret.key=7",
        ]);
        let expected = "kind = 'smpp'\naddress = 'smsc.example:2775'\npassword = '12345'\nsystem_id = 'true'\n\
            window = 20\ntls = true\nchannels = ['sms', 'hlr']\nsecret = { key = '7' }\n\
            request = { url = 'https://x.example/?a=b', json = { to = '{{ to }}' } }";
        assert_eq!(set.expect("valid"), expected.parse().expect("TOML"));
        for (typed, fragment) in [
            ("password", "'…' is no KEY=VALUE"),
            ("=hunter2", "'' is no KEY=VALUE"),
            (
                "password=env:NO_SUCH_VARIABLE_HERE",
                "no environment variable",
            ),
            ("costs=costs.csv", "other nodes do not have"),
            ("window.a=1", ""),
        ] {
            let result = carrier(&[typed]).map(drop);
            match result {
                Err(error) => {
                    let error = format!("{error:#}");
                    assert!(
                        error.contains(fragment) && !error.contains("hunter2"),
                        "{error}"
                    );
                }
                Ok(()) => assert_eq!(fragment, "", "{typed}"),
            }
        }
    }

    #[test]
    fn settings_are_removed() {
        let mut table = carrier(&["window=20", "secret.key=x"]).expect("valid");
        unset(&mut table, "window").expect("it is set");
        unset(&mut table, "secret.key").expect("it is set");
        unset(&mut table, "window").expect_err("it is gone");
        assert_eq!(table, "secret = {}".parse().expect("TOML"));
    }

    #[test]
    fn lists_of_routes_are_separated_by_commas() {
        for (typed, expected) in [
            ("carriers=alpha, beta", "carriers = ['alpha', 'beta']"),
            ("network=24701", "network = ['24701']"),
            ("weights=3,1", "weights = [3, 1]"),
            ("by=share", "by = 'share'"),
            ("ported_numbers=true", "ported_numbers = true"),
        ] {
            let (key, value) = route_setting(typed).expect(typed);
            let expected: Table = expected.parse().expect("TOML");
            assert_eq!(Table::from_iter([(key, value)]), expected, "{typed}");
        }
        route_setting("weights=a").expect_err("no number");
    }
}
