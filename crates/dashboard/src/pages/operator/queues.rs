//! The depth of all queues, stuck messages, and receipts that match no message.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::message::Priority;
use domain::ports::{Counted, Overdue, Queue, QueueDepth, Unmatched};
use domain::{AccountId, NodeId, Outcome};
use engine::reading::operations::STUCK_AFTER;
use http::StatusCode;

use crate::Dashboard;
use crate::kit::failure::Failure;
use crate::kit::format::{Moment, capped_count, count};
use crate::kit::page::{Frame, show as show_page};
use crate::kit::session::Operator;

const SHOWN: u32 = 50;

#[derive(Template)]
#[template(path = "operator/queues.html")]
struct QueuesPage {
    frame: Frame,
    queues: Vec<QueueRow>,
    stuck_after_min: i64,
    stuck: Vec<StuckRow>,
    unmatched: Vec<ReceiptRow>,
    is_cut: bool,
}

struct QueueRow {
    name: &'static str,
    count: String,
    is_empty: bool,
    first: Option<Moment>,
    about: &'static str,
}

struct StuckRow {
    id: u64,
    account: u64,
    account_name: String,
    node: Option<u64>,
    due: Moment,
    attempts: String,
}

struct ReceiptRow {
    carrier: String,
    reference: String,
    outcome: String,
    at: Moment,
}

pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    operator: Operator,
) -> Result<Response, Failure> {
    let operations = &dashboard.engine.operations;
    let queues = operations.list_queues().await?;
    let stuck = operations.list_stuck(SHOWN).await?;
    let unmatched = operations.list_unmatched(SHOWN).await?;
    let accounts = stuck.iter().map(|message| message.account);
    let names = dashboard.engine.accounts.names(accounts).await?;
    let page = QueuesPage {
        frame: operator.frame(),
        queues: queues.into_iter().map(QueueRow::from).collect(),
        stuck_after_min: STUCK_AFTER.as_mins(),
        is_cut: stuck.len() >= SHOWN as usize,
        stuck: stuck.iter().map(|one| StuckRow::new(one, &names)).collect(),
        unmatched: unmatched.into_iter().map(ReceiptRow::from).collect(),
    };
    Ok(show_page(StatusCode::OK, &page))
}

/// The name of a queue, and what its depth means.
fn describe(queue: Queue) -> (&'static str, &'static str) {
    match queue {
        Queue::Due(Priority::High) => (
            "Due, high priority",
            "They should leave within a second. If they do not, no carrier of their route accepts them.",
        ),
        Queue::Due(Priority::Normal) => (
            "Due, normal priority",
            "Nodes send them as fast as carriers accept them. If many wait for long, carriers are too slow or down.",
        ),
        Queue::Due(Priority::Low) => (
            "Due, low priority",
            "They give way to the others, but always get a share. If many wait for long, there is a mass mailing, or carriers are too slow.",
        ),
        Queue::Later(Priority::High) => (
            "Later, high priority",
            "Scheduled, or waiting for the next attempt. Nothing to do.",
        ),
        Queue::Later(Priority::Normal) => (
            "Later, normal priority",
            "Scheduled, or waiting for the next attempt. Nothing to do.",
        ),
        Queue::Later(Priority::Low) => (
            "Later, low priority",
            "Scheduled, or waiting for the next attempt. Nothing to do.",
        ),
        Queue::Held => (
            "Held by nodes",
            "In the memory of nodes, on their way to a carrier. If a node dies, its messages return to the queue within seconds.",
        ),
        Queue::Sent => (
            "Sent, no report yet",
            "A carrier accepted them. They become final with its report, or when they expire.",
        ),
        Queue::SetAside => (
            "Set aside, unreadable",
            "Their stored rows cannot be read, so they are not sent and do not expire. The log says what is wrong with each; \
             docs/OPERATIONS.md says how to release or end them.",
        ),
        Queue::CallbacksDue => (
            "Reports due",
            "On their way to the accounts’ receivers. If many wait for long, receivers are slow or down.",
        ),
        Queue::CallbacksLater => (
            "Reports to be retried",
            "Their receivers did not answer with success. Attempts continue with growing pauses.",
        ),
        Queue::CallbacksParked => (
            "Reports parked",
            "Tried for days without success. They wait until someone sends them again.",
        ),
    }
}

impl From<QueueDepth> for QueueRow {
    fn from(depth: QueueDepth) -> Self {
        let (name, about) = describe(depth.queue);
        Self {
            name,
            count: capped_count(depth.count),
            is_empty: depth.count == Counted(0),
            first: depth.first_at.map(Moment::from),
            about,
        }
    }
}

impl StuckRow {
    fn new(message: &Overdue, names: &HashMap<AccountId, String>) -> Self {
        Self {
            id: message.id.get(),
            account: message.account.get(),
            account_name: names.get(&message.account).cloned().unwrap_or_default(),
            node: message.node.map(NodeId::get),
            due: message.due_at.into(),
            attempts: count(message.attempts.into()),
        }
    }
}

impl From<Unmatched> for ReceiptRow {
    fn from(receipt: Unmatched) -> Self {
        let outcome = match receipt.outcome {
            None => String::new(),
            Some(Outcome::Delivered) => "delivered".to_owned(),
            Some(Outcome::Expired) => "expired".to_owned(),
            Some(Outcome::Failed(code)) => format!("failed: {}", code.entry().words),
        };
        Self {
            carrier: receipt.carrier,
            reference: receipt.reference,
            outcome,
            at: receipt.at.into(),
        }
    }
}
