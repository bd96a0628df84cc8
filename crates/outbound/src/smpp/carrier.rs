//! An SMPP carrier: its links, its pace and its state. Sending is in `parts`.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use ::smpp::{BindKind, Incoming, Session, SessionOptions, ShortMessage, Status, Tls};
use async_trait::async_trait;
use domain::Clock;
use domain::delivery::{CarrierAnswer, QueuedMessage};
use domain::ports::{Carrier, CarrierState, HandsetSink, Health, ReceiptSink};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::compose::reference_without_id;
use super::counts::{LinkCounts, PartialMessages};
use super::incoming::DeliveryHandler;
use super::link::{Allowed, Connector, Link, describe};
use super::metrics::Metrics;
use super::{BindMode, SmppSettings, tls};
use crate::pace::Pace;

fn session_options(settings: &SmppSettings, tls: Option<Tls>) -> SessionOptions {
    SessionOptions {
        system_id: settings.system_id.clone(),
        password: settings.password.clone(),
        system_type: settings.system_type.clone(),
        window: settings.window.max(1),
        bind_timeout: settings.response_timeout,
        response_timeout: settings.response_timeout,
        late_answer: settings.late_answer,
        enquire_every: settings.enquire_every,
        source: settings.source,
        tls,
        ..SessionOptions::default()
    }
}

/// Leaves everything that an SMSC delivers to others.
struct RefuseAll;

#[async_trait]
impl Incoming for RefuseAll {
    async fn deliver(&self, _: Box<ShortMessage>) -> Status {
        Status::ESME_RX_T_APPN
    }
}

/// An SMPP carrier. It connects as soon as it may have binds, and disconnects when it is stopped or dropped.
pub struct SmppCarrier {
    pub(super) settings: SmppSettings,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) links: Vec<Arc<Link>>,
    pub(super) connector: Arc<Connector>,
    pub(super) pace: Pace,
    /// How many links this node should have. Read for every message.
    wanted: AtomicU16,
    /// Why its settings make a connection impossible.
    settings_error: Option<String>,
    allowed: watch::Sender<Allowed>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl SmppCarrier {
    /// Starts without binds, which [`Carrier::allow_binds`] grants. Must be called inside a tokio runtime.
    pub fn start(
        settings: SmppSettings,
        sink: Arc<dyn ReceiptSink>,
        handsets: Arc<dyn HandsetSink>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        let (tls, settings_error) = match tls::options(&settings) {
            Ok(tls) => (tls, None),
            Err(settings_error) => {
                tracing::error!(
                    carrier = settings.name,
                    misfit = settings_error,
                    "the settings make a link impossible"
                );
                (None, Some(settings_error))
            }
        };
        let metrics = Arc::new(Metrics::new(&settings.name));
        let handler =
            DeliveryHandler::new(&settings, sink, handsets, clock.clone(), metrics.clone());
        let connector = Arc::new(Connector {
            carrier: settings.name.clone(),
            address: settings.address.clone(),
            options: session_options(&settings, tls),
            reconnect_after: settings.reconnect_after,
            deliveries: Arc::new(handler),
            link_counts: LinkCounts::default(),
            partial_messages: PartialMessages::default(),
            metrics,
        });
        let links = links(&settings);
        let allowed = watch::Sender::new(Allowed::Binds(0));
        let keep = |link: &Arc<Link>| {
            let (connector, link, allowed) = (connector.clone(), link.clone(), allowed.subscribe());
            supervise::spawn("smpp-link", move || {
                connector.clone().run_link(link.clone(), allowed.clone())
            })
        };
        let tasks = match settings_error {
            None => links.iter().map(keep).collect(),
            Some(_) => Vec::new(),
        };
        Arc::new(Self {
            pace: Pace::new(settings.max_per_second),
            wanted: AtomicU16::new(0),
            settings,
            clock,
            links,
            connector,
            settings_error,
            allowed,
            tasks: Mutex::new(tasks),
        })
    }

    /// Connects, binds and unbinds once, to see whether these settings work. It binds as a transmitter, so that the
    /// SMSC delivers nothing to it. The error says what is wrong.
    pub async fn try_connection(settings: &SmppSettings) -> Result<(), String> {
        let options = SessionOptions {
            bind: BindKind::Transmitter,
            ..session_options(settings, tls::options(settings)?)
        };
        match Session::connect(&settings.address, options, Arc::new(RefuseAll)).await {
            Ok(session) => {
                session.unbind().await;
                Ok(())
            }
            Err(error) => Err(describe(&error)),
        }
    }

    pub fn settings(&self) -> &SmppSettings {
        &self.settings
    }

    /// The stored reference of a part that the carrier accepted under this ID.
    pub(super) fn reference(&self, id: &str, queued: &QueuedMessage, part: usize) -> String {
        let reference = self.settings.answer_ids.canonical(id);
        if reference.is_empty() {
            reference_without_id(queued.id, part + 1)
        } else {
            reference
        }
    }

    pub(super) fn least_busy(&self, is_continued: bool) -> Option<(&Link, Session)> {
        let sending = self.links.iter().filter(|link| link.sends());
        let open = sending.filter_map(|link| Some((&**link, link.open(is_continued)?)));
        open.min_by_key(|(link, _)| link.busy())
    }

    /// How many binds this node may have.
    fn allowed(&self) -> u16 {
        match *self.allowed.borrow() {
            Allowed::Binds(binds) => binds,
            Allowed::Stopped => 0,
        }
    }

    /// How many links this node should have.
    fn wanted(&self) -> u16 {
        self.wanted.load(Ordering::Relaxed)
    }

    fn links_of_a_bind(&self) -> usize {
        kinds(self.settings.bind).len()
    }

    /// Why the carrier is not fully up, for people.
    fn note(&self) -> Option<String> {
        if self.settings_error.is_some() {
            return self.settings_error.clone();
        }
        if self.allowed() == 0 {
            return Some("no bind is this node's at present".to_owned());
        }
        let down = self.links.iter().find_map(|link| link.note());
        let slow = || "the carrier asks for less; sending slower for a while".to_owned();
        down.or_else(|| self.pace.is_slow().then(slow))
    }
}

