//! The port for replies to words such as STOP.

use async_trait::async_trait;
use domain::ids::{AccountId, MessageId};
use domain::inbound::language::Language;
use domain::inbound::words::Request;
use domain::ports::{DueReply, ReplyStore, StoreError};

use super::{PostgresStore, Values, column};
use crate::rows::replies::{due_reply, language_code};
use crate::sql::replies as sql;

#[async_trait]
impl ReplyStore for PostgresStore {
    async fn find_reply(
        &self,
        account: AccountId,
        request: Request,
        language: Language,
    ) -> Result<Option<String>, StoreError> {
        let (account, request, code) = (account.as_i64(), request.number(), language.code());
        let values: Values<'_> = &[&account, &request, &code];
        self.find("find a reply", sql::FIND.postgres, values, |row| {
            column(row, 0)
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
        let code = language_code(language);
        let set = if let Some(text) = &text {
            let values: Values<'_> = &[&account, &request, &code, text];
            self.execute("set a reply", sql::SET.postgres, values).await
        } else {
            let values: Values<'_> = &[&account, &request, &code];
            self.execute("set a reply", sql::UNSET.postgres, values)
                .await
        };
        set.map(drop)
    }

    async fn list_due_replies(&self, limit: u32) -> Result<Vec<DueReply>, StoreError> {
        let limit = i64::from(limit);
        let sql = sql::LIST_DUE.postgres;
        self.list("list due replies", sql, &[&limit], due_reply)
            .await
    }

    async fn remove_due_reply(&self, id: MessageId) -> Result<(), StoreError> {
        let id = id.as_i64();
        self.execute("forget a reply", sql::REMOVE_DUE.postgres, &[&id])
            .await
            .map(drop)
    }
}
