//! Remembers the results of image checks for an hour.

use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::ImageUrl;
use tokio::time::Instant;

use super::Verdict;

/// How long a result is valid.
const REMEMBERED: Duration = Duration::from_hours(1);

/// The size of a generation, of which there are two.
const MAX_GENERATION: usize = 5_000;

type Generation = HashMap<String, (Instant, Verdict)>;

/// Results by URL, at least the last 5,000 and at most 10,000.
///
/// When the young generation is full, it replaces the old one: bounded without tracking ages. A result found in the old
/// one becomes young again, so URLs in use stay.
#[derive(Debug, Default)]
pub(super) struct ResultCache(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: Generation,
    old: Generation,
}

impl ResultCache {
    pub(super) fn find(&self, url: &ImageUrl) -> Option<Verdict> {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_young = generations.young.contains_key(url.as_str());
        if !is_young {
            let (url, found) = generations.old.remove_entry(url.as_str())?;
            generations.insert(url, found);
        }
        let (since, verdict) = generations.young.get(url.as_str())?;
        (since.elapsed() < REMEMBERED).then(|| verdict.clone())
    }

    pub(super) fn remember(&self, url: &ImageUrl, verdict: Verdict) {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        generations.insert(url.as_str().to_owned(), (Instant::now(), verdict));
    }
}

impl Generations {
    fn insert(&mut self, url: String, found: (Instant, Verdict)) {
        if self.young.len() >= MAX_GENERATION {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(url, found);
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::ImageKind;
    use super::*;

    fn url(number: usize) -> ImageUrl {
        ImageUrl::parse(&format!("http://a.example/{number}.png")).expect("a URL")
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_is_cached_for_an_hour() {
        let cache = ResultCache::default();
        cache.remember(&url(1), Ok(ImageKind::Png));
        for (name, wait_s, known) in [
            ("at once", 0, true),
            ("just before the hour", 3_599, true),
            ("after the hour", 1, false),
        ] {
            tokio::time::advance(Duration::from_secs(wait_s)).await;
            assert_eq!(cache.find(&url(1)).is_some(), known, "{name}");
        }
        assert_eq!(cache.find(&url(2)), None);
    }

    #[tokio::test]
    async fn the_number_is_bounded_and_what_is_in_use_stays() {
        let cache = ResultCache::default();
        for number in 0..30_000 {
            cache.remember(&url(number), Ok(ImageKind::Png));
            assert!(cache.find(&url(0)).is_some(), "{number}");
        }
        let generations = cache.0.lock().expect("not poisoned");
        let (young, old) = (&generations.young, &generations.old);
        assert!(young.len() <= MAX_GENERATION && old.len() <= MAX_GENERATION);
        let is_known = |number: usize| {
            let url = url(number);
            young.contains_key(url.as_str()) || old.contains_key(url.as_str())
        };
        assert!((25_001..30_000).all(is_known));
        assert!(!(1..20_000).any(is_known));
    }
}
