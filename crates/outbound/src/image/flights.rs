//! Shares one fetch between concurrent checks of the same URL by an account. Accounts do not share fetches, because an
//! account that waits for its permit would delay the other.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use domain::{AccountId, ImageUrl};
use tokio::sync::OnceCell;

use super::Verdict;

/// Running fetches by account and URL, as long as somebody waits for them.
#[derive(Debug, Clone, Default)]
pub(super) struct Flights(Arc<Mutex<HashMap<Key, Weak<Flight>>>>);

type Key = (AccountId, String);

/// One fetch, shared by all checks that wait for it.
#[derive(Debug)]
pub(super) struct Flight {
    key: Key,
    verdict: OnceCell<Verdict>,
    flights: Flights,
}

impl Flights {
    /// Joins the fetch of a URL, or starts one.
    pub(super) fn join(&self, asker: AccountId, url: &ImageUrl) -> Arc<Flight> {
        let key = (asker, url.as_str().to_owned());
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = flights.get(&key).and_then(Weak::upgrade) {
            return flight;
        }
        let flight = Arc::new(Flight {
            key: key.clone(),
            verdict: OnceCell::new(),
            flights: self.clone(),
        });
        flights.insert(key, Arc::downgrade(&flight));
        flight
    }

    /// The URL may already have a newer fetch, which must stay.
    fn forget_if_over(&self, key: &Key) {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if flights.get(key).is_some_and(|f| f.strong_count() == 0) {
            flights.remove(key);
        }
    }
}

impl Flight {
    /// Waits for the result. One of the waiting checks fetches; if it gives up, another one does.
    pub(super) async fn land<F>(&self, fetch: impl FnOnce() -> F) -> &Verdict
    where
        F: Future<Output = Verdict>,
    {
        self.verdict.get_or_init(fetch).await
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.flights.forget_if_over(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::kind::ImageKind;
    use super::*;

    const FOUND: Verdict = Ok(ImageKind::Gif);

    fn url() -> ImageUrl {
        ImageUrl::parse("http://a.example/x.gif").expect("a URL")
    }

    fn account(id: u64) -> AccountId {
        AccountId::new(id).expect("an ID")
    }

    #[tokio::test]
    async fn accounts_do_not_wait_for_each_other() {
        let flights = Flights::default();
        let (one, other) = (
            flights.join(account(1), &url()),
            flights.join(account(2), &url()),
        );
        let hanging = tokio::spawn(async move { one.land(pending).await.clone() });
        tokio::task::yield_now().await;
        assert_eq!(other.land(|| ready(FOUND)).await, &FOUND);
        hanging.abort();
    }

    #[tokio::test]
    async fn those_who_ask_at_once_share_a_fetch() {
        let (flights, fetches) = (Flights::default(), AtomicUsize::new(0));
        let fetch = || {
            fetches.fetch_add(1, Ordering::Relaxed);
            ready(FOUND)
        };
        let (one, other) = (
            flights.join(account(1), &url()),
            flights.join(account(1), &url()),
        );
        assert_eq!(one.land(fetch).await, &FOUND);
        assert_eq!(other.land(fetch).await, &FOUND);
        assert_eq!(fetches.load(Ordering::Relaxed), 1);
        drop((one, other));
        assert!(flights.0.lock().expect("not poisoned").is_empty());
        assert_eq!(flights.join(account(1), &url()).land(fetch).await, &FOUND);
        assert_eq!(fetches.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn another_takes_over_when_the_one_that_fetches_gives_up() {
        let flights = Flights::default();
        let (one, other) = (
            flights.join(account(1), &url()),
            flights.join(account(1), &url()),
        );
        let abandoned = tokio::spawn(async move { one.land(pending).await.clone() });
        tokio::task::yield_now().await;
        abandoned.abort();
        assert_eq!(other.land(|| ready(FOUND)).await, &FOUND);
    }
}
