//! How messages end: the final state, the expiry and the delivery report are stored in the transaction that ends them.

use std::collections::HashMap;

use deadpool_postgres::{Object, Transaction};
use domain::delivery::CarrierRef;
use domain::ids::NodeId;
use domain::kill_point::{KillPoint, pass};
use domain::message::lookup;
use domain::message::outcome::{Outcome, TakenParts};
use domain::ports::LATENCY_BOUNDS_US;
use domain::{Channel, Timestamp, TraceContext};
use tokio_postgres::Row;

use super::day_statements::DayStatements;
use super::fault::Fault;
use super::retry::Retryable;
use super::{billing, column};
use crate::rows::callbacks::{CallbackColumns, TextColumns};
use crate::rows::dispatch::{self, seen_payload};
use crate::rows::ended::EndedColumns;
use crate::rows::records::SentColumns;
use crate::rows::{self, Corrupt, NOBODY, micros, outcome_numbers};

/// Final states never change. A message gets the network that its receipt named. Each message that this ends is returned
/// once, and so is each delivery report that it creates. Lookups are counted when their answer is known, test messages
/// never. The tables are those of [`DayStatements`].
const END: &str = concat!(
    "WITH ended AS (
        UPDATE {message} AS m SET status = g.status, error = g.error, final_us = g.at_us,
            result = CASE WHEN m.channel = 2 THEN g.result END, carrier = g.carrier, sent_us = g.sent_us,
            cost_micros = g.cost_micros,
            network = CASE WHEN m.channel = 2 THEN m.network ELSE coalesce(g.network, m.network) END,
            charged_micros = CASE WHEN m.channel = 2 THEN m.price_micros ELSE ",
    cost!(),
    " END
        FROM UNNEST($1::bigint[], $2::smallint[], $3::smallint[], $4::bigint[], $5::text[], $8::smallint[], $9::text[],
                $10::bigint[], $11::bigint[], $12::int[])
            AS g (id, status, error, at_us, result, charged, carrier, sent_us, cost_micros, network)
        WHERE m.id = ANY(ARRAY[g.id]) AND m.final_us IS NULL
        RETURNING m.id, m.account_id, m.dlr_url, m.expires_us, m.final_us, m.network, m.country, m.channel, m.status, m.error,
            m.parts, m.trace, m.test_mode, m.recipient, coalesce(m.scheduled_us, m.accepted_us) AS began_us, ",
    cost!(),
    " AS cost_micros,
            -1::bigint AS owner, 0::smallint AS lane
    ), stopped AS (
        DELETE FROM queue USING ended
        WHERE queue.owner = ANY(ARRAY[ended.owner]) AND queue.lane = ended.lane AND queue.due_us = ended.expires_us
            AND queue.id = ended.id
    ), created AS (
        INSERT INTO {callback} (account_id, message_id, kind, created_us, due_us, state, tries)
        SELECT account_id, id, CASE WHEN channel = 2 THEN 1 ELSE 0 END, final_us, ",
    now_us!(),
    ", 0, 0 FROM ended WHERE dlr_url IS NOT NULL
        RETURNING id, message_id, due_us
    ), queued AS (
        INSERT INTO callback_queue (owner, due_us, id, attempt, message_id)
        SELECT $6::bigint, due_us, id, $7::int, message_id FROM created
    ), counted AS (",
    count_traffic!(
        "SELECT *, CASE WHEN status = 1 THEN width_bucket(final_us - began_us, $13::bigint[]) END AS bucket
        FROM ended WHERE channel <> 2 AND test_mode IS NULL"
    ),
    ")
    SELECT id, channel, account_id, dlr_url, network, recipient, began_us, trace FROM ended
    UNION ALL
    SELECT message_id, NULL::smallint, NULL::bigint, NULL::bytea, NULL::int, id, due_us, NULL::bytea FROM created"
);
/// For lookups that ended without an answer.
const SET_LOOKUP_RESULTS: &str = "
    UPDATE message AS m SET status = g.status, error = g.error, result = g.result
    FROM UNNEST($1::bigint[], $2::smallint[], $3::smallint[], $4::text[]) AS g (id, status, error, result)
    WHERE m.id = ANY(ARRAY[g.id])";
