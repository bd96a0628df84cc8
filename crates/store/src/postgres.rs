//! The store on `PostgreSQL`: for more than one machine.
//!
//! Nearly every call is one statement, which is atomic and costs one round trip. Nearly all features are those that
//! distributed engines with the same protocol support: no notifications, and advisory locks only where codes are counted.
//! Transactions are repeated whenever the database asks for it.

use std::sync::Mutex;
use std::time::Duration;

use domain::KeyRing;
use domain::ports::{Cause, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::migrations::{self, Migration};
use crate::rows::encrypted::Encrypting;
use crate::rows::fold::Folding;
use crate::rows::privacy::TextSweep;
use crate::rows::sweep::Sweep;
use crate::rows::{Corrupt, SqlRow, SqlValue};
use crate::url::{PostgresUrl, describe};
use crate::{OpenError, Options};

/// The time of the database in microseconds, as an expression. It is the time when the statement arrived, so nothing is
/// due too early.
macro_rules! now_us {
    () => {
        "CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS BIGINT)"
    };
}

/// Counts ended messages, to be added up later. `$ended` selects the account, time, network, country, outcome, number of
/// parts, cost and bucket of latency of each. The network is that of `rows::traffic::counted_network`.
macro_rules! count_traffic {
    ($ended:expr) => {
        concat!(
            "INSERT INTO traffic_fresh (account_id, hour, channel, network, status, error, bucket, messages, parts,
                cost_micros)
            SELECT e.account_id, e.final_us / 3600000000, e.channel, coalesce(e.network, 3000 + e.country, 0), e.status, e.error,
                e.bucket, count(*), sum(e.parts), sum(e.cost_micros)
            FROM (",
            $ended,
            ") AS e GROUP BY 1, 2, 3, 4, 5, 6, 7"
        )
    };
}

/// The cost of a message `m`: the price of its `g.charged` parts, or of all parts if that is NULL.
macro_rules! cost {
    () => {
        "CASE WHEN g.charged IS NULL THEN m.price_micros
            ELSE m.price_micros / greatest(m.parts, 1) * least(g.charged, m.parts) END"
    };
}

/// The newest ledger entry of an account as `l`. It has the balance and is the last row of the index.
macro_rules! newest_entry {
    ($account:literal) => {
        concat!(
            " LEFT JOIN LATERAL (
                SELECT id, balance_micros, spent_day, spent_micros FROM ledger WHERE account_id = ",
            $account,
            " ORDER BY id DESC LIMIT 1
            ) AS l ON TRUE "
        )
    };
}

/// Joins the message of a callback whose URL is not stored with it.
macro_rules! subject {
    () => {
        " LEFT JOIN message AS m ON m.id = c.message_id AND c.url IS NULL"
    };
}

/// Callbacks with their last attempt, for lists. Conditions may follow.
macro_rules! list_callbacks {
    ($from:expr) => {
        concat!(
            "SELECT c.id, c.account_id, coalesce(c.url, m.dlr_url, ''), c.created_us, c.due_us, c.state, c.tries, c.kind,
                a.at_us, a.status, a.elapsed_ms, a.body, a.address, a.reason,
                coalesce(c.payload, m.result), c.message_id, m.status, m.error, m.network
            FROM ",
            $from,
            subject!(),
            " LEFT JOIN callback_attempt AS a ON a.callback_id = c.id AND a.number = c.tries
                AND a.message_id = c.message_id"
        )
    };
}

/// Open callbacks are in the queue or parked, and both have an index. So the delivered ones, which are nearly all, are
/// not read.
macro_rules! not_done {
    () => {
        "(SELECT id, message_id, owner FROM callback_queue
            UNION ALL SELECT id, message_id, NULL::bigint FROM callback WHERE state = 1) AS open
            JOIN callback AS c ON c.id = ANY(ARRAY[open.id]) AND c.message_id = ANY(ARRAY[open.message_id])"
    };
}

/// The conditions of a filter: the first six parameters.
macro_rules! matches_filter {
    () => {
        " WHERE c.id BETWEEN $1 AND $2
            AND substring(coalesce(c.url, m.dlr_url, '') FROM 1 FOR length($3::bytea)) = $3::bytea
            AND c.created_us >= $4 AND c.created_us < $5 AND ($6::bigint IS NULL OR c.account_id = $6) "
    };
}

mod accept;
mod access;
mod alerts;
mod attempts;
mod audit;
mod billing;
mod binds;
mod callback_queue;
mod callbacks;
mod carrier_refs;
mod carriers;
mod catalogue;
mod claims;
mod codes;
mod day_statements;
pub(crate) mod days;
mod dispatch;
mod early_receipts;
mod encrypted;
mod ending;
mod export;
mod fault;
mod fold;
mod held;
mod history;
mod idempotency;
mod inbound;
mod inbound_privacy;
mod inbound_sources;
mod ledger_totals;
mod memberships;
mod message_detail;
mod messages;
pub(crate) mod migrate;
mod monitoring;
mod nodes;
mod oauth;
mod operations;
mod opt_outs;
mod part_days;
mod people;
mod polls;
pub(crate) mod pool;
mod pool_claims;
mod pooler;
mod ported;
mod privacy;
mod prune;
mod receipts;
mod refused;
mod replace;
mod replay;
mod replies;
mod request_log;
mod retention;
mod retry;
mod scan_start;
mod second_factor;
mod senders;
mod sends;
mod servers;
mod sessions;
pub(crate) mod settings;
mod smpp_users;
mod templates;
mod tls;
mod traffic;
mod transaction;
mod verify;

