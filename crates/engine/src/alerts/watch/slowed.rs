//! Prefixes to which codes are slowed down, because nearly none is entered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use domain::AccountId;
use domain::alert::{Level, Observation, Topic};
use domain::ports::StoreError;
use domain::verify::{PrefixConversion, WINDOW};
use serde_json::json;

use super::{AlertWatch, Seen};

/// How many prefixes are counted: those with the most codes.
const PREFIXES: u32 = 5_000;
/// At most this many prefixes of an account cause notifications.
const PREFIXES_OF_ACCOUNT: usize = 20;
/// Counting takes at most this share of the time.
const SHARE: u32 = 200;

/// When something that takes long is counted again.
#[derive(Debug, Default)]
pub(super) struct Counting {
    next: Option<Instant>,
}

impl Counting {
    pub(super) fn is_due(&self) -> bool {
        self.next.is_none_or(|next| next <= Instant::now())
    }

    pub(super) fn took(&mut self, time: Duration) {
        self.next = Some(Instant::now() + time * SHARE);
    }
}

impl AlertWatch {
    pub(super) async fn slowed_prefixes(
        &self,
        counting: &mut Counting,
    ) -> Result<Seen, StoreError> {
        if !counting.is_due() {
            return Ok(seen(Some(BTreeSet::new()), Vec::new()));
        }
        let began = Instant::now();
        let since = self.clock.now() - WINDOW;
        let prefixes = self.store.list_conversions(None, since, PREFIXES).await?;
        counting.took(began.elapsed());
        let slowed = slowed(&prefixes);
        let ids: Vec<AccountId> = slowed.iter().map(|prefix| prefix.account).collect();
        let names = self.names(&ids).await?;
        let observations = slowed.into_iter().map(|prefix| Observation {
            topic: Topic::Verify,
            subject: format!("{} {}", prefix.account, prefix.prefix),
            account: Some(prefix.account),
            level: Level::Bad,
            data: json!({
                "account": names.get(&prefix.account),
                "prefix": format!("+{}", prefix.prefix),
                "sent": prefix.newest.sent,
                "approved": prefix.newest.approved,
            })
            .to_string(),
            quiet_at_first: false,
        });
        Ok(seen(None, observations.collect()))
    }
}

fn seen(scope: Option<BTreeSet<String>>, observations: Vec<Observation>) -> Seen {
    Seen {
        topic: Topic::Verify,
        scope,
        observations,
    }
}

/// One account must not crowd out the alerts of others.
fn slowed(prefixes: &[PrefixConversion]) -> Vec<&PrefixConversion> {
    let mut counts: BTreeMap<AccountId, usize> = BTreeMap::new();
    let mut slowed: Vec<_> = prefixes.iter().filter(|one| one.is_slowed()).collect();
    slowed.retain(|prefix| {
        let count = counts.entry(prefix.account).or_default();
        *count += 1;
        *count <= PREFIXES_OF_ACCOUNT
    });
    slowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::verify::Conversion;

    #[test]
    fn few_prefixes_of_an_account_cause_notifications() {
        let conversion = |approved| Conversion { sent: 60, approved };
        let prefix = |(prefix, account, approved)| PrefixConversion {
            account: AccountId::new(account).expect("an ID"),
            prefix,
            network: None,
            country: None,
            conversion: conversion(30),
            newest: conversion(approved),
        };
        let many = (0..30).map(|n| (371_200 + n, 1, 0));
        let prefixes: Vec<_> = many.chain([(44_770, 2, 30), (44_771, 2, 1)]).collect();
        let prefixes: Vec<_> = prefixes.into_iter().map(prefix).collect();
        let found = slowed(&prefixes);
        assert_eq!(found.len(), PREFIXES_OF_ACCOUNT + 1);
        assert_eq!(found.last().map(|one| one.prefix), Some(44_771));
    }
}
