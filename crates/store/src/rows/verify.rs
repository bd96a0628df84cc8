//! Rows of verifications.

use domain::ids::VerificationId;
use domain::sender::PinHash;
use domain::verify::{
    CodeLength, Conversion, NetworkConversion, PrefixConversion, Verification, VerificationState,
};
use domain::{Money, Timestamp};

use super::traffic::counted_place;
use super::{Corrupt, SqlRow, account_id, timestamp};

/// Reads the columns in the order in which the statements select them.
pub(crate) fn verification<R: SqlRow>(row: &R) -> Result<Verification, R::Error> {
    Ok(Verification {
        id: verification_id(row.column(0)?)?,
        account: account_id(row.column(1)?)?,
        to: domain::Msisdn::from_i64(row.column(2)?).ok_or(Corrupt("number"))?,
        length: length(row.column(3)?)?,
        hash: hash(&row.column::<Vec<u8>>(4)?, &row.column::<Vec<u8>>(5)?)?,
        state: state(row.column(6)?)?,
        tries: u32::try_from(row.column::<i32>(7)?).map_err(|_| Corrupt("number of tries"))?,
        created_at: timestamp(row.column(8)?)?,
        expires_at: timestamp(row.column(9)?)?,
        price: Money::from_micros(row.column(10)?),
    })
}

/// The state and time of one code.
pub(crate) fn sent<R: SqlRow>(row: &R) -> Result<(VerificationState, Timestamp), R::Error> {
    Ok((state(row.column(0)?)?, timestamp(row.column(1)?)?))
}

/// Counts codes, the newest first.
pub(crate) fn conversion(
    codes: &[(VerificationState, Timestamp)],
) -> (Conversion, Option<Timestamp>) {
    let approved = codes
        .iter()
        .filter(|(state, _)| *state == VerificationState::Approved);
    let conversion = Conversion {
        sent: count(codes.len()),
        approved: count(approved.count()),
    };
    (conversion, codes.first().map(|(_, at)| *at))
}

/// Account, prefix, network, codes sent and entered, and the same of the newest codes.
pub(crate) fn prefix_conversion<R: SqlRow>(row: &R) -> Result<PrefixConversion, R::Error> {
    let (network, country) = counted_place(row.column(2)?)?;
    Ok(PrefixConversion {
        account: account_id(row.column(0)?)?,
        prefix: number(row.column(1)?)?,
        network,
        country,
        conversion: counts(row, 3)?,
        newest: counts(row, 5)?,
    })
}

/// Network, codes sent, codes entered.
pub(crate) fn network_conversion<R: SqlRow>(row: &R) -> Result<NetworkConversion, R::Error> {
    let (network, country) = counted_place(row.column(0)?)?;
    Ok(NetworkConversion {
        network,
        country,
        conversion: counts(row, 1)?,
    })
}

/// The columns from `first` on: codes sent and entered.
fn counts<R: SqlRow>(row: &R, first: usize) -> Result<Conversion, R::Error> {
    Ok(Conversion {
        sent: number(row.column(first)?)?,
        approved: number(row.column(first + 1)?)?,
    })
}

fn number(value: i64) -> Result<u32, Corrupt> {
    u32::try_from(value).map_err(|_| Corrupt("count of codes"))
}

pub(crate) fn verification_id(number: i64) -> Result<VerificationId, Corrupt> {
    VerificationId::from_i64(number).ok_or(Corrupt("verification ID"))
}

fn length(digits: i16) -> Result<CodeLength, Corrupt> {
    CodeLength::new(digits.into()).map_err(|_| Corrupt("length of a code"))
}

fn state(number: i16) -> Result<VerificationState, Corrupt> {
    VerificationState::from_number(number).ok_or(Corrupt("state of a verification"))
}

fn hash(hash: &[u8], salt: &[u8]) -> Result<PinHash, Corrupt> {
    let corrupt = |_| Corrupt("code");
    Ok(PinHash {
        salt: salt.try_into().map_err(corrupt)?,
        hash: hash.try_into().map_err(corrupt)?,
    })
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
