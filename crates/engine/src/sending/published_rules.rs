//! Routing rules that one node publishes and all nodes follow.
//!
//! Each node has `[[route]]` in its own file, and files differ while they are being changed. The rules in force are
//! therefore stored in the database. A node publishes its own on SIGHUP, or when it starts with a newer file.

use std::sync::Arc;

use domain::ports::{CatalogueKind, OperationsStore, StoreError};
use domain::{Channel, NodeId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::catalogue::{Catalogues, ImportError};

/// How often other nodes may publish at the same moment.
const ATTEMPTS: usize = 5;

/// Rules with what other nodes need to follow them. `R` is a rule as the configuration has it. A carrier's password is
/// never among them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PublishedRules<R> {
    /// When the file with the rules was changed, in microseconds since 1970.
    pub modified_us: i64,
    /// The carriers that the rules name.
    pub carriers: Vec<NamedCarrier>,
    /// The rules.
    pub routes: Vec<R>,
}

/// A carrier that rules name; some nodes may not have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedCarrier {
    /// The name in the configuration.
    pub name: String,
    channels: Vec<String>,
}

impl NamedCarrier {
    /// Names a carrier.
    pub fn new(name: &str, channels: &[Channel]) -> Self {
        Self {
            name: name.to_owned(),
            channels: channels.iter().map(ToString::to_string).collect(),
        }
    }

    /// The channels that this version knows.
    pub fn channels(&self) -> Vec<Channel> {
        let known = self.channels.iter().map(|name| name.parse().ok());
        known.flatten().collect()
    }
}

impl<R: PartialEq> PublishedRules<R> {
    fn equals(&self, other: &Self) -> bool {
        self.routes == other.routes && self.carriers == other.carriers
    }
}

/// Which rules a node starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Those of its own file.
    Own,
    /// Those of its own file, which it publishes.
    Publish,
    /// Those that another node has published.
    Follow,
}

/// A file without rules does not replace published ones while other nodes run: it may belong to a node that only answers.
fn choose_start<R: PartialEq>(
    published: Option<&PublishedRules<R>>,
    own: &PublishedRules<R>,
    others_run: bool,
) -> Start {
    let has_rules = !own.routes.is_empty();
    match published {
        None if has_rules => Start::Publish,
        None => Start::Own,
        Some(published) if own.equals(published) => Start::Follow,
        Some(published) if own.modified_us <= published.modified_us => Start::Follow,
        Some(_) if has_rules || !others_run => Start::Publish,
        Some(_) => Start::Follow,
    }
}

