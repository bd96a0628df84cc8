//! The port for messages from handsets.

use std::sync::Arc;

use async_trait::async_trait;
use domain::billing::EntryKind;
use domain::delivery::CallbackKind;
use domain::ids::{AccountId, MessageId, NodeId};
use domain::inbound::message::InboundMessage;
use domain::inbound::number::InboundNumber;
use domain::ports::{
    Cursor, Delivered, DeliveredCopy, DeliveredResult, IfUnclear, InboundFilter, InboundPart,
    InboundStore, NewInbound, NumberEntry, OwnedNumber, Page, PartKey, PartSet, StoreError,
};
use domain::{CallbackUrl, Timestamp};
use jiff::SignedDuration;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::billing::Change;
use super::senders::{CREATE_CALLBACK, QUEUE_CALLBACK};
use super::{SqliteStore, access, clock};
use crate::rows::inbound::{
    CopyStep, FilterColumns, InboundColumns, KeyColumns, PartColumns, REPETITION_US, StoredCopy,
    entry_key, judge_copy, message, owned_number, part_sets, set_key, stored_part,
};
use crate::rows::{NOBODY, before, duration_us, micros, page};
use crate::sql::{inbound as sql, replies};

/// Only one node delivers on `SQLite`, so the sessions of other nodes are over.
const FIND_COPIES: &str = "
    SELECT session, number, ended OR node_id <> ?3 FROM inbound_copy WHERE hash = ?1 AND at_us > ?2";
const STORE_COPY: &str = "
    INSERT INTO inbound_copy (session, number, hash, node_id, ended, at_us) VALUES (?1, ?2, ?3, ?4, FALSE, ?5)";
const PRUNE_COPIES: &str = "
    DELETE FROM inbound_copy WHERE (session, number) IN (
        SELECT session, number FROM inbound_copy WHERE at_us <= ?1 LIMIT ?2)";
/// Message IDs increase with time, so the oldest come first.
const PRUNE: &str = "
    DELETE FROM inbound WHERE id IN (
        SELECT id FROM (SELECT id, received_us FROM inbound ORDER BY id LIMIT ?2) WHERE received_us <= ?1)
    RETURNING id";
const PRUNE_ATTEMPTS: &str = "
    DELETE FROM callback_attempt WHERE id IN (
        SELECT a.id FROM callback AS c CROSS JOIN callback_attempt AS a
            ON a.id BETWEEN c.id * 1048576 AND c.id * 1048576 + 1048575
        WHERE c.message_id = ?1 AND c.kind = 3)";
const PRUNE_QUEUE: &str = "
    DELETE FROM callback_queue WHERE id IN (SELECT id FROM callback WHERE message_id = ?1 AND kind = 3)";
const PRUNE_CALLBACKS: &str = "DELETE FROM callback WHERE message_id = ?1 AND kind = 3";
const PRUNE_SOURCE: &str = "DELETE FROM inbound_source WHERE inbound_id = ?1";

const REMOVE_NUMBER: &str = "DELETE FROM inbound_number WHERE digits = ?1 AND keyword = ?2";

#[async_trait]
impl InboundStore for SqliteStore {
    async fn store_delivered(
        &self,
        node: NodeId,
        batch: Arc<Vec<(DeliveredCopy, Delivered)>>,
        if_unclear: IfUnclear,
    ) -> Result<Vec<DeliveredResult>, StoreError> {
        self.write("store messages from handsets", move |db| {
            let now_us = clock::now_us(db)?;
            batch
                .iter()
                .map(|(copy, delivered)| deliver(db, node, copy, delivered, if_unclear, now_us))
                .collect()
        })
        .await
    }

    async fn find_part_set(&self, key: &PartKey) -> Result<Option<PartSet>, StoreError> {
        let key = key.clone();
        self.read("find parts", move |db| {
            Ok(find_sets(db, &key)?.into_iter().find(PartSet::is_complete))
        })
        .await
    }

