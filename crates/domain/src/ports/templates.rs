//! Texts that accounts saved.

use async_trait::async_trait;

use super::StoreError;
use crate::ids::AccountId;
use crate::template::TextTemplate;

#[async_trait]
pub trait TemplateStore: Send + Sync + 'static {
    /// Adds a template, or replaces the one with this name.
    async fn set_template(
        &self,
        account: AccountId,
        template: &TextTemplate,
    ) -> Result<(), StoreError>;

    /// Returns whether the template was there.
    async fn remove_template(&self, account: AccountId, name: &str) -> Result<bool, StoreError>;

    /// All templates of an account, sorted by name.
    async fn list_templates(&self, account: AccountId) -> Result<Vec<TextTemplate>, StoreError>;
}