/// Why rules could not be read or published.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The published rules are in a form that this version does not know.
    #[error("version {version} of the published rules cannot be read by this program")]
    Unreadable {
        /// The version of the rules.
        version: u32,
        /// What is wrong with them.
        #[source]
        source: serde_json::Error,
    },
    /// The own rules cannot be written as JSON.
    #[error("rules cannot be written")]
    Unwritable(#[source] serde_json::Error),
    /// Other nodes published at every attempt.
    #[error("other nodes publish rules all the time")]
    Overtaken,
    /// The rules could not be stored.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The rules that this node follows.
pub struct RulesInForce<R> {
    catalogues: Arc<Catalogues>,
    rules: PublishedRules<R>,
    /// Their published version; 0 where they are not published.
    version: u32,
}

impl<R: Clone + PartialEq + Serialize + DeserializeOwned> RulesInForce<R> {
    /// Finds the rules to start with, and says whether they are to be published: by [`Self::publish`], once they are known
    /// to work here.
    pub async fn find(
        catalogues: Arc<Catalogues>,
        store: &dyn OperationsStore,
        this: NodeId,
        own: PublishedRules<R>,
    ) -> Result<(Self, bool), RulesError> {
        let mut in_force = Self {
            catalogues,
            rules: own.clone(),
            version: 0,
        };
        let published = match in_force.read().await {
            Ok(published) => published,
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(
                    %error,
                    cause,
                    "this node goes by the rules of its own file"
                );
                return Ok((in_force, false));
            }
        };
        let nodes = store.list_nodes().await?;
        let others_run = nodes.iter().any(|node| node.node != this && !node.is_dead);
        let (version, published) = published.unzip();
        in_force.version = version.unwrap_or(0);
        let start = choose_start(published.as_ref(), &own, others_run);
        if let Some(published) = published
            && start == Start::Follow
        {
            if !published.equals(&own) {
                tracing::warn!(
                    version,
                    "the rules in force are others than those of this node's file, and are followed; SIGHUP publishes the file's"
                );
            }
            in_force.rules = published;
        }
        Ok((in_force, start == Start::Publish))
    }

    /// The rules that this node follows.
    pub fn rules(&self) -> &PublishedRules<R> {
        &self.rules
    }

    /// Makes all nodes follow these rules.
    pub async fn publish(&mut self, mut own: PublishedRules<R>) -> Result<(), RulesError> {
        for _ in 0..ATTEMPTS {
            self.catalogues.look_again().await?;
            if let Ok(Some((version, published))) = self.read().await {
                self.version = version;
                if published.equals(&own) {
                    self.rules = published;
                    return Ok(());
                }
                // A node that starts later with an older file must not undo this.
                own.modified_us = own.modified_us.max(published.modified_us);
            }
            let previous = self.newest();
            let content = serde_json::to_string(&own).map_err(RulesError::Unwritable)?;
            let rows = u32::try_from(own.routes.len()).unwrap_or(u32::MAX);
            let publish = self.catalogues.publish_routes(previous, &content, rows);
            match publish.await {
                Ok(version) => {
                    tracing::info!(version, rules = rows, "published the rules for all nodes");
                    (self.version, self.rules) = (version, own);
                    return Ok(());
                }
                Err(ImportError::Overtaken) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(RulesError::Overtaken)
    }

    /// Finds rules that another node has published since.
    pub async fn find_newer(&self) -> Result<Option<(u32, PublishedRules<R>)>, RulesError> {
        let found = self.read().await?;
        Ok(found.filter(|(version, _)| *version != self.version))
    }

    /// Follows published rules from now on.
    pub fn follow(&mut self, version: u32, published: PublishedRules<R>) {
        (self.version, self.rules) = (version, published);
    }

    fn newest(&self) -> u32 {
        self.catalogues.live().version(CatalogueKind::Routes)
    }

    async fn read(&self) -> Result<Option<(u32, PublishedRules<R>)>, RulesError> {
        let version = self.newest();
        let content = self.catalogues.version(CatalogueKind::Routes, version);
        let Some(content) = content.await? else {
            return Ok(None);
        };
        let published = serde_json::from_str(&content)
            .map_err(|source| RulesError::Unreadable { version, source })?;
        Ok(Some((version, published)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(modified_us: i64, routes: &[&str]) -> PublishedRules<String> {
        PublishedRules {
            modified_us,
            carriers: Vec::new(),
            routes: routes.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn the_newer_file_counts_at_start() {
        let published = rules(10, &["a"]);
        let published = Some(&published);
        for (case, published, own, others_run, expected) in [
            ("nothing at all", None, rules(5, &[]), false, Start::Own),
            ("the first", None, rules(5, &["a"]), true, Start::Publish),
            (
                "the same",
                published,
                rules(20, &["a"]),
                true,
                Start::Follow,
            ),
            ("newer", published, rules(20, &["b"]), true, Start::Publish),
            ("older", published, rules(5, &["b"]), true, Start::Follow),
            ("as old", published, rules(10, &["b"]), true, Start::Follow),
            ("no file", published, rules(0, &[]), false, Start::Follow),
            (
                "newer, without rules",
                published,
                rules(20, &[]),
                true,
                Start::Follow,
            ),
            (
                "newer, without rules, alone",
                published,
                rules(20, &[]),
                false,
                Start::Publish,
            ),
        ] {
            assert_eq!(
                choose_start(published, &own, others_run),
                expected,
                "{case}"
            );
        }
    }
}
