//! Carriers and routes that are stored in the database.

use async_trait::async_trait;
use domain::ports::{CatalogueKind, StoreError};
use domain::{Channel, MessageId, Msisdn, Outcome, Timestamp};
use tokio::sync::watch;

use super::{Catalogues, ImportError};
use crate::audit::{Action, Actor};

/// A new version of the carriers and routes in the database, with the change that it makes.
#[derive(Debug, Clone, Copy)]
pub struct NewPlan<'a> {
    pub action: Action,
    /// What is changed. Both texts are in the audit log, so neither has a secret.
    pub subject: &'a str,
    pub detail: &'a str,
    /// The version that it replaces; 0 if there is none.
    pub previous: u32,
    /// Stored encrypted.
    pub content: &'a str,
    /// The number of carriers and routes.
    pub rows: u32,
}

impl Catalogues {
    /// Stores carriers and routes; all nodes follow within a second. Returns their version.
    pub async fn publish_plan(&self, by: &Actor, plan: NewPlan<'_>) -> Result<u32, ImportError> {
        let NewPlan {
            action,
            subject,
            detail,
            previous,
            content,
            rows,
        } = plan;
        let recorded = self.audit.record(by, None, action, subject, detail).await?;
        let kind = CatalogueKind::Plan;
        let published = self.import(kind, previous, content, rows).await;
        recorded.done(published).await
    }

    /// The version of the carriers and routes in the database; 0 if there are none.
    pub fn plans(&self) -> watch::Receiver<u32> {
        self.plans.subscribe()
    }
}

/// Where a carrier or a route is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanSource {
    /// In the configuration file, so it is changed there.
    File,
    Database,
}

impl PlanSource {
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Database => "database",
        }
    }
}

/// A carrier of the file or of the database.
#[derive(Debug, Clone)]
pub struct PlannedCarrier {
    pub name: String,
    pub kind: &'static str,
    pub channels: Vec<Channel>,
    pub source: PlanSource,
    /// Whether it can send a test message.
    pub is_testable: bool,
}

/// A route of the file or of the database.
#[derive(Debug, Clone)]
pub struct PlannedRoute {
    /// Routes of files have none.
    pub name: Option<String>,
    /// The keys and values of the configuration; lists are separated by commas.
    pub settings: Vec<(String, String)>,
    pub source: PlanSource,
}

/// All carriers and routes, in their order.
#[derive(Debug, Clone)]
pub struct PlanOverview {
    pub carriers: Vec<PlannedCarrier>,
    pub routes: Vec<PlannedRoute>,
}

/// The settings of a carrier, without secrets.
#[derive(Debug, Clone)]
pub struct CarrierDescription {
    pub carrier: PlannedCarrier,
    /// In the format of the configuration file.
    pub text: String,
    /// The names of the secrets that are stored.
    pub secrets: Vec<String>,
    /// Where the carrier sends messages from handsets.
    pub inbound_url: Option<String>,
}

/// What a new carrier may start with: a kind, or the description of a provider.
#[derive(Debug, Clone)]
pub struct CarrierExample {
    pub name: &'static str,
    pub title: &'static str,
    pub text: String,
    /// The names of the secrets that it needs.
    pub secrets: Vec<String>,
    /// What the provider's description adds, with comments.
    pub preset: Option<&'static str>,
}

/// A carrier as it is typed.
pub struct CarrierInput {
    pub name: String,
    /// A carrier of this name must not exist.
    pub is_new: bool,
    /// In the format of the configuration file.
    pub description: String,
    /// Names and values; an empty value is not a change.
    pub secrets: Vec<(String, String)>,
    /// The names of the secrets to remove.
    pub removed_secrets: Vec<String>,
}

/// A route as it is typed.
#[derive(Debug, Clone)]
pub struct RouteInput {
    pub name: String,
    /// A route of this name must not exist.
    pub is_new: bool,
    /// Keys and values; an empty value is left out.
    pub settings: Vec<(String, String)>,
    /// The route that follows it.
    pub before: Option<String>,
}

/// A version of the carriers and routes in the database.
#[derive(Debug, Clone)]
pub struct PlanVersion {
    pub version: u32,
    pub at: Timestamp,
    pub by: String,
    pub change: String,
    pub carriers: usize,
    pub routes: usize,
}

/// A test message as it is typed.
#[derive(Debug, Clone)]
pub struct TestInput {
    pub carrier: String,
    pub to: Msisdn,
    /// The sender; `None` for the service's own.
    pub from: Option<String>,
    pub text: Option<String>,
}

/// A test message that was given to its carrier.
#[derive(Debug, Clone)]
pub struct SentTest {
    pub id: MessageId,
    pub took_ms: u64,
    pub answer: TestAnswer,
}

/// What the carrier answered to a test message.
#[derive(Debug, Clone)]
pub enum TestAnswer {
    /// A report with one of these references is to come.
    Taken { references: Vec<String> },
    /// The result of a lookup.
    Answered(String),
    /// Why it does not go on.
    Failed(String),
}

/// The report about a test message.
#[derive(Debug, Clone, Copy)]
pub struct TestReport {
    pub outcome: Outcome,
    pub at: Timestamp,
}

/// What is wrong with a carrier or route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanProblem {
    /// The line of the description.
    pub line: Option<usize>,
    pub text: String,
}

/// Why carriers and routes were not read or changed.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("the carriers and routes have problems")]
    Wrong(Vec<PlanProblem>),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads and changes carriers and routes in the format of the configuration file. All nodes follow a change within a
/// second.
#[async_trait]
pub trait CarrierPlans: Send + Sync {
    async fn list(&self) -> Result<PlanOverview, PlanError>;

    /// A carrier of the file or of the database, if it exists.
    async fn find_carrier(&self, name: &str) -> Result<Option<CarrierDescription>, PlanError>;

    fn examples(&self) -> Vec<CarrierExample>;

    /// A description without the values of its secrets, even if it is not valid.
    fn hide_secrets(&self, description: &str) -> String;

    async fn set_carrier(&self, by: &Actor, input: CarrierInput) -> Result<(), PlanError>;

    async fn remove_carrier(&self, by: &Actor, name: &str) -> Result<(), PlanError>;

    async fn set_route(&self, by: &Actor, input: RouteInput) -> Result<(), PlanError>;

    async fn remove_route(&self, by: &Actor, name: &str) -> Result<(), PlanError>;

    /// The newest changes, the newest first.
    async fn history(&self) -> Result<Vec<PlanVersion>, PlanError>;

    /// Restores a version; 0 is the state before the first change.
    async fn undo(&self, by: &Actor, to: u32) -> Result<(), PlanError>;

    /// Sends one message by one carrier. It belongs to no account and costs nothing here.
    async fn send_test(&self, input: TestInput) -> Result<SentTest, PlanError>;

    /// The report about a test message, if it came.
    async fn find_test_report(
        &self,
        carrier: &str,
        references: &[String],
    ) -> Result<Option<TestReport>, PlanError>;
}
