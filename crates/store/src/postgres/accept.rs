//! Stores submissions: one round trip for a batch, charges included. A batch with idempotency keys or refused
//! recipients, or with an account that cannot pay for all of its submissions, is stored by a transaction that checks
//! each submission.

use std::borrow::Cow;
use std::collections::BTreeMap;

use deadpool_postgres::Object;
use domain::billing::day_of;
use domain::kill_point::{KillPoint, pass};
use domain::message::interactive::Interactive;
use domain::message::text::Udh;
use domain::message::{Submission, TestMode};
use domain::ports::Accepted;
use domain::{KeyRing, Network};
use tokio_postgres::types::ToSql;

use super::billing::BatchCharges;
use super::day_statements::DayStatements;
use super::fault::Fault;
use super::retry::Retryable;
use super::transaction::commit;
use super::{billing, codes, column, idempotency, refused};
use crate::rows::{self, SendColumns, micros, traffic};

/// The IDs of a submission are consecutive, so each text is sent once, whatever the number of recipients. Submissions
/// that cost money are stored only if their account was charged for all of them in this batch. Accounts with a limit
/// per recipient are never charged here, because each recipient must be checked.
///
/// The paying accounts were locked by an earlier statement: a statement that waits for a lock sees the current locked
/// row, but everything else, including the ledger, as it was when the wait began.
macro_rules! insert {
    ($column:literal, $value:literal, $array:literal) => {
        concat!(
        "WITH funds AS MATERIALIZED (
        SELECT a.id, c.cost, c.messages, c.at_us, a.credit_limit_micros, a.daily_cap_micros,
            coalesce(l.id, 0) AS entry, coalesce(l.balance_micros, 0) AS balance_micros,
            greatest(l.spent_day, c.day) AS day, CASE WHEN l.spent_day >= c.day THEN l.spent_micros ELSE 0 END AS spent
        FROM UNNEST($24::bigint[], $25::bigint[], $26::bigint[], $27::int[], $28::bigint[])
            AS c (account_id, cost, messages, day, at_us)
        JOIN account AS a ON a.id = c.account_id",
        newest_entry!("a.id"),
        "WHERE a.per_recipient_hour IS NULL
    ), charged AS MATERIALIZED (
        SELECT * FROM funds
        WHERE cost = 0 OR (balance_micros + credit_limit_micros >= cost
            AND (daily_cap_micros IS NULL OR daily_cap_micros >= spent + cost))
    ), entered AS (
        INSERT INTO ledger (account_id, id, at_us, kind, amount_micros, balance_micros, messages, spent_day,
            spent_micros)
        SELECT id, entry + 1, at_us, 2, -cost, balance_micros - cost, messages, day, spent + cost
        FROM charged WHERE cost <> 0
    ), stored AS (
        INSERT INTO message (id, recipient, account_id, originator, body, coding, coding_given, udh, parts, priority,
            dlr_url, test_mode, accepted_us, scheduled_us, expires_us, state, network, country, price_micros,
            channel, interactive",
            $column,
            ")
        SELECT s.first_id + n, ($1::bigint[])[s.skipped + n + 1], s.account_id, s.originator, s.body, s.coding,
            s.coding_given, s.udh, s.parts, s.priority, s.dlr_url, s.test_mode, s.accepted_us, s.scheduled_us,
            s.expires_us, s.state, nullif(greatest(($21::int[])[s.skipped + n + 1], 0), 0),
            nullif(-least(($21::int[])[s.skipped + n + 1], 0), 0), ($22::bigint[])[s.skipped + n + 1],
            s.channel, s.interactive",
            $value,
            "
        FROM UNNEST($2::bigint[], $3::int[], $4::int[], $5::bigint[], $6::text[], $7::bytea[], $8::smallint[],
            $9::boolean[], $10::bytea[], $11::smallint[], $12::smallint[], $13::bytea[], $14::smallint[],
            $15::bigint[], $16::bigint[], $17::bigint[], $18::smallint[], $23::boolean[],
            $29::smallint[], $30::bytea[]",
            $array,
            ")
            AS s (first_id, skipped, recipients, account_id, originator, body, coding, coding_given, udh, parts,
                priority, dlr_url, test_mode, accepted_us, scheduled_us, expires_us, state, free, channel, interactive",
            $column,
            ")
            CROSS JOIN LATERAL generate_series(0, s.recipients - 1) AS n
        WHERE s.free OR s.account_id IN (SELECT id FROM charged)
    ), queued AS (
        INSERT INTO queue (owner, lane, due_us, id, attempt, account_id, expires_us)
        SELECT s.owner, s.priority, coalesce(s.scheduled_us, s.accepted_us), s.first_id + n, s.attempt,
            s.pool_account, s.pool_expires_us
        FROM UNNEST($2::bigint[], $4::int[], $5::bigint[], $12::smallint[], $15::bigint[], $16::bigint[],
            $19::bigint[], $20::int[], $23::boolean[], $31::bigint[], $32::bigint[])
            AS s (first_id, recipients, account_id, priority, accepted_us, scheduled_us, owner, attempt, free,
                pool_account, pool_expires_us)
            CROSS JOIN LATERAL generate_series(0, s.recipients - 1) AS n
        WHERE s.free OR s.account_id IN (SELECT id FROM charged)
    )
    SELECT id FROM charged"
        )
    };
}
const INSERT: &str = insert!("", "", "");
/// For a batch with traces. Most have none, and no column costs them anything.
const INSERT_TRACED: &str = insert!(", trace", ", s.trace", ", $33::bytea[]");

/// Whether a submission is stored without checking the balance of its account.
fn is_free(submission: &Submission) -> bool {
    submission.test_mode.is_some()
}

/// A batch without idempotency keys: one round trip. Returns the accounts that were charged.
pub(super) struct PlainBatch<'a>(pub(super) &'a [Submission]);

impl Retryable for PlainBatch<'_> {
    type Output = Vec<i64>;

    async fn run(&self, client: &mut Object) -> Result<Vec<i64>, Fault> {
        let columns = MessageColumns::from_submissions(self.0.iter());
        let statement = client.prepare_cached(columns.statement()).await?;
        let costs = Charges::from_submissions(self.0.iter());
        let (values, payers) = (columns.values(&costs), costs.payers());
        let client = &*client;
        let insert = client.query(&statement, &values);
        let charged = if payers.is_empty() {
            insert.await?
        } else {
            billing::with_locked(client, &payers, insert).await?
        };
        let charged: Result<_, _> = charged.iter().map(|row| column(row, 0)).collect();
        Ok(charged?)
    }
}

