//! Makes messages of texts: whose they are, and what they reply to.

use std::sync::Arc;

use domain::inbound::assembly::WholeText;
use domain::inbound::message::InboundMessage;
use domain::inbound::number::InboundNumber;
use domain::message::text::Udh;
use domain::ports::{Cursor, MessageFilter, NewInbound, Store, StoreError};
use domain::{AccountId, Channel, MessageId, Msisdn, Timestamp};
use jiff::SignedDuration;

use super::owner::Owners;
use crate::catalogue::Catalogues;
use crate::cluster::id_blocks::IdBlocks;

/// How old a message may be that a text replies to.
const REPLY_WITHIN: SignedDuration = SignedDuration::from_hours(72);

/// What is common to a text and a whole set of parts.
pub(super) struct Text {
    pub(super) carrier: String,
    pub(super) from: String,
    pub(super) to: InboundNumber,
    pub(super) whole: WholeText,
    pub(super) udh: Option<Udh>,
    pub(super) parts: u8,
    pub(super) received_at: Timestamp,
}

/// Makes messages of texts.
pub(super) struct Composer {
    store: Arc<dyn Store>,
    catalogues: Arc<Catalogues>,
    owners: Owners,
    ids: IdBlocks,
}

impl Composer {
    pub(super) fn new(store: Arc<dyn Store>, catalogues: Arc<Catalogues>) -> Self {
        Self {
            owners: Owners::new(store.clone()),
            ids: IdBlocks::new(store.clone()),
            store,
            catalogues,
        }
    }

    /// Finds the owner of a text, and what it replies to.
    pub(super) async fn message(&self, text: Text) -> Result<NewInbound, StoreError> {
        let owner = self.owners.find(&text.to, &text.whole.text).await?;
        let sender = Msisdn::parse(&text.from).ok();
        let network = sender
            .as_ref()
            .and_then(|sender| self.catalogues.live().reference.locate(sender).network);
        let account = owner.as_ref().map(|owner| owner.account);
        let in_reply_to = match (account, sender) {
            (Some(account), Some(sender)) => {
                let number = text.to.to_string();
                self.find_replied(account, sender, number, text.received_at)
                    .await?
            }
            _ => None,
        };
        let id = self.ids.take(1).await?;
        let (keyword, url) = owner.map_or((None, None), |owner| (owner.keyword, owner.url));
        Ok(NewInbound {
            message: InboundMessage {
                id,
                account,
                carrier: text.carrier,
                from: text.from,
                to: text.to,
                text: text.whole.text,
                coding: text.whole.coding,
                udh: text.udh,
                network,
                parts: text.parts,
                keyword,
                in_reply_to,
                is_incomplete: text.whole.is_incomplete,
                received_at: text.received_at,
            },
            url,
        })
    }

    /// The newest message of the account from a number to a handset.
    async fn find_replied(
        &self,
        account: AccountId,
        handset: Msisdn,
        number: String,
        now: Timestamp,
    ) -> Result<Option<MessageId>, StoreError> {
        let filter = MessageFilter {
            account: Some(account),
            channel: Some(Channel::Sms),
            to: Some(handset),
            from: Some(number),
            since: Some(now - REPLY_WITHIN),
            ..MessageFilter::default()
        };
        let newest = Cursor {
            before: None,
            limit: 1,
        };
        let page = self.store.search_messages(&filter, newest).await?;
        Ok(page.rows.first().map(|message| message.id))
    }
}
