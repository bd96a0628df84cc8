//! The network outside: an SMSC that keeps a journal of what it got, and brings each receipt until it is acknowledged.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use testkit::smsc::{Act, Receipt, Smsc, Submit};

use super::log::{Log, Submit as Noted};
use super::orders::{ABSENT, REFUSED, number_in};

/// A receipt comes so long after the answer.
const DELAY: Duration = Duration::from_millis(50);
/// A receipt without an acknowledgement is brought again after so long.
const AGAIN_AFTER: Duration = Duration::from_secs(3);
/// How the text of a PIN ends.
const PIN_SAYS: &[u8] = b"It is valid for 10 minutes.";
const POLL: Duration = Duration::from_millis(10);
/// SMPP's status for a number that is none.
const INVALID_NUMBER: u32 = 0x0B;
/// GSM's number for an absent subscriber.
const ABSENT_CAUSE: u16 = 27;

/// The SMSC and its postman.
pub(super) struct Network {
    smsc: Arc<Smsc>,
    enough: Arc<AtomicBool>,
    postman: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Mail {
    due: VecDeque<(Instant, Receipt)>,
    unacknowledged: HashMap<u32, (Instant, Receipt)>,
    read: usize,
    turn: usize,
}

impl Network {
    pub(super) fn start(log: &Arc<Log>) -> Self {
        let mail: Arc<Mutex<Mail>> = Arc::default();
        let smsc = Smsc::builder().on_submit({
            let (log, mail) = (log.clone(), mail.clone());
            move |submit| take(&log, &mail, submit)
        });
        let smsc = Arc::new(smsc.start());
        let enough = Arc::new(AtomicBool::new(false));
        let postman = {
            let (smsc, enough) = (smsc.clone(), enough.clone());
            thread::spawn(move || {
                while !enough.load(Ordering::SeqCst) {
                    let mut mail = mail.lock().unwrap_or_else(PoisonError::into_inner);
                    mail.go_round(&smsc);
                    drop(mail);
                    thread::sleep(POLL); // tidy: the pace of the postman
                }
            })
        };
        Self {
            smsc,
            enough,
            postman: Some(postman),
        }
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
        self.enough.store(true, Ordering::SeqCst);
        if let Some(Err(_)) = self.postman.take().map(JoinHandle::join) {
            eprintln!("the postman had ended with a panic");
        }
    }
}

impl Mail {
    fn go_round(&mut self, smsc: &Smsc) {
        let answers = smsc.answers_after(self.read);
        self.read += answers.len();
        for answer in answers {
            if let Some((_, receipt)) = self.unacknowledged.remove(&answer.sequence)
                && answer.status != 0
            {
                self.due.push_back((Instant::now() + AGAIN_AFTER, receipt));
            }
        }
        let now = Instant::now();
        let overdue = self
            .unacknowledged
            .extract_if(|_, (sent, _)| *sent + AGAIN_AFTER < now);
        self.due
            .extend(overdue.map(|(_, (_, receipt))| (now, receipt)));
        let bound = smsc.bound();
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

/// Writes a part down before it is answered, and says what to do with it.
fn take(log: &Log, mail: &Mutex<Mail>, submit: &Submit) -> Vec<Act> {
    let (text, part) = split(submit);
    let to = submit.destination.2.parse().unwrap_or(0);
    match number_in(text) {
        Some(number) => log.submitted(Noted {
            number,
            to,
            part,
            at_ms: log.ms_of(submit.at),
        }),
        None if text.ends_with(PIN_SAYS) => {}
        // Something that no order asked for: it shows in the books.
        None => return vec![Act::Answer],
    }
    if to == REFUSED.0 {
        return vec![Act::Refuse(INVALID_NUMBER)];
    }
    let id = submit.id().to_string();
    let receipt = if to == ABSENT.0 {
        Receipt::failed(id, ABSENT_CAUSE)
    } else {
        Receipt::delivered(id)
    };
    let receipt = receipt.from(submit.destination.2.clone());
    let mut mail = mail.lock().unwrap_or_else(PoisonError::into_inner);
    mail.due.push_back((Instant::now() + DELAY, receipt));
    vec![Act::Answer]
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
