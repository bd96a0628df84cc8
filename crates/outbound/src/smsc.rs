//! The simulator as an SMSC, to try SMPP end to end, or to test other gateways, on one machine.
//!
//! It accepts every message, answers with an ID, and sends a receipt after a delay to clients that are bound with the
//! same system ID. Numbers behave as in [`crate::simulator`]. Pending receipts are only kept in memory.

mod connection;
mod receipt_queue;
mod receipts;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use domain::Clock;
use smpp::{Bind, Status};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use receipt_queue::ReceiptQueue;

/// How many connections are open at once; more wait.
const MAX_CONNECTIONS: usize = 1000;
/// How many system IDs have a receipt queue; further ones cannot bind.
const MAX_RECEIPT_QUEUES: usize = 1000;
/// The pause after a failed accept.
const ACCEPT_RETRY_AFTER: Duration = Duration::from_millis(100);

/// How message IDs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ids {
    /// Decimal, in answers and receipts.
    #[default]
    Decimal,
    /// Hexadecimal, in answers and receipts.
    Hex,
    /// Hexadecimal in answers, decimal in receipts, as some SMSCs do.
    HexThenDecimal,
}

#[derive(Clone, Default)]
pub struct SmscSettings {
    /// The time until the receipt.
    pub delay: Duration,
    /// Who may bind, with which password; `None`: anybody.
    pub credentials: Option<(String, String)>,
    /// The maximum rate in parts a second; more are throttled. `None`: no limit.
    pub most_per_second: Option<u32>,
    pub ids: Ids,
}

/// A message that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivedMessage {
    pub from: String,
    pub to: String,
    /// The text of this part.
    pub text: String,
    /// The number of this part and of all parts, if the message has a header.
    pub part: Option<(u8, u8)>,
}

/// Called for every message that arrives.
pub type Observer = Arc<dyn Fn(ArrivedMessage) + Send + Sync>;

pub struct Smsc {
    settings: SmscSettings,
    clock: Arc<dyn Clock>,
    observer: Option<Observer>,
    receipt_queues: Mutex<HashMap<Bytes, Arc<ReceiptQueue>>>,
    next_id: AtomicU64,
    /// The current second, and the number of parts in it.
    counted: Mutex<(i64, u32)>,
}

impl Smsc {
    /// `observer`, if any, is called for every message that arrives.
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
            receipt_queues: Mutex::default(),
            // After a restart, IDs must not repeat.
            next_id: AtomicU64::new(now * 1000),
            counted: Mutex::default(),
        })
    }

    /// Serves connections until it is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let permit = permits.clone().acquire_owned().await.expect("never closed");
            match listener.accept().await {
                Ok((stream, address)) => {
                    let smsc = self.clone();
                    tokio::spawn(async move {
                        let why = connection::serve(smsc, stream).await;
                        tracing::info!(%address, why, "a connection ended");
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_RETRY_AFTER).await;
                }
            }
        }
    }

    /// The receipt queue of a client that binds, or why it is refused.
    fn admit(&self, bind: &Bind) -> Result<Arc<ReceiptQueue>, Status> {
        if let Some((system_id, password)) = &self.settings.credentials {
            if bind.system_id != system_id.as_bytes() {
                return Err(Status::ESME_RINVSYSID);
            }
            if bind.password != password.as_bytes() {
                return Err(Status::ESME_RINVPASWD);
            }
        }
        let mut receipt_queues = self.receipt_queues.lock().expect("no holder panics");
        if let Some(queue) = receipt_queues.get(&bind.system_id) {
            return Ok(queue.clone());
        }
        if receipt_queues.len() >= MAX_RECEIPT_QUEUES {
            return Err(Status::ESME_RBINDFAIL);
        }
        let queue = Arc::new(ReceiptQueue::default());
        // Copied, because the octets are a slice of the read buffer.
        let name = Bytes::copy_from_slice(&bind.system_id);
        receipt_queues.insert(name, queue.clone());
        Ok(queue)
    }

    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the rate limit allows another part now.
    fn accepts_part(&self) -> bool {
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
