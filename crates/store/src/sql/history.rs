//! Finding messages.

use super::{Sql, sql};

pub(crate) const FIRST_AND_LAST: Sql =
    sql!("SELECT (SELECT min(id) FROM message), (SELECT max(id) FROM message)");
