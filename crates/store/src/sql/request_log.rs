//! Refused requests of programs.

use super::{Sql, sql};

pub(crate) const LIST: Sql = sql!(
    "SELECT account_id, at_us, token, method, route, status, error, message FROM refused_request
    WHERE account_id = ?1 AND token = ?2 ORDER BY at_us DESC LIMIT ?3"
);
