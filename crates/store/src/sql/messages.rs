//! Messages.

use super::{Sql, sql};

pub(crate) const FIND: Sql = sql!(
    "SELECT id, state, scheduled_us, final_us, parts, status, error, network, channel, EXISTS (SELECT 1 FROM queue
        WHERE queue.owner = -1 AND queue.lane = 0 AND queue.due_us = message.expires_us AND queue.id = message.id)
    FROM message WHERE id = ?1 AND account_id = ?2"
);
pub(crate) const FIND_RESULT: Sql = sql!("SELECT result FROM message WHERE id = ?1");
pub(crate) const LIST_SCHEDULED: Sql = sql!(
    "SELECT id, scheduled_us, originator, recipient, body, dlr_url FROM message
    WHERE account_id = ?1 AND state = 1 AND channel = 0 ORDER BY scheduled_us, id LIMIT ?2 OFFSET ?3"
);
pub(crate) const LIST_SCHEDULED_AFTER: Sql = sql!(
    "SELECT id, scheduled_us, originator, recipient, body, dlr_url FROM message
    WHERE account_id = ?1 AND state = 1 AND channel = 0 AND (scheduled_us, id) > (?2, ?3)
    ORDER BY scheduled_us, id LIMIT ?4"
);
/// The columns that `WaitingColumns` reads.
pub(crate) const FIND_WAITING: Sql = sql!(
    "SELECT originator, recipient, body, coding, parts, coding_given, udh, dlr_url, priority, test_mode, scheduled_us,
        expires_us
    FROM message WHERE id = ?1 AND account_id = ?2 AND state = 1 AND channel = 0"
);
/// What a replacement changes of a message.
pub(crate) const REPLACE: Sql = sql!(
    "UPDATE message SET body = ?2, coding = ?3, coding_given = ?4, parts = ?5, dlr_url = ?6, scheduled_us = ?7,
        expires_us = ?8, price_micros = ?9, network = ?10, country = ?11
    WHERE id = ?1"
);
