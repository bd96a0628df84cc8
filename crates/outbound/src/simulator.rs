//! The simulated network: the carrier of a service that has no other.
//!
//! It takes everything, delivers after a short delay, and fails on purpose for numbers in a range that is reserved for
//! fiction, so that no real person is ever meant. Like a real network it forgets nothing: what it took and had not
//! reported when the process ended, it finds in the store and reports after the next start.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domain::code::CATALOGUE;
use domain::delivery::{CarrierRef, Parcel, Receipt, Submitted};
use domain::ports::{Carrier, ReceiptSink, Store, StoreError};
use domain::{Clock, Code, Msisdn, Outcome};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

/// The name of this carrier.
pub const NAME: &str = "simulator";
/// The numbers that behave on purpose start so and end in three digits: the code.
const MAGIC_PREFIX: &str = "447700900";
/// Receipts that may be on their way at once; beyond, the network says that it is throttled.
const MOST_PENDING: usize = 100_000;
/// Receipts that may be with the service at once.
const AT_ONCE: usize = 2048;
/// How long to wait before a receipt that was not taken is brought again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How many parts are read at a time when the network picks up where it stopped.
const RESUME_STEP: u32 = 1000;
/// The code of a network that throttles.
const THROTTLED: u16 = 31;

/// What happens to a message to a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is delivered.
    Delivered,
    /// It is taken, and reported as failed.
    Failed(Code),
    /// It is not even taken.
    Refused(Code),
    /// It is taken, and never reported.
    Silent,
}

/// What happens to messages to this number.
pub fn fate(to: &Msisdn) -> Fate {
    let Some(code) = to
        .digits()
        .strip_prefix(MAGIC_PREFIX)
        .filter(|rest| rest.len() == 3)
    else {
        return Fate::Delivered;
    };
    match code.parse().ok().and_then(Code::new) {
        None | Some(Code::FINE) => Fate::Delivered,
        Some(Code::EXPIRED) => Fate::Silent,
        Some(code) if code.is_refunded() => Fate::Refused(code),
        Some(code) => Fate::Failed(code),
    }
}

/// A number that behaves on purpose, for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MagicNumber {
    /// The number, with its plus sign.
    pub number: String,
    /// How a message to it ends: `delivered`, `failed` or `expired`.
    pub outcome: &'static str,
    /// The service error code of its report.
    pub code: u16,
}

/// Every number that behaves on purpose, by code.
pub fn magic_numbers() -> impl Iterator<Item = MagicNumber> {
    CATALOGUE.iter().map(|entry| MagicNumber {
        number: format!("+{MAGIC_PREFIX}{:03}", entry.number),
        outcome: match entry.number {
            0 => "delivered",
            2 => "expired",
            _ => "failed",
        },
        code: entry.number,
    })
}

/// The network.
pub struct Simulator {
    clock: Arc<dyn Clock>,
    delay: Duration,
    window: usize,
    pending: Mutex<VecDeque<(Instant, CarrierRef, Outcome)>>,
    added: Notify,
    journal: Option<Mutex<File>>,
}

impl Simulator {
    /// A network that reports after `delay`. Into `journal`, if given, goes a line for each message that it takes, before
    /// it answers: `MESSAGE-ID PARTS`.
    pub fn new(
        clock: Arc<dyn Clock>,
        delay: Duration,
        window: usize,
        journal: Option<&Path>,
    ) -> std::io::Result<Arc<Self>> {
        let open = |path: &Path| {
            File::options()
                .create(true)
                .append(true)
                .open(path)
                .map(Mutex::new)
        };
        Ok(Arc::new(Self {
            clock,
            delay,
            window,
            pending: Mutex::default(),
            added: Notify::new(),
            journal: journal.map(open).transpose()?,
        }))
    }

    /// Starts reporting, what was left over from the last time first. Runs until it is dropped.
    pub async fn run(self: Arc<Self>, store: Arc<dyn Store>, sink: Arc<dyn ReceiptSink>) {
        while let Err(error) = self.resume(&*store).await {
            tracing::warn!(%error, "the simulated network cannot read what it took; trying again");
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        drop(store);
        let places = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let (of, outcome) = self.next().await;
            let place = places.clone().acquire_owned().await.expect("never closed");
            let (clock, sink) = (self.clock.clone(), sink.clone());
            tokio::spawn(async move {
                let receipt = Receipt {
                    of,
                    outcome,
                    at: clock.now(),
                };
                while sink.receive(receipt.clone()).await.is_err() {
                    tokio::time::sleep(AGAIN_AFTER).await;
                }
                drop(place);
            });
        }
    }

