//! Routing rules that one node publishes and all nodes follow.
//!
//! Each node has `[[route]]` in its own file, and files differ while they are being changed. The rules in force are
//! therefore stored in the database. A node publishes its own on SIGHUP, or when it starts with newer rules: those with a
//! higher revision or, without revisions, those that were never published before. The times of files say nothing:
//! a mounted file gets a new one with each start.

use std::cmp::Ordering;
use std::sync::Arc;

use domain::Channel;
use domain::ports::{CatalogueKind, StoreError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::catalogue::{Catalogues, ImportError};

/// How often other nodes may publish at the same moment.
const ATTEMPTS: usize = 5;

/// Rules with what other nodes need to follow them. `R` is a rule as the configuration has it. A carrier's password is
/// never among them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PublishedRules<R> {
    /// The revision that the configuration gives them; 0 if it gives none.
    #[serde(default)]
    pub revision: u64,
    /// When they were published. Former versions compare it with the time of their file.
    modified_us: i64,
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
    /// Rules to publish.
    pub fn new(revision: u64, carriers: Vec<NamedCarrier>, routes: Vec<R>) -> Self {
        Self {
            revision,
            modified_us: 0,
            carriers,
            routes,
        }
    }

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

/// What is known about the nodes of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nodes {
    /// It can have only this one.
    Single,
    /// It may have several, of which others run now.
    OthersRun,
    /// It may have several, and none of the others runs now.
    OthersStopped,
}