const SET_CHARGED: &str = "
    UPDATE message AS m SET charged_micros = 0 FROM UNNEST($1::bigint[]) AS g (id) WHERE m.id = ANY(ARRAY[g.id])";
const COUNT_LOOKUPS: &str = count_traffic!(
    "SELECT m.account_id, m.final_us, m.channel, m.network, m.country, m.status, m.error, m.parts,
        CASE WHEN g.charged IS NULL THEN m.price_micros ELSE 0 END AS cost_micros, NULL::smallint AS bucket
    FROM message AS m JOIN UNNEST($1::bigint[], $2::smallint[]) AS g (id, charged) ON m.id = ANY(ARRAY[g.id])"
);
const MARK_SEEN: &str = "
    UPDATE message SET seen_us = $3
    WHERE id = (
        SELECT id FROM transit WHERE carrier = $1 AND reference = $2 ORDER BY taken_us DESC, id DESC LIMIT 1
    ) AND status = 1 AND seen_us IS NULL
    RETURNING account_id, dlr_url, network, id, trace";
/// Stored in full, because another node may delete the message at the same time, without this report.
const REPORT_SEEN: &str = concat!(
    "WITH created AS (
        INSERT INTO callback (account_id, message_id, kind, url, payload, trace, created_us, due_us, state, tries)
        VALUES ($1, $2, 0, $3, $4, $6, $5, ",
    now_us!(),
    ", 0, 0) RETURNING id, due_us, message_id
    )
    INSERT INTO callback_queue (owner, due_us, id, attempt, message_id)
    SELECT 0, due_us, id, 0, message_id FROM created"
);
/// Subtracts delivered parts from the open parts of a message.
const SUBTRACT_PARTS: &str = "
    UPDATE message AS m SET parts_left = coalesce(m.parts_left, g.parts) - g.delivered
    FROM UNNEST($1::bigint[], $2::smallint[], $3::smallint[]) AS g (id, parts, delivered)
    WHERE m.id = ANY(ARRAY[g.id]) AND m.final_us IS NULL RETURNING m.id, m.parts_left";

/// The outcome of one part of a message.
pub(super) struct PartReport {
    pub(super) id: i64,
    pub(super) parts: i16,
    pub(super) outcome: Outcome,
    pub(super) taken: TakenParts,
    pub(super) at_us: i64,
    /// The answer for the caller of a lookup.
    pub(super) report: Option<String>,
    /// The network that the receipt named.
    pub(super) network: Option<i32>,
    /// The carrier that took the message, if one did.
    pub(super) sent: Option<SentColumns>,
}

/// What a report on one part does to its message.
pub(super) enum Progress {
    /// It ended.
    Ended(EndedColumns),
    /// Other parts have no outcome yet.
    Open,
    /// It had ended before.
    AlreadyEnded,
}

/// How a message will end.
struct End {
    id: i64,
    outcome: Outcome,
    taken: TakenParts,
    at_us: i64,
    report: Option<String>,
    network: Option<i32>,
    sent: Option<SentColumns>,
}

impl End {
    /// How many parts stay charged when the others are refunded; `None` if nothing is refunded.
    fn charged(&self, channel: Channel) -> Option<i16> {
        let charged = self.outcome.charged_parts(channel, self.taken)?;
        Some(i16::try_from(charged).unwrap_or(i16::MAX))
    }
}

/// The reports of one batch on one message.
struct Group {
    /// The index of the report that decides: the first one that is not a delivery, or the last one.
    deciding: usize,
    failed: bool,
    delivered: i16,
}

