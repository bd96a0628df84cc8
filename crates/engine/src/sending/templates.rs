//! Texts that an account saved to send them again.

use std::sync::Arc;

use domain::ports::{AuditStore, StoreError, TemplateStore};
use domain::template::{MAX_TEMPLATES, TextTemplate};
use domain::{AccountId, Clock};

use crate::audit::{Action, Actor, Audit};

#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    #[error("the account has {MAX_TEMPLATES} templates, which is the limit; remove some")]
    Full,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads and changes the templates of accounts.
pub struct Templates {
    store: Arc<dyn TemplateStore>,
    audit: Audit,
}

impl Templates {
    pub fn new(
        store: Arc<dyn TemplateStore>,
        audit: Arc<dyn AuditStore>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            store,
            audit: Audit::new(audit, clock),
        }
    }

    /// All templates of an account, sorted by name.
    pub async fn list(&self, account: AccountId) -> Result<Vec<TextTemplate>, StoreError> {
        self.store.list_templates(account).await
    }

    /// Adds a template, or replaces the one with this name. The log has the name only.
    pub async fn set(
        &self,
        by: &Actor,
        account: AccountId,
        template: &TextTemplate,
    ) -> Result<(), TemplateError> {
        let known = self.list(account).await?;
        let is_new = known.iter().all(|other| other.name() != template.name());
        if is_new && known.len() >= MAX_TEMPLATES {
            return Err(TemplateError::Full);
        }
        let name = template.name();
        let recorded = self
            .audit
            .record(by, Some(account), Action::TemplateSet, name, "")
            .await?;
        let set = self.store.set_template(account, template).await;
        Ok(recorded.done(set).await?)
    }

    /// Removes a template. Returns whether it was there.
    pub async fn remove(
        &self,
        by: &Actor,
        account: AccountId,
        name: &str,
    ) -> Result<bool, StoreError> {
        let recorded = self
            .audit
            .record(by, Some(account), Action::TemplateRemove, name, "")
            .await?;
        match self.store.remove_template(account, name).await {
            Ok(false) => {
                recorded.refused(&"there is no such template").await;
                Ok(false)
            }
            removed => recorded.done(removed).await,
        }
    }
}
