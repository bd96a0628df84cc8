//! The port for saved texts.

use async_trait::async_trait;
use domain::ids::AccountId;
use domain::ports::{StoreError, TemplateStore};
use domain::template::TextTemplate;
use rusqlite::params;

use super::SqliteStore;
use crate::rows::templates::{read_template, sorted};
use crate::sql::templates as sql;

#[async_trait]
impl TemplateStore for SqliteStore {
    async fn set_template(
        &self,
        account: AccountId,
        template: &TextTemplate,
    ) -> Result<(), StoreError> {
        let template = template.clone();
        self.write("save a template", move |db| {
            let values = params![account.as_i64(), template.name(), template.text()];
            db.prepare_cached(sql::SET.sqlite)?
                .execute(values)
                .map(drop)
        })
        .await
    }

    async fn remove_template(&self, account: AccountId, name: &str) -> Result<bool, StoreError> {
        let name = name.to_owned();
        self.write("remove a template", move |db| {
            let values = params![account.as_i64(), name];
            Ok(db.prepare_cached(sql::REMOVE.sqlite)?.execute(values)? > 0)
        })
        .await
    }

    async fn list_templates(&self, account: AccountId) -> Result<Vec<TextTemplate>, StoreError> {
        let listed = self.read("list templates", move |db| {
            let mut list = db.prepare_cached(sql::LIST.sqlite)?;
            list.query_map([account.as_i64()], |row| read_template(row))?
                .collect()
        });
        listed.await.map(sorted)
    }
}