/// Stores reports on parts, in order: a message is delivered when all parts are, and fails with the first part that
/// fails.
pub(super) async fn report(
    transaction: &Transaction<'_>,
    days: &DayStatements,
    holder: Option<NodeId>,
    reports: &[PartReport],
) -> Result<Vec<Progress>, Fault> {
    let groups = group(reports);
    let left = subtract_parts(transaction, reports, &groups).await?;
    let is_last = |id: &i64, group: &Group| {
        group.failed || reports[group.deciding].parts == 1 || left.get(id) == Some(&0)
    };
    let ends = groups.iter().filter(|(id, group)| is_last(id, group));
    let mut ends: Vec<End> = ends
        .map(|(&id, group)| End {
            id,
            outcome: reports[group.deciding].outcome,
            taken: reports[group.deciding].taken,
            at_us: reports[group.deciding].at_us,
            report: reports[group.deciding].report.clone(),
            network: reports[group.deciding].network,
            sent: reports[group.deciding].sent.clone(),
        })
        .collect();
    let mut ended = end(transaction, days, holder, &mut ends).await?;
    let had_ended =
        |id: &i64| !ended.contains_key(id) && left.get(id).is_none_or(|left| *left == 0);
    let over: Vec<bool> = reports.iter().map(|report| had_ended(&report.id)).collect();
    let progress =
        |(index, report): (usize, &PartReport)| match index.cmp(&groups[&report.id].deciding) {
            _ if over[index] => Progress::AlreadyEnded,
            std::cmp::Ordering::Less => Progress::Open,
            std::cmp::Ordering::Greater => Progress::AlreadyEnded,
            std::cmp::Ordering::Equal => ended
                .remove(&report.id)
                .map_or(Progress::Open, Progress::Ended),
        };
    Ok(reports.iter().enumerate().map(progress).collect())
}

fn group(reports: &[PartReport]) -> HashMap<i64, Group> {
    let mut groups = HashMap::with_capacity(reports.len());
    for (index, report) in reports.iter().enumerate() {
        let group = groups.entry(report.id).or_insert(Group {
            deciding: index,
            failed: false,
            delivered: 0,
        });
        if group.failed {
            continue;
        }
        group.deciding = index;
        if report.outcome == Outcome::Delivered {
            group.delivered += 1;
        } else {
            group.failed = true;
        }
    }
    groups
}

/// Returns how many parts are left, for messages that had not ended.
async fn subtract_parts(
    transaction: &Transaction<'_>,
    reports: &[PartReport],
    groups: &HashMap<i64, Group>,
) -> Result<HashMap<i64, i16>, Fault> {
    let split = |group: &Group| reports[group.deciding].parts > 1 && !group.failed;
    let mut split: Vec<_> = groups.iter().filter(|(_, group)| split(group)).collect();
    if split.is_empty() {
        return Ok(HashMap::new());
    }
    split.sort_unstable_by_key(|(id, _)| **id);
    let ids: Vec<i64> = split.iter().map(|(id, _)| **id).collect();
    let parts: Vec<i16> = split
        .iter()
        .map(|(_, group)| reports[group.deciding].parts)
        .collect();
    let delivered: Vec<i16> = split.iter().map(|(_, group)| group.delivered).collect();
    let statement = transaction.prepare_cached(SUBTRACT_PARTS).await?;
    let left = transaction
        .query(&statement, &[&ids, &parts, &delivered])
        .await?;
    let read = |row: &Row| Ok((column(row, 0)?, column(row, 1)?));
    let left: Result<_, Corrupt> = left.iter().map(read).collect();
    Ok(left?)
}

/// Ends messages; the result leaves out those that had ended before. Rows are locked in the order of IDs, so that two
/// batches cannot deadlock.
async fn end(
    transaction: &Transaction<'_>,
    days: &DayStatements,
    holder: Option<NodeId>,
    ends: &mut [End],
) -> Result<HashMap<i64, EndedColumns>, Fault> {
    if ends.is_empty() {
        return Ok(HashMap::new());
    }
    ends.sort_unstable_by_key(|end| end.id);
    let mut messages = HashMap::with_capacity(ends.len());
    for same_day in ends.chunk_by(|a, b| days.day(a.id) == days.day(b.id)) {
        store_ends(transaction, days, holder, same_day, &mut messages).await?;
    }
    store_unanswered(transaction, ends, &messages).await?;
    count_lookups(transaction, ends, &messages).await?;
    let mut ended = HashMap::with_capacity(messages.len());
    let mut refunds = Vec::new();
    for end in ends.iter_mut() {
        let Some(message) = messages.remove(&end.id) else {
            continue;
        };
        if let Some(charged) = end.charged(message.channel) {
            refunds.push((end.id, charged));
        }
        let (channel, network, began_us) = (message.channel, message.network, message.began_us);
        let named = end.network.map(|network| (message.recipient, network));
        let trace = message.trace.clone();
        let callback = message.callback.filter(|_| holder.is_some());
        let callback = callback.map(|(id, due_us)| message.held(end, id, due_us));
        let columns = EndedColumns {
            id: end.id,
            channel,
            network,
            named,
            outcome: end.outcome,
            began_us,
            ended_us: end.at_us,
            callback: callback.transpose()?,
            trace,
        };
        ended.insert(end.id, columns);
    }
    if !refunds.is_empty() {
        let at_us = ends.iter().map(|end| end.at_us).max().unwrap_or_default();
        billing::refund(transaction, &refunds, at_us).await?;
        pass(KillPoint::RefundInside);
    }
    Ok(ended)
}