    async fn list_part_sets(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> Result<Vec<PartSet>, StoreError> {
        self.read("list parts", move |db| list_sets(db, before, limit))
            .await
    }

    async fn replace_parts(&self, set: &PartSet, message: &NewInbound) -> Result<bool, StoreError> {
        let (set, message) = (set.clone(), message.clone());
        self.write("put parts together", move |db| {
            replace_parts(db, &set, &message)
        })
        .await
    }

    async fn confirm_copies(&self, copies: &[(i64, i64)]) -> Result<(), StoreError> {
        let copies = copies.to_vec();
        self.write("confirm answers", move |db| {
            let mut confirm = db.prepare_cached(sql::CONFIRM_COPY.sqlite)?;
            for (session, number) in copies {
                confirm.execute([session, number])?;
            }
            Ok(())
        })
        .await
    }

    async fn end_delivering(&self, session: i64) -> Result<(), StoreError> {
        self.write("end a session", move |db| {
            let mut end = db.prepare_cached(sql::END_SESSION.sqlite)?;
            end.execute([session]).map(drop)
        })
        .await
    }

    async fn prune_copies(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.write("prune copies", move |db| {
            let mut prune = db.prepare_cached(PRUNE_COPIES)?;
            Ok(prune.execute(params![micros(before), limit])? as u64)
        })
        .await
    }

    async fn prune_inbound(&self, age: SignedDuration, limit: u32) -> Result<u64, StoreError> {
        let age_us = duration_us(age);
        self.write("prune messages from handsets", move |db| {
            prune(db, age_us, limit)
        })
        .await
    }

    async fn list_inbound(
        &self,
        filter: &InboundFilter,
        cursor: Cursor<MessageId>,
    ) -> Result<Page<InboundMessage, MessageId>, StoreError> {
        let columns = FilterColumns::from_filter(filter);
        let before = before(cursor.before.map(MessageId::get));
        let rows = self.read("list messages from handsets", move |db| {
            let values = params![
                columns.account_id,
                columns.sender,
                before,
                columns.number,
                columns.since_us,
                columns.until_us,
                cursor.limit
            ];
            db.prepare_cached(columns.sql.sqlite)?
                .query_map(values, |row| message(row))?
                .collect::<Result<Vec<_>>>()
        });
        Ok(page(rows.await?, cursor.limit, |message| message.id))
    }

    async fn find_inbound(
        &self,
        account: Option<AccountId>,
        id: MessageId,
    ) -> Result<Option<InboundMessage>, StoreError> {
        self.read("find a message from a handset", move |db| {
            let values = params![id.as_i64(), account.map(AccountId::as_i64)];
            let mut find = db.prepare_cached(sql::FIND.sqlite)?;
            find.query_row(values, |row| message(row)).optional()
        })
        .await
    }

    async fn add_number(&self, entry: &NumberEntry) -> Result<bool, StoreError> {
        let entry = entry.clone();
        self.write("add a number", move |db| {
            let (digits, keyword) = entry_key(&entry.number, entry.keyword.as_deref());
            let added = db.prepare_cached(sql::ADD_NUMBER.sqlite)?.execute(params![
                digits,
                keyword,
                entry.number.to_string(),
                entry.keyword,
                entry.account.as_i64(),
                entry.url.as_ref().map(|url| url.as_str().as_bytes()),
            ])?;
            Ok(added > 0)
        })
        .await
    }

    async fn list_numbers(&self) -> Result<Vec<OwnedNumber>, StoreError> {
        self.read("list numbers", |db| {
            db.prepare_cached(sql::LIST_NUMBERS.sqlite)?
                .query_map([], |row| owned_number(row))?
                .collect()
        })
        .await
    }

    async fn set_inbound_url(
        &self,
        account: AccountId,
        url: Option<&CallbackUrl>,
    ) -> Result<(), StoreError> {
        let url = url.map(|url| url.as_str().as_bytes().to_vec());
        self.write("set the URL for messages from handsets", move |db| {
            let mut set = db.prepare_cached(sql::SET_URL.sqlite)?;
            set.execute(params![account.as_i64(), url]).map(drop)
        })
        .await
    }

    async fn remove_number(
        &self,
        number: &InboundNumber,
        keyword: Option<&str>,
    ) -> Result<bool, StoreError> {
        let (digits, keyword) = entry_key(number, keyword);
        self.write("remove a number", move |db| {
            // The account may not send under it any more.
            access::change(db, REMOVE_NUMBER, params![digits, keyword])
        })
        .await
    }
}

fn deliver(
    db: &Connection,
    node: NodeId,
    copy: &DeliveredCopy,
    delivered: &Delivered,
    if_unclear: IfUnclear,
    now_us: i64,
) -> Result<DeliveredResult> {
    let mut stored = find_copies(db, node, copy, now_us)?;
    let step = judge_copy(copy, &mut stored, if_unclear);
    match step {
        CopyStep::Replace(session, number) => {
            let values = params![
                session,
                number,
                copy.session,
                copy.number,
                node.as_i64(),
                now_us
            ];
            db.prepare_cached(sql::MOVE_COPY.sqlite)?.execute(values)?;
        }
        CopyStep::Store => {
            let values = params![copy.session, copy.number, copy.hash, node.as_i64(), now_us];
            db.prepare_cached(STORE_COPY)?.execute(values)?;
            match delivered {
                Delivered::Message(message) => store(db, message, now_us)?,
                Delivered::Part(part) => store_part(db, part)?,
            }
        }
        CopyStep::Wait => {}
    }
    Ok(step.result())
}

fn find_copies(
    db: &Connection,
    node: NodeId,
    copy: &DeliveredCopy,
    now_us: i64,
) -> Result<Vec<StoredCopy>> {
    let read = |row: &Row<'_>| {
        Ok(StoredCopy {
            session: row.get(0)?,
            number: row.get(1)?,
            hash: copy.hash,
            is_over: row.get(2)?,
            is_elsewhere: false,
        })
    };
    db.prepare_cached(FIND_COPIES)?
        .query_map(
            params![copy.hash, now_us - REPETITION_US, node.as_i64()],
            read,
        )?
        .collect()
}

