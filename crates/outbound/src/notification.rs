//! Sends notifications over HTTP, signed as callbacks are.

use async_trait::async_trait;
use domain::Timestamp;
use domain::ports::{NotificationSender, SignedPost};

use crate::callback::CallbackClient;

/// Sends notifications.
pub struct Notifier {
    /// Follows the rules for the URLs of callers.
    pub guarded: CallbackClient,
    /// For the URLs of the configuration, which may be any address.
    pub open: CallbackClient,
}

#[async_trait]
impl NotificationSender for Notifier {
    async fn post(&self, post: SignedPost<'_>, now: Timestamp) -> Result<(), String> {
        let client = if post.is_operators {
            &self.open
        } else {
            &self.guarded
        };
        client.post(&post, now).await
    }
}
