//! Storing submissions: the hot path of the writer.

use domain::ids::AccountId;
use domain::message::interactive::Interactive;
use domain::message::outcome::TakenParts;
use domain::message::text::Udh;
use domain::message::{IdempotencyClaim, Submission, TestMode};
use domain::ports::{Accepted, StoredAnswer};
use domain::{Code, KeyRing, Network, Outcome};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, Row, params};

use super::billing::BatchCharges;
use super::codes;
use super::ending::{End, Endings};
use crate::rows::{self, AnswerColumns, SendColumns, micros, traffic};

const INSERT_MESSAGE: &str = "
    INSERT INTO message (id, recipient, account_id, originator, body, coding, coding_given, udh, parts, priority,
        dlr_url, test_mode, accepted_us, scheduled_us, expires_us, state, price_micros, network,
        channel, interactive, country)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";
/// Most messages have no trace, so it is not part of the insert.
const SET_TRACE: &str = "UPDATE message SET trace = ?2 WHERE id = ?1";
/// Messages of the service itself are few, so this is not part of the insert either.
const MARK_NOTICE: &str = "UPDATE message SET notice = 1 WHERE id = ?1";
/// A scheduled message that has ended does not wait for its time.
const UNSCHEDULE: &str = "UPDATE message SET state = 0 WHERE id = ?1 AND state = 1";
const INSERT_QUEUE: &str = "
    INSERT INTO queue (id, lane, due_us, owner, attempt, account_id, expires_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const FIND_ANSWER: &str = "
    SELECT body, first_id, messages, parts FROM idempotency
    WHERE account_id = ?1 AND key = ?2 AND expires_us > ?3";
const INSERT_ANSWER: &str = "
    INSERT OR REPLACE INTO idempotency (account_id, key, body, first_id, messages, parts, expires_us)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// Stores a batch and returns the result of each submission.
pub(super) fn accept(
    db: &Connection,
    keys: &KeyRing,
    batch: &[Submission],
) -> Result<Vec<Accepted>> {
    let mut inserts = Inserts {
        message: db.prepare_cached(INSERT_MESSAGE)?,
        queue: db.prepare_cached(INSERT_QUEUE)?,
        charges: BatchCharges::new(db),
        endings: None,
        keys,
    };
    let accepted = batch
        .iter()
        .map(|submission| inserts.accept(db, submission));
    let accepted = accepted.collect::<Result<_>>()?;
    inserts.charges.close()?;
    if let Some(endings) = inserts.endings {
        endings.close()?;
    }
    Ok(accepted)
}

/// The two statements of the hot path, prepared once for a batch.
struct Inserts<'db> {
    message: CachedStatement<'db>,
    queue: CachedStatement<'db>,
    charges: BatchCharges<'db>,
    /// Ends refused messages; most batches have none.
    endings: Option<Endings<'db>>,
    keys: &'db KeyRing,
}

impl<'db> Inserts<'db> {
    fn accept(&mut self, db: &'db Connection, submission: &Submission) -> Result<Accepted> {
        if let Some(claim) = &submission.idempotency
            && let Some(kept) = find_earlier_answer(db, submission, claim)?
        {
            return Ok(rows::repeated(&kept, &claim.body));
        }
        if let Err(not_paid) = self.charges.charge(submission)? {
            return Ok(Accepted::NotPaid(not_paid));
        }
        if let Some(claim) = &submission.idempotency {
            store_key(db, submission, claim)?;
        }
        self.bind(submission)?;
        for recipient in &submission.recipients {
            let id = recipient.id.as_i64();
            self.message.raw_bind_parameter(1, id)?;
            self.message.raw_bind_parameter(2, recipient.to.as_i64())?;
            self.message
                .raw_bind_parameter(17, recipient.price.micros())?;
            let network = recipient.network.map(Network::code);
            self.message.raw_bind_parameter(18, network)?;
            self.message
                .raw_bind_parameter(21, traffic::country_column(recipient))?;
            self.message.raw_execute()?;
            if let Some(trace) = &submission.trace {
                let mut set = db.prepare_cached(SET_TRACE)?;
                set.execute(params![id, trace.to_bytes()])?;
            }
            if submission.carries_code {
                codes::store_text(db, self.keys, recipient, &submission.text)?;
            }
            if submission.notice {
                db.prepare_cached(MARK_NOTICE)?.execute([id])?;
            }
            if let Some(code) = recipient.refused {
                self.end(db, id, code, micros(submission.accepted_at))?;
                continue;
            }
            self.queue.raw_bind_parameter(1, id)?;
            self.queue.raw_execute()?;
        }
        Ok(Accepted::Stored)
    }

