//! Rows that operators see.

use std::collections::BTreeMap;

use domain::ports::{
    Counted, DatabaseFacts, FailingReceiver, HeartbeatResult, NodeFacts, NodeInfo, NodeStatus,
    Overdue, Queue, QueueDepth, Receiver, Unmatched,
};

use super::callbacks::PARKED;
use super::dispatch::priority;
use super::{Corrupt, SqlRow, account_id, message_id, node_id, outcome, timestamp, utf8};

/// How many callbacks are read to list their hosts: waiting ones and parked ones each.
pub(crate) const SAMPLE: i64 = 1_000;
/// How many held rows are read to find overdue ones.
pub(crate) const HELD_ROWS: i64 = 20_000;
/// The limit of counting, as a parameter.
pub(crate) const MOST: i64 = Counted::MOST as i64;

fn counted(number: i64) -> Result<Counted, Corrupt> {
    let number = u32::try_from(number).map_err(|_| Corrupt("count"))?;
    Ok(Counted(number))
}

/// The columns of a node.
pub(crate) struct NodeColumns {
    pub(crate) id: i64,
    pub(crate) alive_until_us: i64,
    pub(crate) is_dead: bool,
    pub(crate) holds: i64,
    /// `None`, like the following columns, for a program that is too old to know them.
    pub(crate) started_us: Option<i64>,
    pub(crate) schema_level: Option<i64>,
    pub(crate) works: bool,
    /// Separated by commas.
    pub(crate) roles: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) listen: Option<String>,
}

impl NodeColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            alive_until_us: row.column(1)?,
            is_dead: row.column(2)?,
            holds: row.column(3)?,
            started_us: row.column(4)?,
            schema_level: row.column(5)?,
            works: row.column(6)?,
            roles: row.column(7)?,
            version: row.column(8)?,
            host: row.column(9)?,
            listen: row.column(10)?,
        })
    }

    pub(crate) fn node(self) -> Result<NodeStatus, Corrupt> {
        let roles = self.roles.unwrap_or_default();
        let info = NodeInfo {
            roles: roles.split(',').map(str::to_owned).collect(),
            works: self.works,
            version: self.version.unwrap_or_default(),
            host: self.host.unwrap_or_default(),
            listen: self.listen.unwrap_or_default(),
        };
        let facts = match (self.started_us, self.schema_level) {
            (Some(started_us), Some(level)) => Some(NodeFacts {
                info,
                schema: u32::try_from(level).map_err(|_| Corrupt("version of the schema"))?,
                started_at: timestamp(started_us)?,
            }),
            _ => None,
        };
        Ok(NodeStatus {
            node: node_id(self.id)?,
            alive_until: timestamp(self.alive_until_us)?,
            is_dead: self.is_dead,
            holds: counted(self.holds)?,
            facts,
        })
    }
}

/// The answer to a heartbeat: whether the node is known, and the oldest program that may still work.
pub(crate) fn heartbeat_result(
    is_known: bool,
    oldest: Option<i64>,
    known: i64,
) -> Result<HeartbeatResult, Corrupt> {
    let level = |level: i64| u32::try_from(level).map_err(|_| Corrupt("version of the schema"));
    match oldest {
        Some(oldest) if oldest > known => Ok(HeartbeatResult::Outdated {
            known: level(known)?,
            oldest: level(oldest)?,
        }),
        _ if is_known => Ok(HeartbeatResult::Alive),
        _ => Ok(HeartbeatResult::GivenUp),
    }
}

/// The columns of a queue: its number, its lane, the number of rows, and the time of the first one.
pub(crate) struct DepthColumns {
    pub(crate) queue: i16,
    pub(crate) lane: i16,
    pub(crate) count: i64,
    pub(crate) first_us: Option<i64>,
}

impl DepthColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            queue: row.column(0)?,
            lane: row.column(1)?,
            count: row.column(2)?,
            first_us: row.column(3)?,
        })
    }

    /// The statements of both databases return these numbers.
    pub(crate) fn depth(&self) -> Result<QueueDepth, Corrupt> {
        let queue = match self.queue {
            0 => Queue::Due(priority(self.lane)?),
            1 => Queue::Later(priority(self.lane)?),
            2 => Queue::Held,
            3 => Queue::Sent,
            4 => Queue::CallbacksDue,
            5 => Queue::CallbacksLater,
            6 => Queue::CallbacksParked,
            7 => Queue::SetAside,
            _ => return Err(Corrupt("queue")),
        };
        Ok(QueueDepth {
            queue,
            count: counted(self.count)?,
            first_at: self.first_us.map(timestamp).transpose()?,
        })
    }
}

/// The columns of an overdue message.
pub(crate) struct OverdueColumns {
    pub(crate) id: i64,
    pub(crate) account_id: i64,
    pub(crate) owner: i64,
    pub(crate) due_us: i64,
    pub(crate) attempt: i32,
}

impl OverdueColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            id: row.column(0)?,
            account_id: row.column(1)?,
            owner: row.column(2)?,
            due_us: row.column(3)?,
            attempt: row.column(4)?,
        })
    }

    pub(crate) fn overdue(&self) -> Result<Overdue, Corrupt> {
        let held = self.owner > super::NOBODY;
        Ok(Overdue {
            id: message_id(self.id)?,
            account: account_id(self.account_id)?,
            node: held.then(|| node_id(self.owner)).transpose()?,
            due_at: timestamp(self.due_us)?,
            attempts: u32::try_from(self.attempt).map_err(|_| Corrupt("attempt"))?,
        })
    }
}

