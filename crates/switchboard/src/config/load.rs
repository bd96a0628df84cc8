//! The sources of the configuration: a file, then the environment, then flags.

use std::path::Path;

use anyhow::Context as _;
use jiff::Timestamp;
use toml::{Table, Value};

use super::Config;
use crate::cli::ConfigPaths;

/// The file that is read if none is named.
const DEFAULT_FILE: &str = "switchboard.toml";
/// Every key can also be set in the environment: `SWITCHBOARD_SECTION__KEY`.
const ENV_PREFIX: &str = "SWITCHBOARD_";

pub(crate) fn load(paths: &ConfigPaths) -> anyhow::Result<Config> {
    let mut table = read_file(paths.config.as_deref())?;
    for (name, value) in std::env::vars() {
        set_from_env(&mut table, &name, &value)?;
    }
    let mut config: Config = table.try_into().context("the configuration is not valid")?;
    if let Some(folder) = &paths.data_dir {
        config.data_dir.clone_from(folder);
    }
    config.resolve_secrets()?;
    config.check()?;
    Ok(config)
}

/// When the configuration file was last modified; `None` if there is no file.
pub(crate) fn modified_at(paths: &ConfigPaths) -> Option<Timestamp> {
    let path = file(paths.config.as_deref())?;
    let modified = std::fs::metadata(path).and_then(|file| file.modified());
    modified
        .ok()
        .and_then(|time| Timestamp::try_from(time).ok())
}

fn file(named: Option<&Path>) -> Option<&Path> {
    let default = || Some(Path::new(DEFAULT_FILE)).filter(|path| path.exists());
    named.or_else(default)
}

fn read_file(named: Option<&Path>) -> anyhow::Result<Table> {
    let Some(path) = file(named) else {
        return Ok(Table::new());
    };
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse()
        .with_context(|| format!("{} is not valid TOML", path.display()))
}

/// Applies one environment variable if it is a key. Other variables with the prefix are ignored.
fn set_from_env(table: &mut Table, name: &str, value: &str) -> anyhow::Result<()> {
    let Some(key) = name.strip_prefix(ENV_PREFIX) else {
        return Ok(());
    };
    let key = key.to_ascii_lowercase();
    match key.split_once("__") {
        Some((section, key)) => {
            let section = table.entry(section).or_insert_with(|| Table::new().into());
            let section = section
                .as_table_mut()
                .with_context(|| format!("{name} does not name a section"))?;
            section.insert(key.to_owned(), parse_value(value));
        }
        None if key == "data_dir" => {
            table.insert(key, Value::String(value.to_owned()));
        }
        None => {}
    }
    Ok(())
}

