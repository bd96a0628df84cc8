//! The port for replies to words such as STOP.

use async_trait::async_trait;
use domain::ids::{AccountId, MessageId};
use domain::inbound::language::Language;
use domain::inbound::words::Request;
use domain::ports::{DueReply, ReplyStore, StoreError};
use rusqlite::{OptionalExtension, params};

use super::SqliteStore;
use crate::rows::replies::{due_reply, language_code};
use crate::sql::replies as sql;

#[async_trait]
impl ReplyStore for SqliteStore {
    async fn find_reply(
        &self,
        account: AccountId,
        request: Request,
        language: Language,
    ) -> Result<Option<String>, StoreError> {
        self.read("find a reply", move |db| {
            let values = params![account.as_i64(), request.number(), language.code()];
            db.prepare_cached(sql::FIND.sqlite)?
                .query_row(values, |row| row.get(0))
                .optional()
        })
        .await
    }

    async fn set_reply(
        &self,
        account: AccountId,
        request: Request,
        language: Option<Language>,
        text: Option<&str>,
    ) -> Result<(), StoreError> {
        let (account, request) = (account.as_i64(), request.number());
        let language = language_code(language);
        let text = text.map(str::to_owned);
        self.write("set a reply", move |db| {
            match text {
                Some(text) => db
                    .prepare_cached(sql::SET.sqlite)?
                    .execute(params![account, request, language, text])?,
                None => db
                    .prepare_cached(sql::UNSET.sqlite)?
                    .execute(params![account, request, language])?,
            };
            Ok(())
        })
        .await
    }

    async fn list_due_replies(&self, limit: u32) -> Result<Vec<DueReply>, StoreError> {
        self.read("list due replies", move |db| {
            db.prepare_cached(sql::LIST_DUE.sqlite)?
                .query_map([limit], |row| due_reply(row))?
                .collect()
        })
        .await
    }

    async fn remove_due_reply(&self, id: MessageId) -> Result<(), StoreError> {
        self.write("forget a reply", move |db| {
            let mut remove = db.prepare_cached(sql::REMOVE_DUE.sqlite)?;
            remove.execute([id.as_i64()]).map(drop)
        })
        .await
    }
}
