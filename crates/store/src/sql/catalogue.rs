//! Catalogues.

use super::{Sql, sql};

pub(crate) const LIST_VERSIONS: Sql = sql!(
    "SELECT kind, account_id, version, at_us, row_count FROM catalogue WHERE kind = ?1 AND account_id = ?2
    ORDER BY version DESC"
);
pub(crate) const FIND: Sql = sql!(
    "SELECT kind, account_id, version, at_us, row_count, content FROM catalogue
    WHERE kind = ?1 AND account_id = ?2 AND version = ?3"
);
