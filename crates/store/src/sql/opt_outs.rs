//! Opt-outs and the block list.

use super::{Sql, sql};

/// Locks the counter until the transaction ends, so numbers become visible in their order.
pub(crate) const NEXT_CHANGE: Sql =
    sql!("UPDATE list_change SET opt_outs = opt_outs + 1 RETURNING opt_outs");
pub(crate) const REMOVE: Sql = sql!(
    "UPDATE opt_out SET removed_us = ?4, change = ?5
    WHERE account_id = ?1 AND recipient = ?2 AND sender = ?3 AND removed_us IS NULL"
);
pub(crate) const FIND: Sql = sql!(
    "SELECT account_id, recipient, sender, since_us, via FROM opt_out
    WHERE account_id = ?1 AND recipient = ?2 AND sender = ?3 AND removed_us IS NULL"
);
pub(crate) const LIST: Sql = sql!(
    "SELECT account_id, recipient, sender, since_us, via FROM opt_out
    WHERE account_id = ?1 AND (recipient, sender) > (?2, ?3) AND removed_us IS NULL
    ORDER BY recipient, sender LIMIT ?4"
);
pub(crate) const LIST_OF_RECIPIENT: Sql = sql!(
    "SELECT account_id, recipient, sender, since_us, via FROM opt_out
    WHERE recipient = ?1 AND removed_us IS NULL ORDER BY account_id, sender LIMIT ?2"
);
pub(crate) const VERSIONS: Sql = sql!("SELECT opt_outs, blocks FROM list_change");
pub(crate) const LIST_CHANGES: Sql = sql!(
    "SELECT change, account_id, recipient, sender, removed_us IS NULL FROM opt_out
    WHERE (change, account_id, recipient, sender) > (?1, ?2, ?3, ?4)
    ORDER BY change, account_id, recipient, sender LIMIT ?5"
);
/// The second condition is for an entry that is added again meanwhile.
pub(crate) const PRUNE: Sql = sql!(
    "DELETE FROM opt_out WHERE (account_id, recipient, sender) IN
        (SELECT account_id, recipient, sender FROM opt_out WHERE removed_us < ?1 LIMIT ?2)
    AND removed_us < ?1"
);

pub(crate) const COUNT_BLOCK_CHANGE: Sql = sql!("UPDATE list_change SET blocks = blocks + 1");
pub(crate) const ADD_BLOCK: Sql = sql!(
    "INSERT INTO block_rule (kind, value, since_us) VALUES (?1, ?2, ?3) ON CONFLICT (kind, value) DO NOTHING"
);
pub(crate) const REMOVE_BLOCK: Sql = sql!("DELETE FROM block_rule WHERE kind = ?1 AND value = ?2");
pub(crate) const LIST_BLOCKS: Sql =
    sql!("SELECT kind, value, since_us FROM block_rule ORDER BY kind, value");
