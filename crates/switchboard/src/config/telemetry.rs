//! `[metrics]`, `[log]` and `[traces]`.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use axum::http::HeaderValue;
use serde::{Deserialize, Serialize};
use tracing_subscriber::filter::{LevelFilter, Targets};
use url::Url;

use super::Secret;

/// A shorter token could be guessed.
const MIN_METRICS_TOKEN_BYTES: usize = 16;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Metrics {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) token: Option<Secret>,
    /// Whether accounts have metrics of their own.
    pub(crate) accounts: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) level: String,
    pub(crate) format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl Log {
    /// Parses the level: `info`, or a list by target such as `info,access=debug`.
    pub(crate) fn targets(&self) -> anyhow::Result<Targets> {
        let mut targets = Targets::new();
        for part in self.level.split(',') {
            let (subject, name) = match part.split_once('=') {
                Some((subject, name)) => (Some(subject), name),
                None => (None, part),
            };
            let name: LevelFilter = name.trim().parse().ok().with_context(|| {
                format!("log.level '{}' is not understood; write error, warn, info, debug or trace, or info,access=debug", self.level)
            })?;
            targets = match subject {
                Some(subject) => targets.with_target(subject.trim(), name),
                None => targets.with_default(name),
            };
        }
        Ok(targets)
    }
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Auto,
        }
    }
}

/// Where spans of traced messages are sent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Traces {
    otlp_url: Option<String>,
    pub(super) authorization: Option<Secret>,
}

/// A collector of spans, and the header that it wants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Collector {
    pub(crate) base: Url,
    pub(crate) authorization: Option<HeaderValue>,
}

impl Traces {
    pub(crate) fn collector(&self) -> anyhow::Result<Option<Collector>> {
        let Some(url) = &self.otlp_url else {
            return Ok(None);
        };
        let base = Url::parse(url).ok();
        let base = base.filter(|url| matches!(url.scheme(), "http" | "https"));
        let base = base.filter(|url| url.query().is_none() && url.fragment().is_none());
        let base = base.context(
            "traces.otlp_url must be the base URL of a collector, such as http://collector.example:4318; /v1/traces is added",
        )?;
        let authorization = self.authorization.as_ref().map(|secret| {
            let mut value = HeaderValue::try_from(&secret.0)?;
            value.set_sensitive(true);
            anyhow::Ok(value)
        });
        let authorization = authorization.transpose().ok().context(
            "traces.authorization must be the value of a header, such as \"Bearer TOKEN\"",
        )?;
        Ok(Some(Collector {
            base,
            authorization,
        }))
    }
}

impl Metrics {
    /// Checks the settings; `listen` is the address of the main listener.
    pub(super) fn check(&self, listen: SocketAddr) -> anyhow::Result<()> {
        if let Some(token) = &self.token {
            let is_token = token.0.len() >= MIN_METRICS_TOKEN_BYTES
                && token.0.bytes().all(|b| b.is_ascii_graphic());
            ensure!(
                is_token,
                "metrics.token must have at least {MIN_METRICS_TOKEN_BYTES} characters, none of them a space; openssl rand -hex 32 prints one"
            );
        }
        if let Some(metrics) = self.listen {
            let same = metrics == listen && metrics.port() != 0;
            ensure!(
                !same,
                "metrics.listen and server.listen are both {metrics}; give metrics a port of its own"
            );
        }
        Ok(())
    }
}
