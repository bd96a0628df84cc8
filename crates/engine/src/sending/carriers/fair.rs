//! A queue that accounts share: each gets the same number of parts, however many messages another has waiting.
//!
//! Start-time fair queueing: the queue has a virtual time that counts parts. A message's start time is the current
//! virtual time, or the end of its account's previous message if that is later. The message with the earliest start
//! leaves next. So an account with nothing waiting that sends one message is next, or nearly so, and the messages of an
//! account keep their order. With a single account, this is a plain queue.

use std::collections::{BTreeSet, HashMap, VecDeque};

use domain::{AccountId, Timestamp};

/// How many idle accounts are remembered before they are dropped.
const MAX_IDLE: usize = 64;

/// An item of a fair queue.
pub(in crate::sending) trait Queued {
    fn account(&self) -> AccountId;
    /// How many parts it has.
    fn parts(&self) -> u32;
    fn expires_at(&self) -> Timestamp;
}

/// When an account's next message starts. The second number breaks ties: first come, first served.
type Start = (u64, u64, AccountId);

/// One lane, shared by accounts.
pub(in crate::sending) struct FairQueue<T> {
    accounts: HashMap<AccountId, Account<T>>,
    /// The accounts with waiting messages.
    starts: BTreeSet<Start>,
    /// The start time of the last message that left.
    virtual_time: u64,
    /// Counts insertions into `starts`.
    entries: u64,
    waiting: usize,
    /// Slots that are filled or reserved.
    used: usize,
    /// No message expires before this.
    expires_from: Timestamp,
}

struct Account<T> {
    waiting: VecDeque<T>,
    /// Slots that are filled or reserved.
    used: usize,
    /// The end of its last message, in virtual time.
    end: u64,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            accounts: HashMap::new(),
            starts: BTreeSet::new(),
            virtual_time: 0,
            entries: 0,
            waiting: 0,
            used: 0,
            expires_from: Timestamp::MAX,
        }
    }
}

impl<T: Queued> FairQueue<T> {
    pub(in crate::sending) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many slots are filled or reserved.
    pub(in crate::sending) fn used(&self) -> usize {
        self.used
    }

    /// How many slots of an account are filled or reserved.
    pub(in crate::sending) fn used_by(&self, account: AccountId) -> usize {
        self.accounts
            .get(&account)
            .map_or(0, |account| account.used)
    }

    pub(in crate::sending) fn reserve(&mut self, account: AccountId) {
        self.used += 1;
        self.account(account).used += 1;
    }

    /// Frees a slot.
    pub(in crate::sending) fn release(&mut self, account: AccountId) {
        self.used -= 1;
        if let Some(entry) = self.accounts.get_mut(&account) {
            entry.used -= 1;
        }
        self.drop_idle();
    }

    /// Puts a message into a slot that was reserved for it.
    pub(in crate::sending) fn push(&mut self, item: T) {
        let id = item.account();
        let virtual_time = self.virtual_time;
        self.waiting += 1;
        self.expires_from = self.expires_from.min(item.expires_at());
        let account = self.account(id);
        account.waiting.push_back(item);
        if account.waiting.len() == 1 {
            let start = account.end.max(virtual_time);
            self.enter(start, id);
        }
    }

    /// Takes the next message and frees its slot.
    pub(in crate::sending) fn pop(&mut self) -> Option<T> {
        let (start, _, id) = self.starts.pop_first()?;
        self.virtual_time = start;
        let account = self.accounts.get_mut(&id)?;
        let item = account.waiting.pop_front()?;
        account.end = start + u64::from(item.parts().max(1));
        let (end, is_empty) = (account.end, account.waiting.is_empty());
        self.waiting -= 1;
        if !is_empty {
            self.enter(end, id);
        } else if self.starts.is_empty() {
            // Nothing waits, so no account is ahead of another.
            self.virtual_time = end;
        }
        self.release(id);
        Some(item)
    }

    /// Takes out the messages that `wanted` selects; the others keep their order.
    pub(in crate::sending) fn take_out(&mut self, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        let mut expires_from = Timestamp::MAX;
        // In the order in which they would leave, which they keep elsewhere.
        for start in std::mem::take(&mut self.starts) {
            let Some(account) = self.accounts.get_mut(&start.2) else {
                continue;
            };
            let (out, left): (VecDeque<T>, VecDeque<T>) = std::mem::take(&mut account.waiting)
                .into_iter()
                .partition(&mut wanted);
            account.used -= out.len();
            account.waiting = left;
            self.used -= out.len();
            self.waiting -= out.len();
            if let Some(first) = account.waiting.iter().map(Queued::expires_at).min() {
                expires_from = expires_from.min(first);
                self.starts.insert(start);
            }
            taken.extend(out);
        }
        self.expires_from = expires_from;
        self.drop_idle();
        taken
    }

