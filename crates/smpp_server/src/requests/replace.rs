//! `replace_sm`: another text and other times for a message that is still scheduled.

use std::sync::Arc;

use domain::message::WaitingMessage;
use domain::ports::{Replace, StoreError};
use domain::smpp_user::SmppUser;
use domain::{CallbackUrl, Originator};
use engine::sending::submit::ReplacementInput;
use jiff::Timestamp;
use smpp::{Address, Body, Pdu, ReplaceSm, Status};

use super::{check_rate, read_id};
use crate::receipt_request::{ReceiptRequest, Wanted};
use crate::server::SmppServer;
use crate::{order, time};

/// Replaces a message and answers after the commit.
pub(crate) async fn replace(
    server: Arc<SmppServer>,
    user: Arc<SmppUser>,
    sequence: u32,
    replace: Box<ReplaceSm>,
) -> Pdu {
    let replaced = try_replace(&server, &user, &replace).await;
    let status = replaced.err().unwrap_or(Status::OK);
    Pdu::with_status(status, sequence, Body::ReplaceSmResp)
}

async fn try_replace(
    server: &SmppServer,
    user: &SmppUser,
    replace: &ReplaceSm,
) -> Result<(), Status> {
    let failed = |_: StoreError| Status::ESME_RSYSERR;
    check_rate(server, user, 1)?;
    if replace.default_message_id != 0 {
        return Err(Status::ESME_RINVDFTMSGID);
    }
    let id = read_id(user, &replace.message_id)?;
    let (account, messages) = (user.access.account, &server.engine.messages);
    let found = messages.find_waiting(account, id).await;
    let Some(waiting) = found.map_err(failed)? else {
        let found = messages.find(account, id).await.map_err(failed)?;
        return Err(match found {
            Some(_) => Status::ESME_RREPLACEFAIL,
            None => Status::ESME_RINVMSGID,
        });
    };
    check_source(replace, &waiting)?;
    let system_id = user.system_id.as_str();
    let mut by = read(replace, &waiting, system_id, server.engine.now())?;
    by.receipts = by
        .receipts
        .filter(|url| !url.is_smpp() || user.may_receive());
    let submit = &server.engine.submit;
    let replaced = submit.replace(&user.access, id, &waiting, by).await;
    match replaced.map_err(|error| order::refusal(&error)) {
        Ok(Replace::Done) => Ok(()),
        Ok(Replace::NotWaiting(_)) | Err(Status::ESME_RSUBMITFAIL) => {
            Err(Status::ESME_RREPLACEFAIL)
        }
        Ok(Replace::Unknown) => Err(Status::ESME_RINVMSGID),
        Err(status) => Err(status),
    }
}

/// The source address must be that of the message.
fn check_source(replace: &ReplaceSm, waiting: &WaitingMessage) -> Result<(), Status> {
    let source = order::read_source(&replace.source)?;
    let source = Originator::parse_approved(&source).map(|source| source.to_string());
    if source.is_ok_and(|source| source == waiting.from) {
        Ok(())
    } else {
        Err(Status::ESME_RINVSRCADR)
    }
}

/// Reads what a scheduled message is replaced by.
pub(crate) fn read(
    replace: &ReplaceSm,
    waiting: &WaitingMessage,
    system_id: &str,
    now: Timestamp,
) -> Result<ReplacementInput, Status> {
    let at = time::parse(&replace.schedule_delivery_time, now);
    let at = at.map_err(|_| Status::ESME_RINVSCHED)?;
    let expires = time::parse(&replace.validity_period, now);
    let expires = expires.map_err(|_| Status::ESME_RINVEXPIRY)?;
    let content = order::read_replacement(replace, waiting)?;
    let sent_at = at.unwrap_or(waiting.at);
    Ok(ReplacementInput {
        receipts: receipts(replace, waiting, system_id, content.parts(), now),
        text: content.text,
        coding: content.coding,
        at,
        expire_in: expires.map(|expires| expires.duration_since(sent_at).as_secs()),
    })
}

/// Where the receipt goes. A message that came by REST keeps its URL.
fn receipts(
    replace: &ReplaceSm,
    waiting: &WaitingMessage,
    system_id: &str,
    parts: u8,
    now: Timestamp,
) -> Option<CallbackUrl> {
    let url = waiting.dlr_url.as_ref();
    if let Some(url) = url.filter(|url| !url.is_smpp()) {
        return Some(url.clone());
    }
    let wanted = Wanted::from_registered_delivery(replace.registered_delivery)?;
    let earlier = url.and_then(ReceiptRequest::parse);
    let request = earlier.unwrap_or_else(|| ReceiptRequest {
        wanted,
        submitted_at: now,
        parts,
        source: replace.source.clone(),
        destination: Some(Address::new(1, 1, waiting.to.digits().to_owned())),
    });
    let request = ReceiptRequest {
        wanted,
        parts,
        ..request
    };
    Some(request.url(system_id))
}
