//! Accessibility of a page, by rules that are not ours: the package `axe-core` (`crates/testkit/axe`).

use std::fs;

use serde::Deserialize;
use serde_json::Value;

use crate::chrome::Page;

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/axe/node_modules/axe-core/axe.min.js"
);
const RUN: &str =
    "axe.run(document, { resultTypes: ['violations'] }).then((result) => result.violations)";
/// How much of an element is shown.
const MAX_HTML: usize = 300;

/// How much a breach is in the way of those who cannot see a page, or have no mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Impact {
    /// A nuisance.
    Minor,
    /// Some are hindered.
    Moderate,
    /// Some cannot do what the page is for without great trouble.
    Serious,
    /// Some cannot do it at all.
    Critical,
}

/// A rule that a page breaks, and where.
#[derive(Debug, Clone, Deserialize)]
pub struct Finding {
    /// The rule, such as `label` or `color-contrast`.
    pub id: String,
    /// How bad it is.
    pub impact: Option<Impact>,
    /// The rule in words.
    pub help: String,
    /// The elements that break it.
    pub nodes: Vec<Node>,
}

/// An element that breaks a rule.
#[derive(Debug, Clone, Deserialize)]
pub struct Node {
    /// The element.
    pub html: String,
    /// What would mend it.
    #[serde(rename = "failureSummary", default)]
    pub summary: String,
}

impl Finding {
    /// Whether somebody cannot use the page because of it.
    pub fn is_serious(&self) -> bool {
        self.impact >= Some(Impact::Serious)
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let impact = self
            .impact
            .map_or_else(|| "unknown".to_owned(), |impact| format!("{impact:?}"));
        write!(out, "{} ({impact}): {}", self.id, self.help)?;
        for node in &self.nodes {
            let html: String = node.html.chars().take(MAX_HTML).collect();
            let summary = node.summary.replace('\n', " ");
            write!(out, "\n    {html}\n      {summary}")?;
        }
        Ok(())
    }
}

impl Page {
    /// Every rule of accessibility that the page breaks, as it is shown now: dark and light may differ.
    ///
    /// The rules run in a world of their own, so the page's content policy neither stops them nor sees them.
    pub async fn findings(&self) -> Vec<Finding> {
        let found = match self.run_rules().await {
            Ok(found) => found,
            Err(error) => {
                self.fail(&format!("no accessibility rules ran: {error}"))
                    .await
            }
        };
        serde_json::from_value(found).expect("what the package writes")
    }

    /// Fails when the page breaks a rule in a way that is serious or critical, and lists what and where.
    pub async fn assert_accessible(&self) {
        let serious: Vec<String> = self
            .findings()
            .await
            .iter()
            .filter(|finding| finding.is_serious())
            .map(ToString::to_string)
            .collect();
        if !serious.is_empty() {
            self.fail(&format!("not accessible:\n  {}", serious.join("\n  ")))
                .await;
        }
    }

    async fn run_rules(&self) -> Result<Value, String> {
        let world = self.own_world("axe").await?;
        let known = self.try_evaluate("typeof axe", Some(world)).await?;
        if known == "undefined" {
            let source = fs::read_to_string(SCRIPT)
                .map_err(|error| format!("{error}; install it: scripts/node-packages"))?;
            // Without the last word, the answer would be all of the package.
            let source = format!("{source};0");
            self.try_evaluate(&source, Some(world)).await?;
        }
        self.try_evaluate(RUN, Some(world)).await
    }
}
