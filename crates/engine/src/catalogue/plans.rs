//! Carriers and routes that are stored in the database.

use domain::ports::CatalogueKind;
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
