//! Shares one lookup between concurrent requests for the same host.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;

use super::Resolve;

/// Runs one lookup at a time for each host, and shares its answer. So a name server that hangs for one name is asked
/// once, however many connections to that host are wanted. A lookup is cancelled when nobody waits for it.
#[derive(Clone)]
pub struct SharedLookups {
    resolver: Arc<dyn Resolve>,
    under_way: Arc<Mutex<UnderWay>>,
}

type UnderWay = HashMap<Host, Arc<watch::Sender<Option<Answer>>>>;

type Host = (String, u16);
/// The result of a lookup. Only the kind of an error is kept, because several tasks read it.
type Answer = Result<Vec<IpAddr>, io::ErrorKind>;

impl SharedLookups {
    pub fn new(resolver: Arc<dyn Resolve>) -> Self {
        Self {
            resolver,
            under_way: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the lookup of a host, or starts one.
    fn join(&self, host: &str, port: u16) -> watch::Receiver<Option<Answer>> {
        let key = (host.to_owned(), port);
        let mut under_way = self.lock();
        if let Some(answer) = under_way.get(&key) {
            return answer.subscribe();
        }
        let (found, answer) = watch::channel(None);
        let found = Arc::new(found);
        under_way.insert(key.clone(), found.clone());
        drop(under_way);
        tokio::spawn(self.clone().run(key, found));
        answer
    }

    async fn run(self, key: Host, found: Arc<watch::Sender<Option<Answer>>>) {
        // Removes the entry on drop, so also after a panic.
        let entry = Entry {
            lookups: &self,
            key: &key,
            found: &found,
        };
        let mut lookup = self.resolver.resolve(&key.0, key.1);
        loop {
            tokio::select! {
                result = &mut lookup => {
                    found.send_replace(Some(result.map_err(|error| error.kind())));
                    return;
                }
                () = found.closed() => {
                    let mut under_way = self.lock();
                    // Somebody who joined meanwhile still waits.
                    if found.receiver_count() == 0 {
                        entry.remove_from(&mut under_way);
                        return;
                    }
                }
            }
        }
    }
}

struct Entry<'a> {
    lookups: &'a SharedLookups,
    key: &'a Host,
    found: &'a Arc<watch::Sender<Option<Answer>>>,
}

impl Entry<'_> {
    /// The host may already have a newer lookup, which must stay.
    fn remove_from(&self, under_way: &mut UnderWay) {
        let current = under_way.get(self.key);
        if current.is_some_and(|current| Arc::ptr_eq(current, self.found)) {
            under_way.remove(self.key);
        }
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.remove_from(&mut self.lookups.lock());
    }
}

#[async_trait]
impl Resolve for SharedLookups {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<IpAddr>> {
        let mut answer = self.join(host, port);
        let found = answer.wait_for(Option::is_some).await;
        match found.as_deref() {
            Ok(Some(Ok(addresses))) => Ok(addresses.clone()),
            Ok(Some(Err(kind))) => Err((*kind).into()),
            Ok(None) | Err(_) => Err(io::Error::other("the lookup ended without an answer")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    /// Answers once it is allowed to, and counts the lookups.
    struct Slow {
        asked: AtomicUsize,
        may_answer: Semaphore,
    }

    #[async_trait]
    impl Resolve for Slow {
        async fn resolve(&self, host: &str, _: u16) -> io::Result<Vec<IpAddr>> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let _may = self.may_answer.acquire().await.expect("never closed");
            assert_ne!(host, "panics.example", "on purpose");
            if host == "unknown.example" {
                return Err(io::ErrorKind::NotFound.into());
            }
            Ok(vec![Ipv4Addr::LOCALHOST.into()])
        }
    }

    fn slow() -> (Arc<Slow>, SharedLookups) {
        let slow = Arc::new(Slow {
            asked: AtomicUsize::new(0),
            may_answer: Semaphore::new(0),
        });
        (slow.clone(), SharedLookups::new(slow))
    }

    #[tokio::test]
    async fn concurrent_requests_for_a_host_share_a_lookup() {
        let (slow, lookups) = slow();
        let ask = |host: &'static str| {
            let lookups = lookups.clone();
            tokio::spawn(async move { lookups.resolve(host, 80).await })
        };
        let mut asking: Vec<_> = (0..50).map(|_| ask("a.example")).collect();
        let failing = ask("unknown.example");
        asking.pop().expect("one").abort();
        while slow.asked.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
        slow.may_answer.add_permits(10);
        for one in asking {
            let found = one.await.expect("no panic").expect("found");
            assert_eq!(found, [Ipv4Addr::LOCALHOST]);
        }
        let error = failing.await.expect("no panic").expect_err("unknown");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(slow.asked.load(Ordering::SeqCst), 2);
        assert!(ask("a.example").await.expect("no panic").is_ok());
        assert_eq!(slow.asked.load(Ordering::SeqCst), 3, "nothing is kept");
    }

    #[tokio::test]
    async fn a_lookup_that_panics_fails_and_blocks_nobody() {
        let (slow, lookups) = slow();
        slow.may_answer.add_permits(10);
        assert!(lookups.resolve("panics.example", 80).await.is_err());
        assert!(lookups.lock().is_empty());
        assert!(lookups.resolve("a.example", 80).await.is_ok());
    }

    #[tokio::test]
    async fn a_lookup_is_cancelled_when_nobody_waits_for_it() {
        let (slow, lookups) = slow();
        let ask = || {
            let lookups = lookups.clone();
            tokio::spawn(async move { lookups.resolve("a.example", 80).await })
        };
        let asking = [ask(), ask()];
        while slow.asked.load(Ordering::SeqCst) < 1 {
            tokio::task::yield_now().await;
        }
        asking[0].abort();
        tokio::task::yield_now().await;
        assert_eq!(lookups.lock().len(), 1, "one still waits");
        asking[1].abort();
        while !lookups.lock().is_empty() {
            tokio::task::yield_now().await;
        }
        slow.may_answer.add_permits(10);
        assert!(lookups.resolve("a.example", 80).await.is_ok());
        assert_eq!(slow.asked.load(Ordering::SeqCst), 2, "asked anew");
    }
}
