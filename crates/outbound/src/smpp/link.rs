//! A link to a carrier: connects and binds while this node may have it, and reconnects when it is lost.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::smpp::{BindKind, ConnectError, Incoming, Session, SessionOptions, Status};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::counts::{LinkCounts, PartialMessages};
use super::incoming::{DeliveryHandler, SessionDeliveries};
use super::metrics::Metrics;

const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// A link that held for this many times the first pause was stable, and the pauses start again.
const STEADY_PAUSES: u32 = 10;
/// Each pause varies randomly by up to this share, so that lost links do not reconnect all at once.
const JITTER: f64 = 0.2;

/// How often to check whether all parts on a closing link are answered.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// How many binds this node may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    Binds(u16),
    /// The carrier is stopped, so there will be no more binds.
    Stopped,
}

pub(super) struct Link {
    kind: BindKind,
    /// The bind that it belongs to, counted from 0.
    bind: u16,
    /// Whether it is connected or connecting.
    is_active: AtomicBool,
    /// Whether it accepts no new messages.
    is_closing: AtomicBool,
    session: Mutex<Option<Session>>,
    /// Why it is down, for people.
    note: Mutex<Option<String>>,
    /// How many parts are in flight on it or wait to be sent.
    busy: AtomicUsize,
}

impl Link {
    pub(super) fn new(kind: BindKind, bind: u16) -> Arc<Self> {
        Arc::new(Self {
            kind,
            bind,
            is_active: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            session: Mutex::default(),
            note: Mutex::default(),
            busy: AtomicUsize::new(0),
        })
    }

    /// Whether it can send messages.
    pub(super) fn sends(&self) -> bool {
        self.kind != BindKind::Receiver
    }

    pub(super) fn bind(&self) -> u16 {
        self.bind
    }

    /// Whether it is connected, connecting or not yet closed.
    pub(super) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Acquire)
    }

    fn is_allowed(&self, allowed: Allowed) -> bool {
        matches!(allowed, Allowed::Binds(binds) if self.bind < binds)
    }

    /// The session, if it accepts messages. A closing link only accepts further parts of a message that has parts with
    /// the carrier already.
    pub(super) fn open(&self, is_continued: bool) -> Option<Session> {
        if !is_continued && self.is_closing.load(Ordering::Relaxed) {
            return None;
        }
        let session = self.session.lock().expect("no holder panics");
        session
            .as_ref()
            .filter(|session| session.is_open())
            .cloned()
    }

    pub(super) fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }

    /// Counts a part until the guard is dropped.
    pub(super) fn mark_busy(&self) -> BusyGuard<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        BusyGuard(self)
    }

    pub(super) fn note(&self) -> Option<String> {
        self.note.lock().expect("no holder panics").clone()
    }

    fn set(&self, session: Option<Session>, note: Option<String>) {
        let before = {
            let mut current = self.session.lock().expect("no holder panics");
            std::mem::replace(&mut *current, session)
        };
        // The last handle closes the session, which must not happen under the lock.
        drop(before);
        *self.note.lock().expect("no holder panics") = note;
    }
}

/// Counts a part in flight until it is dropped.
pub(super) struct BusyGuard<'l>(&'l Link);

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Connects the links of a carrier.
pub(super) struct Connector {
    pub(super) carrier: String,
    pub(super) address: String,
    pub(super) options: SessionOptions,
    pub(super) reconnect_after: Duration,
    pub(super) deliveries: Arc<DeliveryHandler>,
    pub(super) link_counts: LinkCounts,
    pub(super) partial_messages: PartialMessages,
    pub(super) metrics: Arc<Metrics>,
}

impl Connector {
    /// Keeps a link up whenever this node may have it, until the carrier is stopped or dropped.
    pub(super) async fn run_link(
        self: Arc<Self>,
        link: Arc<Link>,
        mut allowed: watch::Receiver<Allowed>,
    ) {
        loop {
            let wanted =
                |allowed: &Allowed| link.is_allowed(*allowed) || *allowed == Allowed::Stopped;
            match allowed.wait_for(wanted).await.map(|allowed| *allowed) {
                // An error means that the carrier was dropped.
                Err(_) | Ok(Allowed::Stopped) => return,
                // The last value remains readable after the carrier is dropped.
                Ok(Allowed::Binds(_)) if allowed.has_changed().is_err() => return,
                Ok(Allowed::Binds(_)) => {}
            }
            link.is_active.store(true, Ordering::Release);
            link.set(None, Some("not connected yet".to_owned()));
            self.keep(&link, &mut allowed).await;
            link.set(None, None);
            link.is_active.store(false, Ordering::Release);
        }
    }

    /// Keeps a link up until this node may not have it any more.
    async fn keep(&self, link: &Link, allowed: &mut watch::Receiver<Allowed>) {
        let mut failures = 0;
        loop {
            let deliveries = SessionDeliveries::new(self.deliveries.clone());
            let session = tokio::select! {
                session = self.connect(link, deliveries.clone()) => session,
                () = wait_until_disallowed(link, allowed) => return,
            };
            let held = match session {
                Some(session) => self.hold(link, session, allowed).await,
                None => Duration::ZERO,
            };
            deliveries.end();
            failures = if held >= self.reconnect_after * STEADY_PAUSES {
                1
            } else {
                failures + 1
            };
            let random = u32::from_le_bytes(random());
            tokio::select! {
                () = sleep(pause(self.reconnect_after, failures, random)) => {}
                () = wait_until_disallowed(link, allowed) => return,
            }
        }
    }