    /// Ends a message that was just stored and is refused.
    fn end(&mut self, db: &'db Connection, id: i64, code: Code, at_us: i64) -> Result<()> {
        db.prepare_cached(UNSCHEDULE)?.execute([id])?;
        let endings = match &mut self.endings {
            Some(endings) => endings,
            none => none.insert(Endings::prepare(db, None)?),
        };
        let end = End {
            outcome: Outcome::Failed(code),
            taken: TakenParts::Only(0),
            report: None,
            network: None,
            at_us,
            sent: None,
        };
        endings.end(id, end).map(drop)
    }

    /// Binds what all recipients share: a binding stays until the next one replaces it.
    fn bind(&mut self, submission: &Submission) -> Result<()> {
        let SendColumns {
            scheduled_us,
            state,
            owner,
            attempt,
            pool_account,
            pool_expires_us,
        } = SendColumns::from_submission(submission);
        let from = rows::originator(submission.from.as_ref());
        let interactive = submission.interactive.as_ref().map(Interactive::to_json);
        let message = &mut self.message;
        message.raw_bind_parameter(3, submission.account.as_i64())?;
        message.raw_bind_parameter(4, &*from)?;
        message.raw_bind_parameter(5, submission.shown_text().as_bytes())?;
        message.raw_bind_parameter(6, submission.shape.coding.number())?;
        message.raw_bind_parameter(7, submission.coding_given)?;
        message.raw_bind_parameter(8, submission.udh.as_ref().map(Udh::as_bytes))?;
        message.raw_bind_parameter(9, submission.shape.parts)?;
        message.raw_bind_parameter(10, submission.priority.lane())?;
        message.raw_bind_parameter(
            11,
            submission
                .dlr_url
                .as_ref()
                .map(|url| url.as_str().as_bytes()),
        )?;
        message.raw_bind_parameter(12, submission.test_mode.map(TestMode::number))?;
        message.raw_bind_parameter(13, micros(submission.accepted_at))?;
        message.raw_bind_parameter(14, scheduled_us)?;
        message.raw_bind_parameter(15, micros(submission.expires_at))?;
        message.raw_bind_parameter(16, state)?;
        message.raw_bind_parameter(19, rows::channel_number(submission.channel))?;
        message.raw_bind_parameter(20, interactive.as_deref().map(str::as_bytes))?;
        self.queue
            .raw_bind_parameter(2, submission.priority.lane())?;
        self.queue
            .raw_bind_parameter(3, micros(submission.due_at()))?;
        self.queue.raw_bind_parameter(4, owner)?;
        self.queue.raw_bind_parameter(5, attempt)?;
        self.queue.raw_bind_parameter(6, pool_account)?;
        self.queue.raw_bind_parameter(7, pool_expires_us)
    }
}

/// The result for a submission whose key was used before.
fn find_earlier_answer(
    db: &Connection,
    submission: &Submission,
    claim: &IdempotencyClaim,
) -> Result<Option<StoredAnswer>> {
    let now_us = micros(submission.accepted_at);
    find_answer(db, submission.account, &claim.key, now_us)
}

/// Claims the key for this submission.
fn store_key(db: &Connection, submission: &Submission, claim: &IdempotencyClaim) -> Result<()> {
    let receipt = submission.receipt();
    db.prepare_cached(INSERT_ANSWER)?.execute(params![
        submission.account.as_i64(),
        claim.key,
        claim.body,
        receipt.first.as_i64(),
        receipt.messages,
        receipt.parts,
        micros(claim.expires_at),
    ])?;
    Ok(())
}

/// The answer that is stored for a key, unless it has expired.
pub(super) fn find_answer(
    db: &Connection,
    account: AccountId,
    key: &[u8; 32],
    now_us: i64,
) -> Result<Option<StoredAnswer>> {
    let mut statement = db.prepare_cached(FIND_ANSWER)?;
    statement
        .query_row(params![account.as_i64(), key, now_us], answer)
        .optional()
}

fn answer(row: &Row<'_>) -> Result<StoredAnswer> {
    Ok(AnswerColumns::read(row, 0)?.answer()?)
}
