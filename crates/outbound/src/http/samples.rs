//! Messages for tests.

use domain::delivery::{Claim, QueuedMessage};
use domain::message::text::{Coding, Shape, measure};
use domain::{
    AccountId, Action, ActionTitle, CallbackUrl, Channel, ImageUrl, Interactive, MessageId, Msisdn,
    Originator, Priority, Timestamp,
};

use super::template::Secrets;
use super::values::{MessageValues, Subject, Values};

pub(super) fn now() -> Timestamp {
    Timestamp::from_second(1_731_672_000).expect("in range")
}

pub(super) fn secrets() -> Secrets {
    Secrets::from([("key".to_owned(), "hunter2".to_owned())])
}

/// An SMS with the ID 7.
pub(super) fn message(text: &str) -> QueuedMessage {
    let one_part = Shape {
        coding: Coding::Gsm7,
        parts: 1,
    };
    QueuedMessage {
        id: MessageId::new(7).expect("in range"),
        account: AccountId::new(1).expect("in range"),
        channel: Channel::Sms,
        to: Msisdn::parse("+37120000001").expect("a number"),
        from: Originator::parse("Acme").ok(),
        text: text.to_owned(),
        interactive: None,
        shape: measure(text).unwrap_or(one_part),
        udh: None,
        priority: Priority::Normal,
        test_mode: None,
        notice: false,
        expires_at: now(),
        claim: Claim {
            due_at: now(),
            attempt: 1,
        },
        tries: 0,
        pool: None,
        unknown_tries: 0,
        unanswered_by: None,
        trace: None,
    }
}

/// A Viber message with a button and an image.
pub(super) fn viber() -> QueuedMessage {
    QueuedMessage {
        channel: Channel::Viber,
        interactive: Some(Interactive {
            action: Some(Action {
                url: CallbackUrl::parse("https://a.example/go").expect("a URL"),
                title: ActionTitle::parse("Go").expect("a title"),
            }),
            image: ImageUrl::parse("https://a.example/b.png").ok(),
        }),
        ..message("Hello")
    }
}

pub(super) fn values(queued: &QueuedMessage) -> Values<'_> {
    Values {
        subject: Subject::Message(MessageValues {
            queued,
            report_url: "https://sms.example/r?a=b",
            expires_in: 600,
            items: &[],
        }),
        at: now(),
    }
}