/// A file without rules does not replace published ones while other nodes run: it may belong to a node that only answers.
/// `was_replaced` says whether its rules were published before and replaced by others.
fn choose_start<R: PartialEq>(
    published: Option<&PublishedRules<R>>,
    own: &PublishedRules<R>,
    was_replaced: bool,
    nodes: Nodes,
) -> Start {
    let has_rules = !own.routes.is_empty();
    let Some(published) = published else {
        return if has_rules {
            Start::Publish
        } else {
            Start::Own
        };
    };
    let is_newer = match own.revision.cmp(&published.revision) {
        Ordering::Less => false,
        Ordering::Greater => true,
        Ordering::Equal if own.equals(published) => false,
        Ordering::Equal if nodes == Nodes::Single => true,
        Ordering::Equal if own.revision > 0 || was_replaced => false,
        Ordering::Equal => has_rules || nodes == Nodes::OthersStopped,
    };
    if is_newer {
        Start::Publish
    } else {
        Start::Follow
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
    /// The rules in force have a higher revision, or other rules have the same one.
    #[error(
        "routing.revision is {own}, and the rules in force have revision {in_force}; to replace them, give yours {}", in_force + 1
    )]
    Older {
        /// The revision of the own rules.
        own: u64,
        /// The revision of the rules in force.
        in_force: u64,
    },
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
        nodes: Nodes,
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
        let (version, published) = published.unzip();
        in_force.version = version.unwrap_or(0);
        let was_replaced = in_force.was_published(&own).await?;
        let start = choose_start(published.as_ref(), &own, was_replaced, nodes);
        if let Some(published) = published
            && start == Start::Follow
        {
            if !published.equals(&own) {
                let (own, in_force) = (own.revision, published.revision);
                let what_to_do = if own < in_force || own > 0 {
                    "give this node's file the newer rules, or a higher routing.revision"
                } else {
                    "SIGHUP publishes the file's, and so does a higher routing.revision"
                };
                tracing::warn!(
                    version,
                    revision = in_force,
                    revision_of_the_file = own,
                    was_replaced,
                    "the rules in force are others than those of this node's file, and are followed; {what_to_do}"
                );
            }
            in_force.rules = published;
        }
        Ok((in_force, start == Start::Publish))
    }

    /// Whether an earlier version has these rules. Versions are few, and read only if the newest one has others.
    async fn was_published(&self, own: &PublishedRules<R>) -> Result<bool, RulesError> {
        for version in (1..=self.version).rev() {
            // A version that cannot be read is from another program, with other rules.
            if let Ok(Some(published)) = self.read_version(version).await
                && own.equals(&published)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The rules that this node follows.
    pub fn rules(&self) -> &PublishedRules<R> {
        &self.rules
    }

    /// Refuses rules that the rules in force have replaced, by their revisions.
    pub fn check_newer(&self, own: &PublishedRules<R>) -> Result<(), RulesError> {
        let in_force = self.rules.revision;
        let is_older = match own.revision.cmp(&in_force) {
            Ordering::Less => true,
            Ordering::Equal => own.revision > 0 && !own.equals(&self.rules),
            Ordering::Greater => false,
        };
        if is_older {
            return Err(RulesError::Older {
                own: own.revision,
                in_force,
            });
        }
        Ok(())
    }

    /// Makes all nodes follow these rules.
    pub async fn publish(&mut self, mut own: PublishedRules<R>) -> Result<(), RulesError> {
        for _ in 0..ATTEMPTS {
            self.catalogues.look_again().await?;
            if let Ok(Some((version, published))) = self.read().await {
                (self.version, self.rules) = (version, published);
                self.check_newer(&own)?;
                if self.rules.equals(&own) && self.rules.revision == own.revision {
                    return Ok(());
                }
            }
            own.modified_us = self.catalogues.now().as_microsecond();
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
        let published = self.read_version(version).await?;
        Ok(published.map(|published| (version, published)))
    }

    async fn read_version(&self, version: u32) -> Result<Option<PublishedRules<R>>, RulesError> {
        let content = self.catalogues.version(CatalogueKind::Routes, version);
        let published = content.await?.map(|content| serde_json::from_str(&content));
        published
            .transpose()
            .map_err(|source| RulesError::Unreadable { version, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(revision: u64, routes: &[&str]) -> PublishedRules<String> {
        let routes = routes.iter().map(|name| (*name).to_owned());
        PublishedRules::new(revision, Vec::new(), routes.collect())
    }

    /// The rules of a file, whether they were replaced before, the nodes, and what the node does.
    type Case = (&'static str, PublishedRules<String>, bool, Nodes, Start);

    fn check(published: Option<&PublishedRules<String>>, cases: impl IntoIterator<Item = Case>) {
        for (case, own, was_replaced, nodes, expected) in cases {
            let start = choose_start(published, &own, was_replaced, nodes);
            assert_eq!(start, expected, "{case}");
        }
    }

    #[test]
    fn rules_that_were_never_in_force_count_at_start() {
        use Nodes::{OthersRun, OthersStopped, Single};
        use Start::{Follow, Own, Publish};
        let (none, a, b) = (rules(0, &[]), rules(0, &["a"]), rules(0, &["b"]));
        check(
            None,
            [
                ("nothing at all", none.clone(), false, OthersStopped, Own),
                ("the first", a.clone(), false, OthersRun, Publish),
            ],
        );
        check(
            Some(&a),
            [
                ("the same", a.clone(), true, OthersRun, Follow),
                ("new", b.clone(), false, OthersRun, Publish),
                ("older", b.clone(), true, OthersRun, Follow),
                ("older, alone", b.clone(), true, OthersStopped, Follow),
                ("undone", b, true, Single, Publish),
                ("none", none.clone(), false, OthersRun, Follow),
                ("none, alone", none.clone(), false, OthersStopped, Publish),
                ("none, single", none, false, Single, Publish),
                ("a revision", rules(1, &["a"]), false, OthersRun, Publish),
            ],
        );
    }

    #[test]
    fn a_higher_revision_counts_at_start() {
        use Nodes::{OthersRun, Single};
        use Start::{Follow, Publish};
        check(
            Some(&rules(3, &["a"])),
            [
                ("higher", rules(4, &["b"]), true, OthersRun, Publish),
                ("the same", rules(3, &["a"]), false, OthersRun, Follow),
                ("contradicting", rules(3, &["b"]), false, OthersRun, Follow),
                ("lower", rules(2, &["b"]), false, OthersRun, Follow),
                ("lower, single", rules(2, &["b"]), false, Single, Follow),
                ("none any more", rules(0, &["b"]), false, OthersRun, Follow),
            ],
        );
    }

    #[test]
    fn former_versions_and_this_one_read_each_others_rules() {
        let former = r#"{"modified_us":10,"carriers":[],"routes":["a"]}"#;
        let read: PublishedRules<String> = serde_json::from_str(former).expect("readable");
        assert!(read.equals(&rules(0, &["a"])));
        let written = serde_json::to_value(rules(3, &["a"])).expect("JSON");
        assert!(written["modified_us"].is_i64(), "{written}");
    }
}