/// Stores a message and its callback, and charges it.
pub(super) fn store(db: &Connection, new: &NewInbound, now_us: i64) -> Result<()> {
    let columns = InboundColumns::from_message(&new.message);
    db.prepare_cached(sql::STORE.sqlite)?.execute(params![
        columns.id,
        columns.account_id,
        columns.carrier,
        columns.sender,
        columns.number,
        columns.body,
        columns.coding,
        columns.udh,
        columns.network,
        columns.parts,
        columns.keyword,
        columns.in_reply_to,
        columns.incomplete,
        columns.received_us,
        columns.price_micros,
    ])?;
    if let Some(account_id) = columns.account_id.filter(|_| columns.price_micros != 0) {
        let charge = Change {
            account_id,
            kind: EntryKind::Inbound,
            amount_micros: -columns.price_micros,
            messages: 1,
            note: None,
            at_us: now_us,
        };
        charge.write_entry(db)?;
    }
    if let (Some(account), Some(url)) = (columns.account_id, &new.url) {
        let callback = db.prepare_cached(CREATE_CALLBACK)?.insert(params![
            account,
            columns.id,
            url.as_str().as_bytes(),
            new.message.payload(),
            now_us,
            now_us,
            CallbackKind::Inbound.number(),
        ])?;
        let mut queue = db.prepare_cached(QUEUE_CALLBACK)?;
        queue.execute([NOBODY, now_us, callback])?;
    }
    if let Some(reply) = &new.reply {
        let values = params![columns.id, reply.account.as_i64(), reply.text];
        let mut store = db.prepare_cached(replies::STORE_DUE.sqlite)?;
        store.execute(values)?;
    }
    Ok(())
}

fn store_part(db: &Connection, part: &InboundPart) -> Result<()> {
    let (key, columns) = (
        KeyColumns::from_key(&part.key()),
        PartColumns::from_part(part),
    );
    let newest: Option<(i32, i64)> = db
        .prepare_cached(sql::NEWEST_SET.sqlite)?
        .query_row(
            params![
                key.carrier,
                key.sender,
                key.number,
                key.reference,
                key.total,
                columns.sequence
            ],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let set = newest.map_or(0, |(set, has_part)| set + i32::from(has_part != 0));
    db.prepare_cached(sql::STORE_PART.sqlite)?.execute(params![
        key.carrier,
        key.sender,
        key.number,
        key.reference,
        key.total,
        set,
        columns.sequence,
        columns.alphabet,
        columns.octets,
        columns.udh,
        columns.received_us,
    ])?;
    Ok(())
}

pub(super) fn find_sets(db: &Connection, key: &PartKey) -> Result<Vec<PartSet>> {
    let columns = KeyColumns::from_key(key);
    let parts = db
        .prepare_cached(sql::FIND_PARTS.sqlite)?
        .query_map(
            params![
                columns.carrier,
                columns.sender,
                columns.number,
                columns.reference,
                columns.total
            ],
            |row| stored_part(row),
        )?
        .collect::<Result<Vec<_>>>()?;
    Ok(part_sets(key, &parts)?)
}

fn list_sets(db: &Connection, before: Timestamp, limit: u32) -> Result<Vec<PartSet>> {
    let keys = db
        .prepare_cached(sql::LIST_SETS.sqlite)?
        .query_map(params![micros(before), limit], |row| set_key(row))?
        .collect::<Result<Vec<_>>>()?;
    let mut listed = Vec::new();
    for (key, number) in keys {
        let sets = find_sets(db, &key)?.into_iter();
        listed.extend(sets.filter(|set| set.set == number));
    }
    Ok(listed)
}

fn replace_parts(db: &Connection, set: &PartSet, message: &NewInbound) -> Result<bool> {
    let key = KeyColumns::from_key(&set.key);
    let values = params![
        key.carrier,
        key.sender,
        key.number,
        key.reference,
        key.total,
        set.set
    ];
    let count: i64 = db
        .prepare_cached(sql::COUNT_PARTS.sqlite)?
        .query_row(values, |row| row.get(0))?;
    if usize::try_from(count) != Ok(set.parts.len()) {
        return Ok(false);
    }
    db.prepare_cached(sql::DELETE_PARTS.sqlite)?
        .execute(values)?;
    store(db, message, clock::now_us(db)?)?;
    Ok(true)
}

fn prune(db: &Connection, age_us: i64, limit: u32) -> Result<u64> {
    let before_us = clock::now_us(db)?.saturating_sub(age_us);
    let pruned: Vec<i64> = db
        .prepare_cached(PRUNE)?
        .query_map(params![before_us, limit], |row| row.get(0))?
        .collect::<Result<_>>()?;
    for statement in [PRUNE_ATTEMPTS, PRUNE_QUEUE, PRUNE_CALLBACKS, PRUNE_SOURCE] {
        let mut prune = db.prepare_cached(statement)?;
        for id in &pruned {
            prune.execute([id])?;
        }
    }
    Ok(pruned.len() as u64)
}
