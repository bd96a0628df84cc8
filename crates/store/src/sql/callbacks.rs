//! Callbacks.

use super::{Sql, sql};

pub(crate) const FIND_SECRETS: Sql = sql!(
    "SELECT name, callback_secret, former_secret, former_secret_until_us FROM account WHERE id = ?1"
);
pub(crate) const FIND_NAME: Sql = sql!("SELECT name FROM account WHERE id = ?1");
