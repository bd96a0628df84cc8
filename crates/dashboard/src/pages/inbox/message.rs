//! The page of an inbound message.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::inbound::message::InboundMessage;
use domain::inbound::number::InboundNumber;
use domain::message::text::Coding;
use domain::{MessageId, Money};
use http::StatusCode;

use super::conversation;
use super::list::tags;
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{HIDDEN, Moment, money};
use crate::kit::location::Locations;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::session::Member;

#[derive(Template)]
#[template(path = "inbox/message.html")]
struct InboundPage {
    frame: Frame,
    id: MessageId,
    conversation: String,
    message: InboundView,
}

pub(crate) struct InboundView {
    pub(crate) from: String,
    pub(crate) location: String,
    pub(crate) network: Option<String>,
    pub(crate) to: String,
    pub(crate) received: Moment,
    pub(crate) text: String,
    pub(crate) size: String,
    pub(crate) tags: Vec<&'static str>,
    pub(crate) keyword: Option<String>,
    pub(crate) udh: Option<String>,
    pub(crate) carrier: String,
    pub(crate) in_reply_to: Option<MessageId>,
    /// `None` if it was free.
    pub(crate) price: Option<String>,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let missing = || Failure::NotFound(Box::new(member.frame()));
    let id: MessageId = id.parse().map_err(|_| missing())?;
    let numbers = &dashboard.engine.numbers;
    let found = numbers.find_message(Some(member.account.id), id).await?;
    let message = found.ok_or_else(missing)?;
    let page = InboundPage {
        frame: member.frame(),
        id,
        conversation: conversation::address(&message.to, &message.from),
        message: dashboard.inbound_view(&message, member.sees_texts()),
    };
    Ok(show_page(StatusCode::OK, &page))
}

impl Dashboard {
    pub(crate) fn inbound_view(&self, message: &InboundMessage, sees_texts: bool) -> InboundView {
        let catalogues = self.engine.catalogues.live();
        let sender = match InboundNumber::parse(&message.from) {
            Ok(InboundNumber::Msisdn(number)) => Some(number),
            _ => None,
        };
        // A keyword is a part of the text, and a header may hold what belongs to it.
        let keyword = message.keyword.clone().filter(|_| sees_texts);
        let udh = message.udh.as_ref().filter(|_| sees_texts);
        InboundView {
            from: message.from.clone(),
            location: Locations::new(&catalogues).words(sender.as_ref(), message.network),
            network: message.network.map(|network| network.to_string()),
            to: message.to.to_string(),
            received: message.received_at.into(),
            text: if sees_texts {
                message.text.clone()
            } else {
                HIDDEN.to_owned()
            },
            size: size(message),
            tags: tags(message),
            keyword,
            udh: udh.map(ToString::to_string),
            carrier: message.carrier.clone(),
            in_reply_to: message.in_reply_to,
            price: (message.price != Money::ZERO)
                .then(|| money(message.price, &self.settings.currency)),
        }
    }
}

fn size(message: &InboundMessage) -> String {
    let coding = match message.coding {
        Coding::Gsm7 => "GSM-7",
        Coding::Binary => "8-bit",
        Coding::Ucs2 => "UCS-2",
    };
    match message.parts {
        1 => format!("1 part in {coding}"),
        parts => format!("{parts} parts in {coding}"),
    }
}
