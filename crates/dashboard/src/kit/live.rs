//! Live updates: a part of a page that is sent again whenever it changes.
//!
//! A page marks an element with the address of its stream: `<div data-live="/dashboard/messages/live">`. The handler of
//! that address has the same extractor as the page, so the same people may see it. It answers with [`stream`], which
//! renders the template that the page includes, at least every two seconds, and sends server-sent events. After a
//! change it renders again sooner, because one change is often followed by the next.
//!
//! The number of streams is limited. A stream ends with its session, and when the service stops.

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
use crate::kit::session::Session;

/// Streams of a process.
const MAX_STREAMS: usize = 64;
/// Browsers open at most six connections to a server, and pages need some of them.
const MAX_PER_SESSION: usize = 4;
/// So that one account or one address cannot take all streams.
const MAX_PER_ACCOUNT: usize = 16;
const MAX_PER_ADDRESS: usize = 16;
/// How long a stream waits for a permit. The stream of the previous page may not have been closed yet.
const PATIENCE: Duration = Duration::from_secs(3);
const AGAIN_AFTER_S: u32 = 5;
/// The pause after a change. It doubles each time nothing has changed.
const MIN_PAUSE: Duration = Duration::from_millis(250);
/// Something is sent after each pause, so a browser that went away is noticed by then.
const MAX_PAUSE: Duration = Duration::from_secs(2);
const SESSION_CHECK: Duration = Duration::from_mins(1);
/// A browser reconnects after so many milliseconds.
const RECONNECT: &str = "retry: 2000\n\n";
const HEARTBEAT: &str = ":\n\n";

const NO_BUFFER: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The current HTML of a part of a page.
pub(crate) struct Fragment {
    html: Result<String, askama::Error>,
    is_last: bool,
}

impl Fragment {
    pub(crate) fn render(template: &impl Template) -> Self {
        Self {
            html: template.render(),
            is_last: false,
        }
    }

    /// With `is_last`, the part will not change any more and the stream ends.
    pub(crate) fn last(self, is_last: bool) -> Self {
        Self { is_last, ..self }
    }
}

pub(crate) struct Streams {
    permits: Arc<Permits<Holder>>,
    stop: watch::Receiver<bool>,
}

/// What a stream counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Session(TokenHash),
    Account(AccountId),
    Address(IpAddr),
}

impl Holder {
    /// Operators may belong to no account.
    fn list(session: &Session) -> Vec<Self> {
        let holder = Self::Session(TokenHash::from_secret(&session.secret));
        let address = Self::Address(network(session.address));
        let account = session.signed_in.account().map(Self::Account);
        [holder, address].into_iter().chain(account).collect()
    }

    const fn limit(&self) -> usize {
        match self {
            Self::Session(_) => MAX_PER_SESSION,
            Self::Account(_) => MAX_PER_ACCOUNT,
            Self::Address(_) => MAX_PER_ADDRESS,
        }
    }
}

impl Streams {
    /// All streams end when `stop` turns true.
    pub(crate) fn new(stop: watch::Receiver<bool>) -> Self {
        Self {
            permits: Permits::new(MAX_STREAMS, Holder::limit),
            stop,
        }
    }

    /// Waits for a permit; `None` after a timeout.
    async fn wait(&self, holders: &[Holder]) -> Option<Permit<Holder>> {
        timeout(PATIENCE, self.permits.acquire(holders)).await.ok()
    }
}

struct LiveStream<F> {
    dashboard: Arc<Dashboard>,
    secret: String,
    address: IpAddr,
    signed_in: SignedIn,
    render: F,
    stop: watch::Receiver<bool>,
    next_render: Instant,
    pause: Duration,
    next_check: Instant,
    sent: Option<TokenHash>,
    is_over: bool,
    _permit: Permit<Holder>,
}