/// The indexes of submissions that were not stored because their account was not charged. A [`CarefulBatch`] checks
/// them.
pub(super) fn find_unstored(batch: &[Submission], charged: &[i64]) -> Vec<usize> {
    let is_stored = |submission: &Submission| {
        is_free(submission) || charged.contains(&submission.account.as_i64())
    };
    (0..batch.len())
        .filter(|&index| !is_stored(&batch[index]))
        .collect()
}

/// A batch that is checked submission by submission: some have keys or refused recipients, or an account cannot pay for
/// all.
pub(super) struct CarefulBatch<'a> {
    pub(super) batch: Vec<&'a Submission>,
    /// Encrypt the texts of confirmation codes.
    pub(super) keys: &'a KeyRing,
    pub(super) days: &'a DayStatements,
}

impl Retryable for CarefulBatch<'_> {
    type Output = Vec<Accepted>;

    async fn run(&self, client: &mut Object) -> Result<Vec<Accepted>, Fault> {
        let batch = self.batch.as_slice();
        let transaction = client.transaction().await?;
        let keys = idempotency::Keys::from_batch(batch);
        let mut outcomes = idempotency::claim(&transaction, &keys, batch).await?;
        let wanted = batch.iter().zip(&outcomes);
        let wanted = wanted
            .filter(|(submission, outcome)| **outcome == Accepted::Stored && !is_free(submission));
        let mut charges =
            BatchCharges::open(&transaction, wanted.map(|(submission, _)| *submission)).await?;
        for (submission, outcome) in batch.iter().zip(&mut outcomes) {
            if *outcome == Accepted::Stored
                && !is_free(submission)
                && let Err(not_paid) = charges.charge(submission)
            {
                *outcome = Accepted::NotPaid(not_paid);
            }
        }
        idempotency::release_unpaid(&transaction, batch, &mut outcomes).await?;
        let stored = batch.iter().zip(&outcomes);
        let stored = stored.filter(|(_, outcome)| **outcome == Accepted::Stored);
        let stored = stored.map(|(submission, _)| *submission);
        codes::store_texts(&transaction, self.keys, stored.clone()).await?;
        let columns = MessageColumns::from_paid(stored.clone());
        let statement = transaction.prepare_cached(columns.statement()).await?;
        let charged_already = Charges::default();
        transaction
            .query(&statement, &columns.values(&charged_already))
            .await?;
        charges.close(&transaction).await?;
        refused::mark_notices(&transaction, stored.clone()).await?;
        refused::end(&transaction, self.days, stored).await?;
        pass(KillPoint::AcceptInside);
        commit(transaction).await?;
        Ok(outcomes)
    }
}

