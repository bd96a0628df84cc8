//! Rows of the message queue that a node holds.

use domain::ids::NodeId;
use domain::ports::{ClaimedRow, StoreError};
use tokio_postgres::Row;

use super::{PostgresStore, column};
use crate::rows::Corrupt;
use crate::rows::dispatch::{ClaimedColumns, lanes_after};

const LIST: &str = concat!(
    "SELECT h.lane, h.due_us, h.id, h.attempt
    FROM UNNEST($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[]) AS l (owner, lane, after_us, after_id)
    CROSS JOIN LATERAL (
        SELECT q.lane, q.due_us, q.id, q.attempt FROM queue AS q
        WHERE q.owner = l.owner AND q.lane = l.lane AND (q.due_us, q.id) > (l.after_us, l.after_id)
            AND q.due_us <= ",
    now_us!(),
    " - $5::bigint ORDER BY q.due_us, q.id LIMIT $6
    ) AS h
    ORDER BY h.lane, h.due_us, h.id LIMIT $6"
);
/// The attempt number guards against stale claims: rows that were settled or claimed again are not changed.
const RELEASE: &str = "
    WITH released AS (
        UPDATE queue AS q SET owner = 0
        FROM UNNEST($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::int[])
            AS r (owner, lane, due_us, id, attempt)
        WHERE q.owner = ANY(ARRAY[r.owner]) AND q.lane = r.lane AND q.due_us = r.due_us AND q.id = r.id AND q.attempt = r.attempt
        RETURNING 1
    )
    SELECT count(*) FROM released";

impl PostgresStore {
    /// Lists rows that have been due for a while.
    pub(super) async fn held_rows(
        &self,
        node: NodeId,
        due_for_us: i64,
        after: Option<&ClaimedRow>,
        limit: u32,
    ) -> Result<Vec<ClaimedRow>, StoreError> {
        let (mut owner, mut lane) = (Vec::new(), Vec::new());
        let (mut after_us, mut after_id) = (Vec::new(), Vec::new());
        for (of, us, id) in lanes_after(after) {
            owner.push(node.as_i64());
            lane.push(of);
            after_us.push(us);
            after_id.push(id);
        }
        let limit = i64::from(limit);
        let values: super::Values<'_> = &[&owner, &lane, &after_us, &after_id, &due_for_us, &limit];
        self.list("list held messages", LIST, values, claimed_row)
            .await
    }

    /// Puts rows back in the queue that the node holds under these claims.
    pub(super) async fn release_rows(
        &self,
        node: NodeId,
        rows: &[ClaimedRow],
    ) -> Result<u64, StoreError> {
        let mut ordered = rows.to_vec();
        // Settlements lock rows in the same order.
        ordered.sort_by_key(|row| row.id);
        let (mut owner, mut lane, mut due_us) = (Vec::new(), Vec::new(), Vec::new());
        let (mut id, mut attempt) = (Vec::new(), Vec::new());
        for row in ordered.iter().map(ClaimedColumns::from_row) {
            owner.push(node.as_i64());
            lane.push(row.lane);
            due_us.push(row.due_us);
            id.push(row.id);
            attempt.push(row.attempt);
        }
        let values: super::Values<'_> = &[&owner, &lane, &due_us, &id, &attempt];
        let count = super::prune::count;
        self.get("release held messages", RELEASE, values, count)
            .await
    }
}

fn claimed_row(row: &Row) -> Result<ClaimedRow, Corrupt> {
    let columns = ClaimedColumns {
        lane: column(row, 0)?,
        due_us: column(row, 1)?,
        id: column(row, 2)?,
        attempt: column(row, 3)?,
    };
    columns.row()
}
