//! The settings of a connection, and whether they are in force.
//!
//! Settings are sent at the start of a connection: that costs no round trip, and a pooler does not pass them to other
//! clients. A pooler does not forward them either, so they must be set for the user.

use deadpool_postgres::Object;
use tokio_postgres::Error;

/// Names and values.
pub(super) type Settings = &'static [(&'static str, &'static str)];

/// The settings of the service.
///
/// The server ends a statement before [`super::retry::DEADLINE`], so that the server gives up first. A process that
/// hangs in a transaction keeps its locks until the server ends the transaction: after the lock timeout of the current
/// statement, and the time that a transaction may be idle or an answer unread. That is sooner than other nodes consider
/// the process dead, after ten seconds, and continue its work.
///
/// Every statement reads a few rows by an index, but the planner cannot know that: a queue that was empty when a plan
/// was made has a million rows a minute later, and a plan with a full scan would be kept. So the planner gets no
/// choice. For the same reason statements take an owner from a materialized list of rows even where it is a constant:
/// for a constant the planner would read the whole range of that owner. And a join by the first column of an index is
/// written `= ANY(ARRAY[…])`: with `=` the planner also considers a merge join over the whole index, which looks
/// cheapest for a table that it takes for empty. A plan is made once and not for each execution, which takes as long as
/// running the longest statement.
pub(super) const SERVICE: Settings = &[
    ("statement_timeout", "10s"),
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "4s"),
    UNREAD,
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_material", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("jit", "off"),
];

/// The settings of a copy. It reads whole tables, so the limits of the service do not apply.
pub(crate) const COPY: Settings = &[
    ("statement_timeout", "0"),
    ("lock_timeout", "30s"),
    ("idle_in_transaction_session_timeout", "0"),
    UNREAD,
    ("enable_seqscan", "on"),
    ("enable_hashjoin", "on"),
    ("enable_mergejoin", "on"),
    ("enable_material", "on"),
    ("plan_cache_mode", "auto"),
    ("jit", "off"),
];

/// How long an answer may stay unread. A local socket has no such limit and always returns 0, so it is not checked.
const UNREAD: (&str, &str) = ("tcp_user_timeout", "4s");

/// The settings as options for the start of a connection.
pub(super) fn options(settings: Settings) -> String {
    let options = settings
        .iter()
        .map(|(name, value)| format!(" -c {name}={value}"));
    options.collect()
}

/// The settings that are not in force on a connection, as a readable text; empty when all are. Settings that another
/// kind of server does not know count as not in force.
pub(crate) async fn missing(client: &Object, settings: Settings) -> Result<String, Error> {
    const ASK: &str = "SELECT current_setting(name, TRUE) FROM unnest($1::text[]) WITH ORDINALITY AS s (name, at) ORDER BY at";
    let (names, wanted): (Vec<&str>, Vec<&str>) = settings
        .iter()
        .filter(|one| **one != UNREAD)
        .copied()
        .unzip();
    let rows = client.query(ASK, &[&names]).await?;
    let mut missing = Vec::new();
    for ((name, wanted), row) in names.iter().zip(wanted).zip(&rows) {
        let found: Option<String> = row.try_get(0)?;
        if found.as_deref() != Some(wanted) {
            let found = found.as_deref().unwrap_or("unknown");
            missing.push(format!("{name} is {found} and not {wanted}"));
        }
    }
    Ok(missing.join(", "))
}
