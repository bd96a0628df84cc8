//! The port for messages from handsets.

use std::sync::Arc;

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use domain::billing::EntryKind;
use domain::delivery::CallbackKind;
use domain::ids::{AccountId, MessageId, NodeId};
use domain::inbound::message::InboundMessage;
use domain::inbound::number::InboundNumber;
use domain::ports::{
    Cursor, Delivered, DeliveredCopy, DeliveredResult, IfUnclear, InboundFilter, InboundPart,
    InboundStore, NewInbound, NewReply, NumberEntry, OwnedNumber, Page, PartKey, PartSet,
    StoreError,
};
use domain::{CallbackUrl, Timestamp};
use jiff::SignedDuration;
use tokio_postgres::Row;

use super::fault::Fault;
use super::retry::Retryable;
use super::transaction::{commit, execute, find, query};
use super::{PostgresStore, Values, billing, column, fault, retry};
use crate::rows::inbound::{
    CopyStep, FilterColumns, InboundColumns, KeyColumns, PartColumns, REPETITION_US, StoredCopy,
    entry_key, judge_copy, message, owned_number, part_sets, set_key, stored_part,
};
use crate::rows::{Corrupt, before, duration_us, micros, page};
use crate::sql::{inbound as sql, replies};

/// A node that is not alive any more has no sessions.
const FIND_COPIES: &str = concat!(
    "SELECT c.session, c.number, c.hash, c.ended OR n.id IS NULL OR n.alive_until_us < ",
    now_us!(),
    ", c.node_id <> $2
    FROM inbound_copy AS c LEFT JOIN node AS n ON n.id = c.node_id
    WHERE c.hash = ANY($1) AND c.at_us > ",
    now_us!(),
    " - $3::bigint"
);
const STORE_COPIES: &str = concat!(
    "INSERT INTO inbound_copy (session, number, hash, node_id, ended, at_us)
    SELECT c.session, c.number, c.hash, $4, FALSE, ",
    now_us!(),
    " FROM UNNEST($1::bigint[], $2::bigint[], $3::bytea[]) AS c (session, number, hash)"
);
const STORE: &str = concat!(
    "INSERT INTO inbound (",
    sql::columns!(),
    ")
    SELECT * FROM UNNEST($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::smallint[],
        $8::bytea[], $9::integer[], $10::smallint[], $11::text[], $12::bigint[], $13::boolean[], $14::bigint[],
        $15::bigint[])"
);
const NOTIFY: &str = concat!(
    "WITH created AS (
        INSERT INTO callback (account_id, message_id, url, payload, created_us, due_us, state, tries, kind)
        SELECT c.account_id, c.id, c.url, c.payload, t.now_us, t.now_us, 0, 0, $5
        FROM UNNEST($1::bigint[], $2::bigint[], $3::bytea[], $4::text[]) AS c (account_id, id, url, payload)
            CROSS JOIN (SELECT ",
    now_us!(),
    ") AS t (now_us)
        RETURNING id, due_us, message_id
    )
    INSERT INTO callback_queue (owner, due_us, id, attempt, message_id)
    SELECT 0, due_us, id, 0, message_id FROM created"
);
const CONFIRM: &str = "
    DELETE FROM inbound_copy AS c USING UNNEST($1::bigint[], $2::bigint[]) AS g (session, number)
    WHERE c.session = g.session AND c.number = ANY(ARRAY[g.number])";
const PRUNE_COPIES: &str = "
    WITH old AS MATERIALIZED (
        SELECT session, number FROM inbound_copy WHERE at_us <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED
    ), pruned AS (
        DELETE FROM inbound_copy AS c USING old WHERE c.session = old.session AND c.number = ANY(ARRAY[old.number])
        RETURNING 1
    )
    SELECT count(*) FROM pruned";
/// Message IDs increase with time, so the oldest come first. Callbacks are in the partitions of their days, which are
/// dropped with the messages of those days.
const PRUNE: &str = concat!(
    "WITH pruned AS (
        DELETE FROM inbound WHERE id = ANY(ARRAY(
            SELECT o.id FROM (SELECT id, received_us FROM inbound ORDER BY id LIMIT $2) AS o WHERE o.received_us <= ",
    now_us!(),
    " - $1::bigint))
        RETURNING id
    ), sources AS (
        DELETE FROM inbound_source AS s USING pruned WHERE s.inbound_id = ANY(ARRAY[pruned.id])
    )
    SELECT count(*) FROM pruned"
);

/// The account may not send under it any more.
const REMOVE_NUMBER: &str = "
    WITH removed AS (
        DELETE FROM inbound_number WHERE digits = $1 AND keyword = $2 RETURNING 1
    ), raised AS (
        UPDATE access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM removed)
    )
    SELECT count(*) FROM removed";

