//! Hashing passwords: slow on purpose, so never on the threads that answer requests, and never many at once.

use std::sync::Arc;

use argon2::password_hash::phc;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use domain::person::{Password, PasswordHash};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::entropy;

/// Hashes that are worked on at once. Each takes 19 MiB and keeps a processor busy for some hundredths of a second.
const AT_ONCE: usize = 2;
/// Those who may wait for their turn; more are told to come back.
const MAX_WAITING: usize = 64;

/// Too many passwords wait to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many people sign in at this moment")]
pub struct Busy;

/// Hashes passwords by Argon2id.
pub struct Hasher {
    turns: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

impl Default for Hasher {
    fn default() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            places: Arc::new(Semaphore::new(AT_ONCE + MAX_WAITING)),
        }
    }
}

impl Hasher {
    /// What to keep of a password.
    pub async fn hash(&self, password: Password) -> Result<PasswordHash, Busy> {
        self.run(move || hash(&password)).await
    }

    /// Whether a password is the one that this was kept of. Where nothing was kept it takes the same time.
    pub async fn verify(
        &self,
        password: Password,
        kept: Option<PasswordHash>,
    ) -> Result<bool, Busy> {
        self.run(move || {
            let Some(kept) = kept else {
                std::hint::black_box(hash(&password));
                return false;
            };
            verify(&password, &kept)
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| Busy)?;
        let turn = self.turns.clone().acquire_owned().await;
        let turn = turn.expect("the semaphore is never closed");
        let work = tokio::task::spawn_blocking(move || {
            // Given back when the work is done, also when whoever asked for it has gone.
            let _held: (OwnedSemaphorePermit, OwnedSemaphorePermit) = (place, turn);
            work()
        });
        Ok(work.await.expect("hashing does not panic"))
    }
}

fn hash(password: &Password) -> PasswordHash {
    let salt = entropy::bytes::<16>();
    let hash = Argon2::default().hash_password_with_salt(password.reveal().as_bytes(), &salt);
    PasswordHash::new(hash.expect("the salt is long enough").to_string())
}

/// The parameters are those of the kept hash.
fn verify(password: &Password, kept: &PasswordHash) -> bool {
    let Ok(kept) = phc::PasswordHash::new(kept.as_str()) else {
        tracing::error!("a stored password hash cannot be read; nobody can sign in by it");
        return false;
    };
    let argon2 = Argon2::default();
    argon2
        .verify_password(password.reveal().as_bytes(), &kept)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> Password {
        Password::given(text.to_owned())
    }

    #[tokio::test]
    async fn a_password_is_recognised_and_no_other() {
        let hasher = Hasher::default();
        let kept = hasher.hash(given("violet tram eleven")).await;
        let kept = kept.expect("not busy");
        assert!(kept.as_str().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        for (text, kept, expected) in [
            ("violet tram eleven", Some(kept.clone()), true),
            ("violet tram Eleven", Some(kept.clone()), false),
            ("", Some(kept), false),
            ("violet tram eleven", None, false),
            (
                "violet tram eleven",
                Some(PasswordHash::new("nonsense".to_owned())),
                false,
            ),
        ] {
            let verified = hasher.verify(given(text), kept).await;
            assert_eq!(verified, Ok(expected), "{text}");
        }
    }

    #[tokio::test]
    async fn the_same_password_is_kept_differently_each_time() {
        let hasher = Hasher::default();
        let (one, two) = (hasher.hash(given("x")).await, hasher.hash(given("x")).await);
        assert_ne!(one, two);
    }

    #[tokio::test]
    async fn those_who_find_no_place_are_sent_away_and_places_come_back() {
        let hasher = Hasher::default();
        let all = u32::try_from(AT_ONCE + MAX_WAITING).expect("a few");
        let held = hasher.places.clone().try_acquire_many_owned(all);
        assert_eq!(hasher.hash(given("x")).await, Err(Busy));
        drop(held);
        assert!(hasher.hash(given("x")).await.is_ok());
    }
}