/// The columns of an unmatched receipt.
pub(crate) struct UnmatchedColumns {
    pub(crate) carrier: String,
    pub(crate) reference: Vec<u8>,
    pub(crate) status: Option<i16>,
    pub(crate) error: Option<i16>,
    pub(crate) taken_us: i64,
}

impl UnmatchedColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            carrier: row.column(0)?,
            reference: row.column(1)?,
            status: row.column(2)?,
            error: row.column(3)?,
            taken_us: row.column(4)?,
        })
    }

    pub(crate) fn unmatched(self) -> Result<Unmatched, Corrupt> {
        let reported = self.status.is_some();
        Ok(Unmatched {
            carrier: self.carrier,
            reference: utf8(self.reference)?,
            outcome: reported
                .then(|| outcome(self.status, self.error))
                .transpose()?,
            at: timestamp(self.taken_us)?,
        })
    }
}

/// The columns of a callback that waits or is parked.
pub(crate) struct WaitingColumns {
    pub(crate) url: Vec<u8>,
    pub(crate) state: i16,
    pub(crate) created_us: i64,
    pub(crate) reason: Option<Vec<u8>>,
    /// How many callbacks this row represents: the first one of a receiver's queue represents all of them.
    pub(crate) count: i64,
    pub(crate) account_id: i64,
    pub(crate) tries: i32,
}

impl WaitingColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            url: row.column(0)?,
            state: row.column(1)?,
            created_us: row.column(2)?,
            reason: row.column(3)?,
            count: row.column(4)?,
            account_id: row.column(5)?,
            tries: row.column(6)?,
        })
    }
}

/// The columns about the database itself.
pub(crate) struct DatabaseColumns {
    pub(crate) version: String,
    pub(crate) schema: i64,
    pub(crate) bytes: i64,
}

impl DatabaseColumns {
    pub(crate) fn read<R: SqlRow>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            version: row.column(0)?,
            schema: row.column(1)?,
            bytes: row.column(2)?,
        })
    }

    pub(crate) fn facts(self, product: &'static str) -> Result<DatabaseFacts, Corrupt> {
        Ok(DatabaseFacts {
            product,
            version: self.version,
            schema: u32::try_from(self.schema).map_err(|_| Corrupt("version of the schema"))?,
            bytes: u64::try_from(self.bytes).map_err(|_| Corrupt("size of the database"))?,
        })
    }
}

/// Counts callbacks by receiving host, the hosts with the most callbacks first.
pub(crate) fn receivers(reports: Vec<WaitingColumns>) -> Result<Vec<Receiver>, Corrupt> {
    let mut hosts: BTreeMap<String, Receiver> = BTreeMap::new();
    for report in reports {
        let url = String::from_utf8_lossy(&report.url);
        let count = counted(report.count)?.0;
        let (address, host) = host_of(&url);
        let created_at = timestamp(report.created_us)?;
        let receiver = hosts.entry(address).or_insert_with_key(|address| Receiver {
            address: address.clone(),
            host,
            waiting: Counted(0),
            parked: Counted(0),
            oldest_at: None,
            last_reason: None,
        });
        if report.state == PARKED {
            receiver.parked.0 += count;
        } else {
            receiver.waiting.0 += count;
        }
        let is_older = |oldest| created_at < oldest;
        if receiver.oldest_at.is_none_or(is_older) {
            receiver.oldest_at = Some(created_at);
        }
        if receiver.last_reason.is_none() {
            receiver.last_reason = report.reason.map(utf8).transpose()?;
        }
    }
    let mut receivers: Vec<Receiver> = hosts.into_values().collect();
    receivers.sort_by_key(|receiver| std::cmp::Reverse(receiver.waiting.0 + receiver.parked.0));
    Ok(receivers)
}

/// The receivers of accounts with a waiting callback that was tried at least so often.
pub(crate) fn failing_receivers(
    reports: Vec<WaitingColumns>,
    min_tries: u32,
) -> Result<Vec<FailingReceiver>, Corrupt> {
    let mut receivers: BTreeMap<(i64, String), FailingReceiver> = BTreeMap::new();
    for report in reports {
        let Some(reason) = report.reason.filter(|_| report.state != PARKED) else {
            continue;
        };
        let (address, host) = host_of(&String::from_utf8_lossy(&report.url));
        let tried = u32::try_from(report.tries).map_err(|_| Corrupt("tries"))?;
        let (waiting, oldest_at) = (counted(report.count)?.0, timestamp(report.created_us)?);
        let account = account_id(report.account_id)?;
        let reason = utf8(reason)?;
        let receiver = receivers
            .entry((report.account_id, address.clone()))
            .or_insert(FailingReceiver {
                account,
                address,
                host,
                waiting: 0,
                tries: 0,
                oldest_at,
                last_reason: reason,
            });
        receiver.waiting = receiver.waiting.saturating_add(waiting);
        receiver.tries = receiver.tries.max(tried);
        receiver.oldest_at = receiver.oldest_at.min(oldest_at);
    }
    let is_failing = |receiver: &FailingReceiver| receiver.tries >= min_tries;
    Ok(receivers.into_values().filter(is_failing).collect())
}

/// The URL up to its path, with and without the scheme. An SMPP user keeps its scheme and its spelling.
fn host_of(url: &str) -> (String, String) {
    if url.starts_with("smpp:") {
        let user = url.split('/').next().unwrap_or(url).to_owned();
        return (user.clone(), user);
    }
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..]
        .find(['/', '?', '#', '\\'])
        .map_or(url.len(), |at| start + at);
    let lower = |text: &str| text.to_ascii_lowercase();
    (lower(&url[..end]), lower(&url[start..end]))
}
