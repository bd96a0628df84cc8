//! Rows of refused requests.

use domain::ports::RefusedRequest;

use super::{Corrupt, SqlRow, account_id, timestamp};

/// A status or an error as it is stored.
pub(crate) fn number(number: u16) -> i16 {
    i16::try_from(number).unwrap_or(i16::MAX)
}

pub(crate) fn read_request<R: SqlRow>(row: &R) -> Result<RefusedRequest, R::Error> {
    let number = |number: i16| u16::try_from(number).map_err(|_| Corrupt("refused request"));
    let error: Option<i16> = row.column(6)?;
    Ok(RefusedRequest {
        account: account_id(row.column(0)?)?,
        at: timestamp(row.column(1)?)?,
        token: row.column(2)?,
        method: row.column(3)?,
        route: row.column(4)?,
        status: number(row.column(5)?)?,
        error: error.map(number).transpose()?,
        message: row.column(7)?,
    })
}
