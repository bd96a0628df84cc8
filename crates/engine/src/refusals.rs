//! Messages that are not sent: their recipient opted out, or operators block them.
//!
//! Both lists are in memory on every node, so a message costs no database read. A node follows the changes of others by
//! a counter in the database (`follow.rs`), and applies its own changes at once.
//!
//! A message is checked when it is accepted and again before it is handed to a carrier. One that is refused at
//! acceptance ends in the transaction that stores it.

pub mod blocks;
pub mod csv;
pub mod follow;
pub mod opt_outs;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, RwLock};

use arc_swap::ArcSwap;
use domain::block::BlockList;
use domain::delivery::QueuedMessage;
use domain::opt_out::OptOutKey;
use domain::ports::OptOutChange;
use domain::{AccountId, Channel, Code, Msisdn, Originator};

/// A change locks one shard, so that it stops few messages, and only while a small table grows.
const SHARDS: usize = 256;

/// What the recipients of a request share.
pub(crate) struct Content<'a> {
    pub(crate) account: AccountId,
    pub(crate) channel: Channel,
    pub(crate) from: Option<&'a Originator>,
    pub(crate) text: &'a str,
    /// A message of the service itself, which opt-outs do not stop.
    pub(crate) notice: bool,
}

/// The lists, as messages are compared with them.
#[derive(Default)]
pub(crate) struct Refusals {
    opt_outs: ArcSwap<OptOutHashes>,
    blocks: ArcSwap<BlockList>,
}

impl Refusals {
    /// Why each recipient is refused, if it is: calls `refuse` with its index and the code.
    pub(crate) fn check<'r>(
        &self,
        content: &Content<'_>,
        recipients: impl Iterator<Item = &'r Msisdn>,
        mut refuse: impl FnMut(usize, Code),
    ) {
        // A lookup sends nothing to the number.
        if content.channel == Channel::Hlr {
            return;
        }
        let (opt_outs, blocks) = (self.opt_outs.load(), self.blocks.load());
        let has_blocks = !blocks.is_empty();
        let is_blocked = has_blocks && blocks.blocks_content(content.from, content.text);
        for (index, to) in recipients.enumerate() {
            if !content.notice && opt_outs.has(content.account, to, content.from) {
                refuse(index, Code::OPTED_OUT);
            } else if is_blocked || (has_blocks && blocks.blocks_recipient(to)) {
                refuse(index, Code::BLOCKED);
            }
        }
    }

    /// Why a message that is about to be sent is refused, if it is.
    pub(crate) fn find(&self, queued: &QueuedMessage) -> Option<Code> {
        let content = Content {
            account: queued.account,
            channel: queued.channel,
            from: queued.from.as_ref(),
            text: &queued.text,
            notice: queued.notice,
        };
        let mut found = None;
        self.check(&content, [&queued.to].into_iter(), |_, code| {
            found = Some(code);
        });
        found
    }

    /// How many entries the account's opt-out list has, as far as this node knows.
    pub(crate) fn count(&self, account: AccountId) -> u64 {
        self.opt_outs.load().count(account)
    }
}

/// The opt-outs of all accounts, as hashes.
///
/// An entry takes 9 to 18 bytes, so ten million take at most 180 MB. What bounds their number: an account can add
/// [`opt_outs::MAX_PER_ACCOUNT`] by itself, each further one needs a handset that sends a message, or an operator.
///
/// Two entries with the same hash are taken for one. With ten million entries, one message of 10^12 is refused by
/// mistake. The hash has a random key, so nobody can look for such messages.
#[derive(Default)]
pub(crate) struct OptOutHashes {
    key: RandomState,
    shards: Shards,
    /// How many entries each account has.
    counts: Mutex<HashMap<AccountId, u64>>,
}

struct Shards(Vec<RwLock<HashSet<u64>>>);

impl Default for Shards {
    fn default() -> Self {
        Self((0..SHARDS).map(|_| RwLock::default()).collect())
    }
}

impl Shards {
    fn of(&self, hash: u64) -> &RwLock<HashSet<u64>> {
        let shard = usize::from(hash.to_le_bytes()[0]) % SHARDS;
        &self.0[shard]
    }
}

impl OptOutHashes {
    fn hash(&self, account: AccountId, to: &Msisdn, sender: Option<&Originator>) -> u64 {
        let sender = sender.map(Originator::compared);
        self.key.hash_one((account, to.as_i64(), sender))
    }

