//! The simulated network as an SMSC: the other end of SMPP, so that the whole way can be tried, and other gateways be
//! tested, on one machine.
//!
//! It takes every message, answers with an ID, and brings a receipt after a delay to whoever is bound under the same
//! name. Numbers behave as they do in [`crate::simulator`]: those in the range that is reserved for fiction fail on
//! purpose. It keeps what it owes in memory only.

mod connection;
mod mailbox;
mod paper;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use domain::Clock;
use smpp::{Bind, Status};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use mailbox::Mailbox;

/// Connections open at once; more wait.
const CONNECTIONS: usize = 1000;
/// Names that have a mailbox; one more cannot bind.
const MAILBOXES: usize = 1000;
/// How long to wait after a connection could not be accepted.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How message IDs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ids {
    /// In decimal, in answers and receipts.
    #[default]
    Decimal,
    /// In hexadecimal, in answers and receipts.
    Hex,
    /// In hexadecimal in answers, in decimal in receipts, as some do.
    HexThenDecimal,
}

/// How the SMSC behaves.
#[derive(Clone, Default)]
pub struct SmscSettings {
    /// Receipts come after so long.
    pub delay: Duration,
    /// Who may bind, with which password; `None`: anybody.
    pub credentials: Option<(String, String)>,
    /// Parts that it takes in a second; it refuses more as throttled. `None`: any number.
    pub most_per_second: Option<u32>,
    /// How it writes message IDs.
    pub ids: Ids,
}

/// A message that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// From whom.
    pub from: String,
    /// To whom.
    pub to: String,
    /// The text of this part.
    pub text: String,
    /// Which part of how many, where a header says so.
    pub part: Option<(u8, u8)>,
}

/// Told of every message that arrives.
pub type Observer = Arc<dyn Fn(Arrived) + Send + Sync>;

/// The SMSC.
pub struct Smsc {
    settings: SmscSettings,
    clock: Arc<dyn Clock>,
    observer: Option<Observer>,
    mailboxes: Mutex<HashMap<Bytes, Arc<Mailbox>>>,
    next_id: AtomicU64,
    /// The second that is counted, and how many parts came in it.
    counted: Mutex<(i64, u32)>,
}

impl Smsc {
    /// An SMSC that tells `observer`, if there is one, what arrives.
    pub fn new(
        settings: SmscSettings,
        clock: Arc<dyn Clock>,
        observer: Option<Observer>,
    ) -> Arc<Self> {
        let now = u64::try_from(clock.now().as_millisecond()).unwrap_or_default();
        Arc::new(Self {
            settings,
            clock,
            observer,
            mailboxes: Mutex::default(),
            // An SMSC that starts again must not give the same names to other messages.
            next_id: AtomicU64::new(now * 1000),
            counted: Mutex::default(),
        })
    }

    /// Serves connections until it is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let place = places.clone().acquire_owned().await.expect("never closed");
            match listener.accept().await {
                Ok((stream, address)) => {
                    let smsc = self.clone();
                    tokio::spawn(async move {
                        let why = connection::serve(smsc, stream).await;
                        tracing::info!(%address, why, "a connection ended");
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
                }
            }
        }
    }

    /// The mailbox of whoever binds, or why it may not.
    fn admit(&self, bind: &Bind) -> Result<Arc<Mailbox>, Status> {
        if let Some((system_id, password)) = &self.settings.credentials {
            if bind.system_id != system_id.as_bytes() {
                return Err(Status::ESME_RINVSYSID);
            }
            if bind.password != password.as_bytes() {
                return Err(Status::ESME_RINVPASWD);
            }
        }
        let mut mailboxes = self.mailboxes.lock().expect("no holder panics");
        if let Some(mailbox) = mailboxes.get(&bind.system_id) {
            return Ok(mailbox.clone());
        }
        if mailboxes.len() >= MAILBOXES {
            return Err(Status::ESME_RBINDFAIL);
        }
        let mailbox = Arc::new(Mailbox::default());
        // Copied: the octets are a part of the buffer that they were read into.
        let name = Bytes::copy_from_slice(&bind.system_id);
        mailboxes.insert(name, mailbox.clone());
        Ok(mailbox)
    }

    fn number(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether another part may come in this second.
    fn has_room(&self) -> bool {
        let Some(most) = self.settings.most_per_second else {
            return true;
        };
        let now = self.clock.now().as_second();
        let mut counted = self.counted.lock().expect("no holder panics");
        if counted.0 != now {
            *counted = (now, 0);
        }
        counted.1 += 1;
        counted.1 <= most
    }
}

#[cfg(test)]
mod tests;