/// Stores the ends of messages whose partition is the same, and adds those that had not ended before.
async fn store_ends(
    transaction: &Transaction<'_>,
    days: &DayStatements,
    holder: Option<NodeId>,
    ends: &[End],
    messages: &mut HashMap<i64, Message>,
) -> Result<(), Fault> {
    let ids: Vec<i64> = ends.iter().map(|end| end.id).collect();
    let numbers = ends.iter().map(|end| outcome_numbers(end.outcome));
    let (statuses, errors): (Vec<i16>, Vec<i16>) = numbers.unzip();
    let times: Vec<i64> = ends.iter().map(|end| end.at_us).collect();
    let results: Vec<Option<&str>> = ends.iter().map(|end| end.report.as_deref()).collect();
    let owner = holder.map_or(NOBODY, NodeId::as_i64);
    let attempt = i32::from(holder.is_some());
    // The same for SMS and Viber; lookups are counted separately.
    let charged: Vec<Option<i16>> = ends.iter().map(|end| end.charged(Channel::Sms)).collect();
    let sent = || ends.iter().map(|end| end.sent.as_ref());
    let carriers: Vec<Option<&str>> = sent()
        .map(|sent| sent.map(|sent| sent.carrier.as_str()))
        .collect();
    let sent_us: Vec<Option<i64>> = sent().map(|sent| sent.map(|sent| sent.at_us)).collect();
    let costs: Vec<Option<i64>> = sent()
        .map(|sent| sent.and_then(|sent| sent.cost_micros))
        .collect();
    let networks: Vec<Option<i32>> = ends.iter().map(|end| end.network).collect();
    let bounds_us: &[i64] = &LATENCY_BOUNDS_US;
    let values: super::Values<'_> = &[
        &ids, &statuses, &errors, &times, &results, &owner, &attempt, &charged, &carriers,
        &sent_us, &costs, &networks, &bounds_us,
    ];
    let ended = days.query(transaction, END, days.day(ids[0]), values);
    read_messages(&ended.await?, messages)?;
    Ok(())
}

/// Counts the lookups among the ended messages.
async fn count_lookups(
    transaction: &Transaction<'_>,
    ends: &[End],
    messages: &HashMap<i64, Message>,
) -> Result<(), Fault> {
    let is_lookup = |end: &&End| {
        let message = messages.get(&end.id);
        message.is_some_and(|message| message.channel == Channel::Hlr)
    };
    let lookup = |end: &End| (end.id, end.charged(Channel::Hlr));
    let (ids, charged): (Vec<i64>, Vec<Option<i16>>) =
        ends.iter().filter(is_lookup).map(lookup).unzip();
    if ids.is_empty() {
        return Ok(());
    }
    let statement = transaction.prepare_cached(COUNT_LOOKUPS).await?;
    let values: super::Values<'_> = &[&ids, &charged];
    transaction.execute(&statement, values).await?;
    // A lookup is refunded as a whole.
    let refunded = ids.iter().zip(&charged);
    let refunded = refunded.filter(|(_, charged)| charged.is_some());
    let refunded: Vec<i64> = refunded.map(|(id, _)| *id).collect();
    if !refunded.is_empty() {
        let statement = transaction.prepare_cached(SET_CHARGED).await?;
        transaction.execute(&statement, &[&refunded]).await?;
    }
    Ok(())
}

