//! SMPP users with their account.

use super::{Sql, sql};

macro_rules! select {
    ($columns:literal, $condition:literal) => {
        concat!(
            "SELECT u.id, u.system_id, u.allow_ips, u.senders, u.countries, u.max_binds, u.max_per_second, u.binds,
                u.receipt_date, u.receipt_id, u.receipt_error, u.created_us, a.id, a.name, a.suspended, a.countries,
                a.approved_senders_only, a.requests_per_second",
            $columns,
            " FROM smpp_user AS u JOIN account AS a ON a.id = u.account_id WHERE u.revoked_us IS NULL AND ",
            $condition
        )
    };
}

pub(crate) const FIND_CREDENTIALS: Sql = sql!(select!(", u.password", "u.system_id = ?1"));
pub(crate) const LIST: Sql = sql!(select!(
    "",
    "(CAST(?1 AS BIGINT) IS NULL OR u.account_id = ?1) ORDER BY u.id"
));
pub(crate) const FIND_ONE_SQLITE: &str = select!("", "u.id = ?1");
pub(crate) const FIND_MANY_POSTGRES: &str = select!("", "u.id = ANY($1::bigint[])");

pub(crate) const SET_BINDS: Sql = sql!(
    "INSERT INTO smpp_bind (user_id, node, binds, senders) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (user_id, node) DO UPDATE SET binds = excluded.binds, senders = excluded.senders"
);
/// The rows of nodes that are gone are deleted with the last session of a user on a node.
pub(crate) const DELETE_BINDS: Sql = sql!(
    "DELETE FROM smpp_bind WHERE user_id = ?1 AND (node = ?2 OR node NOT IN (SELECT id FROM node))"
);
