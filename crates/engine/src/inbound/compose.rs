//! Makes messages of texts: whose they are, and what they reply to.

use std::sync::Arc;

use domain::billing::Priced;
use domain::inbound::assembly::WholeText;
use domain::inbound::message::InboundMessage;
use domain::inbound::number::InboundNumber;
use domain::inbound::words::{Request, Words};
use domain::message::text::Udh;
use domain::opt_out::OptOutKey;
use domain::ports::{Cursor, MessageFilter, NewInbound, NewReply, Store, StoreError};
use domain::{
    AccountId, CallbackUrl, Channel, MessageId, Money, Msisdn, Network, Originator, Timestamp,
};
use jiff::SignedDuration;

use super::owner::{AskedOf, Found, Owners};
use crate::catalogue::Catalogues;
use crate::cluster::id_blocks::IdBlocks;
use crate::refusals::opt_outs::OptOuts;

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

/// Makes messages of texts, and does what words such as STOP ask for.
pub struct Composer {
    store: Arc<dyn Store>,
    catalogues: Arc<Catalogues>,
    opt_outs: Arc<OptOuts>,
    words: Arc<Words>,
    owners: Owners,
    ids: IdBlocks,
}

impl Composer {
    pub fn new(
        store: Arc<dyn Store>,
        catalogues: Arc<Catalogues>,
        opt_outs: Arc<OptOuts>,
        words: Arc<Words>,
    ) -> Self {
        Self {
            opt_outs,
            words,
            owners: Owners::new(store.clone()),
            ids: IdBlocks::new(store.clone()),
            store,
            catalogues,
        }
    }

    /// Finds the owner of a text, and what it replies to. What the text asks for is done before it is stored, and may
    /// be done again if storing fails: it can be repeated.
    pub(super) async fn message(&self, text: Text) -> Result<NewInbound, StoreError> {
        let (whole, number) = (&text.whole.text, &text.to);
        let Found { owner, asked } = self.owners.find(number, whole, &self.words).await?;
        let sender = Msisdn::parse(&text.from).ok();
        let account = owner.as_ref().map(|owner| owner.account);
        let (network, price) = self.locate(sender.as_ref(), account, text.parts);
        let in_reply_to = match (account, sender) {
            (Some(account), Some(sender)) => {
                let number = text.to.to_string();
                self.find_replied(account, sender, number, text.received_at)
                    .await?
            }
            _ => None,
        };
        let reply = match (asked, sender) {
            (Some(asked), Some(handset)) => self.fulfil(&asked, account, handset, number).await?,
            _ => None,
        };
        let id = self.ids.take(1).await?;
        let (keyword, url) = match owner {
            Some(owner) => (
                owner.keyword,
                self.find_url(owner.account, owner.url).await?,
            ),
            None => (None, None),
        };
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
                price,
            },
            url,
            reply,
        })
    }

    /// Where a text goes: to the URL of its number or account, else to the SMPP sessions of the account.
    async fn find_url(
        &self,
        account: AccountId,
        url: Option<CallbackUrl>,
    ) -> Result<Option<CallbackUrl>, StoreError> {
        if url.is_some() {
            return Ok(url);
        }
        let users = self.store.list_smpp_users(Some(account)).await?;
        Ok((!users.is_empty()).then(|| CallbackUrl::smpp_account(account)))
    }

    /// The network of a sender, and what the account pays for a text from there.
    fn locate(
        &self,
        sender: Option<&Msisdn>,
        account: Option<AccountId>,
        parts: u8,
    ) -> (Option<Network>, Money) {
        let Some(sender) = sender else {
            return (None, Money::ZERO);
        };
        let live = self.catalogues.live();
        let location = live.reference.locate(sender);
        let prices = live.prices(Priced::Inbound);
        let price = account.and_then(|account| prices.price(account, &location));
        let price = price.map_or(Money::ZERO, |price| price.times(parts.into()));
        (location.network, price)
    }

    /// Changes opt-out lists as a text asks, and returns the reply to it. The owner of the text replies, else the first
    /// account that it is for.
    async fn fulfil(
        &self,
        asked: &AskedOf,
        owner: Option<AccountId>,
        handset: Msisdn,
        number: &InboundNumber,
    ) -> Result<Option<NewReply>, StoreError> {
        let key = OptOutKey {
            recipient: handset,
            sender: Originator::parse(&number.to_string()).ok(),
        };
        let mut is_answered = asked.request != Request::Start;
        for account in &asked.accounts {
            match asked.request {
                Request::Stop => {
                    let added = self.opt_outs.add_by_keyword(*account, key.clone());
                    added.await?;
                }
                Request::Start => {
                    is_answered |= self.opt_outs.remove_by_keyword(*account, &key).await?;
                }
                Request::Help => {}
            }
        }
        let account = owner.or_else(|| asked.accounts.first().copied());
        let Some(account) = account.filter(|_| is_answered) else {
            return Ok(None);
        };
        let own = self
            .store
            .find_reply(account, asked.request, asked.language)
            .await?;
        let text = own.unwrap_or_else(|| asked.language.default_reply(asked.request).to_owned());
        Ok((!text.is_empty()).then_some(NewReply { account, text }))
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
