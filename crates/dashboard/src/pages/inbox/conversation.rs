//! The messages between a number of an account and a handset, and a form for a reply.

mod merge;

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use domain::inbound::message::InboundMessage;
use domain::inbound::number::InboundNumber;
use domain::ports::{
    Cursor, InboundFilter, InboundOwner, MessageFilter, MessageSummary, Page, StoreError,
};
use domain::{AccountId, Channel, MessageId, Msisdn};
use http::StatusCode;
use url::form_urlencoded;

use super::filter::shown_sender;
use super::list::tags;
use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{HIDDEN, Moment, StateLabel};
use crate::kit::live::{self, Fragment};
use crate::kit::location::Locations;
use crate::kit::page::Frame;
use crate::kit::query::Query;
use crate::kit::session::{Member, Posted};
use crate::pages::messages::detail::shown_text;
use crate::pages::send::draft::Draft;
use crate::pages::send::measure::Measure;
use crate::pages::send::{self, Refused};
use merge::{Dated, merge};

const HERE: &str = "/dashboard/inbox/conversation";
const LIVE: &str = "/dashboard/inbox/conversation/live";
/// How many messages of each direction a page reads.
const PAGE_SIZE: u32 = 30;

pub(super) fn routes() -> Router<Arc<Dashboard>> {
    Router::new()
        .route(HERE, get(show).post(reply))
        .route(LIVE, get(follow))
}

/// The page of a conversation.
pub(super) fn address(number: &InboundNumber, handset: &str) -> String {
    address_at(HERE, number, handset)
}

fn address_at(path: &str, number: &InboundNumber, handset: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("number", &number.to_string());
    query.append_pair("handset", handset);
    format!("{path}?{}", query.finish())
}

/// The two sides of a conversation.
#[derive(Clone)]
struct Conversation {
    number: InboundNumber,
    /// As it is stored.
    handset: String,
}

impl Conversation {
    fn read(number: &str, handset: &str) -> Option<Self> {
        let is_given = !handset.is_empty();
        let number = InboundNumber::parse(number).ok().filter(|_| is_given)?;
        Some(Self {
            number,
            handset: shown_sender(handset),
        })
    }

    fn from_query(query: &Query) -> Option<Self> {
        Self::read(query.text("number"), query.text("handset"))
    }

    fn address(&self) -> String {
        address(&self.number, &self.handset)
    }

    /// Where a reply goes. Only phone numbers can get one.
    fn recipient(&self) -> Option<Msisdn> {
        match InboundNumber::parse(&self.handset) {
            Ok(InboundNumber::Msisdn(number)) => Some(number),
            _ => None,
        }
    }
}

#[derive(Template)]
#[template(path = "inbox/conversation.html")]
struct ConversationPage {
    frame: Frame,
    number: String,
    handset: String,
    location: String,
    list: Messages,
    /// The newest page, unless it is this one.
    newest: Option<String>,
    /// The address of live updates; only the newest page has them.
    live: Option<String>,
    /// `None` if the sender is not a phone number.
    reply: Option<Reply>,
}

/// The part with live updates.
#[derive(Template)]
#[template(path = "inbox/conversation_list.html")]
struct ListPart {
    list: Messages,
}

struct Messages {
    /// The newest last.
    rows: Vec<Dated<Shown>>,
    earlier: Option<String>,
}

struct Shown {
    page: String,
    at: Moment,
    text: String,
    /// Of a sent message; a received one has none.
    state: Option<StateLabel>,
    tags: Vec<&'static str>,
}

struct Reply {
    draft: Draft,
    measure: Measure,
    problem: Option<String>,
}

async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let Some(conversation) = Conversation::from_query(&query) else {
        return Ok(Redirect::to(super::HERE).into_response());
    };
    let before = query.get("before").and_then(|id| id.parse().ok());
    page(&dashboard, &member, &conversation, before, None).await
}

/// Live updates of the newest page.
async fn follow(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    query: Query,
) -> Result<Response, Failure> {
    let conversation = Conversation::from_query(&query).ok_or(Failure::Form)?;
    let reader = Reader::new(&member);
    let own = dashboard.clone();
    Ok(live::stream(&dashboard, &member, move || {
        let (dashboard, conversation) = (own.clone(), conversation.clone());
        async move {
            let list = list(&dashboard, reader, &conversation, None).await?;
            Ok(Fragment::render(&ListPart { list }))
        }
    })
    .await)
}

async fn reply(
    State(dashboard): State<Arc<Dashboard>>,
    member: Member,
    Posted(form): Posted<{ send::MAX_BYTES }>,
) -> Result<Response, Failure> {
    let draft = Draft::read(form);
    let conversation = Conversation::read(&draft.from, &draft.to).ok_or(Failure::Form)?;
    // A reply goes to one handset.
    let recipient = conversation.recipient().ok_or(Failure::Form)?;
    let draft = Draft {
        from: conversation.number.to_string(),
        to: recipient.to_string(),
        ..draft
    };
    match send::submit(&dashboard, &member, &draft).await {
        Ok(_) => {
            let address = format!("{}#reply", conversation.address());
            Ok(Redirect::to(&address).into_response())
        }
        Err(refused) => {
            let refused = Some((draft, refused));
            page(&dashboard, &member, &conversation, None, refused).await
        }
    }
}