/// Sends what `render` returns, again and again. `render` runs at least every two seconds, so it must be cheap.
pub(crate) async fn stream<F, R>(
    dashboard: &Arc<Dashboard>,
    session: &Session,
    render: F,
) -> Response
where
    F: Fn() -> R + Send + Sync + 'static,
    R: Future<Output = Result<Fragment, Failure>> + Send,
{
    let Some(permit) = dashboard.streams.wait(&Holder::list(session)).await else {
        let refused = StatusCode::SERVICE_UNAVAILABLE.into_response();
        return with_retry_after(refused, AGAIN_AFTER_S);
    };
    let now = Instant::now();
    let live = LiveStream {
        dashboard: dashboard.clone(),
        secret: session.secret.clone(),
        address: session.address,
        signed_in: session.signed_in.clone(),
        render,
        stop: dashboard.streams.stop.clone(),
        next_render: now,
        pause: MIN_PAUSE,
        next_check: now + SESSION_CHECK,
        sent: None,
        is_over: false,
        _permit: permit,
    };
    let events = futures_util::stream::unfold(live, |mut live| async {
        let event = live.next().await?;
        Some((Ok::<_, std::convert::Infallible>(event), live))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Asks proxies not to buffer the answer.
        (NO_BUFFER, "no"),
    ];
    (headers, Body::from_stream(events)).into_response()
}

impl<F, R> LiveStream<F>
where
    F: Fn() -> R,
    R: Future<Output = Result<Fragment, Failure>>,
{
    /// The next bytes; `None` ends the stream, and the browser reconnects by itself.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        tokio::select! {
            _ = self.stop.wait_for(|stop| *stop) => return None,
            () = tokio::time::sleep_until(self.next_render) => {}
        }
        if !self.is_still_signed_in().await {
            return None;
        }
        // The problem may be gone when the browser reconnects.
        let fragment = (self.render)().await.ok()?;
        let html = match fragment.html {
            Ok(html) => html,
            Err(error) => {
                tracing::error!(%error, "a live part of a page could not be written");
                return None;
            }
        };
        let hash = TokenHash::from_secret(&html);
        let is_new = self.sent != Some(hash);
        self.pause = if is_new {
            MIN_PAUSE
        } else {
            MAX_PAUSE.min(self.pause * 2)
        };
        self.next_render = Instant::now() + self.pause;
        self.is_over = fragment.is_last;
        let is_first = self.sent.replace(hash).is_none();
        if !is_new && !self.is_over {
            return Some(Bytes::from_static(HEARTBEAT.as_bytes()));
        }
        let name = if self.is_over { "last" } else { "renew" };
        let start = if is_first { RECONNECT } else { "" };
        Some(Bytes::from(event(start, name, &html)))
    }

    /// Whether the session still exists with the same role. Checked once a minute.
    async fn is_still_signed_in(&mut self) -> bool {
        let now = Instant::now();
        if now < self.next_check {
            return true;
        }
        self.next_check = now + SESSION_CHECK;
        let sign_in = &self.dashboard.engine.sign_in;
        let found = sign_in.find(&self.secret, self.address).await;
        // A slow database must not end streams.
        found.map_or(true, |found| found.as_ref() == Some(&self.signed_in))
    }
}

/// A server-sent event. Every kind of line break starts a new `data:` line.
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
    fn line_breaks_do_not_end_an_event() {
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
    fn streams_are_limited_and_permits_are_returned() {
        let (_stop, stopped) = watch::channel(false);
        let streams = Streams::new(stopped);
        let session =
            |number: usize| [Holder::Session(TokenHash::from_secret(&number.to_string()))];
        let mut permits: Vec<_> = (0..MAX_PER_SESSION)
            .map(|_| streams.permits.try_acquire(&session(0)).expect("room"))
            .collect();
        assert!(
            streams.permits.try_acquire(&session(0)).is_none(),
            "a session has its share"
        );
        permits.pop();
        permits.push(
            streams
                .permits
                .try_acquire(&session(0))
                .expect("given back"),
        );
        for number in 1..=MAX_STREAMS - MAX_PER_SESSION {
            permits.push(streams.permits.try_acquire(&session(number)).expect("room"));
        }
        assert!(
            streams.permits.try_acquire(&session(1000)).is_none(),
            "so has the process"
        );
        drop(permits);
        assert_eq!(streams.permits.taken(), 0);
    }

    #[test]
    fn sessions_of_an_account_or_an_address_share_a_limit() {
        let (_stop, stopped) = watch::channel(false);
        let streams = Streams::new(stopped);
        let account = |id| Holder::Account(AccountId::new(id).expect("an ID"));
        let address = |last| Holder::Address([192, 0, 2, last].into());
        let session = |number: usize| Holder::Session(TokenHash::from_secret(&number.to_string()));
        let mut permits = Vec::new();
        for number in 0..MAX_PER_ACCOUNT {
            let last = u8::try_from(number).expect("few");
            let holders = [session(number), account(1), address(last)];
            permits.push(streams.permits.try_acquire(&holders).expect("room"));
        }
        let same_account = [session(100), account(1), address(100)];
        assert!(streams.permits.try_acquire(&same_account).is_none());
        let other_account = [session(100), account(2), address(100)];
        assert!(streams.permits.try_acquire(&other_account).is_some());
        drop(permits);
        let permits: Vec<_> = (0..MAX_PER_ADDRESS)
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
        drop(permits);
        assert_eq!(streams.permits.taken(), 0);
    }
}