fn links(settings: &SmppSettings) -> Vec<Arc<Link>> {
    let each = |bind| {
        let kinds = kinds(settings.bind).iter();
        kinds.map(move |kind| Link::new(*kind, bind))
    };
    (0..settings.binds.max(1)).flat_map(each).collect()
}

/// The links of one bind.
fn kinds(mode: BindMode) -> &'static [BindKind] {
    match mode {
        BindMode::Transceiver => &[BindKind::Transceiver],
        BindMode::Pair => &[BindKind::Transmitter, BindKind::Receiver],
        BindMode::Transmitter => &[BindKind::Transmitter],
    }
}

fn count(links: usize) -> u16 {
    u16::try_from(links).unwrap_or(u16::MAX)
}

#[async_trait]
impl Carrier for SmppCarrier {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn window(&self) -> usize {
        self.settings.window.max(1) * usize::from(self.allowed().max(1))
    }

    fn health(&self) -> Health {
        let link_counts = &self.connector.link_counts;
        if link_counts.sending() == 0 {
            Health::Down
        } else if link_counts.up() < self.wanted() || self.pace.is_slow() {
            Health::Strained
        } else {
            Health::Up
        }
    }

    fn state(&self) -> CarrierState {
        let health = self.health();
        CarrierState {
            health,
            links_up: self.connector.link_counts.up(),
            links: self.wanted(),
            links_total: count(self.links.len()),
            note: if health == Health::Up {
                None
            } else {
                self.note()
            },
        }
    }

    fn binds(&self) -> u16 {
        self.settings.binds.max(1)
    }

    fn allow_binds(&self, binds: u16) {
        let binds = binds.min(self.binds());
        let is_changed = self.allowed.send_if_modified(|allowed| match allowed {
            Allowed::Binds(before) if *before != binds => {
                *allowed = Allowed::Binds(binds);
                true
            }
            Allowed::Binds(_) | Allowed::Stopped => false,
        });
        if is_changed {
            self.wanted.store(
                count(usize::from(binds) * self.links_of_a_bind()),
                Ordering::Relaxed,
            );
            self.pace
                .set_share(f64::from(binds) / f64::from(self.binds()));
        }
    }

    fn open_binds(&self) -> u16 {
        let mut open = self.allowed();
        for link in self.links.iter().filter(|link| link.is_active()) {
            open = open.max(link.bind() + 1);
        }
        open
    }

    async fn ready(&self, handed: u32) {
        self.pace.ready(handed).await;
    }

    async fn submit(&self, queued: &QueuedMessage) -> CarrierAnswer {
        self.send_message(queued).await
    }

    async fn stop(&self) {
        self.allowed.send_replace(Allowed::Stopped);
        let tasks = std::mem::take(&mut *self.tasks.lock().expect("no holder panics"));
        for task in tasks {
            if let Err(error) = task.await {
                tracing::error!(carrier = self.settings.name, %error, "the task of a link panicked");
            }
        }
    }
}
