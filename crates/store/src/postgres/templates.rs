//! The port for saved texts.

use async_trait::async_trait;
use domain::ids::AccountId;
use domain::ports::{StoreError, TemplateStore};
use domain::template::TextTemplate;

use super::{PostgresStore, Values};
use crate::rows::templates::{read_template, sorted};
use crate::sql::templates as sql;

#[async_trait]
impl TemplateStore for PostgresStore {
    async fn set_template(
        &self,
        account: AccountId,
        template: &TextTemplate,
    ) -> Result<(), StoreError> {
        let values: Values<'_> = &[&account.as_i64(), &template.name(), &template.text()];
        let set = self.execute("save a template", sql::SET.postgres, values);
        set.await.map(drop)
    }

    async fn remove_template(&self, account: AccountId, name: &str) -> Result<bool, StoreError> {
        let values: Values<'_> = &[&account.as_i64(), &name];
        let removed = self.execute("remove a template", sql::REMOVE.postgres, values);
        Ok(removed.await? > 0)
    }

    async fn list_templates(&self, account: AccountId) -> Result<Vec<TextTemplate>, StoreError> {
        let values: Values<'_> = &[&account.as_i64()];
        let listed = self.list("list templates", sql::LIST.postgres, values, read_template);
        listed.await.map(sorted)
    }
}