    async fn resume(&self, store: &dyn Store) -> Result<(), StoreError> {
        let mut after = String::new();
        loop {
            let parts = store.list_in_transit(NAME, &after, RESUME_STEP).await?;
            for part in &parts {
                self.report_later(part.reference.clone(), fate(&part.to));
            }
            match parts.last() {
                Some(last) if parts.len() >= RESUME_STEP as usize => {
                    after.clone_from(&last.reference);
                }
                _ => return Ok(()),
            }
        }
    }

    fn report_later(&self, reference: String, fate: Fate) {
        let outcome = match fate {
            Fate::Delivered => Outcome::Delivered,
            Fate::Failed(code) | Fate::Refused(code) => Outcome::Failed(code),
            Fate::Silent => return,
        };
        let of = CarrierRef {
            carrier: NAME.to_owned(),
            reference,
        };
        let due = Instant::now() + self.delay;
        self.pending
            .lock()
            .expect("no holder panics")
            .push_back((due, of, outcome));
    }

    /// The next receipt, once its time has come. The delay is the same for all, so the first is the earliest.
    async fn next(&self) -> (CarrierRef, Outcome) {
        loop {
            let due = self
                .pending
                .lock()
                .expect("no holder panics")
                .front()
                .map(|(due, _, _)| *due);
            match due {
                None => self.added.notified().await,
                Some(due) if due > Instant::now() => tokio::time::sleep_until(due).await,
                Some(_) => {
                    let first = self.pending.lock().expect("no holder panics").pop_front();
                    if let Some((_, of, outcome)) = first {
                        return (of, outcome);
                    }
                }
            }
        }
    }

    fn write_journal(&self, parcel: &Parcel) -> std::io::Result<()> {
        let Some(journal) = &self.journal else {
            return Ok(());
        };
        let line = format!("{} {}\n", parcel.id, parcel.shape.parts);
        journal
            .lock()
            .expect("no holder panics")
            .write_all(line.as_bytes())
    }
}

#[async_trait]
impl Carrier for Simulator {
    fn name(&self) -> &str {
        NAME
    }

    fn window(&self) -> usize {
        self.window
    }

    async fn submit(&self, parcel: &Parcel) -> Submitted {
        let fate = fate(&parcel.to);
        if let Fate::Refused(code) = fate {
            return Submitted::Refused(code);
        }
        if self.pending.lock().expect("no holder panics").len() >= MOST_PENDING {
            return Submitted::NotNow(Code::new(THROTTLED).expect("in the catalogue"));
        }
        if let Err(error) = self.write_journal(parcel) {
            tracing::error!(%error, "the simulated network cannot write its journal, so it takes nothing");
            return Submitted::NotNow(Code::SYSTEM_FAILURE);
        }
        let references: Vec<String> = (1..=parcel.shape.parts)
            .map(|part| format!("{}-{part}", parcel.id))
            .collect();
        for reference in &references {
            self.report_later(reference.clone(), fate);
        }
        self.added.notify_one();
        Submitted::Taken(references)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_numbers_end_with_their_code() {
        let code = |number| Code::new(number).expect("in the catalogue");
        for (number, expected) in [
            ("+447700900000", Fate::Delivered),
            ("+447700900001", Fate::Failed(code(1))),
            ("+447700900002", Fate::Silent),
            ("+447700900018", Fate::Delivered),
            ("+447700900020", Fate::Refused(code(20))),
            ("+447700900043", Fate::Failed(code(43))),
            ("+447700900800", Fate::Delivered),
            ("+447700900999", Fate::Failed(code(999))),
            ("+4477009000431", Fate::Delivered),
            ("+37120000001", Fate::Delivered),
        ] {
            assert_eq!(
                fate(&Msisdn::parse(number).expect(number)),
                expected,
                "{number}"
            );
        }
    }

    #[test]
    fn every_code_has_its_number() {
        let numbers: Vec<MagicNumber> = magic_numbers().collect();
        assert_eq!(numbers.len(), CATALOGUE.len());
        for magic in numbers {
            let fate = fate(&Msisdn::parse(&magic.number).expect("a number"));
            let outcome = match fate {
                Fate::Delivered => "delivered",
                Fate::Failed(_) | Fate::Refused(_) => "failed",
                Fate::Silent => "expired",
            };
            assert_eq!(outcome, magic.outcome, "{}", magic.number);
        }
    }
}
