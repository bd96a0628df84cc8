//! Sends the replies to words such as STOP. They are stored with the message that they reply to, so none is lost, and
//! the ID of that message makes sure that none is sent twice.

use std::sync::Arc;
use std::time::Duration;

use domain::ports::{DueReply, Store, StoreError};
use domain::{Clock, Originator};
use jiff::SignedDuration;
use tokio::time::sleep;

use crate::sending::submit::{IdempotentRequest, Notice, Submit, SubmitError};

/// How often replies are searched.
const SEARCH_EVERY: Duration = Duration::from_millis(500);
/// Maximum number of replies that one search finds.
const SEARCH_STEP: u32 = 200;
/// After this time a reply would only confuse.
const LIFETIME: SignedDuration = SignedDuration::from_hours(1);

/// Sends replies.
pub(super) struct Replies {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    submit: Arc<Submit>,
}

impl Replies {
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        submit: Arc<Submit>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            submit,
        })
    }

    pub(super) async fn run(self: Arc<Self>) {
        loop {
            if let Err(error) = self.send_due().await {
                tracing::warn!(%error, "replies to words such as STOP cannot be read; trying again");
            }
            sleep(SEARCH_EVERY).await;
        }
    }

    async fn send_due(&self) -> Result<(), StoreError> {
        for reply in self.store.list_due_replies(SEARCH_STEP).await? {
            let id = reply.id;
            match self.send(reply).await {
                Ok(()) => {}
                Err(
                    error @ (SubmitError::Busy | SubmitError::Stopping | SubmitError::Store(_)),
                ) => {
                    tracing::debug!(%error, "a reply is sent later");
                    return Ok(());
                }
                Err(error) => tracing::warn!(%error, message = %id, "a reply cannot be sent"),
            }
            self.store.remove_due_reply(id).await?;
        }
        Ok(())
    }

    async fn send(&self, reply: DueReply) -> Result<(), SubmitError> {
        let age = self.clock.now().duration_since(reply.received_at);
        // Phone numbers and short codes are valid originators.
        let Ok(from) = Originator::parse(&reply.from.to_string()) else {
            return Ok(());
        };
        if age >= LIFETIME {
            return Ok(());
        }
        let notice = Notice {
            to: reply.to,
            from,
            text: reply.text,
            carries_code: false,
            paid: false,
            lifetime: LIFETIME - age,
        };
        let once = IdempotentRequest::of_reply(reply.id);
        let sent = self.submit.send_notice(reply.account, notice, Some(once));
        sent.await.map(drop)
    }
}
