//! Names to addresses.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::{Semaphore, watch};

/// Looks names up.
#[async_trait]
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a host, the preferred one first. The port is only there because some resolvers ask for it.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<IpAddr>>;
}

/// The operating system's resolver, so that its files, search rules and order of preference hold.
///
/// It blocks a thread for each lookup, for as long as the name server makes it wait. So only so many run at once; a
/// thread counts until it is free, also when nobody waits for it any more.
#[derive(Debug)]
pub struct SystemResolver {
    threads: Arc<Semaphore>,
}

impl SystemResolver {
    /// At most so many lookups at once.
    pub fn new(max_lookups: usize) -> Self {
        Self {
            threads: Arc::new(Semaphore::new(max_lookups)),
        }
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<IpAddr>> {
        let thread = Arc::clone(&self.threads).acquire_owned().await;
        let thread = thread.expect("the semaphore is never closed");
        let host = host.to_owned();
        let lookup = tokio::task::spawn_blocking(move || {
            let _thread = thread;
            let found = (host.as_str(), port).to_socket_addrs()?;
            Ok(found.map(|address: SocketAddr| address.ip()).collect())
        });
        lookup.await.map_err(io::Error::other)?
    }
}

/// One lookup at a time for each host: those who ask meanwhile share its answer. So a name server that hangs for one name
/// takes one thread, however many connections to that host are wanted.
#[derive(Clone)]
pub struct SharedLookups {
    resolver: Arc<dyn Resolve>,
    under_way: Arc<Mutex<HashMap<Host, watch::Receiver<Option<Answer>>>>>,
}

type Host = (String, u16);
/// What a lookup found. An error is kept by its kind, since it has many readers.
type Answer = Result<Vec<IpAddr>, io::ErrorKind>;

impl SharedLookups {
    /// Asks this resolver.
    pub fn new(resolver: Arc<dyn Resolve>) -> Self {
        Self {
            resolver,
            under_way: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Host, watch::Receiver<Option<Answer>>>> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the lookup of a host, or begins one.
    fn join(&self, host: &str, port: u16) -> watch::Receiver<Option<Answer>> {
        let key = (host.to_owned(), port);
        let mut under_way = self.lock();
        if let Some(answer) = under_way.get(&key) {
            return answer.clone();
        }
        let (found, answer) = watch::channel(None);
        under_way.insert(key.clone(), answer.clone());
        drop(under_way);
        let lookups = self.clone();
        tokio::spawn(async move {
            // Gone in any case, also after a panic.
            let _under_way = UnderWay {
                lookups: &lookups,
                key: &key,
            };
            let result = lookups.resolver.resolve(&key.0, key.1).await;
            found.send_replace(Some(result.map_err(|error| error.kind())));
        });
        answer
    }
}

struct UnderWay<'a> {
    lookups: &'a SharedLookups,
    key: &'a Host,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.lookups.lock().remove(self.key);
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

    use super::*;

    /// Answers as soon as it may, and counts the lookups.
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
    async fn those_who_ask_for_one_host_share_a_lookup() {
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
    async fn a_lookup_that_panics_is_no_answer_and_blocks_nobody() {
        let (slow, lookups) = slow();
        slow.may_answer.add_permits(10);
        assert!(lookups.resolve("panics.example", 80).await.is_err());
        assert!(lookups.lock().is_empty());
        assert!(lookups.resolve("a.example", 80).await.is_ok());
    }
}
