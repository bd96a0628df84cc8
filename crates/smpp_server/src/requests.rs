//! Requests of bound clients: each becomes an answer, after the database has been asked.

mod multi;
mod replace;

use std::sync::Arc;

use domain::MessageId;
use domain::kill_point::{KillPoint, pass};
use domain::message::MessageState;
use domain::ports::Cancel;
use domain::smpp_user::SmppUser;
use smpp::{
    Body, CancelSm, DataMessage, MessageResp, Pdu, QuerySm, QuerySmResp, ShortMessage, Status,
    command, message_state,
};

use crate::deliver::{message_id, read_message_id, state};
use crate::server::SmppServer;
use crate::{order, time};

pub(crate) use multi::{read as read_multi, submit_multi};
pub(crate) use replace::{read as read_replace, replace};

/// A message that is to be sent, and which command brought it.
pub(crate) enum Submit {
    SubmitSm(Box<ShortMessage>),
    DataSm(Box<DataMessage>),
}

impl Submit {
    /// The message, and how its answer begins.
    fn into_parts(self) -> (Box<ShortMessage>, fn(MessageResp) -> Body) {
        match self {
            Self::SubmitSm(message) => (message, Body::SubmitSmResp),
            Self::DataSm(data) => (Box::new(as_short_message(&data)), Body::DataSmResp),
        }
    }
}

/// Stores a message by the rules of `POST /sms` and answers after the commit.
pub(crate) async fn submit(
    server: Arc<SmppServer>,
    user: Arc<SmppUser>,
    sequence: u32,
    submitted: Submit,
) -> Pdu {
    let (message, answer) = submitted.into_parts();
    let (status, id) = match store(&server, &user, message).await {
        Ok(id) => {
            pass(KillPoint::SmppMessageStored);
            count("accepted");
            (Status::OK, message_id(id, user.receipts.id))
        }
        Err(status) => {
            count(result_name(status));
            (status, String::new())
        }
    };
    Pdu::with_status(status, sequence, answer(MessageResp::new(id)))
}

/// What metrics call a status that is not OK.
const fn result_name(status: Status) -> &'static str {
    match status {
        Status::ESME_RTHROTTLED => "throttled",
        Status::ESME_RSYSERR => "failed",
        _ => "refused",
    }
}

fn count(result: &'static str) {
    metrics::counter!("switchboard_smpp_submits_total", "result" => result).increment(1);
}

/// Counts messages of the user, or requests about them, against this node's share of its limit.
fn check_rate(server: &SmppServer, user: &SmppUser, messages: usize) -> Result<(), Status> {
    let Some(most) = server.engine.smpp_users.per_second(user) else {
        return Ok(());
    };
    for _ in 0..messages {
        let allowance = server.rates.count(user.id, most, server.started.elapsed());
        if allowance.is_exceeded {
            return Err(Status::ESME_RTHROTTLED);
        }
    }
    Ok(())
}

async fn store(
    server: &SmppServer,
    user: &SmppUser,
    message: Box<ShortMessage>,
) -> Result<u64, Status> {
    check_rate(server, user, 1)?;
    let now = server.engine.now();
    let order = order::read(&message, user.system_id.as_str(), now)?;
    let receipts = order.receipts.filter(|_| user.may_receive());
    let submit = &server.engine.submit;
    let is_idempotent = server.settings.idempotent_references;
    let repeatable = is_idempotent.then(|| order::repeatable(&message, user.system_id.as_str()));
    let repeatable = repeatable.flatten();
    // While it waits for the database, it would keep the memory of its whole PDU.
    drop(message);
    let refusal = |error| order::refusal(&error);
    let earlier = match &repeatable {
        Some(request) => submit.find_answer(user.access.account, request).await,
        None => Ok(None),
    };
    let accepted = if let Some(earlier) = earlier.map_err(refusal)? {
        earlier
    } else {
        let sent = submit.send_by_smpp(&user.access, order.sms, receipts, repeatable);
        sent.await.map_err(refusal)?
    };
    accepted.ids().next().ok_or(Status::ESME_RSYSERR)
}

