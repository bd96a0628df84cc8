//! What a connection asks the server to keep to while it lasts, and whether the server does.
//!
//! Settings go out with the start of a connection: that costs no round trip, and nothing is left behind on a connection
//! that a pooler hands on to others. A pooler does not pass them on, so somebody must have set them for the user.

use deadpool_postgres::Object;
use tokio_postgres::Error;

/// Names and values.
pub(super) type Settings = &'static [(&'static str, &'static str)];

/// What the service keeps to.
///
/// The server ends a statement after so long: sooner than [`super::attempt::DEADLINE`], so that the server gives up first.
/// A process that is stopped in the middle of a transaction keeps its locks until the server ends that: after the wait of
/// the statement under way for a lock, and the time that a transaction may stand idle or its answer may stand unread. That
/// is sooner than others take the process for dead, after ten seconds, and go on with what it held.
///
/// Every statement of this program reads a few rows by an index. The planner cannot know: a queue that was empty when a
/// plan was made holds a million rows a minute later, and a plan that reads all of them would be kept. So it is left no
/// choice. For the same reason statements take an owner from a materialized list of rows even where it is a constant: by
/// a constant the planner would read that owner's whole range. And a join by the first column of an index is written
/// `= ANY(ARRAY[…])`: with `=` it could be a merge join, for which the planner also weighs reading the whole index in its
/// order, and that is the cheapest way through a table that it takes for empty. Since there is nothing to choose, a plan
/// is made once and not for each execution, which for the longest statement takes as much time as to run it.
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

/// A copy takes as long as it takes, and reads whole tables: what limits the service's own statements is not for it.
pub(super) const COPY: Settings = &[
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

/// How long an answer may stand unread. A local socket has no such limit and always says 0, so it is not looked at.
const UNREAD: (&str, &str) = ("tcp_user_timeout", "4s");

/// As options at the start of a connection.
pub(super) fn options(settings: Settings) -> String {
    let options = settings
        .iter()
        .map(|(name, value)| format!(" -c {name}={value}"));
    options.collect()
}

/// Which of these are not in force on a connection, as people read it; empty when all are. What a server of another
/// make does not know is not in force either.
pub(super) async fn missing(client: &Object, settings: Settings) -> Result<String, Error> {
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