    /// Takes out the expired messages.
    pub(in crate::sending) fn take_expired(&mut self, now: Timestamp) -> Vec<T> {
        if self.expires_from > now {
            return Vec::new();
        }
        self.take_out(|item| item.expires_at() <= now)
    }

    fn account(&mut self, id: AccountId) -> &mut Account<T> {
        self.accounts.entry(id).or_insert_with(|| Account {
            waiting: VecDeque::new(),
            used: 0,
            end: 0,
        })
    }

    fn enter(&mut self, start: u64, id: AccountId) {
        self.entries += 1;
        self.starts.insert((start, self.entries, id));
    }

    /// An idle account is remembered as long as it is ahead of the others.
    fn drop_idle(&mut self) {
        if self.accounts.len() > 2 * self.starts.len() + MAX_IDLE {
            let virtual_time = self.virtual_time;
            self.accounts
                .retain(|_, account| account.used > 0 || account.end > virtual_time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Item {
        account: u64,
        number: u64,
        parts: u32,
    }

    impl Queued for Item {
        fn account(&self) -> AccountId {
            AccountId::new(self.account).expect("not zero")
        }

        fn parts(&self) -> u32 {
            self.parts
        }

        fn expires_at(&self) -> Timestamp {
            Timestamp::from_second(i64::try_from(self.number).expect("small")).expect("in range")
        }
    }

    fn push(queue: &mut FairQueue<Item>, account: u64, parts: u32, numbers: std::ops::Range<u64>) {
        for number in numbers {
            let item = Item {
                account,
                number,
                parts,
            };
            queue.reserve(item.account());
            queue.push(item);
        }
    }

    fn pop(queue: &mut FairQueue<Item>, count: usize) -> Vec<(u64, u64)> {
        let popped = std::iter::from_fn(|| queue.pop()).take(count);
        popped.map(|item| (item.account, item.number)).collect()
    }

    #[test]
    fn one_account_alone_has_a_plain_queue() {
        let mut queue = FairQueue::default();
        push(&mut queue, 1, 1, 0..5);
        assert_eq!(pop(&mut queue, 9), [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]);
        assert_eq!((queue.waiting(), queue.used()), (0, 0));
    }

    #[test]
    fn a_single_message_passes_the_backlog_of_others() {
        let mut queue = FairQueue::default();
        for account in 1..=10 {
            push(&mut queue, account, 1, 0..1000);
        }
        pop(&mut queue, 500);
        push(&mut queue, 99, 1, 7..8);
        let next = pop(&mut queue, 12);
        assert!(
            next.contains(&(99, 7)),
            "after at most one of each: {next:?}"
        );
    }

    #[test]
    fn accounts_get_the_same_number_of_parts() {
        let mut queue = FairQueue::default();
        push(&mut queue, 1, 1, 0..300);
        push(&mut queue, 2, 3, 0..300);
        let popped = pop(&mut queue, 200);
        let count = |account| popped.iter().filter(|(id, _)| *id == account).count();
        assert_eq!((count(1), count(2)), (150, 50));
        for account in [1, 2] {
            let numbers = popped.iter().filter(|(id, _)| *id == account);
            assert!(numbers.map(|(_, number)| number).is_sorted(), "in order");
        }
    }

    /// An account that always has exactly one long message waiting gets no more than its share.
    #[test]
    fn parts_that_were_sent_are_remembered_while_an_account_is_idle() {
        let mut queue = FairQueue::default();
        push(&mut queue, 1, 1, 0..1000);
        push(&mut queue, 2, 10, 0..1);
        let mut long = 1;
        for _ in 0..220 {
            if queue.pop().expect("waits").account == 2 {
                push(&mut queue, 2, 10, long..long + 1);
                long += 1;
            }
        }
        assert!(
            (18..=24).contains(&long),
            "{long} of 220, each of ten parts"
        );
    }

    #[test]
    fn expired_messages_are_taken_out() {
        let mut queue = FairQueue::default();
        push(&mut queue, 1, 1, 10..20);
        push(&mut queue, 2, 1, 15..25);
        let at = |second| Timestamp::from_second(second).expect("in range");
        assert!(queue.take_expired(at(9)).is_empty());
        let expired: Vec<_> = queue
            .take_expired(at(16))
            .iter()
            .map(|item| item.number)
            .collect();
        assert_eq!(expired, [10, 11, 12, 13, 14, 15, 16, 15, 16]);
        assert_eq!((queue.waiting(), queue.used()), (11, 11));
        assert_eq!(queue.expires_from, at(17));
        assert_eq!(pop(&mut queue, 2), [(1, 17), (2, 17)]);
    }

    #[test]
    fn idle_accounts_are_dropped() {
        let mut queue = FairQueue::default();
        for account in 1..=10_000 {
            push(&mut queue, account, 1, 0..1);
            queue.pop();
        }
        assert!(
            queue.accounts.len() <= MAX_IDLE + 2,
            "{}",
            queue.accounts.len()
        );
    }
}
