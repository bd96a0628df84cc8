//! The ledger.

use super::{Sql, sql};

pub(crate) const LIST_LEDGER: Sql = sql!(
    "SELECT id, at_us, kind, amount_micros, balance_micros, messages, note FROM ledger
    WHERE account_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3"
);