async fn page(
    dashboard: &Dashboard,
    member: &Member,
    conversation: &Conversation,
    before: Option<MessageId>,
    refused: Option<(Draft, Refused)>,
) -> Result<Response, Failure> {
    let recipient = conversation.recipient();
    let number = conversation.number.to_string();
    let mut frame = member.frame();
    let mut status = StatusCode::OK;
    if member.account.suspended {
        frame = frame.with_problem(send::SUSPENDED);
    }
    let mut problem = None;
    let draft = match refused {
        Some((draft, refused)) => {
            status = refused.status;
            match refused.field {
                Some("message") => problem = Some(refused.text),
                _ => frame = frame.with_problem(refused.text),
            }
            Some(draft)
        }
        None => recipient.map(|to| Draft::reply(number.clone(), to.to_string())),
    };
    let reply = match draft {
        Some(draft) => Some(Reply {
            measure: Measure::new(dashboard, member, &draft).await,
            draft,
            problem,
        }),
        None => None,
    };
    let list = list(dashboard, Reader::new(member), conversation, before).await?;
    let catalogues = dashboard.engine.catalogues.live();
    let live = || address_at(LIVE, &conversation.number, &conversation.handset);
    let page = ConversationPage {
        frame,
        number,
        handset: conversation.handset.clone(),
        location: Locations::new(&catalogues).words(recipient.as_ref(), None),
        list,
        live: before.is_none().then(live),
        newest: before.map(|_| conversation.address()),
        reply,
    };
    Ok(send::respond(status, &page))
}

/// Who reads a conversation.
#[derive(Clone, Copy)]
struct Reader {
    account: AccountId,
    sees_texts: bool,
}

impl Reader {
    fn new(member: &Member) -> Self {
        Self {
            account: member.account.id,
            sees_texts: member.sees_texts(),
        }
    }

    fn text(self, text: String) -> String {
        if self.sees_texts {
            text
        } else {
            HIDDEN.to_owned()
        }
    }

    fn sent(self, message: MessageSummary) -> Dated<Shown> {
        Dated {
            id: message.id,
            at: message.accepted_at,
            shown: Shown {
                page: format!("/dashboard/messages/{}", message.id),
                at: message.accepted_at.into(),
                state: Some(message.state.into()),
                text: self.text(shown_text(message)),
                tags: Vec::new(),
            },
        }
    }

    fn received(self, message: InboundMessage) -> Dated<Shown> {
        Dated {
            id: message.id,
            at: message.received_at,
            shown: Shown {
                page: format!("{}/{}", super::HERE, message.id),
                at: message.received_at.into(),
                state: None,
                tags: tags(&message),
                text: self.text(message.text),
            },
        }
    }
}

async fn list(
    dashboard: &Dashboard,
    reader: Reader,
    conversation: &Conversation,
    before: Option<MessageId>,
) -> Result<Messages, StoreError> {
    let cursor = Cursor {
        before,
        limit: PAGE_SIZE,
    };
    let sent = list_sent(dashboard, reader, conversation, cursor).await?;
    let filter = InboundFilter {
        owner: InboundOwner::Account(reader.account),
        from: Some(conversation.handset.clone()),
        to: Some(conversation.number.clone()),
        ..InboundFilter::default()
    };
    let numbers = &dashboard.engine.numbers;
    let received = numbers.list_messages(&filter, cursor).await?;
    let rows = received.rows.into_iter();
    let received = Page {
        rows: rows.map(|message| reader.received(message)).collect(),
        next: received.next,
    };
    let (rows, earlier) = merge(sent, received);
    let earlier = earlier.map(|id| format!("{}&before={id}", conversation.address()));
    Ok(Messages { rows, earlier })
}

async fn list_sent(
    dashboard: &Dashboard,
    reader: Reader,
    conversation: &Conversation,
    cursor: Cursor<MessageId>,
) -> Result<Page<Dated<Shown>, MessageId>, StoreError> {
    let Some(recipient) = conversation.recipient() else {
        return Ok(Page {
            rows: Vec::new(),
            next: None,
        });
    };
    let filter = MessageFilter {
        account: Some(reader.account),
        channel: Some(Channel::Sms),
        to: Some(recipient),
        from: Some(conversation.number.to_string()),
        ..MessageFilter::default()
    };
    let history = &dashboard.engine.history;
    let found = history.search_messages(&filter, cursor).await?;
    let rows = found.rows.into_iter();
    Ok(Page {
        rows: rows.map(|message| reader.sent(message)).collect(),
        next: found.next,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_both_sides() {
        for (number, handset, expected, gets_replies) in [
            (
                "37120000009",
                "37120000001",
                Some("?number=%2B37120000009&handset=%2B37120000001"),
                true,
            ),
            (
                "1234",
                "Acme & Co",
                Some("?number=1234&handset=Acme+%26+Co"),
                false,
            ),
            (
                "1234",
                "12345678",
                Some("?number=1234&handset=12345678"),
                false,
            ),
            ("1234", "", None, false),
            ("Acme", "+37120000001", None, false),
        ] {
            let read = Conversation::read(number, handset);
            let address = read.as_ref().map(Conversation::address);
            let expected = expected.map(|query| format!("{HERE}{query}"));
            assert_eq!(address, expected, "{number} {handset}");
            let recipient = read.and_then(|read| read.recipient());
            assert_eq!(recipient.is_some(), gets_replies, "{number} {handset}");
        }
    }
}
