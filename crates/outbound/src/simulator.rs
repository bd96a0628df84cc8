//! The simulator: a carrier without a network behind it.
//!
//! It accepts everything, delivers after a short delay, and fails on purpose for numbers in a range that is reserved
//! for fiction, so that no real person is affected. It loses nothing: messages that it had accepted but not reported
//! when the process ended are found in the store and reported after the next start, or by another node that notices
//! that this one is gone. Two nodes may then report the same message; the second receipt changes nothing.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use domain::delivery::{CarrierRef, Parcel, Receipt, Submitted};
use domain::message::code::CATALOGUE;
use domain::message::lookup::Subscriber;
use domain::ports::{Carrier, CarrierState, Health, NumberBook, ReceiptSink, Store, StoreError};
use domain::{Channel, Clock, Code, Msisdn, Network, NodeId, Outcome};
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub const NAME: &str = domain::delivery::SIMULATOR;
/// Magic numbers start with this and end in a three-digit error code.
const MAGIC_PREFIX: &str = "447700900";
/// The number that a lookup reports as ported.
const PORTED: &str = "447700900800";
/// How many receipts may be pending; beyond that, messages are throttled.
const MOST_PENDING: usize = 100_000;
/// How many receipts may be delivered to the service at once.
const AT_ONCE: usize = 2048;
/// The pause before a refused receipt is delivered again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How many parts are read at a time when reporting resumes.
const RESUME_STEP: u32 = 1000;
/// How often to check for nodes that are gone. A node that came and went in between is not noticed; its messages are
/// reported when the next node comes or goes.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What happens to a message to a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Delivered,
    /// Accepted, then reported as failed.
    Failed(Code),
    /// Not accepted.
    Refused(Code),
    /// Accepted, but never reported.
    Silent,
}

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

/// A number with a fixed outcome, for documentation and tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MagicNumber {
    /// With its plus sign.
    pub number: String,
    pub channel: Channel,
    /// `delivered`, `failed` or `expired`; for a lookup also `ported`.
    pub outcome: &'static str,
    /// The error code in the delivery report.
    pub code: u16,
}

/// All magic numbers, by channel and code.
pub fn magic_numbers() -> impl Iterator<Item = MagicNumber> {
    let of_code = |channel: Channel, code: u16| {
        let is_silent = code == Code::EXPIRED.number();
        MagicNumber {
            number: format!("+{MAGIC_PREFIX}{code:03}"),
            channel,
            outcome: match code {
                0 => "delivered",
                _ if is_silent => "expired",
                _ => "failed",
            },
            // Such a lookup is never answered, so it ends with a timeout.
            code: if is_silent && channel == Channel::Hlr {
                Code::HLR_TIMEOUT.number()
            } else {
                code
            },
        }
    };
    let of_channel = move |channel: Channel| {
        CATALOGUE
            .iter()
            .map(move |entry| of_code(channel, entry.number))
    };
    let ported = MagicNumber {
        number: format!("+{PORTED}"),
        channel: Channel::Hlr,
        outcome: "ported",
        code: Code::FINE.number(),
    };
    Channel::ALL
        .into_iter()
        .flat_map(of_channel)
        .chain([ported])
}

/// A receipt that waits for its time.
struct Pending {
    due: Instant,
    of: CarrierRef,
    outcome: Outcome,
    /// Whether the recipient's app reports when the message was seen.
    is_shown: bool,
}

const IMSI_DIGITS: usize = 15;