/// The fields that both commands have, with the text in `message_payload`.
pub(crate) fn as_short_message(data: &DataMessage) -> ShortMessage {
    ShortMessage {
        service_type: data.service_type.clone(),
        source: data.source.clone(),
        destination: data.destination.clone(),
        esm_class: data.esm_class,
        registered_delivery: data.registered_delivery,
        data_coding: data.data_coding,
        tlvs: data.tlvs.clone(),
        ..ShortMessage::default()
    }
}

/// Says what became of a message of the user's account.
pub(crate) async fn query(
    server: Arc<SmppServer>,
    user: Arc<SmppUser>,
    sequence: u32,
    query: Box<QuerySm>,
) -> Pdu {
    let found = find_state(&server, &user, &query.message_id).await;
    let (status, resp) = match found {
        Ok((id, state)) => (Status::OK, query_resp(id, state)),
        Err(status) => (status, QuerySmResp::default()),
    };
    Pdu::with_status(status, sequence, Body::QuerySmResp(Box::new(resp)))
}

async fn find_state(
    server: &SmppServer,
    user: &SmppUser,
    id: &[u8],
) -> Result<(String, MessageState), Status> {
    check_rate(server, user, 1)?;
    if user.access.suspended {
        return Err(Status::ESME_RQUERYFAIL);
    }
    let id = read_id(user, id)?;
    let found = server.engine.messages.find(user.access.account, id).await;
    let found = found.map_err(|_| Status::ESME_RSYSERR)?;
    let state = found.ok_or(Status::ESME_RINVMSGID)?.state;
    Ok((message_id(id.get(), user.receipts.id), state))
}

fn query_resp(id: String, found: MessageState) -> QuerySmResp {
    let (message_state, final_at, error) = match found {
        MessageState::Scheduled { .. } => (message_state::SCHEDULED, None, 0),
        MessageState::Queued | MessageState::Sent => (message_state::ENROUTE, None, 0),
        MessageState::Ended { outcome, at } => {
            (state(outcome).0, Some(at), outcome.code().number())
        }
        MessageState::Cancelled { at } => (message_state::DELETED, Some(at), 0),
    };
    QuerySmResp {
        message_id: id.into(),
        final_date: final_at.map(time::absolute_text).unwrap_or_default().into(),
        message_state,
        // The field has one octet; larger codes are in the receipt.
        error_code: u8::try_from(error).unwrap_or(u8::MAX),
    }
}

/// Cancels a scheduled message.
pub(crate) async fn cancel(
    server: Arc<SmppServer>,
    user: Arc<SmppUser>,
    sequence: u32,
    cancel: Box<CancelSm>,
) -> Pdu {
    let cancelled = try_cancel(&server, &user, &cancel.message_id).await;
    let status = cancelled.err().unwrap_or(Status::OK);
    Pdu::with_status(status, sequence, Body::CancelSmResp)
}

async fn try_cancel(server: &SmppServer, user: &SmppUser, id: &[u8]) -> Result<(), Status> {
    check_rate(server, user, 1)?;
    if user.access.suspended {
        return Err(Status::ESME_RCANCELFAIL);
    }
    let id = read_id(user, id)?;
    match server.engine.messages.cancel(user.access.account, id).await {
        Ok(Cancel::Done) => Ok(()),
        Ok(Cancel::NotWaiting(_)) => Err(Status::ESME_RCANCELFAIL),
        Ok(Cancel::Unknown) => Err(Status::ESME_RINVMSGID),
        Err(_) => Err(Status::ESME_RSYSERR),
    }
}

fn read_id(user: &SmppUser, octets: &[u8]) -> Result<MessageId, Status> {
    let id = read_message_id(octets, user.receipts.id);
    id.and_then(MessageId::new).ok_or(Status::ESME_RINVMSGID)
}

/// The answer to a request that is refused, whatever it is.
pub(crate) fn refuse(request: u32, sequence: u32, status: Status) -> Pdu {
    let body = match request {
        command::SUBMIT_SM => Body::SubmitSmResp(MessageResp::default()),
        command::SUBMIT_MULTI => Body::SubmitMultiResp(Box::default()),
        command::DATA_SM => Body::DataSmResp(MessageResp::default()),
        command::QUERY_SM => Body::QuerySmResp(Box::default()),
        command::CANCEL_SM => Body::CancelSmResp,
        command::REPLACE_SM => Body::ReplaceSmResp,
        _ => Body::GenericNack,
    };
    Pdu::with_status(status, sequence, body)
}
