//! Sender IDs.

use super::{Sql, sql};

pub(crate) const RENEW_PIN: Sql = sql!(
    "UPDATE sender SET pin_hash = ?2, pin_salt = ?3, pin_expires_us = ?4, pin_sent_us = ?5, pin_tries = 0,
        notification_url = coalesce(?6, notification_url) WHERE id = ?1"
);
pub(crate) const COUNT_TRY: Sql = sql!("UPDATE sender SET pin_tries = pin_tries + 1 WHERE id = ?1");
/// 1: an approved sender ID, 2: a number of the account.
pub(crate) const FIND_RIGHT: Sql = sql!(
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM sender WHERE account_id = ?1 AND name = ?2 AND state = 3) THEN 1
        WHEN EXISTS (SELECT 1 FROM inbound_number WHERE digits = ?2 AND account_id = ?1) THEN 2 ELSE 0 END"
);