/// Creates and stores the results of lookups that ended without an answer.
async fn store_unanswered(
    transaction: &Transaction<'_>,
    ends: &mut [End],
    messages: &HashMap<i64, Message>,
) -> Result<(), Fault> {
    let (mut ids, mut statuses, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    let mut results = Vec::new();
    for end in ends {
        match messages.get(&end.id).map(|message| message.channel) {
            Some(Channel::Hlr) if end.report.is_none() => {
                let (outcome, report) = lookup::unanswered(rows::message_id(end.id)?, end.outcome);
                let (status, error) = outcome_numbers(outcome);
                ids.push(end.id);
                statuses.push(status);
                errors.push(error);
                results.push(report.clone());
                end.outcome = outcome;
                end.report = Some(report);
            }
            Some(Channel::Hlr) | None => {}
            Some(Channel::Sms | Channel::Viber) => end.report = None,
        }
    }
    if !ids.is_empty() {
        let statement = transaction.prepare_cached(SET_LOOKUP_RESULTS).await?;
        let values: super::Values<'_> = &[&ids, &statuses, &errors, &results];
        transaction.execute(&statement, values).await?;
    }
    Ok(())
}

/// A message that was ended.
struct Message {
    channel: Channel,
    account_id: i64,
    url: Option<Vec<u8>>,
    network: Option<i32>,
    recipient: i64,
    /// When it was accepted, or the later time that its sender asked for.
    began_us: i64,
    /// Its delivery report: the ID and the queue key.
    callback: Option<(i64, i64)>,
    trace: Option<Box<TraceContext>>,
}

impl Message {
    /// The report that the node holds.
    fn held(self, end: &mut End, id: i64, due_us: i64) -> Result<CallbackColumns, Corrupt> {
        let (status, error) = outcome_numbers(end.outcome);
        let text = TextColumns {
            payload: end.report.take(),
            message_id: end.id,
            status: Some(status),
            error: Some(error),
            network: self.network,
        };
        Ok(CallbackColumns {
            id,
            kind: rows::callbacks::callback_kind(self.channel).number(),
            account_id: self.account_id,
            url: self.url.ok_or(Corrupt("callback URL"))?,
            text,
            created_us: end.at_us,
            tries: 0,
            due_us,
            attempt: 1,
            trace: self.trace,
        })
    }
}

/// Reads what [`END`] returns: rows of messages have a channel, those of reports have none.
fn read_messages(found: &[Row], messages: &mut HashMap<i64, Message>) -> Result<(), Corrupt> {
    let mut callbacks = Vec::with_capacity(found.len() / 2);
    for row in found {
        let id: i64 = column(row, 0)?;
        let Some(channel) = column(row, 1)? else {
            callbacks.push((id, (column(row, 5)?, column(row, 6)?)));
            continue;
        };
        let message = Message {
            channel: rows::channel(channel)?,
            account_id: column(row, 2)?,
            url: column(row, 3)?,
            network: column(row, 4)?,
            recipient: column(row, 5)?,
            began_us: column(row, 6)?,
            callback: None,
            trace: dispatch::trace(column(row, 7)?),
        };
        messages.insert(id, message);
    }
    for (id, callback) in callbacks {
        let message = messages.get_mut(&id).ok_or(Corrupt("callback"))?;
        message.callback = Some(callback);
    }
    Ok(())
}

/// Stores that the recipient of a delivered message has seen it.
pub(super) struct MarkSeen<'a> {
    pub(super) of: &'a CarrierRef,
    pub(super) at: Timestamp,
}

impl Retryable for MarkSeen<'_> {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let statement = transaction.prepare_cached(MARK_SEEN).await?;
        let (carrier, reference) = (&self.of.carrier, self.of.reference.as_bytes());
        let at_us = micros(self.at);
        let values: super::Values<'_> = &[carrier, &reference, &at_us];
        let Some(row) = transaction.query_opt(&statement, values).await? else {
            return Ok(false);
        };
        let url: Option<Vec<u8>> = column(&row, 1)?;
        if let Some(url) = url {
            let (account, id): (i64, i64) = (column(&row, 0)?, column(&row, 3)?);
            let payload = seen_payload(id, column(&row, 2)?)?;
            let statement = transaction.prepare_cached(REPORT_SEEN).await?;
            let trace: Option<Vec<u8>> = column(&row, 4)?;
            let values: super::Values<'_> = &[&account, &id, &url, &payload, &at_us, &trace];
            transaction.execute(&statement, values).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }
}
