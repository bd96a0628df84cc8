//! One message: what it is, and what became of it.

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
use domain::ports::{CallbackState, MessageStory};
use domain::{Channel, MessageId};
use http::StatusCode;
use url::form_urlencoded;

use super::timeline::{self, Event};
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{Moment, State as ShownState, money};
use crate::kit::live::{self, Fragment};
use crate::kit::location::Places;
use crate::kit::page::{Frame, show as show_page};
use crate::kit::session::Member;

/// A longer text is not carried on by a link.
const MAX_CARRIED_BYTES: usize = 2000;

#[derive(Template)]
#[template(path = "message.html")]
struct MessagePage {
    frame: Frame,
    id: MessageId,
    is_over: bool,
    told: Told,
}

/// The part that renews itself.
#[derive(Template)]
#[template(path = "message_story.html")]
struct StoryPart {
    told: Told,
}

/// A message as the page shows it.
pub(crate) struct Told {
    pub(crate) state: ShownState,
    pub(crate) channel: Channel,
    pub(crate) from: Option<String>,
    pub(crate) to: String,
    pub(crate) place: String,
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
    /// What a lookup found: JSON, spread out.
    pub(crate) result: Option<String>,
    pub(crate) is_scheduled: bool,
    /// The form with the same message.
    pub(crate) again: Option<String>,
    pub(crate) events: Vec<Event>,
}

impl Told {
    /// The same without what leads to other pages of its account, for somebody who may not see those.
    pub(crate) fn alone(mut self) -> Self {
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
    let story = dashboard.story(&member, &id).await?;
    let page = MessagePage {
        frame: member.frame(),
        id: story.summary.id,
        is_over: is_over(&story),
        told: dashboard.told(story),
    };
    Ok(show_page(StatusCode::OK, &page))
}

/// What becomes of the message, until that is known.
async fn follow(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let story = dashboard.story(&member, &id).await?;
    let (account, id) = (member.account.id, story.summary.id);
    let own = dashboard.clone();
    Ok(live::stream(&dashboard, &member, move || {
        let dashboard = own.clone();
        async move {
            let story = dashboard
                .engine
                .history
                .find_story(Some(account), id)
                .await?;
            let Some(story) = story else {
                return Err(Failure::Form);
            };
            let is_over = is_over(&story);
            let told = dashboard.told(story);
            Ok(Fragment::of(&StoryPart { told }).last(is_over))
        }
    })
    .await)
}

impl Dashboard {
    async fn story(&self, member: &Member, id: &str) -> Result<MessageStory, Failure> {
        let not_found = || Failure::NotFound(Box::new(member.frame()));
        let id = id.parse().map_err(|_| not_found())?;
        let story = self
            .engine
            .history
            .find_story(Some(member.account.id), id)
            .await?;
        story.ok_or_else(not_found)
    }

    pub(crate) fn told(&self, story: MessageStory) -> Told {
        let catalogues = self.engine.catalogues.live();
        let summary = &story.summary;
        let interactive = story.interactive.as_ref();
        let action = interactive.and_then(|interactive| interactive.action.as_ref());
        let image = interactive.and_then(|interactive| interactive.image.as_ref());
        Told {
            state: summary.state.into(),
            channel: summary.channel,
            to: summary.to.to_string(),
            place: Places::of(&catalogues).words(&summary.to, summary.network),
            network: summary.network.map(|network| network.to_string()),
            size: size(&story),
            price: money(summary.price, &self.settings.currency),
            priority: story.priority.name(),
            test_mode: story.test_mode.map(|mode| match mode {
                TestMode::Deliver => "pretends a delivery",
                TestMode::Fail => "pretends a failure",
            }),
            expires: story.expires_at.into(),
            image: image.map(|image| image.as_str().to_owned()),
            button: action.map(|action| {
                let title = action.title.as_str().to_owned();
                (title, action.url.as_str().to_owned())
            }),
            result: story.result.as_deref().map(spread_out),
            is_scheduled: matches!(summary.state, MessageState::Scheduled { .. }),
            again: again(&story),
            events: timeline::of(&story, &self.settings.currency),
            from: story.summary.from,
            text: story.summary.text,
            dlr_url: story.dlr_url,
        }
    }
}

/// Whether nothing more is to come.
fn is_over(story: &MessageStory) -> bool {
    let has_ended = match story.summary.state {
        MessageState::Scheduled { .. } | MessageState::Queued | MessageState::Sent => false,
        MessageState::Cancelled { .. } => true,
        MessageState::Ended { outcome, .. } => {
            let may_be_seen =
                story.summary.channel == Channel::Viber && outcome == Outcome::Delivered;
            !may_be_seen || story.seen_at.is_some()
        }
    };
    let is_told = |state| !matches!(state, CallbackState::Waiting { .. });
    let callbacks = &story.callbacks;
    has_ended
        && callbacks
            .iter()
            .all(|(callback, _)| is_told(callback.state))
}

fn size(story: &MessageStory) -> String {
    let parts = match story.shape.parts {
        1 => "1 part".to_owned(),
        parts => format!("{parts} parts"),
    };
    let characters = story.summary.text.chars().count();
    let coding = match (story.summary.channel, story.shape.coding) {
        (Channel::Sms, Coding::Gsm7) => "GSM-7",
        (Channel::Sms, Coding::Binary) => "8-bit",
        (Channel::Sms, Coding::Ucs2) => "UCS-2",
        _ => return format!("{characters} characters"),
    };
    format!("{characters} characters in {coding}, {parts}")
}

/// JSON as people read it.
fn spread_out(json: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(json);
    let pretty = value.and_then(|value| serde_json::to_string_pretty(&value));
    pretty.unwrap_or_else(|_| json.to_owned())
}

fn again(story: &MessageStory) -> Option<String> {
    let summary = &story.summary;
    let fits = summary.channel == Channel::Sms && summary.text.len() <= MAX_CARRIED_BYTES;
    let is_readable = summary.text != code_text::SHOWN;
    (fits && is_readable).then(|| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("from", summary.from.as_deref().unwrap_or_default());
        query.append_pair("to", &summary.to.to_string());
        query.append_pair("message", &summary.text);
        format!("/dashboard/send?{}", query.finish())
    })
}