/// An IMSI that is always the same for a number: the network, then the last digits of the number.
fn imsi(network: Network, number: &Msisdn) -> u64 {
    let network = network.to_string();
    let digits = number.digits();
    let left = IMSI_DIGITS - network.len();
    let end = &digits[digits.len().saturating_sub(left)..];
    let text = format!("{network}{end:0>left$}");
    text.parse().expect("fifteen digits")
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatorSettings {
    /// The time until the receipt.
    pub delay: Duration,
    /// How many parts it holds at once.
    pub window: usize,
    /// If set, a line `MESSAGE-ID PARTS` is written to this file for each message before it is accepted.
    pub journal: Option<PathBuf>,
}

/// The parts of the service that the simulator uses.
pub struct Surroundings {
    pub clock: Arc<dyn Clock>,
    /// Where it finds the messages that it accepted before.
    pub store: Arc<dyn Store>,
    /// Where it delivers receipts.
    pub sink: Arc<dyn ReceiptSink>,
    /// Answers lookups.
    pub book: Arc<dyn NumberBook>,
}

pub struct Simulator {
    settings: SimulatorSettings,
    clock: Arc<dyn Clock>,
    pending: Mutex<VecDeque<Pending>>,
    added: Notify,
    book: Arc<dyn NumberBook>,
    journal: Option<Mutex<File>>,
    tasks: OnceLock<[AbortHandle; 2]>,
}

impl Simulator {
    /// Starts the simulator, which first reports what was left over from the last run. Must be called inside a tokio
    /// runtime.
    pub fn start(
        settings: SimulatorSettings,
        surroundings: Surroundings,
    ) -> std::io::Result<Arc<Self>> {
        let open = |path: &PathBuf| {
            File::options()
                .create(true)
                .append(true)
                .open(path)
                .map(Mutex::new)
        };
        let Surroundings {
            clock,
            store,
            sink,
            book,
        } = surroundings;
        let network = Arc::new(Self {
            journal: settings.journal.as_ref().map(open).transpose()?,
            settings,
            clock,
            pending: Mutex::default(),
            added: Notify::new(),
            book,
            tasks: OnceLock::new(),
        });
        let (kept, weak) = (network.clone(), Arc::downgrade(&store));
        let heirs = supervise::spawn("simulator-take-over", move || {
            kept.clone().take_over(weak.clone())
        });
        let kept = network.clone();
        let reporting =
            supervise::spawn("simulator-reports", move || kept.clone().run(sink.clone()));
        let tasks = [reporting.abort_handle(), heirs.abort_handle()];
        network.tasks.get_or_init(|| tasks);
        Ok(network)
    }

    async fn run(self: Arc<Self>, sink: Arc<dyn ReceiptSink>) {
        let places = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let next = self.next().await;
            let place = places.clone().acquire_owned().await.expect("never closed");
            let (network, sink) = (self.clone(), sink.clone());
            tokio::spawn(async move {
                network.report(next, &*sink).await;
                drop(place);
            });
        }
    }

    /// Reports the messages of nodes that are gone. The node of a message is not stored, so everything in transit is
    /// reported.
    async fn take_over(self: Arc<Self>, store: Weak<dyn Store>) {
        let mut known = None;
        loop {
            let Some(open) = store.upgrade() else { return };
            let looked = self.look_for_gone(&*open, known.as_ref()).await;
            drop(open);
            let pause = match looked {
                Ok(nodes) => {
                    known = Some(nodes);
                    LOOK_EVERY
                }
                Err(error) => {
                    tracing::warn!(%error, "the simulated network cannot read what it took; trying again");
                    AGAIN_AFTER
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// The current nodes. If a known node is missing, and at the start, everything in transit is reported.
    async fn look_for_gone(
        &self,
        store: &dyn Store,
        known: Option<&HashSet<NodeId>>,
    ) -> Result<HashSet<NodeId>, StoreError> {
        let nodes = store.list_nodes().await?;
        let nodes: HashSet<NodeId> = nodes.iter().map(|node| node.node).collect();
        if known.is_none_or(|known| !known.is_subset(&nodes)) {
            self.resume(store).await?;
        }
        Ok(nodes)
    }

    /// Delivers a receipt and, if the channel supports it, reports that the message was seen.
    async fn report(&self, next: Pending, sink: &dyn ReceiptSink) {
        let receipt = Receipt {
            of: next.of,
            to: None,
            outcome: next.outcome,
            report: None,
            at: self.clock.now(),
        };
        while sink.receive(receipt.clone()).await.is_err() {
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        if next.is_shown && receipt.outcome == Outcome::Delivered {
            tokio::time::sleep(self.settings.delay).await;
            while sink
                .seen(receipt.of.clone(), self.clock.now())
                .await
                .is_err()
            {
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        }
    }

    /// Answers a lookup.
    fn look_up(&self, to: &Msisdn, fate: Fate) -> Submitted {
        let code = match fate {
            Fate::Silent => return Submitted::NotNow(Code::HLR_TIMEOUT),
            Fate::Refused(code) => return Submitted::Answered(Subscriber::unknown(code)),
            Fate::Failed(code) if code.is_no_lookup() => {
                return Submitted::Answered(Subscriber::unknown(code));
            }
            Fate::Failed(code) => code,
            Fate::Delivered => Code::FINE,
        };
        let origin = self.book.home(to);
        let other = (to.digits() == PORTED)
            .then(|| self.book.neighbour(&origin))
            .flatten();
        let home = other.as_ref().unwrap_or(&origin);
        Submitted::Answered(Subscriber {
            code,
            imsi: home
                .network
                .filter(|_| code == Code::FINE)
                .map(|network| imsi(network, to)),
            country: home.country,
            operator: home.operator.as_ref().map(|operator| operator.id),
            network: home.network,
            ported_from: origin.operator.clone().filter(|_| other.is_some()),
        })
    }

    async fn resume(&self, store: &dyn Store) -> Result<(), StoreError> {
        let mut after = String::new();
        loop {
            while self.pending.lock().expect("no holder panics").len() >= MOST_PENDING {
                tokio::time::sleep(AGAIN_AFTER).await;
            }
            let parts = store.list_in_transit(NAME, &after, RESUME_STEP).await?;
            for part in &parts {
                self.report_later(part.reference.clone(), fate(&part.to), false);
            }
            self.added.notify_one();
            match parts.last() {
                Some(last) if parts.len() >= RESUME_STEP as usize => {
                    after.clone_from(&last.reference);
                }
                _ => return Ok(()),
            }
        }
    }

    fn report_later(&self, reference: String, fate: Fate, is_shown: bool) {
        let outcome = match fate {
            Fate::Delivered => Outcome::Delivered,
            Fate::Failed(code) | Fate::Refused(code) => Outcome::Failed(code),
            Fate::Silent => return,
        };
        let of = CarrierRef {
            carrier: NAME.to_owned(),
            reference,
        };
        let due = Instant::now() + self.settings.delay;
        let mut pending = self.pending.lock().expect("no holder panics");
        pending.push_back(Pending {
            due,
            of,
            outcome,
            is_shown,
        });
    }

    /// Waits for the next receipt that is due. The delay is the same for all, so the first one is the earliest.
    async fn next(&self) -> Pending {
        loop {
            let due = self
                .pending
                .lock()
                .expect("no holder panics")
                .front()
                .map(|first| first.due);
            match due {
                None => self.added.notified().await,
                Some(due) if due > Instant::now() => tokio::time::sleep_until(due).await,
                Some(_) => {
                    let first = self.pending.lock().expect("no holder panics").pop_front();
                    if let Some(first) = first {
                        return first;
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
        self.settings.window
    }

    fn health(&self) -> Health {
        Health::Up
    }

    fn state(&self) -> CarrierState {
        CarrierState {
            health: Health::Up,
            links_up: 0,
            links: 0,
            links_total: 0,
            note: None,
        }
    }

    async fn stop(&self) {
        for task in self.tasks.get().into_iter().flatten() {
            task.abort();
        }
    }

    async fn submit(&self, parcel: &Parcel) -> Submitted {
        let fate = fate(&parcel.to);
        if parcel.channel == Channel::Hlr {
            return self.look_up(&parcel.to, fate);
        }
        if let Fate::Refused(code) = fate {
            return Submitted::Refused(code);
        }
        if self.pending.lock().expect("no holder panics").len() >= MOST_PENDING {
            return Submitted::NotNow(Code::THROTTLED);
        }
        if let Err(error) = self.write_journal(parcel) {
            tracing::error!(%error, "the simulated network cannot write its journal, so it takes nothing");
            return Submitted::NotNow(Code::SYSTEM_FAILURE);
        }
        let references: Vec<String> = (1..=parcel.shape.parts)
            .map(|part| format!("{}-{part}", parcel.id))
            .collect();
        for reference in &references {
            let is_shown = parcel.channel == Channel::Viber;
            self.report_later(reference.clone(), fate, is_shown);
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
    fn an_imsi_has_fifteen_digits_and_starts_with_the_network() {
        for (mcc, mnc, number, expected) in [
            ("247", "01", "+37129100000", 247_017_129_100_000),
            ("310", "260", "+12125550123", 310_260_125_550_123),
            ("247", "01", "+2901234", 247_010_002_901_234),
        ] {
            let network = Network::new(mcc, mnc).expect("a network");
            let number = Msisdn::parse(number).expect(number);
            assert_eq!(imsi(network, &number), expected);
        }
    }

    #[test]
    fn every_code_has_its_number() {
        let numbers: Vec<MagicNumber> = magic_numbers().collect();
        assert_eq!(numbers.len(), 3 * CATALOGUE.len() + 1);
        for magic in numbers
            .into_iter()
            .filter(|magic| magic.outcome != "ported")
        {
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
