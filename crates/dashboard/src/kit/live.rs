//! What renews itself: a part of a page, sent again whenever it has changed.
//!
//! A page marks an element with the address of its stream: `<div data-live="/dashboard/messages/live">`. Behind that
//! address stands a handler with the same extractor as the page, so the same people may see it; it answers with
//! [`stream`], which renders the very template that the page includes, looks again every two seconds and sends
//! server-sent events. After a change it looks again sooner, since one change is often followed by the next.
//!
//! Streams are few, and each ends with the session that it belongs to, and when the service stops.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::AccountId;
use domain::access::token::TokenHash;
use domain::person::SignedIn;
use engine::identity::throttle::network;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS};
use permits::{Permit, Permits};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::page::with_retry_after;
use crate::kit::session::Visitor;

/// Streams of a process, all sessions together.
const MAX_STREAMS: usize = 64;
/// Streams of one session. A browser opens no more than six connections to a server, and pages need some of them.
const MAX_OF_SESSION: usize = 4;
/// Streams of one account, and from one address: nobody takes those of all others.
const MAX_OF_ACCOUNT: usize = 16;
const MAX_OF_ADDRESS: usize = 16;
/// How long a stream waits for its place: a browser that went on to the next page may not have been noticed yet.
const PATIENCE: Duration = Duration::from_secs(3);
/// When to come again while there are too many.
const AGAIN_AFTER_S: u32 = 5;
/// How soon the next look follows after a change; after each look that finds none the pause doubles.
const SOON: Duration = Duration::from_millis(250);
/// The longest pause between two looks. A browser that went away is noticed by then, too: each look sends something.
const PAUSE: Duration = Duration::from_secs(2);
/// How often the session is looked at.
const SESSION_CHECK: Duration = Duration::from_mins(1);
/// After how many milliseconds a browser connects again when the stream broke off.
const RECONNECT: &str = "retry: 2000\n\n";
/// Keeps the connection from looking dead.
const HEARTBEAT: &str = ":\n\n";

const NO_BUFFER: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A part of a page, as it is now.
pub(crate) struct Fragment {
    html: Result<String, askama::Error>,
    is_last: bool,
}

impl Fragment {
    /// A part that may change.
    pub(crate) fn of(template: &impl Template) -> Self {
        Self {
            html: template.render(),
            is_last: false,
        }
    }

    /// The same; where `is_last`, it will not change any more, and the stream ends with it.
    pub(crate) fn last(self, is_last: bool) -> Self {
        Self { is_last, ..self }
    }
}

/// The streams of a process.
pub(crate) struct Streams {
    permits: Arc<Permits<Holder>>,
    stop: watch::Receiver<bool>,
}

/// Whom a stream counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Session(TokenHash),
    Account(AccountId),
    Address(IpAddr),
}

impl Holder {
    /// All whom a visitor's stream counts for. Operators belong to no account.
    fn all_of(visitor: &Visitor) -> Vec<Self> {
        let session = Self::Session(TokenHash::of(&visitor.session));
        let address = Self::Address(network(visitor.address));
        let account = visitor.signed_in.account().map(Self::Account);
        [session, address].into_iter().chain(account).collect()
    }

    const fn most(&self) -> usize {
        match self {
            Self::Session(_) => MAX_OF_SESSION,
            Self::Account(_) => MAX_OF_ACCOUNT,
            Self::Address(_) => MAX_OF_ADDRESS,
        }
    }
}

impl Streams {
    /// None yet; they all end when `stop` turns true.
    pub(crate) fn new(stop: watch::Receiver<bool>) -> Self {
        Self {
            permits: Permits::new(MAX_STREAMS, Holder::most),
            stop,
        }
    }

    /// A permit, as soon as there is one; `None` when there is none for a while.
    async fn wait(&self, holders: &[Holder]) -> Option<Permit<Holder>> {
        timeout(PATIENCE, self.permits.acquire(holders)).await.ok()
    }
}

/// One stream.
struct Following<F> {
    dashboard: Arc<Dashboard>,
    session: String,
    address: IpAddr,
    signed_in: SignedIn,
    render: F,
    stop: watch::Receiver<bool>,
    next_look: Instant,
    pause: Duration,
    next_check: Instant,
    sent: Option<TokenHash>,
    is_over: bool,
    _permit: Permit<Holder>,
}

