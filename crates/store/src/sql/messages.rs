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
