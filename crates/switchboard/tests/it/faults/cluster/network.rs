//! The network outside: an SMSC that records what it gets, sends each receipt until it is acknowledged, and delivers
//! texts from handsets.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use testkit::smsc::{Action, Answer, Receipt, Smsc, Submit};

use super::handsets::Handsets;
use super::log::{Log, Submit as LoggedSubmit};
use super::requests::{ABSENT, REFUSED, number_in};

/// Between the answer and the receipt.
const RECEIPT_DELAY: Duration = Duration::from_millis(50);
/// A receipt without an acknowledgement is sent again after this time.
const RETRY_AFTER: Duration = Duration::from_secs(3);
/// How the text of a PIN ends.
const PIN_TEXT_END: &[u8] = b"It is valid for 10 minutes.";
const POLL: Duration = Duration::from_millis(10);
/// The SMPP status for an invalid number.
const INVALID_NUMBER: u32 = 0x0B;
/// The GSM error for an absent subscriber.
const ABSENT_CAUSE: u16 = 27;

/// The SMSC, and the thread that sends its receipts and texts.
pub(super) struct Network {
    smsc: Arc<Smsc>,
    adds_texts: Arc<AtomicBool>,
    should_stop: Arc<AtomicBool>,
    sender: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct PendingReceipts {
    due: VecDeque<(Instant, Receipt)>,
    unacknowledged: HashMap<u32, (Instant, Receipt)>,
    turn: usize,
}

impl Network {
    pub(super) fn start(log: &Arc<Log>) -> Self {
        let pending: Arc<Mutex<PendingReceipts>> = Arc::default();
        let smsc = Smsc::builder().on_submit({
            let (log, pending) = (log.clone(), pending.clone());
            move |submit| on_submit(&log, &pending, submit)
        });
        let smsc = Arc::new(smsc.start());
        let should_stop = Arc::new(AtomicBool::new(false));
        let adds_texts = Arc::new(AtomicBool::new(false));
        let sender = {
            let (smsc, log) = (smsc.clone(), log.clone());
            let (should_stop, adds_texts) = (should_stop.clone(), adds_texts.clone());
            thread::spawn(move || {
                let mut handsets = Handsets::new();
                let mut answers_read = 0;
                while !should_stop.load(Ordering::SeqCst) {
                    let bound = smsc.bound();
                    let answers = smsc.answers_after(answers_read);
                    answers_read += answers.len();
                    let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
                    pending.send_due(&smsc, &bound, &answers);
                    drop(pending);
                    let adds_texts = adds_texts.load(Ordering::SeqCst);
                    handsets.deliver(&smsc, &log, &bound, &answers, adds_texts);
                    thread::sleep(POLL); // tidy: the pace of the receipts
                }
            })
        };
        Self {
            smsc,
            adds_texts,
            should_stop,
            sender: Some(sender),
        }
    }

    /// Starts or stops to add texts from handsets. Those that were added are delivered in any case.
    pub(super) fn add_texts(&self, adds_texts: bool) {
        self.adds_texts.store(adds_texts, Ordering::SeqCst);
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.smsc.addr()
    }

    /// How many connections are bound.
    pub(super) fn bound(&self) -> usize {
        self.smsc.bound().len()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.should_stop.store(true, Ordering::SeqCst);
        if let Some(Err(_)) = self.sender.take().map(JoinHandle::join) {
            eprintln!("the thread that sends receipts and texts panicked");
        }
    }
}

impl PendingReceipts {
    fn send_due(&mut self, smsc: &Smsc, bound: &[usize], answers: &[Answer]) {
        for answer in answers {
            if let Some((_, receipt)) = self.unacknowledged.remove(&answer.sequence)
                && answer.status != 0
            {
                self.due.push_back((Instant::now() + RETRY_AFTER, receipt));
            }
        }
        let now = Instant::now();
        let overdue = self
            .unacknowledged
            .extract_if(|_, (sent, _)| *sent + RETRY_AFTER < now);
        self.due
            .extend(overdue.map(|(_, (_, receipt))| (now, receipt)));
        if bound.is_empty() {
            return;
        }
        let (due, later): (VecDeque<_>, _) = self.due.drain(..).partition(|(at, _)| *at <= now);
        self.due = later;
        for (_, receipt) in due {
            // Any node may get any receipt.
            self.turn += 1;
            match smsc.send_on(bound[self.turn % bound.len()], &receipt) {
                Some(sequence) => {
                    self.unacknowledged.insert(sequence, (now, receipt));
                }
                None => self.due.push_back((now + POLL, receipt)),
            }
        }
    }
}

/// Records a part before it is answered, and decides what to do with it.
fn on_submit(log: &Log, pending: &Mutex<PendingReceipts>, submit: &Submit) -> Vec<Action> {
    let (text, part) = split(submit);
    let to = submit.destination.2.parse().unwrap_or(0);
    match number_in(text) {
        Some(number) => log.record_submit(LoggedSubmit {
            number,
            to,
            part,
            at_ms: log.to_ms(submit.at),
        }),
        None if text.ends_with(PIN_TEXT_END) => {}
        // No request asked for this message; the checker finds it in the database.
        None => return vec![Action::Answer],
    }
    if to == REFUSED.0 {
        return vec![Action::Refuse(INVALID_NUMBER)];
    }
    let id = submit.id().to_string();
    let receipt = if to == ABSENT.0 {
        Receipt::failed(id, ABSENT_CAUSE)
    } else {
        Receipt::delivered(id)
    };
    let receipt = receipt.from(submit.destination.2.clone());
    let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
    pending
        .due
        .push_back((Instant::now() + RECEIPT_DELAY, receipt));
    vec![Action::Answer]
}

/// The text of a part, and which part it is.
fn split(submit: &Submit) -> (&[u8], u8) {
    let octets = &submit.short_message[..];
    let header = octets.first().map_or(0, |length| usize::from(*length) + 1);
    if submit.esm_class & 0x40 == 0 || octets.len() < header || header < 2 {
        return (octets, 1);
    }
    (&octets[header..], octets[header - 1])
}
