//! A text from a simulated handset, which somebody asks for.

use std::sync::Arc;

use domain::inbound::assembly::WholeText;
use domain::inbound::number::InboundNumber;
use domain::message::text::{Coding, is_gsm7};
use domain::ports::{Delivered, DeliveredCopy, IfUnclear, Store, StoreError};
use domain::{Clock, MessageId, Msisdn, NodeId};

use super::compose::{Composer, Text};
use crate::entropy;

/// Sends texts as if a handset had sent them.
pub struct SimulatedHandset {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    composer: Composer,
}

impl SimulatedHandset {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, composer: Composer) -> Self {
        Self {
            store,
            clock,
            composer,
        }
    }

    /// Sends a text from a handset to a number, and returns the ID of the message.
    pub async fn send(
        &self,
        from: &Msisdn,
        to: InboundNumber,
        text: &str,
    ) -> Result<MessageId, StoreError> {
        let coding = if text.chars().all(is_gsm7) {
            Coding::Gsm7
        } else {
            Coding::Ucs2
        };
        let message = self.composer.message(Text {
            carrier: domain::delivery::SIMULATOR.to_owned(),
            from: from.to_string(),
            to,
            whole: WholeText {
                text: text.to_owned(),
                coding,
                is_incomplete: false,
            },
            udh: None,
            parts: 1,
            received_at: self.clock.now(),
        });
        let message = message.await?;
        let id = message.message.id;
        // No carrier delivers it again.
        let copy = DeliveredCopy {
            session: i64::from_ne_bytes(entropy::bytes()),
            number: 0,
            hash: entropy::bytes(),
        };
        let nobody = NodeId::new(1).expect("in range");
        let batch = vec![(copy, Delivered::Message(Box::new(message)))];
        self.store
            .store_delivered(nobody, Arc::new(batch), IfUnclear::Store)
            .await?;
        self.store
            .confirm_copies(&[(copy.session, copy.number)])
            .await?;
        Ok(id)
    }
}
