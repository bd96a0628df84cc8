//! Message details.

use super::{Sql, sql};

pub(crate) const FIND_SENT: Sql = sql!(
    "SELECT owner, due_us, attempt FROM queue WHERE owner = -1 AND lane = 0 AND due_us = ?1 AND id = ?2"
);
