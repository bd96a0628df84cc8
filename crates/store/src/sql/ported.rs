//! Ported numbers.

use super::{Sql, sql};

/// Locks the counter until the transaction ends, so numbers become visible in their order.
pub(crate) const NEXT_CHANGE: Sql =
    sql!("UPDATE list_change SET ported = ported + 1 RETURNING ported");
pub(crate) const COUNT_REMOVAL: Sql =
    sql!("UPDATE list_change SET ported_removed = ported_removed + 1");
pub(crate) const FIND: Sql =
    sql!("SELECT change, number, network, learned_us FROM ported_number WHERE number = ?1");
pub(crate) const ERASE: Sql = sql!("DELETE FROM ported_number WHERE number = ?1");
pub(crate) const VERSIONS: Sql =
    sql!("SELECT ported, ported_removed, (SELECT version FROM access_version) FROM list_change");
pub(crate) const LIST_CHANGES: Sql = sql!(
    "SELECT change, number, network, learned_us FROM ported_number
    WHERE (change, number) > (?1, ?2) ORDER BY change, number LIMIT ?3"
);
pub(crate) const LIST_ACCOUNTS: Sql =
    sql!("SELECT id FROM account WHERE ported_numbers ORDER BY id");
/// The second condition is for a number whose network is learned again meanwhile.
pub(crate) const PRUNE: Sql = sql!(
    "DELETE FROM ported_number WHERE number IN
        (SELECT number FROM ported_number WHERE learned_us < ?1 ORDER BY learned_us LIMIT ?2)
    AND learned_us < ?1"
);
pub(crate) const REMOVE_OLDEST: Sql = sql!(
    "DELETE FROM ported_number WHERE number IN
        (SELECT number FROM ported_number ORDER BY learned_us LIMIT ?1)"
);