/// Stores what carriers delivered.
struct StoreDelivered<'a> {
    node: NodeId,
    batch: &'a [(DeliveredCopy, Delivered)],
    if_unclear: IfUnclear,
}

impl Retryable for StoreDelivered<'_> {
    type Output = Vec<DeliveredResult>;

    async fn run(&self, client: &mut Object) -> Result<Vec<DeliveredResult>, Fault> {
        let transaction = client.transaction().await?;
        let mut stored = self.find_copies(&transaction).await?;
        let judge =
            |(copy, _): &(DeliveredCopy, Delivered)| judge_copy(copy, &mut stored, self.if_unclear);
        let steps: Vec<CopyStep> = self.batch.iter().map(judge).collect();
        let node = self.node.as_i64();
        let mut new = Vec::new();
        for ((copy, delivered), step) in self.batch.iter().zip(&steps) {
            match *step {
                CopyStep::Replace(session, number) => {
                    let now_us = now(&transaction).await?;
                    let values: Values<'_> = &[
                        &session,
                        &number,
                        &copy.session,
                        &copy.number,
                        &node,
                        &now_us,
                    ];
                    execute(&transaction, sql::MOVE_COPY.postgres, values).await?;
                }
                CopyStep::Store => new.push((copy, delivered)),
                CopyStep::Wait => {}
            }
        }
        self.store(&transaction, &new).await?;
        commit(transaction).await?;
        Ok(steps.into_iter().map(CopyStep::result).collect())
    }
}

async fn now(transaction: &Transaction<'_>) -> Result<i64, Fault> {
    let row = query(transaction, concat!("SELECT ", now_us!()), &[]).await?;
    let row = row.first().ok_or(Corrupt("time"))?;
    Ok(column(row, 0)?)
}

impl StoreDelivered<'_> {
    async fn find_copies(&self, transaction: &Transaction<'_>) -> Result<Vec<StoredCopy>, Fault> {
        let hashes: Vec<&[u8]> = self.batch.iter().map(|(copy, _)| &copy.hash[..]).collect();
        let values: Values<'_> = &[&hashes, &self.node.as_i64(), &REPETITION_US];
        let rows = query(transaction, FIND_COPIES, values).await?;
        let read = |row: &Row| {
            let hash: Vec<u8> = column(row, 2)?;
            Ok(StoredCopy {
                session: column(row, 0)?,
                number: column(row, 1)?,
                hash: hash.try_into().map_err(|_| Corrupt("hash"))?,
                is_over: column(row, 3)?,
                is_elsewhere: column(row, 4)?,
            })
        };
        let copies: Result<_, Corrupt> = rows.iter().map(read).collect();
        Ok(copies?)
    }

    async fn store(
        &self,
        transaction: &Transaction<'_>,
        new: &[(&DeliveredCopy, &Delivered)],
    ) -> Result<(), Fault> {
        if new.is_empty() {
            return Ok(());
        }
        let sessions: Vec<i64> = new.iter().map(|(copy, _)| copy.session).collect();
        let numbers: Vec<i64> = new.iter().map(|(copy, _)| copy.number).collect();
        let hashes: Vec<&[u8]> = new.iter().map(|(copy, _)| &copy.hash[..]).collect();
        let values: Values<'_> = &[&sessions, &numbers, &hashes, &self.node.as_i64()];
        execute(transaction, STORE_COPIES, values).await?;
        let mut messages = Vec::new();
        for (_, delivered) in new {
            match delivered {
                Delivered::Message(message) => messages.push(&**message),
                Delivered::Part(part) => store_part(transaction, part).await?,
            }
        }
        store_messages(transaction, &messages).await
    }
}

