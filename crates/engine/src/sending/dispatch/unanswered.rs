//! Messages that a carrier got without answering. It may have taken them, so no other carrier gets them, whatever the
//! rules say: they wait for that carrier, are sent to it again a few times, and then count as taken.

use domain::delivery::{CarrierRef, QueuedMessage, SendResult};
use jiff::SignedDuration;

use super::Dispatch;
use crate::sending::carriers::Routed;

/// How long a message waits if it is unknown whether its carrier has reported on it.
const RETRY_AFTER: SignedDuration = SignedDuration::from_secs(1);

impl Dispatch {
    /// The carriers that may get a message: the one that did not answer, if there is one; else those that the rules
    /// name. If that carrier is not in the configuration any more, returns what to store instead.
    pub(super) fn route(&self, queued: &QueuedMessage) -> Result<Routed, SendResult> {
        let (channel, id) = (queued.channel, queued.id.get());
        let by_rules = || self.routing.route(channel, queued.account, &queued.to, id);
        let Some(carrier) = &queued.unanswered_by else {
            return Ok(by_rules());
        };
        let carriers = self.routing.carriers();
        match (carriers.route_to(carrier), as_taken(queued)) {
            (Some(route), _) => Ok(Routed { route, carriers }),
            (None, None) => Ok(by_rules()),
            (None, Some(taken)) => {
                tracing::warn!(
                    carrier,
                    message_id = %queued.id,
                    "a carrier that did not answer to a message is gone; the message is not sent again and waits for a report"
                );
                Err(taken)
            }
        }
    }

    /// What to store instead of sending a message again that its carrier has reported on without having answered.
    pub(super) async fn reported(&self, queued: &QueuedMessage) -> Option<SendResult> {
        let carrier = queued.unanswered_by.as_ref()?;
        let of = CarrierRef::by_message(carrier, queued.id);
        match self.store.has_early_receipt(&of).await {
            Ok(is_reported) => is_reported.then(|| as_taken(queued)).flatten(),
            Err(error) => {
                tracing::warn!(%error, "receipts of messages without an answer cannot be read; trying again");
                let again = self.clock.now() + RETRY_AFTER;
                Some(SendResult::Later(again.min(queued.expires_at)))
            }
        }
    }
}

/// The result of a message that a carrier may have and that is not sent again: it counts as taken, and waits for its
/// report until it expires. `None` if no carrier may have it.
pub(super) fn as_taken(queued: &QueuedMessage) -> Option<SendResult> {
    let carrier = queued.unanswered_by.as_ref()?;
    let of = CarrierRef::by_message(carrier, queued.id);
    Some(SendResult::Taken {
        carrier: of.carrier,
        references: vec![of.reference],
    })
}
