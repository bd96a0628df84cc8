//! A chain of two services: messages go to the first, by SMPP to the second, and their receipts come back.

use super::{BINDS, CHAIN_WINDOW, OUTSTANDING, SYSTEM_ID, Service, WARM_UP, WINDOW, message};
use crate::gateways::flow::{self, Flow, FlowSettings};
use crate::gateways::switchboard::Nodes;
use crate::options::Timed;
use ::smpp::{BindKind, Incoming, Session, ShortMessage, Status};
use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use testkit::Backend;
use testkit::load::RunLimit;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// After this time without a receipt, missing receipts count as lost.
const LOST_AFTER: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Ask for a receipt in any case.
const WITH_RECEIPT: u8 = 1;

/// The carrier of the first service.
fn carrier(second: &Service) -> String {
    let (address, password) = (&second.address, &second.password);
    format!(
        "[[carrier]]\nname = 'second'\nkind = 'smpp'\naddress = '{address}'\nsystem_id = '{SYSTEM_ID}'\n\
         password = '{password}'\nwindow = {CHAIN_WINDOW}\n"
    )
}

/// From `POST /sms` to the answered callback.
pub(super) fn from_rest(options: &Timed, backend: Backend) -> Result<Flow> {
    let second = Service::start(options, backend, "")?;
    let first = Nodes::start(&options.switchboard, backend, 1, &carrier(&second), &[])?;
    let settings = |time| FlowSettings {
        limit: RunLimit::Elapsed(time),
        outstanding: OUTSTANDING,
    };
    flow::run(&first, settings(WARM_UP))?;
    flow::run(&first, settings(options.measured))
}

/// Results of the messages of an SMPP client.
pub(super) struct Chain {
    /// Receipts a second.
    pub(super) rate: u64,
    /// Accepted messages without a receipt.
    pub(super) missing: usize,
    /// Receipts that came again, or whose message is unknown.
    pub(super) repeated: usize,
}

/// A client that waits for receipts.
struct Client {
    /// Messages that may still be sent before the next receipt.
    room: Semaphore,
    stop: AtomicBool,
    receipts: AtomicU64,
    accepted_ids: Mutex<Vec<Vec<u8>>>,
    receipt_ids: Mutex<Vec<Vec<u8>>>,
}

fn push(list: &Mutex<Vec<Vec<u8>>>, id: &[u8]) {
    let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
    list.push(id.to_vec());
}

fn taken(list: &Mutex<Vec<Vec<u8>>>) -> Vec<Vec<u8>> {
    std::mem::take(&mut *list.lock().unwrap_or_else(PoisonError::into_inner))
}

struct Receipts(Arc<Client>);

#[async_trait]
impl Incoming for Receipts {
    async fn deliver(&self, message: Box<ShortMessage>) -> Status {
        let Self(client) = self;
        push(
            &client.receipt_ids,
            &message.tlvs.receipted_message_id().unwrap_or_default(),
        );
        client.receipts.fetch_add(1, Ordering::Relaxed);
        client.room.add_permits(1);
        Status::OK
    }
}

impl Client {
    async fn submit(self: Arc<Self>, session: Session) -> Result<()> {
        let message = ShortMessage {
            schedule_delivery_time: "".into(),
            registered_delivery: WITH_RECEIPT,
            ..message()
        };
        while !self.stop.load(Ordering::Relaxed) {
            self.room.acquire().await?.forget();
            let answer = session.submit(&message).await?;
            ensure!(answer.status.is_ok(), "refused: {}", answer.status);
            push(&self.accepted_ids, &answer.message_id);
        }
        Ok(())
    }

    /// Waits until every message has its receipt, or none comes any more.
    async fn wait_for_receipts(&self) {
        let accepted = self.accepted_ids.lock().map_or(0, |ids| ids.len() as u64);
        let (mut last, mut since) = (0, Instant::now());
        loop {
            let now = self.receipts.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, Instant::now());
            }
            if now >= accepted || since.elapsed() > LOST_AFTER {
                return;
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

/// From `submit_sm` to the receipt, for a client that is bound to the first service.
pub(super) fn from_smpp(options: &Timed, runtime: &Runtime, backend: Backend) -> Result<Chain> {
    let second = Service::start(options, backend, "")?;
    let first = Service::start(options, backend, &carrier(&second))?;
    runtime.block_on(async {
        let client = Arc::new(Client {
            room: Semaphore::new(OUTSTANDING),
            stop: AtomicBool::new(false),
            receipts: AtomicU64::new(0),
            accepted_ids: Mutex::default(),
            receipt_ids: Mutex::default(),
        });
        let mut tasks = Vec::new();
        let mut sessions = Vec::new();
        for _ in 0..BINDS {
            let receipts = Arc::new(Receipts(Arc::clone(&client)));
            let session = first.bind(BindKind::Transceiver, receipts).await?;
            for _ in 0..WINDOW {
                tasks.push(tokio::spawn(Arc::clone(&client).submit(session.clone())));
            }
            sessions.push(session);
        }
        sleep(WARM_UP).await;
        let (start, before) = (Instant::now(), client.receipts.load(Ordering::Relaxed));
        sleep(options.measured).await;
        let came = client.receipts.load(Ordering::Relaxed) - before;
        let rate = crate::smpp::rate(came, start.elapsed());
        client.stop.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await?.context("a message was not accepted")?;
        }
        client.wait_for_receipts().await;
        let mut accepted: HashSet<_> = taken(&client.accepted_ids).into_iter().collect();
        let receipts = taken(&client.receipt_ids);
        let repeated = receipts.iter().filter(|id| !accepted.remove(*id)).count();
        anyhow::Ok(Chain {
            rate,
            missing: accepted.len(),
            repeated,
        })
    })
}