/// Stores messages and their callbacks, and charges them.
pub(super) async fn store_messages(
    transaction: &Transaction<'_>,
    messages: &[&NewInbound],
) -> Result<(), Fault> {
    if messages.is_empty() {
        return Ok(());
    }
    let rows: Vec<InboundColumns> = messages
        .iter()
        .map(|new| InboundColumns::from_message(&new.message))
        .collect();
    let values: Values<'_> = &[
        &rows.iter().map(|row| row.id).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.account_id).collect::<Vec<_>>(),
        &rows.iter().map(|row| &row.carrier).collect::<Vec<_>>(),
        &rows.iter().map(|row| &row.sender).collect::<Vec<_>>(),
        &rows.iter().map(|row| &row.number).collect::<Vec<_>>(),
        &rows.iter().map(|row| &row.body).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.coding).collect::<Vec<_>>(),
        &rows.iter().map(|row| &row.udh).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.network).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.parts).collect::<Vec<_>>(),
        &rows.iter().map(|row| &row.keyword).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.in_reply_to).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.incomplete).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.received_us).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.price_micros).collect::<Vec<_>>(),
    ];
    execute(transaction, STORE, values).await?;
    let priced = rows.iter().filter(|row| row.price_micros != 0);
    let priced = priced.filter_map(|row| Some((row.account_id?, row.price_micros)));
    let priced = priced.collect::<Vec<_>>();
    billing::charge_done(transaction, EntryKind::Inbound, &priced).await?;
    let (mut accounts, mut ids) = (Vec::new(), Vec::new());
    let (mut urls, mut payloads) = (Vec::new(), Vec::new());
    for new in messages {
        if let (Some(account), Some(url)) = (new.message.account, &new.url) {
            accounts.push(account.as_i64());
            ids.push(new.message.id.as_i64());
            urls.push(url.as_str().as_bytes());
            payloads.push(new.message.payload());
        }
    }
    if !ids.is_empty() {
        let kind = CallbackKind::Inbound.number();
        let values: Values<'_> = &[&accounts, &ids, &urls, &payloads, &kind];
        execute(transaction, NOTIFY, values).await?;
    }
    for new in messages {
        if let Some(NewReply { account, text }) = &new.reply {
            let values: Values<'_> = &[&new.message.id.as_i64(), &account.as_i64(), text];
            execute(transaction, replies::STORE_DUE.postgres, values).await?;
        }
    }
    Ok(())
}

async fn store_part(transaction: &Transaction<'_>, part: &InboundPart) -> Result<(), Fault> {
    let (key, columns) = (
        KeyColumns::from_key(&part.key()),
        PartColumns::from_part(part),
    );
    let values: Values<'_> = &[
        &key.carrier,
        &key.sender,
        &key.number,
        &key.reference,
        &key.total,
        &columns.sequence,
    ];
    let newest = find(transaction, sql::NEWEST_SET.postgres, values).await?;
    let set = match &newest {
        Some(row) => {
            let (set, has_part): (i32, i32) = (column(row, 0)?, column(row, 1)?);
            set + i32::from(has_part != 0)
        }
        None => 0,
    };
    let values: Values<'_> = &[
        &key.carrier,
        &key.sender,
        &key.number,
        &key.reference,
        &key.total,
        &set,
        &columns.sequence,
        &columns.alphabet,
        &columns.octets,
        &columns.udh,
        &columns.received_us,
    ];
    execute(transaction, sql::STORE_PART.postgres, values).await?;
    Ok(())
}

/// Replaces parts by their message.
struct ReplaceParts<'a> {
    set: &'a PartSet,
    message: &'a NewInbound,
}

impl Retryable for ReplaceParts<'_> {
    type Output = bool;

    async fn run(&self, client: &mut Object) -> Result<bool, Fault> {
        let transaction = client.transaction().await?;
        let key = KeyColumns::from_key(&self.set.key);
        let values: Values<'_> = &[
            &key.carrier,
            &key.sender,
            &key.number,
            &key.reference,
            &key.total,
            &self.set.set,
        ];
        let deleted = execute(&transaction, sql::DELETE_PARTS.postgres, values).await?;
        if usize::try_from(deleted) != Ok(self.set.parts.len()) {
            transaction.rollback().await?;
            return Ok(false);
        }
        store_messages(&transaction, &[self.message]).await?;
        commit(transaction).await?;
        Ok(true)
    }
}

impl PostgresStore {
    pub(super) async fn find_part_sets(&self, key: &PartKey) -> Result<Vec<PartSet>, StoreError> {
        let columns = KeyColumns::from_key(key);
        let values: Values<'_> = &[
            &columns.carrier,
            &columns.sender,
            &columns.number,
            &columns.reference,
            &columns.total,
        ];
        let parts = self
            .list("find parts", sql::FIND_PARTS.postgres, values, stored_part)
            .await?;
        part_sets(key, &parts).map_err(|corrupt| fault::corrupt("find parts", corrupt))
    }

    async fn count_inbound(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: Values<'_>,
    ) -> Result<u64, StoreError> {
        let read = |row: &Row| {
            let count: i64 = column(row, 0)?;
            u64::try_from(count).map_err(|_| Corrupt("count"))
        };
        self.get(operation, sql, values, read).await
    }
}

#[async_trait]
impl InboundStore for PostgresStore {
    async fn store_delivered(
        &self,
        node: NodeId,
        batch: Arc<Vec<(DeliveredCopy, Delivered)>>,
        if_unclear: IfUnclear,
    ) -> Result<Vec<DeliveredResult>, StoreError> {
        let storing = StoreDelivered {
            node,
            batch: &batch,
            if_unclear,
        };
        retry::run(&self.pool, "store messages from handsets", &storing).await
    }

