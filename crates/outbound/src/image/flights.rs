//! One fetch for all who ask for the same address at once.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use domain::ImageUrl;
use tokio::sync::OnceCell;

use super::Verdict;

/// The fetches under way, by address. One that nobody waits for any more is not among them.
#[derive(Debug, Clone, Default)]
pub(super) struct Flights(Arc<Mutex<HashMap<String, Weak<Flight>>>>);

/// One fetch, shared by those who wait for it.
#[derive(Debug)]
pub(super) struct Flight {
    url: String,
    verdict: OnceCell<Verdict>,
    flights: Flights,
}

impl Flights {
    /// Joins the fetch of an address, or begins one.
    pub(super) fn join(&self, url: &ImageUrl) -> Arc<Flight> {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = flights.get(url.as_str()).and_then(Weak::upgrade) {
            return flight;
        }
        let flight = Arc::new(Flight {
            url: url.as_str().to_owned(),
            verdict: OnceCell::new(),
            flights: self.clone(),
        });
        flights.insert(flight.url.clone(), Arc::downgrade(&flight));
        flight
    }

    /// The address may have a new fetch already when the last to leave an old one comes to this.
    fn forget_if_over(&self, url: &str) {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if flights.get(url).is_some_and(|f| f.strong_count() == 0) {
            flights.remove(url);
        }
    }
}

impl Flight {
    /// Waits for the verdict. One of those who wait fetches; when it gives up, another does.
    pub(super) async fn land<F>(&self, fetch: impl FnOnce() -> F) -> &Verdict
    where
        F: Future<Output = Verdict>,
    {
        self.verdict.get_or_init(fetch).await
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.flights.forget_if_over(&self.url);
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

    #[tokio::test]
    async fn those_who_ask_at_once_share_a_fetch() {
        let (flights, fetches) = (Flights::default(), AtomicUsize::new(0));
        let fetch = || {
            fetches.fetch_add(1, Ordering::Relaxed);
            ready(FOUND)
        };
        let (one, other) = (flights.join(&url()), flights.join(&url()));
        assert_eq!(one.land(fetch).await, &FOUND);
        assert_eq!(other.land(fetch).await, &FOUND);
        assert_eq!(fetches.load(Ordering::Relaxed), 1);
        drop((one, other));
        assert!(flights.0.lock().expect("not poisoned").is_empty());
        assert_eq!(flights.join(&url()).land(fetch).await, &FOUND);
        assert_eq!(fetches.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn another_takes_over_when_the_one_that_fetches_gives_up() {
        let flights = Flights::default();
        let (one, other) = (flights.join(&url()), flights.join(&url()));
        let abandoned = tokio::spawn(async move { one.land(pending).await.clone() });
        tokio::task::yield_now().await;
        abandoned.abort();
        assert_eq!(other.land(|| ready(FOUND)).await, &FOUND);
    }
}
