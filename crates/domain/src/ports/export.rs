//! Exporting messages, the oldest first, without their texts.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::ids::{AccountId, MessageId};
use crate::message::MessageState;
use crate::message::channel::Channel;
use crate::money::Money;
use crate::number::msisdn::Msisdn;
use crate::number::network::Network;

/// Which messages are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportFilter {
    /// `None` for all accounts.
    pub account: Option<AccountId>,
    /// Accepted at this time or later.
    pub since: Timestamp,
    /// Accepted before this time.
    pub until: Timestamp,
}

/// A message as it is exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedMessage {
    pub id: MessageId,
    pub account: AccountId,
    pub channel: Channel,
    /// The originator as text; `None` for a lookup, and if it was erased.
    pub from: Option<String>,
    /// `None` if it was erased.
    pub to: Option<Msisdn>,
    pub accepted_at: Timestamp,
    /// When a carrier took it.
    pub sent_at: Option<Timestamp>,
    pub state: MessageState,
    pub parts: u8,
    /// The charge, after refunds if the message has ended.
    pub price: Money,
    /// What the carrier charges, if that is known.
    pub cost: Option<Money>,
    pub carrier: Option<String>,
    pub network: Option<Network>,
}

/// The IDs that an export reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExportRange {
    /// Only messages after this one.
    pub after: Option<MessageId>,
    /// Only messages before this one.
    pub before: Option<MessageId>,
}

/// Some messages of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportPage {
    /// By ascending ID.
    pub messages: Vec<ExportedMessage>,
    /// The next page follows this ID. `None` if this was the last page.
    pub next: Option<MessageId>,
}

/// The changes of a balance in a period, by kind. Amounts that are taken off are negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerTotals {
    /// The balance at the beginning.
    pub opening: Money,
    /// What operators added.
    pub credits: Money,
    /// What operators took off.
    pub corrections: Money,
    pub charges: Money,
    pub charged_messages: u64,
    pub refunds: Money,
    pub refunded_messages: u64,
    /// What messages from handsets cost.
    pub inbound: Money,
    pub inbound_messages: u64,
    /// What approved verifications cost, besides their messages.
    pub verifications: Money,
    pub approved_verifications: u64,
}

impl LedgerTotals {
    /// The balance at the end.
    pub const fn closing(&self) -> Money {
        self.opening
            .plus(self.credits)
            .plus(self.corrections)
            .plus(self.charges)
            .plus(self.refunds)
            .plus(self.inbound)
            .plus(self.verifications)
    }
}

#[async_trait]
pub trait ExportStore: Send + Sync + 'static {
    /// The IDs between which all matching messages are.
    async fn find_export_range(&self, filter: &ExportFilter) -> Result<ExportRange, StoreError>;

    /// The first matching messages of a range. Reads a bounded number of rows: a page may be empty and still have a next
    /// one. Nothing is held open between two pages.
    async fn export_messages(
        &self,
        filter: &ExportFilter,
        range: ExportRange,
    ) -> Result<ExportPage, StoreError>;

    /// What changed the balance of an account from `since` to before `until`. Reads the ledger in steps.
    async fn ledger_totals(
        &self,
        account: AccountId,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<LedgerTotals, StoreError>;
}
