//! The rules of routing: published by one node, followed by all.
//!
//! Each node has `[[route]]` in its own file, and files differ while they are being changed. So the rules in force are
//! kept in the database: whoever is told to (SIGHUP), or starts with a newer file, publishes its own.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use domain::Channel;
use domain::ports::{CatalogueKind, Store};
use engine::Engine;
use engine::catalogue::ImportError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::cli::ConfigPaths;
use crate::config::routes::Route;
use crate::config::{self, Config};

/// How often others may publish in the same moment.
const TRIES: usize = 5;

/// Rules, with what other nodes have to know to follow them. No carrier's password is ever in it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Published {
    /// When the file was changed that they come from, in microseconds since 1970.
    modified_us: i64,
    /// The carriers that they name.
    pub(crate) carriers: Vec<Named>,
    /// The rules.
    pub(crate) routes: Vec<Route>,
}

/// A carrier that rules name: some nodes may not have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) name: String,
    channels: Vec<String>,
}

impl Named {
    /// What it can carry, as far as this version knows.
    pub(crate) fn channels(&self) -> Vec<Channel> {
        let known = self.channels.iter().map(|name| name.parse().ok());
        known.flatten().collect()
    }
}

impl Published {
    /// What the file of this node says.
    pub(crate) fn of(config: &Config, place: &ConfigPaths) -> Self {
        let is_named = |name: &str| {
            let mut named = config.routes.iter().flat_map(|route| &route.carriers);
            named.any(|other| other == name)
        };
        let carriers = config.carriers();
        let named = carriers.iter().filter(|carrier| is_named(carrier.name()));
        Self {
            modified_us: config::modified_at(place).map_or(0, Timestamp::as_microsecond),
            carriers: named
                .map(|carrier| Named {
                    name: carrier.name().to_owned(),
                    channels: carrier.channels().iter().map(ToString::to_string).collect(),
                })
                .collect(),
            routes: config.routes.clone(),
        }
    }

    fn says_the_same(&self, other: &Self) -> bool {
        self.routes == other.routes && self.carriers == other.carriers
    }
}

/// Which rules a node starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Those of its file.
    Own,
    /// Those of its file, and it publishes them.
    Publish,
    /// Those that are published.
    Follow,
}

/// A file without any rule says nothing while other nodes run: it may be that of a node which only answers.
fn start(published: Option<&Published>, own: &Published, others_run: bool) -> Start {
    let has_rules = !own.routes.is_empty();
    match published {
        None if has_rules => Start::Publish,
        None => Start::Own,
        Some(published) if own.says_the_same(published) => Start::Follow,
        Some(published) if own.modified_us <= published.modified_us => Start::Follow,
        Some(_) if has_rules || !others_run => Start::Publish,
        Some(_) => Start::Follow,
    }
}

/// The rules that this node goes by.
pub(crate) struct Rules {
    engine: Arc<Engine>,
    in_force: Published,
    /// The version that was published of them; 0 where none was.
    version: u32,
}

impl Rules {
    /// Finds out which rules to start with. Those that are to be published are so by [`Self::publish`], once they are
    /// known to work here.
    pub(crate) async fn find(
        engine: Arc<Engine>,
        store: &dyn Store,
        own: Published,
    ) -> anyhow::Result<(Self, bool)> {
        let mut rules = Self {
            engine,
            in_force: own.clone(),
            version: 0,
        };
        let published = match rules.read().await {
            Ok(published) => published,
            Err(error) => {
                tracing::error!(
                    error = format!("{error:#}"),
                    "this node goes by the rules of its own file"
                );
                return Ok((rules, false));
            }
        };
        let this = rules.engine.node();
        let nodes = store.list_nodes().await?;
        let others_run = nodes.iter().any(|node| node.node != this && !node.is_dead);
        let (version, published) = published.unzip();
        rules.version = version.unwrap_or(0);
        let start = start(published.as_ref(), &own, others_run);
        if let Some(published) = published
            && start == Start::Follow
        {
            if !published.says_the_same(&own) {
                tracing::warn!(
                    version,
                    "the rules in force are others than those of this node's file, and are followed; SIGHUP publishes the file's"
                );
            }
            rules.in_force = published;
        }
        Ok((rules, start == Start::Publish))
    }

