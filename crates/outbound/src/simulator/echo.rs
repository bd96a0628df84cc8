//! The handset that sends back every text that it gets.

use domain::Channel;
use domain::delivery::QueuedMessage;
use domain::inbound::number::InboundNumber;
use domain::inbound::text::Alphabet;
use domain::message::text::{Coding, Shape, encode};
use domain::ports::{DeliveredCopy, HandsetText};

use super::{NAME, RETRY_AFTER, Simulator};

/// Its number.
const ECHO_NUMBER: &str = "447700900900";

/// What the recipient of a message sends back: the same text, if the sender is a number.
pub(super) fn of(queued: &QueuedMessage) -> Option<HandsetText> {
    if queued.channel != Channel::Sms || queued.to.digits() != ECHO_NUMBER {
        return None;
    }
    let sender = queued.from.as_ref()?.to_string();
    let coding = queued.shape.coding;
    let whole = Shape { coding, parts: 1 };
    let part = encode(&queued.text, whole, None, 0).into_iter().next()?;
    Some(HandsetText {
        carrier: NAME.to_owned(),
        from: queued.to.to_string(),
        to: InboundNumber::parse(&sender).ok()?,
        concatenation: None,
        alphabet: match coding {
            Coding::Gsm7 => Alphabet::Gsm7,
            Coding::Binary => Alphabet::Binary,
            Coding::Ucs2 => Alphabet::Ucs2,
        },
        octets: part.payload,
        udh: None,
    })
}

impl Simulator {
    pub(super) async fn send_back(&self, text: HandsetText) {
        let mut random = [0; 32];
        getrandom::fill(&mut random).expect("the operating system gives random bytes");
        let (session, rest) = random.split_at(8);
        let (hash, _) = rest.split_at(16);
        let copy = DeliveredCopy {
            session: i64::from_ne_bytes(session.try_into().expect("8 bytes")),
            number: 0,
            hash: hash.try_into().expect("16 bytes"),
        };
        while self.handsets.receive(copy, text.clone()).await.is_err() {
            tokio::time::sleep(RETRY_AFTER).await;
        }
        self.handsets.confirm(&[(copy.session, copy.number)]);
    }
}