use pool::Connections;
use retry::{Execute, Query};

/// The values of a statement.
type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connected server.
pub(crate) struct PostgresStore {
    pool: Connections,
    /// A single connection, used for heartbeats.
    heartbeat: Connections,
    lanes: claims::Lanes,
    callbacks: scan_start::ScanStart,
    add_up_progress: traffic::AddUpProgress,
    /// The version of the schema that this program knows.
    level: i64,
    known_days: days::KnownDays,
    day_statements: day_statements::DayStatements,
    checked_days: retention::CheckedDays,
    /// How far retention has swept the partition "before".
    sweep: Mutex<Sweep>,
    text_sweep: Mutex<TextSweep>,
    inbound_text_sweep: Mutex<TextSweep>,
    match_cursor: early_receipts::MatchCursor,
    parts: part_days::PartDays,
    folding: Folding,
    keys: KeyRing,
}

impl PostgresStore {
    /// Connects and migrates. Also returns how many rows it encrypted.
    pub(crate) async fn open(
        url: &PostgresUrl,
        options: &Options,
        steps: &[Migration],
        encrypting: Encrypting,
    ) -> Result<(Self, u64), OpenError> {
        let cannot_open = |source: Cause| OpenError::Open {
            database: describe(&url.config),
            source,
        };
        let pool = pool::build(url, options.postgres_connections, settings::SERVICE)
            .map_err(|error| cannot_open(Box::new(error)))?;
        let heartbeat = pool::heartbeat(url, settings::SERVICE)
            .map_err(|error| cannot_open(Box::new(error)))?;
        let mut client = pool::connect(&pool).await.map_err(cannot_open)?;
        pooler::refuse_mixed(&pool, &client)
            .await
            .map_err(|mixed| cannot_open(Box::new(mixed)))?;
        let missing = settings::missing(&client, settings::SERVICE).await;
        let missing = missing.map_err(|error| cannot_open(Box::new(error)))?;
        if !missing.is_empty() {
            tracing::warn!(
                missing,
                "the database does not keep to the settings of a connection; behind a pooler, set them for the user \
                 (docs/SCALING.md, Poolers)"
            );
        }
        migrate::run(&mut client, steps).await?;
        let database = describe(&url.config);
        let (keys, renewed) = encrypted::prepare(&client, &database, options, encrypting).await?;
        drop(client);
        let store = Self {
            pool: Connections::new(pool, pool::STARTUP_PERIOD),
            heartbeat: Connections::new(heartbeat, Duration::ZERO),
            lanes: claims::Lanes::default(),
            callbacks: scan_start::ScanStart::default(),
            add_up_progress: traffic::AddUpProgress::default(),
            level: migrations::level(steps),
            known_days: days::KnownDays::default(),
            day_statements: day_statements::DayStatements::default(),
            checked_days: retention::CheckedDays::default(),
            sweep: Mutex::default(),
            text_sweep: Mutex::default(),
            inbound_text_sweep: Mutex::default(),
            match_cursor: early_receipts::MatchCursor::default(),
            parts: part_days::PartDays::default(),
            folding: Folding::default(),
            keys,
        };
        Ok((store, renewed))
    }

    /// Runs one statement.
    async fn query(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        retry::run(&self.pool, operation, &Query { sql, values }).await
    }

    /// Runs one statement and returns the number of rows that it changed.
    async fn execute(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: Values<'_>,
    ) -> Result<u64, StoreError> {
        retry::run(&self.pool, operation, &Execute(Query { sql, values })).await
    }

    /// Runs one statement and reads each of its rows.
    async fn list<T>(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: Values<'_>,
        read: impl Fn(&Row) -> Result<T, Corrupt> + Send,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.query(operation, sql, values).await?;
        let read = rows.iter().map(read).collect::<Result<_, _>>();
        read.map_err(|corrupt| fault::corrupt(operation, corrupt))
    }

    /// Runs one statement that returns at most one row, and reads it.
    async fn find<T>(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: Values<'_>,
        read: impl Fn(&Row) -> Result<T, Corrupt> + Send,
    ) -> Result<Option<T>, StoreError> {
        let rows = self.query(operation, sql, values).await?;
        let read = rows.first().map(read).transpose();
        read.map_err(|corrupt| fault::corrupt(operation, corrupt))
    }

    /// Runs one statement that returns exactly one row, and reads it.
    async fn get<T>(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: Values<'_>,
        read: impl Fn(&Row) -> Result<T, Corrupt> + Send,
    ) -> Result<T, StoreError> {
        let found = self.find(operation, sql, values, read).await?;
        found.ok_or_else(|| fault::corrupt(operation, Corrupt("table of one row")))
    }
}

/// Reads a column.
fn column<'row, T: tokio_postgres::types::FromSql<'row>>(
    row: &'row Row,
    at: usize,
) -> Result<T, Corrupt> {
    row.try_get(at).map_err(|_| Corrupt("column"))
}

impl SqlRow for Row {
    type Error = Corrupt;

    fn column<T: SqlValue>(&self, at: usize) -> Result<T, Corrupt> {
        column(self, at)
    }
}