    /// Whether the recipient does not want messages from this sender, or from any sender of the account.
    fn has(&self, account: AccountId, to: &Msisdn, from: Option<&Originator>) -> bool {
        let is_listed = |sender| {
            let hash = self.hash(account, to, sender);
            let shard = self.shards.of(hash).read().expect("no holder panics");
            shard.contains(&hash)
        };
        is_listed(None) || (from.is_some() && is_listed(from))
    }

    fn count(&self, account: AccountId) -> u64 {
        let counts = self.counts.lock().expect("no holder panics");
        counts.get(&account).copied().unwrap_or(0)
    }

    fn apply(&self, changes: &[OptOutChange]) {
        for change in changes {
            let OptOutKey { recipient, sender } = &change.key;
            let hash = self.hash(change.account, recipient, sender.as_ref());
            let mut shard = self.shards.of(hash).write().expect("no holder panics");
            let has_changed = if change.is_listed {
                shard.insert(hash)
            } else {
                shard.remove(&hash)
            };
            drop(shard);
            if has_changed {
                let mut counts = self.counts.lock().expect("no holder panics");
                let count = counts.entry(change.account).or_default();
                *count = if change.is_listed {
                    *count + 1
                } else {
                    count.saturating_sub(1)
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::block::{BlockKind, BlockRule};

    use super::*;

    fn account(number: u64) -> AccountId {
        AccountId::new(number).expect("an ID")
    }

    fn number(digits: &str) -> Msisdn {
        Msisdn::parse(digits).expect("a number")
    }

    fn change(of: u64, to: &str, sender: Option<&str>, is_listed: bool) -> OptOutChange {
        OptOutChange {
            number: 1,
            account: account(of),
            key: OptOutKey {
                recipient: number(to),
                sender: sender.map(|sender| Originator::parse(sender).expect("a sender")),
            },
            is_listed,
        }
    }

    fn codes(refusals: &Refusals, of: u64, from: &str, notice: bool) -> Vec<u16> {
        let from = Originator::parse(from).expect("a sender");
        let content = Content {
            account: account(of),
            channel: Channel::Sms,
            from: Some(&from),
            text: "Great news",
            notice,
        };
        let to = ["+37120000001", "+37120000002", "+37120000003"].map(number);
        let mut codes = vec![0; to.len()];
        refusals.check(&content, to.iter(), |index, code| {
            codes[index] = code.number();
        });
        codes
    }

    #[test]
    fn recipients_are_refused_by_account_and_sender() {
        let refusals = Refusals::default();
        refusals.opt_outs.load().apply(&[
            change(1, "+37120000001", None, true),
            change(1, "+37120000002", Some("Acme"), true),
            change(1, "+37120000003", Some("+37129999999"), true),
            change(2, "+37120000002", None, true),
            change(2, "+37120000002", None, false),
        ]);
        for (of, from, expected) in [
            (1, "Acme", [27, 27, 0]),
            (1, "Other", [27, 0, 0]),
            (1, "37129999999", [27, 0, 27]),
            (2, "Acme", [0, 0, 0]),
        ] {
            assert_eq!(codes(&refusals, of, from, false), expected, "{of} {from}");
        }
        assert_eq!(codes(&refusals, 1, "Acme", true), [0, 0, 0], "a notice");
        assert_eq!(
            (refusals.count(account(1)), refusals.count(account(2))),
            (3, 0)
        );
    }

    #[test]
    fn blocked_messages_are_refused_for_every_account() {
        let refusals = Refusals::default();
        let rule = |kind, value| BlockRule::parse(kind, value).expect("a rule");
        for (blocked, expected) in [
            (rule(BlockKind::Number, "+37120000002"), [0, 21, 0]),
            (rule(BlockKind::Prefix, "+371200"), [21, 21, 21]),
            (rule(BlockKind::Sender, "acme"), [21, 21, 21]),
            (rule(BlockKind::Word, "news"), [21, 21, 21]),
            (rule(BlockKind::Word, "new"), [0, 0, 0]),
        ] {
            let what = blocked.to_string();
            refusals.blocks.store(BlockList::new([blocked]).into());
            assert_eq!(codes(&refusals, 3, "Acme", false), expected, "{what}");
            assert_eq!(
                codes(&refusals, 3, "Acme", true),
                expected,
                "{what}, notice"
            );
        }
    }
}