/// What a batch costs one account.
struct Total {
    cost: i64,
    messages: i64,
    day: i32,
    is_one_day: bool,
    at_us: i64,
}

impl Total {
    const fn none(day: i32) -> Self {
        Self {
            cost: 0,
            messages: 0,
            day,
            is_one_day: true,
            at_us: i64::MIN,
        }
    }
}

/// What a batch costs each account, sorted by account, so that nodes lock accounts in the same order.
#[derive(Default)]
struct Charges {
    account: Vec<i64>,
    cost: Vec<i64>,
    messages: Vec<i64>,
    day: Vec<i32>,
    at_us: Vec<i64>,
}

impl Charges {
    fn from_submissions<'a>(submissions: impl Iterator<Item = &'a Submission>) -> Self {
        let mut totals: BTreeMap<i64, Total> = BTreeMap::new();
        for submission in submissions.filter(|submission| !is_free(submission)) {
            let day = day_of(submission.accepted_at);
            let account = submission.account.as_i64();
            let total = totals.entry(account).or_insert(Total::none(day));
            total.cost += submission.cost().micros();
            total.messages += i64::from(submission.receipt().messages);
            total.is_one_day &= total.day == day;
            total.at_us = total.at_us.max(micros(submission.accepted_at));
        }
        let mut charges = Self::default();
        // Around midnight, the daily cap must be checked for each submission.
        for (account, total) in totals.into_iter().filter(|(_, total)| total.is_one_day) {
            charges.account.push(account);
            charges.cost.push(total.cost);
            charges.messages.push(total.messages);
            charges.day.push(total.day);
            charges.at_us.push(total.at_us);
        }
        charges
    }

    /// The accounts that have to pay something.
    fn payers(&self) -> Vec<i64> {
        let charges = self.account.iter().zip(&self.cost);
        let payers = charges.filter(|(_, cost)| **cost != 0);
        payers.map(|(account, _)| *account).collect()
    }
}

/// The parameters of [`INSERT`]: the recipients of all submissions in one array, the rest in one array for each column.
#[derive(Default)]
struct MessageColumns<'a> {
    recipient: Vec<i64>,
    /// If the network is unknown, the number of the country, negative; 0 if both are unknown: in an array with nulls, each
    /// access would scan from the start.
    network: Vec<i32>,
    price: Vec<i64>,
    first_id: Vec<i64>,
    skipped: Vec<i32>,
    recipients: Vec<i32>,
    account: Vec<i64>,
    originator: Vec<Cow<'a, str>>,
    body: Vec<&'a [u8]>,
    coding: Vec<i16>,
    coding_given: Vec<bool>,
    udh: Vec<Option<&'a [u8]>>,
    parts: Vec<i16>,
    priority: Vec<i16>,
    dlr_url: Vec<Option<&'a [u8]>>,
    test_mode: Vec<Option<i16>>,
    accepted_us: Vec<i64>,
    scheduled_us: Vec<Option<i64>>,
    expires_us: Vec<i64>,
    state: Vec<i16>,
    owner: Vec<i64>,
    attempt: Vec<i32>,
    free: Vec<bool>,
    channel: Vec<i16>,
    interactive: Vec<Option<Vec<u8>>>,
    pool_account: Vec<i64>,
    pool_expires_us: Vec<Option<i64>>,
    /// Empty if no submission has one.
    trace: Vec<Option<Vec<u8>>>,
}

