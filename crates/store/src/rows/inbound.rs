//! Rows of messages from handsets.

use domain::inbound::assembly::PartText;
use domain::inbound::message::InboundMessage;
use domain::inbound::number::InboundNumber;
use domain::inbound::text::Alphabet;
use domain::inbound::words::compared;
use domain::message::text::{Coding, Udh};
use domain::ports::{
    DeliveredCopy, DeliveredResult, IfUnclear, InboundFilter, InboundOwner, InboundPart,
    NumberEntry, OwnedNumber, PartKey, PartSet,
};
use domain::{CallbackUrl, Money};

use super::billing::network;
use super::{Corrupt, SqlRow, account_id, message_id, micros, timestamp, utf8};
use crate::sql::Sql;
use crate::sql::inbound as sql;

/// How long the same content on another session may be a repetition.
pub(crate) const REPETITION_US: i64 = 600_000_000;

/// The key of an entry: digits and keyword in their compared forms.
pub(crate) fn entry_key(number: &InboundNumber, keyword: Option<&str>) -> (String, String) {
    let keyword = keyword.map(compared).unwrap_or_default();
    (number.digits().to_owned(), keyword)
}

fn url(bytes: Option<Vec<u8>>) -> Result<Option<CallbackUrl>, Corrupt> {
    let url = bytes.map(|bytes| CallbackUrl::parse(&utf8(bytes)?).map_err(|_| Corrupt("URL")));
    url.transpose()
}

fn number(text: &str) -> Result<InboundNumber, Corrupt> {
    if text.is_empty() {
        return Ok(InboundNumber::Erased);
    }
    InboundNumber::parse(text).map_err(|_| Corrupt("number"))
}

pub(crate) fn owned_number<R: SqlRow>(row: &R) -> Result<OwnedNumber, R::Error> {
    let shown: String = row.column(0)?;
    Ok(OwnedNumber {
        entry: NumberEntry {
            number: number(&shown)?,
            keyword: row.column(1)?,
            account: account_id(row.column(2)?)?,
            url: url(row.column(3)?)?,
        },
        account_name: row.column(4)?,
        account_url: url(row.column(5)?)?,
    })
}

/// The columns of a message.
pub(crate) struct InboundColumns {
    pub(crate) id: i64,
    pub(crate) account_id: Option<i64>,
    pub(crate) carrier: String,
    pub(crate) sender: String,
    pub(crate) number: String,
    pub(crate) body: Vec<u8>,
    pub(crate) coding: i16,
    pub(crate) udh: Option<Vec<u8>>,
    pub(crate) network: Option<i32>,
    pub(crate) parts: i16,
    pub(crate) keyword: Option<String>,
    pub(crate) in_reply_to: Option<i64>,
    pub(crate) incomplete: bool,
    pub(crate) received_us: i64,
    pub(crate) price_micros: i64,
}

impl InboundColumns {
    pub(crate) fn from_message(message: &InboundMessage) -> Self {
        Self {
            id: message.id.as_i64(),
            account_id: message.account.map(domain::AccountId::as_i64),
            carrier: message.carrier.clone(),
            sender: message.from.clone(),
            number: message.to.to_string(),
            body: message.text.clone().into_bytes(),
            coding: message.coding.number().into(),
            udh: message.udh.as_ref().map(|udh| udh.as_bytes().to_vec()),
            network: message.network.map(domain::Network::code),
            parts: message.parts.into(),
            keyword: message.keyword.clone(),
            in_reply_to: message.in_reply_to.map(domain::ids::MessageId::as_i64),
            incomplete: message.is_incomplete,
            received_us: micros(message.received_at),
            price_micros: message.price.micros(),
        }
    }
}

pub(crate) fn message<R: SqlRow>(row: &R) -> Result<InboundMessage, R::Error> {
    let (coding, parts): (i16, i16) = (row.column(6)?, row.column(9)?);
    let coding = u8::try_from(coding).ok().and_then(Coding::from_number);
    let shown: String = row.column(4)?;
    let account: Option<i64> = row.column(1)?;
    let in_reply_to: Option<i64> = row.column(11)?;
    Ok(InboundMessage {
        id: message_id(row.column(0)?)?,
        account: account.map(account_id).transpose()?,
        carrier: row.column(2)?,
        from: row.column(3)?,
        to: number(&shown)?,
        text: utf8(row.column(5)?)?,
        coding: coding.ok_or(Corrupt("coding"))?,
        udh: udh(row.column(7)?)?,
        network: network(row.column(8)?)?,
        parts: u8::try_from(parts).map_err(|_| Corrupt("number of parts"))?,
        keyword: row.column(10)?,
        in_reply_to: in_reply_to.map(message_id).transpose()?,
        is_incomplete: row.column(12)?,
        received_at: timestamp(row.column(13)?)?,
        price: Money::from_micros(row.column(14)?),
    })
}

fn udh(octets: Option<Vec<u8>>) -> Result<Option<Udh>, Corrupt> {
    let header = octets.map(|octets| Udh::from_bytes(&octets).map_err(|_| Corrupt("header")));
    header.transpose()
}

/// The statement for a filter, and its parameters.
pub(crate) struct FilterColumns {
    pub(crate) sql: Sql,
    pub(crate) account_id: Option<i64>,
    pub(crate) sender: Option<String>,
    pub(crate) number: Option<String>,
    pub(crate) since_us: i64,
    pub(crate) until_us: i64,
}

