//! Clients that register by themselves (RFC 7591).

use std::net::IpAddr;

use domain::oauth::{ClientProblem, ClientRecord, read_client};
use domain::ports::{KeptClient, StoreError};
use domain::{Timestamp, TokenSecret};
use jiff::SignedDuration;

use super::Grants;
use crate::entropy;

/// A client that nobody uses is forgotten after so long.
const UNUSED_KEPT: SignedDuration = SignedDuration::from_hours(24);
/// Clients that are known at once.
const MAX_CLIENTS: u32 = 100_000;
/// How a client's ID starts.
const ID_PREFIX: &str = "client_";

/// A client that is known from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredClient {
    /// The client.
    pub client: ClientRecord,
    /// When it registered.
    pub issued_at: Timestamp,
}

/// Why a client is not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// What it says of itself is wrong.
    #[error(transparent)]
    Client(#[from] ClientProblem),
    /// Too many came from the caller's address.
    #[error("too many clients were registered from this address")]
    Throttled {
        /// When to try again.
        retry_after_s: u32,
    },
    /// Too many are in use.
    #[error("too many clients are registered; try again later")]
    Full,
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Grants {
    /// Registers a client from what it says of itself. It is forgotten after a day, unless it is given tokens by then.
    /// Each try counts against the caller's address.
    pub async fn register(
        &self,
        json: &[u8],
        from: IpAddr,
    ) -> Result<RegisteredClient, RegisterError> {
        let now = self.clock.now();
        // One after the other, so that an address that is refused does not use up what its site may do.
        let registering = [&self.registering, &self.registering_by_site];
        if let Some(retry_after_s) = registering.iter().find_map(|by| by.fail(from, now)) {
            return Err(RegisterError::Throttled { retry_after_s });
        }
        let letters = TokenSecret::from_seed(&entropy::bytes());
        let id = format!(
            "{ID_PREFIX}{}",
            &letters.reveal()[domain::access::token::PREFIX.len()..]
        );
        let kept = KeptClient {
            client: read_client(json, &id, false)?,
            created_at: now,
            expires: now + UNUSED_KEPT,
        };
        if !self.store.create_client(&kept, MAX_CLIENTS).await? {
            return Err(RegisterError::Full);
        }
        Ok(RegisteredClient {
            client: kept.client,
            issued_at: now,
        })
    }
}
