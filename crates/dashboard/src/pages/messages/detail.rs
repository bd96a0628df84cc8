//! The detail page of a message.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use domain::message::code_text;
use domain::message::outcome::Outcome;
use domain::message::text::Coding;
use domain::message::{MessageState, TestMode};
use domain::ports::{CallbackState, MessageDetail, MessageSummary};
use domain::{Channel, MessageId, Money};
use http::StatusCode;
use url::form_urlencoded;

use super::timeline::{self, Event};
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{HIDDEN, Moment, StateLabel, money, number};
use crate::kit::live::{self, Fragment};
use crate::kit::location::Locations;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::session::Member;

/// Longer texts do not fit into the link of "Send again".
const MAX_CARRIED_BYTES: usize = 2000;

#[derive(Template)]
#[template(path = "message.html")]
struct MessagePage {
    frame: Frame,
    id: MessageId,
    is_over: bool,
    message: MessageView,
}

/// The part with live updates.
#[derive(Template)]
#[template(path = "message_detail.html")]
struct DetailPart {
    message: MessageView,
}

pub(crate) struct MessageView {
    pub(crate) state: StateLabel,
    pub(crate) channel: Channel,
    pub(crate) from: Option<String>,
    pub(crate) to: String,
    pub(crate) location: String,
    pub(crate) network: Option<String>,
    pub(crate) text: String,
    pub(crate) size: String,
    pub(crate) price: String,
    pub(crate) priority: &'static str,
    pub(crate) test_mode: Option<&'static str>,
    pub(crate) dlr_url: Option<String>,
    pub(crate) expires: Moment,
    pub(crate) image: Option<String>,
    pub(crate) button: Option<(String, String)>,
    /// The result of a lookup, as indented JSON.
    pub(crate) result: Option<String>,
    pub(crate) is_scheduled: bool,
    /// The address of a form that is filled with the same message.
    pub(crate) again: Option<String>,
    pub(crate) events: Vec<Event>,
}

impl MessageView {
    fn without_text(mut self) -> Self {
        HIDDEN.clone_into(&mut self.text);
        self.again = None;
        self.image = None;
        self.button = None;
        self
    }

    /// Without links to other pages of the account, which operators may not see.
    pub(crate) fn without_links(mut self) -> Self {
        self.again = None;
        self.is_scheduled = false;
        for event in &mut self.events {
            event.callback = None;
        }
        self
    }
}

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route("/dashboard/messages/{id}", get(show))
        .route("/dashboard/messages/{id}/live", get(follow))
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let detail = dashboard.find_detail(&member, &id).await?;
    let page = MessagePage {
        frame: member.frame(),
        id: detail.summary.id,
        is_over: is_over(&detail),
        message: dashboard.message_view(detail, member.sees_texts()),
    };
    Ok(show_page(StatusCode::OK, &page))
}

/// Live updates until the message has ended.
async fn follow(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let detail = dashboard.find_detail(&member, &id).await?;
    let (account, id) = (member.account.id, detail.summary.id);
    let sees_texts = member.sees_texts();
    let own = dashboard.clone();
    Ok(live::stream(&dashboard, &member, move || {
        let dashboard = own.clone();
        async move {
            let detail = dashboard
                .engine
                .history
                .find_message_detail(Some(account), id)
                .await?;
            let Some(detail) = detail else {
                return Err(Failure::Form);
            };
            let is_over = is_over(&detail);
            let message = dashboard.message_view(detail, sees_texts);
            Ok(Fragment::render(&DetailPart { message }).last(is_over))
        }
    })
    .await)
}

impl Dashboard {
    async fn find_detail(&self, member: &Member, id: &str) -> Result<MessageDetail, Failure> {
        let not_found = || Failure::NotFound(Box::new(member.frame()));
        let id = id.parse().map_err(|_| not_found())?;
        let detail = self
            .engine
            .history
            .find_message_detail(Some(member.account.id), id)
            .await?;
        detail.ok_or_else(not_found)
    }

    pub(crate) fn message_view(&self, detail: MessageDetail, sees_texts: bool) -> MessageView {
        let view = self.whole_view(detail);
        if sees_texts {
            view
        } else {
            view.without_text()
        }
    }

