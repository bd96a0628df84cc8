//! Checks the accessibility of a page with the package `axe-core` (`crates/testkit/axe`).

use std::fs;

use serde::Deserialize;
use serde_json::Value;

use crate::chrome::Page;

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/axe/node_modules/axe-core/axe.min.js"
);
const ALL_RULES: &str = "{ resultTypes: ['violations'] }";
const COLOUR_RULES: &str = "{ resultTypes: ['violations'], runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } }";
/// How much of an element is shown.
const MAX_HTML: usize = 300;

/// How much a violation hinders people who cannot see a page or have no mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Impact {
    /// A nuisance.
    Minor,
    /// Some people are hindered.
    Moderate,
    /// Some people can use the page only with great difficulty.
    Serious,
    /// Some people cannot use the page.
    Critical,
}

/// A rule that a page violates.
#[derive(Debug, Clone, Deserialize)]
pub struct Finding {
    /// The rule, such as `label` or `color-contrast`.
    pub id: String,
    /// How bad it is.
    pub impact: Option<Impact>,
    /// The rule in words.
    pub help: String,
    /// The elements that violate it.
    pub nodes: Vec<Node>,
}

/// An element that violates a rule.
#[derive(Debug, Clone, Deserialize)]
pub struct Node {
    /// The element.
    pub html: String,
    /// How to fix it.
    #[serde(rename = "failureSummary", default)]
    pub summary: String,
}

impl Finding {
    /// Whether its impact is serious or critical.
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
    /// The accessibility rules that the page violates as it is shown now: dark and light may differ.
    ///
    /// The rules run in an isolated world, so the page's content policy does not stop them.
    pub async fn findings(&self) -> Vec<Finding> {
        self.run(ALL_RULES).await
    }

    /// Those of the [`Page::findings`] that may differ between dark and light.
    pub async fn colour_findings(&self) -> Vec<Finding> {
        self.run(COLOUR_RULES).await
    }

    async fn run(&self, rules: &str) -> Vec<Finding> {
        let found = match self.run_rules(rules).await {
            Ok(found) => found,
            Err(error) => {
                self.fail(&format!("no accessibility rules ran: {error}"))
                    .await
            }
        };
        serde_json::from_value(found).expect("axe-core returns its documented format")
    }

    /// Fails if the page has serious or critical violations, and lists them.
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

    async fn run_rules(&self, rules: &str) -> Result<Value, String> {
        let world = self.isolated_world("axe").await?;
        let known = self.try_evaluate("typeof axe", Some(world)).await?;
        if known == "undefined" {
            let source = fs::read_to_string(SCRIPT)
                .map_err(|error| format!("{error}; install it: scripts/node-packages"))?;
            // The value of the script is 0. Otherwise the answer would contain the whole package.
            let source = format!("{source};0");
            self.try_evaluate(&source, Some(world)).await?;
        }
        let run = format!("axe.run(document, {rules}).then((result) => result.violations)");
        self.try_evaluate(&run, Some(world)).await
    }
}