impl FilterColumns {
    pub(crate) fn from_filter(filter: &InboundFilter) -> Self {
        let (sql, account) = match (filter.owner, &filter.from) {
            (InboundOwner::Account(account), Some(_)) => (sql::LIST_OF_SENDER, Some(account)),
            (InboundOwner::Account(account), None) => (sql::LIST_OF_ACCOUNT, Some(account)),
            (InboundOwner::Nobody, _) => (sql::LIST_UNCLAIMED, None),
            (InboundOwner::Anyone, _) => (sql::LIST_ALL, None),
        };
        Self {
            sql,
            account_id: account.map(domain::AccountId::as_i64),
            sender: filter.from.clone(),
            number: filter.to.as_ref().map(ToString::to_string),
            since_us: filter.since.map_or(i64::MIN, micros),
            until_us: filter.until.map_or(i64::MAX, micros),
        }
    }
}

/// The columns that the parts of a text have in common.
pub(crate) struct KeyColumns {
    pub(crate) carrier: String,
    pub(crate) sender: String,
    pub(crate) number: String,
    pub(crate) reference: i32,
    pub(crate) total: i16,
}

impl KeyColumns {
    pub(crate) fn from_key(key: &PartKey) -> Self {
        Self {
            carrier: key.carrier.clone(),
            sender: key.from.clone(),
            number: key.to.to_string(),
            reference: key.reference.into(),
            total: key.total.into(),
        }
    }
}

/// A set as it is listed: its key and its number.
pub(crate) fn set_key<R: SqlRow>(row: &R) -> Result<(PartKey, i32), R::Error> {
    let shown: String = row.column(2)?;
    let (reference, total): (i32, i16) = (row.column(3)?, row.column(4)?);
    let key = PartKey {
        carrier: row.column(0)?,
        from: row.column(1)?,
        to: number(&shown)?,
        reference: u16::try_from(reference).map_err(|_| Corrupt("reference"))?,
        total: u8::try_from(total).map_err(|_| Corrupt("number of parts"))?,
    };
    Ok((key, row.column(5)?))
}

/// The columns of a part besides its key.
pub(crate) struct PartColumns {
    pub(crate) sequence: i16,
    pub(crate) alphabet: i16,
    pub(crate) octets: Vec<u8>,
    pub(crate) udh: Option<Vec<u8>>,
    pub(crate) received_us: i64,
}

impl PartColumns {
    pub(crate) fn from_part(part: &InboundPart) -> Self {
        Self {
            sequence: part.text.sequence.into(),
            alphabet: part.text.alphabet.number(),
            octets: part.text.octets.clone(),
            udh: part.udh.as_ref().map(|udh| udh.as_bytes().to_vec()),
            received_us: micros(part.received_at),
        }
    }
}

/// A part, with the number of its set.
pub(crate) struct StoredPart {
    set: i32,
    text: PartText,
    udh: Option<Udh>,
    received_us: i64,
}

pub(crate) fn stored_part<R: SqlRow>(row: &R) -> Result<StoredPart, R::Error> {
    let (sequence, alphabet): (i16, i16) = (row.column(1)?, row.column(2)?);
    Ok(StoredPart {
        set: row.column(0)?,
        text: PartText {
            sequence: u8::try_from(sequence).map_err(|_| Corrupt("number of a part"))?,
            alphabet: Alphabet::from_number(alphabet).ok_or(Corrupt("alphabet"))?,
            octets: row.column(3)?,
        },
        udh: udh(row.column(4)?)?,
        received_us: row.column(5)?,
    })
}

/// The sets of a key, from its parts in order.
pub(crate) fn part_sets(key: &PartKey, parts: &[StoredPart]) -> Result<Vec<PartSet>, Corrupt> {
    let sets = parts.chunk_by(|one, other| one.set == other.set);
    sets.map(|parts| {
        let first_us = parts.iter().map(|part| part.received_us).min();
        Ok(PartSet {
            key: key.clone(),
            set: parts[0].set,
            parts: parts.iter().map(|part| part.text.clone()).collect(),
            udh: parts.iter().find_map(|part| part.udh.clone()),
            received_at: timestamp(first_us.unwrap_or_default())?,
        })
    })
    .collect()
}

/// A stored copy with the content of a delivered one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredCopy {
    pub(crate) session: i64,
    pub(crate) number: i64,
    pub(crate) hash: [u8; 16],
    /// Whether its session has ended, or its node.
    pub(crate) is_over: bool,
    pub(crate) is_elsewhere: bool,
}

/// What to do with a delivered copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyStep {
    Store,
    /// It repeats this copy, by session and number.
    Replace(i64, i64),
    Wait,
}

impl CopyStep {
    pub(crate) const fn result(self) -> DeliveredResult {
        match self {
            Self::Store => DeliveredResult::Stored,
            Self::Replace(..) => DeliveredResult::Repeated,
            Self::Wait => DeliveredResult::Unclear,
        }
    }
}

/// Compares a delivered copy with stored ones. One that is repeated is taken out, so that a further copy is no
/// repetition of it.
pub(crate) fn judge_copy(
    copy: &DeliveredCopy,
    stored: &mut Vec<StoredCopy>,
    if_unclear: IfUnclear,
) -> CopyStep {
    let is_same = |stored: &StoredCopy| stored.hash == copy.hash && stored.session != copy.session;
    if let Some(at) = stored.iter().position(|it| is_same(it) && it.is_over) {
        let repeated = stored.swap_remove(at);
        return CopyStep::Replace(repeated.session, repeated.number);
    }
    let may_repeat = stored.iter().any(|it| is_same(it) && it.is_elsewhere);
    match if_unclear {
        IfUnclear::Wait if may_repeat => CopyStep::Wait,
        IfUnclear::Wait | IfUnclear::Store => CopyStep::Store,
    }
}