/// Answers with what `render` gives, again and again, to whoever may see it now. It is called with every look, so it
/// must be quick and read little.
pub(crate) async fn stream<F, R>(
    dashboard: &Arc<Dashboard>,
    visitor: &Visitor,
    render: F,
) -> Response
where
    F: Fn() -> R + Send + Sync + 'static,
    R: Future<Output = Result<Fragment, Failure>> + Send,
{
    let Some(permit) = dashboard.streams.wait(&Holder::all_of(visitor)).await else {
        let refused = StatusCode::SERVICE_UNAVAILABLE.into_response();
        return with_retry_after(refused, AGAIN_AFTER_S);
    };
    let now = Instant::now();
    let following = Following {
        dashboard: dashboard.clone(),
        session: visitor.session.clone(),
        address: visitor.address,
        signed_in: visitor.signed_in.clone(),
        render,
        stop: dashboard.streams.stop.clone(),
        next_look: now,
        pause: SOON,
        next_check: now + SESSION_CHECK,
        sent: None,
        is_over: false,
        _permit: permit,
    };
    let events = futures_util::stream::unfold(following, |mut following| async {
        let event = following.next().await?;
        Some((Ok::<_, std::convert::Infallible>(event), following))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Proxies that gather answers before they pass them on are asked not to.
        (NO_BUFFER, "no"),
    ];
    (headers, Body::from_stream(events)).into_response()
}

impl<F, R> Following<F>
where
    F: Fn() -> R,
    R: Future<Output = Result<Fragment, Failure>>,
{
    /// What is sent next; `None`: the stream ends, and a browser comes again by itself.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        tokio::select! {
            _ = self.stop.wait_for(|stop| *stop) => return None,
            () = tokio::time::sleep_until(self.next_look) => {}
        }
        if !self.is_still_signed_in().await {
            return None;
        }
        // Whatever hinders it now may be over when the browser connects again.
        let fragment = (self.render)().await.ok()?;
        let html = match fragment.html {
            Ok(html) => html,
            Err(error) => {
                tracing::error!(%error, "a live part of a page could not be written");
                return None;
            }
        };
        let hash = TokenHash::of(&html);
        let is_new = self.sent != Some(hash);
        self.pause = if is_new {
            SOON
        } else {
            PAUSE.min(self.pause * 2)
        };
        self.next_look = Instant::now() + self.pause;
        self.is_over = fragment.is_last;
        let is_first = self.sent.replace(hash).is_none();
        if !is_new && !self.is_over {
            return Some(Bytes::from_static(HEARTBEAT.as_bytes()));
        }
        let name = if self.is_over { "last" } else { "renew" };
        let start = if is_first { RECONNECT } else { "" };
        Some(Bytes::from(event(start, name, &html)))
    }

    /// Whether the session is still there and may do what it could at the beginning. Looked at now and then.
    async fn is_still_signed_in(&mut self) -> bool {
        let now = Instant::now();
        if now < self.next_check {
            return true;
        }
        self.next_check = now + SESSION_CHECK;
        let sign_in = &self.dashboard.engine.sign_in;
        let found = sign_in.find(&self.session, self.address).await;
        // Nobody is sent away because a database is slow for a moment.
        found.map_or(true, |found| found.as_ref() == Some(&self.signed_in))
    }
}

/// An event; every kind of line break begins a new line of its data.
fn event(start: &str, name: &str, html: &str) -> String {
    let mut event = format!("{start}event: {name}\n");
    for line in html.split(['\n', '\r']) {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_an_event_before_its_time() {
        for (html, expected) in [
            ("<p>a</p>", "event: renew\ndata: <p>a</p>\n\n"),
            ("a\nb", "event: renew\ndata: a\ndata: b\n\n"),
            (
                "a\r\n\r\nevent: last",
                "event: renew\ndata: a\ndata: \ndata: \ndata: \ndata: event: last\n\n",
            ),
            ("", "event: renew\ndata: \n\n"),
        ] {
            assert_eq!(event("", "renew", html), expected, "{html:?}");
        }
    }

    #[test]
    fn places_are_few_and_given_back() {
        let (_stop, stopped) = watch::channel(false);
        let streams = Streams::new(stopped);
        let session = |number: usize| [Holder::Session(TokenHash::of(&number.to_string()))];
        let mut places: Vec<_> = (0..MAX_OF_SESSION)
            .map(|_| streams.permits.try_acquire(&session(0)).expect("room"))
            .collect();
        assert!(
            streams.permits.try_acquire(&session(0)).is_none(),
            "a session has its share"
        );
        places.pop();
        places.push(
            streams
                .permits
                .try_acquire(&session(0))
                .expect("given back"),
        );
        for number in 1..=MAX_STREAMS - MAX_OF_SESSION {
            places.push(streams.permits.try_acquire(&session(number)).expect("room"));
        }
        assert!(
            streams.permits.try_acquire(&session(1000)).is_none(),
            "so has the process"
        );
        drop(places);
        assert_eq!(streams.permits.taken(), 0);
    }

    #[test]
    fn sessions_of_an_account_or_an_address_share_its_places() {
        let (_stop, stopped) = watch::channel(false);
        let streams = Streams::new(stopped);
        let account = |id| Holder::Account(AccountId::new(id).expect("an ID"));
        let address = |last| Holder::Address([192, 0, 2, last].into());
        let session = |number: usize| Holder::Session(TokenHash::of(&number.to_string()));
        let mut places = Vec::new();
        for number in 0..MAX_OF_ACCOUNT {
            let last = u8::try_from(number).expect("few");
            let holders = [session(number), account(1), address(last)];
            places.push(streams.permits.try_acquire(&holders).expect("room"));
        }
        let same_account = [session(100), account(1), address(100)];
        assert!(streams.permits.try_acquire(&same_account).is_none());
        let other_account = [session(100), account(2), address(100)];
        assert!(streams.permits.try_acquire(&other_account).is_some());
        drop(places);
        let places: Vec<_> = (0..MAX_OF_ADDRESS)
            .map(|number| {
                streams
                    .permits
                    .try_acquire(&[session(number), address(1)])
                    .expect("room")
            })
            .collect();
        assert!(
            streams
                .permits
                .try_acquire(&[session(100), address(1)])
                .is_none()
        );
        assert!(
            streams
                .permits
                .try_acquire(&[session(100), address(2)])
                .is_some()
        );
        drop(places);
        assert_eq!(streams.permits.taken(), 0);
    }
}
