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
pub(super) struct SharedFetches(Arc<Mutex<HashMap<Key, Weak<SharedFetch>>>>);

type Key = (AccountId, String);

/// One fetch, shared by all checks that wait for it.
#[derive(Debug)]
pub(super) struct SharedFetch {
    key: Key,
    verdict: OnceCell<Verdict>,
    fetches: SharedFetches,
}

impl SharedFetches {
    /// Joins the fetch of a URL, or starts one.
    pub(super) fn join(&self, asker: AccountId, url: &ImageUrl) -> Arc<SharedFetch> {
        let key = (asker, url.as_str().to_owned());
        let mut fetches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fetch) = fetches.get(&key).and_then(Weak::upgrade) {
            return fetch;
        }
        let fetch = Arc::new(SharedFetch {
            key: key.clone(),
            verdict: OnceCell::new(),
            fetches: self.clone(),
        });
        fetches.insert(key, Arc::downgrade(&fetch));
        fetch
    }

    /// The URL may already have a newer fetch, which must stay.
    fn remove_if_over(&self, key: &Key) {
        let mut fetches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if fetches.get(key).is_some_and(|f| f.strong_count() == 0) {
            fetches.remove(key);
        }
    }
}

impl SharedFetch {
    /// Waits for the result. One of the waiting checks fetches; if it gives up, another one does.
    pub(super) async fn wait<F>(&self, fetch: impl FnOnce() -> F) -> &Verdict
    where
        F: Future<Output = Verdict>,
    {
        self.verdict.get_or_init(fetch).await
    }
}

impl Drop for SharedFetch {
    fn drop(&mut self) {
        self.fetches.remove_if_over(&self.key);
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
        let fetches = SharedFetches::default();
        let (one, other) = (
            fetches.join(account(1), &url()),
            fetches.join(account(2), &url()),
        );
        let hanging = tokio::spawn(async move { one.wait(pending).await.clone() });
        tokio::task::yield_now().await;
        assert_eq!(other.wait(|| ready(FOUND)).await, &FOUND);
        hanging.abort();
    }

    #[tokio::test]
    async fn concurrent_checks_share_a_fetch() {
        let (fetches, count) = (SharedFetches::default(), AtomicUsize::new(0));
        let fetch = || {
            count.fetch_add(1, Ordering::Relaxed);
            ready(FOUND)
        };
        let (one, other) = (
            fetches.join(account(1), &url()),
            fetches.join(account(1), &url()),
        );
        assert_eq!(one.wait(fetch).await, &FOUND);
        assert_eq!(other.wait(fetch).await, &FOUND);
        assert_eq!(count.load(Ordering::Relaxed), 1);
        drop((one, other));
        assert!(fetches.0.lock().expect("not poisoned").is_empty());
        assert_eq!(fetches.join(account(1), &url()).wait(fetch).await, &FOUND);
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn another_takes_over_when_the_one_that_fetches_gives_up() {
        let fetches = SharedFetches::default();
        let (one, other) = (
            fetches.join(account(1), &url()),
            fetches.join(account(1), &url()),
        );
        let abandoned = tokio::spawn(async move { one.wait(pending).await.clone() });
        tokio::task::yield_now().await;
        abandoned.abort();
        assert_eq!(other.wait(|| ready(FOUND)).await, &FOUND);
    }
}
