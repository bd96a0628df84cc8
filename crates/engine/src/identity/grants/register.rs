//! Dynamic client registration (RFC 7591).

use std::net::IpAddr;

use domain::oauth::{ClientProblem, ClientRecord, read_client};
use domain::ports::{StoreError, StoredClient};
use domain::{Timestamp, TokenSecret};
use jiff::SignedDuration;

use super::Grants;
use crate::entropy;

/// A client that gets no tokens is deleted after this time.
const UNUSED_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
const MAX_CLIENTS: u32 = 100_000;
const ID_PREFIX: &str = "client_";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredClient {
    pub client: ClientRecord,
    pub issued_at: Timestamp,
}

/// Why a client was not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Its metadata is invalid.
    #[error(transparent)]
    Client(#[from] ClientProblem),
    /// Too many registrations came from the caller's address.
    #[error("too many clients were registered from this address")]
    Throttled {
        /// Seconds until the next attempt.
        retry_after_s: u32,
    },
    /// Too many clients are registered.
    #[error("too many clients are registered; try again later")]
    Full,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Grants {
    /// Registers a client with its metadata. It is deleted after a day unless it got tokens by then. Each call counts
    /// against the caller's address.
    pub async fn register(
        &self,
        json: &[u8],
        from: IpAddr,
    ) -> Result<RegisteredClient, RegisterError> {
        let now = self.clock.now();
        // The site is counted only if the address is not refused.
        let registrations = [&self.registrations, &self.registrations_by_site];
        if let Some(retry_after_s) = registrations.iter().find_map(|by| by.fail(from, now)) {
            return Err(RegisterError::Throttled { retry_after_s });
        }
        let letters = TokenSecret::from_seed(&entropy::bytes());
        let id = format!(
            "{ID_PREFIX}{}",
            &letters.reveal()[domain::access::token::PREFIX.len()..]
        );
        let client = StoredClient {
            client: read_client(json, &id, false)?,
            created_at: now,
            expires: now + UNUSED_LIFETIME,
        };
        if !self.store.create_client(&client, MAX_CLIENTS).await? {
            return Err(RegisterError::Full);
        }
        Ok(RegisteredClient {
            client: client.client,
            issued_at: now,
        })
    }
}
