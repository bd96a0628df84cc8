//! Messages from handsets that a carrier gave an ID.

use super::{Sql, sql};

pub(crate) const EXISTS: Sql = sql!("SELECT EXISTS (SELECT 1 FROM inbound_source WHERE hash = ?1)");
pub(crate) const ADD: Sql = sql!(
    "INSERT INTO inbound_source (hash, inbound_id) VALUES (?1, ?2) ON CONFLICT (hash) DO NOTHING"
);
