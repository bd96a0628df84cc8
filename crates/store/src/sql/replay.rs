//! Replaying callbacks.

use super::{Sql, sql};

pub(crate) const LIST_REQUESTS: Sql = sql!(
    "SELECT number, account_id, url_prefix FROM callback_replay WHERE number > ?1 ORDER BY number"
);
