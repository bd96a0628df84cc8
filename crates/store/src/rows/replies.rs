//! Rows of replies to words such as STOP.

use domain::Msisdn;
use domain::inbound::language::Language;
use domain::inbound::number::InboundNumber;
use domain::ports::DueReply;

use super::{Corrupt, SqlRow, account_id, message_id, timestamp};

/// The column of a language; empty for all.
pub(crate) fn language_code(language: Option<Language>) -> &'static str {
    language.map_or("", Language::code)
}

pub(crate) fn due_reply<R: SqlRow>(row: &R) -> Result<DueReply, R::Error> {
    let (number, handset): (String, String) = (row.column(2)?, row.column(3)?);
    Ok(DueReply {
        id: message_id(row.column(0)?)?,
        account: account_id(row.column(1)?)?,
        from: InboundNumber::parse(&number).map_err(|_| Corrupt("number"))?,
        to: Msisdn::parse(&handset).map_err(|_| Corrupt("number"))?,
        text: row.column(4)?,
        received_at: timestamp(row.column(5)?)?,
    })
}