    async fn find_part_set(&self, key: &PartKey) -> Result<Option<PartSet>, StoreError> {
        let sets = self.find_part_sets(key).await?;
        Ok(sets.into_iter().find(PartSet::is_complete))
    }

    async fn list_part_sets(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> Result<Vec<PartSet>, StoreError> {
        let (before_us, limit) = (micros(before), i64::from(limit));
        let values: Values<'_> = &[&before_us, &limit];
        let keys = self.list("list parts", sql::LIST_SETS.postgres, values, set_key);
        let mut listed = Vec::new();
        for (key, number) in keys.await? {
            let sets = self.find_part_sets(&key).await?.into_iter();
            listed.extend(sets.filter(|set| set.set == number));
        }
        Ok(listed)
    }

    async fn replace_parts(&self, set: &PartSet, message: &NewInbound) -> Result<bool, StoreError> {
        let replacing = ReplaceParts { set, message };
        retry::run(&self.pool, "put parts together", &replacing).await
    }

    async fn confirm_copies(&self, copies: &[(i64, i64)]) -> Result<(), StoreError> {
        let (sessions, numbers): (Vec<i64>, Vec<i64>) = copies.iter().copied().unzip();
        let values: Values<'_> = &[&sessions, &numbers];
        self.execute("confirm answers", CONFIRM, values)
            .await
            .map(drop)
    }

    async fn end_delivering(&self, session: i64) -> Result<(), StoreError> {
        self.execute("end a session", sql::END_SESSION.postgres, &[&session])
            .await
            .map(drop)
    }

    async fn prune_copies(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let (before_us, limit) = (micros(before), i64::from(limit));
        self.count_inbound("prune copies", PRUNE_COPIES, &[&before_us, &limit])
            .await
    }

    async fn prune_inbound(&self, age: SignedDuration, limit: u32) -> Result<u64, StoreError> {
        let (age_us, limit) = (duration_us(age), i64::from(limit));
        self.count_inbound("prune messages from handsets", PRUNE, &[&age_us, &limit])
            .await
    }

    async fn list_inbound(
        &self,
        filter: &InboundFilter,
        cursor: Cursor<MessageId>,
    ) -> Result<Page<InboundMessage, MessageId>, StoreError> {
        let columns = FilterColumns::from_filter(filter);
        let before = before(cursor.before.map(MessageId::get));
        let limit = i64::from(cursor.limit);
        let values: Values<'_> = &[
            &columns.account_id,
            &columns.sender,
            &before,
            &columns.number,
            &columns.since_us,
            &columns.until_us,
            &limit,
        ];
        let listed = self.list(
            "list messages from handsets",
            columns.sql.postgres,
            values,
            message,
        );
        Ok(page(listed.await?, cursor.limit, |message| message.id))
    }

    async fn find_inbound(
        &self,
        account: Option<AccountId>,
        id: MessageId,
    ) -> Result<Option<InboundMessage>, StoreError> {
        let (id, account) = (id.as_i64(), account.map(AccountId::as_i64));
        let operation = "find a message from a handset";
        self.find(operation, sql::FIND.postgres, &[&id, &account], message)
            .await
    }

    async fn add_number(&self, entry: &NumberEntry) -> Result<bool, StoreError> {
        let (digits, keyword) = entry_key(&entry.number, entry.keyword.as_deref());
        let (number, account) = (entry.number.to_string(), entry.account.as_i64());
        let url = entry.url.as_ref().map(|url| url.as_str().as_bytes());
        let values: Values<'_> = &[&digits, &keyword, &number, &entry.keyword, &account, &url];
        let added = self.execute("add a number", sql::ADD_NUMBER.postgres, values);
        Ok(added.await? > 0)
    }

    async fn list_numbers(&self) -> Result<Vec<OwnedNumber>, StoreError> {
        let sql = sql::LIST_NUMBERS.postgres;
        self.list("list numbers", sql, &[], owned_number).await
    }

    async fn set_inbound_url(
        &self,
        account: AccountId,
        url: Option<&CallbackUrl>,
    ) -> Result<(), StoreError> {
        let (account, url) = (account.as_i64(), url.map(|url| url.as_str().as_bytes()));
        let operation = "set the URL for messages from handsets";
        let values: Values<'_> = &[&account, &url];
        let set = self.execute(operation, sql::SET_URL.postgres, values);
        set.await.map(drop)
    }

    async fn remove_number(
        &self,
        number: &InboundNumber,
        keyword: Option<&str>,
    ) -> Result<bool, StoreError> {
        let (digits, keyword) = entry_key(number, keyword);
        let values: Values<'_> = &[&digits, &keyword];
        let removed = self.count_inbound("remove a number", REMOVE_NUMBER, values);
        Ok(removed.await? > 0)
    }
}
