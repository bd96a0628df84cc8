//! Numbers that accounts own, and what handsets sent to them.

use std::sync::Arc;

use domain::inbound::language::Language;
use domain::inbound::message::InboundMessage;
use domain::inbound::number::InboundNumber;
use domain::inbound::words::{Request, compared};
use domain::ports::{
    Cursor, ForbiddenUrl, InboundFilter, NumberEntry, OwnedNumber, Page, Store, StoreError,
    UrlGuard,
};
use domain::{AccountId, CallbackUrl, Clock, MessageId};

use crate::audit::{Action, Actor, Audit};

/// Why a number was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddNumberError {
    #[error("the keyword must be one word with at least one letter or digit")]
    Keyword,
    #[error("{0} belongs to an account already; remove that entry first, or give another keyword")]
    Taken(String),
    #[error(transparent)]
    Url(#[from] ForbiddenUrl),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Manages numbers, and reads inboxes.
pub struct Numbers {
    store: Arc<dyn Store>,
    urls: Arc<dyn UrlGuard>,
    audit: Audit,
}

impl Numbers {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, urls: Arc<dyn UrlGuard>) -> Self {
        Self {
            audit: Audit::new(store.clone(), clock),
            store,
            urls,
        }
    }

    /// Gives a number, or a keyword of it, to an account.
    pub async fn add(&self, by: &Actor, entry: &NumberEntry) -> Result<(), AddNumberError> {
        if let Some(keyword) = &entry.keyword {
            let is_word = !keyword.contains(char::is_whitespace) && !compared(keyword).is_empty();
            if !is_word {
                return Err(AddNumberError::Keyword);
            }
        }
        if let Some(url) = &entry.url {
            self.urls.check(entry.account, url).await?;
        }
        let name = entry_name(&entry.number, entry.keyword.as_deref());
        // A URL may contain a secret, so the log says only that there is one.
        let detail = if entry.url.is_some() {
            "with a URL"
        } else {
            ""
        };
        let account = Some(entry.account);
        let recorded = self
            .audit
            .record(by, account, Action::NumberAdd, &name, detail)
            .await?;
        let added = match self.store.add_number(entry).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(AddNumberError::Taken(name)),
            Err(error) => Err(error.into()),
        };
        recorded.done(added).await
    }

    /// Every number that is owned.
    pub async fn list(&self) -> Result<Vec<OwnedNumber>, StoreError> {
        self.store.list_numbers().await
    }

    /// The numbers of one account.
    pub async fn list_of(&self, account: AccountId) -> Result<Vec<OwnedNumber>, StoreError> {
        let mut listed = self.store.list_numbers().await?;
        listed.retain(|number| number.entry.account == account);
        Ok(listed)
    }

    /// Takes a number, or a keyword of it, from its account. `false` if nobody has it.
    pub async fn remove(
        &self,
        by: &Actor,
        number: &InboundNumber,
        keyword: Option<&str>,
    ) -> Result<bool, StoreError> {
        let name = entry_name(number, keyword);
        let is_same = |entry: &NumberEntry| {
            let keywords = [entry.keyword.as_deref(), keyword].map(|it| it.map(compared));
            entry.number.digits() == number.digits() && keywords[0] == keywords[1]
        };
        let listed = self.store.list_numbers().await?;
        let entry = listed.iter().map(|it| &it.entry).find(|it| is_same(it));
        let account = entry.map(|entry| entry.account);
        let recorded = self
            .audit
            .record(by, account, Action::NumberRemove, &name, "")
            .await?;
        let removed = self.store.remove_number(number, keyword).await;
        recorded.done(removed).await
    }

    /// Sets where messages to numbers of an account are sent, unless a number says otherwise.
    pub async fn set_url(
        &self,
        by: &Actor,
        account: AccountId,
        url: Option<&CallbackUrl>,
    ) -> Result<(), AddNumberError> {
        if let Some(url) = url {
            self.urls.check(account, url).await?;
        }
        let detail = if url.is_some() { "to a URL" } else { "off" };
        let recorded = self
            .audit
            .record(by, Some(account), Action::AccountInbound, account, detail)
            .await?;
        let set = self.store.set_inbound_url(account, url).await;
        recorded.done(set.map_err(AddNumberError::from)).await
    }

    /// Sets the account's own reply to a word such as STOP: for one language, or for all without one of their own.
    /// Empty for no reply; `None` for the service's own text.
    pub async fn set_reply(
        &self,
        by: &Actor,
        account: AccountId,
        request: Request,
        language: Option<Language>,
        text: Option<&str>,
    ) -> Result<(), StoreError> {
        let what = match text {
            None => "default",
            Some("") => "off",
            Some(_) => "a text",
        };
        let of_language =
            language.map_or_else(String::new, |language| format!(" in {}", language.code()));
        let detail = format!("reply to {}{of_language}: {what}", request.name());
        let recorded = self
            .audit
            .record(by, Some(account), Action::AccountInbound, account, &detail)
            .await?;
        let set = self.store.set_reply(account, request, language, text).await;
        recorded.done(set).await
    }

    /// Messages from handsets, the newest first.
    pub async fn list_messages(
        &self,
        filter: &InboundFilter,
        page: Cursor<MessageId>,
    ) -> Result<Page<InboundMessage, MessageId>, StoreError> {
        self.store.list_inbound(filter, page).await
    }

    /// A message to a number of the account.
    pub async fn find_message(
        &self,
        account: Option<AccountId>,
        id: MessageId,
    ) -> Result<Option<InboundMessage>, StoreError> {
        self.store.find_inbound(account, id).await
    }
}

/// An entry, for people.
fn entry_name(number: &InboundNumber, keyword: Option<&str>) -> String {
    match keyword {
        Some(keyword) => format!("{number} with the keyword {keyword}"),
        None => number.to_string(),
    }
}