impl<'a> MessageColumns<'a> {
    fn from_submissions(submissions: impl Iterator<Item = &'a Submission>) -> Self {
        let mut columns = Self::default();
        let mut traces = Vec::new();
        for submission in submissions {
            columns.push(submission);
            columns.free.push(is_free(submission));
            if let Some(trace) = submission.trace {
                traces.resize(columns.first_id.len() - 1, None);
                traces.push(Some(trace.to_bytes().to_vec()));
            }
        }
        if !traces.is_empty() {
            traces.resize(columns.first_id.len(), None);
            columns.trace = traces;
        }
        columns
    }

    fn statement(&self) -> &'static str {
        if self.trace.is_empty() {
            INSERT
        } else {
            INSERT_TRACED
        }
    }

    /// As [`Self::from_submissions`], but charged already.
    fn from_paid(submissions: impl Iterator<Item = &'a Submission>) -> Self {
        let mut columns = Self::from_submissions(submissions);
        columns.free.fill(true);
        columns
    }

    fn push(&mut self, submission: &'a Submission) {
        let count = |number: usize| i32::try_from(number).expect("a batch is bounded far below");
        self.first_id.push(submission.recipients[0].id.as_i64());
        self.skipped.push(count(self.recipient.len()));
        self.recipients.push(count(submission.recipients.len()));
        for recipient in &submission.recipients {
            self.recipient.push(recipient.to.as_i64());
            let country = traffic::country_column(recipient).map_or(0, i32::from);
            self.network
                .push(recipient.network.map_or(-country, Network::code));
            self.price.push(recipient.price.micros());
        }
        self.account.push(submission.account.as_i64());
        self.originator
            .push(rows::originator(submission.from.as_ref()));
        self.channel.push(rows::channel_number(submission.channel));
        let interactive = submission.interactive.as_ref().map(Interactive::to_json);
        self.interactive.push(interactive.map(String::into_bytes));
        self.body.push(submission.shown_text().as_bytes());
        self.coding.push(submission.shape.coding.number().into());
        self.coding_given.push(submission.coding_given);
        self.udh.push(submission.udh.as_ref().map(Udh::as_bytes));
        self.parts.push(submission.shape.parts.into());
        self.priority.push(submission.priority.lane());
        self.dlr_url.push(
            submission
                .dlr_url
                .as_ref()
                .map(|url| url.as_str().as_bytes()),
        );
        self.test_mode
            .push(submission.test_mode.map(TestMode::number));
        self.push_times(submission);
    }

    fn push_times(&mut self, submission: &Submission) {
        let SendColumns {
            scheduled_us,
            state,
            owner,
            attempt,
            pool_account,
            pool_expires_us,
        } = SendColumns::from_submission(submission);
        self.pool_account.push(pool_account);
        self.pool_expires_us.push(pool_expires_us);
        self.accepted_us.push(micros(submission.accepted_at));
        self.scheduled_us.push(scheduled_us);
        self.expires_us.push(micros(submission.expires_at));
        self.state.push(state);
        self.owner.push(owner);
        self.attempt.push(attempt);
    }

    fn values<'s>(&'s self, charges: &'s Charges) -> Vec<&'s (dyn ToSql + Sync)> {
        let mut values: Vec<&'s (dyn ToSql + Sync)> = vec![
            &self.recipient,
            &self.first_id,
            &self.skipped,
            &self.recipients,
            &self.account,
            &self.originator,
            &self.body,
            &self.coding,
            &self.coding_given,
            &self.udh,
            &self.parts,
            &self.priority,
            &self.dlr_url,
            &self.test_mode,
            &self.accepted_us,
            &self.scheduled_us,
            &self.expires_us,
            &self.state,
            &self.owner,
            &self.attempt,
            &self.network,
            &self.price,
            &self.free,
            &charges.account,
            &charges.cost,
            &charges.messages,
            &charges.day,
            &charges.at_us,
            &self.channel,
            &self.interactive,
            &self.pool_account,
            &self.pool_expires_us,
        ];
        if !self.trace.is_empty() {
            values.push(&self.trace);
        }
        values
    }
}
