//! Detects a pooler between a node and its server, which lends a connection for one transaction.
//!
//! Statements are prepared once and then called by name. A pooler must translate those names: on a borrowed connection
//! a name may be unknown or, worse, belong to a statement of another node.

use deadpool_postgres::{Object, Pool};
use tokio_postgres::SimpleQueryMessage;

/// Names as this program gives them. A pooler that translates them has others on the server.
const FOUND: &str = "SELECT name FROM pg_prepared_statements WHERE name ~ '^s[0-9]+$' LIMIT 1";

/// A connection is lent to several, and with it what they prepared there.
#[derive(Debug, thiserror::Error)]
#[error(
    "a pooler stands before it that does not keep the prepared statements of its clients apart; let PgBouncer do so \
     (1.21 or newer, max_prepared_statements above 0), or set its pool_mode to session (docs/SCALING.md, Poolers)"
)]
pub(super) struct Mixed;

/// Refuses a pooler that mixes up prepared statements, so that a new connection gets a statement of another.
///
/// `first` has a prepared statement, and the pooler lends its connection to the next client.
pub(super) async fn refuse_mixed(pool: &Pool, first: &Object) -> Result<(), Mixed> {
    if pool.status().max_size < 2 || first.prepare_cached("SELECT 1").await.is_err() {
        return Ok(());
    }
    // Whatever else is wrong with the server, others find out, and say so.
    let Ok(second) = pool.get().await else {
        return Ok(());
    };
    let found = second.simple_query(FOUND).await;
    if found.is_ok_and(|said| said.iter().any(is_row)) {
        return Err(Mixed);
    }
    Ok(())
}

fn is_row(said: &SimpleQueryMessage) -> bool {
    matches!(said, SimpleQueryMessage::Row(_))
}
