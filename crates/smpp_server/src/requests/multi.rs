//! `submit_multi`: a message to several recipients, stored at once as `POST /sms` stores it.

use std::borrow::Cow;
use std::sync::Arc;

use domain::smpp_user::SmppUser;
use domain::{Msisdn, Timestamp};
use engine::sending::submit::{SubmitError, is_recipient};
use smpp::{Address, Body, Destination, Pdu, Status, SubmitMulti, SubmitMultiResp};

use super::{check_rate, count, result_name};
use crate::deliver::message_id;
use crate::order::{self, Order};
use crate::server::SmppServer;

/// A destination that gets no message, and why.
type Unsuccessful = (Address, Status);

/// Stores a message to several recipients and answers after the commit, with those that do not get it.
pub(crate) async fn submit_multi(
    server: Arc<SmppServer>,
    user: Arc<SmppUser>,
    sequence: u32,
    multi: Box<SubmitMulti>,
) -> Pdu {
    let mut resp = SubmitMultiResp::default();
    let stored = store(&server, &user, &multi, &mut resp.unsuccessful).await;
    let status = match stored {
        Ok(first) => {
            count("accepted");
            resp.message_id = message_id(first, user.receipts.id).into();
            Status::OK
        }
        Err(status) => {
            count(result_name(status));
            status
        }
    };
    Pdu::with_status(status, sequence, Body::SubmitMultiResp(Box::new(resp)))
}

/// Returns the ID of the first message; the others follow in the order of their recipients.
async fn store(
    server: &SmppServer,
    user: &SmppUser,
    multi: &SubmitMulti,
    unsuccessful: &mut Vec<Unsuccessful>,
) -> Result<u64, Status> {
    let mut recipients = read_destinations(&multi.destinations, unsuccessful)?;
    check_rate(server, user, recipients.len())?;
    loop {
        if recipients.is_empty() {
            let why = unsuccessful.first().map(|(_, status)| *status);
            return Err(why.unwrap_or(Status::ESME_RINVNUMDESTS));
        }
        let to = recipients.iter().map(|(_, to)| Cow::Owned(to.clone()));
        let system_id = user.system_id.as_str();
        let now = server.engine.now();
        let order = order::read_multi(&multi.message, to.collect(), system_id, now)?;
        let submit = &server.engine.submit;
        let receipts = order.receipts.filter(|_| user.may_receive());
        let sent = submit.send_by_smpp(&user.access, order.sms, receipts, None);
        match sent.await {
            Ok(accepted) => return accepted.ids().next().ok_or(Status::ESME_RSYSERR),
            // Nothing is stored yet: the others are tried without this one.
            Err(SubmitError::Country { to, .. }) => {
                let before = recipients.len();
                recipients.retain(|(address, text)| {
                    let is_refused = Msisdn::parse(text).is_ok_and(|number| number == to);
                    if is_refused {
                        unsuccessful.push(((*address).clone(), Status::ESME_RSUBMITFAIL));
                    }
                    !is_refused
                });
                if recipients.len() == before {
                    return Err(Status::ESME_RSUBMITFAIL);
                }
            }
            Err(error) => return Err(order::refusal(&error)),
        }
    }
}

/// The recipients with their numbers. Numbers that cannot exist are added to `unsuccessful`; an address that cannot even
/// be repeated in the answer refuses everything.
fn read_destinations<'a>(
    destinations: &'a [Destination],
    unsuccessful: &mut Vec<Unsuccessful>,
) -> Result<Vec<(&'a Address, String)>, Status> {
    if destinations.is_empty() {
        return Err(Status::ESME_RINVNUMDESTS);
    }
    let mut recipients = Vec::with_capacity(destinations.len());
    for destination in destinations {
        let Destination::Address(address) = destination else {
            return Err(Status::ESME_RCNTSUBDL);
        };
        let number = order::read_destination(address)?;
        if is_recipient(&number) {
            recipients.push((address, number));
        } else {
            unsuccessful.push((address.clone(), Status::ESME_RINVDSTADR));
        }
    }
    Ok(recipients)
}

/// Reads a message to several recipients. Storing it may still refuse some of them.
pub(crate) fn read(multi: &SubmitMulti, system_id: &str, now: Timestamp) -> Result<Order, Status> {
    let mut unsuccessful = Vec::new();
    let recipients = read_destinations(&multi.destinations, &mut unsuccessful)?;
    if let Some((_, status)) = unsuccessful.first().filter(|_| recipients.is_empty()) {
        return Err(*status);
    }
    let to = recipients.into_iter().map(|(_, to)| Cow::Owned(to));
    order::read_multi(&multi.message, to.collect(), system_id, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(digits: &'static str) -> Destination {
        Destination::Address(Address::new(1, 1, digits))
    }

    #[test]
    fn destinations_are_checked_one_by_one() {
        let read = |destinations: &[Destination]| -> Result<(usize, usize), Status> {
            let mut unsuccessful = Vec::new();
            let recipients = read_destinations(destinations, &mut unsuccessful)?;
            Ok((recipients.len(), unsuccessful.len()))
        };
        let (good, bad) = (address("447700900123"), address("123"));
        let list = Destination::List("all".into());
        for (destinations, expected) in [
            (vec![good.clone(), bad.clone()], Ok((1, 1))),
            (vec![bad], Ok((0, 1))),
            (vec![], Err(Status::ESME_RINVNUMDESTS)),
            (vec![good.clone(), list], Err(Status::ESME_RCNTSUBDL)),
            (vec![good, address("")], Err(Status::ESME_RINVDSTADR)),
        ] {
            assert_eq!(read(&destinations), expected, "{destinations:?}");
        }
    }
}
