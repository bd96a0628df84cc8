//! `[oauth]`: the lifetimes of codes and tokens.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OAuth {
    pub(crate) code_seconds: u32,
    pub(crate) access_seconds: u32,
    pub(crate) refresh_days: u32,
    pub(crate) grant_days: u32,
}

impl Default for OAuth {
    fn default() -> Self {
        Self {
            code_seconds: 60,
            access_seconds: 3600,
            refresh_days: 30,
            grant_days: 180,
        }
    }
}

impl OAuth {
    pub(super) fn checks(&self) -> impl Iterator<Item = anyhow::Result<()>> + use<> {
        let values = [
            ("code_seconds", self.code_seconds, 600),
            ("access_seconds", self.access_seconds, 86_400),
            ("refresh_days", self.refresh_days, 365),
            ("grant_days", self.grant_days, 3650),
        ];
        values.into_iter().map(|(key, value, max)| {
            ensure!(
                (1..=max).contains(&value),
                "oauth.{key} is {value}; give 1 to {max}"
            );
            Ok(())
        })
    }
}