    fn whole_view(&self, detail: MessageDetail) -> MessageView {
        let catalogues = self.engine.catalogues.live();
        let summary = &detail.summary;
        let interactive = detail.interactive.as_ref();
        let action = interactive.and_then(|interactive| interactive.action.as_ref());
        let image = interactive.and_then(|interactive| interactive.image.as_ref());
        MessageView {
            state: summary.state.into(),
            channel: summary.channel,
            to: number(summary.to),
            location: Locations::new(&catalogues).words(summary.to.as_ref(), summary.network),
            network: summary.network.map(|network| network.to_string()),
            size: size(&detail),
            price: price(summary, &self.settings.currency),
            priority: detail.priority.name(),
            test_mode: summary.test_mode.map(|mode| match mode {
                TestMode::Deliver => "simulates a delivery",
                TestMode::Fail => "simulates a failure",
            }),
            expires: detail.expires_at.into(),
            image: image.map(|image| image.as_str().to_owned()),
            button: action.map(|action| {
                let title = action.title.as_str().to_owned();
                (title, action.url.as_str().to_owned())
            }),
            result: detail.result.as_deref().map(pretty_json),
            is_scheduled: matches!(summary.state, MessageState::Scheduled { .. }),
            again: again(&detail),
            events: timeline::events(&detail, &self.settings.currency),
            from: detail.summary.from.clone(),
            text: shown_text(detail.summary),
            dlr_url: detail.dlr_url,
        }
    }
}

/// What was paid in the end, and what was given back.
fn price(message: &MessageSummary, currency: &str) -> String {
    let paid = money(message.charged.unwrap_or(message.price), currency);
    match message.refunded() {
        Money::ZERO => paid,
        refunded => format!("{paid} ({} refunded)", money(refunded, currency)),
    }
}

/// Whether nothing more will happen.
fn is_over(detail: &MessageDetail) -> bool {
    let has_ended = match detail.summary.state {
        MessageState::Scheduled { .. } | MessageState::Queued | MessageState::Sent => false,
        MessageState::Cancelled { .. } => true,
        MessageState::Ended { outcome, .. } => {
            let may_be_seen =
                detail.summary.channel == Channel::Viber && outcome == Outcome::Delivered;
            !may_be_seen || detail.seen_at.is_some()
        }
    };
    let is_told = |state| !matches!(state, CallbackState::Waiting { .. });
    let callbacks = &detail.callbacks;
    has_ended
        && callbacks
            .iter()
            .all(|(callback, _)| is_told(callback.state))
}

/// A text that is gone was forgotten or erased: an SMS always has one.
pub(crate) fn shown_text(summary: MessageSummary) -> String {
    if summary.channel == Channel::Sms && summary.text.is_empty() {
        return "(deleted)".to_owned();
    }
    summary.text
}

fn size(detail: &MessageDetail) -> String {
    let parts = match detail.shape.parts {
        1 => "1 part".to_owned(),
        parts => format!("{parts} parts"),
    };
    let characters = detail.summary.text.chars().count();
    if detail.summary.channel == Channel::Sms && characters == 0 {
        return parts;
    }
    let coding = match (detail.summary.channel, detail.shape.coding) {
        (Channel::Sms, Coding::Gsm7) => "GSM-7",
        (Channel::Sms, Coding::Binary) => "8-bit",
        (Channel::Sms, Coding::Ucs2) => "UCS-2",
        _ => return format!("{characters} characters"),
    };
    format!("{characters} characters in {coding}, {parts}")
}

fn pretty_json(json: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(json);
    let pretty = value.and_then(|value| serde_json::to_string_pretty(&value));
    pretty.unwrap_or_else(|_| json.to_owned())
}

fn again(detail: &MessageDetail) -> Option<String> {
    let summary = &detail.summary;
    let fits = summary.channel == Channel::Sms && summary.text.len() <= MAX_CARRIED_BYTES;
    let is_readable = summary.text != code_text::SHOWN && !summary.text.is_empty();
    let to = summary.to.filter(|_| fits && is_readable)?;
    Some({
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("from", summary.from.as_deref().unwrap_or_default());
        query.append_pair("to", &to.to_string());
        query.append_pair("message", &summary.text);
        format!("/dashboard/send?{}", query.finish())
    })
}