/// `true`, numbers and `["lists"]` are parsed as such, everything else is a string.
fn parse_value(text: &str) -> Value {
    let parsed = format!("value = {text}")
        .parse::<Table>()
        .ok()
        .and_then(|mut table| table.remove("value"));
    match parsed {
        Some(value @ (Value::Boolean(_) | Value::Integer(_) | Value::Array(_))) => value,
        _ => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_config(text: &str, env: &[(&str, &str)]) -> anyhow::Result<Config> {
        let mut table: Table = text.parse()?;
        for (name, value) in env {
            set_from_env(&mut table, name, value)?;
        }
        let mut config: Config = table.try_into()?;
        config.resolve_secrets()?;
        config.check()?;
        Ok(config)
    }

    #[test]
    fn the_example_file_has_the_defaults() {
        let example = include_str!("../../../../switchboard.example.toml");
        assert_eq!(
            parse_config(example, &[]).expect("valid"),
            Config::default()
        );
        // Keys without a default are comments there; if set, they must be known.
        let keys = example
            .lines()
            .filter_map(|line| line.strip_prefix("# "))
            .filter(|line| line.contains(" = "));
        assert!(keys.count() >= 5, "optional keys are shown as comments");
    }

    /// The keys without a default, so that the table has every key.
    const OPTIONAL_KEYS: &str = "
        tls = { cert = 'cert.pem', key = 'key.pem' }
        database = { url = 'sqlite:x.db' }
        security = { key = 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0MTI=' }
        urls = { base = 'http://x', mcp = 'http://x', auth = 'http://x', dashboard = 'http://x' }
        limits = { connections_per_address = 9 }
        metrics = { listen = '127.0.0.1:9' }
        callbacks = { allow = [], park_after_days = 7 }
        simulator = { journal = 'journal.log' }
        [[carrier]]
        kind = 'simulator'
        costs = 'costs.csv'
        [[carrier]]
        kind = 'smpp'
        name = 'alpha'
        address = 'smsc:2775'
        tls = true
        tls_ca = 'ca.pem'
        tls_name = 'smsc'
        system_id = 'user'
        password = 'secret'
        max_per_second = 9
        source = '192.0.2.1'
        source_ton = 5
        source_npi = 0
        dest_ton = 1
        dest_npi = 1
        costs = 'costs.csv'
        [[carrier]]
        kind = 'upstream'
        name = 'gamma'
        url = 'https://x'
        token = 'secret'
        report_url = 'https://y'
        max_per_second = 9
        costs = 'costs.csv'
        [[route]]
        carriers = ['alpha']
    ";

    #[test]
    fn every_key_is_in_the_example_and_in_the_documentation() {
        let example = include_str!("../../../../switchboard.example.toml");
        let page = include_str!("../../../../docs/CONFIGURATION.md");
        let full = parse_config(OPTIONAL_KEYS, &[]).expect("valid");
        let table = Table::try_from(&full).expect("a table");
        for (section, value) in &table {
            let tables = value.as_array().into_iter().flatten();
            let tables: Vec<&Table> = tables.chain([value]).filter_map(Value::as_table).collect();
            if tables.is_empty() {
                assert!(
                    example.contains(&format!("{section} = ")),
                    "{section} is missing in the example"
                );
                assert!(
                    page.contains(&format!("`{section}`")),
                    "{section} is missing in CONFIGURATION.md"
                );
                continue;
            }
            for key in tables.into_iter().flat_map(Table::keys) {
                assert!(
                    example.contains(&format!("{key} = ")),
                    "{section}.{key} is missing in the example"
                );
                let documented = format!("`{section}.{key}`");
                assert!(
                    page.contains(&documented),
                    "{documented} is missing in CONFIGURATION.md"
                );
            }
        }
    }

    #[test]
    fn the_environment_overrides_the_file() {
        let config = parse_config(
            "[server]\nlisten = '127.0.0.1:1'\n",
            &[
                ("SWITCHBOARD_SERVER__LISTEN", "[::1]:9000"),
                ("SWITCHBOARD_AUTH__QUERY_TOKEN", "true"),
                ("SWITCHBOARD_AUTH__TRUSTED_PROXIES", "['10.0.0.0/8']"),
                ("SWITCHBOARD_LIMITS__IN_FLIGHT", "12"),
                ("SWITCHBOARD_DATA_DIR", "elsewhere"),
                ("SWITCHBOARD_UNRELATED", "ignored"),
                ("PATH", "ignored"),
            ],
        )
        .expect("valid");
        assert_eq!(config.server.listen.to_string(), "[::1]:9000");
        assert!(config.auth.query_token);
        assert_eq!(config.auth.trusted_proxies.len(), 1);
        assert_eq!(config.limits.in_flight, 12);
        assert_eq!(config.data_dir, Path::new("elsewhere"));
    }

    fn check_refused(text: &str, reason: &str) {
        let error = format!("{:#}", parse_config(text, &[]).expect_err(text));
        assert!(error.contains(reason), "{text}: {error}");
    }

    #[test]
    fn errors_say_what_contradicts() {
        for (text, reason) in [
            ("[server]\nport = 1", "unknown field `port`"),
            ("[tls]\ncert = 'a'", "tls.key is not"),
            ("[database]\nurl = 'mysql://x'", "database.url"),
            ("[server]\nheader_prefix = 'a b'", "header_prefix"),
            (
                "[server]\nlisten = '127.0.0.1:80'\n[metrics]\nlisten = '127.0.0.1:80'",
                "a port of its own",
            ),
            ("[urls]\nauth = 'ftp://x'", "urls.auth"),
            ("[oauth]\ncode_seconds = 0", "oauth.code_seconds is 0"),
            ("[oauth]\naccess_seconds = 86401", "give 1 to 86400"),
            ("[oauth]\nrefresh_days = 366", "oauth.refresh_days is 366"),
            ("[oauth]\ngrant_days = 0", "oauth.grant_days is 0"),
            ("[limits]\nin_flight = 0", "limits.in_flight is 0"),
            ("[limits]\nin_flight = -1", "in_flight"),
            ("[limits]\nconnections_per_address = 0", "per_address is 0"),
            ("[limits]\nwrite_seconds = 0", "limits.write_seconds is 0"),
            ("[billing]\ncurrency = 'Euro'", "ISO 4217"),
            ("[urls]\nbase = 'ftp://x'", "urls.base"),
            ("[senders]\npin_from = 'A@B'", "senders.pin_from"),
            ("[log]\nlevel = 'loud,'", "log.level"),
            ("[[carrier]]\nkind = 'pigeon'", "pigeon"),
            (
                "[[carrier]]\nkind = 'simulator'\nspeed = 1",
                "unknown field `speed`",
            ),
            (
                "[[carrier]]\nkind = 'simulator'\nname = 'x'",
                "always named simulator",
            ),
            (
                "[[carrier]]\nkind = 'smpp'\nname = 'a b'",
                "carrier.name 'a b'",
            ),
            (
                "[[carrier]]\nkind = 'smpp'\nname = 'a'\naddress = 'smsc'",
                "a host and a port",
            ),
            (
                "[[carrier]]\nkind = 'smpp'\nname = 'a'\naddress = 'smsc:1'",
                "system_id is not set",
            ),
            (
                "[[carrier]]\nkind = 'smpp'\nname = 'a'\naddress = 'x:1'\nsystem_id = 'u'\nwindow = 0",
                "window is 0",
            ),
            (
                "[[carrier]]\nkind = 'smpp'\nname = 'a'\naddress = 'x:1'\nsystem_id = 'u'\nmax_per_second = 0",
                "max_per_second is 0",
            ),
            (
                "[[carrier]]\nkind = 'upstream'\nname = 'a'\nurl = 'http://u:p@x'\ntoken = 't'",
                "must hold no user",
            ),
            (
                "[[carrier]]\nkind = 'simulator'\n[[carrier]]\nkind = 'simulator'",
                "two carriers",
            ),
        ] {
            check_refused(text, reason);
        }
    }

    #[test]
    fn errors_say_what_is_wrong_with_a_route() {
        for (text, reason) in [
            ("[[route]]\nprefix = '371'", "route.carriers is empty"),
            (
                "[[route]]\ncarriers = ['beta']",
                "there is no carrier 'beta'; there are: simulator",
            ),
            (
                "[[route]]\ncarriers = ['simulator', 'simulator']",
                "a carrier twice",
            ),
            (
                "[[route]]\ncarriers = ['simulator']\nprefix = '+37a'",
                "route.prefix",
            ),
            (
                "[[route]]\ncarriers = ['simulator']\ncountry = 'Latvia'",
                "route.country",
            ),
            (
                "[[route]]\ncarriers = ['simulator']\nnetwork = '24'",
                "route.network",
            ),
            (
                "[[route]]\ncarriers = ['simulator']\nchannel = 'fax'",
                "route.channel",
            ),
            (
                "[[route]]\ncarriers = ['simulator']\nby = 'share'",
                "0 numbers for 1 carriers",
            ),
            (
                "[[route]]\ncarriers = ['simulator']\nweights = [1]",
                "counts only with",
            ),
            (
                "[[route]]\ncarriers = ['simulator']\nby = 'cost'",
                "has a cost list",
            ),
        ] {
            check_refused(text, reason);
        }
    }

    #[test]
    fn errors_name_the_unusable_secret() {
        for (text, reason) in [
            (
                "[security]\nkey = 'short'",
                "security.key: a key must be 32",
            ),
            (
                "[security]\nformer_keys = ['x']",
                "security.former_keys: a key",
            ),
            (
                "[[carrier]]\nkind = 'smpp'\nname = 'a'\npassword = 'env:NO_SUCH_VARIABLE'",
                "carrier 'a': password is env:NO_SUCH_VARIABLE",
            ),
            (
                "[[carrier]]\nkind = 'upstream'\nname = 'a'\nurl = 'http://x'\ntoken = 'file:/no/such'",
                "carrier 'a': token is file:/no/such",
            ),
            (
                "[database]\nurl = 'env:NO_SUCH_VARIABLE'",
                "database.url is env:",
            ),
        ] {
            check_refused(text, reason);
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let config =
            parse_config("[database]\nurl = 'postgres://me:hunter2@db/x'", &[]).expect("valid");
        let shown = format!("{}{config:?}", toml::to_string(&config).expect("a table"));
        assert!(
            shown.contains("db") && !shown.contains("hunter2"),
            "{shown}"
        );
        let config = parse_config(OPTIONAL_KEYS, &[]).expect("valid");
        let shown = format!("{}{config:?}", toml::to_string(&config).expect("a table"));
        assert!(shown.contains("alpha"), "{shown}");
        for secret in ["secret", "c2VjcmV0"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
