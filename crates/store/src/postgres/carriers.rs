//! The state of carriers, as reported by nodes.

use domain::ids::NodeId;
use domain::ports::{CarrierStatus, NodeCarrierStatus, StoreError};
use tokio_postgres::Row;

use super::PostgresStore;
use crate::rows::Corrupt;
use crate::rows::carriers::CarrierColumns;

/// A statement does not see its own changes, so remaining rows are updated, not deleted and inserted again.
const REPLACE: &str = concat!(
    "WITH forgotten AS (
        DELETE FROM carrier WHERE node = $1 AND name <> ALL ($2::text[])
    )
    INSERT INTO carrier (node, name, kind, health, links_up, links, note, waiting, under_way, places,
        per_second, links_total, at_us)
    SELECT $1, g.*, ",
    now_us!(),
    " FROM UNNEST($2::text[], $3::text[], $4::text[], $5::int[], $6::int[], $7::bytea[], $8::bigint[], $9::bigint[],
        $10::bigint[], $11::bigint[], $12::int[])
        AS g (name, kind, health, links_up, links, note, waiting, under_way, places, per_second, links_total)
    ON CONFLICT (node, name) DO UPDATE SET kind = excluded.kind, health = excluded.health,
        links_up = excluded.links_up, links = excluded.links, note = excluded.note, waiting = excluded.waiting,
        under_way = excluded.under_way, places = excluded.places, per_second = excluded.per_second,
        links_total = excluded.links_total, at_us = excluded.at_us"
);
/// Sorted by bytes, so that the locale does not matter.
const LIST: &str = concat!(
    r#"SELECT c.node, c.name, c.kind, c.health, c.links_up, c.links, c.note, c.waiting, c.under_way, c.at_us,
        c.places, c.per_second, c.links_total
    FROM node JOIN carrier AS c ON c.node = node.id WHERE node.alive_until_us > "#,
    now_us!(),
    r#" ORDER BY c.name COLLATE "C", c.node"#
);

impl PostgresStore {
    /// Replaces the earlier reports of the node.
    pub(super) async fn store_statuses(
        &self,
        node: NodeId,
        statuses: &[CarrierStatus],
    ) -> Result<(), StoreError> {
        let columns = Columns::from_batch(statuses);
        let values: super::Values<'_> = &[
            &node.as_i64(),
            &columns.name,
            &columns.kind,
            &columns.health,
            &columns.links_up,
            &columns.links,
            &columns.note,
            &columns.waiting,
            &columns.under_way,
            &columns.places,
            &columns.per_second,
            &columns.links_total,
        ];
        let stored = self
            .query("store the states of carriers", REPLACE, values)
            .await;
        stored.map(drop)
    }

    /// The latest reports of the nodes that are alive.
    pub(super) async fn list_statuses(&self) -> Result<Vec<NodeCarrierStatus>, StoreError> {
        self.list("list carriers", LIST, &[], status).await
    }
}

/// The parameters of [`REPLACE`].
#[derive(Default)]
struct Columns<'a> {
    name: Vec<&'a str>,
    kind: Vec<&'a str>,
    health: Vec<&'a str>,
    links_up: Vec<i32>,
    links: Vec<i32>,
    note: Vec<Option<&'a [u8]>>,
    waiting: Vec<i64>,
    under_way: Vec<i64>,
    places: Vec<i64>,
    per_second: Vec<i64>,
    links_total: Vec<i32>,
}

impl<'a> Columns<'a> {
    fn from_batch(statuses: &'a [CarrierStatus]) -> Self {
        let mut columns = Self::default();
        for status in statuses {
            columns.name.push(&status.name);
            columns.kind.push(&status.kind);
            columns.health.push(status.state.health.name());
            columns.links_up.push(status.state.links_up.into());
            columns.links.push(status.state.links.into());
            let text = status.state.note.as_ref();
            columns.note.push(text.map(String::as_bytes));
            columns.waiting.push(status.waiting.into());
            columns.under_way.push(status.under_way.into());
            columns.places.push(status.window.into());
            columns.per_second.push(status.per_second.into());
            columns.links_total.push(status.state.links_total.into());
        }
        columns
    }
}

fn status(row: &Row) -> Result<NodeCarrierStatus, Corrupt> {
    CarrierColumns::read(row)?.status()
}
