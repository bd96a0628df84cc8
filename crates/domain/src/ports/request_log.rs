//! Requests of programs that were refused.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::ids::AccountId;

/// A refused request. It has no numbers, texts or other values of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRequest {
    pub account: AccountId,
    /// The name of the token.
    pub token: String,
    pub at: Timestamp,
    pub method: String,
    /// The address with names instead of values, such as `/sms/status/{id}`.
    pub route: String,
    /// The status of the answer.
    pub status: u16,
    /// The number of the error, if the catalogue has one.
    pub error: Option<u16>,
    pub message: String,
}

#[async_trait]
pub trait RequestLogStore: Send + Sync + 'static {
    /// Stores refused requests, and keeps only the newest `keep` of each of their accounts. Of two requests of an account
    /// with the same time, one is kept.
    async fn record_refused_requests(
        &self,
        requests: &[RefusedRequest],
        keep: u32,
    ) -> Result<(), StoreError>;

    /// The refused requests of a token, the newest first.
    async fn list_refused_requests(
        &self,
        account: AccountId,
        token: &str,
        limit: u32,
    ) -> Result<Vec<RefusedRequest>, StoreError>;
}
