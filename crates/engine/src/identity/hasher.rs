//! Password hashing. It is slow on purpose, so it runs on blocking threads and only a few at a time.

use std::sync::Arc;

use argon2::password_hash::phc;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use domain::person::{Password, PasswordHash};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::entropy;

/// Hashes computed at once. Each takes 19 MiB and some hundredths of a second of a processor.
const MAX_RUNNING: usize = 2;
/// How many callers may wait; further ones are refused.
const MAX_WAITING: usize = 64;

/// Too many password checks are waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many people sign in at this moment")]
pub struct Busy;

/// Hashes passwords with Argon2id.
pub struct Hasher {
    running: Arc<Semaphore>,
    admitted: Arc<Semaphore>,
}

impl Default for Hasher {
    fn default() -> Self {
        Self {
            running: Arc::new(Semaphore::new(MAX_RUNNING)),
            admitted: Arc::new(Semaphore::new(MAX_RUNNING + MAX_WAITING)),
        }
    }
}

impl Hasher {
    /// Hashes a password for storage.
    pub async fn hash(&self, password: Password) -> Result<PasswordHash, Busy> {
        self.run(move || hash(&password)).await
    }

    /// Whether a password matches a stored hash. Takes the same time if there is none.
    pub async fn verify(
        &self,
        password: Password,
        stored: Option<PasswordHash>,
    ) -> Result<bool, Busy> {
        self.run(move || {
            let Some(stored) = stored else {
                std::hint::black_box(hash(&password));
                return false;
            };
            verify(&password, &stored)
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let admitted_permit = self
            .admitted
            .clone()
            .try_acquire_owned()
            .map_err(|_| Busy)?;
        let running_permit = self.running.clone().acquire_owned().await;
        let running_permit = running_permit.expect("the semaphore is never closed");
        let work = tokio::task::spawn_blocking(move || {
            // The permits are held until the work is done, even if the caller has gone.
            let _held: (OwnedSemaphorePermit, OwnedSemaphorePermit) =
                (admitted_permit, running_permit);
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

/// Uses the parameters of the stored hash.
fn verify(password: &Password, stored: &PasswordHash) -> bool {
    let Ok(stored) = phc::PasswordHash::new(stored.as_str()) else {
        tracing::error!("a stored password hash cannot be read; its owner cannot sign in");
        return false;
    };
    let argon2 = Argon2::default();
    argon2
        .verify_password(password.reveal().as_bytes(), &stored)
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
        let stored = hasher.hash(given("violet tram eleven")).await;
        let stored = stored.expect("not busy");
        assert!(
            stored
                .as_str()
                .starts_with("$argon2id$v=19$m=19456,t=2,p=1$")
        );
        for (text, stored, expected) in [
            ("violet tram eleven", Some(stored.clone()), true),
            ("violet tram Eleven", Some(stored.clone()), false),
            ("", Some(stored), false),
            ("violet tram eleven", None, false),
            (
                "violet tram eleven",
                Some(PasswordHash::new("nonsense".to_owned())),
                false,
            ),
        ] {
            let verified = hasher.verify(given(text), stored).await;
            assert_eq!(verified, Ok(expected), "{text}");
        }
    }

    #[tokio::test]
    async fn the_same_password_has_a_different_hash_each_time() {
        let hasher = Hasher::default();
        let (one, two) = (hasher.hash(given("x")).await, hasher.hash(given("x")).await);
        assert_ne!(one, two);
    }

    #[tokio::test]
    async fn callers_beyond_the_limit_are_refused_until_permits_are_free() {
        let hasher = Hasher::default();
        let all = u32::try_from(MAX_RUNNING + MAX_WAITING).expect("a few");
        let held = hasher.admitted.clone().try_acquire_many_owned(all);
        assert_eq!(hasher.hash(given("x")).await, Err(Busy));
        drop(held);
        assert!(hasher.hash(given("x")).await.is_ok());
    }
}
