//! What operators see.

use super::{Sql, sql};

pub(crate) const LIST_UNMATCHED: Sql = sql!(
    "SELECT carrier, reference, status, error, taken_us FROM early_receipt
    ORDER BY taken_us DESC LIMIT ?1"
);