    async fn connect(&self, link: &Link, incoming: Arc<dyn Incoming>) -> Option<Session> {
        let options = SessionOptions {
            bind: link.kind,
            ..self.options.clone()
        };
        match Session::connect(&self.address, options, incoming).await {
            Ok(session) => Some(session),
            Err(error) => {
                let note = describe(&error);
                tracing::warn!(
                    carrier = self.carrier,
                    note,
                    "a link failed to connect; retrying"
                );
                link.set(None, Some(note));
                None
            }
        }
    }

    /// Waits for the end of a link, or closes it when this node may not have it any more. Returns how long it held.
    async fn hold(
        &self,
        link: &Link,
        session: Session,
        allowed: &mut watch::Receiver<Allowed>,
    ) -> Duration {
        let since = Instant::now();
        tracing::info!(
            carrier = self.carrier,
            address = self.address,
            "a link is up"
        );
        link.set(Some(session.clone()), None);
        self.link_counts.count(link.sends(), true);
        let ended = tokio::select! {
            ended = session.closed() => Some(ended),
            () = wait_until_disallowed(link, allowed) => None,
        };
        self.link_counts.count(link.sends(), false);
        if let Some(ended) = ended {
            let note = format!("the link was lost: {ended}");
            tracing::warn!(
                carrier = self.carrier,
                note,
                "a link was lost; reconnecting"
            );
            link.set(None, Some(note));
        } else {
            self.empty(link).await;
            session.unbind().await;
            link.set(None, None);
            link.is_closing.store(false, Ordering::Relaxed);
            tracing::info!(carrier = self.carrier, "a link is closed");
        }
        since.elapsed()
    }

    /// Stops new messages on a link and waits up to one response timeout for outstanding answers. Another node that is
    /// to get the link does not wait for late answers.
    async fn empty(&self, link: &Link) {
        link.is_closing.store(true, Ordering::Relaxed);
        let give_up = Instant::now() + self.options.response_timeout;
        while (link.busy() > 0 || self.partial_messages.any()) && Instant::now() < give_up {
            sleep(CHECK_EVERY).await;
        }
    }
}

/// Waits until this node may not have a link any more.
async fn wait_until_disallowed(link: &Link, allowed: &mut watch::Receiver<Allowed>) {
    // An error means that the carrier was dropped.
    let _gone = allowed.wait_for(|allowed| !link.is_allowed(*allowed)).await;
}

fn random() -> [u8; 4] {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// The pause before the next attempt to connect, after this many failures.
fn pause(first: Duration, failures: u32, random: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let pause = first.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
    let shift = f64::from(random) / f64::from(u32::MAX) * 2.0 - 1.0;
    pause.mul_f64(1.0 + JITTER * shift)
}

/// Why the link is down, with causes and what to check. Contains no secrets.
pub(super) fn describe(error: &ConnectError) -> String {
    if let ConnectError::Refused(status) = error {
        let (words, advice) = explain(*status);
        return format!("bind refused: {status}, {words}; {advice}");
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// The meaning of a refused bind, and what to do about it.
fn explain(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::ESME_RINVPASWD => ("wrong password", "check system_id and password"),
        Status::ESME_RINVSYSID => ("unknown system ID", "check system_id and password"),
        Status::ESME_RALYBND => (
            "bound already",
            "check 'binds' against what the carrier permits, and whether another system uses this system_id",
        ),
        Status::ESME_RBINDFAIL => (
            "the bind failed",
            "check system_id, password, 'binds', and whether the carrier permits this machine's address",
        ),
        Status::ESME_RINVSYSTYP => ("wrong system type", "check system_type"),
        Status::ESME_RINVCMDID | Status::ESME_RINVBNDSTS => {
            ("this kind of bind is not supported", "try bind = \"pair\"")
        }
        Status::ESME_RTHROTTLED => ("too many tries", "wait"),
        Status::ESME_RSYSERR => ("the carrier failed", "wait, or ask the carrier"),
        _ => ("for a reason of its own", "ask the carrier"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let middle = u32::MAX / 2;
        for (failures, seconds) in [
            (0, 1),
            (1, 1),
            (2, 2),
            (3, 4),
            (6, 32),
            (7, 60),
            (u32::MAX, 60),
        ] {
            let pause = pause(Duration::from_secs(1), failures, middle).as_secs_f64();
            assert!(
                (pause - f64::from(seconds)).abs() < 0.01,
                "{failures}: {pause}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_pause_stays_within_its_spread(failures: u32, random: u32) {
            let pause = pause(Duration::from_secs(1), failures, random);
            prop_assert!(pause >= Duration::from_millis(799) && pause <= Duration::from_millis(72_001));
        }
    }

    #[test]
    fn a_refused_bind_says_what_to_check() {
        let text = describe(&ConnectError::Refused(Status::ESME_RINVPASWD));
        assert_eq!(
            text,
            "bind refused: ESME_RINVPASWD (0x0000000E), wrong password; check system_id and password"
        );
        for status in Status::NAMED {
            let text = describe(&ConnectError::Refused(*status));
            assert!(text.contains("ESME_"), "{text}");
        }
    }

    #[test]
    fn a_failed_connection_says_why() {
        let error = ConnectError::Connect {
            address: "smsc.example:2775".to_owned(),
            source: std::io::ErrorKind::ConnectionRefused.into(),
        };
        let text = describe(&error);
        assert!(
            text.starts_with("cannot connect to smsc.example:2775: "),
            "{text}"
        );
        assert!(text.contains("refused"), "{text}");
    }
}
