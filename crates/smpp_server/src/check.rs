//! Reads what a client sends without acting on it. The fuzzer calls this.

use domain::message::text::Coding;
use domain::message::{Priority, WaitingMessage};
use domain::smpp_user::ReceiptId;
use domain::{Msisdn, Timestamp};
use smpp::{Body, Frame, Pdu, ShortMessage, Status, command};

use crate::deliver::read_message_id;
use crate::order::{self, Order};
use crate::receipt_request::ReceiptRequest;
use crate::requests;

/// Reads a frame of a bound client, and returns the answer that refuses it. `None` if it can be read: prices, senders,
/// countries and the IDs of messages are checked when it is carried out.
pub fn check_frame(frame: &Frame, system_id: &str, now: Timestamp) -> Option<Pdu> {
    match frame {
        Frame::Bad {
            command,
            sequence,
            why,
        } => {
            let refusal = requests::refuse(*command, *sequence, why.status());
            (!command::is_response(*command)).then_some(refusal)
        }
        Frame::Ok(pdu) => {
            let refused = check_body(&pdu.body, system_id, now).err()?;
            let request = pdu.body.command();
            Some(requests::refuse(request, pdu.sequence, refused))
        }
    }
}

fn check_body(body: &Body, system_id: &str, now: Timestamp) -> Result<(), Status> {
    match body {
        Body::SubmitSm(message) => check_message(message, system_id, now),
        Body::DataSm(data) => check_message(&requests::as_short_message(data), system_id, now),
        Body::SubmitMulti(multi) => {
            let order = requests::read_multi(multi, system_id, now)?;
            check_receipts(&order);
            Ok(())
        }
        Body::QuerySm(query) => check_id(&query.message_id),
        Body::CancelSm(cancel) => check_id(&cancel.message_id),
        Body::ReplaceSm(replace) => {
            check_id(&replace.message_id)?;
            order::read_source(&replace.source)?;
            let read = |waiting| requests::read_replace(replace, &waiting, system_id, now);
            // The text may be one of several codings, so it is read if one of them fits.
            let results: Vec<_> = waiting_messages(now).map(read).collect();
            let first = results.iter().find_map(|result| result.as_ref().err());
            let is_read = results.iter().any(Result::is_ok);
            first.filter(|_| !is_read).map_or(Ok(()), |why| Err(*why))
        }
        _ => Ok(()),
    }
}

fn check_message(message: &ShortMessage, system_id: &str, now: Timestamp) -> Result<(), Status> {
    let order = order::read(message, system_id, now)?;
    check_receipts(&order);
    let repeatable = order::repeatable(message, system_id);
    debug_assert_eq!(repeatable, order::repeatable(message, system_id));
    Ok(())
}

fn check_receipts(order: &Order) {
    let url = order.receipts.as_ref();
    debug_assert!(
        url.is_none_or(|url| ReceiptRequest::parse(url).is_some()),
        "the receipt could not be written"
    );
}

fn check_id(octets: &[u8]) -> Result<(), Status> {
    let forms = [ReceiptId::Decimal, ReceiptId::Hex];
    let mut ids = forms.map(|form| read_message_id(octets, form)).into_iter();
    let found = ids.find_map(|id| id);
    found.map(drop).ok_or(Status::ESME_RINVMSGID)
}

/// A scheduled message in each coding, chosen by the client and by the service.
fn waiting_messages(now: Timestamp) -> impl Iterator<Item = WaitingMessage> {
    let codings = [Coding::Gsm7, Coding::Ucs2, Coding::Binary].into_iter();
    codings.flat_map(move |coding| {
        [true, false].map(|coding_given| WaitingMessage {
            from: "Acme".to_owned(),
            to: Msisdn::parse("+447700900000").expect("a number"),
            text: "Hello".to_owned(),
            coding,
            coding_given,
            has_udh: false,
            dlr_url: None,
            priority: Priority::Normal,
            test_mode: None,
            at: now,
            expires_at: now,
        })
    })
}

#[cfg(test)]
mod tests {
    use smpp::{Address, CancelSm, DataMessage, Destination, QuerySm, ReplaceSm, SubmitMulti};

    use super::*;

    fn message() -> ShortMessage {
        ShortMessage {
            source: Address::new(5, 0, "Acme"),
            destination: Address::new(1, 1, "447700900000"),
            short_message: "Hello".into(),
            ..ShortMessage::default()
        }
    }

    #[test]
    fn each_request_is_read_or_refused_in_kind() {
        let to = |digits: &'static str| vec![Destination::Address(Address::new(1, 1, digits))];
        let multi = |destinations| SubmitMulti {
            message: message(),
            destinations,
        };
        let data = |source: &'static str| DataMessage {
            source: Address::new(5, 0, source),
            destination: message().destination,
            ..DataMessage::default()
        };
        let cancel = |id: &'static str| CancelSm {
            message_id: id.into(),
            ..CancelSm::default()
        };
        let query = |id: &'static str| QuerySm {
            message_id: id.into(),
            ..QuerySm::default()
        };
        let replace = |text: &'static [u8]| ReplaceSm {
            message_id: "7".into(),
            source: message().source,
            short_message: text.into(),
            ..ReplaceSm::default()
        };
        let flawed = ShortMessage {
            data_coding: 0x99,
            ..message()
        };
        for (body, expected) in [
            (Body::SubmitSm(Box::new(message())), None),
            (Body::SubmitSm(Box::new(flawed)), Some(Status::ESME_RINVDCS)),
            (Body::DataSm(Box::new(data("Acme"))), None),
            (
                Body::DataSm(Box::new(data(""))),
                Some(Status::ESME_RINVSRCADR),
            ),
            (Body::SubmitMulti(Box::new(multi(to("447700900000")))), None),
            (
                Body::SubmitMulti(Box::new(multi(to("123")))),
                Some(Status::ESME_RINVDSTADR),
            ),
            (Body::QuerySm(Box::new(query("1f"))), None),
            (
                Body::QuerySm(Box::new(query("x"))),
                Some(Status::ESME_RINVMSGID),
            ),
            (Body::CancelSm(Box::new(cancel("7"))), None),
            (
                Body::CancelSm(Box::new(cancel(""))),
                Some(Status::ESME_RINVMSGID),
            ),
            (Body::ReplaceSm(Box::new(replace(b"Hi"))), None),
            (Body::EnquireLink, None),
        ] {
            let frame = Frame::Ok(Pdu::new(5, body.clone()));
            let refused = check_frame(&frame, "acme", Timestamp::UNIX_EPOCH);
            let expected = expected.map(|status| requests::refuse(body.command(), 5, status));
            assert_eq!(refused, expected, "{body:?}");
        }
    }
}
