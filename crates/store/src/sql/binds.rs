//! Binds.

use super::{Sql, sql};

pub(crate) const RELEASE: Sql = sql!(
    "UPDATE bind SET owner = 0 WHERE carrier = ?1 AND owner = ?2 AND slot NOT IN (
        SELECT slot FROM bind WHERE carrier = ?1 AND owner = ?2 ORDER BY slot LIMIT ?3
    )"
);
