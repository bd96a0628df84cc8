//! Finding messages.

use super::{Sql, sql};

pub(crate) const EDGES: Sql =
    sql!("SELECT (SELECT min(id) FROM message), (SELECT max(id) FROM message)");
