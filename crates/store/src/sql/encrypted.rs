//! Encryption keys.

use super::{Sql, sql};

pub(crate) const FIND_KEY: Sql = sql!("SELECT key_id, proof, kept FROM service_key");
