//! Detects a pooler that lends server connections for single transactions without separating prepared statements.
//!
//! Statements are prepared once and then called by name. A pooler must translate those names: on a borrowed connection
//! a name may be unknown or, worse, belong to a statement of another node.

use deadpool_postgres::{Object, Pool};
use tokio_postgres::SimpleQueryMessage;

/// Names of prepared statements as this program chooses them. A pooler that translates names uses others on the server.
const FIND_OWN_NAMES: &str =
    "SELECT name FROM pg_prepared_statements WHERE name ~ '^s[0-9]+$' LIMIT 1";

/// The pooler mixes the prepared statements of its clients.
#[derive(Debug, thiserror::Error)]
#[error(
    "a pooler stands before it that does not keep the prepared statements of its clients apart; let PgBouncer do so \
     (1.21 or newer, max_prepared_statements above 0), or set its pool_mode to session (docs/SCALING.md, Poolers)"
)]
pub(super) struct MixedStatements;

/// Refuses a pooler that mixes up prepared statements, so that a new connection gets a statement of another.
///
/// `first` has a prepared statement, and the pooler lends its connection to the next client.
pub(super) async fn refuse_mixed(pool: &Pool, first: &Object) -> Result<(), MixedStatements> {
    if pool.status().max_size < 2 || first.prepare_cached("SELECT 1").await.is_err() {
        return Ok(());
    }
    // Other problems with the server are reported elsewhere.
    let Ok(second) = pool.get().await else {
        return Ok(());
    };
    let found = second.simple_query(FIND_OWN_NAMES).await;
    if found.is_ok_and(|messages| messages.iter().any(is_row)) {
        return Err(MixedStatements);
    }
    Ok(())
}

fn is_row(messages: &SimpleQueryMessage) -> bool {
    matches!(messages, SimpleQueryMessage::Row(_))
}
