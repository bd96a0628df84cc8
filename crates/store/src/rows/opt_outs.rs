//! Rows of opt-outs and of the block list.

use std::borrow::Cow;

use domain::block::{BlockKind, BlockRecord, BlockRule};
use domain::ids::AccountId;
use domain::opt_out::{OptOut, OptOutKey, Via};
use domain::ports::{ListVersions, OptOutChange};
use domain::{Msisdn, Originator};

use super::{Corrupt, SqlRow, account_id, originator, timestamp};

/// The columns of a key: the recipient and the sender.
pub(crate) fn key_columns(key: &OptOutKey) -> (i64, Cow<'_, str>) {
    (key.recipient.as_i64(), originator(key.sender.as_ref()))
}

/// The columns after which a list starts.
pub(crate) fn after_columns(after: Option<&OptOutKey>) -> (i64, Cow<'_, str>) {
    after.map_or((0, Cow::Borrowed("")), key_columns)
}

/// The columns after which a list of changes starts.
pub(crate) fn after_change(after: Option<&OptOutChange>) -> (i64, i64, i64, Cow<'_, str>) {
    let Some(change) = after else {
        return (0, 0, 0, Cow::Borrowed(""));
    };
    let (recipient, sender) = key_columns(&change.key);
    (change.number, change.account.as_i64(), recipient, sender)
}

fn key(recipient: i64, sender: &str) -> Result<OptOutKey, Corrupt> {
    let recipient = Msisdn::from_i64(recipient).ok_or(Corrupt("recipient of an opt-out"))?;
    let sender = match sender {
        "" => None,
        sender => Some(Originator::parse_approved(sender).map_err(|_| Corrupt("sender"))?),
    };
    Ok(OptOutKey { recipient, sender })
}

pub(crate) fn read_opt_out<R: SqlRow>(row: &R) -> Result<(AccountId, OptOut), R::Error> {
    let sender: String = row.column(2)?;
    let opt_out = OptOut {
        key: key(row.column(1)?, &sender)?,
        since: timestamp(row.column(3)?)?,
        via: Via::from_number(row.column(4)?).ok_or(Corrupt("origin of an opt-out"))?,
    };
    Ok((account_id(row.column(0)?)?, opt_out))
}

pub(crate) fn read_versions<R: SqlRow>(row: &R) -> Result<ListVersions, R::Error> {
    Ok(ListVersions {
        opt_outs: row.column(0)?,
        blocks: row.column(1)?,
    })
}

pub(crate) fn read_change<R: SqlRow>(row: &R) -> Result<OptOutChange, R::Error> {
    let sender: String = row.column(3)?;
    Ok(OptOutChange {
        number: row.column(0)?,
        account: account_id(row.column(1)?)?,
        key: key(row.column(2)?, &sender)?,
        is_listed: row.column(4)?,
    })
}

pub(crate) fn read_block<R: SqlRow>(row: &R) -> Result<BlockRecord, R::Error> {
    let kind = BlockKind::from_number(row.column(0)?).ok_or(Corrupt("kind of a block rule"))?;
    let value: String = row.column(1)?;
    let rule = BlockRule::parse(kind, &value).map_err(|_| Corrupt("value of a block rule"))?;
    Ok(BlockRecord {
        rule,
        since: timestamp(row.column(2)?)?,
    })
}