    /// The rules that this node goes by.
    pub(crate) fn in_force(&self) -> &Published {
        &self.in_force
    }

    /// Makes all nodes go by these.
    pub(crate) async fn publish(&mut self, mut own: Published) -> anyhow::Result<()> {
        for _ in 0..TRIES {
            self.engine.catalogues.look_again().await?;
            if let Ok(Some((version, published))) = self.read().await {
                self.version = version;
                if published.says_the_same(&own) {
                    self.in_force = published;
                    return Ok(());
                }
                // So that a node that starts with a file from before does not undo this.
                own.modified_us = own.modified_us.max(published.modified_us);
            }
            let previous = self.newest();
            let content = serde_json::to_string(&own).context("rules cannot be written")?;
            let rows = u32::try_from(own.routes.len()).unwrap_or(u32::MAX);
            let catalogues = &self.engine.catalogues;
            match catalogues.publish_routes(previous, &content, rows).await {
                Ok(version) => {
                    tracing::info!(version, rules = rows, "published the rules for all nodes");
                    (self.version, self.in_force) = (version, own);
                    return Ok(());
                }
                Err(ImportError::Overtaken) => {}
                Err(error) => return Err(error.into()),
            }
        }
        bail!("other nodes publish rules all the time")
    }

    /// The rules that another node has published since; `None` when there are none.
    pub(crate) async fn look(&self) -> anyhow::Result<Option<(u32, Published)>> {
        let found = self.read().await?;
        Ok(found.filter(|(version, _)| *version != self.version))
    }

    /// Goes by what was published from now on.
    pub(crate) fn follow(&mut self, version: u32, published: Published) {
        (self.version, self.in_force) = (version, published);
    }

    fn newest(&self) -> u32 {
        self.engine.catalogues.live().version(CatalogueKind::Routes)
    }

    async fn read(&self) -> anyhow::Result<Option<(u32, Published)>> {
        let version = self.newest();
        let content = self
            .engine
            .catalogues
            .version(CatalogueKind::Routes, version);
        let Some(content) = content.await? else {
            return Ok(None);
        };
        let published = serde_json::from_str(&content).with_context(|| {
            format!("version {version} of the published rules cannot be read by this program")
        })?;
        Ok(Some((version, published)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(modified_us: i64, carriers: &[&str]) -> Published {
        let route = |name: &&str| Route {
            carriers: vec![(*name).to_owned()],
            ..Route::default()
        };
        Published {
            modified_us,
            carriers: Vec::new(),
            routes: carriers.iter().map(route).collect(),
        }
    }

    #[test]
    fn the_newer_file_counts_at_start() {
        let published = rules(10, &["a"]);
        for (case, published, own, others_run, expected) in [
            ("nothing at all", None, rules(5, &[]), false, Start::Own),
            ("the first", None, rules(5, &["a"]), true, Start::Publish),
            (
                "the same",
                Some(&published),
                rules(20, &["a"]),
                true,
                Start::Follow,
            ),
            (
                "newer",
                Some(&published),
                rules(20, &["b"]),
                true,
                Start::Publish,
            ),
            (
                "older",
                Some(&published),
                rules(5, &["b"]),
                true,
                Start::Follow,
            ),
            (
                "as old",
                Some(&published),
                rules(10, &["b"]),
                true,
                Start::Follow,
            ),
            (
                "no file",
                Some(&published),
                rules(0, &[]),
                false,
                Start::Follow,
            ),
            (
                "newer, without rules",
                Some(&published),
                rules(20, &[]),
                true,
                Start::Follow,
            ),
            (
                "newer, without rules, alone",
                Some(&published),
                rules(20, &[]),
                false,
                Start::Publish,
            ),
        ] {
            assert_eq!(start(published, &own, others_run), expected, "{case}");
        }
    }
}
