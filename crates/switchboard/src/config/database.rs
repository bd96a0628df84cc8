//! `[database]` and `[security]`: the database and the keys that encrypt secrets in it.

use anyhow::{Context as _, ensure};
use domain::ServiceKey;
use serde::{Deserialize, Serialize};
use store::DatabaseUrl;

use super::Secret;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Database {
    #[serde(serialize_with = "hide_password")]
    pub(crate) url: Option<Secret>,
    pub(crate) connections: usize,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Security {
    pub(crate) key: Option<Secret>,
    pub(crate) former_keys: Vec<Secret>,
}

impl Default for Database {
    fn default() -> Self {
        Self {
            url: None,
            connections: 8,
        }
    }
}

impl Database {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        ensure!(
            self.connections > 0,
            "database.connections is 0; give at least 1"
        );
        Ok(())
    }
}

/// Parses keys, one per line.
pub(crate) fn parse_keys(text: &str) -> anyhow::Result<Vec<ServiceKey>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let keys = lines.map(|line| Ok(ServiceKey::parse(line)?));
    keys.collect()
}

impl Security {
    /// The configured key, if any, and the keys that only decrypt.
    pub(crate) fn keys(&self) -> anyhow::Result<(Option<ServiceKey>, Vec<ServiceKey>)> {
        let read = |secret: &Secret| parse_keys(&secret.0);
        let mut keys = Vec::new();
        if let Some(key) = &self.key {
            keys = read(key).context("security.key")?;
            ensure!(!keys.is_empty(), "security.key is empty");
        }
        let newest = (!keys.is_empty()).then(|| keys.remove(0));
        for key in &self.former_keys {
            keys.extend(read(key).context("security.former_keys")?);
        }
        Ok((newest, keys))
    }
}

/// `config check` shows the URL without its password.
#[expect(clippy::ref_option, reason = "the signature is serde's")]
fn hide_password<S: serde::Serializer>(
    url: &Option<Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let shown = url.as_ref().map(|url| {
        url.0
            .parse::<DatabaseUrl>()
            .map_or("(unreadable)".into(), |url| url.to_string())
    });
    shown.serialize(serializer)
}
